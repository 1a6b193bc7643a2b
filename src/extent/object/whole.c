/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what a record names is there: chunks, and parts with theirs.  It is, but for what --fsck --repair could not keep.  On the
 * port's thread.
 */
#include "extent/object/read_int.h"

const struct rec *
chunk_record(const struct vol *vol, const struct chunk_ref *ref)
{
	uint8_t key[CHUNK_KEY_BYTES];
	const struct rec *r;

	key_chunk(key, ref->id, ref->index);
	r = tree_get(vol->tree, key, sizeof key);
	return r && r->body == BODY_EXTENTS && r->size_bytes == ref->len_bytes && r->crc64 == ref->crc64
		       ? r
		       : NULL;
}

static bool
has_chunks(const struct vol *vol, const struct rec *r)
{
	const struct chunk_ref *ref = rec_entries(r);

	for (uint32_t i = 0; r->body == BODY_MANIFEST && i < r->entry_nr; i++) {
		if (!chunk_record(vol, &ref[i]))
			return false;
	}
	return true;
}

bool
rec_is_whole(const struct vol *vol, const struct rec *r, uint32_t *at, uint32_t most)
{
	const struct chunk_ref *ref = rec_entries(r);

	if (r->body != BODY_PARTS)
		return has_chunks(vol, r);
	for (; *at < r->entry_nr && most; (*at)++, most--) {
		const struct rec *part = part_record(vol->tree, &ref[*at]);

		if (!part || !has_chunks(vol, part))
			return false;
	}
	return true;
}
