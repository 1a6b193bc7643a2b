/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the request machine: struct req, its steps, and the functions by which a step selects the
 * next step.
 *
 * A step is a function. It never blocks, and ends with the choice of the next step: req_go(), req_await(),
 * req_fail(). Only req_run() calls steps. Completions only store their result and put the request on the
 * core's ready list (req_wake()).
 */
#ifndef GANTRY_REQ_MACHINE_H
#define GANTRY_REQ_MACHINE_H

#include "auth/auth.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/timer.h"
#include "chan/chan.h"
#include "s3doc/cors.h"
#include "dialect/text.h"
#include "s3doc/xml.h"
#include "req/operation.h"
#include "req/req.h"
#include "stats/stats.h"
#include "store/store.h"
#include "walk/bucket_config.h"
#include "xfer/xfer.h"

#define REQ_HEADERS_MAX 24
#define REQ_HEADER_BYTES 2048
#define REQ_TEXT_BYTES 8192
#define REQ_MAGIC 0x52455131u
#define REQ_LINE_BYTES 320 /* size, in bytes, of the line of a request in the dump */
/* Limit of the text (XML bodies and lists) that all requests of a core have allocated, in bytes. */
#define REQ_TEXT_TOTAL (256u << 20)
#define REQ_PAGE_BYTES (1u << 20) /* largest page of a list, in bytes */

/* The progress of a request: it determines the effect of a deadline or a lost client (protocol.md 4.7). */
enum req_phase {
	PHASE_FRONT,  /* no operation was started yet */
	PHASE_QUEUED, /* the request waits for a ticket or a lease */
	PHASE_MOVING, /* bytes move */
	PHASE_COMMIT, /* the store has the commit, so the request cannot be cancelled */
	PHASE_REPLY,  /* the answer is complete */
};

/* Pools of optional parts of requests, made at start for limits.requests (part.c). */
enum req_pool {
	POOL_CHANGE,    /* parts of type struct req_change */
	POOL_ATTRS,     /* parts of DIALECT_ATTRS_MAX bytes, for attributes */
	POOL_COPY,      /* parts of type struct copy_source */
	POOL_LIST,      /* parts of type struct list_query */
	POOL_ERROR,     /* parts for the body of an error */
	POOL_JOB,       /* memory that an operation needs in addition to struct req */
	POOL_LARGE_JOB, /* memory that a large operation needs in addition to struct req */
	POOL_NR
};
#define REQ_JOB_BYTES (4u << 10)
#define REQ_LARGE_JOB_BYTES (40u << 10)
#define REQ_ERROR_BYTES (8u << 10)

/* Requests without a descriptor, counted by client (xfer_client_of()). The table is larger than that of
 * xfer/, so that clients rarely share an entry. */
#define SLOT_CLIENTS 4096
struct slots {
	int held[SLOT_CLIENTS];         /* number of requests of each client, except revoked ones */
	struct list reqs[SLOT_CLIENTS]; /* requests of each client; the oldest is first */
};

struct reqs {
	struct req_env env;
	struct req *pool;
	int nr, live_nr;
	struct list free, live, ready;
	struct pool parts[POOL_NR];
	struct xfer_pool pieces, http_pieces;
	/* number of requests without a descriptor, and its limit: the others are reserved for requests with a
	 * descriptor (pace.c) */
	int plain_nr, plain_max;
	int lane_nr[XFER_LANES]; /* number of requests for each lane of store_lane() */
	int plain_revoked;       /* number of requests, among the plain_nr, that are being ended in favour of
	                          * other requests */
	struct slots slots;
	struct timer pace;  /* timer that checks slow clients while other requests wait */
	uint64_t looked_ns; /* time of the last check of slow clients */
	bool draining;
	struct req_conf *use; /* configuration of new requests; NULL: env.conf, whose users are not counted */
	step_fn drain;        /* step defined in drain.c, for files that drain.c depends on */
	uint64_t next_id, id_salt;
	uint64_t client_key[2]; /* secret key for xfer_client_of() */
	uint64_t rng[2];        /* state of the random numbers for ETags of PUTs with a descriptor */
	size_t text_bytes;      /* size in bytes of the text memory that requests hold (req_hold_text()) */
};

/* The store operations of a request that changes an object or bucket. */
struct req_change {
	struct req *rq;
	bool is_put;
	union {
		struct store_put put;
		/* removal of an object or bucket; also a change of an object's attributes */
		struct store_del del;
	};
};

struct req {
	/* Fields that are kept from request to request. */
	struct list link;     /* link in the list of free or live requests */
	struct digest digest; /* digests, whose contexts are reused by later requests */

	/* ---- from here on zeroed for each request, up to `in` ---- */
	uint32_t magic;
	struct reqs *rs;
	struct list ready; /* link in rs->ready */
	uint64_t id, began_ns;
	void *conn;
	const struct conf_listen *listen;

	/* next step of the request */
	step_fn step;
	const char *step_name;
	const char *wait;     /* name of the current wait; NULL while a step runs */
	struct req_conf *use; /* configuration that the request uses until its end */
	enum req_phase phase;
	enum fault fault; /* first fault of the request; FAULT_NONE: none so far */
	const char *why;  /* sentence for the error body, in place of the fault's sentence */
	int errno_seen;   /* -errno of the fault, for the log */
	bool replied;     /* true: the reply is ready for http/ */
	bool ended;       /* true: http/ has ended the request */
	bool sent, gone;  /* sent: the reply was sent; gone: the client has closed its side */
	bool is_tokened;
	bool must_route; /* true: the token's address is allowed only with a route of the kernel */
	/* true: the token names an address outside rdma.allow, and the request will be declined */
	bool not_allowed;
	/* true: the reply was sent while the store still commits, or while the disk still uses pieces of the
	 * request */
	bool detached;
	/* true: the request has a hold for pieces that the disk uses, until the transfer has ended */
	bool disk_has;
	int holds;     /* number of store operations of the request in flight */
	bool awaiting; /* true: the step must not run before the operation started by req_await() has ended */
	bool revoked;  /* true: the request is being ended in favour of waiting requests (pace.c) */
	struct list slot;      /* link in the client's list of requests without a descriptor */
	uint8_t lane;          /* lane of the key (store_lane()) + 1, while it is counted; 0: not counted */
	struct pace_mark mark; /* progress of a body or an answer that xfer does not move */

	/* time in ns spent in each phase (trace.c) */
	uint64_t phase_ns[STATS_PHASE_NR];
	uint64_t mark_ns; /* time up to which phase_ns has been updated */
	uint64_t wire_seen_ns, reply_ns;
	const char *was_waiting;
	int trace_left;            /* number of trace lines left; 0: not traced */
	struct trace_steps *steps; /* latest steps of a traced request; NULL: none */
	struct timer deadline, linger;
	uint64_t total_deadline_ns, progress_limit_ns;
	uint64_t answer_by_ns; /* time at which the client expects the answer; UINT64_MAX: unknown */
	uint64_t progress_ns;  /* time of the last progress that xfer does not see */

	/* wants_body: the operation takes a body; body_ended: the body is complete */
	bool wants_body, body_ended;
	/* Takes the bytes of the body as they arrive: body_take(), or frames_feed(), which passes the decoded
	 * bytes to body_take(). */
	take_fn feed;
	void (*feed_end)(struct req *rq); /* Called at the end of the body; NULL: nothing is called. */
	take_fn take; /* destination of the bytes of body_take(); NULL: the bytes are not taken yet */

	/* Fields of the operation. */
	const struct op_hooks *hooks; /* hooks of the operation; NULL: none, or the operation has not begun */
	step_fn then;                 /* next step after steps that several operations share */
	step_fn bucket_next;          /* next step after req_need_bucket() */
	const char *bucket_next_name;
	step_fn leased, not_leased; /* next steps after req_lease(), with and without a lease */
	bool lease_held, lease_waiting;
	bool retried; /* true: the READs of a PUT are in their second attempt */

	/* Text, allocated when needed and freed with the request (body.c). */
	char *body; /* received body, terminated */
	size_t body_len, body_cap;
	struct text out; /* text of an answer of any length */
	size_t text_held;
	struct cors_answer *cors; /* CORS answer, for a request with an Origin; NULL: none */
	struct span claimed; /* the access key named by a form; points into memory freed with the request */

	/* parts that the request has from the pools (part.c), by pool; NULL: none */
	void *part[POOL_NR];
	struct req_change *change;
	char *error; /* body of an error, from its pool */
	void *job;   /* memory of the operation, from its pool */
	void (*job_fini)(struct req *rq);

	/* for GET: range of the object to send, in bytes */
	uint64_t off, len;
	bool partial;
	/* true: the descriptor of the request was declined */
	bool declined;
	bool declined_2xx; /* true: the client falls back to HTTP only after a 2xx */
	enum chan_reason reason;
	int status_instead; /* HTTP status of success; 0: the status of the outcome */
	struct store_etag etag;
	uint64_t rdma_bytes, http_bytes;

	/* reply of the request */
	struct reply reply;
	int header_nr;
	size_t header_used;
	bool send_attrs;  /* true: the reply has the object's stored headers, too */
	bool bad_framing; /* true: the following bytes of this connection cannot be trusted */

	/* ---- fields from here on are initialized separately ---- */
	/* request as received; its strings belong to http/, and are not valid after req_end() */
	struct dialect_in in;
	struct uri uri; /* decoded target, to which in.uri points; valid as long as in */
	struct sockaddr_storage local, peer;
	struct identity identity;
	struct store_obj obj;
	struct store_stat stat;     /* look-up of the target's bucket or upload */
	struct bucket_attrs battrs; /* attributes of the bucket; p is NULL until they are read */
	struct chan_lease lease;
	struct target target;      /* result of dialect_parse() */
	struct auth_stream frames; /* decoder of aws-chunked frames, if feed is frames_feed() */
	struct xfer xfer;
	struct {
		const char *name, *value;
	} header[REQ_HEADERS_MAX]; /* header fields of the reply, header_nr of them */
	char header_text[REQ_HEADER_BYTES];
};

/* A request in flight also has the parts that its operation needs, and its buffers. */
_Static_assert(sizeof(struct req) + sizeof(struct req_change) <= 24u << 10, "a request in flight");
_Static_assert(sizeof(struct req) + REQ_OUTSIDE_BYTES <= 24u << 10, "... or with what http/ has of it");

/* ---- the machine (machine.c) ---- */

static inline enum verdict
req_go_to(struct req *rq, step_fn next, const char *name)
{
	rq->step = next;
	rq->step_name = name;
	return REQ_GO;
}
#define req_go(rq, next) req_go_to((rq), (next), #next)

/* Waits for req_wake(); what: name of the wait in the dump. */
static inline enum verdict
req_wait_to(struct req *rq, const char *what, step_fn next, const char *name)
{
	rq->step = next;
	rq->step_name = name;
	rq->wait = rq->was_waiting = what;
	return REQ_WAIT;
}

#define req_wait(rq, what, next) req_wait_to((rq), (what), (next), #next)

/* Continues after a store operation of the request whose start returned r (< 0, 0, > 0): fails, waits, or
 * continues with next. */
enum verdict req_await_to(struct req *rq, int r, const char *what, step_fn next, const char *name);
#define req_await(rq, r, what, next) req_await_to((rq), (r), (what), (next), #next)
/* Continues as req_await_to() after an operation that cannot be cancelled from then on: PHASE_COMMIT. */
enum verdict req_await_commit_to(struct req *rq, int r, const char *what, step_fn next, const char *name);
#define req_await_commit(rq, r, what, next) req_await_commit_to((rq), (r), (what), (next), #next)
/* Opens an object as rq->obj; next finds the result in rq->obj.op.result. */
enum verdict req_open_to(struct req *rq, const struct store_key *k, step_fn next, const char *name);
#define req_open(rq, k, next) req_open_to((rq), (k), (next), #next)
/* Opens an object and starts the read of its first `want` bytes, the number known at this time
 * (store_open_to_read()). */
enum verdict req_open_to_read_to(struct req *rq, const struct store_key *k, uint64_t want, step_fn next,
				 const char *name);
#define req_open_to_read(rq, k, want, next) req_open_to_read_to((rq), (k), (want), (next), #next)
/* Continues with next if the target's bucket exists; fails the request otherwise. */
enum verdict req_need_bucket_to(struct req *rq, step_fn next, const char *name);
#define req_need_bucket(rq, next) req_need_bucket_to((rq), (next), #next)
/* Does as req_need_bucket_to(), and also continues if the bucket existed a moment ago; for an operation whose
 * commit checks the bucket again. */
enum verdict req_expect_bucket_to(struct req *rq, step_fn next, const char *name);
#define req_expect_bucket(rq, next) req_expect_bucket_to((rq), (next), #next)
/* Looks up the target's upload; next finds the result in rq->stat.op.result, and the upload's attributes in
 * the target's attributes. */
enum verdict req_stat_upload_to(struct req *rq, step_fn next, const char *name);
#define req_stat_upload(rq, next) req_stat_upload_to((rq), (next), #next)
/* Reads the attributes of the target's bucket; next finds the result in rq->battrs.stat.op.result. */
enum verdict req_read_battrs_to(struct req *rq, step_fn next, const char *name);
#define req_read_battrs(rq, next) req_read_battrs_to((rq), (next), #next)
/* Stores the fault unless the request has one already, and continues with the drain. */
enum verdict req_fail(struct req *rq, enum fault f, const char *why);
/* Puts the request on the core's ready list: its step runs in the next turn. */
void req_wake(struct req *rq);
/* Ends the current operations of the request, as far as possible, with the fault f. */
void req_cancel(struct req *rq, enum fault f, const char *why);
/* Returns the fault for an -errno of a store operation or an allocation (fault.c). */
enum fault fault_of(int err);
/* Returns the name of the target's object; points into the target. */
struct store_key req_key(const struct req *rq);
/* Drops the hold of a store operation that ended and wakes the request: the last call of every done(). */
void req_on_store(struct req *rq);
/* Serves as done() of rq->obj. */
void req_on_obj(struct store_op *op);
/* Serves as done() of the put of rq->change. */
void req_on_put(struct store_op *op);
/* Serves as done() of the del of rq->change. */
void req_on_del(struct store_op *op);
/* Arms the request's deadlines. */
void req_deadlines(struct req *rq, uint64_t len);

/* ---- report.c ---- */
/* Writes the id as 16 digits and NUL, as x-amz-request-id has it. */
void req_id_text(const struct req *rq, char out[17]);
/* Writes the request's line of the dump. */
void req_line(const struct req *rq, char *out, size_t cap);
/* Stores a note of a declined or failed request for the status page. */
void req_note(const struct req *rq);
/* Writes the request's line of the access log. */
void access_log(const struct req *rq);
/* Writes a line of the access log for a key that a request names in its body; f: the result for it. Only if
 * log.object_keys is set. */
void access_log_key(const struct req *rq, const char *key, size_t len, enum fault f);

/* ---- the end (drain.c) ---- */
/* Waits until no operation is in flight, then replies: the step of every failed request. */
enum verdict drain(struct req *rq);
enum verdict drained(struct req *rq);
/* Completes the reply. This is the last step of each request. */
enum verdict req_reply_step(struct req *rq);
/* Replies with the XML text in rq->out as the body. */
enum verdict req_reply_xml(struct req *rq);

/* ---- trace.c ---- */
/* Counts the request as a user of the current configuration. */
void req_use_conf(struct req *rq);
/* Removes the request from the users of its configuration, and frees the steps kept by a trace. */
void req_drop_conf(struct req *rq);
/* Begins to account for the request's time, and to trace it if requested. */
void req_clock_begin(struct req *rq);
/* Accounts for the time up to the end of the first step. */
void req_clock_front(struct req *rq);
/* Adds the time since the last mark to the phase of the wait that just ended. */
void req_clock_wait(struct req *rq);
/* Adds the time of each phase of the request to the counters. */
void req_clock_end(const struct req *rq);
/* Logs the current step of a traced request, and keeps it among its latest steps. */
void trace_line(struct req *rq, const char *what);

/* ---- signatures (authorise.c) ---- */

/* Authenticates the request and checks its right. Returns FAULT_NONE or the fault to answer. */
enum fault front_auth(struct req *rq, const char **ret_why);
/* Authenticates a request that has an error. Returns FAULT_NONE if the client is allowed to learn the error,
 * or the fault to answer instead. */
enum fault front_who(struct req *rq, const char **ret_why);
/* Fills in the data that auth/ needs from the request. */
void front_auth_env(const struct req *rq, struct auth_env *ret);

/* ---- browsers (browser.c) ---- */

/* Checks an unsigned request that a browser may have sent for a foreign web page. Returns FAULT_NONE or the
 * fault to answer. The bucket's CORS rules were evaluated before (cors_look()), if they apply. */
enum fault browser_check(const struct req *rq, const char **ret_why);

/* ---- steps ---- */
/* Checks the request and finds its operation: the first step of every request (front.c). */
enum verdict front(struct req *rq);

/* ---- rights (authorise.c) ---- */
/* Returns true if the requester has the right to a key of the target's bucket. */
bool may_key(const struct req *rq, enum auth_right right, const char *key, size_t key_len);
/* Returns the fault to answer if may_key() is false. */
enum fault why_not_key(const struct req *rq, enum auth_right right, const char *key, size_t key_len);
/* Returns true if the requester may know that the bucket exists. */
bool may_see_bucket(const struct req *rq, const char *bucket, size_t bucket_len);

/* ---- attributes (sums.c) ---- */
/* name of the attribute of an upload that has its checksum algorithm */
#define ATTR_SUM_ALGORITHM "x-amz-checksum-algorithm"
/* name of the attribute of an upload, and of its object, that has the checksum type */
#define ATTR_SUM_TYPE "x-amz-checksum-type"

/* ---- cross-origin requests (cors.c) ---- */
/* Returns true if the answer depends on the bucket's CORS rules: the request has an Origin. */
bool cors_concerns(const struct req *rq);
/* Finds the CORS rule for the request's Origin, if the request has one; called after the bucket's attributes
 * were read. */
void cors_look(struct req *rq);
/* Finds the CORS rule for an origin, a method and a list of headers (may be NULL) in the bucket's attributes,
 * and stores its answer in rq->cors. Returns true if a rule matches. */
bool cors_find(struct req *rq, const struct field *origin, const char *method, size_t method_len,
	       const struct field *headers);
/* Passes the header fields of rq->cors to header(). */
void cors_headers(struct req *rq, header_fn header, void *cookie);

/* ---- checksums (sums.c) ---- */
/* Returns the digest for a checksum other than CRC64-NVME, which the store computes. */
enum digest_kind digest_of_sum(enum checksum_kind k);
/* Writes a CRC64 in wire order. */
void sum_of_u64(uint64_t v, uint8_t out[8]);
/* Reads a CRC64 in wire order, as written by sum_of_u64(). */
uint64_t sum_to_u64(const uint8_t b[8]);
/* Writes the Base64 of a CRC64 in wire order, and NUL. */
void sum_text64(uint64_t v, char out[16]);
/* Writes a checksum as Base64, with "-N" for N parts if it is composite. Returns the length. */
size_t sum_text(const uint8_t *value, enum checksum_kind k, uint32_t parts, char out[64]);
/* Finds an algorithm by its name, such as "CRC32C". Returns 0 or -ENOENT. */
int sums_find_algorithm(const char *name, size_t len, enum checksum_kind *ret_kind);
/* Collects the checksums among stored attributes; uses crc64 (may be NULL) if no checksum is stored. */
void sums_stored(const void *attrs, size_t attrs_len, const uint64_t *crc64, struct xml_sums *out);
/* Returns the algorithm that S3 would report for an object with these attributes; NULL: none. */
const char *algorithm_of(const void *attrs, size_t attrs_len, enum checksum_type *ret_type);
/* Returns the storage class among stored attributes, with a NUL; returns NULL for STANDARD. */
const char *storage_class_of(const void *attrs, size_t attrs_len, char out[32]);
/* Collects the checksums of an object, and their type. */
void sums_of_obj(const struct store_obj *obj, struct xml_sums *out);
/* Returns the CRC32 or CRC32C of A followed by B. */
uint32_t sum_crc32_combine(enum checksum_kind k, uint32_t a, uint32_t b, uint64_t len_b);

/* ---- parts (part.c) ---- */
/* Makes the pools for nr requests.  0 or -ENOMEM. */
int parts_init(struct reqs *rs, int nr);
/* Frees the pools, which may be missing; no request may have a part. */
void parts_fini(struct reqs *rs);
/* Allocates the put of the request, freed with the request. Returns NULL if the pool is empty. */
struct store_put *req_put_part(struct req *rq);
/* Allocates the del of the request, freed with the request. Returns NULL if the pool is empty. */
struct store_del *req_del_part(struct req *rq);
/* Allocates REQ_ERROR_BYTES of memory for the body of an error. Returns NULL if the pool is empty. */
char *req_error_part(struct req *rq);
/* Serves as get() of a struct target_source whose cookie is the request. */
void *req_target_part(void *rq, enum target_part part);
/* Makes the request's job, zeroed, of REQ_LARGE_JOB_BYTES at most; fini (may be NULL) frees memory to which
 * the job points. Returns NULL if the pool is empty. */
void *req_job(struct req *rq, size_t bytes, void (*fini)(struct req *rq));
/* Reserves bytes of the core's text memory, released with the request. Returns 0 or -EAGAIN. */
int req_hold_text(struct req *rq, size_t bytes);
/* Releases all parts and texts of a request. */
void parts_release(struct req *rq);

/* ---- slow clients (pace.c) ---- */
/* Makes the slots, for as many requests as rs has. */
void pace_init(struct reqs *rs);
/* Determines the client of the request (limits.fair_by), and counts a request without descriptor for it; a
 * second call has no effect. Returns false if the limit of the client is reached. */
bool pace_slot_get(struct req *rq);
/* Counts a request, and its bytes, for the disk of its key. Returns FAULT_BUSY if half of all requests are for
 * this disk, which may hang; the fault of -EROFS if the request is a change and the disk has failed;
 * otherwise FAULT_NONE. */
enum fault pace_lane_get(struct req *rq);
void pace_lane_put(struct req *rq);
/* Removes the request from the counts of its client and of its disk; a request without counts is allowed. */
void pace_slot_put(struct req *rq);
/* Begins to check slow bodies, if the store refused a request of any core for want of space in the last
 * minute. Bodies slower than limits.body_rate, which may hold space, are then ended. */
void pace_check_full(struct reqs *rs);
/* Checks the holders of buffers, while a request waits for one. */
void pace_wait(struct reqs *rs);
/* Asks for a buffer for HTTP bodies and continues with next; rq->xfer.have_ticket: the buffer was granted. */
enum verdict req_http_ticket_to(struct req *rq, step_fn next, const char *name);
#define req_http_ticket(rq, next) req_http_ticket_to((rq), (next), #next)

/* ---- text (body.c) ---- */
/* Collects the body, verifies it against the headers, then continues with next. */
enum verdict body_collect(struct req *rq, step_fn next);
/* Passes bytes of a body to the current taker; returns the number taken. */
size_t body_take(struct req *rq, const void *data, size_t len);

/* ---- ticket and lease (lease.c) ---- */
enum verdict lease_start(struct req *rq);
/* Gets ticket and lease for a transfer by descriptor, in order; continues with granted, or with declined
 * (rq->reason is set). */
static inline enum verdict
req_lease(struct req *rq, step_fn granted, step_fn declined)
{
	rq->leased = granted;
	rq->not_leased = declined;
	return req_go(rq, lease_start);
}
/* Releases the lease, or leaves the queue for a lease; a request without a lease is allowed. */
void lease_release(struct req *rq);

/* ---- declines (decline.c) ---- */
/* Notes that the request's descriptor is not used, for rq->reason, and chooses the form of the decline. */
void req_declined(struct req *rq);
/* Notes a decline for a failed request of another transport's control protocol, which connects queue pairs:
 * such a protocol is declined as a whole. */
void req_declined_control(struct req *rq);

/* ---- the reply (reply.c) ---- */
/* Returns the name of a standard field in the spelling of the request's listener. */
static inline const char *
reply_name(const struct req *rq, enum reply_field h)
{
	return field_name[rq->listen->dialect][h];
}
/* Adds a field to the reply, its name from reply_name() or an own name in lower case; the value is formatted,
 * copied, a decimal number, or a text that lives as long as the request. */
void reply_header(struct req *rq, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void reply_text(struct req *rq, const char *name, const char *value);
void reply_number(struct req *rq, const char *name, uint64_t v);
void reply_ref(struct req *rq, const char *name, const char *value);
/* Adds the ETag field: rq->etag in quotes. */
void reply_etag(struct req *rq);
/* Fills in rq->reply from fault, decline or success. kind as in protocol.md 4.1. */
void reply_build(struct req *rq, enum outcome_kind kind);
/* Writes the text of an ETag, without quotes, and NUL; returns its length. */
size_t etag_text(const struct store_etag *e, char out[48]);
/* Parses the text of an ETag, as written by etag_text(). Returns 0 or -EINVAL. */
int etag_parse(const char *text, size_t len, struct store_etag *ret_etag);

#endif
