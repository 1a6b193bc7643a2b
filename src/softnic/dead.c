/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts that do not work again, because their device was reset while they were open (softnicctl device
 * reset): every call that needs the device fails. A call that destroys an object may fail as well, or return
 * success although the adapter still has the object. An object that the application could not destroy stays in
 * a list until the application closes the context (left.c). Called on the application's threads.
 */
#include "softnic/softnic.h"

uint32_t
sn_resets(const struct sn_dev *dev)
{
	return sn_self.proc ? atomic_load(&sn_self.proc->resets[dev->index]) : 0;
}

bool
sn_dead(const struct sn_ctx *ctx)
{
	return sn_self.proc && sn_resets(ctx->dev) / FAB_RESET_ONE != ctx->resets;
}

bool
sn_dead_how(const struct sn_ctx *ctx, enum fab_reset how)
{
	uint32_t resets = sn_resets(ctx->dev);

	return sn_self.proc && resets / FAB_RESET_ONE != ctx->resets && resets & how;
}

int
sn_left_keep(struct ibv_context *context, enum sn_kind kind, void *object)
{
	struct sn_ctx *ctx = sn_ctx(context);
	bool lies = sn_dead_how(ctx, FAB_RESET_DESTROY_LIES);
	bool keep = lies || sn_dead_how(ctx, FAB_RESET_DESTROY_FAILS);
	struct sn_left **at, *l;

	pthread_mutex_lock(&ctx->lock);
	for (at = &ctx->left; *at && (*at)->object != object;)
		at = &(*at)->next;
	l = *at;
	if (keep && !l) {
		l = calloc(1, sizeof(*l));
		sn_check(l);
		*l = (struct sn_left){ .next = ctx->left, .kind = kind, .object = object };
		ctx->left = l;
	} else if (!keep && l) {
		/* It died once more, in another way: now it can be destroyed, and is not to be again. */
		*at = l->next;
		free(l);
	}
	pthread_mutex_unlock(&ctx->lock);

	return lies ? 0 : keep ? EIO : -1;
}
