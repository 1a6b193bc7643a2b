/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upload - the operations on multipart uploads and their parts. Part of store.h, which callers include.
 */
#ifndef GANTRY_STORE_UPLOAD_H
#define GANTRY_STORE_UPLOAD_H

#include "store/object.h"

/*
 * A multipart upload. An upload is created for a key, and gets parts. An upload ends by completion (the parts
 * become an object, and the bytes stay in place), by abort, or with the removal of the bucket. The id of an
 * upload is never reused. The end of the upload frees the parts that are not in the completed object; a
 * replaced part is freed, too. Uploads and parts take index memory (-ENOSPC).
 */

struct store_upload {
	/* operation on the upload; result: 0; -ENXIO no such bucket; for an abort -ENOENT no such upload */
	struct store_op op;
	uint8_t id[STORE_UPLOAD_ID_BYTES]; /* id of the upload, valid after a successful creation */
	_Alignas(8) unsigned char priv[STORE_PRIV_UPLOAD];
};

/* Begins an upload. attrs: at most STORE_ATTRS_MAX bytes, which the caller keeps until the end.
 * store_upload_stat() returns these attributes, from which the caller makes the attributes of the object. */
int store_upload_create(struct store_port *p, const struct store_key *k, const void *attrs,
			uint32_t attrs_len, struct store_upload *u);
/* Ends an upload without making an object. After the answer no part of the upload can be committed. */
int store_upload_abort(struct store_port *p, const struct store_key *k,
		       const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_upload *u);
/* Looks up an upload, and copies up to cap bytes of the upload's attributes to attrs, which the caller keeps
 * until the end. result: 0; -ENOENT: the key has no such upload; -ENXIO: no such bucket. */
int store_upload_stat(struct store_port *p, const struct store_key *k,
		      const uint8_t id[STORE_UPLOAD_ID_BYTES], void *attrs, uint32_t cap,
		      struct store_stat *st);

/*
 * Begins the PUT of a part, in place of store_put_init(); then the PUT continues like others, with attributes
 * up to STORE_PART_ATTRS_MAX and without a precondition. A part can have any length, also zero. A part with
 * the same number is replaced; if several PUTs write the same part, the last commit is valid. Additional
 * errors: -ENOENT: no such upload (the commit checks this again); -EINVAL: the number is not 1 to
 * STORE_PART_NR_MAX.
 */
int store_put_init_part(struct store_port *p, struct store_put *put, const struct store_key *k,
			const uint8_t id[STORE_UPLOAD_ID_BYTES], uint32_t number, uint64_t size_bytes);

/* A part of an upload, or of the object that the upload became. */
struct store_part {
	uint32_t number;
	uint64_t size_bytes, crc64, mtime_ns, version;
	uint64_t off_bytes; /* offset of the part's first byte in the object, in bytes */
	struct store_etag etag;
	/* attributes of the part, valid during the callback; from store_obj_part(): until store_close() */
	const void *attrs;
	uint32_t attrs_len;
};

/* An entry of the ordered list of parts for a completion. */
struct store_part_ref {
	uint32_t number;
	struct store_etag etag;
	uint64_t version; /* required version of the part; 0: every version with this ETag is accepted */
};

/*
 * A completion. result: 0 durable and visible; -ENOENT no such upload (or an error of PRE_MATCH:
 * store_upload_stat() shows the cause), -ENXIO; the errors of preconditions; and errors of the list:
 *   -EINVAL    empty, not in ascending order, or a number out of range: parts[bad]   (InvalidPartOrder)
 *   -EBADR     parts[bad] was never committed, or has another ETag or version        (InvalidPart)
 *   -EMSGSIZE  parts[bad] is not the last one and smaller than part_min_bytes        (EntityTooSmall)
 *   -ERANGE    the sizes do not add up to expect_size_bytes
 *   -EILSEQ    the content's CRC is not expect_crc64                                 (BadDigest)
 * The upload continues after each of these errors. If a successful completion is repeated with the same list
 * while its object exists, the result is 0 again, without a change, and was_done is set.
 */
struct store_complete {
	struct store_op op;
	/* list of parts. The caller keeps the list, and all memory to which this struct points, until the
	 * end */
	const struct store_part_ref *parts;
	uint32_t part_nr;
	struct store_meta meta; /* metadata of the new object */
	struct store_pre pre;
	uint64_t part_min_bytes; /* smallest size of a part except the last, in bytes; 0: no limit */
	bool have_expect_crc64, have_expect_size;
	uint64_t expect_crc64, expect_size_bytes;
	/* version, size in bytes, CRC and time of the object; valid after success */
	uint64_t version, size_bytes, crc64, mtime_ns;
	struct store_etag etag; /* ETag of the object, valid after success, also if was_done is set */
	bool was_done;
	uint32_t bad; /* index in `parts` of the part that caused the error */
};
int store_upload_complete(struct store_port *p, const struct store_key *k,
			  const uint8_t id[STORE_UPLOAD_ID_BYTES], struct store_complete *c);

/* A page of the list of an upload's parts, ordered by number. after: the page begins with the first part
 * whose number is higher; 0: with the first part of the upload. */
struct store_part_list {
	/* operation of the list; result: number of parts listed, -ENOENT (no such upload) or -ENXIO */
	struct store_op op;
	uint32_t after, max;
	/* Receives a part, on the port's thread. Returns false to end the page. */
	bool (*part)(struct store_part_list *pl, const struct store_part *part);
	bool more;
	_Alignas(8) unsigned char priv[STORE_PRIV_PARTS];
};
int store_list_parts(struct store_port *p, const struct store_key *k, const uint8_t id[STORE_UPLOAD_ID_BYTES],
		     struct store_part_list *pl);

/* Returns the part with this number of an open object, without waiting. Returns 0 or -ENOENT. */
int store_obj_part(struct store_obj *obj, uint32_t number, struct store_part *ret_part);
/* Returns the index-th part of an open object in order, 0 to part_nr - 1, without waiting. Returns 0 or
 * -ENOENT. */
int store_obj_part_at(struct store_obj *obj, uint32_t index, struct store_part *ret_part);

#endif
