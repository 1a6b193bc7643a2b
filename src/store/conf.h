/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf - the configuration of a store: of its disks, or of the pools of a RADOS cluster. Part of store.h,
 * which callers include.
 */
#ifndef GANTRY_STORE_CONF_H
#define GANTRY_STORE_CONF_H

#include "set/map/disk_table.h"

#include <stdbool.h>
#include <stdint.h>

struct meter_disk;
struct store_meter; /* store/meter.h */
struct store_ops;   /* functions of a back end (store/ops.h) */
struct store_record;

struct store_disk_conf {
	const char *path;    /* path of a directory or of a block device */
	uint64_t size_bytes; /* size of the disk for --format; 0: the whole block device */
};

/* The identity of a new disk of a set (set/map/disk_table.h). */
struct store_birth {
	/* true: the disk is not formatted; the call only determines the size of the disk, and whether the
	 * disk can be formatted */
	bool is_look;
	uint64_t size_bytes; /* result: size of the disk in bytes */
	int number;
	uint8_t store_uuid[UUID_BYTES];
	struct disk_table table;
	struct meter_disk *meter; /* counts of the progress (store/meter.h); NULL: none */
};

/* A receiver of the failure notification of an engine's disk. failed() runs once, on any thread, without a
 * lock of the engine. */
struct store_watch {
	void (*failed)(struct store_watch *w);
};

/* The configuration of back ends on disks: an engine (one disk), or a set of them (set/set.h). */
struct store_disks_conf {
	const struct store_disk_conf *disk;
	int nr;
	uint64_t index_bytes; /* limit of index memory of all disks together, in bytes */
	/* rate limit of the packing of small objects, in bytes a second; 0: small objects are not packed */
	uint64_t pack_rate;
	/* time in ns for which a start waits until the last writes of a dead process have ended */
	uint64_t lock_wait_ns;
	/* for the set: limit of the bytes a second that move from disk to disk; 0: no limit */
	uint64_t move_rate;
	/* for the set: time in ns after which an away disk is replaced as secondary */
	uint64_t heal_after_ns;
	bool moves_wait; /* for the set: true: interrupted moves are not continued in this start */
	/* in a store of several disks: time limit in ns of a write or flush; the disk fails if the write or
	 * flush has not ended then; 0: no limit */
	uint64_t timeout_ns;
	const struct store_ops *engine; /* for the set: back end of each of the set's disks */
	int engines_max;                /* for the set: largest number of engines */
	int beside; /* for an engine: number of the other engines that have ports on the same
	                            * threads */
	/* for an engine, for --format in a set: identity of the new disk; NULL: an engine without a set */
	struct store_birth *birth;
	/* for an engine, for --fsck: newest placement map of the set; NULL: unknown */
	const struct disk_table *table;
	/* for an engine, for --fsck: list of the damage of all disks (store/damage.h). For the set: list that
	 * gets the sums; NULL: the sums are not needed */
	struct store_damage *damage;
	struct store_meter *meter; /* gets the progress of a start, a check or a format; NULL: not needed */
	/* true: --fsck changes nothing, so a disk that cannot be written is opened for reading */
	bool is_examined;
	/* for an engine in a set: receiver of the engine's failure notification; NULL: none */
	struct store_watch *watch;
	/* for the set: UUIDs of the disks that may be missing at a start */
	const uint8_t (*accept_missing)[UUID_BYTES];
	int accept_missing_nr;
	const uint8_t (*forget)[UUID_BYTES]; /* for the set: UUIDs of the disks that TASK_FORGET removes */
	int forget_nr;
	/* for the set, result of TASK_FORGET: bitmap of the indexes in disk[] of disks that are no members;
	 * NULL: the bitmap is not needed */
	uint64_t *ret_unused;
	/* for the set: record (store/record.h) of the store to which the disks must belong. The last paths in
	 * the record are used for members that disk[] does not name. NULL: there is no record. */
	const struct store_record *record;
	struct store_record *made; /* for the set: record that store_format() fills in for the new store;
	                            * NULL: no record is needed */
};

/* The configuration of the store on RADOS (rados/rados.h). */
struct store_rados_conf {
	const char *conf;                  /* path of the file ceph.conf */
	const char *user;                  /* name of the Ceph user: client.<user> */
	const char *meta_pool, *data_pool; /* names of the pools of the index and of the data of objects */
	const char *ns;                    /* RADOS namespace in both pools; "": the default namespace */
	uint32_t index_shards;             /* number of index shards of a new bucket */
	uint32_t object_bytes;             /* size of a data object in bytes, for --format */
	/* number of librados clients in this process; 0: one client for every 4 ports */
	int clients;
	/* for --fsck: list that gets the sums (store/damage.h); NULL: they are not needed */
	struct store_damage *damage;
	uint64_t dead_after_ns; /* time in ns without a sign of life after which a gateway counts as dead */
	/* limit of the bytes of PUTs that the cluster has not acknowledged; further PUTs are refused; 0: no
	 * limit */
	uint64_t unwritten_max_bytes;
};

/* The configuration of a store. ops determines which member of the union is used. Back ends that do not use
 * disks add members. */
struct store_conf {
	const struct store_ops *ops; /* functions of the back end */
	int ports_max;
	/* number of copies of a bucket that is created without a number; 0: one copy */
	unsigned default_copies;
	union {
		struct store_disks_conf disks;
		struct store_rados_conf rados;
	};
};

#endif
