/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the first bucket with two copies. All slots get a secondary, which is in sync because no key has two
 * copies yet.
 */
#include "set/disk_names.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The assignment of secondaries to all slots, which precedes the creation of the first bucket with two
 * copies. Runs on the thread of a port. */
struct pairing {
	struct set_port *port;
	struct set_turn turn;
	struct store_op *op;        /* operation of the caller */
	struct store_change change; /* the creation, with its own copy of the name */
	bool has_written;
	int result;
	unsigned paired; /* number of the assignment (set_begin_pairs()), for set_note_pairs_answer() */
	struct set_wait wait;
	struct disk_table next;
	char name[STORE_BUCKET_MAX];
};

static void
pairing_end(struct pairing *g)
{
	struct store_op *op = g->op;
	int r = g->result;

	if (r == 0)
		r = set_bucket_create(&g->port->base, &g->change, op);
	port_unpin(g->port);
	free(g);
	if (r == 0)
		return;
	if (r < 0)
		op->result = r;
	op->done(op);
}

static void
pairing_kept(struct msg *m)
{
	struct pairing *g = container_of(m, struct pairing, wait.msg);

	set_note_pairs_answer(g->port->set, g->paired);
	pairing_end(g);
}

/* Continues after the assignment. In slots of a missing disk the map may name another primary than before;
 * the bucket is made only after this primary answers for the slots. A caller that makes another bucket with
 * two copies at the same time waits here, too (set_has_pairs()). */
static void
pairing_over(struct pairing *g)
{
	if (g->result < 0) {
		pairing_end(g);
		return;
	}
	g->wait = (struct set_wait){ .mb = g->port->mb, .go = pairing_kept };
	set_wait_kept(g->port->set, &g->wait);
}

/* Assigns the secondaries of an effective map to the slots. Returns the number of the assignment
 * (set_begin_pairs()). */
static unsigned
use_pairs(struct set *s, const struct disk_table *t)
{
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		int second = table_is_full(t, i) ? set_engine_of(s, t->second[i]) : -1;

		/* Both copies of a key are never on one disk, and only an existing secondary is in sync. */
		check(t->first[i] != t->second[i]);
		check(!table_is_full(t, i) || t->second[i] != TABLE_NO_DISK);
		set_assign(s, table_place((unsigned)i, true), SET_SECONDARY,
			   second < 0 ? SET_NOWHERE : second);
	}
	return set_begin_pairs(s);
}

/* Returns true if a disk has records with two copies, left from an earlier bucket: the disk was a secondary,
 * and missed the removal of that bucket. */
static bool
has_two_left(const struct set *s, int number)
{
	struct store_unit_info info;
	int engine = set_engine_of(s, number);

	if (engine < 0)
		return true;
	store_unit_info(set_engine(s, engine), 0, &info);
	return store_unit_number(&info, "copy_objects") || store_unit_number(&info, "copy_uploads");
}

/* Marks secondaries as not in sync if their disks have old records of keys with two copies. Such disks may
 * lack records, so they are resynchronised first. While foreign records are removed, all secondaries are marked:
 * the removal does not know the new map, and would remove secondary copies. */
static void
keep_from_full(const struct set *s, struct disk_table *t)
{
	bool all = set_removes_foreign(s);

	for (int d = 0; d < STORE_DISKS_MAX; d++) {
		if (!table_has(t->members, d) || (!all && !has_two_left(s, d)))
			continue;
		for (int i = 0; i < STORE_SLOT_NR; i++) {
			if (t->second[i] == d)
				table_set_full(t, i, false);
		}
	}
}

/* Advances the assignment. The caller holds the map change lock. */
static void
pairing_go(struct pairing *g)
{
	struct set *s = g->port->set;
	uint64_t size[STORE_DISKS_MAX];

	if (!set_settle(s, &g->turn))
		return;
	set_get_table(s, &g->next);
	if (set_is_read_only(s)) {
		g->result = -EROFS;
	} else if (__builtin_popcountll(g->next.members & ~g->next.draining) < 2) {
		/* A drain will leave only one disk (-EDOM). If the drain was cancelled, a map will soon
		 * record that the disk remains (-EAGAIN). */
		g->result = table_gives_up(&g->next) ? -EAGAIN : -EDOM;
	} else if (!g->has_written) {
		bool is_new = true;

		g->has_written = true;
		for (int i = 0; i < STORE_SLOT_NR; i++)
			is_new &= g->next.second[i] == TABLE_NO_DISK;
		disk_sizes(s, size);
		/* A disk that is away gets no secondaries, because it does not take part in the newest map,
		 * even if it has missed no change yet. */
		for (int i = 0; i < STORE_DISKS_MAX; i++)
			size[i] = table_has(g->next.in, i) ? size[i] : 0;
		if (is_new && table_pair(&g->next, size, true)) {
			keep_from_full(s, &g->next);
			if (!set_change_table(s, &g->turn, &g->next, set_all(s), 0))
				return;
		}
	}
	if (!g->result) {
		set_get_table(s, &g->next);
		g->paired = use_pairs(s, &g->next);
	}
	set_new_head(s);
	set_give_turn(s, &g->turn);
	pairing_over(g);
}

static void
pairing_turn(struct msg *m)
{
	pairing_go(container_of(m, struct pairing, turn.msg));
}

int
set_pair_first(struct set_port *p, const struct store_change *sc, struct store_op *op)
{
	struct pairing *g = calloc(1, sizeof *g);

	if (!g)
		return -EAGAIN;
	op->port = &p->base;
	g->port = p;
	g->op = op;
	g->change = *sc;
	g->change.key.bucket = memcpy(g->name, sc->key.bucket, sc->key.bucket_len);
	g->turn = (struct set_turn){ .mb = p->mb, .go = pairing_turn };
	port_pin(p);
	/* The operation always completes through the mailbox, even if the lock is free. */
	if (set_take_turn(p->set, &g->turn))
		mailbox_post(p->mb, &g->turn.msg, pairing_turn);
	return 0;
}
