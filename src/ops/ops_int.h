/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ops/ share. */
#ifndef GANTRY_OPS_OPS_INT_H
#define GANTRY_OPS_OPS_INT_H

#include "ops/ops.h"
#include "req/machine.h"

/* ---- writing an object or a part (put.c) ---- */

/* Writes what comes by descriptor or in the body to the request's object or part; goes on with then. */
enum verdict put_object(struct req *rq, step_fn then);
/* Takes bytes of the body that are the object's. */
size_t put_take(struct req *rq, const void *data, size_t len);
/* Returns the size of the largest object or part that this request may bring. */
uint64_t put_limit(const struct req *rq);
/* Begins the put of the request's object or part in its part for changes.  0 or -errno of store_put_init(). */
int put_init(struct req *rq, uint64_t size_bytes);
/* Compares and keeps what the digests say, when all bytes are there. */
enum fault put_sums(struct req *rq);
/* Commits the put; mtime_ns 0 is now. */
enum verdict put_commit_to(struct req *rq, uint64_t mtime_ns, step_fn next);
/* Tells whether the store's leader can judge what If-Match and If-None-Match of a write ask, and fills in
 * what it has to judge. */
enum fault put_pre_fault(const struct target *t, const char **ret_why);
void put_fill_pre(const struct target *t, struct store_pre *pre);
/* Fills in the same of what makes an object, and whether its access key has to keep the one that is there. */
void put_fill_write_pre(const struct req *rq, struct store_pre *pre);

/* ---- uploads (upload.c) ---- */

/* Says which checksum the parts of an upload have. */
struct declared {
	bool have;
	enum checksum_kind kind;
	enum checksum_type type;
};
/* Reads it from the upload's attributes.  0 or -EBADMSG. */
int upload_declared(const void *attrs, size_t len, struct declared *ret);
/* Returns fault_of(), but of -ENOENT that there is no such upload. */
enum fault upload_fault(int err);
/* Tells whether the upload of a part is there, and asks for the checksum that it declared; after
 * req_stat_upload(). */
enum fault part_prepare(struct req *rq, const char **ret_why);

/* ---- what several need (shared.c) ---- */

/* Appends those of stored attributes that keep() wants to rq->target.attrs.  0, -ENOSPC, or -EINVAL (not
 * ours). */
int attrs_add_from(struct req *rq, const void *attrs, size_t len, bool (*keep)(const char *name, size_t len));
/* Adds x-amz-expiration to the reply, where a rule applies to the request's key with that size and meta. */
void reply_expiration(struct req *rq, uint64_t size_bytes, const struct store_meta *meta);
/* Appends "http://host/bucket/key" and NUL. */
void write_location(struct req *rq, struct text *x);

/* ---- tags of a new bucket (subres.c) ---- */

/* Makes the job of a CreateBucket that gives tags, which it takes over.  0, or -EAGAIN. */
int create_tags_new(struct req *rq, struct text *tags);
/* Gives them to the bucket and replies.  is_new: the request made it; else it was there, and gets them if it has none
 * (the rest of a request that was cut short), and others are a fault. */
enum verdict create_tags(struct req *rq, bool is_new);

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
