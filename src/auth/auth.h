/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication and authorization: AWS Signature Version 4 (protocol.md 4.5; items 47, 81, 82), version 2 if
 * auth.sigv2 allows it, credentials with grants, and the aws-chunked bodies of signed requests. Only
 * auth_keys_load() does I/O. The check of a request allocates no memory and does not block.
 *
 * req/ calls auth_check() between dialect_parse() and dialect_token(), so that an unauthorized client learns
 * nothing about a descriptor. Then req/ calls auth_allows() for the target, and auth_may() for all other
 * names in the request.
 *
 * A listener serves unsigned requests only if its `anonymous` is true. Every s3 listener serves signed
 * requests. An anonymous listener, too, refuses a request with an invalid signature. The scality dialect has
 * no authentication at all.
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

/* A table of the signatures that were used, of bounded size and shared by all cores. A signature stays until
 * it expires, or until its set (25 entries of the table) is full: then the access key with the most
 * signatures in the set loses its oldest signature, and auth_replay_info.forgotten counts this loss. So no
 * access key can displace the signatures of another key that uses at most an even share of the set. */
struct auth_replay;
/* Makes a table of `bytes` bytes, 20.5 for each signature. The kernel allocates a page of the table when it
 * is first used. Returns 0, -ENOMEM, or -EIO if the kernel gave no random key. */
int auth_replay_new(uint64_t bytes, struct auth_replay **ret_table);
void auth_replay_free(struct auth_replay *t);
/* Returns true if the signature is new, and remembers it until expires_s. A signature that was used before:
 * returns true only if `once` is false and the signature came from the same address (IPv6: the same first 64
 * bits). access_key: key of the signer. Times: seconds since 1970. Any thread may call this function. */
bool auth_replay_fresh(struct auth_replay *t, const char *access_key, const uint8_t signature[32],
		       const struct sockaddr *peer, bool once, uint64_t now_s, uint64_t expires_s);
/* Counts and logs a request of that access key that was refused because its signature was used before. Any
 * thread may call this function. */
void auth_replay_refused(struct auth_replay *t, const char *access_key, const struct sockaddr *peer);

/* Number of signatures that a table of `entries` entries is sure to keep until they expire, except for some
 * in ten thousand. If n access keys fill the table, each key is sure of 1/n of this number (except for one
 * signature in a hundred), however many requests the other keys send. */
#define AUTH_REPLAY_USABLE(entries) ((entries) / 2)
#define AUTH_REPLAY_KEYS 32 /* number of access keys whose refused requests are counted each */
struct auth_replay_key {
	char access_key[AUTH_ACCESS_KEY_MAX + 1];
	uint64_t refused;
};
struct auth_replay_info {
	uint64_t entries; /* capacity of the table, in signatures */
	/* number of requests refused since the start because their signature was used before */
	uint64_t refused;
	uint64_t forgotten; /* number of signatures dropped before they expired */
	int key_nr;
	struct auth_replay_key by_key[AUTH_REPLAY_KEYS]; /* the first access keys that had a refused
	                                                  * signature */
};
void auth_replay_get_info(struct auth_replay *t, struct auth_replay_info *ret);

/* ---- one request ---- */

enum auth_payload {
	PAYLOAD_UNSIGNED,
	PAYLOAD_HASH,  /* SHA-256 of the HTTP body; dialect/ verifies it as a checksum for object bytes */
	PAYLOAD_EMPTY, /* hash of the empty body */
	/* The body has aws-chunked frames: use struct auth_stream. */
	PAYLOAD_STREAM_SIGNED,
	PAYLOAD_STREAM_SIGNED_TRAILER,
	/* chunks are unsigned; also in unsigned requests on an anonymous listener */
	PAYLOAD_STREAM_UNSIGNED_TRAILER,
};

static inline bool
auth_payload_is_stream(enum auth_payload p)
{
	return p >= PAYLOAD_STREAM_SIGNED;
}

#define AUTH_STAMP_LEN 16 /* length of a time of a signature, such as "20130524T000000Z" */
#define AUTH_SCOPE_MAX (8 + 1 + AUTH_REGION_MAX + sizeof "/s3/aws4_request")

/* The sender of a request. A sender that is not anonymous and has no entry has no rights: the sender of a
 * form whose policy was not checked yet, or of a preflight request. */
struct identity {
	bool anonymous;
	bool presigned;
	enum auth_payload payload;
	const struct auth_entry *entry; /* entry of the access key, which belongs to `keys` */
	/* the keys that contain `entry`: a reference, which identity_put() releases */
	struct auth_keys *keys;
	/* The values from which the signature of the first chunk of an aws-chunked body is computed. */
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
	bool relax;      /* the signature need not cover x-rdma-info and x-cuobj-* (it must cover x-amz-*) */
};

/* Returns the access key of the sender; NULL if the request is unsigned, or if the sender of a form is not
 * known yet. */
const char *identity_access_key(const struct identity *id);
/* Returns the id of the secret that signed the request (AUTH_SECRET_ID_LEN); NULL where identity_access_key()
 * returns NULL. */
const char *identity_secret_id(const struct identity *id);
/* Finds the access key that the request names in Authorization or in the query, for the log line of a
 * refusal; the request may be invalid. Writes at most cap bytes of the key to out, and returns their number;
 * 0 if the request names no key. */
size_t auth_claimed_key(const struct dialect_in *in, char *out, size_t cap);

/* Authenticates the request. Returns FAULT_NONE and fills in *out, which the caller releases with
 * identity_put(); or clears *out and returns the fault to answer, with a static sentence in *ret_why. now_s:
 * seconds since 1970. t: the parsed request; NULL if the parser refused it. Then only the signature is
 * verified, not the body, and the caller reports the parse error only to a sender with a valid signature. */
enum fault auth_check(const struct auth_env *env, const struct dialect_in *in, const struct target *t,
		      uint64_t now_s, struct identity *out, const char **ret_why);

/* The texts from which the server computes the signature of a request. They show a user why the client
 * computed another signature. They contain no secret: "..." replaces security tokens and descriptors. */
struct auth_explained {
	char to_sign[sizeof "AWS4-HMAC-SHA256\n\n\n" + AUTH_STAMP_LEN + AUTH_SCOPE_MAX + 64];
	size_t canonical_len;
	char canonical[6 << 10];
};
/* Fills in *out for a signed request. Returns true; false if the request is unsigned or the canonical request
 * does not fit. */
bool auth_explain(const struct auth_env *env, const struct dialect_in *in, struct auth_explained *out);

/*
 * The form fields of a signed POST (OP_POST_OBJECT); NULL for a missing field. The signature of the form
 * covers the text of the policy. The caller of auth_check_form() passes in *out the identity that
 * auth_check() has filled in for the request. On success *out becomes the identity of the signer of the form;
 * after a fault *out is cleared.
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
	AUTH_READ,    /* read an object's bytes, headers and tags */
	AUTH_WRITE,   /* create an object and its uploads */
	AUTH_REPLACE, /* replace or change an object; denied by no_overwrite */
	AUTH_DELETE,  /* delete an object; denied by no_delete */
	/* list the keys that begin with `key`; with key NULL: learn whether the bucket exists */
	AUTH_LIST,
	AUTH_BUCKET,        /* create or configure a bucket */
	AUTH_DELETE_BUCKET, /* delete a bucket; denied by no_delete */
};
bool auth_may(const struct identity *id, enum auth_right right, const char *bucket, size_t bucket_len,
	      const char *key, size_t key_len);
/* Returns true if the identity has the rights to the target and the copy source of the request.
 * DeleteObjects: the caller asks auth_may() for each key in the body. ListBuckets: returns true for every
 * known access key, and the caller lists only buckets for which auth_may() with AUTH_LIST returns true. */
bool auth_allows(const struct identity *id, const struct target *t);
/* Returns the fault for a right that auth_may() denied: FAULT_NO_DELETE or FAULT_NO_OVERWRITE if no_delete or
 * no_overwrite of a matching grant denies it, FAULT_ACCESS_DENIED if no grant matches. */
enum fault auth_denial(const struct identity *id, enum auth_right right, const char *bucket,
		       size_t bucket_len, const char *key, size_t key_len);
/* Returns the fault for a request that auth_allows() denied: FAULT_NO_DELETE, FAULT_NO_OVERWRITE or
 * FAULT_ACCESS_DENIED (auth_denial()). */
enum fault auth_denial_of(const struct identity *id, const struct target *t);

/* Returns true if the identity may send a token with the address gid: the access key has no list of addresses
 * (`gids`), or the list contains gid. gid NULL: the token has no address; no list contains it. rdma.allow is
 * not checked here, but in rdma/. */
bool auth_gid_allowed(const struct identity *id, const uint8_t *gid);

/* ---- aws-chunked bodies ---- */

/*
 * Removes the frames of an aws-chunked body as its bytes arrive.
 *
 * While there are bytes, auth_stream_feed() consumes the framing (*ret_used) and returns the number of
 * payload bytes that follow it in `data` (*ret_run). The caller passes on as many payload bytes as it has
 * room for, and calls auth_stream_took() with these bytes, which hashes them.
 *
 * The bytes of a chunk are passed on before the signature of the chunk can be verified. So the caller commits
 * nothing until auth_stream_end() has returned FAULT_NONE. A stream belongs to one request and one thread.
 */
struct auth_stream {
	enum auth_payload payload;
	int state;
	bool have_trailer_name, have_trailer, have_trailer_signature;
	bool bare_lf;    /* the last line of the trailer had no CR */
	bool blank_seen; /* a blank line preceded the signature of the trailer */
	enum checksum_kind trailer;
	uint64_t decoded_len; /* announced length of the payload, bytes; UINT64_MAX: not announced */
	uint64_t decoded;     /* number of payload bytes received */
	uint64_t left;        /* number of payload bytes of this chunk that have not arrived yet */
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

/* Begins a body. id: identity of the sender, which belongs to the caller and must stay valid as long as the
 * stream. trailer: kind of the checksum that x-amz-trailer announces; SUM_NR: none is announced. */
void auth_stream_init(struct auth_stream *s, const struct identity *id, uint64_t decoded_len,
		      enum checksum_kind trailer);
/* Consumes the framing at the front of data. *ret_used: number of bytes consumed; *ret_run: number of payload
 * bytes that follow them in data. Returns 0; -EINVAL: the body is invalid, and auth_stream_end() returns the
 * fault. */
int auth_stream_feed(struct auth_stream *s, const void *data, size_t len, size_t *ret_used, size_t *ret_run);
/* Counts and hashes n payload bytes at run, which the caller has passed on. run: the position in data after
 * the framing that the last auth_stream_feed() consumed; n: at most its *ret_run. */
void auth_stream_took(struct auth_stream *s, const void *run, size_t n);
/* Ends the body. Returns FAULT_NONE or the fault of the body. If the trailer has a checksum, *ret_sum (may be
 * NULL) receives this checksum; the caller must compare it with the checksum of the payload. */
enum fault auth_stream_end(struct auth_stream *s, struct checksum *ret_sum, const char **ret_why);

#endif
