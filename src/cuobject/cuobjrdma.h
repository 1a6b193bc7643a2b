/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The description of registered memory for callbacks. NVIDIA's cufile.h and cuda.h are included if the
 * compiler finds them, as programs expect; neither is required.
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
	const char *desc_str; /* the token */
} cufileRDMAInfo_t;
#endif

#endif
