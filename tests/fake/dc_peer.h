/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer for the tests that use a device: another process (this program, executed again) with a DCT and a
 * window of shared memory, whose bytes the test sees.  It mints a token as a client would.
 */
#ifndef GANTRY_TESTS_DC_PEER_H
#define GANTRY_TESTS_DC_PEER_H

#include "token/token.h"

#include <sys/types.h>

struct peer {
	pid_t pid;
	int fd;
	unsigned char *mem; /* its window, mapped here too */
	size_t len;
	struct token tok;
};

/* 0, or -1 with a message on stderr. */
int peer_start(struct peer *p, size_t len, uint64_t dc_key);
/* 'd': deregister the window; 'm': register it again and mint anew.  Waits for the answer. */
int peer_ask(struct peer *p, char what);
/* Ends it, if it still lives, and unmaps the window. */
void peer_stop(struct peer *p);

/* When main() was executed as a peer: runs it and does not return. */
void peer_main(int argc, char **argv);

#endif
