/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extent - the extent engine, the back end of store/store.h on disks. docs/engine.md describes the engine,
 * docs/disk-format.md the bytes on the disk. Only code that opens a store refers to extent_ops, in struct
 * store_conf.
 */
#ifndef GANTRY_EXTENT_EXTENT_H
#define GANTRY_EXTENT_EXTENT_H

#include "store/store.h"

extern const struct store_ops extent_ops;

#endif
