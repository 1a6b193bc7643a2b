/*
 * Multipart uploads: see store.h.  On the port's thread.
 */
#include "store/store_int.h"

#include <errno.h>

int
store_upload_create(struct store_port *p, const struct store_key *k, const void *attrs, uint32_t attrs_len,
		    struct store_upload *u)
{
	return -ENOSYS;
}

int
store_upload_abort(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		   struct store_upload *u)
{
	return -ENOSYS;
}

int
store_upload_stat(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		  uint64_t *ret_ctime_ns, void *attrs, uint32_t cap, uint32_t *ret_attrs_len)
{
	return -ENOENT;
}

int
store_put_init_part(struct store_port *p, struct store_put *put, const struct store_key *k,
		    const uint8_t id[STORE_UPLOAD_ID_BYTES], uint32_t number, uint64_t size_bytes)
{
	return -ENOSYS;
}

int
store_upload_complete(struct store_port *p, const struct store_key *k,
		      const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_complete *c)
{
	return -ENOSYS;
}

int
store_list_parts(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		 struct store_part_list *pl)
{
	return -ENOSYS;
}

int
store_obj_part(struct store_obj *obj, uint32_t number, struct store_part *ret_part)
{
	return -ENOENT;
}

int
store_obj_part_at(struct store_obj *obj, uint32_t index, struct store_part *ret_part)
{
	return -ENOENT;
}

int
store_set_attrs(struct store_port *p, const struct store_key *k, uint64_t version, const void *attrs,
		uint32_t attrs_len, struct store_del *op)
{
	return -ENOSYS;
}

int
store_bucket_set_attrs(struct store_port *p, const char *name, size_t len, uint64_t version,
		       const void *attrs, uint32_t attrs_len, struct store_bucket_set *op)
{
	return -ENOSYS;
}

int
store_bucket_get_attrs(struct store_port *p, const char *name, size_t len, void *attrs, uint32_t cap,
		       uint64_t *ret_version)
{
	return store_bucket_head(p, name, len, NULL) < 0 ? -ENXIO : 0;
}

uint32_t
store_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap, uint32_t *ret_skew)
{
	uint64_t from = off & ~(uint64_t)(STORE_GRANULE - 1);
	uint64_t to = (off + want + STORE_GRANULE - 1) & ~(uint64_t)(STORE_GRANULE - 1);

	if (to > obj->size_bytes)
		to = obj->size_bytes;
	if (to - from > cap)
		to = from + cap;
	*ret_skew = (uint32_t)(off - from);
	return (uint32_t)(to - from);
}
