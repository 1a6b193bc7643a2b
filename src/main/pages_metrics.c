/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of rails, disks, cores, quotas and of the daemon itself, for the admin thread (pages.h). */
#include "main/pages.h"

#include "admin/admin.h"
#include "auth/auth.h"
#include "base/clock.h"
#include "rdma/rc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
totals_add(struct totals *t, const struct core_info *info)
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
	stats_emit(out, M_DCI, (uint64_t)atomic_load(&st->eps.free), name, "free", NULL);
	stats_emit(out, M_DCI, (uint64_t)atomic_load(&st->eps.leased), name, "leased", NULL);
	stats_emit(out, M_DCI, (uint64_t)atomic_load(&st->eps.recovering), name, "recovering", NULL);
	stats_emit(out, M_DCI, (uint64_t)atomic_load(&st->eps_unusable), name, "unusable", NULL);
	stats_emit(out, M_RC_CHANNELS, (uint64_t)atomic_load(&st->conns.free), name, "free", NULL);
	stats_emit(out, M_RC_CHANNELS, (uint64_t)atomic_load(&st->conns.leased), name, "leased", NULL);
	stats_emit(out, M_RC_CHANNELS, (uint64_t)atomic_load(&st->conns.recovering), name, "recovering",
		   NULL);
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

static void
rc_metrics(struct daemon *d, struct stats_out *out)
{
	static struct rdma_rc_stats none;
	struct rdma_rc_stats *st = rdma_rc_stats(d->rdma);
	int open, leased;

	if (!st)
		st = &none;
	leased = atomic_load(&st->leased);
	open = atomic_load(&st->open);
	stats_emit(out, M_RC_CONNECTIONS, (uint64_t)atomic_load(&st->waiting), "making", NULL);
	stats_emit(out, M_RC_CONNECTIONS, (uint64_t)(open > leased ? open - leased : 0), "ready", NULL);
	stats_emit(out, M_RC_CONNECTIONS, (uint64_t)leased, "leased", NULL);
	stats_emit(out, M_RC_CONNECTS, atomic_load(&st->made), "made", NULL);
	stats_emit(out, M_RC_CONNECTS, atomic_load(&st->failed), "failed", NULL);
	stats_emit(out, M_RC_CONNECTS, atomic_load(&st->refused), "refused", NULL);
	for (int l = 0; l < RDMA_RC_LIMIT_NR; l++)
		stats_emit(out, M_RC_REFUSED, atomic_load(&st->refused_by[l]), rdma_rc_limit_name[l], NULL);
	stats_emit(out, M_RC_CLOSED, atomic_load(&st->idle), "idle", NULL);
	stats_emit(out, M_RC_CLOSED, atomic_load(&st->lost), "lost", NULL);
	stats_emit(out, M_RC_CLOSED, atomic_load(&st->broken), "failed", NULL);
	stats_emit(out, M_RC_CLOSED, atomic_load(&st->left), "disconnected", NULL);
	stats_emit(out, M_RC_CLOSED, atomic_load(&st->room), "room", NULL);
	stats_emit(out, M_RC_BUSY, atomic_load(&st->busy), NULL);
	stats_emit(out, M_RC_UNKNOWN, atomic_load(&st->unknown), NULL);
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

static const char *const until_text[UNTIL_NR] = {
	[UNTIL_SUBMITTED] = "submitted", [UNTIL_LED] = "led",
	[UNTIL_WRITTEN] = "written",     [UNTIL_FLUSHED] = "flushed",
	[UNTIL_PUBLISHED] = "published", [UNTIL_ANSWERED] = "answered"
};

static void
disk_metrics(struct daemon *d, int i, struct stats_out *out)
{
	struct store_unit_info info;
	const char *disk = info.label;

	store_unit_info(atomic_load(&d->store), i, &info);
	if (info.state == UNIT_DRAINED)
		return;
	stats_emit(out, M_STORE_DISK, 1, disk, info.uuid ? info.uuid : "", info.name, NULL);
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
	for (int u = 0; u < UNTIL_NR; u++)
		stats_emit_histogram(out, M_STORE_COMMIT, info.commit[u].buckets, info.commit[u].sum_ns, disk,
				     until_text[u]);
	stats_emit(out, M_STORE_ERRORS, info.errors, disk, "io", NULL);
}

/* As pages and metrics call it. */
const char *const unit_state_text[UNIT_STATE_NR] = { [UNIT_OK] = "serving",
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
replay_metrics(struct daemon *d, struct stats_out *out)
{
	struct auth_replay_info i = { 0 };

	if (d->replay)
		auth_replay_get_info(d->replay, &i);
	stats_emit(out, M_REPLAYS, i.refused, NULL);
	stats_emit(out, M_REPLAY_FORGOTTEN, i.forgotten, NULL);
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
		totals_add(&t, &info);
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

void
pages_metrics(void *cookie, struct stats_out *out)
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
	daemon_audit_metrics(out);
	stats_emit(out, M_CONFIG_RELOAD_FAILURES, atomic_load(&d->reload_failures), NULL);
	stats_emit_ns(out, M_CONFIG_RELOADED, atomic_load(&d->reloaded_ns), NULL);
	stats_emit(out, M_CONFIG_RESTART_NEEDED, (uint64_t)atomic_load(&d->restart_pending), NULL);
	certs_metrics(d, out);
	stats_emit(out, M_DRAINING, atomic_load(&d->drained) || atomic_load(&d->phase) == PHASE_DRAINING,
		   NULL);
	if (atomic_load(&d->cores))
		walks_metrics(cores_walks(atomic_load(&d->cores)), out);
	replay_metrics(d, out);
	stats_emit(out, M_RDMA_MISSING, d->rdma && rdma_missing(d->rdma, missing, sizeof missing), NULL);
	for (int i = 0; i < rail_nr(d); i++)
		rail_metrics(d, i, out);
	rc_metrics(d, out);
	store_metrics(d, out);
	copies_metrics(atomic_load(&d->store), out);
	quota_metrics(d, out);
	seen_metrics(d, out);
}
