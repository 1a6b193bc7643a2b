/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of auth/ share. */
#ifndef GANTRY_AUTH_AUTH_INT_H
#define GANTRY_AUTH_AUTH_INT_H

#include "auth/auth.h"

#include <stdatomic.h>
#include <string.h>
#include <strings.h>

static inline enum fault
refuse(const char **ret_why, enum fault f, const char *why)
{
	*ret_why = why;
	return f;
}

/* Parses 64 lower-case digits.  0 or -EINVAL. */
int signature_parse(struct span b, uint8_t out[32]);
/* ---- credentials (keys.c, credentials.c) ---- */

/* Derived keys, one for even days and one for odd: around midnight requests of two days come. */
struct signing_cache {
	_Atomic uint32_t seq; /* odd: being written */
	_Atomic uint64_t tag; /* day and region */
	_Atomic uint64_t key[4];
};

struct auth_entry {
	char *access_key;
	char *secret; /* "AWS4" and the key */
	char *token;  /* NULL: none */
	size_t secret_len, token_len;
	bool read_only, no_delete, no_overwrite, have_expires;
	uint64_t expires_s;
	struct auth_grant *grant; /* none: everything */
	int grant_nr;
	struct conf_net *gid; /* that tokens may name; none: what rdma.allow says */
	int gid_nr;
	struct conf_net *from; /* where requests may come from; none: anywhere */
	int from_nr;
	struct signing_cache cache[2];
};

struct auth_keys {
	_Atomic int refs;
	int nr;
	struct auth_entry *entry; /* sorted by access key; the order of the file among equal ones */
};

/* Returns the first entry of that access key and how many there are with the same; NULL: none. */
struct auth_entry *keys_find(struct auth_keys *keys, struct span access_key, int *ret_nr);
/* Derives the entry's key for a date (8 digits) and a region, or takes it from the cache.  Tells whether it
 * was there. */
bool signing_key(struct auth_entry *e, const char *date, struct span region, uint8_t out[32]);
/* Returns whether two entries are the same, with all that stands in them. */
bool entry_same(const struct auth_entry *a, const struct auth_entry *b);

#define AUTH_EXPIRES_MAX_S (7u * 86400)         /* of a presigned URL */
#define CREDENTIALS_BYTES_MAX ((size_t)4 << 20) /* of a file */
struct yaml_parser_s;
struct yaml_document_s;

/* Does what auth_keys_parse() does; may_be_empty: a text without any document is a list without keys. */
int credentials_parse(const char *text, size_t len, const char *source, bool may_be_empty,
		      struct auth_keys **ret_keys, FILE *err);
/* Reads a file; whose: it must be one whose owner and mode the daemon takes.  0, with the text, which has secrets in it
 * and is the caller's; or -errno, which was written to err. */
int credentials_read(const char *path, bool whose, char **ret_text, size_t *ret_len, FILE *err);
/* Wipes what a parser has of a text, and frees it. */
void credentials_wipe(struct yaml_parser_s *y);
void credentials_wipe_document(struct yaml_document_s *doc);
/* Takes the * from the end of what a grant calls a bucket.  False: it names none. */
bool credentials_bucket(struct span *name, bool *ret_any);
/* Parses a time of RFC 3339: "2026-12-31T23:59:59Z", also with a fraction, which is dropped, or an offset.  0 or -EINVAL. */
int credentials_time(struct span text, uint64_t *ret_s);

/* Puts a key into the cache, once it is known that its holder speaks: nobody else puts any out. */
void signing_key_keep(struct auth_entry *e, const char *date, struct span region, const uint8_t key[32]);

/* ---- what the versions of signatures share (judge.c) ---- */

static inline bool
has_body(const struct target *t)
{
	return t->chunked || (t->have_content_length && t->content_length > 0);
}

/* Tells whether bytes are to move between our memory and a client's. */
static inline bool
has_descriptor(const struct target *t)
{
	return t->wire != WIRE_NONE && op_moves(t->op);
}

/* Tells whether an entry's secret gives the signature of what; it may leave the derived key in id. */
typedef bool (*entry_signed_fn)(struct auth_entry *e, const void *what, struct identity *id);
/* Finds the entry of that access key whose secret signed, and asks whether it is good here and now.  FAULT_NONE
 * with id->entry and id->keys; else the answer is of the best entry: signed well, or none. */
enum fault entries_try(const struct auth_env *env, struct span access_key, struct span token, uint64_t now_s,
		       entry_signed_fn is_signed, const void *what, struct identity *id,
		       const char **ret_why);
/* Asks whether the signature, which is good until then, came before from somewhere else; auth.replay says of
 * which requests that counts. */
enum fault replay_check(const struct auth_env *env, const uint8_t signature[32], uint64_t until_s,
			const struct target *t, uint64_t now_s, const struct identity *id,
			const char **ret_why);
/* Finds what x-amz-content-sha256 says about the body, for id; *ret_text: its text.  is_signed: chunks may be. */
enum fault payload_find(const struct dialect_in *in, const struct target *t, bool is_signed,
			struct identity *id, struct span *ret_text, const char **ret_why);

/* ---- signatures of version 2 (sigv2.c) ---- */

/* Tells whether the query has such a one and they are taken here. */
bool sigv2_concerns(const struct auth_env *env, const struct dialect_in *in);
/* Does what auth_check() and auth_check_form() promise, for those. */
enum fault sigv2_check(const struct auth_env *env, const struct dialect_in *in, const struct target *t,
		       uint64_t now_s, struct identity *id, const char **ret_why);
enum fault sigv2_check_form(const struct auth_env *env, const struct auth_form *form, uint64_t now_s,
			    struct identity *id, const char **ret_why);
#define SIGV2_HELP                                                                                           \
	"sign with version 4, in boto3 with Config(signature_version=\"s3v4\"), in the AWS CLI with "        \
	"s3.signature_version = s3v4."

/* ---- a signature as it came (scan.c) ---- */

struct sigv4 {
	bool presigned;
	struct span access_key, signed_headers;
	struct span region;             /* as the credential has it */
	char scope[AUTH_SCOPE_MAX];     /* "20130524/us-east-1/s3/aws4_request" */
	char stamp[AUTH_STAMP_LEN + 1]; /* "20130524T000000Z" */
	uint64_t time_s, expires_s;     /* expires_s: seconds, presigned only */
	uint8_t signature[32];
	struct span token; /* len 0: none */
};

/* Tells whether a key of the query is a part of a signature of version 2. */
bool sigv2_is_key(struct span name);
enum fault scan_header(const struct dialect_in *in, const char *region, struct sigv4 *s,
		       const char **ret_why);
enum fault scan_query(const struct dialect_in *in, const char *region, struct sigv4 *s, const char **ret_why);
/* Parses AK/20130524/us-east-1/s3/aws4_request.  region: which it has to be, or none; "any":
 * whichever.  bad: the fault for one that is not well-formed. */
enum fault scan_credential(struct span text, const char *region, enum fault bad, struct sigv4 *s,
			   const char **ret_why);
/* Parses "20130524T000000Z".  0 or -EINVAL. */
int stamp_parse(struct span text, char out[AUTH_STAMP_LEN + 1], uint64_t *ret_unix_s);

/* ---- the canonical request (canon.c) ---- */

/* Checks the list of signed headers: well-formed, all of them there, with all that must be among them, and
 * none whose hash could stand for another meaning. */
enum fault canon_check_headers(const struct dialect_in *in, const struct sigv4 *s, bool relax,
			       const char **ret_why);
/* Checks that what says which bytes move, and whether, is signed where a descriptor is. */
enum fault canon_check_beside(const struct dialect_in *in, const struct sigv4 *s, enum wire_form w,
			      bool relax, const char **ret_why);
/* Hashes the canonical request.  payload: the text at its end. */
void canon_hash(const struct dialect_in *in, const struct sigv4 *s, struct span payload, uint8_t out[32]);
/* Writes the canonical request, with "..." for what is nobody's to see: security tokens,
 * descriptors.  Returns its length, 0 when it is more than cap. */
size_t canon_text(const struct dialect_in *in, const struct sigv4 *s, struct span payload, char *out,
		  size_t cap);

#endif
