/* SPDX-License-Identifier: Apache-2.0 */
/* Each operation of a history on one back end; see diff.h. */
#include "tests/fake/diff.h"

#include "base/check.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MAX_BYTES ((size_t)4 << 20)
#define MTIME(nr_) (1700000000000000000u + (uint64_t)(nr_)*1000)

static const char *const buckets[DIFF_BUCKETS] = { "alpha", "beta", "gamma-3" };
static const char *const keys[DIFF_KEYS] = {
	"a", "a/", "a/b", "a/b/c", "ab/c", "b", "b\xc3\xa4/%2f", "z/z/z"
};

const char *
diff_bucket(unsigned i)
{
	return buckets[i];
}

const char *
diff_key(unsigned i)
{
	return keys[i];
}

/* ---- answers ---- */

static void __attribute__((format(printf, 2, 3))) tell(struct diff_end *e, const char *fmt, ...)
{
	struct diff_answer *a = e->answer;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(a->text + a->len, sizeof a->text - a->len, fmt, ap);
	va_end(ap);
	check(n >= 0 && (size_t)n < sizeof a->text - a->len);
	a->len += (size_t)n;
}

static void
tell_result(struct diff_end *e, const char *what, int r)
{
	if (r < 0)
		tell(e, " %s=%s", what, strerrorname_np(-r) ? strerrorname_np(-r) : "?");
	else
		tell(e, " %s=%d", what, r);
}

/* Ends the answer of a list. The entries of a list that has failed are not the answer. */
static void
tell_list(struct diff_end *e, const char *what, size_t begin, int r, bool more)
{
	if (r < 0)
		e->answer->text[e->answer->len = begin] = 0;
	tell_result(e, what, r);
	if (r >= 0)
		tell(e, " more=%d", more);
}

static void
tell_etag(struct diff_end *e, const struct store_etag *t)
{
	uint32_t nr;

	memcpy(&nr, t->sum, sizeof nr);
	tell(e, " etag=%u/%02x-%u", nr, t->sum[15], t->parts);
}

static void
tell_attrs(struct diff_end *e, const void *attrs, uint32_t len)
{
	tell(e, " attrs=%u:%llx", len, (unsigned long long)(len ? crc64_nvme(0, attrs, len) : 0));
}

static void
tell_expiry(struct diff_end *e, uint64_t expires_ns)
{
	if (expires_ns)
		tell(e, " expires=%llu", (unsigned long long)expires_ns);
}

/* A version is compared with the one that the back end gave last. Of two operations in flight the later one may answer first, so
 * the operations after them tell the version. */
static void
tell_version(struct diff_end *e, uint64_t *last, uint64_t version)
{
	if (e->before) {
		*last = version > *last ? version : *last;
		return;
	}
	tell(e, " version%s", version == *last ? "=" : version > *last ? ">" : "<");
	if (version < *last)
		e->answer->wrong = "a version is smaller than an earlier one";
	*last = version;
}

/* Returns the versions and ids that an operation names. */
static const struct diff_told *
named(const struct diff_end *e)
{
	return e->before ? e->before : &e->told;
}

/* Returns the version of a key that an operation names: the last one, or another one. */
static uint64_t
version_of(const struct diff_end *e, const struct diff_op *op)
{
	return named(e)->version[op->bucket][op->key] + ((uint64_t)(op->version == 2) << 60);
}

/* ---- waiting ---- */

static void
on_done(struct store_op *op)
{
	op->msg.fn = NULL;
	op->port = NULL;
}

#define START(op_, call) ((op_)->done = on_done, (call))

static int
wait_for(struct diff_end *e, struct store_op *op, int r)
{
	if (r < 0)
		return r;
	while (r == 0 && op->port) {
		if (!diff_two_wait(op))
			diff_turn(e);
	}
	return op->result;
}

/* ---- content ---- */

static unsigned char *pattern;

/* Returns the bytes of an operation's content. */
static const unsigned char *
content(uint32_t nr)
{
	if (!pattern) {
		uint64_t s = 88172645463325252u;

		pattern = malloc(SIZE_MAX_BYTES + 65536);
		check(pattern);
		for (size_t i = 0; i < SIZE_MAX_BYTES + 65536; i++) {
			s ^= s << 13;
			s ^= s >> 7;
			s ^= s << 17;
			pattern[i] = (unsigned char)(s >> 32);
		}
	}
	return pattern + nr * 97u % 65536;
}

uint64_t
diff_crc(uint32_t nr, uint64_t size)
{
	return crc64_nvme(0, content(nr), size);
}

static struct store_etag
etag_of(uint32_t nr)
{
	struct store_etag t = { .parts = nr % 3 };

	memcpy(t.sum, &nr, sizeof nr);
	t.sum[15] = 0x5e;
	return t;
}

static struct store_key
key_of(const struct diff_op *op)
{
	return (struct store_key){ buckets[op->bucket], keys[op->key], (uint16_t)strlen(buckets[op->bucket]),
				   (uint16_t)strlen(keys[op->key]) };
}

static struct store_pre
pre_of(const struct diff_end *e, const struct diff_op *op)
{
	struct store_pre pre = { .kind = op->pre, .keep = op->keep };

	for (unsigned i = 0; i < op->etag_nr; i++)
		pre.etags[pre.etag_nr++] = etag_of(op->etag[i]);
	if (op->pre == PRE_VERSION)
		pre.version = version_of(e, op);
	pre.expired_ns = op->expires_ns;
	return pre;
}

/* Returns a buffer for so many bytes, or for as many as a large one has. */
static struct buf *
buf_for(struct diff_end *e, uint64_t bytes)
{
	struct buf *b = bufpool_get(e->bufs, bytes <= BUF_SMALL_BYTES ? BUF_SMALL : BUF_LARGE);

	check(b);
	return b;
}

/* ---- PUTs of objects and parts ---- */

struct putting {
	struct store_put put;
	struct store_write w;
	struct buf *last;
	char small[STORE_INLINE_MAX];
};

/* What a PUT writes. */
struct written {
	const unsigned char *bytes;
	uint64_t size, crc64;
	struct store_meta meta;
};

static struct written
written_by(const struct diff_op *op)
{
	const unsigned char *bytes = content(op->nr);

	return (struct written){ .bytes = bytes,
				 .size = op->size,
				 .crc64 = diff_crc(op->nr, op->size),
				 .meta = { .etag = etag_of(op->nr),
					   .mtime_ns = MTIME(op->nr),
					   .attrs = bytes + 7,
					   .attrs_len = op->attrs_len,
					   .expires_ns = op->kind == OP_PART ? 0 : op->expires_ns } };
}

/* Everything up to the start of the commit. Returns what the start of the commit returned, or an earlier error; -ECHILD: aborted. */
static int
put_begin(struct diff_end *e, const struct diff_op *op, const struct written *what, struct putting *pt)
{
	struct store_key k = key_of(op);
	struct store_commit c = { .pre = pre_of(e, op), .meta = what->meta };
	uint64_t announced = op->says_size ? what->size + op->wrong_size : STORE_SIZE_UNKNOWN;
	uint64_t off = 0;
	int r;

	if (op->kind == OP_PART)
		r = store_put_init_part(e->port, &pt->put, &k, named(e)->upload[op->upload].id, op->part + 1,
					announced);
	else
		r = store_put_init(e->port, &pt->put, &k, announced);
	if (r < 0)
		return r;
	if (what->size <= STORE_INLINE_MAX && op->rides) {
		memcpy(pt->small, what->bytes, what->size);
		c.inline_data = pt->small;
		c.inline_len = (uint32_t)what->size;
		off = what->size;
	}
	while (r == 0 && off < what->size) {
		uint64_t n = what->size - off < STORE_PIECE ? what->size - off : STORE_PIECE;
		bool last = off + n == what->size;
		struct buf *b = buf_for(e, n);

		memcpy(b->mem, what->bytes + off, n);
		off += n;
		if (last && op->rides) {
			pt->last = c.last = b;
			c.last_len = (uint32_t)n;
			break;
		}
		r = wait_for(
			e, &pt->w.op,
			START(&pt->w.op, store_put_write(e->port, &pt->put, &pt->w, b, (uint32_t)n, last)));
		bufpool_put(e->bufs, b);
	}
	if (op->expects_crc) {
		c.have_expect_crc64 = true;
		c.expect_crc64 = what->crc64 ^ op->wrong_crc;
	}
	if (r == 0 && op->kind == OP_PUT_ABORT)
		r = -ECHILD;
	if (r == 0)
		r = START(&pt->put.op, store_put_commit(e->port, &pt->put, &c));
	if (r < 0) {
		store_put_abort(e->port, &pt->put);
		if (pt->last)
			bufpool_put(e->bufs, pt->last);
		pt->last = NULL;
	}
	return r;
}

static int
put_end(struct diff_end *e, struct putting *pt, int r)
{
	r = wait_for(e, &pt->put.op, r);
	if (pt->last)
		bufpool_put(e->bufs, pt->last);
	return r;
}

static void
put(struct diff_end *e, const struct diff_op *op, const struct written *what)
{
	struct putting *pt = calloc(1, sizeof *pt);
	int r;

	check(pt);
	r = put_end(e, pt, put_begin(e, op, what, pt));
	/* That there is no bucket, or no room, may be said early, or not at all. */
	if (op->kind == OP_PUT_ABORT)
		tell(e, " aborted");
	else
		tell_result(e, "put", r);
	if (r == 0) {
		tell(e, " size=%llu crc=%llx", (unsigned long long)pt->put.size_bytes,
		     (unsigned long long)pt->put.crc64);
		if (op->kind == OP_PART)
			tell_version(e, &e->told.upload[op->upload].version[op->part], pt->put.version);
		else
			tell_version(e, &e->told.version[op->bucket][op->key], pt->put.version);
	}
	free(pt);
}

static void
do_put(struct diff_end *e, const struct diff_op *op)
{
	const struct written what = written_by(op);

	put(e, op, &what);
}

/* ---- other changes of objects ---- */

static void
do_delete(struct diff_end *e, const struct diff_op *op)
{
	struct store_pre pre = pre_of(e, op);
	struct store_key k = key_of(op);
	struct store_del del;

	tell_result(
		e, "delete",
		wait_for(e, &del.op,
			 START(&del.op, store_delete(e->port, &k,
						     op->pre == PRE_NONE && !op->keep ? NULL : &pre, &del))));
}

static void
do_set_attrs(struct diff_end *e, const struct diff_op *op)
{
	struct store_key k = key_of(op);
	uint64_t version = op->version ? version_of(e, op) : 0;
	struct store_del del;

	tell_result(e, "set_attrs",
		    wait_for(e, &del.op,
			     START(&del.op, store_set_attrs(e->port, &k, version, content(op->nr) + 7,
							    op->attrs_len, &del))));
}

/* ---- reading ---- */

static void
tell_parts(struct diff_end *e, struct store_obj *obj)
{
	struct store_part p;

	for (uint32_t i = 0; i < obj->part_nr; i++) {
		int r = store_obj_part_at(obj, i, &p);

		if (r < 0) {
			tell_result(e, "part_at", r);
			continue;
		}
		tell(e, " [%u %llu+%llu %llx", p.number, (unsigned long long)p.off_bytes,
		     (unsigned long long)p.size_bytes, (unsigned long long)p.crc64);
		tell_etag(e, &p.etag);
		tell_attrs(e, p.attrs, p.attrs_len);
		tell(e, "]");
	}
	tell_result(e, "part", store_obj_part(obj, 2, &p));
}

/* to: memory of obj->size_bytes bytes for the content, or NULL. */
static void
read_all(struct diff_end *e, struct store_obj *obj, unsigned char *to)
{
	struct buf *b = buf_for(e, obj->size_bytes);
	uint64_t crc = 0;
	int r = 0;

	for (uint64_t off = 0; r >= 0 && off < obj->size_bytes;) {
		struct store_read rd;
		uint32_t skew = 0,
			 len = store_read_plan(obj, off, obj->size_bytes - off, b->cap_bytes, &skew);

		if (len <= skew || skew) {
			e->answer->wrong = "a read is planned that does not begin at its offset";
			break;
		}
		r = wait_for(e, &rd.op, START(&rd.op, store_read(e->port, obj, &rd, b, off, len)));
		if (r < 0)
			break;
		crc = crc64_nvme(crc, b->mem + rd.lead, len);
		if (to)
			memcpy(to + off, b->mem + rd.lead, len);
		off += len;
	}
	bufpool_put(e->bufs, b);
	tell_result(e, "read", r < 0 ? r : 0);
	tell(e, " content=%llx", (unsigned long long)crc);
	if (r >= 0 && crc != obj->crc64)
		e->answer->wrong = "the content has another CRC";
}

/* Opens an object. Returns true if it is open. */
static bool
open_it(struct diff_end *e, const struct store_key *k, const struct diff_op *op, struct store_obj *obj)
{
	int r;

	if (op->rides)
		r = START(&obj->op, store_open_to_read(e->port, k, op->size, obj));
	else
		r = START(&obj->op, store_open(e->port, k, obj));
	r = wait_for(e, &obj->op, r);
	tell_result(e, "open", r);
	obj->op.port = e->port; /* on_done() took it away; an object keeps it */
	return r >= 0;
}

static void
do_read(struct diff_end *e, const struct diff_op *op)
{
	struct store_key k = key_of(op);
	struct store_obj obj = { .size_bytes = 0 };

	if (!open_it(e, &k, op, &obj))
		return;
	tell(e, " size=%llu crc=%llx mtime=%llu", (unsigned long long)obj.size_bytes,
	     (unsigned long long)obj.crc64, (unsigned long long)obj.meta.mtime_ns);
	tell_etag(e, &obj.meta.etag);
	tell_attrs(e, obj.meta.attrs, obj.meta.attrs_len);
	tell_expiry(e, obj.meta.expires_ns);
	tell_version(e, &e->told.version[op->bucket][op->key], obj.version);
	tell_parts(e, &obj);
	read_all(e, &obj, NULL);
	store_close(e->port, &obj);
}

/* A copy is a read and a PUT, as that of a client is; the source stays open. */
static void
do_copy(struct diff_end *e, const struct diff_op *op)
{
	const struct diff_op from = { .bucket = op->from_bucket, .key = op->from_key };
	struct store_key k = key_of(&from);
	struct store_obj obj = { .size_bytes = 0 };
	struct written what;
	unsigned char *bytes;

	if (!open_it(e, &k, op, &obj))
		return;
	bytes = malloc(obj.size_bytes + 1);
	check(bytes);
	read_all(e, &obj, bytes);
	what = (struct written){
		.bytes = bytes, .size = obj.size_bytes, .crc64 = obj.crc64, .meta = obj.meta
	};
	what.meta.mtime_ns = MTIME(op->nr);
	if (!op->keeps_expiry)
		what.meta.expires_ns = op->expires_ns;
	put(e, op, &what);
	store_close(e->port, &obj);
	free(bytes);
}

/* ---- lists ---- */

struct listing {
	struct store_list ls;
	struct diff_end *end;
	struct diff_answer *answer; /* a turn gives the entries, which may be one of another operation */
	enum diff_kind kind;
};

static bool
on_entry(struct store_list *ls, const struct store_entry *en)
{
	struct listing *l = (struct listing *)ls;
	struct diff_end *e = l->end;

	e->answer = l->answer;
	tell(e, "\n\t%.*s%s", (int)en->name_len, en->name, en->is_prefix ? " (prefix)" : "");
	if (l->kind == OP_LIST && !en->is_prefix) {
		tell(e, " size=%llu mtime=%llu", (unsigned long long)en->size_bytes,
		     (unsigned long long)en->mtime_ns);
		tell_etag(e, &en->etag);
		tell_attrs(e, en->attrs, en->attrs_len);
		tell_expiry(e, en->expires_ns);
	}
	if (l->kind == OP_LIST_UPLOADS && !en->is_prefix) {
		int slot = -1;

		for (int i = 0; i < DIFF_UPLOADS; i++) {
			if (memcmp(e->told.upload[i].id, en->upload_id, STORE_UPLOAD_ID_BYTES) == 0)
				slot = i;
		}
		tell(e, " upload=%d", slot);
		tell_attrs(e, en->attrs, en->attrs_len);
	}
	return true;
}

static void
do_list(struct diff_end *e, const struct diff_op *op)
{
	struct listing l = { .end = e, .answer = e->answer, .kind = op->kind };
	struct store_list *ls = &l.ls;
	size_t begin = e->answer->len;
	int r;

	ls->entry = on_entry;
	ls->max = op->max;
	ls->shows_gone = op->shows_gone;
	ls->prefix = op->prefix;
	ls->prefix_len = (uint16_t)strlen(op->prefix);
	if (op->kind != OP_LIST_BUCKETS) {
		ls->bucket = buckets[op->bucket];
		ls->bucket_len = (uint16_t)strlen(ls->bucket);
	}
	if (op->from) {
		ls->after = op->from;
		ls->after_len = (uint16_t)strlen(op->from);
	}
	if (op->has_delimiter) {
		ls->delimiter = "/";
		ls->delimiter_len = 1;
	}
	if (op->kind == OP_LIST_UPLOADS)
		r = START(&ls->op, store_list_uploads(e->port, ls));
	else
		r = START(&ls->op, store_list(e->port, ls));
	r = wait_for(e, &ls->op, r);
	tell_list(e, "list", begin, r, ls->more);
}

/* A list of what is in the records of a bucket, without answer. */
struct finding {
	struct store_list ls;
	struct {
		uint64_t version, expires_ns;
	} key[DIFF_KEYS];
};

static bool
on_found(struct store_list *ls, const struct store_entry *en)
{
	struct finding *f = (struct finding *)ls;

	for (unsigned i = 0; i < DIFF_KEYS; i++) {
		if (strlen(keys[i]) != en->name_len || memcmp(keys[i], en->name, en->name_len) != 0)
			continue;
		f->key[i].version = en->version;
		f->key[i].expires_ns = en->expires_ns;
	}
	return true;
}

static int
find_all(struct diff_end *e, unsigned bucket, struct finding *f)
{
	*f = (struct finding){ .ls = { .entry = on_found,
				       .max = 2 * DIFF_KEYS,
				       .shows_gone = true,
				       .bucket = buckets[bucket],
				       .bucket_len = (uint16_t)strlen(buckets[bucket]),
				       .prefix = "" } };
	return wait_for(e, &f->ls.op, START(&f->ls.op, store_list(e->port, &f->ls)));
}

uint64_t
diff_look(struct diff_end *e, unsigned bucket, unsigned key)
{
	struct finding f;

	return find_all(e, bucket, &f) < 0 ? 0 : f.key[key].version;
}

/* Removes the objects of a bucket that have expired, as walk/ttl.h does. */
static void
do_expire(struct diff_end *e, const struct diff_op *op)
{
	struct diff_op each = *op;
	struct finding f;
	int r = find_all(e, op->bucket, &f);

	tell_result(e, "found", r);
	each.pre = PRE_EXPIRED;
	for (each.key = 0; r >= 0 && each.key < DIFF_KEYS; each.key++) {
		if (!f.key[each.key].expires_ns || f.key[each.key].expires_ns > op->expires_ns)
			continue;
		tell(e, " %s", keys[each.key]);
		do_delete(e, &each);
	}
}

/* Starts the store again. Its format may show that no object has an expiry, if there is none. */
static void
do_restart(struct diff_end *e)
{
	unsigned expiring = 0;
	struct finding f;

	e->stop(e);
	e->start(e, false);
	for (unsigned b = 0; b < DIFF_BUCKETS; b++) {
		if (find_all(e, b, &f) < 0)
			continue;
		for (unsigned i = 0; i < DIFF_KEYS; i++)
			expiring += f.key[i].expires_ns != 0;
	}
	tell(e, " expiring=%u", expiring);
	if (expiring && store_had_no_expiry(e->store))
		e->answer->wrong = "the format shows that no object has an expiry";
}

/* ---- buckets ---- */

static void
tell_bucket_version(struct diff_end *e, unsigned bucket, uint64_t version)
{
	if (version == 0)
		tell(e, " no version");
	else
		tell_version(e, &e->told.attrs_version[bucket], version);
}

static void
do_bucket(struct diff_end *e, const struct diff_op *op)
{
	const char *name = buckets[op->bucket];
	size_t len = strlen(name);
	struct store_bucket_spec spec = { .attrs = content(op->nr) + 7, .attrs_len = op->attrs_len };
	struct store_bucket_set set;
	struct store_del del;
	struct store_stat st = { .version = 0 };
	static char attrs[STORE_BUCKET_ATTRS_MAX];
	uint64_t version = op->version == 0   ? STORE_VERSION_ANY
			   : op->version == 1 ? named(e)->attrs_version[op->bucket]
			   : op->version == 2 ? 0
					      : UINT64_MAX / 3; /* a version of no record */
	int r;

	switch (op->kind) {
	case OP_BUCKET_CREATE:
		tell_result(
			e, "create",
			wait_for(e, &del.op,
				 START(&del.op, store_bucket_create_as(e->port, name, len, &spec, &del))));
		break;
	case OP_BUCKET_DELETE:
		tell_result(
			e, "remove",
			wait_for(e, &del.op, START(&del.op, store_bucket_delete(e->port, name, len, &del))));
		break;
	case OP_BUCKET_HEAD:
		r = wait_for(e, &st.op, START(&st.op, store_bucket_head(e->port, name, len, &st)));
		tell_result(e, "head", r);
		if (r == 0)
			tell(e, " copies=%u ctime=%d", st.copies, st.ctime_ns != 0);
		e->answer->has_used = r == 0 && st.has_quota && op->has_use;
		e->answer->used = st.used;
		break;
	case OP_BUCKET_SET_ATTRS:
		r = START(&set.op, store_bucket_set_attrs(e->port, name, len, version, content(op->nr) + 7,
							  op->attrs_len, &set));
		tell_result(e, "set", wait_for(e, &set.op, r));
		break;
	case OP_BUCKET_GET_ATTRS:
		r = wait_for(e, &st.op,
			     START(&st.op, store_bucket_get_attrs(e->port, name, len, attrs, op->max, &st)));
		tell_result(e, "get", r);
		if (r < 0)
			break;
		tell(e, " len=%u", st.attrs_len);
		tell_attrs(e, attrs, st.attrs_len < op->max ? st.attrs_len : op->max);
		tell_bucket_version(e, op->bucket, st.version);
		break;
	default: /* OP_BUCKET_QUOTA */
		r = START(&set.op, store_bucket_set_quota(e->port, name, len, &op->quota, &set));
		tell_result(e, "quota", wait_for(e, &set.op, r));
		break;
	}
}

/* ---- uploads ---- */

static void
do_upload(struct diff_end *e, const struct diff_op *op)
{
	struct store_key k = key_of(op);
	struct store_upload *u = calloc(1, sizeof *u);
	struct store_stat st = { .version = 0 };
	char attrs[512] = "";
	int r;

	check(u);
	switch (op->kind) {
	case OP_UPLOAD_CREATE:
		r = START(&u->op, store_upload_create(e->port, &k, content(op->nr) + 7, op->attrs_len, u));
		r = wait_for(e, &u->op, r);
		tell_result(e, "create", r);
		memset(&e->told.upload[op->upload], 0, sizeof e->told.upload[op->upload]);
		if (r == 0)
			memcpy(e->told.upload[op->upload].id, u->id, sizeof u->id);
		break;
	case OP_UPLOAD_ABORT:
		r = START(&u->op, store_upload_abort(e->port, &k, named(e)->upload[op->upload].id, u));
		tell_result(e, "abort", wait_for(e, &u->op, r));
		break;
	default: /* OP_UPLOAD_STAT */
		r = START(&st.op, store_upload_stat(e->port, &k, named(e)->upload[op->upload].id, attrs,
						    sizeof attrs, &st));
		r = wait_for(e, &st.op, r);
		tell_result(e, "stat", r);
		if (r == 0)
			tell_attrs(e, attrs, st.attrs_len);
		break;
	}
	free(u);
}

struct completing {
	struct store_complete c;
	struct store_part_ref ref[DIFF_PARTS];
};

static int
complete_begin(struct diff_end *e, const struct diff_op *op, struct completing *co)
{
	struct store_key k = key_of(op);
	struct store_complete *c = &co->c;

	for (unsigned i = 0; i < op->part_nr; i++) {
		co->ref[i] = (struct store_part_ref){ .number = op->parts[i] + 1,
						      .etag = etag_of(op->part_etag[i]) };
		if (op->part_versions)
			co->ref[i].version = named(e)->upload[op->upload].version[op->parts[i]];
	}
	c->parts = co->ref;
	c->part_nr = op->part_nr;
	c->meta = (struct store_meta){ .etag = etag_of(op->nr),
				       .mtime_ns = MTIME(op->nr),
				       .attrs = content(op->nr) + 7,
				       .attrs_len = op->attrs_len,
				       .expires_ns = op->expires_ns };
	c->pre = pre_of(e, op);
	c->part_min_bytes = op->part_min;
	c->have_expect_crc64 = op->expects_crc;
	c->expect_crc64 = op->expect_crc ^ op->wrong_crc;
	c->have_expect_size = op->expects_size;
	c->expect_size_bytes = op->expect_size + op->wrong_size;
	return START(&c->op, store_upload_complete(e->port, &k, named(e)->upload[op->upload].id, c));
}

static void
do_complete(struct diff_end *e, const struct diff_op *op)
{
	struct completing *co = calloc(1, sizeof *co);
	int r;

	check(co);
	r = wait_for(e, &co->c.op, complete_begin(e, op, co));
	tell_result(e, "complete", r);
	if (r == -EINVAL || r == -EBADR || r == -EMSGSIZE)
		tell(e, " bad=%u", co->c.bad);
	if (r == 0) {
		tell(e, " size=%llu crc=%llx mtime=%llu done=%d", (unsigned long long)co->c.size_bytes,
		     (unsigned long long)co->c.crc64, (unsigned long long)co->c.mtime_ns, co->c.was_done);
		tell_etag(e, &co->c.etag);
		tell_version(e, &e->told.version[op->bucket][op->key], co->c.version);
	}
	free(co);
}

struct part_listing {
	struct store_part_list pl;
	struct diff_end *end;
	struct diff_answer *answer;
	unsigned upload;
};

static bool
on_part(struct store_part_list *pl, const struct store_part *p)
{
	struct part_listing *l = (struct part_listing *)pl;

	l->end->answer = l->answer;
	tell(l->end, "\n\t%u size=%llu crc=%llx mtime=%llu", p->number, (unsigned long long)p->size_bytes,
	     (unsigned long long)p->crc64, (unsigned long long)p->mtime_ns);
	tell_etag(l->end, &p->etag);
	tell_attrs(l->end, p->attrs, p->attrs_len);
	if (p->number >= 1 && p->number <= DIFF_PARTS)
		tell_version(l->end, &l->end->told.upload[l->upload].version[p->number - 1], p->version);
	return true;
}

static void
do_list_parts(struct diff_end *e, const struct diff_op *op)
{
	struct part_listing l = { .end = e, .answer = e->answer, .upload = op->upload };
	struct store_key k = key_of(op);
	size_t begin = e->answer->len;
	int r;

	l.pl.part = on_part;
	l.pl.after = op->after;
	l.pl.max = op->max;
	r = START(&l.pl.op, store_list_parts(e->port, &k, named(e)->upload[op->upload].id, &l.pl));
	r = wait_for(e, &l.pl.op, r);
	tell_list(e, "parts", begin, r, l.pl.more);
}

/* ---- all of it ---- */

void
diff_answer_clear(struct diff_answer *a)
{
	a->len = 0;
	a->text[0] = 0;
	a->wrong = NULL;
	a->has_used = false;
}

void
diff_do(struct diff_end *e, const struct diff_op *op)
{
	e->answer = &e->own;
	diff_answer_clear(e->answer);
	diff_run(e, op);
}

void
diff_run(struct diff_end *e, const struct diff_op *op)
{
	if (e->select)
		e->select(e, op->process);
	switch (op->kind) {
	case OP_PUT:
	case OP_PUT_ABORT:
	case OP_PART:
		do_put(e, op);
		break;
	case OP_DELETE:
		do_delete(e, op);
		break;
	case OP_SET_ATTRS:
		do_set_attrs(e, op);
		break;
	case OP_READ:
		do_read(e, op);
		break;
	case OP_LIST:
	case OP_LIST_UPLOADS:
	case OP_LIST_BUCKETS:
		do_list(e, op);
		break;
	case OP_UPLOAD_CREATE:
	case OP_UPLOAD_STAT:
	case OP_UPLOAD_ABORT:
		do_upload(e, op);
		break;
	case OP_COMPLETE:
		do_complete(e, op);
		break;
	case OP_LIST_PARTS:
		do_list_parts(e, op);
		break;
	case OP_COPY:
		do_copy(e, op);
		break;
	case OP_EXPIRE:
		do_expire(e, op);
		break;
	case OP_PASS:
		break;
	case OP_RESTART:
		do_restart(e);
		break;
	case OP_KILL:
		if (e->kill)
			e->kill(e);
		break;
	case OP_IDLE:
		if (e->idle)
			e->idle(e);
		break;
	default:
		do_bucket(e, op);
		break;
	}
}

void
diff_do_killed(struct diff_end *e, const struct diff_op *op, unsigned turns)
{
	struct putting *pt = calloc(1, sizeof *pt);
	struct completing *co = calloc(1, sizeof *co);
	const struct written what = written_by(op);
	struct store_pre pre = pre_of(e, op);
	struct store_key k = key_of(op);
	struct store_del del;
	struct store_op *sop;
	int r;

	check(pt && co && e->kill);
	if (e->select)
		e->select(e, op->process);
	if (op->kind == OP_PUT) {
		r = put_begin(e, op, &what, pt);
		sop = &pt->put.op;
	} else if (op->kind == OP_DELETE) {
		r = START(&del.op, store_delete(e->port, &k, &pre, &del));
		sop = &del.op;
	} else {
		r = complete_begin(e, op, co);
		sop = &co->c.op;
	}
	for (; r == 0 && turns && sop->port; turns--)
		diff_turn(e);
	e->kill(e);
	if (pt->last)
		bufpool_put(e->bufs, pt->last);
	check(r != 0 || !sop->port);
	free(pt);
	free(co);
}
