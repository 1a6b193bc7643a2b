/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One page of a list of objects, buckets, uploads or parts.  It is read twice: first for what it says of itself (a
 * name can be decoded only when that is known, and it may come after them), then entry by entry, so that a caller
 * sees nothing of a page that is broken.
 */
#include "client/client_int.h"

#include "base/span.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 8192

/* What an element means. */
enum slot {
	PAGE_TRUNCATED,
	PAGE_ENCODING,
	PAGE_NEXT,
	PAGE_NEXT_ID,
	PAGE_TOKEN, /* says by being there that there is more */
	ITEM_NAME,
	ITEM_SIZE,
	ITEM_ETAG,
	ITEM_DATE,
	ITEM_ID,
	ITEM_NUMBER,
	ITEM_SUM,
	END_ENTRY,
	END_PREFIX,
	END_PART,
};

static const struct row {
	const char *path;
	enum slot slot;
} objects[] = { { "IsTruncated", PAGE_TRUNCATED },
		{ "EncodingType", PAGE_ENCODING },
		{ "NextContinuationToken", PAGE_NEXT },
		{ "Contents/Key", ITEM_NAME },
		{ "Contents/Size", ITEM_SIZE },
		{ "Contents/ETag", ITEM_ETAG },
		{ "Contents/LastModified", ITEM_DATE },
		{ "Contents", END_ENTRY },
		{ "CommonPrefixes/Prefix", ITEM_NAME },
		{ "CommonPrefixes", END_PREFIX },
		{ NULL, 0 } },
  buckets[] = { { "ContinuationToken", PAGE_TOKEN },
		{ "Buckets/Bucket/Name", ITEM_NAME },
		{ "Buckets/Bucket/CreationDate", ITEM_DATE },
		{ "Buckets/Bucket", END_ENTRY },
		{ NULL, 0 } },
  uploads[] = { { "IsTruncated", PAGE_TRUNCATED },
		{ "EncodingType", PAGE_ENCODING },
		{ "NextKeyMarker", PAGE_NEXT },
		{ "NextUploadIdMarker", PAGE_NEXT_ID },
		{ "Upload/Key", ITEM_NAME },
		{ "Upload/UploadId", ITEM_ID },
		{ "Upload/Initiated", ITEM_DATE },
		{ "Upload", END_ENTRY },
		{ NULL, 0 } },
  parts[] = { { "IsTruncated", PAGE_TRUNCATED },
	      { "NextPartNumberMarker", PAGE_NEXT },
	      { "Part/PartNumber", ITEM_NUMBER },
	      { "Part/Size", ITEM_SIZE },
	      { "Part/ETag", ITEM_ETAG },
	      { "Part/ChecksumCRC64NVME", ITEM_SUM },
	      { "Part", END_PART },
	      { NULL, 0 } };

static const struct {
	const char *root;
	const struct row *rows;
} kinds[LIST_NR] = { [LIST_OBJECTS] = { "ListBucketResult", objects },
		     [LIST_BUCKETS] = { "ListAllMyBucketsResult", buckets },
		     [LIST_UPLOADS] = { "ListMultipartUploadsResult", uploads },
		     [LIST_PARTS] = { "ListPartsResult", parts } };

struct item {
	char name[NAME_MAX_BYTES + 1], id[GANTRY_UPLOAD_ID_MAX], etag[136], date[40], sum[16];
	size_t name_len;
	uint64_t size, number;
	bool has_name, has_number;
};

struct reading {
	const struct row *rows;
	struct list_page *page;
	list_fn *fn; /* NULL: the first time */
	void *cookie;
	bool is_encoded;
	char *next; /* PAGE_NEXT as it stands there */
	struct item item;
};

static int
keep(char **ret, const char *text)
{
	free(*ret);
	*ret = *text ? strdup(text) : NULL;
	return *ret || !*text ? 0 : -ENOMEM;
}

static int
take_page(struct reading *rd, enum slot slot, const char *text)
{
	struct list_page *p = rd->page;

	if (rd->fn)
		return 0;
	switch (slot) {
	case PAGE_TRUNCATED:
		p->is_truncated = !strcmp(text, "true");
		return 0;
	case PAGE_ENCODING:
		rd->is_encoded = !strcmp(text, "url");
		return 0;
	case PAGE_NEXT_ID:
		return keep(&p->next_id, text);
	case PAGE_TOKEN:
		p->is_truncated = *text != 0;
		return keep(&p->next, text);
	default:
		return keep(&p->next, text);
	}
}

static int
take_number(const char *text, size_t len, uint64_t *ret)
{
	return span_decimal((struct span){ text, len }, ret) < 0 ? -EPROTO : 0;
}

/* What is no text for a terminal, or too long, is none: it would match nothing. */
static void
take_text(char *out, size_t cap, const char *text)
{
	if (strlen(text) >= cap || !reply_copy(out, cap, text))
		*out = 0;
}

static int
take_item(struct reading *rd, enum slot slot, const char *text, size_t len)
{
	struct item *it = &rd->item;

	switch (slot) {
	case ITEM_NAME:
		if (len > NAME_MAX_BYTES)
			return -EPROTO;
		memcpy(it->name, text, len + 1);
		it->name_len = len;
		it->has_name = true;
		return 0;
	case ITEM_SIZE:
		return take_number(text, len, &it->size);
	case ITEM_NUMBER:
		it->has_number = true;
		return take_number(text, len, &it->number);
	case ITEM_ETAG:
		take_text(it->etag, sizeof it->etag, text);
		return 0;
	case ITEM_DATE:
		take_text(it->date, sizeof it->date, text);
		return 0;
	case ITEM_SUM:
		take_text(it->sum, sizeof it->sum, text);
		return 0;
	default:
		take_text(it->id, sizeof it->id, text);
		return *it->id ? 0 : -EPROTO;
	}
}

static int
end_part(struct reading *rd)
{
	struct gantry_part p = { .number = (int)rd->item.number, .size = rd->item.size };

	if (!rd->item.has_number || rd->item.number < 1 || rd->item.number > GANTRY_PARTS_MAX)
		return -EPROTO;
	memcpy(p.etag, rd->item.etag, sizeof p.etag);
	memcpy(p.checksum, rd->item.sum, sizeof p.checksum);
	return rd->fn ? rd->fn(rd->cookie, NULL, &p) : 0;
}

static int
end_entry(struct reading *rd, bool is_prefix)
{
	struct item *it = &rd->item;
	char name[NAME_MAX_BYTES + 1];
	struct gantry_entry e = { .name = it->name,
				  .name_len = it->name_len,
				  .is_prefix = is_prefix,
				  .size = it->size,
				  .etag = it->etag,
				  .date = it->date,
				  .upload_id = it->id };
	int n;

	if (!it->has_name || (rd->rows == uploads && !*it->id))
		return -EPROTO;
	if (!rd->fn)
		return 0;
	if (rd->is_encoded) {
		n = span_decode((struct span){ it->name, it->name_len }, DECODE_STRICT | DECODE_PLUS, name,
				NAME_MAX_BYTES);
		e.is_raw = n < 0;
		if (n >= 0) {
			name[n] = 0;
			e.name = name;
			e.name_len = (size_t)n;
		}
	}
	return rd->fn(rd->cookie, &e, NULL);
}

static int
on_element(void *cookie, const char *path, const char *text, size_t len)
{
	struct reading *rd = cookie;
	const struct row *row = rd->rows;
	int e;

	while (row->path && strcmp(row->path, path) != 0)
		row++;
	if (!row->path)
		return 0;
	if (row->slot <= PAGE_TOKEN)
		return take_page(rd, row->slot, text);
	if (row->slot < END_ENTRY)
		return take_item(rd, row->slot, text, len);
	e = row->slot == END_PART ? end_part(rd) : end_entry(rd, row->slot == END_PREFIX);
	rd->item = (struct item){ 0 };
	return e;
}

/* A marker is a name, and encoded like one; a token is not. */
static int
decode_marker(char *marker)
{
	size_t len = strlen(marker);
	int n = span_decode((struct span){ marker, len }, DECODE_STRICT | DECODE_PLUS, marker, len);

	if (n < 0)
		return -EPROTO;
	marker[n] = 0;
	return 0;
}

int
list_read(const char *body, size_t len, enum list_kind kind, list_fn *fn, void *cookie,
	  struct list_page *ret_page)
{
	struct reading *rd = calloc(1, sizeof *rd);
	int e;

	*ret_page = (struct list_page){ 0 };
	if (!rd)
		return -ENOMEM;
	rd->rows = kinds[kind].rows;
	rd->page = ret_page;
	e = xml_answer(body, len, kinds[kind].root, on_element, rd);
	if (e == 0 && kind == LIST_UPLOADS && rd->is_encoded && ret_page->next)
		e = decode_marker(ret_page->next);
	if (e == 0 && ret_page->is_truncated && !ret_page->next)
		e = -EPROTO;
	if (e == 0) {
		rd->item = (struct item){ 0 };
		rd->fn = fn;
		rd->cookie = cookie;
		e = xml_answer(body, len, kinds[kind].root, on_element, rd);
	}
	free(rd);
	return e;
}
