/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what a record names is there: chunks, and parts with theirs.  It is, but for what --fsck --repair could not keep.  On the
 * port's thread.
 */
#include "extent/object/read_int.h"

/* Returns true if everything to which a part, or an object that is not made of parts, refers exists. */
static bool
has_chunks(const struct vol *vol, const struct rec *r)
{
	const struct chunk_ref *ref = rec_entries(r);
	bool has = true;

	for (uint32_t i = 0; has && r->body == BODY_MANIFEST && i < r->entry_nr; i++)
		has = ref_record(vol->tree, &ref[i], KEY_CHUNK) != NULL;
	return has;
}

bool
rec_is_whole(const struct vol *vol, const struct rec *r, uint32_t *at, uint32_t most)
{
	const struct chunk_ref *ref = rec_entries(r);

	if (r->body != BODY_PARTS)
		return has_chunks(vol, r);
	for (; *at < r->entry_nr && most; (*at)++, most--) {
		const struct rec *part = ref_record(vol->tree, &ref[*at], KEY_PART);

		if (!part || !has_chunks(vol, part))
			return false;
	}
	return true;
}
