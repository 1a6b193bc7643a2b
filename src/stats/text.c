/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Prometheus text (exposition format 0.0.4): each metric's samples are gathered in a text of their own,
 * so that collectors may go rail by rail or disk by disk, and put one after the other with HELP and TYPE at
 * the end.
 */
#include "stats/stats_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part {
	char *text;
	size_t len, cap;
};

struct stats_out {
	struct part part[M_NR];
	bool no_memory;
};

int
stats_out_new(struct stats_out **ret_out)
{
	struct stats_out *out = calloc(1, sizeof *out);

	if (!out)
		return -ENOMEM;
	*ret_out = out;
	return 0;
}

void
stats_out_free(struct stats_out *out)
{
	if (!out)
		return;
	for (int i = 0; i < M_NR; i++)
		free(out->part[i].text);
	free(out);
}

static bool
part_room(struct stats_out *out, struct part *p, size_t more)
{
	size_t cap = p->cap ? p->cap : 512;
	char *text;

	if (p->cap - p->len > more)
		return true;
	while (cap - p->len <= more)
		cap *= 2;
	text = realloc(p->text, cap);
	if (!text) {
		out->no_memory = true;
		return false;
	}
	p->text = text;
	p->cap = cap;
	return true;
}

static void
part_add(struct stats_out *out, struct part *p, const char *s, size_t len)
{
	if (!part_room(out, p, len))
		return;
	memcpy(p->text + p->len, s, len);
	p->len += len;
	p->text[p->len] = 0;
}

static void
part_adds(struct stats_out *out, struct part *p, const char *s)
{
	part_add(out, p, s, strlen(s));
}

/* Backslash, quote and line feed are escaped; so the text stays one line
 * per sample whatever a value holds. */
static void
add_label(struct stats_out *out, struct part *p, bool first, const char *name, const char *value)
{
	part_adds(out, p, first ? "{" : ",");
	part_adds(out, p, name);
	part_adds(out, p, "=\"");
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			part_adds(out, p, "\\");
		if (*value == '\n')
			part_adds(out, p, "\\n");
		else
			part_add(out, p, value, 1);
	}
	part_adds(out, p, "\"");
}

static void
emit(struct stats_out *out, enum stats_metric m, const char *suffix, const char *le, bool ns, uint64_t value,
     const char *const *values)
{
	const struct stats_desc *d = &stats_desc[m];
	struct part *p = &out->part[m];
	char text[48];
	int i;

	part_adds(out, p, d->name);
	part_adds(out, p, suffix);
	for (i = 0; d->labels[i]; i++) {
		/* As many values as the table has names. */
		check(values[i]);
		add_label(out, p, i == 0, d->labels[i], values[i]);
	}
	check(!values[i]);
	if (le)
		add_label(out, p, i == 0, "le", le);
	if (le || i)
		part_adds(out, p, "}");
	if (ns)
		snprintf(text, sizeof text, " %llu.%09llu\n", (unsigned long long)(value / NS_PER_S),
			 (unsigned long long)(value % NS_PER_S));
	else
		snprintf(text, sizeof text, " %llu\n", (unsigned long long)value);
	part_adds(out, p, text);
}

void
stats_emit_values(struct stats_out *out, enum stats_metric m, uint64_t value, const char *const *values)
{
	emit(out, m, "", NULL, false, value, values);
}

void
stats_emit_values_ns(struct stats_out *out, enum stats_metric m, uint64_t value_ns, const char *const *values)
{
	emit(out, m, "", NULL, true, value_ns, values);
}

static const char *const type_text[] = { "counter", "gauge", "histogram" };

void
stats_print_table(FILE *out)
{
	for (int m = 0; m < M_NR; m++) {
		const struct stats_desc *d = &stats_desc[m];

		fprintf(out, "%s\t%s\t", d->name, type_text[d->type]);
		for (int i = 0; d->labels[i]; i++)
			fprintf(out, "%s%s", i ? " " : "", d->labels[i]);
		fprintf(out, "\t%s\n", d->help);
	}
}

void
stats_emit_buckets(struct stats_out *out, enum stats_metric m, const uint64_t buckets[LATENCY_NR],
		   uint64_t sum_ns, const char *label1, const char *label2)
{
	const char *const values[] = { label1, label2, NULL };
	uint64_t n = 0, all = 0;

	for (int i = 0; i < LATENCY_NR; i++)
		all += buckets[i];
	/* Label sets appear with their first sample. */
	if (!all)
		return;
	for (int i = 0; i < LATENCY_NR; i++) {
		n += buckets[i];
		emit(out, m, "_bucket", latency_bound_text[i], false, n, values);
	}
	emit(out, m, "_sum", NULL, true, sum_ns, values);
	emit(out, m, "_count", NULL, false, all, values);
}

int
stats_out_text(struct stats_out *out, char **ret_text, size_t *ret_len)
{
	struct part all = { 0 };

	part_add(out, &all, "", 0);
	for (int i = 0; i < M_NR; i++) {
		const struct stats_desc *d = &stats_desc[i];

		if (!out->part[i].len)
			continue;
		part_adds(out, &all, "# HELP ");
		part_adds(out, &all, d->name);
		part_adds(out, &all, " ");
		part_adds(out, &all, d->help);
		part_adds(out, &all, "\n# TYPE ");
		part_adds(out, &all, d->name);
		part_adds(out, &all, " ");
		part_adds(out, &all, type_text[d->type]);
		part_adds(out, &all, "\n");
		part_add(out, &all, out->part[i].text, out->part[i].len);
	}
	if (out->no_memory) {
		free(all.text);
		return -ENOMEM;
	}
	*ret_text = all.text;
	*ret_len = all.len;
	return 0;
}
