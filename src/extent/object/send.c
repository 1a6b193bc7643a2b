/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transfer of a key from one engine to another, and the removal of a key that an engine no longer serves: send() of
 * struct store_member_ops; see send_int.h. The source is read, and the target is changed:
 *
 *   object    absent at the source: removed from the target
 *             equal, and complete in the target: no change
 *             equal except for attributes: the attributes are sent
 *             otherwise: the bytes are sent. If the object is made of parts, the upload that made it is made again in the
 *             target, each part is sent, and the upload is completed.
 *   uploads   an upload or a part that is missing in the target or differs is sent
 *             an upload or a part that the source does not have is removed
 *
 * The target gets the data as from clients, and an interruption leaves the same state as an interrupted client: parts
 * always belong to an upload or an object. Chunks get new ids, because chunks of an earlier attempt with the old ids may
 * not be removed yet. The records read at the source are pinned and do not change; later changes are sent again.
 *
 * A repair sends from the secondary copy to the primary copy: each record of which both have the same version is read in
 * the target, and if the read fails, the bytes are replaced by those of the source; the record is otherwise unchanged.
 */
#include "extent/object/send_int.h"

#include <errno.h>
#include <stdlib.h>

/* ---- repair ---- */

/* Repairs the object and its parts, and then the uploads. */
static void
repair_object(struct send *sd)
{
	struct rec *r = tree_get(source(sd), sd->key, sd->key_len);
	struct rec *there = tree_get(target(sd), sd->key, sd->key_len);

	if (!r && !there) {
		send_uploads(sd);
	} else if (!r || !there || r->version != there->version ||
		   rec_data_version(r) != rec_data_version(there)) {
		send_finish(sd, -ESTALE);
	} else if (r->body == BODY_PARTS) {
		sd->pin_id = rec_pin_id(there);
		send_parts(sd, r);
	} else if (there->body == BODY_INLINE) {
		/* The bytes are in the index, which is complete. */
		send_uploads(sd);
	} else {
		send_check(sd, there, false, send_uploads);
	}
}

/* ---- transfer ---- */

/* Sends an object with the record r. has_bytes: the record `there` of the target has the bytes of r, and all
 * of them are in the target. */
static void
send_object(struct send *sd, struct rec *r, const struct rec *there, bool has_bytes)
{
	if (has_bytes && send_is_same(r, there))
		send_uploads(sd);
	else if (has_bytes && r->version > rec_data_version(r))
		send_attrs(sd, r, there, send_uploads);
	else if (r->body == BODY_PARTS)
		send_parts(sd, r);
	else
		send_bytes(sd, r, false, send_uploads);
}

static void begin_object(struct send *sd);

/* Examines whether the target has all bytes of the object, from sd->at on, one slice a turn. */
static void
look_whole(struct send *sd)
{
	struct rec *r = tree_get(source(sd), sd->key, sd->key_len);
	const struct rec *there = tree_get(target(sd), sd->key, sd->key_len);

	/* The record has changed meanwhile. */
	if (!r || !there || !send_same_bytes(r, there))
		begin_object(sd);
	else if (!rec_is_whole(sd->to->vp.vol, there, &sd->at, SEND_SLICE))
		send_object(sd, r, there, false);
	else if (there->body == BODY_PARTS && sd->at < there->entry_nr)
		send_later(sd, look_whole);
	else
		send_object(sd, r, there, true);
}

static void
begin_object(struct send *sd)
{
	struct rec *r = sd->from ? tree_get(source(sd), sd->key, sd->key_len) : NULL;
	const struct rec *there = tree_get(target(sd), sd->key, sd->key_len);

	sd->at = 0;
	if (!r && there && (RULE_MOVE_REMOVES || !sd->from))
		send_remove_object(sd, send_uploads);
	else if (!r)
		send_uploads(sd);
	else if (!there || !send_same_bytes(r, there))
		send_object(sd, r, there, false);
	else if (sd->s->only_object)
		/* A change by a client, one of many: the bytes to which the record refers are unchanged. */
		send_object(sd, r, there, true);
	else
		look_whole(sd);
}

int
extent_send(struct store_port *source, struct store_port *target, struct store_send *s)
{
	struct extent_port *from = source ? extent_port(source) : NULL, *to = extent_port(target);
	static const uint8_t no_id[CHUNK_ID_BYTES];
	struct send *sd;

	s->op.port = &to->base;
	s->op.result = 0;
	s->bytes = s->changes = 0;
	if (!to->vp.vol->slots)
		return -EPERM;
	sd = calloc(1, sizeof *sd);
	if (!sd)
		return -EAGAIN;
	sd->s = s;
	sd->from = from;
	sd->to = to;
	sd->upload_key_len = key_upload(sd->upload_key, &s->key, no_id);
	sd->key_len = key_object(sd->key, &s->key);
	if (from && !slots_own_key(from->vp.vol->slots, sd->key, sd->key_len) &&
	    !(s->is_repair && slots_own_key(to->vp.vol->slots, sd->key, sd->key_len))) {
		free(sd);
		return -EXDEV;
	}
	s->priv = sd;
	to->vp.io.inflight++;
	if (from)
		from->vp.io.inflight++;
	sd->is_starting = true;
	if (s->only_upload)
		send_only_upload(sd);
	else if (s->is_repair)
		repair_object(sd);
	else
		begin_object(sd);
	if (!s->priv)
		return 1;
	sd->is_starting = false;
	return 0;
}
