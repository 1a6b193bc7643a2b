/* SPDX-License-Identifier: Apache-2.0 */
/* A store and its loop; see port.h. */
#include "bench/port.h"

#include "bench/bench.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "extent/extent.h"
#include "ring/ring.h"
#include "set/set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct port_wishes port_wishes;

void
port_turn(struct port *p)
{
	uint64_t now = clock_ns(), at = timers_next(&p->timers), wait = at <= now ? 0 : at - now;

	if (wait > 10 * NS_PER_MS)
		wait = 10 * NS_PER_MS;
	if (wait && !mailbox_sleep(&p->mb))
		wait = 0;
	if (wait)
		store_turn(p->p, TURN_SLEEPS);
	if (ring_turn(p->ring, wait) < 0)
		bench_die("the ring is broken");
	if (wait) {
		mailbox_wake(&p->mb);
		store_turn(p->p, TURN_WAKES);
	}
	mailbox_run(&p->mb, 0);
	timers_run(&p->timers, clock_ns());
	store_turn(p->p, TURN_QUIESCENT);
}

static void
on_bucket(struct store_op *op)
{
	/* The loop that waits for it looks at the result. */
}

static void
make_bucket(struct port *p)
{
	static struct store_del del;
	int r;

	del.op.done = on_bucket;
	del.op.result = 1;
	r = store_bucket_create(p->p, BENCH_BUCKET, sizeof BENCH_BUCKET - 1, 0, &del);
	while (r == 0 && del.op.result == 1)
		port_turn(p);
	if (r < 0 || (del.op.result && del.op.result != -EEXIST))
		bench_die("bucket: %s", strerror(r < 0 ? -r : -del.op.result));
}

/* A store of the directories (or devices) in a list with commas. */
struct places {
	char text[4096];
	struct store_disk_conf disk[STORE_DISKS_MAX];
	uint8_t missing[1][UUID_BYTES];
};

static struct store_conf
conf_of(struct places *to, const char *dirs, uint64_t size_bytes, uint64_t index_bytes)
{
	struct store_conf conf = { .ops = &store_set_ops,
				   .disks.disk = to->disk,
				   .disks.index_bytes = index_bytes,
				   .disks.lock_wait_ns = 30 * NS_PER_S,
				   .disks.engine = &extent_ops,
				   .disks.engines_max = STORE_SET_MAX,
				   .disks.move_rate = port_wishes.move_rate,
				   .disks.heal_after_ns = port_wishes.heal_after_ns,
				   .default_copies = port_wishes.copies,
				   .ports_max = 4 }; /* and those who move, heal and walk */
	;
	char *rest = to->text;

	if (port_wishes.accept_missing) {
		check(uuid_parse(port_wishes.accept_missing, to->missing[0]) == 0);
		conf.disks.accept_missing = to->missing;
		conf.disks.accept_missing_nr = 1;
	}
	snprintf(to->text, sizeof to->text, "%s", dirs);
	for (char *dir; (dir = strsep(&rest, ",")) != NULL;) {
		check(conf.disks.nr < STORE_DISKS_MAX);
		to->disk[conf.disks.nr++] = (struct store_disk_conf){ .path = dir, .size_bytes = size_bytes };
	}
	return conf;
}

void
port_format(const char *dir, uint64_t size_bytes)
{
	static struct places places;
	struct store_conf conf = conf_of(&places, dir, size_bytes, 64 * MIB);
	struct port p;
	char err[256];

	for (int i = 0; i < conf.disks.nr; i++) {
		if (mkdir(places.disk[i].path, 0700) < 0 && errno != EEXIST)
			bench_die("%s: %s", places.disk[i].path, strerror(errno));
	}
	if (store_format(&conf, true, err, sizeof err) < 0)
		bench_die("%s", err);
	port_open(&p, dir, size_bytes, 64 * MIB, NULL);
	make_bucket(&p);
	port_close(&p);
}

void
port_open(struct port *p, const char *dir, uint64_t size_bytes, uint64_t index_bytes,
	  const struct bufpool *bufs)
{
	static struct places places;
	struct store_conf conf = conf_of(&places, dir, size_bytes, index_bytes);
	char err[256];

	memset(p, 0, sizeof *p);
	if (store_start(&conf, &p->st, err, sizeof err) < 0)
		bench_die("%s", err);
	check(ring_new(&(struct ring_params){ .entries = 1024 }, &p->ring) == 0);
	check(mailbox_init(&p->mb) == 0);
	if (bufs && ring_register_regions(p->ring, bufs->region, bufs->region_nr) < 0)
		fprintf(stderr, "bench: buffers could not be registered (ulimit -l)\n");
	check(store_attach(p->st, p->ring, &p->mb, &p->timers, &p->p) == 0);
}

void
port_put_inline(struct port *p, struct store_put *put, const struct store_key *key,
		const struct store_commit *commit)
{
	int r;

	/* The log may be full for a moment: a snapshot is under way then. */
	while ((r = store_put_init(p->p, put, key, commit->inline_len)) == -EAGAIN)
		usleep(1000);
	if (r == 0)
		r = store_put_commit(p->p, put, commit);
	if (r < 0)
		bench_die("PUT: %s", strerror(-r));
}

void
port_close(struct port *p)
{
	while (!store_detach(p->p))
		port_turn(p);
	store_stop(p->st);
	ring_free(p->ring);
	mailbox_fini(&p->mb);
}

void
port_remove(const char *dir)
{
	static struct places places;
	int nr = conf_of(&places, dir, 0, 0).disks.nr;

	for (int i = 0; i < nr; i++) {
		char cmd[800];

		snprintf(cmd, sizeof cmd, "rm -rf '%s'", places.disk[i].path);
		if (system(cmd) != 0)
			fprintf(stderr, "bench: %s stays behind\n", places.disk[i].path);
	}
}
