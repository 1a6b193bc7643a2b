/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op - the largest sizes of names, attributes and transfers, the names and metadata of objects, and the
 * common part of all operations. Part of store.h, which callers include.
 */
#ifndef GANTRY_STORE_OP_H
#define GANTRY_STORE_OP_H

#include "base/mailbox.h"
#include "set/map/disk_table.h"

#include <stdbool.h>
#include <stdint.h>

struct store_port;

#define STORE_KEY_MAX 1024
#define STORE_BUCKET_MAX 63
/* largest size, in bytes, of an inline object in any back end (see store_limits()) */
#define STORE_INLINE_MAX 256
/* largest size, in bytes, of an object's attributes, which are opaque to the store */
#define STORE_ATTRS_MAX (12u << 10)
#define STORE_GRANULE (64u << 10) /* largest granule of any back end, in bytes */
#define STORE_PIECE (1u << 20)    /* largest piece of any back end, in bytes */
/* largest read of any back end, in bytes; possible with a buffer of this size */
#define STORE_READ (4u << 20)
#define STORE_SIZE_UNKNOWN UINT64_MAX
#define STORE_BUCKET_ATTRS_MAX (32u << 10) /* largest size, in bytes, of a bucket's attributes */
#define STORE_PART_ATTRS_MAX 512u          /* largest size, in bytes, of the attributes of an upload's part */
#define STORE_PART_NR_MAX 10000u           /* largest part number; parts are numbered from 1 */
#define STORE_UPLOAD_ID_BYTES 16

/* Sizes, in bytes, of the private memory of a back end in an operation. Each back end asserts that its data
 * fits. */
#define STORE_PRIV_STAT 64
#define STORE_PRIV_OBJ 192
#define STORE_PRIV_READ 496
#define STORE_PRIV_PUT 4608
#define STORE_PRIV_WRITE 512
#define STORE_PRIV_DEL 2048
#define STORE_PRIV_UPLOAD 2560
#define STORE_PRIV_PARTS 256
#define STORE_PRIV_BUCKET_SET 2560
#define STORE_PRIV_LIST 1664

/* ---- names and metadata ---- */

/* A bucket name and an object key as bytes, not terminated. The caller keeps the bytes until the call
 * returns, and may free them before the operation ends. */
struct store_key {
	const char *bucket, *key;
	uint16_t bucket_len, key_len;
	/* number of copies of the keys of the bucket, set by the set for an engine; 0 and 1: one copy; 2: two
	 * copies */
	uint8_t copies;
};

static inline bool
store_has_two(const struct store_key *k)
{
	return k->copies > 1;
}

/* Returns the partition of a key (set/map/disk_table.h). */
static inline unsigned
store_place(const struct store_key *k)
{
	return table_place(table_slot(k->bucket, k->bucket_len, k->key, k->key_len), store_has_two(k));
}

/* value of parts in struct store_etag: the ETag is an MD5 with the tail "-r". 0: a plain MD5; other values:
 * an MD5 with the tail "-<parts>". */
#define STORE_ETAG_RDMA UINT32_MAX
struct store_etag {
	uint8_t sum[16];
	uint32_t parts;
};

/* The metadata of an object, passed to a commit and returned by an open. */
struct store_meta {
	struct store_etag etag;
	uint64_t mtime_ns; /* time of modification in ns since 1970; 0 at a commit: the current time */
	/* attributes, opaque to the store. At a commit the caller keeps the attributes until the end of the
	 * operation; after an open they are valid until store_close() */
	const void *attrs;
	uint32_t attrs_len;
	/* time from which the object is absent for readers, in ns since 1970 by age_clock_ns() (base/age_clock.h);
	 * 0: none. Its usage counts until it is removed (PRE_EXPIRED) or replaced. */
	uint64_t expires_ns;
};

/* The kind of a precondition. The condition is validated when the change is made: all changes of a key have
 * one order, and each change sees the previous one. The bucket must exist in every case. */
enum store_pre_kind {
	PRE_NONE,
	PRE_ABSENT,
	PRE_MATCH_ANY,
	PRE_MATCH,
	PRE_NONE_MATCH,
	PRE_VERSION,
	PRE_EXPIRED, /* of a removal: the object has expired at expired_ns (-ENOENT: no object, -ESTALE) */
};
#define STORE_PRE_ETAGS 8
struct store_pre {
	enum store_pre_kind kind;
	struct store_etag etags[STORE_PRE_ETAGS];
	uint8_t etag_nr;
	/* true: an existing object is never replaced: the commit ends with -EPERM, or with the error of
	 * `kind` if the condition of `kind` does not hold; allowed with any kind */
	bool keep;
	uint64_t version;    /* required version, for PRE_VERSION (-ENOENT, -ESTALE) */
	uint64_t expired_ns; /* for PRE_EXPIRED: time by age_clock_ns() */
};

/* ---- operations: embedded by the caller ---- */

struct store_op {
	struct msg msg; /* private to the store */
	void (*done)(struct store_op *op);
	int result;
	struct store_port *port; /* port of the back end for the operation */
};

/* The usage of a bucket, or of the buckets of a pattern: number of objects, bytes of objects and of the parts
 * of uploads in progress, number of uploads. In a quota: the limits. */
struct store_use {
	uint64_t objects, bytes, uploads;
};
#define STORE_UNBOUNDED UINT64_MAX /* value of a member that has no limit */

/* A look-up of a bucket, of its attributes or of an upload, with the result. */
struct store_stat {
	struct store_op op; /* operation of the look-up; result: 0 or -errno */
	/* The fields from here on are valid after success. */
	uint64_t ctime_ns;  /* time of creation, in ns since 1970 */
	uint64_t version;   /* version of a bucket's attributes; 0: the bucket has no attributes */
	uint32_t attrs_len; /* length of all attributes in bytes, even if only a part was copied */
	unsigned copies;    /* store_bucket_head(): number of copies of each key of the bucket */
	bool has_quota;     /* true: the usage and the limits of the bucket are known */
	struct store_use used,
		/* limits of the bucket; also set by store_bucket_get_attrs() of an engine, from the bucket's
		 * record */
		max;
	_Alignas(8) unsigned char priv[STORE_PRIV_STAT];
};

#endif
