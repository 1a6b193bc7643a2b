/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S3 headers that ask for something we do not do: NotImplemented with their name (AccessDenied where they
 * name another owner; of access control lists what S3 says of buckets that have none), never silence and
 * never 200.  Called by parse.c on S3 listeners.
 */
#include "dialect/dialect_int.h"

static const struct {
	const char *name;
	bool prefix;
	const char *allow[2]; /* values that ask for what we do anyway */
	const char *why;
	enum fault fault; /* 0: not implemented */
} rows[] = {
	{ "x-amz-acl",
	  false,
	  { "private", "bucket-owner-full-control" },
	  "x-amz-acl: there are no access control lists, only private is taken.",
	  FAULT_NO_ACLS },
	{ "x-amz-grant-",
	  true,
	  { NULL },
	  "x-amz-grant-*: there are no access control lists.",
	  FAULT_NO_ACLS },
	{ "x-amz-copy-source-server-side-encryption-",
	  true,
	  { NULL },
	  "x-amz-copy-source-server-side-encryption-* is not implemented." },
	{ "x-amz-server-side-encryption",
	  true,
	  { NULL },
	  "x-amz-server-side-encryption: only AES256 is taken, where s3.encrypted_below says that the disks "
	  "encrypt." },
	{ "x-amz-object-lock-", true, { NULL }, "x-amz-object-lock-* is not implemented." },
	{ "x-amz-bucket-object-lock-enabled",
	  false,
	  { "false", "False" },
	  "x-amz-bucket-object-lock-enabled is not implemented." },
	{ "x-amz-object-ownership",
	  false,
	  { "BucketOwnerEnforced" },
	  "x-amz-object-ownership: only BucketOwnerEnforced is implemented." },
	{ "x-amz-website-redirect-location",
	  false,
	  { NULL },
	  "x-amz-website-redirect-location is not implemented." },
	{ "x-amz-write-offset-bytes",
	  false,
	  { NULL },
	  "x-amz-write-offset-bytes: appending is not implemented." },
	{ "x-amz-rename-source", true, { NULL }, "x-amz-rename-source is not implemented." },
	{ "x-amz-mfa", false, { NULL }, "x-amz-mfa is not implemented." },
	{ "x-amz-expected-bucket-owner",
	  false,
	  { DIALECT_OWNER },
	  "x-amz-expected-bucket-owner names somebody else than the owner of the bucket.",
	  FAULT_ACCESS_DENIED },
	{ "x-amz-source-expected-bucket-owner",
	  false,
	  { DIALECT_OWNER },
	  "x-amz-source-expected-bucket-owner names somebody else than the owner of the bucket.",
	  FAULT_ACCESS_DENIED },
	{ "x-amz-if-match-initiated-time",
	  false,
	  { NULL },
	  "x-amz-if-match-initiated-time is not implemented." },
};

static bool
row_allows(size_t row, struct span value)
{
	/* An empty value asks for nothing. */
	if (value.len == 0)
		return true;
	for (int i = 0; i < 2 && rows[row].allow[i]; i++) {
		if (span_is(value, rows[row].allow[i]))
			return true;
	}
	return false;
}

/* What the disks do anyway, as the operator says. */
static bool
is_done_below(const struct dialect_in *in, const struct field *f)
{
	return in->s3 && in->s3->encrypted_below && name_is(f, "x-amz-server-side-encryption") &&
	       span_is(field_text(f), "AES256");
}

/* What the row says; of a new bucket S3 has a name of its own for an access control list. */
static enum fault
fault_of_row(size_t row, enum op op)
{
	if (rows[row].fault == FAULT_NO_ACLS && op == OP_CREATE_BUCKET)
		return FAULT_BUCKET_ACL;
	return rows[row].fault ? rows[row].fault : FAULT_NOT_IMPLEMENTED;
}

enum fault
refused_check(const struct dialect_in *in, enum op op, const char **ret_why)
{
	for (int i = 0; i < in->field_nr; i++) {
		const struct field *f = &in->fields[i];
		char next;

		if (!name_begins(f, "x-amz-") || f->name_len == 6)
			continue;
		next = (char)(f->name[6] | 0x20); /* a small letter, if it is a letter */
		for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
			if (rows[r].name[6] != next)
				continue;
			if (!(rows[r].prefix ? name_begins(f, rows[r].name) : name_is(f, rows[r].name)))
				continue;
			if (!row_allows(r, field_text(f)) && !is_done_below(in, f))
				return refuse(ret_why, fault_of_row(r, op), rows[r].why);
		}
	}
	return FAULT_NONE;
}
