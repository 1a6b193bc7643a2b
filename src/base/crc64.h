/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC64-NVME (polynomial 0xad93d23594c93659, reflected 0x9a6c9329ac4bc9b5, initial value and final xor all
 * ones; "123456789" gives 0xae8b14860a799888). Pure functions, which any thread may call; the first call
 * chooses the fastest implementation for this CPU.
 */
#ifndef GANTRY_BASE_CRC64_H
#define GANTRY_BASE_CRC64_H

#include <stddef.h>
#include <stdint.h>

/* Returns the CRC of earlier data followed by these len bytes. crc: CRC of the earlier data; 0: there is
 * none. */
uint64_t crc64_nvme(uint64_t crc, const void *data, size_t len);

/* Returns the CRC as crc64_nvme() does, with the 8 bytes at data + at as zeros: the place of the CRC itself. */
uint64_t crc64_nvme_without(uint64_t crc, const void *data, size_t len, size_t at);

/* Computes the CRC of A followed by B, from the CRCs of A and B and the length of B. */
uint64_t crc64_nvme_combine(uint64_t crc_a, uint64_t crc_b, uint64_t len_b);

/* Chooses the implementation, for tests and benchmarks: "table", "pclmul", "vpclmul256", "vpclmul512",
 * "pmull"; NULL: the fastest for this CPU. Returns 0; -ENOTSUP: this CPU lacks the instructions; -EINVAL:
 * another name. */
int crc64_nvme_select(const char *path);
/* Returns the name of the implementation that is in use. */
const char *crc64_nvme_path(void);

#endif
