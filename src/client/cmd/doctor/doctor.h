/* SPDX-License-Identifier: Apache-2.0 */
/* doctor - functions of gantry doctor. Each examines one subject and reports its findings. All functions are
 * called by the main thread. */
#ifndef GANTRY_CLIENT_CMD_DOCTOR_H
#define GANTRY_CLIENT_CMD_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

enum finding {
	FOUND_OK,
	FOUND_NOTE, /* information that needs no action */
	FOUND_WARN, /* RDMA works, but slowly or only for a limited time */
	FOUND_STOP, /* an obstacle that prevents RDMA, or prevents the daemon from serving */
	FOUND_NR
};

/* The setting rdma.rc.shim of the daemon. */
enum doctor_rc { RC_UNKNOWN, RC_OFF, RC_ON };

struct doctor {
	const char *admin;
	enum doctor_rc rc;
	const char *client; /* address or GID of a client to reach; NULL: none */
	bool json;
	json_t *list; /* array of the findings, for --json */
	int nr[FOUND_NR];
	double declined;  /* number of tokens that the daemon declined, if it used none; otherwise 0 */
	char silent[512]; /* error of a question that the daemon did not answer in time; "": it answers */
};

/* Gets a page of the daemon, as admin_json() does. After a question without an answer in time all others fail at
 * once, with the same error (doctor_daemon.c). */
int doctor_ask(struct doctor *d, const char *path, json_t **ret, int *ret_status, char *err, size_t err_len);
/* Counts a finding and prints it, or adds it to d->list (doctor_say.c). */
void doctor_say(struct doctor *d, enum finding f, const char *topic, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Examines kernel, io_uring, huge pages and clock (doctor_host.c). */
void doctor_host(struct doctor *d);
/* Examines the limit of locked memory: of the daemon, or, if it does not run on this machine, of this user. pid: process id
 * of the daemon, 0: unknown. unregistered: number of cores of the daemon whose buffers are not registered with
 * io_uring (doctor_host.c). */
void doctor_memlock(struct doctor *d, long pid, int unregistered);
/* Asks the daemon for d->rc, if it runs (doctor_rc.c). */
void doctor_ask_rc(struct doctor *d);
/* Examines the connections of the RC transport: limits, refused connects (doctor_rc.c). */
void doctor_rc(struct doctor *d, const json_t *status);
/* Examines device files, devices, ports, GIDs, DC and RC, and the route to a client (doctor_rdma.c). */
void doctor_rdma(struct doctor *d);
/* Examines the state of a running gantryd, its disks, and the reasons why it declined requests
 * (doctor_daemon.c). */
void doctor_daemon(struct doctor *d);
/* Reports which libcuobjclient.so.1 a program written for cuObject would load (doctor_libs.c). */
void doctor_libs(struct doctor *d);
/* Compares the traffic class of a running gantryd with the settings of its RoCE ports (doctor_qos.c). */
void doctor_qos(struct doctor *d);

#endif
