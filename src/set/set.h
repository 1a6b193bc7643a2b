/* SPDX-License-Identifier: Apache-2.0 */
/*
 * set - a store that consists of engines, each with one disk: a back end that uses other back ends.
 *
 * The configuration of a set (struct store_conf) names store_set_ops, the ops of the engines, and one disk
 * for each engine. docs/set.md is the reference.
 *
 * Placement. Only hash(bucket, object key) determines the engine of a key, so an object, its uploads and
 * their parts share one log. Operations on a key are passed directly to the port of this engine.
 *
 * Buckets and their attributes are on every engine; the first engine determines their state: a bucket is made
 * on the first engine last, and removed on the first engine first. Changes of buckets are made one after the
 * other, on any port. Lists of objects and uploads are merged. A set of one engine passes calls for keys and lists
 * through.
 *
 * Additional errors of bucket changes and lists, in a set of several engines:
 *   -EAGAIN     no memory now
 *   -ECANCELED  an engine failed after others had made the change
 * While a bucket is being removed, writes to the bucket end with -EAGAIN.
 */
#ifndef GANTRY_SET_H
#define GANTRY_SET_H

#include "store/store.h"

#define STORE_SET_MAX STORE_DISKS_MAX /* largest number of engines in a set */

extern const struct store_ops store_set_ops;

#endif
