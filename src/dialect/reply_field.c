/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the header fields of answers, see reply_field.def and dialect.h.  Any thread. */
#include "dialect/dialect.h"

const char *const field_name[2][FIELD_NR] = {
#define REPLY_FIELD(id, s3, scality) [DIALECT_S3][FIELD_##id] = s3,
#include "dialect/reply_field.def"
#define REPLY_FIELD(id, s3, scality) [DIALECT_SCALITY][FIELD_##id] = scality,
#include "dialect/reply_field.def"
};

static const uint8_t field_len[FIELD_NR] = {
#define REPLY_FIELD(id, s3, scality) [FIELD_##id] = sizeof scality - 1,
#include "dialect/reply_field.def"
};

enum reply_field
reply_field_find(const char *name, size_t len)
{
	for (enum reply_field h = 0; h < FIELD_NR; h++) {
		if (len == field_len[h] && memcmp(name, field_name[DIALECT_SCALITY][h], len) == 0)
			return h;
	}
	return FIELD_NR;
}
