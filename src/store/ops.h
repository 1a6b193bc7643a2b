/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops - the interface of a store back end: a table of functions, and the common first members of struct store
 * and struct store_port. For back ends, store.c and units.c; callers include only store.h. Each function implements
 * the function store_*() of store.h with the same name, or the functions that its comment names. store.c checks
 * names, lengths and numbers before it calls a back end, so a back end checks only the remaining conditions.
 */
#ifndef GANTRY_STORE_OPS_H
#define GANTRY_STORE_OPS_H

#include "base/check.h"
#include "store/store.h"

#include <stdatomic.h>

struct quota_book;

/* The new state of a bucket's gate. */
enum store_gate {
	GATE_OPEN,
	GATE_CLOSE_EMPTY, /* closes the gate if the bucket has no objects */
	GATE_CLOSE_BARE,  /* closes the gate if the bucket has neither objects nor uploads in progress */
};

/* The identity of an engine in a set. */
struct store_member {
	uint8_t store_uuid[UUID_BYTES], uuid[UUID_BYTES];
	uint64_t size_bytes;
	uint64_t start_no; /* number of the latest start that is stored in the superblock */
	/* true: begin() or a repair marked the disk as stale, and the disk has received no newer map since
	 * then */
	bool is_behind;
	const struct disk_table *table; /* placement map in the superblock */
	bool is_made;                   /* true: the disk contains data of a store */
};

/* The write of a placement map while the engine serves. Embedded by the caller. */
struct store_table_write {
	/* Called on any thread, without a lock of the engine. result 0: the map is flushed; -errno: the disk
	 * has failed. */
	void (*done)(struct store_table_write *w, int result);
};

/* ---- keys that move from one engine to another (docs/set.md, "Moves") ---- */

/*
 * A scan of keys. Slots are always given as *partitions* (set/map/disk_table.h): keys with one copy and keys
 * with two copies have different partitions. The scan returns the keys of the requested partitions for which
 * the engine has a record (object, upload, part), a few keys per call: first keys with one copy in order,
 * then keys with two copies in order. Embedded by the caller, zeroed except for the arguments of the caller.
 */
struct store_walk {
	/* arguments of the caller */
	const struct store_slots *slots; /* partitions to scan; NULL: all partitions */
	/* Port of another engine on the same thread. Keys whose records (object, upload, part) are the same
	 * in both engines are skipped. Keys that only the other engine has are found by a second scan, with
	 * the engines exchanged. NULL: no key is skipped. The comparison reads only the indexes, and
	 * allocates nothing. */
	struct store_port *differs_from;
	/* Receives a key during the call; k is valid until this function returns. Returns false to end the
	 * call after this key. */
	bool (*key)(struct store_walk *w, const struct store_key *k);
	/* results */
	bool more; /* result; true: keys are left, and the next call of walk() continues after the last key */
	/* Position of the scan, owned by the engine: the name after which the scan continues, and the kind of
	 * keys. */
	bool at_two;
	uint16_t at_len;
	uint8_t at[STORE_BUCKET_MAX + 1 + STORE_KEY_MAX];
};

/* A push of a key: its copy from one engine to another. Embedded by the caller, who keeps the struct, and the
 * memory to which the members of the struct point, until done(). */
struct store_send {
	struct store_op op; /* operation of the push; result: 0 or -errno */
	/* arguments of the caller */
	struct store_key key;
	struct buf *buf; /* buffer of STORE_PIECE bytes, from the pool of the thread's core */
	/*
	 * Returns the time in ns to wait before `bytes` of data are read; after the wait pace() is called
	 * again. STORE_SEND_STOP: the push ends with -EINTR. NULL: the rate is not limited.
	 */
	uint64_t (*pace)(struct store_send *s, uint32_t bytes);
	/*
	 * Hints about the change. only_upload: only the upload with this id has changed (it was created,
	 * aborted, or got new parts). only_object: all records except uploads have changed. NULL and false:
	 * any record of the key may have changed, as after the completion of an upload.
	 */
	const uint8_t *only_upload;
	bool only_object;
	bool is_repair; /* true: the push repairs damage at the target; see send() */
	/* results, also after an error */
	uint64_t bytes;   /* number of bytes of data written */
	uint32_t changes; /* number of records written or removed; 0: source and target were equal */
	void *priv;       /* private to the engine */
};
#define STORE_SEND_STOP UINT64_MAX

/* The usage of one bucket in one partition that moves, counted for one copy of each key. An entry of the list
 * with which the usage moves from one counter of the quota ledger to another. */
struct store_moved {
	struct store_moved *next;
	struct store_use use;
	unsigned place;
	uint8_t len;
	char name[STORE_BUCKET_MAX];
};

/* The requests about slots to an engine's leader. */
enum store_slots_act {
	/* Begins to report to o->changed() each key of these slots of which a record is published. Records
	 * that were published earlier are visible to a scan after done(). slots NULL: ends the reports;
	 * changed() does not run after done(). */
	SLOTS_WATCH,
	/*
	 * Pauses changes of keys in these slots. A change waits for a second at most, and then ends with
	 * -EAGAIN. When the freeze completes, all earlier changes are flushed, published and reported to
	 * changed(). After an error of the freeze changes may be paused nevertheless.
	 */
	SLOTS_FREEZE,
	/* Resumes changes of keys of these slots. */
	SLOTS_THAW,
	/*
	 * The switch of slots to another engine, after a freeze and the last send. SLOTS_TAKE assigns the
	 * slots to the target; then the set directs all requests to the target; then SLOTS_LEAVE makes the
	 * records of the slots foreign at the source, and paused changes end with -EXDEV. SLOTS_LEAVE needs
	 * the result of SLOTS_TAKE, and moves the usage in the quota ledger in one step. Both also run on a
	 * failed disk.
	 */
	SLOTS_TAKE,
	SLOTS_LEAVE,
	/* Ends the assignment of the slots to an engine whose disk has failed, immediately, for all threads, and
	 * before the call returns. A later SLOTS_LEAVE moves the usage, on the leader, which may wait for a
	 * disk that hangs. */
	SLOTS_DISOWN,
};

#define STORE_PRIV_SLOTS 768
/* A request about slots to an engine's leader. Embedded by the caller. */
struct store_slots_op {
	struct store_op op; /* operation of the request; result: 0 or -errno */
	/* partitions of the request, kept by the caller until the end */
	const struct store_slots *slots;
	/* Reports a changed key, for SLOTS_WATCH. Called on the thread that is the leader at the moment, which
	 * may be any thread, after a record of the key was published in the engine. Must not block. */
	void (*changed)(void *cookie, const struct store_key *k);
	void *cookie;
	/* list of usages: result of SLOTS_TAKE, argument of SLOTS_LEAVE, which frees the list */
	struct store_moved *moved;
	int counter; /* index of the engine's counter in the quota ledger */
	_Alignas(8) unsigned char priv[STORE_PRIV_SLOTS];
};

/*
 * The carrier of a PUT, which takes over the PUT for a replay. A PUT whose commit ends with -EXDEV, because
 * the key has moved to another engine, is passed to its carrier. The set stores the carrier in
 * store_put.carrier after store_put_init(); NULL: the PUT is not replayed.
 */
struct store_carrier {
	/*
	 * Takes over a PUT. Called on the PUT's thread, in place of done(). Returns true if the carrier now
	 * owns the PUT, and will abort it and call done() with the result. Until the abort the engine keeps
	 * the written data, and the arguments of the commit, for LOOK_PUT. Returns false if the PUT ends
	 * with -EXDEV.
	 */
	bool (*carry)(struct store_carrier *c, struct store_put *put);
};

/* The subject of a PUT. The memory to which its pointers lead may end with the call. */
struct store_put_spec {
	struct store_key key;
	const uint8_t *upload_id; /* id of the upload, for a part; NULL: the PUT writes an object */
	uint32_t part_number;
	uint64_t size_bytes; /* size of the object or part; or STORE_SIZE_UNKNOWN */
	/*
	 * true: the PUT is the secondary copy of a PUT, on an engine to which the key is not assigned (-EPERM:
	 * the key is assigned). The pieces given to the primary are also given to put_write() of this engine, at
	 * the same time if necessary: neither engine changes the pieces, and both write the same padding. Quotas
	 * are not applied. put_init() has two further results: -ENOSPC, also for a small object for which there
	 * is no space; and -ENOENT: this engine does not have the upload yet. copy_commit() commits the copy.
	 */
	bool is_copy;
};

/* The arguments of a PUT, as the engine keeps them; valid until the PUT is aborted. */
struct store_put_args {
	struct store_put_spec spec;
	/* arguments of the commit, without pieces and inline data; if have_expect_crc64 is set, expect_crc64
	 * covers all bytes of the PUT */
	struct store_commit commit;
};

/* The additional functions of an engine that stores a placement map, for a set. A start calls open(),
 * recover(), begin(), set_table() and serve() in this order; each may be called on any thread. After an error
 * of one of these functions the reason is in err, and the store must be stopped. */
struct store_member_ops {
	/* Opens and locks the disk, and returns its identity. Writes nothing. uuid (zeros: unknown) and
	 * is_made are also set for a disk that cannot be opened. */
	int (*open)(const struct store_conf *conf, struct store **ret_store, struct store_member *ret_member,
		    char *err, size_t err_len);
	/*
	 * Reads the contents of the disk, and counts the usage in the counter with the index `counter`. Writes
	 * nothing. slots: partitions that the placement map assigns to the engine; NULL: all partitions are
	 * assigned. Records in other partitions are *foreign*: foreign records are not listed, not counted, and
	 * do not prevent the removal of a bucket. They can be read by their key, and remain until they are
	 * removed. Changes of keys in other partitions end with -EXDEV: the caller repeats them at the current
	 * engine. *ret_start_no: lowest number that this start may have. Returns 0 or -errno.
	 */
	int (*recover)(struct store *st, const struct store_slots *slots, uint64_t index_bytes,
		       struct quota_book *quotas, int counter, uint64_t *ret_start_no, char *err,
		       size_t err_len);
	/* Claims the disk for the start with this number: stores and flushes the number and, if is_behind is
	 * true, a mark that the disk is stale. The mark remains until the disk gets a placement map. Returns
	 * 0 or -errno. */
	int (*begin)(struct store *st, uint64_t start_no, bool is_behind, char *err, size_t err_len);
	/* Writes a placement map, and flushes it before it returns. Called before serve(). */
	int (*set_table)(struct store *st, const struct disk_table *t, char *err, size_t err_len);
	int (*serve)(struct store *st, char *err, size_t err_len);
	/* Writes a placement map after serve(). The map is copied during the call. One write at a time. Never
	 * blocks; done() does not run before the return. If the disk has failed, done() possibly never runs;
	 * no further write is allowed then. */
	void (*put_table)(struct store *st, const struct disk_table *t, struct store_table_write *w);
	/* Returns true if the disk has failed. A failure is final. Any thread may call this function. */
	bool (*has_failed)(const struct store *st);

	/* Passes keys for which the engine has a record, assigned or foreign, to w->key(). Returns the number
	 * of these keys, >= 0. A call examines some hundred records, and may find no key. */
	int (*walk)(struct store_port *p, struct store_walk *w);
	/*
	 * Pushes a key: makes the records of engine `to` for the key equal to those of `from` (object,
	 * uploads and parts, with their ids, versions, times and attributes). Both ports belong to this
	 * thread. The key must not be assigned to `to` (-EPERM). Writers of the key at `from` do not wait: a
	 * key that changes in the meantime, as reported by SLOTS_WATCH, must be sent again, the last time after a
	 * SLOTS_FREEZE. One push at a time for a key. done() runs when all records are flushed at `to`; equal
	 * records are not copied. After an error the next send() continues with the records copied so far.
	 * -EXDEV: the key is not assigned to `from`; -ENOSPC; -EAGAIN (a change is in progress, or no memory:
	 * try again); -EBADMSG: bytes or records of the source are damaged; -EIO, -ENODEV: the source cannot
	 * be read; -EROFS: the target has failed; -EINTR: pace() requested the end.
	 *
	 * send() also copies a change of a key with two copies to the secondary, after the change is
	 * published at the primary, while the set holds the key lock: a deletion, attributes, an upload that
	 * is created, completed or aborted; and a PUT whose copy_commit() failed. Records that the source
	 * does not have are removed at the target, also parts of uploads. In addition to the transfer of
	 * bytes, send() looks up each part of the completed object and each upload of the key, unless a hint
	 * excludes them.
	 *
	 * is_repair: the push repairs damage at the target. One of the engines is the primary of the key, the
	 * other is its secondary (else -EXDEV). Data that is unreadable at the target is written again from
	 * the source, and nothing else is changed. The object is repaired, or its parts, if both engines have
	 * the same version of the object and of its data; then parts of uploads, if both engines have the
	 * upload and the same version of the part. -ESTALE: the objects differ, or the object was changed
	 * during the repair. Readers with the object open at the target keep the old bytes. changes: number
	 * of records with new bytes; 0: no damage.
	 *
	 * from NULL: removes all records of the key from `to`. One removal of a key at a time, and no removal
	 * during another send() of the key.
	 */
	int (*send)(struct store_port *from, struct store_port *to, struct store_send *s);
	/*
	 * Commits the secondary copy, as put_commit() does for a PUT, after the primary has committed
	 * `version`. The copy gets the current version, time, ETag, attributes and checksums of the record at
	 * `from`. Only the last piece and the inline data of sc are used. put->op.done() runs when the record
	 * is flushed and published. -EAGAIN: version or size differ from the record at `from`; -EILSEQ: the
	 * bytes differ; -EPERM: the key was assigned to the engine in the meantime. After any error except
	 * -EPERM the caller makes the copy with put_abort() and send().
	 */
	int (*copy_commit)(struct store_port *to, struct store_put *put, struct store_port *from,
			   uint64_t version, const struct store_commit *sc);
	int (*slots)(struct store_port *p, enum store_slots_act act, struct store_slots_op *o);
	/*
	 * Returns the usage of all keys with two copies in a slot, assigned or foreign: the number of
	 * objects, and the bytes of objects and of parts of uploads. Called by any thread, after recover().
	 */
	void (*two_use)(const struct store *st, unsigned slot, struct store_use *ret_use);
};
_Static_assert(sizeof(struct store_member_ops) <= 13 * sizeof(void (*)(void)), "at most 13 functions");

/* The changes that consist of one step, with the type of the caller's operation. */
enum store_act {
	ACT_DELETE,           /* struct store_del: store_delete() */
	ACT_SET_ATTRS,        /* struct store_del: store_set_attrs() */
	ACT_CREATE_UPLOAD,    /* struct store_upload: store_upload_create() */
	ACT_ABORT_UPLOAD,     /* struct store_upload: store_upload_abort() */
	ACT_COMPLETE,         /* struct store_complete: store_upload_complete() */
	ACT_CREATE_BUCKET,    /* struct store_del: store_bucket_create_as() */
	ACT_DELETE_BUCKET,    /* struct store_del: store_bucket_delete() */
	ACT_SET_BUCKET_ATTRS, /* struct store_bucket_set: store_bucket_set_attrs() */
	ACT_SET_QUOTA,        /* struct store_bucket_set: store_bucket_set_quota() */
	/* The following acts are for an engine in a set. The type of their operation is struct store_del. */
	/* Makes a bucket with the given creation time, number of copies and attributes. is_gated: the bucket
	 * begins with a closed gate, and writers get -ENXIO until the gate opens. */
	ACT_MAKE_BUCKET,
	/*
	 * Closes or opens the gate of a bucket. While the gate is closed, writers wait, and end with -EAGAIN
	 * after a while. A gate can be closed only if the bucket exists (otherwise -ENXIO) and is empty in
	 * the sense of `gate`, with no change in progress (otherwise -ENOTEMPTY); -EAGAIN: too many gates are
	 * closed. GATE_OPEN opens the gate, even if the bucket does not exist. Repeated calls have no effect.
	 * The state of a gate is in memory only.
	 */
	ACT_GATE_BUCKET,
	/*
	 * Sets the number of copies of a bucket. The bucket must exist (-ENXIO), and must have neither
	 * objects nor uploads in progress (-ENOTEMPTY). The bucket gets a new record with a newer version;
	 * time, attributes and quota do not change. Returns 0 without a change if the bucket has this number
	 * already.
	 */
	ACT_SET_COPIES,
};

/* The arguments of a change; those that the act does not have are 0. */
struct store_change {
	enum store_act act;
	struct store_key key;        /* key; of a change of a bucket only bucket and bucket_len are set */
	const struct store_pre *pre; /* DELETE: precondition; NULL: none */
	uint64_t version;            /* SET_ATTRS, SET_BUCKET_ATTRS: required version */
	const void *attrs;           /* SET_ATTRS, CREATE_UPLOAD, CREATE_, MAKE_ and SET_BUCKET_ATTRS */
	uint32_t attrs_len;
	unsigned copies;             /* CREATE_BUCKET, MAKE_BUCKET, SET_COPIES */
	const uint8_t *id;           /* ABORT_UPLOAD, COMPLETE: id of the upload */
	const struct store_use *max; /* SET_QUOTA: the limits */
	uint64_t ctime_ns;           /* MAKE_BUCKET */
	bool is_gated;               /* MAKE_BUCKET */
	enum store_gate gate;        /* GATE_BUCKET */
};

/* The look-ups, with the type of the caller's operation. */
enum store_look_kind {
	LOOK_OBJECT,       /* struct store_obj: store_open(), store_open_to_read() and store_open_second() */
	LOOK_PART,         /* struct store_obj: store_open_part() */
	LOOK_UPLOAD,       /* struct store_stat: store_upload_stat() */
	LOOK_PARTS,        /* struct store_part_list: store_list_parts() */
	LOOK_BUCKET,       /* struct store_stat: store_bucket_head() */
	LOOK_BUCKET_ATTRS, /* struct store_stat: store_bucket_get_attrs() */
	/* For an engine in a set; struct store_obj. Opens the data of a PUT that its carrier owns, like an object
	 * that one PUT has written. No other reader sees this object. The caller closes the object before it
	 * aborts the PUT. -EAGAIN: no memory. */
	LOOK_PUT,
	LOOK_NR
};

/* The arguments of a look-up; those that the kind does not have are 0. */
struct store_look {
	enum store_look_kind kind;
	struct store_key key; /* key; of a look-up of a bucket only bucket and bucket_len are set */
	const uint8_t *id;    /* PART, UPLOAD, PARTS: id of the upload */
	uint32_t number;      /* PART: number of the part */
	bool is_second;       /* OBJECT, PART: the secondary copy is opened; false in a call of an engine */
	/* OBJECT: true: the caller reads `want` bytes immediately afterwards, as store_open_to_read() says */
	bool is_to_read;
	uint64_t want;
	void *attrs; /* UPLOAD, BUCKET_ATTRS: buffer for attributes, and its size in bytes */
	uint32_t cap;
	struct store_put *put; /* PUT: the PUT, and result: its arguments */
	struct store_put_args *ret_args;
};

/* The state of a back end, for store_answers() and store_is_fenced(). STORE_IS_STUCK: operations wait without an end.
 * STORE_IS_FENCED: another process has replaced this one. */
enum store_answer { STORE_ANSWERS, STORE_IS_STUCK, STORE_IS_FENCED };

struct store_ops {
	const char *name; /* name of the back end for operators, such as "disks" */

	/* ---- life ---- */
	/* -ENOSYS: the back end does not have this task. NULL: it has none. */
	int (*task)(const struct store_conf *conf, enum store_task task, char *said, size_t said_len);
	int (*format)(const struct store_conf *conf, bool force, char *err, size_t err_len);
	/* NULL: an engine that a set starts by `member`. */
	int (*start)(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len);
	/* Implements store_fsck(). NULL: the back end has no check. */
	int (*fsck)(const struct store_conf *conf, enum fsck_mode mode,
		    void (*say)(void *cookie, const char *line), void *cookie);
	void (*stop)(struct store *st); /* Implements the function of the same name; never NULL. */
	int (*attach)(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
		      struct store_port **ret_port);
	bool (*detach)(struct store_port *p);
	/* NULL: the back end does not need these calls. */
	void (*turn)(struct store_port *p, enum store_turn turn);
	/* Implements store_lane(). NULL: the back end has no lanes. */
	int (*lane)(struct store_port *p, const struct store_key *k, bool changes);
	/* Implements store_share(). NULL: every shard belongs to this process. */
	bool (*share)(struct store_port *p, uint32_t shard);

	/* ---- objects ---- */
	/*
	 * Looks up an object, a part, an upload or a bucket; implements the functions of store.h that enum
	 * store_look_kind names. op: first member of the caller's operation; enum store_look_kind also names the
	 * type of the operation. The caller keeps *l only during the call. -EOPNOTSUPP: the back end does not have
	 * the kind; -ENODATA: is_second, and the back end has no secondary copies. An engine in a set has its index in
	 * memory: only LOOK_PARTS may wait.
	 */
	int (*look)(struct store_port *p, const struct store_look *l, struct store_op *op);
	/* Implements store_close(); called only for an object that is open. */
	void (*close)(struct store_port *p, struct store_obj *obj);
	uint32_t (*read_plan)(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap,
			      uint32_t *ret_skew);
	int (*read)(struct store_port *p, struct store_obj *obj, struct store_read *rd, struct buf *buf,
		    uint64_t off, uint32_t len);
	/* Implements store_read_cancel(). NULL: a read cannot be cancelled. */
	bool (*read_cancel)(struct store_port *p, struct store_read *rd);
	/* Implements store_give_up(). NULL: look-ups are not aborted, because they never wait long. */
	void (*give_up)(struct store_port *p, const void *asker, uint64_t older_ns);
	/* Implements store_put_init() and store_put_init_part(). */
	int (*put_init)(struct store_port *p, struct store_put *put, const struct store_put_spec *spec);
	int (*put_write)(struct store_port *p, struct store_put *put, struct store_write *w, struct buf *buf,
			 uint32_t len, bool last);
	/* Implements store_write_cancel(). NULL: a write cannot be cancelled. */
	bool (*write_cancel)(struct store_port *p, struct store_write *w);
	int (*put_commit)(struct store_port *p, struct store_put *put, const struct store_commit *c);
	/* Implements store_put_abort(); called only for a PUT that was started. */
	void (*put_abort)(struct store_port *p, struct store_put *put);
	/*
	 * Makes a change that consists of one step; implements the functions of store.h that enum store_act names.
	 * op: first member of the caller's operation; enum store_act also names the type of the operation. The
	 * back end copies *c, names, preconditions and ids during the call; the caller keeps the other memory to
	 * which *c points as the function of store.h says. -EOPNOTSUPP: the back end does not have the act.
	 */
	int (*apply)(struct store_port *p, const struct store_change *c, struct store_op *op);

	/* ---- multipart uploads ---- */
	/* Implements store_obj_part() (by_number) and store_obj_part_at(); called only for an object that is
	 * open. nr: number, or index of the part. */
	int (*obj_part)(struct store_obj *obj, uint32_t nr, bool by_number, struct store_part *ret_part);

	/* ---- buckets, lists ---- */
	/* Implements store_bucket_was_there(). NULL: store_bucket_was_there() returns false, because
	 * store_bucket_head() is as fast. */
	bool (*bucket_was_there)(struct store_port *p, const char *name, size_t len);
	/* Implements store_list() and store_list_uploads(). */
	int (*list)(struct store_port *p, struct store_list *ls);

	/* ---- functions for operators ---- */
	/* Implements store_snapshot(). NULL: the back end has no snapshots. */
	int (*snapshot)(struct store *st);
	/* Implements store_reread(). NULL: the back end has no metadata that can be read again. */
	void (*reread)(struct store_port *p);
	/* Implements store_answers() and store_is_fenced(): why has a sentence, if the result is not
	 * STORE_ANSWERS. NULL: the back end always answers, or the units of the back end report problems, and
	 * no other process can replace this process. */
	enum store_answer (*answers)(const struct store *st, char *why, size_t len);
	/* Implements store_change_disks() and store_set_move_rate(). NULL: the disks are fixed; disks_info() is
	 * NULL, too. */
	int (*change_disks)(struct store *st, const struct store_disk_change *c, char *said, size_t said_len);
	/* Implements store_move_info() and store_copies_info(); ret_move or ret_copies is NULL. */
	void (*disks_info)(const struct store *st, struct store_move_info *ret_move,
			   struct store_copies_info *ret_copies);
	/* Implements store_background(). NULL: the back end has no background work. */
	const char *(*background)(const struct store *st);
	void (*unit_info)(const struct store *st, int unit, struct store_unit_info *ret_info);
	/* additional functions of an engine; NULL: the back end stores no placement map */
	const struct store_member_ops *member;
};
_Static_assert(sizeof(struct store_ops) <= (32 + 2) * sizeof(void (*)(void)),
	       "at most 32 functions, a name and `member`: what a function can do by an argument needs no "
	       "other one");

/* A back end in a separate module: the symbol gantry_store_module of the module. The daemon loads the module
 * if the configuration names this back end. */
struct store_module {
	/* version of Gantry for which the module was built; must equal the daemon's version */
	const char *version;
	const struct store_ops *ops;
};

/* Adds a named number to the numbers of a unit (struct store_unit_info). */
static inline void
store_unit_add(struct store_unit_info *info, const char *name, uint64_t value, bool is_hidden)
{
	check(info->number_nr < STORE_UNIT_NUMBERS_MAX);
	info->number[info->number_nr++] = (struct store_unit_number){ name, value, is_hidden };
}

/* First members of the struct store of every back end, set before start() returns. */
struct store {
	const struct store_ops *ops;
	struct quota_book *quotas; /* quota ledger (model/quota.h); NULL: the back end has no quotas */
	bool has_no_expiry;  /* true: no object has an expiry (struct store_meta) when start() returns */
	_Atomic int unit_nr; /* number of units; units are only added */
};

/* First members of the struct store_port of every back end, set by attach(). */
struct store_port {
	const struct store_ops *ops;
	const struct store_limits *limits; /* sizes that the back end can handle */
	const void *asker;                 /* owner of the operations that begin now; set by store_asker() */
	/* lender of buffers, set by store_set_spares(); NULL: no buffers are lent */
	struct store_spares *spares;
};

#endif
