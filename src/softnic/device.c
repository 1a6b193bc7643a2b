/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device list, opening and closing.  All on the application's threads. The
 * device structures are static: programs may keep a pointer past ibv_free_device_list().
 */
#include "softnic/engine.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#undef ibv_get_device_list

static struct sn_dev devices[FAB_DEVS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
init_once(void)
{
	sn_conf_read();
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

static bool
is_ours(struct ibv_device *device)
{
	struct sn_dev *d = (struct sn_dev *)device;

	return d >= devices && d < devices + FAB_DEVS;
}

SN_EXPORT bool
softnic_is_mlx5(struct ibv_device *device)
{
	return is_ours(device) && !sn_conf.no_dc;
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
	r = is_ours(device) ? sn_attach() : -ENODEV;
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
