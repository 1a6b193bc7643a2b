/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: objects, atomic and durable.  One header; above it there is no disk number, place on a disk,
 * descriptor or index iterator, only handles.  docs/engine.md section 1 is the reference.
 *
 * Threads.  A *port* is one thread's access to the store (a core, or a test); store_attach() makes it, with
 * the thread's ring and mailbox.  Every call names a port and is made on its thread; done() always runs on
 * that thread, even when the work was finished by another core (it comes in through the mailbox).
 *
 * Starting.  A start returns < 0: not started (done() will not run); 0: started, done() will run later, never
 * before the start returned; > 0: finished already, the result is in op->result and done() will not run.
 *
 * Results are -errno:
 *   -ENOENT        no such object
 *   -ENXIO         no such bucket
 *   -EEXIST        exists (PRE_ABSENT, bucket create)
 *   -ESTALE        PRE_MATCH failed
 *   -EPERM         exists, and the writer asked that it be kept
 *   -ENOTEMPTY     bucket not empty
 *   -EILSEQ        content is not what expect_crc64 says
 *   -ENOSPC        no room for data or index (507)
 *   -EDQUOT        a bound on what the bucket may hold would be exceeded (403)
 *   -EDOM          more copies are wanted than there are disks (400)
 *   -EAGAIN        not now, later perhaps (503)
 *   -EXDEV         the key has moved to another disk under a commit, and what was written could not be brought there: nothing
 *                  was done (503)
 *   -EROFS         it failed, and is read-only from now on (503)
 *   -ENODEV        the disk that has it is missing (503)
 *   -ESHUTDOWN     another one has taken over: nothing more is done here (503)
 *   -EOPNOTSUPP    this back end cannot do that (501)
 *   -EBADMSG       stored bytes do not match their CRC
 *   -EIO           the disk said no
 *   -ECANCELED     outcome unknown: the write may or may not survive (503)
 *   -ENAMETOOLONG, -EINVAL  as they say
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
struct timers;
struct store;
struct store_ops; /* store/ops.h: a back end */
struct store_port;

#define STORE_KEY_MAX 1024
#define STORE_BUCKET_MAX 63
#define STORE_INLINE_MAX 256        /* most that a back end takes inline: store_limits() */
#define STORE_ATTRS_MAX (12u << 10) /* opaque attributes of one object */
#define STORE_GRANULE (64u << 10)   /* largest granule of a back end */
#define STORE_PIECE (1u << 20)      /* largest piece of a back end */
#define STORE_READ (4u << 20)       /* largest read of a back end, into a buffer that holds as much */
#define STORE_SIZE_UNKNOWN UINT64_MAX
#define STORE_BUCKET_ATTRS_MAX (32u << 10) /* opaque attributes of one bucket */
#define STORE_PART_ATTRS_MAX 512u          /* ... of one part of an upload */
#define STORE_PART_NR_MAX 10000u           /* parts are numbered from 1 */
#define STORE_UPLOAD_ID_BYTES 16

/* What a back end has of its own in an operation; each asserts that it fits. */
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
	const char *path;    /* a directory, or a block device */
	uint64_t size_bytes; /* for --format; 0 for a block device means all of it */
};

/* What a disk becomes in a new store of several (set/map/disk_table.h). */
struct store_birth {
	bool is_look;        /* look only whether it can be made, and how large it would be */
	uint64_t size_bytes; /* that */
	int number;
	uint8_t store_uuid[UUID_BYTES];
	struct disk_table table;
};

/* Whoever wants to know that an engine's disk has failed.  failed(): on any thread, once, with no lock of the engine held. */
struct store_watch {
	void (*failed)(struct store_watch *w);
};

/* What back ends on disks want: an engine (one disk), or a set of them (set/set.h). */
struct store_disks_conf {
	const struct store_disk_conf *disk;
	int nr;
	uint64_t index_bytes;  /* memory the index may use, in all */
	uint64_t pack_rate;    /* bytes of small objects a second that are moved together; 0: none are */
	uint64_t lock_wait_ns; /* how long start waits for a dead process's last writes */
	uint64_t
		move_rate; /* the set's: bytes a second that are moved from disk to disk; 0: as many as can be */
	uint64_t
		heal_after_ns; /* the set's: a disk that is away for so long is replaced by others as the second of keys with two copies */
	bool moves_wait;     /* the set's: what was being moved before is left as it is, in this start */
	uint64_t timeout_ns; /* one of several whose write or flush takes longer has failed; 0: none has */
	const struct store_ops *engine; /* the set's: of which it is made, one for each disk */
	int engines_max;                /* the set's */
	struct quota_book *quotas;      /* an engine's, of the set it is in; NULL: one of its own */
	int counter;                    /* which counter of it the engine is */
	int beside;                     /* an engine's: so many others serve in the same threads */
	struct store_birth *birth;      /* an engine's, for --format in a set; NULL: it is a store */
	const struct disk_table *table; /* an engine's, for --fsck: the newest of the set; NULL: not known */
	struct store_watch *watch;      /* an engine's, of the set it is in; NULL: nobody wants to know */
	/* the set's: disks that may be missing, and those that are given up for good */
	const uint8_t (*accept_missing)[UUID_BYTES];
	int accept_missing_nr;
	const uint8_t (*forget)[UUID_BYTES]; /* for store_forget() */
	int forget_nr;
};

/* What the store on RADOS wants (rados/rados.h). */
struct store_rados_conf {
	const char *conf;                  /* path of ceph.conf */
	const char *user;                  /* client.<user> */
	const char *meta_pool, *data_pool; /* index; bytes of objects */
	const char *ns;                    /* RADOS namespace of both; "" for none */
	uint32_t index_shards;             /* of buckets made from now on */
	uint32_t object_bytes;             /* of a data object; --format */
	int clients;                       /* of librados in this process; 0: one for every 4 ports */
	uint64_t dead_after_ns;            /* a gateway that is silent for so long is dead */
	uint64_t
		unwritten_max_bytes; /* of PUTs that the cluster has not answered; from there on more are refused; 0: any */
};

/* What a store is made from; ops says which member of the union counts.  A back end that is no disk adds
 * its own. */
struct store_conf {
	const struct store_ops *ops; /* the back end */
	int ports_max;
	unsigned default_copies; /* of buckets whose maker does not say; 0: one */
	union {
		struct store_disks_conf disks;
		struct store_rados_conf rados;
	};
};

/* What a back end takes.  Buffers are made for the constants of the same names, and nobody has more. */
struct store_limits {
	uint32_t piece_bytes; /* largest write of one call: at most STORE_PIECE */
	uint32_t read_bytes;  /* largest read of one call: no less than a piece, at most STORE_READ */
	uint32_t
		granule_bytes; /* reads, and all pieces but the last, are multiples of it: at most STORE_GRANULE */
	uint32_t
		inline_bytes; /* objects up to here may be committed as inline_data: at most STORE_INLINE_MAX */
	bool lets_go; /* reads and writes can be cancelled, and of what a commit was given nothing is needed later but
		       * the attributes: so who ends a request has its buffers back, whatever the store waits for */
};

/* Says whether a store can be made, or started, from this configuration at all, without looking at a
 * disk.  0 or -EINVAL with the reason in err. */
int store_check(const struct store_conf *conf, char *err, size_t err_len);

/* Room for the reason that a start gives, which may name several disks. */
#define STORE_WHY_BYTES 2048

/* Makes a store on empty disks (force: whatever was there is lost).  Blocking.  0, -EALREADY (a store is there),
 * -EEXIST (other data is) or -errno; the reason is in err. */
int store_format(const struct store_conf *conf, bool force, char *err, size_t err_len);

/*
 * Brings a store that does not run to the format that this version writes (--upgrade), which a start does not do.
 * Blocking; cut short anywhere, it can be made again.  0: it is of that format now, and said is what was done; or
 * -errno, and said is why.
 */
int store_upgrade(const struct store_conf *conf, char *said, size_t said_len);

/*
 * Says whether a start would take what is there, as far as that can be told without recovering it: who the disks are, and
 * whether enough of them are there.  Writes nothing.  0: it would, or it cannot be told now (it is in use, or may not be
 * opened by this user), or it was not made yet, as far as can be seen, and err says so; or -errno, as store_start(), with the
 * reason in err.  With disks that are given up (disks.forget) it is store_forget() that is looked ahead at: 0: it would do it, and
 * err says what each of them has, a line each; it tells of disks that are in use, too.
 */
int store_look(const struct store_conf *conf, char *err, size_t err_len);

/*
 * Locks, recovers, makes ready to serve.  Blocking; uses a ring of its own meanwhile.  0, or -errno with the
 * reason in err: -ENOTRECOVERABLE damaged or foreign (exit 74), -EINVAL size differs from the superblock,
 * or store_upgrade() is due (exit 78), -EBUSY still locked.
 */
int store_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len);

/*
 * Takes disks that are not there off a store that does not run, for good (--forget): what they alone held is lost, and
 * they are refused should they come back.  All others are there.  Blocking.  said is what was done, or why not.  0 or
 * -errno.
 */
int store_forget(const struct store_conf *conf, char *said, size_t said_len);

/*
 * Checks a store that does not run (--fsck): reads everything and says through say(), a line a call, what is
 * wrong. repair: cuts a damaged log tail.  Blocking.
 *   0                 clean
 *   1                 repaired
 *   -ENOTRECOVERABLE  damage is left
 *   -EOPNOTSUPP       this back end has no check, which say() is told too
 *   other -errno      it could not be read
 */
int store_fsck(const struct store_conf *conf, bool repair, void (*say)(void *cookie, const char *line),
	       void *cookie);

/* Stops a store after every port was detached: what was acknowledged needs no recovery at the next
 * start.  NULL is fine.  Blocking. */
void store_stop(struct store *st);

/*
 * Makes a port, on the thread that will use it.  ring, mb and timers are that thread's and are kept by the
 * caller until the port was detached; a back end may ignore ring and timers.
 *   0
 *   -ENOMEM   no memory
 *   -EUSERS   ports_max are attached
 */
int store_attach(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
		 struct store_port **ret_port);
/* Detaches a port.  True: it is gone; false: something of it is in flight, turn the loop and call again. */
bool store_detach(struct store_port *p);

/* Says, once per turn of the loop, that this thread looks at nothing any more that it saw in the store
 * before. */
void store_quiesce(struct store_port *p);
/* Says that the thread is about to wait: until store_wake() it must not touch the store. */
void store_sleep(struct store_port *p);
/* Says that the thread has ended waiting. */
void store_wake(struct store_port *p);

/*
 * Lends buffers besides those of reads, to a back end that reads before it is asked (store_open_to_read()).  Both are called on
 * the port's thread: take() within the open, give() never within a call of store.h, but out of the mailbox.
 */
struct store_spares {
	/* Returns one of that class (BUF_RUN: a run) that nobody needs just now; NULL: there is none. */
	struct buf *(*take)(struct store_spares *s, enum buf_class cls);
	/* Takes back what take() gave, or another one of its class that a read was given in exchange (store_read.instead). */
	void (*give)(struct store_spares *s, struct buf *b);
};
/* Says who lends; kept by the caller until the port was detached.  Without it nothing is lent. */
void store_set_spares(struct store_port *p, struct store_spares *s);

/* Returns what the port's back end takes; the same for as long as the port is attached.  Any thread. */
const struct store_limits *store_limits(const struct store_port *p);

/* Returns the shard of a key, for store_share(). */
uint32_t store_shard(const char *key, size_t len);
/* Tells whether what is done in the background for a shard is this process's share: the scrub and the
 * lifecycle walk ask.  Where a store has one process, as on disks, all of it is. */
bool store_share(struct store_port *p, uint32_t shard);

/* ---- names and metadata ---- */

struct store_key;
/*
 * Returns the number, below 64, of the disk whose business all is that is done with a key, so that what hangs on one can be
 * kept from holding all of what the caller has; -1: there is but one, or it cannot be said.
 */
int store_lane(const struct store_port *p, const struct store_key *k);

/* Bucket and object key as bytes, not terminated; the caller keeps them until the call (not the operation)
 * returned. */
struct store_key {
	const char *bucket, *key;
	uint16_t bucket_len, key_len;
	uint8_t copies; /* of each key of the bucket, for an engine, which the set tells: 0, 1: one; 2: two */
};

static inline bool
store_has_two(const struct store_key *k)
{
	return k->copies > 1;
}

/* Returns the place of a key (set/map/disk_table.h). */
static inline unsigned
store_place(const struct store_key *k)
{
	return table_place(table_slot(k->bucket, k->bucket_len, k->key, k->key_len), store_has_two(k));
}

/* An ETag: parts 0 is a plain MD5, STORE_ETAG_RDMA has the "-r" tail, else "-<parts>". */
#define STORE_ETAG_RDMA UINT32_MAX
struct store_etag {
	uint8_t sum[16];
	uint32_t parts;
};

/* What a commit gives and an open returns. */
struct store_meta {
	struct store_etag etag;
	uint64_t mtime_ns; /* wall clock; 0 at commit: now */
	const void *attrs; /* opaque bytes of the layer above; kept until the operation's end by a committer,
			      valid until store_close() for a reader */
	uint32_t attrs_len;
};

/* Judged on what is there when the change is made: all changes of a key have one order, and each sees the
 * one before. The bucket must always exist. */
enum store_pre_kind { PRE_NONE, PRE_ABSENT, PRE_MATCH_ANY, PRE_MATCH, PRE_NONE_MATCH, PRE_VERSION };
#define STORE_PRE_ETAGS 8
struct store_pre {
	enum store_pre_kind kind;
	struct store_etag etags[STORE_PRE_ETAGS];
	uint8_t etag_nr;
	bool keep; /* whatever kind says: what is there stays (-EPERM, when kind has nothing against it) */
	uint64_t version; /* PRE_VERSION: this one is there (-ENOENT, -ESTALE) */
};

/* ---- operations: embedded by the caller ---- */

struct store_op {
	struct msg msg; /* the store's */
	void (*done)(struct store_op *op);
	int result;
	struct store_port *port; /* the back end's, that does it */
};

/* What a bucket holds, or the buckets of a pattern: bytes are those of objects and of the parts of uploads in progress.
 * Of a bound: how much at most. */
struct store_use {
	uint64_t objects, bytes, uploads;
};
#define STORE_UNBOUNDED UINT64_MAX /* a member that bounds nothing */

/* What is known of a bucket's quota, or a pattern's: see store_list_quotas(). */
struct store_quota_info {
	char name[STORE_BUCKET_MAX + 2]; /* of a bucket; of a pattern with its '*' */
	bool is_pattern;
	bool has_bound;
	struct store_use used, max;
	uint64_t refused; /* changes, since the start; counted while there is a bound */
};

/* What a look at a bucket, at a bucket's attributes or at an upload finds. */
struct store_stat {
	struct store_op op; /* result: 0 or -errno */
	/* after success */
	uint64_t ctime_ns;  /* when it was made */
	uint64_t version;   /* of a bucket's attributes; 0: there are none */
	uint32_t attrs_len; /* of the attributes, however many of them were copied */
	unsigned copies;    /* store_bucket_head(): on how many disks each of its keys is */
	bool has_quota;     /* of a bucket: what it holds and its own bounds are known */
	struct store_use used,
		max; /* max: store_bucket_get_attrs() of an engine sets it, too, to what its own record says */
	_Alignas(8) unsigned char priv[STORE_PRIV_STAT];
};

/* An object version, opened and pinned: its bytes stay until store_close(). */
struct store_obj {
	struct store_op op;
	/* after success */
	uint64_t size_bytes;
	uint64_t version; /* grows with every commit to the store */
	uint64_t crc64;   /* CRC64-NVME of the whole object */
	struct store_meta meta;
	bool is_open;
	bool has_second; /* store_open_second() may find one */
	/* Set by the caller behind the open: a read that finds damage ends when that was mended, if it can be. */
	bool mends_first;
	uint32_t part_nr; /* parts of the upload it came from; 0: it was written by one PUT */
	_Alignas(8) unsigned char priv[STORE_PRIV_OBJ]; /* the store's */
};

/* Looks up and pins.  Usually finishes at once. */
int store_open(struct store_port *p, const struct store_key *k, struct store_obj *obj);
/* Opens the second copy of a key that has two, which nobody else reads as long as the first is whole: what is damaged of it is
 * mended behind who reads it, one object at a time.  -ENODATA: there is no second copy, or it is being made. */
int store_open_second(struct store_port *p, const struct store_key *k, struct store_obj *obj);
/*
 * Opens a part of an upload in progress, to be read as an object of its own: ETag, time and attributes are the part's.  is_second: its
 * second copy, as store_open_second() opens one.  -ENOENT: no such upload, or part; -ENXIO; -EOPNOTSUPP: this back end opens no part.
 */
int store_open_part(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		    uint32_t number, bool is_second, struct store_obj *obj);
/* Opens as store_open(), for who reads the first `want` bytes at once, or as many as there are (0: all of an object of one granule, of
 * others not the first): a back end for which either is a trip may make both in one.  Whoever does not read after all has only
 * cost it that. */
int store_open_to_read(struct store_port *p, const struct store_key *k, uint64_t want, struct store_obj *obj);
/* Closes an object; no read of it may be in flight.  NULL, and one that never opened, are fine. */
void store_close(struct store_port *p, struct store_obj *obj);

struct store_read {
	struct store_op op; /* result: bytes read, or -errno */
	uint32_t
		lead; /* after success: so far into buf->mem they begin; less than a page, but for small objects 0 */
	/* After success, of an object that was opened to be read where spares are lent.  NULL: the bytes are in the buffer that was given;
	 * else they are in this one, of the same class and pool, which is the reader's from now on, and the one given is the store's. */
	struct buf *instead;
	_Alignas(8) unsigned char priv[STORE_PRIV_READ];
};

/*
 * Says how a range is cut into reads.  Bytes from off on are wanted, `want` of them (off + want <= size_bytes,
 * want > 0), in a buffer of cap bytes (a multiple of STORE_GRANULE): returns the length of the one read that
 * brings the first of them, which begins *ret_skew (< STORE_GRANULE) bytes before off; so it brings length -
 * skew > 0 bytes from off on, perhaps more than wanted.  Checksums cover granules, and those of an object made
 * of parts are counted from the beginning of each part, so its reads begin and end at odd places.
 */
uint32_t store_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap,
			 uint32_t *ret_skew);

/*
 * Reads [off, off + len) of obj to buf->mem + rd->lead and checks its CRCs before it says so.  The range is one that
 * store_read_plan() gave.  (Of an object with part_nr 0 any will do where off is a multiple of STORE_GRANULE
 * and so is len, unless the range ends with the object.)  len <= buf->cap_bytes; the slack behind the buffer
 * is used too.  Reads of one object may overlap.  -EINVAL: not such a range.
 */
int store_read(struct store_port *p, struct store_obj *obj, struct store_read *rd, struct buf *buf,
	       uint64_t off, uint32_t len);
/*
 * Ends a read that was started and is not done, as far as the back end can.  True: it is over, done() will not
 * run, and nothing comes into the buffer any more.  False: the back end cannot, and all is as before: the
 * buffer stays its own until done().
 */
bool store_read_cancel(struct store_port *p, struct store_read *rd);

/* Says for whom all is that is begun from now on, and what follows from it; NULL: for nobody who gives up. */
void store_asker(struct store_port *p, const void *asker);
/* Has whatever has been looking something up for this asker, for longer than that, end with -EAGAIN, as far as the back end
 * can: done() runs as ever, soon.  For who cannot wait any more. */
void store_give_up(struct store_port *p, const void *asker, uint64_t older_ns);

/*
 * A PUT.  store_put_init(); store_put_write() for each piece, in order, several may be in flight; when every
 * write is done, store_put_commit() or store_put_abort().  The last piece may ride with the commit (one flush
 * for data and log then).
 */
struct store_put {
	struct store_op op;            /* the commit's: 0 = durable and visible */
	struct store_carrier *carrier; /* the store's (store/ops.h) */
	/* so far, over all pieces given to store_put_write() */
	uint64_t size_bytes;
	uint64_t crc64;
	/* after success */
	uint64_t version;
	bool is_started;
	/* the store's; the granule CRCs of a chunk lie in a side buffer of the port */
	_Alignas(8) unsigned char priv[STORE_PRIV_PUT];
};

/*
 * Begins a PUT.  size_bytes: what will come, or STORE_SIZE_UNKNOWN.
 *   0
 *   -ENOSPC        no room for that much
 *   -EROFS         the disk failed
 *   -EAGAIN        not now
 *   -ENXIO         no such bucket: an early answer, the commit judges again
 *   -ENAMETOOLONG  bucket or key
 */
int store_put_init(struct store_port *p, struct store_put *put, const struct store_key *k,
		   uint64_t size_bytes);

struct store_write {
	struct store_op op; /* result: 0 (on the disk, not yet flushed) or -errno */
	_Alignas(8) unsigned char priv[STORE_PRIV_WRITE];
};

/* Writes the next len bytes, at buf->mem: at most a piece, a multiple of the granule unless last
 * (store_limits()). The buffer stays the store's until done(); behind the data it may be padded and given
 * a CRC block (that is what the slack is for).  May wait for space being made. */
int store_put_write(struct store_port *p, struct store_put *put, struct store_write *w, struct buf *buf,
		    uint32_t len, bool last);

struct store_commit {
	struct store_meta meta;
	struct store_pre pre;
	/* The last piece, when it was not given to store_put_write(): NULL for none.  inline_data for objects
	 * <= STORE_INLINE_MAX bytes that were never written (copied at the call). */
	struct buf *last;
	uint32_t last_len;
	const void *inline_data;
	uint32_t inline_len;
	/* Refuse with -EILSEQ, before anything is handed over, when the content's CRC64-NVME differs. */
	bool have_expect_crc64;
	uint64_t expect_crc64;
	/* Kept until the end: gets the time at which bytes moved, where the store has to move them once more; NULL: nobody asks. */
	uint64_t *progress_ns;
};

/* Hands over; from a return of 0 on nothing cancels it.  A negative return: nothing was handed
 * over, the put must be aborted.  *c is copied except where it points; attrs, last, inline_data as said. */
int store_put_commit(struct store_port *p, struct store_put *put, const struct store_commit *c);
/* Takes leave of a write that is not done.  True: done() will not run, the buffer is the caller's, and the put can only be
 * aborted.  False: all is as before. */
bool store_write_cancel(struct store_port *p, struct store_write *w);
/* Gives the space back.  No write may be in flight but those that were cancelled.  NULL-safe, fine on a put never started and after a
 * commit ended. */
void store_put_abort(struct store_port *p, struct store_put *put);

struct store_del {
	struct store_op op; /* result: 1 deleted, 0 was not there, or -errno */
	_Alignas(8) unsigned char priv[STORE_PRIV_DEL];
};
int store_delete(struct store_port *p, const struct store_key *k, const struct store_pre *pre,
		 struct store_del *del);

/*
 * Replaces an object's attributes; its bytes, ETag and mtime stay as they are, its version grows.  version is
 * the one that must be there (0: any).  The caller keeps attrs until the end.  Objects opened before keep what
 * they had.
 *   0         durable
 *   -ENOENT   no such object (-ENXIO: nor bucket)
 *   -ESTALE   another version is there
 *   -ENOSPC   no room for the attributes
 */
int store_set_attrs(struct store_port *p, const struct store_key *k, uint64_t version, const void *attrs,
		    uint32_t attrs_len, struct store_del *op);

/* ---- multipart uploads ---- */

/*
 * An upload is made for a key, gets parts, and ends by completion (an object is there, made of the parts,
 * whose bytes stay where they are), by abort, or with its bucket.  Its id is never used again.  Parts that no
 * completed object names give their space back when the upload ends; so does one that is replaced.  Uploads
 * and parts take index memory (-ENOSPC).
 */

struct store_upload {
	struct store_op op; /* result: 0; -ENXIO no such bucket; abort: -ENOENT no such upload */
	uint8_t id[STORE_UPLOAD_ID_BYTES]; /* after success of create */
	_Alignas(8) unsigned char priv[STORE_PRIV_UPLOAD];
};

/* Begins an upload.  attrs (at most STORE_ATTRS_MAX bytes; the caller keeps them until the end) are what
 * store_upload_stat() gives: what the object will need. */
int store_upload_create(struct store_port *p, const struct store_key *k, const void *attrs,
			uint32_t attrs_len, struct store_upload *u);
/* Ends an upload without an object.  From the answer on no part of it can be committed. */
int store_upload_abort(struct store_port *p, const struct store_key *k,
		       const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_upload *u);
/*
 * Looks for an upload, and copies up to cap bytes of its attributes to attrs, which the caller keeps until
 * the end.  result: 0, -ENOENT (no such upload of this key), -ENXIO.
 */
int store_upload_stat(struct store_port *p, const struct store_key *k,
		      const uint8_t id[STORE_UPLOAD_ID_BYTES], void *attrs, uint32_t cap,
		      struct store_stat *st);

/*
 * Begins the PUT of a part, in place of store_put_init(); then it goes on as any PUT, with attributes up to
 * STORE_PART_ATTRS_MAX and no precondition.  Any length, zero too.  A part of the same number is replaced: of
 * several attempts the last to be committed counts.  Also -ENOENT: no such upload (here early; the commit's
 * result when the upload ended meanwhile), -EINVAL: the number is not 1 to STORE_PART_NR_MAX.
 */
int store_put_init_part(struct store_port *p, struct store_put *put, const struct store_key *k,
			const uint8_t id[STORE_UPLOAD_ID_BYTES], uint32_t number, uint64_t size_bytes);

/* One part, of an upload or of the object that it became. */
struct store_part {
	uint32_t number;
	uint64_t size_bytes, crc64, mtime_ns, version;
	uint64_t off_bytes; /* of an object: where in it the part begins */
	struct store_etag etag;
	const void *attrs; /* valid during the callback; store_obj_part(): until store_close() */
	uint32_t attrs_len;
};

/* What the completed object is to consist of, in this order. */
struct store_part_ref {
	uint32_t number;
	struct store_etag etag;
	uint64_t version; /* 0: whichever has that ETag */
};

/*
 * result: 0 durable and visible; -ENOENT no such upload (or what PRE_MATCH says: store_upload_stat() tells
 * which), -ENXIO; what PRE_... say; and about the list:
 *   -EINVAL    empty, not in ascending order, or a number out of range: parts[bad]   (InvalidPartOrder)
 *   -EBADR     parts[bad] was never committed, or has another ETag or version        (InvalidPart)
 *   -EMSGSIZE  parts[bad] is not the last one and smaller than part_min_bytes        (EntityTooSmall)
 *   -ERANGE    the sizes do not add up to expect_size_bytes
 *   -EILSEQ    the content's CRC is not expect_crc64                                 (BadDigest)
 * The upload goes on after any of these.  Repeated after success, while the object it made is there, with the
 * same list: 0 again, nothing is changed, and was_done is set.
 */
struct store_complete {
	struct store_op op;
	/* in; what pointers name is kept by the caller until the end */
	const struct store_part_ref *parts;
	uint32_t part_nr;
	struct store_meta meta; /* of the object */
	struct store_pre pre;
	uint64_t part_min_bytes; /* 0: none */
	bool have_expect_crc64, have_expect_size;
	uint64_t expect_crc64, expect_size_bytes;
	/* after success */
	uint64_t version, size_bytes, crc64, mtime_ns;
	struct store_etag etag; /* was_done: of the object that is there */
	bool was_done;
	uint32_t bad; /* index in parts, of the errors above */
};
int store_upload_complete(struct store_port *p, const struct store_key *k,
			  const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_complete *c);

/* The parts of an upload, by number, behind `after` (0: from the first). */
struct store_part_list {
	struct store_op op; /* result: parts given, or -ENOENT no such upload, -ENXIO */
	uint32_t after, max;
	/* On the port's thread; false ends the page. */
	bool (*part)(struct store_part_list *pl, const struct store_part *part);
	bool more;
	_Alignas(8) unsigned char priv[STORE_PRIV_PARTS];
};
int store_list_parts(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		     struct store_part_list *pl);

/* Gives the part of an opened object with that number.  At once: 0, or -ENOENT. */
int store_obj_part(struct store_obj *obj, uint32_t number, struct store_part *ret_part);
/* Gives the index-th part of an opened object in order, 0 to part_nr - 1.  At once: 0, or -ENOENT. */
int store_obj_part_at(struct store_obj *obj, uint32_t index, struct store_part *ret_part);

/* ---- buckets ---- */

/*
 * Makes a bucket whose keys are each on so many disks: 1 or STORE_COPIES_MAX; 0: as the store's default_copies says, and as
 * it is where the bucket is there.  A bucket that is there with another number of copies is changed if it has neither objects nor
 * uploads in progress; it keeps its time, attributes and quota.
 *   0            it is made, or changed
 *   -EEXIST      it is there, and has as many copies as are wanted
 *   -ENOTEMPTY   it is there with another number of copies, and is not empty
 *   -EDOM        there are not so many disks
 *   -EOPNOTSUPP  this back end knows no such thing as copies
 *   -EROFS, -ENODEV   (of a change) not all disks are in service
 */
#define STORE_COPIES_MAX 2u
int store_bucket_create(struct store_port *p, const char *name, size_t len, unsigned copies,
			struct store_del *op);
/* Removes a bucket.  0, -ENXIO, -ENOTEMPTY (it has objects).  Uploads in progress do not keep it: they end
 * with it. */
int store_bucket_delete(struct store_port *p, const char *name, size_t len, struct store_del *op);
/* Looks for a bucket.  result: 0, -ENXIO. */
int store_bucket_head(struct store_port *p, const char *name, size_t len, struct store_stat *st);
/* Tells whether the bucket was there within the last second, which says enough to whoever begins to write into it: the
 * commit looks again.  False: that is not known; store_bucket_head() is. */
bool store_bucket_was_there(struct store_port *p, const char *name, size_t len);

/*
 * Attributes of a bucket, opaque to the store, gone with the bucket.  Setting replaces all of them (length 0:
 * none): version is what store_bucket_get_attrs() gave, 0 for none there, STORE_VERSION_ANY to overwrite
 * whatever is there.  attrs are kept until the end.  result: 0, -ENXIO, -ESTALE, -ENOSPC ...
 */
#define STORE_VERSION_ANY UINT64_MAX
struct store_bucket_set {
	struct store_op op;
	_Alignas(8) unsigned char priv[STORE_PRIV_BUCKET_SET];
};
int store_bucket_set_attrs(struct store_port *p, const char *name, size_t len, uint64_t version,
			   const void *attrs, uint32_t attrs_len, struct store_bucket_set *op);
/* Copies up to cap bytes of them to attrs, which the caller keeps until the end.  result: 0, -ENXIO. */
int store_bucket_get_attrs(struct store_port *p, const char *name, size_t len, void *attrs, uint32_t cap,
			   struct store_stat *st);

/* ---- quotas ---- */

/*
 * Bounds on what buckets hold: on one bucket, kept with it and gone with it; on the buckets whose names fit a pattern,
 * which the layer above knows and sets anew after each start.  Every bound that concerns a bucket is heeded, whoever
 * writes.  A change that would exceed one ends with -EDQUOT; it is judged when its turn comes in the order of all changes,
 * against what is there by then, so no two changes share what is left.  Only what grows is judged: replacing an object
 * counts the difference, removing always goes, lowering a bound below what is there removes nothing.
 *
 *   objects   a new key
 *   bytes     of objects as they are read; of parts from their commit until the upload ends: completing counts none twice
 *   uploads   those in progress
 *
 * A PUT under way counts when it is committed; where its size is known, it may be refused before.  A back end of several
 * logs that do not see each other's last block may exceed a bound by so much.
 */

/* Bounds one bucket; all members STORE_UNBOUNDED: not any more.  result: 0 durable, -ENXIO, -ENOSPC ... */
int store_bucket_set_quota(struct store_port *p, const char *name, size_t len, const struct store_use *max,
			   struct store_bucket_set *op);

/* Of the buckets whose names begin so, or (no any_suffix) of the one that has the name. */
struct store_pattern_quota {
	char bucket[STORE_BUCKET_MAX];
	uint8_t bucket_len;
	bool any_suffix;
	struct store_use max;
};
/* Replaces the bounds of all patterns; of two for one pattern the smaller member counts.  What is judged after the return
 * is judged by them.  Any thread.  0, -ENOMEM (then nothing has changed), -EOPNOTSUPP. */
int store_set_quotas(struct store *st, const struct store_pattern_quota *quota, int nr);
/* Tells what a bucket holds and its own bound, whether it has one or not.  Any thread.  0, -ENXIO, -EOPNOTSUPP. */
int store_bucket_quota(struct store *st, const char *name, size_t len, struct store_quota_info *ret_info);
/* Lists the patterns, then the buckets that have a bound of their own, each in the order of names.  Any thread.  Returns
 * how many there are, or -ENOMEM, -EOPNOTSUPP; the list is the caller's to free(). */
int store_list_quotas(struct store *st, struct store_quota_info **ret_list);

/* ---- listing ---- */

struct store_entry {
	const char *name; /* object key or bucket name, in byte order; valid during the callback */
	size_t name_len;
	uint64_t size_bytes, mtime_ns, version;
	struct store_etag etag;
	uint8_t copies; /* of a bucket */
	bool is_prefix; /* name is a common prefix, up to and with the delimiter; nothing else is set */
	const uint8_t *upload_id; /* store_list_uploads() */
	const void *attrs;        /* of the object or upload; valid during the callback */
	uint32_t attrs_len;
};

/*
 * A page, in key order, beginning behind `after` (exclusive; NULL: from the start) and with names that begin
 * with `prefix`.  With a delimiter, names that have it behind the prefix are not given: what they have in
 * common up to and with its first occurrence is, once for all of them, and they are skipped, not walked
 * through.  If `after` is such a common prefix itself, all that begin with it lie before the page.  What the
 * pointers name is kept by the caller until the operation's end.
 */
struct store_list {
	struct store_op op; /* result: entries given; `more` says whether there are others */
	const char *bucket; /* NULL: the buckets themselves (never with a delimiter) */
	const char *prefix, *after, *delimiter; /* delimiter_len 0: none */
	uint16_t bucket_len, prefix_len, after_len, delimiter_len;
	/* store_list_uploads(): behind this upload of `after`; NULL: behind all of that key */
	const uint8_t *after_id;
	uint32_t max;
	bool may_be_partial; /* what a missing disk has may be left out; else that is -ENODEV */
	/* Of an engine in a set, kept until the end: names of these slots alone; NULL: of those that are its own. */
	const struct store_slots *slots;
	/* On the port's thread; false ends the page. */
	bool (*entry)(struct store_list *ls, const struct store_entry *e);
	bool more;
	bool is_partial; /* something is left out */
	_Alignas(8) unsigned char priv[STORE_PRIV_LIST];
};
int store_list(struct store_port *p, struct store_list *ls);
/* Lists the uploads in progress of a bucket, by key, then in the order in which they were made.  entry:
 * mtime_ns is when one began. */
int store_list_uploads(struct store_port *p, struct store_list *ls);

/* ---- disks that come and go while it serves ---- */

struct store_disk_change {
	enum { DISK_DRAIN, DISK_ADD, DISK_CANCEL } kind;
	const char *disk;    /* DISK_DRAIN: its path, UUID or number; DISK_ADD: its path */
	uint64_t size_bytes; /* DISK_ADD, as for --format */
	bool force;          /* DISK_ADD: what is on it is lost */
};

/*
 * Begins to take a disk out of service, or takes one into it, or ends either of it where it is; what takes long goes on behind the
 * scenes, and after a restart.  Blocking; any thread but a port's.  said is what was begun, or why not.
 *   0
 *   -ENOENT      no such disk; nothing to cancel
 *   -EALREADY    it is drained; or (DISK_ADD) a store is on it
 *   -EEXIST      it is one of this store; or there is other data on it
 *   -EPERM       it is the last one, or one of two, and a bucket has two copies
 *   -EBUSY       one is under way
 *   -ENOSPC      the others have no room for what is on it
 *   -EROFS       not all of the others serve
 *   -EOPNOTSUPP  this back end has no such disks
 */
int store_change_disks(struct store *st, const struct store_disk_change *c, char *said, size_t said_len);

#define STORE_TROUBLE_BYTES 256
struct store_move_info {
	bool is_running;
	uint64_t draining, filling; /* bitmaps of units */
	uint64_t slots_done, slots_total;
	uint64_t bytes_done, bytes_total; /* the total is estimated */
	uint64_t keys;                    /* sent */
	uint64_t began_ns;                /* clock_ns() */
	uint64_t left_ns;                 /* estimated; 0: not known */
	uint64_t rate;
	char trouble[STORE_TROUBLE_BYTES]; /* why it stands still; "": it does not */
	uint64_t
		waits_ns; /* for so long at most nothing is done, as a disk is away that may come back; 0: it does not wait */
};
/* Says how far it is.  Any thread. */
void store_move_info(const struct store *st, struct store_move_info *ret_info);
/* Sets how many bytes a second are moved, from now on; 0: as many as can be.  Any thread. */
void store_set_move_rate(struct store *st, uint64_t bytes);

/* What operators want to know of keys with two copies.  A slot is one of the 4096 that keys go by. */
struct store_copies_info {
	bool is_used; /* there may be buckets with two copies; else all is 0 */
	/* Objects, and bytes of them and of parts of uploads, each counted once. */
	uint64_t objects, bytes;
	uint64_t exposed_objects, exposed_bytes; /* of them: only one disk in service has them all */
	/* Of slots that no disk in service may answer for: keys in them are -ENODEV, or (of a disk that failed) read-only. */
	uint64_t unreachable_slots;
	uint64_t needed; /* bitmap of units: those disks that have them */
	/* Since the start: changes that a disk has missed, damaged copies that were made again from the other one, reads
	 * of the other one. */
	uint64_t missed, repaired, read_second;
	/* What is copied so that it has two copies again. */
	bool is_healing;
	uint64_t heal_bytes_done, heal_bytes_total; /* since that began; about how many there will be */
	uint64_t heal_rate;                         /* bytes a second; 0: not known yet */
	uint64_t heal_left_ns;                      /* 0: not known */
	/* Why it stands still though both disks are there; "": it does not. */
	char trouble[STORE_TROUBLE_BYTES];
	/* Disks that are missing or have failed and have copies. */
	uint64_t away;                            /* bitmap of units */
	bool may_replace;                         /* others can take their places */
	uint64_t replaced_in_ns[STORE_DISKS_MAX]; /* of each unit that is away: when they do; 0: now */
};
/* Says how it is with keys that have two copies.  Any thread. */
void store_copies_info(const struct store *st, struct store_copies_info *ret_info);

/* ---- what operators see ---- */

/* A unit is what operators know by itself and what may fail by itself: a disk, or a pool. */
enum store_unit_state {
	UNIT_OK,
	UNIT_FAILED,
	UNIT_MISSING,
	UNIT_MOVING,  /* it serves, and is being drained or filled */
	UNIT_DRAINED, /* it may be taken away */
	UNIT_STATE_NR
};

enum disk_io { DISK_READ, DISK_WRITE, DISK_FLUSH, DISK_IO_NR };

static inline bool
store_unit_serves(enum store_unit_state state)
{
	return state == UNIT_OK || state == UNIT_MOVING;
}

/* What only some back ends count. */
struct store_unit_number {
	const char *name; /* a constant, in the form of a JSON key: "log_used_bytes" */
	uint64_t value;
	bool is_hidden; /* pages do not print it */
};
#define STORE_UNIT_NUMBERS_MAX 32

struct store_unit_info {
	const char *name; /* a disk's path; "": not known */
	const char *uuid; /* a disk's; NULL or "": it has none */
	enum store_unit_state state;
	char reason[256]; /* of the state; UNIT_OK: what is not as it should be, or "" */
	const char *move; /* a constant: "drain", "fill"; NULL: nothing moves */
	uint64_t size_bytes, free_bytes;
	uint64_t own_bytes; /* that no object gets: log, superblocks, what is held back for snapshots */
	uint64_t read_bytes, read_ops, written_bytes, write_ops, flushes, errors;
	/* How long what cores asked of it took, in the buckets of base/latency.h. */
	struct {
		uint64_t buckets[LATENCY_NR], sum_ns;
	} latency[DISK_IO_NR];
	int number_nr;
	struct store_unit_number number[STORE_UNIT_NUMBERS_MAX]; /* in the order in which pages print them */
};

/* What a back end may be able to do beyond serving. */
enum {
	STORE_CAN_SNAPSHOT = 1, /* store_snapshot() */
	STORE_CAN_SCRUB = 2,    /* its objects may be read one by one, to see whether they are whole */
	STORE_CAN_FSCK = 4,     /* store_fsck() */
	STORE_CAN_DRAIN = 8,    /* it goes on when its callers refuse new requests for a while */
};
/* Returns STORE_CAN_... bits.  Any thread. */
unsigned store_can(const struct store *st);

/* Asks for a snapshot of every unit that works, however little came since the newest: a start after it reads
 * less log.  Any thread; while a port is attached.  It is made behind the scenes: when the unit's number
 * "snapshot_runs" is 0 again, "snapshots" has grown, or it failed (which is logged).  0, or -EOPNOTSUPP (no
 * STORE_CAN_SNAPSHOT), or another -errno: not every unit was asked. */
int store_snapshot(struct store *st);

/*
 * Returns the background work that is in progress, or that the store will begin without a further request, as a constant; NULL: there
 * is none.  The scrub's reads do not count.  Work that waits for its time begins soon after a call.  Any thread.
 *   "moves"    of slots between disks: a disk is added or drained
 *   "resync"   of copies: after a failed disk, or one that came back
 *   "packing"  of small objects into shared units
 *   "log"      a snapshot of the index, after which the log is shorter
 *   "removal"  of records and files that have no owner any more: deleted or replaced objects, ended uploads, removed buckets
 */
const char *store_background(const struct store *st);

/* Asks every unit to read what it keeps beside objects once, to see whether it is whole, and to mend what is not.
 * It goes on behind the scenes: "metadata_damaged" counts what was found, and while something of that is not
 * mended the unit has a reason.  On the port's thread. */
void store_reread(struct store_port *p);

/* Tells whether another process has taken over, so that this one has to end and to begin anew.  Any thread. */
bool store_is_fenced(const struct store *st);
/* Tells whether the store answers; if not, why.  Any thread. */
bool store_answers(const struct store *st, char *why, size_t len);
/* Returns the name of the back end, for operators: "disks". */
const char *store_name(const struct store *st);
/* Counts the units. */
int store_unit_nr(const struct store *st);
/* Reads what operators want to know of a unit.  Any thread. */
void store_unit_info(const struct store *st, int unit, struct store_unit_info *ret_info);
/* Returns the number of that name, 0 if the unit has none. */
uint64_t store_unit_number(const struct store_unit_info *info, const char *name);

#endif
