/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who goes next, see sim.h.  Start, helper and clients are coroutines on stacks of their own; a port's loop
 * runs on the scheduler's stack, as its callbacks never wait.  A step is one of: an operation of the disk
 * ends, a late write lands, a coroutine goes on, a port turns its loop, time passes.
 */
#include "tests/sim/sim.h"

#include "base/check.h"
#include "base/list.h"
#include "ring/ring.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define CO_FIRST_CLIENT (1 + DISKS_MAX)
#define CO_THE_MOVER (CO_FIRST_CLIENT + CLIENTS_MAX)
#define CO_NR (CO_THE_MOVER + 1)
#define STACK_BYTES (256u << 10)
#define STALL_MAX 2000u /* steps */

struct co {
	ucontext_t ctx;
	jmp_buf jmp;
	void *stack;
	void (*fn)(int nr);
	enum co_kind kind;
	int nr;
	bool live, begun;
	const bool *flag;  /* waits for it; NULL: nothing */
	bool or_time;      /* or until until_ns, whichever comes first */
	struct ring *ring; /* waits for something on it */
	bool polls;        /* looks whether something has come, on that ring or elsewhere */
	int port;          /* must not be in the middle of another's call; -1: any */
	uint64_t until_ns;
};

static struct co all_cos[CO_NR];
static ucontext_t main_ctx;
static jmp_buf main_jmp;
struct co *co_now;
struct sim_port ports[PORTS_MAX];

/* ---- coroutines ---- */

/* After the first time without the system calls of swapcontext(); sanitizers want to see those. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAST_SWITCH 0
#else
#define FAST_SWITCH 1
#endif

static void
to_main(void)
{
	struct co *c = co_now;

	co_now = NULL;
	if (!FAST_SWITCH)
		swapcontext(&c->ctx, &main_ctx);
	else if (_setjmp(c->jmp) == 0)
		_longjmp(main_jmp, 1);
}

static void
co_main(void)
{
	for (;;) {
		struct co *c = co_now;

		c->fn(c->nr);
		c->live = false;
		to_main();
	}
}

static void
co_run(struct co *c)
{
	c->flag = NULL;
	c->ring = NULL;
	c->polls = false;
	c->or_time = false;
	c->until_ns = 0;
	co_now = c;
	if (!FAST_SWITCH) {
		swapcontext(&main_ctx, &c->ctx);
	} else if (_setjmp(main_jmp) == 0) {
		if (c->begun)
			_longjmp(c->jmp, 1);
		c->begun = true;
		setcontext(&c->ctx);
	}
}

static struct co *
co_of(enum co_kind kind, int nr)
{
	return &all_cos[kind == CO_CLIENT  ? CO_FIRST_CLIENT + nr
			: kind == CO_MOVER ? CO_THE_MOVER
					   : (int)kind + nr];
}

void
co_start(enum co_kind kind, int nr, void (*fn)(int nr))
{
	struct co *c = co_of(kind, nr);

	check(!c->live);
	if (!c->stack)
		check(c->stack = malloc(STACK_BYTES));
	getcontext(&c->ctx);
	c->ctx.uc_stack.ss_sp = c->stack;
	c->ctx.uc_stack.ss_size = STACK_BYTES;
	c->ctx.uc_link = NULL;
	makecontext(&c->ctx, co_main, 0);
	c->fn = fn;
	c->kind = kind;
	c->nr = nr;
	c->live = true;
	c->begun = false;
	c->flag = NULL;
	c->ring = NULL;
	c->polls = false;
	c->port = -1;
	c->or_time = false;
	c->until_ns = 0;
}

bool
co_runs(enum co_kind kind, int nr)
{
	return co_of(kind, nr)->live;
}

void co_yield (void)
{
	to_main();
}

void
co_wait(const bool *flag, int port)
{
	co_now->flag = flag;
	co_now->port = port;
	to_main();
}

void
co_until(uint64_t wait_ns)
{
	co_now->until_ns = sim_now_ns + wait_ns;
	co_now->or_time = true;
}

void
co_wait_ring(struct ring *r)
{
	co_now->ring = r;
	to_main();
}

void
co_poll(struct ring *r)
{
	co_now->ring = r;
	co_now->polls = true;
	to_main();
}

bool
co_is(enum co_kind kind)
{
	return co_now && co_now->kind == kind;
}

static bool
co_ready(const struct co *c)
{
	if (!c->live)
		return false;
	if (c->polls)
		return true;
	if (c->ring)
		return ring_has_done(c->ring) || (c->or_time && c->until_ns <= sim_now_ns);
	if (c->or_time)
		return *c->flag || c->until_ns <= sim_now_ns;
	if (c->flag && !*c->flag)
		return false;
	if (c->until_ns && c->until_ns > sim_now_ns)
		return false;
	return c->port < 0 || ports[c->port].busy == 0 || ports[c->port].busy == c->nr + 1;
}

/* ---- the helper, in place of extent/disk/helper.c ---- */

static struct {
	struct helper *helper;
	bool bell;
} helpers[DISKS_MAX];

static void
helper_main(int nr)
{
	struct helper *h = helpers[nr].helper;
	bool *bell = &helpers[nr].bell;
	uint64_t wait_ns = 0;
	struct ring *r;

	check(ring_new(&(struct ring_params){ .entries = 64 }, &r) == 0);
	while (!atomic_load(&h->stop)) {
		if (wait_ns == UINT64_MAX) {
			co_wait(bell, -1);
		} else if (wait_ns && !*bell) {
			co_now->until_ns = sim_now_ns + wait_ns;
			co_now->or_time = true;
			co_wait(bell, -1);
		}
		*bell = false;
		if (!atomic_load(&h->stop))
			wait_ns = h->work(h, r);
	}
	ring_free(r);
}

static int
number_of(const struct helper *h)
{
	int i = 0;

	while (i < DISKS_MAX && helpers[i].helper != h)
		i++;
	return i;
}

/* Of a set: the first one's. */
struct vol *
sim_vol(void)
{
	return helpers[0].helper ? container_of(helpers[0].helper, struct vol, helper) : NULL;
}

void
helper_init(struct helper *h, struct disk *d, helper_work_fn work)
{
	*h = (struct helper){ .disk = d, .work = work };
}

void
helper_fini(struct helper *h)
{
}

int
helper_start(struct helper *h)
{
	int nr = number_of(NULL);

	check(nr < DISKS_MAX);
	helpers[nr].helper = h;
	helpers[nr].bell = true;
	h->runs = true;
	co_start(CO_HELPER, nr, helper_main);
	return 0;
}

void
helper_stop(struct helper *h)
{
	int nr = number_of(h);

	if (!h->runs)
		return;
	atomic_store(&h->stop, true);
	while (co_of(CO_HELPER, nr)->live) {
		helper_ring(h);
		co_yield ();
	}
	h->runs = false;
}

void
helper_ring(struct helper *h)
{
	int nr = number_of(h);

	/* One that was never started has nothing to hear. */
	if (nr == DISKS_MAX)
		return;
	helpers[nr].bell = true;
	co_of(CO_HELPER, nr)->until_ns = 0;
}

/* ---- ports ---- */

static void
port_turn(struct sim_port *sp)
{
	if (sp->asleep)
		store_turn(sp->p, TURN_WAKES);
	sp->asleep = false;
	mailbox_run(&sp->mb, 0);
	timers_run(&sp->timers, sim_now_ns);
	store_turn(sp->p, TURN_QUIESCENT);
	ring_turn(sp->ring, 0);
	if (one_in(4)) {
		store_turn(sp->p, TURN_SLEEPS);
		sp->asleep = true;
	}
}

/* Between two requests of a port, without a quiescent point: only the ends of the log's write and of the flush. Returns false if
 * none has come. */
static bool
port_first(struct sim_port *sp)
{
	if (sp->asleep)
		store_turn(sp->p, TURN_WAKES);
	sp->asleep = false;
	return ring_first(sp->ring) > 0;
}

static bool
mail_waits(struct sim_port *sp)
{
	return sp->mb.head != &sp->mb.anchor || atomic_load(&sp->mb.tail) != &sp->mb.anchor;
}

static uint64_t step_nr;

static uint32_t
port_weight(struct sim_port *sp)
{
	if (!sp->there || sp->busy || sp->stands_until > step_nr)
		return 0;
	if (ring_has_done(sp->ring) || mail_waits(sp) || timers_next(&sp->timers) <= sim_now_ns)
		return 24;
	return 2;
}

static uint32_t
co_weight(int i)
{
	const struct co *c = &all_cos[i];

	if (!co_ready(c))
		return 0;
	if (i >= CO_HELPER && i < CO_FIRST_CLIENT)
		return prof.helper_weight;
	return c->polls && !(c->ring && ring_has_done(c->ring)) ? 4 : 24;
}

/* ---- time ---- */

static uint64_t
next_timer(void)
{
	uint64_t next = UINT64_MAX;

	for (int i = 0; i < PORTS_MAX; i++) {
		uint64_t t = ports[i].there ? timers_next(&ports[i].timers) : UINT64_MAX;

		next = t < next ? t : next;
	}
	for (int i = 0; i < CO_NR; i++) {
		if (all_cos[i].live && all_cos[i].until_ns && all_cos[i].until_ns < next)
			next = all_cos[i].until_ns;
	}
	return next;
}

static void
pass_time(void)
{
	uint64_t next = next_timer();

	if (next != UINT64_MAX && next > sim_now_ns && one_in(2))
		sim_now_ns = next;
	else
		sim_now_ns += below(3000000);
}

/* ---- a step, by a schedule ---- */

struct schedule sim_schedule;

/* Who may have a turn: coroutines, ports, disks, time. */
#define TURN_PORT CO_NR
#define TURN_DISK (TURN_PORT + PORTS_MAX)
#define TURN_TIME (TURN_DISK + DISKS_MAX)
#define TURN_NR (TURN_TIME + 1)
#define HELD_MAX 3000 /* decisions */

/* 0: he cannot do anything; 1: he looks whether something has come; 2: there is something for him to do. */
static int
can(int turn)
{
	if (turn < TURN_PORT)
		return !co_ready(&all_cos[turn]) ? 0 : co_weight(turn) == 4 && all_cos[turn].polls ? 1 : 2;
	if (turn < TURN_DISK)
		return (int)(port_weight(&ports[turn - TURN_PORT]) + 22) / 23;
	if (turn < TURN_TIME)
		return 2 * simdisk_is_busy(turn - TURN_DISK);
	return 1;
}

static bool
others_can(int but)
{
	bool some = false;

	for (int i = 0; i < TURN_TIME && !some; i++)
		some = i != but && can(i) == 2;
	return some;
}

static int
next_turn(struct schedule *s)
{
	int turn = s->last;

	do
		turn = (turn + 1) % TURN_NR;
	while (can(turn) == 0 || turn == s->held);
	return turn;
}

/* A little, while others have something to do; else so much that somebody has. */
static void
let_time_pass(bool some)
{
	uint64_t next = next_timer();

	if (some)
		sim_now_ns += 20000;
	else if (next != UINT64_MAX && next > sim_now_ns)
		sim_now_ns = next;
	else
		sim_now_ns += NS_PER_MS;
}

static bool
step_by_schedule(struct schedule *s)
{
	int turn;

	if (s->held >= 0 && (s->decisions >= s->until || !others_can(s->held)))
		s->held = -1;
	turn = next_turn(s);
	if ((int64_t)s->decisions++ == s->hold_at && can(turn) == 2) {
		s->was_held = true;
		s->held = turn;
		s->until = s->decisions + HELD_MAX;
		turn = next_turn(s);
	}
	s->last = turn;
	if (turn < TURN_PORT)
		co_run(&all_cos[turn]);
	else if (turn < TURN_DISK)
		port_turn(&ports[turn - TURN_PORT]);
	else if (turn < TURN_TIME)
		simdisk_complete_first(turn - TURN_DISK);
	else if (simdisk_late())
		simdisk_land_late(0);
	else if (others_can(-1) || next_timer() != UINT64_MAX || co_runs(CO_MOVER, 0))
		let_time_pass(others_can(-1));
	else
		return false;
	return true;
}

/* ---- a step ---- */

bool
sched_step(void)
{
	uint32_t w_disk = simdisk_weight(), w_late = simdisk_late(), w_port[PORTS_MAX], w_co[CO_NR];
	uint32_t all = w_disk + w_late, at;

	if (sim_schedule.is_on)
		return step_by_schedule(&sim_schedule);
	step_nr++;
	if (one_in(prof.stall))
		ports[below((uint32_t)prof.ports)].stands_until = step_nr + below(STALL_MAX);
	for (int i = 0; i < PORTS_MAX; i++)
		all += w_port[i] = port_weight(&ports[i]);
	for (int i = 0; i < CO_NR; i++)
		all += w_co[i] = co_weight(i);
	if (all == 0 && next_timer() == UINT64_MAX)
		return false;
	all += prof.time_weight;
	at = below(all);
	if (at < w_disk) {
		simdisk_complete(at);
		return true;
	}
	at -= w_disk;
	if (at < w_late) {
		simdisk_land_late(at);
		return true;
	}
	at -= w_late;
	for (int i = 0; i < PORTS_MAX; at -= w_port[i++]) {
		if (at < w_port[i]) {
			if (!ring_has_done(ports[i].ring) || !one_in(4) || !port_first(&ports[i]))
				port_turn(&ports[i]);
			return true;
		}
	}
	for (int i = 0; i < CO_NR; at -= w_co[i++]) {
		if (at < w_co[i]) {
			co_run(&all_cos[i]);
			return true;
		}
	}
	pass_time();
	return true;
}

void
sched_drop(void)
{
	for (int i = 0; i < CO_NR; i++)
		all_cos[i].live = false;
	for (int i = 0; i < PORTS_MAX; i++) {
		if (ports[i].there)
			mailbox_fini(&ports[i].mb);
		ports[i] = (struct sim_port){ 0 };
	}
	memset(helpers, 0, sizeof helpers);
	co_now = NULL;
}
