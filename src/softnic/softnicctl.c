/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softnicctl: looks at the fabric of the software NIC and changes it from outside while programs run on it.
 * Needs no verbs: it maps the same file.  softnicctl(8) describes the commands.
 */
#include "softnic/ctl.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* ---- port ---- */

static void
set_port(struct fabric *f, int dev, bool down)
{
	uint32_t had = down ? atomic_fetch_or(&f->port[dev].down, FAB_DOWN_PORT)
			    : atomic_fetch_and(&f->port[dev].down, ~(uint32_t)FAB_DOWN_PORT);

	if (!(had & FAB_DOWN_PORT) == down) {
		atomic_fetch_add(&f->port[dev].changes, 1);
		fab_event(f);
	}
}

static volatile sig_atomic_t stop;

static void
on_signal(int sig)
{
	stop = 1;
}

static void
nap_ms(unsigned long ms)
{
	struct timespec ts = { .tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000 };

	while (!stop && nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

/* In the foreground; however it ends, short of SIGKILL, the port is up afterwards. */
static int
flap(int dev, int argc, char **argv)
{
	unsigned long v[3] = { 0 };
	struct fabric *f = NULL;
	int fd;

	for (int i = 0; i < argc; i++) {
		char *end;

		if (i < 3)
			v[i] = strtoul(argv[i], &end, 10);
		if (i >= 3 || *end || v[i] == 0 || v[i] > 86400000 || (i == 1 && v[1] <= v[0]))
			return ctl_refuse("port", argv[i]);
	}
	if (argc < 2)
		return ctl_usage();
	if (ctl_open(&f, &fd) < 0)
		return 1;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGHUP, on_signal);
	for (unsigned long n = 0; !stop && (v[2] == 0 || n < v[2]); n++) {
		set_port(f, dev, true);
		nap_ms(v[0]);
		set_port(f, dev, false);
		if (n + 1 != v[2])
			nap_ms(v[1] - v[0]);
	}

	return 0;
}

static int
cmd_port(int argc, char **argv)
{
	struct fabric *f = NULL;
	int fd, dev = argc > 0 ? ctl_dev(argv[0]) : -1;

	if (dev < 0)
		return ctl_refuse("port", argc > 0 ? argv[0] : NULL);
	if (argc > 1 && strcmp(argv[1], "flap") == 0)
		return flap(dev, argc - 2, argv + 2);
	if (argc > 1 && strcmp(argv[1], "up") && strcmp(argv[1], "down"))
		return ctl_port_word(dev, argc - 1, argv + 1);
	if (argc > 2)
		return ctl_refuse("port", argv[2]);
	if (ctl_open(&f, &fd) < 0)
		return 1;
	if (argc == 2)
		set_port(f, dev, strcmp(argv[1], "down") == 0);
	else
		printf("mlx5_%d %s\n", dev, atomic_load(&f->port[dev].down) & FAB_DOWN_PORT ? "down" : "up");

	return 0;
}

struct reset {
	uint32_t flags; /* enum fab_reset */
	uint64_t away_ns;
	unsigned long pid; /* 0: all */
};

static bool
reset_word(struct reset *r, const char *s)
{
	static const struct {
		const char *word;
		uint32_t flag;
	} words[] = { { "flush", FAB_RESET_FLUSH },
		      { "runs", FAB_RESET_RUNS },
		      { "destroy=fails", FAB_RESET_DESTROY_FAILS },
		      { "destroy=lies", FAB_RESET_DESTROY_LIES } };
	char *end;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(s, words[i].word) == 0) {
			r->flags |= words[i].flag;
			return true;
		}
	}
	if (strncmp(s, "away=", 5) == 0)
		return ctl_duration(s + 5, &r->away_ns);
	if (strncmp(s, "pid=", 4) != 0)
		return false;
	r->pid = strtoul(s + 4, &end, 10);

	return *end == 0 && r->pid > 0;
}

/* The processes look by themselves before each call, the watcher only tells of it. */
static int
reset_device(int dev, int argc, char **argv)
{
	struct reset r = { 0 };
	struct fabric *f = NULL;
	struct timespec now;
	unsigned n = 0;
	int fd;

	for (int i = 0; i < argc; i++) {
		if (!reset_word(&r, argv[i]))
			return ctl_refuse("device", argv[i]);
		if (ctl_is_again("device", argv, i))
			return 2;
	}
	if (r.flags & FAB_RESET_FLUSH && r.flags & FAB_RESET_RUNS) {
		fprintf(stderr, "softnicctl: device: flush or runs\n");
		return 2;
	}
	if (ctl_open(&f, &fd) < 0)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (r.away_ns)
		atomic_store(&f->port[dev].away_until_ns,
			     (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + r.away_ns);
	for (uint32_t i = 0; i < atomic_load(&f->proc_high); i++) {
		struct fab_proc *p = &f->proc[i];
		uint32_t had = atomic_load(&p->resets[dev]) & ~(uint32_t)FAB_RESET_FLAGS;

		if (atomic_load(&p->state) != FAB_PROC_LIVE || (r.pid && p->pid != r.pid))
			continue;
		atomic_store(&p->resets[dev], (had + FAB_RESET_ONE) | r.flags);
		n++;
	}
	fab_event(f);
	if (n == 0 && r.pid)
		fprintf(stderr, "softnicctl: process %lu is not on the fabric\n", r.pid);

	return n == 0 && r.pid;
}

static int
cmd_device(int argc, char **argv)
{
	struct fabric *f = NULL;
	int fd, dev = argc > 0 ? ctl_dev(argv[0]) : -1;

	if (dev >= 0 && argc > 1 && strcmp(argv[1], "reset") == 0)
		return reset_device(dev, argc - 2, argv + 2);
	if (dev >= 0 && argc == 3 && strcmp(argv[1], "name") == 0) {
		if (strlen(argv[2]) >= sizeof(f->port[0].name))
			return ctl_refuse("device", argv[2]);
		if (ctl_open(&f, &fd) < 0)
			return 1;
		strcpy(f->port[dev].name, argv[2]);
		return 0;
	}
	if (dev < 0)
		return ctl_refuse("device", argc > 0 ? argv[0] : NULL);
	if (argc == 2 && strcmp(argv[1], "name") == 0)
		return ctl_usage();
	if (argc > 1 && strcmp(argv[1], "name") && strcmp(argv[1], "lost") && strcmp(argv[1], "back"))
		return ctl_refuse("device", argv[1]);
	if (argc > 2)
		return ctl_refuse("device", argv[strcmp(argv[1], "name") ? 2 : 3]);
	if (ctl_open(&f, &fd) < 0)
		return 1;
	struct fab_port *p = &f->port[dev];

	if (argc == 1) {
		printf("mlx5_%d %s\n", dev, atomic_load(&p->down) & FAB_DOWN_LOST ? "lost" : "there");
	} else if (strcmp(argv[1], "back") == 0) {
		atomic_fetch_and(&p->down, ~(uint32_t)FAB_DOWN_LOST);
		atomic_store(&p->away_until_ns, 0);
	} else if (!(atomic_fetch_or(&p->down, FAB_DOWN_LOST) & FAB_DOWN_LOST)) {
		atomic_fetch_add(&p->losses, 1);
		fab_event(f);
	}

	return 0;
}

/* ---- stats ---- */

struct counts {
	unsigned qps, mrs;
};

static void
count(struct fabric *f, uint32_t index, struct counts *c)
{
	for (uint32_t i = 0; i < fab_qp_high(f); i++)
		c->qps += atomic_load_explicit(&f->qp[i].owner, memory_order_relaxed) == index + 1;
	for (uint32_t i = 0; i < fab_mr_high(f); i++)
		c->mrs += atomic_load_explicit(&f->mr[i].owner, memory_order_relaxed) == index + 1;
}

static unsigned long long
get(const _Atomic uint64_t *v)
{
	return (unsigned long long)atomic_load(v);
}

static void
print_json_string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void
print_proc(struct fabric *f, uint32_t i, bool json, bool first)
{
	const struct fab_proc *p = &f->proc[i];
	const struct fab_stats *s = &p->stats;
	bool alive = fab_proc_alive(p);
	struct counts c = { 0 };

	count(f, i, &c);
	if (!json) {
		printf("%-8u %-15s %5s %6u %6u %15llu %15llu %10llu %8llu %12.3f\n", p->pid, p->comm,
		       alive ? "yes" : "no", c.qps, c.mrs, get(&s->written_bytes), get(&s->read_bytes),
		       get(&s->ops), get(&s->errors), (double)get(&s->copy_ns) / 1e6);
		return;
	}
	printf("%s{\"pid\":%u,\"comm\":", first ? "" : ",", p->pid);
	print_json_string(p->comm);
	printf(",\"cqs\":[");
	for (int v = 0; v < FAB_VECTORS; v++)
		printf("%s%u", v ? "," : "", atomic_load(&p->cqs[v]));
	printf("],\"alive\":%s,\"qps\":%u,\"mrs\":%u,\"written_bytes\":%llu,\"read_bytes\":%llu,\"ops\":%llu,"
	       "\"errors\":%llu,\"copy_ns\":%llu}",
	       alive ? "true" : "false", c.qps, c.mrs, get(&s->written_bytes), get(&s->read_bytes),
	       get(&s->ops), get(&s->errors), get(&s->copy_ns));
}

static int
cmd_stats(int argc, char **argv)
{
	struct fabric *f = NULL;
	bool json = false, first = true;
	unsigned long pid = 0;
	int fd;

	for (int i = 0; i < argc; i++) {
		char *end;

		if (strcmp(argv[i], "--json") == 0 && !json) {
			json = true;
			continue;
		}
		if (pid)
			return ctl_refuse("stats", argv[i]);
		pid = strtoul(argv[i], &end, 10);
		if (*end || pid == 0)
			return ctl_refuse("stats", argv[i]);
	}
	if (ctl_open(&f, &fd) < 0)
		return 1;
	if (json)
		putchar('[');
	else
		printf("%-8s %-15s %5s %6s %6s %15s %15s %10s %8s %12s\n", "PID", "COMM", "ALIVE", "QPS",
		       "MRS", "WRITTEN-BYTES", "READ-BYTES", "OPS", "ERRORS", "COPY-MS");
	for (uint32_t i = 0; i < atomic_load(&f->proc_high); i++) {
		if (atomic_load(&f->proc[i].state) == FAB_PROC_FREE || (pid && f->proc[i].pid != pid))
			continue;
		print_proc(f, i, json, first);
		first = false;
	}
	if (json)
		puts("]");

	return pid && first ? 1 : 0;
}

/* ---- qp, reset ---- */

static int
cmd_qp(int argc, char **argv)
{
	struct fabric *f = NULL;
	unsigned long qpn = 0;
	char *end = "";
	int fd;

	if (argc > 0)
		qpn = strtoul(argv[0], &end, 0);
	if (argc > 0 && (*end || qpn == 0 || qpn > 0xffffff))
		return ctl_refuse("qp", argv[0]);
	if (argc > 1 && strcmp(argv[1], "fatal") != 0)
		return ctl_refuse("qp", argv[1]);
	if (argc != 2)
		return ctl_refuse("qp", argc > 2 ? argv[2] : NULL);
	if (ctl_open(&f, &fd) < 0)
		return 1;
	struct fab_qp *q = &f->qp[qpn % FAB_QPS];

	/* A DCI is never published under its number, so its slot is known by owner and generation. */
	if (atomic_load(&q->owner) == 0 || (q->gen & 0xff) != qpn >> 16) {
		fprintf(stderr, "softnicctl: no queue pair %#lx\n", qpn);
		return 1;
	}
	atomic_fetch_or(&q->poke, FAB_POKE_FATAL);
	fab_event(f);

	return 0;
}

static int
cmd_reset(int argc, char **argv)
{
	bool force = argc > 0 && strcmp(argv[0], "-f") == 0;
	char path[PATH_MAX];
	struct fabric *f = NULL;
	int fd, used = 0;

	if (argc > force)
		return ctl_refuse("reset", argv[force]);
	fab_path(path, sizeof(path));
	if (!force && fab_map(false, &f, &fd) == 0) {
		for (uint32_t i = 0; i < atomic_load(&f->proc_high); i++)
			used += atomic_load(&f->proc[i].state) == FAB_PROC_LIVE &&
				fab_proc_alive(&f->proc[i]);
		if (used) {
			fprintf(stderr, "softnicctl: %s: %d process%s on it; -f removes it under them\n",
				path, used, used == 1 ? " is" : "es are");
			return 1;
		}
	}
	if (unlink(path) < 0 && errno != ENOENT) {
		fprintf(stderr, "softnicctl: %s: %s\n", path, strerror(errno));
		return 1;
	}
	*strrchr(path, '/') = 0;
	if (!getenv("SOFTNIC_DIR"))
		rmdir(path); /* ours, and gone unless somebody keeps something else there */

	return 0;
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} cmds[] = {
		{ "port", cmd_port },       { "device", cmd_device },         { "rule", ctl_cmd_rule },
		{ "trace", ctl_cmd_trace }, { "stats", cmd_stats },           { "qp", cmd_qp },
		{ "reset", cmd_reset },     { "clean", cmd_reset },           { "reach", ctl_cmd_reach },
		{ "route", ctl_cmd_route }, { "firmware", ctl_cmd_firmware }, { "profile", ctl_cmd_profile },
		{ "gid", ctl_cmd_gid },
	};

	for (size_t i = 0; argc > 1 && i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		if (strcmp(argv[1], cmds[i].name) == 0)
			return cmds[i].run(argc - 2, argv + 2);
	}
	if (argc > 1)
		fprintf(stderr, "softnicctl: there is no command %s\n", argv[1]);

	return ctl_usage();
}
