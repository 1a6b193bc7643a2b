/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping the fabric file and telling the living from the dead.  Linked into libibverbs.so.1 and into
 * softnicctl; knows nothing of verbs.  Creation, the claim of a process slot and reaping happen under flock
 * of the file; all else is atomics.
 */
#include "softnic/fabric.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <arpa/inet.h>

static int
complain(int r, const char *path, const char *what)
{
	fprintf(stderr, "softnic: %s: %s%s%s\n", path, what, r ? ": " : "", r ? strerror(-r) : "");
	return r ? r : -EPROTO;
}

static void
fab_dir(char *buf, size_t len)
{
	const char *e = getenv("SOFTNIC_DIR");

	if (e && *e)
		snprintf(buf, len, "%s", e);
	else
		snprintf(buf, len, "/dev/shm/softnic-%u", (unsigned)geteuid());
}

void
fab_path(char *buf, size_t len)
{
	char dir[PATH_MAX - 16];

	fab_dir(dir, sizeof(dir));
	snprintf(buf, len, "%s/fabric", dir);
}

/* One address gives two rows, as on a real port: RoCE v1 and v2; on InfiniBand one. */
static void
add_rows(struct fab_port *port, unsigned *at, const uint8_t raw[16], uint32_t prefix)
{
	uint32_t first = port->lid ? FAB_GID_IB : FAB_GID_V1, last = port->lid ? FAB_GID_IB : FAB_GID_V2;

	for (uint32_t t = first; t <= last && *at < FAB_GIDS; t++) {
		memcpy(port->gid[*at].raw, raw, 16);
		port->gid[*at].type = t;
		port->gid[*at].prefix = prefix;
		(*at)++;
	}
}

static bool
parse_addr(const char *s, uint8_t raw[16])
{
	memset(raw, 0, 16);
	raw[10] = raw[11] = 0xff;
	if (inet_pton(AF_INET, s, raw + 12) == 1)
		return true;

	return inet_pton(AF_INET6, s, raw) == 1;
}

static bool
is_v4(const uint8_t raw[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(raw, mapped, sizeof(mapped)) == 0;
}

bool
fab_parse_net(const char *s, uint8_t raw[16], uint32_t *ret_prefix)
{
	const char *slash = strchr(s, '/');
	char text[64], *end;

	snprintf(text, sizeof(text), "%.*s", slash ? (int)(slash - s) : (int)strlen(s), s);
	if (!parse_addr(text, raw))
		return false;
	if (!slash) {
		*ret_prefix = !is_v4(raw) ? 64 : raw[12] == 127 ? 96 + 8 : 96 + 24;
		return true;
	}
	unsigned long bits = strtoul(slash + 1, &end, 10);

	*ret_prefix = (uint32_t)bits + (is_v4(raw) ? 96 : 0);

	return slash[1] >= '0' && slash[1] <= '9' && *end == 0 && bits <= (is_v4(raw) ? 32 : 128);
}

bool
fab_prefix_equal(const uint8_t a[16], const uint8_t b[16], uint32_t bits)
{
	if (memcmp(a, b, bits / 8) != 0)
		return false;

	return bits % 8 == 0 || (a[bits / 8] ^ b[bits / 8]) >> (8 - bits % 8) == 0;
}

/* Rows of one device: the link-local address, then the addresses of its part of SOFTNIC_GIDS or the default
 * pair. */
static void
fill_gids(struct fab_port *port, unsigned dev, char *list)
{
	uint8_t raw[16] = {
		0xfe, 0x80, [8] = 0x02, [9] = 0x00, [10] = 0x5e, [11] = 0xff, [12] = 0xfe, [14] = 0x01
	};
	char def[96], *save = NULL;
	uint32_t prefix;
	unsigned at = 0;

	raw[15] = (uint8_t)dev;
	add_rows(port, &at, raw, 64);
	if ((!list || !*list) && !port->lid) {
		snprintf(def, sizeof(def), "127.0.0.%u,fd00:6761::%x", dev + 1, dev + 1);
		list = def;
	}
	for (char *s = list ? strtok_r(list, ", ", &save) : NULL; s; s = strtok_r(NULL, ", ", &save)) {
		if (fab_parse_net(s, raw, &prefix) && !(port->lid && is_v4(raw)))
			add_rows(port, &at, raw, prefix);
		else if (port->lid)
			fprintf(stderr, "softnic: SOFTNIC_GIDS: %s is no GID of an InfiniBand port\n", s);
		else
			fprintf(stderr, "softnic: SOFTNIC_GIDS: %s is no IP address\n", s);
	}
}

/* SOFTNIC_IB: the numbers of the devices that are on InfiniBand, with commas between them. */
static void
read_links(struct fabric *f)
{
	const char *s = getenv("SOFTNIC_IB");

	while (s && *s) {
		char *end;
		unsigned long dev = strtoul(s, &end, 10);

		if (end == s || (*end && *end != ',') || dev >= FAB_DEVS) {
			fprintf(stderr, "softnic: SOFTNIC_IB: %s is no list of devices\n", s);
			return;
		}
		f->port[dev].lid = 0x11 + (uint32_t)dev;
		s = *end ? end + 1 : end;
	}
}

void
fab_profile(struct fabric *f, bool realistic)
{
	atomic_store(&f->call_ns, realistic ? 60000 : 0);
	atomic_store(&f->absent_ns, realistic ? 1000000000 : 0);
	atomic_store(&f->reach, realistic ? FAB_REACH_SUBNET : FAB_REACH_ALL);
}

static void
fab_init(struct fabric *f)
{
	const char *env = getenv("SOFTNIC_GIDS"), *profile = getenv("SOFTNIC_PROFILE");
	char *gids = strdup(env ? env : ""), *rest = gids;

	read_links(f);
	for (unsigned d = 0; d < FAB_DEVS; d++)
		fill_gids(&f->port[d], d, rest ? strsep(&rest, ";") : NULL);
	free(gids);
	if (profile && *profile && strcmp(profile, "realistic") && strcmp(profile, "flat"))
		fprintf(stderr, "softnic: SOFTNIC_PROFILE=%s is neither realistic nor flat; flat it is\n",
			profile);
	fab_profile(f, profile && strcmp(profile, "realistic") == 0);
	f->version = FAB_VERSION;
	f->size = sizeof(*f);
	atomic_store(&f->qp_next, FAB_QP_FIRST);
	atomic_store(&f->mr_next, FAB_MR_FIRST);
	atomic_store(&f->magic, FAB_MAGIC);
}

/* With the file locked: a new file is filled, an old one must be ours. */
static int
fab_map_locked(int fd, const char *path, struct fabric **ret_fab)
{
	struct stat st;
	struct fabric *f;
	bool fresh;

	if (fstat(fd, &st) < 0)
		return complain(-errno, path, "fstat");
	fresh = st.st_size == 0;
	if (fresh && ftruncate(fd, sizeof(*f)) < 0)
		return complain(-errno, path, "ftruncate");
	if (!fresh && (size_t)st.st_size != sizeof(*f))
		return complain(0, path,
				"has the size of another softnic version; `softnicctl reset` removes it");
	f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (f == MAP_FAILED)
		return complain(-errno, path, "mmap");
	if (fresh || atomic_load(&f->magic) == 0)
		fab_init(f);
	if (atomic_load(&f->magic) != FAB_MAGIC || f->version != FAB_VERSION || f->size != sizeof(*f)) {
		munmap(f, sizeof(*f));
		return complain(0, path,
				"is no fabric of this softnic version; `softnicctl reset` removes it");
	}
	*ret_fab = f;

	return 0;
}

static int
fab_open(bool create, char *path, size_t len)
{
	char dir[PATH_MAX - 16];
	bool named = getenv("SOFTNIC_DIR") && *getenv("SOFTNIC_DIR");
	struct stat st;
	int fd;

	fab_dir(dir, sizeof(dir));
	fab_path(path, len);
	if (create && mkdir(dir, 0700) < 0 && errno != EEXIST)
		return complain(-errno, dir, "cannot create the directory");
	if (lstat(dir, &st) < 0)
		return create ? complain(-errno, dir, "cannot look at the directory") : -errno;
	if (!named && (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()))
		return complain(-EPERM, dir, "is not our own directory");
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
	if (fd < 0)
		return create ? complain(-errno, path, "cannot open") : -errno;
	/* A directory opened to others on purpose opens the file to the same ones. */
	if (fstat(fd, &st) == 0 && st.st_size == 0 && st.st_uid == geteuid()) {
		struct stat ds;

		if (stat(dir, &ds) == 0 && fchmod(fd, ds.st_mode & 0666) < 0)
			complain(-errno, path, "fchmod");
	}

	return fd;
}

int
fab_map(bool create, struct fabric **ret_fab, int *ret_fd)
{
	char path[PATH_MAX];
	struct stat st;
	int r, fd;

	do {
		fd = fab_open(create, path, sizeof(path));
		if (fd < 0)
			return fd;
		if (flock(fd, LOCK_EX) < 0 || fstat(fd, &st) < 0) {
			r = complain(-errno, path, "flock");
		} else if (st.st_nlink == 0) {
			r = -EAGAIN; /* removed while we waited for the lock */
		} else {
			r = fab_map_locked(fd, path, ret_fab);
			flock(fd, LOCK_UN);
		}
		if (r < 0)
			close(fd);
	} while (r == -EAGAIN);
	if (r == 0)
		*ret_fd = fd;

	return r;
}

int
fab_start_ticks(uint32_t pid, uint64_t *ret_ticks)
{
	char path[64], buf[1024], *p;
	unsigned long long t;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return -ESRCH;
	buf[n] = 0;
	p = strrchr(buf, ')'); /* the name may hold anything, so count from its end */
	for (int i = 0; p && i < 20; i++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, " %llu", &t) != 1)
		return -EPROTO;
	*ret_ticks = t;

	return 0;
}

/*
 * After SIGKILL /proc/pid/stat may show a zombie leader while another thread is still inside
 * process_vm_writev.  A pidfd becomes readable only when the last thread is gone, so that is what we ask.
 */
bool
fab_proc_alive(const struct fab_proc *p)
{
	struct pollfd pfd = { .events = POLLIN };
	uint64_t ticks;
	bool dead;

	pfd.fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (pfd.fd < 0)
		return errno != ESRCH && errno != EINVAL;
	dead = poll(&pfd, 1, 0) > 0;
	close(pfd.fd);
	if (!dead && fab_start_ticks(p->pid, &ticks) == 0 && ticks != p->start_ticks)
		dead = true;

	return !dead;
}

static bool
in_use(const struct fabric *f, uint32_t key, enum fab_hz kind)
{
	uint32_t procs = atomic_load(&f->proc_high);

	for (uint32_t i = 0; i < procs; i++) {
		const struct fab_proc *p = &f->proc[i];
		uint32_t n = atomic_load(&p->hz_high);

		if (atomic_load(&p->state) != FAB_PROC_LIVE)
			continue;
		for (uint32_t x = 0; x < n; x++) {
			if (atomic_load(&p->hz[x][kind]) == key)
				return true;
		}
	}

	return false;
}

uint32_t
fab_qp_high(struct fabric *f)
{
	uint64_t n = atomic_load(&f->qp_next);

	return n < FAB_QPS ? (uint32_t)n : FAB_QPS;
}

uint32_t
fab_mr_high(struct fabric *f)
{
	uint64_t n = atomic_load(&f->mr_next);

	return n < FAB_MRS ? (uint32_t)n : FAB_MRS;
}

/* Frees what process `index` left.  False if a transfer of somebody else still looks at a slot: then another
 * time. */
static bool
reap_slots(struct fabric *f, uint32_t index)
{
	bool all = true;

	for (uint32_t i = 0; i < fab_qp_high(f); i++) {
		struct fab_qp *q = &f->qp[i];

		if (atomic_load_explicit(&q->owner, memory_order_relaxed) != index + 1)
			continue;
		atomic_store(&q->qpn, 0);
		if (in_use(f, (q->gen & 0xff) << 16 | i, FAB_HZ_QP))
			all = false;
		else
			atomic_store(&q->owner, 0);
	}
	for (uint32_t i = 0; i < fab_mr_high(f); i++) {
		struct fab_mr *m = &f->mr[i];

		if (atomic_load_explicit(&m->owner, memory_order_relaxed) != index + 1)
			continue;
		atomic_store(&m->key, 0);
		if (in_use(f, i << 8 | (m->gen & 0xff), FAB_HZ_MR))
			all = false;
		else
			atomic_store(&m->owner, 0);
	}

	return all;
}

void
fab_reap(struct fabric *f)
{
	uint32_t n = atomic_load(&f->proc_high);

	for (uint32_t i = 0; i < n; i++) {
		struct fab_proc *p = &f->proc[i];

		if (atomic_load(&p->state) == FAB_PROC_LIVE && !fab_proc_alive(p))
			atomic_store(&p->state, FAB_PROC_DEAD);
		if (atomic_load(&p->state) == FAB_PROC_DEAD && reap_slots(f, i))
			atomic_store(&p->state, FAB_PROC_FREE);
	}
}

void
fab_event(struct fabric *f)
{
	atomic_fetch_add(&f->event_seq, 1);
	syscall(SYS_futex, &f->event_seq, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
