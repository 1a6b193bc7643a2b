/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the store on RADOS: what its files share, of those that do I/O and keep the index; use_int.h has the rest.  docs/rados.md is the reference; rules are numbered there.
 *
 * Threads.  Everything of an operation runs on its port's thread.  librados' threads only carry results: its
 * callbacks store one and post a message (call.c).  Shared between ports are the shards' queues and the cache
 * of buckets (a lock each, held for a few instructions and never across a call of librados), and the gateway's
 * counters.  What may block runs on threads of helpers (base/periodic.h), or at start and stop.
 */
#ifndef GANTRY_RADOS_IO_RADOS_INT_H
#define GANTRY_RADOS_IO_RADOS_INT_H

#include "base/check.h"
#include "base/clock.h"
#include "base/latency.h"
#include "base/list.h"
#include "base/periodic.h"
#include "base/refuse.h"
#include "rados/io/codec.h"
#include "rados/io/fault.h"
#include "model/decide.h"
#include "store/ops.h"

#include <pthread.h>
#include <rados/librados.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define CLIENTS_MAX 16
#define BUCKET_HASH 256
#define OBJECT_STORE "gantry"
#define OBJECT_BUCKETS "buckets"
#define XATTR_FORMAT "format"
#define XATTR_GENERATION "g"
#define XATTR_OWNER "o"
#define XATTR_CRC "c"  /* of a map: for those who have not the record that has it, too */
#define OMAP_PAGE 1000 /* entries asked for at once: the cluster gives at most 1024 */
#define GENERATION_CLOSED ((uint64_t)1 << 63)
#define ID_WINDOW (1u << 20) /* ids that may be under way at once */
#ifndef ID_AHEAD
#define ID_AHEAD (1u << 13) /* so many are promised to be ours before they are given (rule 6) */
#endif
#define EPOCHS_KEPT 3 /* garbage is removed when the epoch is that much further (rule 2) */

struct rstore;

/* ---- cluster ---- */

enum pool { POOL_META, POOL_DATA, POOL_NR };

/* A connection to the cluster: ports share a few of them, as each brings threads. */
struct client {
	rados_t cluster;
	rados_ioctx_t io[POOL_NR];
};

/* What operators see of a pool. */
struct pool_stats {
	_Atomic uint64_t read_bytes, read_ops, written_bytes, write_ops, errors, crc_errors;
	struct latency_counts latency[DISK_IO_NR];
	_Atomic uint64_t longest_call_ns; /* that a call of librados held a core up */
	_Atomic uint64_t refused_ns;      /* when the pool last said that it is full */
	_Atomic uint64_t denied_ns;       /* when it last said that this key may not do what was asked */
	_Atomic bool is_gone;             /* somebody has removed it */
	/* Asked of the monitors by a helper. */
	_Atomic uint64_t size_bytes, free_bytes;
	pthread_mutex_t lock; /* of what follows */
	char waits_for[96];   /* the placement group that holds up the oldest operation */
	uint64_t waits_ns;    /* as it was found then */
};

/* Returns an array with room for one more element, which may have another address. NULL: no memory; the array stays. */
static inline void *
room_for_one(void *array, size_t nr, size_t *cap, size_t element_bytes)
{
	size_t more = nr + nr / 2 + 4;
	void *new = nr < *cap ? array : reallocarray(array, more, element_bytes);

	if (new &&nr == *cap)
		*cap = more;
	return new;
}

/* ---- rows of omaps ---- */

/* Takes a row; the bytes are there until it returns. Returns 0: further rows are wanted; 1: no more are wanted; -errno. */
typedef int (*row_fn)(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len);

/* Adds to a write that a row is set. */
static inline void
op_set(rados_write_op_t op, const char *key, const void *val, size_t len)
{
	const char *v = val;

	rados_write_op_omap_set(op, &key, &v, &len, 1);
}

/* Adds to a write that a row has a value, which is empty if there is no such row; otherwise the write is refused. */
static inline void
op_compare(rados_write_op_t op, const char *key, const void *val, size_t len)
{
	rados_write_op_omap_cmp(op, key, LIBRADOS_CMPXATTR_OP_EQ, val, len, NULL);
}

/* Adds to a write that a row is removed. */
static inline void
op_remove(rados_write_op_t op, const char *key)
{
	rados_write_op_omap_rm_keys(op, &key, 1);
}

/* Returns a write that makes an object that was not there, with one attribute. */
static inline rados_write_op_t
op_new_object(const char *xattr, const void *bytes, size_t len)
{
	rados_write_op_t op = rados_create_write_op();

	rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
	rados_write_op_setxattr(op, xattr, bytes, len);
	return op;
}

/* Returns a write that changes the generation of a shard. */
static inline rados_write_op_t
op_generation(uint64_t from, uint64_t to)
{
	rados_write_op_t op = rados_create_write_op();

	rados_write_op_cmpxattr(op, XATTR_GENERATION, LIBRADOS_CMPXATTR_OP_EQ, (const char *)&from,
				sizeof from);
	rados_write_op_setxattr(op, XATTR_GENERATION, (const char *)&to, sizeof to);
	return op;
}

/* ---- gateways: gateway.c ---- */

struct gateway {
	struct store_format_row format;  /* of the pools, as read at the start */
	_Atomic uint32_t format_version; /* of the pools now; records have no fields of later versions */
	uint32_t instance;
	_Atomic uint64_t epoch;    /* as this gateway knows it */
	_Atomic uint64_t epoch_ns; /* since when */
	_Atomic uint64_t pins[2];  /* of the epoch, and of the one before: by its lowest bit (rule 2) */
	_Atomic bool is_fenced;    /* another one has declared us dead: nothing goes any more */
	char fenced_by[128];       /* set before that */
	/* Ids.  Those in [first, next) may be under way; up to last the row promises them. */
	pthread_mutex_t id_lock;
	uint64_t first, next, last;
	uint8_t *id_over; /* a bit each, by counter modulo ID_WINDOW */
	/* Threads: one for the row, one that removes what is garbage or of the dead and may wait for a placement group that is
	 * down, one that asks the monitors. */
	struct periodic beat, cleaner, watcher;
	bool is_entered;
	pthread_mutex_t lock;   /* of what follows */
	_Atomic bool sweep_all; /* the next sweep looks through all shards, for what earlier gateways left */
	struct list dirty;      /* struct rshard: garbage was made there */
	bool is_sweeping;       /* garbage is being removed of shards that are not in dirty meanwhile */
	struct peer *peers;     /* all gateways, by their rows; under the lock */
	uint32_t peer_nr;
	uint32_t next_instance;         /* of the gateway that enters next, read with peers */
	uint64_t looked_ns;             /* when this one looked at the others */
	_Atomic uint32_t rank;          /* this one's place among all, by number */
	uint8_t row[GATEWAY_ROW_BYTES]; /* as it was written last */
	/* What operators see. */
	_Atomic uint64_t beats, last_beat_ns, swept, gateways, dead_cleaned;
};

/* ---- buckets and their shards: cache.c, shard.c ---- */

/* One shard of a bucket's index, or the table of buckets: an object of the meta pool that commits go to. */
struct rshard {
	char name[64];
	pthread_mutex_t lock;
	_Atomic uint64_t known;   /* its generation, at which this gateway was seen to be alive */
	bool is_busy;             /* an operation of ours is under way */
	_Atomic uint64_t busy_ns; /* since when; 0: none is */
	struct list queue;        /* struct txn: those that wait for the next */
	/* What is counted: by this gateway, by all others as it was read last, and what of both the book of quotas has. */
	struct quota_change own, others, booked;
	/* This gateway's row, which only its own operations change; it may have to be read first. */
	uint8_t own_row[COUNTER_BYTES];
	size_t own_len; /* 0: there is none */
	bool is_own_unsure;
	struct list dirty;      /* in the gateway's, under its lock */
	struct rbucket *bucket; /* NULL: the table of buckets */
};

struct rbucket {
	struct rbucket *next; /* in the cache */
	_Atomic uint32_t refs;
	struct rstore *store;
	bool is_cached;
	_Atomic bool is_doubtful;  /* the table of buckets is to be asked anew */
	_Atomic uint64_t there_ns; /* when the cluster last said that it is there */
	uint64_t serial;           /* among all that this process had */
	uint64_t seen;             /* the turn of counting that found it in the table last */
	_Atomic uint64_t bounded;  /* the turn in which this gateway set its bound */
	_Atomic uint32_t finds;    /* looks of GETs in a row that found something */
	/* Of recall.c: looks of PUTs in a row that found nothing, and until when nothing is remembered after a mistake. */
	_Atomic uint32_t absences;
	_Atomic uint64_t recall_after_ns;
	char name[STORE_BUCKET_MAX];
	uint8_t name_len;
	struct bucket_row row;
	struct rshard shard[];
};

/* What is remembered of objects' records: recall.c. */
#define RECALL_SLOTS 4096u
#define RECALL_LOCKS 16u
#define RECALL_BYTES 1024u /* of key and record; longer ones are not remembered */

#define RECALL_NAMES 65536u

/* What an object's record named when it was seen last. */
struct data_seen {
	uint64_t hash; /* of bucket and key */
	struct rid data;
	uint64_t size_bytes; /* 0: nothing */
	bool has_trailers;
	bool is_doubtful; /* it named something else a moment ago */
};

struct recall_table {
	pthread_mutex_t lock[RECALL_LOCKS]; /* each of a part of the slots */
	struct remembered *slot[RECALL_SLOTS];
	struct data_seen named[RECALL_NAMES];
};

#define AHEAD_MAX 64u /* reads beside looks that a port may have, of either kind: ahead.c */

struct rstore {
	struct store base;
	struct client client[CLIENTS_MAX];
	int client_nr;
	uint32_t index_shards;
	uint64_t dead_after_ns;
	char meta_pool[64], data_pool[64], ns[64];
	struct store_limits limits;
	int ports_max;
	_Atomic int port_nr, port_made;
	pthread_mutex_t ports_lock;
	struct list ports;           /* struct rport */
	_Atomic uint64_t monitor_ns; /* when the monitors last answered */
	struct pool_stats stats[POOL_NR];
	/* What PUTs keep in memory until the cluster has answered, whether somebody waits for it or not: librados' copies of their
	 * data, and themselves.  And how much that may be. */
	_Atomic uint64_t unwritten_bytes;
	uint64_t unwritten_max_bytes;
	struct rshard buckets; /* the table of buckets */
	pthread_mutex_t cache_lock;
	struct rbucket *cache[BUCKET_HASH];
	uint32_t cache_nr;
	_Atomic uint64_t bucket_serial;
	_Atomic uint64_t change_nr; /* operations that were sent to shards: the last one's number */
	struct gateway gw;
	struct recall_table recall;
	_Atomic uint64_t ahead_right,
		ahead_wrong; /* reads beside a look that brought what it named, and others */
	struct quota_book *book;
	_Atomic uint64_t usage_turn; /* of counting: usage.c */
	struct periodic usage;
	uint32_t usage_next; /* where the reading of those without bounds goes on */
};

struct rport {
	struct store_port base;
	struct rstore *st;
	struct client *client;
	struct mailbox *mb;
	uint32_t inflight; /* operations of callers, and calls of our own */
	pthread_mutex_t calls_lock;
	struct list calls;        /* struct call under way, oldest first: for the report of what waits */
	struct list link;         /* in the store's ports */
	struct ahead *ahead_free; /* buffers for one granule that nothing is read into */
	uint32_t ahead_nr;        /* of all of them */
	uint32_t ahead_large_nr;  /* reads beside looks into spares */
	struct buf *spares_back;  /* on their way back, by next, with that message */
	struct msg spares_msg;
	_Atomic uint64_t answered_ns; /* when an operation last ended with an answer */
};

static inline struct rstore *
rstore(const struct store *st)
{
	return container_of(st, struct rstore, base);
}

static inline struct rport *
rport(struct store_port *p)
{
	return container_of(p, struct rport, base);
}

/* Ends an operation: its done() runs.  On the port's thread. */
static inline void
rop_end(struct rport *p, struct store_op *op, int result)
{
	check(p->inflight > 0 && op->done);
	op->result = result;
	p->inflight--;
	op->done(op);
}

/* ---- call.c: one call of librados under way ---- */

struct call {
	struct msg msg;
	struct rport *port;
	const void *asker; /* the port's, when it began */
	rados_completion_t comp;
	void (*back)(struct call *c); /* on the port's thread; result is set */
	int result;
	uint64_t begun_ns;
	struct list link; /* in the port's */
	enum pool pool;
	enum disk_io io;
	uint64_t bytes; /* of payload, for the counters */
	bool is_cancelled;
	char name[64]; /* of the object */
};

/* What waits for a pool: so many calls for longer than a time, and the oldest one. */
struct waiting {
	uint32_t nr;
	uint64_t oldest_ns; /* since then; 0: none */
	char name[64];
};
void calls_waiting(struct rstore *st, enum pool pool, uint64_t longer_ns, struct waiting *ret_waiting);
/* Ends the reads of the index for that asker that have waited for longer: as store_give_up(). */
void calls_give_up(struct store_port *sp, const void *asker, uint64_t older_ns);
/* Tells whether operations wait and none was answered for long. */
bool calls_are_stuck(struct rstore *st, uint64_t longer_ns);

/* Sends an operation, and frees it.  back() always runs, later. */
void call_read(struct rport *p, struct call *c, enum pool pool, const char *name, rados_read_op_t op,
	       uint64_t bytes, void (*back)(struct call *c));
void call_write(struct rport *p, struct call *c, enum pool pool, const char *name, rados_write_op_t op,
		uint64_t bytes, void (*back)(struct call *c));
/* Ends a read at once if that is possible still: back() runs all the same, with -ECANCELED. */
bool call_cancel(struct call *c);
/* Removes an object, whoever waits for it or not.  The id is over when nr of its objects are gone. */
void data_remove(struct rport *p, struct rid id, uint64_t size_bytes, bool end_id);
/* Removes the map of an id likewise; then the id is over. */
void map_remove(struct rport *p, struct rid id);
/* Translates what RADOS said to what store.h says. */
int result_of(int r);

/* ---- rows.c: one row ---- */

struct row_read {
	struct call call;
	rados_omap_iter_t iter;
	int rv;
	size_t len; /* of the value */
	uint8_t val
		[BUCKET_ROW_BYTES]; /* its first bytes; no value that is read like this is longer, unless it is damaged */
};
/* Returns an operation that reads a row. */
rados_read_op_t row_read_op(struct row_read *rr, const char *key);
/* Ends the read. Returns 1 with the value; 0: there is no such row; or -errno. */
int row_read_end(struct row_read *rr);

/* ---- rows.c: the rows of an object whose keys begin with a prefix ---- */

struct scan {
	struct call call;
	rados_omap_iter_t iter;
	int rv;
	unsigned char more;
	const char *object, *prefix;
	char after
		[OMAP_KEY_MAX]; /* the rows begin after this key, set by the caller; row() may set a higher one */
	/* Number of rows that are wanted still, at most; one more is asked for, which shows whether there are others. row()
	 * may set another number. */
	uint32_t left;
	row_fn row;
	void (*over)(struct scan *s, int e);
};
/* Begins; the caller keeps object and prefix. The cookie of row() is the scan. over() runs later, always: e: 0, -errno of a
 * read, or the first other result of row(). */
void scan_begin(struct rport *p, struct scan *s, const char *object, const char *prefix, uint32_t left,
		row_fn row, void (*over)(struct scan *s, int e));

/* ---- shard.c: a change of the index ---- */

/*
 * A change of one shard, or a look at it: the values of a few keys are read, decide() says what is to become of
 * them, and that is done in one operation which compares each key with what was read.  Where another one was
 * faster, it is looked at and decided again.
 */
#define TXN_KEYS 3

struct bytes {
	char *p; /* NULL: there is none */
	size_t len;
};

enum fate { FATE_COMPARE, FATE_SET, FATE_REMOVE };

struct txn_key {
	char *key;
	uint16_t len;
	enum fate fate; /* by decide() */
	struct bytes old, set;
};

/* A key that is set or removed without being compared: garbage, parts. */
struct txn_more {
	char *key;
	uint16_t len;
	struct bytes set; /* NULL: removed */
};

/* Whether what is decided on is what this gateway remembers of the key: never; as soon as it is looked for; so it is; not any more. */
enum guess { GUESS_NEVER, GUESS_FIRST, GUESS_MADE, GUESS_OVER };

enum txn_say { TXN_OVER, TXN_COMMIT, TXN_LATER, TXN_AGAIN };

struct txn {
	struct row_read look;
	struct msg msg;   /* from the shard's queue back to the port */
	struct list link; /* in the queue */
	struct txn *next; /* in a batch */
	struct rport *port;
	struct store_op *op; /* op.c: operation of the caller */
	const void *asker;   /* of who began it */
	rados_xattrs_iter_t xattrs;
	int xattrs_rv;
	/* Set by whoever begins it. */
	/* TXN_OVER: result is set; TXN_LATER: whoever said it calls txn_go_on(); TXN_AGAIN: look again. */
	enum txn_say (*decide)(struct txn *t);
	void (*over)(struct txn *t); /* the end: result is set; frees nothing of t */
	const char *bucket,
		*object; /* names, kept by whoever began it; object NULL: of the table of buckets */
	uint16_t bucket_len, object_len;
	int key_nr;
	struct txn_key key[TXN_KEYS];
	enum guess guess; /* GUESS_FIRST where decide() does without a look */
	/* Its own. */
	struct rbucket *rb;
	struct rshard *shard;
	uint64_t generation; /* as it was looked at */
	uint64_t epoch;      /* pinned while it is under way */
	bool is_pinned, is_alone;
	bool is_read;  /* set by whoever begins it: it changes nothing, so a value that is there is enough */
	bool is_brief; /* the look does not ask for the generation */
	uint32_t more_nr;
	size_t more_cap;
	struct txn_more *more;
	struct quota_change delta; /* what it adds to the bucket: set by decide() */
	bool is_held;              /* the book holds it */
	int commit_result;         /* the shard's */
	uint32_t restarts;
	int result;
};

/* Adds a key to look at; before txn_start(). */
int txn_add_key(struct txn *t, const char *key, size_t len);
/* Notes on a data object or map whose it is: bucket, NUL, key.  Who cleans up after a dead gateway reads it. */
void txn_set_owner(rados_write_op_t op, const struct txn *t);
/* Begins.  over() runs later, always. */
void txn_start(struct rport *p, struct txn *t);
/* Goes on behind TXN_LATER, with what decide() would have said. */
void txn_go_on(struct txn *t, enum txn_say say);
/* Sets a key to a value of len bytes, which the caller writes to the memory that is returned, with t->result 0. NULL: there is no
 * memory, and t->result is -ENOMEM. For decide(), as the next one, which removes a key. */
void *txn_set(struct txn *t, int key, size_t len);
void txn_remove(struct txn *t, int key);
/* Sets (or, value.p NULL, removes) a key more.  0 or -ENOMEM; the value is taken over. */
int txn_more(struct txn *t, const char *key, size_t len, struct bytes value);
/* Notes as garbage what a record named that this change takes out of the index. */
int txn_garbage(struct txn *t, const struct record *old);
int txn_garbage_data(struct txn *t, const struct garbage_data *data, uint32_t nr, const struct rid *map);
/* Sets a key to a record. For decide(), as its result; t->result is 0, -ENOMEM, or -EOPNOTSUPP: the record has a
 * field that the format of the pools does not have (format.c). */
enum txn_say txn_set_record(struct txn *t, int key, const struct record *new);
/* Sets a key to a new record, of which the writer gives `meta`, in the place of old (NULL: of none), whose data is garbage then.
 * Sets the version, and the time unless the writer has.  For decide(), as what it says; t->result is 0 or an error. */
enum txn_say txn_put_record(struct txn *t, int key, struct record *new, const struct store_meta *meta,
			    const struct record *old);
/* Frees what a txn has of its own. */
void txn_fini(struct txn *t);

/* ---- op.c: operations of store.h that begin with a txn, in memory of their own ---- */

/* Makes an operation of so many bytes, zeroed, whose first member is a txn about an object, and which keeps the names
 * (the caller's are there only until a start returned). Its keys are that of the upload (upload_id NULL: of none), and
 * that of the object's record. NULL: no memory. */
void *txn_op_new(struct rport *p, size_t bytes, const struct store_key *k, const uint8_t *upload_id,
		 bool has_object);
/* Frees an operation that has not begun. NULL is allowed. */
void txn_op_drop(void *op);
/* Begins the operation of the caller, and its txn. Returns 0. */
int txn_op_start(struct txn *t, struct store_op *op, enum txn_say (*decide)(struct txn *t),
		 void (*over)(struct txn *t));
/* Frees the operation, and ends that of the caller. */
void txn_op_end(struct txn *t, int result);
/* Frees the operation, and ends that of the caller with the result of the transaction. Used as over() by operations that
 * have nothing else to do. */
void txn_op_over(struct txn *t);
/* Begins an ended transaction again, with the same names and keys. */
void txn_again(struct txn *t, enum txn_say (*decide)(struct txn *t), void (*over)(struct txn *t));

/* Finds the generation of a shard among its attributes. Returns 0 or -EBADMSG. */
int generation_of(rados_xattrs_iter_t xattrs, uint64_t *ret_generation);
void shard_init(struct rshard *s, const char *name, struct rbucket *rb);
void shard_fini(struct rshard *s);

static inline bool
bytes_new(struct bytes *b, size_t len)
{
	b->p = malloc(len ? len : 1);
	b->len = len;
	return b->p != NULL;
}

static inline bool
bytes_copy(struct bytes *b, const void *from, size_t len)
{
	if (!bytes_new(b, len))
		return false;
	memcpy(b->p, from, len);
	return true;
}

/* ---- recall.c: what this gateway remembers of objects' records ---- */

/*
 * A record is remembered when this gateway has set or removed it; and where PUTs of a bucket have found nothing for some time,
 * that nothing is there.  It need not be so any more: whoever acts on it compares it in the operation that changes the shard.
 */

void recall_init(struct recall_table *r);
void recall_fini(struct recall_table *r);
/* Fills in what a look at the shard would have found.  False: it has to be looked. */
bool recall(struct txn *t);
/* Notes what a change has made of the object; the shard's next operation has not begun. */
void recall_note(const struct txn *t);
/* Says what a look has found, and that what was remembered was not so. */
void recall_looked(const struct txn *t);
void recall_wrong(const struct txn *t);
/* Notes what the object's record is, NULL for none. */
void recall_seen(struct recall_table *r, const struct rbucket *rb, const struct txn_key *k,
		 const struct record *rec, bool is_doubtful);
/* Gives what a record named.  False: that is not known, or doubtful. */
bool recall_named(struct recall_table *r, const struct rbucket *rb, const struct txn_key *k,
		  struct data_seen *ret_named);

/* ---- cache.c: the cache of buckets ---- */

/* Returns a cached bucket and takes a reference, or NULL. */
struct rbucket *rbucket_get(struct rstore *st, const char *name, size_t len);
/* Puts a bucket into the cache, in place of one of that name, and returns it with a reference.  NULL: no
 * memory. */
struct rbucket *rbucket_put_in(struct rstore *st, const char *name, size_t len, const struct bucket_row *row);
/* Says that the cluster has just said that it is there. */
void rbucket_is_there(struct rbucket *rb);
/* Says that what is known of it may not be so any more. */
void rbucket_doubt(struct rbucket *rb);
/* Takes it out of the cache: it is gone. */
void rbucket_drop(struct rbucket *rb);
/* Returns all that are cached, with a reference each; the list is the caller's to free().  NULL: no memory. */
struct rbucket **rbuckets_all(struct rstore *st, uint32_t *ret_nr);
/* Drops a reference. NULL is allowed. */
void rbucket_release(struct rbucket *rb);
void rbuckets_fini(struct rstore *st);
struct rshard *rbucket_shard(struct rbucket *rb, const char *key, size_t len);

/* ---- usage.c: what buckets hold, and quotas ---- */

/* Keeps a row in the book of quotas for each bucket of the cache. */
void usage_enter(struct rbucket *rb);
void usage_leave(struct rbucket *rb);
/* Judges what a change adds when its turn has come, and holds it in the book: 0 or -EDQUOT. */
int usage_judge(struct txn *t);
/* Counts the documents that a bucket has. */
void usage_set_docs(struct rstore *st, const char *name, size_t len, uint32_t doc_bytes);
/* Reserves for all bytes of a PUT in progress, or changes its reservation: 0 or -EDQUOT. */
int usage_reserve(struct rstore *st, const char *name, size_t len, uint64_t whole_bytes,
		  struct quota_hold *hold);
/* Takes back what is held. */
void usage_release(struct txn *t);
/* Counts what an operation has brought to a shard whose row of this gateway it has set, under the shard's lock, and takes
 * back what its changes held. */
void usage_commit(struct rshard *s, const struct quota_change *sum, const uint8_t row[COUNTER_BYTES],
		  struct txn *riders);
/* Notes this gateway's row as it was read. */
void usage_take_own(struct rshard *s, const uint8_t *val, size_t len);
/* Removes the row of a gateway that is no more from the table of buckets.  A helper's thread. */
void usage_forget(struct rstore *st, uint32_t instance);
/* Says that there is a bound on the bucket, set by this gateway, or none any more. */
void usage_bound(struct rstore *st, const char *name, size_t len, const struct store_use *max);
int usage_start(struct rstore *st);

/* ---- gateway.c ---- */

/* Gives a new id.  -EAGAIN: too many are under way; -ESHUTDOWN. */
int gateway_id(struct rstore *st, struct rid *ret_id);
/* Says that nothing of that id is under way any more. */
void gateway_id_over(struct rstore *st, struct rid id);
/* Pins the epoch: what was named in it stays until it is unpinned (rule 2). */
uint64_t gateway_pin(struct rstore *st);
void gateway_unpin(struct rstore *st, uint64_t epoch);
/* Says that a shard has garbage. */
void gateway_dirty(struct rstore *st, struct rshard *s);
/* Says that another one has taken over. */
void gateway_fence(struct rstore *st);
/* Tells whether a gateway of that number ran, and does not any more, as far as this one knows. */
bool gateway_is_gone(struct rstore *st, uint32_t instance);
int gateway_start(struct rstore *st, char *err, size_t err_len);
void gateway_stop(struct rstore *st);

/* ---- format.c ---- */

/* Reads the format of the pools at the start. Returns 0, or -errno with its reason. */
int format_read(struct rstore *st, char *err, size_t err_len);
/* Returns 0 if the pools may have records of this version; otherwise logs that `gantryd --upgrade` is needed, and
 * returns -EOPNOTSUPP. Any thread. */
int format_allows(struct rstore *st, uint32_t version);
/* Reads the description in a pool. Returns 0 or -errno, as format_decode() does. */
int format_row(struct rstore *st, enum pool pool, uint8_t bytes[STORE_FORMAT_BYTES],
	       struct store_format_row *ret_row);

/* ---- upgrade.c ---- */

/* Raises the format of the pools to the newest version, unless a gateway is of an earlier version. Returns 0 or
 * -errno, with a sentence about either. */
int format_raise(struct rstore *st, char *said, size_t said_len);

/* Returns the version of a record that replaces a record with the version old. old 0: no record is replaced. */
static inline uint64_t
next_version(uint64_t old)
{
	uint64_t now = clock_wall_ns();

	return old >= now ? old + 1 : now;
}

/* ---- table.c: the table of buckets ---- */

/* Makes an operation of so many bytes, zeroed, whose first member is a txn about the bucket's row and (kind 0: no other)
 * another row of the bucket. NULL: no memory. */
void *table_op_new(struct rport *p, size_t bytes, const char *name, size_t len, char kind);
/* Reads the row of the bucket, key 0. Returns 0, -ENXIO or -EBADMSG. */
int table_row(const struct txn *t, struct bucket_row *ret_row);
/* Decides an operation on the bucket, for decide() of a transaction. has_object: the bucket has an object. Returns true if
 * the caller has to change rows; false: t->result is the result. */
bool table_decide(struct txn *t, const struct model_op *op, bool has_object, struct model_answer *ret);

/* ---- bucket.c, table.c: calls of store.h ---- */

int rstore_bucket_create(struct store_port *p, const struct store_change *c, struct store_op *op);
int rstore_bucket_delete(struct store_port *p, const struct store_change *c, struct store_op *op);
int rstore_bucket_look(struct store_port *p, const struct store_look *l, struct store_op *op);
bool rstore_bucket_was_there(struct store_port *p, const char *name, size_t len);
/* Sets the attributes or the quota. */
int rstore_bucket_set(struct store_port *p, const struct store_change *c, struct store_op *op);

#endif
