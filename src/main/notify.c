/* SPDX-License-Identifier: Apache-2.0 */
/* The outbox of messages to the service manager. */
#include "main/notify.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/outbox.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#define NOTIFY_QUEUE_BYTES 16384
#define NOTIFY_BYTES 2048 /* a message; the addresses of a ready line are the longest */

static const char watchdog[] = "WATCHDOG=1";

static struct outbox box;
static uint8_t ring[NOTIFY_QUEUE_BYTES];
static bool runs;
static _Atomic bool watchdog_waits;

static void
send_message(const void *data, size_t len)
{
	if (strcmp(data, watchdog) == 0)
		atomic_store(&watchdog_waits, false);
	sd_notify(0, data);
}

void
notify_start(void)
{
	int r;

	if (!getenv("NOTIFY_SOCKET"))
		return;
	r = outbox_start(&box, "notify", ring, sizeof ring, send_message);
	if (r < 0)
		log_warn("the service manager hears nothing of this process: no thread: %s", strerror(-r));
	runs = r == 0;
}

void
notify_send(const char *fmt, ...)
{
	char text[NOTIFY_BYTES];
	va_list ap;

	if (!runs)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (!outbox_put(&box, text, strlen(text) + 1, 0))
		log_limited(LOG_WARN, "the service manager does not read: a message to it was dropped: %s",
			    text);
}

void
notify_watchdog(void)
{
	if (runs && !atomic_exchange(&watchdog_waits, true))
		notify_send("%s", watchdog);
}

void
notify_stop(void)
{
	if (runs && outbox_stop(&box, NS_PER_S))
		runs = false;
}
