/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a back end of the store is: a table of functions, and the heads of its struct store and struct
 * store_port. For back ends and store.c; callers know store.h alone.
 *
 * Each function is the store_*() of store.h of the same name, and keeps what is promised there.  store.c has
 * checked names, lengths and numbers by then: a back end checks what only it can know.
 */
#ifndef GANTRY_STORE_OPS_H
#define GANTRY_STORE_OPS_H

#include "base/check.h"
#include "store/store.h"

/* What becomes of a bucket's gate. */
enum store_gate {
	GATE_OPEN,
	GATE_CLOSE_EMPTY, /* it is closed if there are no objects */
	GATE_CLOSE_BARE,  /* it is closed if there are neither objects nor uploads in progress */
};

/* Who an engine is in a set. */
struct store_member {
	uint8_t store_uuid[UUID_BYTES], uuid[UUID_BYTES];
	uint64_t size_bytes;
	uint64_t start_no; /* the latest start that its superblock knows */
	bool is_behind;    /* begin() said so, or a repair dropped something, and it has had no table since */
	const struct disk_table *table; /* that it has */
	bool is_made;                   /* something of a store is there */
};

/* A table that an engine writes while it serves: embedded by the caller. */
struct store_table_write {
	/* Runs on any thread, with no lock of the engine held: the table is flushed, or (-errno) the disk has failed. */
	void (*done)(struct store_table_write *w, int result);
};

/* ---- keys that move from one engine to another (docs/set.md, "Moves") ---- */

/*
 * Wherever an engine is told or tells of slots, it is by *places* (set/map/disk_table.h): those of keys with one copy and those of
 * keys with two are different ones.
 *
 * The keys of some places that an engine has something of (an object, an upload, a part): those with one copy in order, then
 * those with two, a few with each call.  Embedded by the caller, who begins with all zeros but for what is in.
 */
struct store_walk {
	/* in */
	const struct store_slots *slots; /* NULL: all */
	/*
	 * Only keys of which that engine, of the same thread, has not the same as this one has: another object, or none; an
	 * upload or a part that is another, or none.  What it has besides a walk of it finds, with this one here.  NULL: all keys.
	 * It is done in the indexes alone, without memory.
	 */
	struct store_port *differs_from;
	/* While the call runs; k is good until it returns.  False: this was the last one for now. */
	bool (*key)(struct store_walk *w, const struct store_key *k);
	/* out */
	bool more; /* another call goes on behind */
	/* the engine's: the name behind which it goes on, and of which kind of keys */
	bool at_two;
	uint16_t at_len;
	uint8_t at[STORE_BUCKET_MAX + 1 + STORE_KEY_MAX];
};

/* A key on its way from one engine to another.  Embedded by the caller, who keeps all of it until done(). */
struct store_send {
	struct store_op op; /* result: 0 or -errno */
	/* in */
	struct store_key key;
	struct buf *buf; /* of STORE_PIECE bytes, of the pool of the thread's core */
	/*
	 * Before that many bytes of data are read (NULL: there is no hurry): how many nanoseconds to wait first; then it is
	 * asked again.  STORE_SEND_STOP: no further, the result is -EINTR.
	 */
	uint64_t (*pace)(struct store_send *s, uint32_t bytes);
	/*
	 * Hints of who knows what has changed: the upload of that id alone (it was made or aborted, or got parts), or all but
	 * uploads.  NULL, false: all of the key.  A completed upload is all of it.
	 */
	const uint8_t *only_upload;
	bool only_object;
	bool is_repair; /* repairs what is damaged at the target: see send() */
	/* out, also after an error */
	uint64_t bytes;   /* of data that were written */
	uint32_t changes; /* records that were written or removed; 0: all was equal */
	void *priv;       /* the engine's */
};
#define STORE_SEND_STOP UINT64_MAX

/* What a bucket has of what moved, for the books. */
struct store_moved {
	struct store_moved *next;
	struct store_use use;
	unsigned place;
	uint8_t len;
	char name[STORE_BUCKET_MAX];
};

/* What an engine's leader is told about slots: embedded by the caller. */
#define STORE_PRIV_SLOTS 768
struct store_slots_op {
	struct store_op op; /* result: 0 or -errno */
	/* in, kept until the end */
	const struct store_slots *slots;
	/* watch(): on the leader's thread, any of them: something under that key was published here.  It must not block. */
	void (*changed)(void *cookie, const struct store_key *k);
	void *cookie;
	/* Out of take(), into leave(), which frees it. */
	struct store_moved *moved;
	int counter; /* of the books */
	_Alignas(8) unsigned char priv[STORE_PRIV_SLOTS];
};

/*
 * Who takes a PUT over whose commit came to -EXDEV: the key has gone to another engine.  The set says so in store_put.carrier behind
 * the init; NULL: nobody does.
 */
struct store_carrier {
	/*
	 * On the put's thread, in place of done().  True: it is the carrier's, which ends it: it aborts the put, and calls done() with what
	 * came of it.  Until the abort the engine keeps all that was written, and the arguments of the commit, for open_put().  False: the
	 * put ends with -EXDEV.
	 */
	bool (*carry)(struct store_carrier *c, struct store_put *put);
};

/* What a PUT was given, by its engine; good until it is aborted. */
struct store_put_args {
	struct store_key key;
	const uint8_t *upload_id; /* of a part; NULL: it is an object */
	uint32_t part_number;
	struct store_commit commit; /* without the bytes; have_expect_crc64: of all of them */
};

/* What an engine with a table of disks can besides, for a set: a start in steps, one after the other, each on any
 * thread.  The reason of an error is in err, and the store is to be stopped then. */
struct store_member_ops {
	/* Opens and locks, and says who it is.  Writes nothing.  Of one that it cannot open, too, uuid (zeros: it is not known) and
	 * is_made are said. */
	int (*open)(const struct store_conf *conf, struct store **ret_store, struct store_member *ret_member,
		    char *err, size_t err_len);
	/* Reads what is there, and counts it under that number.  Writes nothing.  *ret_start_no: the least number that
	 * this start may have. */
	int (*recover)(struct store *st, uint64_t index_bytes, struct quota_book *quotas, int counter,
		       uint64_t *ret_start_no, char *err, size_t err_len);
	/* Makes it ours, in the start of that number, which is flushed on it at the return; is_behind with it, until it gets a table. */
	int (*begin)(struct store *st, uint64_t start_no, bool is_behind, char *err, size_t err_len);
	/* Writes a table, which is flushed at the return.  Before serve(). */
	int (*set_table)(struct store *st, const struct disk_table *t, char *err, size_t err_len);
	int (*serve)(struct store *st, char *err, size_t err_len);
	/*
	 * Has a table written, which the call copies, after serve().  One at a time, and none after done() was waited for in
	 * vain: of a disk that has failed it may never run.  Never blocks; done() does not run before the return.
	 */
	void (*put_table)(struct store *st, const struct disk_table *t, struct store_table_write *w);
	/* Tells whether the disk has failed, which is final.  Any thread. */
	bool (*has_failed)(const struct store *st);

	/*
	 * Says which slots of keys are the engine's by the table; between open() and recover(), and whoever never says it has
	 * all.  What it has of others are *leftovers*: they are not in lists, nor counted, nor in the way of a bucket's
	 * removal.  They are read by whoever asks (the set asks by the table), and kept until they are removed.
	 * Changes of keys that are not its own are -EXDEV: the caller goes to where they are now.  0 or -ENOMEM.
	 */
	int (*set_slots)(struct store *st, const struct store_slots *slots);
	/* Gives keys that it has something of, its own and leftovers; how many, >= 0.  It looks at some hundred records, and may
	 * find none among them. */
	int (*walk)(struct store_port *p, struct store_walk *w);
	/*
	 * Makes what engine `to` has under a key what `from` has: object, uploads, parts, with their ids, versions, times and
	 * attributes, and nothing else.  Both ports are the thread's.  The key is not `to`'s own (-EPERM), writers of it at
	 * `from` do not wait: what changes meanwhile has to be sent again, which watch() tells, and the last time is behind a
	 * freeze().  One at a time for a key.  done() runs when all of it is flushed there; what is equal already is not copied.
	 * What it leaves behind an error is what the next one begins with.  -EXDEV: it is not `from`'s own; -ENOSPC; -EAGAIN (something was changing, or
	 * there is no memory: again); -EBADMSG: of the source's bytes or records something is damaged; -EIO, -ENODEV: the
	 * source cannot be read; -EROFS: the target has failed; -EINTR: pace() said so.
	 *
	 * It is also how any change of a key with two copies gets from the first engine to the second, once it is published at the
	 * first, while the set holds the key: a deletion, attributes, an upload that is made, completed or aborted; and a PUT whose
	 * copy_commit() did not come off.  What is not there is removed, parts of uploads too.  What it costs beside bytes: a look at
	 * each part of the object that is completed, and of each upload of the key, unless a hint says that they are not meant.
	 *
	 * is_repair: from a second copy to the first one, or from the first to the second: one of them has the key as its own (else -EXDEV).  What the target has and cannot read
	 * gets its bytes anew from the source, if both have one version and one version of the data, and nothing else is changed: the
	 * object, or its parts; then parts of uploads, where both have the upload and the part is of one version.  -ESTALE: the
	 * object is another on either, or became so meanwhile, which the leader judges.  Who has it open at the target goes on with
	 * the old bytes.  changes: records that got other bytes; 0: nothing was damaged.
	 */
	int (*send)(struct store_port *from, struct store_port *to, struct store_send *s);
	/*
	 * Begins the second copy of a PUT, of an object (upload_id NULL) or a part, on an engine whose own the key is not (-EPERM).
	 * What is given to the first engine is given to this one too, by its put_write(), at the same time if need be: neither
	 * changes it, and what both put behind it is the same.  Quotas do not judge it.  As put_init()
	 * otherwise, but room is reckoned of small ones as well; -ENOENT: the upload is not here yet.  Until the commit is on its way put_abort() ends it.
	 */
	int (*copy_init)(struct store_port *to, struct store_put *put, const struct store_key *k,
			 const uint8_t *upload_id, uint32_t number, uint64_t size_bytes);
	/*
	 * Commits it as put_commit() does, behind the first engine's commit, which was `version`: with its version, time, ETag,
	 * attributes and checksums, as `from` has them now.  Of sc only the last piece and inline data are looked at.
	 * put->op.done() runs when it is flushed and published.  -EAGAIN: `from` has another version, or size; -EILSEQ: other bytes;
	 * behind these, and whatever else fails, put_abort() and send() make the copy.  -EPERM: the key became the engine's own.
	 */
	int (*copy_commit)(struct store_port *to, struct store_put *put, struct store_port *from,
			   uint64_t version, const struct store_commit *sc);
	/*
	 * Opens what was written of a PUT that is its carrier's as an object of one PUT, which nobody else sees: for read() and close(), before
	 * the abort.  0; -EAGAIN, no memory.
	 */
	int (*open_put)(struct store_port *p, struct store_put *put, struct store_obj *obj,
			struct store_put_args *ret_args);
	/* Removes all that is under a key, which is not the engine's own (-EPERM).  One at a time for a key, and not beside send(). */
	int (*remove)(struct store_port *p, struct store_send *s);
	/* Tells of each key of these slots under which something is published from now on; what was published before is seen by
	 * who looks after done().  slots NULL: no more, and when that is done changed() does not run any longer. */
	int (*watch)(struct store_port *p, struct store_slots_op *o);
	/*
	 * Lets changes of keys of these slots wait, a second at most, and then they are -EAGAIN.  When it is done, all that went
	 * before is flushed, published and told to watch().  Behind an error they may wait all the same.
	 */
	int (*freeze)(struct store_port *p, struct store_slots_op *o);
	/* Lets them go on here. */
	int (*thaw)(struct store_port *p, struct store_slots_op *o);
	/*
	 * The switch, behind a freeze and the last send: take() makes these slots the target's own; then the set sends everybody
	 * there; then leave() makes them leftovers at the source, and what waits there is -EXDEV.  In leave() (which wants what
	 * take() gave) the books go over, at once.  Both are done also on a disk that has failed.
	 */
	int (*take)(struct store_port *p, struct store_slots_op *o);
	int (*leave)(struct store_port *p, struct store_slots_op *o);
	/* Does at once, of a disk that has failed, what others see of leave(): the places are not its own.  The leader, which may
	 * hang on the disk, does the rest when leave() gets to it. */
	void (*disown)(struct store_port *p, const struct store_slots *slots);
	/*
	 * Tells how many objects, and bytes of objects and of parts of uploads, the engine has under keys with two copies of a
	 * slot, whether they are its own or not.  Any thread, behind recover().
	 */
	void (*two_use)(const struct store *st, unsigned slot, struct store_use *ret_use);
};

struct store_ops {
	const char *name; /* as operators read it: "disks" */

	/* ---- life ---- */
	/* Says what store_check() says; NULL: all is taken. */
	int (*check_conf)(const struct store_conf *conf, char *err, size_t err_len);
	int (*format)(const struct store_conf *conf, bool force, char *err, size_t err_len);
	/* NULL: there is one format. */
	int (*upgrade)(const struct store_conf *conf, char *said, size_t said_len);
	int (*start)(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len);
	/* NULL: it is never of several disks. */
	int (*forget)(const struct store_conf *conf, char *said, size_t said_len);
	/* NULL: there is nothing to look at. */
	int (*look)(const struct store_conf *conf, char *err, size_t err_len);
	/* NULL: it has none. */
	int (*fsck)(const struct store_conf *conf, bool repair, void (*say)(void *cookie, const char *line),
		    void *cookie);
	void (*stop)(struct store *st); /* never NULL */
	int (*attach)(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
		      struct store_port **ret_port);
	bool (*detach)(struct store_port *p);
	/* NULL: the back end need not know. */
	void (*quiesce)(struct store_port *p);
	void (*sleep)(struct store_port *p);
	void (*wake)(struct store_port *p);

	const struct store_limits *(*limits)(const struct store_port *p);
	/* NULL: there are none. */
	int (*lane)(const struct store_port *p, const struct store_key *k);
	/* NULL: every shard is this process's. */
	bool (*share)(struct store_port *p, uint32_t shard);

	/* ---- objects ---- */
	int (*open)(struct store_port *p, const struct store_key *k, struct store_obj *obj);
	/* NULL: as open(). */
	int (*open_to_read)(struct store_port *p, const struct store_key *k, uint64_t want,
			    struct store_obj *obj);
	/* NULL: no key has two copies that can be told apart. */
	int (*open_second)(struct store_port *p, const struct store_key *k, struct store_obj *obj);
	/* NULL: it opens no part.  An engine is not asked for seconds. */
	int (*open_part)(struct store_port *p, const struct store_key *k,
			 const uint8_t id[STORE_UPLOAD_ID_BYTES], uint32_t number, bool is_second,
			 struct store_obj *obj);
	void (*close)(struct store_port *p, struct store_obj *obj); /* one that is open */
	uint32_t (*read_plan)(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap,
			      uint32_t *ret_skew);
	int (*read)(struct store_port *p, struct store_obj *obj, struct store_read *rd, struct buf *buf,
		    uint64_t off, uint32_t len);
	/* NULL: a read cannot be cancelled. */
	bool (*read_cancel)(struct store_port *p, struct store_read *rd);
	/* NULL: what is looked up ends by itself. */
	void (*give_up)(struct store_port *p, const void *asker, uint64_t older_ns);
	int (*put_init)(struct store_port *p, struct store_put *put, const struct store_key *k,
			uint64_t size_bytes);
	int (*put_write)(struct store_port *p, struct store_put *put, struct store_write *w, struct buf *buf,
			 uint32_t len, bool last);
	/* NULL: a write cannot be cancelled. */
	bool (*write_cancel)(struct store_port *p, struct store_write *w);
	int (*put_commit)(struct store_port *p, struct store_put *put, const struct store_commit *c);
	void (*put_abort)(struct store_port *p, struct store_put *put); /* one that is started */
	int (*delete)(struct store_port *p, const struct store_key *k, const struct store_pre *pre,
		      struct store_del *del);
	int (*set_attrs)(struct store_port *p, const struct store_key *k, uint64_t version, const void *attrs,
			 uint32_t attrs_len, struct store_del *op);

	/* ---- multipart uploads ---- */
	int (*upload_create)(struct store_port *p, const struct store_key *k, const void *attrs,
			     uint32_t attrs_len, struct store_upload *u);
	int (*upload_abort)(struct store_port *p, const struct store_key *k,
			    const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_upload *u);
	int (*upload_stat)(struct store_port *p, const struct store_key *k,
			   const uint8_t id[STORE_UPLOAD_ID_BYTES], void *attrs, uint32_t cap,
			   struct store_stat *st);
	int (*put_init_part)(struct store_port *p, struct store_put *put, const struct store_key *k,
			     const uint8_t id[STORE_UPLOAD_ID_BYTES], uint32_t number, uint64_t size_bytes);
	int (*upload_complete)(struct store_port *p, const struct store_key *k,
			       const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_complete *c);
	int (*list_parts)(struct store_port *p, const struct store_key *k,
			  const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_part_list *pl);
	/* Of an object that is open. */
	int (*obj_part)(struct store_obj *obj, uint32_t number, struct store_part *ret_part);
	int (*obj_part_at)(struct store_obj *obj, uint32_t index, struct store_part *ret_part);

	/* ---- buckets, lists ---- */
	int (*bucket_create)(struct store_port *p, const char *name, size_t len, unsigned copies,
			     struct store_del *op);
	int (*bucket_delete)(struct store_port *p, const char *name, size_t len, struct store_del *op);
	int (*bucket_head)(struct store_port *p, const char *name, size_t len, struct store_stat *st);
	/* NULL: store_bucket_head() is as fast. */
	bool (*bucket_was_there)(struct store_port *p, const char *name, size_t len);
	int (*bucket_set_attrs)(struct store_port *p, const char *name, size_t len, uint64_t version,
				const void *attrs, uint32_t attrs_len, struct store_bucket_set *op);
	/* NULL, with quotas(): it has none. */
	int (*bucket_set_quota)(struct store_port *p, const char *name, size_t len,
				const struct store_use *max, struct store_bucket_set *op);
	int (*bucket_get_attrs)(struct store_port *p, const char *name, size_t len, void *attrs, uint32_t cap,
				struct store_stat *st);
	int (*list)(struct store_port *p, struct store_list *ls);
	int (*list_uploads)(struct store_port *p, struct store_list *ls);

	/* ---- what operators see ---- */
	/* Its book (store/quota.h), which store.c asks. */
	struct quota_book *(*quotas)(const struct store *st);
	unsigned (*can)(const struct store *st);
	int (*snapshot)(struct store *st);    /* NULL: it has none */
	void (*reread)(struct store_port *p); /* NULL: it has nothing beside objects */
	/* NULL: no other process can take over. */
	bool (*is_fenced)(const struct store *st);
	/* NULL: it always does, or says by its units what is wrong. */
	bool (*answers)(const struct store *st, char *why, size_t len);
	/* NULL: it has no disks that come and go; all three or none. */
	int (*change_disks)(struct store *st, const struct store_disk_change *c, char *said, size_t said_len);
	void (*move_info)(const struct store *st, struct store_move_info *ret_info);
	void (*set_move_rate)(struct store *st, uint64_t bytes);
	/* NULL: nothing has two copies. */
	void (*copies_info)(const struct store *st, struct store_copies_info *ret_info);
	/* NULL: the back end does no work in the background. */
	const char *(*background)(const struct store *st);
	int (*unit_nr)(const struct store *st);
	void (*unit_info)(const struct store *st, int unit, struct store_unit_info *ret_info);
	/* ---- of an engine, for a set; NULL: it is none ---- */
	/* Makes a bucket with that time and number of copies; is_gated: with its gate closed, and until it opens writers are
	 * told -ENXIO. */
	int (*bucket_make)(struct store_port *p, const char *name, size_t len, uint64_t ctime_ns,
			   unsigned copies, bool is_gated, struct store_del *op);
	/*
	 * Closes the gate of a bucket that is there (-ENXIO) and empty (-ENOTEMPTY), what is under way included: until it
	 * opens writers wait, and are told -EAGAIN after a while.  -EAGAIN: too many are closed.  Or opens it, whether it is there or not.  What was
	 * closed before stays so.  Memory alone has it.
	 */
	int (*bucket_gate)(struct store_port *p, const char *name, size_t len, enum store_gate gate,
			   struct store_del *op);
	/*
	 * Gives a bucket that is there (-ENXIO) and has neither objects nor uploads in progress (-ENOTEMPTY) that number of
	 * copies.  Its record is a new one, of a newer version; its time, attributes and quota stay.  It has that number already: 0,
	 * and nothing is changed.
	 */
	int (*bucket_set_copies)(struct store_port *p, const char *name, size_t len, unsigned copies,
				 struct store_del *op);
	const struct store_member_ops *member; /* NULL: it has no table */
};

/* A back end in a module of its own, which the daemon loads where it is configured: what the module shows, as
 * gantry_store_module. */
struct store_module {
	const char *version; /* must be the daemon's */
	const struct store_ops *ops;
};

/* Judges a precondition on what is there, an object with this ETag and version, or (NULL) nothing.  0, or what
 * store.h says of the precondition. */
int store_judge(const struct store_pre *pre, const struct store_etag *there, uint64_t version);

/* Adds a number to those of a unit. */
static inline void
store_unit_add(struct store_unit_info *info, const char *name, uint64_t value, bool is_hidden)
{
	check(info->number_nr < STORE_UNIT_NUMBERS_MAX);
	info->number[info->number_nr++] = (struct store_unit_number){ name, value, is_hidden };
}

/* A back end's begin with these. */
struct store {
	const struct store_ops *ops;
};

struct store_port {
	const struct store_ops *ops;
	const void *asker;           /* store_asker() */
	struct store_spares *spares; /* store_set_spares(); NULL: nobody lends */
};

#endif
