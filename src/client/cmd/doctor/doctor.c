/* SPDX-License-Identifier: Apache-2.0 */
/* gantry doctor: walks what RDMA needs, from the kernel to the daemon, and says in plain words what is in its
 * way. */
#include "client/cmd/doctor/doctor.h"

#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"

#include <stdio.h>

int
cmd_doctor(struct cmd *c, const char *client)
{
	struct doctor d = { .admin = admin_name(c->admin), .client = client, .json = c->json };
	char verdict[160];

	d.list = json_array();
	doctor_ask_rc(&d);
	doctor_host(&d);
	doctor_rdma(&d);
	doctor_libs(&d);
	doctor_daemon(&d);
	if (!d.nr[FOUND_STOP] && d.declined)
		snprintf(verdict, sizeof verdict,
			 "this machine can use RDMA, but the daemon has declined all %.0f tokens that came: "
			 "see "
			 "declines",
			 d.declined);
	else
		snprintf(verdict, sizeof verdict, "%s",
			 d.nr[FOUND_STOP]   ? "RDMA will not be used, or the daemon does not serve: see STOP"
			 : d.nr[FOUND_WARN] ? "RDMA can be used; see the warnings"
					    : "nothing is in the way of RDMA");
	if (c->json) {
		json_t *all = json_pack("{sO ss sb}", "findings", d.list, "verdict", verdict, "ok",
					d.nr[FOUND_STOP] == 0);

		json_dumpf(all, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		putchar('\n');
		json_decref(all);
	} else {
		printf("\n%s\n", verdict);
	}
	json_decref(d.list);
	return d.nr[FOUND_STOP] ? EXIT_FAILED : EXIT_OK;
}
