/* SPDX-License-Identifier: Apache-2.0 */
/* Helper threads, and how they are woken. */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

int
thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *), void *arg)
{
	sigset_t all, was;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	r = pthread_create(ret_thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (r == 0)
		pthread_setname_np(*ret_thread, name);
	return -r;
}

int
fd_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

void
async_wake(struct rdma *rd)
{
	uint64_t one = 1;

	if (rd->async.wake_fd >= 0 && write(rd->async.wake_fd, &one, sizeof one) != sizeof one)
		log_debug("the async helper is woken already");
}
