/* SPDX-License-Identifier: Apache-2.0 */
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
#include "model/quota.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define UNDECIDED_MAX 512

struct sim_op ops[OPS_MAX];
int op_nr;
struct model model;
bool model_any_state, model_damaged, model_lost_map;

/* One change of the block on its way. */
struct change {
	enum { CH_BUCKET, CH_KEY, CH_ATTRS, CH_BATTRS, CH_UPLOAD, CH_PART } kind;
	int bucket, key, slot, number;
	int op;
	uint32_t id; /* 0: removed */
};
static struct change undecided[UNDECIDED_MAX];
static int undecided_nr;
#define GIVEN_UP_MAX 8
static struct {
	struct change change[UNDECIDED_MAX];
	int nr;
} given_up[GIVEN_UP_MAX]; /* blocks before it, for the same place */
static int given_up_nr;
static int active[CLIENTS_MAX], active_nr;
static uint32_t reading[CLIENTS_MAX]; /* the operation whose object a client reads; 0: none */
static uint64_t last_version;
/* Writes of blocks by this process: all, published, without room. */
static uint64_t blocks_begun, blocks_over, blocks_refused;

void
model_begin(void)
{
	memset(&model, 0, sizeof model);
	op_nr = 1;
	undecided_nr = given_up_nr = active_nr = 0;
	memset(reading, 0, sizeof reading);
	last_version = 0;
	model_any_state = model_damaged = model_lost_map = false;
}

void
model_version_seen(uint32_t id, uint64_t version)
{
	if (version > last_version)
		last_version = version;
	if (ops[id].version && ops[id].version != version)
		sim_fail("op %u has version %llu, had %llu", id, (unsigned long long)version,
			 (unsigned long long)ops[id].version);
	ops[id].version = version;
}

int
model_free_slot(void)
{
	for (int s = 0; s < UPS_MAX; s++) {
		bool is_free = model.up[s] == 0;

		for (int i = 0; i < active_nr; i++)
			is_free &= ops[active[i]].kind != OP_CREATE || ops[active[i]].slot != s;
		for (int i = 0; i < undecided_nr; i++)
			is_free &= undecided[i].kind != CH_UPLOAD || undecided[i].slot != s;
		is_free &= given_up_nr == 0;
		if (is_free)
			return s;
	}
	return -1;
}

/* ---- what is right now ---- */

static int
judge_kind(const struct store_pre *pre, uint32_t id)
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

static int
judge_pre(const struct store_pre *pre, uint32_t id)
{
	int e = judge_kind(pre, id);

	return e == 0 && pre->keep && id ? -EPERM : e;
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

static bool
is_list(const struct sim_op *op)
{
	for (int i = 0; i < PARTS_MAX; i++) {
		if (op->part[i] && model.part[op->slot][i] != op->part[i])
			return false;
	}
	return true;
}

/* ---- quotas ---- */

static struct store_use
use_of(int b)
{
	struct store_use use = { 0 };

	for (int k = 0; k < KEYS_MAX; k++) {
		use.objects += model.id[b][k] != 0;
		use.bytes += model.id[b][k] ? ops[model.id[b][k]].size : 0;
	}
	for (int s = 0; s < UPS_MAX; s++) {
		if (!model.up[s] || ops[model.up[s]].bucket != b)
			continue;
		use.uploads++;
		for (int i = 0; i < PARTS_MAX; i++)
			use.bytes += model.part[s][i] ? quota_part_bytes(ops[model.part[s][i]].size) : 0;
	}
	return use;
}

static uint32_t
docs_of(int b)
{
	return model.battr[b] ? ops[model.battr[b]].attrs_len : 0;
}

/* Would it exceed the bound on all buckets, besides what is on its way?  A bucket is an object, its attributes are bytes. */
static bool
is_over_with(const struct sim_op *op, struct store_use use)
{
	uint32_t old = 0, size = op->size;

	if (!prof.quota.objects)
		return false;
	for (int b = 0; b < BUCKETS; b++) {
		struct store_use one = use_of(b);

		use.objects += one.objects + model.bucket[b];
		use.bytes += one.bytes + docs_of(b);
		use.uploads += one.uploads;
	}
	switch (op->kind) {
	case OP_MAKE:
		return use.objects + 1 > prof.quota.objects;
	case OP_BATTRS:
		return op->attrs_len > docs_of(op->bucket) &&
		       use.bytes + op->attrs_len - docs_of(op->bucket) > prof.quota.bytes;
	case OP_CREATE:
		return use.uploads + 1 > prof.quota.uploads;
	case OP_PART:
		old = model.part[op->slot][op->number - 1];
		size = (uint32_t)quota_part_bytes(size);
		return (!old || size > quota_part_bytes(ops[old].size)) &&
		       use.bytes + size > prof.quota.bytes + (old ? quota_part_bytes(ops[old].size) : 0);
	case OP_PUT:
		old = model.id[op->bucket][op->key];
		if ((!old || size > ops[old].size) && size > 0 &&
		    use.bytes + size > prof.quota.bytes + (old ? ops[old].size : 0))
			return true;
		return !old && use.objects + 1 > prof.quota.objects;
	case OP_COMPLETE:
		return !model.id[op->bucket][op->key] && use.objects + 1 > prof.quota.objects;
	default:
		return false;
	}
}

static bool
is_over(const struct sim_op *op)
{
	return is_over_with(op, (struct store_use){ 0 });
}

/* Nor has what a block gives back been given before it is published; what it adds counts from the start. */
static bool
is_over_meanwhile(const struct sim_op *op)
{
	struct store_use adds = { 0 };
	uint64_t kept = 0;

	for (int i = 0; i < undecided_nr; i++) {
		const struct change *c = &undecided[i];

		if (!c->id)
			continue;
		adds.uploads += c->kind == CH_UPLOAD;
		adds.objects += c->kind == CH_KEY || c->kind == CH_BUCKET;
		adds.bytes += c->kind == CH_KEY      ? ops[c->id].size
			      : c->kind == CH_PART   ? quota_part_bytes(ops[c->id].size)
			      : c->kind == CH_BATTRS ? ops[c->id].attrs_len
						     : 0;
	}
	/* PUTs in progress have reserved; and all of their bytes are no more than the bound. */
	for (int i = 0; i < active_nr; i++) {
		const struct sim_op *o = &ops[active[i]];

		if (o == op || (o->kind != OP_PUT && o->kind != OP_PART))
			continue;
		/* A bucket that was removed counts until they have ended. */
		adds.objects += (o->kind == OP_PUT) + !model.bucket[o->bucket];
		adds.bytes += quota_part_bytes(o->size);
	}
	/* What was removed and is being read, too; whether it was is not looked at. */
	for (int i = 0; i < CLIENTS_MAX; i++) {
		const struct sim_op *o = &ops[reading[i]];

		if (!reading[i])
			continue;
		kept += quota_part_bytes(o->size);
		adds.objects += !model.bucket[o->bucket];
	}
	kept += adds.bytes;
	if ((op->kind == OP_PUT || op->kind == OP_PART) && prof.quota.objects && kept &&
	    kept + quota_part_bytes(op->size) > prof.quota.bytes)
		return true;
	return is_over_with(op, adds);
}

void
model_reads(int client, uint32_t id)
{
	reading[client] = id;
}

void
model_quota(struct store *st, bool recount)
{
	struct vol *vol = extent_store(st)->vol;
	struct quota_book *again = NULL;

	if (recount) {
		check(quota_book_new(1, &again) == 0);
		check(model_recount(vol, again) == 0);
	}
	for (int b = 0; b < BUCKETS; b++) {
		struct store_use use = use_of(b);
		struct store_quota_info info, twice;
		int e = store_bucket_quota(st, bucket_name(b), strlen(bucket_name(b)), &info);

		if ((e == 0) != model.bucket[b])
			sim_fail("bucket %d: is counted %d, is there %d", b, e, model.bucket[b]);
		if (e == 0 && recount && info.in_progress_bytes)
			sim_fail("bucket %d: %llu bytes are in progress without a PUT or a reader", b,
				 (unsigned long long)info.in_progress_bytes);
		if (e == 0 && memcmp(&use, &info.used, sizeof use) != 0)
			sim_fail("bucket %d: %llu objects, %llu bytes, %llu uploads, counted as %llu, %llu, "
				 "%llu",
				 b, (unsigned long long)use.objects, (unsigned long long)use.bytes,
				 (unsigned long long)use.uploads, (unsigned long long)info.used.objects,
				 (unsigned long long)info.used.bytes, (unsigned long long)info.used.uploads);
		if (e == 0 && again &&
		    (quota_look(again, bucket_name(b), strlen(bucket_name(b)), &twice) < 0 ||
		     memcmp(&twice.used, &info.used, sizeof info.used) != 0))
			sim_fail("bucket %d: %llu bytes are counted, a start would count %llu", b,
				 (unsigned long long)info.used.bytes, (unsigned long long)twice.used.bytes);
	}
	quota_book_free(again);
}

/* Of uploads, parts and attributes, where the bucket is there. */
static int
right_upload(const struct sim_op *op)
{
	const struct sim_op *there = op->key < 0 ? NULL : &ops[model.id[op->bucket][op->key]];
	uint32_t id;
	int e;

	switch (op->kind) {
	case OP_CREATE:
		return is_over(op) ? -EDQUOT : 0;
	case OP_PART:
	case OP_ABORT:
		return model.up[op->slot] != op->create ? -ENOENT : is_over(op) ? -EDQUOT : 0;
	case OP_BATTRS:
		id = model.battr[op->bucket];
		if (op->want != STORE_VERSION_ANY && op->want != (id ? ops[id].version : 0))
			return -ESTALE;
		return is_over(op) ? -EDQUOT : 0;
	case OP_ATTRS:
		id = model.id[op->bucket][op->key];
		if (!id)
			return -ENOENT;
		id = model.attr[op->bucket][op->key] ? model.attr[op->bucket][op->key] : id;
		return op->want == 0 || op->want == ops[id].version ? 0 : -ESTALE;
	default: /* OP_COMPLETE */
		if (model.up[op->slot] == op->create) {
			e = judge_pre(&op->pre, model.id[op->bucket][op->key]);
			return e ? e : !is_list(op) ? -EBADR : is_over(op) ? -EDQUOT : 0;
		}
		return model.id[op->bucket][op->key] && there->kind == OP_COMPLETE &&
				       there->create == op->create &&
				       memcmp(there->part, op->part, sizeof op->part) == 0
			       ? 2
			       : -ENOENT;
	}
}

/* What op would be answered if it were judged now. */
static int
right_now(const struct sim_op *op)
{
	bool there = model.bucket[op->bucket];
	int e;

	switch (op->kind) {
	case OP_MAKE:
		return there ? -EEXIST : is_over(op) ? -EDQUOT : 0;
	case OP_REMOVE:
		return !there ? -ENXIO : has_objects(op->bucket) ? -ENOTEMPTY : 0;
	default:
		break;
	}
	if (!there)
		return -ENXIO;
	if (op->kind >= OP_CREATE)
		return right_upload(op);
	e = judge_pre(&op->pre, model.id[op->bucket][op->key]);
	if (e == 0 && op->kind == OP_DEL)
		return model.id[op->bucket][op->key] ? 1 : 0;
	return e ? e : is_over(op) ? -EDQUOT : 0;
}

static void
upload_ends(int slot)
{
	model.up[slot] = 0;
	memset(model.part[slot], 0, sizeof model.part[slot]);
}

static void
apply(const struct change *c)
{
	switch (c->kind) {
	case CH_BUCKET:
		model.bucket[c->bucket] = c->id != 0;
		model.battr[c->bucket] = 0;
		for (int s = 0; s < UPS_MAX; s++) {
			if (model.up[s] && ops[model.up[s]].bucket == c->bucket)
				upload_ends(s);
		}
		break;
	case CH_KEY:
		model.id[c->bucket][c->key] = c->id;
		model.attr[c->bucket][c->key] = 0;
		if (c->id && ops[c->id].kind == OP_COMPLETE)
			upload_ends(ops[c->id].slot);
		break;
	case CH_ATTRS:
		model.attr[c->bucket][c->key] = c->id;
		break;
	case CH_BATTRS:
		model.battr[c->bucket] = c->id;
		break;
	case CH_UPLOAD:
		if (c->id)
			model.up[c->slot] = c->id;
		else
			upload_ends(c->slot);
		break;
	case CH_PART:
		model.part[c->slot][c->number - 1] = c->id;
		break;
	}
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
	case 2: /* done before */
		return 128;
	case -EBADR:
		return 256;
	case -EPERM:
		return 512;
	case -EDQUOT:
		return 1024;
	default:
		return 0;
	}
}

/* Returns true if some of the block on its way makes op right, and op is over: a change is judged by the keys that the block leaves, and by the
 * usage before it, which counts what the block adds, and what a removal of a bucket gives back only when that is published (quota.h). */
static bool
is_over_in_block(const struct sim_op *op)
{
	struct model published = model;
	bool is_right = false;

	for (int i = 0; i < undecided_nr && undecided[i].op != (int)(op - ops) && !is_right; i++) {
		int e;

		apply(&undecided[i]);
		e = right_now(op);
		is_right = e == 0 || e == -EDQUOT;
	}
	model = published;
	return is_right && is_over_meanwhile(op);
}

/* Of several reasons to refuse each is right. */
static uint32_t
may_now(const struct sim_op *op)
{
	uint32_t may = bit(right_now(op));

	if (op->kind == OP_COMPLETE && model.bucket[op->bucket] && model.up[op->slot] == op->create &&
	    !is_list(op))
		may |= bit(-EBADR);
	/* A growth beyond the quota is refused early, before the preconditions and the upload are looked at. */
	if ((op->kind == OP_PUT || op->kind == OP_PART) && (is_over(op) || is_over_meanwhile(op)))
		may |= bit(-EDQUOT);
	if ((may & bit(0) && is_over_meanwhile(op)) || is_over_in_block(op))
		may |= bit(-EDQUOT);
	return may;
}

static void
look_again(void)
{
	for (int i = 0; i < active_nr; i++)
		ops[active[i]].may |= may_now(&ops[active[i]]);
}

void
model_op_begin(int op)
{
	check(active_nr < CLIENTS_MAX);
	active[active_nr++] = op;
	ops[op].active = true;
	/* It reserves from now on, which the others may meet. */
	ops[op].may = 0;
	look_again();
}

static void
cut_at(const struct change *change, int *nr, int op)
{
	for (int i = 0; i < *nr; i++) {
		if (change[i].op == op) {
			*nr = i;
			return;
		}
	}
}

/* An operation that found no room has left nothing: its record, and what is behind it in its block, is not found by any start. */
static void
is_none(int op)
{
	cut_at(undecided, &undecided_nr, op);
	for (int i = 0; i < given_up_nr; i++)
		cut_at(given_up[i].change, &given_up[i].nr, op);
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
	counts.uploads += o->kind == OP_CREATE && result == 0;
	counts.parts += o->kind == OP_PART && result == 0;
	counts.completed += o->kind == OP_COMPLETE && result == 0;
	counts.repeated += result == 2;
	counts.aborted += o->kind == OP_ABORT && result == 0;
	counts.attrs += o->kind >= OP_ATTRS && result == 0;
	if (success && o->kind == OP_DEL && result == 0) {
		if (o->published || !(o->may & bit(0)))
			sim_fail("op %d: a delete says there was nothing, but there was", op);
		return;
	}
	if (result == 2) {
		if (o->published || !(o->may & bit(2)))
			sim_fail("op %d: said to be done before, but it was not", op);
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
	case -EIO:
		/* Data that found no room was in a block with others. */
		if (!simdisk_faults && !simdisk_soft && !(result == -ECANCELED && simdisk_refused))
			sim_fail("op %d: answer %d, but no fault was injected", op, result);
		break;
	case -EROFS:
		if (!simdisk_faults)
			sim_fail("op %d: answer %d, but no fault was injected", op, result);
		break;
	case -EAGAIN:
		counts.not_now++;
		break;
	case -ENOSPC:
		counts.no_space++;
		if ((o->kind == OP_DEL || o->kind == OP_REMOVE || o->kind == OP_ABORT) &&
		    !simdisk_log_refused)
			sim_fail("op %d: a removal finds no room, and the log has had room", op);
		is_none(op);
		break;
	case -EDQUOT:
		counts.over_quota++;
		if (!(o->may & bit(result)))
			sim_fail("op %d: there was room within the quota at any time", op);
		break;
	case -EINTR: /* aborted */
		break;
	default:
		if (!(o->may & bit(result)) || bit(result) == 0)
			sim_fail("op %d: answer %d was right at no time", op, result);
	}
	/* Only the first of these leaves it open whether it happened. */
	for (int i = 0; i < undecided_nr && result != -ECANCELED; i++) {
		if (undecided[i].kind != CH_BUCKET && undecided[i].id == (uint32_t)op)
			sim_fail("op %d: answer %d, but it may be in the log", op, result);
	}
}

/* ---- the leader's block ---- */

static bool
same(const void *a, size_t len, const char *b)
{
	return len == strlen(b) && memcmp(a, b, len) == 0;
}

/* Bucket and key of a name; -1: none of ours. */
static void
names_of(const uint8_t *key, size_t key_len, struct change *ret)
{
	ret->bucket = ret->key = -1;
	for (int b = 0; b < BUCKETS && ret->bucket < 0; b++) {
		size_t len = strlen(bucket_name(b));

		if (same(key + 1, key_len - 1u, bucket_name(b)))
			ret->bucket = b;
		if (key_len < len + 3 || memcmp(key + 1, bucket_name(b), len + 1) != 0)
			continue;
		ret->bucket = b;
		for (int k = 0; k < KEYS_MAX; k++) {
			if (same(key + 2 + len, key_len - 2 - len, key_name(k)))
				ret->key = k;
		}
	}
}

/* False: nothing that anybody sees. */
static bool
change_of(const struct commit *c, struct change *ret)
{
	const struct rec_view *v = &c->view;
	bool is_put = v->op == REC_PUT;
	int op = client_op_of(c);

	*ret = (struct change){ .bucket = -1, .key = -1, .slot = -1, .op = op };
	/* What goes with another is its change; what nobody owns any more was gone before. */
	if (c->is_also || c->is_gc || v->key[0] == KEY_CHUNK)
		return false;
	names_of(v->key, v->key_len, ret);
	switch (v->key[0]) {
	case KEY_BUCKET:
		ret->kind = CH_BUCKET;
		ret->id = is_put;
		return true;
	case KEY_OBJECT:
	case KEY_OBJECT2:
		ret->kind = c->kind == COMMIT_ATTRS ? CH_ATTRS : CH_KEY;
		ret->id = !is_put ? 0 : c->kind == COMMIT_ATTRS ? (uint32_t)op : model_id(&v->etag);
		return true;
	case KEY_BATTRS:
		ret->kind = CH_BATTRS;
		ret->id = is_put ? (uint32_t)op : 0;
		return true;
	case KEY_UPLOAD:
	case KEY_UPLOAD2:
		ret->kind = CH_UPLOAD;
		ret->id = is_put ? (uint32_t)op : 0;
		ret->slot = ops[op].slot;
		if (is_put)
			memcpy(ops[op].uid, v->key + v->key_len - CHUNK_ID_BYTES, CHUNK_ID_BYTES);
		return true;
	default: /* KEY_PART */
		ret->kind = CH_PART;
		ret->id = model_id(&v->etag);
		ret->slot = ops[op].slot;
		ret->number = (int)key_index(v->key);
		return true;
	}
}

/* A block was given up, and the next goes to the same place: until that is flushed each may be there. */
static void
set_aside(void)
{
	if (undecided_nr && given_up_nr < GIVEN_UP_MAX) {
		memcpy(given_up[given_up_nr].change, undecided, sizeof undecided);
		given_up[given_up_nr++].nr = undecided_nr;
	}
	undecided_nr = 0;
}

void
model_block(struct vol *vol)
{
	set_aside();
	blocks_begun++;
	for (const struct commit *c = vol->block.batch; c; c = c->next) {
		if (undecided_nr < UNDECIDED_MAX && change_of(c, &undecided[undecided_nr])) {
			say("  in the block: bucket %d key %d id %u", undecided[undecided_nr].bucket,
			    undecided[undecided_nr].key, undecided[undecided_nr].id);
			undecided_nr++;
		}
	}
	look_again();
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
	if (c->view.op == REC_PUT && ch->kind != CH_BUCKET && ch->id != (uint32_t)op)
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
model_published(struct vol *vol)
{
	blocks_over++;
	for (const struct commit *c = vol->block.batch; c; c = c->next) {
		struct change ch;

		if (!change_of(c, &ch))
			continue;
		judge_record(c, &ch);
		apply(&ch);
		look_again();
	}
	undecided_nr = given_up_nr = 0;
	if (sim_store)
		model_quota(sim_store, false);
}

void
model_process_over(void)
{
	for (int i = 0; i < active_nr; i++)
		ops[active[i]].active = false;
	active_nr = 0;
	memset(reading, 0, sizeof reading);
	blocks_begun = blocks_over = blocks_refused = 0;
}

void
model_block_refused(void)
{
	blocks_refused++;
}

bool
model_is_known(void)
{
	return blocks_begun - blocks_over == blocks_refused;
}

/* ---- after a start ---- */

void
model_tell_difference(const struct model *seen)
{
	for (int b = 0; b < BUCKETS; b++) {
		if (seen->bucket[b] != model.bucket[b])
			say("bucket %d: there %d, should be %d", b, seen->bucket[b], model.bucket[b]);
		if (seen->battr[b] != model.battr[b])
			say("bucket %d: attributes of op %u, should be %u", b, seen->battr[b],
			    model.battr[b]);
		for (int k = 0; k < KEYS_MAX; k++) {
			if (seen->attr[b][k] != model.attr[b][k])
				say("bucket %d key %d: attributes of op %u, should be %u", b, k,
				    seen->attr[b][k], model.attr[b][k]);
			if (seen->id[b][k] != model.id[b][k])
				say("bucket %d key %d: holds %u, should hold %u", b, k, seen->id[b][k],
				    model.id[b][k]);
		}
	}
	for (int u = 0; u < UPS_MAX; u++) {
		if (seen->up[u] != model.up[u])
			say("upload %d: op %u, should be %u", u, seen->up[u], model.up[u]);
		for (int i = 0; i < PARTS_MAX; i++) {
			if (seen->part[u][i] != model.part[u][i])
				say("upload %d part %d: op %u, should be %u", u, i + 1, seen->part[u][i],
				    model.part[u][i]);
		}
	}
	for (int i = 0; i < undecided_nr; i++)
		say("undecided %d: bucket %d key %d id %u", i, undecided[i].bucket, undecided[i].key,
		    undecided[i].id);
}

/* How many of the changes, in order, make the model what was seen, or -1. */
static int
applied(const struct model *seen, const struct change *change, int nr)
{
	for (int k = 0;; k++) {
		if (memcmp(seen, &model, sizeof *seen) == 0)
			return k;
		if (k == nr)
			return -1;
		apply(&change[k]);
	}
}

/* A repair drops what has lost a map. */
static void
drop_what_is_gone(const struct model *seen)
{
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = 0; k < KEYS_MAX; k++) {
			if (!seen->id[b][k] && ops[model.id[b][k]].may_be_dropped)
				model.id[b][k] = model.attr[b][k] = 0;
		}
	}
	for (int s = 0; s < UPS_MAX; s++) {
		for (int i = 0; i < PARTS_MAX; i++) {
			if (!seen->part[s][i] && ops[model.part[s][i]].may_be_dropped)
				model.part[s][i] = 0;
		}
	}
	for (int i = 0; i < op_nr; i++)
		ops[i].may_be_dropped = false;
}

void
model_recovered(struct store *st, struct store_port *p)
{
	struct model seen, published = model;
	uint64_t objects = 0;
	struct store_unit_info info;
	int k = 0;

	if (model_any_state)
		last_version = 0;
	model_list(p, &seen);
	if (model_any_state) {
		model = published = seen;
		model_any_state = false;
		undecided_nr = given_up_nr = 0;
	}
	drop_what_is_gone(&seen);
	published = model;
	k = applied(&seen, undecided, undecided_nr);
	for (int i = 0; i < given_up_nr && k < 0; i++) {
		model = published;
		k = applied(&seen, given_up[i].change, given_up[i].nr);
	}
	if (k < 0) {
		model = published;
		model_tell_difference(&seen);
		sim_fail("after the start the state is not what was published, nor with some of the %d "
			 "records that were on their way",
			 undecided_nr);
	}
	trace(22, (uint64_t)k, (uint64_t)undecided_nr);
	say("recovered: %d of %d records that were on their way", k, undecided_nr);
	undecided_nr = given_up_nr = 0;
	for (int b = 0; b < BUCKETS; b++) {
		for (int i = 0; i < KEYS_MAX; i++)
			objects += model.id[b][i] != 0;
	}
	model_quota(st, false);
	store_unit_info(st, 0, &info);
	if (store_unit_number(&info, "objects") != objects)
		sim_fail("%llu objects are counted, there are %llu",
			 (unsigned long long)store_unit_number(&info, "objects"),
			 (unsigned long long)objects);
}
