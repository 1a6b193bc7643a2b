/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time of both sides of gantry bench; see bench.h. */
#include "client/cmd/bench/bench_int.h"

#include "base/clock.h"
#include "client/cmd/common/admin_client.h"

#include <stdlib.h>
#include <sys/resource.h>

static double
server_cpu_s(const struct bench *b)
{
	struct sample s;
	struct answer a;
	char err[512];
	double cpu;
	int line;

	if (!b->has_server_cpu || admin_get(admin_name(b->c->admin), "/metrics", &a, err, sizeof err) < 0)
		return 0;
	if (sample_parse(a.text, &s, &line) < 0)
		return 0;
	cpu = sample_sum(&s, "process_cpu_seconds_total", "");
	sample_free(&s);
	return cpu;
}

struct cost
bench_cost_now(const struct bench *b)
{
	struct cost c = { .server_s = server_cpu_s(b) };
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	c.client_s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		     (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
	c.ns = clock_ns();
	return c;
}
