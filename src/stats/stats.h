/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of each core, summed only on request, and the Prometheus text that shows them.
 *
 * A struct stats_core belongs to one core, which is its only writer; increments are relaxed and cost a load
 * and a store. Any thread may read. Every metric is a row of stats/metric.def, every counted event a row of
 * stats/event.def. The number of values of a label is bounded: no label has object keys or addresses as
 * values.
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

/* Largest numbers of names for stats_new(). STATS_OPS_MAX: names of operations (enum op of dialect/), each of
 * which costs 1376 bytes in each core. STATS_REASONS_MAX: names of decline reasons (enum chan_reason of
 * chan/). The caller asserts that its names fit. */
#define STATS_OPS_MAX 128
#define STATS_REASONS_MAX 16
#define STATS_BUCKETS_NR LATENCY_NR
/* number of counters for HTTP statuses: one for each usual status; number 0 counts all others */
#define STATS_CODES_NR 24

/* The dialects; the values are those of enum conf_dialect of conf/. */
enum stats_dialect { STATS_S3, STATS_SCALITY, STATS_DIALECT_NR };
enum stats_transport { STATS_HTTP, STATS_RDMA, STATS_TRANSPORT_NR };
/* Directions of payload. PUSH: from the server to the client, for a GET; PULL: from the client to the server,
 * for a PUT. */
enum stats_dir { STATS_PUSH, STATS_PULL, STATS_DIR_NR };

/* The events of stats/event.def. */
enum stats_event {
#define EVENT(id, metric, values) id,
#include "stats/event.def"
	STATS_EVENT_NR
};

/* Phases of a request. The time that a request spends in each phase is counted separately. */
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

/* Sizes of the text of a client's address, and of the name of a bucket, with the NUL. */
#define STATS_CLIENT_BYTES 48
#define STATS_BUCKET_BYTES 64

/* Number of notes that a core keeps (recent.c): notes of its latest declined or failed requests. */
#define STATS_NOTES_NR 32
/* The client and the bucket of a note, as texts; empty: none. */
struct stats_whose {
	char client[STATS_CLIENT_BYTES], bucket[STATS_BUCKET_BYTES];
};
#define STATS_WHOSE_WORDS (sizeof(struct stats_whose) / sizeof(uint64_t))
struct stats_note_slot {
	_Atomic uint64_t seq, unix_ns, id, what, whose[STATS_WHOSE_WORDS];
	_Atomic uintptr_t code;
};

struct stats_histogram {
	stats_counter buckets[STATS_BUCKETS_NR];
	stats_counter sum_ns;
};

/* Largest number of access keys with a counter of their own (keys.c). */
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

/* The names of operations and decline reasons, by number. The caller keeps both tables as long as the struct
 * stats. A reason that is NULL or "" is not shown. An operation that is NULL, or whose number is not in the
 * table, is shown as "other". */
struct stats_names {
	const char *const *op;
	int op_nr;
	const char *const *reason;
	int reason_nr;
};

/* Makes the counters of core_nr cores. Returns 0; -ENOMEM; or -EINVAL if core_nr is 0, or if there are more
 * names than STATS_OPS_MAX or STATS_REASONS_MAX. */
int stats_new(int core_nr, const struct stats_names *names, struct stats **ret_stats);
/* Frees the statistics. NULL is allowed. */
void stats_free(struct stats *st);
struct stats_core *stats_core(struct stats *st, int core);

/* ---- the owning core ---- */

/* Adds n to a counter. Only the core that owns the counter calls this, so that no locked instruction is
 * needed. */
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

/* Counts a request that has ended. Called once for each request, when its reply was handed over; http_code 0:
 * the client had closed the connection before the reply. */
void stats_request(struct stats_core *st, int dialect, int op, int http_code, enum stats_transport transport,
		   uint64_t duration_ns);

/* Adds a sample to gantry_request_first_byte_seconds: ns from the head of a request to its first payload byte
 * at the client or, without payload for the client, to its reply. */
void stats_first_byte(struct stats_core *st, int op, enum stats_transport transport, uint64_t ns);
/* Adds the times of the phases of a request to their histograms. A phase of 0 ns is not counted. */
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

/* Counts a request whose transfer ended in a remote-access error. access_key: the access key that signed the
 * request; NULL: the request was unsigned. The first STATS_KEYS_NR access keys have counters of their own;
 * all others share one. */
void stats_remote_access(struct stats_core *st, const char *access_key);

struct stats_note {
	uint64_t unix_ns, id;
	int op, status;
	int reason;       /* reason of a decline, as an index into stats_names.reason; 0: not declined */
	const char *code; /* error code, a constant text; NULL: no error */
	struct stats_whose whose;
};

/* Stores a note of a request that was declined or failed, in place of the core's oldest of STATS_NOTES_NR
 * notes. */
void stats_note(struct stats_core *st, const struct stats_note *n);
/* Copies the max newest notes of all cores to `notes`, newest first. Returns the number of notes copied. Any
 * thread may call this function. */
int stats_recent(const struct stats *st, struct stats_note *notes, int max);
int stats_core_nr(const struct stats *st);
const struct stats_core *stats_core_at(const struct stats *st, int core);
/* Returns the name of an operation (stats_op_name()) or of a decline reason (stats_reason_name()). Returns
 * "other" for an operation without a name, and "" for a reason without a name. */
const char *stats_op_name(const struct stats *st, int op);
const char *stats_reason_name(const struct stats *st, int reason);

/* Returns the number of requests of a dialect that ended with status http_code on a core, of all operations
 * and transports. Any thread may call this function. For tests. */
uint64_t stats_requests_of(const struct stats_core *st, int dialect, int http_code);

/* ---- the text: any thread ---- */

/* The metrics of stats/metric.def. */
enum stats_metric {
#define METRIC(id, type, name, labels, help) id,
#include "stats/metric.def"
	M_NR
};

/* The types of metrics. */
enum stats_type { ST_COUNTER, ST_GAUGE, ST_HISTOGRAM };

/* Expands to the number of its arguments, which is one to five. */
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

/* A collector: adds its samples to out. Called on the thread that writes the text. */
typedef void (*stats_collect_fn)(void *cookie, struct stats_out *out);

/* Makes an empty text. Returns 0 or -ENOMEM. */
int stats_out_new(struct stats_out **ret_out);
void stats_out_free(struct stats_out *out);

/* Expands to metric m. The build fails with `message` if the constant expression `holds` is false. */
#define STATS_METRIC_IF(m, holds, message)                                                                   \
	((enum stats_metric)(m + 0 * sizeof(struct {                                                         \
					 _Static_assert(holds, message);                                     \
					 int unused;                                                         \
				 })))
/* Expands to metric m. The build fails if m is a histogram, or if the number of arguments after m is not the
 * number of its labels plus one (for NULL). */
#define STATS_METRIC_OF(m, ...)                                                                              \
	STATS_METRIC_IF(                                                                                     \
		m, (int)STATS_TYPE_##m != ST_HISTOGRAM && STATS_COUNT(__VA_ARGS__) == STATS_LABELS_##m + 1,  \
		"a counter or gauge, a value for each of its labels, and NULL")

/* Adds a sample of metric m, an ID of metric.def. The arguments after the value are the values of the
 * metric's labels, in the order of metric.def, and NULL. With too many or too few arguments the build
 * fails. */
#define stats_emit(out, m, value, ...)                                                                       \
	stats_emit_values(out, STATS_METRIC_OF(m, __VA_ARGS__), value, (const char *const[]){ __VA_ARGS__ })
/* Adds a sample of metric m, whose unit is seconds; value_ns is in ns and is printed in seconds. The other
 * arguments: values of the metric's labels, then NULL. */
#define stats_emit_ns(out, m, value_ns, ...)                                                                 \
	stats_emit_values_ns(out, STATS_METRIC_OF(m, __VA_ARGS__), value_ns,                                 \
			     (const char *const[]){ __VA_ARGS__ })
/* Adds a histogram that the caller keeps in the buckets of base/latency.h. The arguments after m: the
 * buckets, the sum of all samples in ns, the values of the metric's two labels. */
#define stats_emit_histogram(out, m, ...)                                                                    \
	stats_emit_buckets(out, STATS_METRIC_IF(m, (int)STATS_TYPE_##m == ST_HISTOGRAM, "a histogram"),      \
			   __VA_ARGS__)

/* Adds a sample of a metric that is chosen at run time. values: values of its labels, then NULL. */
void stats_emit_values(struct stats_out *out, enum stats_metric m, uint64_t value, const char *const *values);
/* Adds a sample of a metric that is chosen at run time and whose unit is seconds; value_ns is in ns and is
 * printed in seconds. values: values of its labels, then NULL. */
void stats_emit_values_ns(struct stats_out *out, enum stats_metric m, uint64_t value_ns,
			  const char *const *values);
/* Adds a histogram that is chosen at run time, with the values of its two labels; a histogram without samples
 * is not added. */
void stats_emit_buckets(struct stats_out *out, enum stats_metric m, const uint64_t buckets[LATENCY_NR],
			uint64_t sum_ns, const char *label1, const char *label2);

/* Adds to out the sums over all cores, gantry_build_info and process_*. */
void stats_collect(const struct stats *st, struct stats_out *out);

/* Writes the whole text to *ret_text, with a NUL at its end; the caller frees it. Returns 0 or -ENOMEM, also
 * if there was no memory for an earlier sample. */
int stats_out_text(struct stats_out *out, char **ret_text, size_t *ret_len);

/* Prints a line for every metric, "name\ttype\tlabels\thelp", with which scripts check dashboards and
 * manuals. */
void stats_print_table(FILE *out);

/* The Content-Type of the text of stats_out_text(). */
#define STATS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

#endif
