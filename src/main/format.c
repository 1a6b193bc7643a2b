/* SPDX-License-Identifier: Apache-2.0 */
/* --format: makes a store, unless the daemon has served one before (remember.c). */
#include "main/daemon.h"
#include "main/meter.h"
#include "main/options.h"

#include "base/advice.h"
#include "store/record.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN 1 /* a store is there: nothing is left to do */

/* Answers --if-absent where a store is remembered.  KNOWN, or an exit code in *ret_rc. */
static int
look_for_known(const struct store_conf *sc, int *ret_rc)
{
	char err[STORE_WHY_BYTES] = "";
	int r = store_task(sc, TASK_LOOK, err, sizeof err);

	if (r == STORE_LOOK_IN_USE || (r == 0 && !err[0]))
		return KNOWN;
	options_say(stderr, "gantryd: nothing was done: ", err[0] ? err : strerror(-r));
	*ret_rc = r == 0 ? EXIT_MISSING : r > 0 ? EXIT_CONFIG : exit_of_store(r);
	return 0;
}

/* Decides where a store is remembered.  KNOWN: it is there; -ENOENT: a new one may be made; 0: an exit code in *ret_rc. */
static int
judge_known(const struct options *o, const struct remember *m, struct store_conf *sc, int *ret_rc)
{
	const struct store_record *known = remember_known(m);
	char text[UUID_TEXT], err[STORE_WHY_BYTES];

	*ret_rc = EXIT_STORE;
	if (!known && o->replaces) {
		fprintf(stderr, "gantryd: no store is remembered here (%s), so none can be replaced\n",
			remember_file(m)[0] ? remember_file(m) : "store.state_dir");
		*ret_rc = EXIT_CONFIG;
		return 0;
	}
	if (!known)
		return -ENOENT;
	uuid_write(text, known->store_uuid);
	if (o->if_absent) {
		sc->disks.record = known;
		return look_for_known(sc, ret_rc);
	}
	if (o->replaces && memcmp(o->replace_store, known->store_uuid, UUID_BYTES) == 0)
		return -ENOENT;
	snprintf(err, sizeof err,
		 "nothing was made: this daemon has served store %s (%s): is its file system mounted, its "
		 "device there?",
		 text, remember_file(m));
	advice_add(err, sizeof err, ADVICE_REMEMBERED,
		   &(struct advice_values){ .path = sc->disks.disk[0].path, .store = text });
	options_say(stderr, "gantryd: ", err);
	return 0;
}

/* Makes the store and has it remembered; returns an exit code.  *ret_is_there: there is a store. */
static int
make(const struct options *o, const struct conf *conf, struct remember *m, struct store_conf *sc,
     bool *ret_is_there)
{
	bool is_rados = conf->store.backend == BACKEND_RADOS;
	struct store_record *made = is_rados ? NULL : calloc(1, sizeof *made);
	char err[STORE_WHY_BYTES] = "", why[512];
	int r = 0, rc = EXIT_OK;

	if (!is_rados)
		sc->disks.made = made;
	for (int i = 0; !is_rados && i < sc->disks.nr * sc->disks.nr && r == 0; i++)
		r = below_check_inside(conf->store.disks[i % sc->disks.nr].path,
				       conf->store.disks[i / sc->disks.nr].path, err, sizeof err);
	if (r == 0 && !is_rados && !o->force)
		r = below_check_room(conf, err, sizeof err);
	if (r == 0 && !is_rados)
		sc->disks.meter = meter_show(sc->disks.disk, sc->disks.nr);
	if (r == 0)
		r = store_format(sc, o->force, err, sizeof err);
	meter_end();
	if (r == 0 && is_rados)
		printf("gantryd: made a store in the pools %s and %s\n", conf->rados.meta_pool,
		       conf->rados.data_pool);
	else if (r == 0)
		printf("gantryd: made a store on %d disk%s\n", sc->disks.nr, sc->disks.nr == 1 ? "" : "s");
	if (r == 0 && made && remember_made(m, made, why, sizeof why) < 0) {
		fprintf(stderr, "gantryd: there is a store, but it is not remembered: %s\n", why);
		rc = EXIT_RUNTIME;
	}
	free(made);
	if (r == 0)
		remember_notes(m, conf, stderr);
	if (r == -EALREADY && o->if_absent) {
		printf("gantryd: there is a store already, nothing was done\n");
		r = 0;
	}
	*ret_is_there = r == 0;
	if (r == 0)
		return rc;
	options_say(stderr, "gantryd: cannot make a store: ", err[0] ? err : strerror(-r));
	/* Pools of a cluster are somebody else's then: other ones are to be named. */
	if (is_rados && (r == -EALREADY || r == -EEXIST))
		return EXIT_CONFIG;
	return r == -ENOSPC ? EXIT_CONFIG : exit_of_store(r); /* no room: for the size that is configured */
}

int
format_store(const struct options *o, const struct conf *conf, const struct conf_source *source)
{
	struct store_disk_conf disks[CONF_DISKS_MAX];
	struct store_conf sc;
	struct remember *m;
	char err[STORE_WHY_BYTES] = "";
	int r = daemon_store_conf(conf, disks, &sc, err, sizeof err), rc = EXIT_OK;
	bool is_there;

	if (r < 0) {
		fprintf(stderr, "gantryd: cannot make a store: %s\n", err);
		return r == -ENOSPC ? EXIT_CONFIG : exit_of_store(r);
	}
	r = remember_open(conf, source, &m, err, sizeof err);
	if (r < 0) {
		advice_add(err, sizeof err, ADVICE_RECORD_DAMAGED,
			   &(struct advice_values){ .record = remember_file(m) });
		options_say(stderr, "gantryd: nothing was made: ", err);
		remember_free(m);
		return r == -EBADMSG ? EXIT_STORE : exit_of_store(r);
	}
	r = judge_known(o, m, &sc, &rc);
	is_there = r == KNOWN;
	if (is_there)
		printf("gantryd: there is a store already, nothing was done\n");
	if (r != 0)
		rc = is_there ? EXIT_OK : make(o, conf, m, &sc, &is_there);
	remember_free(m);
	fflush(stdout);
	if (is_there && daemon_first_key(conf) < 0) {
		fprintf(stderr, "gantryd: there is a store, but no first access key: `gantry key new`, as "
				"root, makes one\n");
		return EXIT_RUNTIME;
	}
	return rc;
}
