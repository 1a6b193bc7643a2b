/* SPDX-License-Identifier: Apache-2.0 */
/* Times as options name them; see cmd.h. */
#include "client/cmd/common/cmd.h"

#include <stdlib.h>
#include <string.h>

bool
duration_parse(const char *text, uint64_t max_s, uint64_t *ret_s)
{
	static const char units[] = "smhd";
	static const unsigned seconds[] = { 1, 60, 3600, 86400 };
	const char *unit;
	char *end;
	unsigned long n;

	if (*text < '0' || *text > '9')
		return false;
	n = strtoul(text, &end, 10);
	unit = *end ? strchr(units, *end) : units;
	if (!unit || (*end && end[1]) || n > max_s / seconds[unit - units])
		return false;
	*ret_s = (uint64_t)n * seconds[unit - units];
	return n > 0;
}
