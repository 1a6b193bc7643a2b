/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last use of each secret, see keys.h. A reload makes new entries, while requests still use the previous ones, so the
 * entries of one secret share a record. A core writes the record only if its second is later than that of the record: the
 * cache line of the record stays shared except once a second, and no thread waits.
 */
#include "auth/auth_int.h"

#include <errno.h>
#include <stdlib.h>

struct auth_usage {
	_Atomic int refs;
	_Atomic uint64_t last_s; /* time of the last use in seconds since 1970; 0: not used */
};

int
usage_new(struct auth_entry *e)
{
	e->usage = calloc(1, sizeof *e->usage);
	if (!e->usage)
		return -ENOMEM;
	e->usage->refs = 1;
	return 0;
}

void
usage_put(struct auth_usage *u)
{
	if (u && atomic_fetch_sub_explicit(&u->refs, 1, memory_order_acq_rel) == 1)
		free(u);
}

void
usage_mark(const struct auth_entry *e, uint64_t now_s)
{
	if (atomic_load_explicit(&e->usage->last_s, memory_order_relaxed) < now_s)
		atomic_store_explicit(&e->usage->last_s, now_s, memory_order_relaxed);
}

uint64_t
usage_last(const struct auth_entry *e)
{
	return atomic_load_explicit(&e->usage->last_s, memory_order_relaxed);
}

void
usage_share(struct auth_entry *e, const struct auth_entry *old)
{
	usage_put(e->usage);
	e->usage = old->usage;
	atomic_fetch_add_explicit(&e->usage->refs, 1, memory_order_relaxed);
}
