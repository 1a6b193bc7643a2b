/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What buckets can be asked to be, and are anyway: no public access, objects that are the bucket owner's, a
 * payer, no notifications, no acceleration.  A body that asks for exactly that is taken; any other is
 * NotImplemented.  See subres.h and xml.h.
 *
 * Of those that programs read back after they set them one byte is kept, which says that it was set.
 */
#include "s3doc/subres.h"
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
keep(enum fault f, struct text *packed, const char **ret_why)
{
	if (f != FAULT_NONE)
		return f;
	text_put(packed, KEPT, 1);
	return text_ok(packed) ? FAULT_NONE
			       : refuse(ret_why, FAULT_BUSY, "There is no memory for the configuration.");
}

static bool
is_kept(const void *packed, size_t len)
{
	return len == 1 && memcmp(packed, KEPT, 1) == 0;
}

/* ---- PublicAccessBlock ---- */

enum fault
access_block_from_xml(const char *body, size_t len, struct text *packed, const char **ret_why)
{
	static const char *const paths[] = { "BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy",
					     "RestrictPublicBuckets", NULL };
	static const struct state_doc doc = { "PublicAccessBlockConfiguration", "true",
					      "Public access is not implemented: all four can only be true.",
					      15 };

	return keep(read_state(&doc, paths, body, len, ret_why), packed, ret_why);
}

int
access_block_to_xml(struct text *x, const void *packed, size_t len)
{
	if (!is_kept(packed, len))
		return -EINVAL;
	text_str(x, XML_DECL
		 "<PublicAccessBlockConfiguration xmlns=\"" XML_NS
		 "\"><BlockPublicAcls>true</BlockPublicAcls>"
		 "<IgnorePublicAcls>true</IgnorePublicAcls><BlockPublicPolicy>true</BlockPublicPolicy>"
		 "<RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>");
	return 0;
}

/* ---- OwnershipControls ---- */

enum fault
ownership_from_xml(const char *body, size_t len, struct text *packed, const char **ret_why)
{
	static const char *const paths[] = { "Rule/ObjectOwnership", "Rule", NULL };
	static const struct state_doc doc = { "OwnershipControls", "BucketOwnerEnforced",
					      "ObjectOwnership can only be BucketOwnerEnforced.", 1 };

	return keep(read_state(&doc, paths, body, len, ret_why), packed, ret_why);
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

static enum fault
no_notifications(void *cookie, int path, const char **ret_why)
{
	return refuse(ret_why, FAULT_NOT_IMPLEMENTED, "Notifications are not implemented.");
}

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
xml_notifications_parse(const char *body, size_t len, const char **ret_why)
{
	static const char *const paths[] = { "TopicConfiguration", "QueueConfiguration",
					     "CloudFunctionConfiguration", "EventBridgeConfiguration", NULL };
	struct xml_doc doc = { .root = "NotificationConfiguration",
			       .paths = paths,
			       .begin = no_notifications };

	return xml_read(&doc, body, len, ret_why);
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
