/* SPDX-License-Identifier: Apache-2.0 */
/* gantry doctor, the traffic class: what the daemon marks its packets with against what each port does with that. */
#include "client/cmd/doctor/doctor.h"

#include "base/printable.h"
#include "base/tclass.h"
#include "client/cmd/common/admin_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first line of a file; false where there is none. */
static bool
read_line(const char *path, char *out, size_t cap)
{
	FILE *f = fopen(path, "re");
	bool have = f && fgets(out, (int)cap, f);

	if (f)
		fclose(f);
	if (!have)
		return false;
	out[strcspn(out, "\n")] = 0;
	printable(out, "");
	return *out != 0;
}

static const char *
class_text(int class, char out[64])
{
	static const char *const ecn[] = { "no ECN", "ECT(1)", "ECT(0)", "CE" };

	snprintf(out, 64, "%d (DSCP %d, %s)", class, class >> 2, ecn[class & 3]);
	return out;
}

/* "dscp", "pcp", or "" where the driver does not tell. */
static void
trusted(const char *device, int port, char netdev[32], char out[32])
{
	char path[160];

	*out = 0;
	snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%d/gid_attrs/ndevs/0", device, port);
	if (!read_line(path, netdev, 32) || strchr(netdev, '/'))
		return;
	snprintf(path, sizeof path, "/sys/class/net/%s/qos/trust", netdev);
	if (!read_line(path, out, 32))
		*out = 0;
}

static void
look_at_rail(struct doctor *d, const char *device, int port, int class)
{
	char topic[80], ours[64], theirs[64], netdev[32], trust[32];
	int forced = tclass_forced(device, (unsigned)port);
	bool good = true;

	snprintf(topic, sizeof topic, "%s:%d", device, port);
	class_text(class, ours);
	if (forced >= 0 && forced != class) {
		good = false;
		doctor_say(d, FOUND_WARN, topic,
			   "rdma.traffic_class is %s, but the port forces %s on every queue pair "
			   "(/sys/class/infiniband/%s/tc/%d/traffic_class): make them one, the one that the "
			   "switches serve",
			   ours, class_text(forced, theirs), device, port);
	}
	trusted(device, port, netdev, trust);
	if (*trust && strcmp(trust, "dscp") != 0) {
		good = false;
		doctor_say(
			d, FOUND_WARN, topic,
			"rdma.traffic_class is %s, but %s trusts %s and not the DSCP, so PFC and ECN of that "
			"class do not see these packets: mlnx_qos -i %s --trust dscp",
			ours, netdev, trust, netdev);
	}
	if (good)
		doctor_say(
			d, FOUND_OK, topic, "rdma.traffic_class is %s; %s", ours,
			forced >= 0 || *trust
				? "the port agrees"
				: "the port does not tell its own (compare: mlnx_qos -i IF, dcb pfc show)");
}

/* The daemon's rdma.traffic_class; -1 where it does not tell. */
static int
own_class(const json_t *conf)
{
	const json_t *row = json_object_get(conf, "rdma.traffic_class");
	const char *text = json_text_at(row, "value", "");
	char *end;
	long class = strtol(text, &end, 10);

	return end != text && !*end && class >= 0 && class <= 255 ? (int)class : -1;
}

void
doctor_qos(struct doctor *d)
{
	json_t *conf, *rails;
	char err[512];
	int class;

	if (doctor_ask(d, "/config", &conf, NULL, err, sizeof err) < 0)
		return;
	class = own_class(conf);
	json_decref(conf);
	if (class < 0 || doctor_ask(d, "/rails", &rails, NULL, err, sizeof err) < 0)
		return;
	for (size_t i = 0; i < json_array_size(rails); i++) {
		const json_t *r = json_array_get(rails, i);
		const char *device = json_text_at(r, "device", "");

		/* InfiniBand has service levels instead. */
		if (strcmp(json_text_at(r, "link", ""), "ethernet") == 0 && *device && !strchr(device, '/'))
			look_at_rail(d, device, (int)json_at(r, "port"), class);
	}
	json_decref(rails);
}
