/* Private to stats/: the table of metrics, and the text being gathered. */
#ifndef GANTRY_STATS_STATS_INT_H
#define GANTRY_STATS_STATS_INT_H

#include "stats/stats.h"

#include <stdarg.h>
#include <stdbool.h>

enum stats_type { ST_COUNTER, ST_GAUGE, ST_HISTOGRAM };

struct stats_desc {
	const char *name;
	enum stats_type type;
	const char *labels; /* names with a blank between; "": none */
	const char *help;
};
extern const struct stats_desc stats_desc[M_NR];

extern const char *const stats_code_text[STATS_CODES_NR];
int stats_code_slot(int http_code);

/* A sample of a histogram: suffix "_bucket" with its bound, "_sum" (ns) or "_count". */
void stats_emit_part(struct stats_out *out, enum stats_metric m, const char *suffix, const char *le, bool ns,
		     uint64_t value, ...) __attribute__((sentinel));

void stats_process(struct stats_out *out);

#endif
