/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the daemon that operators see, and that is not there for the asking: when the store will be full, which needs samples of hours, and
 * copies and rules of the largest buckets, which need operations of the store. The main thread takes the samples; a thread of its own asks the
 * store, only while the page /buckets is read.
 */
#include "main/pages.h"

#include "main/capacity.h"

#include "base/clock.h"
#include "base/uuid.h"
#include "stats/stats.h"
#include "store/user.h"
#include "walk/bucket_config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS_MAX 20
#define LOOK_EVERY_NS (5 * NS_PER_S)

/* A bucket as the last look at its attributes has found it. */
struct bucket_seen {
	char name[STORE_BUCKET_MAX + 2];
	unsigned copies;
	bool has_rules;
};

static struct {
	pthread_mutex_t lock; /* protects the fields up to nr */
	struct capacity capacity;
	bool is_wanted; /* the page was read since the last look began */
	struct bucket_seen bucket[BUCKETS_MAX];
	int nr;
	_Atomic bool is_over; /* the look has ended, and its thread can be joined */
	/* state of the main thread */
	bool is_running;
	pthread_t thread;
	uint64_t looked_ns;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- capacity ---- */

struct room {
	uint64_t size, free, reserved;
};

/* Sums up the disks of the store. The pools of a cluster share their room: the data pool stands for it. */
static struct room
room_of(const struct daemon *d)
{
	const struct store *st = atomic_load(&d->store);
	bool is_pool = d->conf->store.backend != BACKEND_DISKS;
	struct room room = { 0, 0 };

	for (int i = 0; i < unit_nr(d); i++) {
		struct store_unit_info info;

		store_unit_info(st, i, &info);
		if (info.state == UNIT_DRAINED ||
		    (is_pool && strcmp(info.name, d->conf->rados.data_pool) != 0))
			continue;
		room.size += info.size_bytes;
		room.free += info.free_bytes;
		room.reserved += info.own_bytes;
	}
	return room;
}

static void
look_at_room(struct daemon *d)
{
	struct room room = room_of(d);

	if (!room.size)
		return;
	pthread_mutex_lock(&seen.lock);
	capacity_add(&seen.capacity, clock_ns(), room.size, room.size - room.free);
	pthread_mutex_unlock(&seen.lock);
}

static struct capacity_view
outlook(uint64_t free_bytes)
{
	struct capacity_view v;

	pthread_mutex_lock(&seen.lock);
	capacity_view(&seen.capacity, free_bytes, &v);
	pthread_mutex_unlock(&seen.lock);
	return v;
}

void
seen_metrics(struct daemon *d, struct stats_out *out)
{
	struct capacity_view v = outlook(room_of(d).free);

	if (v.outlook == CAPACITY_FILLS)
		stats_emit(out, M_STORE_FULL, (double)v.full_s, NULL);
}

void
seen_status(struct daemon *d, FILE *out)
{
	static const char *const text[] = {
		[CAPACITY_YOUNG] = "young", [CAPACITY_STEADY] = "steady", [CAPACITY_FILLS] = "fills"
	};
	struct room room = room_of(d);
	struct capacity_view v = outlook(room.free);
	char host[256] = "";

	gethostname(host, sizeof host - 1);
	fputs(",\n\"host\":", out);
	json_string(out, host);
	fprintf(out,
		",\"capacity\":{\"size_bytes\":%llu,\"used_bytes\":%llu,\"reserved_bytes\":%llu,"
		"\"free_bytes\":%llu,\"history_seconds\":%llu,\"outlook\":\"%s\",\"growth_bytes_per_day\":",
		(unsigned long long)room.size, (unsigned long long)(room.size - room.free),
		(unsigned long long)room.reserved, (unsigned long long)room.free,
		(unsigned long long)v.history_s, text[v.outlook]);
	if (v.outlook == CAPACITY_YOUNG)
		fputs("null", out);
	else
		fprintf(out, "%lld", (long long)v.bytes_per_day);
	if (v.outlook == CAPACITY_FILLS)
		fprintf(out, ",\"full_in_seconds\":%llu}", (unsigned long long)v.full_s);
	else
		fputs(",\"full_in_seconds\":null}", out);
}

/* The pools, or the UUID that all disks have in common. */
void
seen_store_id(struct daemon *d, FILE *out)
{
	const struct store *st = atomic_load(&d->store);
	char id[512] = "";

	if (d->conf->store.backend != BACKEND_DISKS) {
		snprintf(id, sizeof id, "%s/%s%s%s", d->conf->rados.meta_pool, d->conf->rados.data_pool,
			 d->conf->rados.namespace_ ? "/" : "",
			 d->conf->rados.namespace_ ? d->conf->rados.namespace_ : "");
	} else if (st && unit_nr(d) > 0) {
		struct store_unit_info info;

		store_unit_info(st, 0, &info);
		if (info.store_uuid)
			uuid_write(id, info.store_uuid);
	}
	json_string(out, id[0] ? id : NULL);
}

/* ---- buckets ---- */

/* Fills in copies and rules. Returns false if the bucket is gone or does not answer. */
static bool
look_at_bucket(struct store_user *u, struct bucket_seen *b)
{
	struct store_port *port = store_user_port(u, 0);
	size_t len = strlen(b->name);
	struct store_stat stat = { .version = 0 };
	struct bucket_attrs attrs = { .p = NULL };
	const void *rules;
	uint32_t rules_len;
	bool is_there = STORE_DO(u, &stat.op, store_bucket_head(port, b->name, len, &stat)) == 0;

	b->copies = stat.copies;
	is_there =
		is_there && STORE_DO(u, &attrs.stat.op, bucket_attrs_read(port, b->name, len, &attrs)) == 0;
	b->has_rules = is_there && bucket_attrs_find(&attrs, BUCKET_LIFECYCLE, &rules, &rules_len);
	bucket_attrs_free(&attrs);
	return is_there;
}

static void *
look_main(void *arg)
{
	struct store *st = arg;
	struct store_quota_info *list = calloc(BUCKETS_MAX, sizeof *list);
	struct bucket_seen bucket[BUCKETS_MAX] = { 0 };
	int nr = 0, all = list ? store_largest_buckets(st, list, BUCKETS_MAX) : 0;
	struct store_user *u = NULL;

	if (all > 0 && store_user_new(&st, 1, &u) == 0) {
		for (int i = 0; i < all && i < BUCKETS_MAX; i++) {
			memcpy(bucket[nr].name, list[i].name, sizeof bucket[nr].name);
			nr += look_at_bucket(u, &bucket[nr]);
		}
		store_user_free(u);
	}
	free(list);
	pthread_mutex_lock(&seen.lock);
	memcpy(seen.bucket, bucket, sizeof bucket);
	seen.nr = nr;
	pthread_mutex_unlock(&seen.lock);
	atomic_store(&seen.is_over, true);
	return NULL;
}

static void
look_at_buckets(struct daemon *d)
{
	bool is_wanted;

	if (seen.is_running && atomic_load(&seen.is_over)) {
		pthread_join(seen.thread, NULL);
		seen.is_running = false;
	}
	/* The attributes of a bucket on RADOS are on the cluster, which may not answer. */
	if (seen.is_running || atomic_load(&d->phase) != PHASE_SERVING ||
	    clock_ns() - seen.looked_ns < LOOK_EVERY_NS || d->conf->store.backend != BACKEND_DISKS)
		return;
	pthread_mutex_lock(&seen.lock);
	is_wanted = seen.is_wanted;
	seen.is_wanted = false;
	pthread_mutex_unlock(&seen.lock);
	if (!is_wanted)
		return;
	seen.looked_ns = clock_ns();
	atomic_store(&seen.is_over, false);
	seen.is_running = pthread_create(&seen.thread, NULL, look_main, atomic_load(&d->store)) == 0;
}

static const struct bucket_seen *
find_seen(const struct bucket_seen *bucket, int nr, const char *name)
{
	for (int i = 0; i < nr; i++) {
		if (strcmp(bucket[i].name, name) == 0)
			return &bucket[i];
	}
	return NULL;
}

static void
show_limit(FILE *out, const char *name, uint64_t max)
{
	if (max == STORE_UNBOUNDED)
		fprintf(out, ",\"%s\":null", name);
	else
		fprintf(out, ",\"%s\":%llu", name, (unsigned long long)max);
}

void
seen_buckets(void *cookie, FILE *out)
{
	struct store *st = atomic_load(&((struct daemon *)cookie)->store);
	struct store_quota_info list[BUCKETS_MAX];
	struct bucket_seen bucket[BUCKETS_MAX];
	int nr, all = st ? store_largest_buckets(st, list, BUCKETS_MAX) : 0;

	pthread_mutex_lock(&seen.lock);
	seen.is_wanted = true;
	nr = seen.nr;
	memcpy(bucket, seen.bucket, sizeof bucket);
	pthread_mutex_unlock(&seen.lock);
	fprintf(out, "{\"number\":%d,\"largest\":[", all < 0 ? 0 : all);
	for (int i = 0; i < all && i < BUCKETS_MAX; i++) {
		const struct bucket_seen *b = find_seen(bucket, nr, list[i].name);

		fputs(i ? ",\n{\"name\":" : "{\"name\":", out);
		json_string(out, list[i].name);
		fprintf(out, ",\"objects\":%llu,\"bytes\":%llu,\"uploads\":%llu",
			(unsigned long long)list[i].used.objects, (unsigned long long)list[i].used.bytes,
			(unsigned long long)list[i].used.uploads);
		show_limit(out, "max_objects", list[i].max.objects);
		show_limit(out, "max_bytes", list[i].max.bytes);
		if (b)
			fprintf(out, ",\"copies\":%u,\"lifecycle\":%s}", b->copies,
				b->has_rules ? "true" : "false");
		else
			fputs(",\"copies\":null,\"lifecycle\":null}", out);
	}
	fputs("]}", out);
}

/* ---- the main thread ---- */

void
seen_look(struct daemon *d)
{
	look_at_room(d);
	look_at_buckets(d);
}

void
seen_end(void)
{
	if (seen.is_running)
		pthread_join(seen.thread, NULL);
	seen.is_running = false;
}
