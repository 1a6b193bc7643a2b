/* SPDX-License-Identifier: Apache-2.0 */
/* The memory limit of the control groups that this process is in: version 2, version 1, and the groups above. */
#include "conf/conf_int.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 4096

/* A memory hierarchy: where it is mounted, which of its groups the mount shows as its root, and the process's group. */
struct hierarchy {
	bool is_mounted, is_joined;
	char mount[PATH_MAX], shown[PATH_MAX], group[PATH_MAX];
};

static FILE *
open_below(const char *root, const char *path)
{
	char name[3 * PATH_MAX];

	snprintf(name, sizeof name, "%s%s", root, path);
	return fopen(name, "re");
}

/* Tells whether a list of words divided by commas has a word. */
static bool
has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, word, len) == 0 && (p[len] == ',' || p[len] == 0))
			return true;
	}
	return false;
}

/* Reads the lines "id:controllers:/group" of cgroups(7). */
static void
read_groups(const char *root, struct hierarchy *v1, struct hierarchy *v2)
{
	FILE *f = open_below(root, "/proc/self/cgroup");
	char line[LINE_MAX_BYTES];

	while (f && fgets(line, sizeof line, f)) {
		char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
		struct hierarchy *h;

		if (!group)
			continue;
		*group++ = 0;
		group[strcspn(group, "\n")] = 0;
		h = list[1] == 0 ? v2 : has_word(list + 1, "memory") ? v1 : NULL;
		if (!h)
			continue;
		h->is_joined = true;
		snprintf(h->group, sizeof h->group, "%s", group);
	}
	if (f)
		fclose(f);
}

/* Reads the mounts of cgroup file systems; proc_pid_mountinfo(5). */
static void
read_mounts(const char *root, struct hierarchy *v1, struct hierarchy *v2)
{
	FILE *f = open_below(root, "/proc/self/mountinfo");
	char line[LINE_MAX_BYTES];

	while (f && fgets(line, sizeof line, f)) {
		char shown[LINE_MAX_BYTES], mount[LINE_MAX_BYTES], type[64], options[LINE_MAX_BYTES];
		char *rest = strstr(line, " - ");
		struct hierarchy *h;

		if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", shown, mount) != 2 ||
		    sscanf(rest, " - %63s %*s %4095s", type, options) != 2)
			continue;
		h = strcmp(type, "cgroup2") == 0                                 ? v2
		    : strcmp(type, "cgroup") == 0 && has_word(options, "memory") ? v1
										 : NULL;
		if (!h || h->is_mounted)
			continue;
		h->is_mounted = true;
		snprintf(h->mount, sizeof h->mount, "%s", mount);
		snprintf(h->shown, sizeof h->shown, "%s", strcmp(shown, "/") == 0 ? "" : shown);
	}
	if (f)
		fclose(f);
}

/* Returns the limit of one group; UINT64_MAX: it has none ("max", or no such file). */
static uint64_t
limit_of(const char *root, const char *dir, const char *file)
{
	char path[3 * PATH_MAX];
	unsigned long long bytes = 0;
	bool is_number;
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, file);
	f = open_below(root, path);
	is_number = f && fscanf(f, "%llu", &bytes) == 1;
	if (f)
		fclose(f);
	return is_number ? bytes : UINT64_MAX;
}

/* Returns the least limit of the process's group and of those above it, as far up as the mount shows them. */
static uint64_t
least_limit(const char *root, const struct hierarchy *h, const char *file)
{
	const char *group = h->group;
	size_t shown = strlen(h->shown);
	uint64_t least = UINT64_MAX;
	char dir[2 * PATH_MAX];

	if (!h->is_mounted || !h->is_joined)
		return least;
	/* Without a namespace of control groups the group is named from the machine's root, the mount shows a part. */
	if (shown && strncmp(group, h->shown, shown) == 0 && (group[shown] == '/' || group[shown] == 0))
		group += shown;
	snprintf(dir, sizeof dir, "%s%s", h->mount, strcmp(group, "/") == 0 ? "" : group);
	for (;;) {
		uint64_t limit = limit_of(root, dir, file);
		char *end = strrchr(dir, '/');

		least = limit < least ? limit : least;
		if (!end || (size_t)(end - dir) < strlen(h->mount))
			return least;
		*end = 0;
	}
}

uint64_t
cgroup_memory_bytes(const char *root)
{
	struct hierarchy *h = calloc(2, sizeof *h);
	uint64_t v1, v2;

	if (!h)
		return UINT64_MAX;
	read_groups(root, &h[0], &h[1]);
	read_mounts(root, &h[0], &h[1]);
	v1 = least_limit(root, &h[0], "memory.limit_in_bytes");
	v2 = least_limit(root, &h[1], "memory.max");
	free(h);
	return v1 < v2 ? v1 : v2;
}
