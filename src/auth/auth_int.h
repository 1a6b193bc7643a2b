/* What the files of auth/ share. */
#ifndef GANTRY_AUTH_AUTH_INT_H
#define GANTRY_AUTH_AUTH_INT_H

#include "auth/auth.h"

#include <stdatomic.h>
#include <string.h>
#include <strings.h>

/* Bytes of a request, not terminated. */
struct bytes {
	const char *p;
	size_t len;
};

static inline struct bytes
bytes_of(const char *text)
{
	return (struct bytes){ text, strlen(text) };
}

static inline bool
bytes_are(struct bytes b, const char *text)
{
	size_t n = strlen(text);

	return b.len == n && memcmp(b.p, text, n) == 0;
}

static inline bool
bytes_begin(struct bytes b, const char *text)
{
	size_t n = strlen(text);

	return b.len >= n && memcmp(b.p, text, n) == 0;
}

static inline enum fault
refuse(const char **ret_why, enum fault f, const char *why)
{
	*ret_why = why;
	return f;
}

/* The value of a header without blanks around it. */
struct bytes header_value(const struct field *f);
/* 64 lower-case digits; 0 or -EINVAL. */
int signature_parse(struct bytes b, uint8_t out[32]);
/* Cuts what stands before the next `sep` off *rest (all of it when there is none). */
struct bytes cut(struct bytes *rest, char sep);

/* ---- credentials (keys.c, credentials.c) ---- */

struct auth_grant {
	char bucket[64]; /* without the '*' */
	uint8_t bucket_len;
	bool any_suffix; /* "name*" and "*" */
	bool read_only;
	uint16_t prefix_len;
	char *prefix;
};

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
	bool read_only, have_expires;
	uint64_t expires_s;
	struct auth_grant *grant; /* none: everything */
	int grant_nr;
	struct signing_cache cache[2];
};

struct auth_keys {
	_Atomic int refs;
	int nr;
	struct auth_entry *entry; /* sorted by access key; the order of the file among equal ones */
};

void entry_wipe(struct auth_entry *e);
/* The first entry of that access key and how many follow with the same; NULL: none. */
struct auth_entry *keys_find(struct auth_keys *keys, struct bytes access_key, int *ret_nr);
/* date: 8 digits. */
void signing_key(struct auth_entry *e, const char *date, const char *region, uint8_t out[32]);

/* ---- a signature as it came (scan.c) ---- */

struct sigv4 {
	bool presigned;
	struct bytes access_key, signed_headers;
	char scope[AUTH_SCOPE_MAX];     /* "20130524/us-east-1/s3/aws4_request" */
	char stamp[AUTH_STAMP_LEN + 1]; /* "20130524T000000Z" */
	uint64_t time_s, expires_s;     /* expires_s: seconds, presigned only */
	uint8_t signature[32];
	struct bytes token; /* len 0: none */
	/* Decoded from the query. */
	char credential_text[AUTH_ACCESS_KEY_MAX + AUTH_SCOPE_MAX], headers_text[2048],
		token_text[AUTH_TOKEN_MAX];
};

/* Path and query of the raw target; an absolute form loses its scheme and authority. */
void target_split(const struct dialect_in *in, struct bytes *ret_path, struct bytes *ret_query);
enum fault scan_header(const struct dialect_in *in, const char *region, struct sigv4 *s,
		       const char **ret_why);
enum fault scan_query(const struct dialect_in *in, const char *region, struct sigv4 *s, const char **ret_why);
/* AK/20130524/us-east-1/s3/aws4_request.  bad: the fault for one that is not well-formed. */
enum fault scan_credential(struct bytes text, const char *region, enum fault bad, struct sigv4 *s,
			   const char **ret_why);
/* "20130524T000000Z"; 0 or -EINVAL. */
int stamp_parse(struct bytes text, char out[AUTH_STAMP_LEN + 1], uint64_t *ret_unix_s);
void stamp_format(uint64_t unix_s, char out[AUTH_STAMP_LEN + 1]);

/* ---- the canonical request (canon.c) ---- */

/* The list of signed headers: well-formed, all of them there, and with all that must be among them. */
enum fault canon_check_headers(const struct dialect_in *in, const struct sigv4 *s, bool relax,
			       const char **ret_why);
/* Its hash.  payload: the text at its end. */
enum fault canon_hash(const struct dialect_in *in, const struct sigv4 *s, struct bytes payload,
		      uint8_t out[32], const char **ret_why);

#endif
