/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that systemd opened for the daemon belong to the listeners with the same address. */
#include "main/daemon.h"

#include "base/log.h"

#include <netinet/in.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

static bool
same_address(int fd, const struct conf_listen *l)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof sa;

	if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0 ||
	    getsockname(fd, (struct sockaddr *)&sa, &len) < 0 || sa.ss_family != l->sa.ss_family)
		return false;
	if (sa.ss_family == AF_INET6) {
		const struct sockaddr_in6 *a = (void *)&sa, *b = (const void *)&l->sa;

		return a->sin6_port == b->sin6_port &&
		       memcmp(&a->sin6_addr, &b->sin6_addr, sizeof a->sin6_addr) == 0;
	}
	return ((struct sockaddr_in *)&sa)->sin_port == ((const struct sockaddr_in *)&l->sa)->sin_port &&
	       ((struct sockaddr_in *)&sa)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)&l->sa)->sin_addr.s_addr;
}

void
daemon_take_sockets(struct daemon *d)
{
	int nr = sd_listen_fds(1);

	for (int i = 0; i < CONF_LISTEN_MAX; i++)
		d->listen_fds[i] = -1;
	for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + nr; fd++) {
		int i = 0;

		while (i < d->conf->listen_nr &&
		       (d->listen_fds[i] >= 0 || !same_address(fd, &d->conf->listen[i])))
			i++;
		if (i < d->conf->listen_nr) {
			d->listen_fds[i] = fd;
		} else {
			log_warn("a socket handed in by systemd belongs to no listener; closed");
			close(fd);
		}
	}
}
