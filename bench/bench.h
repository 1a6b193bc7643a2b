/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs behind `make bench` share: the raw disk loop that figures are held against, samples and
 * their medians, and the line a figure is printed as.  One thread each, no other user.
 */
#ifndef GANTRY_BENCH_H
#define GANTRY_BENCH_H

#include "base/buf.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define MIB ((uint64_t)1 << 20)
#define ROUNDS_MAX 64

/* Message to stderr, then exit 1. */
_Noreturn void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ADDRESS:PORT, or it dies. */
struct sockaddr_in bench_address(const char *text);
/* A connection there, without delay of small sends, or it dies. */
int bench_connect(const struct sockaddr_in *at);

/* ---- rounds and rows ---- */

/* BENCH_ROUNDS (7), BENCH_MS (500): how many rounds, and how long each side of one runs at least. */
int bench_rounds(void);
uint64_t bench_ns(void);
/* BENCH_LIVE_MIB, or so many bytes: the sum of the objects of one size that a figure's requests are for. */
uint64_t bench_live_bytes(uint64_t usual);
/* Sorts v. */
double bench_median(double *v, int nr);

/* One figure: a sample of both sides from every round. */
struct row {
	const char *figure, *unit;
	double ours[ROUNDS_MAX], reference[ROUNDS_MAX], ratio[ROUNDS_MAX], net[ROUNDS_MAX];
	bool has_net;
	int nr;
};
void row_add(struct row *r, double ours, double reference);
/* ours_net: without the time of softnic's copies. */
void row_add_net(struct row *r, double ours, double ours_net, double reference);
/* One line, fields separated by tabs: ROW figure unit ours reference ratio net|- rounds spread.  Ratios are
 * medians of the rounds' ratios; spread is the distance between their quartiles. */
void row_print(const struct row *r);

/* Runs on this CPU from now on, if there is one of that number. */
void bench_pin(int cpu);
/* CPU time of a process, all its threads, the kernel's workers for it included. */
uint64_t bench_cpu_ns(int pid);

/* Runs work() in nr threads (at most BENCH_THREADS) for bench_ns(), each until *ends.  How much they did in all, a second. */
#define BENCH_THREADS 64
double bench_threads(int nr, uint64_t (*work)(int thread, const _Atomic bool *ends));
/* Notes the microseconds since then, as long as there is room for it. */
void bench_note_us(double *samples, int *nr, int cap, uint64_t begun_ns);

/* How often its threads have gone to sleep so far. */
double bench_sleeps(int pid);
/* Nanoseconds that its threads were ready and had no CPU: how quiet the machine is. */
double bench_waited(int pid);
/* Collects that over runs; says at the end, on stderr, when it was much. */
void bench_quiet_add(double waited_ns, uint64_t ns);
void bench_quiet_say(void);

/* ---- the raw loop ---- */

/* io_uring, O_DIRECT, fixed hugepage buffers, over a file that was written once: what the disk gives. */
struct raw;

struct raw_result {
	uint64_t bytes, ops, ns, cpu_ns;
	double p50_us;
};

/* A file of size bytes at path (removed again by raw_close()).  bufs_mib: how much may be in flight. */
struct raw *raw_open(const char *path, uint64_t size_bytes, unsigned bufs_mib);
void raw_close(struct raw *r);
/* Transfers of len bytes (<= 1 MiB), qd of them in flight, one slot after the other.  flush: each write is
 * followed by a flush, before it counts. */
struct raw_result raw_run(struct raw *r, bool write, uint32_t len, int qd, bool flush, uint64_t for_ns);

/* From now on the bytes of each read are looked at once, one in every line of the cache: what any reader that
 * checks them does at least. */
void raw_touch(struct raw *r, bool touch);

static inline double
per_second(uint64_t n, uint64_t ns)
{
	return ns ? (double)n * 1e9 / (double)ns : 0;
}

#endif
