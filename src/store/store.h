/*
 * The store: objects on disk, atomic and durable.  One header; above it there is no disk number, extent,
 * descriptor or index iterator, only handles.  store.md of the design is the reference (docs/store.md).
 *
 * Threads.  A *port* is one thread's access to the store (a core, or a test); store_attach() makes it, with
 * the thread's ring and mailbox.  Every call names a port and is made on its thread; done() always runs on
 * that thread, even when the work was finished by another core (it comes in through the mailbox).
 *
 * Starting.  A start returns < 0: not started (done() will not run); 0: started, done() will run later, never
 * before the start returned; > 0: finished already, the result is in op->result and done() will not run.
 *
 * Results are -errno:
 *   -ENOENT    no such object            -ENXIO     no such bucket          -EEXIST    exists (PRE_ABSENT,
 * bucket create) -ESTALE    PRE_MATCH failed          -ENOTEMPTY bucket not empty        -EILSEQ    content
 * is not what expect_crc64 says -ENOSPC    disk or index full (507)  -EAGAIN    log full, not now (503)
 * -EROFS     disk failed, read-only (503) -EBADMSG   stored bytes do not match their CRC -EIO       the disk
 * said no -ECANCELED outcome unknown: the write may or may not survive (503)      -ENAMETOOLONG, -EINVAL  as
 * they say
 */
#ifndef GANTRY_STORE_STORE_H
#define GANTRY_STORE_STORE_H

#include "base/buf.h"
#include "base/mailbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;
struct timers;
struct store;
struct store_port;

#define STORE_KEY_MAX 1024
#define STORE_BUCKET_MAX 63
#define STORE_INLINE_MAX 256        /* objects up to here live in their record */
#define STORE_ATTRS_MAX (12u << 10) /* opaque attributes of one object */
#define STORE_GRANULE (64u << 10)   /* CRC granule: reads and all pieces but the last are multiples */
#define STORE_PIECE (1u << 20)      /* largest read or write of one call */
#define STORE_SIZE_UNKNOWN UINT64_MAX

/* ---- life
 * ---------------------------------------------------------------------------------------------------------
 */

struct store_disk_conf {
	const char *path;    /* a directory, or a block device */
	uint64_t size_bytes; /* for --format; 0 for a block device means all of it */
};

struct store_conf {
	const struct store_disk_conf *disks;
	int disk_nr;
	uint64_t index_bytes;  /* memory the index may use, in all */
	uint64_t lock_wait_ns; /* how long start waits for a dead process's last writes */
	int ports_max;
};

/* Makes a store on empty disks (force: whatever was there is lost).  Blocking.  0 or -errno; the reason is in
 * err. */
int store_format(const struct store_conf *conf, bool force, char *err, size_t err_len);

/*
 * Locks, recovers, makes ready to serve.  Blocking; uses a ring of its own meanwhile.  0, or -errno with the
 * reason in err: -ENOTRECOVERABLE damaged or foreign (exit 74), -EINVAL size differs from the superblock
 * (exit 78), -EBUSY still locked.
 */
int store_open_disks(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len);

/* --fsck: reads everything, prints what is wrong through say(); repair: cuts a damaged log tail.  0 clean, 1
 * repaired, -ENOTRECOVERABLE damage left, other -errno.  Blocking; the store must not be running. */
int store_fsck(const struct store_conf *conf, bool repair, void (*say)(void *cookie, const char *line),
	       void *cookie);

/* After every port was detached: writes the last stamp, stops helpers, frees.  NULL is fine. */
void store_close_disks(struct store *st);

/* On the port's own thread.  0 or -ENOMEM, -EUSERS. */
int store_attach(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
		 struct store_port **ret_port);
/* True when nothing of this port is in flight any more; call again (turning the loop) until it is. */
bool store_detach(struct store_port *p);

/* Once per turn of the loop: this thread holds no index node from before.  And around sleeping: a sleeper
 * counts as quiescent and must not touch the store. */
void store_quiesce(struct store_port *p);
void store_sleep(struct store_port *p);
void store_wake(struct store_port *p);

/* ---- names and metadata
 * ------------------------------------------------------------------------------------------- */

/* Bucket and object key as bytes, not terminated; the caller keeps them until the call (not the operation)
 * returned. */
struct store_key {
	const char *bucket, *key;
	uint16_t bucket_len, key_len;
};

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

/* Judged by the commit leader, in log order.  The bucket must always exist. */
enum store_pre_kind { PRE_NONE, PRE_ABSENT, PRE_MATCH_ANY, PRE_MATCH, PRE_NONE_MATCH };
#define STORE_PRE_ETAGS 8
struct store_pre {
	enum store_pre_kind kind;
	struct store_etag etags[STORE_PRE_ETAGS];
	uint8_t etag_nr;
};

/* ---- operations: embedded by the caller
 * --------------------------------------------------------------------------- */

struct store_op {
	struct msg msg; /* the store's */
	void (*done)(struct store_op *op);
	int result;
	struct store_port *port;
};

/* An object version, opened and pinned: its extents are not reused before store_close(). */
struct store_obj {
	struct store_op op;
	/* after success */
	uint64_t size_bytes;
	uint64_t version; /* grows with every commit to the store */
	uint64_t crc64;   /* CRC64-NVME of the whole object */
	struct store_meta meta;
	bool is_open;
	_Alignas(8) unsigned char priv[192]; /* the store's */
};

/* Looks up and pins.  Usually finishes at once. */
int store_open(struct store_port *p, const struct store_key *k, struct store_obj *obj);
/* NULL-safe, and fine on an object that never opened.  No read of it may be in flight. */
void store_close(struct store_port *p, struct store_obj *obj);

struct store_read {
	struct store_op op; /* result: bytes read, or -errno */
	_Alignas(8) unsigned char priv[512];
};

/*
 * Reads [off, off + len) of obj to buf->mem and checks its CRCs before it says so.  off is a multiple of
 * STORE_GRANULE; so is len, unless the range ends with the object.  len <= buf->cap_bytes; the slack behind
 * the buffer is used too.  Reads of one object may overlap.
 */
int store_read(struct store_port *p, struct store_obj *obj, struct store_read *rd, struct buf *buf,
	       uint64_t off, uint32_t len);

/*
 * A PUT.  store_put_init(); store_put_write() for each piece, in order, several may be in flight; when every
 * write is done, store_put_commit() or store_put_abort().  The last piece may ride with the commit (one flush
 * for data and log then).
 */
struct store_put {
	struct store_op op; /* the commit's: 0 = durable and visible */
	/* so far, over all pieces given to store_put_write() */
	uint64_t size_bytes;
	uint64_t crc64;
	/* after success */
	uint64_t version;
	bool is_started;
	_Alignas(8) unsigned char priv[3072]; /* the store's; the granule CRCs of a chunk lie in a side buffer
						 of the port */
};

/* size: what will come, or STORE_SIZE_UNKNOWN.  0, or -ENOSPC, -EROFS, -EAGAIN (not now), -ENXIO (no such
 * bucket, early answer; the leader judges again), -ENAMETOOLONG. */
int store_put_init(struct store_port *p, struct store_put *put, const struct store_key *k,
		   uint64_t size_bytes);

struct store_write {
	struct store_op op; /* result: 0 (on the disk, not yet flushed) or -errno */
	_Alignas(8) unsigned char priv[512];
};

/* The next len bytes, at buf->mem; len is a multiple of STORE_GRANULE unless last.  The buffer stays the
 * store's until done(); behind the data it may be padded and given a trailer (that is what the slack is for).
 * May wait for space being made. */
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
};

/* Hands over to the leader; from a return of 0 on nothing cancels it.  A negative return: nothing was handed
 * over, the put must be aborted.  *c is copied except where it points; attrs, last, inline_data as said. */
int store_put_commit(struct store_port *p, struct store_put *put, const struct store_commit *c);
/* Gives the extents back.  No write may be in flight.  NULL-safe, fine on a put never started and after a
 * commit ended. */
void store_put_abort(struct store_port *p, struct store_put *put);

struct store_del {
	struct store_op op; /* result: 1 deleted, 0 was not there, or -errno */
	_Alignas(8) unsigned char priv[2048];
};
int store_delete(struct store_port *p, const struct store_key *k, const struct store_pre *pre,
		 struct store_del *del);

/* ---- buckets
 * ------------------------------------------------------------------------------------------------------ */

int store_bucket_create(struct store_port *p, const char *name, size_t len,
			struct store_del *op); /* 0, -EEXIST */
int store_bucket_delete(struct store_port *p, const char *name, size_t len,
			struct store_del *op); /* 0, -ENXIO, -ENOTEMPTY */
/* Published state, at once: 0 (ret_ctime_ns may be NULL) or -ENXIO. */
int store_bucket_head(struct store_port *p, const char *name, size_t len, uint64_t *ret_ctime_ns);

/* ---- listing
 * ------------------------------------------------------------------------------------------------------ */

struct store_entry {
	const char *name; /* object key or bucket name, in byte order; valid during the callback */
	size_t name_len;
	uint64_t size_bytes, mtime_ns, version;
	struct store_etag etag;
};

/* A page, in key order, beginning behind `after` (exclusive; NULL: from the start) and with names that begin
 * with `prefix`. What the pointers name is kept by the caller until the operation's end. */
struct store_list {
	struct store_op op; /* result: entries given; `more` says whether there are others */
	const char *bucket; /* NULL: the buckets themselves */
	const char *prefix, *after;
	uint16_t bucket_len, prefix_len, after_len;
	uint32_t max;
	/* On the port's thread; false ends the page. */
	bool (*entry)(struct store_list *ls, const struct store_entry *e);
	bool more;
	_Alignas(8) unsigned char priv[1536];
};
int store_list(struct store_port *p, struct store_list *ls);

/* ---- what operators see
 * ------------------------------------------------------------------------------------------- */

enum store_disk_state { DISK_OK, DISK_FAILED, DISK_STATE_NR };

struct store_disk_info {
	const char *path;
	enum store_disk_state state;
	char reason[128];
	uint64_t size_bytes, free_bytes, log_bytes, log_used_bytes;
	uint64_t objects, index_bytes;
	uint64_t read_bytes, read_ops, written_bytes, write_ops, flushes, errors, crc_errors;
	uint64_t commits, records, snapshots, cut_records;
	uint64_t pins;
};

int store_disk_nr(const struct store *st);
/* Any thread. */
void store_disk_info(const struct store *st, int disk, struct store_disk_info *ret_info);

#endif
