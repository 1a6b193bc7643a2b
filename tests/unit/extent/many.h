/* SPDX-License-Identifier: Apache-2.0 */
/* Many puts of objects without data under way at once, until a store takes no more of them.  Behind fixture.h. */
#ifndef GANTRY_TESTS_STORE_MANY_H
#define GANTRY_TESTS_STORE_MANY_H

#define MANY_AT_ONCE 256
#define MANY_NAME 64
/* So many refusals in a row are the end of the room, and so many "not now" are too many. */
#define MANY_REFUSED 100

/* Makes the name of the object with this number. */
typedef const char *many_name_fn(char name[MANY_NAME], uint64_t i);

struct many {
	unsigned at_once;
	many_name_fn *name;
	const char *attrs; /* of each object, or NULL */
	uint32_t attrs_len;
	uint64_t taken, full, later; /* what was answered, since the caller zeroed it */
};

static struct many_put {
	struct store_put put;
	struct store_commit sc;
	struct many *of; /* NULL: free */
} many_slots[MANY_AT_ONCE];

static inline void
many_done(struct store_op *op)
{
	struct many_put *p = (struct many_put *)((char *)op - offsetof(struct many_put, put.op));

	p->of->taken += op->result == 0;
	p->of->full += op->result == -ENOSPC;
	p->of->later += op->result == -EAGAIN;
	p->of = NULL;
	assert_true(op->result == 0 || op->result == -ENOSPC || op->result == -EAGAIN);
}

static inline void
many_begin(struct many *m, struct many_put *p, uint64_t i)
{
	char name[MANY_NAME];
	struct store_key k = key_of("b", m->name(name, i));

	p->put.op.done = many_done;
	p->sc = (struct store_commit){ .inline_data = "x", .inline_len = 1 };
	p->sc.meta.attrs = m->attrs;
	p->sc.meta.attrs_len = m->attrs_len;
	p->of = m;
	if (store_put_init(l.p, &p->put, &k, 1) < 0 || store_put_commit(l.p, &p->put, &p->sc) < 0) {
		store_put_abort(l.p, &p->put);
		p->of = NULL;
		m->later++;
	}
}

/* Puts objects, the first of this number, until `enough` are there, or many in a row are refused; returns the number
 * behind the last that was tried. */
static inline uint64_t
put_many(struct many *m, uint64_t from, uint64_t enough)
{
	uint64_t n = from, before = m->full, until = m->taken + enough;

	while (m->full < before + MANY_REFUSED && m->taken < until) {
		for (unsigned i = 0; i < m->at_once; i++)
			if (!many_slots[i].of)
				many_begin(m, &many_slots[i], n++);
		loop_turn(&l);
		assert_true(m->later < MANY_REFUSED);
	}
	for (unsigned i = 0; i < m->at_once; i++)
		wait_until(!many_slots[i].of)
			loop_turn(&l);
	return n;
}

#endif
