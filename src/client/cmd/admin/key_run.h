/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the command `gantry key`. All functions are called by the main thread. */
#ifndef GANTRY_CLIENT_CMD_ADMIN_KEY_RUN_H
#define GANTRY_CLIENT_CMD_ADMIN_KEY_RUN_H

#include "auth/keyfile.h"
#include "client/cmd/common/cmd.h"
#include "conf/conf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct key_run {
	struct cmd *c;
	const char *path;  /* path of the credentials file */
	struct conf *conf; /* configuration of the daemon; NULL: --file was given without --conf */
};

/* Finds the path of the credentials file by --file and --conf. Returns false after an error message. */
bool key_find_file(struct key_run *k);
/* Opens the credentials file, which key_find_file() has found; change: true: for editing. Returns NULL after an error
 * message. */
struct keyfile *key_open_file(struct key_run *k, bool change);
/* Makes a running daemon read the file. Returns true if the daemon has read it, with a sentence about the result in
 * says. *ret_exit: exit status of the program. */
bool key_reload(const struct key_run *k, const char *path, char *says, size_t cap, int *ret_exit);
/* Asks a running daemon when each secret was used last. Returns the answer of /control/keys, which the caller releases
 * with json_decref(); NULL: the daemon cannot be asked, or reads another file, with a sentence in err. */
json_t *key_usage(const struct key_run *k, const char *path, char *err, size_t cap);
/* Prints a line on standard error, except with --quiet. */
void key_note(const struct key_run *k, const char *text);

#define KEY_NAME_BYTES (AUTH_ACCESS_KEY_MAX + AUTH_SECRET_ID_LEN + 2)
/* Writes "KEY/ID", the name of a secret. */
void key_name(const char *access_key, const char *secret_id, char out[KEY_NAME_BYTES]);
/* Makes the JSON object of a secret for `gantry key list --json`, without its last use. */
json_t *key_json(const struct auth_key_info *i);
/* Runs `gantry key list --compare`: compares the keys of the file with those of gateways, asked by ssh, and shows the
 * differences. hosts: names of the gateways, separated by commas. Returns EXIT_OK if there is no difference;
 * EXIT_FAILED: there are some, or a host did not answer. */
int key_compare(struct key_run *k, const char *hosts);
/* Runs `gantry key list`. Returns the exit status of the program. */
int key_list(struct key_run *k);

#endif
