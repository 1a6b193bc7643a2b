/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the texts of an entry of the credentials file that are no secret: times and comments. Pure functions. */
#include "auth/auth_int.h"

#include "base/printable.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

int
credentials_time(struct span b, uint64_t *ret_s)
{
	char stamp[AUTH_STAMP_LEN + 1], basic[AUTH_STAMP_LEN + 1];
	size_t at = 19;
	uint64_t offset, hours, minutes;

	if (b.len < 20 || b.p[4] != '-' || b.p[7] != '-' || (b.p[10] != 'T' && b.p[10] != 't') ||
	    b.p[13] != ':' || b.p[16] != ':')
		return -EINVAL;
	snprintf(basic, sizeof basic, "%.4s%.2s%.2s%c%.2s%.2s%.2sZ", b.p, b.p + 5, b.p + 8, 'T', b.p + 11,
		 b.p + 14, b.p + 17);
	if (stamp_parse(span_of(basic), stamp, ret_s) < 0)
		return -EINVAL;
	if (b.p[at] == '.') {
		for (at++; at < b.len && isdigit((unsigned char)b.p[at]); at++)
			;
	}
	if (b.len == at + 1 && (b.p[at] == 'Z' || b.p[at] == 'z'))
		return 0;
	if (b.len != at + 6 || (b.p[at] != '+' && b.p[at] != '-') || b.p[at + 3] != ':')
		return -EINVAL;
	for (size_t i = at + 1; i < at + 6; i++) {
		if (i != at + 3 && !isdigit((unsigned char)b.p[i]))
			return -EINVAL;
	}
	hours = (uint64_t)(b.p[at + 1] - '0') * 10 + (uint64_t)(b.p[at + 2] - '0');
	minutes = (uint64_t)(b.p[at + 4] - '0') * 10 + (uint64_t)(b.p[at + 5] - '0');
	offset = hours * 3600 + minutes * 60;
	/* Nor a time before 1970, which would be one that never comes. */
	if (hours > 23 || minutes > 59 || (b.p[at] == '+' && offset > *ret_s))
		return -EINVAL;
	*ret_s = b.p[at] == '+' ? *ret_s - offset : *ret_s + offset;
	return 0;
}

const char *
auth_time_text(uint64_t s, char out[AUTH_TIME_BYTES])
{
	time_t at = (time_t)s;
	struct tm tm;

	strftime(out, AUTH_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
	return out;
}

int
credentials_comment(struct span text, char **ret)
{
	char *copy;

	if (text.len == 0 || text.len > AUTH_COMMENT_MAX || memchr(text.p, 0, text.len))
		return -EINVAL;
	copy = strndup(text.p, text.len);
	if (!copy)
		return -ENOMEM;
	if (printable(copy, "")) {
		free(copy);
		return -EINVAL;
	}
	*ret = copy;
	return 0;
}
