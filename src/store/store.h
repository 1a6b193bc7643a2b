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
#include "base/mailbox.h"
#include "store/bucket.h"
#include "store/conf.h"
#include "store/object.h"
#include "store/op.h"
#include "store/units.h"
#include "store/upload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;
struct timers;
struct store;
struct store_port;

/* ---- life ---- */

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

/* Size, in bytes, of the buffer for the reason of a failed start. The reason may name several disks. */
#define STORE_WHY_BYTES 2048

/* Makes a store on empty disks. force: existing data is lost. Blocking. Returns 0, -EALREADY (a store
 * exists), -EEXIST (other data exists) or -errno; the reason is in err. */
int store_format(const struct store_conf *conf, bool force, char *err, size_t err_len);

/* Results of TASK_LOOK for a store that could not be examined. said has the reason, for one of the disks. */
#define STORE_LOOK_IN_USE 1 /* a process has locked a disk */
#define STORE_LOOK_DENIED 2 /* this user may not open a disk */

/* The tasks on a store that does not run. Each writes a sentence to said: the reason of an error, or the actions. */
enum store_task {
	/* Checks the configuration without reading a disk. Returns 0, or -EINVAL if the configuration is valid for no
	 * store. */
	TASK_CHECK_CONF,
	/*
	 * Checks whether a start would accept the disks, as far as possible without recovery: are the disks members
	 * of the store, and are enough members present? Writes nothing. Returns 0 if the start would accept the
	 * disks, or if the store is not formatted yet (as described in said); STORE_LOOK_IN_USE or STORE_LOOK_DENIED
	 * if the answer is unknown; or the -errno of store_start(). With disks to forget (disks.forget) the check is
	 * for TASK_FORGET: 0 means that it would succeed, and said has a line about each of these disks, also about
	 * disks in use.
	 */
	TASK_LOOK,
	/* Upgrades the store to the format that this version writes (--upgrade); a start does not upgrade. The task can
	 * be repeated after an interruption. Returns 0 if the store now has the format of this version; or -errno. */
	TASK_UPGRADE,
	/* Removes missing disks from the store, for good (--forget): data that only these disks had is lost, and the
	 * disks are refused if they return. All other disks must be present. Returns 0 or -errno. */
	TASK_FORGET,
};
/* Does a task. Blocking. */
int store_task(const struct store_conf *conf, enum store_task task, char *said, size_t said_len);

/*
 * Locks, recovers and prepares the store for service. Blocking; uses a ring of its own during the call.
 * Returns 0, or -errno with the reason in err: -ENOTRECOVERABLE damaged or foreign (exit 74), -EINVAL size
 * differs from the superblock, or TASK_UPGRADE is needed (exit 78), -EBUSY still locked.
 */
int store_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len);

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

/* The state of a port's thread. */
enum store_turn {
	TURN_QUIESCENT, /* holds no pointer into the store */
	TURN_SLEEPS,    /* is about to wait: until TURN_WAKES the thread does not access the store */
	TURN_WAKES,     /* has stopped waiting */
};
/* Reports the state of the thread. TURN_QUIESCENT is reported once per turn of the event loop. */
void store_turn(struct store_port *p, enum store_turn turn);

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

/* Returns the limits of the port's back end, which are constant while the port is attached. Any thread may
 * call this function. */
const struct store_limits *store_limits(const struct store_port *p);

/* Returns the shard of a key, for store_share(): a number that follows from the key. */
uint32_t store_shard(const char *key, size_t len);
/* Returns true if the background work for a shard (scrub, lifecycle walk) belongs to this process. A store
 * that one process uses, such as a store on disks, has all shards. */
bool store_share(struct store_port *p, uint32_t shard);

/* Returns the lane of a key: the number, below 64, of the disk that handles the key. A caller uses lanes to
 * keep requests for one disk that hangs from using all resources. Returns -1 if the store has one disk, or if
 * the disk is unknown. changes: the caller intends to change the key; the result is then -EROFS if the change
 * would be refused because a disk has failed, so that the caller does not wait for resources first. */
int store_lane(struct store_port *p, const struct store_key *k, bool changes);

#endif
