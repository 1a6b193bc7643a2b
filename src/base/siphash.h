/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-1-3: which bucket of a table something of a client's falls into, so that nobody without the key can
 * choose it.  Not a signature.
 */
#ifndef GANTRY_BASE_SIPHASH_H
#define GANTRY_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const uint64_t key[2], const void *data, size_t len);

#endif
