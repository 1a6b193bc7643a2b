/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit - events: the changes that requests and control calls make, with client and time, and the refusals. An
 * event is written to the audit stream, a file of JSON lines that this module rotates at a size, and to the
 * followers of `gantry trace`. Any thread may call these functions, unless stated otherwise.
 *
 * audit_put() never waits for the file: records wait in memory, at most 1 MiB of them, for a thread that
 * writes them. Records that do not fit are dropped and counted, and a record of the stream reports their number. While
 * the file cannot be written, the thread tries again, and no record is lost until the memory is full.
 *
 * Unknown clients can cause refusals without limit, and could thus replace the records of changes. The stream
 * therefore takes at most AUDIT_REFUSALS_MAX refusals a second; the next one that it takes has the number of
 * those that it did not take.
 */
#ifndef GANTRY_AUDIT_AUDIT_H
#define GANTRY_AUDIT_AUDIT_H

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define AUDIT_REFUSALS_MAX 100
#define AUDIT_KEEP_MAX 100 /* largest number of old files */

/* CHANGE: a change, or the failed attempt of a known client to make one. REFUSAL: the rights of the client were not
 * sufficient, or the client is unknown. OTHER: reads, and messages that are not a request. */
enum audit_kind { AUDIT_CHANGE, AUDIT_REFUSAL, AUDIT_OTHER };

/* An event. Texts that are NULL and spans without bytes are left out of the record. */
struct audit_event {
	enum audit_kind kind;
	const char *op; /* name of the operation */
	/* subject of the event, in addition to bucket and key: path of a control call, access key */
	const char *subject;
	const char *args; /* arguments of a control call, a JSON object */
	bool has_status;
	int status;        /* HTTP status; 0: the client had gone before the answer */
	const char *fault; /* code of the error */
	struct span bucket, key;
	bool has_size;
	uint64_t size_bytes; /* size of the object that was written */
	const char *etag;
	const char *peer; /* address of the client */
	const char *access_key, *claimed_access_key;
	const char
		*secret_id;  /* id of the secret that signed, or of the secret of the access key `subject` */
	const char *request; /* id of the request */
	/* true: the event is the end of a request, and the members below count */
	bool is_request;
	uint64_t us; /* duration of the request in microseconds */
	uint64_t rdma_bytes, http_bytes;
	const char *declined; /* reason why RDMA was declined */
};

/* Returns true if an event of this kind has a reader: the stream or a follower. */
bool audit_wants(enum audit_kind kind);
/* Writes the event to the stream and to the followers whose filter it passes. */
void audit_put(const struct audit_event *e);
/* Writes the event that the daemon itself has removed an object because of its age, by a lifecycle rule or because it
 * has expired (op "Expire"), or has aborted an upload (op "ExpireUpload"). */
void audit_expired(const char *op, const char *bucket, size_t bucket_len, const char *key, size_t key_len);

/* ---- the stream (stream.c) ---- */

struct audit_conf {
	const char *path;    /* path of the file; NULL: no stream */
	uint64_t size_bytes; /* largest size of the file; a full file becomes an old file */
	int keep;            /* number of old files that are kept: PATH.1, the latest, to PATH.keep */
	bool reads;          /* true: the stream has events of the kind AUDIT_OTHER */
};
/* Begins, changes or ends the stream. The file is opened again, also if nothing changes. Returns 0, or the
 * -errno of starting the thread. Called by one thread at a time. */
int audit_set(const struct audit_conf *conf);
/* Waits for at most max_ns until all records are written, and ends the stream. Writes a log line if records
 * are lost. */
void audit_stop(uint64_t max_ns);

struct audit_info {
	bool is_on;
	uint64_t records;    /* number of records written */
	uint64_t dropped;    /* number of records dropped */
	uint64_t unreported; /* number of dropped records that no record of the stream reports yet */
	uint64_t held;       /* number of refusals beyond AUDIT_REFUSALS_MAX */
	int error;           /* -errno of the last attempt to write; 0: it succeeded, or is in progress */
	uint64_t
		waits_ns; /* time for which the oldest record has been waiting to be written; 0: none waits */
};
void audit_get_info(struct audit_info *ret);

/* ---- followers (follow.c): live views of events ---- */

#define AUDIT_FOLLOWERS_MAX 8
/* A follower that has not read for this time is removed. */
#define AUDIT_FOLLOW_NS (10 * 1000000000ull)

/* Conditions for events; an empty text and a 0 are no condition. */
struct audit_filter {
	char bucket[64], access_key[132], client[48], op[40];
	bool errors;      /* only events with a status of 400 or more, or of clients that had gone */
	uint64_t slow_us; /* only requests that took at least this time, in microseconds */
};
/* Adds a follower, and writes its id to ret_id. Returns 0; -EBUSY: there are AUDIT_FOLLOWERS_MAX already;
 * -ENOMEM or -EIO. */
int audit_follow(const struct audit_filter *filter, char ret_id[17]);
/* Writes the events since the last call as {"lost":N,"events":[...]}. At most 256 KiB of events wait;
 * further ones are lost and counted. Returns 0; -ENOENT: there is no such follower. */
int audit_follow_read(const char *id, FILE *out);
/* Removes a follower, if it exists. */
void audit_follow_end(const char *id);

#endif
