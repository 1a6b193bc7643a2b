/* SPDX-License-Identifier: Apache-2.0 */
/* extent/disk/format.h with small numbers.  What stands in the superblock follows them. */
#ifndef GANTRY_TESTS_SIM_FORMAT_H
#define GANTRY_TESTS_SIM_FORMAT_H

#include_next "extent/disk/format.h"

#undef FMT_UNIT_BYTES
#define FMT_UNIT_BYTES 8192u
#undef FMT_CHUNK_BYTES
#define FMT_CHUNK_BYTES (32u << 10)
#undef FMT_FLUSHED_BYTES
#define FMT_FLUSHED_BYTES (12u << 10)
#undef FMT_BLOCK_MAX
#define FMT_BLOCK_MAX (16u << 10)
#undef FMT_BLOCK_MIN
#define FMT_BLOCK_MIN (8u << 10)
#undef FMT_LOG_MIN
#define FMT_LOG_MIN (64u << 10)
#undef FMT_LOG_STEP
#define FMT_LOG_STEP (4u << 10)
#undef FMT_SEG_MIN
#define FMT_SEG_MIN (64u << 10)
#undef FMT_ENTRY_MAX
#define FMT_ENTRY_MAX 2u
#undef FMT_SLOT_NR
#define FMT_SLOT_NR 64
#undef FMT_SUPER_BYTES
#define FMT_SUPER_BYTES (8u << 10)
#undef FMT_DEVICE_HEAD_BYTES
#define FMT_DEVICE_HEAD_BYTES ((uint64_t)20 << 10)
#undef FMT_HOST_OFF
#define FMT_HOST_OFF ((uint64_t)16 << 10)
#undef FMT_DEVICE_TAIL_BYTES
#define FMT_DEVICE_TAIL_BYTES ((uint64_t)8 << 10)
#undef FMT_CRC_BLOCK_MAX
#define FMT_CRC_BLOCK_MAX 4096u

#endif
