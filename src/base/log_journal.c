/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a program's log, and the journal: under systemd (stderr is the journal's stream) lines go
 * through sd_journal_send with GANTRY_MODULE.
 */
#include "base/log_int.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

static const int level_syslog[LOG_LEVEL_NR] = { 3, 4, 5, 6, 7 };

struct pack {
	char *out;
	size_t cap, len;
};

/* Appends one field, its length in front; a field that does not fit is left out. */
static void __attribute__((format(printf, 2, 3))) add_field(struct pack *p, const char *fmt, ...)
{
	uint32_t n;
	va_list ap;
	int r;

	if (p->cap - p->len <= sizeof n)
		return;
	va_start(ap, fmt);
	r = vsnprintf(p->out + p->len + sizeof n, p->cap - p->len - sizeof n, fmt, ap);
	va_end(ap);
	if (r < 0 || (size_t)r >= p->cap - p->len - sizeof n)
		return;
	n = (uint32_t)r;
	memcpy(p->out + p->len, &n, sizeof n);
	p->len += sizeof n + n;
}

/* "GANTRY_ACCESS_KEY=..." */
static void
add_named(struct pack *p, const struct log_field *f)
{
	size_t at = p->len + sizeof(uint32_t);

	add_field(p, "GANTRY_%s=%s", f->name, f->value);
	for (; at < p->len && p->out[at] != '='; at++) {
		if (p->out[at] >= 'a' && p->out[at] <= 'z')
			p->out[at] = (char)(p->out[at] - 32);
	}
}

/* Fields that say what a line is about, in addition to its text: journalctl GANTRY_EVENT=disk_failed. */
static size_t
pack_line(const struct log_about *a, const char *text, char *out, size_t cap)
{
	struct pack p = { out, cap, 0 };

	add_field(&p, "MESSAGE=%s%s%s%s", a->request ? "id=" : "", a->request ? a->request : "",
		  a->request ? " " : "", text);
	add_field(&p, "PRIORITY=%d", level_syslog[a->level]);
	add_field(&p, "GANTRY_MODULE=%s", a->module);
	if (a->ev != LOG_EV_NONE) {
		add_field(&p, "MESSAGE_ID=%s", log_events[a->ev].id);
		add_field(&p, "GANTRY_EVENT=%s", log_events[a->ev].name);
	}
	if (a->request)
		add_field(&p, "GANTRY_REQUEST=%s", a->request);
	for (int i = 0; i < a->field_nr; i++)
		add_named(&p, &a->fields[i]);
	return p.len;
}

static void
send_packed(const char *packed, size_t len)
{
	struct iovec iov[6 + LOG_FIELDS_MAX];
	size_t at = 0;
	int nr = 0;

	while (at < len && nr < (int)(sizeof iov / sizeof *iov)) {
		uint32_t n;

		memcpy(&n, packed + at, sizeof n);
		iov[nr++] = (struct iovec){ (void *)(uintptr_t)(packed + at + sizeof n), n };
		at += sizeof n + n;
	}
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
	log_journal_pack_ = pack_line;
	log_journal_send_ = send_packed;
	log_set_level(level);
}
