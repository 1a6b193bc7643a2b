/* SPDX-License-Identifier: Apache-2.0 */
/* Data of the kernel about a TCP connection. Any thread. */
#ifndef GANTRY_BASE_TCP_H
#define GANTRY_BASE_TCP_H

#include <stdint.h>

struct tcp_came {
	/* bytes received from the peer since the connection was established; its FIN counts as one */
	uint64_t bytes;
	uint64_t last_ns; /* time since the last of them arrived, in ns */
};

/* Returns what arrived on a connection, read or not. 0, or -errno: no TCP socket, or a kernel older than
 * 4.2. */
int tcp_came(int fd, struct tcp_came *ret_came);

#endif
