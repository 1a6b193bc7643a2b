/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of room.h. */
#include "client/cmd/admin/room.h"

#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"

#include <string.h>

#define HOUR 3600.0
#define DAY 86400.0

/* Of a UUID its first eight digits, by which the disks are named as well; of pools all. */
static const char *
id_text(const char *id, char out[80])
{
	snprintf(out, 80, "%.*s", strchr(id, '/') ? 79 : 8, id);
	return out;
}

void
host_print(FILE *out, const json_t *status)
{
	const char *id = json_text_at(json_object_get(status, "store"), "id", NULL);
	const char *host = json_text_at(status, "host", NULL);
	char text[80];

	if (host)
		fprintf(out, "%-10s %s%s%s\n", "host", host, id ? ", store " : "",
			id ? id_text(id, text) : "");
}

static const char *
span_text(double s, char out[32])
{
	if (s < 2 * HOUR)
		snprintf(out, 32, "%.0f min", s / 60);
	else if (s < 2 * DAY)
		snprintf(out, 32, "%.0f h", s / HOUR);
	else
		snprintf(out, 32, "%.0f days", s / DAY);
	return out;
}

void
room_print(FILE *out, const json_t *status)
{
	const json_t *c = json_object_get(status, "capacity");
	const char *outlook = json_text_at(c, "outlook", "");
	double size = json_at(c, "size_bytes"), used = json_at(c, "used_bytes"),
	       own = json_at(c, "reserved_bytes");
	char a[32], b[32], d[32], history[32], left[32];

	if (size <= 0)
		return;
	fprintf(out, "%-10s %s, %s used (%.0f %% reserved, %.0f %% data), %s free; ", "capacity",
		size_text((uint64_t)size, a), size_text((uint64_t)used, b), 100 * own / size,
		100 * (used - own) / size, size_text((uint64_t)json_at(c, "free_bytes"), d));
	span_text(json_at(c, "history_seconds"), history);
	if (strcmp(outlook, "fills") == 0)
		fprintf(out, "full in %s at the rate of the last %s\n",
			span_text(json_at(c, "full_in_seconds"), left), history);
	else if (strcmp(outlook, "steady") == 0)
		fprintf(out, "does not grow, by the last %s\n", history);
	else
		fprintf(out, "full in: not enough history yet (%s of 60 min)\n", history);
}
