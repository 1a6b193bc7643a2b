/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the monitors: how full the pools are, and for which placement group the oldest operation
 * waits. For the watcher's thread. */
#include "rados/io/helpers.h"

#include "base/clock.h"
#include "rados/io/call.h"
#include "rados/io/rstore.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LATE_NS (2 * NS_PER_S)

/* Copies the value of a member, a string or number, from JSON in one line, as the monitors write it. */
static void
member(const char *json, const char *name, char *out, size_t len)
{
	const char *p = strstr(json, name);
	size_t n = 0;

	p = p ? p + strlen(name) : "";
	while (*p == ':' || *p == ' ' || *p == '"')
		p++;
	while (n + 1 < len && p[n] && !strchr("\",}] ", p[n]))
		n++;
	snprintf(out, len, "%.*s", (int)n, p);
}

/* Finds the placement group of an object, and its primary OSD. */
static int
ask_place(struct rstore *st, const char *pool, const char *object, char *out, size_t len)
{
	char cmd[512], *reply = NULL, *status = NULL, pg[32], osd[16];
	const char *cmds[] = { cmd };
	size_t reply_len = 0, status_len = 0;
	int e;

	snprintf(cmd, sizeof cmd,
		 "{\"prefix\":\"osd "
		 "map\",\"pool\":\"%s\",\"object\":\"%s\",\"nspace\":\"%s\",\"format\":\"json\"}",
		 pool, object, st->ns);
	e = rados_mon_command(st->client[0].cluster, cmds, 1, NULL, 0, &reply, &reply_len, &status,
			      &status_len);
	if (e == 0 && reply) {
		char text[2048];

		snprintf(text, sizeof text, "%.*s",
			 (int)(reply_len < sizeof text ? reply_len : sizeof text - 1), reply);
		member(text, "\"pgid\"", pg, sizeof pg);
		member(text, "\"acting_primary\"", osd, sizeof osd);
		if (strcmp(osd, "-1") == 0 || !osd[0])
			snprintf(out, len, "pg %s, which no OSD serves", pg);
		else
			snprintf(out, len, "pg %s on osd.%s", pg, osd);
	}
	rados_buffer_free(reply);
	rados_buffer_free(status);
	return e;
}

void
ask_cluster(void *cookie)
{
	struct rstore *st = cookie;
	const char *pool[POOL_NR] = { st->meta_pool, st->data_pool };
	struct rados_cluster_stat_t cs;

	for (int i = 0; i < POOL_NR; i++) {
		int64_t id = rados_pool_lookup(st->client[0].cluster, pool[i]);

		/* A pool that was made again with the same name has another id. */
		if (id == -ENOENT || (id >= 0 && id != rados_ioctx_get_id(st->client[0].io[i])))
			atomic_store(&st->stats[i].is_gone, true);
	}
	for (int i = 0; i < POOL_NR; i++) {
		struct pool_stats *ps = &st->stats[i];
		char text[sizeof ps->waits_for];
		struct waiting w;

		calls_waiting(st, (enum pool)i, LATE_NS, &w);
		if (!w.nr || ask_place(st, pool[i], w.name, text, sizeof text) != 0)
			continue;
		pthread_mutex_lock(&ps->lock);
		memcpy(ps->waits_for, text, sizeof text);
		ps->waits_ns = w.oldest_ns;
		pthread_mutex_unlock(&ps->lock);
	}
	if (rados_cluster_stat(st->client[0].cluster, &cs) < 0)
		return;
	atomic_store(&st->monitor_ns, clock_ns());
	for (int i = 0; i < POOL_NR; i++) {
		atomic_store(&st->stats[i].size_bytes, cs.kb * 1024);
		atomic_store(&st->stats[i].free_bytes, cs.kb_avail * 1024);
	}
}
