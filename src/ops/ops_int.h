/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of ops/. */
#ifndef GANTRY_OPS_OPS_INT_H
#define GANTRY_OPS_OPS_INT_H

#include "ops/ops.h"
#include "req/machine.h"

/* ---- writing an object or a part (put.c) ---- */

/* Writes the payload, by descriptor or from the body, to the request's object or part; then continues with
 * the step `then`. */
enum verdict put_object(struct req *rq, step_fn then);
/* Takes bytes of the body that belong to the object. */
size_t put_take(struct req *rq, const void *data, size_t len);
/* Returns the size limit of the object or part of this request. */
uint64_t put_limit(const struct req *rq);
/* Begins the put of the request's object or part in its part for changes.  0 or -errno of store_put_init(). */
int put_init(struct req *rq, uint64_t size_bytes);
/* Compares the digests with the checksums of the request, and stores them; called when all bytes have
 * arrived. */
enum fault put_sums(struct req *rq);
/* Commits the put. mtime_ns 0: the time of modification is now. */
enum verdict put_commit_to(struct req *rq, uint64_t mtime_ns, step_fn next);
/* Checks that the store's leader can validate If-Match and If-None-Match of a write, and fills in the
 * precondition. */
enum fault put_pre_fault(const struct target *t, const char **ret_why);
void put_fill_pre(const struct target *t, struct store_pre *pre);
/* Fills in the precondition for making an object, including the restriction of the access key to new
 * objects. */
void put_fill_write_pre(const struct req *rq, struct store_pre *pre);

/* ---- uploads (upload.c) ---- */

/* The checksum that the parts of an upload have. */
struct declared {
	bool have;
	enum checksum_kind kind;
	enum checksum_type type;
};
/* Reads the declared checksum from the upload's attributes. Returns 0 or -EBADMSG. */
int upload_declared(const void *attrs, size_t len, struct declared *ret);
/* Returns fault_of(), except that -ENOENT is FAULT_NO_SUCH_UPLOAD. */
enum fault upload_fault(int err);
/* Checks that the upload of a part exists, and requests the checksum that it declared; after
 * req_stat_upload(). */
enum fault part_prepare(struct req *rq, const char **ret_why);

/* ---- what several need (shared.c) ---- */

/* Appends the stored attributes selected by keep() to rq->target.attrs. Returns 0; -ENOSPC; or -EINVAL if the
 * daemon did not write the attributes. */
int attrs_add_from(struct req *rq, const void *attrs, size_t len, bool (*keep)(const char *name, size_t len));
/* Adds x-amz-expiration to the reply, if a rule applies to the request's key with that size and meta. */
void reply_expiration(struct req *rq, uint64_t size_bytes, const struct store_meta *meta);
/* Appends "http://host/bucket/key" and NUL. */
void write_location(struct req *rq, struct text *x);

/* ---- tags of a new bucket (subres.c) ---- */

/* Makes the job of a CreateBucket with tags; the job takes over the memory of the tags. Returns 0 or
 * -EAGAIN. */
int create_tags_new(struct req *rq, struct text *tags);
/* Stores in spec the attributes of the bucket that rq creates: the tags of create_tags_new(), if it was
 * called, otherwise none. */
void create_tags_spec(const struct req *rq, struct store_bucket_spec *spec);
/* Compares the tags of a bucket that existed, or may have existed, and replies: a bucket without tags gets them,
 * and different tags are a fault. */
enum verdict create_tags_check(struct req *rq);

/* ---- hooks, for the table ---- */

extern const struct op_hooks get_hooks;
extern const struct op_hooks put_hooks;
extern const struct op_hooks form_hooks;
extern const struct op_hooks bucket_hooks;
extern const struct op_hooks list_hooks;
extern const struct op_hooks attributes_hooks;
extern const struct op_hooks upload_create_hooks;
extern const struct op_hooks upload_complete_hooks;

#endif
