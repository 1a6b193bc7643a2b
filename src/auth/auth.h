/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is asking and may they: AWS Signature Version 4 (protocol.md 4.5; items 47, 81, 82), version 2 where
 * auth.sigv2 allows it, credentials with grants, and the aws-chunked bodies that signatures bring with them.  No I/O but auth_keys_load(); nothing
 * here allocates per request or blocks.
 *
 * req/ calls auth_check() between dialect_parse() and dialect_token(), so that who may not ask learns nothing
 * about a descriptor; then auth_allows() for the target, and auth_may() for whatever else a request names.
 *
 * An unsigned request is served only where the listener says `anonymous`; a signed one on every s3 listener;
 * a signature that does not hold is refused also where an unsigned request would have been served.  The
 * scality dialect has no authentication at all.
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

/* Remembers signatures until they expire; bounded, shared by all cores.  Where it is full, the access key that has most
 * there loses the one that was entered first, and that is counted: requests of one access key put out no signature of
 * another one that has no more than its even share. */
struct auth_replay;
/* Makes a table of so many bytes, 20.5 for each signature; they are memory as they are used.  0 or -errno. */
int auth_replay_new(uint64_t bytes, struct auth_replay **ret_table);
void auth_replay_free(struct auth_replay *t);
/* Tells whether the signature is seen for the first time, or, unless it is good once only, comes from the
 * same address as then: of IPv6 the first 64 bits count.  access_key: of the signer.  Times are in seconds of the wall
 * clock.  Any thread. */
bool auth_replay_fresh(struct auth_replay *t, const char *access_key, const uint8_t signature[32],
		       const struct sockaddr *peer, bool once, uint64_t now_s, uint64_t expires_s);
/* Counts and logs that a signature of that access key was refused.  Any thread. */
void auth_replay_refused(struct auth_replay *t, const char *access_key, const struct sockaddr *peer);

/* Number of signatures that the table keeps for their whole time (but for some in ten thousand); where the requests of n
 * access keys fill it, each of these keeps the nth part (but for one in a hundred), whatever the others send. */
#define AUTH_REPLAY_USABLE(entries) ((entries) / 2)
#define AUTH_REPLAY_KEYS 32 /* that are counted by name */
struct auth_replay_key {
	char access_key[AUTH_ACCESS_KEY_MAX + 1];
	uint64_t refused;
};
struct auth_replay_info {
	uint64_t entries;   /* signatures that there is room for */
	uint64_t refused;   /* requests, since the start */
	uint64_t forgotten; /* signatures, before they expired */
	int key_nr;
	struct auth_replay_key by_key[AUTH_REPLAY_KEYS]; /* the first that were refused */
};
void auth_replay_get_info(struct auth_replay *t, struct auth_replay_info *ret);

/* ---- one request ---- */

enum auth_payload {
	PAYLOAD_UNSIGNED,
	PAYLOAD_HASH,  /* payload_hash is of the HTTP body; for object bytes dialect/ made it a checksum */
	PAYLOAD_EMPTY, /* hash of the empty body */
	/* The body is in aws-chunked frames: through struct auth_stream. */
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

/* Neither anonymous nor an entry: may nothing (a form whose policy is not checked yet, a preflight). */
struct identity {
	bool anonymous;
	bool presigned;
	enum auth_payload payload;
	uint8_t payload_hash[32];
	const struct auth_entry *entry; /* lives as long as keys */
	struct auth_keys *keys;         /* a reference; identity_put() */
	/* What chunk signatures chain from. */
	uint8_t signing_key[32], signature[32];
	char stamp[AUTH_STAMP_LEN + 1];
	char scope[AUTH_SCOPE_MAX];
};

/* Makes it nobody's, which needs no identity_put(). */
void identity_init(struct identity *id);
/* Gives the reference back, wipes the key; fine twice. */
void identity_put(struct identity *id);

struct auth_env {
	struct auth_keys *keys;     /* NULL: there are none */
	const char *region;         /* CONF_ANY_REGION: any */
	struct auth_replay *replay; /* NULL: off */
	enum conf_replay replay_mode;
	const struct sockaddr *peer;
	uint64_t skew_s; /* how far x-amz-date may be from our clock */
	bool sigv2;      /* presigned URLs and forms of version 2 are taken (auth.sigv2) */
	bool relax;      /* x-rdma-info and x-cuobj-* need not be signed (x-amz-* always) */
};

/* Returns the access key of whoever signed; NULL: nobody did, or nobody knows yet. */
const char *identity_access_key(const struct identity *id);
/* Finds the access key that a request names in its Authorization or its query, whatever else is wrong with
 * it, for the log of one that was refused.  Returns its length, cut at cap; 0: it names none. */
size_t auth_claimed_key(const struct dialect_in *in, char *out, size_t cap);

/* Finds out who signed the request and whether they may do what it asks for.  FAULT_NONE with *out filled
 * in (identity_put() it), or what to answer, with out as identity_init() makes it.  *ret_why: a static
 * sentence. now_s: wall clock.  t NULL: what they ask for was not understood, and they are told so only if
 * they are somebody; nothing is said of a body. */
enum fault auth_check(const struct auth_env *env, const struct dialect_in *in, const struct target *t,
		      uint64_t now_s, struct identity *out, const char **ret_why);

/* What a signature was held against, for whoever looks for what their signer does otherwise: no secret is in
 * it, and "..." where there is a security token or a descriptor. */
struct auth_explained {
	char to_sign[sizeof "AWS4-HMAC-SHA256\n\n\n" + AUTH_STAMP_LEN + AUTH_SCOPE_MAX + 64];
	size_t canonical_len;
	char canonical[6 << 10];
};
/* Fills it in for a signed request; false when the request is not, or the text is too long. */
bool auth_explain(const struct auth_env *env, const struct dialect_in *in, struct auth_explained *out);

/*
 * The form fields of a signed POST (OP_POST_OBJECT): the signature is over the text of the policy.  Values as
 * they stand in the form; NULL where a field is missing.  *out is what auth_check() made of the request; on
 * success it is who signed the form, else nobody.
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
	AUTH_REPLACE, /* ... and put another in its place, or change it: not no_overwrite */
	AUTH_DELETE,  /* ... and remove it: not no_delete */
	AUTH_LIST,    /* names in a bucket: key is the prefix asked for; NULL key: that the bucket exists */
	AUTH_BUCKET,  /* make, configure a bucket */
	AUTH_DELETE_BUCKET, /* ... and delete it: not no_delete */
};
bool auth_may(const struct identity *id, enum auth_right right, const char *bucket, size_t bucket_len,
	      const char *key, size_t key_len);
/* Tells whether the identity may do what the request asks for with its target and its copy source.
 * DeleteObjects names its keys in the body: auth_may() for each; ListBuckets is allowed to everybody
 * known, and shows what auth_may(AUTH_LIST) says. */
bool auth_allows(const struct identity *id, const struct target *t);
/* Returns what to answer who may not do that: the condition that is in the way, or that there is no grant. */
enum fault auth_denial(const struct identity *id, enum auth_right right, const char *bucket,
		       size_t bucket_len, const char *key, size_t key_len);
/* Returns it for a request that auth_allows() does not allow. */
enum fault auth_denial_of(const struct identity *id, const struct target *t);

/* Tells whether a token of theirs may name that address: one of the `gids` of the access key, if it has
 * such a list.  NULL: a token without an address, which is in no list.  Says nothing of what rdma/ allows. */
bool auth_gid_allowed(const struct identity *id, const uint8_t *gid);

/* ---- aws-chunked bodies ---- */

/*
 * Takes the frames off a body that is fed as it comes:
 *
 *   while there are bytes: auth_stream_feed() takes what is framing (*ret_used) and says how many payload
 *   bytes lie behind it in `data`; hand those on, as many as there is room for, and say how many with
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
	bool blank_seen; /* one stood before the signature of the trailer */
	enum checksum_kind trailer;
	uint64_t decoded_len; /* promised; UINT64_MAX: not */
	uint64_t decoded;     /* payload bytes so far */
	uint64_t left;        /* of this chunk */
	struct sha256 chunk;  /* of this chunk's bytes */
	struct sha256 lines;  /* of the trailer, in canonical form */
	uint8_t previous[32]; /* signature that the next one chains from */
	uint8_t given[32];    /* this chunk's, as it came */
	const struct identity *id;
	uint16_t line_len;
	char line[192];
	struct checksum sum; /* what the trailer said */
	enum fault fault;
	const char *why;
};

/* Begins a body.  id stays the caller's and must live as long as the stream. trailer: what x-amz-trailer
 * announced, or SUM_NR for none. */
void auth_stream_init(struct auth_stream *s, const struct identity *id, uint64_t decoded_len,
		      enum checksum_kind trailer);
/* Takes framing off the front of data, see above.  0; -EINVAL: the body is bad, and auth_stream_end() says
 * how. */
int auth_stream_feed(struct auth_stream *s, const void *data, size_t len, size_t *ret_used, size_t *ret_run);
/* Counts and hashes n bytes of the run that the last auth_stream_feed() found, which were handed on. */
void auth_stream_took(struct auth_stream *s, const void *run, size_t n);
/* Ends the body.  FAULT_NONE, and *ret_sum (may be NULL) is set if a trailer brought a checksum, which the
 * caller has to verify; or what is wrong. */
enum fault auth_stream_end(struct auth_stream *s, struct checksum *ret_sum, const char **ret_why);

#endif
