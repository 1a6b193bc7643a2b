/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects made of parts in a transfer: the parts are sent, and then the object is completed as by a client;
 * see send_int.h.
 */
#include "extent/object/send_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
submit_whole(struct send *sd)
{
	/* The listed parts are flushed, because their commits have ended. */
	if (sd->map.ref.nr) {
		sd->c.flush_ticket = vol_flush_ticket(sd->to->vp.vol);
		map_view(&sd->map, &sd->c.view);
	}
	send_submit(sd, send_uploads);
}

static void
on_map(struct map_out *m, int error)
{
	struct send *sd = container_of(m, struct send, map);

	if (!error) {
		submit_whole(sd);
		return;
	}
	if (error != -EAGAIN && error != -ENOSPC)
		disk_fail(&sd->to->vp.vol->disk, "writing data failed: %s", strerror(-error));
	map_end(m, error == -EAGAIN || error == -ENOSPC);
	free(sd->del.job);
	sd->del.job = NULL;
	send_finish(sd, send_error(sd, error));
}

/* Completes the object as a client does, with the version of the source. The leader checks each part again. */
static void
complete(struct send *sd)
{
	const struct rec *r = sd->whole;
	struct gc_job *job = gc_upload_job(sd->id, sd->parts, r->entry_nr);
	struct commit *c = send_record(sd, COMMIT_COMPLETE, REC_PUT, sd->key, sd->key_len);
	int e;

	if (!job) {
		send_finish(sd, -EAGAIN);
		return;
	}
	rec_view_of(r, sd->key, sd->key_len, &c->view);
	c->view.flags = REC_FLUSHED;
	c->view.map = (struct map_ref){ 0 };
	sd->sent = put_sent_of(r);
	send_set_bucket(sd, c);
	c->upload_key = sd->upload_key;
	c->upload_key_len = sd->upload_key_len;
	c->parts = sd->parts;
	sd->del = (struct commit){
		.kind = COMMIT_DELETE,
		.is_also = true,
		.state = CS_DATA_DONE,
		.job = job,
		.view = { .op = REC_DELETE, .key = sd->upload_key, .key_len = sd->upload_key_len }
	};
	c->also = &sd->del;
	if (r->entry_nr <= FMT_ENTRY_MAX) {
		submit_whole(sd);
		return;
	}
	e = map_begin(&sd->map, sd->to, rec_entries(r), r->entry_nr * (uint32_t)sizeof(struct chunk_ref),
		      on_map);
	if (e < 0) {
		free(sd->del.job);
		sd->del.job = NULL;
		send_finish(sd, send_error(sd, e));
	}
}

static void
next_of_whole(struct send *sd)
{
	const struct chunk_ref *ref = rec_entries(sd->whole);

	for (int i = 0; sd->at < sd->whole->entry_nr; i++) {
		const struct rec *r = ref_record(source(sd), &ref[sd->at], KEY_PART);
		struct store_part_ref *part = &sd->parts[sd->at];

		if (!r) {
			send_finish(sd, -EBADMSG);
			return;
		}
		if (i == SEND_SLICE) {
			send_later(sd, next_of_whole);
			return;
		}
		*part = (struct store_part_ref){ .number = ref[sd->at].index,
						 .etag = rec_etag(r),
						 .version = r->version };
		key_part(sd->part_key, sd->id, part->number);
		sd->at++;
		if (!send_has_part(sd, r, tree_get(target(sd), sd->part_key, CHUNK_KEY_BYTES))) {
			send_bytes(sd, (struct rec *)(uintptr_t)r, true, next_of_whole);
			return;
		}
	}
	complete(sd);
}

void
send_parts(struct send *sd, struct rec *r)
{
	const struct chunk_ref *ref = rec_entries(r);

	sd->parts = calloc(r->entry_nr, sizeof *sd->parts);
	if (!sd->parts) {
		send_finish(sd, -EAGAIN);
		return;
	}
	pin_add(sd->from->vp.vol->pins, &sd->pin, rec_pin_id(r));
	sd->whole = r;
	sd->at = 0;
	send_set_id(sd, ref[0].id);
	if (send_get_upload(sd, target(sd)))
		next_of_whole(sd);
	else
		send_make_upload(sd, NULL, next_of_whole);
}

/* ---- repair ---- */

void
send_repair_parts(struct send *sd)
{
	const struct chunk_ref *ref = rec_entries(sd->whole);

	for (int i = 0; sd->at < sd->whole->entry_nr; i++) {
		const struct rec *r = ref_record(source(sd), &ref[sd->at], KEY_PART);
		struct rec *there;

		if (i == SEND_SLICE) {
			send_later(sd, send_repair_parts);
			return;
		}
		key_part(sd->part_key, sd->id, ref[sd->at].index);
		there = tree_get(target(sd), sd->part_key, CHUNK_KEY_BYTES);
		if (!r || (there && r->version != there->version)) {
			send_finish(sd, r ? -ESTALE : -EBADMSG);
			return;
		}
		sd->at++;
		if (!there) {
			send_bytes(sd, (struct rec *)(uintptr_t)r, true, send_repair_parts);
			return;
		}
		if (there->size_bytes) {
			send_check(sd, there, true, send_repair_parts);
			return;
		}
	}
	send_uploads(sd);
}
