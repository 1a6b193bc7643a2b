/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a program that must not wait for the reader of its log.  They wait in memory, LOG_QUEUE_BYTES at most; a
 * line that finds no room is dropped and counted, and a line says how many were when the reader is back.
 */
#include "base/log_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/outbox.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOG_QUEUE_BYTES (1u << 20)
/* What lines of lesser importance leave to warnings and errors. */
#define LOG_QUEUE_SPARE (LOG_QUEUE_BYTES / 4)
#define LOG_REPORT_NS NS_PER_S /* between two reports of dropped lines while they are being dropped */

static struct outbox box;
static _Atomic bool runs;
static uint8_t ring[LOG_QUEUE_BYTES];
static _Atomic uint64_t dropped, dropped_audit; /* since the start */
static _Atomic uint64_t reported, reported_audit, since_wall,
	since_ns; /* of those that no line has told of */

static void
report(void)
{
	uint64_t all = atomic_load(&dropped), audit = atomic_load(&dropped_audit),
		 nr = all - atomic_load(&reported), now = clock_ns();
	char text[256];

	if (!nr)
		return;
	if (outbox_waiting(&box) && now - atomic_load(&since_ns) < LOG_REPORT_NS)
		return;
	snprintf(text, sizeof text,
		 "%llu lines of the log were dropped: their reader did not take them, and %u KiB of lines "
		 "waited "
		 "(%llu of them were warnings, errors or of the access log)",
		 (unsigned long long)nr, LOG_QUEUE_BYTES / 1024,
		 (unsigned long long)(audit - atomic_load(&reported_audit)));
	log_deliver_now(&(struct log_about){ .level = LOG_WARN, .module = "log" }, text);
	atomic_store(&reported_audit, audit);
	atomic_store(&reported, all);
	atomic_store(&since_wall, 0);
}

static void
send_record(const void *data, size_t len)
{
	const char *p = data;

	log_send((enum log_dest)p[0], p + 1, len - 1);
	report();
}

static void
count_drop(const struct log_about *a)
{
	uint64_t none = 0;

	if (atomic_compare_exchange_strong(&since_wall, &none, clock_wall_ns()))
		atomic_store(&since_ns, clock_ns());
	if (a->level <= LOG_WARN || a->ev == LOG_EV_ACCESS)
		atomic_fetch_add(&dropped_audit, 1);
	atomic_fetch_add(&dropped, 1);
}

static void
enqueue(const struct log_about *a, enum log_dest to, const char *data, size_t len)
{
	char record[OUTBOX_RECORD_MAX];

	if (len > sizeof record - 1)
		len = sizeof record - 1;
	record[0] = (char)to;
	memcpy(record + 1, data, len);
	if (!outbox_put(&box, record, len + 1, a->level <= LOG_WARN ? 0 : LOG_QUEUE_SPARE))
		count_drop(a);
}

/* The lines before a failed check are worth a second. */
static void
flush_at_failure(void)
{
	log_flush(NS_PER_S);
}

int
log_queue_start(void)
{
	int r = outbox_start(&box, "log", ring, sizeof ring, send_record);

	if (r == 0) {
		atomic_store(&runs, true);
		log_enqueue_ = enqueue;
		check_on_failure = flush_at_failure;
	}
	return r;
}

void
log_flush(uint64_t max_ns)
{
	if (atomic_load(&runs))
		outbox_flush(&box, max_ns);
}

void
log_queue_stop(uint64_t max_ns)
{
	if (!atomic_load(&runs) || !outbox_stop(&box, max_ns))
		return;
	atomic_store(&runs, false);
	log_enqueue_ = NULL;
}

void
log_say(const char *fmt, ...)
{
	char text[LINE_BYTES];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (n >= (int)sizeof text)
		n = (int)sizeof text - 1;
	log_emit(&(struct log_about){ .level = LOG_NOTE }, LOG_TO_STDOUT, text, (size_t)n);
}

void
log_get_dropped(struct log_dropped *ret)
{
	ret->lines = atomic_load(&dropped);
	ret->waiting = ret->lines - atomic_load(&reported);
	ret->audit_waiting = atomic_load(&dropped_audit) - atomic_load(&reported_audit);
	ret->since_wall_ns = atomic_load(&since_wall);
}
