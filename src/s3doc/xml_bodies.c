/* SPDX-License-Identifier: Apache-2.0 */
/* XML bodies of requests to structs, see xml.h.  Called by req/ with a whole body. */
#include "s3doc/tags_xml.h"
#include "s3doc/xml_int.h"

#include "base/base64.h"
#include "base/check.h"

#include <stdlib.h>

/* ETag text: quotes taken off; too long for ours: length 0. */
static void
xml_etag(struct span s, char out[64], uint8_t *ret_len)
{
	if (s.len >= 2 && s.p[0] == '"' && s.p[s.len - 1] == '"')
		s = (struct span){ s.p + 1, s.len - 2 };
	if (s.len >= 64)
		s.len = 0;
	memcpy(out, s.p, s.len);
	out[s.len] = 0;
	*ret_len = (uint8_t)s.len;
}

static enum fault
malformed(const char **ret_why, const char *why)
{
	return refuse(ret_why, FAULT_MALFORMED_XML, why);
}

/* ---- CompleteMultipartUpload ---- */

enum { C_PART, C_NUMBER, C_ETAG, C_SUMS };
static const char *const complete_paths[] = { [C_PART] = "Part",
					      [C_NUMBER] = "Part/PartNumber",
					      [C_ETAG] = "Part/ETag",
					      [C_SUMS + SUM_CRC64NVME] = "Part/ChecksumCRC64NVME",
					      [C_SUMS + SUM_CRC32] = "Part/ChecksumCRC32",
					      [C_SUMS + SUM_CRC32C] = "Part/ChecksumCRC32C",
					      [C_SUMS + SUM_SHA1] = "Part/ChecksumSHA1",
					      [C_SUMS + SUM_SHA256] = "Part/ChecksumSHA256",
					      NULL };

struct completing {
	struct xml_complete *out;
	int cap;
	bool have_number, have_etag;
	struct xml_part part;
};

static enum fault
complete_begin(void *cookie, int path, const char **ret_why)
{
	struct completing *c = cookie;

	if (path == C_PART) {
		memset(&c->part, 0, sizeof c->part);
		c->have_number = c->have_etag = false;
	}
	return FAULT_NONE;
}

static enum fault
complete_add(struct completing *c, const char **ret_why)
{
	struct xml_complete *out = c->out;

	if (!c->have_number || !c->have_etag)
		return malformed(ret_why, "A Part lacks its PartNumber or its ETag.");
	if (out->part_nr == DIALECT_PARTS_MAX)
		return malformed(ret_why, "There are more than 10000 parts.");
	if (out->part_nr && out->parts[out->part_nr - 1].number >= c->part.number)
		return refuse(ret_why, FAULT_INVALID_PART_ORDER, "The parts are not in ascending order.");
	check(out->part_nr <= c->cap);
	if (out->part_nr == c->cap) {
		int cap = c->cap ? c->cap * 2 : 64;
		struct xml_part *bigger = reallocarray(out->parts, (size_t)cap, sizeof *bigger);

		if (!bigger)
			return refuse(ret_why, FAULT_BUSY, "There is no memory for the parts.");
		out->parts = bigger;
		c->cap = cap;
	}
	out->parts[out->part_nr++] = c->part;
	return FAULT_NONE;
}

static enum fault
complete_sum(struct completing *c, enum checksum_kind k, struct span text, const char **ret_why)
{
	size_t len = 0;

	if (c->part.have_sum)
		return malformed(ret_why, "A Part has more than one checksum.");
	if (base64_decode(text.p, text.len, c->part.value, sizeof c->part.value, &len) < 0 ||
	    len != checksum_len(k))
		return refuse(ret_why, FAULT_BAD_REQUEST, "The checksum of a part is not valid.");
	c->part.have_sum = true;
	c->part.sum = k;
	return FAULT_NONE;
}

static enum fault
complete_end(void *cookie, int path, struct span text, const char **ret_why)
{
	struct completing *c = cookie;
	uint64_t v;

	check(path >= 0 && path < C_SUMS + SUM_MD5);
	switch (path) {
	case C_PART:
		return complete_add(c, ret_why);
	case C_NUMBER:
		if (c->have_number || span_decimal(text, &v) < 0)
			return malformed(ret_why, "A PartNumber is not one number.");
		if (v == 0 || v > DIALECT_PARTS_MAX)
			return refuse(ret_why, FAULT_BAD_ARGUMENT, "A PartNumber is not from 1 to 10000.");
		c->part.number = (uint16_t)v;
		c->have_number = true;
		return FAULT_NONE;
	case C_ETAG:
		if (c->have_etag)
			return malformed(ret_why, "A Part has two ETags.");
		xml_etag(text, c->part.etag, &c->part.etag_len);
		c->have_etag = true;
		return FAULT_NONE;
	default:
		return complete_sum(c, (enum checksum_kind)(path - C_SUMS), text, ret_why);
	}
}

enum fault
xml_complete_parse(const char *body, size_t len, struct xml_complete *ret, const char **ret_why)
{
	struct completing c = { .out = ret };
	struct xml_doc doc = { .root = "CompleteMultipartUpload",
			       .other_root = "CompleteMultipartUploadRequest",
			       .paths = complete_paths,
			       .begin = complete_begin,
			       .end = complete_end,
			       .cookie = &c };
	enum fault f;

	*ret = (struct xml_complete){ 0 };
	f = xml_read(&doc, body, len, ret_why);
	if (f == FAULT_NONE && ret->part_nr == 0)
		f = malformed(ret_why, "There are no parts.");
	check(f != FAULT_NONE || ret->part_nr <= DIALECT_PARTS_MAX);
	if (f != FAULT_NONE)
		xml_complete_free(ret);
	return f;
}

void
xml_complete_free(struct xml_complete *c)
{
	free(c->parts);
	*c = (struct xml_complete){ 0 };
}

/* ---- DeleteObjects ---- */

enum { D_OBJECT, D_KEY, D_VERSION, D_ETAG, D_TIME, D_SIZE, D_QUIET };
static const char *const delete_paths[] = { [D_OBJECT] = "Object",
					    [D_KEY] = "Object/Key",
					    [D_VERSION] = "Object/VersionId",
					    [D_ETAG] = "Object/ETag",
					    [D_TIME] = "Object/LastModifiedTime",
					    [D_SIZE] = "Object/Size",
					    [D_QUIET] = "Quiet",
					    NULL };

struct deleting {
	struct xml_delete *out;
	size_t used, cap; /* of out->text; decoded text is never longer than the body it came in */
	bool have_key, have_version, have_quiet;
};

static enum fault
delete_begin(void *cookie, int path, const char **ret_why)
{
	struct deleting *d = cookie;

	if (path != D_OBJECT)
		return FAULT_NONE;
	if (d->out->nr == XML_DELETE_MAX)
		return malformed(ret_why, "There are more than 1000 keys.");
	memset(&d->out->keys[d->out->nr], 0, sizeof *d->out->keys);
	d->have_key = d->have_version = false;
	return FAULT_NONE;
}

static enum fault
delete_key(struct deleting *d, struct xml_delete_key *k, struct span text, const char **ret_why)
{
	const char *why;

	check(d->used < d->cap);
	if (d->have_key)
		return malformed(ret_why, "An Object has two keys.");
	d->have_key = true;
	if (text.len >= d->cap - d->used)
		return malformed(ret_why, "The keys are longer than the body they came in.");
	k->key = d->out->text + d->used;
	k->key_len = (uint32_t)text.len;
	memcpy(d->out->text + d->used, text.p, text.len);
	d->out->text[d->used + text.len] = 0;
	d->used += text.len + 1;
	if (text.len == 0)
		return malformed(ret_why, "A Key is empty.");
	/* A version that came first is as wrong as one that comes after its key. */
	if (k->fault == FAULT_NONE)
		k->fault = key_check(text.p, text.len, &why);
	return FAULT_NONE;
}

static enum fault
delete_date(struct xml_delete_key *k, struct span text, const char **ret_why)
{
	if (k->have_mtime)
		return malformed(ret_why, "An Object has two times.");
	if (http_date_parse(text.p, text.len, &k->mtime_s) < 0 &&
	    iso_date_parse(text.p, text.len, &k->mtime_s) < 0)
		return malformed(ret_why, "A LastModifiedTime is not a date.");
	k->have_mtime = true;
	return FAULT_NONE;
}

static enum fault
delete_end(void *cookie, int path, struct span text, const char **ret_why)
{
	struct deleting *d = cookie;
	struct xml_delete_key *k = &d->out->keys[d->out->nr];

	check(d->out->nr <= XML_DELETE_MAX);
	switch (path) {
	case D_OBJECT:
		if (!d->have_key)
			return malformed(ret_why, "An Object lacks its Key.");
		d->out->nr++;
		return FAULT_NONE;
	case D_KEY:
		return delete_key(d, k, text, ret_why);
	case D_VERSION:
		if (d->have_version)
			return malformed(ret_why, "An Object has two versions.");
		d->have_version = true;
		if (text.len && !span_is(text, "null"))
			k->fault = FAULT_NO_SUCH_VERSION;
		return FAULT_NONE;
	case D_ETAG:
		if (k->have_etag)
			return malformed(ret_why, "An Object has two ETags.");
		k->have_etag = true;
		xml_etag(text, k->etag, &k->etag_len);
		return FAULT_NONE;
	case D_TIME:
		return delete_date(k, text, ret_why);
	case D_SIZE:
		if (k->have_size)
			return malformed(ret_why, "An Object has two sizes.");
		k->have_size = true;
		return span_decimal(text, &k->size_bytes) < 0 ? malformed(ret_why, "A Size is not a number.")
							      : FAULT_NONE;
	default:
		if (d->have_quiet)
			return malformed(ret_why, "There are two Quiet elements.");
		d->have_quiet = true;
		d->out->quiet = span_is(text, "true");
		return d->out->quiet || span_is(text, "false") || text.len == 0
			       ? FAULT_NONE
			       : malformed(ret_why, "Quiet is neither true nor false.");
	}
}

enum fault
xml_delete_parse(const char *body, size_t len, struct xml_delete *ret, const char **ret_why)
{
	struct deleting d = { .out = ret, .cap = len + XML_DELETE_MAX + 1 };
	struct xml_doc doc = { .root = "Delete",
			       .paths = delete_paths,
			       .begin = delete_begin,
			       .end = delete_end,
			       .cookie = &d };
	enum fault f;

	*ret = (struct xml_delete){ 0 };
	/* One more for what delete_end() may look at after the last. */
	ret->keys = calloc(XML_DELETE_MAX + 1, sizeof *ret->keys);
	ret->text = malloc(d.cap);
	if (!ret->keys || !ret->text)
		f = refuse(ret_why, FAULT_BUSY, "There is no memory for the keys.");
	else
		f = xml_read(&doc, body, len, ret_why);
	if (f == FAULT_NONE && ret->nr == 0)
		f = malformed(ret_why, "There are no keys.");
	if (f != FAULT_NONE)
		xml_delete_free(ret);
	return f;
}

void
xml_delete_free(struct xml_delete *d)
{
	free(d->keys);
	free(d->text);
	*d = (struct xml_delete){ 0 };
}

/* ---- the small ones ---- */

enum { B_LOCATION, B_TAGS };
static const char *const bucket_paths[] = { [B_LOCATION] = "LocationConstraint",
					    [B_TAGS + TAG_SET] = "Tags",
					    [B_TAGS + TAG] = "Tags/Tag",
					    [B_TAGS + TAG_KEY] = "Tags/Tag/Key",
					    [B_TAGS + TAG_VALUE] = "Tags/Tag/Value",
					    "Location",
					    "Location/Name",
					    "Location/Type",
					    "Bucket",
					    "Bucket/DataRedundancy",
					    "Bucket/Type",
					    NULL };

struct creating {
	const char *region;
	bool have_location;
	struct tags_reader tags;
};

static enum fault
bucket_end(void *cookie, int path, struct span text, const char **ret_why)
{
	struct creating *c = cookie;

	if (path == B_LOCATION && c->have_location)
		return malformed(ret_why, "There are two location constraints.");
	c->have_location |= path == B_LOCATION;
	if (path == B_LOCATION)
		return text.len == 0 || !c->region || span_is(text, c->region) || span_is(text, "us-east-1")
			       ? FAULT_NONE
			       : refuse(ret_why, FAULT_INVALID_LOCATION,
					"The location constraint is not this server's region.");
	if (path <= B_TAGS + TAG_VALUE)
		return tags_read_end(&c->tags, (enum tag_element)(path - B_TAGS), text, ret_why);
	return refuse(ret_why, FAULT_NOT_IMPLEMENTED, "Directory buckets are not implemented.");
}

enum fault
xml_create_bucket_parse(const char *body, size_t len, const char *region, struct text *tags,
			const char **ret_why)
{
	struct creating c = { .region = region,
			      .tags = {
				      .tags = { .out = tags, .from = tags->len, .max = TAGS_BUCKET_MAX } } };
	struct xml_doc doc = {
		.root = "CreateBucketConfiguration", .paths = bucket_paths, .end = bucket_end, .cookie = &c
	};

	*ret_why = "";
	return len == 0 ? FAULT_NONE : xml_read(&doc, body, len, ret_why);
}

enum {
	A_OWNER,
	A_OWNER_ID,
	A_OWNER_NAME,
	A_LIST,
	A_GRANT,
	A_GRANTEE,
	A_ID,
	A_NAME,
	A_URI,
	A_MAIL,
	A_PERMISSION
};
static const char *const acl_paths[] = { [A_OWNER] = "Owner",
					 [A_OWNER_ID] = "Owner/ID",
					 [A_OWNER_NAME] = "Owner/DisplayName",
					 [A_LIST] = "AccessControlList",
					 [A_GRANT] = "AccessControlList/Grant",
					 [A_GRANTEE] = "AccessControlList/Grant/Grantee",
					 [A_ID] = "AccessControlList/Grant/Grantee/ID",
					 [A_NAME] = "AccessControlList/Grant/Grantee/DisplayName",
					 [A_URI] = "AccessControlList/Grant/Grantee/URI",
					 [A_MAIL] = "AccessControlList/Grant/Grantee/EmailAddress",
					 [A_PERMISSION] = "AccessControlList/Grant/Permission",
					 NULL };

struct acl_seen {
	bool other;
};

static enum fault
acl_end(void *cookie, int path, struct span text, const char **ret_why)
{
	struct acl_seen *a = cookie;

	switch (path) {
	case A_URI:
	case A_MAIL:
		a->other = true;
		break;
	case A_OWNER_ID:
	case A_ID:
		a->other = a->other || !span_is(text, "gantry");
		break;
	case A_PERMISSION:
		a->other = a->other || !span_is(text, "FULL_CONTROL");
		break;
	default:
		break;
	}
	return FAULT_NONE;
}

enum fault
xml_acl_parse(const char *body, size_t len, const char **ret_why)
{
	struct acl_seen a = { 0 };
	struct xml_doc doc = {
		.root = "AccessControlPolicy", .paths = acl_paths, .end = acl_end, .cookie = &a
	};
	enum fault f;

	*ret_why = "";
	if (len == 0)
		return FAULT_NONE;
	f = xml_read(&doc, body, len, ret_why);
	if (f == FAULT_NONE && a.other)
		return refuse(ret_why, FAULT_NO_ACLS,
			      "There is no access control list but the owner's FULL_CONTROL.");
	return f;
}
