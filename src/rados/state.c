/* SPDX-License-Identifier: Apache-2.0 */
/* States and counters of the store for operators. */
#include "rados/module_int.h"

#include "base/clock.h"
#include "rados/io/call.h"
#include "rados/io/rstore.h"

#include <stdio.h>

#define LATE_NS (2 * NS_PER_S)   /* age from which operations in progress are reported */
#define STUCK_NS (10 * NS_PER_S) /* after this time without an ended operation the gateway does not serve */
/* after a refusal the pool is reported as full, or as closed to this key, for this time */
#define FULL_NS (60 * NS_PER_S)
#define MONITOR_NS (30 * NS_PER_S) /* silence of the monitors that is reported */

enum store_answer
rstore_answers(const struct store *base, char *why, size_t len)
{
	struct rstore *st = rstore(base);
	struct store_unit_info info;

	if (atomic_load(&st->gw.is_fenced)) {
		snprintf(why, len, "%s", st->gw.fenced_by);
		return STORE_IS_FENCED;
	}
	if (!calls_are_stuck(st, STUCK_NS))
		return STORE_ANSWERS;
	snprintf(why, len, "no operation of the cluster ends");
	for (int i = 0; i < POOL_NR; i++) {
		rstore_unit_info(base, i, &info);
		if (info.reason[0]) {
			snprintf(why, len, "pool %s: %s", info.name, info.reason);
			break;
		}
	}
	return STORE_IS_STUCK;
}

/* Sets the state of a pool, and the reason if it is not healthy. */
static void
say_reason(struct rstore *st, int unit, struct store_unit_info *info)
{
	uint64_t unwritten = atomic_load(&st->unwritten_bytes);
	bool refuses = unit == POOL_DATA && unwritten >= st->unwritten_max_bytes;
	struct pool_stats *ps = &st->stats[unit];
	uint64_t now = clock_ns(), refused_ns = atomic_load(&ps->refused_ns),
		 denied_ns = atomic_load(&ps->denied_ns), monitor_ns = atomic_load(&st->monitor_ns);
	size_t len = sizeof info->reason;
	char *why = info->reason;
	struct waiting w;

	calls_waiting(st, (enum pool)unit, LATE_NS, &w);
	store_unit_add(info, "operations_late", w.nr, false);
	store_unit_add(info, "oldest_wait_us", w.nr ? (now - w.oldest_ns) / NS_PER_US : 0, false);
	if (atomic_load(&st->gw.is_fenced)) {
		info->state = UNIT_FAILED;
		snprintf(why, len, "%s", st->gw.fenced_by);
	} else if (atomic_load(&ps->is_gone)) {
		info->state = UNIT_FAILED;
		snprintf(why, len, "it was removed from the cluster");
	} else if (denied_ns && now - denied_ns < FULL_NS) {
		snprintf(why, len, "the key of this gateway has not the rights for it");
	} else if (w.nr) {
		int n;

		pthread_mutex_lock(&ps->lock);
		n = snprintf(why, len, "%u operation%s wait%s, the oldest since %llu s%s%s", w.nr,
			     w.nr == 1 ? "" : "s", w.nr == 1 ? "s" : "",
			     (unsigned long long)((now - w.oldest_ns) / NS_PER_S),
			     ps->waits_ns == w.oldest_ns ? " for " : "",
			     ps->waits_ns == w.oldest_ns ? ps->waits_for : "");
		pthread_mutex_unlock(&ps->lock);
		if (refuses && (size_t)n < len)
			snprintf(why + n, len - (size_t)n, "; %llu MiB unwritten: PUTs are refused",
				 (unsigned long long)(unwritten >> 20));
	} else if (unit == POOL_META && now - atomic_load(&st->gw.last_beat_ns) >= STUCK_NS) {
		snprintf(why, len, "the row of this gateway has not been written for %llu s",
			 (unsigned long long)((now - atomic_load(&st->gw.last_beat_ns)) / NS_PER_S));
	} else if (refused_ns && now - refused_ns < FULL_NS) {
		snprintf(why, len, "full: new objects are refused");
	} else if (unit == POOL_META && now - monitor_ns >= MONITOR_NS) {
		snprintf(why, len, "no monitor has answered for %llu s",
			 (unsigned long long)((now - monitor_ns) / NS_PER_S));
	}
}

void
rstore_unit_info(const struct store *base, int unit, struct store_unit_info *ret_info)
{
	struct rstore *st = rstore(base);
	const struct pool_stats *ps = &st->stats[unit];
	const struct gateway *gw = &st->gw;

	*ret_info = (struct store_unit_info){ .name = unit == POOL_META ? st->meta_pool : st->data_pool,
					      .state = UNIT_OK,
					      .size_bytes = atomic_load(&ps->size_bytes),
					      .free_bytes = atomic_load(&ps->free_bytes),
					      .read_bytes = atomic_load(&ps->read_bytes),
					      .read_ops = atomic_load(&ps->read_ops),
					      .written_bytes = atomic_load(&ps->written_bytes),
					      .write_ops = atomic_load(&ps->write_ops),
					      .errors = atomic_load(&ps->errors) };
	for (int io = 0; io < DISK_IO_NR; io++)
		latency_read(&ps->latency[io], ret_info->latency[io].buckets, &ret_info->latency[io].sum_ns);
	say_reason(st, unit, ret_info);
	store_unit_add(ret_info, "longest_call_us", atomic_load(&ps->longest_call_ns) / NS_PER_US, false);
	store_unit_add(ret_info, "crc_errors", atomic_load(&ps->crc_errors), false);
	if (unit == POOL_DATA) {
		store_unit_add(ret_info, "unwritten_bytes", atomic_load(&st->unwritten_bytes), false);
		store_unit_add(ret_info, "parallel_reads", atomic_load(&st->ahead_right), false);
		store_unit_add(ret_info, "parallel_reads_dropped", atomic_load(&st->ahead_wrong), false);
		return;
	}
	store_unit_add(ret_info, "gateways", atomic_load(&gw->gateways), false);
	store_unit_add(ret_info, "instance", gw->instance, false);
	store_unit_add(ret_info, "epoch", atomic_load(&gw->epoch), false);
	store_unit_add(ret_info, "epoch_age_us", (clock_ns() - atomic_load(&gw->epoch_ns)) / NS_PER_US,
		       false);
	store_unit_add(ret_info, "beats", atomic_load(&gw->beats), false);
	store_unit_add(ret_info, "garbage_removed", atomic_load(&gw->swept), false);
	store_unit_add(ret_info, "gateways_cleaned_up", atomic_load(&gw->dead_cleaned), false);
}

const char *
rstore_background(const struct store *s)
{
	struct gateway *gw = &rstore(s)->gw;
	bool has_some;

	pthread_mutex_lock(&gw->lock);
	has_some = atomic_load(&gw->sweep_all) || !list_empty(&gw->dirty) || gw->is_sweeping;
	pthread_mutex_unlock(&gw->lock);
	return has_some ? "removal" : NULL;
}
