/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that take turns: a program of several threads runs in one, and a seed says who goes next, so that it can be replayed.
 *
 * Linked into a program this replaces pthread_create(), pthread_join(), pthread_cond_wait(), pthread_cond_timedwait(), poll(), nanosleep(),
 * clock_gettime(), getrandom() and the ring (ring_new(), ring_turn(), ring_free(), for loops that need nothing else of it).  A thread goes
 * on until it waits in one of them; then something of what is in flight ends (turns_step), time passes, and some thread goes on.  So who waits for a
 * condition looks again and again, and mutexes are never held by two.
 *
 * LINK-module/test_x := turns.
 */
#ifndef TESTS_FAKE_TURNS_H
#define TESTS_FAKE_TURNS_H

#include <stdbool.h>
#include <stdint.h>

/* Begins with that seed and a clock at 1000 s; the caller is the only thread, what others there were is dropped. */
void turns_begin(uint64_t seed);
/* Returns a random number of that seed. */
uint64_t turns_random(void);
/* Returns one below nr. */
uint32_t turns_below(uint32_t nr);
/* Stops a thread for up to 200 turns of others, at one turn of that many, as a kernel may; 0, as after turns_begin(): none is stopped. */
void turns_stall(uint32_t odds);
/* Stops about half of the threads, but not this one, for so many turns of the others. */
void turns_stall_others(uint32_t turns);
/* Lets others go on. */
void turns_yield(void);
/* Starts a thread. */
void turns_go(void (*fn)(void *arg), void *arg);
/* Waits until every thread has ended that turns_go() started. */
void turns_wait(void);
/* Lets others go on until so much time has passed. */
void turns_sleep(uint64_t ns);
/* Returns the seed that the environment gives (SEED=), else a fixed one, so that each run of the suite does the same; prints it. */
uint64_t turns_seed(void);

/* Ends one of the operations in flight; false: there is none that can end now.  NULL: nothing is ever in flight. */
extern bool (*turns_step)(void);

#endif
