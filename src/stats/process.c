/* SPDX-License-Identifier: Apache-2.0 */
/* The process_* metrics that every Prometheus client has, from /proc.  What cannot be read is left out. */
#include "stats/stats_int.h"

#include "base/clock.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int
count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	/* Without ".", ".." and the directory itself. */
	return n - 3;
}

/* Field 22 of /proc/self/stat: ticks since boot.  The name in field 2 may hold anything, so count from its
 * closing bracket. */
static int
start_time_ns(uint64_t *ret_ns)
{
	char text[1024], *p;
	unsigned long long ticks;
	struct timespec boot;
	FILE *f = fopen("/proc/self/stat", "re");
	size_t len;

	if (!f)
		return -1;
	len = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[len] = 0;
	p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, "%llu", &ticks) != 1 || clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
		return -1;
	*ret_ns = clock_wall_ns() - ((uint64_t)boot.tv_sec * NS_PER_S + (uint64_t)boot.tv_nsec) +
		  ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	return 0;
}

void
stats_process(struct stats_out *out)
{
	unsigned long long pages_virtual, pages_resident;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start_ns;
	struct timespec cpu;
	struct rlimit limit;
	FILE *f;
	int fds = count_fds();

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0)
		stats_emit_ns(out, M_PROCESS_CPU, (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec,
			      NULL);
	f = fopen("/proc/self/statm", "re");
	if (f) {
		if (fscanf(f, "%llu %llu", &pages_virtual, &pages_resident) == 2) {
			stats_emit(out, M_PROCESS_RESIDENT, pages_resident * page, NULL);
			stats_emit(out, M_PROCESS_VIRTUAL, pages_virtual * page, NULL);
		}
		fclose(f);
	}
	if (fds >= 0)
		stats_emit(out, M_PROCESS_FDS, (uint64_t)fds, NULL);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		stats_emit(out, M_PROCESS_FDS_MAX, limit.rlim_cur, NULL);
	if (start_time_ns(&start_ns) == 0)
		stats_emit_ns(out, M_PROCESS_START, start_ns, NULL);
}
