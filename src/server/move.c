/* SPDX-License-Identifier: Apache-2.0 */
/* Moves bytes and waits for the end, see gantry_server.h. */
#include "server/server_int.h"

#include "base/clock.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <time.h>

#define LONG_PAUSE_NS (100 * NS_PER_US) /* a longer pause is a sleep */

static void
cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void
pause_ns(uint64_t ns)
{
	uint64_t until;

	if (!ns)
		return;
	if (ns > LONG_PAUSE_NS) {
		nanosleep(&(struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
					      .tv_nsec = (long)(ns % NS_PER_S) },
			  NULL);
		return;
	}
	until = clock_ns() + ns;
	do
		cpu_pause();
	while (clock_ns() < until);
}

static void
await(struct gantry_channel *c, const struct op *op, uint64_t interval_ns)
{
	enum gantry_delay mode = c->s->p.delay_mode;
	uint64_t idle_ns = 0;

	for (;;) {
		int n = channel_reap(c);

		if (op->is_over)
			return;
		switch (mode) {
		case GANTRY_DELAY_NONE:
			break;
		case GANTRY_DELAY_BATCH:
			pause_ns(n ? 0 : interval_ns);
			break;
		case GANTRY_DELAY_ENTRY:
			pause_ns(interval_ns * (uint64_t)n);
			break;
		case GANTRY_DELAY_ADAPTIVE:
			if (n || !idle_ns)
				idle_ns = clock_ns() + 4 * interval_ns;
			else if (clock_ns() > idle_ns)
				channel_sleep(c, channel_deadline(c));
			break;
		}
	}
}

ssize_t
gantry_channel_move(struct gantry_channel *c, enum gantry_dir d, const struct gantry_piece *p, int n,
		    uint64_t remote, const char *token, uint32_t delay_ns, int *ret_wc_status)
{
	struct op *op;
	ssize_t ret;
	int r = channel_enter(c);

	if (r < 0)
		return r;
	r = op_begin(c, d, p, n, remote, token, NULL, true, &op);
	if (r < 0) {
		channel_leave(c);
		return r;
	}
	await(c, op, delay_ns == GANTRY_INTERVAL ? c->s->p.delay_interval_ns : delay_ns);
	if (ret_wc_status)
		*ret_wc_status = op->wc_status;
	ret = op->wc_status == IBV_WC_SUCCESS ? (ssize_t)op->bytes : -EIO;
	list_push_head(&c->free, &op->link);
	channel_leave(c);
	return ret;
}
