/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to the store on RADOS: shared by the files that do I/O and keep the index; use_int.h has the
 * declarations for objects, uploads and lists. The reference is docs/rados.md, which numbers the rules.
 *
 * Threads. All steps of an operation run on the thread of its port. Threads of librados only carry results:
 * its callbacks store a result and post a message (call.c). The ports share the queues of the shards and the
 * cache of buckets (each with a lock that is held for a few instructions, and never across a call of
 * librados), and the counters of the gateway. Calls that may block run on helper threads (base/periodic.h),
 * or at start and stop.
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
#define XATTR_CRC "c"  /* CRC of the list in a map, for readers without the record that also has the CRC */
#define OMAP_PAGE 1000 /* number of entries in one request; the cluster returns at most 1024 */
#define GENERATION_CLOSED ((uint64_t)1 << 63)
#define ID_WINDOW (1u << 20) /* maximum number of ids from the oldest in use to the newest */
#ifndef ID_AHEAD
#define ID_AHEAD (1u << 13) /* number of ids that a gateway's row reserves in advance (rule 4) */
#endif
#define EPOCHS_KEPT 3 /* number of epochs after which garbage is removed (rule 2) */

struct rstore;

/* ---- connections and pools ---- */

enum pool { POOL_META, POOL_DATA, POOL_NR };

/* A connection to the cluster. Several ports share a connection, because each connection has threads of
 * its own. */
struct client {
	rados_t cluster;
	rados_ioctx_t io[POOL_NR];
};

/* Counters and states of a pool, for operators. */
struct pool_stats {
	_Atomic uint64_t read_bytes, read_ops, written_bytes, write_ops, errors, crc_errors;
	struct latency_counts latency[DISK_IO_NR];
	_Atomic uint64_t longest_call_ns; /* longest time for which a call of librados has blocked a core */
	/* time of the last answer that the pool is full; 0: a write has succeeded since */
	_Atomic uint64_t refused_ns;
	_Atomic uint64_t denied_ns; /* time of the last answer that the key of this gateway lacks the right */
	_Atomic bool is_gone;       /* the pool was removed from the cluster */
	/* answers of the monitors, set by a helper thread */
	_Atomic uint64_t size_bytes, free_bytes;
	pthread_mutex_t lock; /* protects the following fields */
	char waits_for[96];   /* placement group for which the oldest operation waits */
	uint64_t waits_ns;    /* start of that operation */
};

/* Returns an array with room for one more element, perhaps at another address. NULL: no memory; the array
 * is unchanged. */
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

/* Handles a row; key and value are valid until the return. Returns 0: continue; 1: stop; or -errno. */
typedef int (*row_fn)(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len);

/* Adds to a write: sets a row. */
static inline void
op_set(rados_write_op_t op, const char *key, const void *val, size_t len)
{
	const char *v = val;

	rados_write_op_omap_set(op, &key, &v, &len, 1);
}

/* Adds to a write: compares a row with a value, which is empty if the row must not exist. If they differ,
 * the whole write fails with -ECANCELED. */
static inline void
op_compare(rados_write_op_t op, const char *key, const void *val, size_t len)
{
	rados_write_op_omap_cmp(op, key, LIBRADOS_CMPXATTR_OP_EQ, val, len, NULL);
}

/* Adds to a write: removes a row. */
static inline void
op_remove(rados_write_op_t op, const char *key)
{
	rados_write_op_omap_rm_keys(op, &key, 1);
}

/* Returns a write that creates an object with one attribute, and fails if the object exists. */
static inline rados_write_op_t
op_new_object(const char *xattr, const void *bytes, size_t len)
{
	rados_write_op_t op = rados_create_write_op();

	rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
	rados_write_op_setxattr(op, xattr, bytes, len);
	return op;
}

/* Returns a write that changes the generation of a shard from one value to another. */
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

/* A warning of the cleaner that was logged. */
struct warned {
	uint64_t crc64; /* CRC of the text */
	uint64_t at_ns; /* time of the last such line; 0: no warning */
};
#define WARNED_MAX 32

struct gateway {
	struct store_format_row format; /* description of the pools, as read at the start */
	/* current format version of the pools; records have no fields of later versions */
	_Atomic uint32_t format_version;
	uint32_t instance;
	_Atomic uint64_t epoch;    /* newest epoch that this gateway has read */
	_Atomic uint64_t epoch_ns; /* time at which this gateway read that epoch */
	/* numbers of pins of this epoch and of the one before, indexed by the lowest bit of the epoch
	 * (rule 2) */
	_Atomic uint64_t pins[2];
	_Atomic bool is_fenced; /* another gateway has declared this one dead; every request fails */
	char fenced_by[128];    /* reason, for operators; set before is_fenced */
	/* Ids: those from first up to next may be in use, those up to last are reserved in this gateway's
	 * row. */
	pthread_mutex_t id_lock;
	uint64_t first, next, last;
	uint8_t *id_over; /* one bit for each id, at counter modulo ID_WINDOW: the id is no longer in use */
	/* Helper threads: one writes this gateway's row; one removes garbage and cleans up after dead
	 * gateways, and may wait for a placement group that is down; one asks the monitors. */
	struct periodic beat, cleaner, watcher;
	bool is_entered;
	struct warned warned[WARNED_MAX]; /* latest warnings of the cleaner, for its thread */
	pthread_mutex_t lock;             /* protects the following fields, except atomic ones */
	_Atomic bool sweep_all; /* the next sweep reads all shards, for garbage of earlier gateways */
	struct list dirty;      /* list of struct rshard with garbage */
	bool is_sweeping;       /* a sweep is in progress; the shards that it handles are not in `dirty` */
	struct peer *peers;     /* rows of all gateways, as read last */
	uint32_t peer_nr;
	uint32_t next_instance;         /* instance number of the next gateway that starts, read with peers */
	uint64_t looked_ns;             /* time at which peers were read */
	_Atomic uint32_t rank;          /* number of gateways with a lower instance number */
	uint8_t row[GATEWAY_ROW_BYTES]; /* this gateway's row, as written last */
	/* Counters for operators. */
	_Atomic uint64_t beats, last_beat_ns, swept, gateways, dead_cleaned;
};

/* ---- buckets and their shards ---- */

/* A shard of a bucket's index, or the table of buckets: an object of the meta pool to which changes are
 * committed. */
struct rshard {
	char name[64];
	pthread_mutex_t lock;
	/* last generation after which this gateway has read its own row and so was not declared dead; 0:
	 * none (rule 5) */
	_Atomic uint64_t known;
	bool is_busy;             /* an operation of this gateway on the shard is in progress */
	_Atomic uint64_t busy_ns; /* start of that operation; 0: none */
	struct list queue;        /* list of struct txn: changes for the next operation */
	/* Usage of the shard: changes of this gateway; changes of all other gateways, as read last; the
	 * sum of both that the quota ledger contains. */
	struct quota_change own, others, booked;
	/* This gateway's row of counters, which only operations of this gateway change; unsure: the row is
	 * read before the next operation. */
	uint8_t own_row[COUNTER_BYTES];
	size_t own_len; /* 0: no row */
	bool is_own_unsure;
	struct list dirty;      /* link in the gateway's list, under the gateway's lock */
	struct rbucket *bucket; /* NULL: this is the table of buckets */
};

struct rbucket {
	struct rbucket *next; /* link in the cache */
	_Atomic uint32_t refs;
	struct rstore *store;
	bool is_cached;
	_Atomic bool is_doubtful;  /* the row in the table of buckets must be read before the next use */
	_Atomic uint64_t there_ns; /* time of the last answer of the cluster that the bucket exists */
	uint64_t serial;           /* number of this struct, unique in the process */
	uint64_t seen;             /* last turn of usage.c in which the table had the bucket */
	_Atomic uint64_t bounded;  /* turn of usage.c in which this gateway last set the limits */
	_Atomic uint32_t finds;    /* number of consecutive look-ups of GETs that found an object */
	/* State of recall.c: number of consecutive look-ups of PUTs that found no object; end of the pause
	 * after a wrong assumption. */
	_Atomic uint32_t absences;
	_Atomic uint64_t recall_after_ns;
	char name[STORE_BUCKET_MAX];
	uint8_t name_len;
	struct bucket_row row;
	struct rshard shard[];
};

/* Cached records of objects: recall.c. */
#define RECALL_SLOTS 4096u
#define RECALL_LOCKS 16u
#define RECALL_BYTES 1024u /* maximum size of key and record in the cache */

#define RECALL_NAMES 65536u

/* The data objects that a record named when this gateway last saw the record. */
struct data_seen {
	uint64_t hash; /* hash of bucket and key */
	struct rid data;
	uint64_t size_bytes; /* 0: empty entry */
	bool has_trailers;
	bool is_doubtful; /* the last parallel read was of other data objects */
};

struct recall_table {
	pthread_mutex_t lock[RECALL_LOCKS]; /* each protects a part of the slots */
	struct remembered *slot[RECALL_SLOTS];
	struct data_seen named[RECALL_NAMES];
};

#define AHEAD_MAX 64u /* maximum number of parallel reads of a port, of each kind (ahead.c) */

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
	struct list ports;           /* list of struct rport */
	_Atomic uint64_t monitor_ns; /* time of the last answer of the monitors */
	struct pool_stats stats[POOL_NR];
	/* Memory of PUTs without an answer of the cluster: the PUTs, and librados' copies of their data,
	 * also if no client waits any longer. The second field is the limit. */
	_Atomic uint64_t unwritten_bytes;
	uint64_t unwritten_max_bytes;
	struct rshard buckets; /* the table of buckets */
	pthread_mutex_t cache_lock;
	struct rbucket *cache[BUCKET_HASH];
	uint32_t cache_nr;
	_Atomic uint64_t bucket_serial;
	_Atomic uint64_t change_nr; /* number of operations sent to shards; each gets the next number */
	struct gateway gw;
	struct recall_table recall;
	/* numbers of parallel reads that were used, and that were dropped */
	_Atomic uint64_t ahead_right, ahead_wrong;
	struct quota_book *book;
	_Atomic uint64_t usage_turn; /* number of the turn of usage.c */
	struct periodic usage;
	/* index of the cached bucket with which the next turn begins to read buckets without limits */
	uint32_t usage_next;
};

struct rport {
	struct store_port base;
	struct rstore *st;
	struct client *client;
	struct mailbox *mb;
	uint32_t inflight; /* number of operations of callers and of own calls in progress */
	pthread_mutex_t calls_lock;
	struct list calls;        /* list of struct call in progress, oldest first */
	struct list link;         /* link in the store's ports */
	struct ahead *ahead_free; /* free buffers of parallel reads of one granule */
	uint32_t ahead_nr;        /* number of all these buffers */
	uint32_t ahead_large_nr;  /* number of parallel reads into buffers from store_spares */
	struct buf *spares_back;  /* buffers that spares_msg returns to their lender, linked by next */
	struct msg spares_msg;
	_Atomic uint64_t answered_ns; /* time of the last answer of the cluster */
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

/* Ends an operation: calls its done(). On the thread of the port. */
static inline void
rop_end(struct rport *p, struct store_op *op, int result)
{
	check(p->inflight > 0 && op->done);
	op->result = result;
	p->inflight--;
	op->done(op);
}

/* ---- call.c: one call of librados ---- */

struct call {
	struct msg msg;
	struct rport *port;
	const void *asker; /* owner of the operation: the port's asker when the call began */
	rados_completion_t comp;
	void (*back)(struct call *c); /* runs on the thread of the port, after result is set */
	int result;
	uint64_t begun_ns;
	struct list link; /* link in the port's calls */
	enum pool pool;
	enum disk_io io;
	uint64_t bytes; /* payload, for the counters */
	bool is_cancelled;
	char name[64]; /* name of the object */
};

/* The calls to a pool that have been in progress for longer than a given time. */
struct waiting {
	uint32_t nr;
	uint64_t oldest_ns; /* start of the oldest call; 0: none */
	char name[64];
};
void calls_waiting(struct rstore *st, enum pool pool, uint64_t longer_ns, struct waiting *ret_waiting);
/* Aborts the reads of the index for this asker that have taken longer than older_ns, as store_give_up()
 * does. On the thread of the port. */
void calls_give_up(struct store_port *sp, const void *asker, uint64_t older_ns);
/* Returns true if an operation, or the write of this gateway's row, has waited for longer_ns, and no
 * operation was answered in this time. Any thread. */
bool calls_are_stuck(struct rstore *st, uint64_t longer_ns);

/* Sends an operation, and releases it. back() always runs, after the return. */
void call_read(struct rport *p, struct call *c, enum pool pool, const char *name, rados_read_op_t op,
	       uint64_t bytes, void (*back)(struct call *c));
void call_write(struct rport *p, struct call *c, enum pool pool, const char *name, rados_write_op_t op,
		uint64_t bytes, void (*back)(struct call *c));
/* Cancels a call, if its answer has not come. Returns true if back() will run soon, with -ETIMEDOUT or the
 * answer; false: no change. */
bool call_cancel(struct call *c);
/* Removes the data objects of an id; no caller waits for the end. end_id: gateway_id_over() is called
 * after the last removal. */
void data_remove(struct rport *p, struct rid id, uint64_t size_bytes, bool end_id);
/* Removes the map of an id in the same way, and calls gateway_id_over(). */
void map_remove(struct rport *p, struct rid id);
/* Translates an error of librados to one of store.h. */
int result_of(int r);

/* ---- rows.c: one row ---- */

struct row_read {
	struct call call;
	rados_omap_iter_t iter;
	int rv;
	size_t len; /* length of the whole value */
	/* the beginning of the value; values read in this way are not longer, unless they are damaged */
	uint8_t val[BUCKET_ROW_BYTES];
};
/* Returns an operation that reads a row. Call row_read_end() after the operation. */
rados_read_op_t row_read_op(struct row_read *rr, const char *key);
/* Ends the read. Returns 1 with the value; 0: the row does not exist; or -errno. */
int row_read_end(struct row_read *rr);

/* ---- rows.c: the rows of an object whose keys begin with a prefix ---- */

struct scan {
	struct call call;
	rados_omap_iter_t iter;
	int rv;
	unsigned char more;
	const char *object, *prefix;
	/* key before the first row, set by the caller; row() may set a higher key */
	char after[OMAP_KEY_MAX];
	/* Maximum number of further rows that the caller wants; one more is read, to find out whether
	 * there are others. row() may set another number. */
	uint32_t left;
	row_fn row;
	void (*over)(struct scan *s, int e);
};
/* Begins to read rows; the caller owns object and prefix. The cookie of row() is the scan. over() always
 * runs, after the return, with 0, -errno of a read, or the first result of row() other than 0. */
void scan_begin(struct rport *p, struct scan *s, const char *object, const char *prefix, uint32_t left,
		row_fn row, void (*over)(struct scan *s, int e));

/* ---- txn.c, txn_keys.c: a change of the index ---- */

/*
 * A transaction on one shard: the values of up to TXN_KEYS keys are read, decide() sets the new values, and
 * one operation compares all keys with the values that were read and writes the new ones. If the comparison
 * fails, the keys are read and decided again. A look-up is a transaction whose decide() changes nothing.
 */
#define TXN_KEYS 3

struct bytes {
	char *p; /* NULL: no value */
	size_t len;
};

enum fate { FATE_COMPARE, FATE_SET, FATE_REMOVE };

struct txn_key {
	char *key;
	uint16_t len;
	enum fate fate; /* set by decide() */
	struct bytes old, set;
};

/* A key that is set or removed without a comparison: garbage, parts. */
struct txn_more {
	char *key;
	uint16_t len;
	struct bytes set; /* p NULL: the key is removed */
};

/* Use of a cached record in the place of a look-up: not allowed; allowed; the transaction was decided on a
 * cached record; no longer allowed. */
enum guess { GUESS_NEVER, GUESS_FIRST, GUESS_MADE, GUESS_OVER };

enum txn_say { TXN_OVER, TXN_COMMIT, TXN_LATER, TXN_AGAIN };

struct txn {
	struct row_read look;
	struct msg msg;   /* sends the transaction from the queue of the shard back to its port */
	struct list link; /* link in the queue of the shard */
	struct txn *next; /* next in the batch */
	struct rport *port;
	struct store_op *op; /* operation of the caller, for op.c */
	const void *asker;   /* owner of the transaction */
	rados_xattrs_iter_t xattrs;
	int xattrs_rv;
	/* Set by the caller. */
	/* Decides. TXN_OVER: the end, with t->result; TXN_COMMIT: the keys are changed; TXN_LATER: the
	 * caller calls txn_go_on(); TXN_AGAIN: the keys are read again. */
	enum txn_say (*decide)(struct txn *t);
	void (*over)(struct txn *t); /* runs at the end, with t->result; frees no memory of t */
	/* names, owned by the caller; object NULL: the transaction is on the table of buckets */
	const char *bucket, *object;
	uint16_t bucket_len, object_len;
	int key_nr;
	struct txn_key key[TXN_KEYS];
	enum guess guess; /* GUESS_FIRST if decide() may use a cached record */
	/* Private to txn.c and shard.c. */
	struct rbucket *rb;
	struct rshard *shard;
	uint64_t generation; /* generation of the shard when the keys were read */
	uint64_t epoch;      /* epoch that the transaction pins */
	bool is_pinned, is_alone;
	/* set by the caller: changes nothing; a look-up that finds a value need not read the generation */
	bool is_read;
	bool is_brief; /* the look-up does not read the generation */
	uint32_t more_nr;
	size_t more_cap;
	struct txn_more *more;
	struct quota_change delta; /* change of the bucket's usage, set by decide() */
	bool is_held;              /* the quota ledger contains delta as held */
	int commit_result;         /* result of the operation on the shard */
	uint32_t restarts;
	int result;
};

/* Adds a key to read and to compare, before txn_start(). Returns 0 or -ENOMEM. */
int txn_add_key(struct txn *t, const char *key, size_t len);
/* Adds to a write: sets the owner of a data object or map, which is bucket, NUL, key. The clean-up after a
 * dead gateway reads it. */
void txn_set_owner(rados_write_op_t op, const struct txn *t);
/* Begins a transaction. over() always runs, after the return. */
void txn_start(struct rport *p, struct txn *t);
/* Continues a transaction after TXN_LATER, with the final result of decide(). */
void txn_go_on(struct txn *t, enum txn_say say);
/* Sets a key to a value of len bytes. Returns memory for the value, with t->result 0; NULL: no memory, and
 * t->result is -ENOMEM. Called by decide(), like the next function, which removes a key. */
void *txn_set(struct txn *t, int key, size_t len);
void txn_remove(struct txn *t, int key);
/* Sets one more key, or (value.p NULL) removes it. Returns 0 or -ENOMEM; the value is taken over, also
 * after an error. */
int txn_more(struct txn *t, const char *key, size_t len, struct bytes value);
/* Adds to a change: the data of a removed or replaced record is garbage. Returns 0 or -errno. */
int txn_garbage(struct txn *t, const struct record *old);
int txn_garbage_data(struct txn *t, const struct garbage_data *data, uint32_t nr, const struct rid *map);
/* Sets a key to a record. Returns the result of decide(), with t->result 0, -ENOMEM, or -EOPNOTSUPP: the
 * record has a field that the format of the pools lacks (format.c). */
enum txn_say txn_set_record(struct txn *t, int key, const struct record *new);
/* Sets a key to a new record with the given metadata, which replaces old (NULL: none); the data of old
 * becomes garbage. Sets the version, and the time if the metadata has none. Returns the result of
 * decide(), with t->result 0 or an error. */
enum txn_say txn_put_record(struct txn *t, int key, struct record *new, const struct store_meta *meta,
			    const struct record *old);
/* Removes the further keys of txn_more(). */
void txn_more_free(struct txn *t);
/* Frees the memory that a transaction owns. */
void txn_fini(struct txn *t);

/* ---- op.c: operations of store.h that begin with a transaction ---- */

/* Allocates an operation of the given size, zeroed, whose first member is a transaction on an object. The
 * operation has copies of the names, because those of the caller are valid only until the start returns.
 * Its keys are the upload's (upload_id NULL: none), and the object's (has_object). Returns NULL without
 * memory. */
void *txn_op_new(struct rport *p, size_t bytes, const struct store_key *k, const uint8_t *upload_id,
		 bool has_object);
/* Frees an operation that has not begun. NULL is allowed. */
void txn_op_drop(void *op);
/* Begins the operation of the caller, and its transaction. Returns 0. */
int txn_op_start(struct txn *t, struct store_op *op, enum txn_say (*decide)(struct txn *t),
		 void (*over)(struct txn *t));
/* Frees the operation, and ends the operation of the caller. */
void txn_op_end(struct txn *t, int result);
/* Frees the operation, and ends the operation of the caller with the result of the transaction. Used as
 * over() by operations with no further steps. */
void txn_op_over(struct txn *t);
/* Begins an ended transaction again, with the same names and keys. */
void txn_again(struct txn *t, enum txn_say (*decide)(struct txn *t), void (*over)(struct txn *t));

/* Finds the generation of a shard among its attributes. Returns 0 or -EBADMSG. */
int generation_of(rados_xattrs_iter_t xattrs, uint64_t *ret_generation);

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

static inline void
bytes_free(struct bytes *b)
{
	free(b->p);
	*b = (struct bytes){ 0 };
}

/* ---- recall.c: cached records of objects ---- */

/*
 * A record is cached after this gateway has set or removed it. After some PUTs of a bucket that found no
 * object, a key that is not cached is assumed to have none. Cached records and assumptions may be wrong: a
 * change that relies on them compares them in its operation on the shard.
 */

void recall_init(struct recall_table *r);
void recall_fini(struct recall_table *r);
/* Sets the old values of a transaction from the cache. Returns false if a look-up is needed. */
bool recall(struct txn *t);
/* Caches the records that a successful change has set, before the next operation on the shard begins. */
void recall_note(const struct txn *t);
/* Counts the result of a look-up. recall_wrong() drops cached records after a wrong assumption, and begins
 * a pause. */
void recall_looked(const struct txn *t);
void recall_wrong(const struct txn *t);
/* Caches the data objects of a record; NULL: the object does not exist. is_doubtful: a parallel read had
 * other data objects, so the next look-up has no parallel read. */
void recall_seen(struct recall_table *r, const struct rbucket *rb, const struct txn_key *k,
		 const struct record *rec, bool is_doubtful);
/* Returns the cached data objects of a record. False: none are cached, or they are doubtful. */
bool recall_named(struct recall_table *r, const struct rbucket *rb, const struct txn_key *k,
		  struct data_seen *ret_named);

/* ---- cache.c: the cache of buckets ---- */

/* Returns a cached bucket, with a reference for the caller, or NULL. */
struct rbucket *rbucket_get(struct rstore *st, const char *name, size_t len);
/* Puts a bucket into the cache, in the place of another bucket of that name, and returns it with a
 * reference for the caller. Returns NULL without memory. */
struct rbucket *rbucket_put_in(struct rstore *st, const char *name, size_t len, const struct bucket_row *row);
/* Notes that the cluster has answered that the bucket exists. */
void rbucket_is_there(struct rbucket *rb);
/* Notes that the bucket may have been removed: its row is read before the next use. */
void rbucket_doubt(struct rbucket *rb);
/* Removes a bucket from the cache, because it no longer exists. */
void rbucket_drop(struct rbucket *rb);
/* Returns all cached buckets, with a reference for each; the caller frees the list. Returns NULL without
 * memory. */
struct rbucket **rbuckets_all(struct rstore *st, uint32_t *ret_nr);
/* Drops a reference. NULL is allowed. */
void rbucket_release(struct rbucket *rb);
void rbuckets_fini(struct rstore *st);
struct rshard *rbucket_shard(struct rbucket *rb, const char *key, size_t len);
void shard_init(struct rshard *s, const char *name, struct rbucket *rb);
void shard_fini(struct rshard *s);

/* ---- usage.c: usage of buckets, and quotas ---- */

/* Adds the row of a bucket to the quota ledger when the bucket enters the cache. usage_leave() removes the
 * row. */
void usage_enter(struct rbucket *rb);
void usage_leave(struct rbucket *rb);
/* Checks the change of the usage against the quota when the change is about to be sent, and holds it in
 * the ledger. Returns 0 or -EDQUOT. */
int usage_judge(struct txn *t);
/* Sets the size of a bucket's documents in the quota ledger. */
void usage_set_docs(struct rstore *st, const char *name, size_t len, uint32_t doc_bytes);
/* Reserves space for all bytes of a PUT in progress, or changes the reservation. Returns 0 or -EDQUOT. */
int usage_reserve(struct rstore *st, const char *name, size_t len, uint64_t whole_bytes,
		  struct quota_hold *hold);
/* Releases the held change of the usage. */
void usage_release(struct txn *t);
/* Counts the changes of an operation that has set this gateway's row in a shard, and releases what its
 * transactions held. Called under the lock of the shard. */
void usage_commit(struct rshard *s, const struct quota_change *sum, const uint8_t row[COUNTER_BYTES],
		  struct txn *riders);
/* Stores this gateway's row as read from the shard. */
void usage_take_own(struct rshard *s, const uint8_t *val, size_t len);
/* Removes the row of a former gateway from the table of buckets. For a helper thread. */
void usage_forget(struct rstore *st, uint32_t instance);
/* Sets the limits of a bucket in the quota ledger, after this gateway has changed or removed its quota. */
void usage_bound(struct rstore *st, const char *name, size_t len, const struct store_use *max);
int usage_start(struct rstore *st);

/* ---- gateway.c ---- */

/* Returns a new id. -EAGAIN: too many ids are in use; -ESHUTDOWN: this gateway was declared dead. */
int gateway_id(struct rstore *st, struct rid *ret_id);
/* Ends the use of an id: no operation with it is in progress. */
void gateway_id_over(struct rstore *st, struct rid id);
/* Pins the current epoch, and returns it: data named in this epoch is not removed before the unpin (rule
 * 2). */
uint64_t gateway_pin(struct rstore *st);
void gateway_unpin(struct rstore *st, uint64_t epoch);
/* Notes that a shard has garbage. */
void gateway_dirty(struct rstore *st, struct rshard *s);
/* Notes that another gateway has declared this one dead. */
void gateway_fence(struct rstore *st);
/* Returns true if the gateway with this number has ended or was declared dead, according to the rows that
 * were read last. Any thread. */
bool gateway_is_gone(struct rstore *st, uint32_t instance);
int gateway_start(struct rstore *st, char *err, size_t err_len);
void gateway_stop(struct rstore *st);

/* ---- format.c ---- */

/* Reads and checks the format of the pools at the start. Returns 0, or -errno with the reason in err. */
int format_read(struct rstore *st, char *err, size_t err_len);
/* Returns 0 if the format of the pools allows records of this version; otherwise logs that `gantryd
 * --upgrade` is needed, and returns -EOPNOTSUPP. Any thread. */
int format_allows(struct rstore *st, uint32_t version);
/* Reads the description of the store in a pool. Returns 0, or -errno as format_decode() does. */
int format_row(struct rstore *st, enum pool pool, uint8_t bytes[STORE_FORMAT_BYTES],
	       struct store_format_row *ret_row);

/* ---- upgrade.c ---- */

/* Raises the format of the pools to the newest version, unless a gateway of an earlier version has a row.
 * Returns 0 or -errno, with a sentence about the result in `said`. */
int format_raise(struct rstore *st, char *said, size_t said_len);

/* Returns the version of a record that replaces a record of version old. 0: no record is replaced. */
static inline uint64_t
next_version(uint64_t old)
{
	uint64_t now = clock_wall_ns();

	return old >= now ? old + 1 : now;
}

/* ---- table.c: the table of buckets ---- */

/* Allocates an operation of the given size, zeroed, whose first member is a transaction on the bucket's
 * row and (unless kind is 0) another row of the bucket. Returns NULL without memory. */
void *table_op_new(struct rport *p, size_t bytes, const char *name, size_t len, char kind);
/* Reads the row of the bucket, key 0. Returns 0; -ENXIO: no bucket; or -EBADMSG. */
int table_row(const struct txn *t, struct bucket_row *ret_row);
/* Decides an operation on the bucket, for decide() of a transaction. has_object: the bucket has an object.
 * Returns true if the caller has to change rows; false: t->result is the final result. */
bool table_decide(struct txn *t, const struct model_op *op, bool has_object, struct model_answer *ret);

/* ---- bucket.c, table.c: calls of store.h ---- */

int rstore_bucket_create(struct store_port *p, const struct store_change *c, struct store_op *op);
int rstore_bucket_delete(struct store_port *p, const struct store_change *c, struct store_op *op);
int rstore_bucket_look(struct store_port *p, const struct store_look *l, struct store_op *op);
bool rstore_bucket_was_there(struct store_port *p, const char *name, size_t len);
/* Sets the attributes or the quota of a bucket. */
int rstore_bucket_set(struct store_port *p, const struct store_change *c, struct store_op *op);

#endif
