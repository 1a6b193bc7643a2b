/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts that are dead for good, because their device was reset while they were open (softnicctl device
 * reset): every call that needs the device fails, and destroying may fail too, or be said to have worked
 * while the adapter goes on.  What an application could not destroy is kept here until it closes the context,
 * which is when the kernel would end it.  Called on the application's threads.
 */
#include "softnic/softnic.h"

#include <unistd.h>

struct sn_left {
	struct sn_left *next;
	enum sn_kind kind;
	void *object;
};

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

static void
destroy(const struct sn_left *l)
{
	switch (l->kind) {
	case SN_QP:
		sn_qp_destroy(l->object);
		break;
	case SN_SRQ:
		sn_srq_destroy(l->object);
		break;
	case SN_CQ:
		sn_cq_destroy(l->object);
		break;
	case SN_CHAN:
		sn_chan_destroy(l->object);
		break;
	case SN_AH:
		free(l->object);
		break;
	case SN_MR:
		sn_mr_destroy(l->object);
		break;
	case SN_PD:
		sn_pd_destroy(l->object);
		break;
	case SN_KIND_NR:
		break;
	}
}

void
sn_left_destroy(struct sn_ctx *ctx)
{
	/* Descriptors of channels first: the application has closed them, whatever they are by now. */
	for (struct sn_left *l = ctx->left; l; l = l->next) {
		if (l->kind == SN_CHAN)
			((struct sn_chan *)l->object)->flag.fd = -1;
	}
	for (int kind = 0; kind < SN_KIND_NR; kind++) {
		for (struct sn_left *l = ctx->left; l; l = l->next) {
			if ((int)l->kind == kind)
				destroy(l);
		}
	}
	while (ctx->left) {
		struct sn_left *l = ctx->left;

		ctx->left = l->next;
		free(l);
	}
}
