/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key - the keys of records, of the disk and of the index on RADOS: a type byte, followed by the parts that the rows
 * DISK_KEY and RADOS_KEY of record.def name. Pure functions, any thread. Readers accept hostile bytes.
 */
#ifndef GANTRY_MODEL_KEY_H
#define GANTRY_MODEL_KEY_H

#include "model/record.h"

#define DISK_KEY_MAX (2 + STORE_BUCKET_MAX + STORE_KEY_MAX + 1 + STORE_UPLOAD_ID_BYTES)
#define RADOS_KEY_MAX (2 * STORE_KEY_MAX + 64) /* with a NUL */

/* The parts of the key of a disk record. A key has the parts that its row of record.def names. */
struct disk_key {
	const char *bucket, *key; /* not terminated */
	size_t bucket_len, key_len;
	const uint8_t *id; /* id of an upload, or common id of chunks of an object or part */
	uint32_t number;   /* number of a part; index of a chunk or of a document of a bucket */
};

/* The parts of a key on RADOS. */
struct rados_key {
	const char *key; /* not terminated */
	size_t key_len;
	const uint8_t *id;
	uint64_t number; /* number of a part; instance number of a gateway */
	uint64_t epoch;
	struct rid rid;
	/* memory of the caller for a key and an id that a reader decodes */
	char *key_room;
	uint8_t *id_room;
};

/* The columns KIND and COPIES of the row of a type; on RADOS, copies is 1 in every row. */
struct key_traits {
	enum model_kind kind;
	unsigned copies;
};

static inline struct key_traits
disk_key_traits(uint8_t t)
{
#define DISK_KEY(name, type, kind, copies, parts)                                                            \
	if (t == type)                                                                                       \
		return (struct key_traits){ MODEL_##kind, copies };
#include "model/record.def"
	return (struct key_traits){ MODEL_NONE, 0 };
}
static inline struct key_traits
rados_key_traits(char t)
{
#define RADOS_KEY(name, type, kind, parts)                                                                   \
	if (t == type)                                                                                       \
		return (struct key_traits){ MODEL_##kind, 1 };
#include "model/record.def"
	return (struct key_traits){ MODEL_NONE, 0 };
}
/* Returns the lowest type of this kind above a type; 0: there is none. */
uint8_t disk_key_next(enum model_kind kind, uint8_t type);
/* Writes the key of a disk record of this type, at most DISK_KEY_MAX bytes. Returns its length, or -EINVAL
 * (name empty, or NUL inside), -ENAMETOOLONG. */
int disk_key_write(uint8_t *out, uint8_t type, const struct disk_key *k);
/* Reads the key of a disk record of any type. Returns the kind of record, or -EBADMSG. */
int disk_key_read(const uint8_t *bytes, size_t len, struct disk_key *ret_key);
/* Writes a key on RADOS, and a NUL after it. If id is NULL or number is 0, the key ends before this part. Returns
 * the length without the NUL. */
size_t rados_key_write(char *out, char type, const struct rados_key *k);
/* Reads a key on RADOS of this type. k has the memory for names. Returns 0 or -EBADMSG. */
int rados_key_read(const char *text, size_t len, char type, struct rados_key *k);

#endif
