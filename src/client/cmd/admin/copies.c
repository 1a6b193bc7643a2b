/* SPDX-License-Identifier: Apache-2.0 */
/* What the operators' commands say of buckets with two copies, from the daemon's /status. */
#include "client/cmd/admin/copies.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/disk_text.h"

#include <stdio.h>

static void
print_disks(FILE *out, const json_t *disks)
{
	char name[DISK_NAME_BYTES];

	for (size_t i = 0; i < json_array_size(disks); i++)
		fprintf(out, "%s%s", i ? ", " : "", disk_name_in(json_array_get(disks, i), name));
}

const json_t *
copies_of(const json_t *status)
{
	return json_object_get(json_object_get(status, "store"), "copies");
}

bool
copies_are_whole(const json_t *copies)
{
	return json_at(copies, "exposed_objects") <= 0 && json_at(copies, "exposed_bytes") <= 0 &&
	       json_at(copies, "unreachable_slots") <= 0;
}

static void
print_healing(FILE *out, const json_t *copies)
{
	char done[32], total[32], rate[32];

	fprintf(out, ", being copied: %s of about %s",
		size_text((uint64_t)json_at(copies, "healed_bytes"), done),
		size_text((uint64_t)json_at(copies, "to_heal_bytes"), total));
	if (json_at(copies, "heal_rate") > 0)
		fprintf(out, ", %s/s, some %.0f s left",
			size_text((uint64_t)json_at(copies, "heal_rate"), rate),
			json_at(copies, "heal_seconds_left"));
}

static void
print_exposed(FILE *out, const json_t *copies)
{
	const json_t *away = json_object_get(copies, "away");
	char size[32];

	fprintf(out, "%.0f objects (%s) have one copy", json_at(copies, "exposed_objects"),
		size_text((uint64_t)json_at(copies, "exposed_bytes"), size));
	if (json_array_size(away)) {
		fprintf(out, ", away: disk ");
		print_disks(out, away);
	}
	if (json_is_true(json_object_get(copies, "healing")))
		print_healing(out, copies);
	if (*json_text_at(copies, "trouble", ""))
		fprintf(out, ", copying stands still: %s", json_text_at(copies, "trouble", ""));
}

void
copies_print(FILE *out, const json_t *copies)
{
	const json_t *needed = json_object_get(copies, "needed");
	char size[32];

	if (json_at(copies, "exposed_objects") > 0 || json_at(copies, "exposed_bytes") > 0)
		print_exposed(out, copies);
	else
		fprintf(out, "%.0f objects (%s) have two copies", json_at(copies, "objects"),
			size_text((uint64_t)json_at(copies, "bytes"), size));
	if (json_array_size(needed)) {
		fprintf(out, "; needed for what only it has: disk ");
		print_disks(out, needed);
	}
}
