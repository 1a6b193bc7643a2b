/* SPDX-License-Identifier: Apache-2.0 */
/* Disks that come and go: the control calls, on a thread of their own, and --add. */
#include "main/daemon.h"
#include "main/options.h"

#include "admin/admin.h"
#include "base/advice.h"
#include "base/clock.h"
#include "base/disk_name.h"
#include "base/log.h"
#include "base/path.h"
#include "store/store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static int
status_of(int error)
{
	switch (-error) {
	case 0:
		return 200;
	case ENOENT:
		return 404;
	case EBUSY:
	case EPERM:
	case EEXIST:
	case EALREADY:
	case ENOTUNIQ:
		return 409;
	case EINVAL:
	case ENOTDIR:
	case ENODEV:
	case EACCES:
		return 400;
	case ENOSPC:
		return 507;
	case EOPNOTSUPP:
		return 501;
	case EROFS:
	case EAGAIN:
		return 503;
	default:
		return 500;
	}
}

static void
write_move(const struct store *st, FILE *out)
{
	struct store_move_info i = { .is_running = false };

	if (st)
		store_move_info(st, &i);
	fprintf(out,
		"{\"running\":%s,\"slots_done\":%llu,\"slots\":%llu,\"bytes_done\":%llu,\"bytes\":%llu,"
		"\"keys\":"
		"%llu,\"seconds_left\":%llu,\"waits_seconds\":%llu,\"trouble\":",
		i.is_running ? "true" : "false", (unsigned long long)i.slots_done,
		(unsigned long long)i.slots_total, (unsigned long long)i.bytes_done,
		(unsigned long long)i.bytes_total, (unsigned long long)i.keys,
		(unsigned long long)(i.left_ns / NS_PER_S),
		(unsigned long long)((i.waits_ns + NS_PER_S - 1) / NS_PER_S));
	json_string(out, i.trouble[0] ? i.trouble : NULL);
	putc('}', out);
}

void
disks_show_move(void *cookie, FILE *out)
{
	struct daemon *d = cookie;

	write_move(atomic_load(&d->store), out);
}

/* Writes the line of store.disks that is to be added or removed, and whether the change is remembered without it. */
static void
say_line(struct daemon *d, const struct store_disk_change *c, FILE *out)
{
	const struct store *st = atomic_load(&d->store);
	struct store_unit_info info;
	char line[1200];

	for (int i = 0; c->disk && i < store_unit_nr(st); i++) {
		store_unit_info(st, i, &info);
		if (info.state == UNIT_DRAINED || !info.name[0] ||
		    (!path_same(info.name, c->disk) && strcasecmp(info.uuid, c->disk) != 0 &&
		     !disk_digits_are(c->disk, info.uuid)))
			continue;
		remember_line(info.name, info.size_bytes, line, sizeof line);
		fputs(",\"line\":", out);
		json_string(out, line);
		fprintf(out, ",\"added\":%s", c->kind == DISK_ADD ? "true" : "false");
	}
	fprintf(out, ",\"remembered\":%s", remember_keeps(d->remember) ? "true" : "false");
}

struct joining {
	struct remember *remember;
	const struct store_disk_change *change;
};

static void
on_joins(void *cookie, const uint8_t uuid[UUID_BYTES])
{
	const struct joining *j = cookie;

	remember_joins(j->remember, uuid, j->change->size_bytes, j->change->disk);
}

/* Returns true if the nearest existing directory of a path is on a read-only mount. */
static bool
is_read_only(const char *path)
{
	char at[PATH_MAX];
	struct statvfs vfs;

	snprintf(at, sizeof at, "%s", path);
	while (statvfs(at, &vfs) < 0) {
		char *slash = strrchr(at, '/');

		if (!slash || slash == at)
			return false;
		*slash = 0;
	}
	return vfs.f_flag & ST_RDONLY;
}

/* Names the setting of systemd's unit that keeps the daemon from a new disk, where it is one. */
static void
add_setting(const char *path, int error, char *said, size_t len)
{
	const struct advice_values v = { .path = path };
	static const char *const homes[] = { "/home/", "/root/", "/run/user/" };
	struct stat st;
	bool is_home = false;

	/* systemd sets it for its units. */
	if (!getenv("INVOCATION_ID"))
		return;
	for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
		is_home |= strncmp(path, homes[i], strlen(homes[i])) == 0;
	if (strncmp(path, "/dev/", 5) == 0 || (stat(path, &st) == 0 && S_ISBLK(st.st_mode))) {
		if (error == -EPERM || error == -EACCES)
			advice_add(said, len, ADVICE_UNIT_DEVICE, &v);
	} else if (is_home) {
		advice_add(said, len, ADVICE_UNIT_HOME, &v);
	} else if (error == -EROFS && is_read_only(path)) {
		advice_add(said, len, ADVICE_UNIT_READ_ONLY, &v);
	}
}

/* Checks that a new disk is not in the directory of another one, also of one that is drained and may be removed. */
static int
check_inside(const struct store *st, const char *path, char *said, size_t len)
{
	struct store_unit_info info;
	int r = 0;

	for (int i = 0; i < store_unit_nr(st) && r == 0; i++) {
		store_unit_info(st, i, &info);
		if (info.name)
			r = below_check_inside(path, info.name, said, len);
	}
	return r;
}

static int
change(struct daemon *d, const struct store_disk_change *asked, FILE *out)
{
	struct store *st = atomic_load(&d->store);
	struct joining joining = { d->remember, asked };
	struct store_disk_change with_joins = *asked, *c = &with_joins;
	char said[STORE_WHY_BYTES] = "", why[512];
	int r;

	with_joins.joins = on_joins;
	with_joins.cookie = &joining;
	if (!st || atomic_load(&d->phase) != PHASE_SERVING) {
		fprintf(out, "{\"error\":\"not now: %s\"}", phase_name[atomic_load(&d->phase)]);
		return 503;
	}
	r = c->kind == DISK_ADD ? check_inside(st, c->disk, said, sizeof said) : 0;
	if (r == 0)
		r = store_change_disks(st, c, said, sizeof said);
	remember_joined(d->remember);
	if (r < 0 && c->kind == DISK_ADD)
		add_setting(c->disk, r, said, sizeof said);
	fprintf(out, r < 0 ? "{\"error\":" : "{\"said\":");
	json_string(out, said[0] ? said : strerror(-r));
	if (r == 0) {
		if (remember_store(d->remember, st, why, sizeof why) < 0)
			log_error("%s", why);
		below_look(st);
		say_line(d, c, out);
		fputs(",\"move\":", out);
		write_move(st, out);
		log_event(LOG_EV_CONTROL, LOG_NOTE, "disks: %s", said);
	}
	putc('}', out);
	return status_of(r);
}

static int
refuse(FILE *out, const char *text)
{
	fputs("{\"error\":", out);
	json_string(out, text);
	putc('}', out);
	return 400;
}

int
disks_drain(void *cookie, const struct admin_args *args, FILE *out)
{
	const char *disk = admin_arg(args, "disk");

	return disk ? change(cookie, &(struct store_disk_change){ .kind = DISK_DRAIN, .disk = disk }, out)
		    : refuse(out, "\"disk\" is missing: a disk's path, its UUID, or the first digits of it, "
				  "as GET "
				  "/disks shows them");
}

int
disks_add(void *cookie, const struct admin_args *args, FILE *out)
{
	const char *disk = admin_arg(args, "disk"), *size = admin_arg(args, "size"),
		   *force = admin_arg(args, "force");
	struct store_disk_change c = { .kind = DISK_ADD, .disk = disk };

	if (!disk)
		return refuse(out, "\"disk\" is missing: the path of a device or a directory");
	/* The daemon's folder is nobody's but its own. */
	if (disk[0] != '/')
		return refuse(out, "\"disk\" is the path of a device or a directory, and begins with /");
	if (size && conf_bound_parse(size, true, &c.size_bytes) < 0)
		return refuse(out, "\"size\" is a size: bytes, or KiB MiB GiB TiB");
	/* The next start wants to read it in store.disks. */
	if (size && (c.size_bytes < CONF_DISK_MIN_BYTES || c.size_bytes > CONF_DISK_MAX_BYTES))
		return refuse(out, "\"size\" is from 64MiB to 1024TiB");
	c.force = force && strcmp(force, "yes") == 0;
	if (force && !c.force && strcmp(force, "no") != 0)
		return refuse(out, "\"force\" is yes or no");
	return change(cookie, &c, out);
}

int
disks_cancel(void *cookie, const struct admin_args *args, FILE *out)
{
	return change(cookie, &(struct store_disk_change){ .kind = DISK_CANCEL }, out);
}

/* ---- while nothing runs ---- */

int
disks_add_stopped(const struct conf *conf, const struct conf_source *source, const char *path, bool force)
{
	struct store_disk_conf disks[CONF_DISKS_MAX];
	struct store_disk_change c = { .kind = DISK_ADD, .disk = path, .force = force };
	struct store_conf sc;
	struct remember *m;
	struct store *st;
	struct stat file;
	bool is_device;
	char said[STORE_WHY_BYTES] = "";
	int nr = 0, sc_nr, r = remember_store_conf(conf, source, disks, &sc, &m, said, sizeof said);
	char why[STORE_WHY_BYTES];

	if (r == 0 && conf->store.backend != BACKEND_DISKS) {
		fprintf(stderr, "gantryd: --add is for stores on disks\n");
		remember_free(m);
		return EXIT_CONFIG;
	}
	sc_nr = r == 0 ? sc.disks.nr : 0;
	/* It may stand among the disks already. */
	for (int i = 0; r == 0 && i < sc.disks.nr; i++) {
		if (path_same(disks[i].path, path)) {
			c.size_bytes = disks[i].size_bytes;
			c.disk = disks[i].path;
		} else {
			disks[nr++] = disks[i];
		}
	}
	if (r == 0) {
		sc.disks.nr = nr;
		sc.disks.moves_wait = true;
		r = store_start(&sc, &st, said, sizeof said);
	}
	/* The one that is missing without it is itself, maybe. */
	if (r == -EINVAL && nr < sc_nr && daemon_store_conf(conf, disks, &sc, why, sizeof why) == 0 &&
	    store_task(&sc, TASK_LOOK, why, sizeof why) == 0)
		snprintf(said, sizeof said, "%s is a disk of this store already", path);
	if (r == 0) {
		is_device = stat(path, &file) == 0 && S_ISBLK(file.st_mode);
		/* Nothing else says how large a directory is to be. */
		r = check_inside(st, path, said, sizeof said);
		if (r == 0 && (c.size_bytes || is_device))
			r = store_change_disks(st, &c, said, sizeof said);
		else
			r = -EINVAL;
		if (r < 0 && !said[0])
			snprintf(said, sizeof said,
				 "%s: a directory needs a size: write both into store.disks", path);
		if (r == 0 && remember_store(m, st, why, sizeof why) < 0)
			fprintf(stderr, "gantryd: %s\n", why);
		store_stop(st);
	}
	remember_free(m);
	options_say(r < 0 ? stderr : stdout, "gantryd: ", said[0] ? said : strerror(-r));
	return r < 0 ? exit_of_store(r == -EEXIST || r == -EALREADY ? -EINVAL : r) : EXIT_OK;
}
