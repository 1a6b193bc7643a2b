/* SPDX-License-Identifier: Apache-2.0 */
/* Names of disks out of the daemon's JSON, see disk_text.h. */
#include "client/cmd/common/disk_text.h"

#include "client/cmd/common/admin_client.h"

const char *
disk_label_of(const json_t *disk)
{
	/* Earlier daemons have the label under this name, and in "disk" a number. */
	return json_text_at(disk, "disk", json_text_at(disk, "label", "?"));
}

const char *
disk_name_in(const json_t *disk, char text[DISK_NAME_BYTES])
{
	return disk_name(text, json_text_at(disk, "uuid", ""), json_text_at(disk, "path", ""));
}
