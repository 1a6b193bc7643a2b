/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials file.  Whatever it holds, it is taken or there are errors; what was taken can be asked; and
 * no error shows a value, which may be a secret.
 */
#include "auth/auth_int.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

/* None, or one that can be counted to; and a part of a bucket has none. */
static void
must_be_bounds(const struct auth_grant *g)
{
	const uint64_t max[] = { g->max_objects, g->max_bytes, g->max_uploads, g->max_buckets };

	must(g->max_buckets == AUTH_UNBOUNDED || g->any_suffix);
	for (int i = 0; i < 4; i++)
		must(max[i] == AUTH_UNBOUNDED || (max[i] <= (uint64_t)1 << 62 && !g->prefix_len));
}

/* Sorted, each found by its name, and none with a time to expire that cannot be written. */
static void
must_be_sound(struct auth_keys *keys)
{
	for (int i = 0; i < keys->nr; i++) {
		struct auth_entry *e = &keys->entry[i];
		struct span name = span_of(e->access_key);
		struct auth_entry *first;
		int nr = 0;

		must(name.len && name.len <= AUTH_ACCESS_KEY_MAX && e->secret_len <= 4 + AUTH_SECRET_MAX);
		must(memcmp(e->secret, "AWS4", 4) == 0 && strlen(e->secret) == e->secret_len);
		must(!e->token || strlen(e->token) == e->token_len);
		must(i == 0 || strcmp(keys->entry[i - 1].access_key, e->access_key) <= 0);
		must(!e->have_expires || e->expires_s < (uint64_t)1 << 38);
		must(!e->have_made || e->made_s < (uint64_t)1 << 38);
		must(strlen(e->id) == AUTH_SECRET_ID_LEN &&
		     strspn(e->id, "0123456789abcdef") == AUTH_SECRET_ID_LEN);
		must(!e->comment || (*e->comment && strlen(e->comment) <= AUTH_COMMENT_MAX));
		must(e->grant_nr <= AUTH_GRANTS_MAX);
		for (int g = 0; g < e->grant_nr; g++)
			must_be_bounds(&e->grant[g]);
		first = keys_find(keys, name, &nr);
		must(first && first <= e && e < first + nr);
		must(!keys_find(keys, (struct span){ name.p, name.len - 1 }, &nr) || name.len > 3);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *errors = NULL;
	size_t errors_len = 0;
	FILE *err = open_memstream(&errors, &errors_len);
	struct auth_keys *keys = NULL;
	int r;

	must(err);
	r = auth_keys_parse((const char *)data, len, "keys", &keys, err);
	fclose(err);
	if (r < 0) {
		must(!keys && errors_len > 0);
		must(!memmem(errors, errors_len, "verysecret", 10));
		for (size_t i = 0; i < errors_len; i++)
			must((unsigned char)errors[i] >= ' ' || errors[i] == '\n');
	} else {
		must(keys && keys->nr > 0 && errors_len == 0);
		must(auth_keys_get(keys) == keys);
		must_be_sound(keys);
		auth_keys_put(keys);
		auth_keys_put(keys);
	}
	free(errors);
	return 0;
}
