/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protection domains, memory regions, address handles.  Called by the application on any thread.  A region
 * becomes a slot of the fabric; key, lkey and rkey are the same number, as on mlx5.
 */
#include "softnic/cuda.h"
#include "softnic/softnic.h"

#include <sys/mman.h>
#include <sys/stat.h>
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

/* A thread domain has nothing to it here: no two threads share a doorbell anyway. */
static struct ibv_td *
alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct ibv_td *td = attr->comp_mask ? NULL : calloc(1, sizeof(*td));

	if (attr->comp_mask)
		errno = EINVAL;
	if (td)
		td->context = context;

	return td;
}

static int
dealloc_td(struct ibv_td *td)
{
	free(td);

	return 0;
}

/* What is made in it belongs to the domain that it was made of. */
static struct ibv_pd *
alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	struct sn_pd *pd = attr->comp_mask || !attr->pd ? NULL : calloc(1, sizeof(*pd));

	if (attr->comp_mask || !attr->pd)
		errno = EINVAL;
	if (!pd)
		return NULL;
	pd->of = (struct sn_pd *)attr->pd;
	pd->pd.context = context;
	pd->pd.handle = attr->pd->handle;
	atomic_fetch_add(&pd->of->uses, 1);

	return &pd->pd;
}

void
sn_pd_ops(struct sn_ctx *ctx)
{
	ctx->v.alloc_td = alloc_td;
	ctx->v.dealloc_td = dealloc_td;
	ctx->v.alloc_parent_domain = alloc_parent_domain;
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
	if (((struct sn_pd *)pd)->of)
		atomic_fetch_sub(&((struct sn_pd *)pd)->of->uses, 1);
	free(pd);

	return 0;
}

/* What is wrong with the numbers of a registration: 0 or an errno. */
static int
check_numbers(uint64_t addr, size_t len, unsigned access)
{
	const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
			       IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;

	if (access & IBV_ACCESS_ON_DEMAND)
		return EOPNOTSUPP;
	if (access & ~known || len == 0 || addr + len < addr)
		return EINVAL;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

/* ---- memory that the CPU need not reach ---- */

/* Where the bytes of a region lie in this process. */
struct place {
	uintptr_t va;
	void *map; /* made for the region, or NULL */
	size_t map_len;
	bool is_device;
	struct cuda_window device; /* of is_device */
};

/* Where only the CUDA driver moves bytes; found says whether it knows the memory. */
static int
place_of_device(int found, const struct cuda_window *w, struct place *ret)
{
	if (found)
		sn_debug("SOFTNIC_CUDA: the CUDA driver of this program knows no such device memory");
	else
		*ret = (struct place){ .va = (uintptr_t)w->addr, .is_device = true, .device = *w };
	return found;
}

static int
protection(unsigned access)
{
	return access & IBV_ACCESS_LOCAL_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
}

/*
 * What a peer-memory driver (nvidia-peermem) does for memory that it owns: with SOFTNIC_PEER_MEM=1 shared memory that
 * the CPU may not touch counts as such.  A second mapping of the same pages is this library's alone.  With SOFTNIC_CUDA=1
 * also memory of CUDA.
 */
static int
place_of_peer(const void *addr, size_t len, unsigned access, struct place *ret)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)addr & ~(page - 1);
	size_t map_len = ((uintptr_t)addr + len - from + page - 1) & ~(page - 1);
	struct cuda_window w;
	void *map;

	if (sn_conf.peer_mem && sn_conf.cuda &&
	    place_of_device(cuda_find((uintptr_t)addr, len, &w), &w, ret) == 0)
		return 0;
	map = sn_conf.peer_mem ? mremap((void *)from, 0, map_len, MREMAP_MAYMOVE) : MAP_FAILED;
	if (map == MAP_FAILED)
		return EFAULT;
	if (mprotect(map, map_len, protection(access)) < 0 ||
	    !sn_fault_in(map, map_len, access & IBV_ACCESS_LOCAL_WRITE)) {
		munmap(map, map_len);
		return EFAULT;
	}
	madvise(map, map_len, MADV_DONTFORK);
	*ret = (struct place){ (uintptr_t)map + ((uintptr_t)addr - from), map, map_len };
	return 0;
}

/* Of a dma-buf, or of a memfd in its place; -1 and errno. */
static off_t
size_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	return S_ISREG(st.st_mode) ? st.st_size : lseek(fd, 0, SEEK_END);
}

static int
place_of_dmabuf(int fd, uint64_t offset, size_t len, uint64_t iova, unsigned access, struct place *ret)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = offset & ~(page - 1);
	off_t size = size_of(fd);
	struct cuda_window w;
	size_t map_len;
	void *map;

	if (size < 0)
		return errno == EBADF ? EBADF : EINVAL;
	/* As in the kernel: all of it lies in the buffer, and its pages are mapped where they are in iova. */
	if (offset + len < offset || offset + len > (uint64_t)size || ((offset ^ iova) & (page - 1)))
		return EINVAL;
	map_len = (size_t)((offset + len - from + page - 1) & ~(page - 1));
	map = mmap(NULL, map_len, protection(access), MAP_SHARED, fd, (off_t)from);
	if (map == MAP_FAILED && errno == SN_ENOTSUPP && sn_conf.cuda)
		return place_of_device(cuda_find_dmabuf((uint64_t)size, offset, len, iova, &w), &w, ret);
	if (map == MAP_FAILED)
		return errno;
	madvise(map, map_len, MADV_DONTFORK);
	*ret = (struct place){ (uintptr_t)map + (uintptr_t)(offset - from), map, map_len };
	return 0;
}

/* ---- regions ---- */

static unsigned
remote_ops(unsigned access)
{
	return (access & IBV_ACCESS_REMOTE_READ ? 1u << FAB_OP_READ : 0) |
	       (access & IBV_ACCESS_REMOTE_WRITE ? 1u << FAB_OP_WRITE : 0);
}

/* Makes a region of memory that was looked at (r 0, else the errno why not). */
static struct ibv_mr *
reg_place(struct ibv_pd *pd, int r, const struct place *at, void *addr, size_t len, uint64_t iova,
	  unsigned access)
{
	struct sn_mr *mr;
	uint32_t key;

	if (r == 0)
		r = sn_refused(pd->context, FAB_OP_REG_MR, len);
	mr = r ? NULL : calloc(1, sizeof(*mr));
	if (mr)
		mr->slot = sn_mr_claim(&key);
	if (!mr || !mr->slot) {
		free(mr);
		if (at->map)
			munmap(at->map, at->map_len);
		errno = r ? r : ENOMEM;
		return NULL;
	}
	mr->map = at->map;
	mr->map_len = at->map_len;
	mr->slot->pd = pd->handle;
	mr->slot->access = access;
	mr->slot->dev = sn_ctx(pd->context)->dev->index;
	mr->slot->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	mr->slot->va = at->va;
	mr->slot->len = len;
	mr->slot->flags = at->is_device ? FAB_MR_DEVICE : 0;
	mr->mr = (struct ibv_mr){ .context = pd->context,
				  .pd = pd,
				  .addr = addr,
				  .length = len,
				  .handle = key >> 8,
				  .lkey = key,
				  .rkey = key };
	r = at->is_device ? cuda_serve(sn_self.proc, key, &at->device, remote_ops(access))
			  : sn_pin(mr->slot, key, &mr->kept);
	if (r) {
		sn_mr_release(mr->slot, key);
		free(mr);
		if (at->map)
			munmap(at->map, at->map_len);
		errno = r;
		return NULL;
	}
	atomic_fetch_add(&((struct sn_pd *)pd)->uses, 1);
	atomic_store(&mr->slot->key, key);

	return &mr->mr;
}

static struct ibv_mr *
reg(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access)
{
	struct place at = { .va = (uintptr_t)addr };
	int r = sn_inherited(pd->context) ? EINVAL : check_numbers((uintptr_t)addr, len, access);

	if (r == 0 && !sn_fault_in(addr, len, access & IBV_ACCESS_LOCAL_WRITE))
		r = place_of_peer(addr, len, access, &at);
	return reg_place(pd, r, &at, addr, len, iova, access);
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

SN_EXPORT struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access)
{
	struct place at = { .map = NULL };
	int r = sn_inherited(pd->context) ? EINVAL : check_numbers(iova, len, (unsigned)access);

	if (r == 0 && sn_conf.no_dmabuf)
		r = EOPNOTSUPP;
	if (r == 0)
		r = place_of_dmabuf(fd, offset, len, iova, (unsigned)access, &at);
	/* libibverbs knows no address of such a region either. */
	return reg_place(pd, r, &at, NULL, len, iova, (unsigned)access);
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

	if (mr->slot->flags & FAB_MR_DEVICE)
		cuda_withdraw(ibmr->lkey);
	sn_unpin(mr->slot, ibmr->lkey, mr->kept);
	sn_mr_release(mr->slot, ibmr->lkey);
	if (mr->map)
		munmap(mr->map, mr->map_len);
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

	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || sn_inherited(ibmr->context) || mr->map ||
	    mr->slot->flags & FAB_MR_DEVICE)
		return IBV_REREG_MR_ERR_INPUT;
	sn_unpin(mr->slot, ibmr->lkey, mr->kept);
	sn_mr_release(mr->slot, ibmr->lkey);
	atomic_fetch_sub(&((struct sn_pd *)ibmr->pd)->uses, 1);
	fresh = (struct sn_mr *)reg(new_pd, new_addr, new_len, (uintptr_t)new_addr, new_access);
	if (!fresh) {
		/* The region is gone, as after a failed command of the real one;
		 * dereg must still work on it. */
		uint32_t key;

		mr->slot = sn_mr_claim(&key);
		sn_check(mr->slot);
		/* The slot has the numbers of its last region, and nothing is pinned now. */
		mr->slot->len = 0;
		mr->slot->flags = 0;
		mr->kept = -1;
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
	int r = sn_inherited(pd->context) || !sn_good_av(ctx, attr)
			? EINVAL
			: sn_refused(pd->context, FAB_OP_CREATE_AH, 0);

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
