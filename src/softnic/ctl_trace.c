/* SPDX-License-Identifier: Apache-2.0 */
/* softnicctl trace: makes a trace file, names it in the fabric, prints it.  trace.h describes the file. */
#include "softnic/ctl.h"
#include "softnic/trace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <infiniband/verbs.h>

enum { RECORDS = 1 << 18, RECORDS_MAX = 1 << 26 };

static int
complain(const char *path, int err)
{
	fprintf(stderr, "softnicctl: %s: %s\n", path, strerror(err));
	return 1;
}

/* Its blocks are allocated now: a process that found the file system full would die of SIGBUS. */
static int
make_file(const char *path, uint64_t max, mode_t mode)
{
	size_t size = sizeof(struct trace_file) + max * sizeof(struct trace_rec);
	struct trace_file *t;
	int r, fd;

	if (unlink(path) < 0 && errno != ENOENT)
		return complain(path, errno);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return complain(path, errno);
	r = posix_fallocate(fd, 0, (off_t)size);
	if (r == 0 && fchmod(fd, mode) < 0)
		r = errno;
	t = r ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (r == 0 && t == MAP_FAILED)
		r = errno;
	close(fd);
	if (r) {
		unlink(path);
		return complain(path, r);
	}
	t->version = TRACE_VERSION;
	t->max = max;
	atomic_store(&t->magic, TRACE_MAGIC);
	munmap(t, size);

	return 0;
}

static int
off(struct fabric *f)
{
	uint32_t missed;

	atomic_fetch_and(&f->active, ~(uint32_t)FAB_ACTIVE_TRACE);
	missed = atomic_exchange(&f->trace_missed, 0);
	if (missed)
		fprintf(stderr, "softnicctl: the trace is not complete: %u work requests were not recorded\n",
			missed);

	return missed ? 1 : 0;
}

static int
on(struct fabric *f, int fd, const char *path, uint64_t max)
{
	char dir[PATH_MAX], real[PATH_MAX], full[PATH_MAX + 256];
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct stat st;

	/* Others have other working directories. */
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	if (!realpath(dir, real))
		return complain(dir, errno);
	if (!*name || (size_t)snprintf(full, sizeof(full), "%s/%s", real, name) >= sizeof(f->trace_path))
		return complain(path, ENAMETOOLONG);
	if (fstat(fd, &st) < 0 || make_file(path, max, st.st_mode & 0666))
		return 1;
	off(f);
	atomic_fetch_add(&f->trace_gen, 1);
	memcpy(f->trace_path, full, strlen(full) + 1);
	atomic_fetch_add(&f->trace_gen, 1);
	atomic_fetch_or(&f->active, FAB_ACTIVE_TRACE);

	return 0;
}

static const char *
op_name(uint8_t op)
{
	static const char *const names[] = { [IBV_WR_RDMA_WRITE] = "write",
					     [IBV_WR_RDMA_WRITE_WITH_IMM] = "write_imm",
					     [IBV_WR_SEND] = "send",
					     [IBV_WR_SEND_WITH_IMM] = "send_imm",
					     [IBV_WR_RDMA_READ] = "read" };

	return op < sizeof(names) / sizeof(names[0]) ? names[op] : "other";
}

static const char *
gid_text(const uint8_t gid[16], char text[INET6_ADDRSTRLEN])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool v4 = memcmp(gid, mapped, sizeof(mapped)) == 0;

	return inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? gid + 12 : gid, text, INET6_ADDRSTRLEN);
}

static void
print_rec(const struct trace_rec *r)
{
	char sgid[INET6_ADDRSTRLEN], far_sgid[INET6_ADDRSTRLEN];
	bool done = atomic_load(&r->state) == TRACE_DONE;

	printf("%llu %llu %llu %u %#x %s %#x %#llx %#x %llu %llu %s %#x %u %llu %u %u %u %s %u %u %s\n",
	       (unsigned long long)atomic_load(&r->start_ns), (unsigned long long)atomic_load(&r->end_ns),
	       (unsigned long long)atomic_load(&r->done_ns), r->pid, r->qpn, op_name(r->opcode), r->dctn,
	       (unsigned long long)r->raddr, r->rkey, (unsigned long long)r->len_bytes,
	       (unsigned long long)atomic_load(&r->landed_bytes),
	       !done               ? "UNFINISHED"
	       : r->status == 0xff ? "RESET"
				   : ctl_status_name(r->status),
	       r->vendor, r->rule, (unsigned long long)r->wr_id, r->class, r->level, r->flow_label,
	       gid_text(r->sgid, sgid), r->far_class, r->far_level, gid_text(r->far_sgid, far_sgid));
}

static int
show(const char *path)
{
	const struct trace_file *t = MAP_FAILED;
	struct stat st = { 0 };
	uint64_t n, lost;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return complain(path, errno);
	if ((size_t)st.st_size >= sizeof(*t))
		t = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (t == MAP_FAILED || atomic_load(&t->magic) != TRACE_MAGIC || t->version != TRACE_VERSION ||
	    t->max > ((size_t)st.st_size - sizeof(*t)) / sizeof(t->rec[0])) {
		fprintf(stderr, "softnicctl: %s is no trace of this softnic version\n", path);
		return 1;
	}
	n = atomic_load(&t->next);
	lost = atomic_load(&t->lost);
	puts("# start_ns end_ns done_ns pid qpn op dctn raddr rkey length landed status vendor rule wr_id "
	     "class level flow sgid far_class far_level far_sgid");
	for (uint64_t i = 0; i < n && i < t->max; i++) {
		if (atomic_load(&t->rec[i].state) != TRACE_EMPTY)
			print_rec(&t->rec[i]);
	}
	if (lost)
		fprintf(stderr,
			"softnicctl: the trace is not complete: it holds %llu records, %llu more had no "
			"room\n",
			(unsigned long long)t->max, (unsigned long long)lost);

	return lost ? 1 : 0;
}

int
ctl_cmd_trace(int argc, char **argv)
{
	struct fabric *f = NULL;
	uint64_t max = RECORDS;
	char *end = "";
	int fd, most, rc = 0;

	if (argc > 0 && strcmp(argv[0], "on") && strcmp(argv[0], "off") && strcmp(argv[0], "show"))
		return ctl_refuse("trace", argv[0]);
	most = argc == 0 ? 0 : strcmp(argv[0], "off") == 0 ? 1 : strcmp(argv[0], "show") == 0 ? 2 : 3;
	if (argc > most)
		return ctl_refuse("trace", argv[most]);
	if (argc < 2 && most > 1)
		return ctl_usage();
	if (most == 2)
		return show(argv[1]);
	if (argc == 3)
		max = strtoull(argv[2], &end, 10);
	if (*end || max == 0 || max > RECORDS_MAX)
		return ctl_refuse("trace", argv[2]);
	if (ctl_open(&f, &fd) < 0)
		return 1;
	flock(fd, LOCK_EX);
	if (argc > 1)
		rc = on(f, fd, argv[1], max);
	else if (argc == 1)
		rc = off(f);
	else if (atomic_load(&f->active) & FAB_ACTIVE_TRACE)
		printf("on %s\n", f->trace_path);
	else
		puts("off");
	flock(fd, LOCK_UN);

	return rc;
}
