/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and the text that shows them; the text is checked against the rules of the exposition format. */
#include "stats/stats_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const ops[] = { NULL, "PutObject", "GetObject" };
static const char *const reasons[] = { "", "disabled", "no-rail" };
static const struct stats_names names = { ops, 3, reasons, 3 };

static char *
text_of(struct stats_out *out)
{
	char *text;
	size_t len;

	assert_int_equal(stats_out_text(out, &text, &len), 0);
	assert_int_equal(strlen(text), len);
	stats_out_free(out);
	return text;
}

static char *
text_of_stats(const struct stats *st)
{
	struct stats_out *out;

	assert_int_equal(stats_out_new(&out), 0);
	stats_collect(st, out);
	return text_of(out);
}

static bool
is_name(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!isalpha((unsigned char)s[i]) && s[i] != '_' && !(i && isdigit((unsigned char)s[i])))
			return false;
	}
	return len > 0;
}

static bool
ends(const char *s, size_t len, const char *tail)
{
	return len >= strlen(tail) && strncmp(s + len - strlen(tail), tail, strlen(tail)) == 0;
}

/* A label set; returns what follows it. */
static const char *
check_labels(const char *p)
{
	if (*p != '{')
		return p;
	do {
		size_t len = strcspn(++p, "=");

		assert_true(is_name(p, len));
		p += len + 1;
		assert_int_equal(*p++, '"');
		for (; *p != '"'; p++) {
			assert_true(*p != 0 && *p != '\n');
			if (*p == '\\') {
				p++;
				assert_true(*p == '\\' || *p == '"' || *p == 'n');
			}
		}
		p++;
	} while (*p == ',');
	assert_int_equal(*p++, '}');
	return p;
}

/* The rules that a scraper insists on, and the naming ones that promtool adds. */
static void
check_text(const char *text)
{
	char family[128] = "", type[32] = "", seen[8192] = "";
	const char *p = text;

	while (*p) {
		const char *nl = strchr(p, '\n');
		size_t len;
		char *end;

		assert_non_null(nl);
		if (strncmp(p, "# HELP ", 7) == 0) {
			char tagged[160];

			len = strcspn(p + 7, " ");
			snprintf(family, sizeof family, "%.*s", (int)len, p + 7);
			assert_true(p + 7 + len + 1 < nl);
			/* A family stands in one place. */
			snprintf(tagged, sizeof tagged, "|%s|", family);
			assert_null(strstr(seen, tagged));
			assert_true(strlen(seen) + strlen(tagged) < sizeof seen);
			strcat(seen, tagged);
			p = nl + 1;
			assert_int_equal(strncmp(p, "# TYPE ", 7), 0);
			assert_int_equal(strncmp(p + 7, family, strlen(family)), 0);
			snprintf(type, sizeof type, "%.*s", (int)strcspn(p + 8 + strlen(family), "\n"),
				 p + 8 + strlen(family));
			if (strcmp(type, "counter") == 0)
				assert_true(ends(family, strlen(family), "_total"));
			else
				assert_false(ends(family, strlen(family), "_total"));
			p = strchr(p, '\n') + 1;
			continue;
		}
		len = strcspn(p, "{ ");
		assert_true(is_name(p, len));
		assert_int_equal(strncmp(p, family, strlen(family)), 0);
		if (strcmp(type, "histogram") == 0)
			assert_true(ends(p, len, "_bucket") || ends(p, len, "_sum") ||
				    ends(p, len, "_count"));
		else
			assert_int_equal(len, strlen(family));
		p = check_labels(p + len);
		assert_int_equal(*p, ' ');
		strtod(p + 1, &end);
		assert_ptr_equal(end, nl);
		p = nl + 1;
	}
}

static void
assert_has(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("no \"%s\" in\n%s", line, text);
}

static void
test_sums(void **state)
{
	struct stats *st;
	char *text;

	assert_int_equal(stats_new(3, &names, &st), 0);
	for (int i = 0; i < 3; i++) {
		struct stats_core *c = stats_core(st, i);

		for (int n = 0; n <= i; n++)
			stats_request(c, STATS_S3, 1, 200, STATS_RDMA, 300 * NS_PER_US);
		stats_bytes(c, STATS_PULL, STATS_RDMA, 1000);
		stats_decline(c, 2);
		stats_event(c, STATS_ACCEPTED);
	}
	stats_request(stats_core(st, 1), STATS_SCALITY, 2, 206, STATS_HTTP, 20 * NS_PER_S);
	stats_request(stats_core(st, 2), STATS_S3, 2, 299, STATS_HTTP, 0);
	stats_request(stats_core(st, 2), STATS_S3, 2, 0, STATS_HTTP, 0);
	/* No operation was found: it has no name of its own. */
	stats_request(stats_core(st, 2), STATS_S3, 0, 400, STATS_HTTP, 0);
	stats_first_byte(stats_core(st, 1), 2, STATS_HTTP, 7 * NS_PER_MS);
	for (int i = 0; i < 2; i++)
		stats_phases(stats_core(st, i), STATS_RDMA,
			     (const uint64_t[STATS_PHASE_NR]){ [STATS_PH_WIRE] = 60 * NS_PER_US });
	stats_decline(stats_core(st, 0), 99);
	stats_decline(stats_core(st, 0), -1);
	assert_int_equal(stats_requests_of(stats_core(st, 2), STATS_S3, 200), 3);
	assert_int_equal(stats_requests_of(stats_core(st, 2), STATS_S3, 400), 1);
	assert_int_equal(stats_requests_of(stats_core(st, 1), STATS_SCALITY, 206), 1);

	text = text_of_stats(st);
	check_text(text);
	assert_has(text, "gantry_requests_total{dialect=\"s3\",operation=\"PutObject\",code=\"200\","
			 "transport=\"rdma\"} 6\n");
	assert_has(text, "gantry_requests_total{dialect=\"scality\",operation=\"GetObject\",code=\"206\","
			 "transport=\"http\"} 1\n");
	assert_has(text, "operation=\"GetObject\",code=\"other\",transport=\"http\"} 1\n");
	assert_has(text, "operation=\"other\",code=\"400\",transport=\"http\"} 1\n");
	assert_null(strstr(text, "reason=\"\""));
	assert_has(text, "operation=\"GetObject\",code=\"none\",transport=\"http\"} 1\n");
	assert_has(text, "gantry_transfer_bytes_total{direction=\"pull\",transport=\"rdma\"} 3000\n");
	assert_has(text, "gantry_transfer_bytes_total{direction=\"push\",transport=\"http\"} 0\n");
	assert_has(text, "gantry_declines_total{reason=\"no-rail\"} 3\n");
	assert_has(text, "gantry_declines_total{reason=\"disabled\"} 0\n");
	assert_has(text, "gantry_connections_accepted_total 3\n");
	assert_has(text, "gantry_build_info{version=\"" GANTRY_VERSION "\"} 1\n");
	assert_has(text,
		   "gantry_request_first_byte_seconds_bucket{operation=\"GetObject\",transport=\"http\","
		   "le=\"0.005\"} 0\n");
	assert_has(text,
		   "gantry_request_first_byte_seconds_bucket{operation=\"GetObject\",transport=\"http\","
		   "le=\"0.01\"} 1\n");
	assert_has(text, "gantry_request_phase_seconds_bucket{phase=\"wire\",transport=\"rdma\","
			 "le=\"0.0001\"} 2\n");
	assert_has(text, "gantry_request_phase_seconds_sum{phase=\"wire\",transport=\"rdma\"} 0.000120000\n");
	assert_null(strstr(text, "phase=\"disk\""));
	assert_has(text, "# TYPE gantry_request_duration_seconds histogram\n");
	assert_has(text, "gantry_request_duration_seconds_bucket{operation=\"PutObject\",transport=\"rdma\","
			 "le=\"0.00025\"} 0\n");
	assert_has(text, "gantry_request_duration_seconds_bucket{operation=\"PutObject\",transport=\"rdma\","
			 "le=\"0.0005\"} 6\n");
	assert_has(text, "gantry_request_duration_seconds_bucket{operation=\"PutObject\",transport=\"rdma\","
			 "le=\"+Inf\"} 6\n");
	assert_has(text, "gantry_request_duration_seconds_sum{operation=\"PutObject\",transport=\"rdma\"} "
			 "0.001800000\n");
	assert_has(text,
		   "gantry_request_duration_seconds_count{operation=\"PutObject\",transport=\"rdma\"} 6\n");
	assert_has(text, "gantry_request_duration_seconds_bucket{operation=\"GetObject\",transport=\"http\","
			 "le=\"10\"} 2\n");
	assert_has(text, "gantry_request_duration_seconds_bucket{operation=\"GetObject\",transport=\"http\","
			 "le=\"+Inf\"} 3\n");
	free(text);
	stats_free(st);
}

static void
test_bounds(void **state)
{
	struct stats *st;
	struct stats_core *c;

	for (int i = 0; i < STATS_BUCKETS_NR - 1; i++) {
		assert_true(latency_bound_ns[i] < latency_bound_ns[i + 1]);
		assert_int_equal((uint64_t)(strtod(latency_bound_text[i], NULL) * 1e9 + 0.5),
				 latency_bound_ns[i]);
	}
	assert_int_equal(stats_new(1, &names, &st), 0);
	c = stats_core(st, 0);
	/* A bound belongs to its own bucket. */
	stats_request(c, 0, 1, 200, STATS_HTTP, latency_bound_ns[3]);
	stats_request(c, 0, 1, 200, STATS_HTTP, latency_bound_ns[3] + 1);
	assert_int_equal(stats_get(&c->duration[1][STATS_HTTP].buckets[3]), 1);
	assert_int_equal(stats_get(&c->duration[1][STATS_HTTP].buckets[4]), 1);
	stats_free(st);
	assert_int_equal(stats_new(0, &names, &st), -EINVAL);
	assert_int_equal(stats_new(1, &(struct stats_names){ ops, STATS_OPS_MAX + 1, reasons, 1 }, &st),
			 -EINVAL);
	assert_int_equal(stats_new(1, &(struct stats_names){ ops, 1, reasons, STATS_REASONS_MAX + 1 }, &st),
			 -EINVAL);
	stats_free(NULL);
}

/* As many operations and reasons as there is room for: the last of each is counted and shown. */
static void
test_full(void **state)
{
	static const char *op[STATS_OPS_MAX], *reason[STATS_REASONS_MAX];
	const struct stats_names full = { op, STATS_OPS_MAX, reason, STATS_REASONS_MAX };
	struct stats *st;
	char *text;

	op[STATS_OPS_MAX - 1] = "Last";
	reason[STATS_REASONS_MAX - 1] = "last";
	assert_int_equal(stats_new(2, &full, &st), 0);
	for (int i = 0; i < 2; i++) {
		stats_request(stats_core(st, i), STATS_DIALECT_NR - 1, STATS_OPS_MAX - 1, 0, STATS_RDMA, 1);
		stats_first_byte(stats_core(st, i), STATS_OPS_MAX - 1, STATS_RDMA, 1);
		stats_decline(stats_core(st, i), STATS_REASONS_MAX - 1);
	}
	text = text_of_stats(st);
	check_text(text);
	assert_has(text, "gantry_requests_total{dialect=\"scality\",operation=\"Last\",code=\"none\","
			 "transport=\"rdma\"} 2\n");
	assert_has(text, "gantry_request_duration_seconds_count{operation=\"Last\",transport=\"rdma\"} 2\n");
	assert_has(text,
		   "gantry_request_first_byte_seconds_count{operation=\"Last\",transport=\"rdma\"} 2\n");
	assert_has(text, "gantry_declines_total{reason=\"last\"} 2\n");
	free(text);
	stats_free(st);
}

static void
test_codes(void **state)
{
	for (int i = 1; i < STATS_CODES_NR; i++) {
		assert_non_null(stats_code_text[i]);
		if (i < STATS_CODES_NR - 1)
			assert_int_equal(stats_code_slot(atoi(stats_code_text[i])), i);
	}
	assert_int_equal(stats_code_slot(0), STATS_CODES_NR - 1);
	assert_int_equal(stats_code_slot(299), 0);
	assert_int_equal(stats_code_slot(-1), 0);
}

/* Every metric of the table, with values that need escaping. */
static void
test_every_metric(void **state)
{
	static const char odd[] = "a\\b\"c\nd";
	static const char *const type[] = {
		[ST_COUNTER] = "counter", [ST_GAUGE] = "gauge", [ST_HISTOGRAM] = "histogram"
	};
	static const uint64_t buckets[LATENCY_NR] = { 1 };
	struct stats_out *out;
	char *text;

	assert_int_equal(stats_out_new(&out), 0);
	for (int round = 0; round < 2; round++) {
		for (int m = 0; m < M_NR; m++) {
			const char *values[STATS_LABELS_MAX + 1] = { odd, "x", "", odd };
			int nr = 0;

			while (stats_desc[m].labels[nr])
				nr++;
			values[nr] = NULL;
			if (stats_desc[m].type == ST_HISTOGRAM)
				stats_emit_buckets(out, m, buckets, 7, values[0], values[1]);
			else
				stats_emit_values(out, m, 7, values);
		}
	}
	text = text_of(out);
	check_text(text);
	assert_has(text, "gantry_rail_up{rail=\"a\\\\b\\\"c\\nd\"} 7\n");
	for (int m = 0; m < M_NR; m++) {
		const struct stats_desc *d = &stats_desc[m];
		char line[160];

		snprintf(line, sizeof line, "\n# TYPE %s %s\n", d->name, type[d->type]);
		assert_has(text, line);
		assert_true(strncmp(d->name, "gantry_", 7) == 0 || strncmp(d->name, "process_", 8) == 0);
		/* Nothing of it is escaped. */
		assert_true(*d->help && !strpbrk(d->help, "\\\n\t"));
		for (int i = 0; d->labels[i]; i++) {
			assert_true(is_name(d->labels[i], strlen(d->labels[i])));
			/* A histogram's bound has that name. */
			assert_string_not_equal(d->labels[i], "le");
			for (int k = 0; k < i; k++)
				assert_string_not_equal(d->labels[i], d->labels[k]);
		}
	}
	free(text);
}

/* --print-metrics: a line for each row of the table. */
static void
test_table(void **state)
{
	char *text, *p;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	stats_print_table(f);
	fclose(f);
	assert_has(text,
		   "\ngantry_requests_total\tcounter\tdialect operation code transport\tRequests that ended, "
		   "by HTTP status; none: the client had gone.\n");
	assert_has(text, "\ngantry_rail_up\tgauge\trail\t1 while the rail can be used.\n");
	assert_has(text, "\ngantry_draining\tgauge\t\t1 while new requests are refused.\n");
	assert_has(text, "\ngantry_store_io_seconds\thistogram\tdisk op\tTime that");
	assert_has(text, "\ngantry_commit_seconds\thistogram\tdisk until\tTime that");
	p = text;
	for (int m = 0; m < M_NR; m++) {
		size_t name = strlen(stats_desc[m].name);
		int tabs = 0;

		assert_int_equal(strncmp(p, stats_desc[m].name, name), 0);
		assert_int_equal(p[name], '\t');
		for (; *p != '\n'; p++) {
			assert_int_not_equal(*p, 0);
			tabs += *p == '\t';
		}
		assert_int_equal(tabs, 3);
		p++;
	}
	assert_int_equal(*p, 0);
	free(text);
}

/* Each event is shown by the metric of its row, with its values; and no two are one sample. */
static void
test_events(void **state)
{
	char sample[STATS_EVENT_NR][512], *text;
	struct stats *st;

	assert_int_equal(stats_new(2, &names, &st), 0);
	for (int ev = 0; ev < STATS_EVENT_NR; ev++) {
		const struct stats_event_desc *e = &stats_event_desc[ev];
		const struct stats_desc *d = &stats_desc[e->metric];
		size_t len;

		for (int n = 0; n < 100 + ev; n++)
			stats_event(stats_core(st, n % 2), ev);
		len = (size_t)snprintf(sample[ev], sizeof sample[ev], "\n%s", d->name);
		for (int i = 0; d->labels[i]; i++)
			len += (size_t)snprintf(sample[ev] + len, sizeof sample[ev] - len, "%s%s=\"%s\"",
						i ? "," : "{", d->labels[i], e->values[i]);
		snprintf(sample[ev] + len, sizeof sample[ev] - len, "%s ", d->labels[0] ? "}" : "");
		for (int other = 0; other < ev; other++)
			assert_string_not_equal(sample[ev], sample[other]);
	}
	text = text_of_stats(st);
	check_text(text);
	for (int ev = 0; ev < STATS_EVENT_NR; ev++) {
		char line[sizeof sample[0] + 16];

		snprintf(line, sizeof line, "%.*s%d\n", (int)sizeof sample[0], sample[ev], 100 + ev);
		assert_has(text, line);
	}
	/* The numbers are those of the rows. */
	assert_has(text, "\ngantry_connections_accepted_total 100\n");
	free(text);
	stats_free(st);
}

static void
test_process(void **state)
{
	struct stats_out *out;
	char *text, *start;
	double then;

	assert_int_equal(stats_out_new(&out), 0);
	stats_process(out);
	text = text_of(out);
	check_text(text);
	assert_has(text, "process_open_fds ");
	assert_has(text, "process_resident_memory_bytes ");
	assert_has(text, "process_cpu_seconds_total ");
	start = strstr(text, "\nprocess_start_time_seconds ");
	assert_non_null(start);
	then = strtod(strchr(start, ' ') + 1, NULL);
	assert_true(then > (double)time(NULL) - 3600 && then < (double)time(NULL) + 2);
	free(text);

	assert_int_equal(stats_out_new(&out), 0);
	text = text_of(out);
	assert_string_equal(text, "");
	free(text);
	stats_out_free(NULL);
}

static void *
count_up(void *arg)
{
	struct stats_core *c = arg;

	for (int i = 0; i < 100000; i++)
		stats_request(c, STATS_S3, 2, 200, STATS_RDMA, 1000);
	return NULL;
}

/* Reading while the owners write: never more than there was, never less than before, whole at the end. */
static void
test_concurrent(void **state)
{
	struct stats *st;
	pthread_t thread[2];
	uint64_t last = 0;

	assert_int_equal(stats_new(2, &names, &st), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, count_up, stats_core(st, i)), 0);
	for (int i = 0; i < 20; i++) {
		char *text = text_of_stats(st);
		uint64_t now = stats_requests_of(stats_core(st, 0), STATS_S3, 200) +
			       stats_requests_of(stats_core(st, 1), STATS_S3, 200);

		check_text(text);
		free(text);
		assert_true(now >= last && now <= 200000);
		last = now;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(stats_requests_of(stats_core(st, i), STATS_S3, 200), 100000);
	stats_free(st);
}

/* The latest ones, over cores, newest first. */
static void
test_notes(void **state)
{
	struct stats_note got[3 * STATS_NOTES_NR];
	struct stats *st;

	assert_int_equal(stats_new(2, &names, &st), 0);
	assert_int_equal(stats_recent(st, got, 3 * STATS_NOTES_NR), 0);
	for (int i = 0; i < 3 * STATS_NOTES_NR; i++) {
		struct stats_note n = {
			.unix_ns = 1000 + (uint64_t)i, .id = (uint64_t)i << 40, .op = 2, .status = 503
		};

		n.code = i % 2 ? NULL : "SlowDown";
		n.reason = i % 2 ? 2 : 0;
		snprintf(n.whose.client, sizeof n.whose.client, "10.0.0.%d", i);
		snprintf(n.whose.bucket, sizeof n.whose.bucket, "bucket-%d", i);
		stats_note(stats_core(st, i % 3 == 0), &n);
	}
	/* Core 1 had a third of them, all of which it still has. */
	assert_int_equal(stats_recent(st, got, 3 * STATS_NOTES_NR), 2 * STATS_NOTES_NR);
	for (int i = 0; i < 2 * STATS_NOTES_NR; i++) {
		uint64_t k = got[i].unix_ns - 1000;

		assert_true(i == 0 || got[i].unix_ns < got[i - 1].unix_ns);
		assert_int_equal(got[i].id, k << 40);
		assert_int_equal(got[i].op, 2);
		assert_int_equal(got[i].status, 503);
		assert_int_equal(got[i].reason, k % 2 ? 2 : 0);
		assert_true(k % 2 ? !got[i].code : strcmp(got[i].code, "SlowDown") == 0);
		assert_int_equal(strtoul(got[i].whose.client + strlen("10.0.0."), NULL, 10), k);
		assert_int_equal(strtoul(got[i].whose.bucket + strlen("bucket-"), NULL, 10), k);
	}
	assert_int_equal(got[0].unix_ns, 1000 + 3 * STATS_NOTES_NR - 1);
	assert_int_equal(stats_recent(st, got, 3), 3);
	assert_string_equal(stats_op_name(st, 0), "other");
	assert_string_equal(stats_op_name(st, 1), "PutObject");
	assert_string_equal(stats_op_name(st, 99), "other");
	assert_string_equal(stats_reason_name(st, 2), "no-rail");
	assert_string_equal(stats_reason_name(st, -1), "");
	stats_free(st);
}

static void *
note_on(void *arg)
{
	static const char *const codes[] = { "even", "odd" };

	for (uint64_t i = 1; i <= 50000; i++) {
		struct stats_note n = {
			.unix_ns = i, .id = i * 3, .op = 1, .status = 500, .code = codes[i % 2]
		};

		memset(n.whose.client, i % 2 ? 'a' : 'b', sizeof n.whose.client - 1);
		memset(n.whose.bucket, i % 2 ? 'a' : 'b', sizeof n.whose.bucket - 1);
		stats_note(arg, &n);
	}
	return NULL;
}

/* An entry that is written over meanwhile is left out, never mixed. */
static void
test_notes_concurrent(void **state)
{
	struct stats_note got[STATS_NOTES_NR];
	struct stats *st;
	pthread_t thread;

	assert_int_equal(stats_new(1, &names, &st), 0);
	assert_int_equal(pthread_create(&thread, NULL, note_on, stats_core(st, 0)), 0);
	for (int turn = 0; turn < 2000; turn++) {
		int nr = stats_recent(st, got, STATS_NOTES_NR);

		for (int i = 0; i < nr; i++) {
			assert_int_equal(got[i].id, got[i].unix_ns * 3);
			assert_string_equal(got[i].code, got[i].unix_ns % 2 ? "odd" : "even");
			assert_int_equal(strspn(got[i].whose.client, got[i].unix_ns % 2 ? "a" : "b"),
					 sizeof got[i].whose.client - 1);
			assert_int_equal(strspn(got[i].whose.bucket, got[i].unix_ns % 2 ? "a" : "b"),
					 sizeof got[i].whose.bucket - 1);
		}
	}
	pthread_join(thread, NULL);
	assert_int_equal(stats_recent(st, got, STATS_NOTES_NR), STATS_NOTES_NR);
	assert_int_equal(got[0].unix_ns, 50000);
	stats_free(st);
}

/* Each thread counts for the same keys, more than there are places. */
static void *
count_on(void *arg)
{
	struct stats_core *c = arg;

	for (int turn = 0; turn < 20; turn++) {
		for (int i = 0; i < 2 * STATS_KEYS_NR; i++) {
			char key[32];

			snprintf(key, sizeof key, "AKEY%d", i);
			stats_remote_access(c, key);
		}
	}
	return NULL;
}

/* The value of the sample whose label that is, and of all of them. */
static uint64_t
errors_of(const char *text, const char *key, uint64_t *ret_sum, int *ret_nr)
{
	static const char name[] = "\ngantry_rdma_remote_access_errors_total{access_key=\"";
	uint64_t of = UINT64_MAX;

	*ret_sum = 0;
	*ret_nr = 0;
	for (const char *p = text; (p = strstr(p, name)); (*ret_nr)++) {
		const char *label = p + sizeof name - 1, *value = strstr(label, "\"} ");
		uint64_t n = strtoull(value + 3, NULL, 10);

		*ret_sum += n;
		if ((size_t)(value - label) == strlen(key) && memcmp(label, key, strlen(key)) == 0)
			of = n;
		p = label;
	}
	return of;
}

/* claim TM11, by access key: so many have a counter, the rest one together, and nothing is lost. */
static void
test_keys(void **state)
{
	static char longest[129], longer[130];
	struct stats *st;
	pthread_t thread[4];
	uint64_t sum;
	char *text;
	int nr;

	memset(longest, 'x', 128);
	memset(longer, 'x', 129);
	assert_int_equal(stats_new(4, &names, &st), 0);
	text = text_of_stats(st);
	assert_int_equal(errors_of(text, "-", &sum, &nr), 0);
	assert_int_equal(errors_of(text, "other keys", &sum, &nr), 0);
	assert_int_equal(nr, 2);
	free(text);
	stats_remote_access(stats_core(st, 0), NULL);
	stats_remote_access(stats_core(st, 1), longest);
	stats_remote_access(stats_core(st, 2), longest);
	stats_remote_access(stats_core(st, 3), longer);
	text = text_of_stats(st);
	assert_int_equal(errors_of(text, "-", &sum, &nr), 1);
	assert_int_equal(errors_of(text, longest, &sum, &nr), 2);
	assert_int_equal(errors_of(text, "other keys", &sum, &nr), 1);
	free(text);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, count_on, stats_core(st, i)), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	stats_remote_access(stats_core(st, 0), longest);
	text = text_of_stats(st);
	assert_int_equal(errors_of(text, "AKEY0", &sum, &nr), 80);
	assert_int_equal(errors_of(text, longest, &sum, &nr), 3);
	assert_int_equal(errors_of(text, "other keys", &sum, &nr), 1 + 80 * (STATS_KEYS_NR + 1));
	assert_int_equal(sum, 5 + 4 * 20 * 2 * STATS_KEYS_NR);
	assert_int_equal(nr, STATS_KEYS_NR + 2);
	free(text);
	stats_free(st);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),    cmocka_unit_test(test_keys),
		cmocka_unit_test(test_sums),    cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_codes),   cmocka_unit_test(test_every_metric),
		cmocka_unit_test(test_table),   cmocka_unit_test(test_events),
		cmocka_unit_test(test_process), cmocka_unit_test(test_concurrent),
		cmocka_unit_test(test_notes),   cmocka_unit_test(test_notes_concurrent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
