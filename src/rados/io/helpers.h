/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of the helper threads of the gateway: removal, clean-up after dead gateways, questions to the monitors. */
#ifndef GANTRY_RADOS_IO_HELPERS_H
#define GANTRY_RADOS_IO_HELPERS_H

#include "base/clock.h"
#include "rados/io/codec.h"

struct rstore;

#define HELPERS_NS (2 * NS_PER_S) /* time between two turns */

/* ---- sweep.c ---- */

/* Removes garbage that is EPOCHS_KEPT epochs old. */
void sweep(struct rstore *st);
/* Removes all data objects of an id, whose number is unknown. Returns 0 or -errno. */
int remove_data(struct rstore *st, struct rid id);

/* ---- watch.c ---- */

/* Reads from the monitors the data for operators. For periodic_start(); cookie: the store. */
void ask_cluster(void *cookie);

/* ---- dead.c ---- */

/* Cleans up after dead gateways (rule 4), then sweeps. For periodic_start(); cookie: the store. */
void clean_up(void *cookie);

#endif
