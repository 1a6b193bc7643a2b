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
set_mtu(struct fab_port *p, unsigned long mtu)
{
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
set_lid(struct fabric *f, struct fab_port *p, unsigned long lid)
{
	if (!atomic_load(&p->lid) || lid < 1 || lid > 0xbfff) {
		fprintf(stderr, "softnicctl: port: a LID is 1 to 49151, and ports on InfiniBand have one\n");
		return 2;
	}
	atomic_store(&p->lid, (uint32_t)lid);
	tell(f, p, FAB_NEWS_LID);

	return 0;
}

enum property { PORT_AGAIN, PORT_GIDS, PORT_MTU, PORT_PKEY, PORT_LID, PORT_NR };

/* Parses the value of a property; base 1: on or off. */
static bool
value_of(const char *s, int base, unsigned long *ret)
{
	char *end;

	*ret = strcmp(s, "on") == 0;
	if (base == 1)
		return *ret || strcmp(s, "off") == 0;
	*ret = strtoul(s, &end, base);

	return *s && !*end && *ret <= 0xffff;
}

int
ctl_port_word(int dev, int argc, char **argv)
{
	static const struct {
		const char *name;
		int base; /* of its value; 1: on or off; -1: it has no value */
	} all[PORT_NR] = { { "again", -1 }, { "gids", 1 }, { "mtu", 10 }, { "pkey", 16 }, { "lid", 0 } };
	struct fabric *f = NULL;
	unsigned long value = 0;
	int fd, what = 0, words;

	while (what < PORT_NR && strcmp(argv[0], all[what].name))
		what++;
	if (what == PORT_NR)
		return ctl_refuse("port", argv[0]);
	words = all[what].base < 0 ? 1 : 2;
	if (argc != words)
		return ctl_refuse("port", argc < words ? NULL : argv[words]);
	if (words == 2 && !value_of(argv[1], all[what].base, &value))
		return ctl_refuse("port", argv[1]);
	if (ctl_open(&f, &fd) < 0)
		return 1;
	struct fab_port *p = &f->port[dev];

	switch (what) {
	case PORT_AGAIN:
		tell(f, p, FAB_NEWS_ACTIVE);
		break;
	case PORT_GIDS:
		atomic_store(&p->no_gids, !value);
		break;
	case PORT_MTU:
		return set_mtu(p, value);
	case PORT_PKEY:
		atomic_store(&p->pkey, (uint16_t)value);
		tell(f, p, FAB_NEWS_PKEY);
		break;
	default:
		return set_lid(f, p, value);
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
	int dev = argc > 0 ? ctl_dev(argv[0]) : -1, fd, rc;
	struct fabric *f = NULL;
	uint32_t prefix;
	uint8_t raw[16];
	bool add;

	if (dev < 0)
		return ctl_refuse("gid", argc > 0 ? argv[0] : NULL);
	if (argc > 1 && strcmp(argv[1], "add") && strcmp(argv[1], "del"))
		return ctl_refuse("gid", argv[1]);
	if (argc != 3)
		return ctl_refuse("gid", argc > 3 ? argv[3] : NULL);
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
