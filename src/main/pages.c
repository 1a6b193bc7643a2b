/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the admin thread asks about the rest of the daemon: reasons, metrics, JSON.  Everything here runs on
 * the admin thread, waits for no core (cores_dump() at most 100 ms) and may be called in every phase: what is
 * not there yet is left out.
 */
#include "main/daemon.h"

#include "admin/admin.h"
#include "auth/auth.h"
#include "base/clock.h"
#include "core/core.h"
#include "rdma/rdma.h"
#include "store/store.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct daemon *
daemon_of(void *cookie)
{
	return cookie;
}

static int
unit_nr(const struct daemon *d)
{
	const struct store *st = atomic_load(&d->store);

	return st ? store_unit_nr(st) : 0;
}

static int
rail_nr(const struct daemon *d)
{
	return d->rdma ? rdma_rail_nr(d->rdma) : 0;
}

static int
core_nr(void *cookie)
{
	struct cores *cores = atomic_load(&daemon_of(cookie)->cores);

	return cores ? cores_nr(cores) : 0;
}

static void
core(void *cookie, int i, struct admin_core *ret_core)
{
	struct core_info info;

	cores_get_info(atomic_load(&daemon_of(cookie)->cores), i, &info);
	ret_core->asleep = info.asleep;
	ret_core->turned_ago_ns = info.turned_ago_ns;
}

/* ---- metrics ---- */

static void
rail_metrics(struct daemon *d, int i, struct stats_out *out)
{
	struct rdma_rail *rail = rdma_rail(d->rdma, i);
	const struct rdma_rail_stats *st = rdma_rail_stats(rail);
	struct rdma_rail_info info;
	uint64_t hits = 0;
	char name[80];

	rdma_rail_get_info(rail, &info);
	snprintf(name, sizeof name, "%s:%d", info.device, info.port);
	stats_emit(out, M_RAIL_UP, info.state == RAIL_UP, name, NULL);
	stats_emit(out, M_RAIL_MISSED, info.state != RAIL_UP && !info.spare, name, NULL);
	for (int s = 0; s < WCS_NR; s++)
		stats_emit(out, M_RDMA_COMPLETIONS, atomic_load(&st->status[s]), name, rdma_status_name[s],
			   NULL);
	stats_emit(out, M_RDMA_BYTES, atomic_load(&st->read_bytes), name, "read", NULL);
	stats_emit(out, M_RDMA_BYTES, atomic_load(&st->written_bytes), name, "write", NULL);
	stats_emit(out, M_RDMA_OPERATIONS, atomic_load(&st->read_ops), name, "read", NULL);
	stats_emit(out, M_RDMA_OPERATIONS, atomic_load(&st->write_ops), name, "write", NULL);
	stats_emit(out, M_DCI, (uint64_t)atomic_load(&st->eps_free), name, "free", NULL);
	stats_emit(out, M_DCI, (uint64_t)atomic_load(&st->eps_leased), name, "leased", NULL);
	stats_emit(out, M_DCI, (uint64_t)atomic_load(&st->eps_recovering), name, "recovering", NULL);
	stats_emit(out, M_DCI, (uint64_t)atomic_load(&st->eps_unusable), name, "unusable", NULL);
	stats_emit(out, M_DCI_RESETS, atomic_load(&st->ep_resets), name, NULL);
	stats_emit(out, M_DCI_RECREATED, atomic_load(&st->ep_recreated), name, NULL);
	stats_emit(out, M_RDMA_REOPENS, atomic_load(&st->reopens), name, NULL);
	for (int p = 0; p < CONF_PATHS_MAX; p++)
		hits += atomic_load(&st->ah_hits[p]);
	stats_emit(out, M_AH_LOOKUPS, hits, name, "hit", NULL);
	stats_emit(out, M_AH_LOOKUPS, atomic_load(&st->ah_misses), name, "miss", NULL);
	stats_emit(out, M_AH_LOOKUPS, atomic_load(&st->ah_failed), name, "failed", NULL);
}

/* Which numbers of a unit are metrics; the others are on its page alone. */
static const struct {
	const char *name;
	enum stats_metric metric;
	const char *kind; /* its label beside the disk; NULL: none */
} number_metrics[] = {
	{ "log_bytes", M_STORE_LOG_SIZE },
	{ "log_used_bytes", M_STORE_LOG_USED },
	{ "index_bytes", M_STORE_INDEX },
	{ "index_max_bytes", M_STORE_INDEX_MAX },
	{ "objects", M_STORE_OBJECTS },
	{ "commits", M_STORE_COMMITS },
	{ "records", M_STORE_RECORDS },
	{ "snapshots", M_STORE_SNAPSHOTS },
	{ "crc_errors", M_STORE_ERRORS, "crc" },
	{ "segments_to_rewrite", M_STORE_REWRITE },
	{ "metadata_damaged", M_STORE_METADATA },
	{ "packed_objects", M_STORE_PACKED },
	{ "packed_bytes_saved", M_STORE_PACKED_SAVED },
	{ "packed_moves", M_STORE_PACKED_MOVES },
	{ "move_bytes_done", M_STORE_MOVED },
	{ "move_bytes_total", M_STORE_TO_MOVE },
	{ "operations_late", M_STORE_LATE },
	{ "oldest_wait_us", M_STORE_OLDEST },
	{ "unwritten_bytes", M_STORE_UNWRITTEN },
	{ "longest_call_us", M_STORE_LONGEST },
	{ "epoch_age_us", M_STORE_EPOCH_AGE },
	{ "gateways", M_STORE_GATEWAYS },
	{ "gateways_cleaned_up", M_STORE_CLEANED },
};

/* As metrics name a disk: by number, as a path is no bounded label; a pool by its name. */
static void
unit_label(struct daemon *d, int i, const struct store_unit_info *info, char out[64])
{
	if (strcmp(store_name(atomic_load(&d->store)), "rados") == 0)
		snprintf(out, 64, "%s", info->name);
	else
		snprintf(out, 64, "%d", i);
}

static void
number_metric(const struct store_unit_number *n, const char *disk, struct stats_out *out)
{
	size_t len = strlen(n->name);
	bool is_time = len > 3 && strcmp(n->name + len - 3, "_us") == 0;

	for (unsigned i = 0; i < sizeof number_metrics / sizeof *number_metrics; i++) {
		const char *const labels[] = { disk, number_metrics[i].kind, NULL };

		if (strcmp(number_metrics[i].name, n->name) != 0)
			continue;
		/* Metrics are in seconds. */
		if (is_time)
			stats_emit_values_ns(out, number_metrics[i].metric, n->value * NS_PER_US, labels);
		else
			stats_emit_values(out, number_metrics[i].metric, n->value, labels);
	}
}

static void
disk_metrics(struct daemon *d, int i, struct stats_out *out)
{
	struct store_unit_info info;
	char disk[64];

	store_unit_info(atomic_load(&d->store), i, &info);
	unit_label(d, i, &info, disk);
	if (info.state == UNIT_DRAINED)
		return;
	stats_emit(out, M_STORE_UP, store_unit_serves(info.state), disk, NULL);
	/* Of what is not there nothing else is known: zeros would be taken for a disk that is full. */
	if (info.state == UNIT_MISSING)
		return;
	stats_emit(out, M_STORE_SIZE, info.size_bytes, disk, NULL);
	stats_emit(out, M_STORE_FREE, info.free_bytes, disk, NULL);
	for (int n = 0; n < info.number_nr; n++)
		number_metric(&info.number[n], disk, out);
	stats_emit(out, M_STORE_FLUSHES, info.flushes, disk, NULL);
	stats_emit(out, M_STORE_IO_BYTES, info.read_bytes, disk, "read", NULL);
	stats_emit(out, M_STORE_IO_BYTES, info.written_bytes, disk, "write", NULL);
	stats_emit(out, M_STORE_OPERATIONS, info.read_ops, disk, "read", NULL);
	stats_emit(out, M_STORE_OPERATIONS, info.write_ops, disk, "write", NULL);
	for (int io = 0; io < DISK_IO_NR; io++)
		stats_emit_histogram(out, M_STORE_LATENCY, info.latency[io].buckets, info.latency[io].sum_ns,
				     disk,
				     io == DISK_READ    ? "read"
				     : io == DISK_WRITE ? "write"
							: "flush");
	stats_emit(out, M_STORE_ERRORS, info.errors, disk, "io", NULL);
}

/* As pages and metrics call it. */
static const char *const unit_state_text[UNIT_STATE_NR] = { [UNIT_OK] = "serving",
							    [UNIT_FAILED] = "failed",
							    [UNIT_MISSING] = "missing",
							    [UNIT_MOVING] = "moving",
							    [UNIT_DRAINED] = "drained" };

static void
store_metrics(struct daemon *d, struct stats_out *out)
{
	uint64_t nr[UNIT_STATE_NR] = { 0 };

	for (int i = 0; i < unit_nr(d); i++) {
		struct store_unit_info info;

		store_unit_info(atomic_load(&d->store), i, &info);
		nr[info.state]++;
		disk_metrics(d, i, out);
	}
	for (int s = 0; s < UNIT_STATE_NR; s++)
		stats_emit(out, M_STORE_DISKS, nr[s], unit_state_text[s], NULL);
}

static void
scrub_metrics(struct daemon *d, struct stats_out *out)
{
	struct cores *cores = atomic_load(&d->cores);
	struct scrub_info i;

	if (!cores)
		return;
	cores_get_scrub(cores, &i);
	stats_emit(out, M_SCRUB_RUNNING, i.state != SCRUB_IDLE, NULL);
	stats_emit(out, M_SCRUB_WALKS, i.walks, NULL);
	stats_emit(out, M_SCRUB_OBJECTS, i.objects, NULL);
	stats_emit(out, M_SCRUB_BYTES, i.bytes, NULL);
	stats_emit(out, M_SCRUB_ERRORS, i.damaged, "crc", NULL);
	stats_emit(out, M_SCRUB_ERRORS, i.unreadable, "io", NULL);
	stats_emit(out, M_SCRUB_DAMAGED, i.known_bad, NULL);
	stats_emit_ns(out, M_SCRUB_FINISHED, i.finished_ns, NULL);
}

/* ---- auth.replay ---- */

static const char *const replay_text[] = {
	[REPLAY_OFF] = "off", [REPLAY_PEER] = "peer", [REPLAY_ONCE] = "once", [REPLAY_REJECT] = "reject"
};

static void
replay_metrics(struct daemon *d, struct stats_out *out)
{
	struct auth_replay_info i = { 0 };

	if (d->replay)
		auth_replay_get_info(d->replay, &i);
	stats_emit(out, M_REPLAYS, i.refused, NULL);
	stats_emit(out, M_REPLAY_FORGOTTEN, i.forgotten, NULL);
}

static void
replay_state(struct daemon *d, FILE *out)
{
	const struct conf *c = daemon_conf(d);
	uint64_t window_s = c->auth.clock_skew_ns / NS_PER_S;
	struct auth_replay_info i;

	fprintf(out, "{\"mode\":\"%s\"", replay_text[c->auth.replay]);
	daemon_conf_put(c);
	if (d->replay) {
		auth_replay_get_info(d->replay, &i);
		fprintf(out,
			",\"signatures\":%llu,\"window_seconds\":%llu,\"requests_per_second\":%llu,"
			"\"forgotten\":%llu,\"refused\":%llu,\"refused_by_key\":{",
			(unsigned long long)i.entries, (unsigned long long)window_s,
			(unsigned long long)(AUTH_REPLAY_USABLE(i.entries) / window_s),
			(unsigned long long)i.forgotten, (unsigned long long)i.refused);
		for (int k = 0; k < i.key_nr; k++) {
			fputs(k ? "," : "", out);
			json_string(out, i.by_key[k].access_key);
			fprintf(out, ":%llu", (unsigned long long)i.by_key[k].refused);
		}
		putc('}', out);
	}
	putc('}', out);
}

struct totals {
	int requests, connections;
	int bufs_total[2], bufs_avail[2];
	int http_total, http_avail;
	int bufs_high[3];
	bool on_threads;
};

static void
add_core(struct totals *t, const struct core_info *info)
{
	t->on_threads |= info->on_threads;
	t->requests += info->requests;
	t->connections += info->connections;
	for (int c = 0; c < 2; c++) {
		t->bufs_total[c] += info->bufs_total[c];
		t->bufs_avail[c] += info->bufs_avail[c];
	}
	t->http_total += info->http_bufs_total;
	t->http_avail += info->http_bufs_avail;
	for (int c = 0; c < 2; c++)
		t->bufs_high[c] += info->bufs_total[c] - info->bufs_low[c];
	t->bufs_high[2] += info->http_bufs_total - info->http_bufs_low;
}

static void
buffer_metric(struct stats_out *out, const char *cls, int total, int avail)
{
	stats_emit(out, M_BUFFERS, (uint64_t)avail, cls, "free", NULL);
	stats_emit(out, M_BUFFERS, (uint64_t)(total - avail), cls, "used", NULL);
}

static void
core_metrics(struct daemon *d, struct stats_out *out)
{
	static const char *const classes[] = { "small", "large", "http" };
	struct totals t = { 0 };

	for (int i = 0; i < core_nr(d); i++) {
		struct core_info info;
		char name[16];

		cores_get_info(atomic_load(&d->cores), i, &info);
		snprintf(name, sizeof name, "%d", i);
		stats_emit(out, M_REQUESTS_IN_FLIGHT, (uint64_t)info.requests, name, NULL);
		stats_emit(out, M_REQUESTS_HIGH, (uint64_t)info.requests_high, name, NULL);
		stats_emit(out, M_QUEUED, (uint64_t)info.queued, name, NULL);
		stats_emit(out, M_QUEUED_HIGH, (uint64_t)info.queued_high, name, NULL);
		stats_emit(out, M_CONNECTIONS, (uint64_t)info.connections, name, NULL);
		stats_emit_ns(out, M_CORE_TURNED, info.asleep ? 0 : info.turned_ago_ns, name, NULL);
		add_core(&t, &info);
	}
	if (!core_nr(d))
		return;
	stats_emit(out, M_IO_BACKEND, 1, t.on_threads ? "threads" : "io_uring", NULL);
	buffer_metric(out, "small", t.bufs_total[0], t.bufs_avail[0]);
	buffer_metric(out, "large", t.bufs_total[1], t.bufs_avail[1]);
	buffer_metric(out, "http", t.http_total, t.http_avail);
	for (int i = 0; i < 3; i++)
		stats_emit(out, M_BUFFERS_HIGH, (uint64_t)t.bufs_high[i], classes[i], NULL);
}

/* The number of quotas that are metrics; each has at most nine. */
#define QUOTA_METRICS_MAX 1000

static void
quota_metric(const struct store_quota_info *q, const char *resource, uint64_t used, uint64_t max,
	     struct stats_out *out)
{
	const char *kind = q->is_pattern ? "grant" : "bucket";

	if (max == STORE_UNBOUNDED)
		return;
	stats_emit(out, M_QUOTA_USED, used, kind, q->name, resource, NULL);
	stats_emit(out, M_QUOTA_MAX, max, kind, q->name, resource, NULL);
}

static void
quota_metrics(struct daemon *d, struct stats_out *out)
{
	struct store *st = atomic_load(&d->store);
	struct store_quota_info *list = NULL;
	int nr = st ? store_list_quotas(st, &list) : 0;

	for (int i = 0; i < nr && i < QUOTA_METRICS_MAX; i++) {
		const struct store_quota_info *q = &list[i];

		quota_metric(q, "objects", q->used.objects, q->max.objects, out);
		quota_metric(q, "bytes", q->used.bytes, q->max.bytes, out);
		quota_metric(q, "uploads", q->used.uploads, q->max.uploads, out);
		quota_metric(q, "buckets", q->buckets, q->max_buckets, out);
		stats_emit(out, M_QUOTA_REFUSED, q->refused, q->is_pattern ? "grant" : "bucket", q->name,
			   NULL);
	}
	free(list);
}

static void
metrics(void *cookie, struct stats_out *out)
{
	struct daemon *d = cookie;
	struct log_dropped dropped;
	char missing[256];

	core_metrics(d, out);
	for (int l = 0; l < LOG_LEVEL_NR; l++)
		stats_emit(out, M_LOG_LINES, log_lines((enum log_level)l), log_level_name[l], NULL);
	stats_emit(out, M_LOG_HELD, log_lines_held(), NULL);
	log_get_dropped(&dropped);
	stats_emit(out, M_LOG_DROPPED, dropped.lines, NULL);
	stats_emit(out, M_CONFIG_RELOAD_FAILURES, atomic_load(&d->reload_failures), NULL);
	stats_emit_ns(out, M_CONFIG_RELOADED, atomic_load(&d->reloaded_ns), NULL);
	stats_emit(out, M_CONFIG_RESTART_NEEDED, (uint64_t)atomic_load(&d->restart_pending), NULL);
	stats_emit(out, M_DRAINING, atomic_load(&d->drained) || atomic_load(&d->phase) == PHASE_DRAINING,
		   NULL);
	scrub_metrics(d, out);
	replay_metrics(d, out);
	stats_emit(out, M_RDMA_MISSING, d->rdma && rdma_missing(d->rdma, missing, sizeof missing), NULL);
	for (int i = 0; i < rail_nr(d); i++)
		rail_metrics(d, i, out);
	store_metrics(d, out);
	copies_metrics(atomic_load(&d->store), out);
	quota_metrics(d, out);
}

/* ---- JSON ---- */

static const char *const rail_state_text[RAIL_STATE_NR] = { "up", "down", "lost" };

static void
rails(void *cookie, FILE *out)
{
	struct daemon *d = cookie;

	putc('[', out);
	for (int i = 0; i < rail_nr(d); i++) {
		struct rdma_rail *rail = rdma_rail(d->rdma, i);
		const struct rdma_rail_stats *st = rdma_rail_stats(rail);
		struct rdma_rail_info info;
		char gid[INET6_ADDRSTRLEN];

		rdma_rail_get_info(rail, &info);
		inet_ntop(AF_INET6, info.gid, gid, sizeof gid);
		fprintf(out, "%s{\"device\":", i ? ",\n" : "");
		json_string(out, info.device);
		fprintf(out, ",\"port\":%d,\"firmware\":", info.port);
		json_string(out, info.fw_ver);
		fprintf(out,
			",\"state\":\"%s\",\"link\":\"%s\",\"gid\":\"%s\",\"lid\":%u,\"mtu\":%d,\"max_rd_"
			"atomic\":%d",
			rail_state_text[info.state], info.is_ethernet ? "ethernet" : "infiniband", gid,
			info.lid, info.active_mtu, info.max_rd_atomic);
		fprintf(out, ",\"traffic_class\":%d,\"relaxed_ordering\":%s,\"path_leases\":[",
			info.traffic_class, info.relaxed_ordering ? "true" : "false");
		for (int p = 0; p < info.paths; p++)
			fprintf(out, "%s%llu", p ? "," : "",
				(unsigned long long)atomic_load(&st->ah_hits[p]));
		putc(']', out);
		fprintf(out, ",\"dci\":{\"all\":%d,\"free\":%d,\"leased\":%d,\"recovering\":%d}",
			atomic_load(&st->eps), atomic_load(&st->eps_free), atomic_load(&st->eps_leased),
			atomic_load(&st->eps_recovering));
		fprintf(out, ",\"reopens\":%llu,\"read_bytes\":%llu,\"written_bytes\":%llu,\"completions\":{",
			(unsigned long long)atomic_load(&st->reopens),
			(unsigned long long)atomic_load(&st->read_bytes),
			(unsigned long long)atomic_load(&st->written_bytes));
		for (int s = 0; s < WCS_NR; s++) {
			fputs(s ? "," : "", out);
			json_string(out, rdma_status_name[s]);
			fprintf(out, ":%llu", (unsigned long long)atomic_load(&st->status[s]));
		}
		fputs("}}", out);
	}
	putc(']', out);
}

static int
reach(void *cookie, const char *address, FILE *out)
{
	struct daemon *d = cookie;
	const struct conf *c = daemon_conf(d);
	struct rdma_reach reach;
	int r = d->rdma ? rdma_reach(d->rdma, &c->rdma, address, &reach) : -EINVAL;

	daemon_conf_put(c);
	if (r < 0)
		return 404;
	fprintf(out, "{\"address\":");
	json_string(out, address);
	fprintf(out, ",\"allowed\":%s,\"rail\":", reach.allowed ? "true" : "false");
	if (reach.rail >= 0)
		fprintf(out, "%d", reach.rail);
	else
		fputs("null", out);
	fputs(",\"text\":", out);
	json_string(out, reach.text);
	putc('}', out);
	return 200;
}

static void
quotas(void *cookie, FILE *out)
{
	struct daemon *d = cookie;
	struct store *st = atomic_load(&d->store);
	struct store_quota_info *list = NULL;
	int nr = st ? store_list_quotas(st, &list) : 0;

	putc('[', out);
	for (int i = 0; i < nr; i++) {
		fputs(i ? ",\n" : "", out);
		control_quota(&list[i], 0, out);
	}
	putc(']', out);
	free(list);
}

static void
disks(void *cookie, FILE *out)
{
	struct daemon *d = cookie;

	putc('[', out);
	for (int i = 0; i < unit_nr(d); i++) {
		struct store_unit_info info;
		char label[64], waits[80] = "";
		bool is_pool = strcmp(store_name(atomic_load(&d->store)), "rados") == 0;

		store_unit_info(atomic_load(&d->store), i, &info);
		if (!store_unit_serves(info.state) || !health_waits(&info, is_pool, waits, sizeof waits))
			waits[0] = 0;
		unit_label(d, i, &info, label);
		fprintf(out, "%s{\"disk\":%d,\"label\":", i ? ",\n" : "", i);
		json_string(out, label);
		fputs(",\"path\":", out);
		json_string(out, info.name[0] ? info.name : NULL);
		fputs(",\"uuid\":", out);
		json_string(out, info.uuid && info.uuid[0] ? info.uuid : NULL);
		fprintf(out, ",\"state\":\"%s\",\"reason\":", unit_state_text[info.state]);
		json_string(out, info.reason[0] ? info.reason : waits[0] ? waits : NULL);
		fputs(",\"move\":", out);
		json_string(out, info.move);
		fprintf(out, ",\"size_bytes\":%llu,\"free_bytes\":%llu,\"flushes\":%llu,\"errors\":%llu",
			(unsigned long long)info.size_bytes, (unsigned long long)info.free_bytes,
			(unsigned long long)info.flushes, (unsigned long long)info.errors);
		for (int n = 0; n < info.number_nr; n++) {
			if (!info.number[n].is_hidden)
				fprintf(out, ",\"%s\":%llu", info.number[n].name,
					(unsigned long long)info.number[n].value);
		}
		putc('}', out);
	}
	putc(']', out);
}

struct lines {
	FILE *out;
	int nr;
};

/* "id=... step=... age_ms=3 gone" as members: numbers as numbers (but the first, an id may look like one), a
 * word alone as true. */
static void
add_members(FILE *out, const char *text, bool is_id)
{
	const char *p = text;

	while (*p) {
		size_t len = strcspn(p, " "), name = strcspn(p, "= ");
		char value[128];

		snprintf(value, sizeof value, "%.*s", (int)name, p);
		fputs(p == text ? "" : ",", out);
		json_string(out, value);
		putc(':', out);
		if (name >= len) {
			fputs("true", out);
		} else {
			snprintf(value, sizeof value, "%.*s", (int)(len - name - 1), p + name + 1);
			if (!(is_id && p == text) && *value && strspn(value, "0123456789") == strlen(value))
				fputs(value, out);
			else
				json_string(out, value);
		}
		p += len;
		p += strspn(p, " ");
	}
}

/* What does not begin with an id is a remark about a core. */
static void
add_line(void *cookie, const char *text)
{
	struct lines *l = cookie;

	fputs(l->nr++ ? ",\n{" : "{", l->out);
	if (strncmp(text, "id=", 3) == 0) {
		add_members(l->out, text, true);
	} else {
		fputs("\"note\":", l->out);
		json_string(l->out, text);
	}
	putc('}', l->out);
}

/* The request's line, and its steps behind it. */
static void
add_step(void *cookie, const char *text)
{
	struct lines *l = cookie;

	if (l->nr++ == 0) {
		add_members(l->out, text, true);
		fputs(",\"steps\":[", l->out);
		return;
	}
	fputs(l->nr > 2 ? ",\n{" : "\n{", l->out);
	add_members(l->out, text, false);
	putc('}', l->out);
}

static int
request(void *cookie, const char *id, FILE *out)
{
	struct cores *cores = atomic_load(&daemon_of(cookie)->cores);
	struct lines l = { .out = out };
	int r;

	putc('{', out);
	r = cores ? cores_show(cores, id, add_step, &l) : -ENOENT;
	fputs("]}", out);
	return r == 0 ? 200 : r == -ENOENT ? 404 : 503;
}

static void
requests(void *cookie, FILE *out)
{
	struct cores *cores = atomic_load(&daemon_of(cookie)->cores);
	struct lines l = { .out = out };

	putc('[', out);
	if (cores)
		cores_dump(cores, add_line, &l);
	putc(']', out);
}

static void
listeners(struct daemon *d, FILE *out)
{
	struct cores *cores = atomic_load(&d->cores);

	putc('[', out);
	for (int i = 0; cores && i < d->conf->listen_nr; i++) {
		const struct conf_listen *l = &d->conf->listen[i];
		char text[64];

		daemon_listen_text(l, cores_listen_port(cores, i), text, sizeof text);
		fprintf(out, "%s{\"address\":\"%s\",\"dialect\":\"%s\",\"anonymous\":%s}", i ? "," : "", text,
			l->dialect == DIALECT_S3 ? "s3" : "scality",
			l->anonymous || l->dialect == DIALECT_SCALITY ? "true" : "false");
	}
	putc(']', out);
}

static void
core_list(struct daemon *d, struct totals *t, FILE *out)
{
	putc('[', out);
	for (int i = 0; i < core_nr(d); i++) {
		struct core_info info;

		cores_get_info(atomic_load(&d->cores), i, &info);
		add_core(t, &info);
		fprintf(out,
			"%s{\"core\":%d,\"cpu\":%d,\"asleep\":%s,\"turned_ago_seconds\":%.3f,\"requests\":%d,"
			"\"connections\":%d,\"buffers\":{\"small\":[%d,%d,%d],\"large\":[%d,%d,%d]}}",
			i ? ",\n" : "", i, info.cpu, info.asleep ? "true" : "false",
			(double)info.turned_ago_ns / 1e9, info.requests, info.connections, info.bufs_total[0],
			info.bufs_avail[0], info.bufs_low[0], info.bufs_total[1], info.bufs_avail[1],
			info.bufs_low[1]);
	}
	putc(']', out);
}

static void
status(void *cookie, FILE *out)
{
	static const char *const mode_text[] = {
		[RDMA_AUTO] = "auto", [RDMA_LIST] = "list", [RDMA_NONE] = "none"
	};
	struct daemon *d = cookie;
	const struct store *store = atomic_load(&d->store);
	unsigned long long objects = 0, size = 0, available = 0;
	struct totals t = { 0 };
	int up = 0, nr = 0, failed = 0, missing = 0;

	for (int i = 0; i < rail_nr(d); i++) {
		struct rdma_rail_info info;

		rdma_rail_get_info(rdma_rail(d->rdma, i), &info);
		up += info.state == RAIL_UP && info.serves;
	}
	for (int i = 0; i < unit_nr(d); i++) {
		struct store_unit_info info;

		store_unit_info(atomic_load(&d->store), i, &info);
		/* One that was drained has left the store: its room is nobody's. */
		if (info.state == UNIT_DRAINED)
			continue;
		nr++;
		objects += store_unit_number(&info, "objects");
		size += info.size_bytes;
		available += info.free_bytes;
		failed += info.state == UNIT_FAILED;
		missing += info.state == UNIT_MISSING;
	}
	fprintf(out,
		"{\"version\":\"%s\",\"phase\":\"%s\",\"pid\":%d,\"uptime_seconds\":%.3f,\n\"listeners\":",
		GANTRY_VERSION, phase_name[atomic_load(&d->phase)], (int)getpid(),
		(double)(clock_ns() - d->started_ns) / 1e9);
	listeners(d, out);
	fprintf(out, ",\n\"rdma\":{\"devices\":\"%s\",\"rails\":%d,\"rails_up\":%d},\n",
		mode_text[d->conf->rdma.mode], rail_nr(d), up);
	fprintf(out,
		"\"store\":{\"backend\":\"%s\",\"disks\":%d,\"disks_failed\":%d,\"disks_missing\":%d,"
		"\"objects\":%llu,\"size_"
		"bytes\":%llu,\"free_"
		"bytes\":%llu",
		store ? store_name(store) : "", nr, failed, missing, objects, size, available);
	if (store)
		copies_show(store, out);
	fputs(",\"record\":", out);
	remember_show(d->remember, d->conf, out);
	fputs("},\n", out);
	fputs("\"scrub\":", out);
	control_scrub_state(d, out);
	fprintf(out, ",\n\"access_keys\":%d,\"replay\":", atomic_load(&d->key_nr));
	replay_state(d, out);
	fputs(",\n\"cores\":", out);
	core_list(d, &t, out);
	fprintf(out, ",\n\"requests\":%d,\"connections\":%d,\n", t.requests, t.connections);
	fprintf(out,
		"\"buffers\":{\"small\":{\"all\":%d,\"free\":%d},\"large\":{\"all\":%d,\"free\":%d},\"http\":"
		"{\"all\":%d,\"free\":%d}}}",
		t.bufs_total[0], t.bufs_avail[0], t.bufs_total[1], t.bufs_avail[1], t.http_total,
		t.http_avail);
}

static void
config(void *cookie, FILE *out)
{
	const struct conf *c = daemon_conf(cookie);

	conf_print_json(c, out);
	daemon_conf_put(c);
}

void
pages_env(struct daemon *d, struct admin_env *ret_env)
{
	*ret_env = (struct admin_env){ .cookie = d,
				       .config = config,
				       .stats = d->stats,
				       .core_nr = core_nr,
				       .core = core,
				       .ready = health_ready,
				       .health = health_reasons,
				       .metrics = metrics,
				       .status = status,
				       .rails = rails,
				       .quotas = quotas,
				       .reach = reach,
				       .disks = disks,
				       .requests = requests,
				       .request = request };
	control_env(ret_env);
}
