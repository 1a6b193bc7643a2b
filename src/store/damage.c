/* SPDX-License-Identifier: Apache-2.0 */
/* What a check of the store has found, by object; see damage.h. */
#include "store/damage.h"

#include "base/advice.h"
#include "base/check.h"
#include "base/crc64.h"

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

const char *
damage_disk(struct store_damage *all, const char *name)
{
	int i = 0;

	while (i < all->disk_nr && strcmp(all->disk[i], name) != 0)
		i++;
	check(i < STORE_DISKS_MAX);
	if (i == all->disk_nr)
		snprintf(all->disk[all->disk_nr++], DISK_NAME_BYTES, "%s", name);
	return all->disk[i];
}

static uint32_t
hash_of(const uint8_t *key, size_t len)
{
	return (uint32_t)crc64_nvme(0, key, len) % DAMAGE_HASHES;
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
add(struct damage_sum *sum, const struct damage *d)
{
	sum->objects += !d->is_part;
	sum->parts += d->is_part;
	sum->bytes += d->size_bytes;
}

static void
count(struct store_damage *all, const struct damage *d)
{
	if (!is_first(all, d))
		return;
	add(&all->sums.all[d->kind], d);
	if (!d->whole_on)
		add(&all->sums.gone[d->kind], d);
}

static bool
any(const struct damage_sum *s)
{
	return s->objects || s->parts;
}

/* Returns what a repair drops or has lost: of all of it, or of what no disk has whole. */
static struct damage_sum
dropped(const struct damage_sum sum[DAMAGE_KINDS])
{
	const struct damage_sum *a = &sum[DAMAGE_LOST], *b = &sum[DAMAGE_DROPPED];

	return (struct damage_sum){ a->objects + b->objects, a->parts + b->parts, a->bytes + b->bytes };
}

#define SUM_TEXT 100

/* Writes numbers of objects and parts, such as "3 objects and 1 part of an upload". */
static const char *
count_text(const struct damage_sum *s, char text[SUM_TEXT])
{
	int n = 0;

	if (s->objects || !s->parts)
		n = snprintf(text, SUM_TEXT, "%llu object%s%s", (unsigned long long)s->objects,
			     s->objects == 1 ? "" : "s", s->parts ? " and " : "");
	if (s->parts)
		snprintf(text + n, SUM_TEXT - (size_t)n, "%llu part%s", (unsigned long long)s->parts,
			 s->parts == 1 ? " of an upload" : "s of uploads");
	return text;
}

static void
say_dropped(const struct damage_sums *s, bool has_others, void (*say)(void *cookie, const char *line),
	    void *cookie)
{
	struct damage_sum all = dropped(s->all), gone = dropped(s->gone);
	struct damage_sum whole = { all.objects - gone.objects, all.parts - gone.parts,
				    all.bytes - gone.bytes };
	char text[500], one[SUM_TEXT], two[SUM_TEXT];
	int n;

	if (!any(&all))
		return;
	/* On RADOS the record that had the size is damaged. */
	n = snprintf(text, sizeof text, "lost or dropped: %s", count_text(&all, one));
	if (all.bytes)
		n += snprintf(text + n, sizeof text - (size_t)n, ", %llu bytes",
			      (unsigned long long)all.bytes);
	if (has_others)
		snprintf(text + n, sizeof text - (size_t)n,
			 "; whole on another disk: %s, %llu bytes; nowhere else: %s, %llu bytes",
			 count_text(&whole, one), (unsigned long long)whole.bytes, count_text(&gone, two),
			 (unsigned long long)gone.bytes);
	say(cookie, text);
}

static void
say_damaged(const struct damage_sums *s, bool has_others, void (*say)(void *cookie, const char *line),
	    void *cookie)
{
	const struct damage_sum *all = &s->all[DAMAGE_BAD], *gone = &s->gone[DAMAGE_BAD];
	uint64_t nr = all->objects + all->parts, gone_nr = gone->objects + gone->parts;
	char text[600], parts[SUM_TEXT] = "", one[SUM_TEXT];
	int n;

	if (!nr)
		return;
	if (all->parts)
		snprintf(parts, sizeof parts, " and %s",
			 count_text(&(struct damage_sum){ .parts = all->parts }, one));
	n = snprintf(text, sizeof text, "%llu of %llu objects%s %s damaged", (unsigned long long)all->objects,
		     (unsigned long long)s->objects, parts, nr == 1 ? "is" : "are");
	if (has_others)
		n += snprintf(text + n, sizeof text - (size_t)n, " (%llu of them in all copies)",
			      (unsigned long long)gone_nr);
	if (nr > gone_nr)
		snprintf(text + n, sizeof text - (size_t)n,
			 "; the daemon restores %llu from their whole copies",
			 (unsigned long long)(nr - gone_nr));
	if (gone_nr)
		advice_add(text, sizeof text, ADVICE_OBJECTS_DAMAGED, NULL);
	say(cookie, text);
}

void
damage_report(struct store_damage *all, bool has_others, void (*say)(void *cookie, const char *line),
	      void *cookie)
{
	char text[2400];

	for (const struct damage *d = all->first; d; d = d->next) {
		int n = snprintf(text, sizeof text, "%.300s: %.1500s", d->disk, d->line);

		count(all, d);
		if (has_others && d->whole_on)
			snprintf(text + n, sizeof text - (size_t)n, ": whole on %.300s", d->whole_on);
		else if (has_others)
			snprintf(text + n, sizeof text - (size_t)n, ": no other disk has it whole");
		say(cookie, text);
	}
	say_dropped(&all->sums, has_others, say, cookie);
	if (all->sums.unnamed.objects) {
		snprintf(text, sizeof text, "named by no record: %llu object%s in the pools, %llu bytes",
			 (unsigned long long)all->sums.unnamed.objects,
			 all->sums.unnamed.objects == 1 ? "" : "s",
			 (unsigned long long)all->sums.unnamed.bytes);
		say(cookie, text);
	}
	if (all->sums.has_unknown)
		say(cookie,
		    "lost or dropped as well: an unknown number of objects, whose names cannot be read");
	say_damaged(&all->sums, has_others, say, cookie);
}

void
damage_loss(const struct damage_sums *s, char *text, size_t len)
{
	struct damage_sum all = dropped(s->all), gone = dropped(s->gone);
	uint64_t listed = all.objects + all.parts;
	char one[SUM_TEXT], bytes[40] = "";
	size_t n;

	if (gone.bytes)
		snprintf(bytes, sizeof bytes, " (%llu bytes)", (unsigned long long)gone.bytes);
	if (any(&gone))
		snprintf(text, len, "%s%s %s lost, of %llu that are listed%s", count_text(&gone, one), bytes,
			 gone.objects + gone.parts == 1 ? "is" : "are", (unsigned long long)listed,
			 s->has_unknown ? ", and those whose names cannot be read" : "");
	else if (s->has_unknown)
		snprintf(text, len, "An unknown number of objects is lost, whose names cannot be read%s",
			 listed ? "; other disks have all that is listed" : "");
	else
		snprintf(text, len, "No object is lost%s",
			 listed ? ": other disks have all that is listed" : "");
	n = strlen(text);
	if (s->unnamed.objects)
		snprintf(text + n, len - n,
			 "; %llu object%s in the pools, %llu bytes, that no record names, %s removed",
			 (unsigned long long)s->unnamed.objects, s->unnamed.objects == 1 ? "" : "s",
			 (unsigned long long)s->unnamed.bytes, s->unnamed.objects == 1 ? "is" : "are");
}
