/* SPDX-License-Identifier: Apache-2.0 */
/* check(): a condition that only a defect of Gantry can violate. Release builds evaluate it, too. A violated
 * check logs file, line and expression, and aborts. An event that a client, a disk, a NIC or an operator can
 * cause is an error, never a check. */
#ifndef GANTRY_BASE_CHECK_H
#define GANTRY_BASE_CHECK_H

_Noreturn void check_failed(const char *expr, const char *file, int line, const char *func);

#define check(x) ((x) ? (void)0 : check_failed(#x, __FILE__, __LINE__, __func__))

/* Function that a failed check calls once before it writes its line and aborts, so that pending log lines are
 * written; NULL: no function is called. Runs on any thread. */
extern void (*check_on_failure)(void);

#endif
