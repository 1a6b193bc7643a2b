/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of gantry doctor: each examines one subject and reports its findings. Main thread. */
#ifndef GANTRY_CLIENT_CMD_DOCTOR_H
#define GANTRY_CLIENT_CMD_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

enum finding {
	FOUND_OK,
	FOUND_NOTE, /* information */
	FOUND_WARN, /* works, but slowly or only for a limited time */
	FOUND_STOP, /* prevents RDMA, or prevents the daemon from serving */
	FOUND_NR
};

struct doctor {
	const char *admin;
	const char *client; /* an address or GID to reach; NULL: none */
	bool json;
	json_t *list; /* findings, for --json */
	int nr[FOUND_NR];
};

void doctor_say(struct doctor *d, enum finding f, const char *topic, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Examines (doctor_host.c) kernel, io_uring, locked memory, huge pages, clock. */
void doctor_host(struct doctor *d);
/* Examines (doctor_rdma.c) device files, devices, ports, GIDs, DC; the route to a client. */
void doctor_rdma(struct doctor *d);
/* Examines (doctor_daemon.c) the state of a running gantryd, its disks, and its declines. */
void doctor_daemon(struct doctor *d);
/* Reports (doctor_libs.c) the libcuobjclient.so.1 that a program written for cuObject would load. */
void doctor_libs(struct doctor *d);
/* Compares (doctor_qos.c) the traffic class of a running gantryd with the settings of its RoCE ports. */
void doctor_qos(struct doctor *d);

#endif
