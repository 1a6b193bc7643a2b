/* SPDX-License-Identifier: Apache-2.0 */
/* Names of disks for people, see disk_name.h. */
#include "base/disk_name.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *
disk_name(char text[DISK_NAME_BYTES], const char *uuid, const char *path)
{
	bool has_uuid = uuid && uuid[0], has_path = path && path[0];

	snprintf(text, DISK_NAME_BYTES, "%.*s%s%s", DISK_DIGITS, has_uuid ? uuid : "",
		 has_uuid && has_path ? " " : "", has_path ? path : "");
	return text;
}

const char *
disk_name_of(char text[DISK_NAME_BYTES], const uint8_t uuid[UUID_BYTES], const char *path)
{
	static const uint8_t unknown[UUID_BYTES];
	char digits[UUID_TEXT] = "";

	if (memcmp(uuid, unknown, sizeof unknown) != 0)
		uuid_write(digits, uuid);
	return disk_name(text, digits, path);
}

bool
disk_digits_are(const char *which, const char *uuid)
{
	return strlen(which) == DISK_DIGITS && strncasecmp(which, uuid, DISK_DIGITS) == 0;
}
