/* SPDX-License-Identifier: Apache-2.0 */
/* See keyring.h. librados does not report the files that it tried. */
#include "rados/keyring.h"

#include "base/advice.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define END ": gantryd-rados(8), \"Key\""
#define END_BYTES (sizeof END + 24) /* includes the number of files that are not named */

/* Returns a text about the client's key in a keyring file. */
static const char *
judge(const char *path, const char *user)
{
	FILE *f = fopen(path, "re");
	char line[512], want[256];
	bool found = false;

	if (!f)
		return strerror(errno);
	snprintf(want, sizeof want, "[client.%s]", user);
	while (fgets(line, sizeof line, f))
		found |= strncmp(line + strspn(line, " \t"), want, strlen(want)) == 0;
	explicit_bzero(line, sizeof line);
	fclose(f);
	return found ? "has a key for it, which the cluster does not accept" : "has no key for it";
}

void
keyring_say(rados_t cluster, const char *user, char *text, size_t cap)
{
	const struct passwd *pw = getpwuid(geteuid());
	size_t room = cap > END_BYTES ? cap - END_BYTES : 0;
	char list[4096] = "", *rest = NULL;
	unsigned nr = 0, more = 0;

	if (rados_conf_get(cluster, "keyring", list, sizeof list) < 0 ||
	    !advice_insert(text, room, "; its key was looked for by user %s (%u) in", pw ? pw->pw_name : "?",
			   (unsigned)geteuid()))
		return;
	for (char *path = strtok_r(list, ",; \t", &rest); path; path = strtok_r(NULL, ",; \t", &rest)) {
		if (advice_insert(text, room, "%s %s (%s)", nr ? "," : "", path, judge(path, user)))
			nr++;
		else
			more++;
	}
	if (more)
		advice_insert(text, cap, nr ? " and %u more" : " %u files", more);
	advice_insert(text, cap, "%s" END, nr || more ? "" : " no file");
}
