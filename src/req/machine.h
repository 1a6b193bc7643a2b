/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the request machine: struct req, its steps, and how a step says what is next.
 *
 * A step is a function.  It never blocks; it ends by saying what is next: req_go(), req_await(), req_fail().
 * Only req_run() calls steps.  Completions only note their result and put the request on the core's ready
 * list (req_wake()).
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
#define REQ_LINE_BYTES 320 /* of a request in the dump */
/* Text of a core's requests that is malloc'd: bodies that are XML, answers that are lists. */
#define REQ_TEXT_TOTAL (256u << 20)
#define REQ_PAGE_BYTES (1u << 20) /* a list's page ends there, whatever was asked for */

/* How far a request got: decides what a deadline or a vanished client means (protocol.md 4.7). */
enum req_phase {
	PHASE_FRONT,  /* nothing started */
	PHASE_QUEUED, /* waits for a ticket or a lease */
	PHASE_MOVING, /* bytes move */
	PHASE_COMMIT, /* handed to the store: cannot be cancelled */
	PHASE_REPLY,  /* the answer is known */
};

/* Parts that not every request has come from pools, made at start for limits.requests (part.c). */
enum req_pool {
	POOL_CHANGE,    /* struct req_change */
	POOL_ATTRS,     /* DIALECT_ATTRS_MAX */
	POOL_COPY,      /* struct copy_source */
	POOL_LIST,      /* struct list_query */
	POOL_ERROR,     /* the body of an error */
	POOL_JOB,       /* what an operation needs beyond struct req */
	POOL_LARGE_JOB, /* ... and there is much of it */
	POOL_NR
};
#define REQ_JOB_BYTES (4u << 10)
#define REQ_LARGE_JOB_BYTES (40u << 10)
#define REQ_ERROR_BYTES (8u << 10)

/* Requests without a descriptor, by client (xfer_client_of()): who has how many of the slots.  More numbers
 * than xfer has, so that hardly two clients share one. */
#define SLOT_CLIENTS 4096
struct slots {
	int held[SLOT_CLIENTS];         /* without those that were revoked */
	struct list reqs[SLOT_CLIENTS]; /* the oldest first */
};

struct reqs {
	struct req_env env;
	struct req *pool;
	int nr, live_nr;
	struct list free, live, ready;
	struct pool parts[POOL_NR];
	struct xfer_pool pieces, http_pieces;
	int plain_nr, plain_max; /* requests without a descriptor, and how many there may be: the rest is for
				  * those with one (pace.c) */
	int lane_nr[XFER_LANES]; /* requests by store_lane() */
	int plain_revoked;       /* of plain_nr, on their way out */
	struct slots slots;
	struct timer pace;  /* looks at slow clients, while others wait */
	uint64_t looked_ns; /* when it last did */
	bool draining;
	struct req_conf *use; /* NULL: env.conf is nobody's to count */
	step_fn drain;        /* of drain.c, for those below it */
	uint64_t next_id, id_salt;
	uint64_t client_key[2]; /* of xfer_client_of() */
	uint64_t rng[2];        /* ETags of tokened PUTs */
	size_t text_bytes;      /* held by requests: req_hold_text() */
};

/* What a request that changes something has in the store's hands. */
struct req_change {
	struct req *rq;
	bool is_put;
	union {
		struct store_put put;
		struct store_del del; /* of an object or bucket; also other attributes of an object */
	};
};

struct req {
	/* Stays from request to request. */
	struct list link;     /* free or live */
	struct digest digest; /* its contexts */

	/* ---- from here on zeroed for each request, up to `in` ---- */
	uint32_t magic;
	struct reqs *rs;
	struct list ready; /* on rs->ready */
	uint64_t id, began_ns;
	void *conn;
	const struct conf_listen *listen;

	/* the machine */
	step_fn step;
	const char *step_name;
	const char *wait;     /* what it waits for, NULL while it runs */
	struct req_conf *use; /* the configuration that it points into */
	enum req_phase phase;
	enum fault fault; /* first fault wins */
	const char *why;  /* a sentence of its own for the error body */
	int errno_seen;   /* for the log */
	bool replied;     /* the reply is ready for http/ */
	bool ended;       /* http/ has done with it */
	bool sent, gone;  /* gone: the client is not there any more */
	bool is_tokened;
	bool must_route;  /* its token's address is allowed if the kernel has a route there */
	bool not_allowed; /* its token names an address that is outside rdma.allow: it will be declined */
	bool detached;    /* replied while the store still works on the commit, or the disk on our pieces */
	bool disk_has;    /* a hold for such pieces: until the transfer is over */
	int holds;        /* store operations of our own in flight */
	bool awaiting;    /* the step must not run before the one that req_await() started is over */
	bool revoked;     /* ended because others waited (pace.c) */
	struct list slot; /* of its client's, if it has no descriptor */
	uint8_t lane;     /* store_lane() + 1 of its key, which is counted; 0: none */
	struct pace_mark mark; /* of a body or an answer that xfer does not move */

	/* what the time went to (trace.c) */
	uint64_t phase_ns[STATS_PHASE_NR];
	uint64_t mark_ns; /* until here it is accounted for */
	uint64_t wire_seen_ns, reply_ns;
	const char *was_waiting;
	int trace_left;            /* lines that it may still log; 0: not traced */
	struct trace_steps *steps; /* its latest, while it is traced; NULL: none kept */
	struct timer deadline, linger;
	uint64_t total_deadline_ns, progress_limit_ns;
	uint64_t answer_by_ns; /* when the client expects its answer; UINT64_MAX: nobody knows */
	uint64_t progress_ns;  /* when something moved that xfer does not know of */

	/* the body */
	bool wants_body, body_ended;
	/* What takes its bytes as they come: body_take(), or frames_feed(), which hands on to that. */
	take_fn feed;
	void (*feed_end)(struct req *rq); /* NULL: nothing is to be done */
	take_fn take;                     /* where body_take() hands them; NULL: they wait with the client */

	/* the operation */
	const struct op_hooks *hooks; /* NULL: none, or it did not begin */
	step_fn then;                 /* where steps that several operations share go on */
	step_fn bucket_next;          /* req_need_bucket() */
	const char *bucket_next_name;
	step_fn leased, not_leased; /* req_lease() */
	bool lease_held, lease_waiting;
	bool retried; /* a PUT's READs: this is the second time */

	/* Text, malloc'd when it is needed and gone with the request (body.c) */
	char *body; /* what came, terminated */
	size_t body_len, body_cap;
	struct text out; /* an answer of any length */
	size_t text_held;
	struct cors_answer *cors; /* for a request with an Origin */
	struct span claimed; /* the access key that a form names; points into what goes with the request */

	void *part[POOL_NR]; /* from the pools; NULL: none (part.c).  Three of them: */
	struct req_change *change;
	char *error; /* the body of one */
	void *job;   /* what an operation needs beyond this struct */
	void (*job_fini)(struct req *rq);

	/* GET: what of the object goes out */
	uint64_t off, len;
	bool partial;
	/* the outcome */
	bool declined;
	bool declined_2xx; /* its client turns to HTTP on a 2xx only */
	enum chan_reason reason;
	int status_instead; /* of success; 0: as the outcome has it */
	struct store_etag etag;
	uint64_t rdma_bytes, http_bytes;

	/* the reply */
	struct reply reply;
	int header_nr;
	size_t header_used;
	bool send_attrs;  /* the object's stored headers go out too */
	bool bad_framing; /* what follows on this connection cannot be trusted */

	/* ---- from here on each has a beginning of its own ---- */
	struct dialect_in in; /* strings are http's; not valid after req_end() */
	struct uri uri;       /* likewise: in.uri */
	struct sockaddr_storage local, peer;
	struct identity identity;
	struct store_obj obj;
	struct store_stat stat;     /* of the target's bucket or upload */
	struct bucket_attrs battrs; /* of the bucket; p is NULL when they are not there */
	struct chan_lease lease;
	struct target target;      /* dialect_parse() */
	struct auth_stream frames; /* auth_stream_init(), where feed is frames_feed() */
	struct xfer xfer;
	struct {
		const char *name, *value;
	} header[REQ_HEADERS_MAX]; /* header_nr of them */
	char header_text[REQ_HEADER_BYTES];
};

/* Beside these a request has the parts that its operation asks for, and its buffers. */
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

/* Waits for req_wake(); what: seen in the dump. */
static inline enum verdict
req_wait_to(struct req *rq, const char *what, step_fn next, const char *name)
{
	rq->step = next;
	rq->step_name = name;
	rq->wait = rq->was_waiting = what;
	return REQ_WAIT;
}

#define req_wait(rq, what, next) req_wait_to((rq), (what), (next), #next)

/* Goes on behind a store operation of our own whose start answered r (< 0, 0, > 0): fails, waits, or goes
 * to next. */
enum verdict req_await_to(struct req *rq, int r, const char *what, step_fn next, const char *name);
#define req_await(rq, r, what, next) req_await_to((rq), (r), (what), (next), #next)
/* Goes on likewise behind one that cannot be cancelled from then on: PHASE_COMMIT. */
enum verdict req_await_commit_to(struct req *rq, int r, const char *what, step_fn next, const char *name);
#define req_await_commit(rq, r, what, next) req_await_commit_to((rq), (r), (what), (next), #next)
/* Opens an object as rq->obj; next finds the answer in rq->obj.op.result. */
enum verdict req_open_to(struct req *rq, const struct store_key *k, step_fn next, const char *name);
#define req_open(rq, k, next) req_open_to((rq), (k), (next), #next)
/* Opens one of which so many bytes are read at once, as far as is known now (store_open_to_read()). */
enum verdict req_open_to_read_to(struct req *rq, const struct store_key *k, uint64_t want, step_fn next,
				 const char *name);
#define req_open_to_read(rq, k, want, next) req_open_to_read_to((rq), (k), (want), (next), #next)
/* Goes on to next when the target's bucket is there; fails the request when it is not. */
enum verdict req_need_bucket_to(struct req *rq, step_fn next, const char *name);
#define req_need_bucket(rq, next) req_need_bucket_to((rq), (next), #next)
/* Goes on as well when it was there a moment ago: for what will be committed in it, which looks again. */
enum verdict req_expect_bucket_to(struct req *rq, step_fn next, const char *name);
#define req_expect_bucket(rq, next) req_expect_bucket_to((rq), (next), #next)
/* Looks for the target's upload; next finds the answer in rq->stat.op.result, and its attributes in the
 * target's. */
enum verdict req_stat_upload_to(struct req *rq, step_fn next, const char *name);
#define req_stat_upload(rq, next) req_stat_upload_to((rq), (next), #next)
/* Reads the attributes of the target's bucket; next finds the answer in rq->battrs.stat.op.result. */
enum verdict req_read_battrs_to(struct req *rq, step_fn next, const char *name);
#define req_read_battrs(rq, next) req_read_battrs_to((rq), (next), #next)
/* Keeps the fault, if it is the first, and goes to the drain. */
enum verdict req_fail(struct req *rq, enum fault f, const char *why);
/* Puts the request on the core's ready list: its step runs in the next turn. */
void req_wake(struct req *rq);
/* Ends what is going on, as far as that is possible, for that fault. */
void req_cancel(struct req *rq, enum fault f, const char *why);
/* Returns the fault that -errno of a store operation or of an allocation becomes (fault.c). */
enum fault fault_of(int err);
/* Returns the name of the target's object; points into the target. */
struct store_key req_key(const struct req *rq);
/* Drops the hold of a store operation that ended and wakes the request: the tail of every done(). */
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
/* Keeps a request that was declined or went wrong for the status page. */
void req_note(const struct req *rq);
/* Writes the request's line of the access log. */
void access_log(const struct req *rq);
/* Writes a line of the access log for one of the keys that a request names in its body; f: what became of
 * it.  Only where log.object_keys says so. */
void access_log_key(const struct req *rq, const char *key, size_t len, enum fault f);

/* ---- the end (drain.c) ---- */
/* Waits until nothing is in flight, then replies: where a request goes that failed. */
enum verdict drain(struct req *rq);
enum verdict drained(struct req *rq);
/* Puts the reply together: the last step of each request. */
enum verdict req_reply_step(struct req *rq);
/* Goes there with rq->out, which is XML, as the body of the reply. */
enum verdict req_reply_xml(struct req *rq);

/* ---- trace.c ---- */
/* Counts the request among the users of the configuration of now. */
void req_use_conf(struct req *rq);
/* Ends that, and frees the steps that a trace kept. */
void req_drop_conf(struct req *rq);
/* Begins to account for the request's time, and to trace it if it is one that is wanted. */
void req_clock_begin(struct req *rq);
/* Accounts for the time up to the end of the first step. */
void req_clock_front(struct req *rq);
/* Adds the time since the last mark to the phase of the wait that just ended. */
void req_clock_wait(struct req *rq);
/* Adds what the request's phases took to the counters. */
void req_clock_end(const struct req *rq);
/* Logs what a traced request does, and keeps it among its latest steps. */
void trace_line(struct req *rq, const char *what);

/* ---- signatures (authorise.c) ---- */

/* Finds out who asks, and whether that is granted to them: FAULT_NONE or what to answer. */
enum fault front_auth(struct req *rq, const char **ret_why);
/* Finds out who asks for what was not understood: FAULT_NONE, and they may be told, or what to answer
 * instead. */
enum fault front_who(struct req *rq, const char **ret_why);
/* Fills in what auth/ wants to know of the request's surroundings. */
void front_auth_env(const struct req *rq, struct auth_env *ret);

/* ---- browsers (browser.c) ---- */

/* Judges an unsigned request that a stranger's web page may have made a browser send: FAULT_NONE, or what
 * to answer. The bucket's CORS rules have been asked (cors_look()), where they concern it. */
enum fault browser_check(const struct req *rq, const char **ret_why);

/* ---- steps ---- */
/* Judges the request and finds its operation: the first step of each (front.c). */
enum verdict front(struct req *rq);

/* ---- may they (authorise.c) ---- */
/* Tells whether who asks has that right to a key of the target's bucket. */
bool may_key(const struct req *rq, enum auth_right right, const char *key, size_t key_len);
/* Returns what to answer where may_key() says no. */
enum fault why_not_key(const struct req *rq, enum auth_right right, const char *key, size_t key_len);
/* Tells whether who asks may know of that bucket. */
bool may_see_bucket(const struct req *rq, const char *bucket, size_t bucket_len);

/* ---- attributes (sums.c) ---- */
#define ATTR_SUM_ALGORITHM "x-amz-checksum-algorithm" /* of an upload */
#define ATTR_SUM_TYPE "x-amz-checksum-type"           /* of an upload, and of the object made of it */

/* ---- cross-origin requests (cors.c) ---- */
/* Tells whether the answer depends on the bucket's rules: the request has an Origin. */
bool cors_concerns(const struct req *rq);
/* Finds the rule for the request's Origin, if it has one, once the bucket's attributes are read. */
void cors_look(struct req *rq);
/* Finds the rule for that origin, method and (may be NULL) list of headers among the bucket's attributes
 * that were read, and keeps what it says in rq->cors.  Tells whether there is one. */
bool cors_find(struct req *rq, const struct field *origin, const char *method, size_t method_len,
	       const struct field *headers);
/* Hands out the fields that rq->cors asks for. */
void cors_headers(struct req *rq, header_fn header, void *cookie);

/* ---- checksums (sums.c) ---- */
/* Returns the digest that computes that checksum; not of CRC64-NVME, which the store computes. */
enum digest_kind digest_of_sum(enum checksum_kind k);
/* Writes a CRC64 in the order of the wire. */
void sum_of_u64(uint64_t v, uint8_t out[8]);
/* Reads what sum_of_u64() writes. */
uint64_t sum_to_u64(const uint8_t b[8]);
/* Writes the Base64 of a CRC64 as the wire has it, and NUL. */
void sum_text64(uint64_t v, char out[16]);
/* Writes a value as Base64, and "-N" of a composite one; returns the length. */
size_t sum_text(const uint8_t *value, enum checksum_kind k, uint32_t parts, char out[64]);
/* Finds an algorithm by its name, "CRC32C" and so on: 0 or -ENOENT. */
int sums_find_algorithm(const char *name, size_t len, enum checksum_kind *ret_kind);
/* Collects the checksums among stored attributes; takes crc64 (may be NULL) when there is no other. */
void sums_stored(const void *attrs, size_t attrs_len, const uint64_t *crc64, struct xml_sums *out);
/* Returns the name of the algorithm that S3 would name for an object with these attributes; NULL: none. */
const char *algorithm_of(const void *attrs, size_t attrs_len, enum checksum_type *ret_type);
/* Returns the storage class among stored attributes, terminated; NULL: STANDARD. */
const char *storage_class_of(const void *attrs, size_t attrs_len, char out[32]);
/* Collects the checksums of an object, and their type. */
void sums_of_obj(const struct store_obj *obj, struct xml_sums *out);
/* Returns the CRC32 or CRC32C of A and B together. */
uint32_t sum_crc32_combine(enum checksum_kind k, uint32_t a, uint32_t b, uint64_t len_b);

/* ---- parts (part.c) ---- */
/* Makes the pools for nr requests.  0 or -ENOMEM. */
int parts_init(struct reqs *rs, int nr);
/* Frees them; no request may have a part.  Fine on pools that were never made. */
void parts_fini(struct reqs *rs);
/* Gives the request the part that its change of the store needs; it goes with the request.  NULL: there is
 * none now. */
struct store_put *req_put_part(struct req *rq);
struct store_del *req_del_part(struct req *rq);
/* Gives the request room for the body of an error: REQ_ERROR_BYTES.  NULL: there is none now. */
char *req_error_part(struct req *rq);
/* Serves as get() of a struct target_source whose cookie is the request. */
void *req_target_part(void *rq, enum target_part part);
/* Makes the request's job, zeroed, of REQ_LARGE_JOB_BYTES at most; fini (may be NULL) frees what it points
 * to. NULL: there is none now. */
void *req_job(struct req *rq, size_t bytes, void (*fini)(struct req *rq));
/* Takes bytes of the core's share of text memory, given back with the request.  0 or -EAGAIN. */
int req_hold_text(struct req *rq, size_t bytes);
/* Gives back all parts and texts of a request. */
void parts_release(struct req *rq);

/* ---- slow clients (pace.c) ---- */
/* Makes the slots, for as many requests as rs has. */
void pace_init(struct reqs *rs);
/* Finds out whose the request is (limits.fair_by), and counts one without a descriptor among its client's;
 * one that was counted before is fine.  false: there is no room for it. */
bool pace_slot_get(struct req *rq);
/* Counts a request for the disk of its key, and its bytes with it.  False: half of all requests are for that disk, which may
 * hang. */
bool pace_lane_get(struct req *rq);
void pace_lane_put(struct req *rq);
/* Ends that; fine without. */
void pace_slot_put(struct req *rq);
/* Looks at who holds buffers, for as long as somebody waits for one. */
void pace_wait(struct reqs *rs);
/* Asks for one of the buffers for HTTP bodies and goes on with next, where rq->xfer.have_ticket says
 * whether it is there. */
enum verdict req_http_ticket_to(struct req *rq, step_fn next, const char *name);
#define req_http_ticket(rq, next) req_http_ticket_to((rq), (next), #next)

/* ---- text (body.c) ---- */
/* Collects the body, checks it against what the headers say of it, then next. */
enum verdict body_collect(struct req *rq, step_fn next);
/* Hands bytes of a body to who takes them at the time; returns how many were taken. */
size_t body_take(struct req *rq, const void *data, size_t len);

/* ---- ticket and lease (lease.c) ---- */
enum verdict lease_start(struct req *rq);
/* Gets what a transfer by descriptor needs, in order; goes on with granted, or with declined (rq->reason says
 * why). */
static inline enum verdict
req_lease(struct req *rq, step_fn granted, step_fn declined)
{
	rq->leased = granted;
	rq->not_leased = declined;
	return req_go(rq, lease_start);
}
/* Gives it back, or leaves the queue for it; fine without one. */
void lease_release(struct req *rq);

/* ---- declines (decline.c) ---- */
/* Notes that the request's descriptor will not be used, for rq->reason, and how its client is told so. */
void req_declined(struct req *rq);
/* Notes it of a request that failed because it is for the control protocol of another transport, which
 * connects queue pairs: such a protocol is declined as a whole. */
void req_declined_control(struct req *rq);

/* ---- the reply (reply.c) ---- */
/* Returns the name of a standard field, as the answers of the request's listener spell it. */
static inline const char *
reply_name(const struct req *rq, enum reply_field h)
{
	return field_name[rq->listen->dialect][h];
}
/* Adds a field to the reply, its name from reply_name() or one of ours in lower case: formatted, copied, a
 * decimal number, of a text that lives as long as the request. */
void reply_header(struct req *rq, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void reply_text(struct req *rq, const char *name, const char *value);
void reply_number(struct req *rq, const char *name, uint64_t v);
void reply_ref(struct req *rq, const char *name, const char *value);
/* Adds the ETag field: rq->etag in quotes. */
void reply_etag(struct req *rq);
/* Fills in rq->reply from fault, decline or success.  kind as protocol.md 4.1 has it. */
void reply_build(struct req *rq, enum outcome_kind kind);
/* Writes the text of an ETag, without quotes, and NUL; returns its length. */
size_t etag_text(const struct store_etag *e, char out[48]);
/* Parses what etag_text() writes: 0 or -EINVAL. */
int etag_parse(const char *text, size_t len, struct store_etag *ret_etag);

#endif
