/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of auth/. */
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

/* Derived keys, one for even days and one for odd: around midnight there are requests of both days. */
struct signing_cache {
	_Atomic uint32_t seq; /* odd: a write is in progress */
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
	struct auth_grant *grant; /* none: every right */
	int grant_nr;
	struct conf_net *gid; /* addresses that tokens may name; none: those of rdma.allow */
	int gid_nr;
	struct conf_net *from; /* addresses from which requests may come; none: any */
	int from_nr;
	struct signing_cache cache[2];
};

struct auth_keys {
	_Atomic int refs;
	int nr;
	/* sorted by access key; entries with the same key in the order of the file */
	struct auth_entry *entry;
};

/* Returns the first entry of that access key and the number of entries with the same key; NULL: none. */
struct auth_entry *keys_find(struct auth_keys *keys, struct span access_key, int *ret_nr);
/* Derives the entry's key for a date (8 digits) and a region, or takes it from the cache. Returns true if it
 * was cached. */
bool signing_key(struct auth_entry *e, const char *date, struct span region, uint8_t out[32]);
/* Returns true if all members of two entries are equal. */
bool entry_same(const struct auth_entry *a, const struct auth_entry *b);

#define AUTH_EXPIRES_MAX_S (7u * 86400)         /* of a presigned URL */
#define CREDENTIALS_BYTES_MAX ((size_t)4 << 20) /* of a file */
struct yaml_parser_s;
struct yaml_document_s;

/* Parses as auth_keys_parse(); may_be_empty: a text without a document is a list without keys. */
int credentials_parse(const char *text, size_t len, const char *source, bool may_be_empty,
		      struct auth_keys **ret_keys, FILE *err);
/* Reads a file; whose: its owner and mode must be acceptable to the daemon. 0, with the text, which contains
 * secrets and belongs to the caller; or -errno, which was written to err. */
int credentials_read(const char *path, bool whose, char **ret_text, size_t *ret_len, FILE *err);
/* Wipes a parser's copy of a text, and frees it. */
void credentials_wipe(struct yaml_parser_s *y);
void credentials_wipe_document(struct yaml_document_s *doc);
/* Removes the * at the end of a grant's bucket. False: the text names no bucket. */
bool credentials_bucket(struct span *name, bool *ret_any);
/* Parses a time of RFC 3339: "2026-12-31T23:59:59Z", also with a fraction, which is dropped, or an offset.  0 or -EINVAL. */
int credentials_time(struct span text, uint64_t *ret_s);

/* Puts a key into the cache, after a valid signature: no other request displaces a cached key. */
void signing_key_keep(struct auth_entry *e, const char *date, struct span region, const uint8_t key[32]);

/* ---- what the versions of signatures share (judge.c) ---- */

static inline bool
has_body(const struct target *t)
{
	return t->chunked || (t->have_content_length && t->content_length > 0);
}

/* Returns true if the request moves bytes between our memory and a client's. */
static inline bool
has_descriptor(const struct target *t)
{
	return t->wire != WIRE_NONE && op_moves(t->op);
}

/* Returns true if the entry's secret gives the signature of `what`; it may leave the derived key in id. */
typedef bool (*entry_signed_fn)(struct auth_entry *e, const void *what, struct identity *id);
/* Finds the entry of that access key whose secret signed, and checks whether it is valid here and now.
 * FAULT_NONE with id->entry and id->keys; otherwise the fault of the last entry with a valid
 * signature; FAULT_SIGNATURE if no entry has one, FAULT_ACCESS_KEY if there is no entry. */
enum fault entries_try(const struct auth_env *env, struct span access_key, struct span token, uint64_t now_s,
		       entry_signed_fn is_signed, const void *what, struct identity *id,
		       const char **ret_why);
/* Checks whether the signature, which is valid until then, was used before from another address; auth.replay
 * selects the requests concerned. */
enum fault replay_check(const struct auth_env *env, const uint8_t signature[32], uint64_t until_s,
			const struct target *t, uint64_t now_s, const struct identity *id,
			const char **ret_why);
/* Finds the meaning of x-amz-content-sha256 for the body, for id; *ret_text: its text. is_signed: chunks may
 * be signed. */
enum fault payload_find(const struct dialect_in *in, const struct target *t, bool is_signed,
			struct identity *id, struct span *ret_text, const char **ret_why);

/* ---- signatures of version 2 (sigv2.c) ---- */

/* Returns true if the query has a signature of version 2 and such signatures are accepted here. */
bool sigv2_concerns(const struct auth_env *env, const struct dialect_in *in);
/* Does the work of auth_check() and auth_check_form() for them. */
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

/* Returns true if a key of the query is a part of a signature of version 2. */
bool sigv2_is_key(struct span name);
enum fault scan_header(const struct dialect_in *in, const char *region, struct sigv4 *s,
		       const char **ret_why);
enum fault scan_query(const struct dialect_in *in, const char *region, struct sigv4 *s, const char **ret_why);
/* Parses AK/20130524/us-east-1/s3/aws4_request. region: the required one; "any": no requirement. bad: the
 * fault for a malformed text. */
enum fault scan_credential(struct span text, const char *region, enum fault bad, struct sigv4 *s,
			   const char **ret_why);
/* Parses "20130524T000000Z".  0 or -EINVAL. */
int stamp_parse(struct span text, char out[AUTH_STAMP_LEN + 1], uint64_t *ret_unix_s);

/* ---- the canonical request (canon.c) ---- */

/* Checks the list of signed headers: well-formed, all of them present, all required headers among them, and
 * none whose hash could stand for another meaning. */
enum fault canon_check_headers(const struct dialect_in *in, const struct sigv4 *s, bool relax,
			       const char **ret_why);
/* Checks that a request with a descriptor signs the headers that determine which bytes move, and whether they
 * do. */
enum fault canon_check_beside(const struct dialect_in *in, const struct sigv4 *s, enum wire_form w,
			      bool relax, const char **ret_why);
/* Hashes the canonical request. payload: its last line. */
void canon_hash(const struct dialect_in *in, const struct sigv4 *s, struct span payload, uint8_t out[32]);
/* Writes the canonical request, with "..." in place of security tokens and descriptors. Returns its length, 0
 * if it is larger than cap. */
size_t canon_text(const struct dialect_in *in, const struct sigv4 *s, struct span payload, char *out,
		  size_t cap);

#endif
