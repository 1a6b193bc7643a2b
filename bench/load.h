/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load generator of the daemon's figures: kept-alive connections with a request at a time, and windows
 * that were registered before.  bench/load.c; figures.c (ratios) and growth.c (curves) drive it.  One thread.
 */
#ifndef GANTRY_BENCH_LOAD_H
#define GANTRY_BENCH_LOAD_H

#include "bench/bench.h"
#include "tests/tools/raw/raw.h"

#include <netinet/in.h>
#include <stddef.h>

#define CONNS_MAX 4096
#define LIVE_BYTES (1024 * MIB)
#define SERVER_CPU 0
#define LOAD_CPU 1

struct server {
	struct sockaddr_in at;
	int pid;
	bool is_gantry;
};

enum op { OP_PUT, OP_GET, OP_DELETE };

/* What was given on the command line.  One is the daemon on the CPU SERVER_CPU, other one on LOAD_CPU, two
 * one on both. */
struct load {
	struct server one, two, other, nginx;
	const char *softnicctl;
	struct raw *raw;
};
extern struct load load;

/* Memory for windows; again with more: the old is given up. */
void load_memory(size_t len);
/* The same memory, for who wants to read all of it. */
const char *load_bytes(size_t *ret_len);

struct job {
	const struct server *server;
	const struct server *other; /* or NULL: serves every second connection, and its CPU counts, too */
	enum op op;
	const char *prefix;
	size_t size; /* of the objects and the windows; 0: an empty object, a small window */
	int conns;
	bool no_token;
	bool is_signed; /* for key 0 only */
	bool is_rc;     /* tokens name RC connections, which are made at the first use and kept */
	/* The load asks for events without sleeping.  On loopback the wake-up of a client that sleeps is CPU time of the
	 * server's send(), and in a virtual machine it costs more than the request. */
	bool spins;
	bool one_window; /* all of them use the same memory */
	uint64_t live;   /* keys; 0: as many as make LIVE_BYTES, at most 4096 */
	uint64_t max;    /* operations; 0: as the time allows */
};

struct result {
	uint64_t n, bytes, ns, cpu_ns, copy_ns;
	double p50_us, p99_us, waited_ns, load_waited_ns, load_cpu_ns;
	double sleeps, load_sleeps; /* of the server's threads, and of the load */
};
struct result load_run(const struct job *j, uint64_t for_ns);

/* One set of keys for each size: figures of the same size overwrite each other's objects.
 * Good for a while. */
const char *load_prefix(size_t size);
/* Puts as many objects as there are keys. */
void load_put_all(const struct job *j);
/* And deletes them. */
void load_delete_all(const struct job *j);

/* Time that the software NIC has spent on copies in a daemon so far; 0 without load.softnicctl. */
uint64_t load_copy_ns(const struct server *s);

double us_each(uint64_t ns, uint64_t n);

/* s3.c: "signed_cpu".  False: no such figure. */
bool s3_figure(const char *name);
/* Header lines that sign a request of Host "localhost" for path, with a token or "": how long. */
int s3_sign(const char *method, const char *path, const char *token, char *out, size_t cap);

/* rc.c: "rc_...".  False: no such figure. */
bool rc_figure(const char *name);
/* The rc: token of a window for connection i, which is made with all before it if it is not there; until the next call for it. */
const char *load_rc_token(const char *server, int i, const struct window *w);

/* growth.c: "sizes", "connections".  False: no such curve. */
bool growth(const char *name);

#endif
