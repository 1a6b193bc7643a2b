/* SPDX-License-Identifier: Apache-2.0 */
/* parts - checks the list that completes an upload against the existing parts, and finds the owner of a
 * part or chunk. */
#ifndef GANTRY_EXTENT_LOG_PARTS_H
#define GANTRY_EXTENT_LOG_PARTS_H

#include "extent/log/rec_codec.h"

struct rec;
struct tree;

/*
 * Looks up the parts of the list in the published index. fill: true: the found parts are written to refs;
 * false: they must be equal to refs. Returns 0, or -EBADR with the index of the first part that is absent or
 * different in *ret_bad. Any thread that reads the index.
 */
int parts_match(const struct tree *t, const uint8_t *id, const struct store_part_ref *parts,
		struct chunk_ref *refs, uint32_t nr, bool fill, uint32_t *ret_bad);

/* Returns true if the object that was completed from the upload refers to the part with the key `key`. Called
 * by the index's writer. */
bool object_names_part(const struct tree *t, const uint8_t *upload_key, size_t len, const uint8_t *key);
/* Returns true if a record refers to r, the chunk or part with the key `key`. Called by the index's
 * writer. */
bool has_owner(const struct tree *t, const uint8_t *key, const struct rec *r);

#endif
