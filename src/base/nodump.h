/* SPDX-License-Identifier: Apache-2.0 */
/* nodump - excludes memory from core dumps: payload, and keys that outlive a request. */
#ifndef GANTRY_BASE_NODUMP_H
#define GANTRY_BASE_NODUMP_H

#include <stddef.h>

/* Excludes the pages that contain the bytes from core dumps, including other data in them; if the kernel
 * cannot do that, they are dumped. */
void nodump(const void *p, size_t len);

#endif
