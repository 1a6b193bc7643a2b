/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits on the rebalancer's thread: for the map change lock, for the placement map and for barriers; see
 * rebalance.h.
 */
#include "set/mover.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <time.h>

void
move_turn(struct mover *m)
{
	static const struct timespec a_moment = { .tv_nsec = NS_PER_MS };

	mailbox_run(&m->mb, 0);
	if (m->user)
		store_user_turn(m->user);
	else
		nanosleep(&a_moment, NULL);
}

bool
move_is_to_end(const struct mover *m)
{
	return atomic_load(&m->stop) || atomic_load(&m->cancel) || atomic_load(&m->yields);
}

static void
on_turn(struct msg *msg)
{
	container_of(msg, struct mover, turn.msg)->has_gone = true;
}

static void
wait_for_turn(struct mover *m, bool has_it)
{
	while (!has_it && !m->has_gone)
		move_turn(m);
	m->has_gone = false;
}

int
move_take_turn(struct mover *m)
{
	struct set *s = m->set;

	m->turn = (struct set_turn){ .mb = &m->mb, .go = on_turn };
	m->has_gone = false;
	wait_for_turn(m, set_take_turn(s, &m->turn));
	wait_for_turn(m, set_settle(s, &m->turn));
	set_get_table(s, &m->next);
	if (!set_is_read_only(s))
		return 0;
	move_give_turn(m);
	return -EROFS;
}

void
move_give_turn(struct mover *m)
{
	set_new_head(m->set);
	set_give_turn(m->set, &m->turn);
}

int
move_change_table(struct mover *m, uint64_t all, uint64_t needs)
{
	wait_for_turn(m, set_change_table(m->set, &m->turn, &m->next, all, needs));
	return set_change_result(m->set);
}

int
move_visit(struct mover *m)
{
	set_barrier(m->set);
	while (!set_barrier_is_done(m->set))
		move_turn(m);
	return set_barrier_error(m->set);
}

struct store_port *
move_port(struct mover *m, int engine)
{
	check(m->user);
	return port_engine(set_port(store_user_port(m->user, 0)), engine);
}
