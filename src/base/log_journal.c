/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a program's log, and the journal: under systemd (stderr is the journal's stream) lines go
 * through sd_journal_send with GANTRY_MODULE.
 */
#include "base/log_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

static const int level_syslog[LOG_LEVEL_NR] = { 3, 4, 5, 6, 7 };

/* "GANTRY_ACCESS_KEY=..." */
static void
journal_field(char *out, size_t cap, const struct log_field *f)
{
	size_t n = (size_t)snprintf(out, cap, "GANTRY_%s=%s", f->name, f->value);

	for (size_t i = 0; i < n && i < cap && out[i] != '='; i++) {
		if (out[i] >= 'a' && out[i] <= 'z')
			out[i] = (char)(out[i] - 32);
	}
}

/* Fields that say what a line is about, beside the line: journalctl GANTRY_EVENT=disk_failed. */
static void
to_journal(const struct log_about *a, const char *text)
{
	char field[6 + LOG_FIELDS_MAX][LINE_BYTES + 32];
	struct iovec iov[6 + LOG_FIELDS_MAX];
	int nr = 0;

	snprintf(field[nr++], sizeof field[0], "MESSAGE=%s%s%s%s", a->request ? "id=" : "",
		 a->request ? a->request : "", a->request ? " " : "", text);
	snprintf(field[nr++], sizeof field[0], "PRIORITY=%d", level_syslog[a->level]);
	snprintf(field[nr++], sizeof field[0], "GANTRY_MODULE=%s", a->module);
	if (a->ev != LOG_EV_NONE) {
		snprintf(field[nr++], sizeof field[0], "MESSAGE_ID=%s", log_events[a->ev].id);
		snprintf(field[nr++], sizeof field[0], "GANTRY_EVENT=%s", log_events[a->ev].name);
	}
	if (a->request)
		snprintf(field[nr++], sizeof field[0], "GANTRY_REQUEST=%s", a->request);
	for (int i = 0; i < a->field_nr; i++)
		journal_field(field[nr++], sizeof field[0], &a->fields[i]);
	for (int i = 0; i < nr; i++)
		iov[i] = (struct iovec){ field[i], strlen(field[i]) };
	sd_journal_sendv(iov, nr);
}

/* systemd names the stream that stderr is connected to; equal device and inode mean nobody redirected it
 * since. */
static bool
stderr_is_journal(void)
{
	const char *s = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return s && sscanf(s, "%llu:%llu", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
	       st.st_dev == dev && st.st_ino == ino;
}

void
log_init(enum log_format format, enum log_level level)
{
	if (format == LOG_AUTO)
		format = stderr_is_journal() ? LOG_JOURNAL : LOG_PLAIN;
	log_format_ = format;
	log_journal_ = to_journal;
	log_set_level(level);
}
