/*
 * Inside the store in memory: what its files share.  See mem_store.c.
 */
#ifndef TESTS_FAKE_MEM_STORE_INT_H
#define TESTS_FAKE_MEM_STORE_INT_H

#include "tests/fake/mem_store.h"

#include <pthread.h>

#define NO_GRANULE UINT64_MAX

/* One version of an object, or a bucket (key_len 0). */
struct version {
	int refs; /* the index's and the open objects' */
	char bucket[STORE_BUCKET_MAX], key[STORE_KEY_MAX];
	uint16_t bucket_len, key_len;
	char *data, *attrs;
	uint64_t size_bytes, crc64, number, mtime_ns, bad_granule;
	struct store_etag etag;
	uint32_t attrs_len;
	uint64_t battrs_number; /* of a bucket: when its attributes were set; 0: none */
	/* of an object made of parts */
	struct store_part *parts;
	uint32_t part_nr;
	bool own_parts; /* their attributes are its own */
	uint8_t id[STORE_UPLOAD_ID_BYTES];
};

struct mem_upload {
	struct mem_upload *next; /* by bucket, key, id */
	char bucket[STORE_BUCKET_MAX], key[STORE_KEY_MAX];
	uint16_t bucket_len, key_len;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	char *attrs;
	uint32_t attrs_len;
	uint64_t mtime_ns, number;
	struct version *part[STORE_PART_NR_MAX + 1];
};

struct fault {
	int error;
	unsigned skip, times;
};

struct store {
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_t thread;
	bool stop, hold, manual;
	struct job *jobs; /* by time */
	struct version **index;
	struct mem_upload *uploads;
	size_t nr, cap;
	struct mem_store_tuning tuning;
	struct fault fault[MEM_FAULT_NR];
	uint64_t number, size_bytes, used_bytes;
	int ports, ports_max;
	unsigned inflight, open_nr, put_nr;
	struct store_disk_info info;
	char path[256];
};

struct store_port {
	struct store *st;
	struct mailbox *mb;
	pthread_t thread;
	unsigned inflight;
	bool asleep;
};

struct job {
	struct msg msg;
	struct job *next;
	uint64_t at_ns;
	struct store_port *port;
	struct store_op *op;
	enum mem_fault kind;
	void (*work)(struct store *st, struct job *j);   /* under the lock, any thread; sets result */
	void (*finish)(struct store *st, struct job *j); /* on the port's thread, no lock */
	int result;
	struct version *v;
	struct buf *buf;
	char *to;
	uint64_t off;
	uint32_t len;
	struct store_pre pre;
	const void *attrs;
	bool is_create;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
};

/* ---- under the lock ---- */

/* The place of the first entry that is not smaller. */
size_t mem_place(const struct store *st, const char *bucket, size_t bucket_len, const char *key,
		 size_t key_len);
struct version *mem_lookup(const struct store *st, const char *bucket, size_t bucket_len, const char *key,
			   size_t key_len);
void mem_version_put(struct store *st, struct version *v);
/* Takes the reference of v. */
void mem_index_set(struct store *st, struct version *v);
void mem_index_remove(struct store *st, struct version *v);
bool mem_bucket_exists(const struct store *st, const struct version *like);
int mem_judge(const struct store *st, const struct version *v, const struct store_pre *pre);
/* Those of a bucket; NULL: all. */
void mem_uploads_drop(struct store *st, const char *bucket, size_t len);
/* 0, -ENOENT, -ENXIO.  like: its bucket and key. */
int mem_upload_exists(struct store *st, const struct version *like, const uint8_t *id);
/* Takes the reference of v if it returns 0. */
int mem_part_commit(struct store *st, struct version *v, const uint8_t *id, uint32_t number);
/* The error that this operation is to end with; 0. */
int mem_fault_of(struct store *st, enum mem_fault kind);

/* Listing: how much of the name is a common prefix (0: none); is it one that `after` skips? */
size_t mem_common_len(const struct store_list *ls, const char *name, size_t len);
bool mem_is_skipped(const struct store_list *ls, const char *name, size_t len);

/* ---- without ---- */

struct version *mem_version_new(const char *bucket, size_t bucket_len, const char *key, size_t key_len);
int mem_key_check(const struct store_key *k);
bool mem_range_ok(const struct store_obj *obj, uint64_t off, uint32_t len);
/* What lies behind len bytes of a buffer is nobody's but the store's. */
void mem_spoil_slack(struct buf *buf, uint32_t len);
/* The caller is on p's thread, and p does not sleep. */
void mem_on_port(struct store_port *p);
struct job *mem_job_new(struct store_port *p, struct store_op *op, enum mem_fault kind,
			void (*work)(struct store *, struct job *));
/* What a start returns. */
int mem_job_start(struct job *j);

#endif
