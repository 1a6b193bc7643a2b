/* SPDX-License-Identifier: Apache-2.0 */
/* What a check of the store has found, by object; see damage.h. */
#include "store/damage.h"

#include "base/advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAMAGE_MAX (UINT64_C(1) << 20) /* objects in the list; those after them are reported one by one */

struct store_damage *
damage_new(void)
{
	struct store_damage *all = calloc(1, sizeof *all);

	if (all)
		all->end = &all->first;
	return all;
}

void
damage_free(struct store_damage *all)
{
	while (all && all->first) {
		struct damage *d = all->first;

		all->first = d->next;
		free(d->line);
		free(d);
	}
	free(all);
}

static uint32_t
hash_of(const uint8_t *key, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ key[i]) * 16777619u;
	return h % DAMAGE_HASHES;
}

static struct damage *
find(const struct store_damage *all, const struct damage *what, const uint8_t *key, size_t len, uint32_t hash)
{
	for (struct damage *d = all->hash[hash]; d; d = d->same_hash) {
		if (d->kind == what->kind && strcmp(d->disk, what->disk) == 0 && d->len == len &&
		    memcmp(d->key, key, len) == 0)
			return d;
	}
	return NULL;
}

/* Takes the newer change of an object that is in the list. */
static bool
renew(struct damage *d, const struct damage *what, const char *line)
{
	char *copy;

	if (what->version <= d->version)
		return true;
	copy = strdup(line);
	if (!copy)
		return false;
	free(d->line);
	d->line = copy;
	d->version = what->version;
	d->size_bytes = what->size_bytes;
	d->is_removal = what->is_removal;
	return true;
}

bool
damage_add(struct store_damage *all, const struct damage *what, const uint8_t *key, size_t len,
	   const char *line)
{
	uint32_t hash = hash_of(key, len);
	struct damage *d = all ? find(all, what, key, len, hash) : NULL;

	if (d)
		return renew(d, what, line);
	if (!all || all->nr >= DAMAGE_MAX || !(d = malloc(sizeof *d + len)))
		return false;
	*d = *what;
	d->line = strdup(line);
	if (!d->line) {
		free(d);
		return false;
	}
	memcpy(d->key, key, len);
	d->len = len;
	d->next = NULL;
	d->same_hash = all->hash[hash];
	all->hash[hash] = d;
	*all->end = d;
	all->end = &d->next;
	all->nr++;
	return true;
}

/* ---- the report ---- */

/* Counts an object once, although both disks of its copies may have it in the list. */
static bool
is_first(const struct store_damage *all, const struct damage *d)
{
	bool is_first = true;

	for (const struct damage *o = all->hash[hash_of(d->key, d->len)]; o; o = o->same_hash)
		is_first &= o == d || o->kind != d->kind || o->len != d->len ||
			    memcmp(o->key, d->key, d->len) != 0 || strcmp(o->disk, d->disk) > 0;
	return is_first;
}

static void
count(struct store_damage *all, const struct damage *d)
{
	struct damage_sums *s = &all->sums;

	if (!is_first(all, d))
		return;
	s->nr[d->kind]++;
	s->bytes[d->kind] += d->size_bytes;
	if (d->whole_on)
		return;
	s->gone_nr[d->kind]++;
	s->gone_bytes[d->kind] += d->size_bytes;
}

static const char *
plural(uint64_t nr)
{
	return nr == 1 ? "" : "s";
}

static void
say_dropped(const struct damage_sums *s, bool has_others, void (*say)(void *cookie, const char *line),
	    void *cookie)
{
	uint64_t nr = s->nr[DAMAGE_LOST] + s->nr[DAMAGE_DROPPED],
		 bytes = s->bytes[DAMAGE_LOST] + s->bytes[DAMAGE_DROPPED],
		 gone = s->gone_nr[DAMAGE_LOST] + s->gone_nr[DAMAGE_DROPPED],
		 gone_bytes = s->gone_bytes[DAMAGE_LOST] + s->gone_bytes[DAMAGE_DROPPED];
	char text[400];
	int n;

	if (!nr)
		return;
	n = snprintf(text, sizeof text, "lost or dropped: %llu object%s, %llu bytes", (unsigned long long)nr,
		     plural(nr), (unsigned long long)bytes);
	if (has_others)
		snprintf(text + n, sizeof text - (size_t)n,
			 "; whole on another disk: %llu object%s, %llu bytes; nowhere else: %llu object%s, "
			 "%llu bytes",
			 (unsigned long long)(nr - gone), plural(nr - gone),
			 (unsigned long long)(bytes - gone_bytes), (unsigned long long)gone, plural(gone),
			 (unsigned long long)gone_bytes);
	say(cookie, text);
}

static void
say_damaged(const struct damage_sums *s, bool has_others, void (*say)(void *cookie, const char *line),
	    void *cookie)
{
	uint64_t nr = s->nr[DAMAGE_BAD], gone = s->gone_nr[DAMAGE_BAD];
	char text[600];
	int n;

	if (!nr)
		return;
	n = snprintf(text, sizeof text, "%llu of %llu objects %s damaged", (unsigned long long)nr,
		     (unsigned long long)s->objects, nr == 1 ? "is" : "are");
	if (has_others)
		n += snprintf(text + n, sizeof text - (size_t)n, " (%llu of them in all copies)",
			      (unsigned long long)gone);
	if (nr > gone)
		snprintf(text + n, sizeof text - (size_t)n,
			 "; the daemon restores %llu from their whole copies",
			 (unsigned long long)(nr - gone));
	if (gone)
		advice_add(text, sizeof text, ADVICE_OBJECTS_DAMAGED, NULL);
	say(cookie, text);
}

void
damage_report(struct store_damage *all, bool has_others, void (*say)(void *cookie, const char *line),
	      void *cookie)
{
	char text[1400];

	for (const struct damage *d = all->first; d; d = d->next) {
		int n = snprintf(text, sizeof text, "%.300s: %.700s", d->disk, d->line);

		count(all, d);
		if (has_others && d->whole_on)
			snprintf(text + n, sizeof text - (size_t)n, ": whole on %.300s", d->whole_on);
		else if (has_others)
			snprintf(text + n, sizeof text - (size_t)n, ": no other disk has it whole");
		say(cookie, text);
	}
	say_dropped(&all->sums, has_others, say, cookie);
	if (all->sums.has_unknown)
		say(cookie,
		    "lost or dropped as well: an unknown number of objects, whose names cannot be read");
	say_damaged(&all->sums, has_others, say, cookie);
}

void
damage_loss(const struct damage_sums *s, char *text, size_t len)
{
	uint64_t nr = s->nr[DAMAGE_LOST] + s->nr[DAMAGE_DROPPED],
		 gone = s->gone_nr[DAMAGE_LOST] + s->gone_nr[DAMAGE_DROPPED],
		 bytes = s->gone_bytes[DAMAGE_LOST] + s->gone_bytes[DAMAGE_DROPPED];

	if (gone)
		snprintf(text, len, "%llu object%s (%llu bytes) %s lost, of %llu that are listed%s",
			 (unsigned long long)gone, plural(gone), (unsigned long long)bytes,
			 gone == 1 ? "is" : "are", (unsigned long long)nr,
			 s->has_unknown ? ", and those whose names cannot be read" : "");
	else if (s->has_unknown)
		snprintf(text, len, "An unknown number of objects is lost, whose names cannot be read%s",
			 nr ? "; other disks have all that is listed" : "");
	else
		snprintf(text, len, "No object is lost%s", nr ? ": other disks have all that is listed" : "");
}
