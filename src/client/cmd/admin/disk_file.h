/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_file - conf.d/disks.yaml, in which `gantry disk add|drain --write` keeps store.disks. A list of conf.d
 * replaces that of the configuration file, so the file has all disks. All functions are called by the main
 * thread.
 */
#ifndef GANTRY_CLIENT_CMD_DISK_FILE_H
#define GANTRY_CLIENT_CMD_DISK_FILE_H

#include <jansson.h>
#include <stdbool.h>

struct disk_file;

/* Reads the configuration, and checks that its disks are those of the daemon and that the file may be written
 * and would be used. conf: path of the configuration file; disks: the daemon's answer to GET /disks. Returns
 * NULL after writing an error message to stderr. */
struct disk_file *disk_file_open(const char *conf, const json_t *disks);
void disk_file_close(struct disk_file *f);
/* Writes the file atomically. The new list has the disks of the configuration that are not drained, and after
 * them the serving disks that the configuration lacks. disks: the daemon's answer to GET /disks after the
 * change. Nothing is written if the configuration has exactly this list. Returns 0, with *ret_wrote true if
 * the file was written; or -1 after writing an error message to stderr, also if no disk would be left. */
int disk_file_write(struct disk_file *f, const json_t *disks, bool *ret_wrote);
/* Returns the path of the file. */
const char *disk_file_path(const struct disk_file *f);

#endif
