/* SPDX-License-Identifier: Apache-2.0 */
/* The traffic class that a driver gives every queue pair of a port, whatever class the program requests. Any
 * thread. */
#ifndef GANTRY_BASE_TCLASS_H
#define GANTRY_BASE_TCLASS_H

/* Returns the class, 1 to 255, from /sys/class/infiniband/DEVICE/tc/PORT/traffic_class, which NVIDIA's
 * drivers provide; -1 if the file does not exist. */
int tclass_forced(const char *device, unsigned port);

/* Parses the text of a file traffic_class: "Global tclass=106", a number, or an empty text. Returns -1 if
 * there is no class. Pure. */
int tclass_parse(const char *text);

#endif
