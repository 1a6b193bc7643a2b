/* SPDX-License-Identifier: Apache-2.0 */
/* XML bodies, tags, growable text: xml_read.c, xml_bodies.c, tags.c, text.c. */
#include "tests/unit/dialect/build.h"

#include "s3doc/tags_xml.h"
#include "s3doc/xml.h"

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
	/* One mark of UTF-8 at the beginning, as editors of Windows write it. */
	assert_fault(delete_keys("\xef\xbb\xbf<Delete><Object><Key>\xef\xbb\xbf"
				 "a</Key></Object></Delete>",
				 &d),
		     FAULT_NONE);
	assert_string_equal(d.keys[0].key, "\xef\xbb\xbf"
					   "a");
	xml_delete_free(&d);
	assert_fault(delete_keys("\xef\xbb\xbf" HEAD "<Delete><Object><Key>a</Key></Object></Delete>", &d),
		     FAULT_NONE);
	xml_delete_free(&d);
	assert_fault(
		delete_keys("\xef\xbb\xbf\xef\xbb\xbf<Delete><Object><Key>a</Key></Object></Delete>", &d),
		FAULT_MALFORMED_XML);
	assert_fault(delete_keys("\xef\xbb\xbf", &d), FAULT_MALFORMED_XML);
	text_free(&x);
}

static void
delete_bodies(void **state)
{
	/* pairs of values of one element */
	static const char *const twice[] = {
		"<ETag>\"x\"</ETag>",
		"<ETag>\"y\"</ETag>",
		"<Size>1</Size>",
		"<Size>2</Size>",
		"<LastModifiedTime>2026-01-02T03:04:05Z</LastModifiedTime>",
		"<LastModifiedTime>2027-01-02T03:04:05Z</LastModifiedTime>",
		"<VersionId>null</VersionId>",
		"<VersionId>7</VersionId>",
	};
	struct text x = { 0 };
	struct xml_delete d;

	assert_fault(delete_keys(HEAD
				 "<Delete" NS "><Quiet>true</Quiet><Object><Key>a &amp; b</Key></Object>"
				 "<Object><Key> </Key><VersionId>null</VersionId></Object>"
				 "<Object><Key>c</Key><VersionId>7</VersionId></Object>"
				 "<Object><Key>d</Key><ETag>\"e\"</ETag><Size>5</Size><LastModifiedTime>"
				 "Wed, 21 Oct 2015 07:28:00 GMT</LastModifiedTime></Object>"
				 "<Object><Key>e&#10;f</Key></Object>"
				 /* another version than the one that is there, whichever element is first */
				 "<Object><VersionId>7</VersionId><Key>g</Key></Object>"
				 "<Object><VersionId>null</VersionId><Key>h</Key></Object></Delete>",
				 &d),
		     FAULT_NONE);
	assert_true(d.quiet && d.nr == 7);
	assert_string_equal(d.keys[0].key, "a & b");
	assert_string_equal(d.keys[1].key, " ");
	assert_int_equal(d.keys[1].fault, FAULT_NONE);
	assert_int_equal(d.keys[2].fault, FAULT_NO_SUCH_VERSION);
	assert_true(d.keys[3].have_etag && d.keys[3].have_size && d.keys[3].mtime_s == 1445412480);
	assert_string_equal(d.keys[3].etag, "e");
	assert_int_equal(d.keys[4].fault, FAULT_BAD_URI);
	assert_int_equal(d.keys[5].fault, FAULT_NO_SUCH_VERSION);
	assert_int_equal(d.keys[6].fault, FAULT_NONE);
	xml_delete_free(&d);
	assert_fault(delete_keys("<Delete/>", &d), FAULT_MALFORMED_XML);
	assert_fault(delete_keys("<Delete><Object/></Delete>", &d), FAULT_MALFORMED_XML);
	assert_fault(delete_keys("<Delete><Object><Key/></Object></Delete>", &d), FAULT_MALFORMED_XML);
	assert_fault(delete_keys("<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>", &d),
		     FAULT_MALFORMED_XML);
	/* The last of two conditions would decide. */
	for (size_t i = 0; i < sizeof twice / sizeof *twice; i++) {
		char body[200];

		snprintf(body, sizeof body, "<Delete><Object><Key>a</Key>%s</Object></Delete>", twice[i]);
		assert_fault(delete_keys(body, &d), FAULT_NONE);
		xml_delete_free(&d);
		snprintf(body, sizeof body, "<Delete><Object><Key>a</Key>%s%s</Object></Delete>", twice[i],
			 twice[(i + 1) % 2 + i / 2 * 2]);
		assert_fault(delete_keys(body, &d), FAULT_MALFORMED_XML);
	}
	assert_fault(delete_keys("<Delete><Quiet>true</Quiet><Quiet>false</Quiet><Object><Key>a</Key></"
				 "Object></Delete>",
				 &d),
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
	static const char create[] =
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
	struct text x = { 0 }, tags = { 0 };
	char body[256];

	assert_fault(xml_create_bucket_parse("", 0, "eu-1", &tags, &why), FAULT_NONE);
	snprintf(body, sizeof body, create, "eu-1");
	assert_fault(xml_create_bucket_parse(body, strlen(body), "eu-1", &tags, &why), FAULT_NONE);
	snprintf(body, sizeof body, create, "eu-2");
	assert_fault(xml_create_bucket_parse(body, strlen(body), "eu-1", &tags, &why),
		     FAULT_INVALID_LOCATION);
	assert_fault(xml_create_bucket_parse(body, strlen(body), NULL, &tags, &why), FAULT_NONE);
	assert_fault(xml_create_bucket_parse("<a/>", 4, "eu-1", &tags, &why), FAULT_MALFORMED_XML);
	for (int i = 0; i < 2; i++) {
		snprintf(body, sizeof body, "<CreateBucketConfiguration>%s%s</CreateBucketConfiguration>",
			 i ? "<Tags/>" : "<LocationConstraint/>", i ? "<Tags/>" : "<LocationConstraint/>");
		assert_fault(xml_create_bucket_parse(body, strlen(body), "eu-1", &tags, &why),
			     FAULT_MALFORMED_XML);
	}
	assert_int_equal(tags.len, 0);
	text_free(&tags);
	assert_fault(xml_acl_parse("", 0, &why), FAULT_NONE);
	assert_fault(xml_acl_parse(acl, strlen(acl), &why), FAULT_NONE);
	assert_fault(xml_acl_parse(all, strlen(all), &why), FAULT_NO_ACLS);
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

/* Of a%3Db=1 %26 2 and \xc3\xa9= */
static void
have_all(const struct text *tags)
{
	static const char *const in[] = { "", "a%3Db=1 %26 2", "\xc3\xa9=", "\xc3\xa9=&a%3Db=1 %26 2" };
	static const char *const out[] = { "a%3Db=1",
					   "a%3Db=",
					   "a%3Db=1 %26 2&b=",
					   "\xc3\xa9=1",
					   "=",
					   "&",
					   "\xc3\xa9",
					   "a%3Db=1 %26 2&"
					   "\xc3\xa9" };
	struct tags_cut cut;

	tags_cut(tags->p, tags->len, &cut);
	assert_int_equal(cut.nr, 2);
	for (size_t i = 0; i < sizeof in / sizeof *in; i++)
		assert_true(tags_have_all(&cut, in[i], strlen(in[i])));
	for (size_t i = 0; i < sizeof out / sizeof *out; i++)
		assert_false(tags_have_all(&cut, out[i], strlen(out[i])));
	tags_cut("", 0, &cut);
	assert_true(tags_have_all(&cut, "", 0));
	assert_false(tags_have_all(&cut, in[1], strlen(in[1])));
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
	have_all(&tags);
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
	/* Without a set, and with two, a caller would erase or merge by mistake. */
	assert_fault(tags_from_xml("<Tagging/>", 10, TAGS_OBJECT_MAX, &again, &nr, &why),
		     FAULT_MALFORMED_XML);
	assert_fault(tags_from_xml("<Tagging><TagSet/><TagSet/></Tagging>", 37, TAGS_BUCKET_MAX, &again, &nr,
				   &why),
		     FAULT_MALFORMED_XML);
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

/* Ten tags of len bytes together, as a header has them. */
static void
make_tags(struct text *x, size_t len)
{
	text_reset(x);
	for (int i = 0; i < TAGS_OBJECT_MAX; i++) {
		bool last = i == TAGS_OBJECT_MAX - 1;

		/* A value may have 256 characters, which are more bytes only where a character is. */
		text_fmt(x, "%sk%d=", i ? "&" : "", i);
		for (int k = 0; last ? len - x->len >= 4 : k < 200; k++)
			text_str(x, "\xf0\x9f\x98\x80");
	}
	while (x->len < len)
		text_str(x, "v");
	assert_int_equal(x->len, len);
}

/* All tags of an object may have as many bytes as fit, in either form, and not one more. */
static void
tags_together(void **state)
{
	struct text value = { 0 }, xml = { 0 }, tags = { 0 };
	int nr;

	for (int over = 0; over < 2; over++) {
		enum fault want = over ? FAULT_INVALID_TAG : FAULT_NONE;

		make_tags(&value, DIALECT_TAGS_MAX + (size_t)over);
		text_reset(&tags);
		assert_fault(tags_from_header(value.p, value.len, &tags, &nr, &why), want);
		if (!over) {
			assert_int_equal(nr, TAGS_OBJECT_MAX);
			assert_string_equal(text_of(&tags), text_of(&value));
		}
		text_reset(&xml);
		tags_to_xml(&xml, value.p, value.len);
		text_reset(&tags);
		assert_fault(tags_from_xml(xml.p, xml.len, TAGS_OBJECT_MAX, &tags, &nr, &why), want);
		/* Those of a bucket are bounded where they are kept, with its other attributes. */
		text_reset(&tags);
		assert_fault(tags_from_xml(xml.p, xml.len, TAGS_BUCKET_MAX, &tags, &nr, &why), FAULT_NONE);
		/* What stood there before them does not count. */
		text_reset(&tags);
		text_str(&tags, "before");
		assert_fault(tags_from_header(value.p, value.len, &tags, &nr, &why), want);
	}
	text_free(&value);
	text_free(&xml);
	text_free(&tags);
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
	text_put(&x, "", SIZE_MAX);
	assert_false(text_ok(&x));
	text_str(&x, "more");
	assert_false(text_ok(&x));
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
		cmocka_unit_test(complete_bodies), cmocka_unit_test(complete_many),
		cmocka_unit_test(hostile),         cmocka_unit_test(delete_bodies),
		cmocka_unit_test(small_bodies),    cmocka_unit_test(tag_bodies),
		cmocka_unit_test(escapes),         cmocka_unit_test(tags_of_any_length),
		cmocka_unit_test(tags_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
