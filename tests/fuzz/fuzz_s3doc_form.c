/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms: the first byte is the size of the pieces that the body comes in.  In pieces, in pieces of any size,
 * or at once, the fields and the file are the same.  From 0xf0 on the body is one that grows.
 */
#include "s3doc/form.h"
#include "tests/fuzz/grow.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())
#define TYPE "multipart/form-data; boundary=xYz"

#define FILE_MAX 4096
#define GROWN_MAX (24u << 10) /* more than a form may have in its fields */

/* Static, as one is large: nothing of an earlier input may show, so each begins with bytes of its own. */
struct outcome_of {
	enum fault fault;
	size_t file_len;
	struct form form;
	uint8_t file[FILE_MAX];
};

/* Some of the bytes that are the file's. */
static void
take(struct outcome_of *o, const void *run, size_t len)
{
	size_t n = len < FILE_MAX - o->file_len ? len : FILE_MAX - o->file_len;

	memcpy(o->file + o->file_len, run, n);
	o->file_len += n;
}

/* step: the largest piece; seed: 0, or each is as long as chance wants, up to that. */
static void
feed(const uint8_t *data, size_t len, size_t step, uint32_t seed, struct outcome_of *o)
{
	size_t most = len < step ? len : step;
	/* Pieces end where their memory ends: a read behind one is then seen. */
	char *room = malloc(most ? most : 1);
	const char *why = NULL;

	must(room);
	memset(&o->form, 0x5a, sizeof o->form);
	o->file_len = 0;
	must(form_init(&o->form, TYPE, strlen(TYPE), &why) == FAULT_NONE);
	o->fault = FAULT_NONE;
	for (size_t at = 0; at < len && o->fault == FAULT_NONE;) {
		size_t n = most, used = 0, run_len = 0;
		const void *run = NULL;
		char *piece;

		if (seed) {
			seed = seed * 1664525 + 1013904223;
			n = (seed >> 8) % most + 1;
		}
		n = n < len - at ? n : len - at;
		piece = room + most - n;
		memcpy(piece, data + at, n);
		o->fault = form_feed(&o->form, piece, n, &used, &run, &run_len, &why);
		must(used <= n && why && (run_len == 0 || o->form.have_file));
		must(used > 0 || o->fault || o->form.have_file);
		if (run_len)
			take(o, run, run_len);
		if (o->form.have_file)
			form_accept(&o->form);
		at += used;
	}
	if (o->fault == FAULT_NONE)
		o->fault = form_end(&o->form, &why);
	must(why);
	free(room);
}

static void
must_be_same(const struct outcome_of *a, const struct outcome_of *b)
{
	const struct form *x = &a->form, *y = &b->form;

	size_t used = x->used < y->used ? x->used : y->used;

	/* A run that does not fit is refused as a whole, so in pieces more
	 * of it may have been taken before. */
	must(a->fault == b->fault && x->field_nr == y->field_nr && (b->fault || x->used == y->used));
	must(memcmp(x->bytes, y->bytes, used) == 0);
	must(memcmp(x->field, y->field, (size_t)y->field_nr * sizeof *y->field) == 0);
	must(x->have_file == y->have_file && x->filename_len == y->filename_len);
	must(!y->have_file || memcmp(x->filename, y->filename, y->filename_len + 1) == 0);
	/* Of a body that is refused in the middle more or less may have been handed out before. */
	must(b->fault || (x->file_bytes == y->file_bytes && a->file_len == b->file_len &&
			  memcmp(a->file, b->file, b->file_len) == 0));
}

static void
use(const struct form *form)
{
	static unsigned char attrs[DIALECT_ATTRS_MAX];
	static struct target t;
	struct conf_listen listen = { .dialect = DIALECT_S3 };
	struct conf_rdma rdma = { 0 };
	static const struct uri uri = { .path = { "/bkt", 4 }, .text = "" };
	struct dialect_in in = { .listen = &listen, .rdma = &rdma, .method = "POST", .uri = &uri };
	struct form_success success;
	struct form_limits limits;
	const char *why = NULL;
	enum fault f;

	memset(&t, 0, sizeof t);
	t.op = OP_POST_OBJECT;
	t.attrs = attrs;
	memcpy(t.bucket, "bkt", 4);
	t.bucket_len = 3;
	f = form_target(form, &in, &t, &success, &why);
	must(why && t.key_len <= DIALECT_KEY_MAX && strlen(t.key) == t.key_len);
	must(f || (t.key_len > 0 && success.status >= 200 && success.status <= 204));
	f = form_policy(form, &t, 1445412480, &limits, &why);
	must(f == FAULT_NONE || f == FAULT_POST_POLICY || f == FAULT_ACCESS_DENIED);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct outcome_of pieces, whole;
	static uint8_t grown[GROWN_MAX];
	uint32_t first;
	const char *why = NULL;
	size_t n;

	if (len == 0)
		return 0;
	first = *data++;
	len--;
	/* As a Content-Type. */
	memset(&whole.form, 0x5a, sizeof whole.form);
	(void)form_init(&whole.form, (const char *)data, len, &why);
	n = first >= 0xf0 ? grow(data, len, grown, sizeof grown) : 0;
	if (n) {
		data = grown;
		len = n;
	}
	feed(data, len, SIZE_MAX, 0, &whole);
	/* Pieces of one length, or of any up to it; of a long body no more than some dozens. */
	feed(data, len, (first ? first : 256) + len / 48, first % 2 ? 0 : first + 1, &pieces);
	must_be_same(&pieces, &whole);
	if (whole.fault == FAULT_NONE)
		use(&whole.form);
	return 0;
}
