/* SPDX-License-Identifier: Apache-2.0 */
/* The options of gantry bench that are lists; see bench.h. */
#include "client/cmd/bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WEIGHT_MAX 1000000u
#define USUAL_BYTES ((uint64_t)1 << 30)
#define USUAL_OBJECTS 1024u

const char *const bench_op_name[BENCH_OP_NR] = {
	[BENCH_PUT] = "put", [BENCH_GET] = "get", [BENCH_HEAD] = "head", [BENCH_DELETE] = "delete"
};
const char *const bench_way_name[BENCH_WAY_NR] = { [BENCH_RDMA] = "rdma", [BENCH_HTTP] = "http" };

/* Takes the part in front of the next `sep` or the end.  False: there is none left, or it does not fit. */
static bool
take_part(const char **text, char sep, char *out, size_t cap)
{
	size_t len;

	if (!*text)
		return false;
	len = (size_t)(strchrnul(*text, sep) - *text);
	if (len == 0 || len >= cap)
		return false;
	memcpy(out, *text, len);
	out[len] = 0;
	*text = (*text)[len] ? *text + len + 1 : NULL;
	return true;
}

/* A plain number up to max; the text after it is left in *text. */
static bool
take_number(const char **text, uint64_t max, uint64_t *ret)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*ret = strtoull(*text, &end, 10);
	*text = end;
	return errno == 0 && *ret <= max;
}

/* Cuts ":WEIGHT" off.  1 where there is none; 0: it is no weight. */
static unsigned
cut_weight(char *part)
{
	char *colon = strchr(part, ':');
	const char *digits = colon ? colon + 1 : NULL;
	uint64_t n;

	if (!colon)
		return 1;
	*colon = 0;
	return take_number(&digits, WEIGHT_MAX, &n) && !*digits ? (unsigned)n : 0;
}

bool
bench_size(const char *text, uint64_t *ret)
{
	static const char units[] = "kmg";
	const char *unit;
	int shift = 0;

	if (!take_number(&text, GANTRY_REGISTER_MAX, ret))
		return false;
	unit = *text ? strchr(units, *text | 32) : NULL;
	if (unit) {
		shift = 10 * (int)(unit - units + 1);
		text++;
	}
	if (*text && strcasecmp(text, "b") != 0 && (!unit || strcasecmp(text, "ib") != 0))
		return false;
	if (*ret == 0 || *ret > (uint64_t)GANTRY_REGISTER_MAX >> shift)
		return false;
	*ret <<= shift;
	return true;
}

static bool
take_sizes(const char *row, struct bench_sizes *s)
{
	char part[32];

	*s = (struct bench_sizes){ 0 };
	snprintf(s->text, sizeof s->text, "%s", row);
	while (row) {
		if (s->nr == BENCH_SIZES_MAX || !take_part(&row, '+', part, sizeof part))
			return false;
		s->weight[s->nr] = cut_weight(part);
		if (!s->weight[s->nr] || !bench_size(part, &s->size[s->nr]))
			return false;
		s->nr++;
	}
	return true;
}

/* Takes one part of a list, which has room for it. */
typedef bool part_fn(struct bench_plan *p, const char *part);

/* Takes the parts of a list, counted in *nr. */
static bool
take_list(struct bench_plan *p, const char *text, int *nr, int max, part_fn *take)
{
	char part[64];

	*nr = 0;
	while (text) {
		if (*nr == max || !take_part(&text, ',', part, sizeof part) || !take(p, part))
			return false;
		++*nr;
	}
	return true;
}

static bool
add_sizes(struct bench_plan *p, const char *part)
{
	return take_sizes(part, &p->sizes[p->sizes_nr]);
}

bool
bench_plan_sizes(struct bench_plan *p, const char *text)
{
	return take_list(p, text, &p->sizes_nr, BENCH_LIST_MAX, add_sizes);
}

static bool
add_at_once(struct bench_plan *p, const char *part)
{
	uint64_t n;

	if (!take_number(&part, BENCH_AT_ONCE_MAX, &n) || *part || n == 0)
		return false;
	p->at_once[p->at_once_nr] = (int)n;
	return true;
}

bool
bench_plan_at_once(struct bench_plan *p, const char *text)
{
	return take_list(p, text, &p->at_once_nr, BENCH_LIST_MAX, add_at_once);
}

static bool
take_mix(const char *row, struct bench_mix *m)
{
	char part[32];

	*m = (struct bench_mix){ 0 };
	snprintf(m->text, sizeof m->text, "%s", row);
	while (row) {
		unsigned weight;
		int op = 0;

		if (!take_part(&row, '+', part, sizeof part))
			return false;
		weight = cut_weight(part);
		while (op < BENCH_OP_NR && strcasecmp(part, bench_op_name[op]) != 0)
			op++;
		if (!weight || op == BENCH_OP_NR || m->weight[op])
			return false;
		m->weight[op] = weight;
	}
	/* With more deletes than puts there would soon be nothing left. */
	return m->weight[BENCH_DELETE] <= m->weight[BENCH_PUT];
}

static bool
add_mix(struct bench_plan *p, const char *part)
{
	return take_mix(part, &p->mix[p->mix_nr]);
}

bool
bench_plan_mix(struct bench_plan *p, const char *text)
{
	return take_list(p, text, &p->mix_nr, BENCH_LIST_MAX, add_mix);
}

static bool
add_way(struct bench_plan *p, const char *part)
{
	int way = 0;

	while (way < BENCH_WAY_NR && strcasecmp(part, bench_way_name[way]) != 0)
		way++;
	if (way == BENCH_WAY_NR || (p->way_nr == 1 && p->way[0] == (enum bench_way)way))
		return false;
	p->way[p->way_nr] = (enum bench_way)way;
	return true;
}

bool
bench_plan_ways(struct bench_plan *p, const char *text)
{
	return take_list(p, text, &p->way_nr, BENCH_WAY_NR, add_way);
}

int
bench_plan_most_at_once(const struct bench_plan *p)
{
	int most = 0;

	for (int i = 0; i < p->at_once_nr; i++)
		most = p->at_once[i] > most ? p->at_once[i] : most;
	return most;
}

static uint64_t
largest_of(const struct bench_sizes *s)
{
	uint64_t most = 0;

	for (int i = 0; i < s->nr; i++)
		most = s->size[i] > most ? s->size[i] : most;
	return most;
}

uint64_t
bench_plan_largest(const struct bench_plan *p)
{
	uint64_t most = 0;

	for (int i = 0; i < p->sizes_nr; i++)
		most = largest_of(&p->sizes[i]) > most ? largest_of(&p->sizes[i]) : most;
	return most;
}

int
bench_plan_rows(const struct bench_plan *p)
{
	return p->sizes_nr * p->at_once_nr * p->mix_nr;
}

double
bench_plan_seconds(const struct bench_plan *p, int rounds, double seconds)
{
	return seconds * rounds * p->way_nr * bench_plan_rows(p);
}

uint64_t
bench_usual_objects(const struct bench_sizes *s, int at_once)
{
	uint64_t n = USUAL_BYTES / largest_of(s);

	n = n > USUAL_OBJECTS ? USUAL_OBJECTS : n;
	return n < (uint64_t)at_once ? (uint64_t)at_once : n;
}

int
bench_pick(const unsigned *weight, int nr, uint64_t random)
{
	uint64_t sum = 0, at;
	int i = 0;

	for (int k = 0; k < nr; k++)
		sum += weight[k];
	at = random % sum;
	while (at >= weight[i])
		at -= weight[i++];
	return i;
}

void
bench_count_kind(struct bench_kinds *k, const char *name, uint64_t nr)
{
	int i = 0;

	while (i < k->nr && strcmp(k->kind[i].name, name) != 0)
		i++;
	if (i == BENCH_KINDS_MAX) {
		i = BENCH_KINDS_MAX - 1;
		snprintf(k->kind[i].name, sizeof k->kind[i].name, "others");
	}
	if (i == k->nr)
		snprintf(k->kind[k->nr++].name, sizeof k->kind[i].name, "%s", name);
	k->kind[i].nr += nr;
}
