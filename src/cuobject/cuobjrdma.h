/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type by which callbacks receive a token. Programs expect that this header includes NVIDIA's cufile.h
 * and cuda.h: it does if the compiler finds them, and works without them.
 */
#ifndef GANTRY_CUOBJRDMA_H
#define GANTRY_CUOBJRDMA_H

#include "cuobjtypes.h"

#ifdef __has_include
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#if __has_include(<cufile.h>)
#include <cufile.h>
#define GANTRY_HAS_CUFILE_H 1
#endif
#endif

#ifndef GANTRY_HAS_CUFILE_H
typedef struct cufileRDMAInfo {
	int version;
	int desc_len;         /* length of desc_str, with its NUL */
	const char *desc_str; /* text of the token */
} cufileRDMAInfo_t;
#endif

#endif
