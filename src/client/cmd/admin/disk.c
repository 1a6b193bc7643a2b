/* SPDX-License-Identifier: Apache-2.0 */
/* gantry disk: disks that come and go while the daemon serves, through its admin listener. */
#include "client/cmd/admin/copies.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/words.h"
#include "conf/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
print_disk(const json_t *d)
{
	double left = json_at(d, "move_seconds_left");
	char free_text[32], size[32], done[32], total[32];

	printf("%-3.0f %-8s %s  %s\n", json_at(d, "disk"), json_text_at(d, "state", "?"),
	       json_text_at(d, "uuid", "-"), json_text_at(d, "path", "-"));
	if (json_object_get(d, "free_bytes"))
		printf("    %s of %s free\n", size_text((uint64_t)json_at(d, "free_bytes"), free_text),
		       size_text((uint64_t)json_at(d, "size_bytes"), size));
	if (json_object_get(d, "move_bytes_total"))
		printf("    %s of about %s moved, some %.0f s left\n",
		       size_text((uint64_t)json_at(d, "move_bytes_done"), done),
		       size_text((uint64_t)json_at(d, "move_bytes_total"), total), left);
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
	if (!is_add && (c->disk_size || c->force))
		words_bad("disk", "--size and --force are for add", NULL);
	if (c->disk_size && conf_bound_parse(c->disk_size, true, &size) < 0)
		words_bad("disk", "--size wants a size, 500GiB or 1TiB", c->disk_size);
	if (is_status)
		return status(c, admin);
	o = json_object();
	if (disk)
		json_object_set_new(o, "disk", json_pack("s", disk));
	if (c->disk_size)
		json_object_set_new(o, "size", json_pack("s", c->disk_size));
	if (c->force)
		json_object_set_new(o, "force", json_pack("s", "yes"));
	body = o ? json_dumps(o, JSON_COMPACT) : NULL;
	rc = body ? tell(c, admin, what, body) : EXIT_FAILED;
	free(body);
	json_decref(o);
	return rc;
}
