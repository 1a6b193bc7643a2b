/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removal of garbage. A change of the index records the replaced data as garbage: a row in the same shard,
 * with the epoch of the change. EPOCHS_KEPT epochs later no reader uses the data any longer; the data objects
 * are removed, and then the row. If the removal is interrupted, this or another gateway repeats it.
 *
 * For a removed bucket a row remains in the table of buckets, until its shards are removed with all data that
 * they name.
 */
#include "rados/io/helpers.h"

#include "base/advice.h"
#include "base/check.h"
#include "base/crc64.h"
#include "rados/io/fault.h"
#include "rados/io/names.h"
#include "rados/io/rows.h"
#include "rados/io/rstore.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REMOVE_AT_ONCE 32
#define ROWS_AT_ONCE 128
/* maximum number of missing data objects before an existing one: as many writes may be in flight */
#define GAP_MAX 16

/* ---- data objects ---- */

struct sweeping {
	struct rstore *st;
	const char *object;
	bool is_left; /* removed buckets that are too recent, or damaged */
	/* Removals in progress, and the rows that are removed after them. */
	rados_completion_t comp[REMOVE_AT_ONCE];
	char *row[ROWS_AT_ONCE];
	int comp_nr, row_nr;
	uint32_t missing; /* number of consecutive data objects that did not exist */
	int error;        /* first error */
};

static void
removals_over(struct sweeping *s)
{
	for (int i = 0; i < s->comp_nr; i++) {
		int r;

		rados_aio_wait_for_complete(s->comp[i]);
		r = rados_aio_get_return_value(s->comp[i]);
		rados_aio_release(s->comp[i]);
		s->missing = r == -ENOENT ? s->missing + 1 : 0;
		if (r < 0 && r != -ENOENT && s->error == 0)
			s->error = r;
	}
	s->comp_nr = 0;
}

static void
remove_object(struct sweeping *s, struct rid id, uint32_t n)
{
	rados_completion_t *comp = &s->comp[s->comp_nr];

	check(s->comp_nr < REMOVE_AT_ONCE);
	s->error = rados_aio_create_completion2(NULL, NULL, comp);
	if (s->error == 0) {
		s->error = rados_aio_remove(s->st->client[0].io[POOL_DATA], data_name(id, n).text, *comp);
		if (s->error == 0)
			s->comp_nr++;
		else
			rados_aio_release(*comp);
	}
	if (s->comp_nr == REMOVE_AT_ONCE)
		removals_over(s);
}

int
remove_data(struct rstore *st, struct rid id)
{
	struct sweeping s = { .st = st };

	for (uint32_t n = 0; s.error == 0 && (s.comp_nr || s.missing < GAP_MAX); n++)
		remove_object(&s, id, n);
	removals_over(&s);
	return s.error;
}

/* ---- garbage ---- */

static int remove_name(void *cookie, const struct row_name *n);

/* Removes the data of the parts in the list of a map, and then the map. */
static int
remove_map(struct sweeping *s, struct rid map)
{
	const struct label name = map_name(map);
	char *list = NULL, remedy[128];
	size_t len = 0;
	int e = read_own_map(s->st, map, &list, &len);

	/* The number of parts is in the removed record, so the whole list is decoded. */
	if (e == 0)
		e = parts_names(list, len, true, remove_name, s);
	free(list);
	if (e == -ENOENT)
		return 0;
	removals_over(s);
	advice_first(remedy, sizeof remedy, ADVICE_PARTS_DAMAGED, NULL);
	if (e == -EBADMSG)
		log_error("the list of parts %s is damaged: the parts' data stays: %s", name.text, remedy);
	else if (e < 0 || s->error < 0)
		return e < 0 ? e : s->error;
	fault_point("sweep.map_parts");
	e = rados_remove(s->st->client[0].io[POOL_META], name.text);
	return e == -ENOENT ? 0 : e;
}

/* Begins the removal of the data, or the map, that a row names. */
static int
remove_name(void *cookie, const struct row_name *n)
{
	struct sweeping *s = cookie;
	uint64_t each = s->st->gw.format.object_bytes, nr = (n->size_bytes + each - 1) / each;

	if (n->is_map)
		return remove_map(s, n->id);
	for (uint64_t i = 0; i < nr && s->error == 0; i++)
		remove_object(s, n->id, (uint32_t)i);
	return 0;
}

/* Waits for the removals, and then removes the rows that named the data. Returns 0 or -errno. */
static int
rows_over(struct sweeping *s)
{
	rados_write_op_t op;
	int e;

	removals_over(s);
	e = s->error;
	if (e == 0 && s->row_nr) {
		fault_point("sweep.data_removed");
		op = rados_create_write_op();
		rados_write_op_omap_rm_keys(op, (const char *const *)s->row, (size_t)s->row_nr);
		e = write_now(s->st->client[0].io[POOL_META], s->object, op);
		fault_point("sweep.row_removed");
		atomic_fetch_add(&s->st->gw.swept, (uint64_t)s->row_nr);
	}
	for (int i = 0; i < s->row_nr; i++)
		free(s->row[i]);
	s->row_nr = 0;
	return e;
}

static int
sweep_entry(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct sweeping *s = cookie;
	uint64_t epoch;
	int e = key_garbage_decode(key, key_len, &epoch);

	if (e < 0)
		return e;
	/* The rows are in the order of epochs, so all following rows are too recent as well. */
	if (epoch + EPOCHS_KEPT > atomic_load(&s->st->gw.epoch))
		return 1;
	e = row_names(key, val, val_len, remove_name, s);
	if (e < 0)
		return e;
	check(s->row_nr < ROWS_AT_ONCE);
	s->row[s->row_nr] = strdup(key);
	if (!s->row[s->row_nr])
		return -ENOMEM;
	return ++s->row_nr == ROWS_AT_ONCE ? rows_over(s) : 0;
}

/* Returns 1 if garbage is left; 0: none; or -errno. */
static int
sweep_shard(struct rstore *st, const char *object)
{
	struct sweeping s = { .st = st, .object = object };
	int e = each_row(st, object, "g", sweep_entry, &s), r;

	/* After an error the rows remain, and the removal is repeated later. */
	removals_over(&s);
	s.error = e < 0 ? e : s.error;
	r = rows_over(&s);
	return r < 0 ? r : e;
}

/* ---- removed buckets ---- */

static int
doomed_entry(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	return row_names(key, val, val_len, remove_name, cookie);
}

static int
remove_shards(struct rstore *st, const struct bucket_row *row)
{
	int e = 0;

	for (uint32_t i = 0; e >= 0 && i < row->shards; i++) {
		const struct label name = shard_name(row->uid, i);
		struct sweeping s = { .st = st };

		e = each_row(st, name.text, "", doomed_entry, &s);
		removals_over(&s);
		if (e >= 0)
			e = s.error;
		if (e >= 0)
			e = rados_remove(st->client[0].io[POOL_META], name.text);
		fault_point("sweep.shard_removed");
		if (e == -ENOENT)
			e = 0;
	}
	return e;
}

static int
doomed_row(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct sweeping *s = cookie;
	const uint64_t crc64 = crc64_nvme(crc64_nvme(0, key, key_len), val, val_len);
	struct bucket_row row;
	rados_write_op_t op;
	int e = bucket_decode(val, val_len, &row);

	if (e == 0 && row.version + EPOCHS_KEPT > atomic_load(&s->st->gw.epoch)) {
		s->is_left = true;
		return 0;
	}
	if (e == 0)
		e = lasting_due(s->st, crc64, 0) ? remove_shards(s->st, &row) : -EBADMSG;
	if (e == -EBADMSG) {
		/* The other removed buckets are handled nevertheless; the next attempt for this one waits. */
		lasting_log(s->st, LOG_WARN,
			    "the shards of removed bucket %s stay: its row, or a row in them, is damaged",
			    key + 1);
		lasting_due(s->st, crc64, HELPERS_NS);
		s->is_left = true;
		return 0;
	}
	if (e < 0)
		return e;
	fault_point("sweep.bucket_removed");
	op = rados_create_write_op();
	op_remove(op, key);
	return write_now(s->st->client[0].io[POOL_META], OBJECT_BUCKETS, op);
}

static int
sweep_doomed(struct rstore *st)
{
	struct sweeping s = { .st = st };
	int e = each_row(st, OBJECT_BUCKETS, "d", doomed_row, &s);

	return e < 0 ? e : s.is_left;
}

/* ---- all shards ---- */

static int
mark_bucket(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct rstore *st = cookie;
	struct bucket_row row;
	struct rbucket *rb;

	if (key_len < 2 || key_len - 1 > STORE_BUCKET_MAX || bucket_decode(val, val_len, &row) < 0)
		return 0; /* reported by --fsck */
	if (row.state != BUCKET_THERE)
		return 0;
	rb = rbucket_put_in(st, key + 1, key_len - 1, &row);
	if (!rb)
		return -ENOMEM;
	for (uint32_t i = 0; i < row.shards; i++)
		gateway_dirty(st, &rb->shard[i]);
	rbucket_release(rb);
	return 0;
}

static struct rshard *
take_dirty(struct gateway *gw)
{
	struct list *l;

	pthread_mutex_lock(&gw->lock);
	l = list_pop(&gw->dirty);
	pthread_mutex_unlock(&gw->lock);
	return l ? container_of(l, struct rshard, dirty) : NULL;
}

void
sweep(struct rstore *st)
{
	struct gateway *gw = &st->gw;
	struct list again;
	struct rshard *s;

	list_init(&again);
	pthread_mutex_lock(&gw->lock);
	gw->is_sweeping = true;
	pthread_mutex_unlock(&gw->lock);
	if (atomic_exchange(&gw->sweep_all, false)) {
		int e = each_row(st, OBJECT_BUCKETS, "b", mark_bucket, st);

		gateway_dirty(st, &st->buckets);
		if (e < 0)
			atomic_store(&gw->sweep_all, true);
	}
	while (!atomic_load(&gw->cleaner.stop) && (s = take_dirty(gw))) {
		bool is_left;
		int e = s->bucket ? sweep_shard(st, s->name) : sweep_doomed(st);

		if (e < 0 && e != -ENOENT)
			lasting_log(st, LOG_WARN, "garbage of %s%s%.*s cannot be removed yet: %s", s->name,
				    s->bucket ? " of bucket " : "", s->bucket ? s->bucket->name_len : 0,
				    s->bucket ? s->bucket->name : "",
				    e == -EBADMSG ? "a row is damaged" : strerror(-e));
		pthread_mutex_lock(&gw->lock);
		is_left = e && e != -ENOENT && !list_linked(&s->dirty);
		if (is_left)
			list_push_tail(&again, &s->dirty);
		pthread_mutex_unlock(&gw->lock);
		if (!is_left)
			rbucket_release(s->bucket);
	}
	pthread_mutex_lock(&gw->lock);
	for (struct list *l; (l = list_pop(&again));)
		list_push_tail(&gw->dirty, l);
	gw->is_sweeping = false;
	pthread_mutex_unlock(&gw->lock);
}
