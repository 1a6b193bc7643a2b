/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the members of the placement map that are missing at a start, and decides whether the set may start
 * without them; see start_int.h. */
#include "set/start/start_int.h"

#include "set/map/set_rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool
is_accepted(const struct start *s, int number)
{
	for (int i = 0; i < s->conf->disks.accept_missing_nr; i++) {
		if (memcmp(s->conf->disks.accept_missing[i], s->table.uuid[number], UUID_BYTES) == 0)
			return true;
	}
	return false;
}

static bool
is_absent(const struct disk *d)
{
	return !d->st && !d->is_drained;
}

/* Returns the disk that has the UUID of member `number` and cannot be used; NULL: no such disk. */
static const struct disk *
absent_by_uuid(const struct start *s, int number)
{
	for (int i = 0; i < s->nr; i++) {
		if (is_absent(&s->disk[i]) &&
		    memcmp(s->disk[i].id.uuid, s->table.uuid[number], UUID_BYTES) == 0)
			return &s->disk[i];
	}
	return NULL;
}

const struct disk *
start_absent_of(const struct start *s, int number, int *ret_unknown)
{
	const struct disk *d = absent_by_uuid(s, number), *last = NULL;
	int unknown = 0, left = 0;

	for (int i = 0; !d && i < s->nr; i++) {
		if (!is_absent(&s->disk[i]) || start_is_known(&s->disk[i]))
			continue;
		last = &s->disk[i];
		unknown++;
	}
	for (int i = 0; !d && i < STORE_DISKS_MAX; i++)
		left += table_has(s->table.members & ~s->present, i) && !absent_by_uuid(s, i);
	if (unknown == 1 && left == 1)
		d = last;
	*ret_unknown = d ? 0 : unknown;
	return d;
}

/* Largest number of disks named in a message. The message gives only the count of further disks, so that the
 * remedy in it stays visible. */
#define NAMED_MAX 3
#define WHY_BYTES 256

void __attribute__((format(printf, 3, 4))) start_add(char *to, size_t len, const char *fmt, ...)
{
	size_t at = strlen(to);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to + at, len - at, fmt, ap);
	va_end(ap);
}

/* Returns the length of the first part of a disk's message, the problem, at most WHY_BYTES. The message of
 * the start quotes only this part, and not the remedies after it. */
static int
problem_len(const char *err)
{
	size_t len = advice_problem(err);

	return len < WHY_BYTES ? (int)len : WHY_BYTES;
}

/* Returns the message of a disk without the digits at its begin, which the message of the start has already. */
static const char *
err_of(const struct disk *d)
{
	char digits[DISK_NAME_BYTES];
	size_t n = strlen(disk_name_of(digits, d->id.uuid, ""));

	return n && strncmp(d->err, digits, n) == 0 && d->err[n] == ' ' ? d->err + n + 1 : d->err;
}

void
start_add_why(const struct start *s, int number, char *to, size_t len)
{
	int unknown;
	const struct disk *d = start_absent_of(s, number, &unknown);

	if (d)
		start_add(to, len, " (%.*s%s)", problem_len(err_of(d)), err_of(d),
			  start_is_bare(d) ? "; is it mounted?" : "");
	else if (!unknown)
		start_add(to, len, " (no path of store.disks is left for it)");
}

/* Appends the errors of the disks without a known UUID, if several of them may be the missing member. */
static void
add_unknown(const struct start *s, uint64_t missing, char *to, size_t len)
{
	int unknown = 0, more = 0, named = 0;

	for (int i = 0; !unknown && i < STORE_DISKS_MAX; i++) {
		if (table_has(missing, i))
			start_absent_of(s, i, &unknown);
	}
	for (int i = 0; unknown && i < s->nr; i++) {
		if (!is_absent(&s->disk[i]) || start_is_known(&s->disk[i]))
			continue;
		if (named++ < NAMED_MAX)
			start_add(to, len, "%s%.*s%s",
				  named > 1 ? "; " : " (not there: ", problem_len(s->disk[i].err),
				  s->disk[i].err, start_is_bare(&s->disk[i]) ? "; is it mounted?" : "");
		else
			more++;
	}
	if (more)
		start_add(to, len, "; %d more", more);
	start_add(to, len, "%s", unknown ? ")" : "");
}

static bool
is_enough(const struct start *s)
{
	int members = start_count(s->table.members), present = start_count(s->present);
	bool half_suffices = !RULE_HALF_ONLY_IF_ALL_IN || (s->table.in & ~s->present) == 0;

	return !RULE_QUORUM || 2 * present > members || (2 * present == members && half_suffices);
}

const char *
start_name(const struct start *s, int number, char text[DISK_NAME_BYTES])
{
	const struct store_record *record = s->conf->disks.record;
	const struct store_record_disk *last = record ? record_find(record, s->table.uuid[number]) : NULL;
	int unknown;
	const struct disk *d = start_absent_of(s, number, &unknown);

	/* The reason after the name begins with the path, if the path is known. */
	return disk_name_of(text, s->table.uuid[number], !d && last ? last->path : "");
}

/* Returns the state of a missing member in a word. */
static const char *
state_of(const struct start *s, int number)
{
	int unknown;
	const struct disk *d = start_absent_of(s, number, &unknown);

	if (d && d->error == -EROFS)
		return "read-only";
	if (!d || d->unnamed || start_is_bare(d) || !start_was_made(d))
		return "missing";
	return d->error == -ENOTRECOVERABLE ? "damaged" : "unreadable";
}

/* Writes the share of the objects that are lost with the disks of this bitmap. Objects with one copy are lost
 * if the disk of their slot is in the bitmap. Objects with two copies are lost if the primary of their slot
 * is in the bitmap and no in-sync secondary is on another disk. */
void
start_say_loss(const struct start *s, uint64_t disks, char *text, size_t len)
{
	bool has_pairs = false;
	int one = 0, two = 0;

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		bool has_first = table_has(disks, s->table.first[i]),
		     has_second = s->table.second[i] != TABLE_NO_DISK && table_is_full(&s->table, i) &&
				  !table_has(disks, s->table.second[i]);

		one += table_has(disks, s->table.home[i]);
		two += has_first && !has_second;
		has_pairs |= s->table.second[i] != TABLE_NO_DISK;
	}
	text[0] = 0;
	start_add(text, len, "%s%d %% of the objects of buckets with one copy",
		  one && one * 100 < STORE_SLOT_NR ? "Up to " : "About ",
		  one && one * 100 < STORE_SLOT_NR ? 1 : (one * 100 + STORE_SLOT_NR / 2) / STORE_SLOT_NR);
	if (has_pairs)
		start_add(text, len, ", and %s%d %% of the objects of buckets with two copies,",
			  two && two * 100 < STORE_SLOT_NR ? "up to " : "",
			  two && two * 100 < STORE_SLOT_NR ? 1
							   : (two * 100 + STORE_SLOT_NR / 2) / STORE_SLOT_NR);
}

/* Appends the remedies for missing disks without which the set may not start. refused: bitmap of the numbers
 * of these disks. uuids: UUIDs of the first NAMED_MAX of them. words: options of gantryd that remove them
 * from the store for good. */
static void
advise(const struct start *s, uint64_t refused, const char *uuids, const char *words)
{
	char path[512] = "", away[NAMED_MAX * UUID_TEXT + 16] = "", loss[200], text[UUID_TEXT];
	const struct disk *d = NULL;
	const char *last;
	bool is_one = start_count(refused) == 1, lacks_store = false;
	int unknown, nr = 0, paths = 0, read_only = 0;
	struct advice_values v = { .path = path, .away = away, .loss = loss, .forget = words };

	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (!table_has(refused, i) || nr++ >= NAMED_MAX)
			continue;
		d = start_absent_of(s, i, &unknown);
		lacks_store |= strcmp(state_of(s, i), "missing") == 0;
		read_only += d && d->error == -EROFS;
		uuid_write(text, s->table.uuid[i]);
		if (d)
			start_add(path, sizeof path, "%s%.150s", paths++ ? ", " : "",
				  d->unnamed ? d->unnamed->path : start_path(d));
		else if (!unknown)
			start_add(away, sizeof away, "%s%s", away[0] ? ", " : "", text);
	}
	/* Accepting the missing disks is proposed only if the present disks are enough for a start. */
	if (is_enough(s) && !s->forgotten)
		v.accept = uuids;
	start_say_loss(s, refused, loss, sizeof loss);
	if (read_only == start_count(refused)) {
		advice_add(s->err, s->err_len, ADVICE_DISK_READ_ONLY, &v);
	} else if (!is_one || lacks_store || !d) {
		advice_add(s->err, s->err_len, is_one ? ADVICE_DISK_MISSING : ADVICE_DISKS_MISSING, &v);
	} else if ((last = advice_last(d->err)) != NULL) {
		/* The message names two remedies in this order: the repair of the disk, and a start without
		 * the disk. */
		start_add(s->err, s->err_len, "%.*s", (int)(last - 1 - d->err) - (int)advice_problem(d->err),
			  d->err + advice_problem(d->err));
		advice_add(s->err, s->err_len, ADVICE_DISK_DAMAGED, &v);
		start_add(s->err, s->err_len, "\n%s", last);
	} else {
		advice_add(s->err, s->err_len, ADVICE_DISK_UNUSABLE, &v);
	}
}

static int
refuse_missing(struct start *s, uint64_t missing)
{
	char who[STORE_WHY_BYTES] = "", uuids[NAMED_MAX * UUID_TEXT + 16] = "", text[UUID_TEXT];
	char words[NAMED_MAX * (UUID_TEXT + 10) + 16] = "", name[DISK_NAME_BYTES];
	int nr = 0, e;

	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (!table_has(missing, i) || nr++ >= NAMED_MAX)
			continue;
		uuid_write(text, s->table.uuid[i]);
		start_name(s, i, name);
		if (nr == 1)
			start_add(who, sizeof who, "disk %s, of a store of %d disks, is %s", name,
				  start_count(s->table.members), state_of(s, i));
		else
			start_add(who, sizeof who, "; disk %s is %s", name, state_of(s, i));
		start_add_why(s, i, who, sizeof who);
		start_add(uuids, sizeof uuids, "%s%s", nr > 1 ? ", " : "", text);
		start_add(words, sizeof words, "%s--forget %s", nr > 1 ? " " : "", text);
	}
	if (nr > NAMED_MAX) {
		start_add(who, sizeof who, "; so are %d more", nr - NAMED_MAX);
		start_add(uuids, sizeof uuids, ", ...");
		start_add(words, sizeof words, " ...");
	}
	add_unknown(s, missing, who, sizeof who);
	e = start_refuse(s, -EINVAL, "%s", who);
	advise(s, missing, uuids, words);
	return e;
}

static int
refuse_few(struct start *s, uint64_t missing)
{
	char all[STORE_WHY_BYTES] = "", name[DISK_NAME_BYTES], loss[200];
	int nr = 0, e;

	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (!table_has(missing, i) || nr++ >= NAMED_MAX)
			continue;
		start_add(all, sizeof all, "%s %s", nr > 1 ? "," : "", start_name(s, i, name));
		start_add_why(s, i, all, sizeof all);
	}
	if (nr > NAMED_MAX)
		start_add(all, sizeof all, " and %d more", nr - NAMED_MAX);
	add_unknown(s, missing, all, sizeof all);
	e = start_refuse(
		s, -EINVAL,
		"only %d of %d disks are there: the others may have changed without them, so there must "
		"be more than half, or all that took part last; missing:%s",
		start_count(s->present), start_count(s->table.members), all);
	start_say_loss(s, missing, loss, sizeof loss);
	advice_add(s->err, s->err_len, ADVICE_FEW_DISKS, &(struct advice_values){ .loss = loss });
	return e;
}

/* Refuses the start because of disk d, which cannot be a member of the store: more disks are absent than
 * members are missing. */
static int
refuse_more(struct start *s, const struct disk *d)
{
	int e;

	if (!start_is_unmade(d))
		return start_refuse_disk(s, d);
	e = start_refuse(s, d->error, "%.*s; all disks of the store, %d, are others",
			 (int)advice_problem(d->err), d->err, start_count(s->table.members));
	advice_add(s->err, s->err_len, ADVICE_EXTRA_DISK, &(struct advice_values){ .path = start_path(d) });
	return e;
}

/* Returns true if a disk that could not be opened is known to be a member. */
static bool
is_member(const struct start *s, const struct disk *d)
{
	return start_is_known(d) && table_find(&s->table, d->id.uuid) >= 0;
}

int
start_check_missing(struct start *s)
{
	uint64_t missing = s->table.members & ~s->present & ~s->forgotten, refused = missing;
	const struct disk *other = NULL;
	int absent = 0;

	for (int i = 0; i < s->nr; i++) {
		if (s->disk[i].unnamed || !is_absent(&s->disk[i]))
			continue;
		absent++;
		if (!other || is_member(s, other))
			other = &s->disk[i];
	}
	/* More configured disks are absent than members are missing, so at least one of these disks is not a
	 * member. */
	if (absent > start_count(missing | s->forgotten))
		return refuse_more(s, other);
	if (s->forgotten)
		return missing ? refuse_missing(s, missing) : 0;
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (table_has(missing, i) && is_accepted(s, i))
			refused &= ~((uint64_t)1 << i);
	}
	if (refused)
		return refuse_missing(s, refused);
	return is_enough(s) ? 0 : refuse_few(s, missing);
}

int
start_find_forgotten(struct start *s)
{
	char text[UUID_TEXT];

	s->forgotten = 0;
	for (int i = 0; i < s->conf->disks.forget_nr; i++) {
		int number = table_find(&s->table, s->conf->disks.forget[i]);

		uuid_write(text, s->conf->disks.forget[i]);
		if (number < 0)
			return start_refuse(s, -EINVAL, "disk %s does not belong to this store", text);
		if (table_has(s->present, number)) {
			start_refuse(s, -EINVAL, "disk %s is there, and is given up only when it is not",
				     text);
			advice_add(s->err, s->err_len, ADVICE_FORGET_PRESENT, NULL);
			return -EINVAL;
		}
		s->forgotten |= (uint64_t)1 << number;
	}
	return 0;
}
