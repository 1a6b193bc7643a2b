/* SPDX-License-Identifier: Apache-2.0 */
/* gantryd's main(): what the command line asks for, and the exit code. */
#include "main/daemon.h"
#include "main/meter.h"
#include "main/options.h"

#include "base/advice.h"
#include "base/log.h"
#include "base/run_clock.h"
#include "rdma/rdma.h"
#include "stats/stats.h"
#include "set/set.h"
#include "store/damage.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int
list_devices(const struct conf *conf)
{
	int r = rdma_list(&conf->rdma, stdout);

	if (r < 0) {
		fprintf(stderr, "gantryd: cannot list RDMA devices: %s\n", strerror(-r));
		return EXIT_RUNTIME;
	}
	return EXIT_OK;
}

static int
upgrade(const struct conf_source *src, const struct conf *conf)
{
	struct store_disk_conf disks[CONF_DISKS_MAX];
	struct store_conf sc;
	struct remember *m;
	char said[CONF_DISKS_MAX * 256] = "";
	int r;

	r = remember_store_conf(conf, src, disks, &sc, &m, said, sizeof said);
	if (r == 0)
		r = store_task(&sc, TASK_UPGRADE, said, sizeof said);
	remember_free(m);
	fprintf(r < 0 ? stderr : stdout, "gantryd: %s\n", said[0] ? said : strerror(-r));
	return r < 0 ? exit_of_store(r) : EXIT_OK;
}

/* It cannot be taken back. */
static bool
is_sure(int nr, const char *what)
{
	char line[16];

	char text[CONF_DISKS_MAX * 512 + 256];

	snprintf(text, sizeof text, "%s", what);
	advice_add(text, sizeof text, ADVICE_FORGET, NULL);
	printf("%s\n%s refused should %s come back. Type yes to go on: ", text,
	       nr == 1 ? "The disk is" : "The disks are", nr == 1 ? "it" : "they");
	fflush(stdout);
	return fgets(line, sizeof line, stdin) && strcmp(line, "yes\n") == 0;
}

/* Adds the lines of store.disks that name no disk of the store any more. */
static void
add_unused(const struct conf *conf, uint64_t unused, char *said, size_t len)
{
	char line[1200], origin[600], key[64];

	for (int i = 0; i < conf->store.disk_nr; i++) {
		const struct conf_disk *d = &conf->store.disks[i];

		if (!(unused >> i & 1))
			continue;
		remember_line(d->path, d->size_bytes, line, sizeof line);
		snprintf(key, sizeof key, "store.disks[%d].path", i);
		conf_origin(conf, key, origin, sizeof origin);
		advice_add(said, len, ADVICE_FORGOTTEN_NAMED,
			   &(struct advice_values){ .line = line, .path = origin });
	}
}

static int
forget(const struct options *o, const struct conf_source *src, const struct conf *conf)
{
	struct store_disk_conf disks[CONF_DISKS_MAX];
	struct store_conf sc;
	struct remember *m;
	char said[CONF_DISKS_MAX * 512] = "", why[512];
	uint64_t unused = 0;
	int r = remember_store_conf(conf, src, disks, &sc, &m, said, sizeof said);

	if (r == 0 && sc.ops == &store_set_ops) {
		sc.disks.forget = o->forget;
		sc.disks.forget_nr = o->forget_nr;
		sc.disks.ret_unused = &unused;
		/* What would be refused anyway is not asked about. */
		r = o->force ? 0 : store_task(&sc, TASK_LOOK, said, sizeof said);
		if (r == 0 && !o->force && !is_sure(o->forget_nr, said)) {
			fprintf(stderr, "gantryd: nothing was done\n");
			remember_free(m);
			return EXIT_RUNTIME;
		}
	}
	if (r == 0)
		r = store_task(&sc, TASK_FORGET, said, sizeof said);
	if (r == 0 && remember_less(m, o->forget, o->forget_nr, why, sizeof why) < 0)
		fprintf(stderr, "gantryd: %s\n", why);
	remember_free(m);
	add_unused(conf, unused, said, sizeof said);
	options_say(r < 0 ? stderr : stdout, "gantryd: ", said[0] ? said : strerror(-r));
	return r < 0 ? exit_of_store(r) : EXIT_OK;
}

static void
say(void *cookie, const char *line)
{
	meter_hide();
	printf("%s\n", line);
	meter_go_on();
}

/* Asks whether the loss is accepted: a line `yes`, of a terminal or of another standard input. */
static bool
may_repair(const char *loss)
{
	char line[16], text[512] = "";
	bool is_yes;

	advice_add(text, sizeof text, ADVICE_REPAIR, &(struct advice_values){ .loss = loss });
	meter_hide();
	printf("%s\nType yes to go on: ", text);
	fflush(stdout);
	is_yes = fgets(line, sizeof line, stdin) && strcmp(line, "yes\n") == 0;
	meter_go_on();
	return is_yes;
}

/* Has a check count the damage in this list; NULL: in none. */
static void
count_damage(struct store_conf *sc, struct store_damage *damage)
{
	if (sc->ops == &store_set_ops)
		sc->disks.damage = damage;
	else
		sc->rados.damage = damage;
}

/* Lists what a repair would lose, and asks. Returns 0: it may begin; -ECANCELED: the answer is no; or the error of the check. */
static int
ask_repair(struct store_conf *sc)
{
	struct store_damage *damage = damage_new();
	char loss[300] = "All objects that are listed as lost or dropped are lost";
	int r;

	count_damage(sc, damage);
	r = store_fsck(sc, FSCK_PREVIEW, say, NULL);
	count_damage(sc, NULL);
	if (damage)
		damage_loss(&damage->sums, loss, sizeof loss);
	damage_free(damage);
	return r <= 0 ? r : may_repair(loss) ? 0 : -ECANCELED;
}

/* Returns the last line of a check that has found errors. sums: NULL if unknown. */
static const char *
fsck_failed(int error, const struct damage_sums *sums)
{
	if (error == -ENOTRECOVERABLE && damage_is_bad(sums) && !sums->refused)
		return "objects are damaged; the store itself is whole, and a start would serve it";
	if (error == -ENOTRECOVERABLE && sums && sums->refused)
		return "the store is damaged, foreign, or not made yet: a start would be refused";
	return error == -ENOTRECOVERABLE   ? "the store is damaged, foreign, or not made yet"
	       : error == -EPROTONOSUPPORT ? "the store was made by another version of Gantry"
	       : error == -EINVAL          ? "a start would be refused"
					   : strerror(-error);
}

/* Shows the progress of a check. */
static void
show_progress(struct store_conf *sc)
{
	bool has_disks = sc->ops == &store_set_ops;

	sc->disks.meter = meter_show(sc->disks.disk, has_disks ? sc->disks.nr : 0);
}

static int
fsck(const struct conf_source *src, const struct conf *conf, bool repair, bool yes)
{
	struct store_disk_conf disks[CONF_DISKS_MAX];
	struct store_damage *damage;
	struct store_conf sc;
	struct remember *m;
	char err[STORE_WHY_BYTES];
	int r = remember_store_conf(conf, src, disks, &sc, &m, err, sizeof err);

	if (r < 0) {
		fprintf(stderr, "gantryd: %s\n", err);
		return EXIT_CONFIG;
	}
	/* Whole lines, where a file or pipe gets those of the log as well. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	show_progress(&sc);
	r = repair && !yes ? ask_repair(&sc) : 0;
	if (r == -ECANCELED) {
		meter_end();
		fprintf(stderr, "gantryd: fsck: nothing was changed\n");
		remember_free(m);
		return EXIT_USAGE;
	}
	damage = damage_new();
	count_damage(&sc, damage);
	if (sc.ops == &store_set_ops)
		sc.disks.is_examined = !repair;
	if (r == 0)
		r = store_fsck(&sc, repair ? FSCK_REPAIR : FSCK_LOOK, say, NULL);
	meter_end();
	remember_free(m);
	if (r == 0)
		printf("gantryd: the store is clean\n");
	else if (r > 0)
		printf("gantryd: the store was repaired\n");
	else
		fprintf(stderr, "gantryd: fsck: %s\n", fsck_failed(r, damage ? &damage->sums : NULL));
	/* Also where damaged objects are left. */
	if (repair && damage && conf->store.backend == BACKEND_DISKS && conf->store.disk_nr > 1 &&
	    (r > 0 || (damage_is_bad(&damage->sums) && !damage->sums.refused)))
		rescan_want(conf, src, stdout);
	damage_free(damage);
	return r >= 0 ? EXIT_OK : exit_of_store(r);
}

static int
run(const struct options *o, const struct conf_source *src, const struct conf *conf)
{
	int r = run_clock_start(), rc;

	if (r < 0)
		fprintf(stderr,
			"gantryd: no thread for the run clock (%s): time in which this process is stopped "
			"counts "
			"against its disks\n",
			strerror(-r));
	rdma_prepare();
	rc = daemon_run(conf, src, o->ready_file);
	run_clock_stop();
	return rc;
}

static int
with_config(const struct options *o, const struct conf_source *src, const struct conf *conf)
{
	switch (o->action) {
	case ACTION_PRINT_CONFIG:
		conf_print(conf, stdout);
		return EXIT_OK;
	case ACTION_LIST_DEVICES:
		return list_devices(conf);
	case ACTION_FORMAT:
		log_init(conf->log.format, conf->log.level);
		return format_store(o, conf, src);
	case ACTION_FSCK:
		log_init(conf->log.format, conf->log.level);
		return fsck(src, conf, o->repair, o->yes);
	case ACTION_UPGRADE:
		log_init(conf->log.format, conf->log.level);
		return upgrade(src, conf);
	case ACTION_FORGET:
		log_init(conf->log.format, conf->log.level);
		return forget(o, src, conf);
	case ACTION_ADD:
		log_init(conf->log.format, conf->log.level);
		return disks_add_stopped(conf, src, o->add, o->force);
	default:
		return run(o, src, conf);
	}
}

/* Reads the configuration; *ret_conf NULL: it is a bad one. Returns an exit code. */
static int
load(const struct conf_source *src, struct conf **ret_conf)
{
	*ret_conf = NULL;
	if (conf_load(src, ret_conf, stderr) == 0)
		return EXIT_OK;
	*ret_conf = NULL;
	fprintf(stderr, "gantryd: bad configuration\n");
	return EXIT_CONFIG;
}

/* Judges the configuration as the daemon's user, who has to be able to read it. */
static int
check(const struct options *o, const struct conf_source *src, struct conf **conf)
{
	char user[64];
	int rc = check_as_user(*conf, user, sizeof user);

	if (rc == EXIT_OK && user[0]) {
		conf_free(*conf);
		rc = load(src, conf);
	}
	return rc == EXIT_OK ? check_config(o->file ? o->file : CONF_DEFAULT_FILE, src, *conf, user) : rc;
}

/* Ignores signals without a meaning here, whose default is to end the process: others send them for something
 * harmless. SIGHUP and SIGUSR2, which have one, wait until a daemon takes them. */
static void
calm_signals(sigset_t *ret_waiting)
{
	/* Asked to end or to pause, faults of our own, the end of a child. */
	static const int keep[] = { SIGTERM, SIGINT,  SIGQUIT, SIGHUP,  SIGUSR2, SIGSEGV,
				    SIGBUS,  SIGILL,  SIGFPE,  SIGABRT, SIGTRAP, SIGSYS,
				    SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU };

	for (int s = 1; s <= SIGRTMAX; s++) {
		bool is_kept = s == SIGKILL || s == SIGSTOP;

		for (size_t i = 0; i < sizeof keep / sizeof *keep; i++)
			is_kept |= s == keep[i];
		/* Those of the C library are refused, and it needs them. */
		if (!is_kept)
			signal(s, SIG_IGN);
	}
	sigemptyset(ret_waiting);
	sigaddset(ret_waiting, SIGHUP);
	sigaddset(ret_waiting, SIGUSR2);
	sigprocmask(SIG_BLOCK, ret_waiting, NULL);
}

int
main(int argc, char **argv)
{
	sigset_t waiting;
	struct conf_source src;
	struct options o;
	struct conf *conf;
	int rc;

	calm_signals(&waiting);
	if (options_parse(argc, argv, &o, stderr) < 0)
		return EXIT_USAGE;
	if (o.action != ACTION_RUN)
		sigprocmask(SIG_UNBLOCK, &waiting, NULL);
	if (o.action == ACTION_HELP) {
		options_help(stdout);
		return EXIT_OK;
	}
	if (o.action == ACTION_VERSION) {
		printf("gantryd %s\nRDMA protocol: RDMA_DC_V1 (id 1001)\n", GANTRY_VERSION);
		return EXIT_OK;
	}
	if (o.action == ACTION_PRINT_METRICS) {
		stats_print_table(stdout);
		return fflush(stdout) == 0 ? EXIT_OK : EXIT_RUNTIME;
	}
	if (o.action == ACTION_PRINT_KEYS) {
		conf_print_table(stdout);
		return EXIT_OK;
	}
	src = (struct conf_source){ .file = o.file,
				    .file_required = o.file != NULL,
				    .partial = o.action == ACTION_LIST_DEVICES,
				    .starts = o.action == ACTION_RUN,
				    .overrides = o.overrides,
				    .override_nr = o.override_nr };
	if (o.action == ACTION_RELOAD)
		return reload_ask(&src);
	rc = load(&src, &conf);
	if (rc == EXIT_OK && o.action == ACTION_CHECK_CONFIG)
		rc = check(&o, &src, &conf);
	else if (rc == EXIT_OK)
		rc = with_config(&o, &src, conf);
	conf_free(conf);
	/* A full disk behind the standard output of --print-config must not look like success. */
	if (fflush(stdout) != 0 && rc == EXIT_OK)
		rc = EXIT_RUNTIME;
	return rc;
}
