/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that all files use: messages, time, and the settings from the environment. This file calls no other file of softnic.
 * Any thread.
 */
#include "softnic/softnic.h"

#include <stdarg.h>
#include <time.h>
#include <unistd.h>

struct sn_conf sn_conf;

void
sn_check_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "softnic: %s:%d: check failed: %s\n", file, line, what);
	abort();
}

void
sn_warn(const char *fmt, ...)
{
	char buf[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	fprintf(stderr, "softnic[%d]: %s\n", (int)getpid(), buf);
}

void
sn_debug(const char *fmt, ...)
{
	char buf[512];
	va_list ap;

	if (!sn_conf.debug)
		return;
	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	fprintf(stderr, "softnic[%d]: %s\n", (int)getpid(), buf);
}

uint64_t
sn_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void
sn_sleep_ns(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

	while (ns && nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

uint32_t
sn_pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

/* ---- settings ---- */

static int64_t
env_us(const char *name, int64_t def_us)
{
	const char *e = getenv(name);
	char *end;

	if (!e || !*e)
		return def_us < 0 ? -1 : def_us * 1000;
	if (strcmp(e, "off") == 0)
		return -1;
	long v = strtol(e, &end, 10);

	if (*end || v < 0 || v > 1000000000) {
		sn_warn("%s=%s is no number of microseconds; ignored", name, e);
		return def_us < 0 ? -1 : def_us * 1000;
	}

	return (int64_t)v * 1000;
}

static int
env_int(const char *name, int def, int low, int high)
{
	const char *e = getenv(name);
	char *end;

	if (!e || !*e)
		return def;
	long v = strtol(e, &end, 10);

	if (*end || v < low || v > high) {
		sn_warn("%s=%s is not between %d and %d; ignored", name, e, low, high);
		return def;
	}

	return (int)v;
}

void
sn_conf_read(void)
{
	const char *e = getenv("SOFTNIC_EXEC");

	if (e && *e && strcmp(e, "inline") && strcmp(e, "thread"))
		sn_warn("SOFTNIC_EXEC=%s is neither thread nor inline; thread it is", e);
	sn_conf.run_inline = e && strcmp(e, "inline") == 0;
	sn_conf.devices_nr = (unsigned)env_int("SOFTNIC_DEVICES", 1, 0, FAB_DEVS);
	sn_conf.assist_ns = env_us("SOFTNIC_ASSIST_US", 20);
	sn_conf.retry_ns = env_us("SOFTNIC_RETRY_US", -1);
	sn_conf.dckey_status =
		env_int("SOFTNIC_DCKEY_STATUS", IBV_WC_RETRY_EXC_ERR, 1, IBV_WC_TM_RNDV_INCOMPLETE);
	sn_conf.no_dc = env_int("SOFTNIC_DC", 1, 0, 1) == 0;
	sn_conf.dc_rd_atomic = env_int("SOFTNIC_DC_RD_ATOMIC", SN_MAX_RD_ATOM, 1, 128);
	sn_conf.peer_mem = env_int("SOFTNIC_PEER_MEM", 0, 0, 1) > 0;
	sn_conf.cuda = env_int("SOFTNIC_CUDA", 0, 0, 1) > 0;
	sn_conf.no_dmabuf = env_int("SOFTNIC_DMABUF", 1, 0, 1) == 0;
	e = getenv("SOFTNIC_PIN");
	if (e && strcmp(e, "check") == 0)
		sn_conf.pin = SN_PIN_COUNT | SN_PIN_FRAMES;
	else if (e && *e)
		sn_conf.pin = strcmp(e, "count") == 0    ? SN_PIN_COUNT
			      : strcmp(e, "frames") == 0 ? SN_PIN_FRAMES
							 : 0;
	if (e && *e && !sn_conf.pin)
		sn_warn("SOFTNIC_PIN=%s is neither count, frames nor check; nothing is pinned", e);
	sn_conf.debug = env_int("SOFTNIC_DEBUG", 0, 0, 9) > 0;
	sn_conf.no_hazard = env_int("SOFTNIC_TEST_NO_HAZARD", 0, 0, 1) > 0;
}
