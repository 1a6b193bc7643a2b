/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of listening ids, in the abstract namespace: the kernel refuses a second owner of a name, and frees the names of a process
 * that has died. Any user can connect to such a name, so the credentials of the peer are checked.
 */
#include "softnic/cm_name.h"
#include "softnic/cm.h"
#include "softnic/cm_fabric.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static socklen_t
name(const char *where, uint16_t port, struct sockaddr_un *ret)
{
	char fabric[64];
	int n;

	softnic_cm_fabric(fabric, sizeof(fabric));
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "softnic-cm %s %u %s", fabric, port,
		     where);

	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void
where_of(const struct sockaddr *a, char buf[INET6_ADDRSTRLEN])
{
	union ibv_gid gid;

	cm_gid_of(a, &gid);
	inet_ntop(AF_INET6, gid.raw, buf, INET6_ADDRSTRLEN);
}

int
cm_name_bind(const struct sockaddr *a, uint16_t port, int *ret_fd)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char where[INET6_ADDRSTRLEN];
	struct sockaddr_un un;
	socklen_t len;
	int r = 0;

	if (fd < 0)
		return errno;
	where_of(a, where);
	len = name(where, port, &un);
	if (bind(fd, (struct sockaddr *)&un, len) < 0) {
		r = errno;
		close(fd);
		return r;
	}
	*ret_fd = fd;

	return 0;
}

int
cm_name_connect(const struct sockaddr *a, int *ret_fd)
{
	char where[INET6_ADDRSTRLEN];
	/* An id that listens at every address of IPv6 listens at those of IPv4, too. */
	const char *names[] = { where, a->sa_family == AF_INET ? "::ffff:0.0.0.0" : "::", "::" };
	int r = ECONNREFUSED;

	where_of(a, where);
	for (int i = 0; i < 3 && r == ECONNREFUSED; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		struct sockaddr_un un;
		socklen_t len = name(names[i], cm_port_of(a), &un);

		if (fd < 0)
			return errno;
		r = connect(fd, (struct sockaddr *)&un, len) < 0 ? errno : 0;
		if (r)
			close(fd);
		else
			*ret_fd = fd;
	}

	return r;
}

bool
cm_name_trusted(int fd)
{
	struct ucred c;
	socklen_t len = sizeof(c);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len) == 0 &&
	       (c.uid == geteuid() || c.uid == 0 || geteuid() == 0);
}
