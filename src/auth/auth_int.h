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

/* Parses a signature of 64 lower-case hexadecimal digits. Returns 0 or -EINVAL. */
int signature_parse(struct span b, uint8_t out[32]);
/* ---- credentials (keys.c, credentials.c) ---- */

/* The day and the region of a signing key. */
struct signing_scope {
	char date[8];
	uint8_t region_len;
	char region[AUTH_REGION_MAX]; /* the rest is 0 */
};

/* The signing key of a day and a region, and the same key as it is used. */
struct signing_key {
	struct signing_scope scope;
	uint8_t key[32];
	struct hmac256_key hmac;
};
#define SCOPE_WORDS (sizeof(struct signing_scope) / 8)
#define SIGNING_WORDS (sizeof(struct signing_key) / 8)
union signing_words {
	struct signing_key k;
	uint64_t word[SIGNING_WORDS];
};
_Static_assert(sizeof(struct signing_scope) % 8 == 0 && sizeof(struct signing_key) % 8 == 0, "whole words");

/* A signing key derived from the secret of an entry for one day. An entry has two, for even and for odd days,
 * because around midnight requests of both days arrive. */
struct signing_cache {
	_Atomic uint32_t seq;                 /* version; odd while a thread writes */
	_Atomic uint64_t word[SIGNING_WORDS]; /* of union signing_words */
};

#define SECRET_BEGINS 4 /* length of "AWS4", bytes */
struct auth_entry {
	char *access_key;
	char *secret; /* "AWS4" and the secret key, which begins at SECRET_BEGINS */
	char *token;  /* required security token; NULL: none is required */
	size_t secret_len, token_len;
	char id[AUTH_SECRET_ID_LEN + 1]; /* id of the secret */
	char *comment;                   /* text of the operator about the key; NULL: none */
	bool read_only, no_delete, no_overwrite, have_expires, have_made;
	/* times in seconds since 1970: the end of the secret, and the time at which the secret was made */
	uint64_t expires_s, made_s;
	struct auth_grant *grant; /* rights; NULL: every right */
	int grant_nr;
	struct conf_net *gid; /* addresses that tokens may name; NULL: all those of rdma.allow */
	int gid_nr;
	struct conf_net *from; /* addresses from which requests may come; NULL: any */
	int from_nr;
	struct signing_cache cache[2];
	struct auth_usage *usage; /* record of the last use, shared with the entries of the same secret */
};

struct auth_keys {
	_Atomic int refs;
	int nr;
	/* entries, sorted by access key; entries with the same access key keep the order of the file */
	struct auth_entry *entry;
};

/* Returns the first entry with that access key, and in *ret_nr the number of entries with it; NULL if there
 * is no such entry. */
struct auth_entry *keys_find(struct auth_keys *keys, struct span access_key, int *ret_nr);
/* Fills in *out with the entry's signing key for a date (8 digits) and a region; the caller wipes *out. Returns true if
 * the key was in the cache; false if it was derived now, and is not stored in the cache. */
bool signing_key(struct auth_entry *e, const char *date, struct span region, union signing_words *out);
/* ---- last use of a secret (usage.c); any thread may call these functions ---- */

/* Makes the record of an entry. Returns 0 or -ENOMEM. */
int usage_new(struct auth_entry *e);
/* Releases the record of an entry; NULL is allowed. */
void usage_put(struct auth_usage *u);
/* Gives an entry the record of another one, in place of its own. */
void usage_share(struct auth_entry *e, const struct auth_entry *old);
/* Stores a use of the secret of the entry at now_s, seconds since 1970. */
void usage_mark(const struct auth_entry *e, uint64_t now_s);
/* Returns the time of the last use, seconds since 1970; 0: no use. */
uint64_t usage_last(const struct auth_entry *e);

/* Returns true if two entries have the same access key, secret and session token. */
bool entries_are_twins(const struct auth_entry *a, const struct auth_entry *b);
/* Returns true if all members of two entries are equal. */
bool entry_same(const struct auth_entry *a, const struct auth_entry *b);

#define AUTH_EXPIRES_MAX_S (7u * 86400)         /* longest validity of a presigned URL, seconds */
#define CREDENTIALS_BYTES_MAX ((size_t)4 << 20) /* size of the largest credentials file, in bytes */
struct yaml_parser_s;
struct yaml_document_s;

/* Parses the text of a credentials file, with the results of auth_keys_parse(). may_be_empty: true: an empty
 * text is accepted as a list without keys. */
int credentials_parse(const char *text, size_t len, const char *source, bool may_be_empty,
		      struct auth_keys **ret_keys, FILE *err);
/* Reads a credentials file. whose: true: the owner and the mode of the file are checked as well. Returns 0
 * and the text, which contains secrets and belongs to the caller; or the -errno of opening or reading it,
 * -EINVAL or -ENOMEM, after writing the reason to err. */
int credentials_read(const char *path, bool whose, char **ret_text, size_t *ret_len, FILE *err);
/* Wipes the copy of the text in a YAML parser, and frees the parser. */
void credentials_wipe(struct yaml_parser_s *y);
void credentials_wipe_document(struct yaml_document_s *doc);
/* Removes the * at the end of the `bucket` of a grant; *ret_any: true: there was a *. Returns false
 * if the text without the * is neither a bucket name nor the beginning of a bucket name. */
bool credentials_bucket(struct span *name, bool *ret_any);
/* Parses a time of RFC 3339: "2026-12-31T23:59:59Z", or with an offset instead of Z. A fraction of a second
 * is dropped. *ret_s: seconds since 1970. Returns 0 or -EINVAL. */
int credentials_time(struct span text, uint64_t *ret_s);
/* Copies a comment: a line of 1 to AUTH_COMMENT_MAX bytes of UTF-8 without control characters. Returns 0, and in *ret
 * the copy, which belongs to the caller; or -EINVAL or -ENOMEM. */
int credentials_comment(struct span text, char **ret);
/* Writes the id of a secret to out: see AUTH_SECRET_ID_LEN. */
void secret_id(const char *access_key, const char *secret, char out[AUTH_SECRET_ID_LEN + 1]);

/* Stores a signing key in the cache of its entry. The caller has verified a signature with the key: requests
 * with invalid signatures must not displace a cached key. */
void signing_key_keep(struct auth_entry *e, const union signing_words *key);

/* ---- parts common to signatures of all versions (judge.c) ---- */

/* SHA-256 of no bytes */
#define HASH_OF_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static inline bool
has_body(const struct target *t)
{
	return t->chunked || (t->have_content_length && t->content_length > 0);
}

/* Returns true if the request moves bytes between the server's memory and a client's by RDMA. */
static inline bool
has_descriptor(const struct target *t)
{
	return t->wire != WIRE_NONE && op_moves(t->op);
}

/* Returns true if the entry's secret yields the signature of `what`, the signed request or form; may store
 * the derived signing key in id. */
typedef bool (*entry_signed_fn)(struct auth_entry *e, const void *what, struct identity *id);
/* Finds the entry of that access key whose secret made the signature, and checks that the entry is valid for
 * this security token, time and peer address. Returns FAULT_NONE, and sets id->entry and id->keys; or the
 * fault of the last entry whose secret made the signature; FAULT_SIGNATURE: no secret of the access key made
 * the signature; FAULT_ACCESS_KEY: the access key is unknown. */
enum fault entries_try(const struct auth_env *env, struct span access_key, struct span token, uint64_t now_s,
		       entry_signed_fn is_signed, const void *what, struct identity *id,
		       const char **ret_why);
/* Checks a signature against the signatures seen before, and remembers it until until_s (seconds since 1970).
 * auth.replay sets which requests are checked, and which repetitions are forbidden. Returns FAULT_NONE, or
 * the fault of a forbidden repetition. */
enum fault replay_check(const struct auth_env *env, const uint8_t signature[32], uint64_t until_s,
			const struct target *t, uint64_t now_s, const struct identity *id,
			const char **ret_why);
/* Determines from x-amz-content-sha256 how the body is hashed, and stores the result in id->payload. hash, nr:
 * the header and the number of such headers, as dialect_payload_hash() returns them. is_signed: true: the
 * request is signed, so signed chunks are allowed. Returns FAULT_NONE or the fault. */
enum fault payload_find(const struct field *hash, int nr, const struct target *t, bool is_signed,
			struct identity *id, const char **ret_why);

/* ---- signatures of version 2 (sigv2.c) ---- */

/* Returns true if the query has a signature of version 2 and the server accepts that version. */
bool sigv2_concerns(const struct auth_env *env, const struct dialect_in *in);
/* Checks the signature of a presigned URL of version 2, with the results of auth_check(). */
enum fault sigv2_check(const struct auth_env *env, const struct dialect_in *in, const struct target *t,
		       uint64_t now_s, struct identity *id, const char **ret_why);
enum fault sigv2_check_form(const struct auth_env *env, const struct auth_form *form, uint64_t now_s,
			    struct identity *id, const char **ret_why);
#define SIGV2_HELP                                                                                           \
	"sign with version 4, in boto3 with Config(signature_version=\"s3v4\"), in the AWS CLI with "        \
	"s3.signature_version = s3v4."

/* ---- parsed signatures of version 4 (scan.c) ---- */

struct sigv4 {
	bool presigned;
	struct span access_key, signed_headers;
	struct span region; /* region named by the credential */
	/* scope of the credential, such as "20130524/us-east-1/s3/aws4_request" */
	char scope[AUTH_SCOPE_MAX];
	char stamp[AUTH_STAMP_LEN + 1]; /* time of the signature, such as "20130524T000000Z" */
	uint64_t time_s, expires_s;     /* expires_s: validity of a presigned URL, seconds */
	uint8_t signature[32];
	struct span token; /* security token; length 0: none */
	/* true for each field of the request that signed_headers names; set by canon_check_headers() */
	bool listed[DIALECT_FIELDS_MAX];
};

/* Returns true if `name` is a query key that belongs to a signature of version 2. */
bool sigv2_is_key(struct span name);
enum fault scan_header(const struct dialect_in *in, const char *region, struct sigv4 *s,
		       const char **ret_why);
enum fault scan_query(const struct dialect_in *in, const char *region, struct sigv4 *s, const char **ret_why);
/* Parses a credential like AK/20130524/us-east-1/s3/aws4_request into *s. region: the required region; "any":
 * every region is accepted. bad: the fault for a malformed text. Returns FAULT_NONE or the fault. */
enum fault scan_credential(struct span text, const char *region, enum fault bad, struct sigv4 *s,
			   const char **ret_why);
/* Parses a time like "20130524T000000Z", and copies it to out. *ret_unix_s: seconds since 1970. Returns 0 or
 * -EINVAL. */
int stamp_parse(struct span text, char out[AUTH_STAMP_LEN + 1], uint64_t *ret_unix_s);

/* ---- the canonical request (canon.c) ---- */

/* Checks the list of signed headers: its syntax is correct, the request has all headers of the list, the list
 * has all headers that must be signed, and no header in the list makes the signed text ambiguous. Fills in
 * s->listed. Returns FAULT_NONE or the fault. */
enum fault canon_check_headers(const struct dialect_in *in, struct sigv4 *s, bool relax,
			       const char **ret_why);
/* Checks, for a request with a descriptor, that the signature covers the headers that determine whether the
 * server moves bytes by RDMA, and which bytes. Called after canon_check_headers(). Returns FAULT_NONE or
 * FAULT_ACCESS_DENIED. */
enum fault canon_check_beside(const struct dialect_in *in, const struct sigv4 *s, enum wire_form w,
			      bool relax, const char **ret_why);
/* Hashes the canonical request. payload: its last line, the hash of the body or a name such as
 * UNSIGNED-PAYLOAD. */
void canon_hash(const struct dialect_in *in, const struct sigv4 *s, struct span payload, uint8_t out[32]);
/* Writes the canonical request, with "..." in place of security tokens and descriptors. Returns its
 * length; 0 if it is longer than cap. */
size_t canon_text(const struct dialect_in *in, const struct sigv4 *s, struct span payload, char *out,
		  size_t cap);

#endif
