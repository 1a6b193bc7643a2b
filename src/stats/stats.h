/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of each core, summed only on request, and the Prometheus text that shows them.
 *
 * A struct stats_core belongs to one core, which is its only writer; increments are relaxed and cost a load
 * and a store. Any thread may read. Every metric is a row of stats/metric.def, every counted event a row of
 * stats/event.def. Labels are bounded: never an object's key, never an address.
 *
 * stats/ knows nothing above base/: stats_new() receives the names of operations and decline reasons, and the
 * owners of rails, disks and buffers add their values with collectors (stats_emit()).
 */
#ifndef GANTRY_STATS_STATS_H
#define GANTRY_STATS_STATS_H

#include "base/latency.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Limits of stats_new(): operations (enum op of dialect/), at 1376 bytes each, 172 KiB a core; and decline
 * reasons (enum chan_reason of chan/). The caller asserts that its names fit. */
#define STATS_OPS_MAX 128
#define STATS_REASONS_MAX 16
#define STATS_BUCKETS_NR LATENCY_NR
#define STATS_CODES_NR 24 /* number of HTTP statuses with a counter of their own; slot 0 counts all others */

/* Numbered like enum conf_dialect of conf/. */
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

/* Phases of a request, by which its time is counted. */
enum stats_phase {
	STATS_PH_AUTH,  /* phase from the head to the first wait: parsing, authentication, authorization */
	STATS_PH_OPEN,  /* phase of looking up an object in the index, and reading its record */
	STATS_PH_QUEUE, /* phase of waiting for a buffer, a channel or an address handle */
	STATS_PH_DISK,  /* phase in which payload is processed and none of it is on the wire */
	STATS_PH_WIRE,  /* phase in which payload is on the wire, from or to the client */
	STATS_PH_COMMIT,
	STATS_PHASE_NR
};

extern const char *const stats_phase_name[STATS_PHASE_NR];

typedef _Atomic uint64_t stats_counter;

/* Number of notes kept: the latest declined or failed requests of a core (recent.c). */
#define STATS_NOTES_NR 32
struct stats_note_slot {
	_Atomic uint64_t seq, unix_ns, id, what;
	_Atomic uintptr_t code;
};

struct stats_histogram {
	stats_counter buckets[STATS_BUCKETS_NR];
	stats_counter sum_ns;
};

/* Limit of access keys with a counter of their own (keys.c). */
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
	struct stats_keys *keys; /* counters of access keys, shared by all cores */
};

/* ---- life: main thread ---- */

/* The caller keeps both tables for the life of the struct. A reason that is NULL or empty is never shown; an
 * operation without a name is shown as "other" (for requests without an operation). */
struct stats_names {
	const char *const *op;
	int op_nr;
	const char *const *reason;
	int reason_nr;
};

/* Makes the counters of core_nr cores. Returns 0; -ENOMEM; or -EINVAL if core_nr is 0, or there are more
 * names than the limits. */
int stats_new(int core_nr, const struct stats_names *names, struct stats **ret_stats);
/* Frees the statistics. NULL is allowed. */
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

/* Counts a request that has ended; called once for each request, when its reply was handed over, or with
 * http_code 0 when its client has left. */
void stats_request(struct stats_core *st, int dialect, int op, int http_code, enum stats_transport transport,
		   uint64_t duration_ns);

/* Counts the time from a request's head to its first payload byte at the client, or to its reply if no
 * payload goes there. */
void stats_first_byte(struct stats_core *st, int op, enum stats_transport transport, uint64_t ns);
/* Adds the phases of a request. Phases of 0 ns are not counted. */
void stats_phases(struct stats_core *st, enum stats_transport transport,
		  const uint64_t phase_ns[STATS_PHASE_NR]);

/* Counts payload bytes that moved. */
static inline void
stats_bytes(struct stats_core *st, enum stats_dir dir, enum stats_transport transport, uint64_t bytes)
{
	stats_add(&st->bytes[dir][transport], bytes);
}

/* Counts a request that asked for RDMA and was declined; reason is an index into stats_names.reason. */
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

/* Counts a request whose transfer ended in a remote-access error, under the access key that signed it; NULL:
 * unsigned. The first STATS_KEYS_NR access keys have counters of their own; all others share a counter. */
void stats_remote_access(struct stats_core *st, const char *access_key);

struct stats_note {
	uint64_t unix_ns, id;
	int op, status;
	int reason;       /* reason of a decline, as an index into stats_names.reason; 0: not declined */
	const char *code; /* error code, a constant text; NULL: no error */
};

/* Stores a note of a request that was declined or failed; the latest STATS_NOTES_NR of a core are kept. */
void stats_note(struct stats_core *st, const struct stats_note *n);
/* Copies the notes of all cores, newest first, at most max. Returns the number of notes copied.  Any thread. */
int stats_recent(const struct stats *st, struct stats_note *notes, int max);
int stats_core_nr(const struct stats *st);
const struct stats_core *stats_core_at(const struct stats *st, int core);
/* Returns the name that stats_new() got for the operation; "other" or "" if there is no name. */
const char *stats_op_name(const struct stats *st, int op);
const char *stats_reason_name(const struct stats *st, int reason);

/* Counts the requests that ended with that status, of all operations and transports of that core. Any thread;
 * for tests. */
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

/* Defines for each metric its type and number of labels as constants: STATS_TYPE_M_RAIL_UP,
 * STATS_LABELS_M_RAIL_UP. */
enum {
#define METRIC(id, type, name, labels, help) STATS_TYPE_##id = ST_##type, STATS_LABELS_##id = labels,
#define LABELS(...) STATS_COUNT(__VA_ARGS__)
#define NO_LABELS 0
#include "stats/metric.def"
};

/* A text in preparation. Samples may be added in any order; the text groups them by metric. */
struct stats_out;

/* Adds the samples of the collector's owner to out; called on the thread that writes the text. */
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
/* Stands for metric m, and ends the build if it is a histogram or if the arguments are not the values of its
 * labels followed by NULL. */
#define STATS_METRIC_OF(m, ...)                                                                              \
	STATS_METRIC_IF(                                                                                     \
		m, (int)STATS_TYPE_##m != ST_HISTOGRAM && STATS_COUNT(__VA_ARGS__) == STATS_LABELS_##m + 1,  \
		"a counter or gauge, a value for each of its labels, and NULL")

/* Adds a sample of metric m, by its name: the values of its labels in the order of metric.def, then NULL. One
 * too many or too few ends the build. */
#define stats_emit(out, m, value, ...)                                                                       \
	stats_emit_values(out, STATS_METRIC_OF(m, __VA_ARGS__), value, (const char *const[]){ __VA_ARGS__ })
/* Adds a sample of a metric in seconds; arguments as for stats_emit(). */
#define stats_emit_ns(out, m, value_ns, ...)                                                                 \
	stats_emit_values_ns(out, STATS_METRIC_OF(m, __VA_ARGS__), value_ns,                                 \
			     (const char *const[]){ __VA_ARGS__ })
/* Adds a histogram kept by the caller in the buckets of base/latency.h: out, m, buckets, sum_ns and the
 * values of its two labels. */
#define stats_emit_histogram(out, m, ...)                                                                    \
	stats_emit_buckets(out, STATS_METRIC_IF(m, (int)STATS_TYPE_##m == ST_HISTOGRAM, "a histogram"),      \
			   __VA_ARGS__)

/* Adds a sample of a metric that is chosen at run time; values: those of its labels, then NULL. */
void stats_emit_values(struct stats_out *out, enum stats_metric m, uint64_t value, const char *const *values);
/* Adds a sample in seconds of a metric that is chosen at run time. */
void stats_emit_values_ns(struct stats_out *out, enum stats_metric m, uint64_t value_ns,
			  const char *const *values);
/* Adds a histogram that is chosen at run time. An empty one is left out. */
void stats_emit_buckets(struct stats_out *out, enum stats_metric m, const uint64_t buckets[LATENCY_NR],
			uint64_t sum_ns, const char *label1, const char *label2);

/* Emits the sums over all cores, build_info and process_*. */
void stats_collect(const struct stats *st, struct stats_out *out);

/* Returns the whole text, terminated; the caller frees it.  0 or -ENOMEM (also when a sample had no room). */
int stats_out_text(struct stats_out *out, char **ret_text, size_t *ret_len);

/* Prints every metric: "name\ttype\tlabels\thelp" a line, for checks of dashboards and manuals. */
void stats_print_table(FILE *out);

/* The Content-Type of that text. */
#define STATS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

#endif
