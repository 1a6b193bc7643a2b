/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the contract suite: what its tests use.  See store_contract.c.
 */
#ifndef TESTS_FAKE_STORE_CONTRACT_INT_H
#define TESTS_FAKE_STORE_CONTRACT_INT_H

#include "tests/fake/store_contract.h"

#define BUCKET "contract"
#define OBJ_MAX ((size_t)9 << 20)
#define PUTS_AT_ONCE 8

extern struct contract *sc;
extern unsigned char *sc_pattern; /* 2 * OBJ_MAX random bytes: an object is a piece of it */
extern bool sc_in_start;          /* done() must not run from inside a start call */

/* What a start call returns, with the check around it. */
#define START(op_, call) ((op_)->done = sc_on_done, sc_in_start = true, sc_start_over(call))

enum how { HOW_COMMIT, HOW_WRITE }; /* the last piece rides with the commit, or is written before */

struct putting {
	struct store_put put;
	struct store_write w[4];
	struct buf *wbuf[4], *last;
	struct store_commit commit;
	size_t start, size;
	const uint8_t *upload_id; /* a part of it; NULL: an object */
	uint32_t part_number;
	const char *bucket; /* NULL: BUCKET */
};

uint64_t sc_rnd(void);
void sc_on_done(struct store_op *op);
int sc_start_over(int r);
int sc_wait_for(struct store_op *op, int r);
struct store_key sc_key_of(const char *key);
int sc_bucket_create(const char *name);
int sc_bucket_make(const char *name, unsigned copies);
/* On how many disks each key of a bucket is, or -ENXIO. */
int sc_bucket_copies(const char *name);
int sc_bucket_delete(const char *name);
/* Of a bucket: 0 or -ENXIO. */
int sc_bucket_head(const char *name, uint64_t *ret_ctime_ns);
/* The length of a bucket's attributes, of which up to cap bytes are copied, or -ENXIO. */
int sc_bucket_get_attrs(const char *name, void *attrs, uint32_t cap, uint64_t *ret_version);
int sc_upload_stat(const struct store_key *k, const uint8_t *id, uint64_t *ret_ctime_ns, void *attrs,
		   uint32_t cap, uint32_t *ret_attrs_len);
int sc_del_pre(const char *key, const struct store_pre *pre);
int sc_del(const char *key);
int sc_open_obj(const char *key, struct store_obj *obj);
int sc_put_begin(struct putting *pt, const char *key, size_t start, size_t size, enum how how, uint32_t piece,
		 bool say_size);
int sc_put_end(struct putting *pt, int r);
int sc_put(const char *key, size_t start, size_t size);
struct store_etag sc_etag_no(unsigned n);
int sc_put_pre(const char *key, size_t size, unsigned etag, const struct store_pre *pre);
void sc_read_compare(struct store_obj *obj, size_t start, uint64_t off, uint32_t len);
void sc_read_all(struct store_obj *obj, size_t start, size_t size);
void sc_expect(const char *key, size_t start, size_t size);
int sc_set_attrs(const char *key, uint64_t version, const void *attrs, uint32_t len);

void sc_test_expiry(void **state);
void sc_test_expiry_list(void **state);
void sc_test_buckets(void **state);
void sc_test_sizes(void **state);
void sc_test_names(void **state);
void sc_test_versions(void **state);
void sc_test_preconditions(void **state);
void sc_test_refused(void **state);
void sc_test_concurrent(void **state);
void sc_test_reads(void **state);
void sc_test_read_cancel(void **state);
void sc_test_open_to_read(void **state);
void sc_test_long_reads(void **state);
void sc_test_listing(void **state);
/* The same, for an object made of parts. */
void sc_expect_parts(const char *key, size_t start, size_t size);

void sc_test_upload(void **state);
void sc_test_bad_completions(void **state);
void sc_test_small_uploads(void **state);
void sc_test_odd_parts(void **state);
void sc_test_list_uploads(void **state);
void sc_test_upload_races(void **state);
void sc_test_upload_bucket(void **state);
void sc_test_set_attrs(void **state);
void sc_test_set_attrs_parts(void **state);
void sc_test_bucket_attrs(void **state);
void sc_test_quota_counts(void **state);
void sc_test_quota_bucket(void **state);
void sc_test_quota_patterns(void **state);
void sc_test_quota_races(void **state);
void sc_test_quota_buckets(void **state);
void sc_test_quota_bucket_number(void **state);
void sc_test_quota_reserved(void **state);
void sc_test_quota_copies(void **state);
void sc_test_quota_readers(void **state);
void sc_test_quota_ghosts(void **state);
void sc_test_delimiter(void **state);
void sc_test_prefixes(void **state);
void sc_test_long_listing(void **state);
void sc_test_units(void **state);
void sc_test_random(void **state);

#endif
