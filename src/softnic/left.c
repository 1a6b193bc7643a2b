/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the objects that an application could not destroy, because their device was reset (dead.c). When
 * the application closes the context, the kernel destroys such objects; here the close calls sn_left_destroy()
 * on the application's thread.
 */
#include "softnic/softnic.h"

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
