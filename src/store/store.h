/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store - atomic and durable objects. Callers of this header see only handles: no disk numbers, locations on
 * a disk, descriptors or index iterators. docs/engine.md section 1 is the reference.
 *
 * Threads. A *port* is the access of one thread (a core, or a test) to the store. store_attach() makes a port
 * with the thread's ring and mailbox. Every call names a port and is made on its thread. done() always runs
 * on this thread, through the mailbox if another thread finished the work.
 *
 * Starting. A function that starts an operation returns < 0: the operation was not started, and done() does
 * not run; 0: the operation was started, and done() runs later, never before the function returns; > 0: the
 * operation is finished, op->result has the result, and done() does not run.
 *
 * Results are -errno:
 *   -ENOENT        no such object
 *   -ENXIO         no such bucket
 *   -EEXIST        exists (PRE_ABSENT, bucket create)
 *   -ESTALE        PRE_MATCH failed
 *   -EPERM         exists, and the writer asked to keep the existing object
 *   -ENOTEMPTY     bucket not empty
 *   -EILSEQ        the content differs from expect_crc64
 *   -ENOSPC        no room for data or index (507)
 *   -EDQUOT        a limit of the bucket would be exceeded (403)
 *   -EMLINK        a pattern has as many buckets as it may have (400)
 *   -EDOM          more copies are requested than the store has disks (400)
 *   -EAGAIN        not possible now, perhaps later (503)
 *   -EXDEV         the key has moved to another disk during a commit, and the written data could not be
 *                  copied: no change was made (503)
 *   -EROFS         the disk has failed, and is read-only (503)
 *   -ENODEV        the disk of the key is missing (503)
 *   -ESHUTDOWN     another process has taken over: this process makes no more changes (503)
 *   -EOPNOTSUPP    not supported by this back end (501)
 *   -EBADMSG       stored bytes do not match their CRC
 *   -EIO           an error of the disk
 *   -ECANCELED     outcome unknown: the write may or may not survive (503)
 *   -ENAMETOOLONG, -EINVAL  an invalid argument
 */
#ifndef GANTRY_STORE_STORE_H
#define GANTRY_STORE_STORE_H

#include "base/buf.h"
#include "base/latency.h"
#include "base/mailbox.h"
#include "set/map/disk_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quota_book;
struct ring;
struct store_record;
struct timers;
struct store;
struct store_ops; /* functions of a back end (store/ops.h) */
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

/* ---- life ---- */

struct store_disk_conf {
	const char *path;    /* path of a directory or of a block device */
	uint64_t size_bytes; /* size of the disk for --format; 0: the whole block device */
};

/* The identity of a disk in a new store of several disks (set/map/disk_table.h). */
struct store_birth {
	/* true: the disk is not formatted; the call only determines the size of the disk, and whether the
	 * disk can be formatted */
	bool is_look;
	uint64_t size_bytes; /* result: size of the disk in bytes */
	int number;
	uint8_t store_uuid[UUID_BYTES];
	struct disk_table table;
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
	/* in a store of several disks: time in ns after which a write or flush that has not ended makes its
	 * disk fail; 0: no limit */
	uint64_t timeout_ns;
	const struct store_ops *engine; /* for the set: back end of each of the set's disks */
	int engines_max;                /* for the set: largest number of engines */
	struct quota_book *quotas; /* for an engine: quota ledger of the set; NULL: the engine makes one */
	int counter;               /* index of the engine's counter in quotas */
	int beside;                /* for an engine: number of the other engines that have ports on the same
	                            * threads */
	/* for an engine, for --format in a set: identity of the new disk; NULL: a store of one disk */
	struct store_birth *birth;
	/* for an engine, for --fsck: newest placement map of the set; NULL: unknown */
	const struct disk_table *table;
	/* for an engine, for --fsck: list of the damage of all disks (store/damage.h). For the set: list that
	 * gets the sums; NULL: they are not needed */
	struct store_damage *damage;
	/* true: --fsck changes nothing, so a disk that cannot be written is opened for reading */
	bool is_examined;
	/* for an engine in a set: receiver of its failure notification; NULL: none */
	struct store_watch *watch;
	/* for the set: UUIDs of the disks that may be missing at a start */
	const uint8_t (*accept_missing)[UUID_BYTES];
	int accept_missing_nr;
	const uint8_t (*forget)[UUID_BYTES]; /* for the set: UUIDs of the disks that store_forget() removes */
	int forget_nr;
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

/* The limits of a back end. Each limit is at most the STORE_ constant named beside it. Buffers are sized by
 * these constants, so they fit every back end. */
struct store_limits {
	uint32_t piece_bytes; /* largest size of one write, in bytes; at most STORE_PIECE */
	uint32_t read_bytes;  /* largest size of one read, in bytes; at least a piece, at most STORE_READ */
	/* alignment of reads, and of all pieces except the last, in bytes; at most STORE_GRANULE */
	uint32_t granule_bytes;
	/* largest size of an object that is committed as inline_data, in bytes; at most STORE_INLINE_MAX */
	uint32_t inline_bytes;
	/* true: a request that ends gets its buffers back even while the store waits: reads and writes can be
	 * cancelled, and a started commit keeps no buffer of the request, only the attributes */
	bool lets_go;
};

/* Checks the configuration without reading a disk. Returns 0, or -EINVAL if the configuration is valid for no
 * store, with the reason in err. */
int store_check(const struct store_conf *conf, char *err, size_t err_len);

/* Size, in bytes, of the buffer for the reason of a failed start. The reason may name several disks. */
#define STORE_WHY_BYTES 2048

/* Makes a store on empty disks. force: existing data is lost. Blocking. Returns 0, -EALREADY (a store
 * exists), -EEXIST (other data exists) or -errno; the reason is in err. */
int store_format(const struct store_conf *conf, bool force, char *err, size_t err_len);

/*
 * Upgrades a stopped store to the format that this version writes (--upgrade); a start does not upgrade.
 * Blocking; the call can be repeated after an interruption. Returns 0, with the actions in said, if the store
 * now has the format of this version; or -errno, with the reason in said.
 */
int store_upgrade(const struct store_conf *conf, char *said, size_t said_len);

/* Results of store_look() for a store that could not be examined. err has the reason, for one of the
 * disks. */
#define STORE_LOOK_IN_USE 1 /* a process has locked a disk */
#define STORE_LOOK_DENIED 2 /* this user may not open a disk */

/*
 * Checks whether a start would accept the disks, as far as possible without recovery: are the disks members
 * of the store, and are enough members present? Writes nothing. Returns 0 if the start would accept the
 * disks, or if the store is not formatted yet (as described in err); STORE_LOOK_IN_USE or STORE_LOOK_DENIED
 * if the answer is unknown; or the -errno of store_start(), with the reason in err. With disks to forget
 * (disks.forget) the check is for store_forget(): 0 means that store_forget() would succeed, and err has a
 * line about each of these disks, also about disks in use.
 */
int store_look(const struct store_conf *conf, char *err, size_t err_len);

/*
 * Locks, recovers and prepares the store for service. Blocking; uses a ring of its own during that time.
 * Returns 0, or -errno with the reason in err: -ENOTRECOVERABLE damaged or foreign (exit 74), -EINVAL size
 * differs from the superblock, or store_upgrade() is needed (exit 78), -EBUSY still locked.
 */
int store_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len);

/*
 * Removes missing disks from a stopped store, for good (--forget): data that only these disks had is lost,
 * and the disks are refused if they return. All other disks must be present. Blocking. said contains the
 * actions, or the reason of the failure. Returns 0 or -errno.
 */
int store_forget(const struct store_conf *conf, char *said, size_t said_len);

enum fsck_mode {
	FSCK_LOOK,    /* reads all data, and changes nothing */
	FSCK_REPAIR,  /* removes damaged records, creates lost files again, and reads all data */
	FSCK_PREVIEW, /* reports the records that FSCK_REPAIR would remove, and changes nothing; does not read
	               * undamaged objects */
	/* for an engine: marks, in the list of damage (store/damage.h), the objects of which this disk has a
	 * whole copy; reports and changes nothing */
	FSCK_FIND,
};

/*
 * Checks a store that does not run (--fsck), and reports the damage through say(), a line a call. Blocking.
 *   0                 clean; FSCK_PREVIEW: a repair would drop nothing
 *   1                 repaired; FSCK_PREVIEW: a repair would drop what was reported
 *   -ENOTRECOVERABLE  damage remains
 *   -EOPNOTSUPP       this back end has no check, which is also passed to say()
 *   other -errno      the store could not be read
 */
int store_fsck(const struct store_conf *conf, enum fsck_mode mode,
	       void (*say)(void *cookie, const char *line), void *cookie);

/* Stops a store after every port was detached. The next start then needs no recovery of acknowledged changes.
 * NULL is allowed. Blocking. */
void store_stop(struct store *st);

/*
 * Makes a port, on the thread that will use it. ring, mb and timers belong to this thread, and the caller
 * keeps them until the port is detached. A back end may ignore ring and timers.
 *   0
 *   -ENOMEM   no memory
 *   -EUSERS   ports_max are attached
 */
int store_attach(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
		 struct store_port **ret_port);
/* Detaches a port. Returns true if the port was freed. Returns false if operations of the port are in flight:
 * the caller runs its event loop and calls again. */
bool store_detach(struct store_port *p);

/* Declares that this thread holds no pointer into the store. Called once per turn of the event loop. */
void store_quiesce(struct store_port *p);
/* Declares that the thread is about to wait. Until store_wake() the thread must not access the store. */
void store_sleep(struct store_port *p);
/* Declares that the thread has stopped waiting. */
void store_wake(struct store_port *p);

/*
 * A lender of additional buffers, for a back end that reads data before the request asks for the data
 * (store_open_to_read()). Both functions are called on the port's thread: take() during the open, give() from
 * the mailbox and never during a call of store.h.
 */
struct store_spares {
	/* Returns an idle buffer of a size class (BUF_RUN: a run); NULL: no buffer is idle. */
	struct buf *(*take)(struct store_spares *s, enum buf_class cls);
	/* Takes back a buffer that take() returned, or a buffer of the same class that a reader gave in
	 * exchange for it (store_read.instead). */
	void (*give)(struct store_spares *s, struct buf *b);
};
/* Sets the lender of buffers. The caller keeps the lender until the port is detached. Without a lender no
 * buffers are lent. */
void store_set_spares(struct store_port *p, struct store_spares *s);

/* Returns the limits of the port's back end, which are constant while the port is attached. Any thread. */
const struct store_limits *store_limits(const struct store_port *p);

/* Returns the shard of a key, for store_share(). */
uint32_t store_shard(const char *key, size_t len);
/* Returns true if the background work for a shard (scrub, lifecycle walk) belongs to this process. A store
 * that one process uses, such as a store on disks, has all shards. */
bool store_share(struct store_port *p, uint32_t shard);

/* ---- names and metadata ---- */

struct store_key;
/* Returns the lane of a key: the number, below 64, of the disk that handles the key. A caller uses lanes to
 * keep requests for one disk that hangs from using all resources. Returns -1 if the store has one disk, or if
 * the disk is unknown. changes: the caller intends to change the key; the result is then -EROFS if the change
 * would be refused because a disk has failed, so that the caller does not wait for resources first. */
int store_lane(struct store_port *p, const struct store_key *k, bool changes);

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
};

/* The kind of a precondition. The condition is validated when the change is made: all changes of a key have
 * one order, and each change sees the previous one. The bucket must exist in every case. */
enum store_pre_kind { PRE_NONE, PRE_ABSENT, PRE_MATCH_ANY, PRE_MATCH, PRE_NONE_MATCH, PRE_VERSION };
#define STORE_PRE_ETAGS 8
struct store_pre {
	enum store_pre_kind kind;
	struct store_etag etags[STORE_PRE_ETAGS];
	uint8_t etag_nr;
	/* true: an existing object is never replaced: the commit ends with -EPERM, or with the error of
	 * `kind` if the condition of `kind` does not hold; allowed with any kind */
	bool keep;
	uint64_t version; /* required version, for PRE_VERSION (-ENOENT, -ESTALE) */
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

/* The state of the quota of a bucket or of a pattern; see store_list_quotas(). */
struct store_quota_info {
	char name[STORE_BUCKET_MAX + 2]; /* name of a bucket, or a pattern with its '*' */
	bool is_pattern;
	bool has_bound;
	struct store_use used, max;
	/* of a pattern: number of the buckets that match the pattern, and the limit of this number;
	 * STORE_UNBOUNDED: no limit */
	uint64_t buckets, max_buckets;
	/* bytes of PUTs that are not committed yet, and of removed objects that are being read */
	uint64_t in_progress_bytes;
	uint64_t refused; /* refused changes since the start; counted while there is a limit */
};

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

/* An opened and pinned version of an object. Its bytes stay until store_close(). */
struct store_obj {
	struct store_op op;
	/* size in bytes; this field and the following ones are valid after success */
	uint64_t size_bytes;
	uint64_t version; /* version of the object; every commit to the store gets a higher version */
	uint64_t crc64;   /* CRC64-NVME of the whole object */
	struct store_meta meta;
	bool is_open;
	bool has_second; /* true: store_open_second() may find a secondary copy */
	/* true: a read that finds damage waits for the repair of the damage, if a repair is possible. Set by
	 * the caller after the open. */
	bool mends_first;
	/* number of parts of the upload that made the object; 0: one PUT wrote the object */
	uint32_t part_nr;
	_Alignas(8) unsigned char priv[STORE_PRIV_OBJ]; /* private to the store */
};

/* Looks up and pins an object. Usually completes before it returns. */
int store_open(struct store_port *p, const struct store_key *k, struct store_obj *obj);
/* Opens the secondary copy of a key with two copies, for a scrub: other readers use this copy only if the
 * primary is damaged. Damage that the read finds is repaired after the read, one object at a time. -ENODATA:
 * there is no secondary copy, or it is being made. */
int store_open_second(struct store_port *p, const struct store_key *k, struct store_obj *obj);
/*
 * Opens a part of an upload in progress, to be read like an object. ETag, time and attributes are those of
 * the part. is_second: the secondary copy of the part is opened, as by store_open_second(). -ENOENT: the
 * upload or the part does not exist; -ENXIO: no such bucket; -EOPNOTSUPP: this back end cannot open parts.
 */
int store_open_part(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		    uint32_t number, bool is_second, struct store_obj *obj);
/* Opens an object as store_open() does, for a caller that reads immediately afterwards. A back end can then
 * combine the open and the first read, if they are separate round trips otherwise. want: number of bytes that
 * the caller reads from the beginning, or fewer if the object is smaller; 0: the whole object if it has one
 * granule, nothing otherwise. */
int store_open_to_read(struct store_port *p, const struct store_key *k, uint64_t want, struct store_obj *obj);
/* Closes an object that has no read in flight. NULL, and an object that was never open, are allowed. */
void store_close(struct store_port *p, struct store_obj *obj);

struct store_read {
	struct store_op op; /* operation of the read; result: number of bytes read, or -errno */
	/* offset in buf->mem of the first byte, valid after success; less than a page, and 0 except for small
	 * objects */
	uint32_t lead;
	/* Buffer with the bytes, after success, if the object was opened to be read with lent buffers. The
	 * reader then owns `instead`, and the store owns the buffer that was passed to store_read(); both are
	 * of one class and pool. NULL: the bytes are in the buffer that was passed to store_read(). */
	struct buf *instead;
	_Alignas(8) unsigned char priv[STORE_PRIV_READ];
};

/*
 * Plans the first read of a range of `want` bytes from off on (off + want <= size_bytes, want > 0) into a
 * buffer of cap bytes (a multiple of STORE_GRANULE). Returns the length of the read. The read begins
 * *ret_skew (< STORE_GRANULE) bytes before off, because checksums cover whole granules. After these bytes
 * come at least 1 byte and possibly more than `want` bytes from off on. In an object made of parts the
 * granules begin at each part, so reads may begin and end at any offset.
 */
uint32_t store_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap,
			 uint32_t *ret_skew);

/*
 * Reads [off, off + len) of obj to buf->mem + rd->lead. The CRCs of these bytes are verified before done().
 * The range is a result of store_read_plan(). (If part_nr is 0, another range is also valid: off is a
 * multiple of STORE_GRANULE, and the range ends at such a multiple or at the end of the object.) len <=
 * buf->cap_bytes; the slack after the buffer is used too. Reads of one object may overlap. -EINVAL: the range
 * is not valid.
 */
int store_read(struct store_port *p, struct store_obj *obj, struct store_read *rd, struct buf *buf,
	       uint64_t off, uint32_t len);
/*
 * Cancels a read that was started and has not completed, if the back end can. Returns true: the read has
 * ended, done() does not run, and the buffer is not written any longer. Returns false: no change, and the
 * store owns the buffer until done().
 */
bool store_read_cancel(struct store_port *p, struct store_read *rd);

/* Sets the owner ("asker") of all operations that begin after this call, and of the operations that they
 * cause. NULL: the owner never aborts look-ups. */
void store_asker(struct store_port *p, const void *asker);
/* Aborts look-ups of this asker that have taken longer than older_ns, as far as the back end can. done() of
 * an aborted look-up runs soon, with -EAGAIN. For requests that cannot wait any longer. */
void store_give_up(struct store_port *p, const void *asker, uint64_t older_ns);

/*
 * A PUT. The caller calls store_put_init(), then store_put_write() for each piece in order (several may be in
 * flight), and, after every write has completed, store_put_commit() or store_put_abort(). The last piece may
 * be passed to the commit; one flush then covers data and log.
 */
struct store_put {
	struct store_op op; /* operation of the commit; result 0: the object is durable and visible */
	struct store_carrier *carrier; /* private to the store (store/ops.h) */
	/* number of bytes in all pieces passed to store_put_write() so far, and the CRC of these bytes */
	uint64_t size_bytes;
	uint64_t crc64;
	/* version of the object, valid after success */
	uint64_t version;
	bool is_started;
	/* private to the store; the granule CRCs of a chunk are in a side buffer of the port */
	_Alignas(8) unsigned char priv[STORE_PRIV_PUT];
};

/*
 * Begins a PUT. size_bytes: size of the object, or STORE_SIZE_UNKNOWN.
 *   0
 *   -ENOSPC        no room for size_bytes
 *   -EROFS         the disk failed
 *   -EAGAIN        not possible now
 *   -ENXIO         no such bucket: an early answer, which the commit checks again
 *   -ENAMETOOLONG  bucket or key
 */
int store_put_init(struct store_port *p, struct store_put *put, const struct store_key *k,
		   uint64_t size_bytes);

struct store_write {
	struct store_op op; /* operation of the write; result: 0 (on the disk, not yet flushed) or -errno */
	_Alignas(8) unsigned char priv[STORE_PRIV_WRITE];
};

/* Writes the next len bytes of the object, from buf->mem: at most a piece, and a multiple of the granule
 * except for the last piece (store_limits()). The store owns the buffer until done(). After the data the
 * store may write padding and a CRC block into the slack of the buffer. May wait for space. */
int store_put_write(struct store_port *p, struct store_put *put, struct store_write *w, struct buf *buf,
		    uint32_t len, bool last);

struct store_commit {
	struct store_meta meta;
	struct store_pre pre;
	/* last: buffer with the last piece; NULL: all pieces were passed to store_put_write(). inline_data:
	 * all bytes of an object of at most STORE_INLINE_MAX bytes that has no pieces; copied during the
	 * call. */
	struct buf *last;
	uint32_t last_len;
	const void *inline_data;
	uint32_t inline_len;
	/* true: the commit is refused with -EILSEQ before the hand-over if the CRC64-NVME of the content
	 * differs from expect_crc64. */
	bool have_expect_crc64;
	uint64_t expect_crc64;
	/* Variable of the caller in which the store notes the time of clock_ns() of its last progress, while
	 * it writes the bytes again to another disk. Kept by the caller until the end of the commit. NULL:
	 * the time is not needed. */
	uint64_t *progress_ns;
};

/* Hands the PUT over to the store. Returns 0: the PUT can no longer be cancelled, and put->op.done() follows;
 * -errno: the PUT was not handed over, and the caller aborts it. *c is copied, but not the memory to which
 * its pointers lead (attrs, last, inline_data). */
int store_put_commit(struct store_port *p, struct store_put *put, const struct store_commit *c);
/* Abandons a write that has not completed. Returns true if the write was abandoned: done() does not run, the
 * caller owns the buffer, and the only further call for the PUT is store_put_abort(). Returns false if
 * nothing has changed. */
bool store_write_cancel(struct store_port *p, struct store_write *w);
/* Aborts a PUT and frees its space. Every write of the PUT has ended or was cancelled. NULL, a PUT that was
 * never started, and a call after the end of the commit are allowed. */
void store_put_abort(struct store_port *p, struct store_put *put);

struct store_del {
	/* operation of the removal; result: 1: the object was removed; 0: the object did not exist; or
	 * -errno */
	struct store_op op;
	_Alignas(8) unsigned char priv[STORE_PRIV_DEL];
};
int store_delete(struct store_port *p, const struct store_key *k, const struct store_pre *pre,
		 struct store_del *del);

/*
 * Replaces an object's attributes; bytes, ETag and mtime do not change, the version increases. version: the
 * version that the object must have; 0: any version. The caller keeps attrs until the end. Objects opened
 * earlier keep their attributes.
 *   0         durable
 *   -ENOENT   no such object (-ENXIO: nor bucket)
 *   -ESTALE   the object has another version
 *   -ENOSPC   no room for the attributes
 */
int store_set_attrs(struct store_port *p, const struct store_key *k, uint64_t version, const void *attrs,
		    uint32_t attrs_len, struct store_del *op);

/* ---- multipart uploads ---- */

/*
 * A multipart upload. An upload is created for a key, and gets parts. An upload ends by completion (the parts
 * become an object, and the bytes stay in place), by abort, or with the removal of the bucket. The id of an
 * upload is never reused. The end of the upload frees the parts that are not in the completed object; a
 * replaced part is freed, too. Uploads and parts take index memory (-ENOSPC).
 */

struct store_upload {
	/* operation on the upload; result: 0; -ENXIO no such bucket; for an abort -ENOENT no such upload */
	struct store_op op;
	uint8_t id[STORE_UPLOAD_ID_BYTES]; /* id of the upload, valid after a successful creation */
	_Alignas(8) unsigned char priv[STORE_PRIV_UPLOAD];
};

/* Begins an upload. attrs: at most STORE_ATTRS_MAX bytes, which the caller keeps until the end.
 * store_upload_stat() returns these attributes, from which the caller makes the attributes of the object. */
int store_upload_create(struct store_port *p, const struct store_key *k, const void *attrs,
			uint32_t attrs_len, struct store_upload *u);
/* Ends an upload without making an object. After the answer no part of the upload can be committed. */
int store_upload_abort(struct store_port *p, const struct store_key *k,
		       const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_upload *u);
/* Looks up an upload, and copies up to cap bytes of the upload's attributes to attrs, which the caller keeps
 * until the end. result: 0; -ENOENT: the key has no such upload; -ENXIO: no such bucket. */
int store_upload_stat(struct store_port *p, const struct store_key *k,
		      const uint8_t id[STORE_UPLOAD_ID_BYTES], void *attrs, uint32_t cap,
		      struct store_stat *st);

/*
 * Begins the PUT of a part, in place of store_put_init(); then the PUT continues like others, with attributes
 * up to STORE_PART_ATTRS_MAX and without a precondition. A part can have any length, also zero. A part with
 * the same number is replaced; if several PUTs write the same part, the last commit is valid. Additional
 * errors: -ENOENT: no such upload (the commit checks this again); -EINVAL: the number is not 1 to
 * STORE_PART_NR_MAX.
 */
int store_put_init_part(struct store_port *p, struct store_put *put, const struct store_key *k,
			const uint8_t id[STORE_UPLOAD_ID_BYTES], uint32_t number, uint64_t size_bytes);

/* A part of an upload, or of the object that the upload became. */
struct store_part {
	uint32_t number;
	uint64_t size_bytes, crc64, mtime_ns, version;
	uint64_t off_bytes; /* offset of the part's first byte in the object, in bytes */
	struct store_etag etag;
	/* attributes of the part, valid during the callback; from store_obj_part(): until store_close() */
	const void *attrs;
	uint32_t attrs_len;
};

/* An entry of the ordered list of parts for a completion. */
struct store_part_ref {
	uint32_t number;
	struct store_etag etag;
	uint64_t version; /* required version of the part; 0: every version with this ETag is accepted */
};

/*
 * A completion. result: 0 durable and visible; -ENOENT no such upload (or an error of PRE_MATCH:
 * store_upload_stat() shows the cause), -ENXIO; the errors of preconditions; and errors of the list:
 *   -EINVAL    empty, not in ascending order, or a number out of range: parts[bad]   (InvalidPartOrder)
 *   -EBADR     parts[bad] was never committed, or has another ETag or version        (InvalidPart)
 *   -EMSGSIZE  parts[bad] is not the last one and smaller than part_min_bytes        (EntityTooSmall)
 *   -ERANGE    the sizes do not add up to expect_size_bytes
 *   -EILSEQ    the content's CRC is not expect_crc64                                 (BadDigest)
 * The upload continues after each of these errors. If a successful completion is repeated with the same list
 * while its object exists, the result is 0 again, without a change, and was_done is set.
 */
struct store_complete {
	struct store_op op;
	/* list of parts. The caller keeps the list, and all memory to which this struct points, until the
	 * end */
	const struct store_part_ref *parts;
	uint32_t part_nr;
	struct store_meta meta; /* metadata of the new object */
	struct store_pre pre;
	uint64_t part_min_bytes; /* smallest size of a part except the last, in bytes; 0: no limit */
	bool have_expect_crc64, have_expect_size;
	uint64_t expect_crc64, expect_size_bytes;
	/* version, size in bytes, CRC and time of the object; valid after success */
	uint64_t version, size_bytes, crc64, mtime_ns;
	struct store_etag etag; /* ETag of the object, valid after success, also if was_done is set */
	bool was_done;
	uint32_t bad; /* index in `parts` of the part that caused the error */
};
int store_upload_complete(struct store_port *p, const struct store_key *k,
			  const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_complete *c);

/* A page of the list of an upload's parts, ordered by number. after: the page begins with the first part
 * whose number is higher; 0: with the first part of the upload. */
struct store_part_list {
	/* operation of the list; result: number of parts listed, -ENOENT (no such upload) or -ENXIO */
	struct store_op op;
	uint32_t after, max;
	/* Receives a part, on the port's thread. Returns false to end the page. */
	bool (*part)(struct store_part_list *pl, const struct store_part *part);
	bool more;
	_Alignas(8) unsigned char priv[STORE_PRIV_PARTS];
};
int store_list_parts(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		     struct store_part_list *pl);

/* Returns the part with this number of an open object, without waiting. Returns 0 or -ENOENT. */
int store_obj_part(struct store_obj *obj, uint32_t number, struct store_part *ret_part);
/* Returns the index-th part of an open object in order, 0 to part_nr - 1, without waiting. Returns 0 or
 * -ENOENT. */
int store_obj_part_at(struct store_obj *obj, uint32_t index, struct store_part *ret_part);

/* ---- buckets ---- */

#define STORE_COPIES_MAX 2u
/*
 * Makes a bucket with a number of copies of each key: 1 or STORE_COPIES_MAX; 0: the store's default_copies
 * for a new bucket, and the current number for an existing bucket. An existing bucket with another number of
 * copies is changed if it has neither objects nor uploads in progress; time, attributes and quota do not
 * change.
 *   0            made or changed
 *   -EEXIST      the bucket exists with this number of copies
 *   -ENOTEMPTY   the bucket exists with another number of copies, and is not empty
 *   -EDOM        the store has too few disks
 *   -EOPNOTSUPP  this back end does not support copies
 *   -EROFS, -ENODEV   (for a change) not all disks are in service
 */
int store_bucket_create(struct store_port *p, const char *name, size_t len, unsigned copies,
			struct store_del *op);

/* The specification of a bucket to be made. */
struct store_bucket_spec {
	unsigned copies;
	const void *attrs;  /* attributes, see store_bucket_set_attrs(); kept by the caller until the end */
	uint32_t attrs_len; /* length of attrs in bytes, at most STORE_BUCKET_ATTRS_MAX; 0: no attributes */
};
/* Makes a bucket like store_bucket_create(), and sets its attributes in the same change: after a crash the
 * bucket has its attributes or does not exist. An existing bucket keeps its attributes. Additional error:
 * -EINVAL: too many bytes of attributes. */
int store_bucket_create_as(struct store_port *p, const char *name, size_t len,
			   const struct store_bucket_spec *spec, struct store_del *op);
/* Removes a bucket. result: 0; -ENXIO: no such bucket; -ENOTEMPTY: the bucket has objects. Uploads in
 * progress do not prevent the removal, and end with the bucket. */
int store_bucket_delete(struct store_port *p, const char *name, size_t len, struct store_del *op);
/* Looks up a bucket. result: 0; -ENXIO: no such bucket. */
int store_bucket_head(struct store_port *p, const char *name, size_t len, struct store_stat *st);
/* Returns true if the bucket existed within the last second. This is sufficient for a request that begins to
 * write into the bucket, because the commit checks again. Returns false if unknown: the caller calls
 * store_bucket_head(). */
bool store_bucket_was_there(struct store_port *p, const char *name, size_t len);

/*
 * Value of `version` that matches every version of a bucket's attributes. The attributes of a bucket are
 * opaque to the store, and are removed with the bucket. store_bucket_set_attrs() replaces all attributes of
 * the bucket; attrs_len 0: the bucket has none afterwards. version: the version that the attributes must
 * have, from store_bucket_get_attrs(); 0: the bucket must have no attributes. The caller keeps attrs until
 * the end. result: 0; -ENXIO: no such bucket; -ESTALE: the attributes have another version; -ENOSPC; or
 * another -errno.
 */
#define STORE_VERSION_ANY UINT64_MAX
struct store_bucket_set {
	struct store_op op;
	_Alignas(8) unsigned char priv[STORE_PRIV_BUCKET_SET];
};
int store_bucket_set_attrs(struct store_port *p, const char *name, size_t len, uint64_t version,
			   const void *attrs, uint32_t attrs_len, struct store_bucket_set *op);
/* Copies up to cap bytes of the bucket's attributes to attrs, which the caller keeps until the end. result:
 * 0; -ENXIO: no such bucket. */
int store_bucket_get_attrs(struct store_port *p, const char *name, size_t len, void *attrs, uint32_t cap,
			   struct store_stat *st);

/* ---- quotas ---- */

/*
 * Limits on the contents of buckets. A limit of one bucket is stored with the bucket and removed with it. A
 * limit of a pattern applies to the buckets whose names match the pattern; the caller sets these limits again
 * after each start. All limits of a bucket apply to all writers. A change that would exceed a limit ends with
 * -EDQUOT. Changes are validated in their order, each against the usage that includes the earlier changes.
 * Only growth is validated: only the difference of the sizes counts if an object is replaced, a removal
 * always succeeds, and a limit below the usage removes nothing.
 *
 *   objects   a new key; for a pattern also each of its buckets
 *   bytes     bytes of objects as read; of parts from their commit until the end of the upload, 16 KiB each at
 *             least: a completion does not count bytes twice; for a pattern also the attributes of its buckets
 *   uploads   uploads in progress
 *   buckets   buckets of a pattern; the creation of one more ends with -EMLINK
 *
 * A PUT reserves its bytes when it begins; a PUT of unknown size reserves the bytes received so far. The
 * growth by all reservations fits within the limit, and the sum of all their bytes does not exceed the limit,
 * except for a single PUT that replaces a larger object. A back end that does not know the replaced object
 * before the commit validates the growth at the commit. A back end with several logs, none of which knows the
 * last block of the others, may exceed a limit by these blocks.
 */

/* Sets the limits of one bucket. If all members are STORE_UNBOUNDED, the bucket has no limits. result: 0: the
 * limits are durable; -ENXIO: no such bucket; -ENOSPC: no space for the record; or another -errno. */
int store_bucket_set_quota(struct store_port *p, const char *name, size_t len, const struct store_use *max,
			   struct store_bucket_set *op);

/* Limits for all buckets whose names begin with `bucket` (any_suffix true), or for the one bucket of this
 * name (any_suffix false). */
struct store_pattern_quota {
	char bucket[STORE_BUCKET_MAX];
	uint8_t bucket_len;
	bool any_suffix;
	struct store_use max;
	uint64_t max_buckets; /* limit of the number of buckets; STORE_UNBOUNDED: no limit */
};
/* Replaces the limits of all patterns. If a pattern has two entries, the smaller limit applies. All
 * validations after the return use the new limits. Any thread. Returns 0, -ENOMEM (without a change),
 * -EOPNOTSUPP. */
int store_set_quotas(struct store *st, const struct store_pattern_quota *quota, int nr);
/* Returns a bucket's usage and its own limits, if any. Any thread. Returns 0, -ENXIO, -EOPNOTSUPP. */
int store_bucket_quota(struct store *st, const char *name, size_t len, struct store_quota_info *ret_info);
/* Lists the patterns, and then the buckets that have limits, each sorted by name. Any thread. Returns the
 * number of entries, or -ENOMEM, -EOPNOTSUPP; the caller frees the list. */
int store_list_quotas(struct store *st, struct store_quota_info **ret_list);

/* ---- listing ---- */

struct store_entry {
	const char *name; /* object key or bucket name; names are in byte order; valid during the callback */
	size_t name_len;
	uint64_t size_bytes, mtime_ns, version;
	struct store_etag etag;
	uint8_t copies; /* number of copies of the keys of a bucket */
	/* true: name is a common prefix, including the delimiter, and no other member is set */
	bool is_prefix;
	const uint8_t *upload_id; /* id of the upload, for store_list_uploads() */
	const void *attrs;        /* attributes of the object or upload; valid during the callback */
	uint32_t attrs_len;
};

/*
 * A page of a list of names that begin with `prefix`, in key order, from the first name after `after` on
 * (NULL: from the first name). With a delimiter, all names that contain the delimiter after the prefix are
 * replaced by their common prefix. A common prefix ends with the first delimiter after `prefix`, and is
 * listed once. If `after` is a common prefix itself, the page begins after all names with this prefix. The
 * caller keeps the memory to which this struct points until the end of the operation.
 */
struct store_list {
	/* operation of the list; result: number of entries; `more` is set if further entries follow */
	struct store_op op;
	const char *bucket; /* name of the bucket; NULL: the buckets are listed (never with a delimiter) */
	/* prefix, last name before the page, and delimiter; delimiter_len 0: no delimiter */
	const char *prefix, *after, *delimiter;
	uint16_t bucket_len, prefix_len, after_len, delimiter_len;
	/* store_list_uploads(): the list begins after this upload of the key `after`; NULL: after all uploads
	 * of that key */
	const uint8_t *after_id;
	uint32_t max;
	/* true: keys of a missing disk may be omitted; false: if a disk is missing, the result is -ENODEV */
	bool may_be_partial;
	/* partitions whose names are listed, for an engine in a set; kept until the end. NULL: the partitions
	 * assigned to the engine. */
	const struct store_slots *slots;
	/* Receives an entry, on the port's thread. Returns false to end the page. */
	bool (*entry)(struct store_list *ls, const struct store_entry *e);
	bool more;
	bool is_partial; /* result; true: keys of a missing disk were omitted */
	_Alignas(8) unsigned char priv[STORE_PRIV_LIST];
};
int store_list(struct store_port *p, struct store_list *ls);
/* Lists the uploads in progress of a bucket, by key, then in order of creation. entry: mtime_ns is the time
 * at which the upload began. */
int store_list_uploads(struct store_port *p, struct store_list *ls);

/* ---- disks that are added and removed while the store serves ---- */

struct store_disk_change {
	enum { DISK_DRAIN, DISK_ADD, DISK_CANCEL } kind;
	const char *disk; /* name of the disk: for DISK_DRAIN a path, UUID or number; for DISK_ADD a path */
	uint64_t size_bytes; /* DISK_ADD: size of the disk in bytes, as for --format */
	bool force;          /* DISK_ADD: true: existing data on the disk is lost */
	/* DISK_ADD: function that a thread of the store calls before the disk becomes a member, so that the
	 * caller can first record the UUID of the disk; the function may block. NULL: no function is
	 * called */
	void (*joins)(void *cookie, const uint8_t uuid[UUID_BYTES]);
	void *cookie;
};

/*
 * Begins to remove a disk from service, or to add a disk, or cancels such a change; slots that have moved
 * stay where they are. Long work continues in the background, and after a restart. Blocking; any thread
 * except a port's. said contains the action begun, or the reason of the failure.
 *   0
 *   -ENOENT      no such disk; no change to cancel
 *   -EALREADY    the disk is drained; or (DISK_ADD) has a store
 *   -EEXIST      the disk belongs to this store; or has other data
 *   -EPERM       the disk is the last one, or one of two while a bucket has two copies
 *   -EBUSY       a change is in progress
 *   -ENOSPC      the other disks have no room for the contents of the disk
 *   -EROFS       not all other disks serve
 *   -EOPNOTSUPP  this back end does not support the change
 */
int store_change_disks(struct store *st, const struct store_disk_change *c, char *said, size_t said_len);

#define STORE_TROUBLE_BYTES 256
struct store_move_info {
	bool is_running;
	/* draining: bitmap of the units that are being drained; filling: bitmap of the units that receive
	 * slots */
	uint64_t draining, filling;
	uint64_t slots_done, slots_total;
	uint64_t bytes_done, bytes_total; /* number of bytes moved so far; estimated total */
	uint64_t keys;                    /* number of keys copied */
	uint64_t began_ns;                /* time of clock_ns() at which the move began */
	uint64_t left_ns;                 /* estimated remaining time in ns; 0: not known */
	uint64_t rate;
	/* reason why the move makes no progress; "": the move makes progress */
	char trouble[STORE_TROUBLE_BYTES];
	/* longest remaining time, in ns, for which the move waits for the return of an away disk; 0: the move
	 * does not wait */
	uint64_t waits_ns;
};
/* Returns the progress of the current move. Any thread. */
void store_move_info(const struct store *st, struct store_move_info *ret_info);
/* Sets the limit of bytes a second that moves may use from now on; 0: no limit. Any thread. */
void store_set_move_rate(struct store *st, uint64_t bytes);

/* The state of keys with two copies, for operators. A slot is one of the 4096 hash values of keys. */
struct store_copies_info {
	bool is_used; /* true if buckets with two copies may exist; otherwise all members are 0 */
	/* Number of objects, and bytes of objects and of parts of uploads. Two copies count once. */
	uint64_t objects, bytes;
	/* number of objects, and bytes, of which only one disk in service has all data */
	uint64_t exposed_objects, exposed_bytes;
	/* Number of slots whose keys no disk in service is allowed to serve. Operations on these keys end
	 * with -ENODEV if the disk is missing; if the disk has failed, the keys are read-only. */
	uint64_t unreachable_slots;
	uint64_t needed; /* bitmap of the units that have the keys of the unreachable slots */
	/* Counters since the start: changes that a disk has missed; damaged copies that were rewritten from
	 * the other copy; reads from the secondary. */
	uint64_t missed, repaired, read_second;
	/* true: secondary copies of keys are being made again */
	bool is_healing;
	/* number of bytes copied since the resynchronisation began; estimated total */
	uint64_t heal_bytes_done, heal_bytes_total;
	uint64_t heal_rate;    /* rate of the resynchronisation in bytes a second; 0: not known yet */
	uint64_t heal_left_ns; /* estimated remaining time of the resynchronisation in ns; 0: not known */
	/* Reason why the resynchronisation makes no progress although both disks are present; "": the
	 * resynchronisation makes progress. */
	char trouble[STORE_TROUBLE_BYTES];
	uint64_t away;    /* bitmap of the units of the missing and failed disks that have copies of keys */
	bool may_replace; /* true: other disks can take over the slots of the disks in `away` */
	/* for each unit in `away`: time in ns until another disk replaces the unit; 0: the unit is being
	 * replaced now */
	uint64_t replaced_in_ns[STORE_DISKS_MAX];
};
/* Returns the state of keys with two copies. Any thread. */
void store_copies_info(const struct store *st, struct store_copies_info *ret_info);

/* ---- state for operators ---- */

/* The state of a unit. A unit is a part of the store that operators see and that can fail separately: a disk,
 * or a pool. */
enum store_unit_state {
	UNIT_OK,
	UNIT_FAILED,
	UNIT_MISSING,
	UNIT_MOVING,  /* the unit serves, and is being drained or filled */
	UNIT_DRAINED, /* the unit is drained, and may be removed */
	UNIT_STATE_NR
};

enum disk_io { DISK_READ, DISK_WRITE, DISK_FLUSH, DISK_IO_NR };

static inline bool
store_unit_serves(enum store_unit_state state)
{
	return state == UNIT_OK || state == UNIT_MOVING;
}

/* A named number of a unit, for operators. Back ends have different numbers. */
struct store_unit_number {
	const char *name; /* constant name in the form of a JSON key, such as "log_used_bytes" */
	uint64_t value;
	bool is_hidden; /* true: status pages do not print the number */
};
#define STORE_UNIT_NUMBERS_MAX 48

struct store_unit_info {
	const char *name;          /* path of a disk; "": unknown */
	const char *uuid;          /* UUID of the disk as text; NULL or "": the unit has no UUID */
	const uint8_t *store_uuid; /* UUID of the disk's store, constant; NULL: the unit has no UUID */
	enum store_unit_state state;
	/* reason of the state; with UNIT_OK: a problem of the unit, or "" if it has no problem */
	char reason[256];
	const char *move; /* "drain" or "fill", a constant; NULL: the unit's slots do not move */
	uint64_t size_bytes, free_bytes;
	uint64_t own_bytes; /* bytes that objects cannot use: log, superblocks, reserve for snapshots */
	uint64_t read_bytes, read_ops, written_bytes, write_ops, flushes, errors;
	/* Durations of requests from cores, in the buckets of base/latency.h. */
	struct {
		uint64_t buckets[LATENCY_NR], sum_ns;
	} latency[DISK_IO_NR];
	int number_nr;
	/* numbers of the unit, in the order in which status pages show them */
	struct store_unit_number number[STORE_UNIT_NUMBERS_MAX];
};

/* Capabilities of a back end beyond serving. */
enum {
	STORE_CAN_SNAPSHOT = 1, /* store_snapshot() is available */
	STORE_CAN_SCRUB = 2,    /* the scrub can read the objects one by one, to verify them */
	STORE_CAN_FSCK = 4,     /* store_fsck() is available */
	/* the daemon can refuse new requests for a while (a drain) without effect on the store */
	STORE_CAN_DRAIN = 8,
};
/* Returns STORE_CAN_... bits.  Any thread. */
unsigned store_can(const struct store *st);

/*
 * Starts a snapshot of every working unit, even shortly after the newest snapshot. The next start then reads
 * less of the log. Any thread, while a port is attached. The snapshot runs in the background: it has ended
 * when the unit's number "snapshot_runs" is 0 again; the number "snapshots" has then increased, unless the
 * snapshot has failed, which is logged. Returns 0; -EOPNOTSUPP without STORE_CAN_SNAPSHOT; or another -errno
 * if some units did not start a snapshot.
 */
int store_snapshot(struct store *st);

/*
 * Returns the name of the background work that is in progress, or that the store will begin without a further
 * request; NULL: there is no such work. The name is a constant. Reads of the scrub do not count. Scheduled
 * work begins soon after a call. Any thread.
 *   "moves"    of slots between disks: a disk is added or drained
 *   "resync"   of copies: after a disk has failed or returned
 *   "packing"  of small objects into shared units
 *   "log"      a snapshot of the index, after which the log is shorter
 *   "removal"  of records and files without an owner: deleted or replaced objects, ended uploads, removed
 *              buckets
 */
const char *store_background(const struct store *st);

/* Makes every unit read its metadata once, verify it, and repair damage. The work runs in the background. The
 * unit's number "metadata_damaged" counts the damage found, and the unit's `reason` reports damage until all
 * of it is repaired. Called on the port's thread. */
void store_reread(struct store_port *p);

/* Returns true if another process has taken over the store, so that this process must exit and restart. Any
 * thread. */
bool store_is_fenced(const struct store *st);
/* Returns true if the store answers requests; otherwise why has the reason. Any thread. */
bool store_answers(const struct store *st, char *why, size_t len);
/* Returns the name of the back end, for operators: "disks". */
const char *store_name(const struct store *st);
/* Returns the number of units. */
int store_unit_nr(const struct store *st);
/* Returns the state of a unit for operators. Any thread. */
void store_unit_info(const struct store *st, int unit, struct store_unit_info *ret_info);
/* Returns the unit's number of this name; 0: the unit has no such number. */
uint64_t store_unit_number(const struct store_unit_info *info, const char *name);

#endif
