/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the service manager (sd_notify(3)). A thread of their own sends them in order, so that a
 * manager which does not read delays no caller. Any thread, after notify_start().
 */
#ifndef GANTRY_MAIN_NOTIFY_H
#define GANTRY_MAIN_NOTIFY_H

/* Starts the thread, with the caller's signal mask; does nothing if no service manager listens. */
void notify_start(void);
/* Sends a message with the arguments of sd_notifyf(3). If more than 16 KiB wait to be sent, the message is
 * dropped, which is logged. */
void notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Sends the sign of life WATCHDOG=1; does nothing if such a message waits to be sent. */
void notify_watchdog(void);
/* Ends the thread, after waiting at most a second until all messages are sent. */
void notify_stop(void);

#endif
