/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the state machine of requests: struct req, its steps, and the functions by which a step
 * selects the next step.
 *
 * A step is a function. It never blocks, and ends with the choice of the next step: req_go(), req_await(),
 * req_fail(). Only req_run() calls steps. The done() function of an operation only stores the result and puts
 * the request on the core's ready list (req_wake()).
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
#define REQ_LINE_BYTES 640 /* size, in bytes, of the line that describes a request in a dump */
/* Limit, in bytes, of the text (XML bodies and lists) that all requests of a core hold together. */
#define REQ_TEXT_TOTAL (256u << 20)
#define REQ_PAGE_BYTES (1u << 20) /* largest page of a list, in bytes of text */

/* The progress of a request. The phase determines the effect of a deadline, and of a client that has left
 * (protocol.md 4.7). */
enum req_phase {
	PHASE_FRONT,  /* no operation was started yet */
	PHASE_QUEUED, /* the request waits for a ticket or a lease */
	PHASE_MOVING, /* bytes move */
	PHASE_COMMIT, /* the store has the commit, so the request cannot be cancelled */
	PHASE_REPLY,  /* the answer is complete */
};

/* Pools of memory blocks that only some requests need, made at start for limits.requests (part.c). */
enum req_pool {
	POOL_CHANGE,    /* blocks for struct req_change */
	POOL_ATTRS,     /* blocks of DIALECT_ATTRS_MAX bytes for attributes */
	POOL_COPY,      /* blocks for struct copy_source */
	POOL_LIST,      /* blocks for struct list_query */
	POOL_ERROR,     /* blocks of REQ_ERROR_BYTES bytes for the body of an error reply */
	POOL_JOB,       /* blocks of REQ_JOB_BYTES bytes for the data of an operation */
	POOL_LARGE_JOB, /* blocks of REQ_LARGE_JOB_BYTES bytes for the data of an operation that needs more */
	POOL_NR
};
#define REQ_JOB_BYTES (4u << 10)
#define REQ_LARGE_JOB_BYTES (40u << 10)
#define REQ_ERROR_BYTES (8u << 10)

#define SLOT_CLIENTS 4096
/* Requests without a descriptor, counted by client (xfer_client_of()). The table is larger than that of
 * xfer/, so that clients rarely share an entry. */
struct slots {
	int held[SLOT_CLIENTS];         /* number of requests of each client; revoked requests do not count */
	int writes[SLOT_CLIENTS];       /* number of writes among them */
	struct list reqs[SLOT_CLIENTS]; /* requests of each client; the oldest is first */
};

struct reqs {
	struct req_env env;
	struct req *pool;
	/* begun_nr: number of requests of the pool, from its beginning, that were in use at some time; the others
	 * take only address space */
	int nr, live_nr, begun_nr;
	struct list free, live, ready;
	struct pool parts[POOL_NR];
	struct xfer_pool pieces, http_pieces;
	/* plain_nr: number of requests without a descriptor; plain_max: limit of this number, because the
	 * other requests of the core are reserved for requests with a descriptor (pace.c) */
	int plain_nr, plain_max;
	/* number of requests, and of writes among them, for each lane (the number of the disk that handles a key:
	 * store_lane()); lane_max, lane_writes_max: limits for one lane */
	int lane_nr[XFER_LANES], lane_writes[XFER_LANES];
	int lane_max, lane_writes_max;
	/* number of requests without a descriptor that are being ended in favour of other requests */
	int plain_revoked;
	/* number of writes without a descriptor, and its limit; number of those that are being ended in favour
	 * of other requests */
	int writes_nr, writes_max, writes_revoked;
	/* number of writes with a descriptor; limit of the number of all writes */
	int wire_writes, all_writes_max;
	struct slots slots;
	struct timer pace;  /* timer that checks slow clients while other requests wait */
	struct timer space; /* timer that looks for refusals of other cores while there are requests */
	uint64_t looked_ns; /* time by clock_ns() of the last check of slow clients */
	bool draining;
	struct req_conf *use; /* configuration of new requests; NULL: env.conf, whose use is not counted */
	/* step drain() of drain.c; files on which drain.c depends call it by this pointer */
	step_fn drain;
	uint64_t next_id, id_salt;
	uint64_t client_key[2]; /* secret key for xfer_client_of() */
	uint64_t rng[2];        /* state of the random numbers for ETags of PUTs with a descriptor */
	size_t text_bytes;      /* size in bytes of the text memory that requests hold (req_hold_text()) */
};

/* The store operation of a request that changes an object or bucket. */
struct req_change {
	struct req *rq;
	bool is_put;
	union {
		struct store_put put;
		/* removal of an object or bucket; also used to change an object's attributes */
		struct store_del del;
	};
};

struct req {
	/* Fields that keep their values when the struct is used for another request. */
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
	/* sent: the reply was sent; gone: the client has closed its side of the connection */
	bool sent, gone;
	bool is_tokened;
	/* true: the address in the token is allowed only if the kernel has a route to this address */
	bool must_route;
	/* true: the token names an address outside rdma.allow, and the request will be declined */
	bool not_allowed;
	/* true: the token names a connection that its client does not have, and the request will be declined */
	bool not_connected;
	/* true: the reply was sent while the store still commits, or while the disk still uses pieces of the
	 * request */
	bool detached;
	/* true: one of the holds is for pieces that the disk uses; this hold ends with the transfer */
	bool disk_has;
	int holds;       /* number of operations of the store in flight for the request */
	bool awaiting;   /* true: the next step must not run before the operation of req_await() has ended */
	bool revoked;    /* true: the request is being ended in favour of waiting requests (pace.c) */
	bool wire_write; /* true: the request is counted in wire_writes */
	/* lane of the key (store_lane()) + 1, while the request is counted in lane_nr[]; 0: not counted */
	uint8_t lane;
	struct list slot; /* link in the client's list of requests without a descriptor (struct slots) */
	/* start of the client's measurement, for a body or an answer that no struct xfer moves */
	struct pace_mark mark;

	/* time in ns spent in each phase (trace.c) */
	uint64_t phase_ns[STATS_PHASE_NR];
	uint64_t mark_ns; /* time by clock_ns() up to which phase_ns has been updated */
	uint64_t wire_seen_ns, reply_ns;
	const char *was_waiting;
	struct trace_steps *steps; /* latest steps of a traced request; NULL: the request is not traced */
	struct timer deadline, linger;
	uint64_t total_deadline_ns, progress_limit_ns;
	/* time by clock_ns() at which the client expects the answer; UINT64_MAX: unknown */
	uint64_t answer_by_ns;
	uint64_t progress_ns; /* time by clock_ns() of the last progress that struct xfer does not record */

	/* wants_body: the operation takes a body; body_ended: the body is complete */
	bool wants_body, body_ended;
	int trace_left; /* number of trace lines that may still be logged; 0: the request is not traced */
	/* Takes the bytes of the body as they arrive: body_take(), or frames_feed(), which decodes the bytes
	 * for body_take(). */
	take_fn feed;
	void (*feed_end)(struct req *rq); /* called at the end of the body; NULL: no function is called */
	take_fn take; /* function that gets the bytes of body_take(); NULL: no bytes are taken yet */

	/* Fields of the operation. */
	/* hooks of the operation; NULL: the operation has no hooks, or has not begun */
	const struct op_hooks *hooks;
	step_fn then;        /* next step of the operation after steps that several operations share */
	step_fn bucket_next; /* next step after req_need_bucket() */
	const char *bucket_next_name;
	/* next step after req_lease(): leased: the request has a lease; not_leased: it has none */
	step_fn leased, not_leased;
	bool lease_held, lease_waiting;
	bool retried; /* true: the READs of a PUT are in their second attempt */

	/* Text, allocated when needed and freed with the request (body.c). */
	char *body; /* received body, terminated */
	size_t body_len, body_cap;
	struct text out; /* text of the answer, of any length */
	size_t text_held;
	struct cors_answer *cors; /* CORS answer, for a request with an Origin; NULL: none */
	struct span claimed;      /* access key that a form names; in memory that is freed with the request */

	/* blocks that the request has from the pools (part.c), by pool; NULL: no block of the pool */
	void *part[POOL_NR];
	struct req_change *change;
	char *error; /* body of an error reply, a block of POOL_ERROR */
	void *job;   /* data of the operation, a block of POOL_JOB or POOL_LARGE_JOB */
	void (*job_fini)(struct req *rq);

	/* for GET: range of the object to send, in bytes */
	uint64_t off, len;
	bool partial;
	/* true: the descriptor of the request was declined */
	bool declined;
	bool declined_2xx; /* true: the client repeats a declined request over HTTP only after a status 2xx */
	enum chan_reason reason;
	int status_instead; /* HTTP status of a successful reply; 0: the status of its outcome_kind */
	struct store_etag etag;
	uint64_t
		expires_ns; /* expiry of the object that the request writes, as in struct store_meta; 0: none */
	uint64_t rdma_bytes, http_bytes;

	/* reply of the request */
	struct reply reply;
	int header_nr;
	size_t header_used;
	bool send_attrs; /* true: the reply has the object's stored headers, too */
	/* true: the rest of the bytes of this connection cannot be read as requests; the connection is closed
	 * after the reply */
	bool bad_framing;
	/* result of dialect_parse(), while the CORS rules of the bucket are read */
	enum fault parsed;
	const char *parsed_why; /* message of `parsed`; NULL: none */

	/* ---- fields from here on are initialized separately ---- */
	/* request as received; its strings belong to http/, and are valid until req_end() */
	struct dialect_in in;
	struct uri uri; /* decoded target of the request; in.uri points to it; valid as long as `in` */
	struct sockaddr_storage local, peer;
	struct identity identity;
	struct store_obj obj;
	struct store_stat stat;     /* look-up of the target's bucket or upload */
	struct bucket_attrs battrs; /* attributes of the bucket; p NULL: not read yet */
	struct chan_lease lease;
	struct target target;      /* result of dialect_parse() */
	struct auth_stream frames; /* decoder of aws-chunked frames, if feed is frames_feed() */
	struct xfer xfer;
	struct {
		const char *name, *value;
	} header[REQ_HEADERS_MAX]; /* header fields of the reply, header_nr of them */
	char header_text[REQ_HEADER_BYTES];
};

/* A request in flight takes at most 24 KiB. Blocks from the pools, and buffers, come in addition. */
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

/* Selects the step `next`, which runs after req_wake(). what: name of the wait in dumps. */
static inline enum verdict
req_wait_to(struct req *rq, const char *what, step_fn next, const char *name)
{
	rq->step = next;
	rq->step_name = name;
	rq->wait = rq->was_waiting = what;
	return REQ_WAIT;
}

#define req_wait(rq, what, next) req_wait_to((rq), (what), (next), #next)

/* Selects the next step after a store operation of the request. r: result of its start function: < 0: the
 * request fails; 0: waits for the operation, then `next` runs; > 0: `next` runs. */
enum verdict req_await_to(struct req *rq, int r, const char *what, step_fn next, const char *name);
#define req_await(rq, r, what, next) req_await_to((rq), (r), (what), (next), #next)
/* Selects the next step like req_await_to(), for an operation that cannot be cancelled after its start: if r
 * >= 0, the phase becomes PHASE_COMMIT. */
enum verdict req_await_commit_to(struct req *rq, int r, const char *what, step_fn next, const char *name);
#define req_await_commit(rq, r, what, next) req_await_commit_to((rq), (r), (what), (next), #next)
/* Opens an object as rq->obj, then runs `next`, which finds the result in rq->obj.op.result. */
enum verdict req_open_to(struct req *rq, const struct store_key *k, step_fn next, const char *name);
#define req_open(rq, k, next) req_open_to((rq), (k), (next), #next)
/* Opens an object as rq->obj and starts to read its first bytes, then runs `next`. want: as for
 * store_open_to_read(), as far as known at this time. */
enum verdict req_open_to_read_to(struct req *rq, const struct store_key *k, uint64_t want, step_fn next,
				 const char *name);
#define req_open_to_read(rq, k, want, next) req_open_to_read_to((rq), (k), (want), (next), #next)
/* Looks up the target's bucket. Runs `next` if the bucket exists, and fails the request otherwise. */
enum verdict req_need_bucket_to(struct req *rq, step_fn next, const char *name);
#define req_need_bucket(rq, next) req_need_bucket_to((rq), (next), #next)
/* Runs `next` if the target's bucket exists, or existed within the last second; fails the request otherwise.
 * For an operation whose commit checks the bucket again. */
enum verdict req_expect_bucket_to(struct req *rq, step_fn next, const char *name);
#define req_expect_bucket(rq, next) req_expect_bucket_to((rq), (next), #next)
/* Looks up the upload that rq->target names, then runs `next`. The result is in rq->stat.op.result, the
 * attributes of the upload are in rq->target.attrs. */
enum verdict req_stat_upload_to(struct req *rq, step_fn next, const char *name);
#define req_stat_upload(rq, next) req_stat_upload_to((rq), (next), #next)
/* Reads the attributes of the target's bucket, then runs `next`, which finds the result in
 * rq->battrs.stat.op.result. */
enum verdict req_read_battrs_to(struct req *rq, step_fn next, const char *name);
#define req_read_battrs(rq, next) req_read_battrs_to((rq), (next), #next)
/* Fails the request with fault f, unless the request has a fault already; the next step is the drain. why:
 * sentence for the error body; NULL: the fault's sentence. */
enum verdict req_fail(struct req *rq, enum fault f, const char *why);
/* Puts the request on the core's ready list: its step runs in the next turn. */
void req_wake(struct req *rq);
/* Fails the request with fault f, and ends its current operations as far as possible. */
void req_cancel(struct req *rq, enum fault f, const char *why);
/* Returns the fault for an -errno of a store operation or of an allocation (fault.c). */
enum fault fault_of(int err);
/* Returns the store key of the target's object, with pointers into the target. */
struct store_key req_key(const struct req *rq);
/* Removes the hold of a store operation that has ended, and wakes the request. The last call of every
 * done(). */
void req_on_store(struct req *rq);
/* Serves as done() of operations of rq->obj. */
void req_on_obj(struct store_op *op);
/* Serves as done() of the PUT in rq->change. */
void req_on_put(struct store_op *op);
/* Serves as done() of the removal in rq->change. */
void req_on_del(struct store_op *op);
/* Arms the deadlines of the request; len: number of bytes that it moves. */
void req_deadlines(struct req *rq, uint64_t len);

/* ---- report.c ---- */
/* Writes the id of the request as 16 digits and a NUL, the form of x-amz-request-id. */
void req_id_text(const struct req *rq, char out[17]);
/* Writes the line of the request for a dump to out, at most cap bytes. */
void req_line(const struct req *rq, char *out, size_t cap);
/* Stores a note about a declined or failed request, which the status page shows. */
void req_note(const struct req *rq);
/* Writes the end of the request to the access log and to audit/. */
void report_end(const struct req *rq);
/* Writes the result for a key that the body of a request names to audit/, and to the access log if
 * log.object_keys is set. f: result for the key. */
void report_key(const struct req *rq, const char *key, size_t len, enum fault f);

/* ---- the end (drain.c) ---- */
/* Waits until no operation of the request is in flight, then replies. A step of every failed request. */
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
/* Begins to account for the request's time. Begins to trace the request if a trace of new requests is
 * requested. */
void req_clock_begin(struct req *rq);
/* Accounts for the time from the beginning of the request to the end of its first step. */
void req_clock_front(struct req *rq);
/* Adds the time since rq->mark_ns to the phase of the wait that has just ended. */
void req_clock_wait(struct req *rq);
/* Adds the time of each phase of the request to the counters. */
void req_clock_end(const struct req *rq);
/* Logs the current step of a traced request, and keeps it among its latest steps. */
void trace_line(struct req *rq, const char *what);

/* ---- signatures (authorise.c) ---- */

/* Authenticates the request, and checks that the requester has the right to the operation. Returns FAULT_NONE
 * or the fault for the reply. */
enum fault front_auth(struct req *rq, const char **ret_why);
/* Authenticates a request that already has a fault. Returns FAULT_NONE if the client may learn this fault;
 * otherwise the fault for the reply. */
enum fault front_who(struct req *rq, const char **ret_why);
/* Fills in the data that auth/ needs from the request. */
void front_auth_env(const struct req *rq, struct auth_env *ret);

/* ---- browsers (browser.c) ---- */

/* Checks an unsigned request that a browser may have sent for a foreign web page. If CORS rules apply,
 * cors_look() was called before. Returns FAULT_NONE or the fault for the reply. */
enum fault browser_check(const struct req *rq, const char **ret_why);

/* ---- steps ---- */
/* Checks the request and finds its operation: the first step of every request (front.c). */
enum verdict front(struct req *rq);

/* ---- rights (authorise.c) ---- */
/* Returns true if the requester has the right to a key of the target's bucket. */
bool may_key(const struct req *rq, enum auth_right right, const char *key, size_t key_len);
/* Returns the fault for the reply after may_key() returned false. */
enum fault why_not_key(const struct req *rq, enum auth_right right, const char *key, size_t key_len);
/* Returns true if the requester may know that the bucket exists. */
bool may_see_bucket(const struct req *rq, const char *bucket, size_t bucket_len);

/* ---- attributes (sums.c) ---- */
/* name of the attribute of an upload that has its checksum algorithm */
#define ATTR_SUM_ALGORITHM "x-amz-checksum-algorithm"
/* name of the attribute of an upload, and of its object, that has the checksum type */
#define ATTR_SUM_TYPE "x-amz-checksum-type"
/* name of the attribute with the time in seconds after which the object of an upload will expire */
#define ATTR_TTL "x-gantry-ttl"

/* ---- cross-origin requests (cors.c) ---- */
/* Returns true if the answer depends on the bucket's CORS rules, because the request has a header Origin. */
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
/* Returns the digest for a checksum. k is not CRC64-NVME, which the store computes. */
enum digest_kind digest_of_sum(enum checksum_kind k);
/* Writes a CRC64 in wire order: most significant byte first. */
void sum_of_u64(uint64_t v, uint8_t out[8]);
/* Reads a CRC64 in wire order: most significant byte first. */
uint64_t sum_to_u64(const uint8_t b[8]);
/* Writes the Base64 text of a CRC64 in wire order, and a NUL. */
void sum_text64(uint64_t v, char out[16]);
/* Writes a checksum as Base64 text; a composite checksum of N parts with the tail "-N". Returns the
 * length. */
size_t sum_text(const uint8_t *value, enum checksum_kind k, uint32_t parts, char out[64]);
/* Finds an algorithm by its name, such as "CRC32C". Returns 0 or -ENOENT. */
int sums_find_algorithm(const char *name, size_t len, enum checksum_kind *ret_kind);
/* Collects the checksums among stored attributes. crc64: CRC64-NVME to report if no checksum is stored; NULL:
 * unknown. */
void sums_stored(const void *attrs, size_t attrs_len, const uint64_t *crc64, struct xml_sums *out);
/* Returns the checksum algorithm that S3 reports for an object or upload with these attributes; NULL: no
 * algorithm. */
const char *algorithm_of(const void *attrs, size_t attrs_len, enum checksum_type *ret_type);
/* Writes the storage class among stored attributes to out, and returns out; NULL: the class is STANDARD. */
const char *storage_class_of(const void *attrs, size_t attrs_len, char out[32]);
/* Collects the checksums of an object, and their type. */
void sums_of_obj(const struct store_obj *obj, struct xml_sums *out);
/* Returns the CRC32 or CRC32C (k) of data A followed by data B. a, b: checksums of A and B; len_b: length of
 * B in bytes. */
uint32_t sum_crc32_combine(enum checksum_kind k, uint32_t a, uint32_t b, uint64_t len_b);

/* ---- parts (part.c) ---- */
/* Makes the pools of memory blocks for nr requests. Returns 0 or -ENOMEM. */
int parts_init(struct reqs *rs, int nr);
/* Frees the pools, which may be missing. No request has a block of a pool. */
void parts_fini(struct reqs *rs);
/* Takes memory for the PUT of the request, freed with the request. Returns NULL if the pool is empty. */
struct store_put *req_put_part(struct req *rq);
/* Takes memory for the removal of the request, freed with the request. Returns NULL if the pool is empty. */
struct store_del *req_del_part(struct req *rq);
/* Takes REQ_ERROR_BYTES of memory for the body of an error reply. Returns NULL if the pool is empty. */
char *req_error_part(struct req *rq);
/* Serves as get() of a struct target_source whose cookie is the request. */
void *req_target_part(void *rq, enum target_part part);
/* Takes zeroed memory for the data of the operation (rq->job), at most REQ_LARGE_JOB_BYTES. fini: frees
 * memory to which the data points, at the end of the request; NULL: no such memory. Returns NULL if the pool
 * is empty. */
void *req_job(struct req *rq, size_t bytes, void (*fini)(struct req *rq));
/* Reserves bytes of the core's text memory, released with the request. Returns 0 or -EAGAIN. */
int req_hold_text(struct req *rq, size_t bytes);
/* Returns all memory blocks and texts of a request. */
void parts_release(struct req *rq);

/* ---- slow clients (pace.c) ---- */
/* Makes the table of clients (struct slots), for as many requests as rs has. */
void pace_init(struct reqs *rs);
/* Determines the client of the request (limits.fair_by), and counts a request without a descriptor for this
 * client; counts a write. A second call for the request has no effect. Returns false if the client has as many
 * requests as allowed, or if writes have their share of the requests: three quarters. */
bool pace_slot_get(struct req *rq);
/* Notes whether the request is a write. Counts the request, and its bytes, for the disk of its key. Returns
 * FAULT_NONE; FAULT_BUSY if half of all requests are for this disk already, or three quarters of this
 * half are writes for it; or the fault of -EROFS if the request is a change and the disk has failed. */
enum fault pace_lane_get(struct req *rq);
void pace_lane_put(struct req *rq);
/* Removes the request from the counts of its client and of its disk; a request without counts is allowed. */
void pace_slot_put(struct req *rq);
/* Begins to check whether the requests that hold buffers are too slow, because a request waits for a
 * buffer. */
void pace_wait(struct reqs *rs);
/* Measures the clients of all requests without a descriptor. */
void pace_measure(struct reqs *rs, const struct xfer_pace *pace, uint64_t now_ns);
/* Returns true if the client of a request without a descriptor is slower than the pace. */
bool pace_is_slow_request(struct req *rq, const struct xfer_pace *pace, uint64_t now_ns);
/* Returns the rate of a client in bytes a second. */
uint64_t pace_rate_of(struct req *rq, uint64_t now_ns);
/* Ends a slow request that holds space of the store. */
void pace_end_for_space(struct req *rq);

/* ---- slow clients that hold space (space.c) ---- */
/* Notes that a request was refused for want of space, for all cores. */
void space_refused(struct req *rq);
/* Begins to look for refusals of other cores, once a second, while the core has requests without a
 * descriptor. */
void space_watch(struct reqs *rs);

/* Asks for a buffer for an HTTP body, then runs `next`. rq->xfer.have_ticket: the buffer was granted. */
enum verdict req_http_ticket_to(struct req *rq, step_fn next, const char *name);
#define req_http_ticket(rq, next) req_http_ticket_to((rq), (next), #next)

/* ---- text (body.c) ---- */
/* Collects the body as text, verifies its checksums and length against the header fields, then runs
 * `next`. */
enum verdict body_collect(struct req *rq, step_fn next);
/* Passes bytes of a body to rq->take(). Returns the number of bytes taken. */
size_t body_take(struct req *rq, const void *data, size_t len);

/* ---- ticket and lease (lease.c) ---- */
enum verdict lease_start(struct req *rq);
/* Gets a ticket, and then a lease, for a transfer by descriptor. Runs `granted` if the request has ticket and
 * lease; runs `declined` if the transfer is declined for the reason rq->reason. */
static inline enum verdict
req_lease(struct req *rq, step_fn granted, step_fn declined)
{
	rq->leased = granted;
	rq->not_leased = declined;
	return req_go(rq, lease_start);
}
/* Releases the lease of the request, or removes the request from the queue for a lease. A request without a
 * lease is allowed. */
void lease_release(struct req *rq);

/* ---- declines (decline.c) ---- */
/* Marks the descriptor of the request as declined, for the reason rq->reason, and chooses the form in which
 * the reply says so. */
void req_declined(struct req *rq);
/* Marks a failed request as declined if it belongs to a control protocol that connects queue pairs (another
 * transport than DC): every request of such a protocol is declined. */
void req_declined_control(struct req *rq);

/* ---- the reply (reply.c) ---- */
/* Returns the name of a standard field in the spelling of the request's listener. */
static inline const char *
reply_name(const struct req *rq, enum reply_field h)
{
	return field_name[rq->listen->dialect][h];
}
/* Adds a header field to the reply. name: from reply_name(), or a name of Gantry in lower case.
 * reply_header() formats the value, reply_text() and reply_bytes() copy it, reply_number() writes a decimal number, and
 * reply_ref() keeps a pointer to a text that lives as long as the request. */
void reply_header(struct req *rq, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void reply_bytes(struct req *rq, const char *name, const char *value, size_t len);
static inline void
reply_text(struct req *rq, const char *name, const char *value)
{
	reply_bytes(rq, name, value, strlen(value));
}
void reply_number(struct req *rq, const char *name, uint64_t v);
void reply_ref(struct req *rq, const char *name, const char *value);
/* Adds the header field ETag to the reply: rq->etag in quotes. */
void reply_etag(struct req *rq);
/* Fills in rq->reply from the fault, the decline or the success of the request. kind: outcome as in
 * protocol.md 4.1. */
void reply_build(struct req *rq, enum outcome_kind kind);
/* ---- etag.c ---- */
/* Writes the text of an ETag, without quotes, and a NUL. Returns its length. */
size_t etag_text(const struct store_etag *e, char out[48]);
/* Parses the text of an ETag, as written by etag_text(). Returns 0 or -EINVAL. */
int etag_parse(const char *text, size_t len, struct store_etag *ret_etag);

#endif
