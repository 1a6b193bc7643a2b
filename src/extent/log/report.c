/* SPDX-License-Identifier: Apache-2.0 */
/* What a start says, and why it refuses. */
#include "extent/log/recover_int.h"

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

void
name_text(const struct recover_report *rep, char *text, size_t cap, const uint8_t *key, size_t len)
{
	bool has_bucket = len && key[0] != KEY_CHUNK && key[0] != KEY_PART;
	size_t n = has_bucket ? strnlen((const char *)key + 1, len - 1) : 0;

	if (rep->say || key[0] == KEY_BUCKET) {
		snprintf(text, cap, "'");
		key_text(text + 1, cap - 2, key, len);
		snprintf(text + strlen(text), 2, "'");
	} else if (has_bucket) {
		snprintf(text, cap, "an object of bucket '%.*s'", (int)n, (const char *)key + 1);
	} else {
		snprintf(text, cap, "a part of an object");
	}
}

void
report_dropped(struct replay *rp, const struct rec_view *v, const char *line)
{
	const struct damage what = { .kind = DAMAGE_DROPPED,
				     .is_removal = v->op != REC_PUT,
				     .disk = rp->rep->disk,
				     .version = v->version,
				     .size_bytes = v->op == REC_PUT ? v->size_bytes : 0 };

	if (!key_is_object(v->key[0]) || !damage_add(rp->rep->damage, &what, v->key, v->key_len, line))
		report(rp->rep, "%s: %s", rp->vol->disk.path, line);
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

int
refuse_with(struct replay *rp, int r, enum advice_id id, const struct advice_values *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(rp->err, rp->err_len, fmt, ap);
	va_end(ap);
	advice_add(rp->err, rp->err_len, id, v);
	return r;
}

int
refuse_memory(struct replay *rp, int error, uint64_t record_nr)
{
	uint64_t given = rp->vol->index_bytes, need = given / 4 * 5;

	if (error != -ENOSPC)
		return refuse(rp, error, "%s: the index cannot be filled: %s", rp->vol->disk.path,
			      strerror(-error));
	/* A start may use an eighth more, which is full: as much for each to come as for each that is there. */
	if (rp->applied && record_nr > rp->applied)
		need = (uint64_t)((double)given * 1.2 * (double)record_nr / (double)rp->applied);
	if (need < given / 4 * 5)
		need = given / 4 * 5;
	return refuse(
		rp, -EINVAL,
		"%s: the index does not fit into memory.index: it is %llu MiB, about %llu MiB are needed",
		rp->vol->disk.path, (unsigned long long)(given >> 20), (unsigned long long)(need >> 20) + 1);
}
