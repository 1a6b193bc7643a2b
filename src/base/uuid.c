/* SPDX-License-Identifier: Apache-2.0 */
/* UUIDs as text, see uuid.h. */
#include "base/uuid.h"

#include "base/hex.h"

#include <errno.h>
#include <string.h>

#define GROUP_NR 5

static const uint8_t group_bytes[GROUP_NR] = { 4, 2, 2, 2, 6 };

void
uuid_write(char text[UUID_TEXT], const uint8_t uuid[UUID_BYTES])
{
	for (int i = 0; i < GROUP_NR; i++) {
		if (i)
			*text++ = '-';
		hex_write(text, uuid, group_bytes[i]);
		uuid += group_bytes[i];
		text += 2 * group_bytes[i];
	}
	*text = 0;
}

int
uuid_parse(const char *text, uint8_t ret_uuid[UUID_BYTES])
{
	if (strlen(text) != UUID_TEXT - 1)
		return -EINVAL;
	for (int i = 0; i < GROUP_NR; i++) {
		if (i && *text++ != '-')
			return -EINVAL;
		if (hex_bytes(text, ret_uuid, group_bytes[i]) < 0)
			return -EINVAL;
		ret_uuid += group_bytes[i];
		text += 2 * group_bytes[i];
	}
	return 0;
}
