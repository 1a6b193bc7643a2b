/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing a credentials file.  A text that parses, or has nothing in it, gets one more entry and loses it again, or
 * there is an error; whatever comes out parses, and everybody else's entries are what they were.
 */
#include "auth/keyfile.h"

#include "auth/auth_int.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

static FILE *err;

/* How many entries a text has; -1: it is none. */
static int
count(const char *text, size_t len)
{
	struct auth_keys *keys = NULL;
	int nr = credentials_parse(text, len, "keys", true, &keys, err) < 0 ? -1 : keys->nr;

	auth_keys_put(keys);
	return nr;
}

/* Each access key that is there is cut out of the text. */
static void
cut_each(const char *text, size_t len)
{
	struct auth_keys *keys = NULL;

	must(credentials_parse(text, len, "keys", true, &keys, err) == 0);
	for (int i = 0; i < keys->nr && i < 8; i++) {
		char *out;
		size_t out_len;
		int same;

		keys_find(keys, span_of(keys->entry[i].access_key), &same);
		if (keyfile_cut(text, len, "keys", keys->entry[i].access_key, NULL, &out, &out_len, err) < 0)
			continue;
		must(count(out, out_len) == keys->nr - same);
		must(out_len <= len + 3);
		free(out);
	}
	auth_keys_put(keys);
}

/* Each secret gets a second one, or there is an error. */
static void
turn_each(const char *text, size_t len)
{
	struct key_pair second = { .secret = "anothersecret" };
	struct auth_keys *keys = NULL;

	must(credentials_parse(text, len, "keys", true, &keys, err) == 0);
	for (int i = 0; i < keys->nr && i < 8; i++) {
		struct key_turn t = { &second, keys->entry[i].id, i % 2 ? UINT64_MAX : 1893456000,
				      1795950000 };
		char *out;
		size_t out_len;

		snprintf(second.access_key, sizeof second.access_key, "%s", keys->entry[i].access_key);
		secret_id(second.access_key, second.secret, second.secret_id);
		if (keyfile_turn(text, len, "keys", &t, &out, &out_len, err) < 0)
			continue;
		must(count(out, out_len) == keys->nr + 1);
		must(memmem(out, out_len, "anothersecret", 13));
		free(out);
	}
	auth_keys_put(keys);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct key_pair pair = { "GKNEWNEW", "newsecret" };
	static const char *const bucket[] = { "a-*", "b" }, *const from[] = { "10.0.0.0/8", "fd00::1" };
	static const char *const patterns[] = { "a-*", "b*" };
	struct key_wish wish = { 0 };
	const char *text = (const char *)data;
	char *more, *again;
	size_t more_len, again_len;
	int nr;

	if (!err)
		must(err = fopen("/dev/null", "w"));
	if (len % 2)
		wish = (struct key_wish){ .bucket = bucket,
					  .bucket_nr = 2,
					  .prefix = "p \"\\",
					  .read_only = true,
					  .no_delete = true,
					  .no_overwrite = true,
					  .expires = "2030-01-01T00:00:00Z",
					  .made = "2026-11-29T12:00:00Z",
					  .comment = "caf\xc3\xa9 \"\\ #",
					  .from = from,
					  .from_nr = 2 };
	else
		wish = (struct key_wish){ .bucket = patterns,
					  .bucket_nr = 2,
					  .max_objects = "7",
					  .max_bytes = "1.5GiB",
					  .max_uploads = "0",
					  .max_buckets = "3" };
	nr = count(text, len);
	if (keyfile_add(text, len, "keys", &pair, &wish, &more, &more_len, err) < 0)
		return 0;
	must(nr >= 0 && count(more, more_len) == nr + 1);
	must(more_len > len);
	/* What is in it has never to be looked for: it is there at once. */
	must(keyfile_cut(more, more_len, "keys", pair.access_key, NULL, &again, &again_len, err) == 0);
	must(count(again, again_len) == nr);
	cut_each(text, len);
	turn_each(text, len);
	free(again);
	free(more);
	return 0;
}
