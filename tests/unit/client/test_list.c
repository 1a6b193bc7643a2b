/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists, uploads in parts and copies on the server, against one that says exactly what a test wants; hostile answers
 * among them.
 */
#include "tests/fake/client_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the server says, request after request (the last one again and again), and what it was asked. */
static const char *say[8];
static int say_nr, say_at;
static char asked[8][4400], sent[65536];

static void
serve_xml(int fd, const struct request *rq)
{
	int at = say_at < say_nr ? say_at++ : say_nr - 1;
	struct token t;
	char *text;

	snprintf(asked[rq->nr & 7], sizeof *asked, "%s", rq->head);
	if (rq->body_len < sizeof sent) {
		memcpy(sent, rq->body, rq->body_len);
		sent[rq->body_len] = 0;
	}
	if (token_of(rq, &t)) {
		answer(fd, "HTTP/1.1 200 OK\r\netag: \"p1\"\r\nx-amz-rdma-reply: 200\r\ncontent-length: "
			   "0\r\n\r\n");
		return;
	}
	assert_true(asprintf(&text, "HTTP/1.1 %s\r\nx-amz-request-id: r1\r\ncontent-length: %zu\r\n\r\n%s",
			     say[at][0] == '<' || say[at][0] == ' ' ? "200 OK" : "404 Not Found",
			     strlen(say[at]), say[at]) > 0);
	answer(fd, text);
	free(text);
}

static void
says(const char *first, const char *second)
{
	serve = serve_xml;
	say[0] = first;
	say[1] = second;
	say_nr = second ? 2 : 1;
	say_at = 0;
}

/* Entries as text: "name,size,etag" or "name/" and so on, a line each. */
static char seen[8192];
static int stop_at, seen_nr;

static int
note(void *cookie, const struct gantry_entry *e)
{
	size_t n = strlen(seen);

	assert_int_equal(strlen(e->name), e->name_len);
	snprintf(seen + n, sizeof seen - n, "%s %s%llu %s %s %s\n", e->name,
		 e->is_prefix ? "prefix "
		 : e->is_raw  ? "raw "
			      : "",
		 (unsigned long long)e->size, e->etag, e->date, e->upload_id);
	return ++seen_nr == stop_at ? 77 : 0;
}

static int
note_part(void *cookie, const struct gantry_part *p)
{
	size_t n = strlen(seen);

	snprintf(seen + n, sizeof seen - n, "%d %llu %s %s\n", p->number, (unsigned long long)p->size,
		 p->etag, p->checksum);
	return 0;
}

static char bucket[64], server[64];

static int
fresh(void **state)
{
	int r = setup(state);

	*seen = 0;
	seen_nr = stop_at = 0;
	snprintf(bucket, sizeof bucket, "%s", url);
	*strrchr(bucket, '/') = 0;
	snprintf(server, sizeof server, "%s", bucket);
	*strrchr(server, '/') = 0;
	return r;
}

#define LIST(more, body)                                                                                     \
	"<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"        \
	"<Name>bkt</Name>" more body "<EncodingType>url</EncodingType></ListBucketResult>"
#define MORE "<IsTruncated>true</IsTruncated><NextContinuationToken>t+/1</NextContinuationToken>"
#define LAST "<IsTruncated>false</IsTruncated>"
#define OBJECT(key)                                                                                          \
	"<Contents><Key>" key "</Key><LastModified>2026-11-20T10:00:00.000Z</LastModified>"                  \
	"<ETag>&quot;e&quot;</ETag><Size>7</Size><Owner><ID>x</ID></Owner></Contents>"

static void
lists_pages(void **state)
{
	struct fix *f = *state;
	struct gantry_list_options o = {
		.size = sizeof o, .prefix = "a b/\xff", .delimiter = "/", .start_after = "q", .page = 2
	};

	says(LIST(MORE, OBJECT("a%20b+c%2Bd/%FF%0A") OBJECT("..%2Fx")),
	     LIST(LAST, OBJECT("n%00l")
				OBJECT("bad%zz") "<CommonPrefixes><Prefix>d%26/</Prefix></CommonPrefixes>"));
	assert_int_equal(gantry_list(f->g, bucket, &o, note, NULL, &f->res), 0);
	assert_string_equal(seen, "a b c+d/\xff\n 7 \"e\" 2026-11-20T10:00:00.000Z \n"
				  "../x 7 \"e\" 2026-11-20T10:00:00.000Z \n"
				  "n%00l raw 7 \"e\" 2026-11-20T10:00:00.000Z \n"
				  "bad%zz raw 7 \"e\" 2026-11-20T10:00:00.000Z \n"
				  "d&/ prefix 0   \n");
	assert_int_equal(f->res.requests, 2);
	assert_non_null(strstr(asked[0],
			       "GET /bkt?list-type=2&encoding-type=url&max-keys=2&prefix=a%20b%2F%FF&"
			       "delimiter=%2F&start-after=q HTTP"));
	assert_non_null(strstr(asked[1], "&continuation-token=t%2B%2F1 HTTP"));
	/* A name that is not encoded is taken as it is. */
	*seen = 0;
	says("<ListBucketResult><Contents><Key>a%20b</Key></Contents></ListBucketResult>", NULL);
	assert_int_equal(gantry_list(f->g, bucket, NULL, note, NULL, &f->res), 0);
	assert_string_equal(seen, "a%20b 0   \n");
	/* It ends where the callback says so. */
	stop_at = seen_nr + 1;
	says(LIST(MORE, OBJECT("a") OBJECT("b")), NULL);
	assert_int_equal(gantry_list(f->g, bucket, NULL, note, NULL, &f->res), 77);
	assert_int_equal(f->res.requests, 1);
}

static void
lists_that_are_none(void **state)
{
	struct fix *f = *state;
	static const char *const bad[] = {
		"<ListBucketResult><Contents><Key>a</Key></Contents>",                  /* cut off */
		"<ListBucketResult><Contents></Contents></ListBucketResult>",           /* without a name */
		"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", /* and where to go on? */
		"<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
		"<Other/>",
		" ",
		"<!DOCTYPE x [<!ENTITY a \"aaaa\">]><ListBucketResult><Contents><Key>&a;</Key></Contents>"
		"</ListBucketResult>",
		"<ListBucketResult><Contents><Key>&nothing;</Key></Contents></ListBucketResult>",
		"<ListBucketResult><a><b><c><d><e><f><g><h/></g></f></e></d></c></b></a></ListBucketResult>",
		"<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult><ListBucketResult/>",
	};
	static char wide[4000], tag[3000];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		says(bad[i], NULL);
		assert_int_equal(gantry_list(f->g, bucket, NULL, note, NULL, &f->res), -EPROTO);
		assert_non_null(strstr(f->res.message, "not the list that was asked for"));
	}
	memset(tag, 'x', sizeof tag - 1);
	snprintf(wide, sizeof wide, "<ListBucketResult a=\"%s\"/>", tag);
	says(wide, NULL);
	assert_int_equal(gantry_list(f->g, bucket, NULL, note, NULL, &f->res), -EPROTO);
	assert_string_equal(seen, "");
}

/* Pages that always name another one: with a circle of so many behind the tenth, or new ones for ever. */
static int circle, page_nr;
static bool is_empty;

static void
serve_numbered(int fd, const struct request *rq)
{
	char text[600], body[400];
	int next;

	if (!strstr(rq->target, "continuation-token"))
		page_nr = 0;
	next = ++page_nr;
	if (circle && next > 10)
		next = 10 + (next - 10) % circle;
	snprintf(body, sizeof body,
		 "<ListBucketResult>%s<IsTruncated>true</IsTruncated><NextContinuationToken>t%d"
		 "</NextContinuationToken></ListBucketResult>",
		 is_empty ? "" : "<Contents><Key>a</Key><Size>1</Size></Contents>", next);
	snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nx-amz-request-id: 1\r\ncontent-length: %zu\r\n\r\n%s",
		 strlen(body), body);
	answer(fd, text);
}

static int
pass_over(void *cookie, const struct gantry_entry *e)
{
	return 0;
}

static void
lists_that_do_not_end(void **state)
{
	struct fix *f = *state;

	says(LIST(MORE, OBJECT("a")), NULL);
	assert_int_equal(gantry_list(f->g, bucket, NULL, note, NULL, &f->res), -EPROTO);
	assert_non_null(strstr(f->res.message, "does not come to an end"));
	assert_int_equal(f->res.requests, 2);
	/* In a circle of more pages than one, which begins behind some others. */
	serve = serve_numbered;
	is_empty = false;
	for (circle = 2; circle < 40; circle += 7) {
		assert_int_equal(gantry_list(f->g, bucket, NULL, pass_over, NULL, &f->res), -EPROTO);
		assert_non_null(strstr(f->res.message, "go round in a circle"));
		assert_true(f->res.requests > circle && f->res.requests < 5 * circle + 20);
	}
	/* Always another, with nothing in it. */
	circle = 0;
	is_empty = true;
	assert_int_equal(gantry_list(f->g, bucket, NULL, pass_over, NULL, &f->res), -EPROTO);
	assert_non_null(strstr(f->res.message, "page after page is empty"));
	assert_int_equal(f->res.requests, 1000);
}

static void
a_broken_page_is_not_shown(void **state)
{
	struct fix *f = *state;

	says(LIST(MORE, OBJECT("a")), "<ListBucketResult><Contents><Key>b</Key></Contents><x>");
	assert_int_equal(gantry_list(f->g, bucket, NULL, note, NULL, &f->res), -EPROTO);
	assert_string_equal(seen, "a 7 \"e\" 2026-11-20T10:00:00.000Z \n");
}

static void
errors_of_lists(void **state)
{
	struct fix *f = *state;

	says("x<Error><Code>NoSuchBucket</Code><Message>No such bucket</Message></Error>", NULL);
	assert_int_equal(gantry_list(f->g, bucket, NULL, note, NULL, &f->res), -ENOENT);
	assert_string_equal(f->res.code, "NoSuchBucket");
	assert_int_equal(gantry_list(f->g, "", NULL, note, NULL, &f->res), -EINVAL);
	gantry_close(f->g);
	assert_int_equal(open_with(f, 0, GANTRY_SCALITY, 0), 0);
	assert_int_equal(gantry_list(f->g, bucket, NULL, note, NULL, &f->res), -EOPNOTSUPP);
	assert_int_equal(gantry_upload_put(f->g, url, "u", 1, f->buf, 10, NULL, &f->res), -EOPNOTSUPP);
	assert_int_equal(f->res.requests, 0);
}

static void
lists_buckets(void **state)
{
	struct fix *f = *state;

	says("<ListAllMyBucketsResult><Owner><ID>x</ID></Owner><Buckets><Bucket><Name>b1</Name>"
	     "<CreationDate>2026</CreationDate></Bucket></Buckets><ContinuationToken>c</ContinuationToken>"
	     "</ListAllMyBucketsResult>",
	     "<ListAllMyBucketsResult><Buckets><Bucket><Name>b2</Name></Bucket></Buckets>"
	     "</ListAllMyBucketsResult>");
	assert_int_equal(gantry_list_buckets(f->g, server, note, NULL, &f->res), 0);
	assert_string_equal(seen, "b1 0  2026 \nb2 0   \n");
	assert_non_null(strstr(asked[1], "?continuation-token=c HTTP"));
	says("x", NULL);
	assert_int_equal(gantry_remove_bucket(f->g, bucket, &f->res), -ENOENT);
	assert_non_null(strstr(asked[2], "DELETE /bkt HTTP"));
}

static void
lists_uploads(void **state)
{
	struct fix *f = *state;

	says("<ListMultipartUploadsResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
	     "<NextKeyMarker>a%20b</NextKeyMarker><NextUploadIdMarker>u1</NextUploadIdMarker>"
	     "<Upload><Key>a%20b</Key><UploadId>u1</UploadId><Initiated>2026</Initiated></Upload>"
	     "</ListMultipartUploadsResult>",
	     "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated><Upload><Key>c</Key><UploadId>u2"
	     "</UploadId></Upload></ListMultipartUploadsResult>");
	assert_int_equal(gantry_uploads(f->g, bucket, "a", note, NULL, &f->res), 0);
	assert_string_equal(seen, "a b 0  2026 u1\nc 0   u2\n");
	assert_non_null(strstr(asked[0], "GET /bkt?uploads=&encoding-type=url&prefix=a HTTP"));
	assert_non_null(strstr(asked[1], "&key-marker=a%20b&upload-id-marker=u1 HTTP"));
}

static void
lists_parts(void **state)
{
	struct fix *f = *state;

	says("<ListPartsResult><Part><PartNumber>3</PartNumber><ETag>\"e\"</ETag><Size>9</Size>"
	     "<ChecksumCRC64NVME>AAAAAAAAAAA=</ChecksumCRC64NVME></Part></ListPartsResult>",
	     NULL);
	assert_int_equal(gantry_upload_parts(f->g, url, "u&1", note_part, NULL, &f->res), 0);
	assert_string_equal(seen, "3 9 \"e\" AAAAAAAAAAA=\n");
	assert_non_null(strstr(asked[0], "GET /bkt/key?uploadId=u%261 HTTP"));
	says("<ListPartsResult><Part><PartNumber>10001</PartNumber></Part></ListPartsResult>", NULL);
	assert_int_equal(gantry_upload_parts(f->g, url, "u", note_part, NULL, &f->res), -EPROTO);
}

static void
uploads_in_parts(void **state)
{
	struct fix *f = *state;
	struct gantry_part parts[] = { { .number = 1, .etag = "\"p<1\"" },
				       { .number = 2, .etag = "\"p2\"" } };
	char id[GANTRY_UPLOAD_ID_MAX];

	says(" \n <InitiateMultipartUploadResult><Bucket>bkt</Bucket><UploadId>u7</UploadId>"
	     "</InitiateMultipartUploadResult>",
	     NULL);
	assert_int_equal(gantry_upload_begin(f->g, url, NULL, id, &f->res), 0);
	assert_string_equal(id, "u7");
	assert_non_null(strstr(asked[0], "POST /bkt/key?uploads= HTTP"));
	/* The bytes go as those of gantry_put(). */
	assert_int_equal(gantry_upload_put(f->g, url, id, 2, f->buf, 5000, NULL, &f->res), 0);
	assert_int_equal(f->res.path, GANTRY_PATH_RDMA);
	assert_string_equal(f->res.etag, "\"p1\"");
	assert_non_null(strstr(asked[1], "PUT /bkt/key?partNumber=2&uploadId=u7 HTTP"));
	assert_int_equal(gantry_upload_put(f->g, url, id, 0, f->buf, 5, NULL, &f->res), -EINVAL);
	assert_int_equal(gantry_upload_put(f->g, url, id, 10001, f->buf, 5, NULL, &f->res), -EINVAL);
	assert_int_equal(gantry_upload_put(f->g, url, "", 1, f->buf, 5, NULL, &f->res), -EINVAL);
	says("<CompleteMultipartUploadResult><ETag>&quot;whole-2&quot;</ETag>"
	     "<ChecksumCRC64NVME>AAAAAAAAAAA=</ChecksumCRC64NVME></CompleteMultipartUploadResult>",
	     NULL);
	assert_int_equal(gantry_upload_complete(f->g, url, id, parts, 2, NULL, &f->res), 0);
	assert_string_equal(f->res.etag, "\"whole-2\"");
	assert_string_equal(f->res.checksum, "AAAAAAAAAAA=");
	assert_non_null(strstr(
		sent, "<Part><PartNumber>1</PartNumber><ETag>\"p&lt;1\"</ETag></Part><Part><PartNumber>2<"));
	/* What failed when the status had been sent. */
	says("<Error><Code>InternalError</Code><Message>It broke</Message></Error>", NULL);
	assert_int_equal(gantry_upload_complete(f->g, url, id, parts, 2, NULL, &f->res), -EIO);
	assert_string_equal(f->res.code, "InternalError");
	assert_string_equal(f->res.message, "It broke");
	says("<InitiateMultipartUploadResult/>", NULL);
	assert_int_equal(gantry_upload_begin(f->g, url, NULL, id, &f->res), -EPROTO);
	assert_string_equal(id, "");
	says("x<Error><Code>NoSuchUpload</Code></Error>", NULL);
	assert_int_equal(gantry_upload_abort(f->g, url, "u7", &f->res), -ENOENT);
}

static void
copies_on_the_server(void **state)
{
	struct fix *f = *state;
	struct gantry_request req = { .size = sizeof req, .source_if_match = "\"s\"" };
	char source[96], there[96], field[64];
	struct request rq;

	snprintf(source, sizeof source, "%s/a b%%2F", bucket);
	says("<CopyObjectResult><LastModified>2026</LastModified><ETag>\"c\"</ETag></CopyObjectResult>",
	     NULL);
	assert_int_equal(gantry_copy(f->g, url, source, &req, &f->res), 0);
	assert_string_equal(f->res.etag, "\"c\"");
	assert_int_equal(f->res.path, GANTRY_PATH_NONE);
	memcpy(rq.head, asked[0], sizeof rq.head);
	assert_true(header_of(&rq, "x-amz-copy-source", field, sizeof field));
	assert_string_equal(field, "/bkt/a%20b%2F");
	assert_true(header_of(&rq, "x-amz-copy-source-if-match", field, sizeof field));
	assert_string_equal(field, "\"s\"");
	assert_false(header_of(&rq, "content-type", field, sizeof field));
	says("<CopyPartResult><ETag>\"cp\"</ETag></CopyPartResult>", NULL);
	assert_int_equal(gantry_upload_copy(f->g, url, "u", 3, source, 100, 50, NULL, &f->res), 0);
	assert_string_equal(f->res.etag, "\"cp\"");
	memcpy(rq.head, asked[1], sizeof rq.head);
	assert_true(header_of(&rq, "x-amz-copy-source-range", field, sizeof field));
	assert_string_equal(field, "bytes=100-149");
	assert_int_equal(gantry_upload_copy(f->g, url, "u", 3, source, 100, 0, NULL, &f->res), -EINVAL);
	snprintf(there, sizeof there, "%s0/bkt/x", server);
	assert_int_equal(gantry_copy(f->g, url, there, NULL, &f->res), -EXDEV);
	assert_int_equal(gantry_copy(f->g, url, "nowhere", NULL, &f->res), -EINVAL);
	assert_int_equal(f->res.requests, 0);
}

static const char *makes;

static void
serve_bucket(int fd, const struct request *rq)
{
	snprintf(asked[rq->nr & 7], sizeof *asked, "%s", rq->head);
	answer(fd, makes);
}

/* A bucket with a number of copies: done is what the server says that it has heeded. */
static void
buckets_with_copies(void **state)
{
	static const struct {
		const char *answer;
		int copies, error;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 0, 0 },
		{ "HTTP/1.1 200 OK\r\nx-gantry-copies: 2\r\ncontent-length: 0\r\n\r\n", 2, 0 },
		{ "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 2, -EOPNOTSUPP },
		{ "HTTP/1.1 200 OK\r\nx-gantry-copies: 1\r\ncontent-length: 0\r\n\r\n", 2, -EOPNOTSUPP },
		{ "HTTP/1.1 200 OK\r\nx-gantry-copies: x\r\ncontent-length: 0\r\n\r\n", 2, -EOPNOTSUPP },
		{ "HTTP/1.1 409 Conflict\r\nx-gantry-copies: 2\r\ncontent-length: 0\r\n\r\n", 2, 0 },
		{ "HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n", 0, 0 },
		{ "HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n", 2, -EEXIST },
		{ "HTTP/1.1 409 Conflict\r\ncontent-length: 38\r\n\r\n<Error><Code>InvalidBucketState</Code>",
		  1, -ENOTEMPTY },
	};
	struct fix *f = *state;
	struct request rq;
	char field[64];

	serve = serve_bucket;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		memset(asked, 0, sizeof asked);
		makes = cases[i].answer;
		assert_int_equal(gantry_make_bucket_copies(f->g, bucket, cases[i].copies, &f->res),
				 cases[i].error);
		assert_int_equal(f->res.requests, 1);
		for (int n = 0; n < 8; n++) {
			if (!*asked[n])
				continue;
			memcpy(rq.head, asked[n], sizeof rq.head);
			assert_int_equal(header_of(&rq, "x-gantry-copies", field, sizeof field),
					 cases[i].copies != 0);
		}
	}
	assert_int_equal(gantry_make_bucket_copies(f->g, bucket, -1, &f->res), -EINVAL);
	assert_int_equal(f->res.requests, 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lists_pages, fresh, teardown),
		cmocka_unit_test_setup_teardown(lists_that_are_none, fresh, teardown),
		cmocka_unit_test_setup_teardown(lists_that_do_not_end, fresh, teardown),
		cmocka_unit_test_setup_teardown(a_broken_page_is_not_shown, fresh, teardown),
		cmocka_unit_test_setup_teardown(errors_of_lists, fresh, teardown),
		cmocka_unit_test_setup_teardown(lists_buckets, fresh, teardown),
		cmocka_unit_test_setup_teardown(lists_uploads, fresh, teardown),
		cmocka_unit_test_setup_teardown(lists_parts, fresh, teardown),
		cmocka_unit_test_setup_teardown(uploads_in_parts, fresh, teardown),
		cmocka_unit_test_setup_teardown(copies_on_the_server, fresh, teardown),
		cmocka_unit_test_setup_teardown(buckets_with_copies, fresh, teardown),
	};

	start_on_the_nic(argv);
	return end_on_the_nic(cmocka_run_group_tests(tests, rig_start, rig_stop));
}
