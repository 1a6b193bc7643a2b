/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem_store_int - types and functions of the files of the store in memory.  See mem_store.c.
 */
#ifndef TESTS_FAKE_MEM_STORE_INT_H
#define TESTS_FAKE_MEM_STORE_INT_H

#include "tests/fake/mem_store.h"

#include "base/list.h"
#include "model/decide.h"
#include "store/ops.h"
#include "model/quota.h"

#include <pthread.h>

#define NO_GRANULE UINT64_MAX

/* A bucket and a key. */
struct mem_name {
	const char *bucket;
	size_t bucket_len;
	const char *key;
	size_t key_len;
};

/* The name of a version, an upload or a store_key. */
#define MEM_NAME(of) ((struct mem_name){ (of)->bucket, (of)->bucket_len, (of)->key, (of)->key_len })

/* One version of an object, or a bucket (key_len 0). */
struct version {
	int refs; /* references of the index and of open objects */
	char bucket[STORE_BUCKET_MAX], key[STORE_KEY_MAX];
	uint16_t bucket_len, key_len;
	uint16_t slot; /* the slot of the key */
	char *data, *attrs;
	uint64_t size_bytes, crc64, number, mtime_ns, bad_granule;
	/* number of the version that brought the bytes, and the optional fields of model/record.def */
#define OPTIONAL(name, flag, bit, kinds, places) uint64_t name;
#include "model/record.def"
	bool is_counted; /* true: used_bytes has its bytes */
	bool is_carried; /* true: of a carried PUT, without a place in a page */
	struct store_etag etag;
	uint32_t attrs_len;
	uint64_t battrs_number; /* of a bucket: version of its attributes; 0: none */
	/* of an object made of parts */
	struct store_part *parts;
	int gate;        /* of a bucket: error for changes of its keys; 0: the gate is open */
	unsigned copies; /* of a bucket */
	bool has_max;    /* of a bucket: max is its limit */
	struct store_use max;
	uint32_t part_nr;
	bool own_parts;        /* true: the attributes of the parts belong to this version */
	struct version *older; /* open version with the same bytes, which this one replaced; a reference */
	/* row that counts the bytes of a removed and open version until its last reference ends, or NULL */
	struct quota_row *kept_in;
	struct mem_store *kept_by;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
};

struct mem_upload {
	struct mem_upload *next; /* in the order of bucket, key, id */
	char bucket[STORE_BUCKET_MAX], key[STORE_KEY_MAX];
	uint16_t bucket_len, key_len;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	char *attrs;
	uint32_t attrs_len;
	uint64_t mtime_ns, number;
	uint32_t part_top; /* no part has a higher number */
	struct version *part[STORE_PART_NR_MAX + 1];
};

struct fault {
	int error;
	unsigned skip, times;
};

struct mem_store {
	struct store base;
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_t thread;
	bool stop, hold, manual, has_thread;
	struct job *jobs; /* in the order of time */
	struct version **index;
	struct mem_upload *uploads;
	struct quota_book *quotas, *own_quotas; /* quotas: in a set the ledger of the set */
	int counter;
	size_t nr, cap;
	struct mem_store_tuning tuning;
	bool is_tuned; /* true: mem_store_tune() was called */
	struct store_limits limits;
	uint32_t shares, share; /* store_share(): number of shares, and the own one; 0: all */
	struct fault fault[MEM_FAULT_NR];
	uint64_t number, size_bytes, used_bytes;
	int ports, ports_max;
	unsigned inflight, open_nr, put_nr, to_read_nr;
	uint64_t to_read_want;
	struct store_unit_info info;
	uint64_t commits, records, crc_errors;
	char path[256];
	struct mem_member *member; /* mem_store_member.c; NULL: no engine of a set */
};

/* A PUT in progress. */
struct put_state {
	struct version *v;
	struct mem_piece {
		char *bytes;
		uint32_t len;
	} * piece;
	uint32_t nr, cap, writes;
	uint64_t expect_bytes;
	struct quota_hold hold;
	bool ended, committing;
	bool has_two;    /* true: the key has two copies */
	bool is_copy;    /* true: a second copy, without quota and precondition */
	bool is_carried; /* true: its key belongs to another engine, and its carrier has the PUT */
	struct store_commit commit;
	void *attrs;          /* own attributes of a second copy, or NULL */
	uint32_t part_number; /* 0: an object */
	uint8_t id[STORE_UPLOAD_ID_BYTES];
};

struct mem_port {
	struct store_port base;
	struct mem_store *st;
	struct mailbox *mb;
	pthread_t thread;
	unsigned inflight;
	bool asleep;
};

static inline struct mem_store *
mem_store(const struct store *st)
{
	return container_of(st, struct mem_store, base);
}

static inline struct mem_port *
mem_port(struct store_port *p)
{
	return container_of(p, struct mem_port, base);
}

struct job {
	struct msg msg;
	struct job *next;
	uint64_t at_ns;
	struct mem_port *port;
	struct store_op *op;
	enum mem_fault kind;
	void (*work)(struct mem_store *st, struct job *j);   /* under the lock, any thread; sets result */
	void (*finish)(struct mem_store *st, struct job *j); /* on the port's thread, no lock */
	int result;
	struct version *v;
	struct buf *buf;
	char *to;
	uint64_t off;
	uint32_t len;
	struct store_pre pre;
	const void *attrs;
	struct store_change c; /* arguments of a change, except key, precondition and id */
	struct store_use max;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	/* of an engine of a set */
	const struct version *of;    /* key that the job changes, or NULL */
	bool has_two;                /* true: the key has two copies */
	bool is_sent, is_repair;     /* true: copies a record of another engine */
	bool is_quick;               /* true: finishes in the start call */
	bool is_late;                /* true: does not finish in the start call */
	bool runs_failed;            /* true: runs on a failed disk, too */
	bool is_taken;               /* true: the carrier has the PUT */
	uint64_t came_ns;            /* time of the first attempt; 0: none */
	uint64_t not_before_ns;      /* by base/clock.h */
	void (*over)(struct job *j); /* in place of a message to a port; without the lock */
	void *cookie;
};

/* ---- under the lock ---- */

/* Compares names in the order of the index and the uploads. */
int mem_compare(struct mem_name a, struct mem_name b);
/* Finds the place of the first entry that is not smaller. */
size_t mem_place(const struct mem_store *st, const char *bucket, size_t bucket_len, const char *key,
		 size_t key_len);
struct version *mem_lookup(const struct mem_store *st, const char *bucket, size_t bucket_len, const char *key,
			   size_t key_len);
void mem_version_put(struct mem_store *st, struct version *v);
/* Gives a version its number, unless it has one, and counts its bytes. */
void mem_number(struct mem_store *st, struct version *v);
/* Ends the reference of the index to a removed version, whose bytes count while it is open. NULL is allowed. */
void mem_removed(struct mem_store *st, struct version *v);
/* Sets an object or a bucket. Takes the reference of v. */
void mem_index_set(struct mem_store *st, struct version *v);
void mem_index_remove(struct mem_store *st, struct version *v);
/* Returns a copy, to free(); never NULL. */
void *mem_copy_of(const void *bytes, size_t len);
/* Find the object, or the bucket, of the name; NULL: absent. */
struct version *mem_object(const struct mem_store *st, const struct version *like);
struct version *mem_bucket(const struct mem_store *st, const struct version *like);
/* Returns the fields that decisions read. */
struct model_record mem_show(const struct version *v);
/* Returns the metadata for a reader. */
struct store_meta mem_meta(const struct version *v);
/* Sets the fields of a new version that its writer gives, except the attributes. */
void mem_take(struct version *v, const struct store_meta *m);
/* Returns true if an object is there for readers at a time; v NULL: absent. */
bool mem_is_there(const struct version *v, uint64_t now_ns);
/* Decides the operation of a job: by the gate of the bucket, the placement map, the object model, the free space and the
 * quotas; counts the usage. Returns true if records change; false: j->result is the result. */
bool mem_decide(struct mem_store *st, struct job *j, struct model_op op, struct model_answer *ret);
/* Decides an operation that has not begun, without a gate and a placement map. like: bucket and key. */
bool mem_look(struct mem_store *st, const struct version *like, const uint8_t *id, const struct model_op *op,
	      struct model_answer *ret);
/* Returns true if the same list of the same upload has made this object, and then sets the results in c. NULL is
 * allowed. */
bool mem_was_done(const struct version *v, const uint8_t *id, struct store_complete *c);
/* Returns true if the bucket has uploads that are the engine's own. */
bool mem_uploads_any(const struct mem_store *st, const char *bucket, size_t len);
/* Frees the uploads of a bucket; NULL: all uploads. */
void mem_uploads_drop(struct mem_store *st, const char *bucket, size_t len);
/* Returns 0, -ENOENT or -ENXIO.  like: its bucket and key. */
int mem_upload_get(struct mem_store *st, const struct version *like, const uint8_t *id,
		   struct mem_upload **ret_upload);
/* Sets a part, or removes it, v NULL.  Takes the reference of v. */
void mem_part_set(struct mem_store *st, struct mem_upload *u, uint32_t number, struct version *v);
/* Checks and counts a change of the usage of a bucket, which exists. c: for one copy. Returns 0 or -EDQUOT. */
int mem_quota_change(struct mem_store *st, const struct version *like, const struct quota_change *c);
/* Count the bytes of a removed version while it is open. */
void mem_quota_keep(struct mem_store *st, struct version *v);
void mem_quota_keep_end(struct version *v);
/* Notes that a bucket was made, or will be removed. */
void mem_quota_bucket(struct mem_store *st, const struct version *v, bool is_there);
/* Checks the quotas for a bucket to be made, with its documents. Returns 0 or -EDQUOT. */
int mem_quota_judge_bucket(struct mem_store *st, const struct version *v);
/* Checks and counts the new documents of a bucket. Returns 0 or -EDQUOT. */
int mem_quota_docs(struct mem_store *st, const struct version *b, uint32_t doc_bytes);
/* Returns the bytes for which the parts of an upload count. */
uint64_t mem_upload_bytes(const struct mem_upload *u);
/* Returns true if the bucket has objects that are the engine's own. */
bool mem_bucket_holds(const struct mem_store *st, const char *bucket, size_t len);
/* Finds the link to an upload; NULL: absent. */
struct mem_upload **mem_upload_find(struct mem_store *st, const struct version *like, const uint8_t *id);
/* Enters an upload, in order. */
void mem_upload_enter(struct mem_store *st, struct mem_upload *u);
/* Frees an upload with its parts. */
void mem_upload_drop(struct mem_store *st, struct mem_upload **link);
/* Returns the error of the fault for this operation, or 0. */
int mem_fault_of(struct mem_store *st, enum mem_fault kind);

/* For lists: the length of the common prefix of a name, 0: none; true if `after` skips the name. */
size_t mem_common_len(const struct store_list *ls, const char *name, size_t len);
bool mem_is_skipped(const struct store_list *ls, const char *name, size_t len);

/* ---- without ---- */

struct version *mem_version_new(const char *bucket, size_t bucket_len, const char *key, size_t key_len);
/* Copies a version with its number, bytes, attributes and parts; the copy is in no index. */
struct version *mem_version_copy(const struct version *v);
bool mem_range_ok(const struct store_obj *obj, uint64_t off, uint32_t len);
/* Overwrites the bytes after the first len of a buffer, which belong to the store. */
void mem_spoil_slack(struct buf *buf, uint32_t len);
/* Checks that the caller is p's thread, and that p does not sleep. */
void mem_on_port(struct mem_port *p);
struct job *mem_job_new(struct mem_port *p, struct store_op *op, enum mem_fault kind,
			void (*work)(struct mem_store *, struct job *));
/* The work and the end of the changes and look-ups. */
void mem_delete_work(struct mem_store *st, struct job *j);
void mem_set_attrs_work(struct mem_store *st, struct job *j);
void mem_create_upload_work(struct mem_store *st, struct job *j);
void mem_abort_upload_work(struct mem_store *st, struct job *j);
void mem_complete_work(struct mem_store *st, struct job *j);
void mem_make_bucket_work(struct mem_store *st, struct job *j);
void mem_delete_bucket_work(struct mem_store *st, struct job *j);
void mem_set_bucket_attrs_work(struct mem_store *st, struct job *j);
void mem_set_quota_work(struct mem_store *st, struct job *j);
void mem_gate_bucket_work(struct mem_store *st, struct job *j);
void mem_set_copies_work(struct mem_store *st, struct job *j);
void mem_open_work(struct mem_store *st, struct job *j);
void mem_open_part_work(struct mem_store *st, struct job *j);
void mem_open_finish(struct mem_store *st, struct job *j);
void mem_upload_stat_work(struct mem_store *st, struct job *j);
void mem_no_work(struct mem_store *st, struct job *j);
void mem_list_parts_finish(struct mem_store *st, struct job *j);
void mem_bucket_head_work(struct mem_store *st, struct job *j);
void mem_bucket_get_attrs_work(struct mem_store *st, struct job *j);
/* Starts a job, or does it at once. Returns 0, or 1 if it is done. */
int mem_job_start(struct job *j);

/* Commits a PUT. copy_of: record at the source of a second copy, or NULL. */
int mem_put_go(struct mem_port *p, struct store_put *put, const struct store_commit *c,
	       const struct version *copy_of);
struct put_state *mem_put_state(const struct store_put *put);
/* Opens a version. Takes a reference of the caller. */
void mem_open_version(struct mem_store *st, struct store_obj *obj, struct version *v);
/* Makes a store; without a thread the test does all steps. */
struct mem_store *mem_store_make(const struct store_conf *conf, const struct store_ops *ops, bool has_thread);

/* ---- mem_store_member.c: under the lock ---- */

/* Returns true if a key is the engine's own. */
bool mem_owns(const struct mem_store *st, const char *bucket, size_t bucket_len, const char *key,
	      size_t key_len);
/* Returns true if a key has one of these places. */
bool mem_is_of(const struct mem_store *st, const struct store_slots *slots, const char *bucket,
	       size_t bucket_len, const char *key, size_t key_len);
/* Returns true if a list shows a key: one of ls->slots, or one of the engine's own. */
bool mem_is_shown(const struct mem_store *st, const struct store_list *ls, const char *bucket,
		  size_t bucket_len, const char *key, size_t key_len);
/* Judges a job by disk and placement map.  Returns true if the job may be done; false: j->result is its result. */
bool mem_member_judge(struct mem_store *st, struct job *j);
/* Notes that a job has ended. */
void mem_member_done(struct mem_store *st, struct job *j);
/* Keeps the records of a stopped store on its disk. */
void mem_member_keep(struct mem_store *st);

/* ---- mem_store_member.c: without the lock ---- */

/* Returns true if the disk has failed; with or without the lock. */
bool mem_member_failed(const struct mem_store *st);
/* Returns true if reads of bytes fail. */
bool mem_member_unreadable(const struct mem_store *st);
/* Returns true if the test holds the job. */
bool mem_member_holds(const struct mem_store *st, const struct job *j);
/* Returns true if the engine has a set of own places. */
bool mem_member_has_slots(const struct mem_store *st);
/* Returns true if a key is the engine's own, by the number of copies in k. */
bool mem_member_owns(const struct mem_store *st, const struct store_key *k);
/* Reports the failure of the disk to the set, once. */
void mem_member_tell(struct mem_store *st);
/* Sets the fields of a member. */
void mem_member_info(struct mem_store *st, struct store_unit_info *info);
extern const struct store_member_ops mem_member_ops;
int mem_engine_format(const struct store_conf *conf, bool force, char *err, size_t err_len);
int mem_engine_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len);
int mem_walk(struct store_port *p, struct store_walk *w);
int mem_send(struct store_port *from, struct store_port *to, struct store_send *s);
int mem_copy_commit(struct store_port *to, struct store_put *put, struct store_port *from, uint64_t version,
		    const struct store_commit *sc);
int mem_open_put(struct store_port *p, const struct store_look *l, struct store_op *op);

/* ---- the calls of store/store.h ---- */

int mem_format(const struct store_conf *conf, bool force, char *err, size_t err_len);
int mem_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len);
void mem_stop(struct store *st);
int mem_attach(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
	       struct store_port **ret_port);
bool mem_detach(struct store_port *p);
void mem_turn(struct store_port *p, enum store_turn turn);
bool mem_share(struct store_port *sp, uint32_t shard);
void mem_close(struct store_port *p, struct store_obj *obj);
uint32_t mem_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap,
		       uint32_t *ret_skew);
int mem_read(struct store_port *p, struct store_obj *obj, struct store_read *rd, struct buf *buf,
	     uint64_t off, uint32_t len);
int mem_put_init(struct store_port *p, struct store_put *put, const struct store_put_spec *spec);
int mem_put_write(struct store_port *p, struct store_put *put, struct store_write *w, struct buf *buf,
		  uint32_t len, bool last);
int mem_put_commit(struct store_port *p, struct store_put *put, const struct store_commit *c);
void mem_put_abort(struct store_port *p, struct store_put *put);
int mem_obj_part(struct store_obj *obj, uint32_t nr, bool by_number, struct store_part *ret_part);
int mem_list(struct store_port *p, struct store_list *ls);
/* The work and the end of a list of uploads. */
void mem_uploads_finish(struct mem_store *st, struct job *j);
void mem_unit_info(const struct store *st, int unit, struct store_unit_info *ret_info);

#endif
