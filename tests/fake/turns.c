/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that take turns, see turns.h. */
#include "tests/fake/turns.h"

#include "base/check.h"
#include "base/clock.h"
#include "ring/ring.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <ucontext.h>

#ifdef __SANITIZE_THREAD__
void *__tsan_create_fiber(unsigned flags);
void *__tsan_get_current_fiber(void);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#endif

#define THREADS_MAX 64
#define STACK_BYTES (1u << 20)
#define STALL_MAX 200 /* turns */

/* After the first time threads switch without the system calls of swapcontext(); sanitizers need to see swapcontext(). */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAST_SWITCH 0
#else
#define FAST_SWITCH 1
#endif

struct thread {
	ucontext_t ctx;
	jmp_buf jmp;
	bool has_begun;
	void *stack;
	void *(*main)(void *arg);
	void (*fn)(void *arg); /* of turns_go(); NULL: main */
	void *arg;
	bool is_live;
	bool is_kept; /* its place: pthread_join() has not returned */
	void *fiber;
};

/* The first is the program's own. */
static struct thread threads[THREADS_MAX];
static int now;
static uint64_t state, clock_now_ns;
static uint32_t stall_odds, stall_left;
static uint64_t stalled; /* bitmap of threads */
bool (*turns_step)(void);

struct ring {
	int nothing;
};

/* ---- random numbers ---- */

uint64_t
turns_random(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint32_t
turns_below(uint32_t nr)
{
	return (uint32_t)((turns_random() >> 32) * nr >> 32);
}

uint64_t
turns_seed(void)
{
	const char *s = getenv("SEED");
	uint64_t seed = s ? strtoull(s, NULL, 0) : 41;

	printf("SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

/* ---- turns ---- */

void
turns_begin(uint64_t seed)
{
	for (int i = 1; i < THREADS_MAX; i++)
		threads[i].is_live = threads[i].is_kept = false;
	now = 0;
	threads[0].is_live = threads[0].has_begun = true;
	state = seed * 0xd6e8feb86659fd93u + 1;
	clock_now_ns = 1000 * NS_PER_S;
	stall_odds = stall_left = 0;
}

void
turns_stall(uint32_t odds)
{
	stall_odds = odds;
	stall_left = 0;
}

void
turns_stall_others(uint32_t turns)
{
	stalled = turns_random() & ~((uint64_t)1 << now);
	stall_left = turns;
}

static void
switch_to(int next)
{
	int before = now;

	if (next == now)
		return;
	now = next;
#ifdef __SANITIZE_THREAD__
	threads[before].fiber = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(threads[next].fiber, 0);
#endif
	if (!FAST_SWITCH) {
		swapcontext(&threads[before].ctx, &threads[next].ctx);
	} else if (_setjmp(threads[before].jmp) == 0) {
		if (threads[next].has_begun)
			_longjmp(threads[next].jmp, 1);
		threads[next].has_begun = true;
		setcontext(&threads[next].ctx);
	}
}

static int
pick(void)
{
	int live[THREADS_MAX];
	uint32_t nr = 0;

	for (int i = 0; i < THREADS_MAX; i++) {
		if (threads[i].is_live)
			live[nr++] = i;
	}
	check(nr);
	if (stall_odds && !stall_left && turns_below(stall_odds) == 0) {
		stalled = (uint64_t)1 << live[turns_below(nr)];
		stall_left = turns_below(STALL_MAX);
	}
	stall_left -= stall_left > 0;
	for (uint32_t i = nr; stall_left && i-- > 0;) {
		if (stalled >> live[i] & 1 && nr > 1)
			live[i] = live[--nr];
	}
	return live[turns_below(nr)];
}

void
turns_yield(void)
{
	bool is_idle = true;

	for (uint32_t i = turns_below(3); turns_step && i; i--)
		is_idle &= !turns_step();
	clock_now_ns += turns_below(is_idle ? NS_PER_MS : 20000);
	switch_to(pick());
}

void
turns_sleep(uint64_t ns)
{
	uint64_t until = clock_now_ns + ns;

	while (clock_now_ns < until)
		turns_yield();
}

static void
thread_main(void)
{
	struct thread *t = &threads[now];

	if (t->fn)
		t->fn(t->arg);
	else
		t->main(t->arg);
	t->is_live = false;
	for (;;)
		switch_to(pick());
}

static int
new_thread(void)
{
	struct thread *t;
	int i = 1;

	while (i < THREADS_MAX && (threads[i].is_live || threads[i].is_kept))
		i++;
	check(i < THREADS_MAX);
	t = &threads[i];
	if (!t->stack)
		t->stack = malloc(STACK_BYTES);
	check(t->stack);
	getcontext(&t->ctx);
	t->ctx.uc_stack.ss_sp = t->stack;
	t->ctx.uc_stack.ss_size = STACK_BYTES;
	t->ctx.uc_link = NULL;
	makecontext(&t->ctx, thread_main, 0);
#ifdef __SANITIZE_THREAD__
	t->fiber = __tsan_create_fiber(0);
#endif
	t->is_live = true;
	t->has_begun = false;
	return i;
}

void
turns_go(void (*fn)(void *arg), void *arg)
{
	struct thread *t = &threads[new_thread()];

	t->fn = fn;
	t->arg = arg;
}

void
turns_wait(void)
{
	for (int i = 1; i < THREADS_MAX; i++) {
		while (threads[i].is_live && threads[i].fn)
			turns_yield();
	}
}

/* ---- what waits ---- */

int
pthread_create(pthread_t *ret_thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	int i = new_thread();

	threads[i].fn = NULL;
	threads[i].main = fn;
	threads[i].is_kept = true;
	threads[i].arg = arg;
	*ret_thread = (pthread_t)i;
	return 0;
}

int
pthread_join(pthread_t thread, void **ret)
{
	while (threads[(int)thread].is_live)
		turns_yield();
	threads[(int)thread].is_kept = false;
	return 0;
}

int
pthread_setname_np(pthread_t thread, const char *name)
{
	return 0;
}

int
pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	pthread_mutex_unlock(mutex);
	turns_yield();
	return pthread_mutex_lock(mutex);
}

int
pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	uint64_t ns = (uint64_t)until->tv_sec * NS_PER_S + (uint64_t)until->tv_nsec;

	pthread_cond_wait(cond, mutex);
	return clock_now_ns < ns ? 0 : ETIMEDOUT;
}

int
poll(struct pollfd *fds, nfds_t nr, int ms)
{
	turns_yield();
	return 0;
}

int
clock_gettime(clockid_t id, struct timespec *ret_ts)
{
	*ret_ts = (struct timespec){ (time_t)(clock_now_ns / NS_PER_S), (long)(clock_now_ns % NS_PER_S) };
	return 0;
}

int
nanosleep(const struct timespec *ts, struct timespec *left)
{
	turns_sleep((uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec);
	return 0;
}

ssize_t
getrandom(void *buf, size_t len, unsigned flags)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)turns_random();
	return (ssize_t)len;
}

int
ring_new(const struct ring_params *params, struct ring **ret_ring)
{
	*ret_ring = calloc(1, sizeof **ret_ring);
	return *ret_ring ? 0 : -ENOMEM;
}

void
ring_free(struct ring *r)
{
	free(r);
}

int
ring_turn(struct ring *r, uint64_t wait_ns)
{
	turns_yield();
	return 0;
}
