/*
 * Counters: plain ones per core, summed only when somebody asks; and the Prometheus text that shows them.
 *
 * A struct stats_core belongs to one core, which is its only writer; increments are relaxed and cost a load
 * and a store. Any thread may read.  Names, types, labels and help of every metric stand in one table
 * (stats/registry.c).  Labels are bounded: never an object's key, never an address.
 *
 * stats/ knows nothing above base/: the names of operations and decline reasons are handed in by stats_new(),
 * rails, disks and buffers are added by the collectors of whoever has them (stats_emit()).
 */
#ifndef GANTRY_STATS_STATS_H
#define GANTRY_STATS_STATS_H

#include "base/latency.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define STATS_OPS_MAX 64     /* operations (dialect/'s enum op) */
#define STATS_REASONS_MAX 16 /* decline reasons (chan/'s enum chan_reason) */
#define STATS_BUCKETS_NR LATENCY_NR
#define STATS_CODES_NR 24 /* HTTP statuses that have a counter of their own; slot 0 is every other one */

/* The numbers are those of conf/'s enum conf_dialect. */
enum stats_dialect { STATS_S3, STATS_SCALITY, STATS_DIALECT_NR };
enum stats_transport { STATS_HTTP, STATS_RDMA, STATS_TRANSPORT_NR };
/* Over the wire: push is server to client (serves a GET), pull is client to server (serves a PUT). */
enum stats_dir { STATS_PUSH, STATS_PULL, STATS_DIR_NR };

/* Events that need no label. */
enum stats_event {
	STATS_ACCEPTED,     /* connections taken over by a core */
	STATS_HTTP_REFUSED, /* requests refused at the door, before a dialect saw them */
	STATS_SUMS_IGNORED, /* a checksum of the empty string beside an RDMA window (protocol.md item 45) */
	STATS_QUEUE_FULL,   /* a bounded FIFO was full: 503 */
	STATS_DEADLINE_PASSED, /* a request's deadline passed */
	STATS_CLIENT_GONE,     /* the client went away before the reply */
	STATS_RETRIED,         /* pulls tried once more on a fresh channel */
	STATS_EXPIRED,         /* objects deleted by lifecycle rules */
	STATS_UPLOAD_EXPIRED,  /* uploads ended by lifecycle rules and limits.upload_expire */
	STATS_LIFE_WALKS,      /* walks over all buckets that came to their end */
	STATS_EVENT_NR
};

/* What a request's time goes to. */
enum stats_phase {
	STATS_PH_AUTH,  /* head to the first wait: parsing, who asks, may they */
	STATS_PH_OPEN,  /* the index, and an object's record */
	STATS_PH_QUEUE, /* for a buffer, a channel, an address handle */
	STATS_PH_DISK,  /* payload, while none of it is on the wire */
	STATS_PH_WIRE,  /* payload on its way from or to the client */
	STATS_PH_COMMIT,
	STATS_PHASE_NR
};

extern const char *const stats_phase_name[STATS_PHASE_NR];

typedef _Atomic uint64_t stats_counter;

/* One of the latest requests that were declined or went wrong (recent.c's). */
#define STATS_NOTES_NR 32
struct stats_note_slot {
	_Atomic uint64_t seq, unix_ns, id, what;
	_Atomic uintptr_t code;
};

struct stats_histogram {
	stats_counter buckets[STATS_BUCKETS_NR];
	stats_counter sum_ns;
};

struct stats;

struct stats_core {
	_Alignas(128)
		stats_counter requests[STATS_DIALECT_NR][STATS_OPS_MAX][STATS_TRANSPORT_NR][STATS_CODES_NR];
	struct stats_histogram duration[STATS_OPS_MAX][STATS_TRANSPORT_NR];
	struct stats_histogram first_byte[STATS_OPS_MAX][STATS_TRANSPORT_NR];
	struct stats_histogram phase[STATS_PHASE_NR][STATS_TRANSPORT_NR];
	stats_counter bytes[STATS_DIR_NR][STATS_TRANSPORT_NR];
	stats_counter declines[STATS_REASONS_MAX];
	stats_counter events[STATS_EVENT_NR];
	stats_counter notes_nr;
	struct stats_note_slot notes[STATS_NOTES_NR];
};

/* ---- life: main thread ---- */

/* Both tables are kept by the caller for the life of the struct.  A reason that is NULL or empty is never
 * shown; an operation without a name is shown as "other" (a request that named none). */
struct stats_names {
	const char *const *op;
	int op_nr;
	const char *const *reason;
	int reason_nr;
};

/* 0, -ENOMEM, or -EINVAL (more names than there is room for). */
int stats_new(int core_nr, const struct stats_names *names, struct stats **ret_stats);
/* NULL is fine. */
void stats_free(struct stats *st);
struct stats_core *stats_core(struct stats *st, int core);

/* ---- the owning core ---- */

/* One writer, so no locked instruction is needed. */
static inline void
stats_add(stats_counter *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t
stats_get(const stats_counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

/* A request ended: one call each, when its reply was handed over (or nobody was left to take it: http_code
 * 0). */
void stats_request(struct stats_core *st, int dialect, int op, int http_code, enum stats_transport transport,
		   uint64_t duration_ns);

/* Of the same request: from its head to the first payload byte at the client, or to the reply where none goes
 * there. */
void stats_first_byte(struct stats_core *st, int op, enum stats_transport transport, uint64_t ns);
/* Phases that took no time are not counted. */
void stats_phases(struct stats_core *st, enum stats_transport transport,
		  const uint64_t phase_ns[STATS_PHASE_NR]);

/* Payload bytes that moved. */
static inline void
stats_bytes(struct stats_core *st, enum stats_dir dir, enum stats_transport transport, uint64_t bytes)
{
	stats_add(&st->bytes[dir][transport], bytes);
}

/* RDMA was asked for and not used; reason is an index into stats_names.reason. */
static inline void
stats_decline(struct stats_core *st, int reason)
{
	if (reason >= 0 && reason < STATS_REASONS_MAX)
		stats_add(&st->declines[reason], 1);
}

static inline void
stats_event(struct stats_core *st, enum stats_event ev)
{
	stats_add(&st->events[ev], 1);
}

struct stats_note {
	uint64_t unix_ns, id;
	int op, status;
	int reason;       /* of a decline: an index into stats_names.reason; 0: it was none */
	const char *code; /* of an error: static text, or NULL */
};

/* Notes a request that was declined or went wrong; the latest STATS_NOTES_NR of a core are kept. */
void stats_note(struct stats_core *st, const struct stats_note *n);
/* Those of all cores, newest first, at most max; returns how many.  Any thread. */
int stats_recent(const struct stats *st, struct stats_note *notes, int max);
int stats_core_nr(const struct stats *st);
const struct stats_core *stats_core_at(const struct stats *st, int core);
/* The names that stats_new() was given; "other" and "" where there is none. */
const char *stats_op_name(const struct stats *st, int op);
const char *stats_reason_name(const struct stats *st, int reason);

/* How many requests ended with that status, of all operations and transports of that core.  Any thread;
 * tests. */
uint64_t stats_requests_of(const struct stats_core *st, int dialect, int http_code);

/* ---- the text: any thread ---- */

/* Every metric there is; the order is that of the text. */
enum stats_metric {
	M_BUILD_INFO,         /* version */
	M_REQUESTS,           /* dialect, operation, code, transport */
	M_REQUEST_DURATION,   /* operation, transport: a histogram, stats/'s own */
	M_FIRST_BYTE,         /* likewise */
	M_PHASE_DURATION,     /* phase, transport: likewise */
	M_REQUESTS_IN_FLIGHT, /* core */
	M_TRANSFER_BYTES,     /* direction, transport */
	M_DECLINES,           /* reason */
	M_CONNECTIONS,        /* core */
	M_ACCEPTED,
	M_HTTP_REFUSED,
	M_SUMS_IGNORED,
	M_QUEUE_FULL,
	M_DEADLINE_PASSED,
	M_CLIENT_GONE,
	M_RETRIED,
	M_EXPIRED,
	M_UPLOAD_EXPIRED,
	M_LIFE_WALKS,
	M_BUFFERS,          /* class, state (free, used) */
	M_BUFFERS_HIGH,     /* class: most in use since the start */
	M_REQUESTS_HIGH,    /* core: likewise */
	M_QUEUED,           /* core: requests that wait for a buffer or a channel */
	M_QUEUED_HIGH,      /* core */
	M_CORE_TURNED,      /* core: seconds since its loop last turned, 0 while it sleeps */
	M_RAIL_UP,          /* rail */
	M_RDMA_COMPLETIONS, /* rail, status */
	M_RDMA_BYTES,       /* rail, op (read, write) */
	M_RDMA_OPERATIONS,  /* rail, op */
	M_DCI,              /* rail, state (free, leased, recovering) */
	M_DCI_RESETS,       /* rail */
	M_DCI_RECREATED,    /* rail */
	M_RDMA_REOPENS,     /* rail */
	M_AH_LOOKUPS,       /* rail, result (hit, miss, failed) */
	M_STORE_SIZE,       /* disk, here and below */
	M_STORE_FREE,
	M_STORE_LOG_SIZE,
	M_STORE_LOG_USED,
	M_STORE_INDEX,
	M_STORE_OBJECTS,
	M_STORE_COMMITS,
	M_STORE_RECORDS,
	M_STORE_FLUSHES,
	M_STORE_SNAPSHOTS,
	M_STORE_IO_BYTES,   /* disk, op (read, write) */
	M_STORE_OPERATIONS, /* disk, op */
	M_STORE_LATENCY,    /* disk, op (read, write, flush): a histogram */
	M_STORE_ERRORS,     /* disk, kind (io, crc) */
	M_STORE_UP,
	M_SCRUB_RUNNING,
	M_SCRUB_WALKS,
	M_SCRUB_OBJECTS,
	M_SCRUB_BYTES,
	M_SCRUB_ERRORS, /* kind (io, crc) */
	M_SCRUB_DAMAGED,
	M_SCRUB_FINISHED,
	M_LOG_LINES, /* level */
	M_LOG_HELD,
	M_DRAINING,
	M_CONFIG_RELOAD_FAILURES,
	M_CONFIG_RELOADED,
	M_CONFIG_RESTART_NEEDED,
	M_PROCESS_CPU,
	M_PROCESS_RESIDENT,
	M_PROCESS_VIRTUAL,
	M_PROCESS_FDS,
	M_PROCESS_FDS_MAX,
	M_PROCESS_START,
	M_NR
};

/* A text being gathered.  Samples may come in any order; those of one metric are put together. */
struct stats_out;

/* Adds to out whatever its owner knows; called on the thread that writes the text. */
typedef void (*stats_collect_fn)(void *cookie, struct stats_out *out);

/* 0 or -ENOMEM. */
int stats_out_new(struct stats_out **ret_out);
void stats_out_free(struct stats_out *out);

/* One sample.  Then the values of the metric's labels, in the order of the table, and NULL. */
void stats_emit(struct stats_out *out, enum stats_metric m, uint64_t value, ...) __attribute__((sentinel));
/* The same for a metric in seconds. */
void stats_emit_ns(struct stats_out *out, enum stats_metric m, uint64_t value_ns, ...)
	__attribute__((sentinel));

/* A histogram that somebody else keeps, in the buckets of base/latency.h; then labels as above. */
void stats_emit_histogram(struct stats_out *out, enum stats_metric m, const uint64_t buckets[LATENCY_NR],
			  uint64_t sum_ns, const char *label1, const char *label2);

/* The sums over all cores, build_info and process_*. */
void stats_collect(const struct stats *st, struct stats_out *out);

/* The whole text, terminated; the caller frees it.  0 or -ENOMEM (also when a sample had no room). */
int stats_out_text(struct stats_out *out, char **ret_text, size_t *ret_len);

/* Every metric there is: "name\ttype\tlabels\thelp" a line, for checks of dashboards and manuals. */
void stats_print_table(FILE *out);

/* The Content-Type of that text. */
#define STATS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

#endif
