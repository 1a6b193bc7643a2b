/* SPDX-License-Identifier: Apache-2.0 */
/* fsck - compares the index with the existing data objects. May block; any thread. */
#ifndef GANTRY_RADOS_USE_FSCK_H
#define GANTRY_RADOS_USE_FSCK_H

#include "store/store.h"

struct damage_sums;
struct meter_disk;
struct rstore;

/* Reports damage by say(), one line for each call, and counts in *sums the objects and data that a repair
 * removes. meter: counts of the progress, which the caller has set to the step METER_INDEX_ALL; NULL:
 * none. Modes and result are those of store_fsck(); in the mode FSCK_PREVIEW the result is
 * -ENOTRECOVERABLE if there is damage, but none that a repair changes. */
int fsck_store(const struct rstore *st, enum fsck_mode mode, struct damage_sums *sums,
	       struct meter_disk *meter, void (*say)(void *cookie, const char *line), void *cookie);

#endif
