/* SPDX-License-Identifier: Apache-2.0 */
/* Finds disks by the names that operators use, and reports data of disks; see disk_names.h. */
#include "set/disk_names.h"

#include "base/path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int
disk_unit_of(const struct set *s, int engine)
{
	for (int i = 0; i < set_units(s); i++) {
		if (set_unit(s, i)->engine == engine)
			return i;
	}
	return -1;
}

void
disk_look_unit(const struct set *s, int unit, struct store_unit_info *ret_info)
{
	const struct set_member *m = set_unit(s, unit);

	*ret_info = (struct store_unit_info){ .name = m->path };
	if (m->engine != SET_NOWHERE)
		store_unit_info(set_engine(s, m->engine), 0, ret_info);
}

void
disk_sizes(const struct set *s, uint64_t ret_size[STORE_DISKS_MAX])
{
	struct store_unit_info info;

	memset(ret_size, 0, STORE_DISKS_MAX * sizeof *ret_size);
	for (int i = 0; i < set_engines(s); i++) {
		if (!(set_all(s) >> i & 1))
			continue;
		store_unit_info(set_engine(s, i), 0, &info);
		ret_size[set_number(s, i)] = info.size_bytes;
	}
}

uint64_t
disk_used_bytes(const struct set *s, int engine)
{
	struct store_unit_info info;
	uint64_t stays;

	store_unit_info(set_engine(s, engine), 0, &info);
	stays = info.free_bytes + info.own_bytes;
	return info.size_bytes - (stays < info.size_bytes ? stays : info.size_bytes);
}

int
disk_engine_at(const struct set *s, const char *path)
{
	struct store_unit_info info;

	for (int i = 0; path[0] == '/' && i < set_engines(s); i++) {
		store_unit_info(set_engine(s, i), 0, &info);
		if (info.name[0] && path_leads_same(info.name, path))
			return i;
	}
	return -1;
}

bool
disk_has_left(const struct set *s, int unit)
{
	return set_unit(s, unit)->engine == SET_NOWHERE && set_is_drained(s, unit);
}

/* Returns true if `which` is the UUID or the path of a disk. Differences of notation are ignored: capitals in
 * a UUID, a trailing slash of a path. */
static bool
is_named(const struct set *s, int unit, const char *which)
{
	struct store_unit_info info;

	disk_look_unit(s, unit, &info);
	return strcasecmp(set_unit(s, unit)->uuid, which) == 0 || path_same(info.name, which);
}

static int
find_by_digits(const struct set *s, const char *which)
{
	int found = -ENOENT;

	for (int i = 0; i < set_units(s); i++) {
		if (!disk_digits_are(which, set_unit(s, i)->uuid))
			continue;
		/* A disk that was drained and added again may be two units. */
		if (found >= 0 && strcmp(set_unit(s, found)->uuid, set_unit(s, i)->uuid) != 0)
			return -ENOTUNIQ;
		if (found < 0 || disk_has_left(s, found))
			found = i;
	}
	return found;
}

int
disk_find(const struct set *s, const char *which)
{
	int nr = set_units(s), left = -1;

	for (int i = 0; i < nr; i++) {
		if (!is_named(s, i, which))
			continue;
		if (!disk_has_left(s, i))
			return i;
		left = i;
	}
	return left >= 0 ? left : find_by_digits(s, which);
}

const char *
disk_called(const struct set *s, int unit, char text[DISK_NAME_BYTES])
{
	struct store_unit_info info;

	disk_look_unit(s, unit, &info);
	return disk_name(text, set_unit(s, unit)->uuid, info.name);
}

void
disk_label(const struct set *s, int unit, char label[64])
{
	const char *uuid = set_unit(s, unit)->uuid;
	bool is_alone = true;

	for (int i = 0; i < set_units(s) && uuid[0]; i++)
		is_alone &= strncmp(set_unit(s, i)->uuid, uuid, DISK_DIGITS) != 0 ||
			    strcmp(set_unit(s, i)->uuid, uuid) == 0;
	snprintf(label, 64, "%.*s", is_alone ? DISK_DIGITS : UUID_TEXT, uuid);
}

bool
disks_all_serve(const struct set *s)
{
	return !set_misses_some(s) && set_in(s) == set_all(s) && !set_is_read_only(s);
}

uint64_t
disks_serving(const struct set *s)
{
	uint64_t bits = 0;

	for (int i = 0; i < set_engines(s); i++) {
		if (set_is_in(s, i) && !set_has_failed(s, i))
			bits |= (uint64_t)1 << set_number(s, i);
	}
	return bits;
}

bool
disks_say_out(const struct set *s, char *text, size_t len)
{
	char name[DISK_NAME_BYTES];
	int nr = 0, at = 0;

	for (int i = 0; i < set_units(s); i++) {
		int engine = set_unit(s, i)->engine;
		bool is_missing = engine == SET_NOWHERE;
		struct store_unit_info info;

		if (set_is_drained(s, i) || (!is_missing && !set_has_failed(s, engine)) || nr++)
			continue;
		disk_look_unit(s, i, &info);
		at = snprintf(
			text, len, "disk %.120s %s%s%.60s", disk_name(name, set_unit(s, i)->uuid, info.name),
			is_missing ? "is missing" : "has failed", info.reason[0] ? ": " : "", info.reason);
	}
	if (nr > 1 && (size_t)at < len)
		snprintf(text + at, len - (size_t)at, ", and so %s %d more", nr == 2 ? "is" : "are", nr - 1);
	return nr > 0;
}
