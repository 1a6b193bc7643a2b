/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication and authorization: AWS Signature Version 4 (protocol.md 4.5; items 47, 81, 82), version 2 if
 * auth.sigv2 allows it, credentials with grants, and the aws-chunked bodies of signed requests. No I/O except
 * in auth_keys_load(); no allocation per request, and no call blocks.
 *
 * req/ calls auth_check() between dialect_parse() and dialect_token(), so that an unauthorized client learns
 * nothing about a descriptor; then auth_allows() for the target, and auth_may() for all other names in the
 * request.
 *
 * An unsigned request is served only if the listener has `anonymous`; a signed one on every s3 listener. An
 * invalid signature is refused even if an unsigned request would have been served. The scality dialect has no
 * authentication at all.
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

/* Remembers signatures until they expire; bounded, shared by all cores. If it is full, the access key with
 * most entries in the set loses its oldest one, and that is counted: requests of one access key never
 * displace a signature of another key that has at most its even share. */
struct auth_replay;
/* Makes a table of that size, 20.5 bytes for each signature; its pages are allocated on use. 0 or -errno. */
int auth_replay_new(uint64_t bytes, struct auth_replay **ret_table);
void auth_replay_free(struct auth_replay *t);
/* Returns true if the signature is new. If `once` is false, a signature that was seen
 * before is accepted from the same address, too: for IPv6 the first 64 bits are compared. access_key: of the
 * signer. Times are in seconds of the wall
 * clock. Any thread. */
bool auth_replay_fresh(struct auth_replay *t, const char *access_key, const uint8_t signature[32],
		       const struct sockaddr *peer, bool once, uint64_t now_s, uint64_t expires_s);
/* Counts and logs that a signature of that access key was refused.  Any thread. */
void auth_replay_refused(struct auth_replay *t, const char *access_key, const struct sockaddr *peer);

/* Number of signatures that the table keeps until they expire (except for some in ten thousand). If the
 * requests of n access keys fill it, each key keeps the nth part (except for one in a hundred), whatever the
 * others send. */
#define AUTH_REPLAY_USABLE(entries) ((entries) / 2)
#define AUTH_REPLAY_KEYS 32 /* limit of keys counted by name */
struct auth_replay_key {
	char access_key[AUTH_ACCESS_KEY_MAX + 1];
	uint64_t refused;
};
struct auth_replay_info {
	uint64_t entries;   /* capacity of the table, signatures */
	uint64_t refused;   /* refused requests since the start */
	uint64_t forgotten; /* signatures dropped before they expired */
	int key_nr;
	struct auth_replay_key by_key[AUTH_REPLAY_KEYS]; /* the first keys with a refused signature */
};
void auth_replay_get_info(struct auth_replay *t, struct auth_replay_info *ret);

/* ---- one request ---- */

enum auth_payload {
	PAYLOAD_UNSIGNED,
	PAYLOAD_HASH,  /* payload_hash covers the HTTP body; for object bytes dialect/ made it a checksum */
	PAYLOAD_EMPTY, /* hash of the empty body */
	/* The body has aws-chunked frames: use struct auth_stream. */
	PAYLOAD_STREAM_SIGNED,
	PAYLOAD_STREAM_SIGNED_TRAILER,
	PAYLOAD_STREAM_UNSIGNED_TRAILER, /* also without any signature, on an anonymous listener */
};

static inline bool
auth_payload_is_stream(enum auth_payload p)
{
	return p >= PAYLOAD_STREAM_SIGNED;
}

#define AUTH_STAMP_LEN 16 /* "20130524T000000Z" */
#define AUTH_SCOPE_MAX (8 + 1 + AUTH_REGION_MAX + sizeof "/s3/aws4_request")

/* The requester. Neither anonymous nor an entry: no rights (a form whose policy is not checked yet, a
 * preflight). */
struct identity {
	bool anonymous;
	bool presigned;
	enum auth_payload payload;
	uint8_t payload_hash[32];
	const struct auth_entry *entry; /* lives as long as keys */
	struct auth_keys *keys;         /* a reference; identity_put() */
	/* The start of the chain of chunk signatures. */
	uint8_t signing_key[32], signature[32];
	char stamp[AUTH_STAMP_LEN + 1];
	char scope[AUTH_SCOPE_MAX];
};

/* Clears the identity, which then needs no identity_put(). */
void identity_init(struct identity *id);
/* Releases the reference and wipes the key; a second call is allowed. */
void identity_put(struct identity *id);

struct auth_env {
	struct auth_keys *keys;     /* NULL: there are none */
	const char *region;         /* CONF_ANY_REGION: any */
	struct auth_replay *replay; /* NULL: off */
	enum conf_replay replay_mode;
	const struct sockaddr *peer;
	uint64_t skew_s; /* allowed difference between x-amz-date and our clock, in s */
	bool sigv2;      /* presigned URLs and forms of version 2 are accepted (auth.sigv2) */
	bool relax;      /* x-rdma-info and x-cuobj-* may be unsigned (x-amz-* never) */
};

/* Returns the access key of the signer; NULL: unsigned, or not determined yet. */
const char *identity_access_key(const struct identity *id);
/* Finds the access key named in Authorization or the query, even of an invalid request, for the log line of a
 * refusal. Returns its length, cut at cap; 0: none. */
size_t auth_claimed_key(const struct dialect_in *in, char *out, size_t cap);

/* Authenticates the request and checks whether its signer may do what it asks for. FAULT_NONE with *out
 * filled in (release it with identity_put()), or the fault to answer, with out as identity_init() makes it.
 * *ret_why: a static sentence. now_s: wall clock. t NULL: the request was not understood, and only a known
 * signer gets that error; the body is not checked. */
enum fault auth_check(const struct auth_env *env, const struct dialect_in *in, const struct target *t,
		      uint64_t now_s, struct identity *out, const char **ret_why);

/* The texts to which a signature was compared, for a user whose signer computes others: they contain no
 * secret, and "..." in place of a security token or a descriptor. */
struct auth_explained {
	char to_sign[sizeof "AWS4-HMAC-SHA256\n\n\n" + AUTH_STAMP_LEN + AUTH_SCOPE_MAX + 64];
	size_t canonical_len;
	char canonical[6 << 10];
};
/* Fills in those texts for a signed request; false if it is unsigned, or the text is too long. */
bool auth_explain(const struct auth_env *env, const struct dialect_in *in, struct auth_explained *out);

/*
 * The form fields of a signed POST (OP_POST_OBJECT): the signature covers the text of the policy. Values as
 * in the form; NULL: the field is missing. *out is auth_check()'s result for the request; on success it
 * becomes the signer of the form, else no one.
 */
struct auth_form {
	const char *policy, *algorithm, *credential, *date, *signature, *security_token;
	size_t policy_len, algorithm_len, credential_len, date_len, signature_len, security_token_len;
	/* AWSAccessKeyId and signature, of version 2 */
	const char *access_key, *signature2;
	size_t access_key_len, signature2_len;
};
enum fault auth_check_form(const struct auth_env *env, const struct auth_form *form, uint64_t now_s,
			   struct identity *out, const char **ret_why);

/* ---- grants ---- */

enum auth_right {
	AUTH_READ,    /* an object's bytes, headers, tags */
	AUTH_WRITE,   /* make an object; its uploads */
	AUTH_REPLACE, /* putting another object in its place, or changing it: not no_overwrite */
	AUTH_DELETE,  /* removing it: not no_delete */
	AUTH_LIST,    /* names in a bucket: key is the requested prefix; NULL key: that the bucket exists */
	AUTH_BUCKET,  /* make, configure a bucket */
	AUTH_DELETE_BUCKET, /* deleting it: not no_delete */
};
bool auth_may(const struct identity *id, enum auth_right right, const char *bucket, size_t bucket_len,
	      const char *key, size_t key_len);
/* Returns true if the identity may do what the request asks for with its target and its copy source.
 * DeleteObjects names its keys in the body: call auth_may() for each; ListBuckets is allowed to every known
 * key, and shows the buckets for which auth_may(AUTH_LIST) is true. */
bool auth_allows(const struct identity *id, const struct target *t);
/* Returns the fault for a denied right: the condition that prevents it, or FAULT_ACCESS_DENIED if no grant
 * matches. */
enum fault auth_denial(const struct identity *id, enum auth_right right, const char *bucket,
		       size_t bucket_len, const char *key, size_t key_len);
/* Returns that fault for a request which auth_allows() does not allow. */
enum fault auth_denial_of(const struct identity *id, const struct target *t);

/* Returns true if a token of this identity may name that address: one of the `gids` of the access key, if it
 * has such a list. NULL: a token without an address, which is in no list. rdma/ has its own rules. */
bool auth_gid_allowed(const struct identity *id, const uint8_t *gid);

/* ---- aws-chunked bodies ---- */

/*
 * Removes the frames of a body that is fed as it arrives:
 *
 *   while there are bytes: auth_stream_feed() takes the framing (*ret_used) and returns the number of payload
 *   bytes that follow it in `data`; pass those on, as many as there is room for, and pass their number to
 *   auth_stream_took(), which hashes them.
 *
 * A chunk's bytes are handed on before its signature can be known: nothing may be committed before
 * auth_stream_end() said FAULT_NONE.  One request, one thread.
 */
struct auth_stream {
	enum auth_payload payload;
	int state;
	bool have_trailer_name, have_trailer, have_trailer_signature;
	bool bare_lf;    /* the last line of the trailer had no CR */
	bool blank_seen; /* a blank line preceded the signature of the trailer */
	enum checksum_kind trailer;
	uint64_t decoded_len; /* announced length; UINT64_MAX: none */
	uint64_t decoded;     /* payload bytes so far */
	uint64_t left;        /* bytes left of this chunk */
	struct sha256 chunk;  /* hash of this chunk's bytes */
	struct sha256 lines;  /* hash of the trailer in canonical form */
	uint8_t previous[32]; /* the signature from which the next one chains */
	uint8_t given[32];    /* signature of this chunk, as received */
	const struct identity *id;
	uint16_t line_len;
	char line[192];
	struct checksum sum; /* checksum in the trailer */
	enum fault fault;
	const char *why;
};

/* Begins a body. id belongs to the caller and must live as long as the stream. trailer: the checksum
 * announced by x-amz-trailer, or SUM_NR for none. */
void auth_stream_init(struct auth_stream *s, const struct identity *id, uint64_t decoded_len,
		      enum checksum_kind trailer);
/* Removes framing at the front of data, see above. 0; -EINVAL: the body is invalid, and auth_stream_end()
 * returns the fault. */
int auth_stream_feed(struct auth_stream *s, const void *data, size_t len, size_t *ret_used, size_t *ret_run);
/* Counts and hashes n bytes of the run found by the last auth_stream_feed(), after they were passed on. */
void auth_stream_took(struct auth_stream *s, const void *run, size_t n);
/* Ends the body. FAULT_NONE, and *ret_sum (may be NULL) is set if the trailer has a checksum, which the
 * caller must verify; or the fault of the body. */
enum fault auth_stream_end(struct auth_stream *s, struct checksum *ret_sum, const char **ret_why);

#endif
