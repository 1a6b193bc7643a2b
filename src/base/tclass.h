/* SPDX-License-Identifier: Apache-2.0 */
/* The traffic class that a driver gives every queue pair of a port, whatever class the program requests. Any
 * thread may call these functions. */
#ifndef GANTRY_BASE_TCLASS_H
#define GANTRY_BASE_TCLASS_H

/* Returns the traffic class, 1 to 255, that the driver gives every queue pair of the port: the contents of
 * /sys/class/infiniband/DEVICE/tc/PORT/traffic_class, a file of NVIDIA's drivers. -1: the driver sets no
 * class. */
int tclass_forced(const char *device, unsigned port);

/* Parses the text of a file traffic_class: "Global tclass=106", a number, or an empty text. Returns the
 * class; -1: the text has no class. Pure. */
int tclass_parse(const char *text);

#endif
