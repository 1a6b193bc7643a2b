/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects made of parts in a transfer: the parts are sent, and then the object is completed as by a client;
 * see send_int.h.
 */
#include "extent/object/send_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	sd->ps.sent = put_sent_of(r);
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
	sd->next = send_uploads;
	e = map_commit(&sd->map, sd->to, c);
	if (e < 0) {
		free(sd->del.job);
		sd->del.job = NULL;
		send_finish(sd, send_error(sd, e));
	}
}

/* Sends the parts that the target lacks, from sd->at on, and then completes the object; a repair reads the parts in the
 * target, and then the uploads. */
static void
next_of_whole(struct send *sd)
{
	const struct chunk_ref *ref = rec_entries(sd->whole);
	bool is_repair = sd->s->is_repair;

	for (int i = 0; sd->at < sd->whole->entry_nr; i++) {
		struct rec *r = (struct rec *)(uintptr_t)ref_record(source(sd), &ref[sd->at], KEY_PART),
			   *there;

		if (i == SEND_SLICE) {
			send_later(sd, next_of_whole);
			return;
		}
		key_part(sd->part_key, sd->id, ref[sd->at].index);
		there = tree_get(target(sd), sd->part_key, CHUNK_KEY_BYTES);
		if (!r || (is_repair && there && r->version != there->version)) {
			send_finish(sd, r ? -ESTALE : -EBADMSG);
			return;
		}
		if (!is_repair)
			sd->parts[sd->at] = (struct store_part_ref){ .number = ref[sd->at].index,
								     .etag = rec_etag(r),
								     .version = r->version };
		sd->at++;
		if (is_repair && there && there->size_bytes) {
			send_check(sd, there, true, next_of_whole);
			return;
		}
		if (is_repair ? !there : !send_has_part(sd, r, there)) {
			send_bytes(sd, r, true, next_of_whole);
			return;
		}
	}
	if (is_repair)
		send_uploads(sd);
	else
		complete(sd);
}

void
send_parts(struct send *sd, struct rec *r)
{
	const struct chunk_ref *ref = rec_entries(r);

	sd->parts = sd->s->is_repair ? NULL : calloc(r->entry_nr, sizeof *sd->parts);
	if (!sd->s->is_repair && !sd->parts) {
		send_finish(sd, -EAGAIN);
		return;
	}
	pin_add(sd->from->vp.vol->pins, &sd->pin, rec_pin_id(r));
	sd->whole = r;
	sd->at = 0;
	send_set_id(sd, ref[0].id);
	if (sd->s->is_repair || send_get_upload(sd, target(sd)))
		next_of_whole(sd);
	else
		send_make_upload(sd, NULL, next_of_whole);
}
