/* SPDX-License-Identifier: Apache-2.0 */
/* What a start says, and why it refuses. */
#include "extent/log/recover_int.h"

#define LOG_MODULE "store"
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void
report(struct recover_report *rep, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (rep->say)
		rep->say(rep->cookie, line);
	else
		log_note("%s", line);
}

int
refuse(struct replay *rp, int r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(rp->err, rp->err_len, fmt, ap);
	va_end(ap);
	return r;
}
