/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child works on eight keys at a time and writes into a pipe what it begins and what was acknowledged; then
 * it ends without warning, and the parent opens the store and compares.  What was acknowledged is there,
 * whole; what was in flight is there whole or not at all.  SEED= repeats the choices, ROUNDS= is the number
 * of ends.
 *
 * Who includes this says how the child ends: child_ends_itself, child_turned(), called once per turn of its
 * loop.
 */
#include "fixture.h"

#include <signal.h>
#include <sys/wait.h>

#define SLOTS 8
#define KEYS_PER_SLOT 6
#define KEYS (SLOTS * KEYS_PER_SLOT)

enum what { BEGIN, OVER };
struct note {
	uint32_t what, key;
	int32_t result;
	uint32_t is_delete;
	uint64_t size, seed;
};

/* What a key may hold. */
struct state {
	bool exists;
	uint64_t size, seed;
};
static struct {
	struct state now, next;
	bool in_flight;
} model[KEYS];

/* ---- the child ---- */

struct slot {
	struct store_put put;
	struct store_del del;
	struct note note;
	struct buf *buf;
	struct worker *w;
	int nr;
	struct store_write wr;
	uint64_t at;
};

struct worker {
	struct loop l;
	int pipe;
	uint64_t rng;
	struct slot slot[SLOTS];
};

static void slot_begin(struct slot *s);

static void
tell(struct slot *s, enum what what, int result)
{
	struct note n = s->note;

	n.what = what;
	n.result = result;
	if (write(s->w->pipe, &n, sizeof n) != sizeof n)
		_exit(3);
}

static void
slot_over(struct slot *s, int result)
{
	if (s->buf)
		bufpool_put(&s->w->l.bufs, s->buf);
	s->buf = NULL;
	store_put_abort(s->w->l.p, &s->put);
	tell(s, OVER, result);
	slot_begin(s);
}

static void
on_put_over(struct store_op *op)
{
	slot_over(container_of(container_of(op, struct store_put, op), struct slot, put), op->result);
}

static void
on_del_over(struct store_op *op)
{
	slot_over(container_of(container_of(op, struct store_del, op), struct slot, del), op->result);
}

static void slot_more(struct slot *s);

static void
on_written(struct store_op *op)
{
	struct slot *s = container_of(container_of(op, struct store_write, op), struct slot, wr);

	if (op->result < 0) {
		slot_over(s, op->result);
		return;
	}
	slot_more(s);
}

static void
slot_more(struct slot *s)
{
	struct store_commit c = { 0 };
	uint64_t n = s->note.size - s->at < STORE_PIECE ? s->note.size - s->at : STORE_PIECE;
	char small[STORE_INLINE_MAX + 8];
	int r;

	if (s->note.size > STORE_INLINE_MAX) {
		fill(s->buf->mem, n, s->note.seed, s->at);
		s->at += n;
		if (s->at < s->note.size) {
			s->wr.op.done = on_written;
			r = store_put_write(s->w->l.p, &s->put, &s->wr, s->buf, (uint32_t)n, false);
			if (r < 0)
				slot_over(s, r);
			return;
		}
		c.last = s->buf;
		c.last_len = (uint32_t)n;
	} else {
		fill(small, s->note.size, s->note.seed, 0);
		c.inline_data = small;
		c.inline_len = (uint32_t)s->note.size;
	}
	s->put.op.done = on_put_over;
	r = store_put_commit(s->w->l.p, &s->put, &c);
	if (r < 0)
		slot_over(s, r);
}

static uint64_t
random_size(uint64_t *rng)
{
	switch (rnd(rng) % 8) {
	case 0:
		return rnd(rng) % 257;
	case 1:
		return 60000 + rnd(rng) % 12000;
	case 2:
		return MIB - 2 + rnd(rng) % 4;
	case 3:
		return rnd(rng) % (3 * MIB);
	case 4:
		return rnd(rng) % 16 ? rnd(rng) % 100000 : 9 * MIB;
	default:
		return rnd(rng) % 30000;
	}
}

static void
slot_begin(struct slot *s)
{
	uint64_t *rng = &s->w->rng;
	char name[32];
	struct store_key k;
	int r;

	s->note = (struct note){ .key = (uint32_t)(s->nr * KEYS_PER_SLOT + (int)(rnd(rng) % KEYS_PER_SLOT)),
				 .is_delete = rnd(rng) % 4 == 0,
				 .size = random_size(rng),
				 .seed = rnd(rng) };
	snprintf(name, sizeof name, "key-%u", s->note.key);
	k = key_of("b", name);
	tell(s, BEGIN, 0);
	s->at = 0;
	if (s->note.is_delete) {
		s->del.op.done = on_del_over;
		r = store_delete(s->w->l.p, &k, NULL, &s->del);
	} else {
		s->buf = bufpool_get(&s->w->l.bufs, BUF_LARGE);
		check(s->buf);
		r = store_put_init(s->w->l.p, &s->put, &k, s->note.size);
		if (r == 0) {
			slot_more(s);
			return;
		}
	}
	if (r < 0) {
		printf("begin: %d\n", r);
		_exit(4);
	}
}

static void
child(int pipe_fd, uint64_t seed, uint64_t end_after_ns)
{
	static struct worker w;

#ifdef CHILD_BEGINS
	CHILD_BEGINS;
#endif
	if (store_start(&conf, &st, err, sizeof err) < 0) {
		printf("child: %s\n", err);
		_exit(2);
	}
	w.pipe = pipe_fd;
	w.rng = seed;
	loop_start(&w.l, st);
	for (int i = 0; i < SLOTS; i++) {
		w.slot[i].w = &w;
		w.slot[i].nr = i;
		slot_begin(&w.slot[i]);
	}
	for (uint64_t until = clock_ns() + end_after_ns;;) {
		loop_turn(&w.l);
		child_turned(clock_ns() >= until, seed);
	}
}

/* ---- the parent ---- */

static uint64_t acknowledged;

static void
read_notes(int fd)
{
	struct note n;

	while (read(fd, &n, sizeof n) == sizeof n) {
		assert_true(n.key < KEYS);
		if (n.what == BEGIN) {
			model[n.key].in_flight = true;
			model[n.key].next = (struct state){ !n.is_delete, n.size, n.seed };
		} else {
			model[n.key].in_flight = false;
			acknowledged += n.result >= 0;
			if (n.result >= 0)
				model[n.key].now = model[n.key].next;
			else
				assert_true(n.result == -EAGAIN || n.result == -ENOSPC);
		}
	}
}

static bool
holds(const char *name, const struct state *s)
{
	int r = obj_check(&l, "b", name, s->size, s->seed);

	if (!s->exists)
		return r == -ENOENT;
	return r == 0;
}

static void
compare(void)
{
	for (uint32_t i = 0; i < KEYS; i++) {
		char name[32];

		snprintf(name, sizeof name, "key-%u", i);
		if (holds(name, &model[i].now)) {
			model[i].in_flight = false;
			continue;
		}
		if (model[i].in_flight && holds(name, &model[i].next)) {
			model[i].now = model[i].next;
			model[i].in_flight = false;
			continue;
		}
		fail_msg("%s: neither what was acknowledged (exists %d, %llu bytes) nor what was in flight",
			 name, model[i].now.exists, (unsigned long long)model[i].now.size);
	}
}

static void
verify(void)
{
	open_store();
	compare();
	close_store();
}

static void
one_round(uint64_t *rng, int longer_ms)
{
	uint64_t seed = rnd(rng), end_after_ns = 5 * NS_PER_MS + rnd(rng) % (200 * NS_PER_MS) +
						 (uint64_t)longer_ms * NS_PER_MS;
	uint64_t until = clock_ns() + end_after_ns;
	int fd[2], status;
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		close(fd[0]);
		child(fd[1], seed, end_after_ns);
	}
	close(fd[1]);
	if (child_ends_itself) {
		/* reads until the end of the pipe */
		read_notes(fd[0]);
	} else {
		/* Its notes are read while it runs: the pipe must not hold it up. */
		fcntl(fd[0], F_SETFL, O_NONBLOCK);
		while (clock_ns() < until) {
			read_notes(fd[0]);
			usleep(1000);
		}
		kill(pid, SIGKILL);
		fcntl(fd[0], F_SETFL, 0);
		read_notes(fd[0]);
	}
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	close(fd[0]);
	verify();
}

static void
test_history(void **state)
{
	const char *rounds = getenv("ROUNDS");
	uint64_t rng = seed_from_env();

	assert_int_equal(make_store(256 * MIB), 0);
	close_store();
	/* What a child that was killed had under way keeps its locks until a slow disk has done it. */
	conf.disks.lock_wait_ns = PATIENCE_NS;
	for (int i = 0; i < (rounds ? atoi(rounds) : 15); i++)
		one_round(&rng, 0);
	/* A busy machine or a slow disk may not get to anything in so short a time; then longer ones. */
	for (int i = 1; i < 100 && acknowledged == 0; i++)
		one_round(&rng, 10 * i);
	assert_int_equal(store_fsck(&conf, false, NULL, NULL), 0);
	remove_store(NULL);
	printf("%llu operations acknowledged\n", (unsigned long long)acknowledged);
	assert_true(acknowledged > 0);
}
