/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the record of a store; see record.h. */
#include "store/record.h"

#include "base/refuse.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define HEAD "gantry-store 1"

const struct store_record_disk *
record_find(const struct store_record *record, const uint8_t uuid[UUID_BYTES])
{
	for (int i = 0; i < record->nr; i++) {
		if (memcmp(record->disk[i].uuid, uuid, UUID_BYTES) == 0)
			return &record->disk[i];
	}
	return NULL;
}

static bool
is_kept(const char *path)
{
	if (path[0] != '/' || strlen(path) >= RECORD_PATH_BYTES)
		return false;
	for (const char *p = path; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	}
	return true;
}

int
record_add(struct store_record *record, const uint8_t uuid[UUID_BYTES], uint64_t size_bytes, const char *path)
{
	struct store_record_disk *d = &record->disk[record->nr];

	if (record->nr == STORE_DISKS_MAX)
		return -ENOSPC;
	*d = (struct store_record_disk){ .size_bytes = size_bytes };
	memcpy(d->uuid, uuid, UUID_BYTES);
	if (is_kept(path))
		memcpy(d->path, path, strlen(path));
	record->nr++;
	return 0;
}

/* ---- reading ---- */

struct reader {
	const char *at, *end;
	char line[RECORD_PATH_BYTES + 128];
	int number;
	char *err;
	size_t err_len;
};

/* Takes the next line that is no comment.  1; 0: the text has ended; -EBADMSG. */
static int
next_line(struct reader *r)
{
	while (r->at < r->end) {
		const char *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
		size_t len = nl ? (size_t)(nl - r->at) : 0;

		r->number++;
		if (!nl)
			return refuse(r->err, r->err_len, -EBADMSG, "line %d has no end", r->number);
		if (r->at[0] != '#') {
			if (len >= sizeof r->line || memchr(r->at, 0, len))
				return refuse(r->err, r->err_len, -EBADMSG, "line %d is too long, or no text",
					      r->number);
			memcpy(r->line, r->at, len);
			r->line[len] = 0;
			r->at = nl + 1;
			return 1;
		}
		r->at = nl + 1;
	}
	return 0;
}

/* Reads "disk UUID BYTES PATH" after its first word. */
static int
read_disk(struct reader *r, const char *text, struct store_record *record)
{
	char uuid_text[UUID_TEXT];
	uint8_t uuid[UUID_BYTES];
	unsigned long long bytes;
	int at = 0;

	snprintf(uuid_text, sizeof uuid_text, "%.36s", text);
	if (strlen(text) < UUID_TEXT || uuid_parse(uuid_text, uuid) < 0 || text[UUID_TEXT - 1] != ' ')
		return refuse(r->err, r->err_len, -EBADMSG, "line %d has no UUID of a disk", r->number);
	text += UUID_TEXT;
	if (*text < '0' || *text > '9' || sscanf(text, "%19llu%n", &bytes, &at) != 1 || text[at] != ' ')
		return refuse(r->err, r->err_len, -EBADMSG, "line %d has no size", r->number);
	text += at + 1;
	if (strcmp(text, "-") != 0 && !is_kept(text))
		return refuse(r->err, r->err_len, -EBADMSG, "line %d has no absolute path", r->number);
	if (record_find(record, uuid))
		return refuse(r->err, r->err_len, -EBADMSG, "line %d has a disk for the second time",
			      r->number);
	if (record_add(record, uuid, bytes, strcmp(text, "-") == 0 ? "" : text) < 0)
		return refuse(r->err, r->err_len, -EBADMSG, "more than %d disks", STORE_DISKS_MAX);
	return 0;
}

int
record_parse(const char *text, size_t len, struct store_record *ret_record, char *err, size_t err_len)
{
	struct reader r = { .at = text, .end = text + len, .err = err, .err_len = err_len };
	int e = next_line(&r);

	memset(ret_record, 0, sizeof *ret_record);
	if (e < 0 || (e == 1 && strcmp(r.line, HEAD) != 0))
		return e < 0 ? e : refuse(err, err_len, -EBADMSG, "line %d is not \"" HEAD "\"", r.number);
	if (e == 1)
		e = next_line(&r);
	if (e == 1 &&
	    (strncmp(r.line, "store ", 6) != 0 || uuid_parse(r.line + 6, ret_record->store_uuid) < 0))
		return refuse(err, err_len, -EBADMSG, "line %d has no UUID of a store", r.number);
	while (e == 1 && (e = next_line(&r)) == 1) {
		if (strcmp(r.line, "end") == 0) {
			e = next_line(&r);
			return e <= 0 ? e
				      : refuse(err, err_len, -EBADMSG, "line %d is after the end", r.number);
		}
		if (strncmp(r.line, "disk ", 5) != 0)
			return refuse(err, err_len, -EBADMSG, "line %d is neither a disk nor the end",
				      r.number);
		e = read_disk(&r, r.line + 5, ret_record);
		if (e < 0)
			return e;
		e = 1;
	}
	return e < 0 ? e : refuse(err, err_len, -EBADMSG, "it ends too early");
}

/* ---- writing ---- */

void
record_print(const struct store_record *record, const char *about, FILE *f)
{
	char text[UUID_TEXT];

	uuid_write(text, record->store_uuid);
	fprintf(f, "%s\n# %.*s\nstore %s\n", HEAD, (int)strcspn(about, "\n"), about, text);
	for (int i = 0; i < record->nr; i++) {
		const struct store_record_disk *d = &record->disk[i];

		uuid_write(text, d->uuid);
		fprintf(f, "disk %s %llu %s\n", text, (unsigned long long)d->size_bytes,
			d->path[0] ? d->path : "-");
	}
	fputs("end\n", f);
}
