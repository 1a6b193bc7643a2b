/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads on a set of disks, see sim.h and many.c: begun, given parts, completed, aborted, and ended with their bucket.
 *
 * Each belongs to one client, as the key that it is for does.  A completion changes two things, and both or neither are so
 * behind the next start: the object is there, and the upload is not.
 */
#include "tests/sim/many_int.h"

#include "model/quota.h"

#include <errno.h>
#include <string.h>

#define UPLOADS 2 /* of a client */
#define LISTED_MAX 32

struct upload {
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	bool is_used,
		is_coming; /* coming: the id is known when its begin returns, or (slots move) when it is over */
	bool has_id;
	int b, k;
	struct cell there; /* 1: it is */
	struct cell part[PARTS];
	uint32_t object; /* that a completion makes of it, of which nobody knows whether it did; 0: none */
	bool may_end;    /* its bucket may have ended it */
	uint64_t ended;  /* event at which its bucket did */
};
static struct upload uploads[CLIENTS][UPLOADS];

static struct {
	int nr;
	uint8_t id[LISTED_MAX][STORE_UPLOAD_ID_BYTES];
	int key[LISTED_MAX];
} listed;

static void
cell_begin(struct cell *c)
{
	*c = (struct cell){ .nr = 1, .pending = UNKNOWN_ID, .other = UNKNOWN_ID };
}

/* Disks that may have been the first to remove a bucket before the process died. */
static unsigned may_have_removed[BUCKETS];

void
uploads_begin(void)
{
	memset(may_have_removed, 0, sizeof may_have_removed);
	memset(uploads, 0, sizeof uploads);
}

/* The n-th of all; NULL: there are no more. */
static struct upload *
nth(int n)
{
	return n < CLIENTS * UPLOADS ? &uploads[n / UPLOADS][n % UPLOADS] : NULL;
}

/* Nobody can see it any more. */
static bool
is_over(const struct upload *u)
{
	const struct cell *c = &u->there;

	return !u->is_used || (c->nr == 1 && c->may[0] == 0 && c->pending == UNKNOWN_ID && !c->is_open);
}

/* Is it certain what is there, so that something else may be put there? */
static bool
is_certain(const struct cell *c)
{
	return c->nr == 1 && c->pending == UNKNOWN_ID && !c->is_open;
}

/* "No such upload" or "no such bucket" was said. */
static void
check_missing(const struct upload *u, int r, uint64_t since, const char *what)
{
	if ((r == -ENOENT || r == -ENXIO) && !cell_may_be(&u->there, 0) &&
	    !many_bucket_changed(u->b, since) && !(r == -ENXIO && cell_may_be(&many_buckets[u->b], 0)))
		sim_fail("%s is told %d, and the upload of bucket %d key %d is there", what, r, u->b, u->k);
	if (r >= 0 && many_is_away(u->b, u->k))
		sim_fail("%s of bucket %d key %d is acknowledged, and its disk is away", what, u->b, u->k);
	if (r < 0 && r != -ENOENT && r != -ENXIO && r != -EDQUOT)
		many_check_key_error(r, u->b, u->k, since, what);
}

/* ---- what clients do ---- */

static void
take_id(struct upload *u, const struct many_client *c)
{
	static const uint8_t none[STORE_UPLOAD_ID_BYTES];

	memcpy(u->id, c->u.up.id, sizeof u->id);
	u->has_id = memcmp(u->id, none, sizeof none) != 0;
}

static void
do_create(struct many_client *c, struct upload *u, int b, int k)
{
	struct store_key sk = many_key(b, k);
	bool is_gone;
	uint64_t since;
	int r;

	many_begin(c);
	is_gone = cell_may_be(&many_buckets[b], 0);
	*u = (struct upload){ .is_used = true, .is_coming = true, .b = b, .k = k };
	cell_begin(&u->there);
	for (int i = 0; i < PARTS; i++)
		cell_begin(&u->part[i]);
	u->there.pending = 1;
	since = ++many_events;
	/* What was there before in its place may have been counted meanwhile. */
	u->there.since = u->part[0].since = u->part[1].since = since;
	counts.uploads++;
	say("client %d begins an upload of bucket %d key %d, at home on %d", c->nr, b, k, many_home(b, k));
	r = store_upload_create(many_port(c), &sk, "", 0, &c->u.up);
	take_id(u, c);
	r = many_wait(c, r);
	take_id(u, c);
	u->is_coming = false;
	say("upload: %d", r);
	if (r == -EDQUOT)
		quotas_check_refused(b, since, "beginning an upload");
	cell_over(&u->there, r, 1);
	if (u->ended > since) {
		cell_may_too(&u->there, 0);
		u->there.is_open = true;
	}
	if (r == -ENXIO && !is_gone && many_bucket_stays(b, since) && !many_bucket_changed(b, since))
		sim_fail("an upload is told that bucket %d is not there, and it was all the time", b);
	if (r >= 0)
		quotas_check_grown(b, since, &(struct store_use){ .uploads = 1 }, "an upload");
	if (r != -ENXIO)
		check_missing(u, r, since, "beginning an upload");
}

static void
do_part(struct many_client *c, struct upload *u)
{
	struct store_key sk = many_key(u->b, u->k);
	struct store_commit sc = { .inline_data = NULL };
	int n = (int)below(PARTS), r;
	uint32_t id = ++many_ids, size = one_in(2) ? 8 : SIZE;
	uint64_t since;

	if (u->part[n].is_open)
		return;
	many_begin(c);
	if (!is_certain(&u->there))
		return;
	quotas_size(id, size);
	quotas_leaves(u->b, &u->part[n]);
	u->part[n].pending = id;
	u->part[n].since = since = ++many_events;
	counts.parts++;
	say("client %d puts part %d, %u, of the upload of bucket %d key %d", c->nr, n + 1, id, u->b, u->k);
	memcpy(sc.meta.etag.sum, &id, sizeof id);
	r = store_put_init_part(many_port(c), &c->u.put, &sk, u->id, (uint32_t)n + 1, size);
	memset(c->buf.mem, (int)id, SIZE);
	if (size == SIZE) {
		sc.last = &c->buf;
		sc.last_len = SIZE;
	} else {
		sc.inline_data = "inlined!";
		sc.inline_len = 8;
	}
	if (r >= 0)
		r = many_wait(c, store_put_commit(many_port(c), &c->u.put, &sc));
	store_put_abort(many_port(c), &c->u.put);
	say("part %u: %d", id, r);
	many_check_carried(r, "a part");
	if (r == -EDQUOT)
		quotas_check_refused(u->b, since, "a part");
	cell_over(&u->part[n], r, id);
	check_missing(u, r, since, "a part");
}

/* One that is over takes nothing any more, whatever its bucket is now. */
static void
do_late(struct many_client *c, struct upload *u)
{
	struct store_key sk = many_key(u->b, u->k);
	struct store_commit sc = { .inline_data = "inlined!", .inline_len = 8 };
	uint64_t since;
	int r;

	many_begin(c);
	since = ++many_events;
	r = store_put_init_part(many_port(c), &c->u.put, &sk, u->id, 1, sc.inline_len);
	if (r >= 0)
		r = many_wait(c, store_put_commit(many_port(c), &c->u.put, &sc));
	store_put_abort(many_port(c), &c->u.put);
	say("client %d puts a part of an upload that is over: %d", c->nr, r);
	many_check_carried(r, "a late part");
	if (r >= 0)
		sim_fail("an upload of bucket %d key %d that is over takes a part", u->b, u->k);
	if (r != -ENOENT && r != -ENXIO)
		many_check_key_error(r, u->b, u->k, since, "a late part");
}

static void
do_abort(struct many_client *c, struct upload *u)
{
	struct store_key sk = many_key(u->b, u->k);
	uint64_t since;
	int r;

	many_begin(c);
	if (!is_certain(&u->there))
		return;
	for (int i = 0; i < PARTS; i++)
		quotas_leaves(u->b, &u->part[i]);
	u->there.pending = 0;
	since = ++many_events;
	counts.aborted++;
	say("client %d aborts the upload of bucket %d key %d", c->nr, u->b, u->k);
	r = many_wait(c, store_upload_abort(many_port(c), &sk, u->id, &c->u.up));
	say("abort: %d", r);
	cell_over(&u->there, r, 0);
	check_missing(u, r, since, "an abort");
}

static void
do_complete(struct many_client *c, struct upload *u)
{
	struct store_key sk = many_key(u->b, u->k);
	struct cell *key = &many_keys[u->b][u->k];
	struct store_part_ref refs[PARTS];
	uint32_t id = ++many_ids, nr = 0, size = 0;
	struct store_use grown = { 0 };
	uint64_t since;
	int r;

	if (key->is_open)
		return;
	many_begin(c);
	for (uint32_t i = 0; i < PARTS; i++) {
		if (!is_certain(&u->part[i]) || !u->part[i].may[0])
			continue;
		refs[nr] = (struct store_part_ref){ .number = i + 1 };
		memcpy(refs[nr++].etag.sum, &u->part[i].may[0], sizeof id);
		size += quotas_size_of(u->part[i].may[0]);
	}
	if (!nr || !is_certain(&u->there))
		return;
	quotas_size(id, size);
	grown.objects = quotas_is_sure(key) && !key->may[0];
	quotas_leaves(u->b, key);
	for (int i = 0; i < PARTS; i++)
		quotas_leaves(u->b, &u->part[i]);
	key->pending = u->object = id;
	key->since = since = ++many_events;
	u->there.pending = 0;
	u->may_end = false;
	counts.completed++;
	say("client %d completes the upload of bucket %d key %d: %u", c->nr, u->b, u->k, id);
	c->u.complete.parts = refs;
	c->u.complete.part_nr = nr;
	memcpy(c->u.complete.meta.etag.sum, &id, sizeof id);
	c->u.complete.meta.expires_ns = sim_expiry(id);
	r = many_wait(c, store_upload_complete(many_port(c), &sk, u->id, &c->u.complete));
	say("completion of %u: %d", id, r);
	if (r == -EDQUOT)
		quotas_check_refused(u->b, since, "a completion");
	cell_over(key, r, id);
	cell_over(&u->there, r, 0);
	if (r >= 0)
		quotas_check_grown(u->b, since, &grown, "a completion");
	if (!u->there.is_open)
		u->object = 0;
	check_missing(u, r, since, "a completion");
}

/* ---- what they see ---- */

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	if (part->number < 1 || part->number > PARTS)
		sim_fail("a part of number %u is listed", part->number);
	container_of(pl, struct many_client, u.parts)->seen[part->number - 1] =
		(uint32_t)many_etag_nr(&part->etag);
	return true;
}

static void
see_parts(struct many_client *c, struct upload *u)
{
	struct store_key sk = many_key(u->b, u->k);
	uint64_t since;
	int r;

	many_begin(c);
	since = ++many_events;
	memset(c->seen, 0, sizeof c->seen);
	c->u.parts.max = 100;
	c->u.parts.part = on_part;
	r = many_wait(c, store_list_parts(many_port(c), &sk, u->id, &c->u.parts));
	for (int i = 0; r >= 0 && i < PARTS && !many_bucket_changed(u->b, since); i++)
		cell_seen(&u->part[i], c->seen[i], "the part", u->b, u->k);
}

static void
do_stat(struct many_client *c, struct upload *u)
{
	struct store_key sk = many_key(u->b, u->k);
	uint64_t since;
	int r;

	/* A list says whether it is there. */
	if (!u->has_id)
		return;
	many_begin(c);
	since = ++many_events;
	r = many_wait(c, store_upload_stat(many_port(c), &sk, u->id, NULL, 0, &c->u.stat));
	check_missing(u, r, since, "a look at an upload");
	say("client %d sees of the upload of bucket %d key %d: %d", c->nr, u->b, u->k, r);
	if ((r < 0 && r != -ENOENT && r != -ENXIO) || many_bucket_changed(u->b, since))
		return;
	cell_seen(&u->there, r >= 0, "the upload", u->b, u->k);
	if (r >= 0)
		see_parts(c, u);
}

void
upload_any(struct many_client *c, int b, int k)
{
	struct upload *u = &uploads[c->nr][below(UPLOADS)];
	uint32_t w = below(16);

	if (is_over(u)) {
		if (u->is_used && one_in(4))
			do_late(c, u);
		else
			do_create(c, u, b, k);
		return;
	}
	if (w < 2 || !is_certain(&u->there))
		do_stat(c, u);
	else if (w < 9)
		do_part(c, u);
	else if (w < 14)
		do_complete(c, u);
	else
		do_abort(c, u);
}

static bool
on_upload(struct store_list *ls, const struct store_entry *e)
{
	if (listed.nr == LISTED_MAX)
		sim_fail("too many uploads are listed");
	listed.key[listed.nr] = -1;
	for (int k = 0; k < KEYS; k++) {
		if (e->name_len == strlen(key_name(k)) && !memcmp(e->name, key_name(k), e->name_len))
			listed.key[listed.nr] = k;
	}
	memcpy(listed.id[listed.nr++], e->upload_id, STORE_UPLOAD_ID_BYTES);
	return true;
}

/* Ids are of one disk: those of several may be alike. */
static bool
take_listed(struct upload *u)
{
	for (int i = 0; i < listed.nr; i++) {
		if (listed.key[i] != u->k || (u->has_id && memcmp(listed.id[i], u->id, sizeof u->id) != 0))
			continue;
		memcpy(u->id, listed.id[i], sizeof u->id);
		u->has_id = true;
		listed.nr--;
		listed.key[i] = listed.key[listed.nr];
		memcpy(listed.id[i], listed.id[listed.nr], sizeof u->id);
		return true;
	}
	return false;
}

void
uploads_see_list(struct many_client *c, int b, unsigned away)
{
	bool misses = many_has_two(b) ? pairs_miss_some() : away != 0;
	struct upload *u;
	int r;

	many_begin(c);
	listed.nr = 0;
	c->u.ls.max = 100;
	c->u.ls.entry = on_upload;
	c->u.ls.bucket = bucket_name(b);
	c->u.ls.bucket_len = (uint16_t)strlen(bucket_name(b));
	r = many_wait(c, store_list_uploads(many_port(c), &c->u.ls));
	if (misses && r != -ENODEV)
		sim_fail("a list of uploads is answered %d, and a disk is away", r);
	if (r < 0 && r != -ENXIO)
		many_check_error(r, misses || many_may_lack(b, many_events) ? away : 0, "a list of uploads");
	/* What is left may be those whose ids nobody was told. */
	for (int id = 1; id >= 0; id--) {
		for (int i = 0; r >= 0 && (u = nth(i)); i++) {
			if (u->is_used && u->b == b && u->has_id == id && (id || cell_may_be(&u->there, 1)))
				cell_seen(&u->there, take_listed(u), "the entry of an upload", b, u->k);
		}
	}
	if (r >= 0 && listed.nr)
		sim_fail("%d uploads of bucket %d are listed that are over, or nobody made", listed.nr, b);
}

void
uploads_look(void)
{
	struct upload *u;

	/* What is known of one of both already says nothing of the other. */
	for (int i = 0; (u = nth(i)); i++) {
		const struct cell *key = &many_keys[u->b][u->k];

		if (u->there.nr == 1 || key->nr == 1 || !cell_may_be(key, u->object))
			u->object = 0;
	}
}

void
uploads_see(struct many_client *c)
{
	struct upload *u;

	for (int i = 0; (u = nth(i)); i++) {
		const struct cell *key = &many_keys[u->b][u->k];
		bool is_there, is_object;

		if (!u->is_used)
			continue;
		do_stat(c, u);
		if (!u->object || u->there.nr > 1 || key->nr > 1)
			continue;
		is_there = u->there.may[0] == 1;
		is_object = many_content(key->may[0]) == u->object;
		if (is_there == is_object && (is_there || !u->may_end))
			sim_fail(
				"of the completion of bucket %d key %d a half is done: the upload is %sthere",
				u->b, u->k, is_there ? "" : "not ");
		u->object = 0;
	}
}

/* ---- what they take ---- */

void
uploads_most(int b, uint64_t since, struct store_use *use)
{
	const struct upload *u;

	for (int i = 0; (u = nth(i)); i++) {
		uint64_t nr, bytes;

		if (!u->is_used || u->b != b)
			continue;
		quotas_most(&u->there, since, &nr, &bytes);
		if (!nr)
			continue;
		use->uploads++;
		for (int k = 0; k < PARTS; k++) {
			quotas_most(&u->part[k], since, &nr, &bytes);
			use->bytes += bytes + nr * QUOTA_PART_BYTES;
		}
	}
}

void
uploads_least(int b, struct store_use *use)
{
	const struct upload *u;

	for (int i = 0; (u = nth(i)); i++) {
		if (!u->is_used || u->b != b || !quotas_is_sure(&u->there) || !u->there.may[0] ||
		    many_is_away(b, u->k))
			continue;
		use->uploads++;
		for (int k = 0; k < PARTS; k++)
			use->bytes += quotas_is_sure(&u->part[k]) && u->part[k].may[0]
					      ? quota_part_bytes(quotas_size_of(u->part[k].may[0]))
					      : 0;
	}
}

bool
uploads_are_sure(int b)
{
	const struct upload *u;
	bool are = true;

	for (int i = 0; (u = nth(i)); i++) {
		if (!u->is_used || u->b != b)
			continue;
		are &= quotas_is_sure(&u->there);
		for (int k = 0; u->there.may[0] && k < PARTS; k++)
			are &= quotas_is_sure(&u->part[k]);
	}
	return are;
}

/* ---- what else ends them ---- */

int
uploads_in(int b)
{
	const struct upload *u;
	int is = 0;

	for (int i = 0; (u = nth(i)); i++) {
		if (!u->is_used || u->b != b || is_over(u))
			continue;
		if (!cell_may_be(&u->there, 0))
			return 1;
		is = -1;
	}
	return is;
}

void
uploads_end_with(int b, bool is_gone, bool is_open)
{
	struct upload *u;

	for (int i = 0; (u = nth(i)); i++) {
		struct cell *c = &u->there;

		if (!u->is_used || u->b != b || is_over(u))
			continue;
		u->may_end = true;
		u->ended = ++many_events;
		if (is_gone && c->pending == UNKNOWN_ID && !c->is_open)
			cell_set(c, 0);
		else
			cell_may_too(c, 0);
		c->is_open |= is_open;
	}
}

static void
cell_die(struct cell *c)
{
	if (c->pending != UNKNOWN_ID)
		cell_may_too(c, c->pending);
	c->pending = UNKNOWN_ID;
	c->is_open = false;
}

void
uploads_start(unsigned deciding, bool one_is_behind, bool serves)
{
	struct upload *u;

	/* The head removes first, and any of the others after it. */
	for (int i = 0; (u = nth(i)); i++) {
		if (u->is_used && !is_over(u) && may_have_removed[u->b] & ~deciding &&
		    (many_has_two(u->b) || one_is_behind || ~deciding & 1u << many_home(u->b, u->k))) {
			u->may_end = true;
			u->ended = ++many_events;
			cell_may_too(&u->there, 0);
		}
	}
	if (serves)
		memset(may_have_removed, 0, sizeof may_have_removed);
}

void
uploads_die(unsigned heads)
{
	struct upload *u;

	/* What is left of M38: of a removal that nobody answered, and that whoever decides at the next start has not seen. */
	for (int b = 0; b < BUCKETS; b++) {
		if (many_bucket_changed(b, many_events))
			may_have_removed[b] |= heads;
	}
	for (int i = 0; (u = nth(i)); i++) {
		if (u->is_coming)
			take_id(u, &many_clients[i / UPLOADS]);
		u->is_coming = false;
		cell_die(&u->there);
		for (int k = 0; k < PARTS; k++)
			cell_die(&u->part[k]);
	}
}

void
uploads_given_up(int disk, const struct disk_table *t)
{
	struct upload *u;

	for (int i = 0; (u = nth(i)); i++) {
		if (u->is_used && (many_has_two(u->b) ? pairs_are_lost_with(t, disk, u->b, u->k)
						      : many_home(u->b, u->k) == disk))
			*u = (struct upload){ .is_used = false };
	}
}
