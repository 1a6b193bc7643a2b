/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of credentials in memory: counted, searched, and the keys derived from each secret kept for the day
 * (four HMACs less for every request).  Any thread.
 */
#include "auth/auth_int.h"

#include "base/check.h"

#include <stdlib.h>

struct auth_keys *
auth_keys_get(struct auth_keys *keys)
{
	if (keys)
		check(atomic_fetch_add_explicit(&keys->refs, 1, memory_order_relaxed) > 0);
	return keys;
}

static void
wipe_text(char *text, size_t len)
{
	if (text)
		explicit_bzero(text, len);
	free(text);
}

static void
entry_wipe(struct auth_entry *e)
{
	wipe_text(e->secret, e->secret_len);
	wipe_text(e->token, e->token_len);
	free(e->access_key);
	free(e->comment);
	usage_put(e->usage);
	for (int i = 0; i < e->grant_nr; i++)
		free(e->grant[i].prefix);
	free(e->grant);
	free(e->gid);
	free(e->from);
	explicit_bzero(e, sizeof *e);
}

void
auth_keys_put(struct auth_keys *keys)
{
	int before;

	if (!keys)
		return;
	before = atomic_fetch_sub_explicit(&keys->refs, 1, memory_order_acq_rel);
	check(before > 0);
	if (before > 1)
		return;
	for (int i = 0; i < keys->nr; i++)
		entry_wipe(&keys->entry[i]);
	free(keys->entry);
	free(keys);
}

static int
compare(const char *have, struct span want)
{
	size_t len = strlen(have);
	int c = memcmp(have, want.p, len < want.len ? len : want.len);

	return c ? c : (len > want.len) - (len < want.len);
}

struct auth_entry *
keys_find(struct auth_keys *keys, struct span access_key, int *ret_nr)
{
	int lo = 0, hi = keys->nr, nr = 0;

	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		if (compare(keys->entry[mid].access_key, access_key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo + nr < keys->nr && compare(keys->entry[lo + nr].access_key, access_key) == 0)
		nr++;
	*ret_nr = nr;
	return nr ? &keys->entry[lo] : NULL;
}

const char *
identity_access_key(const struct identity *id)
{
	return id->entry ? id->entry->access_key : NULL;
}

int
auth_keys_nr(const struct auth_keys *keys)
{
	return keys ? keys->nr : 0;
}

bool
auth_keys_info(const struct auth_keys *keys, int i, struct auth_key_info *ret)
{
	const struct auth_entry *e;

	if (i >= keys->nr)
		return false;
	e = &keys->entry[i];
	*ret = (struct auth_key_info){ .access_key = e->access_key,
				       .secret_id = e->id,
				       .comment = e->comment,
				       .have_made = e->have_made,
				       .made_s = e->made_s,
				       .last_used_s = usage_last(e),
				       .session_token = e->token,
				       .read_only = e->read_only,
				       .no_delete = e->no_delete,
				       .no_overwrite = e->no_overwrite,
				       .have_expires = e->have_expires,
				       .expires_s = e->expires_s,
				       .grant = e->grant,
				       .grant_nr = e->grant_nr,
				       .gid = e->gid,
				       .gid_nr = e->gid_nr,
				       .from = e->from,
				       .from_nr = e->from_nr };
	return true;
}

static bool
text_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool
entries_are_twins(const struct auth_entry *a, const struct auth_entry *b)
{
	return text_same(a->access_key, b->access_key) && text_same(a->secret, b->secret) &&
	       text_same(a->token, b->token);
}

void
auth_keys_inherit(struct auth_keys *keys, struct auth_keys *before)
{
	for (int i = 0; keys && before && i < keys->nr; i++) {
		struct auth_entry *e = &keys->entry[i], *old;
		int nr;

		old = keys_find(before, span_of(e->access_key), &nr);
		for (int n = 0; n < nr; n++) {
			if (entries_are_twins(&old[n], e)) {
				usage_share(e, &old[n]);
				break;
			}
		}
	}
}

static bool
grant_same(const struct auth_grant *a, const struct auth_grant *b)
{
	return a->bucket_len == b->bucket_len && memcmp(a->bucket, b->bucket, a->bucket_len) == 0 &&
	       a->any_suffix == b->any_suffix && a->read_only == b->read_only &&
	       a->no_delete == b->no_delete && a->no_overwrite == b->no_overwrite &&
	       a->max_objects == b->max_objects && a->max_bytes == b->max_bytes &&
	       a->max_uploads == b->max_uploads && a->max_buckets == b->max_buckets &&
	       a->prefix_len == b->prefix_len &&
	       (a->prefix_len == 0 || memcmp(a->prefix, b->prefix, a->prefix_len) == 0);
}

static bool
nets_same(const struct conf_net *a, int a_nr, const struct conf_net *b, int b_nr)
{
	if (a_nr != b_nr)
		return false;
	for (int i = 0; i < a_nr; i++) {
		if (a[i].prefix != b[i].prefix || memcmp(&a[i].addr, &b[i].addr, sizeof a->addr) != 0)
			return false;
	}
	return true;
}

bool
entry_same(const struct auth_entry *a, const struct auth_entry *b)
{
	if (!entries_are_twins(a, b) || a->read_only != b->read_only || a->no_delete != b->no_delete ||
	    a->no_overwrite != b->no_overwrite || !nets_same(a->from, a->from_nr, b->from, b->from_nr) ||
	    a->have_expires != b->have_expires || a->expires_s != b->expires_s ||
	    a->have_made != b->have_made || a->made_s != b->made_s || !text_same(a->comment, b->comment) ||
	    a->grant_nr != b->grant_nr || !nets_same(a->gid, a->gid_nr, b->gid, b->gid_nr))
		return false;
	for (int i = 0; i < a->grant_nr; i++) {
		if (!grant_same(&a->grant[i], &b->grant[i]))
			return false;
	}
	return true;
}

bool
auth_keys_same(const struct auth_keys *a, int i, const struct auth_keys *b, int j)
{
	return entry_same(&a->entry[i], &b->entry[j]);
}

/* ---- derived keys ---- */

static void
derive(const struct auth_entry *e, const char *date, struct span region, struct signing_key *out)
{
	hmac256_of(e->secret, e->secret_len, date, 8, out->key);
	hmac256_of(out->key, 32, region.p, region.len, out->key);
	hmac256_of(out->key, 32, "s3", 2, out->key);
	hmac256_of(out->key, 32, "aws4_request", 12, out->key);
	hmac256_key(&out->hmac, out->key, 32);
}

static struct signing_scope
scope_of(const char *date, struct span region)
{
	struct signing_scope s = { .region_len = (uint8_t)region.len };

	check(region.len <= sizeof s.region);
	memcpy(s.date, date, sizeof s.date);
	memcpy(s.region, region.p, region.len);
	return s;
}

/*
 * Reads the words of a cache that follow the scope, if the scope is that of *to. A word that a writer has stored
 * meanwhile was stored after the version became odd, so a reader of that word sees another version: acquire on the words
 * ensures this.
 */
static bool
cache_read(struct signing_cache *c, union signing_words *to)
{
	uint32_t before = atomic_load_explicit(&c->seq, memory_order_acquire);

	if (before & 1)
		return false;
	for (size_t i = 0; i < SCOPE_WORDS; i++) {
		if (atomic_load_explicit(&c->word[i], memory_order_acquire) != to->word[i])
			return false;
	}
	for (size_t i = SCOPE_WORDS; i < SIGNING_WORDS; i++)
		to->word[i] = atomic_load_explicit(&c->word[i], memory_order_acquire);
	return atomic_load_explicit(&c->seq, memory_order_relaxed) == before;
}

static void
cache_write(struct signing_cache *c, const union signing_words *from)
{
	uint32_t seq = atomic_load_explicit(&c->seq, memory_order_relaxed);

	/* Another thread writes: its key is as good. */
	if ((seq & 1) || !atomic_compare_exchange_strong_explicit(&c->seq, &seq, seq + 1,
								  memory_order_acq_rel, memory_order_relaxed))
		return;
	for (size_t i = 0; i < SIGNING_WORDS; i++)
		atomic_store_explicit(&c->word[i], from->word[i], memory_order_release);
	atomic_store_explicit(&c->seq, seq + 2, memory_order_release);
}

static struct signing_cache *
cache_of(struct auth_entry *e, const struct signing_scope *scope)
{
	return &e->cache[scope->date[7] & 1];
}

bool
signing_key(struct auth_entry *e, const char *date, struct span region, union signing_words *out)
{
	out->k.scope = scope_of(date, region);
	if (cache_read(cache_of(e, &out->k.scope), out))
		return true;
	derive(e, date, region, &out->k);
	return false;
}

void
signing_key_keep(struct auth_entry *e, const union signing_words *key)
{
	cache_write(cache_of(e, &key->k.scope), key);
}
