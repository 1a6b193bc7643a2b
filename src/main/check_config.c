/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantryd --check-config: would a start accept the files and the disks? Judged as the user of the daemon. The last line has `good` only
 * if all of it was looked at: disks that a daemon has open are compared with those that this daemon names. The main thread of a process of
 * its own.
 */
#include "main/daemon.h"
#include "main/options.h"

#include "auth/auth.h"
#include "base/advice.h"
#include "store/store.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the user ---- */

int
check_as_user(const struct conf *conf, char *ret_name, size_t cap)
{
	char dir[600];
	struct passwd *pw;
	uid_t uid;
	gid_t gid;
	int r;

	ret_name[0] = 0;
	if (geteuid() != 0 || daemon_state_owner(conf, dir, sizeof dir, &uid, &gid) < 0 || uid == 0)
		return 0;
	pw = getpwuid(uid);
	if (pw)
		snprintf(ret_name, cap, "%s", pw->pw_name);
	else
		snprintf(ret_name, cap, "%u", (unsigned)uid);
	r = pw ? initgroups(pw->pw_name, pw->pw_gid) : setgroups(0, NULL);
	if (r < 0 || setgid(pw ? pw->pw_gid : gid) < 0 || setuid(uid) < 0) {
		fprintf(stderr, "gantryd: not looked at as user %s, who has %s: %s\n", ret_name, dir,
			strerror(errno));
		return EXIT_MISSING;
	}
	return 0;
}

/* ---- the store ---- */

/* Says whether a start would take the disks; returns an exit code. *ret_but: text after "good" in the last line. */
static int
check_store(const struct conf_source *src, const struct conf *conf, const char **ret_but)
{
	struct store_disk_conf disks[CONF_DISKS_MAX];
	struct store_conf sc;
	struct remember *m;
	char err[STORE_WHY_BYTES], why[700] = "";
	bool is_known;
	int r;

	if (remember_store_conf(conf, src, disks, &sc, &m, err, sizeof err) < 0 ||
	    store_task(&sc, TASK_CHECK_CONF, err, sizeof err) < 0) {
		options_say(stderr, conf->store.backend == BACKEND_RADOS ? "rados: " : "store.disks: ", err);
		remember_free(m);
		return EXIT_CONFIG;
	}
	is_known = remember_known(m) != NULL;
	r = store_task(&sc, TASK_LOOK, err, sizeof err);
	*ret_but = "";
	if (r == STORE_LOOK_IN_USE && ask_disks(conf, is_known, why, sizeof why) == 0) {
		*ret_but = "; the running daemon has these disks open, and serves from them";
		r = err[0] = 0;
	} else if (r == 0 && err[0]) {
		*ret_but = "; there is no store yet";
	}
	if (r == 0 && err[0] && !is_known)
		advice_insert(err, sizeof err, " (no error before the first --format; a start would end so)");
	remember_way_out(m, r, err, sizeof err);
	if (r != 0 || err[0])
		options_say(stderr, r > 0 ? "store: not looked at: " : "store: ", err);
	if (r > 0 && why[0])
		options_say(stderr, "store: not looked at: ", why);
	if (r == 0 && err[0] && conf->store.backend == BACKEND_DISKS &&
	    (r = below_check_writable(conf, why, sizeof why)) < 0)
		options_say(stderr, "store: ", why);
	remember_notes(m, conf, stderr);
	remember_free(m);
	return r < 0 ? exit_of_store(r) : r > 0 || (err[0] && is_known) ? EXIT_MISSING : EXIT_OK;
}

int
check_config(const char *file, const struct conf_source *src, const struct conf *conf, const char *user)
{
	struct tls_cert *certs[DAEMON_CERTS] = { NULL };
	struct auth_keys *keys = NULL;
	char token[ADMIN_TOKEN_MAX + 2];
	const char *but;
	int r = check_store(src, conf, &but);

	if (r != EXIT_OK)
		return r;
	r = daemon_load_certs(conf, certs);
	daemon_free_certs(certs);
	if (r == 0)
		r = daemon_load_keys(conf, &keys);
	auth_keys_put(keys);
	if (r == 0)
		r = daemon_read_token(conf, token, stderr);
	if (r < 0)
		return EXIT_CONFIG;
	printf("%s: good%s%s%s\n", file, user[0] ? " for user " : "", user, but);
	return EXIT_OK;
}
