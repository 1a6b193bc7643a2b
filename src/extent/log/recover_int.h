/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of starting: snapload.c (snapshots), replay.c (the log), maps.c (lists that lie in maps), verify.c (data against records),
 * records.c (the index), report.c (what is said), recover.c (the order of it all). */
#ifndef GANTRY_EXTENT_LOG_RECOVER_INT_H
#define GANTRY_EXTENT_LOG_RECOVER_INT_H

#include "extent/log/recover.h"
#include "extent/log/vol.h"

#define UNREADABLE_MAX 256 /* bad sectors that a start mends */
#define WINDOW_BYTES ((size_t)4 << 20)

/* A block that is valid, but not believed yet: a copy. */
struct tail_block {
	struct tail_block *next;
	struct block_head head;
	struct log_pos at; /* where it was expected: what comes instead if it is cut */
	_Alignas(8) uint8_t bytes[];
};

struct replay {
	struct vol *vol;
	struct ring *r;
	struct recover_report *rep;
	char *err;
	size_t err_len;
	struct log_pos pos; /* where the next block is expected */
	struct tail_block *tail, **tail_end;
	uint64_t version_max;
	uint64_t start_no;      /* of this start; before it begins, the least that it may be */
	uint64_t applied;       /* records */
	struct tree_load *load; /* while a snapshot is read: its records go through this */
	/* part of the log in memory */
	uint8_t *window;
	uint64_t window_at;
	size_t window_len;
	uint64_t
		careful_until; /* up to here a bad sector is somewhere: no more is read at once than is wanted */
	uint64_t unreadable[UNREADABLE_MAX]; /* log offsets behind the end */
	uint32_t unreadable_nr;
	uint64_t behind_blocks, behind_records; /* that a later block says were flushed */
	/* the cut: position, and what survives of the block there */
	struct log_pos cut;
	uint8_t *survivors;
	uint32_t survivors_len, survivors_nr;
	uint64_t cut_records;
	struct lost_map *lost; /* records that maps.c judges */
	char cut_key[168];     /* the record that failed, if it was one */
	char damage[384];      /* what is wrong, when something is */
};

/* ---- report.c ---- */

/* Sets err and returns r. */
int refuse(struct replay *rp, int r, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Sets err to how much memory the index needs, of which record_nr records are known to come (0: it is not known
 * how many), and returns -EINVAL; another error than -ENOSPC is named and returned as it is. */
int refuse_memory(struct replay *rp, int error, uint64_t record_nr);

/* ---- records.c ---- */

/* Puts one record into the index, or removes it.  0, -ENOSPC (index memory), -ENOMEM. */
int apply_record(struct replay *rp, const struct rec_view *v);

/* ---- snapload.c ---- */

/* Loads the newest good snapshot into the index, its and the other one's space into snap.space. */
int snapshots_load(struct replay *rp);

/* ---- replay.c ---- */

/* Applies the log up to its end; what is not believed yet becomes the tail. */
int replay_log(struct replay *rp);
/* Counts the records of the log from rp->pos on, and those that are not believed yet. */
uint64_t replay_count(struct replay *rp);
/* Looks for a block behind the end that should not be there.  1: there is, rp->damage says what; also
 * lists its records if wanted. */
int replay_look_behind(struct replay *rp, bool list);

/* ---- maps.c ---- */

/* Gives a record of the index its entries, if they lie in a map.  1: that is lost, and noted for maps_judge(). */
int maps_load(struct replay *rp, const uint8_t *key, size_t len, struct rec *r);
/* Looks, in a repair that cut the log, whether a snapshot has space of a record whose removal was cut.  1: so it is,
 * which is noted as well. */
int maps_check_space(struct replay *rp, const uint8_t *key, size_t len, struct rec *r);
/* Judges what is lost when all others are loaded: what nobody owns is dropped, and so is, by a repair, what somebody
 * does; else that is the reason in err.  What was dropped is removed by the epoch block. */
int maps_judge(struct replay *rp);
void maps_forget(struct replay *rp);
/* Writes where the first byte of these extents lies that cannot be read; of their beginning, if all can. */
void maps_place(struct replay *rp, const uint64_t *ext, uint32_t nr, uint64_t len_bytes,
		char ret_text[DISK_PLACE_BYTES]);

/* ---- verify.c ---- */

/* Judges the tail and sets the cut. */
int verify_tail(struct replay *rp);

#endif
