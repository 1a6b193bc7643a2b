/* SPDX-License-Identifier: Apache-2.0 */
/* meter - the progress of a long step of the store, on standard error for --fsck and --format, and for the
 * service manager and the log during a start. Main thread, except meter_of_start(). */
#ifndef GANTRY_MAIN_METER_H
#define GANTRY_MAIN_METER_H

#include "store/meter.h"

struct daemon;
struct store_disk_conf;

/* Begins to show the progress of a check or format of these disks (base/progress.h). Returns the counts for
 * the configuration of the store. One display at a time. */
struct store_meter *meter_show(const struct store_disk_conf *disk, int nr);
/* Erases the display while lines are written; meter_go_on() draws it again. */
void meter_hide(void);
void meter_go_on(void);
/* Ends the display. */
void meter_end(void);

/* Returns the counts for a start of these disks. */
struct store_meter *meter_of_start(const struct store_disk_conf *disk, int nr);
/* Reports the progress of the start to the service manager (STATUS=), when the step changes and once a second, and
 * to the log once a minute. Requests more time from the service manager while the start makes progress. */
void meter_tell_start(const struct daemon *d, uint64_t now_ns);

#endif
