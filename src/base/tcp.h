/* SPDX-License-Identifier: Apache-2.0 */
/* tcp - data that the kernel has about a TCP connection. Any thread may call these functions. */
#ifndef GANTRY_BASE_TCP_H
#define GANTRY_BASE_TCP_H

#include <stdint.h>

struct tcp_came {
	/* number of bytes received from the peer since the connection was established; the FIN of the peer
	 * counts as one byte */
	uint64_t bytes;
	uint64_t last_ns; /* time in ns since the last byte arrived */
};

/* Gets the amount of data that has arrived on a connection, whether or not it was read. Returns 0; -errno:
 * the socket is not a TCP socket, or the kernel is older than 4.2. */
int tcp_came(int fd, struct tcp_came *ret_came);

#endif
