/* SPDX-License-Identifier: Apache-2.0 */
/* Access keys and the table of signatures seen: made at start, given to the cores.  Main thread. */
#include "main/daemon.h"

#include "auth/auth.h"
#include "auth/keyfile.h"
#include "base/advice.h"
#include "base/log.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	char *text = NULL, remedies[256] = "";
	size_t len;
	FILE *err;
	int r;

	*ret_keys = NULL;
	if (!conf->auth.credentials_file)
		return 0;
	err = open_memstream(&text, &len);
	if (!err) {
		log_error("%s: %s", conf->auth.credentials_file, strerror(ENOMEM));
		return -ENOMEM;
	}
	r = auth_keys_load(conf->auth.credentials_file, ret_keys, err);
	if (r == -ENOENT) {
		/* Its first key can come while we run. */
		fclose(err);
		free(text);
		log_warn("%s: is not there yet, so there are no access keys", conf->auth.credentials_file);
		advice_add(remedies, sizeof remedies, ADVICE_NO_KEYS_FILE, NULL);
		advice_log(LOG_WARN, LOG_MODULE, remedies);
		return 0;
	}
	if (fclose(err) != 0 || (r < 0 && (!text || !*text)))
		log_error("%s: %s", conf->auth.credentials_file, strerror(r < 0 ? -r : ENOMEM));
	else if (r < 0)
		say(text);
	free(text);
	return r;
}

int
daemon_first_key(const struct conf *conf)
{
	static const struct key_wish everything;
	const char *path = conf->auth.credentials_file;
	struct keyfile *f;
	struct key_pair pair;
	int e;

	/* A file that is there is somebody's, and good or bad without us. */
	if (!path || access(path, F_OK) == 0)
		return 0;
	e = keyfile_open(path, true, conf->store.disk_nr ? conf->store.disks[0].path : NULL, &f, stderr);
	if (e < 0)
		return e;
	/* Somebody else may have been as quick. */
	if (auth_keys_nr(keyfile_keys(f)) == 0) {
		e = keyfile_new(f, &everything, &pair, stderr);
		if (e == 0)
			printf("gantryd: made the first access key, which may do everything, in %s:\n"
			       "export AWS_ACCESS_KEY_ID=%s\nexport AWS_SECRET_ACCESS_KEY=%s\n",
			       keyfile_path(f), pair.access_key, pair.secret);
		explicit_bzero(&pair, sizeof pair);
	}
	keyfile_close(f);
	return e;
}

_Static_assert(AUTH_UNBOUNDED == STORE_UNBOUNDED, "no bound is no bound");

int
daemon_set_quotas(struct store *store, const struct auth_keys *keys)
{
	struct store_pattern_quota *quota = NULL;
	struct auth_key_info info;
	int nr = 0, room = 0, r;

	for (int i = 0; keys && auth_keys_info(keys, i, &info); i++)
		room += info.grant_nr;
	if (room && !(quota = calloc((size_t)room, sizeof *quota)))
		return -ENOMEM;
	for (int i = 0; keys && auth_keys_info(keys, i, &info); i++) {
		for (int g = 0; g < info.grant_nr; g++) {
			const struct auth_grant *grant = &info.grant[g];
			struct store_use max = { grant->max_objects, grant->max_bytes, grant->max_uploads };

			if (max.objects == STORE_UNBOUNDED && max.bytes == STORE_UNBOUNDED &&
			    max.uploads == STORE_UNBOUNDED && grant->max_buckets == STORE_UNBOUNDED)
				continue;
			quota[nr] = (struct store_pattern_quota){ .bucket_len = grant->bucket_len,
								  .any_suffix = grant->any_suffix,
								  .max = max,
								  .max_buckets = grant->max_buckets };
			memcpy(quota[nr++].bucket, grant->bucket, grant->bucket_len);
		}
	}
	r = store_set_quotas(store, quota, nr);
	free(quota);
	return r;
}

int
daemon_make_replay(const struct conf *conf, struct auth_replay **ret_replay)
{
	*ret_replay = NULL;
	return conf->auth.replay == REPLAY_OFF ? 0 : auth_replay_new(conf->memory.replay_bytes, ret_replay);
}
