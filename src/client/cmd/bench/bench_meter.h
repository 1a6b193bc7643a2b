/* SPDX-License-Identifier: Apache-2.0 */
/* bench_meter - the progress of a measurement on standard error: the time of all rounds, the time left, and
 * the row in progress. Main thread. */
#ifndef GANTRY_CLIENT_CMD_BENCH_METER_H
#define GANTRY_CLIENT_CMD_BENCH_METER_H

#include "client/cmd/bench/bench.h"

/* Begins the display. seconds: time of a round, with its warm-up; 0: unknown, as with --count. */
void bench_meter_begin(const struct bench *b, double seconds);
/* Notes the next row; row NULL: its name is not known. */
void bench_meter_row(const struct bench_row *row);
/* Notes other work than that of a row, such as "removing objects". */
void bench_meter_note(const char *text);
/* Notes the beginning of a round, which ends one in progress, and the end of a round. */
void bench_meter_round(void);
void bench_meter_round_end(void);
/* Erases the display, and prevents its drawing until bench_meter_show(), while the caller prints lines. */
void bench_meter_hide(void);
void bench_meter_show(void);
void bench_meter_end(void);

#endif
