/* SPDX-License-Identifier: Apache-2.0 */
/* Initialises the parts of a set, and ends them: the only file that uses fields of all parts. See set_int.h. */
#include "set/set_int.h"

#include "base/check.h"

#include <stdlib.h>

void
set_parts_init(struct set *s)
{
	pthread_mutex_init(&s->members.lock, NULL);
	pthread_mutex_init(&s->ports.lock, NULL);
	list_init(&s->ports.list);
	pthread_mutex_init(&s->map.lock, NULL);
	list_init(&s->map.waiting);
	for (int i = 0; i < STORE_PLACE_NR; i++)
		atomic_store(&s->placement.replica[i][SET_SECONDARY], SET_NOWHERE);
	pthread_mutex_init(&s->buckets.lock, NULL);
	set_holds_init(&s->replicas.locks);
	pthread_mutex_init(&s->replicas.lock, NULL);
	pthread_mutex_init(&s->recovery.lock, NULL);
	list_init(&s->recovery.waiting);
	list_init(&s->recovery.round);
}

void
set_parts_fini(struct set *s)
{
	check(list_empty(&s->map.waiting) && list_empty(&s->ports.list));
	check(!s->recovery.is_keeping && list_empty(&s->recovery.waiting));
	for (int i = 0; i < STORE_SLOT_NR; i++)
		check(!atomic_load(&s->replicas.in_doubt[i]));
	pthread_mutex_destroy(&s->map.lock);
	pthread_mutex_destroy(&s->buckets.lock);
	free(s->buckets.missed);
	pthread_mutex_destroy(&s->ports.lock);
	pthread_mutex_destroy(&s->members.lock);
	pthread_mutex_destroy(&s->recovery.lock);
	pthread_mutex_destroy(&s->replicas.lock);
	set_holds_fini(&s->replicas.locks);
}
