/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of a hostile server: two bytes of status, one of what came as a body, then header lines, then an
 * error body, as libgantry reads them.
 */
#include "client/client_int.h"

#include "base/printable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())
#define SIZE 4096
#define OFFSET 10

/* Terminated, and nothing that a terminal obeys. */
static void
must_be_text(const char *text, size_t cap)
{
	char copy[256];

	must(cap <= sizeof copy && memchr(text, 0, cap));
	memcpy(copy, text, cap);
	must(!printable(copy, ""));
}

static void
must_be_sound(const struct reply *r)
{
	must(!r->has_reply || (r->code >= -1 && r->code <= 999));
	must(!r->has_range || r->range_first <= r->range_last);
	must(r->retry_after_s <= 60);
	must_be_text(r->etag, sizeof r->etag);
	must_be_text(r->reason, sizeof r->reason);
	must_be_text(r->checksum, sizeof r->checksum);
	must_be_text(r->stored_checksum, sizeof r->stored_checksum);
	must_be_text(r->last_modified, sizeof r->last_modified);
}

static void
take_header(void *cookie, const char *name, const char *value)
{
	size_t *len = cookie;
	char *copy = strdup(value);

	must(copy && *name && strlen(name) + strlen(value) < *len);
	must(!printable(copy, ""));
	must(!*value || (!strchr(" \t", *value) && !strchr(" \t", value[strlen(value) - 1])));
	for (; *name; name++)
		must(*name != ':' && !(*name >= 'A' && *name <= 'Z'));
	free(copy);
}

static void
read_error(const struct reply *r)
{
	char text[64], one[1];

	reply_xml(r, "Code", text, sizeof text);
	must_be_text(text, sizeof text);
	reply_xml(r, "Message", one, 1);
	must(one[0] == 0);
}

static void
judge(const struct reply *r, enum gantry_dialect d, uint64_t offset)
{
	const char *why = NULL;
	uint64_t bytes = 0;
	bool ok = r->status >= 200 && r->status <= 299;
	enum verdict v = judge_put(r, d, SIZE, &why);

	must(why && v < VERDICT_NR && (v != VERDICT_RDMA || ok));
	/* Nothing is done of which the server says another length. */
	must(v != VERDICT_RDMA || d == GANTRY_SCALITY || !r->has_bytes || r->bytes == SIZE);
	why = NULL;
	v = judge_get(r, d, offset, SIZE, &bytes, &why);
	must(why && v < VERDICT_NR && (ok || (v != VERDICT_RDMA && v != VERDICT_BODY)));
	/* Whatever a server says, never more than the window, and never bytes of another place. */
	if (v == VERDICT_RDMA || v == VERDICT_BODY) {
		must(bytes <= SIZE && (!r->has_range || r->range_first == offset));
		must(r->has_range || offset == 0);
	}
	/* Fewer than were asked for only where the answer says that the object ends there. */
	if ((v == VERDICT_RDMA || v == VERDICT_BODY) && bytes < SIZE && r->has_range)
		must(r->has_total && bytes == r->range_total - offset);
	if ((v == VERDICT_RDMA || v == VERDICT_BODY) && bytes < SIZE)
		must(r->has_range || r->status != 206);
	/* What lies in the window is the body, and the body whole. */
	must(v != VERDICT_BODY || (bytes == r->body_bytes && bytes && !r->body_overflow));
	must(v != VERDICT_RDMA || r->body_bytes == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct reply r;
	const char *p = (const char *)data, *end = p + len;

	reply_init(&r);
	if (len >= 3) {
		r.status = 100 + (data[0] | data[1] << 8) % 500;
		r.body_bytes = data[2] & 0x40 ? SIZE + 1 : (uint64_t)(data[2] & 0x3f);
		r.body_overflow = data[2] & 0x80;
		p += 3;
	}
	while (p < end && *p != '\n') {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = nl ? (size_t)(nl - p) : (size_t)(end - p);
		/* A line in memory of its own: it has no end but its length. */
		char *line = malloc(n);

		must(line);
		memcpy(line, p, n);
		reply_header(&r, line, n);
		reply_header_to(line, n, take_header, &n);
		free(line);
		p += n + (nl != NULL);
	}
	must_be_sound(&r);
	r.error_len = (size_t)(end - p) < sizeof r.error ? (size_t)(end - p) : sizeof r.error;
	memcpy(r.error, p, r.error_len);
	read_error(&r);
	for (int d = GANTRY_S3; d <= GANTRY_SCALITY; d++) {
		judge(&r, (enum gantry_dialect)d, OFFSET);
		judge(&r, (enum gantry_dialect)d, 0);
	}
	must((judge_plain(&r) == VERDICT_BODY) == (r.status >= 200 && r.status <= 299));
	must(status_errno(&r) < 0);
	return 0;
}
