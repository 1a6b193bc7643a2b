/* SPDX-License-Identifier: Apache-2.0 */
/* The access keys in use: a reload replaces them, and the admin thread shows when each secret was used last. */
#include "main/daemon.h"

#include "admin/admin.h"
#include "auth/keys.h"
#include "base/clock.h"

#include <inttypes.h>

struct auth_keys *
daemon_use_keys(struct daemon *d, struct auth_keys *keys)
{
	struct auth_keys *old;

	pthread_mutex_lock(&d->conf_lock);
	old = d->keys;
	d->keys = keys;
	pthread_mutex_unlock(&d->conf_lock);
	atomic_store(&d->key_nr, auth_keys_nr(keys));
	return old;
}

int
control_keys(void *cookie, const struct admin_args *args, FILE *out)
{
	struct daemon *d = cookie;
	struct auth_key_info i;
	struct auth_keys *keys;
	uint64_t since_s = (clock_wall_ns() - (clock_ns() - d->started_ns)) / NS_PER_S;
	char text[AUTH_TIME_BYTES];

	(void)args;
	pthread_mutex_lock(&d->conf_lock);
	keys = auth_keys_get(d->keys);
	pthread_mutex_unlock(&d->conf_lock);
	fprintf(out, "{\"since\":\"%s\",\"keys\":[", auth_time_text(since_s, text));
	for (int n = 0; keys && auth_keys_info(keys, n, &i); n++) {
		fprintf(out, "%s{\"access_key\":", n ? ",\n" : "");
		json_string(out, i.access_key);
		fprintf(out, ",\"secret_id\":\"%s\",\"last_used\":", i.secret_id);
		json_string(out, i.last_used_s ? auth_time_text(i.last_used_s, text) : NULL);
		putc('}', out);
	}
	fputs("]}", out);
	auth_keys_put(keys);
	return 200;
}
