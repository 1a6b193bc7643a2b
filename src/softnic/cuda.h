/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of a process that uses CUDA (SOFTNIC_CUDA=1): the CUDA driver moves bytes that the CPU cannot
 * map, on a thread of the process, which runs the jobs requested by initiators (struct fab_job). Uses only
 * the fabric; the driver is used only if the program has loaded it. Any thread, but a forked child has no
 * CUDA.
 */
#ifndef SOFTNIC_CUDA_H
#define SOFTNIC_CUDA_H

#include "softnic/fabric.h"

/* errno (ENOTSUPP) that NVIDIA's driver returns: a number of the kernel that errno.h does not define */
#define SN_ENOTSUPP 524

/* A range of device memory that is registered. */
struct cuda_window {
	uint64_t addr;
	uint64_t len;
	uint64_t identity; /* id of the allocations in the range, as the driver numbers them */
	int ordinal;       /* number of the device */
};

/* Finds device memory by its address. Returns 0, or SN_ENOTSUPP if it is not device memory or the program has
 * no CUDA. */
int cuda_find(uint64_t addr, uint64_t len, struct cuda_window *ret);
/* Finds the device memory of [offset, offset + len) of a dma-buf with buf_len bytes, which the program
 * addresses by iova. Returns 0 or SN_ENOTSUPP. */
int cuda_find_dmabuf(uint64_t buf_len, uint64_t offset, uint64_t len, uint64_t iova, struct cuda_window *ret);

/* Begins to serve a window under a new key; `proc` is this process, ops has the bit 1 << op of each allowed
 * enum fab_op. 0, ENOMEM, or SN_ENOTSUPP if its device cannot be used. */
int cuda_serve(struct fab_proc *proc, uint32_t key, const struct cuda_window *w, unsigned ops);
/* Withdraws the window of a key: after the return no job moves a byte of the window. */
void cuda_withdraw(uint32_t key);
/* Forgets all windows, in a forked child: they belong to the parent. */
void cuda_forget(void);

#endif
