/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guarded wall clock, see age_clock.h. The state is the offset of the wall clock from the monotonic clock:
 * `trusted` is the offset that is followed, and is compared with the present one. An offset that differs by less
 * than a jump is followed at once, and becomes the trusted one once an hour, so that many small steps are not
 * mistaken for a jump, nor a jump for many small steps.
 */
#define LOG_MODULE "clock"
#include "base/age_clock.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/run_clock.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>

#define LOOK_NS NS_PER_S /* the two clocks are read within this time */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	bool has_trusted, has_known, holds;
	int64_t trusted, jumped; /* offsets in ns: the one that is followed, and that of the jump */
	uint64_t trusted_since;  /* time of run_ns() at which `trusted` was set; 0: before the first look */
	uint64_t jumped_since;   /* time of run_ns() at which the jump was seen */
	struct age_jump jump;
} c;

struct reading {
	uint64_t mono_ns, wall_ns;
};

/* Reads both clocks at one time: a process that is stopped in between reads them again. */
static struct reading
read_both(void)
{
	struct reading r;

	do {
		r.mono_ns = clock_ns();
		r.wall_ns = clock_wall_ns();
	} while (clock_ns() - r.mono_ns > LOOK_NS);
	return r;
}

void
age_clock_text(uint64_t ns, char out[AGE_TEXT_BYTES])
{
	time_t t = (time_t)(ns / NS_PER_S);
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, AGE_TEXT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void
trust(int64_t offset, uint64_t now)
{
	c.trusted = offset;
	c.trusted_since = now;
	c.has_trusted = true;
	c.holds = false;
}

static void
hold(int64_t offset, const struct reading *r, uint64_t now)
{
	char from[AGE_TEXT_BYTES], to[AGE_TEXT_BYTES];

	c.holds = true;
	c.jumped = offset;
	c.jumped_since = now;
	c.jump.from_ns = r->mono_ns + (uint64_t)c.trusted;
	c.jump.to_ns = r->wall_ns;
	age_clock_text(c.jump.from_ns, from);
	age_clock_text(c.jump.to_ns, to);
	log_warn("the clock jumped from %s to %s: for an hour, or until the clock is right, nothing is "
		 "deleted "
		 "because of its age by the new time",
		 from, to);
}

static bool
is_other_jump(int64_t offset)
{
	int64_t by = offset - c.jumped;

	return by > (int64_t)AGE_JUMP_NS || by < -(int64_t)AGE_JUMP_NS;
}

/* Looks at the clocks and returns the time to be used. The lock is held. */
static uint64_t
look(void)
{
	struct reading r = read_both();
	int64_t offset = (int64_t)(r.wall_ns - r.mono_ns);
	uint64_t now = run_ns();

	if (!c.has_trusted)
		trust(offset, now);
	if (!c.trusted_since)
		c.trusted_since = now;
	if (offset - c.trusted <= (int64_t)AGE_JUMP_NS) {
		if (c.holds)
			log_note("the jump of the clock has ended");
		c.holds = false;
		if (now - c.trusted_since >= AGE_HOLD_NS)
			trust(offset, now);
		return r.wall_ns;
	}
	if (!c.holds || is_other_jump(offset))
		hold(offset, &r, now);
	if (now - c.jumped_since < AGE_HOLD_NS)
		return r.mono_ns + (uint64_t)c.trusted;
	log_note("the clock has had its new time for an hour: ages are computed by it");
	trust(offset, now);
	return r.wall_ns;
}

uint64_t
age_clock_ns(void)
{
	uint64_t ns;

	pthread_mutex_lock(&lock);
	ns = look();
	pthread_mutex_unlock(&lock);
	return ns;
}

void
age_clock_known(uint64_t wall_ns)
{
	struct reading r;
	int64_t offset;

	if (!wall_ns)
		return;
	pthread_mutex_lock(&lock);
	r = read_both();
	/* A time in the future is no protection against a jump to it. */
	offset = (int64_t)((wall_ns < r.wall_ns ? wall_ns : r.wall_ns) - r.mono_ns);
	/* The first one also replaces the offset of a look before the disks were open. */
	if (!c.has_known || offset > c.trusted)
		c.trusted = offset;
	c.has_known = c.has_trusted = true;
	pthread_mutex_unlock(&lock);
}

bool
age_clock_jumped(struct age_jump *ret_jump)
{
	bool holds;

	pthread_mutex_lock(&lock);
	look();
	holds = c.holds;
	if (holds) {
		uint64_t held = run_ns() - c.jumped_since;

		*ret_jump = c.jump;
		ret_jump->left_ns = held < AGE_HOLD_NS ? AGE_HOLD_NS - held : 0;
	}
	pthread_mutex_unlock(&lock);
	return holds;
}

void
age_clock_reset(void)
{
	pthread_mutex_lock(&lock);
	c.has_trusted = c.has_known = c.holds = false;
	c.trusted = 0;
	c.trusted_since = 0;
	pthread_mutex_unlock(&lock);
}
