/* SPDX-License-Identifier: Apache-2.0 */
/* Forms and their policies: form.c, form_policy.c. */
#include "tests/unit/dialect/build.h"

#include "base/base64.h"
#include "s3doc/form.h"
#include "dialect/text.h"

#include <stdio.h>
#include <stdlib.h>

#define TYPE "multipart/form-data; boundary=xYz"
#define FIELD(name, value) "--xYz\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" value "\r\n"
#define FILE_HEAD                                                                                            \
	"--xYz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"C:\\dir\\a.txt\"\r\n"            \
	"Content-Type: text/plain\r\n\r\n"
#define END "\r\n--xYz--\r\n"
#define NOW 1445412480

static struct form form;
static const char *why;
static char got[1 << 16];
static size_t got_len;

/* Feeds the body in pieces of `step`; the file's bytes are in got. */
static enum fault
feed(const char *body, size_t len, size_t step)
{
	enum fault f = form_init(&form, TYPE, strlen(TYPE), &why);

	got_len = 0;
	for (size_t at = 0; f == FAULT_NONE && at < len;) {
		size_t n = len - at < step ? len - at : step, used, run_len;
		char *piece = malloc(n);
		const void *run;

		/* In memory of its own, so that reading past it is seen. */
		memcpy(piece, body + at, n);
		f = form_feed(&form, piece, n, &used, &run, &run_len, &why);
		assert_true(used <= n && (used > 0 || form.have_file || f));
		assert_true(run_len == 0 || form.have_file);
		if (run_len) {
			assert_true(got_len + run_len <= sizeof got);
			memcpy(got + got_len, run, run_len);
		}
		got_len += run_len;
		if (form.have_file)
			form_accept(&form);
		at += used;
		free(piece);
	}
	assert_true(f == FAULT_NONE || strlen(why) > 10);
	return f ? f : form_end(&form, &why);
}

static enum fault
feed_text(const char *body)
{
	return feed(body, strlen(body), SIZE_MAX);
}

static void
whole_forms(void **state)
{
	static const char content[] = "line\r\n--xY\r\n\r\n--x\r--xYz\n\r\r\n--xYzz?";
	static const char head[] = FIELD("key", "dir/${filename}") FIELD("Content-Type", "text/html")
		FIELD("empty", "") FILE_HEAD;
	char body[2048];
	size_t n = 0, len;

	memcpy(body, head, sizeof head - 1);
	n = sizeof head - 1;
	/* All but the last bytes, which would be a boundary. */
	memcpy(body + n, content, sizeof content - 1 - 11);
	n += sizeof content - 1 - 11;
	memcpy(body + n, END, sizeof END - 1);
	n += sizeof END - 1;
	for (size_t step = 1; step <= n; step = step < 40 ? step + 1 : step * 2) {
		assert_fault(feed(body, n, step), FAULT_NONE);
		assert_int_equal(got_len, sizeof content - 1 - 11);
		assert_memory_equal(got, content, got_len);
		assert_int_equal(form.file_bytes, got_len);
		assert_int_equal(form.field_nr, 3);
		assert_string_equal(form_get(&form, "key", &len), "dir/a.txt");
		assert_string_equal(form_get(&form, "content-type", &len), "text/html");
		assert_string_equal(form_get(&form, "empty", &len), "");
		assert_null(form_get(&form, "file", &len));
		assert_string_equal(form.filename, "a.txt");
	}
	/* Cut anywhere it is incomplete, and never a fault of ours. */
	for (size_t cut = 0; cut < n - 2; cut++)
		assert_int_not_equal(feed(body, cut, 7), FAULT_NONE);
	/* An empty file, and fields behind it that mean nothing. */
	assert_fault(feed_text(FIELD("key", "k") FILE_HEAD "\r\n" FIELD("submit", "Upload") "--xYz--"),
		     FAULT_NONE);
	assert_true(got_len == 0 && form.field_nr == 1);
	/* A file that is not text. */
	memcpy(body + sizeof head - 1, "\0\1\2\r\n--", 7);
	memcpy(body + sizeof head - 1 + 7, END, sizeof END - 1);
	assert_fault(feed(body, sizeof head - 1 + 7 + sizeof END - 1, 3), FAULT_NONE);
	assert_int_equal(got_len, 7);
	assert_memory_equal(got, "\0\1\2\r\n--", 7);
}

static void
broken_forms(void **state)
{
	static const struct {
		const char *body;
		enum fault f;
	} bad[] = {
		{ "", FAULT_INCOMPLETE_BODY },
		{ "nonsense", FAULT_POST_FORM },
		{ "preamble\r\n" FIELD("key", "k"), FAULT_POST_FORM },
		{ "--xYz--\r\n", FAULT_BAD_ARGUMENT },
		{ FIELD("key", "k") "--xYz--\r\n", FAULT_BAD_ARGUMENT },
		{ FIELD("key", "k") FIELD("KEY", "l") FILE_HEAD END, FAULT_POST_FORM },
		{ "--xYz\r\n\r\nvalue" END, FAULT_POST_FORM },
		{ "--xYz\r\nContent-Type: a\r\n\r\nvalue" END, FAULT_POST_FORM },
		{ "--xYz\r\nContent-Disposition: form-data\r\n\r\nvalue" END, FAULT_POST_FORM },
		{ "--xYz\r\nContent-Disposition: form-data; name=\"\"\r\n\r\nvalue" END, FAULT_POST_FORM },
		{ "--xYz\r\nContent-Disposition: form-data; name=\"a\r\n\r\nvalue" END, FAULT_POST_FORM },
		{ "--xYzz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nvalue" END, FAULT_POST_FORM },
		{ "--xYz-\r\n", FAULT_POST_FORM },
		{ FILE_HEAD "abc", FAULT_INCOMPLETE_BODY },
		{ FILE_HEAD "abc\r\n--xYz\r\n", FAULT_INCOMPLETE_BODY },
	};
	static const char *const types[] = {
		"",
		"text/plain",
		"multipart/form-data",
		"multipart/form-data; boundary=",
		"multipart/form-data; boundary=\"",
		"multipart/form-data; boundary=\"\"",
		"multipart/mixed; boundary=a",
		("multipart/form-data; boundary="
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
	};
	struct text x = { 0 };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		for (size_t step = 1; step < 100; step += 13) {
			enum fault f = feed(bad[i].body, strlen(bad[i].body), step);

			if (f != bad[i].f)
				fail_msg("%s: fault %d, %s", bad[i].body, f, why);
		}
	}
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		assert_fault(form_init(&form, types[i], strlen(types[i]), &why), FAULT_POST_FORM);
	assert_fault(form_init(&form, "Multipart/Form-Data; charset=x; Boundary=\"a b\"", 46, &why),
		     FAULT_NONE);
	assert_string_equal(form.delim, "\r\n--a b");
	/* Bounds: fields, their bytes, the headers of a part. */
	for (int i = 0; i <= FORM_FIELDS_MAX; i++)
		text_fmt(&x, FIELD("f%d", "v"), i);
	assert_fault(feed(x.p, x.len, 1000), FAULT_POST_TOO_LARGE);
	text_reset(&x);
	text_str(&x, "--xYz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n");
	for (int i = 0; i < 3000; i++)
		text_str(&x, "aaaaaaaaaa");
	assert_fault(feed(x.p, x.len, 1000), FAULT_POST_TOO_LARGE);
	text_reset(&x);
	text_str(&x, "--xYz\r\n");
	for (int i = 0; i < 300; i++)
		text_str(&x, "a: aaaaaaaaaa\r\n");
	assert_fault(feed(x.p, x.len, 1000), FAULT_POST_FORM);
	text_free(&x);
}

static struct rq *
post(void)
{
	struct rq *r = rq_with(s3("POST", "/bkt"), "content-length", "1000", "content-type", TYPE, NULL);

	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.op, OP_POST_OBJECT);
	return r;
}

static enum fault
target_of(struct rq *r, const char *body, struct form_success *s)
{
	assert_fault(feed_text(body), FAULT_NONE);
	return form_target(&form, &r->in, &r->t, s, &why);
}

static void
targets(void **state)
{
	struct rq *r = post();
	struct form_success s;
	const char *v;
	size_t len;

	assert_fault(target_of(r,
			       FIELD("key", "dir/${filename}") FIELD("Content-Type", "text/html") FIELD(
				       "x-amz-meta-a",
				       "b") FIELD("acl", "private") FIELD("success_action_status", "201")
				       FIELD("x-amz-checksum-crc32", "y/Q5Jg==") FIELD(
					       "tagging", "<Tagging><TagSet><Tag><Key>t</Key><Value>1"
							  "</Value></Tag></TagSet></Tagging>") FILE_HEAD END,
			       &s),
		     FAULT_NONE);
	assert_string_equal(r->t.key, "dir/a.txt");
	assert_int_equal(r->t.key_len, 9);
	assert_true(s.status == 201 && !s.redirect && r->t.tag_nr == 1 && r->t.sum[SUM_CRC32].given);
	v = dialect_attr(r->t.attrs, r->t.attrs_len, "content-type", &len);
	assert_true(v && len == 9 && memcmp(v, "text/html", 9) == 0);
	v = dialect_attr(r->t.attrs, r->t.attrs_len, "x-amz-meta-a", &len);
	assert_true(v && len == 1);
	v = dialect_attr(r->t.attrs, r->t.attrs_len, "x-amz-tagging", &len);
	assert_true(v && len == 3 && memcmp(v, "t=1", 3) == 0);
	r = post();
	assert_fault(target_of(r, FIELD("key", "k") FIELD("redirect", "https://h/a?b") FILE_HEAD END, &s),
		     FAULT_NONE);
	assert_true(s.status == 204 && s.redirect && s.redirect_len == 13);
	assert_fault(target_of(post(), FIELD("a", "b") FILE_HEAD END, &s), FAULT_BAD_ARGUMENT);
	assert_fault(target_of(post(), FIELD("key", "") FILE_HEAD END, &s), FAULT_BAD_ARGUMENT);
	assert_fault(target_of(post(), FIELD("key", "a\x01") FILE_HEAD END, &s), FAULT_BAD_ARGUMENT);
	assert_fault(target_of(post(), FIELD("key", "\xff") FILE_HEAD END, &s), FAULT_BAD_ARGUMENT);
	assert_fault(target_of(post(), FIELD("key", "k") FIELD("acl", "public-read") FILE_HEAD END, &s),
		     FAULT_NO_ACLS);
	assert_fault(target_of(post(),
			       FIELD("key", "k") FIELD("x-amz-server-side-encryption", "AES256")
				       FILE_HEAD END,
			       &s),
		     FAULT_NOT_IMPLEMENTED);
	assert_fault(target_of(post(),
			       FIELD("key", "k") FIELD("x-amz-meta-a", "b\r\nset-cookie: c") FILE_HEAD END,
			       &s),
		     FAULT_BAD_ARGUMENT);
	assert_fault(target_of(post(),
			       FIELD("key", "k") FIELD("success_action_redirect", "javascript:x")
				       FILE_HEAD END,
			       &s),
		     FAULT_BAD_ARGUMENT);
	assert_fault(rq_parse(rq_with(s3("POST", "/bkt"), "content-length", "1", NULL)), FAULT_PRECONDITION);
	assert_fault(rq_parse(rq_with(s3("POST", "/bkt"), "transfer-encoding", "chunked", "content-type",
				      TYPE, NULL)),
		     FAULT_LENGTH_REQUIRED);
}

/* ${filename} in every field but the policy, once, and as far as there is room. */
static void
filenames(void **state)
{
	static char many[FORM_BYTES_MAX];
	struct form_success s;
	struct text x = { 0 };
	const char *v;
	size_t len;

	assert_fault(
		feed_text(FIELD("key", "${filename}") FIELD("x-amz-meta-a", "<${filename}|${filename}>")
				  FIELD("policy", "${filename}") FIELD("Content-Type", "${filename")
					  FIELD("x-amz-meta-b", "$${filename}$") FIELD("x-amz-meta-c", "")
						  FIELD("success_action_redirect",
							"http://h.test/x?f=${filename}") FILE_HEAD "d" END),
		FAULT_NONE);
	assert_fault(form_target(&form, &post()->in, &post()->t, &s, &why), FAULT_NONE);
	assert_int_equal(s.redirect_len, strlen("http://h.test/x?f=a.txt"));
	assert_memory_equal(s.redirect, "http://h.test/x?f=a.txt", s.redirect_len);
	v = form_get(&form, "x-amz-meta-a", &len);
	assert_string_equal(v, "<a.txt|a.txt>");
	assert_int_equal(len, strlen(v));
	assert_string_equal(form_get(&form, "key", &len), "a.txt");
	assert_string_equal(form_get(&form, "policy", &len), "${filename}");
	assert_string_equal(form_get(&form, "content-type", &len), "${filename");
	assert_string_equal(form_get(&form, "x-amz-meta-b", &len), "$a.txt$");
	assert_string_equal(form_get(&form, "x-amz-meta-c", &len), "");
	/* A name is not looked at again; a file that has none is nothing. */
	assert_fault(
		feed_text(FIELD(
			"key",
			"k${filename}${filename}") "--xYz\r\nContent-Disposition: form-data; name=\"file\"; "
						   "filename=\"C:\\${filename}\"\r\n\r\nd" END),
		FAULT_NONE);
	assert_string_equal(form_get(&form, "key", &len), "k${filename}${filename}");
	assert_fault(feed_text(FIELD("key", "k${filename}") "--xYz\r\nContent-Disposition: form-data; "
							    "name=\"file\"\r\n\r\nd" END),
		     FAULT_NONE);
	assert_string_equal(form_get(&form, "key", &len), "k");
	/* More than the fields may have. */
	for (size_t n = 0; n < 1000; n++)
		memcpy(many + n * 11, "${filename}", 11);
	many[11000] = 0;
	text_fmt(&x,
		 FIELD("key", "k") "--xYz\r\nContent-Disposition: form-data; name=\"x-amz-meta-a\"\r\n\r\n%s"
				   "\r\n--xYz\r\nContent-Disposition: form-data; name=\"file\"; "
				   "filename=\"long-enough-a-name\"\r\n\r\nd" END,
		 many);
	assert_fault(feed(x.p, x.len, 100), FAULT_POST_TOO_LARGE);
	text_free(&x);
}

/* The form with that policy, which is encoded first. */
static enum fault
judged(const char *policy, const char *fields, struct form_limits *l)
{
	struct rq *r = post();
	struct form_success s;
	struct text x = { 0 };
	enum fault f;

	text_str(&x, "--xYz\r\nContent-Disposition: form-data; name=\"Policy\"\r\n\r\n");
	text_base64(&x, policy, strlen(policy));
	text_fmt(&x, "\r\n%s" FILE_HEAD "data" END, fields);
	assert_fault(feed(x.p, x.len, 100), FAULT_NONE);
	assert_fault(form_target(&form, &r->in, &r->t, &s, &why), FAULT_NONE);
	f = form_policy(&form, &r->t, NOW, l, &why);
	assert_true(f == FAULT_NONE || strlen(why) > 10);
	text_free(&x);
	return f;
}

#define UNTIL "{\"expiration\": \"2015-10-21T07:28:01.000Z\", \"conditions\": ["
#define OF_BKT UNTIL "{\"bucket\": \"bkt\"}, "
#define KEY FIELD("key", "user/a")

static void
policies(void **state)
{
	static const struct {
		const char *policy, *fields;
		enum fault f;
	} cases[] = {
		{ UNTIL "{\"bucket\": \"bkt\"}, [\"starts-with\", \"$key\", \"user/\"]]}", KEY, FAULT_NONE },
		{ UNTIL "{\"bucket\": \"other\"}, [\"starts-with\", \"$key\", \"user/\"]]}", KEY,
		  FAULT_ACCESS_DENIED },
		{ OF_BKT "[\"eq\", \"$key\", \"user/a\"]]}", KEY, FAULT_NONE },
		{ OF_BKT "[\"eq\", \"$Key\", \"user/b\"]]}", KEY, FAULT_ACCESS_DENIED },
		{ OF_BKT "[\"starts-with\", \"$key\", \"\"]]}", FIELD("key", "x/${filename}"), FAULT_NONE },
		/* claim TM35: one that names no bucket would be good for all. */
		{ UNTIL "{\"key\": \"user/a\"}]}", KEY, FAULT_ACCESS_DENIED },
		{ UNTIL "{\"key\": \"user/a\"}, [\"starts-with\", \"$bucket\", \"bk\"]]}", KEY, FAULT_NONE },
		{ UNTIL "{\"key\": \"user/a\"}, [\"starts-with\", \"$Bucket\", \"c\"]]}", KEY,
		  FAULT_ACCESS_DENIED },
		/* The key as it will be counts. */
		{ OF_BKT "[\"eq\", \"$key\", \"x/a.txt\"]]}", FIELD("key", "x/${filename}"), FAULT_NONE },
		{ OF_BKT "[\"eq\", \"$key\", \"x/${filename}\"]]}", FIELD("key", "x/${filename}"),
		  FAULT_ACCESS_DENIED },
		/* What it does not speak of, but for some. */
		{ UNTIL "{\"bucket\": \"bkt\"}]}", KEY, FAULT_ACCESS_DENIED },
		{ OF_BKT "{\"key\": \"user/a\"}]}", KEY FIELD("x-amz-meta-a", "b"), FAULT_ACCESS_DENIED },
		{ OF_BKT "{\"key\": \"user/a\"}, {\"X-Amz-Meta-A\": \"b\"}]}", KEY FIELD("x-amz-meta-a", "b"),
		  FAULT_NONE },
		{ OF_BKT "{\"key\": \"user/a\"}]}",
		  KEY FIELD("x-ignore-a", "b") FIELD("X-Amz-Signature", "0"), FAULT_NONE },
		/* A condition on a field that is not there. */
		{ OF_BKT "{\"key\": \"user/a\"}, {\"acl\": \"private\"}]}", KEY, FAULT_ACCESS_DENIED },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"starts-with\", \"$content-type\", \"\"]]}", KEY,
		  FAULT_NONE },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"content-length-range\", 2, 10]]}", KEY, FAULT_NONE },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"content-length-range\", 10, 2]]}", KEY,
		  FAULT_POST_POLICY },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"content-length-range\", -1, 2]]}", KEY,
		  FAULT_POST_POLICY },
	/* claim TM90: a list of types is as good as each of its members. */
#define OF_TYPE OF_BKT "{\"key\": \"user/a\"}, [\"starts-with\", \"$Content-Type\", \"image/\"]]}"
		{ OF_TYPE, KEY FIELD("Content-Type", "image/png"), FAULT_NONE },
		{ OF_TYPE, KEY FIELD("Content-Type", "image/png,image/gif"), FAULT_NONE },
		{ OF_TYPE, KEY FIELD("content-type", "image/png ,  image/gif"), FAULT_NONE },
		{ OF_TYPE, KEY FIELD("Content-Type", "image/png,text/html"), FAULT_ACCESS_DENIED },
		{ OF_TYPE, KEY FIELD("Content-Type", "image/png, text/html, image/gif"),
		  FAULT_ACCESS_DENIED },
		{ OF_TYPE, KEY FIELD("Content-Type", "text/html,image/png"), FAULT_ACCESS_DENIED },
		{ OF_TYPE, KEY FIELD("Content-Type", "image/png,"), FAULT_ACCESS_DENIED },
		{ OF_TYPE, KEY FIELD("Content-Type", ",image/png"), FAULT_ACCESS_DENIED },
		{ OF_TYPE, KEY FIELD("Content-Type", "image/png,,image/png"), FAULT_ACCESS_DENIED },
		{ OF_TYPE, KEY FIELD("Content-Type", "image/png,IMAGE/gif"), FAULT_ACCESS_DENIED },
		{ OF_TYPE, KEY FIELD("Content-Type", "image/png;a=\"x,text/html\""), FAULT_ACCESS_DENIED },
		{ OF_TYPE, KEY, FAULT_ACCESS_DENIED },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"STARTS-WITH\", \"$content-TYPE\", \"image/\"]]}",
		  KEY FIELD("Content-Type", "image/png,text/html"), FAULT_ACCESS_DENIED },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"starts-with\", \"$Content-Type\", \"\"]]}",
		  KEY FIELD("Content-Type", "image/png,text/html"), FAULT_NONE },
		{ OF_BKT "{\"key\": \"user/a\"}, {\"Content-Type\": \"image/png,text/html\"}]}",
		  KEY FIELD("Content-Type", "image/png,text/html"), FAULT_NONE },
		/* Other fields are no lists. */
		{ OF_BKT "{\"key\": \"user/a\"}, [\"starts-with\", \"$x-amz-meta-a\", \"a\"]]}",
		  KEY FIELD("x-amz-meta-a", "a,b"), FAULT_NONE },
		/* Numbers may be strings of digits. */
		{ OF_BKT "{\"key\": \"user/a\"}, [\"content-length-range\", \"2\", \"10\"]]}", KEY,
		  FAULT_NONE },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"Content-Length-Range\", 2, \"10\"]]}", KEY, FAULT_NONE },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"content-length-range\", \"10\", \"2\"]]}", KEY,
		  FAULT_POST_POLICY },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"content-length-range\", \"-1\", \"2\"]]}", KEY,
		  FAULT_POST_POLICY },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"content-length-range\", \"\", \"2\"]]}", KEY,
		  FAULT_POST_POLICY },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"content-length-range\", \"0\", \"1e3\"]]}", KEY,
		  FAULT_POST_POLICY },
		{ OF_BKT
		  "{\"key\": \"user/a\"}, [\"content-length-range\", \"0\", \"9223372036854775808\"]]}",
		  KEY, FAULT_POST_POLICY },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"content-length-range\", 0, 1.5]]}", KEY,
		  FAULT_POST_POLICY },
		{ OF_BKT "{\"key\": \"user/a\"}, [\"content-length-range\", 0, true]]}", KEY,
		  FAULT_POST_POLICY },
		/* The file's name stands in every field before it is judged. */
		{ OF_BKT "{\"key\": \"user/a\"}, {\"x-amz-meta-a\": \"a.txt\"}]}",
		  KEY FIELD("x-amz-meta-a", "${filename}"), FAULT_NONE },
		{ OF_BKT "{\"key\": \"user/a\"}, {\"x-amz-meta-a\": \"${filename}\"}]}",
		  KEY FIELD("x-amz-meta-a", "${filename}"), FAULT_ACCESS_DENIED },
		{ OF_TYPE, KEY FIELD("Content-Type", "${filename}"), FAULT_ACCESS_DENIED },
		{ OF_BKT "[\"ends-with\", \"$key\", \"a\"]]}", KEY, FAULT_POST_POLICY },
		{ OF_BKT "[\"eq\", \"key\", \"a\"]]}", KEY, FAULT_POST_POLICY },
		{ OF_BKT "[\"eq\", \"$key\"]]}", KEY, FAULT_POST_POLICY },
		{ OF_BKT "{\"key\": 5}]}", KEY, FAULT_POST_POLICY },
		{ UNTIL "5]}", KEY, FAULT_POST_POLICY },
		{ UNTIL "[[[[[[]]]]]]]}", KEY, FAULT_POST_POLICY },
		{ UNTIL "], \"more\": 1}", KEY, FAULT_POST_POLICY },
		{ UNTIL "]", KEY, FAULT_POST_POLICY },
		{ "{\"expiration\": \"2015-10-21T07:28:00Z\", \"conditions\": [{\"key\": \"user/a\"}]}", KEY,
		  FAULT_ACCESS_DENIED },
		{ "{\"expiration\": \"soon\", \"conditions\": []}", KEY, FAULT_POST_POLICY },
		{ "{\"conditions\": []}", KEY, FAULT_POST_POLICY },
		{ "{}", KEY, FAULT_POST_POLICY },
		{ "[]", KEY, FAULT_POST_POLICY },
		{ "", KEY, FAULT_POST_POLICY },
		{ "\xff", KEY, FAULT_POST_POLICY },
	};
	struct form_limits l;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		enum fault f = judged(cases[i].policy, cases[i].fields, &l);

		if (f != cases[i].f)
			fail_msg("%s: fault %d, %s", cases[i].policy, f, why);
	}
	assert_fault(judged(OF_BKT "{\"key\": \"user/a\"}, [\"content-length-range\", 2, 10], "
				   "[\"content-length-range\", 0, 7]]}",
			    KEY, &l),
		     FAULT_NONE);
	assert_true(l.min_bytes == 2 && l.max_bytes == 7);
	assert_fault(judged(OF_BKT "{\"key\": \"user/a\"}, [\"content-length-range\", \"2\", \"010\"], "
				   "[\"content-length-range\", \"0\", 18446744073709551]]}",
			    KEY, &l),
		     FAULT_NONE);
	assert_true(l.min_bytes == 2 && l.max_bytes == 10);
	/* Not base64; and none at all. */
	assert_fault(feed_text(KEY FIELD("policy", "!!!!") FILE_HEAD END), FAULT_NONE);
	assert_fault(form_policy(&form, &post()->t, NOW, &l, &why), FAULT_POST_POLICY);
	assert_fault(feed_text(KEY FILE_HEAD END), FAULT_NONE);
	assert_fault(form_policy(&form, &post()->t, NOW, &l, &why), FAULT_NONE);
	assert_true(l.min_bytes == 0 && l.max_bytes == UINT64_MAX);
}

/* claim TM90: and of at most 64 members. */
static void
many_types(void **state)
{
	struct text fields = { 0 };
	struct form_limits l;

	for (int nr = 64; nr <= 65; nr++) {
		text_reset(&fields);
		text_str(&fields,
			 KEY "--xYz\r\nContent-Disposition: form-data; name=\"Content-Type\"\r\n\r\n");
		for (int i = 0; i < nr; i++)
			text_fmt(&fields, "%simage/%d", i ? "," : "", i);
		text_str(&fields, "\r\n");
		assert_fault(judged(OF_TYPE, text_of(&fields), &l),
			     nr == 64 ? FAULT_NONE : FAULT_ACCESS_DENIED);
	}
	text_free(&fields);
}

/* ---- every field that the tables of the code name ---- */

enum { WHOLE, BEGINS };

static const struct {
	const char *name;
	int match;
} fields[] = {
#define TAKEN(name, match, query) { "x-amz-" name, match },
#define REFUSED(name, match, query, allow, also, fault, why) { "x-amz-" name, match },
#include "dialect/header.def"
#define REPLY_FIELD(id, s3, scality) { s3, WHOLE },
#include "dialect/reply_field.def"
	/* Fields of forms alone. */
	{ "acl", WHOLE },
	{ "tagging", WHOLE },
	{ "redirect", WHOLE },
	{ "success_action_redirect", WHOLE },
	{ "success_action_status", WHOLE },
};

/* The form that has a field of that name and value, and a condition for it. */
static enum fault
field_judged(const char *name, const char *value, const char *condition)
{
	struct form_limits l;
	struct text policy = { 0 }, x = { 0 };
	enum fault f;

	text_fmt(&policy, OF_BKT "[\"starts-with\", \"$key\", \"\"], %s]}", condition);
	text_str(&x, "--xYz\r\nContent-Disposition: form-data; name=\"policy\"\r\n\r\n");
	text_base64(&x, policy.p, policy.len);
	text_fmt(&x, "\r\n" KEY FIELD("%s", "%s") FILE_HEAD "data" END, name, value);
	assert_fault(feed(x.p, x.len, 100), FAULT_NONE);
	f = form_policy(&form, &post()->t, NOW, &l, &why);
	text_free(&policy);
	text_free(&x);
	return f;
}

/* ${filename} is the name of the file in each of them, and of no other than Content-Type a value with commas is
 * a list. */
static void
every_field(void **state)
{
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		char name[64], condition[128];
		bool type = strcmp(fields[i].name, "Content-Type") == 0;

		snprintf(name, sizeof name, "%s%s", fields[i].name, fields[i].match == BEGINS ? "x" : "");
		snprintf(condition, sizeof condition, "{\"%s\": \"<a.txt>\"}", name);
		if (field_judged(name, "<${filename}>", condition) != FAULT_NONE)
			fail_msg("%s: %s", condition, why);
		snprintf(condition, sizeof condition, "[\"eq\", \"$%s\", \"<${filename}>\"]", name);
		if (field_judged(name, "<${filename}>", condition) != FAULT_ACCESS_DENIED)
			fail_msg("%s", condition);
		snprintf(condition, sizeof condition, "[\"starts-with\", \"$%s\", \"a/\"]", name);
		if (field_judged(name, "a/x,b/y", condition) != (type ? FAULT_ACCESS_DENIED : FAULT_NONE))
			fail_msg("%s", condition);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_forms), cmocka_unit_test(broken_forms), cmocka_unit_test(targets),
		cmocka_unit_test(filenames),   cmocka_unit_test(policies),     cmocka_unit_test(many_types),
		cmocka_unit_test(every_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
