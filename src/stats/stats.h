/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters: plain ones per core, summed only when somebody asks; and the Prometheus text that shows them.
 *
 * A struct stats_core belongs to one core, which is its only writer; increments are relaxed and cost a load
 * and a store. Any thread may read.  Every metric is a row of stats/metric.def, every event that is counted
 * one of stats/event.def.  Labels are bounded: never an object's key, never an address.
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

/* Bound what stats_new() takes: operations (dialect/'s enum op), at 1376 bytes a core each, so 172 KiB a
 * core; and decline reasons (chan/'s enum chan_reason).  Who hands in the names asserts that they fit. */
#define STATS_OPS_MAX 128
#define STATS_REASONS_MAX 16
#define STATS_BUCKETS_NR LATENCY_NR
#define STATS_CODES_NR 24 /* HTTP statuses that have a counter of their own; slot 0 is every other one */

/* The numbers are those of conf/'s enum conf_dialect. */
enum stats_dialect { STATS_S3, STATS_SCALITY, STATS_DIALECT_NR };
enum stats_transport { STATS_HTTP, STATS_RDMA, STATS_TRANSPORT_NR };
/* Over the wire: push is server to client (serves a GET), pull is client to server (serves a PUT). */
enum stats_dir { STATS_PUSH, STATS_PULL, STATS_DIR_NR };

/* Numbers the events of stats/event.def. */
enum stats_event {
#define EVENT(id, metric, values) id,
#include "stats/event.def"
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

/* Bounds the access keys that have a counter of their own (keys.c). */
#define STATS_KEYS_NR 64

struct stats;
struct stats_keys;

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
	struct stats_keys *keys; /* of all cores */
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

/* Makes the counters of core_nr cores.  0, -ENOMEM, or -EINVAL: no core, or more names than there is room
 * for. */
int stats_new(int core_nr, const struct stats_names *names, struct stats **ret_stats);
/* Frees the statistics.  NULL is fine. */
void stats_free(struct stats *st);
struct stats_core *stats_core(struct stats *st, int core);

/* ---- the owning core ---- */

/* Adds to a counter, which has one writer, so that no locked instruction is needed. */
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

/* Counts a request that ended: one call each, when its reply was handed over (or nobody was left to take
 * it: http_code 0). */
void stats_request(struct stats_core *st, int dialect, int op, int http_code, enum stats_transport transport,
		   uint64_t duration_ns);

/* Counts the time of a request from its head to the first payload byte at the client, or to the reply
 * where none goes there. */
void stats_first_byte(struct stats_core *st, int op, enum stats_transport transport, uint64_t ns);
/* Phases that took no time are not counted. */
void stats_phases(struct stats_core *st, enum stats_transport transport,
		  const uint64_t phase_ns[STATS_PHASE_NR]);

/* Counts payload bytes that moved. */
static inline void
stats_bytes(struct stats_core *st, enum stats_dir dir, enum stats_transport transport, uint64_t bytes)
{
	stats_add(&st->bytes[dir][transport], bytes);
}

/* Counts a request that asked for RDMA and did not get it; reason is an index into stats_names.reason. */
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

/* Counts a request whose transfer ended in a remote-access error, by the access key that signed it; NULL:
 * nobody did. The first STATS_KEYS_NR keys have counters of their own, all others one together. */
void stats_remote_access(struct stats_core *st, const char *access_key);

struct stats_note {
	uint64_t unix_ns, id;
	int op, status;
	int reason;       /* of a decline: an index into stats_names.reason; 0: it was none */
	const char *code; /* of an error: static text, or NULL */
};

/* Notes a request that was declined or went wrong; the latest STATS_NOTES_NR of a core are kept. */
void stats_note(struct stats_core *st, const struct stats_note *n);
/* Copies the notes of all cores, newest first, at most max; returns how many.  Any thread. */
int stats_recent(const struct stats *st, struct stats_note *notes, int max);
int stats_core_nr(const struct stats *st);
const struct stats_core *stats_core_at(const struct stats *st, int core);
/* Returns the names that stats_new() was given; "other" and "" where there is none. */
const char *stats_op_name(const struct stats *st, int op);
const char *stats_reason_name(const struct stats *st, int reason);

/* Counts the requests that ended with that status, of all operations and transports of that core.  Any
 * thread; tests. */
uint64_t stats_requests_of(const struct stats_core *st, int dialect, int http_code);

/* ---- the text: any thread ---- */

/* Numbers the metrics of stats/metric.def. */
enum stats_metric {
#define METRIC(id, type, name, labels, help) id,
#include "stats/metric.def"
	M_NR
};

/* Names the types of metrics. */
enum stats_type { ST_COUNTER, ST_GAUGE, ST_HISTOGRAM };

/* Counts its arguments, from one to five. */
#define STATS_COUNT(...) STATS_SIXTH(__VA_ARGS__, 5, 4, 3, 2, 1, 0)
#define STATS_SIXTH(a, b, c, d, e, n, ...) n

/* Tells the compiler of each metric what its type is and how many labels it has: STATS_TYPE_M_RAIL_UP,
 * STATS_LABELS_M_RAIL_UP. */
enum {
#define METRIC(id, type, name, labels, help) STATS_TYPE_##id = ST_##type, STATS_LABELS_##id = labels,
#define LABELS(...) STATS_COUNT(__VA_ARGS__)
#define NO_LABELS 0
#include "stats/metric.def"
};

/* A text being gathered.  Samples may come in any order; those of one metric are put together. */
struct stats_out;

/* Adds to out whatever its owner knows; called on the thread that writes the text. */
typedef void (*stats_collect_fn)(void *cookie, struct stats_out *out);

/* Makes an empty text.  0 or -ENOMEM. */
int stats_out_new(struct stats_out **ret_out);
void stats_out_free(struct stats_out *out);

/* Stands for metric m, and ends the build with `message` unless `holds`. */
#define STATS_METRIC_IF(m, holds, message)                                                                   \
	((enum stats_metric)(m + 0 * sizeof(struct {                                                         \
					 _Static_assert(holds, message);                                     \
					 int unused;                                                         \
				 })))
/* Stands for metric m, and ends the build unless it is no histogram and what follows are the values of its
 * labels and NULL. */
#define STATS_METRIC_OF(m, ...)                                                                              \
	STATS_METRIC_IF(                                                                                     \
		m, (int)STATS_TYPE_##m != ST_HISTOGRAM && STATS_COUNT(__VA_ARGS__) == STATS_LABELS_##m + 1,  \
		"a counter or gauge, a value for each of its labels, and NULL")

/* Adds a sample of metric m, by its name: the values of its labels in the order of metric.def, then NULL. One
 * too many or too few ends the build. */
#define stats_emit(out, m, value, ...)                                                                       \
	stats_emit_values(out, STATS_METRIC_OF(m, __VA_ARGS__), value, (const char *const[]){ __VA_ARGS__ })
/* Adds a sample of a metric in seconds, likewise. */
#define stats_emit_ns(out, m, value_ns, ...)                                                                 \
	stats_emit_values_ns(out, STATS_METRIC_OF(m, __VA_ARGS__), value_ns,                                 \
			     (const char *const[]){ __VA_ARGS__ })
/* Adds a histogram that somebody else keeps, in the buckets of base/latency.h: out, m, buckets, sum_ns and
 * the values of its two labels. */
#define stats_emit_histogram(out, m, ...)                                                                    \
	stats_emit_buckets(out, STATS_METRIC_IF(m, (int)STATS_TYPE_##m == ST_HISTOGRAM, "a histogram"),      \
			   __VA_ARGS__)

/* Adds a sample of a metric that is known only when it runs; values: of its labels, then NULL. */
void stats_emit_values(struct stats_out *out, enum stats_metric m, uint64_t value, const char *const *values);
/* Adds a sample of a metric in seconds, likewise. */
void stats_emit_values_ns(struct stats_out *out, enum stats_metric m, uint64_t value_ns,
			  const char *const *values);
/* Adds a histogram that is known only when it runs.  One without any sample is left out. */
void stats_emit_buckets(struct stats_out *out, enum stats_metric m, const uint64_t buckets[LATENCY_NR],
			uint64_t sum_ns, const char *label1, const char *label2);

/* Emits the sums over all cores, build_info and process_*. */
void stats_collect(const struct stats *st, struct stats_out *out);

/* Returns the whole text, terminated; the caller frees it.  0 or -ENOMEM (also when a sample had no room). */
int stats_out_text(struct stats_out *out, char **ret_text, size_t *ret_len);

/* Prints every metric there is: "name\ttype\tlabels\thelp" a line, for checks of dashboards and manuals. */
void stats_print_table(FILE *out);

/* The Content-Type of that text. */
#define STATS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

#endif
