/* SPDX-License-Identifier: Apache-2.0 */
/* XML answers: xml_lists.c, xml_results.c. */
#include "tests/unit/dialect/build.h"

#include "s3doc/xml.h"

static const char *why;

static struct target *
parsed(const char *method, const char *target)
{
	struct rq *r = s3(method, target);

	assert_fault(rq_parse(r), FAULT_NONE);
	return &r->t;
}

#define assert_has(x, part)                                                                                  \
	do {                                                                                                 \
		if (!strstr(text_of(x), part))                                                               \
			fail_msg("no %s in %s", part, (x)->p);                                               \
	} while (0)

static void
lists(void **state)
{
	struct xml_entry e = { .key = "a b", .key_len = 3, .size_bytes = 5, .etag = "0123", .etag_len = 4 };
	struct xml_entry p = { .key = "p/", .key_len = 2, .is_prefix = true };
	struct text x = { 0 };
	struct target *t = parsed("GET", "/bkt?delimiter=%2F&max-keys=2&marker=0&prefix=%26");

	xml_list_begin(&x, t);
	xml_list_entry(&x, t, &e);
	xml_list_entry(&x, t, &p);
	xml_list_end(&x, t, true, &p, 2);
	assert_has(&x,
		   "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>bkt</Name>"
		   "<Prefix>&amp;</Prefix><Delimiter>/</Delimiter><Marker>0</Marker><MaxKeys>2</MaxKeys>");
	assert_has(&x, "<Contents><Key>a b</Key><LastModified>1970-01-01T00:00:00.000Z</LastModified>"
		       "<ETag>&quot;0123&quot;</ETag><Size>5</Size><Owner>");
	assert_has(&x, "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes><IsTruncated>true</IsTruncated>"
		       "<NextMarker>p/</NextMarker></ListBucketResult>");
	/* The token of a page leads to the next one. */
	t = parsed("GET", "/bkt?list-type=2&encoding-type=url");
	text_reset(&x);
	xml_list_begin(&x, t);
	xml_list_entry(&x, t, &e);
	xml_list_end(&x, t, true, &e, 1);
	assert_has(&x, "<Key>a%20b</Key>");
	assert_has(&x, "<EncodingType>url</EncodingType>");
	assert_has(&x, "<KeyCount>1</KeyCount><NextContinuationToken>AWEgYg</NextContinuationToken>");
	assert_null(strstr(x.p, "<Owner>"));
	t = parsed("GET", "/bkt?list-type=2&continuation-token=AWEgYg%3D%3D");
	assert_string_equal(t->list->after, "a b");
	text_reset(&x);
	xml_list_begin(&x, t);
	xml_list_end(&x, t, false, NULL, 0);
	assert_has(&x, "<ContinuationToken>AWEgYg</ContinuationToken>");
	assert_has(&x, "<IsTruncated>false</IsTruncated><KeyCount>0</KeyCount></ListBucketResult>");
	/* What was asked is echoed, start-after also where a token outweighs it, and a token that is
	 * empty. */
	t = parsed("GET", "/bkt?list-type=2&start-after=%26&continuation-token=AWEgYg%3D%3D");
	text_reset(&x);
	xml_list_begin(&x, t);
	assert_has(&x, "<ContinuationToken>AWEgYg</ContinuationToken><StartAfter>&amp;</StartAfter>");
	assert_string_equal(t->list->after, "a b");
	t = parsed("GET", "/bkt?list-type=2&continuation-token=AWEgYg%3D%3D&start-after=zz");
	assert_string_equal(t->list->after, "a b");
	t = parsed("GET", "/bkt?list-type=2&continuation-token=&start-after=zz");
	text_reset(&x);
	xml_list_begin(&x, t);
	assert_has(&x, "<ContinuationToken></ContinuationToken><StartAfter>zz</StartAfter>");
	assert_string_equal(t->list->after, "zz");
	t = parsed("GET", "/bkt?list-type=2");
	text_reset(&x);
	xml_list_begin(&x, t);
	assert_null(strstr(text_of(&x), "ContinuationToken"));
	t = parsed("GET", "/bkt?versions");
	text_reset(&x);
	xml_list_begin(&x, t);
	xml_list_entry(&x, t, &e);
	xml_list_end(&x, t, true, &e, 1);
	assert_has(&x, "<Version><Key>a b</Key><VersionId>null</VersionId><IsLatest>true</IsLatest>");
	assert_has(&x, "<NextKeyMarker>a b</NextKeyMarker><NextVersionIdMarker>null</NextVersionIdMarker>"
		       "</ListVersionsResult>");
	t = parsed("GET", "/bkt?uploads");
	e.upload_id = (const uint8_t *)"0123456789abcdef";
	text_reset(&x);
	xml_list_begin(&x, t);
	xml_list_entry(&x, t, &e);
	xml_list_end(&x, t, true, &e, 1);
	assert_has(&x, "<Upload><Key>a b</Key><UploadId>u30313233343536373839616263646566</UploadId>");
	assert_has(&x, "<NextUploadIdMarker>u30313233343536373839616263646566</NextUploadIdMarker>");
	t = parsed("GET", "/");
	text_reset(&x);
	xml_buckets_begin(&x);
	xml_buckets_entry(&x, "bkt", 3, 0);
	xml_buckets_end(&x, t, true, "bkt", 3);
	assert_has(&x,
		   "<Bucket><Name>bkt</Name><CreationDate>1970-01-01T00:00:00.000Z</CreationDate></Bucket>"
		   "</Buckets><ContinuationToken>AWJrdA</ContinuationToken></ListAllMyBucketsResult>");
	text_free(&x);
}

static void
results(void **state)
{
	struct xml_sums sums = { .type = SUM_TYPE_COMPOSITE, .composite_parts = 3 };
	struct xml_part_entry part = {
		.number = 2, .size_bytes = 7, .etag = "e", .etag_len = 1, .sums = &sums
	};
	struct xml_attributes a = { .etag = "e-3",
				    .etag_len = 3,
				    .size_bytes = 9,
				    .sums = &sums,
				    .parts_total = 3,
				    .parts = &part,
				    .part_nr = 1 };
	struct target *t = parsed("GET", "/bkt/a%26b?uploadId=0123456789abcdef0123456789abcdef&max-parts=1");
	struct text x = { 0 };

	sums.sum[SUM_CRC32].have = true;
	memcpy(sums.sum[SUM_CRC32].value, "\xcb\xf4\x39\x26", 4);
	xml_parts_begin(&x, t, "STANDARD_IA", "CRC32", SUM_TYPE_COMPOSITE);
	xml_parts_entry(&x, &part);
	xml_parts_end(&x, t, true, 2);
	assert_has(&x, "<StorageClass>STANDARD_IA</StorageClass>");
	assert_has(&x, "<Key>a&amp;b</Key><UploadId>u0123456789abcdef0123456789abcdef</UploadId>");
	assert_has(&x,
		   "<ChecksumCRC32>y/Q5Jg==-3</ChecksumCRC32><ChecksumType>COMPOSITE</ChecksumType></Part>");
	assert_has(&x, "<IsTruncated>true</IsTruncated><NextPartNumberMarker>2</NextPartNumberMarker>");
	text_reset(&x);
	xml_copy_result(&x, OP_COPY_OBJECT, "e", 1, 0, NULL);
	assert_has(&x, "<CopyObjectResult");
	assert_has(&x, "<ETag>&quot;e&quot;</ETag></CopyObjectResult>");
	text_reset(&x);
	xml_copy_result(&x, OP_UPLOAD_PART_COPY, "e", 1, 0, &sums);
	assert_has(&x, "</CopyPartResult>");
	text_reset(&x);
	xml_create_result(&x, t, t->upload_id);
	assert_has(&x,
		   "<UploadId>u0123456789abcdef0123456789abcdef</UploadId></InitiateMultipartUploadResult>");
	text_reset(&x);
	xml_complete_result(&x, t, "http://h/bkt/a%26b", "e-3", 3, &sums);
	assert_has(&x, "<Location>http://h/bkt/a%26b</Location><Bucket>bkt</Bucket><Key>a&amp;b</Key>"
		       "<ETag>&quot;e-3&quot;</ETag><ChecksumCRC32>");
	text_reset(&x);
	xml_deleted_begin(&x);
	xml_deleted(&x, "a", 1);
	xml_not_deleted(&x, "b", 1, FAULT_ACCESS_DENIED, NULL);
	xml_deleted_end(&x);
	assert_has(&x,
		   "<Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code>AccessDenied</Code><Message>");
	text_reset(&x);
	t->object_attributes = ATTR_ETAG | ATTR_CHECKSUM | ATTR_PARTS | ATTR_SIZE | ATTR_STORAGE_CLASS;
	xml_object_attributes(&x, t, &a);
	assert_has(&x, "<ETag>e-3</ETag><Checksum><ChecksumCRC32>");
	assert_has(&x, "<PartsCount>3</PartsCount>");
	assert_has(&x, "<StorageClass>STANDARD</StorageClass><ObjectSize>9</ObjectSize>");
	text_free(&x);
}

/* item 85: GetBucketLocation; and every operation whose answer never varies has one. */
static void
canned(void **state)
{
	static const char *const start_of[OP_NR] = {
#define OP(id, name, start, ...) [OP_##id] = #start,
#include "dialect/op.def"
	};
	struct text x = { 0 };

	for (enum op op = OP_NONE + 1; op < OP_NR; op++) {
		enum fault f;

		if (strcmp(start_of[op], "canned_start") != 0)
			continue;
		text_reset(&x);
		f = dialect_canned(op, "eu-1", &x, &why);
		/* There is none, or there can be none, and why. */
		if (f != FAULT_NONE && fault_info(f)->status != 404 && !(f == FAULT_BAD_REQUEST && *why))
			fail_msg("%s: fault %d", op_name[op], f);
		assert_true((f == FAULT_NONE) == (x.len > 0));
	}
	text_reset(&x);
	assert_fault(dialect_canned(OP_GET_BUCKET_LOCATION, "eu-1", &x, &why), FAULT_NONE);
	assert_has(&x, ">eu-1</LocationConstraint>");
	text_reset(&x);
	assert_fault(dialect_canned(OP_GET_BUCKET_LOCATION, "us-east-1", &x, &why), FAULT_NONE);
	assert_has(&x, "\"></LocationConstraint>");
	assert_string_equal(fault_info(dialect_canned(OP_GET_BUCKET_POLICY, "", &x, &why))->code,
			    "NoSuchBucketPolicy");
	text_free(&x);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(results),
		cmocka_unit_test(canned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
