/* SPDX-License-Identifier: Apache-2.0 */
/* The length of tags; see markup.h. */
#include "base/markup.h"

#include <string.h>

/* Returns the place after the `end` of what begins at p; or the end of all, where the parser finds it open. */
static const char *
behind(const char *p, const char *all_end, const char *end)
{
	const char *at = memmem(p, (size_t)(all_end - p), end, strlen(end));

	return at ? at + strlen(end) : all_end;
}

bool
markup_tags_are_short(const char *text, size_t len, size_t max)
{
	const char *p = text, *end = text + len;

	while (p < end && (p = memchr(p, '<', (size_t)(end - p)))) {
		size_t left = (size_t)(end - p);
		const char *from = p;
		char quote = 0;

		if (left >= 4 && memcmp(p, "<!--", 4) == 0) {
			p = behind(p + 4, end, "-->");
			continue;
		}
		if (left >= 9 && memcmp(p, "<![CDATA[", 9) == 0) {
			p = behind(p + 9, end, "]]>");
			continue;
		}
		if (left >= 2 && p[1] == '?') {
			p = behind(p + 2, end, "?>");
			continue;
		}
		for (; p < end && (quote || *p != '>'); p++) {
			if (p - from > (ptrdiff_t)max)
				return false;
			if (quote)
				quote = *p == quote ? 0 : quote;
			else if (*p == '"' || *p == '\'')
				quote = *p;
		}
	}
	return true;
}
