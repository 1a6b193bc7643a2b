/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a core dump leaves out: payload, and keys that outlive a request. */
#ifndef GANTRY_BASE_NODUMP_H
#define GANTRY_BASE_NODUMP_H

#include <stddef.h>

/* Keeps the pages that the bytes lie in out of core dumps, whoever else has some of them; where the kernel
 * cannot, they are dumped. */
void nodump(const void *p, size_t len);

#endif
