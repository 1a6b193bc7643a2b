/* SPDX-License-Identifier: Apache-2.0 */
/* parts - finds and names the owner of a part or chunk. */
#ifndef GANTRY_EXTENT_LOG_PARTS_H
#define GANTRY_EXTENT_LOG_PARTS_H

#include "extent/log/rec_codec.h"

struct rec;
struct tree;

/* Returns the position of the entry with this number in a list of chunks or parts; UINT32_MAX: there is none. */
uint32_t ref_index(const struct chunk_ref *ref, uint32_t nr, uint32_t number);
/* Returns true if the object that was completed from the upload refers to the part with the key `key`. Called
 * by the index's writer. */
bool object_names_part(const struct tree *t, const uint8_t *upload_key, size_t len, const uint8_t *key);
/* Returns true if a record refers to r, the chunk or part with the key `key`. Called by the index's
 * writer. */
bool has_owner(const struct tree *t, const uint8_t *key, const struct rec *r);

/* Returns the record of the bucket of an object's, upload's or attributes' key; NULL: there is no such bucket. Called by a
 * thread that reads the index. */
const struct rec *bucket_of_key(const struct tree *t, const uint8_t *key, size_t len);
/* Returns true if the record r of an upload or of attributes belongs to the bucket of this name that exists, and not to an
 * earlier one. r NULL: false. Called by a thread that reads the index. */
bool has_bucket(const struct tree *t, const uint8_t *key, size_t len, const struct rec *r);

/* Returns the part to which a chunk belongs; NULL: the record is no chunk of a part, or the index lacks the part. */
const struct rec *part_of_chunk(const struct tree *t, const struct rec_view *v);

/* The object, or the part of an upload in progress, to which a record belongs. */
struct owner {
	bool is_object, is_part; /* both false: the owner is unknown */
	uint32_t number;         /* number of the part */
	uint64_t version, size_bytes;
	/* key of the object; of a part the key of its upload, and after it the number of the part (4, big
	 * endian); of an unknown owner the key of the record */
	uint8_t key[KEY_BYTES_MAX + 4];
	size_t len;
};

/* Size of a text of owner_text(), in bytes. */
#define OWNER_TEXT (KEY_BYTES_MAX + 80)

/* Finds the owner of a record of any type. Called by a thread that reads the index. */
void owner_find(const struct tree *t, const struct rec_view *v, struct owner *ret_owner);
/* Writes bucket and key of an object; number, bucket, key and upload id of a part. Unprintable bytes are
 * written as '?'. */
void owner_text(const struct owner *o, char *text, size_t cap);
/* Finds the part of an owner in an index, and writes the part's key (CHUNK_KEY_BYTES). owner_key: key of a
 * struct owner. Returns NULL: the index lacks the part. */
struct rec *owner_part(const struct tree *t, const uint8_t *owner_key, size_t len, uint8_t *ret_key);
/* Returns the record of a part of an object (KEY_PART), or of a chunk of a manifest (KEY_CHUNK); NULL: the index lacks it, or has
 * another one. The record is kept while the object is pinned. Called by a thread that reads the index. */
const struct rec *ref_record(const struct tree *t, const struct chunk_ref *ref, enum key_type type);

#endif
