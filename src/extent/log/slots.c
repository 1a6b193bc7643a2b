/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that belong to this volume; see slots.h. */
#include "extent/log/vol.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEFT_FIRST 256 /* first size of the table, which doubles */

void
slots_set_own(struct slots *sl, const struct store_slots *slots, bool own)
{
	for (size_t i = 0; i < STORE_SLOT_WORDS; i++) {
		if (slots->bit[i] && !own)
			atomic_store(&sl->has_all[i * 64 >= STORE_SLOT_NR], false);
		if (own)
			atomic_fetch_or(&sl->own[i], slots->bit[i]);
		else
			atomic_fetch_and(&sl->own[i], ~slots->bit[i]);
	}
	for (size_t two = 0; own && two < 2; two++) {
		uint64_t all = UINT64_MAX;

		for (size_t i = 0; i < STORE_SLOT_NR / 64; i++)
			all &= atomic_load(&sl->own[two * (STORE_SLOT_NR / 64) + i]);
		atomic_store(&sl->has_all[two], all == UINT64_MAX);
	}
}

int
slots_new(const struct store_slots *own, struct slots **ret_sl)
{
	struct slots *sl = calloc(1, sizeof *sl);

	if (!sl)
		return -ENOMEM;
	sl->left = calloc(LEFT_FIRST, sizeof(struct store_moved *));
	if (!sl->left) {
		free(sl);
		return -ENOMEM;
	}
	sl->left_size = LEFT_FIRST;
	slots_set_own(sl, own, true);
	*ret_sl = sl;
	return 0;
}

static void
free_list(struct store_moved *m)
{
	while (m) {
		struct store_moved *next = m->next;

		free(m);
		m = next;
	}
}

void
slots_free(struct slots *sl)
{
	if (!sl)
		return;
	for (size_t i = 0; i < sl->left_size; i++)
		free_list(sl->left[i]);
	free_list(sl->spare);
	free(sl->left);
	free(sl);
}

/* ---- foreign records ---- */

static struct store_moved **
link_of(struct slots *sl, unsigned place, const void *name, size_t len)
{
	struct store_moved **link =
		&sl->left[(key_hash(name, len) ^ place * 0x9e3779b1u) & (uint32_t)(sl->left_size - 1)];

	while (*link &&
	       ((*link)->place != place || (*link)->len != len || memcmp((*link)->name, name, len) != 0))
		link = &(*link)->next;
	return link;
}

/* Doubles the table. Without memory the chains become longer. */
static void
grow(struct slots *sl)
{
	size_t was = sl->left_size;
	struct store_moved **old = sl->left, **more = calloc(2 * was, sizeof(struct store_moved *));

	if (!more)
		return;
	sl->left = more;
	sl->left_size = 2 * was;
	for (size_t i = 0; i < was; i++) {
		for (struct store_moved *m = old[i], *next; m; m = next) {
			struct store_moved **link = link_of(sl, m->place, m->name, m->len);

			next = m->next;
			m->next = NULL;
			*link = m;
		}
	}
	free(old);
}

static void
add_sums(struct slots *sl, unsigned place, const struct store_use *use)
{
	bool has_two = place >= STORE_SLOT_NR;

	atomic_fetch_add_explicit(&sl->left_objects[has_two], use->objects, memory_order_relaxed);
	atomic_fetch_add_explicit(&sl->left_bytes[has_two], use->bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&sl->left_uploads[has_two], use->uploads, memory_order_relaxed);
}

static struct store_moved *
get_spare(struct slots *sl)
{
	struct store_moved *m = sl->spare;

	if (!m)
		return calloc(1, sizeof *m);
	sl->spare = m->next;
	sl->spare_nr--;
	return m;
}

int
slots_reserve(struct vol *vol)
{
	struct slots *sl = vol->slots;

	while (sl->spare_nr <= vol->block.records) {
		struct store_moved *m = calloc(1, sizeof *m);

		if (!m)
			return -ENOMEM;
		m->next = sl->spare;
		sl->spare = m;
		sl->spare_nr++;
	}
	if (sl->left_nr >= sl->left_size)
		grow(sl);
	return 0;
}

void
slots_count_two(struct slots *sl, const struct slot_name *n, const struct quota_change *change)
{
	unsigned slot;

	if (!n->has_two)
		return;
	slot = name_place(n) - STORE_SLOT_NR;
	atomic_fetch_add_explicit(&sl->two_objects[slot], (uint64_t)change->objects, memory_order_relaxed);
	atomic_fetch_add_explicit(&sl->two_bytes[slot], (uint64_t)change->bytes, memory_order_relaxed);
}

int
slots_count(struct slots *sl, const struct slot_name *n, const struct quota_change *change)
{
	size_t len = (size_t)((const uint8_t *)memchr(n->at, 0, n->len) - n->at);
	unsigned place = name_place(n);
	struct store_moved **link = link_of(sl, place, n->at, len), *m = *link;
	struct store_use more;

	if (!m) {
		m = get_spare(sl);
		if (!m)
			return -ENOMEM;
		*m = (struct store_moved){ .place = place, .len = (uint8_t)len };
		memcpy(m->name, n->at, len);
		*link = m;
		sl->left_nr++;
	}
	more = (struct store_use){ (uint64_t)change->objects, (uint64_t)change->bytes,
				   (uint64_t)change->uploads };
	m->use.objects += more.objects;
	m->use.bytes += more.bytes;
	m->use.uploads += more.uploads;
	add_sums(sl, place, &more);
	if (!m->use.objects && !m->use.bytes && !m->use.uploads) {
		*link = m->next;
		sl->left_nr--;
		free(m);
	}
	return 0;
}

/* ---- commits ---- */

/* Returns the name of the object or upload that a commit changes. */
static struct slot_name
commit_name(const struct commit *c)
{
	return c->view.key[0] == KEY_PART && c->upload_key ? slot_name(c->upload_key, c->upload_key_len)
							   : slot_name(c->view.key, c->view.key_len);
}

int
slots_judge(struct vol *vol, struct commit *c)
{
	const struct slots *sl = vol->slots;
	struct slot_name n = commit_name(c);
	unsigned place;
	bool own;

	if (!n.at || (atomic_load(&sl->has_all[n.has_two]) && !sl->is_frozen && !c->sent))
		return 0;
	place = name_place(&n);
	own = slots_own(sl, place);
	if (c->sent) {
#define OPTIONAL(name, flag, bit, kinds, places)                                                             \
	if (c->sent->name) {                                                                                 \
		c->view.flags |= REC_##flag;                                                                 \
		c->view.name = c->sent->name;                                                                \
	}
#include "model/record.def"
		/* No other disk has a better record of the volume's own partitions. */
		if (!c->sent->is_repair)
			return own && RULE_REMOVE_AFTER_SWITCH && RULE_LEFTOVERS_HIDDEN ? -EPERM : 0;
		/* A repair of a secondary copy, whose key the set has locked. */
		if (!own)
			return 0;
	}
	if (!own)
		return -EXDEV;
	return RULE_MOVE_FREEZE && sl->is_frozen && slots_has(&sl->frozen, place) ? -EAGAIN : 0;
}

uint64_t
slots_version(struct vol *vol, const struct commit_sent *sent)
{
	uint64_t is = atomic_load(&vol->version);

	if (!sent->version)
		return atomic_fetch_add(&vol->version, 1) + 1;
	/* No version of this start may occur twice under a key, and no record of a snapshot may have a
	 * version above the one that the snapshot notes. */
	while (is < sent->version && !atomic_compare_exchange_weak(&vol->version, &is, sent->version))
		;
	return sent->version;
}

void
slots_published(struct vol *vol)
{
	struct slots *sl = vol->slots;

	for (const struct commit *c = sl->is_watched && RULE_MOVE_WATCH ? vol->block.batch : NULL; c;
	     c = c->next) {
		struct slot_name n = commit_name(c);
		struct store_key k;

		if (c->is_gc || !n.at || !slots_has(&sl->watched, name_place(&n)))
			continue;
		k = name_key(&n);
		sl->changed(sl->cookie, &k);
	}
}

/* ---- commands ---- */

static void
set_frozen(struct vol *vol, const struct store_slots *slots, bool frozen)
{
	struct slots *sl = vol->slots;

	sl->is_frozen = false;
	for (size_t i = 0; i < STORE_SLOT_WORDS; i++) {
		sl->frozen.bit[i] =
			frozen ? sl->frozen.bit[i] | slots->bit[i] : sl->frozen.bit[i] & ~slots->bit[i];
		sl->is_frozen |= sl->frozen.bit[i] != 0;
	}
	/* Commits that wait in the queue before this command are judged again immediately. */
	if (!frozen)
		atomic_store(&vol->want_lead, true);
}

/* Removes the sums of these partitions from the foreign records, and returns them. */
static struct store_moved *
take_left(struct slots *sl, const struct store_slots *slots)
{
	struct store_moved *taken = NULL;

	for (size_t i = 0; i < sl->left_size; i++) {
		for (struct store_moved **link = &sl->left[i], *m; (m = *link) != NULL;) {
			if (!slots_has(slots, m->place)) {
				link = &m->next;
				continue;
			}
			*link = m->next;
			m->next = taken;
			taken = m;
			sl->left_nr--;
			add_sums(sl, m->place,
				 &(struct store_use){ -m->use.objects, -m->use.bytes, -m->use.uploads });
		}
	}
	return taken;
}

/* Moves the usage of partitions in the quota ledger to the volume that has taken them. Its foreign records
 * have become its own, and the records here are foreign now, with the same sums. */
static void
give_books(struct vol *vol, struct store_slots_op *o)
{
	struct quota_book *book = vol->quotas;
	struct slots *sl = vol->slots;

	if (!vol->leader.judges_quotas)
		quota_lock(book);
	while (o->moved) {
		struct store_moved *m = o->moved, **link;

		o->moved = m->next;
		quota_move(book, vol->counter, o->counter, m->name, m->len, &m->use,
			   m->place >= STORE_SLOT_NR);
		link = link_of(sl, m->place, m->name, m->len);
		check(!*link);
		m->next = NULL;
		*link = m;
		sl->left_nr++;
		add_sums(sl, m->place, &m->use);
		if (sl->left_nr > sl->left_size)
			grow(sl);
	}
	if (!vol->leader.judges_quotas)
		quota_unlock(book);
}

static void
set_watch(struct slots *sl, const struct store_slots_op *o)
{
	sl->is_watched = o->slots != NULL;
	if (!o->slots)
		return;
	sl->watched = *o->slots;
	sl->changed = o->changed;
	sl->cookie = o->cookie;
}

enum verdict
slots_command(struct vol *vol, struct commit *c)
{
	struct slots_cmd *cmd = container_of(c, struct slots_cmd, c);
	struct store_slots_op *o = cmd->o;
	struct slots *sl = vol->slots;

	switch (cmd->act) {
	case SLOTS_WATCH:
		set_watch(sl, o);
		return V_NOW;
	case SLOTS_FREEZE:
		set_frozen(vol, o->slots, true);
		return vol->block.records ? V_AFTER : V_NOW;
	case SLOTS_THAW:
		set_frozen(vol, o->slots, false);
		return V_NOW;
	case SLOTS_TAKE:
		/* The records in the block count for the old assignment. */
		if (vol->block.records)
			return V_LATER;
		slots_set_own(sl, o->slots, true);
		o->moved = take_left(sl, o->slots);
		o->counter = vol->counter;
		return V_NOW;
	default: /* SLOTS_LEAVE */
		slots_set_own(sl, o->slots, false);
		set_frozen(vol, o->slots, false);
		give_books(vol, o);
		return V_NOW;
	}
}
