/* SPDX-License-Identifier: Apache-2.0 */
/* The list that completes an upload, see parts.h. */
#include "extent/log/parts.h"

#include "extent/index/tree.h"
#include "extent/log/rec_mem.h"

#include <errno.h>
#include <string.h>

static bool
is_part(const struct store_part_ref *ref, const struct rec *r)
{
	return r->etag_parts == ref->etag.parts && memcmp(r->etag, ref->etag.sum, sizeof r->etag) == 0 &&
	       (!ref->version || ref->version == r->version);
}

int
parts_match(const struct tree *t, const uint8_t *id, const struct store_part_ref *parts,
	    struct chunk_ref *refs, uint32_t nr, bool fill, uint32_t *ret_bad)
{
	struct tree_cursor c;
	uint8_t key[CHUNK_KEY_BYTES];
	bool there;

	key_part(key, id, nr ? parts[0].number : 0);
	tree_cursor_init(&c, t, tree_root(t));
	there = tree_seek(&c, key, sizeof key, false);
	for (uint32_t i = 0; i < nr; i++) {
		const struct rec *r;

		key_part(key, id, parts[i].number);
		while (there && c.key_len == sizeof key && memcmp(c.key, key, sizeof key) < 0)
			there = tree_next(&c);
		r = c.rec;
		if (!there || c.key_len != sizeof key || memcmp(c.key, key, sizeof key) != 0 ||
		    !is_part(&parts[i], r) ||
		    (!fill && (refs[i].index != parts[i].number || refs[i].len_bytes != r->size_bytes ||
			       refs[i].crc64 != r->crc64))) {
			*ret_bad = i;
			return -EBADR;
		}
		if (fill) {
			refs[i] = (struct chunk_ref){ .index = parts[i].number,
						      .len_bytes = r->size_bytes,
						      .crc64 = r->crc64 };
			memcpy(refs[i].id, id, CHUNK_ID_BYTES);
		}
	}
	return 0;
}

/* ---- owners ---- */

/* Entries are in the order of their index. */
static bool
names(const struct rec *owner, enum rec_body body, const uint8_t *id, uint32_t index)
{
	const struct chunk_ref *ch = owner && owner->body == body ? rec_entries(owner) : NULL;
	uint32_t lo = 0, hi = ch ? owner->entry_nr : 0;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (ch[mid].index < index)
			lo = mid + 1;
		else
			hi = mid;
	}
	return ch && lo < owner->entry_nr && ch[lo].index == index &&
	       memcmp(ch[lo].id, id, CHUNK_ID_BYTES) == 0;
}

bool
object_names_part(const struct tree *t, const uint8_t *upload_key, size_t len, const uint8_t *key)
{
	uint8_t owner[KEY_BYTES_MAX];

	memcpy(owner, upload_key, len);
	owner[0] = key_object_type(key_has_two(owner[0]));
	return names(tree_find(t, owner, len - UPLOAD_TAIL_BYTES), BODY_PARTS, key + 1, key_index(key));
}

/* A part belongs to its upload, or to the object that the upload became. */
static bool
part_has_owner(const struct tree *t, const uint8_t *key, const struct rec *r)
{
	return r->owner_len > UPLOAD_TAIL_BYTES && (tree_find(t, rec_owner(r), r->owner_len) ||
						    object_names_part(t, rec_owner(r), r->owner_len, key));
}

bool
has_owner(const struct tree *t, const uint8_t *key, const struct rec *r)
{
	return key[0] == KEY_PART ? part_has_owner(t, key, r)
				  : r->owner_len && names(tree_find(t, rec_owner(r), r->owner_len),
							  BODY_MANIFEST, key + 1, key_index(key));
}
