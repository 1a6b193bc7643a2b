/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of lists as a hostile server writes them: one byte for what was asked, then the body. */
#include "client/client_int.h"

#include "base/printable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

static int calls, stop_at;

/* Terminated within cap, and nothing that a terminal obeys. */
static void
must_be_text(const char *text, size_t cap)
{
	char copy[GANTRY_UPLOAD_ID_MAX];

	must(cap <= sizeof copy && memchr(text, 0, cap));
	memcpy(copy, text, strlen(text) + 1);
	must(!printable(copy, ""));
}

static int
on_item(void *cookie, const struct gantry_entry *e, const struct gantry_part *p)
{
	must(!e != !p);
	if (e) {
		must(strlen(e->name) == e->name_len);
		must_be_text(e->etag, 136);
		must_be_text(e->date, 40);
		must_be_text(e->upload_id, GANTRY_UPLOAD_ID_MAX);
	} else {
		must(p->number >= 1 && p->number <= GANTRY_PARTS_MAX);
		must_be_text(p->etag, sizeof p->etag);
		must_be_text(p->checksum, sizeof p->checksum);
	}
	return ++calls == stop_at ? 99 : 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	enum list_kind kind = len ? data[0] % LIST_NR : LIST_OBJECTS;
	struct list_page page;
	/* In memory of its own: it has no end but its length. */
	char *body = malloc(len ? len : 1);
	int e;

	must(body);
	if (len)
		memcpy(body, data + 1, len - 1);
	calls = 0;
	stop_at = len && data[0] & 0x80 ? 2 : 0;
	e = list_read(body, len ? len - 1 : 0, kind, on_item, NULL, &page);
	must(e == 0 || e == -EPROTO || e == -ENOMSG || (e == 99 && calls == stop_at));
	/* A page is sound, or nothing of it is shown. */
	must(e >= 0 || calls == 0);
	must(e != 0 || !page.is_truncated || (page.next && *page.next));
	free(page.next);
	free(page.next_id);
	free(body);
	return 0;
}
