/* SPDX-License-Identifier: Apache-2.0 */
#include "base/amount.h"

#include <stddef.h>
#include <stdio.h>

const char *
size_text(uint64_t bytes, char out[AMOUNT_TEXT])
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double v = (double)bytes;
	size_t u = 0;

	while (v >= 1024 && u + 1 < sizeof unit / sizeof *unit) {
		v /= 1024;
		u++;
	}
	snprintf(out, AMOUNT_TEXT, u ? "%.1f %s" : "%.0f %s", v, unit[u]);
	return out;
}

const char *
interval_text(uint64_t seconds, char out[AMOUNT_TEXT])
{
	static const struct {
		const char *name;
		uint64_t s;
	} unit[] = { { "d", 86400 }, { "h", 3600 }, { "min", 60 }, { "s", 1 } };
	size_t u = 0;
	uint64_t rest;

	while (u + 1 < sizeof unit / sizeof *unit && seconds < unit[u].s)
		u++;
	rest = u + 1 < sizeof unit / sizeof *unit ? seconds % unit[u].s / unit[u + 1].s : 0;
	if (rest)
		snprintf(out, AMOUNT_TEXT, "%llu %s %llu %s", (unsigned long long)(seconds / unit[u].s),
			 unit[u].name, (unsigned long long)rest, unit[u + 1].name);
	else
		snprintf(out, AMOUNT_TEXT, "%llu %s", (unsigned long long)(seconds / unit[u].s),
			 unit[u].name);
	return out;
}
