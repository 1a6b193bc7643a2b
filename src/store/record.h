/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a store outside of its disks: its UUID, and the UUID, size and last path of each member. The
 * record shows a daemon that a disk is missing if the disk's path has only an empty mount point, and the
 * daemon finds members that the configuration does not name.
 *
 * The file is text with these lines in this order (docs/operations.md, "The record of the store"):
 *
 * 	gantry-store 1
 * 	store UUID
 * 	disk UUID BYTES PATH        (BYTES 0: unknown; PATH to the end of the line, "-": unknown)
 * 	end
 *
 * Lines that begin with # are comments. Any thread may call these functions; those that open files block.
 */
#ifndef GANTRY_STORE_RECORD_H
#define GANTRY_STORE_RECORD_H

#include "base/uuid.h"
#include "set/map/disk_table.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define RECORD_PATH_BYTES 1024
/* largest size of a record's file, in bytes */
#define RECORD_FILE_BYTES (128u << 10)

struct store_record_disk {
	uint8_t uuid[UUID_BYTES];
	uint64_t size_bytes;          /* size of the disk; 0: unknown */
	char path[RECORD_PATH_BYTES]; /* absolute path of the disk; "": unknown */
};

struct store_record {
	uint8_t store_uuid[UUID_BYTES];
	int nr;
	struct store_record_disk disk[STORE_DISKS_MAX];
};

/* Parses the text of a record. Returns 0; or -EBADMSG if the text is damaged, with the line and the reason in
 * err. */
int record_parse(const char *text, size_t len, struct store_record *ret_record, char *err, size_t err_len);
/* Reads a record. Returns 0; -ENOENT: the file does not exist; -EBADMSG: the text is damaged; another -errno:
 * the file cannot be read. After an error err has a sentence that names the file. */
int record_read(const char *file, struct store_record *ret_record, char *err, size_t err_len);
/* Writes the text of a record. about: text for a comment; only its first line is used. */
void record_print(const struct store_record *record, const char *about, FILE *out);
/* Replaces the record atomically and durably: a new file is written, flushed and renamed, and the directory
 * is flushed. about: text for a comment; only its first line is used. Returns 0; or -errno, with a sentence
 * in err; after an error the file has the former record. */
int record_write(const char *file, const struct store_record *record, const char *about, char *err,
		 size_t err_len);
/* Returns the disk with this UUID; NULL: the record has no such disk. */
const struct store_record_disk *record_find(const struct store_record *record,
					    const uint8_t uuid[UUID_BYTES]);
/* Adds a disk to the record. Returns 0; -ENOSPC: the record is full. A path that is too long, that is not
 * absolute, or that has control characters is stored as unknown. */
int record_add(struct store_record *record, const uint8_t uuid[UUID_BYTES], uint64_t size_bytes,
	       const char *path);

#endif
