/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, sizes and times as text, and back.  Pure; called by all code that reads or prints a value. */
#include "conf/conf_int.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "TiB", (uint64_t)1 << 40 },
	{ "GiB", (uint64_t)1 << 30 },
	{ "MiB", (uint64_t)1 << 20 },
	{ "KiB", (uint64_t)1 << 10 },
	{ "", 1 },
};
static const struct unit time_units[] = { { "d", 86400 * NS_PER_S },
					  { "h", 3600 * NS_PER_S },
					  { "m", 60 * NS_PER_S },
					  { "s", NS_PER_S },
					  { "ms", NS_PER_MS },
					  { "us", NS_PER_US },
					  { "ns", 1 } };
/* Index of the largest unit that time_format() writes; a file may have larger ones. */
#define TIME_WRITTEN 3
#define TIME_NR (int)(sizeof time_units / sizeof time_units[0])

/* "1.5GiB": up to nine digits after the point, and the result must be a whole number.  0, -EINVAL or
 * -ERANGE. */
static int
unit_parse(const char *text, const struct unit *units, int nr, uint64_t *ret_value)
{
	unsigned __int128 n = 0, scale = 1, value;
	const char *p = text;
	int digits = 0, behind = 0;

	for (; *p >= '0' && *p <= '9'; p++) {
		n = n * 10 + (unsigned)(*p - '0');
		if (++digits > 20)
			return -ERANGE;
	}
	if (!digits)
		return -EINVAL;
	if (*p == '.') {
		for (p++; *p >= '0' && *p <= '9'; p++) {
			n = n * 10 + (unsigned)(*p - '0');
			scale *= 10;
			if (++behind > 9)
				return -EINVAL;
		}
		if (!behind)
			return -EINVAL;
	}
	if (*p == ' ')
		p++;
	for (int i = 0; i < nr; i++) {
		if (strcmp(p, units[i].name) != 0)
			continue;
		value = n * units[i].factor;
		if (value % scale)
			return -EINVAL;
		value /= scale;
		if (value > UINT64_MAX)
			return -ERANGE;
		*ret_value = (uint64_t)value;
		return 0;
	}
	return -EINVAL;
}

int
size_parse(const char *text, uint64_t *ret_bytes)
{
	return unit_parse(text, size_units, 5, ret_bytes);
}

int
time_parse(const char *text, uint64_t *ret_ns)
{
	/* Nothing is nothing in every unit. */
	if (strcmp(text, "0") == 0) {
		*ret_ns = 0;
		return 0;
	}
	return unit_parse(text, time_units, TIME_NR, ret_ns);
}

bool
size_hint(const char *text, char *out, size_t cap)
{
	static const char *const endings[] = { "", "B", "b", "iB", "ib" };
	size_t n = strspn(text, "0123456789.");
	const char *unit = text + n;
	uint64_t bytes;

	unit += *unit == ' ';
	for (int i = 0; *unit && i < 4; i++) {
		for (size_t k = 0; k < sizeof endings / sizeof endings[0]; k++) {
			if (strncasecmp(unit, size_units[i].name, 1) != 0 ||
			    strcmp(unit + 1, endings[k]) != 0)
				continue;
			snprintf(out, cap, "%.*s%s", (int)n, text, size_units[i].name);
			return size_parse(out, &bytes) == 0;
		}
	}
	return false;
}

bool
time_hint(const char *text, char *out, size_t cap)
{
	uint64_t ns;

	snprintf(out, cap, "%.20ss", text);
	return time_parse(out, &ns) == 0;
}

static void
unit_format(uint64_t value, const struct unit *units, int nr, char *out, size_t cap)
{
	for (int i = 0; i < nr; i++) {
		if (i == nr - 1 || (value && value % units[i].factor == 0)) {
			snprintf(out, cap, "%llu%s", (unsigned long long)(value / units[i].factor),
				 units[i].name);
			return;
		}
	}
}

void
size_format(uint64_t bytes, char *out, size_t cap)
{
	unit_format(bytes, size_units, 5, out, cap);
}

void
time_format(uint64_t ns, char *out, size_t cap)
{
	unit_format(ns, time_units + TIME_WRITTEN, TIME_NR - TIME_WRITTEN, out, cap);
}

int
u64_parse(const char *text, uint64_t *ret_value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;
	unsigned long long v;

	/* strtoull takes signs and blanks; we do not. */
	if (!hex && (text[0] < '0' || text[0] > '9'))
		return -EINVAL;
	if (hex && strspn(text + 2, "0123456789abcdefABCDEF") == 0)
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, hex ? 16 : 10);
	if (*end)
		return -EINVAL;
	if (errno)
		return -ERANGE;
	*ret_value = v;
	return 0;
}

int
conf_bound_parse(const char *text, bool is_bytes, uint64_t *ret_bound)
{
	if (size_parse(text, ret_bound) < 0 || *ret_bound > (uint64_t)1 << 62)
		return -EINVAL;
	return is_bytes || strspn(text, "0123456789") == strlen(text) ? 0 : -EINVAL;
}
