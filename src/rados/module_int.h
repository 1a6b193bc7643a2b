/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the module: its connections, and the functions of store/ops.h that show its state. */
#ifndef GANTRY_RADOS_MODULE_INT_H
#define GANTRY_RADOS_MODULE_INT_H

#include "rados/io/pool.h"

/* ---- connect.c; any thread that may block ---- */

/* Makes a connection to the cluster, and opens both pools. Returns 0, or -errno with the reason in err;
 * -EACCES: the user has no key, or the cluster rejects the key. The caller calls disconnect() in all cases. */
int connect_to(struct client *c, const struct store_rados_conf *rc, char *err, size_t err_len);
/* Ends a connection, which may be incomplete or all zeros. */
void disconnect(struct client *c);

/* ---- state.c: functions of store/ops.h; any thread ---- */

enum store_answer rstore_answers(const struct store *base, char *why, size_t len);
void rstore_unit_info(const struct store *base, int unit, struct store_unit_info *ret_info);
/* Names the background work: garbage waits for some epochs, and a new gateway reads every shard once. */
const char *rstore_background(const struct store *s);

#endif
