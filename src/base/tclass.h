/* SPDX-License-Identifier: Apache-2.0 */
/* The traffic class that a driver gives every queue pair of a port, whatever class the program requests. Any
 * thread. */
#ifndef GANTRY_BASE_TCLASS_H
#define GANTRY_BASE_TCLASS_H

/* Returns the class, 1 to 255, from /sys/class/infiniband/DEVICE/tc/PORT/traffic_class, which NVIDIA's drivers
 * have; -1 where there is none. */
int tclass_forced(const char *device, unsigned port);

/* Parses the text of such a file: "Global tclass=106", a number alone, or nothing. -1: no class. Pure. */
int tclass_parse(const char *text);

#endif
