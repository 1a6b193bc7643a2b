/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map - a list that is too long for its record (extents, chunks, parts), being written to disk: in as many
 * extents as necessary.
 *
 * Embedded in the operation whose record refers to it; all of it on the port's thread.
 */
#ifndef GANTRY_EXTENT_OBJECT_MAP_H
#define GANTRY_EXTENT_OBJECT_MAP_H

#include "extent/disk/xio.h"
#include "extent/log/rec_codec.h"
#include "extent/object/space.h"

struct map_out {
	struct map_ref ref; /* location of the map; nr 0: no map */
	struct space_wait wait;
	struct xio io;
	struct extent_port *port;
	void *mem; /* the units as they will be on the disk, followed by the extents */
	uint64_t *ext;
	uint32_t len_bytes, ext_nr, units, units_wanted;
	uint64_t crc64;
	bool is_on_disk; /* the write of the map was begun */
	void (*done)(struct map_out *m, int error);
};

/*
 * Allocates space for len bytes of entries, which are copied, and begins to write them. 0: m->ref has the
 * location; 1: waits for space, and m->ref is set later; m->done() runs later in both cases, with 0, -ENOSPC
 * or the disk's -errno. Or -ENOSPC, -EROFS, -EAGAIN (no memory), and nothing was begun.
 */
int map_begin(struct map_out *m, struct extent_port *p, const void *entries, uint32_t len,
	      void (*done)(struct map_out *m, int error));
/* Frees the memory of m, if any; give_back: its space as well. */
void map_end(struct map_out *m, bool give_back);
/* Puts the map's reference into a record's view; nothing without a map. */
void map_view(const struct map_out *m, struct rec_view *v);

#endif
