/* SPDX-License-Identifier: Apache-2.0 */
/* gantry doctor, the machine: kernel, io_uring, locked memory, huge pages, clock. */
#include "client/cmd/doctor/doctor.h"

#include "base/amount.h"

#include <infiniband/verbs.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
/* gantryd's default: memory.buffers and memory.http_buffers (gantryd.yaml(5)), registered with each NIC and with io_uring. */
#define LOCKED_ONCE (640 * MIB)

/* The kernel counts what is registered twice twice. */
static uint64_t
locked_wanted(void)
{
	int nr = 0;
	struct ibv_device **list = ibv_get_device_list(&nr);

	if (list)
		ibv_free_device_list(list);
	return (uint64_t)(nr > 1 ? nr + 1 : 2) * LOCKED_ONCE;
}

/* The first line of a small file, "" where it cannot be read. */
static const char *
line_of(const char *path, char *out, size_t cap)
{
	FILE *f = fopen(path, "re");

	*out = 0;
	if (f) {
		if (!fgets(out, (int)cap, f))
			*out = 0;
		fclose(f);
	}
	out[strcspn(out, "\n")] = 0;
	return out;
}

static void
look_at_kernel(struct doctor *d)
{
	struct utsname u;
	int major = 0, minor = 0;

	if (uname(&u) < 0 || sscanf(u.release, "%d.%d", &major, &minor) != 2)
		doctor_say(d, FOUND_WARN, "kernel", "its version cannot be told");
	else if (major < 6 || (major == 6 && minor < 1))
		doctor_say(d, FOUND_STOP, "kernel",
			   "%s is older than 6.1, the oldest that gantryd is tried with", u.release);
	else
		doctor_say(d, FOUND_OK, "kernel", "%s", u.release);
}

static void
look_at_io_uring(struct doctor *d)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN };
	char line[32];
	int fd = (int)syscall(SYS_io_uring_setup, 8, &p);

	if (fd >= 0) {
		close(fd);
		doctor_say(d, FOUND_OK, "io_uring", "allowed");
	} else if (*line_of("/proc/sys/kernel/io_uring_disabled", line, sizeof line) &&
		   strcmp(line, "0") != 0) {
		doctor_say(d, FOUND_WARN, "io_uring",
			   "switched off, so gantryd uses threads, which is slower: sysctl "
			   "kernel.io_uring_disabled is %s; set it to 0",
			   line);
	} else {
		doctor_say(
			d, FOUND_WARN, "io_uring",
			"refused, so gantryd uses threads, which is slower: %s (in a container its seccomp "
			"profile forbids it, unless told otherwise)",
			strerror(errno));
	}
}

/* Finds the limit of locked memory of a daemon in /proc.  Returns false if the process is no gantryd of this machine, or of another pid
 * namespace. */
static bool
locked_by(long pid, char *out, size_t cap)
{
	char path[64], line[128];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/comm", pid);
	if (pid <= 0 || strcmp(line_of(path, line, sizeof line), "gantryd") != 0)
		return false;
	snprintf(path, sizeof path, "/proc/%ld/limits", pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof line, f)) {
		unsigned long long soft;

		if (strncmp(line, "Max locked memory ", 18) != 0)
			continue;
		found = true;
		if (sscanf(line + 18, "%llu", &soft) == 1)
			size_text(soft, out);
		else
			snprintf(out, cap, "any amount");
	}
	if (f)
		fclose(f);
	return found;
}

void
doctor_memlock(struct doctor *d, long pid, int unregistered)
{
	char limit[AMOUNT_TEXT] = "";
	bool is_here = locked_by(pid, limit, sizeof limit);
	struct rlimit r;

	if (unregistered) {
		doctor_say(d, FOUND_WARN, "memlock",
			   "the daemon could not register the buffers of %d cores with io_uring, so disk I/O "
			   "costs "
			   "more%s%s: set "
			   "LimitMEMLOCK=infinity in its unit, --ulimit memlock=-1:-1 for a container, and "
			   "restart it",
			   unregistered, is_here ? "; it may lock " : "", limit);
		return;
	}
	if (is_here) {
		doctor_say(d, FOUND_OK, "memlock", "the daemon may lock %s, and its buffers are registered",
			   limit);
		return;
	}
	if (getrlimit(RLIMIT_MEMLOCK, &r) < 0)
		return;
	if (geteuid() == 0 || r.rlim_max == RLIM_INFINITY || r.rlim_max >= locked_wanted())
		doctor_say(d, FOUND_OK, "memlock", "%s",
			   geteuid() == 0 ? "root may lock any amount; a daemon has the limit of its unit"
					  : "this user may lock what the buffers need");
	else
		doctor_say(d, FOUND_WARN, "memlock",
			   "this user may lock %llu MiB, gantryd's default buffers are %llu MiB, counted "
			   "once for each "
			   "NIC and once for io_uring: registering them will "
			   "fail (gantryd.service sets LimitMEMLOCK=infinity; in a shell, ulimit -l; for "
			   "users, limits.conf)",
			   (unsigned long long)(r.rlim_max / MIB),
			   (unsigned long long)(locked_wanted() / MIB));
}

static void
look_at_huge_pages(struct doctor *d)
{
	char mode[128], line[128];
	unsigned long total = 0, left = 0, kb = 0;
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof line, f)) {
		sscanf(line, "HugePages_Total: %lu", &total);
		sscanf(line, "HugePages_Free: %lu", &left);
		sscanf(line, "Hugepagesize: %lu", &kb);
	}
	if (f)
		fclose(f);
	line_of("/sys/kernel/mm/transparent_hugepage/enabled", mode, sizeof mode);
	if (total)
		doctor_say(d, FOUND_OK, "huge pages", "%lu of %lu kB reserved, %lu free", total, kb, left);
	else if (strstr(mode, "[always]") || strstr(mode, "[madvise]"))
		doctor_say(d, FOUND_OK, "huge pages",
			   "none reserved (vm.nr_hugepages), but transparent ones are on");
	else
		doctor_say(d, FOUND_WARN, "huge pages",
			   "none reserved and transparent ones are off: small pages cost large transfers "
			   "half of their speed; "
			   "sysctl vm.nr_hugepages, or echo madvise > "
			   "/sys/kernel/mm/transparent_hugepage/enabled");
}

static void
look_at_clock(struct doctor *d)
{
	struct timex t = { .modes = 0 };

	if (adjtimex(&t) < 0)
		return;
	if (t.status & STA_UNSYNC)
		doctor_say(d, FOUND_NOTE, "clock",
			   "not kept by NTP: signed requests fail when it is more than 15 minutes off "
			   "(timedatectl)");
	else
		doctor_say(d, FOUND_OK, "clock", "kept by NTP");
}

void
doctor_host(struct doctor *d)
{
	look_at_kernel(d);
	look_at_io_uring(d);
	look_at_huge_pages(d);
	look_at_clock(d);
}
