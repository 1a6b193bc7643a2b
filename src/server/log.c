/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs are told.  Lines of this folder are for the server that they are about; what rdma/ says below
 * is for every server of the process.
 */
#include "server/server_int.h"

#include "base/check.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct list servers = { &servers, &servers };

static void
tell(struct gantry_server *s, enum gantry_server_log level, const char *text)
{
	if (s->log && (int)level <= s->log_level)
		s->log(s->log_cookie, level, text);
}

/* Says whether a server before it takes its lines to the same place.  Locked. */
static bool
is_logged(const struct gantry_server *s, enum gantry_server_log level)
{
	for (const struct list *l = servers.next; l != &s->link; l = l->next) {
		const struct gantry_server *o = container_of(l, struct gantry_server, link);

		if (o->log == s->log && o->log_cookie == s->log_cookie && (int)level <= o->log_level)
			return true;
	}
	return false;
}

/* A line of rdma/, by any thread: one for each place that lines go to. */
static void
on_line(enum log_level level, const char *text)
{
	enum gantry_server_log to = level <= LOG_WARN   ? GANTRY_SERVER_LOG_ERROR
				    : level <= LOG_INFO ? GANTRY_SERVER_LOG_INFO
							: GANTRY_SERVER_LOG_DEBUG;

	pthread_rwlock_rdlock(&lock);
	list_for_each(l, &servers)
	{
		struct gantry_server *s = container_of(l, struct gantry_server, link);

		if (!is_logged(s, to))
			tell(s, to, text);
	}
	pthread_rwlock_unlock(&lock);
}

/* Locked. */
static void
follow_levels(void)
{
	static const enum log_level as[] = { LOG_WARN, LOG_INFO, LOG_DEBUG };
	int most = -1;

	list_for_each(l, &servers)
	{
		const struct gantry_server *s = container_of(l, struct gantry_server, link);
		int wanted = s->log_level; /* gcc does not read an index atomically */
		int level = s->log ? (int)as[wanted] : -1;

		most = level > most ? level : most;
	}
	log_set_level((enum log_level)most);
}

void
log_follow_levels(void)
{
	pthread_rwlock_rdlock(&lock);
	follow_levels();
	pthread_rwlock_unlock(&lock);
}

void
log_add(struct gantry_server *s)
{
	pthread_rwlock_wrlock(&lock);
	check(!list_linked(&s->link));
	if (list_empty(&servers))
		log_set_sink(on_line);
	list_push_tail(&servers, &s->link);
	follow_levels();
	pthread_rwlock_unlock(&lock);
}

void
log_del(struct gantry_server *s)
{
	pthread_rwlock_wrlock(&lock);
	check(list_linked(&s->link));
	list_del(&s->link);
	follow_levels();
	pthread_rwlock_unlock(&lock);
}

void
log_in_child(void)
{
	/* Who held the lock is not in the child. */
	pthread_rwlock_init(&lock, NULL);
	list_init(&servers);
}

void
say(struct gantry_server *s, enum gantry_server_log level, const char *format, ...)
{
	char text[640];
	va_list ap;

	if (!s->log || (int)level > s->log_level)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	tell(s, level, text);
}

bool
gid_is_mapped(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid, mapped, sizeof mapped) == 0;
}

const char *
gid_name(const uint8_t gid[16], char *text, size_t size)
{
	bool is_v4 = gid_is_mapped(gid);

	if (!inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? gid + 12 : gid, text, (socklen_t)size))
		snprintf(text, size, "?");
	return text;
}
