/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_mem - a record in memory: what the index has for each key.
 *
 * A packed block of the index's memory, immutable while anybody can see it (but for the entries of a mapped
 * one, which come during recovery).  Readers follow the rules of index/tree.h; who makes and drops records
 * is the index's writer.  Errors: NULL or -ENOMEM, no memory.
 */
#ifndef GANTRY_EXTENT_LOG_REC_MEM_H
#define GANTRY_EXTENT_LOG_REC_MEM_H

#include "extent/log/rec_codec.h"

struct tree;

struct rec {
	uint64_t version, size_bytes, mtime_ns, crc64;
	uint8_t etag[16];
	uint32_t etag_parts;
	uint32_t entry_nr;
	uint16_t attrs_len, owner_len;
	uint16_t inline_len : 12, copies : 4; /* copies: of a bucket */
	uint8_t sums_len;
	uint8_t body : 3, flags : 5;
	/* then: struct map_ref if mapped; data_version if shared; expires_ns if it expires; the entries, or a
	 * pointer to them when there are more than FMT_ENTRY_MAX; inline bytes, owner, checksums, attributes;
	 * 8-byte aligned, the map's extents if they are a list */
	_Alignas(8) uint8_t tail[];
};
_Static_assert(sizeof(struct rec) == 64, "every object has one");

/* Makes the memory form of v (entries: v->entries or what the map held; may come later for a mapped one). */
struct rec *rec_new(struct tree *t, const struct rec_view *v, const void *entries);
/*
 * Makes one of the bytes of v alone, for reading, in no index: to be freed with free().  Entries are v's own where there are more than
 * FMT_ENTRY_MAX.
 */
struct rec *rec_new_apart(const struct rec_view *v);
/* Frees r, which no reader ever saw.  NULL is fine. */
void rec_drop(struct tree *t, struct rec *r);
/* Frees what lies outside of the tree's memory; the record itself is the tree's to free. */
void rec_drop_outside(struct rec *r);
/* Returns the entries, or NULL (mapped and not loaded). */
const void *rec_entries(const struct rec *r);
/* Gives a mapped record its entries: copies them.  0 or -ENOMEM. */
int rec_load_entries(struct rec *r, const void *entries);
/* Says where the entries lie on disk, if not in the record; the extents are r's. */
bool rec_map(const struct rec *r, struct map_ref *ret_map);
/* Makes a view of r, for the log and the snapshot. */
void rec_view_of(const struct rec *r, const uint8_t *key, size_t key_len, struct rec_view *ret_view);
static inline bool
rec_has_more(const struct rec *r)
{
	return r->entry_nr > FMT_ENTRY_MAX;
}
/* Returns on how many disks each key of a bucket is. */
static inline unsigned
rec_copies(const struct rec *r)
{
	return r->copies ? r->copies : 1;
}
/* Tells whether an object has a unit of its own, of which it would take half at most. */
static inline bool
rec_is_loose(const struct rec *r, const struct geometry *g)
{
	return r->body == BODY_EXTENTS && r->entry_nr == 1 && !(r->flags & REC_MAPPED) &&
	       r->size_bytes <= place_bytes_max(g);
}
/* Returns the version that first had these bytes. */
uint64_t rec_data_version(const struct rec *r);
/* Returns what a reader pins: that; or where they have been moved to, so that nobody who reads them there keeps
 * the place where they were. */
uint64_t rec_pin_id(const struct rec *r);
const uint8_t *rec_inline(const struct rec *r);
const uint8_t *rec_owner(const struct rec *r);
const uint8_t *rec_attrs(const struct rec *r);
struct store_etag rec_etag(const struct rec *r);

#endif
