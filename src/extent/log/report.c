/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a start, and the reasons for which it refuses. */
#include "extent/log/recover_int.h"

#include "extent/log/parts.h"
#include "store/damage.h"

#define LOG_MODULE "store"
#include "base/log.h"

#include <stdarg.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

void
report(struct recover_report *rep, const char *fmt, ...)
{
	char line[OWNER_TEXT + 600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (rep->say)
		rep->say(rep->cookie, line);
	else
		log_note("%s", line);
}

void
name_text(const struct replay *rp, char *text, size_t cap, const struct rec_view *v)
{
	struct owner o;
	const char *of_object;
	char name[OWNER_TEXT];

	owner_find(rp->vol->tree, v, &o);
	of_object = o.is_object && !key_is_object(v->key[0]) ? "a part of " : "";
	if (rp->rep->say || v->key[0] == KEY_BUCKET) {
		owner_text(&o, name, sizeof name);
		snprintf(text, cap, "%s%s", of_object, name);
	} else if (o.key[0] == KEY_CHUNK || o.key[0] == KEY_PART) {
		snprintf(text, cap, "a part of an object");
	} else {
		snprintf(text, cap, "%san object of bucket '%.*s'", o.is_part ? "a part of " : of_object,
			 (int)strnlen((const char *)o.key + 1, o.len - 1), (const char *)o.key + 1);
	}
}

bool
report_dropped(struct replay *rp, const struct rec_view *v, const char *line)
{
	struct damage what = { .kind = DAMAGE_DROPPED,
			       .is_removal = v->op != REC_PUT,
			       .disk = rp->rep->disk,
			       .version = v->version,
			       .size_bytes = v->op == REC_PUT ? v->size_bytes : 0 };
	struct owner o;

	owner_find(rp->vol->tree, v, &o);
	what.is_part = o.is_part;
	/* An object that loses a part remains, and is damaged. */
	if ((o.is_part || key_is_object(v->key[0])) && damage_add(rp->rep->damage, &what, o.key, o.len, line))
		return true;
	report(rp->rep, "%s: %s", rp->vol->disk.name, line);
	return false;
}

int
refuse_with(struct replay *rp, int r, enum advice_id id, const struct advice_values *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(rp->vol->disk.why, sizeof rp->vol->disk.why, fmt, ap);
	va_end(ap);
	advice_add(rp->vol->disk.why, sizeof rp->vol->disk.why, id, v);
	return r;
}

int
refuse_memory(struct replay *rp, int error, uint64_t record_nr)
{
	uint64_t given = rp->vol->index_bytes, need = given / 4 * 5;

	if (error != -ENOSPC)
		return disk_refuse(&rp->vol->disk, error, "the index cannot be filled: %s", strerror(-error));
	/* A start may use an eighth more than the limit, and this is full: each further record needs as
	 * much as each applied one. */
	if (rp->applied && record_nr > rp->applied)
		need = (uint64_t)((double)given * 1.2 * (double)record_nr / (double)rp->applied);
	if (need < given / 4 * 5)
		need = given / 4 * 5;
	return disk_refuse(
		&rp->vol->disk, -EINVAL,
		"the index does not fit into memory.index: it is %llu MiB, about %llu MiB are needed",
		(unsigned long long)(given >> 20), (unsigned long long)(need >> 20) + 1);
}
