/*
 * Forms: the first byte is the size of the pieces that the body comes in.  In pieces or at once, the fields
 * and the file are the same.
 */
#include "dialect/form.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())
#define TYPE "multipart/form-data; boundary=xYz"

struct outcome_of {
	enum fault fault;
	uint64_t sum; /* of the file's bytes, by their order */
	struct form *form;
};

static void
feed(const uint8_t *data, size_t len, size_t step, struct outcome_of *o)
{
	const char *why = NULL;

	o->form = calloc(1, sizeof *o->form);
	o->sum = 0;
	must(o->form);
	must(form_init(o->form, TYPE, strlen(TYPE), &why) == FAULT_NONE);
	o->fault = FAULT_NONE;
	for (size_t at = 0; at < len && o->fault == FAULT_NONE;) {
		size_t n = len - at < step ? len - at : step, used = 0, run_len = 0;
		char *piece = malloc(n);
		const void *run = NULL;

		must(piece);
		memcpy(piece, data + at, n);
		o->fault = form_feed(o->form, piece, n, &used, &run, &run_len, &why);
		must(used <= n && why && (run_len == 0 || o->form->have_file));
		must(used > 0 || o->fault || o->form->have_file);
		for (size_t i = 0; i < run_len; i++)
			o->sum = o->sum * 31 + ((const uint8_t *)run)[i] + 1;
		if (o->form->have_file)
			form_accept(o->form);
		at += used;
		free(piece);
	}
	if (o->fault == FAULT_NONE)
		o->fault = form_end(o->form, &why);
	must(why);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct target t;
	struct conf_listen listen = { .dialect = DIALECT_S3 };
	struct conf_rdma rdma = { 0 };
	struct dialect_in in = {
		.listen = &listen, .rdma = &rdma, .method = "POST", .target = "/bkt", .target_len = 4
	};
	struct form_success success;
	struct form_limits limits;
	struct outcome_of pieces, whole;
	const char *why = NULL;
	enum fault f;

	if (len == 0)
		return 0;
	feed(data + 1, len - 1, data[0] ? data[0] : 256, &pieces);
	feed(data + 1, len - 1, SIZE_MAX, &whole);
	must(pieces.fault == whole.fault && pieces.form->field_nr == whole.form->field_nr);
	must(whole.fault || (pieces.sum == whole.sum && pieces.form->file_bytes == whole.form->file_bytes));
	must(memcmp(pieces.form->bytes, whole.form->bytes, whole.form->used) == 0);
	if (whole.fault == FAULT_NONE) {
		memset(&t, 0, sizeof t);
		t.op = OP_POST_OBJECT;
		memcpy(t.bucket, "bkt", 4);
		t.bucket_len = 3;
		f = form_target(whole.form, &in, &t, &success, &why);
		must(why && t.key_len <= DIALECT_KEY_MAX && strlen(t.key) == t.key_len);
		must(f || (t.key_len > 0 && success.status >= 200 && success.status <= 204));
		f = form_policy(whole.form, &t, 1445412480, &limits, &why);
		must(f == FAULT_NONE || f == FAULT_POST_POLICY || f == FAULT_ACCESS_DENIED);
	}
	free(pieces.form);
	free(whole.form);
	/* And as a Content-Type. */
	pieces.form = calloc(1, sizeof *pieces.form);
	must(pieces.form);
	(void)form_init(pieces.form, (const char *)data + 1, len - 1, &why);
	free(pieces.form);
	return 0;
}
