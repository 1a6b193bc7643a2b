/* SPDX-License-Identifier: Apache-2.0 */
/*
 * set - a store made of engines, each with one disk: a back end of its own over any other.
 *
 * To open a set, struct store_conf names store_set_ops, the ops of its engines, and one disk for each
 * engine. docs/set.md is the reference.
 *
 * Placement.  hash(bucket, object key) and nothing else says which engine has a key, so an object, its uploads
 * and their parts share one log.  Operations on a key go straight to that engine's port, and stay there.
 *
 * Buckets and their attributes are on every engine; what they are is what the first one says, which gets a
 * bucket before and loses it after all others.  Changes of buckets take turns, whatever their port.  Lists of
 * objects and uploads are merged.  With one engine all of this passes through.
 *
 * Errors beyond the engine's, of bucket changes and lists with several engines:
 *   -EAGAIN     no memory for it now
 *   -ECANCELED  an engine failed when others had made the change already
 * While a bucket is removed, what would be put into it is -EAGAIN.
 */
#ifndef GANTRY_SET_H
#define GANTRY_SET_H

#include "store/store.h"

#define STORE_SET_MAX STORE_DISKS_MAX /* engines */

extern const struct store_ops store_set_ops;

#endif
