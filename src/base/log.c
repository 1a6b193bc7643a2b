/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formatting and delivery of log lines.  One write(2) per line, so lines of several threads never mix; log_queue.c
 * has a thread do it.  A program with a journal starts the log with log_init() (log_journal.c); a library sets a
 * function instead, and needs nothing of systemd.
 */
#include "base/log_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/escape.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Atomic int current_level = LOG_INFO;
/* One more than the level, so that zero is "none of its own". */
static _Atomic int module_level[LOG_MODULES_NR];
_Atomic int log_max_ = LOG_INFO;
enum log_format log_format_ = LOG_PLAIN;
log_journal_pack_fn *log_journal_pack_;
void (*log_journal_send_)(const char *packed, size_t len);
log_enqueue_fn *log_enqueue_;
static log_sink_fn *sink;
static _Atomic uint64_t lines[LOG_LEVEL_NR], lines_held;

const char *const log_level_name[LOG_LEVEL_NR] = { "error", "warning", "notice", "info", "debug" };

void
log_set_sink(log_sink_fn *fn)
{
	sink = fn;
}

static void
find_max(void)
{
	int max = atomic_load(&current_level);

	for (int i = 0; i < LOG_MODULES_NR; i++) {
		int own = atomic_load(&module_level[i]) - 1;

		if (own > max)
			max = own;
	}
	atomic_store(&log_max_, max);
}

void
log_set_level(enum log_level level)
{
	atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
	find_max();
}

int
log_module_find(const char *name)
{
	for (int i = 0; i < LOG_MODULES_NR; i++) {
		if (strcmp(log_module_name[i], name) == 0)
			return i;
	}
	return -ENOENT;
}

void
log_set_module_level(int module, int level)
{
	atomic_store(&module_level[module], level + 1);
	find_max();
}

int
log_get_module_level(int module)
{
	return atomic_load(&module_level[module]) - 1;
}

bool
log_enabled(enum log_level level, const char *module)
{
	int i = log_module_find(module), own = i < 0 ? LOG_LEVEL_COMMON : log_get_module_level(i);

	return (int)level <= (own == LOG_LEVEL_COMMON ? (int)log_get_level() : own);
}

enum log_level
log_get_level(void)
{
	return (enum log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

int
log_level_parse(const char *text, enum log_level *ret_level)
{
	for (int i = 0; i < LOG_LEVEL_NR; i++) {
		if (strcmp(text, log_level_name[i]) == 0) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Puts the members of a JSON line that not every line has into out. */
static void
json_members(char *out, size_t cap, const struct log_about *a)
{
	size_t n = 0;

	out[0] = 0;
	if (a->ev != LOG_EV_NONE)
		n += (size_t)snprintf(out, cap, "\"event\":\"%s\",", log_events[a->ev].name);
	if (a->request)
		n += (size_t)snprintf(out + n, cap - n, "\"request\":\"%.40s\",", a->request);
	for (int i = 0; i < a->field_nr && n < cap; i++)
		n += (size_t)snprintf(out + n, cap - n, "\"%s\":\"%s\",", a->fields[i].name,
				      a->fields[i].value);
	/* Never half of one. */
	if (n >= cap)
		out[0] = 0;
}

static size_t
format_line(char *out, size_t cap, const struct log_about *a, const char *text)
{
	uint64_t now = clock_wall_ns();
	time_t s = (time_t)(now / NS_PER_S);
	struct tm tm;
	char when[48], esc[LINE_BYTES + LINE_BYTES / 2], more[LINE_BYTES];
	int n;

	gmtime_r(&s, &tm);
	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
	if (log_format_ == LOG_JSON) {
		escape_json(esc, sizeof esc, text, strlen(text), NULL);
		json_members(more, sizeof more, a);
		n = snprintf(
			out, cap,
			"{\"time\":\"%s.%06uZ\",\"level\":\"%s\",\"module\":\"%s\",%s\"message\":\"%s\"}\n",
			when, (unsigned)(now % NS_PER_S / 1000), log_level_name[a->level], a->module, more,
			esc);
	} else {
		n = snprintf(out, cap, "%s.%06uZ %s %s: %s%s%s%s\n", when, (unsigned)(now % NS_PER_S / 1000),
			     log_level_name[a->level], a->module, a->request ? "id=" : "",
			     a->request ? a->request : "", a->request ? " " : "", text);
	}
	if (n >= (int)cap) {
		n = (int)cap - 1;
		out[n - 1] = '\n';
	}
	return (size_t)n;
}

/* Length of the UTF-8 sequence at p, 0 if it is none that may appear in a log line. */
static int
utf8_len(const unsigned char *p)
{
	int n = p[0] < 0x80                   ? 1
		: p[0] >= 0xc2 && p[0] < 0xe0 ? 2
		: p[0] >= 0xe0 && p[0] < 0xf0 ? 3
		: p[0] >= 0xf0 && p[0] < 0xf5 ? 4
					      : 0;

	if (n == 1)
		return p[0] >= 0x20 && p[0] != 0x7f;
	for (int i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	/* overlong forms, surrogates, beyond U+10FFFF; C1 control characters */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90) || (p[0] == 0xc2 && p[1] < 0xa0))
		return 0;
	return n;
}

/* Makes a line of text: what a client sent must not be able to begin another line, nor make JSON that no parser can
 * read. */
static void
make_printable(char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p;) {
		int n = utf8_len(p);

		if (!n)
			*p = '?';
		p += n ? n : 1;
	}
}

/* A descriptor that somebody else made non-blocking is waited for; one whose reader has gone is not. */
static void
write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd p = { fd, POLLOUT, 0 };

			poll(&p, 1, -1);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		data += n;
		len -= (size_t)n;
	}
}

void
log_send(enum log_dest to, const char *data, size_t len)
{
	if (to == LOG_TO_JOURNAL)
		log_journal_send_(data, len);
	else
		write_all(to == LOG_TO_STDOUT ? STDOUT_FILENO : STDERR_FILENO, data, len);
}

void
log_emit(const struct log_about *a, enum log_dest to, const char *data, size_t len)
{
	if (log_enqueue_)
		log_enqueue_(a, to, data, len);
	else
		log_send(to, data, len);
}

/* Makes the bytes of a line, whose destination is the value. */
static enum log_dest
make_line(const struct log_about *a, const char *text, char *line, size_t cap, size_t *ret_len)
{
	if (log_format_ == LOG_JOURNAL && log_journal_pack_) {
		*ret_len = log_journal_pack_(a, text, line, cap);
		return LOG_TO_JOURNAL;
	}
	*ret_len = format_line(line, cap, a, text);
	return LOG_TO_STDERR;
}

void
log_deliver_now(const struct log_about *a, const char *text)
{
	char line[LINE_ROOM];
	size_t len;
	enum log_dest to = make_line(a, text, line, sizeof line, &len);

	atomic_fetch_add_explicit(&lines[a->level], 1, memory_order_relaxed);
	log_send(to, line, len);
}

static void
deliver(const struct log_about *a, char *text)
{
	char line[LINE_ROOM];
	enum log_dest to;
	size_t len;

	atomic_fetch_add_explicit(&lines[a->level], 1, memory_order_relaxed);
	make_printable(text);
	if (sink) {
		sink(a->level, text);
		return;
	}
	to = make_line(a, text, line, sizeof line, &len);
	log_emit(a, to, line, len);
}

void
log_write(enum log_level level, const char *module, const char *fmt, ...)
{
	char text[LINE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	deliver(&(struct log_about){ .level = level, .module = module }, text);
}

void
log_write_event(enum log_event ev, enum log_level level, const char *module, const char *request,
		const char *fmt, ...)
{
	char text[LINE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	deliver(&(struct log_about){ .ev = ev, .level = level, .module = module, .request = request }, text);
}

void
log_write_fields(enum log_event ev, enum log_level level, const char *module, const char *request,
		 const struct log_field *fields, int field_nr, const char *fmt, ...)
{
	struct log_about a = { ev, level, module, request, fields, field_nr };
	char text[LINE_BYTES];
	size_t n = 0;
	va_list ap;

	check(field_nr <= LOG_FIELDS_MAX);
	for (int i = 0; i < field_nr && n < sizeof text && log_format_ != LOG_JSON; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s=%s ", fields[i].name, fields[i].value);
	va_start(ap, fmt);
	if (n < sizeof text)
		vsnprintf(text + n, sizeof text - n, fmt, ap);
	va_end(ap);
	deliver(&a, text);
}

bool
log_allowed(struct log_site *site, uint32_t *ret_held)
{
	uint64_t now_s = clock_ns() / NS_PER_S;
	uint64_t window = atomic_load(&site->window_s);

	*ret_held = 0;
	if (window != now_s && atomic_compare_exchange_strong(&site->window_s, &window, now_s)) {
		atomic_store(&site->in_window, 0);
		*ret_held = atomic_exchange(&site->held, 0);
	}
	if (atomic_fetch_add(&site->in_window, 1) < 10)
		return true;
	atomic_fetch_add(&site->held, 1);
	atomic_fetch_add_explicit(&lines_held, 1, memory_order_relaxed);
	return false;
}

uint64_t
log_lines(enum log_level level)
{
	return atomic_load(&lines[level]);
}

uint64_t
log_lines_held(void)
{
	return atomic_load(&lines_held);
}
