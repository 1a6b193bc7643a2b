/* SPDX-License-Identifier: Apache-2.0 */
/* disk_text - the name of a disk out of the JSON of the daemon's pages /disks and /status. Pure functions. */
#ifndef GANTRY_CLIENT_CMD_DISK_TEXT_H
#define GANTRY_CLIENT_CMD_DISK_TEXT_H

#include "base/disk_name.h"

#include <jansson.h>

/* Returns the value of the label "disk" in the metrics of a disk or pool; "?": unknown. */
const char *disk_label_of(const json_t *disk);
/* Writes the name of a disk for people (base/disk_name.h), and returns text. */
const char *disk_name_in(const json_t *disk, char text[DISK_NAME_BYTES]);

#endif
