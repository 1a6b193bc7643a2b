/* The insides of reading, shared by read.c (objects and pieces) and trailer.c (the cache of granule
 * checksums). */
#ifndef GANTRY_EXTENT_OBJECT_READ_INT_H
#define GANTRY_EXTENT_OBJECT_READ_INT_H

#include "extent/extent_int.h"

/* A trailer in memory, checked against its record.  A cache by version: versions never come again. */
enum trailer_state { TRAILER_EMPTY, TRAILER_LOADING, TRAILER_GOOD };
struct trailer {
	struct list lru; /* while nobody uses it */
	struct trailer *hash_next;
	uint64_t version; /* 0: none */
	uint32_t refs;
	enum trailer_state state;
	struct list waiters;   /* reads */
	const struct rec *rec; /* while loading; pinned by the read that began it */
	struct xio x;
	uint64_t *crc; /* FMT_TRAILER_MAX bytes, aligned */
};

struct obj_int {
	struct pin pin;
	struct disk *disk;
	struct rec *rec; /* stays while the pin does */
	/* Of parts: one of them, and where it begins, as reading goes forward. */
	uint32_t hint;
	uint64_t hint_off;
};

/* One read: parts one after the other, as a range may touch two chunks. */
struct read_int {
	struct extent_port *port;
	struct store_read *rd;
	struct obj_int *obj;
	struct buf *buf;
	uint64_t off;
	uint32_t len, done; /* wanted; read and checked */
	/* the part in flight */
	const struct rec *rec;
	uint64_t part_off; /* in rec */
	uint32_t part_len;
	bool has_tail; /* the trailer comes behind the data, in the same read */
	bool data_over, trailer_over;
	int error;
	struct trailer *trailer;
	struct list link; /* waits for a trailer */
	struct xio x;
};

static inline struct obj_int *
obj_int(struct store_obj *obj)
{
	return (struct obj_int *)obj->priv;
}

/* part.c: the record of a part that an object names; NULL: it is not there, or is another. */
const struct rec *part_record(const struct disk *d, const struct chunk_ref *ref);

/* Does this trailer belong to that record? */
bool trailer_fits(const uint64_t *crc, const struct rec *r);
/* The trailer of ri->rec to ri->trailer: 1 there; 0 read_trailer_over() will run; -EAGAIN all are in use: ri
 * waits, and is begun again when one is free. */
int trailer_get(struct extent_port *p, struct read_int *ri);
void trailer_put(struct extent_port *p, struct trailer *t);

/* read.c */
void read_trailer_over(struct read_int *ri, int error);
void read_part_begin(struct read_int *ri);

#endif
