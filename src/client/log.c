/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program is told of what the library does.  One line a call of its function; the lock is held meanwhile, for
 * reading, so that nothing is written after gantry_set_log() has returned.
 */
#include "client/client_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
gantry_set_log(struct gantry *g, gantry_log_fn *fn, void *cookie)
{
	pthread_rwlock_wrlock(&g->log_lock);
	g->log_cookie = cookie;
	g->log = fn;
	pthread_rwlock_unlock(&g->log_lock);
}

void
gantry_set_log_level(struct gantry *g, enum gantry_log_level most)
{
	g->log_most = (int)most;
}

bool
is_logged(const struct gantry *g, enum gantry_log_level level)
{
	return g->log && (int)level <= g->log_most;
}

void
client_log(struct gantry *g, enum gantry_log_level level, const char *format, ...)
{
	char text[512];
	va_list ap;

	if (!is_logged(g, level))
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	pthread_rwlock_rdlock(&g->log_lock);
	if (g->log)
		g->log(g->log_cookie, level, text);
	pthread_rwlock_unlock(&g->log_lock);
}

const char *
error_text(int error)
{
	return error == KERNEL_ENOTSUPP ? "not supported" : strerror(error);
}
