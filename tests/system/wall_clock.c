/* SPDX-License-Identifier: Apache-2.0 */
/* Library for LD_PRELOAD: clock_gettime(CLOCK_REALTIME) is ahead by the seconds in the file that WALL_OFFSET names, ten digits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const volatile char *digits; /* ten of them */
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void
begin(void)
{
	int fd = open(getenv("WALL_OFFSET"), O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, 10, PROT_READ, MAP_SHARED, fd, 0);

	real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	if (fd < 0 || p == MAP_FAILED || !real)
		abort();
	close(fd);
	digits = p;
}

int
clock_gettime(clockid_t id, struct timespec *t)
{
	long offset = 0;
	int r;

	if (!digits)
		begin();
	r = real(id, t);
	if (r == 0 && id == CLOCK_REALTIME) {
		for (int i = 0; i < 10; i++)
			offset = offset * 10 + (digits[i] - '0');
		t->tv_sec += offset;
	}
	return r;
}
