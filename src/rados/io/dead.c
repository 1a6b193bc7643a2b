/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clean-up after a dead gateway (rule 4), in this order. All its connections are put on the blocklist; if
 * that fails, the clean-up ends. For each id that may be in use, the owner is read from the data object; the
 * generation of the owner's shard is raised, so that a change of the dead gateway that is still in flight
 * fails; then the index is read, and the data is removed if no row names it. Unfinished creations and
 * removals of buckets are undone. At the end the row of the dead gateway is removed; if a step has failed,
 * the row remains, and the clean-up is repeated at the next turn; if the reason is damage, after a pause of up
 * to ten minutes, because an attempt reads all ids that may be in use.
 */
#include "rados/io/helpers.h"

#include "base/crc64.h"
#include "rados/io/fault.h"
#include "rados/io/names.h"
#include "rados/io/rows.h"
#include "rados/io/rstore.h"
#include "rados/io/usage.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_S (30u * 24 * 3600)
#define LOOKS_AT_ONCE 256
#define OWNER_MAX (STORE_BUCKET_MAX + 1 + STORE_KEY_MAX)
#define UNDONE "not all could be cleaned up after gateway %u yet: "
#define LOOK_AT 4 /* data objects of an id whose owner is read: the first ones may not have been written */

/* Bucket and key for which an id was used; see txn_set_owner(). */
struct owner {
	char bytes[OWNER_MAX];
	size_t len;
};

/* ---- does a row name the id? ---- */

struct naming {
	struct rstore *st;
	struct rid id;
	const char *shard;
};

static int
is_it(void *cookie, const struct row_name *name)
{
	const struct naming *n = cookie;
	char *list = NULL;
	size_t len = 0;
	int e;

	if (rid_same(name->id, n->id))
		return 1;
	if (!name->is_map || name->is_garbage)
		return 0;
	e = read_own_map(n->st, name->id, &list, &len);
	if (e == 0)
		e = parts_names(list, len, false, is_it, cookie);
	free(list);
	/* If the list is damaged, the id counts as named, and is not removed. */
	return e == -ENOENT ? 0 : e == -EBADMSG ? 1 : e;
}

static int
on_record(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	return row_names(key, val, val_len, is_it, cookie);
}

static int
on_upload(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	const struct naming *n = cookie;
	char prefix[OMAP_KEY_MAX];
	struct upload u;

	if (upload_decode(val, val_len, &u) < 0)
		return -EBADMSG;
	key_part(prefix, u.id, 0);
	return each_row(n->st, n->shard, prefix, on_record, cookie);
}

/* Returns 1 if a row of the shard names the id; 0: no row; or -errno. */
static int
is_named(struct rstore *st, const char *shard, const struct owner *o, struct rid id)
{
	struct naming n = { .st = st, .id = id, .shard = shard };
	const char *nul = memchr(o->bytes, 0, o->len);
	const char *key = nul + 1;
	size_t key_len = o->len - (size_t)(key - o->bytes);
	char prefix[OMAP_KEY_MAX];
	int e;

	/* The name of a data object moves from a part to the object's record, and from there to garbage,
	 * while other gateways continue. Read in this order, the rows cannot miss it. */
	key_upload(prefix, key, key_len, NULL);
	e = each_row(st, shard, prefix, on_upload, &n);
	fault_point("dead.parts_read");
	/* This prefix also finds records of longer keys, which do no harm. */
	if (e == 0) {
		key_object(prefix, key, key_len);
		e = each_row(st, shard, prefix, on_record, &n);
	}
	return e == 0 ? each_row(st, shard, "g", on_record, &n) : e;
}

/* ---- the shard of an owner ---- */

/* Returns 0; -ENOENT: the bucket does not exist; -EBADMSG; or another -errno. */
static int
find_shard(struct rstore *st, const struct owner *o, struct label *ret_name)
{
	const char *nul = memchr(o->bytes, 0, o->len);
	size_t bucket_len = nul ? (size_t)(nul - o->bytes) : 0;
	struct bucket_row row;
	int e;

	if (!nul || bucket_len == 0 || bucket_len > STORE_BUCKET_MAX)
		return -EBADMSG;
	e = read_bucket_row(st, o->bytes, bucket_len, &row);
	if (e == 0)
		*ret_name = shard_name(row.uid,
				       (uint32_t)(crc64_nvme(0, nul + 1, o->len - bucket_len - 1) >> 32) %
					       row.shards);
	return e;
}

/* ---- ids ---- */

/* Removes the data of an id if no row names it. Returns 0; -EBADMSG: because of damage it is unknown
 * whether a row names it; or another -errno. */
static int
clean_id(struct rstore *st, struct rid id, const struct owner *o, bool is_map)
{
	rados_ioctx_t meta = st->client[0].io[POOL_META];
	struct label shard = { "its row, or its name in the owner" };
	int e = find_shard(st, o, &shard);

	if (e == 0) {
		e = raise_generation(st, shard.text, 0);
		fault_point("dead.raised");
		if (e == 0)
			e = is_named(st, shard.text, o, id);
		/* The row of the bucket is there, so the shard must be, unless the bucket was removed just now. */
		if (e == -ENOENT)
			e = -EBADMSG;
	}
	if (e == -EBADMSG)
		lasting_log(st, LOG_WARN, UNDONE "data in bucket %.*s: %s is missing or damaged", id.instance,
			    (int)strnlen(o->bytes, o->len < STORE_BUCKET_MAX ? o->len : STORE_BUCKET_MAX),
			    o->bytes, shard.text);
	if (e != 0 && e != -ENOENT)
		return e < 0 ? e : 0;
	fault_point("dead.judged");
	if (!is_map)
		return remove_data(st, id);
	e = rados_remove(meta, map_name(id).text);
	return e == -ENOENT ? 0 : e;
}

/* Reads the owners of up to LOOKS_AT_ONCE objects at the same time. */
struct asking {
	rados_completion_t comp;
	struct owner owner;
	struct rid id;
};

static int
ask_owners(struct rstore *st, uint32_t instance, uint64_t first, int nr, int n, bool is_map, struct asking *a)
{
	rados_ioctx_t io = st->client[0].io[is_map ? POOL_META : POOL_DATA];
	int e = 0, sent = 0;

	while (e == 0 && sent < nr) {
		const struct rid id = { instance, first + (uint64_t)sent };
		const struct label name = is_map ? map_name(id) : data_name(id, (uint32_t)n);

		a[sent].id = id;
		e = rados_aio_create_completion2(NULL, NULL, &a[sent].comp);
		if (e < 0)
			break;
		e = rados_aio_getxattr(io, name.text, a[sent].comp, XATTR_OWNER, a[sent].owner.bytes,
				       OWNER_MAX);
		if (e < 0)
			rados_aio_release(a[sent].comp);
		else
			sent++;
	}
	for (int i = 0; i < sent; i++) {
		int r;

		rados_aio_wait_for_complete(a[i].comp);
		r = rados_aio_get_return_value(a[i].comp);
		rados_aio_release(a[i].comp);
		/* A value that is too long is damaged: find_shard() refuses a byte without a name. */
		a[i].owner.bytes[0] = r == -ERANGE ? 0 : a[i].owner.bytes[0];
		a[i].owner.len = r > 0 ? (size_t)r : r == -ERANGE;
		if (r < 0 && r != -ENOENT && r != -ENODATA && r != -ERANGE && e == 0)
			e = r;
	}
	return e;
}

/* Returns 0; -EBADMSG: the data that damage concerns remains, all other ids are done; or another -errno. */
static int
clean_ids(struct rstore *st, const struct peer *p)
{
	struct asking *a = calloc(LOOKS_AT_ONCE, sizeof *a);
	bool is_damaged = false;
	int e = a ? 0 : -ENOMEM;

	for (uint64_t at = p->row.first; e == 0 && at < p->row.last; at += LOOKS_AT_ONCE) {
		int nr = p->row.last - at < LOOKS_AT_ONCE ? (int)(p->row.last - at) : LOOKS_AT_ONCE;

		for (int n = 0; e == 0 && n <= LOOK_AT; n++) {
			e = ask_owners(st, p->instance, at, nr, n, n == LOOK_AT, a);
			for (int i = 0; e == 0 && i < nr; i++) {
				if (a[i].owner.len)
					e = clean_id(st, a[i].id, &a[i].owner, n == LOOK_AT);
				is_damaged |= e == -EBADMSG;
				e = e == -EBADMSG ? 0 : e;
			}
		}
	}
	free(a);
	return e == 0 && is_damaged ? -EBADMSG : e;
}

/* ---- buckets that the dead gateway was making or removing ---- */

struct undone {
	struct rstore *st;
	uint32_t instance;
	bool is_damaged; /* true: one of the rows, or a shard of a bucket, is damaged */
};

/* Undoes a removal: opens the shards of the bucket again. Every generation is raised, because a write of
 * the dead gateway that closes a shard may be in flight. */
static int
open_shards(struct rstore *st, const struct bucket_row *row, const char *bucket)
{
	struct label shard;
	int e = 0;

	for (uint32_t i = 0; e == 0 && i < row->shards; i++) {
		shard = shard_name(row->uid, i);
		e = raise_generation(st, shard.text, GENERATION_CLOSED);
	}
	if (e == -EBADMSG || e == -ENOENT)
		lasting_log(st, LOG_WARN, UNDONE "bucket %s: %s is missing, or its generation is damaged",
			    row->instance, bucket, shard.text);
	return e;
}

static int
end_change(struct undone *u, const char *key, const char *val, size_t val_len, struct bucket_row *row)
{
	bool is_doomed = row->state == BUCKET_MAKING;
	int e = is_doomed ? 0 : open_shards(u->st, row, key + 1);
	uint8_t bytes[BUCKET_ROW_BYTES];
	rados_write_op_t op;

	if (e < 0)
		return e;
	fault_point(is_doomed ? "dead.bucket_unmade" : "dead.bucket_opened");
	row->state = is_doomed ? BUCKET_ENDING : BUCKET_THERE;
	if (is_doomed)
		row->version = u->st->gw.epoch;
	bucket_encode(bytes, row);
	op = rados_create_write_op();
	op_compare(op, key, val, val_len);
	if (is_doomed)
		op_remove(op, key);
	op_set(op, is_doomed ? doomed_key(row->uid).text : key, bytes, sizeof bytes);
	e = write_now(u->st->client[0].io[POOL_META], OBJECT_BUCKETS, op);
	gateway_dirty(u->st, &u->st->buckets);
	return e == -ECANCELED ? 0 : e;
}

static int
on_bucket(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct undone *u = cookie;
	struct bucket_row row;
	int e = bucket_decode(val, val_len, &row);

	if (e < 0)
		lasting_log(u->st, LOG_WARN, UNDONE "the row of bucket %s is damaged", u->instance, key + 1);
	else if (row.state != BUCKET_THERE && row.instance == u->instance)
		e = end_change(u, key, val, val_len, &row);
	/* A damaged row, or a damaged or missing shard, is noted, and the other buckets are cleaned up. */
	if (e != -EBADMSG && e != -ENOENT)
		return e;
	u->is_damaged = true;
	return 0;
}

/* ---- the clean-up ---- */

/* Returns 0; -ENOENT: a gateway of an earlier version, which has only the address in its row; or -errno. */
static int
read_addrs(struct rstore *st, uint32_t instance, struct gateway_addrs *ret_addrs)
{
	char val[GATEWAY_ADDRS_BYTES];
	int e = read_value(st, OBJECT_STORE, gateway_key('a', instance).text, val, sizeof val);

	if (e >= 0)
		e = gateway_addrs_decode(val, (size_t)e, ret_addrs);
	if (e == -EBADMSG)
		lasting_log(st, LOG_WARN, "the addresses of gateway %u are damaged", instance);
	return e;
}

/* A search for addresses of a dead gateway among those of running gateways. */
struct blocking {
	struct rstore *st;
	struct gateway_addrs *addrs;
	const char *bad; /* an address that must not be on the blocklist */
	bool is_living;  /* a running gateway has it as well */
};

static int
on_living(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct blocking *b = cookie;
	struct gateway_addrs of;
	int e = read_addrs(b->st, (uint32_t)strtoul(key + 1, NULL, 10), &of);

	/* The gateway has ended, or has an earlier version. */
	if (e == -ENOENT)
		return 0;
	for (uint32_t i = 0; e == 0 && i < of.nr; i++) {
		for (uint32_t k = 0; k < b->addrs->nr; k++) {
			if (strcmp(of.addr[i], b->addrs->addr[k]) != 0)
				continue;
			b->bad = b->addrs->addr[k];
			b->is_living = true;
		}
	}
	return e;
}

/* Checks the addresses of a dead gateway before they are put on the blocklist: each must be a single
 * connection of a client, and none may be of a running gateway. Returns 0 or -errno. */
static int
check_addrs(struct rstore *st, uint32_t instance, struct gateway_addrs *a)
{
	struct blocking b = { .st = st, .addrs = a };
	int e = 0;

	for (uint32_t i = 0; i < a->nr; i++)
		b.bad = gateway_addr_is_client(a->addr[i]) ? b.bad : a->addr[i];
	if (!b.bad)
		e = each_row(st, OBJECT_STORE, "i", on_living, &b);
	if (e == 0 && b.bad) {
		lasting_log(st, LOG_WARN, UNDONE "\"%.100s\" in its row is %s", instance, b.bad,
			    b.is_living ? "an address of one that runs"
					: "no address of a client's connection");
		e = -EBADMSG;
	}
	return e;
}

/* Puts all connections of a dead gateway on the blocklist, because each may have writes in flight. Returns
 * 0 or -errno: the clean-up must not continue. */
static int
block(struct rstore *st, const struct peer *p)
{
	struct gateway_addrs a;
	int e = read_addrs(st, p->instance, &a);

	if (e == -ENOENT) {
		a.nr = 1;
		memcpy(a.addr[0], p->row.addrs, sizeof a.addr[0]);
		e = 0;
	}
	if (e == 0)
		e = check_addrs(st, p->instance, &a);
	for (uint32_t i = 0; e == 0 && i < a.nr; i++) {
		e = rados_blocklist_add(st->client[0].cluster, a.addr[i], BLOCK_S);
		if (e < 0)
			lasting_log(st, LOG_WARN,
				    "gateway %u (%s) cannot be put on the cluster's blocklist: %s",
				    p->instance, a.addr[i], strerror(-e));
	}
	return e;
}

/* Returns 0; -EBADMSG: only the parts that damage concerns remain; or another -errno. */
static int
clean_up_dead(struct rstore *st, const struct peer *p)
{
	struct undone u = { .st = st, .instance = p->instance };
	int e = block(st, p);

	if (e < 0) {
		lasting_log(st, LOG_WARN, UNDONE "it is not on the blocklist", p->instance);
		return -EAGAIN;
	}
	fault_point("dead.blocked");
	/* For garbage that the dead gateway had not removed. */
	atomic_store(&st->gw.sweep_all, true);
	e = clean_ids(st, p);
	u.is_damaged = e == -EBADMSG;
	fault_point("dead.ids_cleaned");
	if (e == 0 || u.is_damaged)
		e = each_row(st, OBJECT_BUCKETS, "b", on_bucket, &u);
	if (e < 0)
		lasting_log(st, LOG_WARN, UNDONE "%s", p->instance, strerror(-e));
	return e == 0 && u.is_damaged ? -EBADMSG : e;
}

static int
on_dead(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct rstore *st = cookie;
	struct peer p = { .instance = (uint32_t)strtoul(key + 1, NULL, 10) };
	uint64_t nr = atomic_load(&st->gw.gateways),
		 crc64 = crc64_nvme(crc64_nvme(0, key, key_len), val, val_len);
	rados_write_op_t op;
	int e;

	/* One of the running gateways cleans up; a second clean-up would do no harm. */
	if (p.instance % (nr ? nr : 1) != st->gw.rank || !lasting_due(st, crc64, 0))
		return 0;
	if (gateway_decode(val, val_len, &p.row) < 0) {
		lasting_log(st, LOG_WARN, "gateway %u is not cleaned up after: its row is damaged",
			    p.instance);
		return 0;
	}
	e = clean_up_dead(st, &p);
	if (e == -EBADMSG)
		lasting_due(st, crc64, HELPERS_NS);
	if (e < 0)
		return 0; /* repeated later */
	fault_point("dead.cleaned");
	op = rados_create_write_op();
	usage_forget(st, p.instance);
	op_remove(op, key);
	op_remove(op, gateway_key('a', p.instance).text);
	if (write_now(st->client[0].io[POOL_META], OBJECT_STORE, op) == 0)
		atomic_fetch_add(&st->gw.dead_cleaned, 1);
	return 0;
}

void
clean_up(void *cookie)
{
	struct rstore *st = cookie;

	if (atomic_load(&st->gw.is_fenced))
		return;
	each_row(st, OBJECT_STORE, "x", on_dead, st);
	sweep(st);
}
