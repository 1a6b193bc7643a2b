/* SPDX-License-Identifier: Apache-2.0 */
/* gantry doctor: how a finding is said. */
#include "client/cmd/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const finding_word[FOUND_NR] = { "ok", "note", "warning", "STOP" };

void
doctor_say(struct doctor *d, enum finding f, const char *topic, const char *fmt, ...)
{
	char text[768];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	d->nr[f]++;
	if (d->json)
		json_array_append_new(d->list, json_pack("{ss ss ss}", "finding", finding_word[f], "topic",
							 topic, "text", text));
	else
		printf("%-8s %-12s %s\n", finding_word[f], topic, text);
}
