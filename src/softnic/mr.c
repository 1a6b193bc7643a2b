/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protection domains, memory regions, address handles.  Called by the application on any thread.  A region
 * becomes a slot of the fabric; key, lkey and rkey are the same number, as on mlx5.
 */
#include "softnic/softnic.h"

#include <sys/mman.h>
#include <unistd.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

SN_EXPORT struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct sn_pd *pd;

	if (sn_lost(sn_ctx(context))) {
		errno = EIO;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->pd.context = context;
	/* Numbered per process: a region is matched by process and domain. */
	static _Atomic uint32_t next;

	pd->pd.handle = atomic_fetch_add(&next, 1) + 1;

	return &pd->pd;
}

SN_EXPORT int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	int r = sn_left_keep(pd->context, SN_PD, pd);

	return r < 0 ? sn_pd_destroy(pd) : r;
}

int
sn_pd_destroy(struct ibv_pd *pd)
{
	if (atomic_load(&((struct sn_pd *)pd)->uses) != 0)
		return EBUSY;
	free(pd);

	return 0;
}

/*
 * Registration on a real adapter pins: it faults every page in and fails where there is none or where the
 * mapping does not allow it.  MADV_POPULATE does the same bar the pinning, in one call.  Kernels before 5.14
 * do not know it; there the pages are looked at with mincore(), which finds holes but not missing rights.
 */
bool
sn_fault_in(const void *addr, size_t len, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)addr & ~(page - 1), to = ((uintptr_t)addr + len + page - 1) & ~(page - 1);
	unsigned char vec[256];

	if (madvise((void *)from, to - from, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
		return true;
	/* EINVAL is a missing right or an unknown advice; of nothing, a known advice is always taken. */
	if (errno != EINVAL || madvise((void *)from, 0, MADV_POPULATE_READ) == 0)
		return false;
	for (uintptr_t a = from; a < to; a += sizeof(vec) * page) {
		size_t n = to - a < sizeof(vec) * page ? to - a : sizeof(vec) * page;

		if (mincore((void *)a, n, vec) < 0)
			return false;
	}

	return true;
}

static int
check_reg(const void *addr, size_t len, unsigned access)
{
	const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
			       IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;

	if (access & IBV_ACCESS_ON_DEMAND)
		return EOPNOTSUPP;
	if (access & ~known || len == 0 || (uintptr_t)addr + len < (uintptr_t)addr)
		return EINVAL;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;

	return sn_fault_in(addr, len, access & IBV_ACCESS_LOCAL_WRITE) ? 0 : EFAULT;
}

static struct ibv_mr *
reg(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access)
{
	struct sn_mr *mr;
	uint32_t key;
	int r;

	r = sn_inherited(pd->context) ? EINVAL : check_reg(addr, len, access);
	if (r == 0)
		r = sn_refused(pd->context, FAB_OP_REG_MR, len);
	mr = r ? NULL : calloc(1, sizeof(*mr));
	if (!mr) {
		errno = r ? r : ENOMEM;
		return NULL;
	}
	mr->slot = sn_mr_claim(&key);
	if (!mr->slot) {
		free(mr);
		errno = ENOMEM;
		return NULL;
	}
	mr->slot->pd = pd->handle;
	mr->slot->access = access;
	mr->slot->dev = sn_ctx(pd->context)->dev->index;
	mr->slot->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	mr->slot->va = (uintptr_t)addr;
	mr->slot->len = len;
	mr->mr = (struct ibv_mr){ .context = pd->context,
				  .pd = pd,
				  .addr = addr,
				  .length = len,
				  .handle = key >> 8,
				  .lkey = key,
				  .rkey = key };
	atomic_fetch_add(&((struct sn_pd *)pd)->uses, 1);
	atomic_store(&mr->slot->key, key);

	return &mr->mr;
}

SN_EXPORT struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return reg(pd, addr, len, (uintptr_t)addr, (unsigned)access);
}

SN_EXPORT struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	return reg(pd, addr, len, iova, (unsigned)access);
}

SN_EXPORT struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned int access)
{
	return reg(pd, addr, len, iova, access);
}

/* When this returns, no initiator can write to the memory or read from it any more. */
SN_EXPORT int
ibv_dereg_mr(struct ibv_mr *ibmr)
{
	int r;

	if (sn_inherited(ibmr->context))
		return 0;
	r = sn_refused_by_rule(ibmr->context, FAB_OP_DEREG_MR, ibmr->length);
	if (r)
		return r;
	r = sn_left_keep(ibmr->context, SN_MR, ibmr);
	if (r >= 0)
		return r;
	sn_mr_destroy(ibmr);

	return 0;
}

void
sn_mr_destroy(struct ibv_mr *ibmr)
{
	struct sn_mr *mr = (struct sn_mr *)ibmr;

	sn_mr_release(mr->slot, ibmr->lkey);
	atomic_fetch_sub(&((struct sn_pd *)ibmr->pd)->uses, 1);
	free(mr);
}

/* A new slot for the old handle: an initiator must never see half of the change. */
SN_EXPORT int
ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct sn_mr *mr = (struct sn_mr *)ibmr, *fresh;
	struct ibv_pd *new_pd = flags & IBV_REREG_MR_CHANGE_PD ? pd : ibmr->pd;
	void *new_addr = flags & IBV_REREG_MR_CHANGE_TRANSLATION ? addr : ibmr->addr;
	size_t new_len = flags & IBV_REREG_MR_CHANGE_TRANSLATION ? len : ibmr->length;
	unsigned new_access = flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned)access : mr->slot->access;

	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || sn_inherited(ibmr->context))
		return IBV_REREG_MR_ERR_INPUT;
	sn_mr_release(mr->slot, ibmr->lkey);
	atomic_fetch_sub(&((struct sn_pd *)ibmr->pd)->uses, 1);
	fresh = (struct sn_mr *)reg(new_pd, new_addr, new_len, (uintptr_t)new_addr, new_access);
	if (!fresh) {
		/* The region is gone, as after a failed command of the real one;
		 * dereg must still work on it. */
		uint32_t key;

		mr->slot = sn_mr_claim(&key);
		sn_check(mr->slot);
		ibmr->lkey = ibmr->rkey = key;
		atomic_fetch_add(&((struct sn_pd *)ibmr->pd)->uses, 1);
		return IBV_REREG_MR_ERR_CMD;
	}
	*mr = *fresh;
	free(fresh);

	return 0;
}

/* ---- address handles ---- */

/* What the kernel refuses is refused here too; who can be reached, and how long it takes to know, is reach.c's. */
SN_EXPORT struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct sn_ctx *ctx = sn_ctx(pd->context);
	struct sn_ah *ah;
	struct sn_dest to = sn_dest_of(attr);
	int r = sn_good_av(ctx, attr) ? sn_refused(pd->context, FAB_OP_CREATE_AH, 0) : EINVAL;

	if (r == 0)
		r = sn_resolve(ctx, &to);
	if (r) {
		errno = r;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ah->ah.context = pd->context;
	ah->ah.pd = pd;
	ah->to = to;

	return &ah->ah;
}

SN_EXPORT int
ibv_destroy_ah(struct ibv_ah *ah)
{
	int r = sn_left_keep(ah->context, SN_AH, ah);

	if (r >= 0)
		return r;
	free(ah);
	return 0;
}
