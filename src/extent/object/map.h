/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map - the write of a map: a list (of extents, chunks or parts) that is too long for its record, stored in
 * as many extents as necessary. Embedded in the operation whose record refers to the map. All functions are
 * called on the port's thread.
 */
#ifndef GANTRY_EXTENT_OBJECT_MAP_H
#define GANTRY_EXTENT_OBJECT_MAP_H

#include "extent/disk/xio.h"
#include "extent/log/commit.h"
#include "extent/log/rec_codec.h"
#include "extent/object/space.h"

struct map_out {
	struct map_ref ref; /* location of the map on the disk; nr 0: the record has no map */
	struct space_wait wait;
	struct xio io;
	struct extent_port *port;
	void *mem; /* contents of the allocation units of the map, followed by the list of extents */
	uint64_t *ext;
	uint32_t len_bytes, ext_nr, units, units_wanted;
	uint64_t crc64;
	/* is_on_disk: the write of the map was begun; is_failed: the disk reported an error of the write, so the space is
	 * not used again before a restart */
	bool is_on_disk, is_failed;
	struct commit *c; /* commit that waits for the map, of map_commit() */
	void (*done)(struct map_out *m, int error);
};

/*
 * Allocates space for len bytes of entries, copies them, and begins to write them. Returns 0 if m->ref has
 * the location, 1 if the map waits for space and m->ref is set later. In both cases m->done() runs later,
 * with 0, -ENOSPC or the -errno of the disk. Returns -ENOSPC, -EROFS or -EAGAIN (no memory) if nothing was
 * begun.
 */
int map_begin(struct map_out *m, struct extent_port *p, const void *entries, uint32_t len,
	      void (*done)(struct map_out *m, int error));
/* Submits the commit of an object made of parts, whose list is in c->view and stays there; of a list that is too long for
 * the record, after a flush of the map m. Returns 0, and c->finished() runs later, with -EAGAIN, -ENOSPC or -EROFS
 * in c->result if the map could not be written; or an error of map_begin(). */
int map_commit(struct map_out *m, struct extent_port *p, struct commit *c);
/* Frees the memory of a map, if there is one. give_back: true: frees the space of the map on the disk, too;
 * space that was not written yet is always freed. */
void map_end(struct map_out *m, bool give_back);
/* Sets the reference to the map in a record. Does nothing if m has no map. */
void map_view(const struct map_out *m, struct rec_view *v);

#endif
