/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XML bodies: the first byte says of which operation, the rest is the body.  What was taken is within its
 * bounds, and what we write of it is read again as the same.  From 0xf0 on the body is one that grows.  Kinds
 * above those of bodies are the packed forms themselves, as a bucket's attributes may hold them.  From 0xe8 to
 * 0xef it is a body that can ask for one state only.
 */
#include "s3doc/cors.h"
#include "s3doc/lifecycle.h"
#include "s3doc/subres.h"
#include "s3doc/tags_xml.h"
#include "s3doc/xml.h"
#include "tests/fuzz/grow.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())
#define GROWN_MAX (48u << 10)
#define STATES 0xe8
#define STATES_END 0xf0

enum {
	COMPLETE,
	DELETE,
	TAGGING,
	CORS,
	LIFECYCLE,
	CREATE,
	VERSIONING,
	ACL,
	PACKED_CORS,
	PACKED_LIFECYCLE,
	TAG_TEXT,
	NR
};

/* The tags that it takes are tags that a bucket can have. */
static void
try_create(const char *p, size_t len, const char **ret_why)
{
	struct text tags = { 0 }, xml = { 0 }, again = { 0 };
	const char *why;

	if (xml_create_bucket_parse(p, len, "us-east-1", &tags, ret_why) == FAULT_NONE && tags.len) {
		tags_to_xml(&xml, tags.p, tags.len);
		must(bucket_tags_from_xml(xml.p, xml.len, &again, &why) == FAULT_NONE);
		must(again.len == tags.len);
	}
	text_free(&tags);
	text_free(&xml);
	text_free(&again);
}

static void
try_complete(const char *p, size_t len)
{
	struct xml_complete c;
	const char *why = NULL;
	enum fault f = xml_complete_parse(p, len, &c, &why);

	must(why);
	if (f != FAULT_NONE) {
		must(!c.parts);
		return;
	}
	must(c.part_nr >= 1 && c.part_nr <= DIALECT_PARTS_MAX);
	for (int i = 0; i < c.part_nr; i++) {
		must(c.parts[i].number >= 1 && c.parts[i].number <= DIALECT_PARTS_MAX);
		must(i == 0 || c.parts[i].number > c.parts[i - 1].number);
		must(c.parts[i].etag_len < 64 && c.parts[i].etag[c.parts[i].etag_len] == 0);
		must(!c.parts[i].have_sum || c.parts[i].sum < SUM_MD5);
	}
	xml_complete_free(&c);
}

static void
try_delete(const char *p, size_t len)
{
	struct text x = { 0 };
	struct xml_delete d;
	const char *why = NULL;
	enum fault f = xml_delete_parse(p, len, &d, &why);

	must(why);
	if (f != FAULT_NONE)
		return;
	must(d.nr >= 1 && d.nr <= XML_DELETE_MAX);
	for (int i = 0; i < d.nr; i++) {
		must(strlen(d.keys[i].key) == d.keys[i].key_len && d.keys[i].key_len > 0);
		must(d.keys[i].fault || d.keys[i].key_len <= DIALECT_KEY_MAX);
		xml_deleted(&x, d.keys[i].key, d.keys[i].key_len);
	}
	must(text_ok(&x));
	text_free(&x);
	xml_delete_free(&d);
}

static void
try_tagging(const char *p, size_t len)
{
	struct text tags = { 0 }, xml = { 0 }, again = { 0 }, xml2 = { 0 };
	const char *why = NULL;
	int nr = 0, nr2 = 0;

	if (tags_from_xml(p, len, TAGS_BUCKET_MAX, &tags, &nr, &why) == FAULT_NONE) {
		must(nr <= TAGS_BUCKET_MAX && tags_count(tags.p, tags.len) == nr);
		tags_to_xml(&xml, tags.p, tags.len);
		must(tags_from_xml(xml.p, xml.len, TAGS_BUCKET_MAX, &again, &nr2, &why) == FAULT_NONE);
		must(nr2 == nr && again.len == tags.len);
		/* Sorted once is sorted. */
		tags_to_xml(&xml2, again.p, again.len);
		must(xml2.len == xml.len && memcmp(xml2.p, xml.p, xml.len) == 0);
	}
	must(why);
	text_free(&tags);
	text_free(&xml);
	text_free(&again);
	text_free(&xml2);
}

static void
use_cors(const void *packed, size_t len)
{
	struct cors_answer a;

	if (!cors_match(packed, len, "https://a.test", 14, "PUT", 3, "x-amz-date, content-type", 24, &a))
		must(a.origin[0] == 0);
	else
		must(a.origin[0] && strlen(a.headers) < sizeof a.headers &&
		     strlen(a.expose) < sizeof a.expose);
	/* Names that a client may make of any bytes. */
	if (cors_match(packed, len, "https://a.test", 14, "PUT", 3, packed, len, &a))
		must(a.origin[0] && strlen(a.headers) < sizeof a.headers);
	else
		must(a.origin[0] == 0 && a.headers[0] == 0);
}

static void
use_lifecycle(const void *packed, size_t len)
{
	const char *id;
	size_t id_len;
	uint64_t at = lifecycle_expiry(packed, len, "log/a", 5, 100, "a=1&b=2", 7, 1445412480, &id, &id_len);

	must(lifecycle_due(packed, len, "log/a", 5, 100, "a=1&b=2", 7, 1445412480, UINT64_MAX) == (at != 0));
	must(at == 0 || !lifecycle_due(packed, len, "log/a", 5, 100, "a=1&b=2", 7, 1445412480, at - 1));
	(void)lifecycle_upload_due(packed, len, "log/a", 5, 1445412480, 1545412480);
}

static void
try_rules(bool cors, const char *p, size_t len)
{
	struct text packed = { 0 }, xml = { 0 }, again = { 0 };
	const char *why = NULL;
	enum fault f =
		cors ? cors_from_xml(p, len, &packed, &why) : lifecycle_from_xml(p, len, &packed, &why);

	must(why);
	if (f == FAULT_NONE) {
		must(packed.len <= (cors ? CORS_PACKED_MAX : LIFECYCLE_PACKED_MAX));
		must((cors ? cors_to_xml(&xml, packed.p, packed.len)
			   : lifecycle_to_xml(&xml, packed.p, packed.len)) == 0);
		f = cors ? cors_from_xml(xml.p, xml.len, &again, &why)
			 : lifecycle_from_xml(xml.p, xml.len, &again, &why);
		must(f == FAULT_NONE && again.len == packed.len &&
		     memcmp(again.p, packed.p, packed.len) == 0);
		if (cors)
			use_cors(packed.p, packed.len);
		else
			use_lifecycle(packed.p, packed.len);
	}
	text_free(&packed);
	text_free(&xml);
	text_free(&again);
}

static void
try_packed(int kind, const char *p, size_t len)
{
	struct text x = { 0 };
	struct tags_cut cut;
	const char *why = NULL;
	int nr;

	if (kind == PACKED_CORS) {
		use_cors(p, len);
		(void)cors_to_xml(&x, p, len);
	} else if (kind == PACKED_LIFECYCLE) {
		use_lifecycle(p, len);
		(void)lifecycle_to_xml(&x, p, len);
	} else {
		(void)tags_count(p, len);
		tags_cut(p, len, &cut);
		(void)tags_have_all(&cut, p, len);
		if (tags_from_header(p, len, &x, &nr, &why) == FAULT_NONE) {
			must(tags_count(x.p, x.len) == nr);
			tags_cut(x.p, x.len, &cut);
			must(cut.nr == nr && tags_have_all(&cut, x.p, x.len));
		}
	}
	text_free(&x);
}

/* What is taken is kept, and what is written of it is taken. */
static void
try_kept_state(bool access, const char *p, size_t len)
{
	struct text packed = { 0 }, xml = { 0 }, again = { 0 };
	const char *why = NULL;
	enum fault f = access ? access_block_from_xml(p, len, &packed, &why)
			      : ownership_from_xml(p, len, &packed, &why);

	must(why);
	must((f == FAULT_NONE) == (packed.len > 0));
	if (f == FAULT_NONE) {
		must((access ? access_block_to_xml(&xml, packed.p, packed.len)
			     : ownership_to_xml(&xml, packed.p, packed.len)) == 0);
		must((access ? access_block_from_xml(xml.p, xml.len, &again, &why)
			     : ownership_from_xml(xml.p, xml.len, &again, &why)) == FAULT_NONE);
	}
	text_reset(&xml);
	(void)(access ? access_block_to_xml(&xml, p, len) : ownership_to_xml(&xml, p, len));
	text_free(&packed);
	text_free(&xml);
	text_free(&again);
}

static void
try_state(int kind, const char *p, size_t len)
{
	const char *why = NULL;

	switch (kind) {
	case 0:
	case 1:
		try_kept_state(kind, p, len);
		return;
	case 2:
		(void)xml_payer_parse(p, len, &why);
		break;
	case 3:
		(void)xml_acceleration_parse(p, len, &why);
		break;
	case 4:
		(void)xml_encryption_parse(p, len, &why);
		break;
	default:
		(void)xml_notifications_parse(p, len, &why);
		break;
	}
	must(why);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t grown[GROWN_MAX];
	const char *why = NULL;
	size_t n;
	char *p;
	int kind;

	if (len == 0)
		return 0;
	kind = data[0] % NR;
	n = data[0] >= 0xf0 ? grow(data + 1, len - 1, grown, sizeof grown) : 0;
	len = n ? n : len - 1;
	p = malloc(len ? len : 1);
	must(p);
	memcpy(p, n ? grown : data + 1, len);
	if (data[0] >= STATES && data[0] < STATES_END) {
		try_state(data[0] - STATES, p, len);
		free(p);
		return 0;
	}
	switch (kind) {
	case COMPLETE:
		try_complete(p, len);
		break;
	case DELETE:
		try_delete(p, len);
		break;
	case TAGGING:
		try_tagging(p, len);
		break;
	case CORS:
	case LIFECYCLE:
		try_rules(kind == CORS, p, len);
		break;
	case CREATE:
		try_create(p, len, &why);
		must(why);
		break;
	case VERSIONING:
		(void)xml_versioning_parse(p, len, &why);
		must(why);
		(void)xml_logging_parse(p, len, &why);
		(void)xml_object_lock_parse(p, len, &why);
		(void)xml_abac_parse(p, len, &why);
		must(why);
		break;
	case ACL:
		(void)xml_acl_parse(p, len, &why);
		must(why);
		break;
	default:
		try_packed(kind, p, len);
		break;
	}
	free(p);
	return 0;
}
