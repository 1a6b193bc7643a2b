/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the service manager (sd_notify(3)), in order, from a thread of their own: a manager that does not read
 * delays no caller.  Any thread, after notify_start().
 */
#ifndef GANTRY_MAIN_NOTIFY_H
#define GANTRY_MAIN_NOTIFY_H

/* Starts the thread, which has the caller's mask of signals; nothing where no manager listens. */
void notify_start(void);
/* Sends a message, as sd_notifyf(3) takes it.  One that finds more than 16 KiB waiting is dropped and logged. */
void notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Says that the process is well (WATCHDOG=1); nothing where such a message waits already. */
void notify_watchdog(void);
/* Waits at most a second for what was sent, and ends the thread. */
void notify_stop(void);

#endif
