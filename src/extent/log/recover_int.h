/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the recovery: snapload.c (snapshots), replay.c (the log; log_read.h), maps.c
 * (lists in maps), verify.c (comparison of data with records), records.c (the index), report.c (messages),
 * recover.c (the sequence of the steps). */
#ifndef GANTRY_EXTENT_LOG_RECOVER_INT_H
#define GANTRY_EXTENT_LOG_RECOVER_INT_H

#include "base/advice.h"
#include "extent/log/recover.h"
#include "extent/log/vol.h"

#define UNREADABLE_MAX 256 /* most bad sectors that a start repairs */
#define WINDOW_BYTES ((size_t)4 << 20)

/* A copy of a block that is valid, but not trusted yet. */
struct tail_block {
	struct tail_block *next;
	struct block_head head;
	/* expected position of the block; the next block of the log has this position if the block is
	 * cut */
	struct log_pos at;
	_Alignas(8) uint8_t bytes[];
};

struct replay {
	struct vol *vol;
	struct ring *r;
	struct recover_report *rep;
	struct log_pos pos; /* expected position of the next block */
	struct tail_block *tail, **tail_end;
	uint64_t version_max;
	uint64_t applied;       /* number of applied records */
	struct tree_load *load; /* loader for the records of a snapshot; NULL: no snapshot is being read */
	struct log_reader log;
	uint64_t unreadable[UNREADABLE_MAX]; /* log offsets after the end of the log that cannot be read */
	uint32_t unreadable_nr;
	/* blocks and records after the end that were flushed according to a later block */
	uint64_t behind_blocks, behind_records;
	/* the cut: its position, and the records that remain of the block at that position */
	struct log_pos cut;
	uint8_t *survivors;
	uint32_t survivors_len, survivors_nr;
	uint64_t cut_records;
	uint64_t lost_nr;      /* records with bytes that no file has */
	struct lost_map *lost; /* records with a lost map, judged by maps.c */
	char cut_key[168];     /* key of the record that failed; "": no record failed */
	char damage[384];      /* description of the damage; "": none */
};

/* ---- report.c ---- */

/* Sets vol->disk.why, and adds the remedies of a row with these values; returns r. */
int refuse_with(struct replay *rp, int r, enum advice_id id, const struct advice_values *v, const char *fmt,
		...) __attribute__((format(printf, 5, 6)));

/* Reports a change of a key that a repair drops, in a line; an object, or a part of an upload, becomes an
 * entry of the list of damage instead, if there is one. Returns true if the list has the entry. */
bool report_dropped(struct replay *rp, const struct rec_view *v, const char *line);
/* Sets vol->disk.why to the memory that the index needs for record_nr more records (0: number unknown), and returns
 * -EINVAL; an error other than -ENOSPC is named and returned unchanged. */
int refuse_memory(struct replay *rp, int error, uint64_t record_nr);

/* Writes the name of a record for a message: bucket and key for fsck's caller, and of a part of an upload its
 * number and the upload; for the log, which has no keys, the bucket. */
void name_text(const struct replay *rp, char *text, size_t cap, const struct rec_view *v);

/* ---- lost.c: records whose bytes are in files that are not whole ---- */

/* Notes the segment of an extent that the disk's files do not have. */
void lost_note(struct replay *rp, uint64_t ext);
/* Judges the noted segments: a start is refused, with the files in vol->disk.why; fsck continues. */
int lost_judge(struct replay *rp);
/* Drops the older snapshot if a part of it, or of the log after it, is in a missing file. */
void lost_drop_older(struct replay *rp);

/* ---- records.c ---- */

/* Applies one record to the index: a put or a removal. Returns 0, -ENOSPC (index memory), -ENOMEM. */
int apply_record(struct replay *rp, const struct rec_view *v);

/* ---- snapload.c ---- */

/* Loads the newest valid snapshot into the index, and the space of both snapshots into snap.space. */
int snapshots_load(struct replay *rp);

/* ---- replay.c ---- */

/* Applies the log up to its end; blocks that are not trusted yet become the tail. */
int replay_log(struct replay *rp);
/* Counts the records of the log from rp->pos on, including records that are not trusted yet. */
uint64_t replay_count(struct replay *rp);
/* Searches for a block after the end of the log that must not exist. 1: found, described in rp->damage.
 * list: also lists the records of such blocks. */
int replay_look_behind(struct replay *rp, bool list);

/* ---- maps.c ---- */

/* Loads the entries of a record of the index from its map, if any. 1: the map is lost, and noted for
 * maps_judge(). */
int maps_load(struct replay *rp, const uint8_t *key, size_t len, struct rec *r);
/* Checks, in a repair that cut the log, whether a snapshot uses space of a record whose removal was cut. 1:
 * the space is in use, and the record is noted for maps_judge(). */
int maps_check_space(struct replay *rp, const uint8_t *key, size_t len, struct rec *r);
/* Judges the noted records after all other maps are loaded: a record without an owner is dropped; a record
 * with an owner is dropped by a repair, otherwise it is the reason in vol->disk.why. The epoch block contains the
 * removals of the dropped records. */
int maps_judge(struct replay *rp);
void maps_forget(struct replay *rp);
/* Writes the location of the first byte of these extents that cannot be read, or of their first byte if all
 * can be read. */
void maps_place(struct replay *rp, const uint64_t *ext, uint32_t nr, uint64_t len_bytes,
		char ret_text[DISK_PLACE_BYTES]);

/* ---- verify.c ---- */

/* Judges the tail and sets the cut. */
int verify_tail(struct replay *rp);

#endif
