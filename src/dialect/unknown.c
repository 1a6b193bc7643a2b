/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x-amz-* header fields that nobody here knows.  They are taken, as S3 takes them; but one that S3 invents
 * tomorrow may ask for something, so they are not taken in silence: req/ counts and logs them.  What asks for
 * something that we know not to do is refused by unsupported.c.  Called by parse.c on S3 listeners.
 */
#include "dialect/dialect_int.h"

#define PREFIX "x-amz-"
#define PREFIX_LEN (sizeof PREFIX - 1)
#define LETTER_MAX 16

/* By their first letter behind x-amz-: of a request's five or so each is compared with a few. */
static const char *const known[26][LETTER_MAX] = {
	['a' - 'a'] = { "acl" },
	['b' - 'a'] = { "bucket-object-lock-enabled", "bypass-governance-retention" },
	['c' - 'a'] = { "content-sha256", "checksum-crc32", "checksum-crc64nvme", "checksum-mode",
			"checksum-algorithm", "checksum-crc32c", "checksum-sha1", "checksum-sha256",
			"checksum-type", "copy-source", "copy-source-range", "copy-source-if-match",
			"copy-source-if-none-match", "copy-source-if-modified-since",
			"copy-source-if-unmodified-since", "cf-id" },
	['d' - 'a'] = { "date", "decoded-content-length" },
	['e' - 'a'] = { "expected-bucket-owner" },
	['i' - 'a'] = { "if-match-size", "if-match-last-modified-time", "if-match-initiated-time" },
	['m' - 'a'] = { "max-parts", "metadata-directive", "mfa", "mp-object-size" },
	['o' - 'a'] = { "object-attributes", "object-ownership", "optional-object-attributes" },
	['p' - 'a'] = { "part-number-marker" },
	['r' - 'a'] = { "request-payer", "rdma-agent", "rdma-bytes", "rdma-checksum", "rename-source" },
	['s' - 'a'] = { "security-token", "sdk-checksum-algorithm", "storage-class",
			"source-expected-bucket-owner", "server-side-encryption" },
	['t' - 'a'] = { "tagging", "tagging-directive", "trailer" },
	['u' - 'a'] = { "user-agent" },
	['w' - 'a'] = { "website-redirect-location", "write-offset-bytes" },
};

/* Of these there are any number; all but metadata are refused, or say what is so anyway. */
static const char *const families[] = { "x-amz-meta-",
					"x-amz-grant-",
					"x-amz-object-lock-",
					"x-amz-server-side-encryption-",
					"x-amz-copy-source-server-side-encryption-",
					"x-amz-rename-source-" };

static bool
is_known(struct span name)
{
	struct span rest = { name.p + PREFIX_LEN, name.len - PREFIX_LEN };
	unsigned letter = rest.len ? (unsigned)((rest.p[0] | 0x20) - 'a') : 26;

	for (int i = 0; letter < 26 && i < LETTER_MAX && known[letter][i]; i++) {
		if (span_is_nocase(rest, known[letter][i]))
			return true;
	}
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		if (span_begins_nocase(name, families[i]))
			return true;
	}
	return dialect_is_wire_header(name);
}

void
unknown_find(const struct dialect_in *in, struct target *t)
{
	for (int i = 0; i < in->field_nr && !t->unknown_header.len; i++) {
		struct span name = { in->fields[i].name, in->fields[i].name_len };

		if ((name.p[0] | 0x20) == 'x' && span_begins_nocase(name, PREFIX) && !is_known(name))
			t->unknown_header = name;
	}
}
