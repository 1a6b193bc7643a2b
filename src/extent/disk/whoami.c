/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of this machine and process, and whether another process lives; see file.h. */
#include "extent/disk/file.h"

#include "extent/disk/host.h"
#include "base/hex.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads an identifier of 16 bytes in hex, with or without dashes. Sets zeros, which mean unknown, for any
 * other text. */
static void
read_id(const char *path, uint8_t id[16])
{
	FILE *f = fopen(path, "re");
	char text[64] = "", digits[33] = "";
	size_t n = 0;

	if (f && !fgets(text, sizeof text, f))
		text[0] = 0;
	if (f)
		fclose(f);
	for (const char *p = text; *p && *p != '\n' && n < 32; p++) {
		if (*p != '-')
			digits[n++] = *p;
	}
	if (n != 32 || hex_bytes(digits, id, 16) < 0)
		memset(id, 0, 16);
}

/* Reads the state and the start time of a process in the visible /proc. Returns false if they are unknown. */
static bool
read_process(uint64_t pid, char *ret_state, uint64_t *ret_start)
{
	char path[64], text[1024];
	unsigned long long start;
	const char *p;
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(text, 1, sizeof text - 1, f);
		fclose(f);
	}
	text[n] = 0;
	/* The name, in parentheses, may have any bytes. */
	p = strrchr(text, ')');
	if (!p ||
	    sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   ret_state, &start) != 2)
		return false;
	*ret_start = start;
	return true;
}

static uint64_t
inode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Reads the identity of this process; nothing if /proc belongs to another PID namespace. */
static void
read_self(struct host_id *id)
{
	char text[32], state;
	ssize_t n = readlink("/proc/self", text, sizeof text - 1);

	text[n > 0 ? n : 0] = 0;
	if (n <= 0 || strtoll(text, NULL, 10) != getpid() ||
	    !read_process((uint64_t)getpid(), &state, &id->start))
		return;
	id->pid = (uint64_t)getpid();
	id->pid_ns = inode_of("/proc/self/ns/pid");
	id->time_ns = inode_of("/proc/self/ns/time");
}

enum file_process
file_process(const struct host_id *of, const struct host_id *here)
{
	uint64_t start;
	char state;

	if (!of->pid || !of->pid_ns || of->pid_ns != here->pid_ns || of->time_ns != here->time_ns)
		return PROCESS_UNKNOWN;
	if (of->pid == here->pid || (kill((pid_t)of->pid, 0) < 0 && errno == ESRCH))
		return PROCESS_GONE;
	if (!read_process(of->pid, &state, &start))
		return PROCESS_UNKNOWN;
	if (start != of->start)
		return PROCESS_GONE;
	/* Other threads of a dead process may still be ending their writes. */
	return state == 'Z' || state == 'X' ? PROCESS_UNKNOWN : PROCESS_LIVES;
}

void
file_host_id(struct host_id *ret_id)
{
	memset(ret_id, 0, sizeof *ret_id);
	if (gethostname(ret_id->name, sizeof ret_id->name - 1) < 0)
		ret_id->name[0] = 0;
	ret_id->name[sizeof ret_id->name - 1] = 0;
	for (char *p = ret_id->name; *p; p++) {
		if (*p <= ' ' || *p > '~')
			*p = '?';
	}
	if (!ret_id->name[0])
		snprintf(ret_id->name, sizeof ret_id->name, "nameless");
	read_id("/etc/machine-id", ret_id->machine);
	read_id("/proc/sys/kernel/random/boot_id", ret_id->boot);
	read_self(ret_id);
}
