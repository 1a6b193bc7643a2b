/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the service manager (sd_notify(3)). A separate thread sends them in order, so that no caller
 * waits for a service manager that does not read. Any thread may call these functions after notify_start().
 */
#ifndef GANTRY_MAIN_NOTIFY_H
#define GANTRY_MAIN_NOTIFY_H

/* Starts the thread that sends messages, with the caller's signal mask. Does nothing if no service manager
 * listens. */
void notify_start(void);
/* Sends a message with the arguments of sd_notifyf(3). If more than 16 KiB wait to be sent, the message is
 * dropped, which is logged. */
void notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Sends WATCHDOG=1, which tells the service manager that the daemon is alive. Does nothing while an earlier
 * WATCHDOG=1 waits to be sent. */
void notify_watchdog(void);
/* Waits until all messages are sent, at most a second, and ends the thread. */
void notify_stop(void);

#endif
