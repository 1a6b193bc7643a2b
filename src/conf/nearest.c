/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the known key nearest to one that is not known.  Pure; called by the loader for each
 * unknown key. */
#include "conf/conf_int.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 63

static int
lower_case(const char *name, char out[NAME_MAX_LEN])
{
	int n = (int)strnlen(name, NAME_MAX_LEN);

	for (int i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)name[i]);
	return n;
}

/*
 * Levenshtein, with a swap of neighbours counted once and case ignored.  Names are cut at 63 characters: none
 * of ours is longer.  Not looked at further when it is `limit` or more: then some number from there on.  What
 * is below it stays in a band around the diagonal.
 */
int
conf_edit_distance(const char *name_a, const char *name_b, int limit)
{
	char a[NAME_MAX_LEN], b[NAME_MAX_LEN];
	int la = lower_case(name_a, a), lb = lower_case(name_b, b);
	int row[3][NAME_MAX_LEN + 2], least_up = 0;

	if (abs(la - lb) >= limit)
		return abs(la - lb);
	for (int j = 0; j <= lb; j++)
		row[0][j] = j;
	for (int i = 1; i <= la; i++) {
		int *now = row[i % 3], *up = row[(i + 2) % 3], *upup = row[(i + 1) % 3];
		int from = i > limit ? i - limit : 1, to = lb < i + limit ? lb : i + limit, least = i;

		now[from - 1] = from > 1 ? limit : i;
		now[to + 1] = limit;
		for (int j = from; j <= to; j++) {
			int d = up[j - 1] + (a[i - 1] != b[j - 1]);

			if (up[j] + 1 < d)
				d = up[j] + 1;
			if (now[j - 1] + 1 < d)
				d = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    upup[j - 2] + 1 < d)
				d = upup[j - 2] + 1;
			now[j] = d;
			least = d < least ? d : least;
		}
		/* Every way to the end leads through one of two neighbouring rows. */
		if (least >= limit && least_up >= limit)
			return limit;
		least_up = least;
	}
	return row[la % 3][lb];
}

struct best {
	int distance;
	char *buf;
	size_t cap;
};

static const char *
last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

static void
consider(struct best *b, const char *wanted, const char *known)
{
	int d = conf_edit_distance(wanted, known, b->distance);

	/* The right key in the wrong section is as near as one typing mistake. */
	if (d > 1 && strcmp(last_part(wanted), last_part(known)) == 0)
		d = 1;
	if (d < b->distance) {
		b->distance = d;
		snprintf(b->buf, b->cap, "%s", known);
	}
}

const char *
key_nearest(const char *name, char *buf, size_t cap)
{
	size_t len = strlen(name);
	struct best b = { .distance = len < 9 ? 3 : (int)(len < 60 ? len : 60) / 3 + 1,
			  .buf = buf,
			  .cap = cap };
	char full[96];
	const char *bracket = strchr(name, '[');

	buf[0] = 0;
	if (!len)
		return NULL; /* the shortest names are near to nothing, too */
	for (int i = 0; i < conf_key_nr; i++) {
		const struct conf_key *k = &conf_keys[i];
		const char *dot = strchr(k->name, '.');

		/* Inside a list only the list's own keys help. */
		if (bracket) {
			if (k->type != KT_MAPS || strncmp(k->name, name, (size_t)(bracket - name)) != 0)
				continue;
			b.distance = 4;
			for (int j = 0; j < k->list->key_nr; j++)
				consider(&b, last_part(name), k->list->keys[j].name);
			continue;
		}
		if (!strchr(name, '.') && dot) {
			snprintf(full, sizeof full, "%.*s", (int)(dot - k->name), k->name);
			consider(&b, name, full);
		}
		consider(&b, name, k->name);
	}
	return buf[0] ? buf : NULL;
}

/* Keys that were removed, with the reason: files that have them are older than this program. */
static const struct {
	const char *name, *why;
} removed[] = {
	{ "rdma.max_sge", "a work request of this daemon has one scatter entry" },
};

void
load_unknown(struct loader *ld, const struct node *key, const char *path)
{
	char near[128];

	for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
		if (strcmp(path, removed[i].name) == 0) {
			load_fail(ld, key, path, "this key was removed: %s; delete the line", removed[i].why);
			return;
		}
	}
	if (key_nearest(path, near, sizeof near))
		load_fail(ld, key, path, "unknown key; did you mean %s?", near);
	else
		load_fail(ld, key, path, "unknown key");
}
