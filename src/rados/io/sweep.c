/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The removal of garbage.  What a change of the index took out of it lies in the same shard as a row of
 * garbage, with the epoch of that change; EPOCHS_KEPT epochs later nobody has it open any more, and the data
 * objects go, then the row.  Cut short anywhere, it is done again, by whoever comes.
 *
 * Of removed buckets a row is left in the table of buckets: their shards go with all that is in them.
 */
#include "rados/io/gateway_int.h"

#include "base/advice.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REMOVE_AT_ONCE 32
#define ROWS_AT_ONCE 128
#define GAP_MAX 16 /* data objects that may be missing in front of one: so many writes may be under way */

/* ---- data objects ---- */

int
remove_data(struct rstore *st, struct rid id, uint64_t size_bytes)
{
	uint64_t each = st->gw.format.object_bytes;
	uint64_t nr = size_bytes == UINT64_MAX ? UINT64_MAX : (size_bytes + each - 1) / each;
	rados_ioctx_t io = st->client[0].io[POOL_DATA];
	uint64_t n = 0, missing = 0;
	int e = 0;

	while (e == 0 && n < nr && missing < (nr == UINT64_MAX ? GAP_MAX : UINT64_MAX)) {
		rados_completion_t comp[REMOVE_AT_ONCE];
		int sent = 0;

		for (; sent < REMOVE_AT_ONCE && n < nr && e == 0; n++) {
			char name[DATA_NAME];

			data_name(name, id, (uint32_t)n);
			e = rados_aio_create_completion2(NULL, NULL, &comp[sent]);
			if (e == 0)
				e = rados_aio_remove(io, name, comp[sent++]);
		}
		for (int i = 0; i < sent; i++) {
			int r;

			rados_aio_wait_for_complete(comp[i]);
			r = rados_aio_get_return_value(comp[i]);
			rados_aio_release(comp[i]);
			missing = r == -ENOENT ? missing + 1 : 0;
			if (r < 0 && r != -ENOENT && e == 0)
				e = r;
		}
	}
	return e;
}

/* ---- pages ---- */

int
read_page(struct rstore *st, const char *object, const char *prefix, char after[OMAP_KEY_MAX],
	  int (*entry)(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len),
	  void *cookie)
{
	rados_read_op_t op = rados_create_read_op();
	rados_omap_iter_t iter;
	unsigned char more = 0;
	char *key, *val;
	size_t key_len, val_len;
	int rv = 0, e;

	rados_read_op_omap_get_vals2(op, after, prefix, OMAP_PAGE, &iter, &more, &rv);
	e = rados_read_op_operate(op, st->client[0].io[POOL_META], object, 0);
	e = e < 0 ? e : rv;
	rados_release_read_op(op);
	while (e >= 0 && rados_omap_get_next2(iter, &key, &val, &key_len, &val_len) == 0 && key) {
		if (key_len >= OMAP_KEY_MAX) {
			e = -EBADMSG;
			break;
		}
		e = entry(cookie, key, key_len, val, val_len);
		memcpy(after, key, key_len);
		after[key_len] = 0;
	}
	rados_omap_get_end(iter);
	return e < 0 ? e : more;
}

int
read_value(rados_ioctx_t io, const char *object, const char *key, char *buf, size_t cap)
{
	rados_read_op_t op = rados_create_read_op();
	char *k = NULL, *v = NULL;
	size_t k_len, v_len = 0;
	rados_omap_iter_t iter;
	int rv = 0, e;

	rados_read_op_omap_get_vals_by_keys(op, &key, 1, &iter, &rv);
	e = rados_read_op_operate(op, io, object, 0);
	e = e < 0 ? e : rv;
	rados_release_read_op(op);
	if (e == 0 && (rados_omap_get_next2(iter, &k, &v, &k_len, &v_len) < 0 || !k))
		e = -ENOENT;
	if (e == 0 && v_len > cap)
		e = -EBADMSG;
	if (e == 0)
		memcpy(buf, v, v_len);
	rados_omap_get_end(iter);
	return e < 0 ? e : (int)v_len;
}

/* ---- garbage ---- */

int
read_map(struct rstore *st, struct rid map, char **ret_bytes, size_t *ret_len)
{
	char name[DATA_NAME];
	uint64_t size, crc;
	time_t mtime;
	int e;

	map_name(name, map);
	e = rados_stat(st->client[0].io[POOL_META], name, &size, &mtime);
	if (e < 0)
		return e;
	*ret_bytes = malloc(size + 1);
	if (!*ret_bytes)
		return -ENOMEM;
	e = rados_read(st->client[0].io[POOL_META], name, *ret_bytes, size, 0);
	*ret_len = e < 0 ? 0 : (size_t)e;
	if (e < 0)
		return e;
	/* Damaged, it can name what belongs to others.  Those of former versions have none. */
	e = rados_getxattr(st->client[0].io[POOL_META], name, XATTR_CRC, (char *)&crc, sizeof crc);
	if (e == sizeof crc)
		return crc64_nvme(0, *ret_bytes, *ret_len) == crc ? 0 : -EBADMSG;
	return e == -ENODATA ? 0 : e < 0 ? e : -EBADMSG;
}

/* The data of the parts that a map lists, and then it. */
static int
remove_map(struct rstore *st, struct rid map)
{
	struct part *parts = NULL;
	char *bytes = NULL, name[DATA_NAME], remedy[128];
	size_t len = 0;
	uint32_t nr = 0;
	int e = read_map(st, map, &bytes, &len);

	if (e == -ENOENT)
		return 0;
	if (e == 0)
		e = (parts = calloc(STORE_PART_NR_MAX, sizeof *parts)) ? 0 : -ENOMEM;
	/* How many there are stands in the record, which is gone: as many as there are bytes for. */
	if (e == 0)
		e = parts_count(bytes, len, STORE_PART_NR_MAX, parts, &nr);
	for (uint32_t i = 0; e == 0 && i < nr; i++) {
		if (parts[i].kind == REC_DATA)
			e = remove_data(st, parts[i].data, parts[i].size_bytes);
	}
	free(parts);
	free(bytes);
	map_name(name, map);
	advice_first(remedy, sizeof remedy, ADVICE_PARTS_DAMAGED, NULL);
	if (e == -EBADMSG)
		log_error("the list of parts %s is damaged: the parts' data stays: %s", name, remedy);
	else if (e < 0)
		return e;
	fault_point("sweep.map_parts");
	e = rados_remove(st->client[0].io[POOL_META], name);
	return e == -ENOENT ? 0 : e;
}

struct sweeping {
	struct rstore *st;
	const char *object;
	bool is_left;  /* garbage that is too young */
	bool is_there; /* any */
	/* Removals under way, and the rows that are to go when all of them are over. */
	rados_completion_t comp[REMOVE_AT_ONCE];
	char *row[ROWS_AT_ONCE];
	int comp_nr, row_nr;
	int error; /* the first */
};

static void
removals_over(struct sweeping *s)
{
	for (int i = 0; i < s->comp_nr; i++) {
		int r;

		rados_aio_wait_for_complete(s->comp[i]);
		r = rados_aio_get_return_value(s->comp[i]);
		rados_aio_release(s->comp[i]);
		if (r < 0 && r != -ENOENT && s->error == 0)
			s->error = r;
	}
	s->comp_nr = 0;
}

static void
remove_some(struct sweeping *s, struct garbage_data d)
{
	uint64_t each = s->st->gw.format.object_bytes, nr = (d.size_bytes + each - 1) / each;
	char name[DATA_NAME];

	for (uint64_t n = 0; n < nr && s->error == 0; n++) {
		rados_completion_t *comp = &s->comp[s->comp_nr];

		check(s->comp_nr < REMOVE_AT_ONCE);
		data_name(name, d.id, (uint32_t)n);
		s->error = rados_aio_create_completion2(NULL, NULL, comp);
		if (s->error == 0) {
			s->error = rados_aio_remove(s->st->client[0].io[POOL_DATA], name, *comp);
			if (s->error == 0)
				s->comp_nr++;
			else
				rados_aio_release(*comp);
		}
		if (s->comp_nr == REMOVE_AT_ONCE)
			removals_over(s);
	}
}

/* Begins the removal of what a row of garbage names. */
static int
remove_garbage(struct sweeping *s, const char *val, size_t val_len)
{
	struct garbage g;
	int e = garbage_decode(val, val_len, &g);

	for (uint32_t i = 0; e == 0 && i < g.data_nr; i++)
		remove_some(s, garbage_data(&g, i));
	if (e == 0 && g.has_map)
		e = remove_map(s->st, g.map);
	return e;
}

/* What the rows named is gone: they go. */
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
		e = rados_write_op_operate(op, s->st->client[0].io[POOL_META], s->object, NULL, 0);
		rados_release_write_op(op);
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

	s->is_there = true;
	if (e < 0)
		return e;
	if (epoch + EPOCHS_KEPT > atomic_load(&s->st->gw.epoch)) {
		s->is_left = true;
		return 0;
	}
	e = remove_garbage(s, val, val_len);
	if (e < 0)
		return e;
	check(s->row_nr < ROWS_AT_ONCE);
	s->row[s->row_nr] = strdup(key);
	if (!s->row[s->row_nr])
		return -ENOMEM;
	return ++s->row_nr == ROWS_AT_ONCE ? rows_over(s) : 0;
}

/* 1: garbage is left; 0: none is; -errno. */
static int
sweep_shard(struct rstore *st, const char *object)
{
	struct sweeping s = { .st = st, .object = object };
	char after[OMAP_KEY_MAX] = "";
	int e;

	do {
		e = read_page(st, object, "g", after, sweep_entry, &s);
	} while (e == 1 && !s.is_left);
	if (e >= 0) {
		e = rows_over(&s);
	} else {
		/* What was begun ends; the rows stay, and it is done again. */
		removals_over(&s);
		s.error = e;
		rows_over(&s);
	}
	return e < 0 ? e : s.is_left;
}

/* ---- removed buckets ---- */

static int
remove_row_data(struct sweeping *s, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct record r;
	int e;

	switch (key[0]) {
	case KEY_GARBAGE:
		return remove_garbage(s, val, val_len);
	case KEY_PART:
	case KEY_OBJECT:
		e = record_decode(val, val_len, &r);
		if (e == 0 && r.kind == REC_DATA)
			remove_some(s, (struct garbage_data){ r.data, r.size_bytes });
		return e;
	default:
		return 0;
	}
}

static int
doomed_entry(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct sweeping *s = cookie;

	return remove_row_data(s, key, key_len, val, val_len);
}

static int
remove_shards(struct rstore *st, const struct bucket_row *row)
{
	char name[64];
	int e = 0;

	for (uint32_t i = 0; e >= 0 && i < row->shards; i++) {
		char after[OMAP_KEY_MAX] = "";
		struct sweeping s = { .st = st };

		shard_name(name, row->uid, i);
		do {
			e = read_page(st, name, "", after, doomed_entry, &s);
		} while (e == 1);
		removals_over(&s);
		if (e >= 0)
			e = s.error;
		if (e >= 0)
			e = rados_remove(st->client[0].io[POOL_META], name);
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
	struct bucket_row row;
	rados_write_op_t op;
	int e = bucket_decode(val, val_len, &row);

	if (e < 0)
		return e;
	if (row.version + EPOCHS_KEPT > atomic_load(&s->st->gw.epoch)) {
		s->is_left = true;
		return 0;
	}
	e = remove_shards(s->st, &row);
	if (e < 0)
		return e;
	fault_point("sweep.bucket_removed");
	op = rados_create_write_op();
	rados_write_op_omap_rm_keys(op, &key, 1);
	e = rados_write_op_operate(op, s->st->client[0].io[POOL_META], OBJECT_BUCKETS, NULL, 0);
	rados_release_write_op(op);
	return e;
}

static int
sweep_doomed(struct rstore *st)
{
	struct sweeping s = { .st = st };
	char after[OMAP_KEY_MAX] = "";
	int e;

	do {
		e = read_page(st, OBJECT_BUCKETS, "d", after, doomed_row, &s);
	} while (e == 1);
	return e < 0 ? e : s.is_left;
}

/* ---- all of it ---- */

static int
mark_bucket(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct rstore *st = cookie;
	struct bucket_row row;
	struct rbucket *rb;
	int e = bucket_decode(val, val_len, &row);

	if (e < 0 || key_len < 2 || key_len - 1 > STORE_BUCKET_MAX)
		return e < 0 ? e : -EBADMSG;
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

void
sweep_everything_later(struct rstore *st)
{
	atomic_store(&st->gw.sweep_all, true);
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
		char after[OMAP_KEY_MAX] = "";
		int e;

		do {
			e = read_page(st, OBJECT_BUCKETS, "b", after, mark_bucket, st);
		} while (e == 1);
		gateway_dirty(st, &st->buckets);
		if (e < 0)
			sweep_everything_later(st);
	}
	while (!atomic_load(&gw->cleaner.stop) && (s = take_dirty(gw))) {
		bool is_left;
		int e = s->bucket ? sweep_shard(st, s->name) : sweep_doomed(st);

		if (e < 0 && e != -ENOENT)
			log_warn("garbage of %s cannot be removed yet: %s", s->name, strerror(-e));
		pthread_mutex_lock(&gw->lock);
		is_left = e && e != -ENOENT && !list_linked(&s->dirty);
		if (is_left)
			list_push_tail(&again, &s->dirty);
		pthread_mutex_unlock(&gw->lock);
		if (!is_left && s->bucket)
			rbucket_release(s->bucket);
	}
	pthread_mutex_lock(&gw->lock);
	for (struct list *l; (l = list_pop(&again));)
		list_push_tail(&gw->dirty, l);
	gw->is_sweeping = false;
	pthread_mutex_unlock(&gw->lock);
}
