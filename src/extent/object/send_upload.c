/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads in progress in a transfer: the uploads and parts of source and target are compared, and each
 * difference is removed from the target; see send_int.h.
 */
#include "extent/object/send_int.h"

#include <errno.h>
#include <string.h>

static void next_upload(struct send *sd);
static void next_gone(struct send *sd);

/* Finds the first upload of the key after sd->id in an index, and sets sd->id and sd->upload_key. Returns its
 * record; NULL: there is none. */
static struct rec *
find_upload(struct send *sd, const struct tree *t)
{
	uint8_t from[KEY_BYTES_MAX];
	size_t len = sd->upload_key_len;
	struct tree_cursor c;

	memcpy(from, sd->upload_key, len - CHUNK_ID_BYTES);
	memcpy(from + len - CHUNK_ID_BYTES, sd->id, CHUNK_ID_BYTES);
	if (!tree_begin(&c, t, from, sd->has_id ? len : len - CHUNK_ID_BYTES, sd->has_id) ||
	    c.key_len != len || memcmp(c.key, from, len - CHUNK_ID_BYTES) != 0)
		return NULL;
	memcpy(sd->upload_key, c.key, len);
	memcpy(sd->id, c.key + len - CHUNK_ID_BYTES, CHUNK_ID_BYTES);
	sd->has_id = true;
	return c.rec;
}

struct rec *
send_get_upload(const struct send *sd, const struct tree *t)
{
	const struct rec *b = t ? bucket_of_key(t, sd->key, sd->key_len) : NULL;
	const struct rec *there = bucket_of_key(target(sd), sd->key, sd->key_len);
	struct rec *r = b ? tree_get(t, sd->upload_key, sd->upload_key_len) : NULL;
	/* Versions of two disks are not comparable, but a bucket has one creation time on all disks. A source
	 * that has failed may still have a bucket that was removed, and possibly made again, on the other disks. */
	bool is_bucket = b && there && b->mtime_ns == there->mtime_ns;

	return r && is_bucket && model_is_of(r->version, b->version) ? r : NULL;
}

void
send_set_id(struct send *sd, const uint8_t *id)
{
	memcpy(sd->id, id, CHUNK_ID_BYTES);
	memcpy(sd->upload_key + sd->upload_key_len - CHUNK_ID_BYTES, id, CHUNK_ID_BYTES);
}

/* Returns the number of the part of the upload at the cursor; UINT32_MAX: the upload has no more parts. */
static uint32_t
part_at(const struct send *sd, const struct tree_cursor *c, bool there)
{
	return there && tree_begins(c, sd->part_key, 1 + CHUNK_ID_BYTES) ? key_index((const uint8_t *)c->key)
									 : UINT32_MAX;
}

bool
send_has_part(const struct send *sd, const struct rec *r, const struct rec *there)
{
	uint32_t at = 0;

	return send_is_same(r, there) && (sd->s->only_upload || rec_is_whole(sd->to->vp.vol, there, &at, 1));
}

/* Compares the parts of an upload in progress in source and target, in order of their numbers. */
static void
next_part(struct send *sd)
{
	struct tree_cursor c, h;
	bool there, here;

	key_part(sd->part_key, sd->id, sd->at);
	there = tree_begin(&c, source(sd), sd->part_key, CHUNK_KEY_BYTES, true);
	here = tree_begin(&h, target(sd), sd->part_key, CHUNK_KEY_BYTES, true);
	for (int i = 0; i < SEND_SLICE; i++) {
		uint32_t from = part_at(sd, &c, there), to = part_at(sd, &h, here);
		bool is_repair = sd->s->is_repair;

		sd->at = from < to ? from : to;
		if (sd->at == UINT32_MAX) {
			next_upload(sd);
			return;
		}
		key_part(sd->part_key, sd->id, sd->at);
		if (is_repair) {
			const struct rec *r = h.rec;

			if (from == to && r->version == ((const struct rec *)c.rec)->version &&
			    r->size_bytes) {
				send_check(sd, h.rec, true, next_part);
				return;
			}
		} else if (to < from) {
			if (RULE_MOVE_REMOVES) {
				send_remove_part(sd, next_part);
				return;
			}
		} else if (!send_has_part(sd, c.rec, from == to ? h.rec : NULL)) {
			send_bytes(sd, c.rec, true, next_part);
			return;
		}
		there = from == sd->at ? tree_next(&c) : there;
		here = to == sd->at ? tree_next(&h) : here;
	}
	send_later(sd, next_part);
}

static void
next_upload(struct send *sd)
{
	const struct rec *r;

	if (sd->s->only_upload) {
		send_finish(sd, 0);
		return;
	}
	do {
		r = find_upload(sd, source(sd));
	} while (r && (!send_get_upload(sd, source(sd)) ||
		       (sd->s->is_repair && !send_get_upload(sd, target(sd)))));
	if (!r && sd->s->is_repair) {
		send_finish(sd, 0);
		return;
	}
	if (!r) {
		sd->has_id = false;
		next_gone(sd);
		return;
	}
	sd->at = 0;
	if (send_get_upload(sd, target(sd)))
		next_part(sd);
	else
		send_make_upload(sd, r, next_part);
}

/* Aborts the uploads in the target that the source does not have. */
static void
next_gone(struct send *sd)
{
	const struct rec *r;

	do {
		r = RULE_MOVE_REMOVES || !sd->from ? find_upload(sd, target(sd)) : NULL;
	} while (r && send_get_upload(sd, source(sd)));
	if (r)
		send_abort_upload(sd, next_gone);
	else
		send_finish(sd, 0);
}

void
send_uploads(struct send *sd)
{
	if (sd->from)
		pin_drop(sd->from->vp.vol->pins, &sd->pin);
	sd->whole = NULL;
	sd->has_id = false;
	sd->pin_id = 0;
	if (sd->s->only_object)
		send_finish(sd, 0);
	else if (sd->from)
		next_upload(sd);
	else
		next_gone(sd);
}

void
send_only_upload(struct send *sd)
{
	const struct rec *r, *there;

	send_set_id(sd, sd->s->only_upload);
	r = send_get_upload(sd, source(sd));
	there = send_get_upload(sd, target(sd));
	sd->at = 0;
	if (sd->s->is_repair && (!r || !there))
		send_finish(sd, -ESTALE);
	else if (r && there)
		next_part(sd);
	else if (r)
		send_make_upload(sd, r, next_part);
	else if (there && (RULE_MOVE_REMOVES || !sd->from))
		send_abort_upload(sd, next_upload);
	else
		send_finish(sd, 0);
}
