/* SPDX-License-Identifier: Apache-2.0 */
/* Access keys and the table of signatures seen: made at start, given to the cores.  Main thread. */
#include "main/daemon.h"

#include "auth/auth.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Each line of what auth/ says is an error of its own. */
static void
say(char *text)
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		log_error("%s", line);
}

int
daemon_load_keys(const struct conf *conf, struct auth_keys **ret_keys)
{
	char *text = NULL;
	size_t len;
	FILE *err;
	int r;

	*ret_keys = NULL;
	if (!conf->auth.credentials_file)
		return 0;
	err = open_memstream(&text, &len);
	if (!err)
		return -ENOMEM;
	r = auth_keys_load(conf->auth.credentials_file, ret_keys, err);
	if (fclose(err) != 0 || (r < 0 && (!text || !*text)))
		log_error("%s: %s", conf->auth.credentials_file, strerror(r < 0 ? -r : ENOMEM));
	else if (r < 0)
		say(text);
	free(text);
	return r;
}

int
daemon_make_replay(const struct conf *conf, struct auth_replay **ret_replay)
{
	*ret_replay = NULL;
	return conf->auth.replay == REPLAY_OFF ? 0 : auth_replay_new(conf->memory.replay_bytes, ret_replay);
}
