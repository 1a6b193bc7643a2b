/* SPDX-License-Identifier: Apache-2.0 */
/* Names of listening ids: addresses and ports of the connection manager as names of sockets. */
#ifndef SOFTNIC_CM_NAME_H
#define SOFTNIC_CM_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Makes a socket with the name of an address and a port. Returns 0 or an errno value (EADDRINUSE). */
int cm_name_bind(const struct sockaddr *a, uint16_t port, int *ret_fd);
/* Connects to the id that listens at an address, or at any address of the port. Returns 0; ECONNREFUSED: there is none; EAGAIN: its queue
 * is full. */
int cm_name_connect(const struct sockaddr *a, int *ret_fd);
/* Returns true if the process at the other end of a socket may use our fabric. */
bool cm_name_trusted(int fd);

#endif
