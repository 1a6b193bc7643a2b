/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of RC connections for the tests that use a device: another process (this program, executed again) with some
 * queue pairs and a window of shared memory, whose bytes the test sees.  See dc_peer.h.
 */
#ifndef GANTRY_TESTS_RC_PEER_H
#define GANTRY_TESTS_RC_PEER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RC_PEER_QPS 8

/* One queue pair of the peer, and what it is connected to. */
struct rc_peer_qp {
	uint32_t qpn, psn;
	uint32_t their_qpn, their_psn;
	uint8_t their_gid[16];
	int mtu, reads;
};

struct rc_peer_info {
	struct rc_peer_qp qp[RC_PEER_QPS];
	uint8_t gid[16];
	uint64_t addr;
	uint32_t rkey;
};

struct rc_client {
	pid_t pid;
	int fd;
	unsigned char *mem; /* its window, mapped here too */
	size_t len;
	struct rc_peer_info info;
};

/* Starts a peer whose queue pairs are in INIT.  Returns 0, or -1 with a message on stderr. */
int rc_peer_start(struct rc_client *p, size_t len);
/* 'c': connects queue pair nr by what p->info has of it; 'x': destroys it; 'n': makes it again, in INIT; 'd': deregisters the
 * window; 'm': registers it again.  Waits for the answer. */
int rc_peer_ask(struct rc_client *p, char what, int nr);
/* Ends it, if it still lives, and unmaps the window. */
void rc_peer_stop(struct rc_client *p);

/* When main() was executed as a peer: runs it and does not return. */
void rc_peer_main(int argc, char **argv);

#endif
