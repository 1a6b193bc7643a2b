/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multipart uploads: made, aborted, completed.  On the port's thread; the leader judges.
 *
 * An upload is a record under its key and id; a part one under the upload's id and its number, with a
 * manifest of chunks like an object's.  Completing it writes the object's record, which names the parts, and
 * removes the upload's, both in one block: from then on the parts belong to the object, and go when it does.
 */
#include "extent/object/map.h"
#include "extent/object/object.h"

#include "extent/log/decide.h"
#include "extent/log/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
upload_find(struct vol *vol, const uint8_t *upload_key, size_t len, const struct rec **ret_rec)
{
	const struct rec *b = bucket_of_key(vol->tree, upload_key, len);

	if (!b)
		return -ENXIO;
	*ret_rec = tree_get(vol->tree, upload_key, len);
	/* One of an earlier bucket of the name is on its way out. */
	return *ret_rec && model_is_of((*ret_rec)->version, b->version) ? 0 : -ENOENT;
}

int
upload_look(struct store_port *p, const struct store_look *l, const struct rec **ret_rec)
{
	uint8_t key[KEY_BYTES_MAX];

	return upload_find(extent_port(p)->vp.vol, key, key_upload(key, &l->key, l->id), ret_rec);
}

int
extent_upload_stat(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct store_stat *st = container_of(op, struct store_stat, op);
	const struct rec *r;
	int e = upload_look(sp, l, &r);

	if (e < 0)
		return finish(op, e);
	st->ctime_ns = r->mtime_ns;
	st->attrs_len = r->attrs_len;
	if (l->cap && r->attrs_len)
		memcpy(l->attrs, rec_attrs(r), r->attrs_len < l->cap ? r->attrs_len : l->cap);
	return finish(op, 0);
}

/* ---- completion ---- */

struct complete_int {
	struct store_complete *sc;
	struct extent_port *port;
	struct chunk_ref *refs;
	struct map_out map;
	struct commit c, del; /* the object's record, and the removal of the upload's */
	uint16_t key_len, upload_key_len;
	uint8_t id[CHUNK_ID_BYTES];
	uint8_t key[KEY_BYTES_MAX], upload_key[KEY_BYTES_MAX];
};

static void
complete_free(struct complete_int *ci)
{
	free(ci->del.job);
	free(ci->refs);
	free(ci);
}

/* A view of the parts of a published object. */
struct parts_of_object {
	struct model_view view;
	const struct tree *tree;
	const struct chunk_ref *ref, *end;
};

static int
find_of_object(struct model_view *v, enum model_kind kind, uint32_t number, struct model_record *ret_record)
{
	struct parts_of_object *po = container_of(v, struct parts_of_object, view);
	const struct rec *r;

	while (po->ref < po->end && po->ref->index < number)
		po->ref++;
	r = po->ref < po->end && po->ref->index == number ? ref_record(po->tree, po->ref, KEY_PART) : NULL;
	if (r)
		*ret_record = (struct model_record){ .version = r->version,
						     .size_bytes = r->size_bytes,
						     .crc64 = r->crc64,
						     .etag = rec_etag(r) };
	return r != NULL;
}

/* Returns true if this upload became the published object by the same list. */
static bool
was_done(struct complete_int *ci)
{
	const struct rec *r = tree_get(ci->port->vp.vol->tree, ci->key, ci->key_len);
	struct parts_of_object po = { .view.find = find_of_object, .tree = ci->port->vp.vol->tree };
	struct model_record object;

	if (!r || !rec_is_there_now(r) || r->body != BODY_PARTS)
		return false;
	po.ref = rec_entries(r);
	po.end = po.ref + r->entry_nr;
	object = rec_show(r);
	return memcmp(po.ref->id, ci->id, CHUNK_ID_BYTES) == 0 &&
	       model_was_done(ci->sc, &object, r->mtime_ns, r->entry_nr, &po.view);
}

static void
on_complete(struct commit *c)
{
	struct complete_int *ci = container_of(c, struct complete_int, c);
	struct store_complete *sc = ci->sc;
	int result = c->result;

	sc->bad = c->bad;
	sc->version = c->view.version;
	map_end(&ci->map, result < 0 && result != -ECANCELED);
	/* Somebody else completed it meanwhile: the same, perhaps. */
	if (result == -ENOENT && was_done(ci))
		result = 0;
	complete_free(ci);
	sc->op.result = result;
	sc->op.done(&sc->op);
}

/* Finds size and CRC of the object from the published parts. */
static int
add_up(struct complete_int *ci)
{
	struct store_complete *sc = ci->sc;
	struct model_answer a = { 0 };
	int e = decide_parts(ci->port->vp.vol->tree, ci->id, sc, ci->refs, &a);

	sc->bad = a.bad;
	sc->size_bytes = a.size_bytes;
	sc->crc64 = a.crc64;
	return e;
}

static void
prepare(struct complete_int *ci)
{
	struct store_complete *sc = ci->sc;

	sc->etag = sc->meta.etag;
	ci->del = (struct commit){
		.kind = COMMIT_DELETE,
		.is_also = true,
		.state = CS_DATA_DONE,
		.job = ci->del.job,
		.view = { .op = REC_DELETE, .key = ci->upload_key, .key_len = ci->upload_key_len }
	};
	ci->c = (struct commit){
		.kind = COMMIT_COMPLETE,
		.finished = on_complete,
		.state = CS_DATA_DONE,
		.also = &ci->del,
		.upload_key = ci->upload_key,
		.upload_key_len = ci->upload_key_len,
		.pre = sc->pre,
		.parts = sc->parts,
		.view = { .op = REC_PUT,
			  .body = BODY_PARTS,
			  .flags = REC_FLUSHED,
			  .key = ci->key,
			  .key_len = ci->key_len,
			  .size_bytes = sc->size_bytes,
			  .crc64 = sc->crc64,
			  .entries = ci->refs,
			  .entry_nr = sc->part_nr },
	};
	rec_view_take(&ci->c.view, &sc->meta);
	sc->mtime_ns = ci->c.view.mtime_ns;
}

static int
complete(struct complete_int *ci)
{
	struct store_complete *sc = ci->sc;
	const struct rec *r;
	int e = upload_find(ci->port->vp.vol, ci->upload_key, ci->upload_key_len, &r);

	if (e == -ENOENT && was_done(ci))
		e = 0;
	if (e < 0 || sc->was_done) {
		complete_free(ci);
		return finish(&sc->op, e);
	}
	ci->refs = calloc(sc->part_nr, sizeof *ci->refs);
	ci->del.job = gc_upload_job(ci->id, sc->parts, sc->part_nr);
	if (!ci->refs || !ci->del.job) {
		complete_free(ci);
		return -ENOSPC;
	}
	e = add_up(ci);
	if (e < 0) {
		complete_free(ci);
		return finish(&sc->op, e);
	}
	prepare(ci);
	e = map_commit(&ci->map, ci->port, &ci->c);
	if (e < 0)
		complete_free(ci);
	return e;
}

int
extent_complete(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	struct store_complete *sc = container_of(op, struct store_complete, op);
	struct extent_port *p = extent_port(sp);
	struct complete_int *ci;
	int e = model_check_list(sc);

	sc->version = sc->size_bytes = sc->crc64 = 0;
	sc->was_done = false;
	if (e < 0)
		return finish(&sc->op, e);
	if (disk_failed(&p->vp.vol->disk))
		return -EROFS;
	ci = calloc(1, sizeof *ci);
	if (!ci)
		return -ENOSPC;
	ci->sc = sc;
	ci->port = p;
	ci->upload_key_len = key_upload(ci->upload_key, &c->key, c->id);
	ci->key_len = key_object(ci->key, &c->key);
	memcpy(ci->id, c->id, CHUNK_ID_BYTES);
	return complete(ci);
}
