/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of metric.def and event.def; and what bounds the labels that stats/ fills in itself.
 */
#include "stats/stats_int.h"

const struct stats_desc stats_desc[M_NR] = {
#define METRIC(id, type, name, labels, help) [id] = { name, ST_##type, { labels }, help },
#define LABELS(...) __VA_ARGS__
#define NO_LABELS NULL
#include "stats/metric.def"
};

const struct stats_event_desc stats_event_desc[STATS_EVENT_NR] = {
#define EVENT(id, metric, values) [id] = { metric, { values } },
#define VALUES(...) __VA_ARGS__
#define NO_LABELS NULL
#include "stats/event.def"
};

#define METRIC(id, type, name, labels, help)                                                                 \
	_Static_assert(STATS_LABELS_##id <= STATS_LABELS_MAX,                                                \
		       #id " has more labels than there is room for");                                       \
	_Static_assert(ST_##type != ST_HISTOGRAM || STATS_LABELS_##id == 2,                                  \
		       #id ": a histogram has two labels");
#include "stats/metric.def"

#define EVENT(id, metric, values)                                                                            \
	_Static_assert((int)STATS_TYPE_##metric == ST_COUNTER, #id " needs a counter");                      \
	_Static_assert((values) == STATS_LABELS_##metric, #id " needs a value for each label of " #metric);
#define VALUES(...) STATS_COUNT(__VA_ARGS__)
#define NO_LABELS 0
#include "stats/event.def"

/* What we answer.  The first is every other status, the last a reply that nobody was left to take. */
const char *const stats_code_text[STATS_CODES_NR] = {
	"other", "100", "200", "204", "206", "304", "400", "403", "404", "405", "408", "409",
	"411",   "412", "413", "414", "416", "417", "431", "500", "501", "503", "507", "none",
};

int
stats_code_slot(int http_code)
{
	static const short codes[STATS_CODES_NR] = { -1,  100, 200, 204, 206, 304, 400, 403,
						     404, 405, 408, 409, 411, 412, 413, 414,
						     416, 417, 431, 500, 501, 503, 507, 0 };

	for (int i = 1; i < STATS_CODES_NR; i++) {
		if (codes[i] == http_code)
			return i;
	}
	return 0;
}
