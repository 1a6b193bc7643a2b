/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of the server's interface share: a client, which is a process with a window of WINDOW bytes, of which the
 * server is told the token.
 */
#ifndef GANTRY_TESTS_CUOBJECT_PEER_HPP
#define GANTRY_TESTS_CUOBJECT_PEER_HPP

#include "cuobjclient.h"
#include "cuobjserver.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define must(x) ((x) ? (void)0 : failed(#x, __FILE__, __LINE__))
#define WINDOW (static_cast<size_t>(8) << 20)

static inline void
failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	exit(1);
}

static inline void
passed(const char *name)
{
	printf("ok    %s\n", name);
	fflush(stdout);
}

/* ---- the client ---- */

struct client {
	pid_t pid;
	unsigned char *memory; /* shared with it: what its window holds */
	std::string token;
	uint64_t start;
};

/* A process that registers a window, and then waits to be killed. */
static inline struct client
client_new()
{
	struct client c = { 0, nullptr, "", 0 };
	char token[100] = "";
	int fd[2];

	c.memory = static_cast<unsigned char *>(
		mmap(nullptr, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	must(c.memory != MAP_FAILED && pipe(fd) == 0);
	c.pid = fork();
	must(c.pid >= 0);
	if (c.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CUObjOps_t ops = {};
		cuObjClient client(ops);
		char *text = nullptr;

		must(client.isConnected() &&
		     client.cuMemObjGetDescriptor(c.memory, WINDOW) == CU_OBJ_SUCCESS);
		must(client.cuMemObjGetRDMAToken(c.memory, WINDOW, 0, CUOBJ_GET, &text) == CU_OBJ_SUCCESS);
		must(write(fd[1], text, strlen(text)) == 81);
		for (;;)
			pause();
	}
	close(fd[1]);
	must(read(fd[0], token, sizeof token - 1) == 81);
	close(fd[0]);
	c.token = token;
	/* Fact 13: programs take the window's start from the token's first field. */
	c.start = strtoull(token, nullptr, 16);
	must(c.start == reinterpret_cast<uint64_t>(c.memory));
	return c;
}

static inline void
client_end(struct client *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, nullptr, 0);
	munmap(c->memory, WINDOW);
}

static inline void
fill(void *p, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		static_cast<unsigned char *>(p)[i] = static_cast<unsigned char>((i + seed) * 17 + i / 239);
}

#endif
