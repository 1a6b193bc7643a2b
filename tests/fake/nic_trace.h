/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace of the software NIC (softnicctl(8)), for tests that bytes do not arrive later. Bytes move only during
 * a work request that is recorded, and whose record is not DONE (`firmware ghost=` is an exception). So no test has
 * to sleep: if no record is unfinished, the memory does not change any more. Not for tests of the software NIC
 * itself, which makes the records. PORTCTL is softnicctl.
 */
#ifndef GANTRY_TESTS_NIC_TRACE_H
#define GANTRY_TESTS_NIC_TRACE_H

#include "softnic/trace.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NIC_TRACE_RECORDS 4096
#define NIC_TRACE_BYTES (sizeof(struct trace_file) + NIC_TRACE_RECORDS * sizeof(struct trace_rec))

struct nic_trace {
	char path[256];
	const struct trace_file *file;
};

static inline void
nic_trace_must(bool is_good, const char *what)
{
	if (is_good)
		return;
	fprintf(stderr, "nic_trace: %s\n", what);
	abort();
}

static inline void
nic_trace_ctl(const char *words)
{
	char cmd[768];

	snprintf(cmd, sizeof cmd, "%s trace %s", getenv("PORTCTL"), words);
	nic_trace_must(system(cmd) == 0, cmd);
}

/* Begins a trace of the work requests that begin from now on. */
static inline void
nic_trace_on(struct nic_trace *t)
{
	char words[384];
	void *mem;
	int fd;

	snprintf(t->path, sizeof t->path, "%s/trace.%d", getenv("SOFTNIC_DIR"), getpid());
	snprintf(words, sizeof words, "on %s %d", t->path, NIC_TRACE_RECORDS);
	nic_trace_ctl(words);
	fd = open(t->path, O_RDONLY | O_CLOEXEC);
	mem = fd < 0 ? MAP_FAILED : mmap(NULL, NIC_TRACE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	nic_trace_must(mem != MAP_FAILED, t->path);
	t->file = mem;
	close(fd);
}

/* Returns how many work requests have ended (is_over), or how many can still move bytes. */
static inline int
nic_trace_count(const struct nic_trace *t, bool is_over)
{
	uint64_t all = atomic_load(&t->file->next);
	int nr = 0;

	nic_trace_must(all <= NIC_TRACE_RECORDS, "the trace is full");
	for (uint64_t i = 0; i < all; i++)
		nr += (atomic_load(&t->file->rec[i].state) == TRACE_DONE) == is_over;
	return nr;
}

static inline void
nic_trace_off(struct nic_trace *t)
{
	nic_trace_ctl("off");
	munmap((void *)(uintptr_t)t->file, NIC_TRACE_BYTES);
	unlink(t->path);
}

#endif
