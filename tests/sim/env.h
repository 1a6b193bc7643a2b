/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forced in front of every file of src/store and src/extent in the simulation's objects: memory that a cut
 * takes away whole, random bytes and sleeping from the simulation, no log, and a failed check() is a failed
 * history.
 */
#ifndef GANTRY_TESTS_SIM_ENV_H
#define GANTRY_TESTS_SIM_ENV_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

void *sim_malloc(size_t len);
void *sim_calloc(size_t nr, size_t len);
void *sim_realloc(void *p, size_t len);
void *sim_aligned_alloc(size_t align, size_t len);
int sim_posix_memalign(void **ret, size_t align, size_t len);
char *sim_strdup(const char *s);
void sim_free(void *p);
void *sim_mmap(size_t len);
int sim_munmap(const void *p);
ssize_t sim_getrandom(void *buf, size_t len);
int sim_nanosleep(const struct timespec *ts);

static inline int
sim_nothing(const void *p)
{
	return 0;
}

#define malloc(len) sim_malloc(len)
#define calloc(nr, len) sim_calloc(nr, len)
#define realloc(p, len) sim_realloc(p, len)
#define aligned_alloc(align, len) sim_aligned_alloc(align, len)
#define strdup(s) sim_strdup(s)
#define posix_memalign(ret, align, len) sim_posix_memalign(ret, align, len)
#define free(p) sim_free(p)
#define mmap(addr, len, prot, flags, fd, off) sim_mmap(len)
#define munmap(p, len) sim_munmap(p)
#define madvise(p, len, advice) sim_nothing(p)
#define getrandom(buf, len, flags) sim_getrandom(buf, len)
#define nanosleep(ts, left) sim_nanosleep(ts)
#define log_write sim_log_write
#define check_failed sim_check_failed

#define LOOK_ROUND_NS (20 * NS_PER_MS)
#define LOOK_NS (10 * NS_PER_MS)
#define MEND_AGAIN_NS (50 * NS_PER_MS)
#define VERIFY_BYTES ((size_t)32 << 10)
#define ARENA_BYTES_MIN ((uint64_t)512 << 10)
#define ZERO_BYTES ((size_t)64 << 10)
#define MOVE_SENDS 3
#define MOVE_SLOTS 12

#endif
