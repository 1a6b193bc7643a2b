/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x-amz-expiration: the time at which a lifecycle rule of the bucket will delete the object of an answer.
 * Each core has an instance, made by core/ and used on its thread for each answer to a PUT, GET or HEAD.
 */
#ifndef GANTRY_WALK_EXPIRY_H
#define GANTRY_WALK_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>

struct expiry;
struct store_key;
struct store_meta;
struct store_port;
struct text;

/* Makes an instance that reads the rules of buckets through store. Returns 0 or -ENOMEM. */
int expiry_new(struct store_port *store, struct expiry **ret_expiry);
/* Frees an instance, when no operation of the port is in flight. NULL is allowed. */
void expiry_free(struct expiry *ex);

/*
 * Writes the value of the header, with a NUL, for an object with the key k, size_bytes and meta (mtime_ns and
 * attributes). Returns false with out unchanged if no rule applies, there is no memory, or ex is NULL.
 * now_ns: clock_ns(), or a little before.
 */
bool expiry_text(struct expiry *ex, const struct store_key *k, uint64_t size_bytes,
		 const struct store_meta *meta, uint64_t now_ns, struct text *out);

#endif
