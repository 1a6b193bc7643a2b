/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, random numbers, clock, trace, see sim.h and env.h. */
#include "tests/sim/sim.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <unistd.h>
#include <sys/types.h>
#include <time.h>

#undef log_write

/* What env.h redirects, and nobody else calls. */
void *sim_malloc(size_t len);
void *sim_calloc(size_t nr, size_t len);
int sim_posix_memalign(void **ret, size_t align, size_t len);
void *sim_realloc(void *p, size_t len);
void *sim_aligned_alloc(size_t align, size_t len);
char *sim_strdup(const char *s);
void sim_free(void *p);
void *sim_mmap(size_t len);
int sim_munmap(const void *p);
ssize_t sim_getrandom(void *buf, size_t len);
int sim_nanosleep(const struct timespec *ts);
int sim_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
_Noreturn void sim_check_failed(const char *expr, const char *file, int line, const char *func);
void sim_log_write(enum log_level level, const char *module, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

uint64_t sim_now_ns, trace_hash;
bool sim_verbose;
bool sim_rule_on[SIM_RULE_NR];

/* ---- random ---- */

static uint64_t state;

uint64_t
rng(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint32_t
below(uint32_t n)
{
	return (uint32_t)((rng() >> 32) * n >> 32);
}

bool
one_in(uint32_t n)
{
	return n && below(n) == 0;
}

void
trace(uint64_t what, uint64_t a, uint64_t b)
{
	trace_hash = (trace_hash ^ what) * 0x9e3779b97f4a7c15u;
	trace_hash = (trace_hash ^ trace_hash >> 29 ^ a) * 0xbf58476d1ce4e5b9u;
	trace_hash = (trace_hash ^ trace_hash >> 32 ^ b) * 0x94d049bb133111ebu;
}

ssize_t
sim_getrandom(void *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)rng();
	return (ssize_t)len;
}

/* Nobody runs beside the one: what would is done in its place. */
int
sim_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return EAGAIN;
}

/* ---- time ---- */

void
env_init(void)
{
	clock_fake(&sim_now_ns);
	for (int i = 0; i < SIM_RULE_NR; i++)
		sim_rule_on[i] = true;
}

void
env_begin(uint64_t seed)
{
	state = seed * 0xd6e8feb86659fd93u + 1;
	sim_now_ns = 1000 * NS_PER_S;
	trace_hash = seed;
}

int
sim_nanosleep(const struct timespec *ts)
{
	/* One that looks again and again does not make time pass. */
	if (co_is(CO_MOVER)) {
		co_poll(NULL);
		return 0;
	}
	counts.host_waits += ts->tv_sec != 0;
	co_yield ();
	sim_now_ns += (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec;
	return 0;
}

/* ---- words ---- */

void
say(const char *fmt, ...)
{
	va_list ap;

	if (!sim_verbose)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

void
sim_log_write(enum log_level level, const char *module, const char *fmt, ...)
{
	va_list ap;

	if (!sim_verbose)
		return;
	va_start(ap, fmt);
	printf("    %s: ", module);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

_Noreturn void
sim_check_failed(const char *expr, const char *file, int line, const char *func)
{
	sim_fail("check(%s) failed at %s:%d in %s()", expr, file, line, func);
}

/* ---- memory ---- */

struct mem_block {
	struct mem_block *next, *prev;
	void *base; /* as malloc() gave it */
	size_t len;
};
static struct mem_block blocks = { &blocks, &blocks, NULL, 0 };

/* is_zero: also a large block costs no more than its pages that are used, as those of calloc(). */
static void *
get_block(size_t align, size_t len, bool is_zero)
{
	size_t bytes = len + align + sizeof(struct mem_block);
	char *base = is_zero ? calloc(1, bytes) : malloc(bytes);
	struct mem_block *b;
	char *p;

	if (!base)
		return NULL;
	p = base + sizeof *b;
	p += (align - (uintptr_t)p % align) % align;
	b = (struct mem_block *)(void *)p - 1;
	b->base = base;
	b->len = len;
	b->next = blocks.next;
	b->prev = &blocks;
	b->next->prev = b->prev->next = b;
	return p;
}

void *
sim_aligned_alloc(size_t align, size_t len)
{
	return get_block(align, len, false);
}

void *
sim_malloc(size_t len)
{
	return sim_aligned_alloc(16, len);
}

int
sim_posix_memalign(void **ret, size_t align, size_t len)
{
	*ret = sim_aligned_alloc(align, len);
	return *ret ? 0 : ENOMEM;
}

void *
sim_calloc(size_t nr, size_t len)
{
	return get_block(16, nr * len, true);
}

char *
sim_strdup(const char *s)
{
	size_t len = strlen(s) + 1;
	char *p = sim_malloc(len);

	return p ? memcpy(p, s, len) : NULL;
}

void
sim_free(void *p)
{
	struct mem_block *b;

	if (!p)
		return;
	b = (struct mem_block *)p - 1;
	b->next->prev = b->prev;
	b->prev->next = b->next;
	free(b->base);
}

void *
sim_realloc(void *p, size_t len)
{
	void *q = sim_malloc(len);

	if (p && q)
		memcpy(q, p, ((struct mem_block *)p - 1)->len < len ? ((struct mem_block *)p - 1)->len : len);
	if (q)
		sim_free(p);
	return q;
}

/* Mappings are kept and given out again: a fault per page and life would be most of the time. */
#define MAPS_MAX 128
static struct {
	size_t len;
	void *base;
	bool used;
} maps[MAPS_MAX];

void *
sim_mmap(size_t len)
{
	int other = -1;

	for (int i = 0; i < MAPS_MAX; i++) {
		if (maps[i].used)
			continue;
		if (maps[i].base && maps[i].len == len) {
			maps[i].used = true;
			return maps[i].base;
		}
		if (other < 0 || !maps[i].base)
			other = i;
	}
	if (other < 0)
		return (void *)-1;
	free(maps[other].base);
	maps[other].base = aligned_alloc(64u << 10, (len + 0xffff) & ~(size_t)0xffff);
	maps[other].len = len;
	maps[other].used = maps[other].base != NULL;
	return maps[other].base ? maps[other].base : (void *)-1;
}

/* Takes a mapping back by its first byte; what is cut off behind one stays with it. */
int
sim_munmap(const void *p)
{
	for (int i = 0; i < MAPS_MAX; i++) {
		if (maps[i].used && maps[i].base == p)
			maps[i].used = false;
	}
	return 0;
}

void
env_drop_memory(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	char what[64];
	ssize_t n;

	/* Of mailboxes. */
	check(d);
	while ((e = readdir(d))) {
		n = readlinkat(dirfd(d), e->d_name, what, sizeof what - 1);
		what[n < 0 ? 0 : n] = 0;
		if (!strcmp(what, "anon_inode:[eventfd]"))
			close(atoi(e->d_name));
	}
	closedir(d);
	while (blocks.next != &blocks)
		sim_free(blocks.next + 1);
	for (int i = 0; i < MAPS_MAX; i++)
		maps[i].used = false;
}
