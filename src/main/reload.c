/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reloading: the configuration is read again, checked, merged with the running one (what needs a restart
 * keeps its value), and only when everything is good handed to the cores.  One at a time; on the control
 * thread (POST /control/reload) or on a thread of its own (SIGHUP), because a file may lie on a disk that
 * hangs.
 */
#include "main/daemon.h"
#include "main/notify.h"

#include "admin/admin.h"
#include "auth/auth.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/core.h"
#include "rdma/rc.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CORES_WAIT_NS (2 * NS_PER_S)

/* ---- what is in use ---- */

static void
use_conf(struct daemon *d, const struct conf *c)
{
	const struct conf *old;

	pthread_mutex_lock(&d->conf_lock);
	old = d->conf_now;
	d->conf_now = c;
	pthread_mutex_unlock(&d->conf_lock);
	daemon_conf_put(old);
}

void
daemon_log_levels(const struct conf *c)
{
	log_set_level(c->log.level);
	for (int i = 0; i < LOG_MODULES_NR; i++)
		log_set_module_level(i, c->log.levels[i]);
}

/* ---- the bearer token ---- */

static int
read_token(const char *path, char *token, FILE *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0) {
		fprintf(err, "admin.token_file: %s: %s\n", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -EINVAL;
	}
	n = S_ISREG(st.st_mode) && !(st.st_mode & 077) ? read(fd, token, ADMIN_TOKEN_MAX + 1) : -2;
	close(fd);
	if (n == -2) {
		fprintf(err,
			"admin.token_file: %s: expected a regular file that nobody else can read (mode "
			"0600)\n",
			path);
		return -EINVAL;
	}
	if (n > 0 && n <= ADMIN_TOKEN_MAX) {
		token[n] = 0;
		token[strcspn(token, "\r\n")] = 0;
	}
	if (n <= 0 || n > ADMIN_TOKEN_MAX || strlen(token) < 16 || strspn(token, "\x20\t") ||
	    strpbrk(token, " \t")) {
		fprintf(err,
			"admin.token_file: %s: expected one line of 16 to %d characters without blanks\n",
			path, ADMIN_TOKEN_MAX);
		return -EINVAL;
	}
	return 0;
}

int
daemon_read_token(const struct conf *c, char token[ADMIN_TOKEN_MAX + 2], FILE *err)
{
	token[0] = 0;
	return c->admin.token_file ? read_token(c->admin.token_file, token, err) : 0;
}

/* ---- one reload ---- */

struct reload {
	struct daemon *d;
	struct conf *fresh;
	struct auth_keys *keys;
	char token[ADMIN_TOKEN_MAX + 2];
	/* JSON lists */
	FILE *changed, *kept, *said; /* said: lines for the log, after + or - */
	int changed_nr, kept_nr;
	char *changed_text, *kept_text, *said_text;
	size_t changed_len, kept_len, said_len;
};

static void
on_change(void *cookie, const char *path, const char *from, const char *to, bool applied)
{
	struct reload *r = cookie;
	FILE *f = applied ? r->changed : r->kept;
	const struct store *st = atomic_load(&r->d->store);

	/* Disks that were added or drained while the daemon serves need no restart. */
	if (!applied && st && strncmp(path, "store.disks", strlen("store.disks")) == 0 &&
	    r->d->conf->store.backend == BACKEND_DISKS && remember_names_all(r->d->remember, st))
		return;
	if (applied)
		fprintf(r->said, "+%s: %s is now %s\n", path, from, to);
	else
		fprintf(r->said, "-%s needs a restart; it stays %s\n", path, *from ? from : "as it is");
	fputs((applied ? r->changed_nr++ : r->kept_nr++) ? "," : "", f);
	json_string(f, path);
}

/* A file that is not there is none that went away while there are no keys anyhow. */
static int
load_keys(struct reload *r, FILE *err)
{
	const char *path = r->fresh->auth.credentials_file;
	int rc;

	if (!path || (access(path, F_OK) < 0 && errno == ENOENT && atomic_load(&r->d->key_nr) == 0))
		return 0;
	rc = auth_keys_load(path, &r->keys, err);
	if (rc < 0 && rc != -EINVAL)
		fprintf(err, "%s: %s\n", path, strerror(-rc));
	return rc;
}

/* Everything that can fail.  What is wrong goes to err, a line each. */
static int
prepare(struct reload *r, FILE *err)
{
	struct daemon *d = r->d;
	const struct conf *running;
	int rc;

	if (conf_load(d->source, &r->fresh, err) < 0)
		return -EINVAL;
	remember_named(d->remember, r->fresh);
	running = daemon_conf(d);
	rc = conf_merge(r->fresh, running, on_change, r);
	daemon_conf_put(running);
	if (rc < 0) {
		fprintf(err, "%s\n", strerror(-rc));
		return rc;
	}
	if (load_keys(r, err) < 0)
		return -EINVAL;
	if (daemon_read_token(r->fresh, r->token, err) < 0 || daemon_check_certs(r->fresh, d->certs, err) < 0)
		return -EINVAL;
	return 0;
}

/* From here on nothing but a lack of memory stands in the way. */
static int
apply(struct reload *r, int *ret_cores)
{
	struct daemon *d = r->d;
	struct auth_keys *old = d->keys;
	int e = daemon_set_quotas(atomic_load(&d->store), r->keys);

	if (e < 0)
		return e;
	auth_keys_inherit(r->keys, old);
	*ret_cores = cores_set_conf(atomic_load(&d->cores), r->fresh, r->keys, CORES_WAIT_NS);
	if (*ret_cores < 0) {
		daemon_set_quotas(atomic_load(&d->store), old);
		return *ret_cores;
	}
	daemon_log_levels(r->fresh);
	daemon_audit(r->fresh);
	store_set_move_rate(atomic_load(&d->store), r->fresh->store.move_rate);
	rdma_rc_set_limits(d->rdma, &r->fresh->rdma.rc);
	if (d->admin)
		admin_set_token(d->admin, r->token);
	daemon_reload_certs(r->fresh, d->certs);
	r->keys = daemon_use_keys(d, r->keys);
	daemon_audit_keys(old, d->keys);
	use_conf(d, r->fresh);
	r->fresh = NULL;
	atomic_store(&d->restart_pending, r->kept_nr);
	atomic_store(&d->reloaded_ns, clock_wall_ns());
	return 0;
}

static void
say_changes(char *text)
{
	char *rest = NULL;

	for (char *p = strtok_r(text, "\n", &rest); p; p = strtok_r(NULL, "\n", &rest)) {
		if (*p == '+')
			log_info("%s", p + 1);
		else
			log_event(LOG_EV_RESTART_NEEDED, LOG_WARN, "%s", p + 1);
	}
}

/* The lines of text, logged and as a JSON list. */
static void
say_errors(char *text, FILE *out)
{
	char *rest = NULL;
	int n = 0;

	fputs("{\"error\":\"the configuration cannot be used; nothing was changed\",\"messages\":[", out);
	for (char *p = strtok_r(text, "\n", &rest); p; p = strtok_r(NULL, "\n", &rest)) {
		log_event(LOG_EV_RELOAD_FAILED, LOG_ERROR, "%s", p);
		fputs(n++ ? "," : "", out);
		json_string(out, p);
	}
	fputs("]}", out);
	log_event(LOG_EV_RELOAD_FAILED, LOG_ERROR, "the configuration cannot be used; nothing was changed");
}

/* Logs the lines of a configuration that was read, which are no errors. */
static void
say_notes(char *text)
{
	char *rest = NULL;

	for (char *p = text ? strtok_r(text, "\n", &rest) : NULL; p; p = strtok_r(NULL, "\n", &rest))
		log_warn("%s", p);
}

/* ---- what the files on disk are to the daemon ---- */

/* Notes the reason of a failure: the first of its lines. */
static void
note_failure(struct daemon *d, const char *text)
{
	pthread_mutex_lock(&d->conf_lock);
	snprintf(d->reload_why, sizeof d->reload_why, "%.*s", (int)strcspn(text, "\n"), text);
	pthread_mutex_unlock(&d->conf_lock);
}

/* Notes a success. keys: JSON texts of the keys that need a restart, separated by commas. */
static void
note_success(struct daemon *d, const char *keys)
{
	size_t n = 0;

	pthread_mutex_lock(&d->conf_lock);
	d->reload_why[0] = 0;
	for (const char *p = keys; *p && n + 2 < sizeof d->restart_keys; p++) {
		if (*p != '"')
			d->restart_keys[n++] = *p;
		if (*p == ',')
			d->restart_keys[n++] = ' ';
	}
	d->restart_keys[n] = 0;
	pthread_mutex_unlock(&d->conf_lock);
}

bool
daemon_reload_failed(struct daemon *d, char *out, size_t cap)
{
	pthread_mutex_lock(&d->conf_lock);
	snprintf(out, cap, "%s", d->reload_why);
	pthread_mutex_unlock(&d->conf_lock);
	return out[0] != 0;
}

void
daemon_reload_show(struct daemon *d, FILE *out)
{
	char why[sizeof d->reload_why], keys[sizeof d->restart_keys], *rest = NULL;
	int n = 0;

	daemon_reload_failed(d, why, sizeof why);
	pthread_mutex_lock(&d->conf_lock);
	memcpy(keys, d->restart_keys, sizeof keys);
	pthread_mutex_unlock(&d->conf_lock);
	fputs("{\"not_in_use\":", out);
	json_string(out, why[0] ? why : NULL);
	fputs(",\"restart_needed\":[", out);
	for (char *p = strtok_r(keys, ", ", &rest); p; p = strtok_r(NULL, ", ", &rest)) {
		fputs(n++ ? "," : "", out);
		json_string(out, p);
	}
	fputs("]}", out);
}

static int
run(struct reload *r, FILE *out)
{
	struct daemon *d = r->d;
	char *text = NULL;
	size_t len;
	FILE *err = open_memstream(&text, &len);
	int rc = err ? prepare(r, err) : -ENOMEM, cores = 0;

	if (err)
		fclose(err);
	fflush(r->changed);
	fflush(r->kept);
	fflush(r->said);
	if (rc == 0)
		rc = apply(r, &cores);
	if (rc < 0) {
		atomic_fetch_add(&d->reload_failures, 1);
		if (!text || !*text) {
			free(text);
			text = strdup("out of memory");
		}
		note_failure(d, text ? text : "out of memory");
		if (text)
			say_errors(text, out);
	} else {
		note_success(d, r->kept_text);
		fprintf(out,
			"{\"status\":\"reloaded\",\"changed\":[%s],\"restart_needed\":[%s],\"cores\":%d,"
			"\"of\":%d}",
			r->changed_text, r->kept_text, cores, cores_nr(atomic_load(&d->cores)));
		say_notes(text);
		say_changes(r->said_text);
		log_event(LOG_EV_RELOADED, LOG_NOTE,
			  "configuration reloaded: %d keys changed, %d need a restart", r->changed_nr,
			  r->kept_nr);
		if (cores < cores_nr(atomic_load(&d->cores)))
			log_warn("%d cores have not taken it yet", cores_nr(atomic_load(&d->cores)) - cores);
	}
	free(text);
	return rc == 0 ? 200 : rc == -ENOMEM ? 500 : 400;
}

int
daemon_reload(struct daemon *d, FILE *out)
{
	struct reload r = { .d = d };
	int status = 500;

	if (atomic_load(&d->phase) != PHASE_SERVING) {
		fprintf(out, "{\"error\":\"not now: %s\"}", phase_name[atomic_load(&d->phase)]);
		return 503;
	}
	pthread_mutex_lock(&d->reload_lock);
	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=Reloading the configuration",
		    (unsigned long long)(clock_ns() / NS_PER_US));
	r.changed = open_memstream(&r.changed_text, &r.changed_len);
	r.kept = open_memstream(&r.kept_text, &r.kept_len);
	r.said = open_memstream(&r.said_text, &r.said_len);
	if (r.changed && r.kept && r.said)
		status = run(&r, out);
	else
		fputs("{\"error\":\"out of memory\"}", out);
	/* An operator who has loaded a driver need not wait for the next look. */
	if (d->rdma)
		rdma_look(d->rdma);
	notify_send("READY=1\nSTATUS=Serving%s",
		    status == 200 ? "" : "; the last reload failed: see the log");
	if (r.changed)
		fclose(r.changed);
	if (r.kept)
		fclose(r.kept);
	if (r.said)
		fclose(r.said);
	free(r.said_text);
	free(r.changed_text);
	free(r.kept_text);
	conf_free(r.fresh);
	auth_keys_put(r.keys);
	explicit_bzero(r.token, sizeof r.token);
	pthread_mutex_unlock(&d->reload_lock);
	return status;
}

/* ---- SIGHUP ---- */

static void *
hup_main(void *arg)
{
	struct daemon *d = arg;
	FILE *sink = fopen("/dev/null", "we");

	if (sink) {
		daemon_reload(d, sink);
		fclose(sink);
	}
	atomic_fetch_sub(&d->reloads_running, 1);
	return NULL;
}

void
daemon_reload_begin(struct daemon *d)
{
	pthread_t thread;

	log_note("SIGHUP: reloading the configuration");
	/* Two are enough: one that runs, and one that sees what changed since it began. */
	if (atomic_fetch_add(&d->reloads_running, 1) >= 2 ||
	    pthread_create(&thread, NULL, hup_main, d) != 0) {
		atomic_fetch_sub(&d->reloads_running, 1);
		return;
	}
	pthread_detach(thread);
}

void
daemon_reload_wait(struct daemon *d)
{
	while (atomic_load(&d->reloads_running))
		usleep(1000);
}
