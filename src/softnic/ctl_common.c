/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the commands of softnicctl have in common: usage, the fabric, and words for devices and durations. */
#include "softnic/ctl.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
ctl_usage(void)
{
	fputs("usage: softnicctl port DEV up|down     DEV is mlx5_0, mlx5_1, ... or its number\n"
	      "       softnicctl port DEV             say which it is\n"
	      "       softnicctl port DEV flap DOWN_MS PERIOD_MS [COUNT]\n"
	      "       softnicctl port DEV mtu N | pkey HEX | lid N | gids on|off | again\n"
	      "       softnicctl gid DEV add|del ADDRESS\n"
	      "       softnicctl device DEV [lost|back]\n"
	      "       softnicctl device DEV name NAME\n"
	      "       softnicctl device DEV reset [pid=N] [away=TIME] [flush|runs] [destroy=fails|lies]\n"
	      "       softnicctl reach [all|subnet] [absent=TIME]   who is reached; how long an absent one "
	      "is asked for\n"
	      "       softnicctl route [add|del DEV NET]            what a device reaches beside its "
	      "subnets\n"
	      "       softnicctl firmware [call=TIME] [ghost=TIME] [qps=N]   how long commands take, ...\n"
	      "       softnicctl profile realistic|flat             all of that, and subnets\n"
	      "       softnicctl rule add WORD...     a fault; rule list, rule del N, rule clear\n"
	      "       softnicctl trace on FILE [RECORDS] | off | show FILE\n"
	      "       softnicctl stats [--json] [PID] what each process moved, as initiator\n"
	      "       softnicctl qp QPN fatal         break a queue pair: it goes to ERR, its owner gets the "
	      "event\n"
	      "       softnicctl reset [-f]           remove the fabric (also: clean); -f even if processes "
	      "use it\n"
	      "SOFTNIC_DIR names the directory, by default /dev/shm/softnic-<uid>.\n",
	      stderr);
	return 2;
}

int
ctl_refuse(const char *cmd, const char *word)
{
	if (!word)
		return ctl_usage();
	fprintf(stderr, "softnicctl: %s: %s is not understood\n", cmd, word);
	return 2;
}

bool
ctl_is_again(const char *cmd, char **argv, int i)
{
	size_t len = strcspn(argv[i], "=");

	for (int k = 0; k < i; k++) {
		if (strcspn(argv[k], "=") != len || strncmp(argv[k], argv[i], len) != 0)
			continue;
		fprintf(stderr, "softnicctl: %s: %s does not go with %s\n", cmd, argv[i], argv[k]);
		return true;
	}

	return false;
}

int
ctl_open(struct fabric **ret_f, int *ret_fd)
{
	char path[PATH_MAX];
	int r = fab_map(false, ret_f, ret_fd);

	if (r == -ENOENT) {
		fab_path(path, sizeof(path));
		fprintf(stderr, "softnicctl: %s: no fabric there; has a program run on it?\n", path);
	} else if (r == -EACCES || r == -EPERM) {
		fab_path(path, sizeof(path));
		fprintf(stderr, "softnicctl: %s: %s\n", path, strerror(-r));
	}

	return r;
}

int
ctl_dev(const char *s)
{
	char *end;
	long v;

	if (strncmp(s, "mlx5_", 5) == 0)
		s += 5;
	v = strtol(s, &end, 10);

	return *s == 0 || *end || v < 0 || v >= FAB_DEVS ? -1 : (int)v;
}

bool
ctl_duration(const char *s, uint64_t *ret_ns)
{
	char *end;
	double v = strtod(s, &end), unit;

	unit = strcmp(end, "us") == 0 ? 1e3 : strcmp(end, "ms") == 0 ? 1e6 : strcmp(end, "s") == 0 ? 1e9 : 0;
	if (*s < '0' || *s > '9' || unit == 0 || v * unit > 86400e9)
		return false;
	*ret_ns = (uint64_t)(v * unit);

	return *ret_ns > 0;
}

void
ctl_print_duration(const char *key, uint64_t ns)
{
	if (!ns)
		return;
	if (ns % 1000000000 == 0)
		printf(" %s=%llus", key, (unsigned long long)(ns / 1000000000));
	else if (ns % 1000000 == 0)
		printf(" %s=%llums", key, (unsigned long long)(ns / 1000000));
	else
		printf(" %s=%gus", key, (double)ns / 1e3);
}
