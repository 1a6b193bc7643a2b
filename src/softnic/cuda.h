/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of a process that has CUDA (SOFTNIC_CUDA=1): what the CPU cannot map is moved by the CUDA driver, on a
 * thread of the process, which does the jobs that initiators ask for (struct fab_job).  Knows the fabric alone; the
 * driver is asked only where the program has loaded it.  Any thread, but a forked child has no CUDA.
 */
#ifndef SOFTNIC_CUDA_H
#define SOFTNIC_CUDA_H

#include "softnic/fabric.h"

#define SN_ENOTSUPP                                                                                          \
	524 /* what NVIDIA's driver answers: the kernel's own number, which errno.h does not have */

/* A window into device memory. */
struct cuda_window {
	uint64_t addr;
	uint64_t len;
	uint64_t identity; /* of the allocations in it, as the driver numbers them */
	int ordinal;       /* of the device */
};

/* Finds device memory by its address: 0, or SN_ENOTSUPP when it is none, or the program has no CUDA. */
int cuda_find(uint64_t addr, uint64_t len, struct cuda_window *ret);
/* Finds what [offset, offset + len) of a dma-buf with buf_len bytes is, which the program calls iova: 0 or SN_ENOTSUPP. */
int cuda_find_dmabuf(uint64_t buf_len, uint64_t offset, uint64_t len, uint64_t iova, struct cuda_window *ret);

/* Begins to serve a window under a key that nobody knows yet; `proc` is this process, ops has the bit 1 << op of each
 * enum fab_op that is allowed.  0, ENOMEM, or SN_ENOTSUPP when its device cannot be used. */
int cuda_serve(struct fab_proc *proc, uint32_t key, const struct cuda_window *w, unsigned ops);
/* Ends that: when this returns, no job moves a byte of it any more. */
void cuda_withdraw(uint32_t key);
/* Forgets all of it, in a forked child: it was the parent's. */
void cuda_forget(void);

#endif
