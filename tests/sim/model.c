/*
 * What must be true, see sim.h.
 *
 * The checker stands where the leader publishes: what is published was flushed, so from then on it must
 * survive everything; the block that is on its way may survive up to any record of it, and nothing else may.
 * Each record is judged by the checker itself against its own state, in log order; a refusal must have been
 * right at some instant between the operation's begin and its answer.
 */
#include "tests/sim/sim.h"

#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define UNDECIDED_MAX 512

struct sim_op ops[OPS_MAX];
int op_nr;
struct model model;
bool model_any_state, model_damaged;

/* One record of the block on its way. */
struct change {
	int bucket, key; /* key -1: the bucket itself */
	uint32_t id;     /* 0: removed */
};
static struct change undecided[UNDECIDED_MAX];
static int undecided_nr;
static int active[CLIENTS_MAX], active_nr;
static uint64_t last_version;

const char *
bucket_name(int b)
{
	static const char *const names[BUCKETS] = { "alpha", "beta" };

	return names[b];
}

const char *
key_name(int k)
{
	static const char *const names[KEYS_MAX] = { "a", "key/b", "key/c", "d", "key/e-longer", "f" };

	return names[k];
}

void
model_begin(void)
{
	memset(&model, 0, sizeof model);
	op_nr = 1;
	undecided_nr = active_nr = 0;
	last_version = 0;
	model_any_state = model_damaged = false;
}

struct store_etag
model_etag(uint32_t id)
{
	struct store_etag e = { .parts = 0 };
	uint64_t v[2] = { id, ~(uint64_t)id };

	memcpy(e.sum, v, 16);
	return e;
}

uint32_t
model_id(const struct store_etag *e)
{
	uint64_t v[2];

	memcpy(v, e->sum, 16);
	return v[0] == ~v[1] && v[0] < (uint64_t)op_nr ? (uint32_t)v[0] : 0;
}

void
model_fill(void *mem, size_t len, uint32_t id, uint64_t off)
{
	uint64_t *p = mem;

	for (size_t i = 0; i < (len + 7) / 8; i++)
		p[i] = (id + 1ull) * 0x9e3779b97f4a7c15u ^ (off / 8 + i) * 0xd6e8feb86659fd93u;
}

/* ---- what is right now ----------------------------------------------------------------------- */

static int
judge_pre(const struct store_pre *pre, uint32_t id)
{
	bool match = false;

	for (int i = 0; i < pre->etag_nr; i++)
		match |= id && model_id(&pre->etags[i]) == id;
	switch (pre->kind) {
	case PRE_ABSENT:
		return id ? -EEXIST : 0;
	case PRE_MATCH_ANY:
		return id ? 0 : -ENOENT;
	case PRE_MATCH:
		return !id ? -ENOENT : match ? 0 : -ESTALE;
	case PRE_NONE_MATCH:
		return id && match ? -EEXIST : 0;
	default:
		return 0;
	}
}

static bool
has_objects(int b)
{
	for (int k = 0; k < KEYS_MAX; k++) {
		if (model.id[b][k])
			return true;
	}
	return false;
}

/* What op would be answered if it were judged now. */
static int
right_now(const struct sim_op *op)
{
	bool there = model.bucket[op->bucket];
	int e;

	switch (op->kind) {
	case OP_MAKE:
		return there ? -EEXIST : 0;
	case OP_REMOVE:
		return !there ? -ENXIO : has_objects(op->bucket) ? -ENOTEMPTY : 0;
	default:
		break;
	}
	if (!there)
		return -ENXIO;
	e = judge_pre(&op->pre, model.id[op->bucket][op->key]);
	if (e == 0 && op->kind == OP_DEL)
		return model.id[op->bucket][op->key] ? 1 : 0;
	return e;
}

static uint32_t
bit(int answer)
{
	switch (answer) {
	case 0:
		return 1;
	case 1:
		return 2;
	case -EEXIST:
		return 4;
	case -ENOENT:
		return 8;
	case -ESTALE:
		return 16;
	case -ENXIO:
		return 32;
	case -ENOTEMPTY:
		return 64;
	default:
		return 0;
	}
}

static void
look_again(void)
{
	for (int i = 0; i < active_nr; i++)
		ops[active[i]].may |= bit(right_now(&ops[active[i]]));
}

void
model_op_begin(int op)
{
	check(active_nr < CLIENTS_MAX);
	active[active_nr++] = op;
	ops[op].active = true;
	ops[op].may = bit(right_now(&ops[op]));
}

void
model_op_over(int op, int result)
{
	struct sim_op *o = &ops[op];
	bool success = result == 0 || result == 1;

	trace(20, (uint64_t)op, (uint64_t)(int64_t)result);
	say("op %d: %d", op, result);
	for (int i = 0; i < active_nr; i++) {
		if (active[i] == op)
			active[i--] = active[--active_nr];
	}
	o->active = false;
	o->answer = result;
	if (success && o->kind == OP_DEL && result == 0) {
		if (o->published || !(o->may & bit(0)))
			sim_fail("op %d: a delete says there was nothing, but there was", op);
		return;
	}
	if (success) {
		if (!o->published)
			sim_fail("op %d was acknowledged before it was published", op);
		return;
	}
	if (o->published)
		sim_fail("op %d was published and answered with %d", op, result);
	counts.refused++;
	switch (result) {
	case -ECANCELED:
	case -EROFS:
	case -EIO:
		if (!simdisk_faults)
			sim_fail("op %d: answer %d, but no fault was injected", op, result);
		break;
	case -EAGAIN:
		counts.not_now++;
		break;
	case -ENOSPC:
		counts.no_space++;
		break;
	case -EINTR: /* aborted */
		break;
	default:
		if (!(o->may & bit(result)) || bit(result) == 0)
			sim_fail("op %d: answer %d was right at no time", op, result);
	}
	/* Only the first of these leaves it open whether it happened. */
	for (int i = 0; i < undecided_nr && result != -ECANCELED; i++) {
		if (o->kind == OP_PUT && undecided[i].id == (uint32_t)op && undecided[i].key >= 0)
			sim_fail("op %d: answer %d, but it may be in the log", op, result);
	}
}

/* ---- the leader's block ---------------------------------------------------------------------- */

static bool
same(const void *a, size_t len, const char *b)
{
	return len == strlen(b) && memcmp(a, b, len) == 0;
}

/* False: not an object, not a bucket. */
static bool
change_of(const struct rec_view *v, struct change *ret)
{
	*ret = (struct change){ .bucket = -1, .key = -1 };
	for (int b = 0; b < BUCKETS && ret->bucket < 0; b++) {
		size_t len = strlen(bucket_name(b));

		if (v->key[0] == KEY_BUCKET && same(v->key + 1, v->key_len - 1u, bucket_name(b)))
			ret->bucket = b;
		if (v->key[0] != KEY_OBJECT || v->key_len < len + 3 ||
		    memcmp(v->key + 1, bucket_name(b), len + 1) != 0)
			continue;
		ret->bucket = b;
		for (int k = 0; k < KEYS_MAX; k++) {
			if (same(v->key + 2 + len, v->key_len - 2 - len, key_name(k)))
				ret->key = k;
		}
	}
	if (v->op == REC_PUT)
		ret->id = ret->key < 0 ? 1 : model_id(&v->etag);
	return v->key[0] != KEY_CHUNK;
}

static void
apply(const struct change *c)
{
	if (c->key < 0)
		model.bucket[c->bucket] = c->id != 0;
	else
		model.id[c->bucket][c->key] = c->id;
}

void
model_block(struct disk *d)
{
	undecided_nr = 0;
	for (const struct commit *c = d->batch; c; c = c->next) {
		if (undecided_nr < UNDECIDED_MAX && change_of(&c->view, &undecided[undecided_nr])) {
			say("  in the block: bucket %d key %d id %u", undecided[undecided_nr].bucket,
			    undecided[undecided_nr].key, undecided[undecided_nr].id);
			undecided_nr++;
		}
	}
}

static void
judge_record(const struct commit *c, const struct change *ch)
{
	int op = client_op_of(c), want;

	if (op <= 0)
		sim_fail("a record of nobody's was published (bucket %d key %d)", ch->bucket, ch->key);
	want = right_now(&ops[op]);
	if (want != (ops[op].kind == OP_DEL ? 1 : 0))
		sim_fail("op %d was published, but its place in the log demands %d", op, want);
	if (ops[op].published)
		sim_fail("op %d was published twice", op);
	if (c->view.op == REC_PUT && ch->key >= 0 && ch->id != (uint32_t)op)
		sim_fail("op %d was published as op %u", op, ch->id);
	if (c->view.version <= last_version)
		sim_fail("op %d: version %llu comes after %llu", op, (unsigned long long)c->view.version,
			 (unsigned long long)last_version);
	last_version = c->view.version;
	ops[op].published = true;
	ops[op].version = c->view.version;
	trace(21, (uint64_t)op, c->view.version);
}

void
model_published(struct disk *d)
{
	for (const struct commit *c = d->batch; c; c = c->next) {
		struct change ch;

		if (!change_of(&c->view, &ch))
			continue;
		judge_record(c, &ch);
		apply(&ch);
		look_again();
	}
	undecided_nr = 0;
}

void
model_process_over(void)
{
	for (int i = 0; i < active_nr; i++)
		ops[active[i]].active = false;
	active_nr = 0;
}

/* ---- after a start --------------------------------------------------------------------------- */

struct listing {
	struct store_list ls;
	struct model *m;
	int bucket; /* -1: of buckets */
};

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	struct listing *l = container_of(ls, struct listing, ls);
	uint32_t id = model_id(&e->etag);

	if (e->version > last_version)
		last_version = e->version;
	for (int b = 0; b < BUCKETS && l->bucket < 0; b++) {
		if (same(e->name, e->name_len, bucket_name(b))) {
			l->m->bucket[b] = true;
			return true;
		}
	}
	for (int k = 0; k < KEYS_MAX && l->bucket >= 0; k++) {
		if (!same(e->name, e->name_len, key_name(k)))
			continue;
		if (!id || ops[id].bucket != l->bucket || ops[id].key != k || ops[id].size != e->size_bytes)
			sim_fail("bucket %d key %d holds what nobody wrote there (id %u, %llu bytes)",
				 l->bucket, k, id, (unsigned long long)e->size_bytes);
		if (ops[id].version && ops[id].version != e->version)
			sim_fail("op %u has version %llu, had %llu", id, (unsigned long long)e->version,
				 (unsigned long long)ops[id].version);
		l->m->id[l->bucket][k] = id;
		return true;
	}
	sim_fail("a name nobody made: %.*s", (int)e->name_len, e->name);
}

void
model_list(struct store_port *p, struct model *ret)
{
	static struct listing l;

	memset(ret, 0, sizeof *ret);
	for (int b = -1; b < BUCKETS; b++) {
		if (b >= 0 && !ret->bucket[b])
			continue;
		l.bucket = b;
		l.m = ret;
		l.ls = (struct store_list){ .bucket = b < 0 ? NULL : bucket_name(b),
					    .bucket_len = b < 0 ? 0 : (uint16_t)strlen(bucket_name(b)),
					    .max = 1000,
					    .entry = on_entry };
		if (store_list(p, &l.ls) != 1 || l.ls.op.result < 0 || l.ls.more)
			sim_fail("listing %d: %d", b, l.ls.op.result);
	}
}

static void
tell_difference(const struct model *seen)
{
	for (int b = 0; b < BUCKETS; b++) {
		if (seen->bucket[b] != model.bucket[b])
			say("bucket %d: there %d, should be %d", b, seen->bucket[b], model.bucket[b]);
		for (int k = 0; k < KEYS_MAX; k++) {
			if (seen->id[b][k] != model.id[b][k])
				say("bucket %d key %d: holds %u, should hold %u", b, k, seen->id[b][k],
				    model.id[b][k]);
		}
	}
	for (int i = 0; i < undecided_nr; i++)
		say("undecided %d: bucket %d key %d id %u", i, undecided[i].bucket, undecided[i].key,
		    undecided[i].id);
}

void
model_recovered(struct store *st, struct store_port *p)
{
	struct model seen, published = model;
	uint64_t objects = 0;
	struct store_disk_info info;
	int k = 0;

	if (model_any_state)
		last_version = 0;
	model_list(p, &seen);
	if (model_any_state) {
		model = published = seen;
		model_any_state = false;
		undecided_nr = 0;
	}
	while (memcmp(&seen, &model, sizeof seen) != 0) {
		if (k == undecided_nr) {
			model = published;
			tell_difference(&seen);
			sim_fail("after the start the state is not what was published, nor with some of the "
				 "%d "
				 "records that were on their way",
				 undecided_nr);
		}
		apply(&undecided[k++]);
	}
	trace(22, (uint64_t)k, (uint64_t)undecided_nr);
	say("recovered: %d of %d records that were on their way", k, undecided_nr);
	undecided_nr = 0;
	for (int b = 0; b < BUCKETS; b++) {
		for (int i = 0; i < KEYS_MAX; i++)
			objects += model.id[b][i] != 0;
	}
	store_disk_info(st, 0, &info);
	if (info.objects != objects)
		sim_fail("%llu objects are counted, there are %llu", (unsigned long long)info.objects,
			 (unsigned long long)objects);
}

/* ---- space ----------------------------------------------------------------------------------- */

struct space {
	uint8_t used[SEGS_MAX * 64];
	uint64_t nr;
	uint64_t chunks, named; /* that there are; that manifests name */
};

static void
take(struct space *s, uint64_t unit, uint32_t nr, const char *what)
{
	for (uint64_t u = unit; u < unit + nr; u++) {
		if (u >= sizeof s->used || s->used[u]++)
			sim_fail("unit %llu of %s is named twice, or beyond the disk", (unsigned long long)u,
				 what);
	}
	s->nr += nr;
}

static int
on_record(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	const uint64_t *ext = rec_entries(r);
	struct map_ref map;

	for (uint32_t i = 0; r->body == BODY_EXTENTS && i < r->entry_nr; i++)
		take(cookie, ext_unit(ext[i]), ext_nr(ext[i]), key[0] == KEY_CHUNK ? "a chunk" : "an object");
	((struct space *)cookie)->chunks += key[0] == KEY_CHUNK;
	if (r->body == BODY_MANIFEST)
		((struct space *)cookie)->named += r->entry_nr;
	if (rec_map(r, &map))
		take(cookie, ext_unit(map.ext), ext_nr(map.ext), "a map");
	return 0;
}

void
model_space(struct store *st, const char *when, bool at_rest)
{
	struct disk *d = st->disk[0];
	struct space s = { .nr = 0 };
	struct alloc_stats as;

	each_record(d, on_record, &s);
	for (int i = 0; i < 2; i++) {
		for (uint32_t j = 0; j < d->snap_space[i].nr; j++)
			take(&s, d->snap_space[i].ext[j].unit, d->snap_space[i].ext[j].units, "a snapshot");
	}
	if (s.named > s.chunks || (at_rest && s.named != s.chunks))
		sim_fail("%s: there are %llu chunks, manifests name %llu", when, (unsigned long long)s.chunks,
			 (unsigned long long)s.named);
	alloc_stats(d->alloc, &as);
	if (as.free + as.leased + s.nr != as.units)
		sim_fail("%s: %llu units, %llu free, %llu leased, but records and snapshots name %llu", when,
			 (unsigned long long)as.units, (unsigned long long)as.free,
			 (unsigned long long)as.leased, (unsigned long long)s.nr);
}
