/* SPDX-License-Identifier: Apache-2.0 */
/* Compares store.disks with the disks of the daemon that has them open, for --check-config. The main thread of a process of its own. */
#include "main/options.h"

#include "base/disk_name.h"
#include "base/path.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DISKS_BYTES (512u << 10)

static const char *
text_of(const json_t *disk, const char *name)
{
	const char *text = json_string_value(json_object_get(disk, name));

	return text ? text : "";
}

static bool
is_accepted(const struct conf *conf, const char *uuid)
{
	uint8_t bytes[UUID_BYTES];

	for (int i = 0; i < conf->store.accept_missing_nr && uuid_parse(uuid, bytes) == 0; i++) {
		if (memcmp(conf->store.accept_missing[i], bytes, sizeof bytes) == 0)
			return true;
	}
	return false;
}

static const json_t *
find_path(const json_t *disks, const char *path)
{
	const json_t *d, *found = NULL;
	size_t i;

	json_array_foreach(disks, i, d)
	{
		const char *at = text_of(d, "path");

		/* A drained disk may have had the path of one that serves. */
		if (at[0] && (path_same(at, path) || path_leads_same(at, path)) &&
		    (!found || strcmp(text_of(found, "state"), "drained") == 0))
			found = d;
	}
	return found;
}

static bool
is_named(const struct conf *conf, const json_t *disks, const json_t *disk)
{
	for (int i = 0; i < conf->store.disk_nr; i++) {
		if (find_path(disks, conf->store.disks[i].path) == disk)
			return true;
	}
	return false;
}

/* Compares store.disks with the disks of the daemon. has_record: a start finds disks that store.disks does not name. Returns 0; or
 * -EINVAL, with the difference in err. */
static int
compare(const struct conf *conf, const json_t *disks, bool has_record, char *err, size_t len)
{
	char name[DISK_NAME_BYTES];
	const json_t *d;
	size_t i;

	for (int k = 0; k < conf->store.disk_nr; k++) {
		if (find_path(disks, conf->store.disks[k].path))
			continue;
		snprintf(err, len, "%.500s: the daemon has no disk at this path", conf->store.disks[k].path);
		return -EINVAL;
	}
	json_array_foreach(disks, i, d)
	{
		const char *state = text_of(d, "state");
		bool serves = strcmp(state, "serving") == 0 || strcmp(state, "moving") == 0;

		if (strcmp(state, "drained") == 0 || is_accepted(conf, text_of(d, "uuid")) ||
		    (serves && (has_record || is_named(conf, disks, d))))
			continue;
		snprintf(err, len, "disk %.350s %s", disk_name(name, text_of(d, "uuid"), text_of(d, "path")),
			 serves ? "serves, and store.disks does not name it" : state);
		return -EINVAL;
	}
	return 0;
}

int
ask_disks(const struct conf *conf, bool has_record, char *err, size_t len)
{
	char *answer = malloc(DISKS_BYTES);
	const char *body;
	json_t *disks;
	int r = !answer              ? -ENOMEM
		: conf->admin.socket ? socket_ask(conf->admin.socket, "GET /disks", answer, DISKS_BYTES)
				     : -ENOENT;

	if (r < 0) {
		snprintf(err, len, "the daemon cannot be asked: %.200s: %s",
			 conf->admin.socket ? conf->admin.socket : "admin.socket is none", strerror(-r));
		free(answer);
		return r;
	}
	body = strstr(answer, "\r\n\r\n");
	disks = body && strncmp(answer, "HTTP/1.1 200", 12) == 0 ? json_loads(body + 4, 0, NULL) : NULL;
	if (json_is_array(disks) && json_array_size(disks)) {
		r = compare(conf, disks, has_record, err, len);
	} else {
		snprintf(err, len, "%.200s: no list of disks came", conf->admin.socket);
		r = -EPROTO;
	}
	json_decref(disks);
	free(answer);
	return r;
}
