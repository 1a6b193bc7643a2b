/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the S3 surface must not do at its edges: look at a client's header fields when that client is gone,
 * or pass over a condition or a limit.
 */
#include "tests/unit/ops/surface.h"

#include "ops/ops.h"

#include <errno.h>

static void
begin(struct xchg *x, const char *method, const char *target, const char *body)
{
	x_init(x, 0, method, target);
	if (body)
		x_field(x, "content-length", "%zu", strlen(body));
}

static int
answer(struct xchg *x, const char *body)
{
	return with_body(x, body ? body : "", body ? strlen(body) : 0, SIZE_MAX);
}

static int
request(const char *method, const char *target, const char *body)
{
	struct xchg x;
	int status;

	begin(&x, method, target, body);
	status = answer(&x, body);
	x_end(&x);
	return status;
}

/* ---- an operation that nobody serves ---- */

static void
test_unserved(void **state)
{
	struct op_entry table[OP_NR];

	assert_null(op_table[OP_NONE].start);
	for (enum op op = OP_NONE + 1; op < OP_NR; op++)
		assert_non_null(op_table[op].start);
	/* The daemon lives on, and says so. */
	memcpy(table, op_table, sizeof table);
	table[OP_GET_BUCKET_LOCATION].start = NULL;
	rig.reqs->env.operations = table;
	assert_int_equal(request("GET", "/bkt?location", ""), 501);
	assert_int_equal(request("GET", "/bkt", ""), 200);
	rig.reqs->env.operations = op_table;
	assert_int_equal(request("GET", "/bkt?location", ""), 200);
}

/* ---- subresources: op.def and subres.def say the same ---- */

static void
test_subres_rows(void **state)
{
	static const step_fn steps[OP_NR] = {
#define SUBRES(id, ...)                                                                                      \
	[OP_GET_BUCKET_##id] = subres_get, [OP_PUT_BUCKET_##id] = subres_put,                                \
	[OP_DELETE_BUCKET_##id] = subres_delete,
#include "dialect/subres.def"
	};

	for (enum op op = OP_NONE + 1; op < OP_NR; op++) {
		step_fn start = op_table[op].start;
		bool is_subres = start == subres_get || start == subres_put || start == subres_delete;

		if (start != steps[op] && (is_subres || steps[op]))
			fail_msg("%s: op.def and subres.def do not agree", op_name[op]);
	}
}

/* ---- what errors of the store mean ---- */

static void
test_store_errors(void **state)
{
	static const struct {
		int error, status;
	} cases[] = { { -ESHUTDOWN, 503 }, { -EROFS, 503 },   { -EOPNOTSUPP, 501 }, { -EAGAIN, 503 },
		      { -ENOSPC, 507 },    { -EBADMSG, 500 }, { -EIO, 500 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		mem_store_fail(rig.store, MEM_OPEN, cases[i].error, 0, 1);
		assert_int_equal(request("GET", "/bkt/k", NULL), cases[i].status);
	}
	assert_int_equal(request("GET", "/bkt/k", NULL), 404);
}

static int
preflight(const char *target)
{
	struct xchg x;
	int status;

	begin(&x, "OPTIONS", target, NULL);
	x_field(&x, "origin", "http://x.test");
	x_field(&x, "access-control-request-method", "PUT");
	status = answer(&x, NULL);
	x_end(&x);
	return status;
}

static void
test_preflight_errors(void **state)
{
	static const struct {
		int error, status;
	} cases[] = { { -EAGAIN, 503 }, { -EOPNOTSUPP, 501 }, { -EIO, 500 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		mem_store_fail(rig.store, MEM_STAT, cases[i].error, 0, 1);
		assert_int_equal(preflight("/bkt/k"), cases[i].status);
	}
	/* There are no rules; there is no bucket that has some. */
	assert_int_equal(preflight("/bkt/k"), 403);
	assert_int_equal(preflight("/absent/k"), 403);
}

/* ---- the client leaves when the store is done and nobody has said so yet ---- */

static void
leave_at_the_end(struct xchg *x, const char *body)
{
	size_t at = 0, len = strlen(body);

	mem_store_hold(rig.store, true);
	x_begin(x);
	/* Looks and reads on the way to it are let through. */
	for (int i = 0; i < 1000000 && x->rq->phase != PHASE_COMMIT; i++) {
		if (at < len) {
			at += req_body(x->rq, body + at, len - at);
			if (at == len)
				req_body_end(x->rq);
		}
		mem_store_hold(rig.store, false);
		rig_turn();
		mem_store_hold(rig.store, true);
		usleep(20);
	}
	assert_int_equal(x->rq->phase, PHASE_COMMIT);
	mem_store_hold(rig.store, false);
	wait_until(x->rq->holds <= 0) {
		mailbox_run(&rig.mb, 0);
		usleep(100);
	}
	assert_int_equal(x->rq->holds, 0);
	assert_false(req_is_ready(x->rq));
	req_end(x->rq, false);
	/* As http/ does: the fields go with the connection. */
	for (int i = 0; i < x->field_nr; i++) {
		x->fields[i].value = (const char *)(uintptr_t)16;
		x->fields[i].value_len = 1000;
	}
	rig_until(reqs_live(rig.reqs) == 0);
}

static void
test_gone_at_the_end(void **state)
{
	static const char form[] =
		"--XY\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nform\r\n"
		"--XY\r\nContent-Disposition: form-data; name=\"success_action_status\"\r\n\r\n201\r\n"
		"--XY\r\nContent-Disposition: form-data; name=\"file\"; "
		"filename=\"f\"\r\n\r\nabc\r\n--XY--\r\n";
	char id[64], target[128], body[512];
	struct xchg x;

	make_upload("up", id);
	snprintf(target, sizeof target, "/bkt/up?uploadId=%s&partNumber=1", id);
	begin(&x, "PUT", target, "abc");
	assert_int_equal(answer(&x, "abc"), 200);
	snprintf(body, sizeof body,
		 "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part>"
		 "</CompleteMultipartUpload>",
		 x_header(&x, "etag"));
	x_end(&x);
	snprintf(target, sizeof target, "/bkt/up?uploadId=%s", id);
	begin(&x, "POST", target, body);
	leave_at_the_end(&x, body);
	assert_int_equal(request("HEAD", "/bkt/up", NULL), 200);
	begin(&x, "POST", "/bkt", form);
	x_field(&x, "content-type", "multipart/form-data; boundary=XY");
	leave_at_the_end(&x, form);
	assert_int_equal(request("HEAD", "/bkt/form", NULL), 200);
}

/* ---- copies ---- */

/* The conditions of a write hold for one that changes nothing but attributes, too. */
static void
test_onto_itself(void **state)
{
	static const struct {
		const char *name, *value;
		int status;
	} cases[] = { { "if-none-match", "*", 412 },
		      { "if-match", "\"00000000000000000000000000000000\"", 412 },
		      { "if-match", "\"900150983cd24fb0d6963f7d28e17f72\"", 200 },
		      { "if-match", "*", 200 } };

	assert_int_equal(request("PUT", "/bkt/o", "abc"), 200);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xchg x;

		begin(&x, "PUT", "/bkt/o", NULL);
		x_field(&x, "x-amz-copy-source", "/bkt/o");
		x_field(&x, "x-amz-metadata-directive", "REPLACE");
		x_field(&x, "x-amz-meta-a", "%zu", i);
		x_field(&x, cases[i].name, "%s", cases[i].value);
		if (answer(&x, NULL) != cases[i].status)
			fail_msg("%s: %s: %d", cases[i].name, cases[i].value, req_reply(x.rq)->status);
		x_end(&x);
	}
}

/* A checksum that comes with a copy is of what the copy becomes. */
static void
test_copy_sums(void **state)
{
	static const struct {
		const char *target, *name, *value;
		int status;
	} cases[] = {
		{ "/bkt/c", "x-amz-checksum-crc32", "NSRBwg==", 200 },
		{ "/bkt/c", "x-amz-checksum-crc32", "NSRBww==", 400 },
		{ "/bkt/c", "x-amz-checksum-crc64nvme", "AAAAAAAAAAE=", 400 },
		{ "/bkt/c", "x-amz-checksum-sha256", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", 200 },
		{ "/bkt/c", "x-amz-checksum-sha256", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa4=", 400 },
		{ "/bkt/c", "x-amz-checksum-crc32", "AAAAAA==", 200 }, /* of no body */
		{ "/bkt/c", "content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==", 200 },
		{ "/bkt/o", "x-amz-checksum-crc64nvme", "AAAAAAAAAAE=", 400 },
		{ "/bkt/o", "x-amz-checksum-crc32", "NSRBww==", 400 },
		{ "/bkt/o", "x-amz-checksum-crc32", "NSRBwg==", 200 },
	};

	assert_int_equal(request("PUT", "/bkt/o", "abc"), 200);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xchg x;

		begin(&x, "PUT", cases[i].target, NULL);
		x_field(&x, "x-amz-copy-source", "/bkt/o");
		x_field(&x, "x-amz-metadata-directive", "REPLACE");
		x_field(&x, cases[i].name, "%s", cases[i].value);
		if (answer(&x, NULL) != cases[i].status)
			fail_msg("%zu: %d %.*s", i, req_reply(x.rq)->status, (int)req_reply(x.rq)->len_bytes,
				 req_reply(x.rq)->text);
		x_end(&x);
	}
}

static void
test_part_limit(void **state)
{
	char id[64], target[128];

	rig.conf->limits.part_bytes = 1000;
	put_object("o", 1001, 1);
	make_upload("up", id);
	for (int i = 0; i < 2; i++) {
		struct xchg x;

		snprintf(target, sizeof target, "/bkt/up?uploadId=%s&partNumber=1", id);
		begin(&x, "PUT", target, NULL);
		x_field(&x, "x-amz-copy-source", "/bkt/o");
		if (i)
			x_field(&x, "x-amz-copy-source-range", "bytes=1-1000");
		assert_int_equal(answer(&x, NULL), i ? 200 : 400);
		x_end(&x);
	}
}

/* ---- forms ---- */

/* A field's name becomes that of a header: what none can be called is refused, not stored. */
static void
test_form_names(void **state)
{
	static const char *const names[] = { "x-amz-meta-a b", "x-amz-meta-a:b", "x-amz-meta-\xc3\xa4",
					     "x-amz-meta-a", "other name" };

	for (int i = 0; i < 5; i++) {
		char form[512];
		struct xchg x;

		snprintf(
			form, sizeof form,
			"--XY\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nform\r\n"
			"--XY\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\nv\r\n"
			"--XY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nabc\r\n"
			"--XY--\r\n",
			names[i]);
		begin(&x, "POST", "/bkt", form);
		x_field(&x, "content-type", "multipart/form-data; boundary=XY");
		if (answer(&x, form) != (i < 3 ? 400 : 204))
			fail_msg("%s: %d", names[i], req_reply(x.rq)->status);
		x_end(&x);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unserved, s3_start, s3_stop),
		cmocka_unit_test(test_subres_rows),
		cmocka_unit_test_setup_teardown(test_onto_itself, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_copy_sums, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_part_limit, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_form_names, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_store_errors, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_preflight_errors, s3_start, s3_stop),
		cmocka_unit_test_setup_teardown(test_gone_at_the_end, s3_start, s3_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
