/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rados - the store on a RADOS cluster: a back end of store.h (docs/rados.md).
 *
 * Configuration: struct store_rados_conf of store.h. Several processes may serve one store.
 */
#ifndef GANTRY_RADOS_RADOS_H
#define GANTRY_RADOS_RADOS_H

#include "store/store.h"

/* The back end, for .ops of struct store_conf. */
extern const struct store_ops rados_store_ops;

#endif
