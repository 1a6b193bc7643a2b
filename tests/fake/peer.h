/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer for the tests that use a device: another process (this program, executed again) with a window of shared memory,
 * whose bytes the test sees, and a DCT, for which it mints a token as a client would, or some queue pairs of RC.
 */
#ifndef GANTRY_TESTS_PEER_H
#define GANTRY_TESTS_PEER_H

#include "token/token.h"

#include <sys/types.h>

#define PEER_QPS 8

/* One queue pair of the peer, and what it is connected to. */
struct peer_qp {
	uint32_t qpn, psn;
	uint32_t their_qpn, their_psn;
	uint8_t their_gid[16];
	int mtu, reads;
};

struct peer {
	pid_t pid;
	int fd;
	unsigned char *mem; /* its window, mapped here too */
	size_t len;
	struct token tok; /* RC: GID, address, size and rkey alone */
	struct peer_qp qp[PEER_QPS];
};

/* Starts a peer with a DCT; dc_key 0: with queue pairs of RC, in INIT.  Returns 0, or -1 with a message on stderr. */
int peer_start(struct peer *p, size_t len, uint64_t dc_key);
/* 'd': deregister the window; 'm': register it again and mint anew; of queue pair nr: 'c': connect it by what p->qp has of it;
 * 'x': destroy it; 'n': make it again, in INIT.  Waits for the answer. */
int peer_ask(struct peer *p, char what, int nr);
/* Ends it, if it still lives, and unmaps the window. */
void peer_stop(struct peer *p);

/* When main() was executed as a peer: runs it and does not return. */
void peer_main(int argc, char **argv);

#endif
