/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - the fields of records, which record.def lists: types, and the movement of a field between a struct and
 * encoded bytes. Pure functions, any thread.
 */
#ifndef GANTRY_MODEL_RECORD_H
#define GANTRY_MODEL_RECORD_H

#include "store/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t id_bytes[STORE_UPLOAD_ID_BYTES];

/* The id of a PUT, part, copy or commit on RADOS, never used twice: the instance number of a gateway, and a number
 * that the gateway counts. */
struct rid {
	uint32_t instance;
	uint64_t counter;
};
#define RID_BYTES 12 /* encoded */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fields are moved as they are in memory");

/* The kinds of records; NONE: others, which decisions do not concern. */
enum model_kind {
	MODEL_NONE = -1,
	MODEL_BUCKET,
	MODEL_BUCKET_ATTRS,
	MODEL_OBJECT,
	MODEL_UPLOAD,
	MODEL_PART,
	MODEL_CHUNK,
};

static inline void
field_move(void *at, void *value, size_t n, bool puts)
{
	if (puts)
		memcpy(at, value, n);
	else
		memcpy(value, at, n);
}

static inline void
field_move_rid(void *at, struct rid *id, size_t n, bool puts)
{
	field_move(at, &id->instance, 4, puts);
	field_move((uint8_t *)at + 4, &id->counter, 8, puts);
}

/* Moves a field: puts: from `value` to the encoded bytes at `at`; otherwise in the other direction. */
#define FIELD_MOVE(at, value, puts)                                                                          \
	_Generic((value), struct rid                                                                         \
		 : field_move_rid, default                                                                   \
		 : field_move)((void *)(at), (void *)&(value), sizeof(value), puts)

/* Moves the limits of a quota, or counted usage, between *r and p; see FIELD_MOVE. */
#define USE_BYTES 24
static inline void
use_move(struct store_use *r, uint8_t *p, bool puts)
{
#define USE(at) at
#include "model/record.def"
}

#endif
