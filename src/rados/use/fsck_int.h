/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to --fsck: the state of a check, and the calls between fsck.c and fsck_index.c. */
#ifndef GANTRY_RADOS_USE_FSCK_INT_H
#define GANTRY_RADOS_USE_FSCK_INT_H

#include "model/quota.h"
#include "rados/io/gateway.h"

struct damage_sums;
struct meter_disk;
struct rstore;

/* An id of data objects, or of a map, that a row names. */
struct named {
	struct rid id;
	uint32_t nr, found; /* number of its objects; number of those that were found */
	bool is_map;
};

struct checking {
	const struct rstore *st;
	bool repair;
	void (*say)(void *cookie, const char *line);
	void *cookie;
	struct named *named;
	size_t nr, cap;
	struct gateway_table gateways; /* running and dead gateways, when the check began */
	/* damage: number of errors that are left; would: those of them that a repair removes */
	uint64_t damage, would, removed;
	struct damage_sums *sums; /* NULL: no sums */
	struct meter_disk *meter; /* counts of the progress; NULL: none */
	/* names of the bucket and the shard that are being read */
	const char *bucket, *shard;
	/* The row of a bucket is damaged, or a shard is missing: objects without an owner may have their names there, and
	 * are left out */
	bool is_blind;
	struct quota_change there; /* usage of the shard, as counted */
};

/* ---- fsck_index.c ---- */

/* Reports a line to the caller of the check. */
void fsck_tell(struct checking *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Counts damage that a repair can remove, or has removed. */
void fsck_count_damage(struct checking *c, bool is_removed);
/* Reads the shards of a bucket, by its row in the table of buckets: adds the ids that they name to `named`,
 * and checks the counters. Returns 0 or -errno. For each_row(); cookie: the check. */
int fsck_on_bucket(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len);

#endif
