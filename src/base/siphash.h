/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-1-3, for hash tables whose keys come from clients: without the secret key no client can choose the
 * hash chain into which a key falls. Not a signature.
 */
#ifndef GANTRY_BASE_SIPHASH_H
#define GANTRY_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const uint64_t key[2], const void *data, size_t len);

#endif
