/* SPDX-License-Identifier: Apache-2.0 */
/* State that other files of main ask for: the phase, the configuration in use, the directory of what outlives the process. */
#include "main/daemon.h"

#include "base/siphash.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define USUAL_DIR "/var/lib/gantry"

const char *const phase_name[PHASE_NR] = { "starting",          "recovering", "waiting for the cluster",
					   "waiting for disks", "serving",    "draining" };

const struct conf *
daemon_conf(struct daemon *d)
{
	const struct conf *c;

	pthread_mutex_lock(&d->conf_lock);
	c = conf_get(d->conf_now);
	pthread_mutex_unlock(&d->conf_lock);
	return c;
}

void
daemon_conf_put(const struct conf *c)
{
	conf_free((struct conf *)(uintptr_t)c);
}

/* Finds the directory.  0, or -ENOENT: there is none. */
static int
find_dir(const struct conf *conf, char *out, size_t cap)
{
	const char *own = conf->store.state_dir, *managers = getenv("STATE_DIRECTORY");
	struct stat st;

	if (!own)
		return -ENOENT;
	if (strcmp(own, "auto") != 0)
		snprintf(out, cap, "%s", own);
	else if (managers && *managers)
		/* A list with colons; ours is the first. */
		snprintf(out, cap, "%.*s", (int)strcspn(managers, ":"), managers);
	else if (stat(USUAL_DIR, &st) == 0 && S_ISDIR(st.st_mode))
		snprintf(out, cap, "%s", USUAL_DIR);
	else
		return -ENOENT;
	return 0;
}

int
daemon_state_owner(const struct conf *conf, char *dir, size_t cap, uid_t *ret_uid, gid_t *ret_gid)
{
	struct stat st;

	if (find_dir(conf, dir, cap) < 0 || stat(dir, &st) < 0)
		return -ENOENT;
	*ret_uid = st.st_uid;
	*ret_gid = st.st_gid;
	return 0;
}

int
daemon_state_path(const struct conf *conf, const struct conf_source *source, const char *name, char *out,
		  size_t cap)
{
	static const uint64_t key[2] = { 0x67616e747279, 1 };
	const char *file = source->file ? source->file : CONF_DEFAULT_FILE;
	char dir[PATH_MAX], real[PATH_MAX];
	int r = find_dir(conf, dir, sizeof dir);

	if (r < 0)
		return r;
	if (!realpath(file, real))
		snprintf(real, sizeof real, "%s", file);
	r = snprintf(out, cap, "%s/%s-%016llx", dir, name,
		     (unsigned long long)siphash(key, real, strlen(real)));
	return r < 0 || (size_t)r >= cap ? -ENAMETOOLONG : 0;
}

void
daemon_look(struct daemon *d)
{
	remember_look(d);
	rescan_look(d);
	seen_look(d);
}

void
daemon_look_end(struct daemon *d)
{
	seen_end();
	remember_free(d->remember);
}
