/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings from the environment, the device list, opening and closing.  All on the application's threads. The
 * device structures are static: programs may keep a pointer past ibv_free_device_list().
 */
#include "softnic/softnic.h"

#include <fcntl.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#undef ibv_get_device_list

struct sn_conf sn_conf;

static struct sn_dev devices[FAB_DEVS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- small things everybody uses ---- */

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

static void
read_conf(void)
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

static void
init_once(void)
{
	read_conf();
	for (uint32_t i = 0; i < FAB_DEVS; i++) {
		struct sn_dev *d = &devices[i];
		uint8_t guid[8] = { 0x02, 0x00, 0x5e, 0xff, 0xfe, 0x00, 0x01, (uint8_t)i };

		d->index = i;
		d->dev.node_type = IBV_NODE_CA;
		d->dev.transport_type = IBV_TRANSPORT_IB;
		snprintf(d->dev.name, sizeof(d->dev.name), "mlx5_%u", i);
		snprintf(d->dev.dev_name, sizeof(d->dev.dev_name), "uverbs%u", i);
		snprintf(d->dev.dev_path, sizeof(d->dev.dev_path), "/sys/class/infiniband_verbs/uverbs%u", i);
		snprintf(d->dev.ibdev_path, sizeof(d->dev.ibdev_path), "/sys/class/infiniband/mlx5_%u", i);
		memcpy(&d->guid, guid, sizeof(d->guid));
	}
}

/* ---- the list ---- */

static bool
is_there(const struct sn_dev *d)
{
	const struct fab_port *port = sn_port_of(d);

	return !(atomic_load(&port->down) & FAB_DOWN_LOST) &&
	       atomic_load(&port->away_until_ns) <= sn_now_ns();
}

SN_EXPORT struct ibv_device **
ibv_get_device_list(int *num)
{
	struct ibv_device **list;
	unsigned n, nr = 0;
	int r;

	if (num)
		*num = 0;
	pthread_once(&once, init_once);
	n = sn_conf.devices_nr;
	r = sn_attach();
	if (r < 0) {
		errno = -r;
		return NULL;
	}
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return NULL;
	for (unsigned i = 0; i < n; i++) {
		const char *name = sn_port_of(&devices[i])->name;

		/* As udev does, and a reset of two devices at once. */
		if (*name && strcmp(devices[i].dev.name, name) != 0)
			snprintf(devices[i].dev.name, sizeof(devices[i].dev.name), "%s", name);
		if (is_there(&devices[i]))
			list[nr++] = &devices[i].dev;
	}
	if (num)
		*num = (int)nr;

	return list;
}

SN_EXPORT void
ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

SN_EXPORT const char *
ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

SN_EXPORT int
ibv_get_device_index(struct ibv_device *device)
{
	return (int)((struct sn_dev *)device)->index;
}

SN_EXPORT __be64
ibv_get_device_guid(struct ibv_device *device)
{
	return ((struct sn_dev *)device)->guid;
}

SN_EXPORT bool
softnic_is_ours(struct ibv_device *device)
{
	struct sn_dev *d = (struct sn_dev *)device;

	return d >= devices && d < devices + FAB_DEVS;
}

/* ---- contexts ---- */

static void
init_locks(struct sn_ctx *ctx)
{
	pthread_condattr_t ca;

	pthread_mutex_init(&ctx->lock, NULL);
	pthread_mutex_init(&ctx->v.context.mutex, NULL);
	pthread_condattr_init(&ca);
	pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
	pthread_cond_init(&ctx->wake, &ca);
	pthread_cond_init(&ctx->unpin, NULL);
	pthread_condattr_destroy(&ca);
}

SN_EXPORT struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct sn_ctx *ctx;
	int r;

	pthread_once(&once, init_once);
	r = softnic_is_ours(device) ? sn_attach() : -ENODEV;
	if (r == 0 && !is_there((struct sn_dev *)device))
		r = -ENODEV;
	if (r < 0) {
		errno = -r;
		return NULL;
	}
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return NULL;
	ctx->dev = (struct sn_dev *)device;
	ctx->forks = sn_self.forks;
	ctx->resets = sn_resets(ctx->dev) / FAB_RESET_ONE;
	r = sn_async_init(ctx);
	if (r < 0) {
		free(ctx);
		errno = -r;
		return NULL;
	}
	init_locks(ctx);
	ctx->v.sz = sizeof(ctx->v);
	ctx->v.context.device = device;
	ctx->v.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	ctx->v.context.cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	ctx->v.context.async_fd = ctx->async.flag.fd;
	ctx->v.context.num_comp_vectors = FAB_VECTORS;
	sn_ctx_ops(ctx);
	sn_watch_add(ctx);

	return &ctx->v.context;
}

SN_EXPORT int
ibv_close_device(struct ibv_context *context)
{
	struct sn_ctx *ctx = sn_ctx(context);

	if (sn_inherited(context))
		return 0;
	sn_watch_remove(ctx);
	sn_left_destroy(ctx);
	sn_engine_stop(ctx);
	sn_async_fini(ctx);
	if (context->cmd_fd >= 0)
		close(context->cmd_fd);
	pthread_cond_destroy(&ctx->wake);
	pthread_cond_destroy(&ctx->unpin);
	pthread_mutex_destroy(&ctx->lock);
	pthread_mutex_destroy(&context->mutex);
	free(ctx->heap);
	free(ctx);

	return 0;
}
