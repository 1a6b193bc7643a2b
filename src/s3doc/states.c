/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What buckets can be asked to be, and are anyway: objects that are the bucket owner's, a payer, no versions, no
 * notifications, no acceleration and so on.  A body that asks for exactly that is taken; any other is
 * NotImplemented.  See subres.h and xml.h.
 *
 * Of those that programs read back after they set them one byte is kept, which says what was set.
 */
#include "s3doc/subres.h"
#include "base/check.h"
#include "s3doc/xml_int.h"

#include <errno.h>

#define KEPT "\1"

/* ---- a document of elements with one value each ---- */

struct state_doc {
	const char *root, *value, *why;
	unsigned leaves; /* of the paths, as bits: those that must be there */
};

struct reading {
	const struct state_doc *doc;
	unsigned seen;
};

static enum fault
state_end(void *cookie, int path, struct span text, const char **ret_why)
{
	struct reading *r = cookie;
	unsigned bit = 1u << path;

	check(path >= 0 && path < 32);
	if (!(r->doc->leaves & bit))
		return FAULT_NONE;
	if (r->seen & bit)
		return refuse(ret_why, FAULT_MALFORMED_XML, "An element came twice.");
	r->seen |= bit;
	return span_is_nocase(text, r->doc->value) ? FAULT_NONE
						   : refuse(ret_why, FAULT_NOT_IMPLEMENTED, r->doc->why);
}

static enum fault
read_state(const struct state_doc *d, const char *const *paths, const char *body, size_t len,
	   const char **ret_why)
{
	struct reading r = { .doc = d };
	struct xml_doc doc = { .root = d->root, .paths = paths, .end = state_end, .cookie = &r };
	enum fault f = xml_read(&doc, body, len, ret_why);

	if (f == FAULT_NONE && r.seen != d->leaves)
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED, d->why);
	return f;
}

static enum fault
keep(enum fault f, const char *byte, struct text *packed, const char **ret_why)
{
	if (f != FAULT_NONE)
		return f;
	text_put(packed, byte, 1);
	return text_ok(packed) ? FAULT_NONE
			       : refuse(ret_why, FAULT_BUSY, "There is no memory for the configuration.");
}

static bool
is_kept(const void *packed, size_t len)
{
	return len == 1 && memcmp(packed, KEPT, 1) == 0;
}

/* ---- PublicAccessBlock: there is no public access, whether it is blocked or not ---- */

static const char *const blocks[] = { "BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy",
				      "RestrictPublicBuckets", NULL };
#define ALL_BLOCKS 15u
#define KEPT_OFF "\2" /* all four are false; KEPT: true */

struct block_reading {
	unsigned seen, on;
};

static enum fault
block_end(void *cookie, int path, struct span text, const char **ret_why)
{
	struct block_reading *r = cookie;
	unsigned bit = 1u << path;

	check(bit & ALL_BLOCKS);
	if (r->seen & bit)
		return refuse(ret_why, FAULT_MALFORMED_XML, "An element came twice.");
	r->seen |= bit;
	if (span_is_nocase(text, "true"))
		r->on |= bit;
	else if (!span_is_nocase(text, "false"))
		return refuse(ret_why, FAULT_MALFORMED_XML,
			      "An element of the public access block is neither true nor false.");
	return FAULT_NONE;
}

enum fault
access_block_from_xml(const char *body, size_t len, struct text *packed, const char **ret_why)
{
	struct block_reading r = { 0 };
	struct xml_doc doc = {
		.root = "PublicAccessBlockConfiguration", .paths = blocks, .end = block_end, .cookie = &r
	};
	enum fault f = xml_read(&doc, body, len, ret_why);

	/* An element that is absent is false (API text). */
	if (f == FAULT_NONE && (!r.seen || (r.on && r.on != ALL_BLOCKS)))
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
			      "Public access is not implemented: all four can only be true, or all false.");
	return keep(f, r.on ? KEPT : KEPT_OFF, packed, ret_why);
}

int
access_block_to_xml(struct text *x, const void *packed, size_t len)
{
	bool off = len == 1 && memcmp(packed, KEPT_OFF, 1) == 0;

	if (!off && !is_kept(packed, len))
		return -EINVAL;
	text_str(x, XML_DECL "<PublicAccessBlockConfiguration xmlns=\"" XML_NS "\">");
	for (int i = 0; blocks[i]; i++)
		text_element_str(x, blocks[i], off ? "false" : "true");
	text_str(x, "</PublicAccessBlockConfiguration>");
	return 0;
}

/* ---- OwnershipControls ---- */

enum fault
ownership_from_xml(const char *body, size_t len, struct text *packed, const char **ret_why)
{
	static const char *const paths[] = { "Rule/ObjectOwnership", "Rule", NULL };
	static const struct state_doc doc = { "OwnershipControls", "BucketOwnerEnforced",
					      "ObjectOwnership can only be BucketOwnerEnforced.", 1 };

	return keep(read_state(&doc, paths, body, len, ret_why), KEPT, packed, ret_why);
}

int
ownership_to_xml(struct text *x, const void *packed, size_t len)
{
	if (!is_kept(packed, len))
		return -EINVAL;
	text_str(x,
		 XML_DECL "<OwnershipControls xmlns=\"" XML_NS "\"><Rule><ObjectOwnership>BucketOwnerEnforced"
			  "</ObjectOwnership></Rule></OwnershipControls>");
	return 0;
}

/* ---- those that are not kept ---- */

enum fault
xml_payer_parse(const char *body, size_t len, const char **ret_why)
{
	static const char *const paths[] = { "Payer", NULL };
	static const struct state_doc doc = { "RequestPaymentConfiguration", "BucketOwner",
					      "Payer can only be BucketOwner.", 1 };

	return read_state(&doc, paths, body, len, ret_why);
}

enum fault
xml_acceleration_parse(const char *body, size_t len, const char **ret_why)
{
	static const char *const paths[] = { "Status", NULL };
	static const struct state_doc doc = {
		"AccelerateConfiguration", "Suspended",
		"Acceleration is not implemented: Status can only be Suspended.", 1
	};

	return read_state(&doc, paths, body, len, ret_why);
}

enum fault
xml_abac_parse(const char *body, size_t len, const char **ret_why)
{
	static const char *const paths[] = { "Status", NULL };
	static const struct state_doc doc = {
		"AbacStatus", "Disabled", "Access by tags is not implemented: Status can only be Disabled.", 1
	};

	return read_state(&doc, paths, body, len, ret_why);
}

/* ---- documents that are empty where nothing is asked for ---- */

static enum fault
not_implemented(void *cookie, int path, const char **ret_why)
{
	return refuse(ret_why, FAULT_NOT_IMPLEMENTED, cookie);
}

static enum fault
read_empty(const char *root, const char *const *paths, const char *why, const char *body, size_t len,
	   const char **ret_why)
{
	struct xml_doc doc = {
		.root = root, .paths = paths, .begin = not_implemented, .cookie = (void *)(uintptr_t)why
	};

	return xml_read(&doc, body, len, ret_why);
}

enum fault
xml_notifications_parse(const char *body, size_t len, const char **ret_why)
{
	static const char *const paths[] = { "TopicConfiguration", "QueueConfiguration",
					     "CloudFunctionConfiguration", "EventBridgeConfiguration", NULL };

	return read_empty("NotificationConfiguration", paths, "Notifications are not implemented.", body, len,
			  ret_why);
}

enum fault
xml_logging_parse(const char *body, size_t len, const char **ret_why)
{
	static const char *const paths[] = { "LoggingEnabled", NULL };

	return read_empty("BucketLoggingStatus", paths, "Logs of a bucket's requests are not implemented.",
			  body, len, ret_why);
}

enum fault
xml_object_lock_parse(const char *body, size_t len, const char **ret_why)
{
	static const char *const paths[] = { "ObjectLockEnabled", "Rule", NULL };

	return read_empty("ObjectLockConfiguration", paths, "Object lock is not implemented.", body, len,
			  ret_why);
}

/* ---- versions ---- */

enum { V_STATUS, V_MFA };

static enum fault
versioning_end(void *cookie, int path, struct span text, const char **ret_why)
{
	unsigned *seen = cookie;

	check(path == V_STATUS || path == V_MFA);
	if (*seen & 1u << path)
		return refuse(ret_why, FAULT_MALFORMED_XML, "An element came twice.");
	*seen |= 1u << path;
	if (span_is(text, "Enabled"))
		return refuse(
			ret_why, FAULT_NOT_IMPLEMENTED,
			path == V_MFA
				? "MfaDelete is not implemented."
				: "Versions of objects are not implemented: Status can only be Suspended.");
	return span_is(text, path == V_MFA ? "Disabled" : "Suspended")
		       ? FAULT_NONE
		       : refuse(ret_why, FAULT_MALFORMED_XML,
				path == V_MFA ? "MfaDelete is neither Enabled nor Disabled."
					      : "Status is neither Enabled nor Suspended.");
}

enum fault
xml_versioning_parse(const char *body, size_t len, const char **ret_why)
{
	static const char *const paths[] = { [V_STATUS] = "Status", [V_MFA] = "MfaDelete", NULL };
	unsigned seen = 0;
	struct xml_doc doc = {
		.root = "VersioningConfiguration", .paths = paths, .end = versioning_end, .cookie = &seen
	};
	enum fault f = xml_read(&doc, body, len, ret_why);

	if (f == FAULT_NONE && !(seen & 1u << V_STATUS))
		return refuse(ret_why, FAULT_VERSIONING, "The versioning configuration has no Status.");
	return f;
}

/* ---- encryption, where the disks do it ---- */

enum fault
xml_encryption_parse(const char *body, size_t len, const char **ret_why)
{
	static const char *const paths[] = { "Rule/ApplyServerSideEncryptionByDefault/SSEAlgorithm", "Rule",
					     "Rule/ApplyServerSideEncryptionByDefault",
					     "Rule/BucketKeyEnabled", NULL };
	static const struct state_doc doc = { "ServerSideEncryptionConfiguration", "AES256",
					      "SSEAlgorithm can only be AES256.", 1 };

	return read_state(&doc, paths, body, len, ret_why);
}

void
xml_encryption(struct text *x)
{
	text_str(x, XML_DECL
		 "<ServerSideEncryptionConfiguration xmlns=\"" XML_NS
		 "\"><Rule><ApplyServerSideEncryptionByDefault>"
		 "<SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault>"
		 "<BucketKeyEnabled>false</BucketKeyEnabled></Rule></ServerSideEncryptionConfiguration>");
}
