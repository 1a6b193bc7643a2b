/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of the JSON pages. */
#include "admin/admin_int.h"

#include "base/escape.h"

#include <string.h>

void
json_string(FILE *out, const char *text)
{
	char c[ESCAPE_JSON_MAX];
	size_t len, written;

	if (!text) {
		fputs("null", out);
		return;
	}
	putc('"', out);
	for (len = strlen(text); len; fwrite(c, 1, written, out)) {
		size_t used = escape_json_char(text, len, c, &written);

		text += used;
		len -= used;
	}
	putc('"', out);
}
