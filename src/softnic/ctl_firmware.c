/* SPDX-License-Identifier: Apache-2.0 */
/* softnicctl firmware and profile: how long commands take, what comes after an error, how many queue pairs there are. */
#include "softnic/ctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a word KEY=VALUE sets. */
struct setting {
	const char *key;
	bool is_time;
	size_t at; /* in the fabric */
};

static const struct setting settings[] = {
	{ "call=", true, offsetof(struct fabric, call_ns) },
	{ "ghost=", true, offsetof(struct fabric, ghost_ns) },
	{ "qps=", false, offsetof(struct fabric, qps_max) },
};
enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

static bool
value(const struct setting *s, const char *text, uint64_t *ret)
{
	char *end;

	*ret = 0;
	if (strcmp(text, "0") == 0)
		return true;
	if (s->is_time)
		return ctl_duration(text, ret);
	*ret = strtoull(text, &end, 10);

	return *text >= '1' && *text <= '9' && !*end && *ret <= FAB_QPS;
}

int
ctl_cmd_firmware(int argc, char **argv)
{
	uint64_t want[SETTINGS];
	bool given[SETTINGS] = { false };
	struct fabric *f = NULL;
	int fd;

	for (int i = 0; i < argc; i++) {
		bool good = false;

		for (int k = 0; k < SETTINGS; k++) {
			size_t len = strlen(settings[k].key);

			if (strncmp(argv[i], settings[k].key, len) == 0)
				good = given[k] = value(&settings[k], argv[i] + len, &want[k]);
		}
		if (!good)
			return ctl_refuse("firmware", argv[i]);
		if (ctl_is_again("firmware", argv, i))
			return 2;
	}
	if (ctl_open(&f, &fd) < 0)
		return 1;
	for (int k = 0; k < SETTINGS; k++) {
		_Atomic uint64_t *p = (_Atomic uint64_t *)(void *)((char *)f + settings[k].at);

		if (given[k])
			atomic_store(p, want[k]);
	}
	if (argc == 0) {
		printf("qps=%llu", (unsigned long long)atomic_load(&f->qps_max));
		ctl_print_duration("call", atomic_load(&f->call_ns));
		ctl_print_duration("ghost", atomic_load(&f->ghost_ns));
		putchar('\n');
	}

	return 0;
}

int
ctl_cmd_profile(int argc, char **argv)
{
	struct fabric *f = NULL;
	int fd;

	if (argc < 1 || (strcmp(argv[0], "realistic") && strcmp(argv[0], "flat")))
		return ctl_refuse("profile", argc ? argv[0] : NULL);
	if (argc > 1)
		return ctl_refuse("profile", argv[1]);
	if (ctl_open(&f, &fd) < 0)
		return 1;
	fab_profile(f, argv[0][0] == 'r');

	return 0;
}
