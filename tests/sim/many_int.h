/* SPDX-License-Identifier: Apache-2.0 */
/* What many.c and the files beside it share: what may be there, and one client.  See sim.h. */
#ifndef GANTRY_TESTS_SIM_MANY_INT_H
#define GANTRY_TESTS_SIM_MANY_INT_H

#include "tests/sim/sim.h"

#include "set/set.h"
#include "set/set_int.h"
#include "set/map_change.h"

#define CLIENTS 3
#define OPERATOR CLIENTS /* the coroutine behind theirs */
#define KEYS 9           /* of a bucket; client i has every third */
#define SIZE 600u
#define PARTS 2    /* of an upload */
#define BIG 40000u /* more than a chunk */
#define MAY_MAX 8
#define IDS_MAX 8192
#define UNKNOWN_ID UINT32_MAX

/* What may be there: of a key what was put last, or the attributes that were set since. */
struct cell {
	uint32_t may[MAY_MAX]; /* 0: nothing */
	int nr;
	uint32_t pending; /* what a change under way puts there; UNKNOWN_ID: none is */
	uint32_t other;   /* the same of one at the same time */
	uint64_t
		news; /* event when somebody saw what a change under way puts there: it stays; 0: nobody has */
	bool is_open; /* in this life something failed: what is seen now may not be what the next start finds */
	uint64_t since; /* event when it was last known to be there, and not since when it may be gone */
};

extern struct cell many_keys[BUCKETS][KEYS];
extern struct cell many_buckets[BUCKETS]; /* 1: it is there */
extern uint64_t many_events;
extern uint32_t many_ids;

struct many_client {
	int nr, port;
	bool flag;
	union {
		struct store_op op;
		struct store_put put;
		struct store_del del;
		struct store_obj obj;
		struct store_bucket_set set;
		struct store_stat stat;
		struct store_list ls;
		struct store_upload up;
		struct store_complete complete;
		struct store_part_list parts;
	} u;
	struct store_read rd;
	struct store_write write;
	struct buf buf;
	char attrs[16];
	uint32_t seen[PARTS]; /* parts that were listed */
};
extern struct many_client many_clients[CLIENTS];
extern struct many_client *many_self; /* whose port was asked for last */
extern uint8_t many_uuid[DISKS_MAX][UUID_BYTES];

/* ---- many.c ---- */

void cell_set(struct cell *c, uint32_t id);
bool cell_may_be(const struct cell *c, uint32_t id);
void cell_may_too(struct cell *c, uint32_t id);
/* Somebody saw it. */
void cell_seen(struct cell *c, uint32_t id, const char *what, int b, int k);
/* No change of it is under way. */
bool cell_rests(const struct cell *c);
/* The same of what one saw who began to look at that event, beside those who change it. */
void cell_looked_at(struct cell *c, uint32_t id, uint64_t since, const char *what, int b, int k);
/* A change of a cell ended so: done, not done, or nobody knows. */
void cell_over(struct cell *c, int r, uint32_t id);
/* The same of two that were under way at once. */
void cell_twins_over(struct cell *c, int r1, uint32_t id1, int r2, uint32_t id2);
/* What was put where these attributes were set; of anything else itself. */
uint32_t many_content(uint32_t id);
struct store_key many_key(int b, int k);
/* The disk that has it now; bits of all that had it in this life. */
int many_home(int b, int k);
unsigned many_homes(int b, int k);
bool many_is_away(int b, int k);
int many_etag_nr(const struct store_etag *e);
struct store_port *many_port(struct many_client *c);
/* Chooses a port and clears what is in the way of the next operation. */
void many_begin(struct many_client *c);
/* The result of an operation whose start said r. */
int many_wait(struct many_client *c, int r);
void many_delete(struct many_client *c, int b, int k);
/* Returns the answer. */
int many_put(struct many_client *c, int b, int k);
void many_get(struct many_client *c, int b, int k);
void many_make(struct many_client *c, int b);
void many_remove(struct many_client *c, int b);
void many_see_list(struct many_client *c, int b);
/* Reads all there is, when nothing else runs. */
void many_verify_main(int nr);
/* Nobody is a client any more. */
bool many_over(void);
/* A store on all disks but the spare ones. */
void many_begin_history(void);
/* The members are those of the newest table; those are away.  A start with the others: true: it serves. */
void many_choose(unsigned away);
bool many_start(uint64_t life);
/* A start with all disks, which has to serve. */
void many_start_all(void);
/* Where slots are by the table of the start. */
void many_look_at_homes(void);
/* The process is gone; no disk fails in the next one. */
void many_dies(bool cut);
void many_none_fails(void);
/* Is it certain that the bucket is there, and what is in it?  1: something; 0: nothing; -1: that is not known. */
int many_is_full(int b);
/* Fails where only a disk could explain that answer, and none of those does. */
void many_check_error(int r, unsigned disks, const char *what);
/* The same of a change of a bucket, or a look at all. */
void many_check_bucket_error(int r, bool needs_all, const char *what);
/* Is it not certain that the bucket was there since that event? */
bool many_may_lack(int b, uint64_t since);
/* Tells whether it was there on every disk ever since: what a removal that was cut short took off some is copied again by and by. */
bool many_bucket_stays(int b, uint64_t since);
/* A PUT goes where its key goes: that its key has moved is told only where a disk does not give what was written. */
void many_check_carried(int r, const char *what);
/* The same of a change of a key, or a look at it, that began at that event. */
void many_check_key_error(int r, int b, int k, uint64_t since, const char *what);
/* The disks of engines. */
unsigned many_disks_of(const struct set *s, uint64_t engines);
/* Disks for whose data there was no memory, or for which there was no room, for a while of this life. */
unsigned many_short(void);
/* Disks that are away, have failed, or may in this life. */
unsigned many_hurt(void);
/* Disks that are away. */
unsigned many_away(void);
/* A change of something that goes with its bucket ended, which was begun at that event: where the bucket has gone meanwhile it may be gone. */
void many_of_bucket_over(struct cell *c, int b, uint64_t since);
/* Is a change of that bucket under way, or has one ended since that event? */
bool many_bucket_changed(int b, uint64_t since);

/* Disks that serve. */
unsigned many_serving(void);
/* What the next start, or a repair, is given. */
struct store_conf many_conf(void);
/* Tries a start that may be refused: its result, and the reason.  The process is gone then. */
int many_try_start(const char **ret_error);

/* ---- many_lost.c: files that are lost ---- */

void lost_begin(void);
/* Segments of a disk vanish, and a repair makes them again. */
void lost_files(void);
/* Are bytes of what was put with that id lost?  Of one copy. */
bool lost_is(uint32_t id);

/* ---- many_uploads.c ---- */

void uploads_begin(void);
/* One thing is done with one of the client's uploads, or another one begins. */
void upload_any(struct many_client *c, int b, int k);
/* Before all is read, and when all objects were. */
void uploads_look(void);
void uploads_see(struct many_client *c);
void uploads_see_list(struct many_client *c, int b, unsigned away);
/* Are uploads of the bucket in progress?  1: there are; 0: none is; -1: nobody knows. */
int uploads_in(int b);
/* A removal of the bucket has ended them, or may have; is_open: the next start decides. */
void uploads_end_with(int b, bool is_gone, bool is_open);
/* The process is gone; before it is known of buckets.  heads: disks that decided about them. */
void uploads_die(unsigned heads);
/* A start is tried with these disks, that may decide about buckets; or it serves with them.  One is behind: it is there, and does not. */
void uploads_start(unsigned deciding, bool one_is_behind, bool serves);
/* A disk is given up; the table before. */
void uploads_given_up(int disk, const struct disk_table *t);

/* Adds what uploads of a bucket may have had since that event; what they have for sure, of those that a disk serves; is all of that known? */
void uploads_most(int b, uint64_t since, struct store_use *use);
void uploads_least(int b, struct store_use *use);
bool uploads_are_sure(int b);

/* ---- many_quotas.c: bounds of buckets ---- */

extern struct cell many_bounds[BUCKETS];
void quotas_begin(void);
/* What has that id has so many bytes. */
void quotas_size(uint32_t id, uint32_t size);
uint32_t quotas_size_of(uint32_t id);
/* What a cell may have held since that event: whether anything, and the bytes of the largest. */
void quotas_most(const struct cell *c, uint64_t since, uint64_t *ret_nr, uint64_t *ret_bytes);
/* Notes that a change which begins may remove or overwrite the contents of a cell of that bucket. */
void quotas_leaves(int b, const struct cell *c);
/* Is it known what a cell holds, and will the next start find that? */
bool quotas_is_sure(const struct cell *c);
/* A change that began at that event, and is still under way for the checker, was refused by a quota; or was answered, and adds so much. */
void quotas_check_refused(int b, uint64_t since, const char *what);
void quotas_check_grown(int b, uint64_t since, const struct store_use *grown, const char *what);
/* Sets the bound of a bucket, or takes it away. */
void do_quota(struct many_client *c, int b);
/* Looks at the bound of a bucket. */
void quotas_see(int b);
/* Fails unless what is counted is what is there; all disks are, and nothing runs. */
void quotas_compare(void);

/* ---- many_moves.c: disks that come and go ---- */

void moves_begin(unsigned members);
/* The disk of an engine, and those of a table; of a slot in it. */
int moves_disk(const struct set *s, int engine);
unsigned moves_members(const struct disk_table *t);
int moves_home(const struct disk_table *t, int slot);
/* The newest table of those disks; false: none of them has one that it is in. */
bool moves_newest(unsigned disks, struct disk_table *ret_table);
/* Of those disks such as may not have heard of the latest start of the others. */
unsigned moves_behind(unsigned disks);
/* Returns the bits of those disks that a start has marked as older copies of themselves. */
unsigned moves_marked(unsigned disks);
/* Disks on which a store was made; and of those such as may not serve any more. */
unsigned moves_made(void);
unsigned moves_gone(void);
void moves_leave(int disk);
/* May slots have other homes than when they were looked at? */
bool moves_may(void);
void moves_looked(const struct disk_table *t);
unsigned moves_had(unsigned place);
/* The disk of that number in the table; -1: of none. */
int moves_number(const struct disk_table *t, int number);
void moves_note(void);
void moves_drain(int disk);
/* The operator's coroutine, while clients go on, and when nobody else does anything. */
void moves_main(int nr);
void moves_calm_main(int nr);
/* The process is about to die. */
void moves_die(void);
/* Everything has moved, and nothing goes on behind the scenes; then all is where it should be. */
bool moves_over(void);
void moves_check(void);

/* ---- many_pairs.c: buckets with two copies ---- */

bool many_has_two(int b);
/* A bucket is there, and has so many copies. */
void pairs_see_bucket(int b, unsigned copies);
/* Gives a bucket the other number of copies, as the only client.  Is it known whether that was done? */
void pairs_copies_main(int nr);
bool pairs_are_sure(void);
unsigned many_place(int b, int k);
void pairs_begin(void);
/* A start is tried with these disks; it serves with those, or not. */
void pairs_before_start(unsigned present);
void pairs_started(unsigned serving);
void pairs_not_started(void);
void pairs_die(bool hurt);
/* No disk serves it; any key with two copies. */
bool pairs_is_away(int b, int k);
/* Is the disk missing, or has it failed, that the table names as the first?  As soon as there is a bucket nothing else is nobody's. */
bool pairs_first_is_away(int b, int k);
/* Is the disk missing that would have the key if its bucket had one copy? */
bool pairs_one_is_away(int b, int k);
bool pairs_miss_some(void);
/* Is it gone when that disk is given up? */
bool pairs_are_lost_with(const struct disk_table *t, int disk, int b, int k);
int pairs_second(int b, int k);
/* Two changes at once. */
void do_twins(struct many_client *c, int b, int k);
/* Between two lives: a disk is copied, or its older copy put in its place, which the others can do without.  Then the newest table is among
 * those that start: that most of the members know it no longer holds. */
void pairs_older(void);
bool pairs_can_start(unsigned present);
/* Behind a start: bytes of one disk rot, always the same one.  Bit of it, as soon as some have; and its copies are read, to be mended. */
void pairs_rot(void);
/* The disk whose bytes may rot now; -1: none may.  Some have. */
int pairs_may_rot(void);
void pairs_has_rotten(void);
unsigned pairs_rotten(void);
void pairs_mend_main(int nr);
void pairs_same_main(int nr);
void pairs_settled_main(int nr);
void pairs_check_main(int nr);

#endif
