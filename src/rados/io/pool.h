/* SPDX-License-Identifier: Apache-2.0 */
/* The pools, the connections to them, and names of objects and attributes in them (docs/rados.md). */
#ifndef GANTRY_RADOS_IO_POOL_H
#define GANTRY_RADOS_IO_POOL_H

#include "base/latency.h"
#include "store/ops.h"

#include <pthread.h>
#include <rados/librados.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CLIENTS_MAX 16
#define OBJECT_STORE "gantry"
#define OBJECT_BUCKETS "buckets"
#define XATTR_FORMAT "format"
#define XATTR_GENERATION "g"
#define XATTR_OWNER "o"
#define XATTR_CRC "c" /* CRC of the list in a map, for readers without the record that also has the CRC */
#define GENERATION_CLOSED ((uint64_t)1 << 63)

enum pool { POOL_META, POOL_DATA, POOL_NR };

/* A connection to the cluster. Several ports share a connection, because each connection has threads of
 * its own. */
struct client {
	rados_t cluster;
	rados_ioctx_t io[POOL_NR];
};

/* Counters and states of a pool, for operators. */
struct pool_stats {
	_Atomic uint64_t read_bytes, read_ops, written_bytes, write_ops, errors, crc_errors;
	struct latency_counts latency[DISK_IO_NR];
	_Atomic uint64_t longest_call_ns; /* longest time for which a call of librados has blocked a core */
	/* time of the last answer that the pool is full; 0: a write has succeeded since */
	_Atomic uint64_t refused_ns;
	_Atomic uint64_t denied_ns; /* time of the last answer that the key of this gateway lacks the right */
	_Atomic bool is_gone;       /* the pool was removed from the cluster */
	/* answers of the monitors, set by a helper thread */
	_Atomic uint64_t size_bytes, free_bytes;
	pthread_mutex_t lock; /* protects the following fields */
	char waits_for[96];   /* placement group for which the oldest operation waits */
	uint64_t waits_ns;    /* start of that operation */
};

#endif
