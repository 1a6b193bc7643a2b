/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the file of `gantry key`, and has the daemon read it, see key_run.h. */
#include "client/cmd/admin/key_run.h"

#include "client/cmd/common/admin_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which file ---- */

bool
key_find_file(struct key_run *k)
{
	const struct conf_source src = { .file = k->c->key.conf ? k->c->key.conf : CONF_DEFAULT_FILE,
					 .file_required = true,
					 .partial = true };

	k->path = k->c->key.file;
	if (k->path && !k->c->key.conf)
		return true;
	if (conf_load(&src, &k->conf, stderr) < 0) {
		fprintf(stderr, "gantry: --conf FILE names gantryd's configuration, --file FILE the file of "
				"keys itself\n");
		return false;
	}
	if (!k->path)
		k->path = k->conf->auth.credentials_file;
	if (!k->path)
		fprintf(stderr,
			"gantry: %s: auth.credentials_file is not set: set it, or name the file with "
			"--file\n",
			src.file);
	return k->path;
}

struct keyfile *
key_open_file(struct key_run *k, bool change)
{
	struct keyfile *f;
	int e = keyfile_open(k->path, change,
			     k->conf && k->conf->store.disk_nr ? k->conf->store.disks[0].path : NULL, &f,
			     stderr);

	if (e == 0)
		return f;
	if (e == -EACCES || e == -EPERM)
		fprintf(stderr, "gantry: it is for root and the daemon's user: sudo gantry key ...\n");
	else if (e == -ENOENT && !change)
		fprintf(stderr, "gantry: `gantry key new` makes it, with a first key\n");
	return NULL;
}

/* ---- the daemon ---- */

/* "*:9001" is where it listens and nowhere to go. */
static void
admin_of(const struct key_run *k, char *out, size_t cap)
{
	const char *env = getenv("GANTRY_ADMIN");
	const struct conf *c = k->conf;

	if (k->c->admin || (env && *env) || !c || (!c->admin.socket && !c->admin.address))
		snprintf(out, cap, "%s", admin_name(k->c->admin));
	else if (c->admin.socket)
		snprintf(out, cap, "%s", c->admin.socket);
	else
		snprintf(out, cap, "%s%s", c->admin.address[0] == '*' ? "127.0.0.1" : "",
			 c->admin.address + (c->admin.address[0] == '*'));
}

/* Does the daemon at that address read another file than ours? */
static bool
reads_another(const char *admin, const char *path, char *err, size_t cap)
{
	json_t *conf;
	const char *theirs;
	char *real;
	bool other;

	if (admin_json(admin, "/config", &conf, NULL, err, cap) < 0)
		return false;
	theirs = json_string_value(json_object_get(json_object_get(conf, "auth.credentials_file"), "value"));
	real = theirs ? realpath(theirs, NULL) : NULL;
	other = !real || strcmp(real, path) != 0;
	if (other)
		snprintf(err, cap, "the gantryd at %s reads another file: its auth.credentials_file is %s",
			 admin, theirs ? theirs : "not set");
	free(real);
	json_decref(conf);
	return other;
}

static void
take_reasons(const struct answer *a, char *err, size_t cap)
{
	json_t *o = json_loadb(a->text, a->len, 0, NULL), *line;
	size_t i, at = (size_t)snprintf(err, cap, "%d: %s", a->status,
					json_text_at(o, "error", "no reason given"));

	json_array_foreach(json_object_get(o, "messages"), i, line)
	{
		if (at < cap)
			at += (size_t)snprintf(err + at, cap - at, "\n  %s", json_string_value(line));
	}
	json_decref(o);
}

/* Has a running daemon read the file.  Whether it has, with a sentence; *ret_exit is the program's status. */
bool
key_reload(const struct key_run *k, const char *path, char *says, size_t cap, int *ret_exit)
{
	char admin[512], err[1024];
	struct answer a;

	*ret_exit = EXIT_OK;
	admin_of(k, admin, sizeof admin);
	if (admin_post(admin, "/control/reload", "", &a, err, sizeof err) < 0) {
		snprintf(says, cap,
			 "%s\na gantryd that runs reads the file at `systemctl reload gantryd`, any other "
			 "when it starts",
			 err);
		return false;
	}
	if (a.status == 200) {
		free(a.text);
		if (reads_another(admin, path, says, cap))
			return false;
		snprintf(says, cap, "gantryd has read the file");
		return true;
	}
	take_reasons(&a, err, sizeof err);
	free(a.text);
	/* Who may not tell it can have somebody else do so; what it refuses is to be put right. */
	if (a.status == 401 || a.status == 403 || a.status == 404) {
		snprintf(says, cap,
			 "gantryd was not told, %s\n`systemctl reload gantryd` has it read the file", err);
	} else {
		snprintf(says, cap, "gantryd continues with the previous keys, %s", err);
		*ret_exit = EXIT_FAILED;
	}
	return false;
}

json_t *
key_usage(const struct key_run *k, const char *path, char *err, size_t cap)
{
	char admin[512];
	struct answer a;
	json_t *o;

	admin_of(k, admin, sizeof admin);
	if (reads_another(admin, path, err, cap) || admin_post(admin, "/control/keys", "", &a, err, cap) < 0)
		return NULL;
	o = a.status == 200 ? json_loadb(a.text, a.len, 0, NULL) : NULL;
	if (!o)
		take_reasons(&a, err, cap);
	free(a.text);
	return o;
}

void
key_name(const char *access_key, const char *secret_id, char out[KEY_NAME_BYTES])
{
	snprintf(out, KEY_NAME_BYTES, "%.*s/%.*s", AUTH_ACCESS_KEY_MAX, access_key, AUTH_SECRET_ID_LEN,
		 secret_id);
}

void
key_note(const struct key_run *k, const char *text)
{
	if (!k->c->quiet)
		fprintf(stderr, "gantry: %s\n", text);
}
