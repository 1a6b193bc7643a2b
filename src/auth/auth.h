/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication and authorization: AWS Signature Version 4 (protocol.md 4.5; items 47, 81, 82), version 2 if
 * auth.sigv2 allows it, credentials with grants, and the aws-chunked bodies of signed requests. Only
 * auth_keys_load() does I/O. A request causes no allocation here, and no call blocks.
 *
 * req/ calls auth_check() between dialect_parse() and dialect_token(), so that an unauthorized client learns
 * nothing about a descriptor. Then it calls auth_allows() for the target, and auth_may() for all other names
 * in the request.
 *
 * A listener serves unsigned requests only if its `anonymous` is true. Every s3 listener serves signed
 * requests. A request with an invalid signature is refused also by an anonymous listener. The scality dialect
 * has no authentication at all.
 */
#ifndef GANTRY_AUTH_AUTH_H
#define GANTRY_AUTH_AUTH_H

#include "auth/keys.h"
#include "auth/sha256.h"
#include "dialect/dialect.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#define AUTH_REGION_MAX 63

/* ---- signatures seen before (auth.replay) ---- */

/* A table of the signatures that were used, each kept until it expires. Its size is bounded, and all cores
 * share it. If a set of the table is full, the access key with the most signatures in that set loses its
 * oldest signature, which is counted. So requests of one access key never displace a signature of another
 * key that has at most its even share. */
struct auth_replay;
/* Allocates a table of `bytes` bytes, 20.5 for each signature; the kernel provides its pages on first use.
 * Returns 0, -EINVAL or -ENOMEM. */
int auth_replay_new(uint64_t bytes, struct auth_replay **ret_table);
void auth_replay_free(struct auth_replay *t);
/* Returns true if the signature is new; also, if `once` is false, if it was used before from the same
 * address (IPv6: the same first 64 bits). access_key: key of the signer. Times: seconds of the wall clock.
 * Any thread. */
bool auth_replay_fresh(struct auth_replay *t, const char *access_key, const uint8_t signature[32],
		       const struct sockaddr *peer, bool once, uint64_t now_s, uint64_t expires_s);
/* Counts and logs a refused signature of that access key. Any thread. */
void auth_replay_refused(struct auth_replay *t, const char *access_key, const struct sockaddr *peer);

/* Number of signatures that the table keeps until they expire (except for some in ten thousand). If the
 * requests of n access keys fill the table, it keeps the nth part of them for each key (except for one in
 * a hundred), at any rate of the other keys. */
#define AUTH_REPLAY_USABLE(entries) ((entries) / 2)
#define AUTH_REPLAY_KEYS 32 /* limit of the access keys that are counted by name */
struct auth_replay_key {
	char access_key[AUTH_ACCESS_KEY_MAX + 1];
	uint64_t refused;
};
struct auth_replay_info {
	uint64_t entries;   /* capacity of the table, signatures */
	uint64_t refused;   /* refused requests since the start */
	uint64_t forgotten; /* signatures dropped before they expired */
	int key_nr;
	struct auth_replay_key by_key[AUTH_REPLAY_KEYS]; /* the first access keys that had a refused
	                                                  * signature */
};
void auth_replay_get_info(struct auth_replay *t, struct auth_replay_info *ret);

/* ---- one request ---- */

enum auth_payload {
	PAYLOAD_UNSIGNED,
	PAYLOAD_HASH,  /* payload_hash is the SHA-256 of the HTTP body; dialect/ verifies it as a checksum
	                * for object bytes */
	PAYLOAD_EMPTY, /* hash of the empty body */
	/* The body has aws-chunked frames: use struct auth_stream. */
	PAYLOAD_STREAM_SIGNED,
	PAYLOAD_STREAM_SIGNED_TRAILER,
	PAYLOAD_STREAM_UNSIGNED_TRAILER, /* also in unsigned requests on an anonymous listener */
};

static inline bool
auth_payload_is_stream(enum auth_payload p)
{
	return p >= PAYLOAD_STREAM_SIGNED;
}

#define AUTH_STAMP_LEN 16 /* "20130524T000000Z" */
#define AUTH_SCOPE_MAX (8 + 1 + AUTH_REGION_MAX + sizeof "/s3/aws4_request")

/* The requester. If anonymous is false and entry is NULL, it has no rights: the signer of a form whose
 * policy was not checked yet, or a preflight. */
struct identity {
	bool anonymous;
	bool presigned;
	enum auth_payload payload;
	uint8_t payload_hash[32];
	const struct auth_entry *entry; /* entry of the access key; valid as long as `keys` */
	struct auth_keys *keys;         /* a reference, which identity_put() releases */
	/* The values with which the chain of chunk signatures starts. */
	uint8_t signing_key[32], signature[32];
	char stamp[AUTH_STAMP_LEN + 1];
	char scope[AUTH_SCOPE_MAX];
};

/* Clears the identity. A cleared identity needs no identity_put(). */
void identity_init(struct identity *id);
/* Releases the reference to the keys and wipes the signing key; a second call is allowed. */
void identity_put(struct identity *id);

struct auth_env {
	struct auth_keys *keys;     /* NULL: the server has no access keys */
	const char *region;         /* required region; CONF_ANY_REGION: every region is accepted */
	struct auth_replay *replay; /* NULL: repeated signatures are not detected */
	enum conf_replay replay_mode;
	const struct sockaddr *peer;
	uint64_t skew_s; /* allowed difference between x-amz-date and the server's clock, seconds */
	bool sigv2;      /* presigned URLs and forms of version 2 are accepted (auth.sigv2) */
	bool relax;      /* x-rdma-info and x-cuobj-* may be unsigned (x-amz-* never) */
};

/* Returns the access key of the signer; NULL if the request is unsigned or the signer is not known yet. */
const char *identity_access_key(const struct identity *id);
/* Finds the access key named in Authorization or the query, even of an invalid request, for the log line
 * of a refusal. Writes at most cap bytes of it and returns their number; 0 if the request names no key. */
size_t auth_claimed_key(const struct dialect_in *in, char *out, size_t cap);

/* Authenticates the request. Returns FAULT_NONE and fills in *out, which the caller releases with
 * identity_put(); or returns the fault to answer, and *out is cleared. now_s: seconds of the wall clock. t
 * is NULL for a request that could not be parsed: its signature is verified, its body is not, so that only
 * a known signer learns the parse error. *ret_why is a static sentence. */
enum fault auth_check(const struct auth_env *env, const struct dialect_in *in, const struct target *t,
		      uint64_t now_s, struct identity *out, const char **ret_why);

/* The texts for which the server computes the signature, for a user whose client computes another
 * signature. They contain no secret; "..." replaces security tokens and descriptors. */
struct auth_explained {
	char to_sign[sizeof "AWS4-HMAC-SHA256\n\n\n" + AUTH_STAMP_LEN + AUTH_SCOPE_MAX + 64];
	size_t canonical_len;
	char canonical[6 << 10];
};
/* Fills in *out for a signed request. Returns false if the request is unsigned or the text is too long. */
bool auth_explain(const struct auth_env *env, const struct dialect_in *in, struct auth_explained *out);

/*
 * The form fields of a signed POST (OP_POST_OBJECT), with the values of the form; NULL for a missing
 * field. The signature covers the text of the policy. For auth_check_form(), *out is at first the result of
 * auth_check() for the request; on success it becomes the signer of the form, otherwise it is cleared.
 */
struct auth_form {
	const char *policy, *algorithm, *credential, *date, *signature, *security_token;
	size_t policy_len, algorithm_len, credential_len, date_len, signature_len, security_token_len;
	/* AWSAccessKeyId and signature, the fields of a form of version 2 */
	const char *access_key, *signature2;
	size_t access_key_len, signature2_len;
};
enum fault auth_check_form(const struct auth_env *env, const struct auth_form *form, uint64_t now_s,
			   struct identity *out, const char **ret_why);

/* ---- grants ---- */

enum auth_right {
	AUTH_READ,          /* read an object's bytes, headers and tags */
	AUTH_WRITE,         /* create an object and its uploads */
	AUTH_REPLACE,       /* replace or change an object; denied by no_overwrite */
	AUTH_DELETE,        /* delete an object; denied by no_delete */
	AUTH_LIST,          /* list the keys that begin with `key`; key NULL: learn that the bucket exists */
	AUTH_BUCKET,        /* create or configure a bucket */
	AUTH_DELETE_BUCKET, /* delete a bucket; denied by no_delete */
};
bool auth_may(const struct identity *id, enum auth_right right, const char *bucket, size_t bucket_len,
	      const char *key, size_t key_len);
/* Returns true if the identity has the rights to the request's target and copy source. For the keys in the
 * body of DeleteObjects the caller uses auth_may(). ListBuckets is allowed to every known access key, and
 * shows the buckets for which auth_may(AUTH_LIST) returns true. */
bool auth_allows(const struct identity *id, const struct target *t);
/* Returns the fault for a right that auth_may() denied: FAULT_NO_DELETE or FAULT_NO_OVERWRITE if that
 * condition of a grant denies it, FAULT_ACCESS_DENIED if no grant matches. */
enum fault auth_denial(const struct identity *id, enum auth_right right, const char *bucket,
		       size_t bucket_len, const char *key, size_t key_len);
/* Returns the fault, as auth_denial() does, for a request that auth_allows() denied. */
enum fault auth_denial_of(const struct identity *id, const struct target *t);

/* Returns true if a token of this identity may name the address gid: the access key has no list of
 * addresses (`gids`), or the address is in it. gid is NULL for a token without an address, which no list
 * contains. The addresses that rdma/ accepts are checked there. */
bool auth_gid_allowed(const struct identity *id, const uint8_t *gid);

/* ---- aws-chunked bodies ---- */

/*
 * Removes the frames of an aws-chunked body as its bytes arrive:
 *
 * while there are bytes: auth_stream_feed() consumes the framing (*ret_used) and finds the number of payload
 * bytes that follow it in `data`. The caller passes as many of them on as it has room for, and gives their
 * number to auth_stream_took(), which hashes them.
 *
 * The bytes of a chunk are passed on before its signature can be verified: the caller commits nothing
 * until auth_stream_end() has returned FAULT_NONE. One request, one thread.
 */
struct auth_stream {
	enum auth_payload payload;
	int state;
	bool have_trailer_name, have_trailer, have_trailer_signature;
	bool bare_lf;    /* the last line of the trailer had no CR */
	bool blank_seen; /* a blank line preceded the signature of the trailer */
	enum checksum_kind trailer;
	uint64_t decoded_len; /* announced length of the payload, bytes; UINT64_MAX: not announced */
	uint64_t decoded;     /* payload bytes received */
	uint64_t left;        /* payload bytes of this chunk that have not arrived yet */
	struct sha256 chunk;  /* hash of this chunk's bytes */
	struct sha256 lines;  /* hash of the trailer in canonical form */
	uint8_t previous[32]; /* signature of the chunk before this one, which the next signature covers */
	uint8_t given[32];    /* signature of this chunk, as received */
	const struct identity *id;
	uint16_t line_len;
	char line[192];
	struct checksum sum; /* checksum in the trailer */
	enum fault fault;
	const char *why;
};

/* Begins a body. id belongs to the caller and is valid as long as the stream. trailer: the checksum that
 * x-amz-trailer announces; SUM_NR if there is none. */
void auth_stream_init(struct auth_stream *s, const struct identity *id, uint64_t decoded_len,
		      enum checksum_kind trailer);
/* Consumes the framing at the front of data: *ret_used bytes; the next *ret_run bytes are payload. Returns
 * 0, or -EINVAL if the body is invalid; then auth_stream_end() returns the fault. */
int auth_stream_feed(struct auth_stream *s, const void *data, size_t len, size_t *ret_used, size_t *ret_run);
/* Counts and hashes the first n bytes of the payload that the last auth_stream_feed() found, after the
 * caller passed them on. */
void auth_stream_took(struct auth_stream *s, const void *run, size_t n);
/* Ends the body. Returns FAULT_NONE or the fault of the body. *ret_sum (may be NULL) is written if the
 * trailer has a checksum, which the caller must verify. */
enum fault auth_stream_end(struct auth_stream *s, struct checksum *ret_sum, const char **ret_why);

#endif
