/* SPDX-License-Identifier: Apache-2.0 */
/* gantry hwcheck: the counters of priorities of a port's network interface, as `ethtool -S` shows them. */
#include "client/cmd/hwcheck/hw.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATS_MAX 65536

/* The interface of the port's GID; false: none. */
static bool
interface_of(const struct hw_run *r, char netdev[32])
{
	char path[160];
	FILE *f;
	bool have;

	snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%d/gid_attrs/ndevs/%d", r->device,
		 r->port.nr, r->port.gid_index);
	f = fopen(path, "re");
	have = f && fgets(netdev, 32, f);
	if (f)
		fclose(f);
	if (have)
		netdev[strcspn(netdev, "\n")] = 0;
	return have && *netdev;
}

/* How many statistics the driver has. */
static unsigned
count(int fd, struct ifreq *ifr)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t nr;
	} q = { .info = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_STATS } };

	ifr->ifr_data = (char *)&q;
	return ioctl(fd, SIOCETHTOOL, ifr) == 0 && q.info.sset_mask ? q.nr : 0;
}

/* "tx_prio3_bytes": 3 and 't'. */
static void
take(struct hw_classes *c, const char *name, uint64_t value)
{
	char direction, end;
	unsigned n;

	if (sscanf(name, "%cx_prio%u_byte%c", &direction, &n, &end) != 3 || end != 's' || n > 7)
		return;
	if (direction == 't')
		c->tx[n] = value;
	else if (direction == 'r')
		c->rx[n] = value;
}

static int
read_stats(int fd, struct ifreq *ifr, unsigned nr, struct hw_classes *ret)
{
	struct ethtool_gstrings *names = calloc(1, sizeof *names + (size_t)nr * ETH_GSTRING_LEN);
	struct ethtool_stats *values = calloc(1, sizeof *values + (size_t)nr * sizeof(uint64_t));
	int seen = -ENOMEM;

	if (names && values) {
		*names = (struct ethtool_gstrings){ .cmd = ETHTOOL_GSTRINGS,
						    .string_set = ETH_SS_STATS,
						    .len = nr };
		*values = (struct ethtool_stats){ .cmd = ETHTOOL_GSTATS, .n_stats = nr };
		ifr->ifr_data = (char *)names;
		seen = ioctl(fd, SIOCETHTOOL, ifr) < 0 ? -errno : 0;
		ifr->ifr_data = (char *)values;
		if (seen == 0 && ioctl(fd, SIOCETHTOOL, ifr) < 0)
			seen = -errno;
		for (unsigned i = 0; i < nr && seen >= 0; i++) {
			char name[ETH_GSTRING_LEN + 1] = "";

			memcpy(name, names->data + (size_t)i * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
			seen += strstr(name, "x_prio") && strstr(name, "_bytes");
			take(ret, name, values->data[i]);
		}
	}
	free(names);
	free(values);
	return seen;
}

bool
hw_classes_read(const struct hw_run *r, struct hw_classes *ret, char why[128])
{
	struct ifreq ifr = { 0 };
	int fd, seen = 0;
	unsigned nr;

	*ret = (struct hw_classes){ 0 };
	if (r->port.is_ib || !interface_of(r, ret->netdev)) {
		snprintf(why, 128, "the port has no network interface that could count classes");
		return false;
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%.15s", ret->netdev);
		nr = count(fd, &ifr);
		seen = nr > 0 && nr <= STATS_MAX ? read_stats(fd, &ifr, nr, ret) : 0;
		close(fd);
	}
	if (seen <= 0)
		snprintf(why, 128, "%s has no counters of priorities (ethtool -S)", ret->netdev);
	return seen > 0;
}
