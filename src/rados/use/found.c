/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an upload that is completed or aborted. */
#include "rados/use/use_int.h"

#include "base/check.h"
#include "rados/io/array.h"

#include <errno.h>
#include <string.h>

struct found {
	struct bytes value; /* value of the row */
	struct record rec;  /* record, with the number of the part */
	bool is_used;       /* the part is in the list of the completion */
};

int
found_add(struct found_parts *fp, const char *key, size_t key_len, const char *val, size_t val_len)
{
	uint32_t number = key_part_number(key, key_len);
	struct found *f;
	int e;

	if (!number)
		return -EBADMSG;
	f = room_for_one(fp->found, fp->nr, &fp->cap, sizeof *f);
	if (!f)
		return -ENOMEM;
	fp->found = f;
	f += fp->nr;
	*f = (struct found){ .is_used = false };
	if (!bytes_copy(&f->value, val, val_len))
		return -ENOMEM;
	fp->nr++;
	e = record_decode(f->value.p, val_len, &f->rec);
	f->rec.number = number;
	if (e == 0)
		fp->bytes += quota_part_bytes(f->rec.size_bytes);
	return e;
}

void
found_free(struct found_parts *fp)
{
	for (uint32_t i = 0; i < fp->nr; i++)
		free(fp->found[i].value.p);
	free(fp->found);
}

/* ---- the view ---- */

static int
find(struct model_view *v, enum model_kind kind, uint32_t number, struct model_record *ret_record)
{
	struct found_view *fv = container_of(v, struct found_view, view);
	const struct found_parts *fp = fv->parts;
	struct found *f;

	check(kind == MODEL_PART);
	while (fv->at < fp->nr && fp->found[fv->at].rec.number < number)
		fv->at++;
	if (fv->at == fp->nr || fp->found[fv->at].rec.number != number)
		return 0;
	f = &fp->found[fv->at];
	f->is_used = true;
	*ret_record = record_show(&f->rec);
	return 1;
}

struct found_view
found_view(const struct found_parts *fp)
{
	return (struct found_view){ .view.find = find, .parts = fp };
}

/* ---- changes ---- */

/* Encodes the used parts; out NULL: only the length is computed. Returns the length. */
static size_t
encode(const struct found_parts *fp, char *out)
{
	size_t len = 0;

	for (uint32_t i = 0; i < fp->nr; i++) {
		if (fp->found[i].is_used)
			len += part_encode(out ? out + len : NULL, &fp->found[i].rec);
	}
	return len;
}

int
found_encode(const struct found_parts *fp, struct bytes *ret_list)
{
	if (!bytes_new(ret_list, encode(fp, NULL)))
		return -ENOMEM;
	encode(fp, ret_list->p);
	return 0;
}

int
found_remove(const struct found_parts *fp, struct txn *t, const uint8_t id[STORE_UPLOAD_ID_BYTES])
{
	struct garbage_data *data = calloc(fp->nr + 1, sizeof *data);
	char key[OMAP_KEY_MAX];
	uint32_t nr = 0;
	int e = data ? 0 : -ENOMEM;

	for (uint32_t i = 0; e == 0 && i < fp->nr; i++) {
		const struct found *f = &fp->found[i];

		e = txn_more(t, key, key_part(key, id, f->rec.number), (struct bytes){ 0 });
		if (f->rec.kind == REC_DATA && !f->is_used)
			data[nr++] = (struct garbage_data){ f->rec.data, f->rec.size_bytes };
	}
	if (e == 0)
		e = txn_garbage_data(t, data, nr, NULL);
	free(data);
	return e;
}
