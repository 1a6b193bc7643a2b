/* SPDX-License-Identifier: Apache-2.0 */
/*
 * damage - the list of objects that a check of the store (--fsck) has found damaged, lost, or in the way of a
 * repair, with the disk that has another, whole copy of each. One thread at a time uses a list.
 *
 * The set examines its disks one after the other; each engine adds the objects of its disk. Then each engine
 * looks for whole copies of the objects of the others (FSCK_FIND), and the set reports the list.
 */
#ifndef GANTRY_STORE_DAMAGE_H
#define GANTRY_STORE_DAMAGE_H

#include "base/disk_name.h"
#include "set/map/disk_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum damage_kind {
	DAMAGE_LOST,    /* bytes of the object were in a file that is lost */
	DAMAGE_DROPPED, /* a repair drops the newest change of the object */
	DAMAGE_BAD,     /* the object's bytes do not match its checksum, or cannot be read */
	DAMAGE_KINDS
};

/* An object, or a part of an upload, of which one disk has no whole copy. */
struct damage {
	struct damage *next, *same_hash;
	enum damage_kind kind;
	bool is_removal;  /* the change that is dropped is a removal */
	bool is_part;     /* part of an upload in progress, not an object */
	const char *disk; /* name of the disk (damage_disk()) */
	/* name of another disk with a whole copy; NULL: no other disk is known to have a whole copy */
	const char *whole_on;
	uint64_t version, size_bytes;
	char *line; /* message about the damage, without the disk */
	size_t len; /* length of the key, in bytes */
	uint8_t key[];
};

/* Numbers of objects, of parts of uploads in progress, and of the bytes of both. */
struct damage_sum {
	uint64_t objects, parts, bytes;
};

/* Numbers for the summary of a check. */
struct damage_sums {
	struct damage_sum all[DAMAGE_KINDS];
	struct damage_sum gone[DAMAGE_KINDS]; /* those of `all` of which no disk has a whole copy */
	/* On RADOS: number and bytes of the objects in pools that no record names, and that a repair removes. */
	struct damage_sum unnamed;
	uint64_t objects; /* number of all objects that were examined, each counted once */
	/* true: a repair also drops changes of objects whose names cannot be read */
	bool has_unknown;
	unsigned refused; /* number of disks that a start would refuse */
};

#define DAMAGE_HASHES 4096u

struct store_damage {
	struct damage *first, **end; /* in the order in which they were added */
	struct damage *hash[DAMAGE_HASHES];
	char disk[STORE_DISKS_MAX][DISK_NAME_BYTES]; /* names of the disks */
	int disk_nr;
	uint64_t nr;
	struct damage_sums sums; /* sums of the list; complete after damage_report() */
};

/* Allocates an empty list. Returns NULL without memory. */
struct store_damage *damage_new(void);
void damage_free(struct store_damage *all);
/* Keeps the name of a disk (base/disk_name.h), one of at most STORE_DISKS_MAX, as long as the list, and returns the copy. */
const char *damage_disk(struct store_damage *all, const char *name);
/* Adds an object, with a copy of the key and of the line. If the list has the object with the same disk and
 * kind, the newer version replaces the older one. Returns false if there is no room in the list: the caller
 * then reports the line itself. */
bool damage_add(struct store_damage *all, const struct damage *what, const uint8_t *key, size_t len,
		const char *line);
/* Reports each object in a line, then the sums, which are stored in all->sums, too. has_others: the store has
 * several disks, so that each line says whether another disk has a whole copy. */
void damage_report(struct store_damage *all, bool has_others, void (*say)(void *cookie, const char *line),
		   void *cookie);
/* Returns true if objects or parts do not match their checksums. sums: NULL: unknown. */
static inline bool
damage_is_bad(const struct damage_sums *sums)
{
	return sums && (sums->all[DAMAGE_BAD].objects || sums->all[DAMAGE_BAD].parts);
}
/* Writes the loss that a repair causes: a number of objects and parts, and the verb. */
void damage_loss(const struct damage_sums *sums, char *text, size_t len);

#endif
