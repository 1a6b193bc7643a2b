/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of gantry doctor: each looks at one thing and says what it finds.  Main thread. */
#ifndef GANTRY_CLIENT_CMD_DOCTOR_H
#define GANTRY_CLIENT_CMD_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

enum finding {
	FOUND_OK,
	FOUND_NOTE, /* worth knowing */
	FOUND_WARN, /* works, but slowly or not for long */
	FOUND_STOP, /* keeps RDMA from being used, or the daemon from serving */
	FOUND_NR
};

struct doctor {
	const char *admin;
	const char *client; /* an address or GID to reach; NULL: none */
	bool json;
	json_t *list; /* of what was found, for --json */
	int nr[FOUND_NR];
};

void doctor_say(struct doctor *d, enum finding f, const char *topic, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Examines (doctor_host.c) kernel, io_uring, locked memory, huge pages, clock. */
void doctor_host(struct doctor *d);
/* Examines (doctor_rdma.c) device files, devices, ports, GIDs, DC; the way to a client. */
void doctor_rdma(struct doctor *d);
/* Examines (doctor_daemon.c) what a running gantryd says of itself, its disks, and why it declined. */
void doctor_daemon(struct doctor *d);
/* Says (doctor_libs.c) which libcuobjclient.so.1 a program would get that is written to cuObject. */
void doctor_libs(struct doctor *d);
/* Compares (doctor_qos.c) the traffic class of a running gantryd with what its RoCE ports do with it. */
void doctor_qos(struct doctor *d);

#endif
