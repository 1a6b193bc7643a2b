/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the owners of parts and chunks; see parts.h. */
#include "extent/log/parts.h"

#include "extent/index/tree.h"
#include "extent/log/rec_mem.h"
#include "base/hex.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

uint32_t
ref_index(const struct chunk_ref *ref, uint32_t nr, uint32_t number)
{
	uint32_t lo = 0, hi = nr;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (ref[mid].index < number)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < nr && ref[lo].index == number ? lo : UINT32_MAX;
}

static bool
names(const struct rec *owner, enum rec_body body, const uint8_t *id, uint32_t index)
{
	const struct chunk_ref *ch = owner && owner->body == body ? rec_entries(owner) : NULL;
	uint32_t i = ch ? ref_index(ch, owner->entry_nr, index) : UINT32_MAX;

	return i != UINT32_MAX && memcmp(ch[i].id, id, CHUNK_ID_BYTES) == 0;
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

const struct rec *
bucket_of_key(const struct tree *t, const uint8_t *key, size_t len)
{
	uint8_t bucket[1 + STORE_BUCKET_MAX];

	return tree_get(t, bucket, key_bucket_of(bucket, key, len));
}

bool
has_bucket(const struct tree *t, const uint8_t *key, size_t len, const struct rec *r)
{
	const struct rec *b = r ? bucket_of_key(t, key, len) : NULL;

	return b && model_is_of(r->version, b->version);
}

const struct rec *
part_of_chunk(const struct tree *t, const struct rec_view *v)
{
	return v->key[0] == KEY_CHUNK && v->owner_len && v->owner[0] == KEY_PART
		       ? tree_find(t, v->owner, v->owner_len)
		       : NULL;
}

/* Takes the object that was completed from an upload, if it has the part; otherwise the part of the upload. */
static void
take_part(const struct tree *t, const uint8_t *key, const uint8_t *upload, size_t len, struct owner *o)
{
	uint32_t number = htobe32(key_index(key));

	memcpy(o->key, upload, len);
	o->len = len;
	if (object_names_part(t, upload, len, key)) {
		o->key[0] = key_object_type(key_has_two(o->key[0]));
		o->len -= UPLOAD_TAIL_BYTES;
		o->is_object = true;
		return;
	}
	memcpy(o->key + len, &number, sizeof number);
	o->len += sizeof number;
	o->number = key_index(key);
	o->is_part = true;
}

void
owner_find(const struct tree *t, const struct rec_view *v, struct owner *ret_owner)
{
	const struct rec *part = part_of_chunk(t, v), *of = NULL;
	const uint8_t *key = part ? v->owner : v->key, *owner = part ? rec_owner(part) : v->owner;
	size_t owner_len = part ? part->owner_len : v->owner_len;
	struct owner *o = ret_owner;

	*o = (struct owner){ .version = part ? part->version : v->version,
			     .size_bytes = part ? part->size_bytes : v->size_bytes,
			     .len = v->key_len };
	if (key[0] == KEY_PART && owner_len > UPLOAD_TAIL_BYTES && key_is_upload(owner[0])) {
		take_part(t, key, owner, owner_len, o);
	} else if (owner_len && key_is_object(owner[0])) {
		memcpy(o->key, owner, owner_len);
		o->len = owner_len;
		o->is_object = true;
	} else {
		memcpy(o->key, v->key, v->key_len);
		o->is_object = key_is_object(v->key[0]);
	}
	if (o->is_object && !key_is_object(v->key[0]))
		of = tree_find(t, o->key, o->len);
	if (of) {
		o->version = of->version;
		o->size_bytes = of->size_bytes;
	}
}

void
owner_text(const struct owner *o, char *text, size_t cap)
{
	char name[KEY_BYTES_MAX + 1], id[2 * CHUNK_ID_BYTES + 1] = "";
	uint8_t object[KEY_BYTES_MAX];
	size_t len;

	if (!o->is_part) {
		key_text(name, sizeof name, o->key, o->len);
		snprintf(text, cap, "%s'%s'",
			 o->key[0] == KEY_CHUNK     ? "chunk "
			 : o->key[0] == KEY_PART    ? "part "
			 : key_is_upload(o->key[0]) ? "upload "
						    : "",
			 name);
		return;
	}
	len = o->len - sizeof o->number - UPLOAD_TAIL_BYTES;
	memcpy(object, o->key, len);
	object[0] = KEY_OBJECT;
	key_text(name, sizeof name, object, len);
	hex_write(id, o->key + len + 1, CHUNK_ID_BYTES);
	snprintf(text, cap, "part %u of an upload of '%s', id %.32s", o->number, name, id);
}

struct rec *
owner_part(const struct tree *t, const uint8_t *owner_key, size_t len, uint8_t *ret_key)
{
	const uint8_t *number = owner_key + len - sizeof(uint32_t);
	uint32_t be;

	memcpy(&be, number, sizeof be);
	key_part(ret_key, number - CHUNK_ID_BYTES, be32toh(be));
	return tree_find(t, ret_key, CHUNK_KEY_BYTES);
}

const struct rec *
ref_record(const struct tree *t, const struct chunk_ref *ref, enum key_type type)
{
	uint8_t key[CHUNK_KEY_BYTES];
	const struct rec *r;

	disk_key_write(key, type, &(struct disk_key){ .id = ref->id, .number = ref->index });
	r = tree_get(t, key, sizeof key);
	return r && r->size_bytes == ref->len_bytes && r->crc64 == ref->crc64 ? r : NULL;
}
