/* SPDX-License-Identifier: Apache-2.0 */
/* What our librdmacm.so.1 asks our libibverbs.so.1. On any thread. */
#include "softnic/cm_fabric.h"
#include "softnic/softnic.h"

#include <sys/stat.h>

SN_EXPORT int
softnic_cm_route(struct ibv_context *context, const union ibv_gid *to, uint64_t *ret_wait_ns)
{
	struct sn_ctx *ctx = sn_ctx(context);

	*ret_wait_ns = 0;

	return sn_inherited(context) || sn_lost(ctx) || sn_port(ctx)->lid
		       ? ENETUNREACH
		       : sn_look_up(ctx, to->raw, ret_wait_ns);
}

SN_EXPORT bool
softnic_cm_passes(struct ibv_context *context, const union ibv_gid *to)
{
	struct sn_ctx *ctx = sn_ctx(context);
	struct sn_dest dest = { .is_global = true };

	memcpy(dest.dgid, to->raw, 16);
	if (sn_inherited(context) || sn_lost(ctx) || atomic_load(&sn_port(ctx)->down))
		return false;
	for (int i = 0; i < FAB_DEVS; i++) {
		const struct fab_port *port = &sn_self.fab->port[i];

		if (!atomic_load(&port->down) && sn_delivers(sn_port(ctx), ctx->dev->index, port, &dest))
			return true;
	}

	return false;
}

SN_EXPORT void
softnic_cm_fabric(char *buf, size_t len)
{
	struct stat st = { 0 };

	fstat(sn_self.fd, &st);
	snprintf(buf, len, "%jx:%jx", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}
