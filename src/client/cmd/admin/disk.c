/* SPDX-License-Identifier: Apache-2.0 */
/* gantry disk: disks that come and go while the daemon serves, through its admin listener. */
#include "base/disk_name.h"
#include "base/path.h"
#include "client/cmd/admin/copies.h"
#include "client/cmd/admin/disk_file.h"
#include "client/cmd/admin/jobs.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/disk_text.h"
#include "client/cmd/common/words.h"
#include "conf/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void
print_disk(const json_t *d)
{
	double left = json_at(d, "move_seconds_left");
	char free_text[32], size[32], done[32], total[32], time[AMOUNT_TEXT];

	printf("%-8s %-8s %s  %s\n", disk_label_of(d), json_text_at(d, "state", "?"),
	       json_text_at(d, "path", "-"), json_text_at(d, "uuid", ""));
	if (json_object_get(d, "free_bytes"))
		printf("    %s of %s free\n", size_text((uint64_t)json_at(d, "free_bytes"), free_text),
		       size_text((uint64_t)json_at(d, "size_bytes"), size));
	if (json_object_get(d, "move_bytes_total"))
		printf("    %s of about %s moved, some %s left\n",
		       size_text((uint64_t)json_at(d, "move_bytes_done"), done),
		       size_text((uint64_t)json_at(d, "move_bytes_total"), total),
		       interval_text((uint64_t)left, time));
	if (*json_text_at(d, "reason", ""))
		printf("    %s\n", json_text_at(d, "reason", ""));
}

/* A line where there are buckets with two copies. */
static void
print_copies(const char *admin)
{
	char err[1024];
	json_t *status;

	if (admin_json(admin, "/status", &status, NULL, err, sizeof err) < 0)
		return;
	if (copies_of(status)) {
		copies_print(stdout, copies_of(status));
		putchar('\n');
	}
	json_decref(status);
}

static int
status(const struct cmd *c, const char *admin)
{
	char err[1024];
	json_t *list, *d;
	size_t i;

	if (admin_json(admin, "/disks", &list, NULL, err, sizeof err) < 0) {
		fprintf(stderr, "gantry: %s\n", err);
		return EXIT_FAILED;
	}
	if (c->json) {
		json_dumpf(list, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		json_array_foreach(list, i, d) print_disk(d);
		print_copies(admin);
	}
	json_decref(list);
	return EXIT_OK;
}

/* Prints what to write into the configuration file after a change.  A daemon without a record of its store depends on it at the next
 * start. */
static void
print_line(const json_t *o)
{
	bool is_added = json_is_true(json_object_get(o, "added"));
	const char *line = json_text_at(o, "line", NULL);

	if (line && is_added)
		printf("add this line to store.disks in the configuration file, then reload (systemctl "
		       "reload "
		       "gantryd):\n    %s\n",
		       line);
	else if (line)
		printf("when it is drained, remove this line from store.disks in the configuration file:\n   "
		       " "
		       "%s\n",
		       line);
	if (line && is_added && !json_is_true(json_object_get(o, "remembered")))
		printf("this daemon cannot remember the disk (store.state_dir): without the line the next "
		       "start "
		       "does not find it\n");
}

static void
print_said(const struct cmd *c, const json_t *o)
{
	if (c->json) {
		json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
	} else if (!c->quiet) {
		printf("%s\n", json_text_at(o, "said", "done"));
		if (!c->writes)
			print_line(o);
	}
}

static int
tell(const struct cmd *c, const char *admin, const char *what, const char *body)
{
	char path[64];

	snprintf(path, sizeof path, "/control/disk/%s", what);
	return admin_tell(c, admin, "disk", path, body, print_said);
}

/* ---- --write ---- */

/* Returns true if the change of a disk, named by path, UUID or its first digits, is made: it is drained, or (not is_drain) it serves. */
static bool
is_made(const json_t *disks, const char *disk, bool is_drain)
{
	json_t *d;
	size_t i;

	json_array_foreach(disks, i, d)
	{
		const char *state = json_text_at(d, "state", "");

		if ((is_drain ? !strcmp(state, "drained")
			      : !strcmp(state, "serving") || !strcmp(state, "moving")) &&
		    (disk_digits_are(disk, json_text_at(d, "uuid", "")) ||
		     strcasecmp(disk, json_text_at(d, "uuid", "")) == 0 ||
		     path_same(disk, json_text_at(d, "path", ""))))
			return true;
	}
	return false;
}

/* Has the daemon read its configuration again, so that health no longer names the disk. */
static void
reload(const struct cmd *c, const char *admin)
{
	struct answer a = { .text = NULL };
	char err[1024];

	if ((admin_post(admin, "/control/reload", "", &a, err, sizeof err) < 0 || a.status != 200) &&
	    !c->quiet)
		fprintf(stderr, "gantry: gantryd has not read the file yet: systemctl reload gantryd\n");
	free(a.text);
}

static int
write_file(const struct cmd *c, const char *admin, struct disk_file *f, const json_t *disks)
{
	bool wrote;

	if (disk_file_write(f, disks, &wrote) < 0) {
		fprintf(stderr, "gantry: disk: store.disks was not changed: gantry health shows what is "
				"missing in it\n");
		return EXIT_FAILED;
	}
	if (c->json)
		printf("{\"file\":\"%s\",\"written\":%s}\n", disk_file_path(f), wrote ? "true" : "false");
	else if (!c->quiet)
		printf(wrote ? "%s: written: it has store.disks now\n"
			     : "%s: not written, as store.disks is right already\n",
		       disk_file_path(f));
	if (wrote)
		reload(c, admin);
	return EXIT_OK;
}

/* Makes the change, unless it is made already, and keeps it in the daemon's configuration. */
static int
tell_and_write(const struct cmd *c, const char *admin, const char *what, const char *disk, const char *body)
{
	bool is_drain = strcmp(what, "drain") == 0;
	struct disk_file *f = NULL;
	json_t *disks = NULL, *after = NULL;
	char err[1024] = "";
	int rc = EXIT_FAILED;

	if (admin_json(admin, "/disks", &disks, NULL, err, sizeof err) == 0)
		f = disk_file_open(c->key.conf ? c->key.conf : CONF_DEFAULT_FILE, disks);
	if (f)
		rc = is_made(disks, disk, is_drain) ? EXIT_OK : tell(c, admin, what, body);
	if (f && rc == EXIT_OK && admin_json(admin, "/disks", &after, NULL, err, sizeof err) < 0)
		rc = EXIT_FAILED;
	if (err[0])
		fprintf(stderr, "gantry: %s\n", err);
	if (after && !is_made(after, disk, is_drain)) {
		if (!c->quiet && !c->json)
			printf("when it is drained (gantry disk status), repeat this command: it takes the "
			       "disk out of store.disks\n");
	} else if (after) {
		rc = write_file(c, admin, f, after);
	}
	json_decref(after);
	json_decref(disks);
	disk_file_close(f);
	return rc;
}

/* Makes a change, waits for its end if asked to, and shows the disks then. */
static int
change(const struct cmd *c, const char *admin, const char *what, const char *disk, const char *body)
{
	/* store.disks loses a disk when it is drained, and gets a new one at once. */
	bool is_late = c->waits && strcmp(what, "drain") == 0;
	int rc = c->writes && !is_late ? tell_and_write(c, admin, what, disk, body)
				       : tell(c, admin, what, body);

	if (rc != EXIT_OK || !c->waits)
		return rc;
	rc = jobs_wait(c, admin);
	if (rc == EXIT_OK && c->writes && is_late)
		rc = tell_and_write(c, admin, what, disk, body);
	return rc == EXIT_OK && !c->quiet ? status(c, admin) : rc;
}

int
cmd_disk(struct cmd *c, const char *what, const char *disk)
{
	const char *admin = admin_name(c->admin);
	bool is_status = !strcmp(what, "status"), is_add = !strcmp(what, "add"),
	     wants = is_add || !strcmp(what, "drain");
	uint64_t size;
	json_t *o;
	char *body;
	int rc;

	if (!is_status && !wants && strcmp(what, "cancel") != 0)
		words_bad("disk", "there are status, drain, add and cancel", what);
	if (wants != !!disk)
		words_bad("disk", wants ? "the DISK is missing" : "this takes no DISK", disk);
	if (c->disk_size && conf_bound_parse(c->disk_size, true, &size) < 0)
		words_bad("disk", "--size wants a size, 500GiB or 1TiB", c->disk_size);
	if (is_status) {
		rc = c->waits ? jobs_wait(c, admin) : EXIT_OK;
		return rc == EXIT_OK ? status(c, admin) : rc;
	}
	o = json_object();
	if (disk)
		json_object_set_new(o, "disk", json_pack("s", disk));
	if (c->disk_size)
		json_object_set_new(o, "size", json_pack("s", c->disk_size));
	if (c->force)
		json_object_set_new(o, "force", json_pack("s", "yes"));
	body = o ? json_dumps(o, JSON_COMPACT) : NULL;
	rc = body ? change(c, admin, what, disk, body) : EXIT_FAILED;
	free(body);
	json_decref(o);
	return rc;
}
