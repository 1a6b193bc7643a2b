/* SPDX-License-Identifier: Apache-2.0 */
/* Private to stats/: the tables of metrics and events, and the text in preparation. */
#ifndef GANTRY_STATS_STATS_INT_H
#define GANTRY_STATS_STATS_INT_H

#include "stats/stats.h"

#include <stdbool.h>

#define STATS_LABELS_MAX 4 /* largest number of labels of a metric */

/* A row of metric.def. */
struct stats_desc {
	const char *name;
	enum stats_type type;
	const char *labels[STATS_LABELS_MAX + 1]; /* names of the labels, then NULL */
	const char *help;
};
extern const struct stats_desc stats_desc[M_NR];

/* A row of event.def. */
struct stats_event_desc {
	enum stats_metric metric;
	const char *values[STATS_LABELS_MAX + 1]; /* values of the metric's labels, then NULL */
};
extern const struct stats_event_desc stats_event_desc[STATS_EVENT_NR];

extern const char *const stats_code_text[STATS_CODES_NR];
int stats_code_slot(int http_code);

void stats_process(struct stats_out *out);

/* ---- keys.c ---- */

/* Makes an empty table of access keys. Returns 0 or -ENOMEM. */
int stats_keys_new(struct stats_keys **ret_keys);
/* Frees the table. NULL is allowed. */
void stats_keys_free(struct stats_keys *k);
/* Adds the counters of the table to out. */
void stats_keys_collect(const struct stats_keys *k, struct stats_out *out);

#endif
