/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a store: any text is refused with a reason, or each disk in it is there once, with a path that is absolute or
 * unknown, and the same comes out when it is written and read again.
 */
#include "store/record.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

static struct store_record first, again;

static void
must_be_sound(const struct store_record *r)
{
	must(r->nr >= 0 && r->nr <= STORE_DISKS_MAX);
	for (int i = 0; i < r->nr; i++) {
		const struct store_record_disk *d = &r->disk[i];

		must(memchr(d->path, 0, sizeof d->path));
		must(!d->path[0] || d->path[0] == '/');
		must(!strchr(d->path, '\n'));
		must(record_find(r, d->uuid) == d);
	}
}

/* The text that record_write() makes, without a file. */
static char *
text_of(const struct store_record *r, size_t *ret_len)
{
	char uuid[UUID_TEXT], *text = NULL;
	FILE *f = open_memstream(&text, ret_len);

	must(f);
	record_print(r, "of a test\nwith a second line", f);
	must(fclose(f) == 0);
	uuid_write(uuid, r->store_uuid);
	must(strstr(text, uuid));
	return text;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char why[160] = "", *text;
	size_t text_len;

	if (record_parse((const char *)data, len, &first, why, sizeof why) < 0) {
		must(why[0]);
		return 0;
	}
	must_be_sound(&first);
	text = text_of(&first, &text_len);
	must(record_parse(text, text_len, &again, why, sizeof why) == 0);
	must(memcmp(&first, &again, sizeof first) == 0);
	free(text);
	return 0;
}
