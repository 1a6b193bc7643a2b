/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel knows of a TCP connection.  Any thread. */
#ifndef GANTRY_BASE_TCP_H
#define GANTRY_BASE_TCP_H

#include <stdint.h>

struct tcp_came {
	uint64_t bytes; /* that the other side has sent since the connection stands; its FIN counts as one */
	uint64_t last_ns; /* how long ago the last of them came */
};

/* Asks what came on a connection, whoever has read it.  0, or -errno: no TCP socket, or a kernel older than
 * 4.2. */
int tcp_came(int fd, struct tcp_came *ret_came);

#endif
