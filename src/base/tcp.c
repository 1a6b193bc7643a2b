/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the kernel about a TCP connection, see tcp.h. */
#include "base/tcp.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

int
tcp_came(int fd, struct tcp_came *ret_came)
{
	struct tcp_info info;
	/* No more than is looked at: the kernel copies what is asked for. */
	socklen_t len = offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return -errno;
	if (len < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
		return -EOPNOTSUPP;
	*ret_came = (struct tcp_came){ info.tcpi_bytes_received, info.tcpi_last_data_recv * NS_PER_MS };
	return 0;
}
