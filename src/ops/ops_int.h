/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of ops/. */
#ifndef GANTRY_OPS_OPS_INT_H
#define GANTRY_OPS_OPS_INT_H

#include "ops/ops.h"
#include "req/machine.h"

/* ---- writing an object or a part (put.c) ---- */

/* Writes the payload, from the memory that the token names or from the HTTP body, to the request's object or
 * part; then continues with the step `then`. */
enum verdict put_object(struct req *rq, step_fn then);
/* Passes payload bytes of an HTTP body to the transfer of the PUT. Returns the number of bytes taken: 0 while
 * the transfer waits for its ticket, len if the transfer has failed. Cancels the request if the body exceeds
 * put_limit(). */
size_t put_take(struct req *rq, const void *data, size_t len);
/* Returns the largest size in bytes that the object or part of this request may have. */
uint64_t put_limit(const struct req *rq);
/* Begins the put of the request's object or part. size_bytes: its size, or STORE_SIZE_UNKNOWN. Returns 0,
 * -EAGAIN if there is no memory, or the -errno of store_put_init(). */
int put_init(struct req *rq, uint64_t size_bytes);
/* Compares the computed digests with the checksums of the request, and adds the checksums to the attributes
 * that are stored with the object. Called when all bytes have arrived. Returns FAULT_NONE, or the fault of a
 * checksum that differs. */
enum fault put_sums(struct req *rq);
/* Commits the put, then continues with the step `next`. mtime_ns: time of modification in ns since 1970; 0:
 * now. */
enum verdict put_commit_to(struct req *rq, uint64_t mtime_ns, step_fn next);
/* Returns FAULT_NONE if the store can validate the If-Match and If-None-Match of a write together, otherwise
 * the fault, with the reason in *ret_why. put_fill_pre() fills in the precondition. */
enum fault put_pre_fault(const struct target *t, const char **ret_why);
void put_fill_pre(const struct target *t, struct store_pre *pre);
/* Fills in the precondition for writing the object of rq. It includes the restriction of an access key that
 * may only make new objects. */
void put_fill_write_pre(const struct req *rq, struct store_pre *pre);

/* ---- uploads (upload.c) ---- */

/* The checksum that was declared when an upload was created, and that its parts have. have: false: no
 * checksum was declared. */
struct declared {
	bool have;
	enum checksum_kind kind;
	enum checksum_type type;
};
/* Reads the declared checksum from the upload's attributes. Returns 0 or -EBADMSG. */
int upload_declared(const void *attrs, size_t len, struct declared *ret);
/* Adds to t->attrs, for the new upload, the checksum and the x-gantry-ttl of the request. Returns 0 or -ENOSPC. */
int upload_declare(struct target *t);
/* Returns the x-gantry-ttl of an upload in seconds, from its attributes; 0: none. */
uint32_t upload_ttl(const void *attrs, size_t attrs_len);
/* Returns true if the object gets this attribute of its upload. */
bool upload_attr_stays(const char *name, size_t len);
/* Returns the fault for the -errno of an operation on an upload: FAULT_NO_SUCH_UPLOAD for -ENOENT, otherwise
 * fault_of(err). */
enum fault upload_fault(int err);
/* Checks after req_stat_upload() that the upload of a part exists, and sets `wanted` of the part's checksum
 * of the kind that the upload declared. Returns FAULT_NONE or the fault, with its reason in *ret_why. */
enum fault part_prepare(struct req *rq, const char **ret_why);

/* ---- what several need (shared.c) ---- */

/* Appends the stored attributes selected by keep() to rq->target.attrs. Returns 0; -ENOSPC if they do not
 * fit; or -EINVAL if the attributes are malformed. */
int attrs_add_from(struct req *rq, const void *attrs, size_t len, bool (*keep)(const char *name, size_t len));
/* Adds x-amz-expiration to the reply, if a lifecycle rule applies to an object with the request's key,
 * size_bytes and meta. */
void reply_expiration(struct req *rq, uint64_t size_bytes, const struct store_meta *meta);
/* Returns the expiry of an object that is written now with this x-gantry-ttl; 0: none. */
uint64_t expires_after(uint32_t ttl_s);
/* Adds the object that the request has written to the queue of objects that expire (walk/ttl.h), if it expires. */
void expires_written(struct req *rq);
/* Appends the URL of the request's object, "http://host/bucket/key" or https, and a NUL. */
void write_location(struct req *rq, struct text *x);

/* ---- tags of a new bucket (subres.c) ---- */

/* Makes the job of a CreateBucket with tags; the job takes over the memory of the tags. Returns 0, or -EAGAIN
 * if there is no memory. */
int create_tags_new(struct req *rq, struct text *tags);
/* Sets the attributes in spec of the bucket that rq creates: the tags passed to create_tags_new(), or no
 * attributes if it was not called. */
void create_tags_spec(const struct req *rq, struct store_bucket_spec *spec);
/* Compares the requested tags with the tags of a bucket that existed, or may have existed, before the
 * request, and replies: a bucket without tags gets the requested ones, and different tags are a fault. */
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
extern const struct op_hooks rc_connect_hooks;

#endif
