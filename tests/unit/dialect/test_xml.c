/* XML bodies and answers, tags, growable text: xml_*.c, tags.c, text.c. */
#include "build.h"

#include "dialect/tags.h"
#include "dialect/xml.h"

#include <stdio.h>
#include <stdlib.h>

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
#define NS " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

static const char *why;

static enum fault
complete(const char *body, struct xml_complete *c)
{
	enum fault f = xml_complete_parse(body, strlen(body), c, &why);

	assert_true(f == FAULT_NONE || strlen(why) > 10);
	return f;
}

static enum fault
delete_keys(const char *body, struct xml_delete *d)
{
	enum fault f = xml_delete_parse(body, strlen(body), d, &why);

	assert_true(f == FAULT_NONE || strlen(why) > 10);
	return f;
}

static const char *
text_of(struct text *x)
{
	assert_true(text_ok(x));
	text_put(x, "", 1);
	x->len--;
	return x->p;
}

static void
complete_bodies(void **state)
{
	static const struct {
		const char *body;
		enum fault f;
	} bad[] = {
		{ "", FAULT_MALFORMED_XML },
		{ "x", FAULT_MALFORMED_XML },
		{ "<CompleteMultipartUpload/>", FAULT_MALFORMED_XML },
		{ "<CompleteMultipartUpload>", FAULT_MALFORMED_XML },
		{ "<Other><Part/></Other>", FAULT_MALFORMED_XML },
		{ "<CompleteMultipartUpload><Part/></CompleteMultipartUpload>", FAULT_MALFORMED_XML },
		{ "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></"
		  "CompleteMultipartUpload>",
		  FAULT_MALFORMED_XML },
		{ "<CompleteMultipartUpload><Part><ETag>a</ETag></Part></CompleteMultipartUpload>",
		  FAULT_MALFORMED_XML },
		{ "<CompleteMultipartUpload><Part><PartNumber>0</PartNumber><ETag>a</ETag></Part>"
		  "</CompleteMultipartUpload>",
		  FAULT_BAD_ARGUMENT },
		{ "<CompleteMultipartUpload><Part><PartNumber>10001</PartNumber><ETag>a</ETag></Part>"
		  "</CompleteMultipartUpload>",
		  FAULT_BAD_ARGUMENT },
		{ "<CompleteMultipartUpload><Part><PartNumber>x</PartNumber><ETag>a</ETag></Part>"
		  "</CompleteMultipartUpload>",
		  FAULT_MALFORMED_XML },
		{ "<CompleteMultipartUpload><Part><PartNumber>2</PartNumber><ETag>a</ETag></Part>"
		  "<Part><PartNumber>1</PartNumber><ETag>a</ETag></Part></CompleteMultipartUpload>",
		  FAULT_INVALID_PART_ORDER },
		{ "<CompleteMultipartUpload><Part><PartNumber>2</PartNumber><ETag>a</ETag></Part>"
		  "<Part><PartNumber>2</PartNumber><ETag>a</ETag></Part></CompleteMultipartUpload>",
		  FAULT_INVALID_PART_ORDER },
		{ "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>a</ETag>"
		  "<ChecksumCRC32>AAAA</ChecksumCRC32></Part></CompleteMultipartUpload>",
		  FAULT_BAD_REQUEST },
		{ "<CompleteMultipartUpload>text<Part><PartNumber>1</PartNumber><ETag>a</ETag></Part>"
		  "</CompleteMultipartUpload>",
		  FAULT_MALFORMED_XML },
		{ "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>a</ETag><X/></Part>"
		  "</CompleteMultipartUpload>",
		  FAULT_MALFORMED_XML },
		{ "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>a</ETag></Part>"
		  "</CompleteMultipartUpload><More/>",
		  FAULT_MALFORMED_XML },
	};
	struct xml_complete c;

	assert_fault(complete(HEAD "<CompleteMultipartUpload" NS ">\n <Part><ETag>&quot;0123&quot;</ETag>"
				   "<PartNumber> </PartNumber></Part></CompleteMultipartUpload>",
			      &c),
		     FAULT_MALFORMED_XML);
	assert_fault(complete(HEAD
			      "<CompleteMultipartUpload" NS ">\n <Part>\n<ETag>&#34;0123&quot;</ETag>"
			      "<PartNumber>3</PartNumber><ChecksumCRC32>y/Q5Jg==</ChecksumCRC32></Part>"
			      "<p:Part xmlns:p='u'><p:PartNumber>9</p:PartNumber><ETag><![CDATA[45]]></ETag>"
			      "</p:Part><!-- c --></CompleteMultipartUpload>\n",
			      &c),
		     FAULT_NONE);
	assert_int_equal(c.part_nr, 2);
	assert_int_equal(c.parts[0].number, 3);
	assert_string_equal(c.parts[0].etag, "0123");
	assert_true(c.parts[0].have_sum && c.parts[0].sum == SUM_CRC32 && c.parts[0].value[0] == 0xcb);
	assert_int_equal(c.parts[1].number, 9);
	assert_string_equal(c.parts[1].etag, "45");
	xml_complete_free(&c);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		enum fault f = complete(bad[i].body, &c);

		if (f != bad[i].f)
			fail_msg("%s: fault %d, %s", bad[i].body, f, why);
	}
}

/* 10,000 parts fit, one more does not. */
static void
complete_many(void **state)
{
	struct text x = { 0 };
	struct xml_complete c;

	for (int nr = DIALECT_PARTS_MAX; nr <= DIALECT_PARTS_MAX + 1; nr++) {
		enum fault f;

		text_reset(&x);
		text_str(&x, "<CompleteMultipartUpload>");
		for (int i = 1; i <= nr; i++)
			text_fmt(&x, "<Part><PartNumber>%d</PartNumber><ETag>\"%032x\"</ETag></Part>", i, i);
		text_str(&x, "</CompleteMultipartUpload>");
		f = xml_complete_parse(x.p, x.len, &c, &why);
		if (nr == DIALECT_PARTS_MAX) {
			assert_fault(f, FAULT_NONE);
			assert_int_equal(c.part_nr, nr);
			assert_int_equal(c.parts[9999].number, 10000);
			xml_complete_free(&c);
		} else {
			assert_true(f == FAULT_BAD_ARGUMENT || f == FAULT_MALFORMED_XML);
			assert_null(c.parts);
		}
	}
	text_free(&x);
}

/* What must not cost more than the bytes it came in, nor reach for anything. */
static void
hostile(void **state)
{
	static const char *const bodies[] = {
		"<!DOCTYPE Delete [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>"
		"<Delete><Object><Key>&b;</Key></Object></Delete>",
		"<!DOCTYPE Delete SYSTEM "
		"\"file:///etc/passwd\"><Delete><Object><Key>a</Key></Object></Delete>",
		"<!DOCTYPE Delete [<!ENTITY a SYSTEM \"file:///etc/passwd\">]>"
		"<Delete><Object><Key>&a;</Key></Object></Delete>",
		"<Delete><Object><Key>&nbsp;</Key></Object></Delete>",
		"<Delete><Object><Key>&#0;</Key></Object></Delete>",
		"<Delete><Object><Key>&#1;</Key></Object></Delete>",
		"<Delete><Object><Key>\x01</Key></Object></Delete>",
		"<Delete><Object><Key>\xff\xfe</Key></Object></Delete>",
		"<Delete><Object><Key>\xc0\xaf</Key></Object></Delete>",
		"<Delete><Object><Key><Key><Key>a</Key></Key></Key></Object></Delete>",
		"<?xml version=\"1.0\" "
		"encoding=\"UTF-16\"?><Delete><Object><Key>\xe9</Key></Object></Delete>",
		"\xff\xfe<\0D\0",
		"<Delete><Object Key=\"a\"/></Delete>",
		"<Delete xmlns:a=\"b\" a:a=\"1\" a:a=\"2\"><Object><Key>a</Key></Object></Delete>",
	};
	struct text x = { 0 };
	struct xml_delete d;

	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		enum fault f = delete_keys(bodies[i], &d);

		if (f != FAULT_MALFORMED_XML)
			fail_msg("%s: fault %d", bodies[i], f);
	}
	for (int i = 0; i < 100000; i++)
		text_str(&x, "<Delete>");
	assert_fault(xml_delete_parse(x.p, x.len, &d, &why), FAULT_MALFORMED_XML);
	text_reset(&x);
	text_str(&x, "<Delete><Object><Key>");
	for (int i = 0; i < 100000; i++)
		text_str(&x, "aaaaaaaaaa");
	text_str(&x, "</Key></Object></Delete>");
	assert_fault(xml_delete_parse(x.p, x.len, &d, &why), FAULT_MALFORMED_XML);
	text_reset(&x);
	text_str(&x, "<Delete");
	for (int i = 0; i < 20000; i++)
		text_fmt(&x, " a%d=\"&lt;\"", i);
	text_str(&x, "><Object><Key>a</Key></Object></Delete>");
	assert_fault(xml_delete_parse(x.p, x.len, &d, &why), FAULT_MALFORMED_XML);
	text_reset(&x);
	text_str(&x, "<Delete><Object><Key>a");
	text_put(&x, "\0b</Key></Object></Delete>", 26);
	assert_fault(xml_delete_parse(x.p, x.len, &d, &why), FAULT_MALFORMED_XML);
	/* Other encodings, said or not. */
	for (int mark = 0; mark < 2; mark++) {
		static const char ascii[] = "<Delete><Object><Key>aaaa</Key></Object></Delete>";

		text_reset(&x);
		if (mark)
			text_put(&x, "\xff\xfe", 2);
		for (size_t i = 0; i < sizeof ascii - 1; i++) {
			text_put(&x, ascii + i, 1);
			text_put(&x, ascii[i] == 'a' ? "\x4e" : "", 1);
		}
		assert_fault(xml_delete_parse(x.p, x.len, &d, &why), FAULT_MALFORMED_XML);
	}
	text_free(&x);
}

static void
delete_bodies(void **state)
{
	struct text x = { 0 };
	struct xml_delete d;

	assert_fault(delete_keys(HEAD "<Delete" NS "><Quiet>true</Quiet><Object><Key>a &amp; b</Key></Object>"
				      "<Object><Key> </Key><VersionId>null</VersionId></Object>"
				      "<Object><Key>c</Key><VersionId>7</VersionId></Object>"
				      "<Object><Key>d</Key><ETag>\"e\"</ETag><Size>5</Size><LastModifiedTime>"
				      "Wed, 21 Oct 2015 07:28:00 GMT</LastModifiedTime></Object>"
				      "<Object><Key>e&#10;f</Key></Object></Delete>",
				 &d),
		     FAULT_NONE);
	assert_true(d.quiet && d.nr == 5);
	assert_string_equal(d.keys[0].key, "a & b");
	assert_string_equal(d.keys[1].key, " ");
	assert_int_equal(d.keys[1].fault, FAULT_NONE);
	assert_int_equal(d.keys[2].fault, FAULT_NO_SUCH_VERSION);
	assert_true(d.keys[3].have_etag && d.keys[3].have_size && d.keys[3].mtime_s == 1445412480);
	assert_string_equal(d.keys[3].etag, "e");
	assert_int_equal(d.keys[4].fault, FAULT_BAD_URI);
	xml_delete_free(&d);
	assert_fault(delete_keys("<Delete/>", &d), FAULT_MALFORMED_XML);
	assert_fault(delete_keys("<Delete><Object/></Delete>", &d), FAULT_MALFORMED_XML);
	assert_fault(delete_keys("<Delete><Object><Key/></Object></Delete>", &d), FAULT_MALFORMED_XML);
	assert_fault(delete_keys("<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>", &d),
		     FAULT_MALFORMED_XML);
	assert_fault(delete_keys("<Delete><Quiet>perhaps</Quiet><Object><Key>a</Key></Object></Delete>", &d),
		     FAULT_MALFORMED_XML);
	for (int nr = XML_DELETE_MAX; nr <= XML_DELETE_MAX + 1; nr++) {
		text_reset(&x);
		text_str(&x, "<Delete>");
		for (int i = 0; i < nr; i++)
			text_fmt(&x, "<Object><Key>k%0*d</Key></Object>",
				 i == 7   ? 1024
				 : i == 8 ? 1023
					  : 4,
				 i);
		text_str(&x, "</Delete>");
		assert_fault(xml_delete_parse(x.p, x.len, &d, &why),
			     nr == XML_DELETE_MAX ? FAULT_NONE : FAULT_MALFORMED_XML);
		if (nr == XML_DELETE_MAX) {
			assert_int_equal(d.nr, nr);
			assert_string_equal(d.keys[999].key, "k0999");
			assert_int_equal(d.keys[7].fault, FAULT_KEY_TOO_LONG);
			assert_int_equal(d.keys[8].fault, FAULT_NONE);
			xml_delete_free(&d);
		}
	}
	text_free(&x);
}

static void
small_bodies(void **state)
{
	static const char *const create =
		"<CreateBucketConfiguration" NS "><LocationConstraint>%s</LocationConstraint>"
		"</CreateBucketConfiguration>";
	static const char acl[] =
		"<AccessControlPolicy><Owner><ID>gantry</ID></Owner><AccessControlList><Grant>"
		"<Grantee xmlns:xsi=\"u\" xsi:type=\"CanonicalUser\"><ID>gantry</ID></Grantee>"
		"<Permission>FULL_CONTROL</Permission></Grant></AccessControlList>"
		"</AccessControlPolicy>";
	static const char all[] =
		"<AccessControlPolicy><AccessControlList><Grant><Grantee><URI>u</URI></Grantee>"
		"<Permission>READ</Permission></Grant></AccessControlList></AccessControlPolicy>";
	static const char on[] =
		"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
	struct text x = { 0 };
	char body[256];

	assert_fault(xml_create_bucket_parse("", 0, "eu-1", &why), FAULT_NONE);
	snprintf(body, sizeof body, create, "eu-1");
	assert_fault(xml_create_bucket_parse(body, strlen(body), "eu-1", &why), FAULT_NONE);
	snprintf(body, sizeof body, create, "eu-2");
	assert_fault(xml_create_bucket_parse(body, strlen(body), "eu-1", &why), FAULT_INVALID_LOCATION);
	assert_fault(xml_create_bucket_parse("<a/>", 4, "eu-1", &why), FAULT_MALFORMED_XML);
	assert_fault(xml_acl_parse("", 0, &why), FAULT_NONE);
	assert_fault(xml_acl_parse(acl, strlen(acl), &why), FAULT_NONE);
	assert_fault(xml_acl_parse(all, strlen(all), &why), FAULT_NOT_IMPLEMENTED);
	assert_fault(xml_versioning_parse(on, strlen(on), &why), FAULT_NOT_IMPLEMENTED);
	assert_fault(
		xml_versioning_parse("<VersioningConfiguration><Status>x</Status></VersioningConfiguration>",
				     69, &why),
		FAULT_MALFORMED_XML);
	/* What we write is read again. */
	xml_acl(&x);
	assert_fault(xml_acl_parse(x.p, x.len, &why), FAULT_NONE);
	text_free(&x);
}

static void
tag_bodies(void **state)
{
	static const char two[] =
		HEAD "<Tagging" NS "><TagSet><Tag><Key>a=b</Key><Value>1 &amp; 2</Value></Tag>"
		     "<Tag><Key>\xc3\xa9</Key><Value></Value></Tag></TagSet></Tagging>";
	struct text tags = { 0 }, x = { 0 }, again = { 0 };
	int nr;

	assert_fault(tags_from_xml(two, strlen(two), TAGS_OBJECT_MAX, &tags, &nr, &why), FAULT_NONE);
	assert_int_equal(nr, 2);
	assert_string_equal(text_of(&tags), "a%3Db=1 %26 2&\xc3\xa9=");
	assert_int_equal(tags_count(tags.p, tags.len), 2);
	assert_true(tags_have(tags.p, tags.len, "a=b", 3, "1 & 2", 5));
	assert_false(tags_have(tags.p, tags.len, "a=b", 3, "1", 1));
	tags_to_xml(&x, tags.p, tags.len);
	assert_non_null(strstr(text_of(&x), "<Tag><Key>a=b</Key><Value>1 &amp; 2</Value></Tag>"));
	assert_fault(tags_from_xml(x.p, x.len, TAGS_OBJECT_MAX, &again, &nr, &why), FAULT_NONE);
	assert_string_equal(text_of(&again), tags.p);
	/* The header form gives the same text. */
	text_reset(&again);
	assert_fault(tags_from_header("a%3Db=1+%26+2&%C3%A9", 20, &again, &nr, &why), FAULT_NONE);
	assert_string_equal(text_of(&again), tags.p);
	/* None at all is a set as well. */
	assert_fault(tags_from_xml("<Tagging><TagSet/></Tagging>", 28, TAGS_OBJECT_MAX, &again, &nr, &why),
		     FAULT_NONE);
	assert_int_equal(nr, 0);
	for (int max = TAGS_OBJECT_MAX; max <= TAGS_BUCKET_MAX; max += TAGS_BUCKET_MAX - TAGS_OBJECT_MAX) {
		for (int over = 0; over < 2; over++) {
			text_reset(&x);
			text_str(&x, "<Tagging><TagSet>");
			for (int i = 0; i < max + over; i++)
				text_fmt(&x, "<Tag><Key>k%d</Key><Value>v</Value></Tag>", i);
			text_str(&x, "</TagSet></Tagging>");
			text_reset(&again);
			assert_fault(tags_from_xml(x.p, x.len, max, &again, &nr, &why),
				     over ? FAULT_INVALID_TAG : FAULT_NONE);
		}
	}
	text_reset(&x);
	text_str(&x, "<Tagging><TagSet><Tag><Key>");
	for (int i = 0; i < 128; i++)
		text_str(&x, "\xc3\xa9");
	text_str(&x, "</Key><Value>v</Value></Tag></TagSet></Tagging>");
	text_reset(&again);
	assert_fault(tags_from_xml(x.p, x.len, 10, &again, &nr, &why), FAULT_NONE);
	assert_fault(tags_from_xml("<Tagging><TagSet><Tag><Key>aws:x</Key><Value/></Tag></TagSet></Tagging>",
				   72, 10, &again, &nr, &why),
		     FAULT_INVALID_TAG);
	assert_fault(tags_from_xml("<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>", 59, 10,
				   &again, &nr, &why),
		     FAULT_MALFORMED_XML);
	text_free(&tags);
	text_free(&again);
	text_free(&x);
}

static void
escapes(void **state)
{
	struct text x = { 0 };

	text_xml(&x, "a<b>&\"'\r\n\t\x01z\xc3\xa9\xff\xef\xbf\xbf\xf0\x9f\x98\x80", 22);
	assert_string_equal(text_of(&x),
			    "a&lt;b&gt;&amp;&quot;&apos;&#13;\n\t\xef\xbf\xbdz\xc3\xa9\xef\xbf\xbd"
			    "\xef\xbf\xbd\xf0\x9f\x98\x80");
	text_reset(&x);
	text_url(&x, "a/b c+\xc3\xa9~\x01", 10, true);
	assert_string_equal(text_of(&x), "a/b%20c%2B%C3%A9~%01");
	text_reset(&x);
	text_url(&x, "a/b", 3, false);
	assert_string_equal(text_of(&x), "a%2Fb");
	text_reset(&x);
	text_element_time(&x, "T", 1445412480123000000);
	assert_string_equal(text_of(&x), "<T>2015-10-21T07:28:00.123Z</T>");
	text_reset(&x);
	text_base64(&x, "\1a/b", 4);
	assert_string_equal(text_of(&x), "AWEvYg==");
	/* No memory is remembered. */
	assert_null(text_room(&x, SIZE_MAX));
	text_str(&x, "more");
	assert_false(text_ok(&x));
	text_free(&x);
}

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
	assert_has(&x, "<KeyCount>1</KeyCount><NextContinuationToken>AWEgYg==</NextContinuationToken>");
	assert_null(strstr(x.p, "<Owner>"));
	t = parsed("GET", "/bkt?list-type=2&continuation-token=AWEgYg%3D%3D");
	assert_string_equal(t->list.after, "a b");
	text_reset(&x);
	xml_list_begin(&x, t);
	xml_list_end(&x, t, false, NULL, 0);
	assert_has(&x, "<ContinuationToken>AWEgYg==</ContinuationToken>");
	assert_has(&x, "<IsTruncated>false</IsTruncated><KeyCount>0</KeyCount></ListBucketResult>");
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
	assert_has(&x, "<Upload><Key>a b</Key><UploadId>30313233343536373839616263646566</UploadId>");
	assert_has(&x, "<NextUploadIdMarker>30313233343536373839616263646566</NextUploadIdMarker>");
	t = parsed("GET", "/");
	text_reset(&x);
	xml_buckets_begin(&x);
	xml_buckets_entry(&x, "bkt", 3, 0);
	xml_buckets_end(&x, t, true, "bkt", 3);
	assert_has(&x,
		   "<Bucket><Name>bkt</Name><CreationDate>1970-01-01T00:00:00.000Z</CreationDate></Bucket>"
		   "</Buckets><ContinuationToken>AWJrdA==</ContinuationToken></ListAllMyBucketsResult>");
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
	xml_parts_begin(&x, t, "CRC32", SUM_TYPE_COMPOSITE);
	xml_parts_entry(&x, &part);
	xml_parts_end(&x, t, true, 2);
	assert_has(&x, "<Key>a&amp;b</Key><UploadId>0123456789abcdef0123456789abcdef</UploadId>");
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
		   "<UploadId>0123456789abcdef0123456789abcdef</UploadId></InitiateMultipartUploadResult>");
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
	struct text x = { 0 };

	for (enum op op = 0; op < OP_NR; op++) {
		enum fault f;

		if (!op_info[op].canned)
			continue;
		text_reset(&x);
		f = dialect_canned(op, "eu-1", &x, &why);
		if (f != FAULT_NONE && fault_info(f)->status != 404)
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

/* A tag has so many bytes, wherever its end seems to be; what is no tag may be longer. */
static void
tags_of_any_length(void **state)
{
	static const struct {
		const char *head, *each, *tail;
		bool good;
	} cases[] = {
		{ "<Delete", " a%d=\"\"", "><Object><Key>a</Key></Object></Delete>", false },
		{ "<Delete b='>' c=\">'\"", " a%d='>'", "><Object><Key>a</Key></Object></Delete>", false },
		{ "<!-- > --><?x <?><Delete", " xmlns:a%d='u'", "><Object><Key>a</Key></Object></Delete>",
		  false },
		{ "<Delete><Object><Key><![CDATA[a>]]>b</Key></Object><Quiet", " a%d=''",
		  ">true</Quiet></Delete>", false },
		{ "<Delete>", " ", "<Object><Key>a</Key></Object></Delete>", true },
		{ "<!-- ' > <", " a%d=", "--><Delete><Object><Key>a</Key></Object></Delete>", true },
		{ "<Delete><Object><Key><![CDATA[< a=\"", "b", "]]></Key></Object></Delete>", true },
		{ "<Delete" NS " b='<'", "", "><Object><Key>a</Key></Object></Delete>", false },
		{ "<Delete" NS " b='>'", "", "><Object><Key>a</Key></Object></Delete>", true },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct text x = { 0 };
		struct xml_delete d;

		text_str(&x, cases[i].head);
		for (int k = 0; k < 600; k++) {
			char one[32];

			/* The number is not always in it. */
			snprintf(one, sizeof one, "%.*s", (int)strcspn(cases[i].each, "%"), cases[i].each);
			text_str(&x, one);
			if (strstr(cases[i].each, "%d"))
				text_fmt(&x, "%d%s", k, strstr(cases[i].each, "%d") + 2);
		}
		text_str(&x, cases[i].tail);
		if ((delete_keys(text_of(&x), &d) == FAULT_NONE) != cases[i].good)
			fail_msg("%zu: %s", i, why);
		if (cases[i].good)
			xml_delete_free(&d);
		else if (i < 4)
			assert_non_null(strstr(why, "1024"));
		text_free(&x);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tags_of_any_length),
		cmocka_unit_test(complete_bodies),
		cmocka_unit_test(complete_many),
		cmocka_unit_test(hostile),
		cmocka_unit_test(delete_bodies),
		cmocka_unit_test(small_bodies),
		cmocka_unit_test(tag_bodies),
		cmocka_unit_test(escapes),
		cmocka_unit_test(lists),
		cmocka_unit_test(results),
		cmocka_unit_test(canned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
