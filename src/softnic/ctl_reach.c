/* SPDX-License-Identifier: Apache-2.0 */
/* softnicctl reach and route: which addresses a device comes to, and how long an absent one is asked for.  reach.c is what
 * the devices make of it. */
#include "softnic/ctl.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

int
ctl_cmd_reach(int argc, char **argv)
{
	struct fabric *f = NULL;
	uint64_t absent_ns = 0;
	bool set_absent = false, set_reach = false;
	uint32_t reach = FAB_REACH_ALL;
	int fd;

	for (int i = 0; i < argc; i++) {
		if (!set_reach && (strcmp(argv[i], "all") == 0 || strcmp(argv[i], "subnet") == 0)) {
			reach = argv[i][0] == 's' ? FAB_REACH_SUBNET : FAB_REACH_ALL;
			set_reach = true;
		} else if (!set_absent && strncmp(argv[i], "absent=", 7) == 0 &&
			   (strcmp(argv[i] + 7, "0") == 0 || ctl_duration(argv[i] + 7, &absent_ns))) {
			set_absent = true;
		} else {
			return ctl_refuse("reach", argv[i]);
		}
	}
	if (ctl_open(&f, &fd) < 0)
		return 1;
	if (set_reach)
		atomic_store(&f->reach, reach);
	if (set_absent)
		atomic_store(&f->absent_ns, absent_ns);
	if (argc == 0) {
		printf("%s", atomic_load(&f->reach) == FAB_REACH_SUBNET ? "subnet" : "all");
		ctl_print_duration("absent", atomic_load(&f->absent_ns));
		putchar('\n');
	}

	return 0;
}

static void
print(const struct fab_route *r)
{
	char text[INET6_ADDRSTRLEN];
	bool v4 = r->prefix >= 96 && r->raw[10] == 0xff && r->raw[11] == 0xff && r->raw[0] == 0;

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? r->raw + 12 : r->raw, text, sizeof(text));
	printf("mlx5_%u %s/%u\n", atomic_load(&r->dev) - 1, text, r->prefix - (v4 ? 96 : 0));
}

static struct fab_route *
find(struct fabric *f, const struct fab_route *like)
{
	for (int i = 0; i < FAB_ROUTES; i++) {
		struct fab_route *r = &f->route[i];

		if (atomic_load(&r->dev) == atomic_load(&like->dev) &&
		    (atomic_load(&like->dev) == 0 ||
		     (r->prefix == like->prefix && memcmp(r->raw, like->raw, 16) == 0)))
			return r;
	}

	return NULL;
}

static int
change(struct fabric *f, bool add, const struct fab_route *want)
{
	struct fab_route *r = find(f, want);

	if (add && !r) {
		r = find(f, &(struct fab_route){ 0 });
		if (!r) {
			fprintf(stderr, "softnicctl: there are %d routes already\n", FAB_ROUTES);
			return 1;
		}
		r->prefix = want->prefix;
		memcpy(r->raw, want->raw, 16);
		atomic_store(&r->dev, atomic_load(&want->dev));
	} else if (!add && !r) {
		fprintf(stderr, "softnicctl: no such route\n");
		return 1;
	} else if (!add) {
		atomic_store(&r->dev, 0);
	}

	return 0;
}

int
ctl_cmd_route(int argc, char **argv)
{
	bool add = argc > 0 && strcmp(argv[0], "add") == 0, del = argc > 0 && strcmp(argv[0], "del") == 0;
	struct fab_route want = { 0 };
	struct fabric *f = NULL;
	int fd, rc = 0;

	if (argc > 0 && !(add || del) && (strcmp(argv[0], "list") || argc > 1))
		return ctl_refuse("route", argv[strcmp(argv[0], "list") == 0]);
	if (add || del) {
		int dev = argc > 1 ? ctl_dev(argv[1]) : -1;

		if (dev < 0 || argc != 3)
			return ctl_refuse(
				"route", argc == 1 || (argc == 2 && dev >= 0) ? NULL : argv[dev < 0 ? 1 : 3]);
		if (!fab_parse_net(argv[2], want.raw, &want.prefix)) {
			fprintf(stderr, "softnicctl: route: %s is no network\n", argv[2]);
			return 2;
		}
		atomic_store(&want.dev, (uint32_t)dev + 1);
	}
	if (ctl_open(&f, &fd) < 0)
		return 1;
	flock(fd, LOCK_EX);
	for (int i = 0; i < FAB_ROUTES && !(add || del); i++) {
		if (atomic_load(&f->route[i].dev))
			print(&f->route[i]);
	}
	if (add || del)
		rc = change(f, add, &want);
	flock(fd, LOCK_UN);

	return rc;
}
