/* SPDX-License-Identifier: Apache-2.0 */
/* nodump - excludes memory from core dumps: payload, and keys that outlive a request. */
#ifndef GANTRY_BASE_NODUMP_H
#define GANTRY_BASE_NODUMP_H

#include <stddef.h>

/* Excludes the pages with these bytes from core dumps, together with other data in these pages. Has no effect
 * if the kernel does not support the exclusion. */
void nodump(const void *p, size_t len);

#endif
