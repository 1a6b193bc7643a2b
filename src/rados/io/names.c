/* SPDX-License-Identifier: Apache-2.0 */
/* The data objects and maps that rows of the index name. */
#include "rados/io/names.h"

#include "base/crc64.h"
#include "rados/io/rstore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
parts_names(const void *parts, size_t len, bool is_garbage, name_fn name, void *cookie)
{
	struct cur list = cursor(parts, len);
	struct record part = { 0 };
	int e;

	/* A damaged list is rejected as a whole, before the first name. */
	do {
		e = part_next(&list, &part);
	} while (e > 0);
	list = cursor(parts, len);
	part = (struct record){ 0 };
	while (e == 0 && part_next(&list, &part) > 0) {
		const struct row_name n = { part.data, part.size_bytes, .is_garbage = is_garbage };

		if (part.kind == REC_DATA)
			e = name(cookie, &n);
	}
	return e;
}

static int
record_names(const char *val, size_t len, name_fn name, void *cookie)
{
	struct record r = { 0 };
	int e = record_decode(val, len, &r);
	const struct row_name n = { r.data, r.size_bytes, .is_map = r.kind == REC_MAP,
				    .crc64 = r.parts_crc64 };

	if (e < 0 || r.kind == REC_INLINE)
		return e;
	return r.kind == REC_PARTS ? parts_names(r.parts, r.parts_len, false, name, cookie)
				   : name(cookie, &n);
}

static int
garbage_names(const char *val, size_t len, name_fn name, void *cookie)
{
	struct garbage g;
	int e = garbage_decode(val, len, &g);

	for (uint32_t i = 0; e == 0 && i < g.data_nr; i++) {
		struct garbage_data d = garbage_data(&g, i);

		e = name(cookie, &(struct row_name){ d.id, d.size_bytes, .is_garbage = true });
	}
	if (e == 0 && g.has_map)
		e = name(cookie, &(struct row_name){ g.map, .is_map = true, .is_garbage = true });
	return e;
}

int
row_names(const char *key, const char *val, size_t val_len, name_fn name, void *cookie)
{
	const enum model_kind kind = rados_key_traits(key[0]).kind;

	return kind == MODEL_OBJECT || kind == MODEL_PART ? record_names(val, val_len, name, cookie)
	       : key[0] == KEY_GARBAGE                    ? garbage_names(val, val_len, name, cookie)
							  : 0;
}

int
read_map(const struct rstore *st, struct rid map, char **ret_list, size_t *ret_len)
{
	rados_ioctx_t meta = st->client[0].io[POOL_META];
	const struct label name = map_name(map);
	uint64_t size;
	time_t mtime;
	int e = rados_stat(meta, name.text, &size, &mtime);

	if (e < 0)
		return e;
	*ret_list = malloc(size + 1);
	if (!*ret_list)
		return -ENOMEM;
	e = rados_read(meta, name.text, *ret_list, size, 0);
	*ret_len = e < 0 ? 0 : (size_t)e;
	return e < 0 ? e : 0;
}

int
read_own_map(const struct rstore *st, struct rid map, char **ret_list, size_t *ret_len)
{
	int e = read_map(st, map, ret_list, ret_len);
	uint64_t crc;

	if (e < 0)
		return e;
	/* A damaged list could name data of other objects. Maps of earlier versions have no CRC. */
	e = rados_getxattr(st->client[0].io[POOL_META], map_name(map).text, XATTR_CRC, (char *)&crc,
			   sizeof crc);
	if (e == sizeof crc)
		return crc64_nvme(0, *ret_list, *ret_len) == crc ? 0 : -EBADMSG;
	return e == -ENODATA ? 0 : e < 0 ? e : -EBADMSG;
}
