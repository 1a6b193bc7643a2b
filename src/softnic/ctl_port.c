/* SPDX-License-Identifier: Apache-2.0 */
/* softnicctl port DEV mtu, pkey, lid, gids, again, and softnicctl gid: what changes on a port beside its state. */
#include "softnic/ctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

static void
tell(struct fabric *f, struct fab_port *p, enum fab_news what)
{
	atomic_fetch_add(&p->news[what], 1);
	fab_event(f);
}

/* As ip link set mtu on RoCE: nobody is told. */
static int
set_mtu(struct fab_port *p, const char *s)
{
	unsigned long mtu = strtoul(s, NULL, 10);

	for (uint32_t code = 1; code <= 5; code++) {
		if (mtu == 128ul << code) {
			atomic_store(&p->mtu, code);
			return 0;
		}
	}
	fprintf(stderr, "softnicctl: port: the MTU is 256, 512, 1024, 2048 or 4096\n");

	return 2;
}

/* As when the subnet manager was restarted. */
static int
set_lid(struct fabric *f, struct fab_port *p, const char *s)
{
	unsigned long lid = strtoul(s, NULL, 0);

	if (!atomic_load(&p->lid) || lid < 1 || lid > 0xbfff) {
		fprintf(stderr, "softnicctl: port: a LID is 1 to 49151, and ports on InfiniBand have one\n");
		return 2;
	}
	atomic_store(&p->lid, (uint32_t)lid);
	tell(f, p, FAB_NEWS_LID);

	return 0;
}

int
ctl_port_word(int dev, int argc, char **argv)
{
	const char *value = argc > 1 ? argv[1] : NULL;
	struct fabric *f = NULL;
	int fd;

	if (ctl_open(&f, &fd) < 0)
		return 1;
	struct fab_port *p = &f->port[dev];

	if (strcmp(argv[0], "again") == 0 && argc == 1) {
		tell(f, p, FAB_NEWS_ACTIVE);
	} else if (strcmp(argv[0], "mtu") == 0 && argc == 2) {
		return set_mtu(p, value);
	} else if (strcmp(argv[0], "pkey") == 0 && argc == 2) {
		atomic_store(&p->pkey, (uint16_t)strtoul(value, NULL, 16));
		tell(f, p, FAB_NEWS_PKEY);
	} else if (strcmp(argv[0], "lid") == 0 && argc == 2) {
		return set_lid(f, p, value);
	} else if (strcmp(argv[0], "gids") == 0 && argc == 2 &&
		   (strcmp(value, "on") == 0 || strcmp(value, "off") == 0)) {
		atomic_store(&p->no_gids, strcmp(value, "off") == 0);
	} else {
		return ctl_usage();
	}

	return 0;
}

/* Adds rows after the last one that was ever used: as where another address has taken the place meanwhile. */
static int
add_gid(struct fab_port *p, const uint8_t raw[16], uint32_t prefix)
{
	int at = 0;

	for (int i = 0; i < FAB_GIDS; i++)
		at = p->gid[i].type != FAB_GID_NONE ? i + 1 : at;
	if (at + 2 > FAB_GIDS) {
		fprintf(stderr, "softnicctl: gid: the table is full\n");
		return 1;
	}
	for (uint32_t t = p->lid ? FAB_GID_IB : FAB_GID_V1, last = p->lid ? FAB_GID_IB : FAB_GID_V2;
	     t <= last; t++, at++) {
		memcpy(p->gid[at].raw, raw, 16);
		p->gid[at].prefix = prefix;
		p->gid[at].type = t;
	}

	return 0;
}

static int
del_gid(struct fab_port *p, const uint8_t raw[16])
{
	int n = 0;

	for (int i = 0; i < FAB_GIDS; i++) {
		if (p->gid[i].type == FAB_GID_NONE || memcmp(p->gid[i].raw, raw, 16) != 0)
			continue;
		p->gid[i].type = FAB_GID_GONE;
		memset(p->gid[i].raw, 0, 16);
		n++;
	}
	if (n == 0)
		fprintf(stderr, "softnicctl: gid: the port does not have it\n");

	return n == 0;
}

int
ctl_cmd_gid(int argc, char **argv)
{
	int dev = argc == 3 ? ctl_dev(argv[0]) : -1, fd, rc;
	struct fabric *f = NULL;
	uint32_t prefix;
	uint8_t raw[16];
	bool add;

	if (dev < 0 || (strcmp(argv[1], "add") && strcmp(argv[1], "del")))
		return ctl_usage();
	add = strcmp(argv[1], "add") == 0;
	if (!fab_parse_net(argv[2], raw, &prefix)) {
		fprintf(stderr, "softnicctl: gid: %s is no address\n", argv[2]);
		return 2;
	}
	if (ctl_open(&f, &fd) < 0)
		return 1;
	flock(fd, LOCK_EX);
	rc = add ? add_gid(&f->port[dev], raw, prefix) : del_gid(&f->port[dev], raw);
	flock(fd, LOCK_UN);
	if (rc == 0)
		tell(f, &f->port[dev], FAB_NEWS_GID);

	return rc;
}
