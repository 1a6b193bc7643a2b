/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered device memory of a process that uses CUDA (SOFTNIC_CUDA=1). The CPU cannot map its bytes, so a
 * thread of this process runs the jobs that initiators request (struct fab_job), and lets the CUDA driver
 * move the bytes. The driver is used only if the program has loaded it. Any thread; a forked child has no
 * CUDA.
 */
#ifndef SOFTNIC_CUDA_H
#define SOFTNIC_CUDA_H

#include "softnic/fabric.h"

/* ENOTSUPP, an errno of the kernel that NVIDIA's driver returns and errno.h does not define */
#define SN_ENOTSUPP 524

/* A range of device memory that is registered. */
struct cuda_window {
	uint64_t addr;
	uint64_t len;
	uint64_t identity; /* the driver's id of the allocations in the range */
	int ordinal;       /* number of the device */
};

/* Finds the device memory [addr, addr + len). Returns 0; SN_ENOTSUPP: the memory is not device memory, or the
 * program has not loaded CUDA. */
int cuda_find(uint64_t addr, uint64_t len, struct cuda_window *ret);
/* Finds the device memory of a dma-buf of buf_len bytes: its bytes [offset, offset + len). iova: the address
 * that the program has given for the first of these bytes. Returns 0 or SN_ENOTSUPP. */
int cuda_find_dmabuf(uint64_t buf_len, uint64_t offset, uint64_t len, uint64_t iova, struct cuda_window *ret);

/* Begins to run jobs for a window, under a new key. proc: this process; ops: the allowed operations, a bit 1
 * << op for each enum fab_op. Returns 0; ENOMEM; or SN_ENOTSUPP: the device of the window cannot be used. */
int cuda_serve(struct fab_proc *proc, uint32_t key, const struct cuda_window *w, unsigned ops);
/* Ends the service for the window of a key: after the return no job moves a byte of the window. */
void cuda_withdraw(uint32_t key);
/* Removes all windows from the list of this process. Called in a forked child, because they belong to the
 * parent. */
void cuda_forget(void);

#endif
