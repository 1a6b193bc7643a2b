/* SPDX-License-Identifier: Apache-2.0 */
/* The history: choices, comparison, the known differences; see diff.h. */
#include "tests/fake/diff.h"

#include "base/age_clock.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Known differences of back ends, with their reasons. The back ends of a history do not get what is in this table, or the comparison
 * leaves it out:
 *
 *   times         The times of buckets and uploads are those of the clock; times of objects and parts are given.
 *   versions      They are numbers of the back end; only equality and increase are compared.
 *   two copies    Only a set has them; no bucket is made with two.
 *   empty pages   max is at least 1: a page of no entries is no question that the layer above asks.
 *   quotas        Only of objects and uploads, and with one gateway, which knows the usage at once: bytes in progress count at another moment on RADOS (model/quota.h). The usage of buckets is compared with one gateway, too.
 *   first error   Of an operation that fails for several reasons (a precondition and a wrong CRC, say), any one may be the answer.
 *   early errors  An aborted PUT may have been refused at its beginning, or not.
 *   reads         of parts of an upload in progress: RADOS cannot (store_open_part()).
 *   two at once   An operation that ends with -EAGAIN or -EDQUOT because of the other one may be in no order (diff_two.c).
 */

/* ---- time ---- */

#define BEGINNING_NS (1700000000 * NS_PER_S)

static uint64_t wall_ns, all_ns;

/* Threads of the engine read the clock at any time. */
static void
set_clock(uint64_t *clock, uint64_t ns)
{
	__atomic_store_n(clock, ns, __ATOMIC_RELAXED);
}

void
diff_clock(uint64_t ns)
{
	set_clock(&wall_ns, ns);
	clock_fake_wall(&wall_ns);
}

uint64_t
diff_now(void)
{
	return wall_ns;
}

void
diff_clock_all(void)
{
	clock_fake(&all_ns);
}

void
diff_pass(uint64_t ns)
{
	set_clock(&wall_ns, wall_ns + ns);
	set_clock(&all_ns, all_ns + ns);
}

void
diff_turn(struct diff_end *e)
{
	diff_pass(500);
	e->turn(e);
}

/* Begins a history at a whole second. No history has the age clock (base/age_clock.h) hold back a jump. */
static void
begin_time(void)
{
	diff_pass(NS_PER_S - wall_ns % NS_PER_S);
	age_clock_reset();
}

/* ---- choices ---- */

uint32_t
diff_below(struct diff_source *s, uint32_t n)
{
	check(n > 0);
	if (s->bytes) {
		uint32_t v = s->at < s->nr ? s->bytes[s->at++] : 0;

		if (n > 256)
			v = v << 8 | (s->at < s->nr ? s->bytes[s->at++] : 0);
		return v % n;
	}
	s->seed += 0x9e3779b97f4a7c15u;
	uint64_t z = s->seed;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ z >> 31) >> 16) % n;
}

static bool
one_in(struct diff_source *s, uint32_t n)
{
	return diff_below(s, n) == 0;
}

/* What the history has asked for; whether it was done, the back ends know. It makes choices that hit likely. */
struct hint {
	struct diff_source *s;
	uint32_t nr;
	bool has_two;        /* operations are for one or the other process of the last back end */
	bool at_once;        /* some operations are in flight at once */
	struct diff_log log; /* at_once: what was done */
	uint32_t etag[DIFF_BUCKETS][DIFF_KEYS]; /* of the last PUT */
	struct {
		unsigned bucket, key;
		bool is_made;
		struct {
			bool is_there;
			uint32_t nr;
			uint64_t size, crc;
		} part[DIFF_PARTS];
		struct diff_op done; /* the last completion */
	} upload[DIFF_UPLOADS];
};

static uint64_t
some_size(struct diff_source *s)
{
	switch (diff_below(s, 24)) {
	case 0:
		return 0;
	case 1:
	case 2:
		return STORE_INLINE_MAX - 2 + diff_below(s, 5);
	case 3:
	case 4:
	case 5:
		return diff_below(s, 60000);
	case 6:
		return (uint64_t)STORE_GRANULE * (1 + diff_below(s, 3)) + diff_below(s, 3) - 1;
	case 7:
		return one_in(s, 8) ? STORE_PIECE + diff_below(s, 2) * 65537 + diff_below(s, 2) * STORE_PIECE
				    : 300;
	default:
		return 1 + diff_below(s, 250);
	}
}

static uint32_t
some_attrs(struct diff_source *s)
{
	return one_in(s, 3) ? diff_below(s, 400) : 0;
}

/* Some objects expire soon, a few have expired already: half a second after a whole one. */
static uint64_t
some_expiry(struct diff_source *s)
{
	const uint64_t now_s = diff_now() / NS_PER_S;

	if (!one_in(s, 4))
		return 0;
	switch (diff_below(s, 12)) {
	case 0:
		return UINT64_MAX;
	case 1:
		return (now_s + 1000) * NS_PER_S + NS_PER_S / 2;
	default:
		return (now_s + diff_below(s, 8) - 1) * NS_PER_S + NS_PER_S / 2;
	}
}

/* Returns a time at which a remover takes objects for expired. */
static uint64_t
some_expired(struct diff_source *s)
{
	return diff_now() - (one_in(s, 3) ? 5 * NS_PER_S : 0);
}

static void
choose_pre(struct hint *h, struct diff_op *op)
{
	struct diff_source *s = h->s;

	if (op->kind == OP_DELETE && one_in(s, 6)) {
		op->pre = PRE_EXPIRED;
		op->expires_ns = some_expired(s);
		return;
	}
	op->keep = op->kind != OP_DELETE && one_in(s, 12);
	if (!one_in(s, 3))
		return;
	op->pre = (enum store_pre_kind)diff_below(s, PRE_VERSION + 1);
	op->etag_nr = op->pre == PRE_MATCH || op->pre == PRE_NONE_MATCH ? 1 + diff_below(s, 2) : 0;
	for (unsigned i = 0; i < op->etag_nr; i++)
		op->etag[i] = one_in(s, 3) ? diff_below(s, h->nr + 1) : h->etag[op->bucket][op->key];
	op->version = 1 + one_in(s, 4);
}

static void
choose_put(struct hint *h, struct diff_op *op)
{
	struct diff_source *s = h->s;

	op->size = some_size(s);
	op->says_size = !one_in(s, 3);
	op->wrong_size = op->says_size && one_in(s, 30);
	op->rides = op->size == 0 || !one_in(s, 3);
	op->attrs_len = some_attrs(s);
	op->expires_ns = some_expiry(s);
	op->expects_crc = one_in(s, 4);
	op->wrong_crc = one_in(s, 6);
	if (op->kind == OP_PUT)
		choose_pre(h, op);
}

static void
choose_copy(struct hint *h, struct diff_op *op)
{
	struct diff_source *s = h->s;

	op->from_bucket = one_in(s, 3) ? diff_below(s, DIFF_BUCKETS) : op->bucket;
	op->from_key = one_in(s, 4) ? op->key : diff_below(s, DIFF_KEYS);
	op->rides = one_in(s, 2);
	op->size = one_in(s, 2) ? 0 : some_size(s);
	op->says_size = !one_in(s, 3);
	op->keeps_expiry = one_in(s, 2);
	op->expires_ns = some_expiry(s);
	choose_pre(h, op);
}

static void
choose_complete(struct hint *h, struct diff_op *op)
{
	struct diff_source *s = h->s;
	uint64_t size = 0, crc = 0;

	if (h->upload[op->upload].done.part_nr && one_in(s, 4)) {
		*op = h->upload[op->upload].done;
		return;
	}
	for (unsigned i = 0; i < DIFF_PARTS; i++) {
		if ((!h->upload[op->upload].part[i].is_there && !one_in(s, 25)) || one_in(s, 12))
			continue;
		op->parts[op->part_nr] = i;
		op->part_etag[op->part_nr++] = h->upload[op->upload].part[i].nr + one_in(s, 40);
		crc = crc64_nvme_combine(crc, h->upload[op->upload].part[i].crc,
					 h->upload[op->upload].part[i].size);
		size += h->upload[op->upload].part[i].size;
	}
	if (op->part_nr > 1 && one_in(s, 25)) {
		unsigned i = op->parts[0];

		op->parts[0] = op->parts[1];
		op->parts[1] = one_in(s, 2) ? i : op->parts[1];
	}
	op->part_versions = one_in(s, 3);
	op->part_min = one_in(s, 6) ? diff_below(s, 400) : 0;
	op->expects_size = one_in(s, 3);
	op->expect_size = size;
	op->wrong_size = one_in(s, 8);
	op->expects_crc = one_in(s, 3);
	op->expect_crc = crc;
	op->wrong_crc = one_in(s, 8);
	op->attrs_len = some_attrs(s);
	op->expires_ns = some_expiry(s);
	choose_pre(h, op);
	h->upload[op->upload].done = *op;
}

static void
choose_list(struct hint *h, struct diff_op *op)
{
	struct diff_source *s = h->s;
	static const char *const prefixes[] = { "", "", "", "a", "a/", "a/b", "b", "z/z", "q", "ab/" };

	op->prefix = prefixes[diff_below(s, sizeof prefixes / sizeof *prefixes)];
	if (op->kind == OP_LIST_BUCKETS) {
		op->prefix = one_in(s, 3) ? "g" : "";
		op->from = one_in(s, 3) ? diff_bucket(diff_below(s, DIFF_BUCKETS)) : NULL;
	} else {
		op->from = one_in(s, 3) ? diff_key(diff_below(s, DIFF_KEYS)) : NULL;
		op->has_delimiter = op->kind == OP_LIST && one_in(s, 2);
	}
	op->max = one_in(s, 2) ? 1 + diff_below(s, 4) : 100;
	op->shows_gone = op->kind == OP_LIST && one_in(s, 3);
}

static void
choose_quota(struct hint *h, struct diff_op *op)
{
	op->quota = (struct store_use){ STORE_UNBOUNDED, STORE_UNBOUNDED, STORE_UNBOUNDED };
	if (one_in(h->s, 2))
		op->quota.objects = diff_below(h->s, 5);
	if (one_in(h->s, 3))
		op->quota.uploads = diff_below(h->s, 3);
}

static const struct weight {
	enum diff_kind kind;
	unsigned weight;
} weights[] = {
	{ OP_PUT, 26 },
	{ OP_PUT_ABORT, 2 },
	{ OP_DELETE, 10 },
	{ OP_SET_ATTRS, 5 },
	{ OP_COPY, 6 },
	{ OP_READ, 16 },
	{ OP_LIST, 10 },
	{ OP_BUCKET_CREATE, 7 },
	{ OP_BUCKET_DELETE, 4 },
	{ OP_BUCKET_HEAD, 3 },
	{ OP_BUCKET_SET_ATTRS, 3 },
	{ OP_BUCKET_GET_ATTRS, 3 },
	{ OP_BUCKET_QUOTA, 2 },
	{ OP_UPLOAD_CREATE, 7 },
	{ OP_UPLOAD_STAT, 2 },
	{ OP_UPLOAD_ABORT, 2 },
	{ OP_PART, 16 },
	{ OP_COMPLETE, 9 },
	{ OP_LIST_UPLOADS, 4 },
	{ OP_LIST_PARTS, 4 },
	{ OP_LIST_BUCKETS, 2 },
	{ OP_EXPIRE, 3 },
	{ OP_PASS, 8 },
	{ OP_RESTART, 1 },
	{ OP_KILL, 1 },
	{ OP_IDLE, 3 },
};

static enum diff_kind
choose_kind(struct diff_source *s)
{
	unsigned sum = 0, at;

	for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
		sum += weights[i].weight;
	at = diff_below(s, sum);
	for (size_t i = 0;; i++) {
		if (at < weights[i].weight)
			return weights[i].kind;
		at -= weights[i].weight;
	}
}

/* with: the operation that will be in flight at the same time, and often has the same subject; or NULL. */
static void
choose(struct hint *h, struct diff_op *op, const struct diff_op *with)
{
	struct diff_source *s = h->s;

	*op = (struct diff_op){ .kind = choose_kind(s),
				.nr = ++h->nr,
				.process = h->has_two ? diff_below(s, 2) : 0,
				.has_use = !h->has_two,
				.bucket = one_in(s, 3) ? diff_below(s, DIFF_BUCKETS) : 0 };
	if (op->kind == OP_BUCKET_QUOTA && h->has_two)
		op->kind = OP_BUCKET_HEAD;
	op->key = one_in(s, 2) ? diff_below(s, DIFF_KEYS) : diff_below(s, 2);
	op->upload = diff_below(s, DIFF_UPLOADS);
	if (with && one_in(s, 2)) {
		op->bucket = with->bucket;
		op->key = with->key;
		op->upload = with->upload;
	}
	if (op->kind == OP_UPLOAD_STAT || op->kind == OP_UPLOAD_ABORT || op->kind == OP_PART ||
	    op->kind == OP_COMPLETE || op->kind == OP_LIST_PARTS) {
		for (int i = 0; i < 3 && !h->upload[op->upload].is_made; i++)
			op->upload = (op->upload + 1) % DIFF_UPLOADS;
		op->bucket = h->upload[op->upload].bucket;
		op->key = one_in(s, 30) ? op->key : h->upload[op->upload].key;
	}
	switch (op->kind) {
	case OP_PUT:
	case OP_PUT_ABORT:
		choose_put(h, op);
		h->etag[op->bucket][op->key] = op->nr;
		break;
	case OP_DELETE:
		choose_pre(h, op);
		break;
	case OP_SET_ATTRS:
		op->attrs_len = diff_below(s, 500);
		op->version = (int)diff_below(s, 3);
		break;
	case OP_COPY:
		choose_copy(h, op);
		break;
	case OP_READ:
		op->rides = one_in(s, 2);
		op->size = one_in(s, 2) ? 0 : some_size(s);
		break;
	case OP_BUCKET_CREATE:
		op->attrs_len = some_attrs(s);
		break;
	case OP_BUCKET_SET_ATTRS:
		op->attrs_len = some_attrs(s);
		op->version = (int)diff_below(s, 4);
		break;
	case OP_BUCKET_GET_ATTRS:
		op->max = one_in(s, 4) ? diff_below(s, 300) : STORE_BUCKET_ATTRS_MAX;
		break;
	case OP_BUCKET_QUOTA:
		choose_quota(h, op);
		break;
	case OP_UPLOAD_CREATE:
		op->attrs_len = some_attrs(s);
		memset(&h->upload[op->upload], 0, sizeof h->upload[op->upload]);
		h->upload[op->upload].bucket = op->bucket;
		h->upload[op->upload].key = op->key;
		h->upload[op->upload].is_made = true;
		break;
	case OP_PART:
		choose_put(h, op);
		op->part = diff_below(s, DIFF_PARTS);
		break;
	case OP_COMPLETE:
		choose_complete(h, op);
		break;
	case OP_LIST:
	case OP_LIST_UPLOADS:
	case OP_LIST_BUCKETS:
		choose_list(h, op);
		break;
	case OP_LIST_PARTS:
		op->after = one_in(s, 2) ? 0 : diff_below(s, DIFF_PARTS + 1);
		op->max = one_in(s, 2) ? 1 + diff_below(s, 3) : 100;
		break;
	case OP_EXPIRE:
		op->expires_ns = some_expired(s);
		break;
	case OP_PASS:
		op->seconds = one_in(s, 10) ? 60 : 1 + diff_below(s, 3);
		break;
	case OP_IDLE:
		/* Now and then as much as a pause of rados/io/recall.c. */
		op->seconds = diff_below(s, 3);
		break;
	default:
		break;
	}
}

/* Notes what was done, by the answer of the first back end. */
static void
note(struct hint *h, const struct diff_op *op, const struct diff_answer *a)
{
	if (op->kind != OP_PART || strncmp(a->text, " put=0", 6) != 0)
		return;
	h->upload[op->upload].part[op->part].is_there = true;
	h->upload[op->upload].part[op->part].nr = op->nr;
	h->upload[op->upload].part[op->part].size = op->size;
	h->upload[op->upload].part[op->part].crc = diff_crc(op->nr, op->size);
}

void
diff_say(const struct diff_op *op, char *text, size_t len)
{
	static const char *const kinds[] = { "PUT",
					     "PUT, aborted",
					     "DELETE",
					     "SET ATTRS",
					     "COPY",
					     "READ",
					     "LIST",
					     "BUCKET CREATE",
					     "BUCKET DELETE",
					     "BUCKET HEAD",
					     "BUCKET SET ATTRS",
					     "BUCKET GET ATTRS",
					     "BUCKET QUOTA",
					     "UPLOAD CREATE",
					     "UPLOAD STAT",
					     "UPLOAD ABORT",
					     "PART",
					     "COMPLETE",
					     "LIST UPLOADS",
					     "LIST PARTS",
					     "LIST BUCKETS",
					     "EXPIRE",
					     "PASS",
					     "RESTART",
					     "KILL",
					     "IDLE" };
	static const char *const conditions[] = { "",           " if absent",     " if any",
						  " if match",  " if none match", " if version",
						  " if expired" };
	int n = snprintf(text, len, "%u.%u %s %s/%s upload %u part %u size %llu%s%s%s attrs %u%s%s", op->nr,
			 op->process, kinds[op->kind], diff_bucket(op->bucket), diff_key(op->key), op->upload,
			 op->part + 1, (unsigned long long)op->size,
			 op->says_size ? op->wrong_size ? " said wrongly" : " said" : "",
			 op->wrong_size ? " wrong" : "", op->rides ? " rides" : "", op->attrs_len,
			 conditions[op->pre], op->keep ? " keep" : "");

	for (unsigned i = 0; i < op->etag_nr; i++)
		n += snprintf(text + n, len - (size_t)n, " etag %u", op->etag[i]);
	n += snprintf(text + n, len - (size_t)n, " version %d max %u after %u", op->version, op->max,
		      op->after);
	if (op->prefix)
		n += snprintf(text + n, len - (size_t)n, " prefix '%s' from '%s'%s%s", op->prefix,
			      op->from ? op->from : "", op->has_delimiter ? " by /" : "",
			      op->shows_gone ? " all" : "");
	if (op->kind == OP_COPY)
		n += snprintf(text + n, len - (size_t)n, " of %s/%s%s", diff_bucket(op->from_bucket),
			      diff_key(op->from_key), op->keeps_expiry ? " with its expiry" : "");
	if (op->expires_ns)
		n += snprintf(text + n, len - (size_t)n, " expiry %+.1f s",
			      ((double)op->expires_ns - (double)diff_now()) / NS_PER_S);
	if (op->seconds)
		n += snprintf(text + n, len - (size_t)n, " %llu s", (unsigned long long)op->seconds);
	for (unsigned i = 0; i < op->part_nr; i++)
		n += snprintf(text + n, len - (size_t)n, " [%u %u]", op->parts[i] + 1, op->part_etag[i]);
	if (op->kind == OP_COMPLETE)
		snprintf(text + n, len - (size_t)n, " min %llu%s%s%s%s", (unsigned long long)op->part_min,
			 op->expects_size ? " expects size" : "", op->expects_crc ? " expects crc" : "",
			 op->wrong_crc ? " wrong" : "", op->part_versions ? " versions" : "");
	if (op->kind == OP_BUCKET_QUOTA)
		snprintf(text + n, len - (size_t)n, " objects %lld uploads %lld",
			 (long long)op->quota.objects, (long long)op->quota.uploads);
}

/* ---- comparison ---- */

static bool
has_failed(const struct diff_answer *a, const char *error)
{
	return strstr(a->text, error) != NULL;
}

/* Tells whether an operation can fail for several reasons, and has failed on both back ends. */
static bool
both_failed(const struct diff_op *op, const struct diff_answer *a, const struct diff_answer *b)
{
	int reasons = (op->pre != PRE_NONE || op->keep) + (op->expects_crc && op->wrong_crc) +
		      ((op->expects_size || op->says_size) && op->wrong_size) + (op->part_min > 0) +
		      (op->kind == OP_COMPLETE || op->kind == OP_PART);

	if (!has_failed(a, "=E") || !has_failed(b, "=E"))
		return false;
	reasons += has_failed(a, "=ENXIO") || has_failed(a, "=EDQUOT") || has_failed(b, "=ENXIO") ||
		   has_failed(b, "=EDQUOT");
	return reasons > 1;
}

bool
diff_same(const struct diff_op *op, const struct diff_answer *a, const struct diff_answer *b)
{
	if (a->has_used && b->has_used && memcmp(&a->used, &b->used, sizeof a->used) != 0)
		return false;
	return strcmp(a->text, b->text) == 0 || both_failed(op, a, b);
}

static void
print(const struct diff_end *e)
{
	const struct diff_answer *a = &e->own;

	printf("  %-7s%s", e->name, a->text);
	if (a->has_used)
		printf(" used %llu, %llu bytes, %llu uploads", (unsigned long long)a->used.objects,
		       (unsigned long long)a->used.bytes, (unsigned long long)a->used.uploads);
	printf("%s%s\n", a->wrong ? "\n\tWRONG: " : "", a->wrong ? a->wrong : "");
}

static int
judge(struct diff_end **ends, int nr, const struct diff_op *op, bool verbose)
{
	char what[1024];
	int bad = -1;

	for (int i = 0; i < nr; i++) {
		for (int k = 0; k < i; k++) {
			if (!diff_same(op, &ends[k]->own, &ends[i]->own))
				bad = i;
		}
		if (ends[i]->own.wrong)
			bad = i;
	}
	if (bad < 0 && !verbose)
		return 0;
	diff_say(op, what, sizeof what);
	printf("%s\n", what);
	for (int i = 0; i < (bad < 0 ? 1 : nr); i++)
		print(ends[i]);
	fflush(stdout);
	return bad < 0 ? 0 : -1;
}

/* log: NULL, or where the operation is noted. */
static int
do_all(struct diff_end **ends, int nr, const struct diff_op *op, struct diff_log *log, bool verbose)
{
	diff_pass(op->seconds * NS_PER_S + NS_PER_US);
	if (log)
		diff_log_add(log, op, DIFF_ALONE);
	for (int i = 0; i < nr; i++)
		diff_do(ends[i], op);
	return judge(ends, nr, op, verbose);
}

/* One of the back ends that can be killed, or NULL. */
static struct diff_end *
some_victim(struct hint *h, struct diff_end **ends, int nr)
{
	struct diff_end *can[DIFF_ENDS_MAX];
	uint32_t n = 0;

	for (int i = 0; i < nr; i++) {
		if (ends[i]->kill)
			can[n++] = ends[i];
	}
	return n == 0 ? NULL : can[n == 1 ? 0 : diff_below(h->s, n)];
}

/* A back end is killed in the middle of an operation; where that was done all the same, the others do it. */
static int
do_killed(struct diff_end **ends, int nr, struct diff_end *victim, const struct diff_op *op, unsigned turns,
	  struct diff_log *log, bool verbose)
{
	struct diff_end *others[DIFF_ENDS_MAX];
	uint64_t was = diff_look(victim, op->bucket, op->key), is;
	int n = 0;

	diff_do_killed(victim, op, turns);
	is = diff_look(victim, op->bucket, op->key);
	if (verbose)
		printf("%s killed in the next operation, which was %sdone\n", victim->name,
		       is != was ? "" : "not ");
	if (is == was)
		return 0;
	if (is)
		victim->told.version[op->bucket][op->key] = is;
	if (log)
		diff_log_add(log, op, DIFF_ALONE);
	for (int i = 0; i < nr; i++) {
		if (ends[i] != victim)
			others[n++] = ends[i];
	}
	for (int i = 0; i < n; i++)
		diff_do(others[i], op);
	return judge(others, n, op, verbose);
}

/* Everything that there is. */
static int
look_at_all(struct diff_end **ends, int nr, unsigned process, bool verbose)
{
	struct diff_op op = { .kind = OP_LIST_BUCKETS, .process = process, .prefix = "", .max = 100 };
	int e = do_all(ends, nr, &op, NULL, verbose);

	for (op.bucket = 0; e == 0 && op.bucket < DIFF_BUCKETS; op.bucket++) {
		op.kind = OP_LIST;
		op.shows_gone = true;
		e = do_all(ends, nr, &op, NULL, verbose);
		op.kind = OP_LIST_UPLOADS;
		if (e == 0)
			e = do_all(ends, nr, &op, NULL, verbose);
		op.kind = OP_READ;
		for (op.key = 0; e == 0 && op.key < DIFF_KEYS; op.key++)
			e = do_all(ends, nr, &op, NULL, verbose);
		op.key = 0;
	}
	return e;
}

/* Removes everything, without what earlier histories gave as versions. */
static int
empty(struct diff_end **ends, int nr, bool verbose)
{
	struct diff_op op = { .prefix = "", .max = 100 };
	int e = 0;

	for (op.bucket = 0; e == 0 && op.bucket < DIFF_BUCKETS; op.bucket++) {
		op.kind = OP_DELETE;
		for (op.key = 0; e == 0 && op.key < DIFF_KEYS; op.key++)
			e = do_all(ends, nr, &op, NULL, verbose);
		op.key = 0;
		op.kind = OP_BUCKET_DELETE;
		if (e == 0)
			e = do_all(ends, nr, &op, NULL, verbose);
	}
	op.bucket = 0;
	op.kind = OP_LIST_BUCKETS;
	return e == 0 ? do_all(ends, nr, &op, NULL, verbose) : e;
}

static bool
is_to_itself(const struct diff_op *op)
{
	return op->kind == OP_COPY && op->from_bucket == op->bucket && op->from_key == op->key;
}

/* Returns true if c is a copy, and op may change the source of the copy. */
static bool
is_of_source(const struct diff_op *c, const struct diff_op *op)
{
	return c->kind == OP_COPY && op->bucket == c->from_bucket && op->key == c->from_key &&
	       (op->kind == OP_PUT || op->kind == OP_DELETE || op->kind == OP_COMPLETE);
}

/* Returns true if the operations may be in flight at once, and a serial order explains them. */
static bool
may_be_at_once(const struct diff_op *a, const struct diff_op *b)
{
	static const bool is_alone[OP_NR] = {
		[OP_BUCKET_QUOTA] = true, [OP_EXPIRE] = true, [OP_PASS] = true,
		[OP_RESTART] = true,      [OP_KILL] = true,   [OP_IDLE] = true
	};

	if (is_alone[a->kind] || is_alone[b->kind])
		return false;
	/* Two copies can exchange two objects; a copy of an object to itself has a read and a change of one key. */
	if ((a->kind == OP_COPY && b->kind == OP_COPY) || is_to_itself(a) || is_to_itself(b))
		return false;
	/* The source may change after the read of the copy and before its PUT, which then has the room in a quota that the source had. */
	if (is_of_source(a, b) || is_of_source(b, a))
		return false;
	/* The number of an upload is known only at the end of its creation. */
	if (a->kind == OP_UPLOAD_CREATE || b->kind == OP_UPLOAD_CREATE)
		return a->upload != b->upload && a->kind != OP_LIST_UPLOADS && b->kind != OP_LIST_UPLOADS;
	return true;
}

/* Two operations, at once if that is possible. */
static int
do_two(struct hint *h, struct diff_end **ends, const struct diff_op *first, bool verbose)
{
	struct diff_op op[2] = { *first };
	int e = 0;

	choose(h, &op[1], first);
	if (may_be_at_once(&op[0], &op[1])) {
		e = diff_two(ends, &h->log, op, diff_below(h->s, 8), verbose);
		for (int i = 0; e == 0 && i < 2; i++)
			note(h, &op[i], &ends[0]->two[i]);
		return e;
	}
	for (int i = 0; e == 0 && i < 2; i++) {
		e = do_all(ends, 2, &op[i], &h->log, verbose);
		note(h, &op[i], &ends[0]->own);
	}
	return e;
}

/* One more operation of a history, or two. */
static int
do_next(struct hint *h, struct diff_end **ends, int nr, const struct diff_op *op, bool verbose)
{
	struct diff_source *s = h->s;
	struct diff_log *log = h->at_once ? &h->log : NULL;
	int e;

	if (op->kind == OP_PUT || op->kind == OP_DELETE || op->kind == OP_COMPLETE) {
		unsigned killed = one_in(s, 60) ? diff_below(s, 12) + 1 : 0;
		struct diff_end *victim = killed ? some_victim(h, ends, nr) : NULL;

		if (victim) {
			if (verbose) {
				char what[1024];

				diff_say(op, what, sizeof what);
				printf("%s\n", what);
			}
			return do_killed(ends, nr, victim, op, killed, log, verbose);
		}
	}
	if (h->at_once && one_in(s, 4))
		return do_two(h, ends, op, verbose);
	e = do_all(ends, nr, op, log, verbose);
	note(h, op, &ends[0]->own);
	return e;
}

/* Versions of earlier histories are those of other back ends, too, unless some back ends have no part in a history, or a log begins. */
static void
forget(struct diff_end **ends, int nr)
{
	for (int i = 0; i < nr; i++)
		memset(&ends[i]->told, 0, sizeof ends[i]->told);
}

int
diff_history(struct diff_end **all, int all_nr, struct diff_source *s, unsigned ops, bool verbose)
{
	static const struct diff_op first = { .kind = OP_BUCKET_CREATE };
	struct hint *h = calloc(1, sizeof *h);
	struct diff_end *ends[DIFF_ENDS_MAX];
	unsigned done;
	int nr = all_nr, e;

	check(h && nr >= 1 && nr <= DIFF_ENDS_MAX);
	memcpy(ends, all, (size_t)nr * sizeof *ends);
	h->s = s;
	h->at_once = nr > 1 && one_in(s, 4);
	for (int i = 0; i < nr; i++)
		memset(ends[i]->told.upload, 0, sizeof ends[i]->told.upload);
	if (h->at_once) {
		forget(all, nr);
		ends[1] = ends[1 + diff_below(s, (uint32_t)nr - 1)];
		nr = 2;
	}
	h->has_two = ends[nr - 1]->select && one_in(s, 3);
	begin_time();
	e = do_all(ends, nr, &first, h->at_once ? &h->log : NULL, verbose);
	for (done = 1; e == 0 && done < ops && (!s->bytes || s->at < s->nr); done++) {
		struct diff_op op;

		choose(h, &op, NULL);
		e = do_next(h, ends, nr, &op, verbose);
	}
	for (unsigned i = 0; e == 0 && i <= h->has_two; i++)
		e = look_at_all(ends, nr, i, verbose);
	diff_log_free(&h->log);
	if (e == 0)
		e = empty(ends, nr, verbose);
	if (h->at_once)
		forget(all, all_nr);
	free(h);
	return e < 0 ? e : (int)done;
}

/* ---- many ---- */

void
diff_start(struct diff_end **ends, int nr)
{
	set_clock(&all_ns, BEGINNING_NS);
	diff_clock(BEGINNING_NS);
	forget(ends, nr);
	for (int i = 0; i < nr; i++)
		ends[i]->start(ends[i], true);
}

int
diff_histories(struct diff_end **ends, int nr_ends, uint64_t seed, uint64_t first, uint64_t nr,
	       unsigned fresh)
{
	bool verbose = getenv("VERBOSE") != NULL, started = false;
	uint64_t ops = 0;

	for (uint64_t n = first; n < first + nr; n++) {
		struct diff_source s = { .seed = seed * 1000003u + n * 0x2545f4914f6cdd1du };
		int r;

		for (int i = 0; i < nr_ends && started && n % fresh == 0; i++)
			ends[i]->stop(ends[i]);
		if (!started || n % fresh == 0)
			diff_start(ends, nr_ends);
		started = true;
		r = diff_history(ends, nr_ends, &s, 5 + diff_below(&s, 120), verbose);
		if (r < 0) {
			printf("SEED=%llu FIRST=%llu HISTORIES=1 VERBOSE=1 shows this history, and "
			       "FIRST=%llu HISTORIES=%llu those before it on the "
			       "same stores\n",
			       (unsigned long long)seed, (unsigned long long)n,
			       (unsigned long long)(n - n % fresh), (unsigned long long)(n % fresh + 1));
			return 1;
		}
		ops += (uint64_t)r;
	}
	for (int i = 0; i < nr_ends && started; i++)
		ends[i]->stop(ends[i]);
	printf("%llu histories, %llu operations\n", (unsigned long long)nr, (unsigned long long)ops);
	return 0;
}

static uint64_t
number_of(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);

	return s ? strtoull(s, NULL, 0) : otherwise;
}

int
diff_main(struct diff_end **ends, int nr_ends, uint64_t histories)
{
	uint64_t seed = number_of("SEED", 0), first = number_of("FIRST", 0);

	if (!seed)
		seed = (uint64_t)time(NULL);
	histories = number_of("HISTORIES", histories);
	printf("SEED=%llu\n", (unsigned long long)seed);
	for (int i = 0; i < nr_ends; i++)
		printf("%s%s", i ? ", " : "", ends[i]->name);
	printf("\n");
	return diff_histories(ends, nr_ends, seed, first, histories, 200);
}
