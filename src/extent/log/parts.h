/* SPDX-License-Identifier: Apache-2.0 */
/* parts - the list that completes an upload, against the parts that are there; and whose a part or a chunk is. */
#ifndef GANTRY_EXTENT_LOG_PARTS_H
#define GANTRY_EXTENT_LOG_PARTS_H

#include "extent/log/rec_codec.h"

struct rec;
struct tree;

/*
 * Looks up the parts of the list in the published index.  fill: what they are goes to refs; else it must be
 * what stands there.  0, or -EBADR with the index of the first that is not.  Any reader.
 */
int parts_match(const struct tree *t, const uint8_t *id, const struct store_part_ref *parts,
		struct chunk_ref *refs, uint32_t nr, bool fill, uint32_t *ret_bad);

/* Tells whether the object that an upload became names the part of that key.  The index's writer. */
bool object_names_part(const struct tree *t, const uint8_t *upload_key, size_t len, const uint8_t *key);
/* Tells whether somebody names the chunk or part of that key, r.  The index's writer. */
bool has_owner(const struct tree *t, const uint8_t *key, const struct rec *r);

#endif
