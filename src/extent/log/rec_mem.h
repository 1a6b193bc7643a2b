/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_mem - a record in memory: the value of each key in the index.
 *
 * A record is a packed block of the index's memory, immutable while a reader can see it, except that
 * recovery loads the entries of a mapped record. Readers follow the rules of index/tree.h; only the index's
 * writer makes and drops records. Errors: NULL or -ENOMEM, no memory.
 */
#ifndef GANTRY_EXTENT_LOG_REC_MEM_H
#define GANTRY_EXTENT_LOG_REC_MEM_H

#include "extent/log/rec_codec.h"
#include "model/decide.h"

struct tree;

struct rec {
	uint64_t version, size_bytes, mtime_ns, crc64;
	uint8_t etag[16];
	uint32_t etag_parts;
	uint32_t entry_nr;
	uint16_t attrs_len, owner_len;
	uint16_t inline_len : 9, copies : 2, body : 3;
	uint8_t sums_len, flags;
	/* struct map_ref if mapped; the optional fields that the record has; the entries, or a pointer to the
	 * entries if their number exceeds FMT_ENTRY_MAX; bytes of variable length; the map's extents, 8-byte
	 * aligned, if REC_MAP_LIST */
	_Alignas(8) uint8_t tail[];
};
_Static_assert(sizeof(struct rec) == 64, "every object has one");

/*
 * Makes the memory form of v. entries: v->entries or the contents of the map; for a mapped record they may
 * be loaded later. t NULL: the record is outside of any index, for a reader, and is freed with free(); more than
 * FMT_ENTRY_MAX entries are not copied, and remain in the caller's memory.
 */
struct rec *rec_new(struct tree *t, const struct rec_view *v, const void *entries);
/* Frees r, which no reader has seen. NULL is allowed. */
void rec_drop(struct tree *t, struct rec *r);
/* Frees the memory of a record outside of the tree's memory; the tree frees the record itself. */
void rec_drop_outside(struct rec *r);
/* Returns the entries, or NULL (mapped and not loaded). */
const void *rec_entries(const struct rec *r);
/* Copies the entries of a mapped record into memory of the record. Returns 0 or -ENOMEM. */
int rec_load_entries(struct rec *r, const void *entries);
/* Finds the location of a record's entries on the disk; the extents belong to r. Returns false: the entries
 * are in the record. */
bool rec_map(const struct rec *r, struct map_ref *ret_map);
/* Makes a view of r, for the log and the snapshot. */
void rec_view_of(const struct rec *r, const uint8_t *key, size_t key_len, struct rec_view *ret_view);
static inline bool
rec_has_more(const struct rec *r)
{
	return r->entry_nr > FMT_ENTRY_MAX;
}
/* Returns the number of disks that have each key of a bucket. */
static inline unsigned
rec_copies(const struct rec *r)
{
	return r->copies ? r->copies : 1;
}
/* Returns true if an object has a whole unit and would need at most half of it. */
static inline bool
rec_is_loose(const struct rec *r, const struct geometry *g)
{
	return r->body == BODY_EXTENTS && r->entry_nr == 1 && !(r->flags & REC_MAPPED) &&
	       r->size_bytes <= place_bytes_max(g);
}
/* Returns the version that first had these bytes. */
uint64_t rec_data_version(const struct rec *r);
/* Returns the id that a reader pins: rec_data_version(), or for a packed record its place, so that a reader
 * at the new place does not keep the old place. */
uint64_t rec_pin_id(const struct rec *r);
const uint8_t *rec_inline(const struct rec *r);
const uint8_t *rec_owner(const struct rec *r);
const uint8_t *rec_attrs(const struct rec *r);
struct store_etag rec_etag(const struct rec *r);
/* Returns the optional field with this flag; 0: r does not have it. */
uint64_t rec_optional(const struct rec *r, unsigned flag);

/* ---- copies of the fields that model/record.def names for readers ---- */

/* Returns the fields that decisions read. */
struct model_record rec_show(const struct rec *r);
struct model_record rec_view_show(const struct rec_view *v);
/* Flags of records that are there at any time. */
#define REC_THERE (REC_FLUSHED | REC_MAPPED | REC_MAP_LIST | REC_SHARED)
/* Returns true if r is there for readers at a time (model_is_there()), or now. */
bool rec_is_there_at(const struct rec *r, uint64_t now_ns);
bool rec_is_there_now(const struct rec *r);
static inline bool
rec_is_there(const struct rec *r, uint64_t now_ns)
{
	return !(r->flags & ~REC_THERE) || rec_is_there_at(r, now_ns);
}
/* Returns the metadata for a reader; the attributes belong to r, or to the owner of v. */
struct store_meta rec_meta(const struct rec *r);
struct store_meta rec_view_meta(const struct rec_view *v);
/* Sets the fields of a new record that its writer gives. mtime_ns 0: the current time. */
void rec_view_take(struct rec_view *v, const struct store_meta *m);
/* Sets the fields of an entry of a list, except name and upload_id. */
void rec_list(const struct rec *r, struct store_entry *e);

#endif
