/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store simulation: the real src/store and src/extent on a ring, files, memory and a clock of the
 * simulation's own, in one thread.
 *
 *	main.c     options, many histories, exhaustive runs, bad sectors, hunts with a rule off
 *	history.c  one history: lives of the "process", cuts, starts
 *	client.c   what clients do, as coroutines; puts.c: how they put; uploads.c: of uploads and attributes
 *	model.c    what must be true; content.c: of which bytes and names; look.c: what is there
 *	many.c     one history of several disks, with clients and a checker of its own; many_uploads.c: their uploads;
 *		   many_moves.c: disks that are drained and added meanwhile; many_pairs.c: buckets with two copies;
 *		   many_quotas.c: bounds of buckets; many_lost.c: files that are lost;
 *		   many_exact.c: short histories, one after the other in every way
 *	sched.c    coroutines, and who goes next
 *	disk.c     the disk: pages that are durable, cached, in flight
 *	ring.c     ring.h and extent/disk/file.h over it
 *	env.c      memory, random bytes, clock
 *
 * Everything that is left to chance goes through rng(), so that a seed gives the same history again; trace()
 * makes a hash of what happened.
 */
#ifndef GANTRY_TESTS_SIM_SIM_H
#define GANTRY_TESTS_SIM_SIM_H

#include "extent/disk/rules.h"
#include "extent/engine.h"
#include "extent/object/put_int.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mailbox.h"

#include <stdbool.h>
#include <stdint.h>

#define PORTS_MAX 3
#define CLIENTS_MAX 6
#define BUCKETS 2
#define KEYS_MAX 16
#define OPS_MAX 4096
#define UPS_MAX 4   /* uploads at once */
#define PARTS_MAX 5 /* of an upload */
#define LIVES_MAX 12

/* ---- env.c ---- */

extern uint64_t sim_now_ns;
void env_init(void);
/* A new history: clock, random numbers. */
void env_begin(uint64_t seed);
/* The process is dead: all its memory goes. */
void env_drop_memory(void);
uint64_t rng(void);
uint32_t below(uint32_t n);
/* true once in n */
bool one_in(uint32_t n);
extern uint64_t trace_hash;
extern bool sim_verbose;
extern bool sim_pairs; /* some histories of many disks have buckets with two copies */
/* In all histories of many disks that can have it, some writes find no room; files are lost. */
extern bool sim_no_room, sim_lost;
void trace(uint64_t what, uint64_t a, uint64_t b);
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- the profile of a history ---- */

/* What of a page is not as it should be: it is in a hole, allocated but never written, or shared. */
enum odd { ODD_NO, ODD_HOLE, ODD_SHARED };

struct profile {
	int disks; /* of a set (many.c); 0: one engine by itself */
	int spare; /* so many of them are no members at first */
	/* disks come and go, as often as an operator changes something in so many of his turns; 0: never */
	uint32_t moves;
	bool swings;        /* they are drained one after the other, but for a while each */
	uint32_t stall;     /* a core stands still for a while once in so many steps; 0: never */
	uint32_t unlisted;  /* one path in so many of a disk that is away is not configured; 0: all are */
	uint64_t life;      /* steps of a life of several disks; 0: some */
	uint32_t look_hold; /* one look in so many at who has a key is followed by a pause; 0: none */
	uint32_t
		read_hold; /* a reader takes up to so many steps before it reads; 0: some do a few, where there are two copies */
	unsigned two; /* bits of buckets with two copies */
	int ports, clients, keys, ops, lives;
	uint32_t seg_nr, segs_there; /* segments in all, made by format */
	uint64_t log_bytes, index_bytes;
	bool flush_covers_all; /* one flush covers the disk */
	bool is_device;        /* all of it is one file */
	/* of the segments' pages one in so many has no place of its own when it begins, and again, for one in so many
	 * starts, because somebody copied the files; 0: none */
	uint32_t copied, copied_again;
	enum odd copied_how;
	/* one in so many; 0: never */
	uint32_t soft, eio_write, eio_read, eio_flush, eio_super, rot, kill, clean, cut_in_recovery, storm,
		forge, slow, ballast;
	uint32_t lost; /* before one life in so many some segments are lost, once; 0: never */
	uint32_t
		no_room; /* at one write in so many the file system begins to refuse some writes for a while; 0: never */
	uint32_t size_inline, size_small, size_mid, size_large, size_huge; /* weights */
	uint32_t size_equal; /* all objects have that many bytes; 0: by weight */
	uint64_t pack_rate;  /* of the mover, which moves small objects together; 0: it is off */
	uint32_t second;     /* one op in so many is on the second bucket, the one that comes and goes */
	uint32_t w_put, w_del, w_get, w_list, w_bucket, w_upload, w_attrs, w_quota;
	uint32_t pre, abort, hold;
	struct store_use quota; /* of all buckets together; all 0: none */
	uint32_t at_log;        /* the same of a start, while the log is written */
	uint32_t older, /* between two lives one in so many a disk is put back from a copy; 0: never */
		lacks; /* in one life of so many there is no memory for one disk's data for a while; 0: never */
	uint32_t at_super; /* one in so many steps while a superblock is written is the last */
	bool data_faults_only;
	uint32_t helper_weight, time_weight; /* how eager the helper is; how time flies */
};
extern struct profile prof;

/* ---- disk.c ---- */

#define PAGE 4096u
#define SIM_FILES 26 /* of a disk; names of the n-th: + n * SIM_FILES */
#define DISKS_MAX 5
#define FILES_MAX (SIM_FILES * DISKS_MAX)
#define FILE_SUPER 0
#define FILE_LOG 1
#define FILE_SUPER2 2
#define FILE_SUPER_NEW 3 /* of either */
#define FILE_SEG 4       /* ... + 7; their .new: + 8 */
#define SEGS_MAX 8
#define FILE_HOST (FILE_SEG + 2 * SEGS_MAX)

enum io_kind { IO_READ, IO_WRITE, IO_FLUSH };

struct sim_io {
	struct ring *ring;
	struct ring_op *op;
	enum io_kind kind;
	int file;
	void *buf;
	uint32_t first, nr; /* pages */
	uint32_t weight;
	bool is_block;      /* true: a write that model_block() was told of */
	uint64_t upto;      /* flush: writes that were over when it began */
	struct page **page; /* write: taken at the start; NULL: when it is over */
	uint64_t nr_in_order;
};

void simdisk_begin(void);
/* Names are numbered (FILE_...), and so are files: what a name stands for changes. */
int simdisk_find(const char *name); /* -1: not a name of ours */
bool simdisk_exists(int name);
int simdisk_open(int name); /* the file that the name stands for */
void simdisk_create(int name);
void simdisk_rename(int from, int to);
void simdisk_unlink(int name);
uint64_t simdisk_bytes(int file);
void simdisk_sync_dir(void);
int simdisk_fsync(int file);
/* format: straight onto the medium */
void simdisk_put(int file, uint64_t off, const void *bytes, size_t len);
const uint8_t *simdisk_page(int file, uint32_t nr);
void simdisk_damage(int file, uint32_t page);
/* Keeps a copy of a disk as a cut left it; then that is put in its place. */
void simdisk_copy(int disk);
void simdisk_put_back(int disk);
/* It cannot be read until it is written. */
void simdisk_unreadable(int file, uint32_t page);
/* Makes all pages of a disk readable, with the bytes that they had: it is put back from a copy. */
void simdisk_readable(int disk);
bool simdisk_is_bad(int file, uint32_t page);
/* It is of a segment. */
bool simdisk_is_data(int file, uint32_t page);
/* The n-th page of all files that have a name.  False: there are not so many. */
bool simdisk_nth(uint64_t n, int *ret_file, uint32_t *ret_page);
/* A copy of the file leaves one page in so many like this. */
void simdisk_copied(int file, enum odd how, uint32_t one_of);
/* The first such pages of [from, to), all of one kind.  False: none. */
bool simdisk_odd(int file, uint32_t from, uint32_t to, uint32_t *ret_first, uint32_t *ret_nr,
		 bool *ret_is_shared);
/* Gives shared pages places of their own.  -EIO: up to one that cannot be read. */
int simdisk_unshare(int file, uint32_t first, uint32_t nr);

void simdisk_submit(const struct sim_io *io);
unsigned simdisk_inflight(void);
unsigned simdisk_weight(void);
/* Lets the one end that `at` (below the weight) points to. */
void simdisk_complete(uint32_t at);
/* Has a disk something that may end?  The first of it does. */
bool simdisk_is_busy(int disk);
void simdisk_complete_first(int disk);
/* Grows with whatever makes a difference to what a cut leaves. */
extern uint64_t simdisk_changes;
/* Writes of dead processes that are not over. */
unsigned simdisk_late(void);
void simdisk_land_late(uint32_t at);
bool simdisk_is_locked(int file);
/* A superblock of a directory is being written or flushed. */
bool simdisk_writes_super(void);
/* The log of a directory is. */
bool simdisk_writes_log(void);
/* The process dies, the machine goes on. */
void simdisk_kill(void);
/* Everything stops. */
void simdisk_cut(void);
/* Bits of disks that complete nothing, and of those that may fail. */
extern unsigned simdisk_hung;
extern unsigned simdisk_faulty;
/* Bits of disks for whose data the kernel has no memory, but seldom. */
extern unsigned simdisk_short;
/* Of several disks: bits of those whose file systems may have no room for some writes. */
extern unsigned simdisk_tight;
extern unsigned simdisk_faults; /* injected in this life */
extern unsigned simdisk_soft;   /* of data, and none that the disk is to blame for */
/* Writes that found no room in this life, and those of them that were of a log. */
extern unsigned simdisk_refused, simdisk_log_refused;
/* Returns true if the file system of the disk has no room for a new file or a new place of a page now. */
bool simdisk_has_no_room(int disk);
/* Exhaustive runs: bit i says whether the i-th page not flushed is kept.  NULL: chance. */
extern const uint64_t *simdisk_cut_mask;
extern unsigned simdisk_cut_units; /* how many there were at the last cut */

/* ring.c: the kernel is done with it. */
void ring_post(struct ring *r, struct ring_op *op, int res);
bool ring_has_done(const struct ring *r);

void rings_drop(void);

/* The machine that the process runs on, and how often it has booted. */
extern unsigned sim_machine, sim_boot;

/* ---- sched.c ---- */

/* ring.c: bits of disks that are not there. */
extern unsigned sim_absent;

enum co_kind { CO_START, CO_HELPER, CO_CLIENT, CO_MOVER };

struct sim_port {
	struct ring *ring;
	struct mailbox mb;
	struct timers timers;
	struct store_port *p;
	bool there, asleep, detached;
	int busy;              /* a client stands in the middle of a call */
	uint64_t stands_until; /* step */
};
extern struct sim_port ports[PORTS_MAX];

struct co;
extern struct co *co_now; /* NULL: the scheduler's own stack */
void sched_drop(void);
void co_start(enum co_kind kind, int nr, void (*fn)(int nr));
bool co_runs(enum co_kind kind, int nr);
/* Tells whether one of that kind runs. */
bool co_is(enum co_kind kind);
/* Lets others go on. */
void co_yield (void);
/* The same for one that only looks whether something has come: sooner if there is something on the ring (NULL: none). */
void co_poll(struct ring *r);
/* Goes on when *flag is set, and its port is not in the middle of something. */
void co_wait(const bool *flag, int port);
void co_wait_ring(struct ring *r);
/* What it waits for next takes no longer than that. */
void co_until(uint64_t wait_ns);
/* One thing happens.  False: nothing can. */
bool sched_step(void);

/* Exhaustive runs of several disks: who goes next is not left to chance.  All take turns, in one order; whose turn it is at one of the
 * decisions stands still from there on until nobody else can do anything. */
struct schedule {
	bool is_on;
	uint64_t decisions; /* so far */
	int64_t hold_at;    /* -1: nobody */
	bool was_held;      /* that was somebody who could do something */
	int last, held;     /* who had the last turn; who stands still: -1 */
	uint64_t until;     /* decision at which he goes on in any case */
};
extern struct schedule sim_schedule;

/* ---- model.c ---- */

enum op_kind {
	OP_PUT,
	OP_DEL,
	OP_MAKE,
	OP_REMOVE,
	OP_CREATE,
	OP_PART,
	OP_COMPLETE,
	OP_ABORT,
	OP_ATTRS,
	OP_BATTRS
};

/* One attempted change. */
struct sim_op {
	enum op_kind kind;
	int bucket, key; /* key -1: the bucket */
	uint32_t size;
	uint32_t attrs_len;
	struct store_pre pre;
	uint32_t may; /* bits of results that were right at some instant since it began */
	bool active, published;
	int answer;
	uint64_t version;
	/* of uploads: their place in the model, and the op that made it */
	int slot, number; /* number: of a part, from 1 */
	uint32_t create;
	uint8_t uid[STORE_UPLOAD_ID_BYTES]; /* OP_CREATE */
	uint32_t part[PARTS_MAX];           /* OP_COMPLETE: the list, by number; 0: not in it */
	uint64_t want;                      /* OP_ATTRS, OP_BATTRS: the version that shall be there */
	uint32_t segs;                      /* bits of segments that its bytes were in at model_places() */
	uint32_t map_segs;                  /* those of its maps */
	bool may_be_dropped;                /* a map is lost: nothing tells where its bytes are */
	bool is_lost;                       /* some of its bytes went with a file */
};
extern struct sim_op ops[OPS_MAX];
extern int op_nr;

struct model {
	bool bucket[BUCKETS];
	uint32_t id[BUCKETS][KEYS_MAX]; /* of the PUT (or completion) whose bytes are there; 0: nothing */
	/* of the op that set the attributes; 0: they are as the bytes came */
	uint32_t attr[BUCKETS][KEYS_MAX], battr[BUCKETS];
	uint32_t up[UPS_MAX], part[UPS_MAX][PARTS_MAX]; /* ops */
};
extern struct model model;

void model_begin(void);
/* With -v: where what was seen is not what the model says. */
void model_tell_difference(const struct model *seen);
struct store_etag model_etag(uint32_t id);
/* Returns the expiry of the object of an operation: some have one, which no history reaches. */
static inline uint64_t
sim_expiry(uint32_t id)
{
	return id % 4 == 1 ? UINT64_MAX : 0;
}
uint32_t model_id(const struct store_etag *e);
void model_fill(void *mem, size_t len, uint32_t id, uint64_t off);
/* The bytes of an object, which parts may have made; off is on a granule of its part. */
void model_bytes(void *mem, size_t len, uint32_t id, uint64_t off);
/* Attributes that an op sets, and which op set these (0: none did). */
uint32_t model_attrs(void *mem, uint32_t len, uint32_t id);
uint32_t model_attrs_id(const void *attrs, uint32_t len);
/* The op that made the upload. */
uint32_t model_upload_of(const uint8_t *uid);
/* The version that an op wrote, seen. */
void model_version_seen(uint32_t id, uint64_t version);
/* A place for another upload, or -1. */
int model_free_slot(void);
/* Counts what the index holds into a book, as a start does. */
int model_recount(struct vol *vol, struct quota_book *book);
/* The books agree with the model; recount: with the index, too. */
void model_quota(struct store *st, bool recount);
/* A change begins, or ended with that outcome. */
void model_op_begin(int op);
/* A client reads the object of that operation from now on; 0: none any more. */
void model_reads(int client, uint32_t id);
void model_op_over(int op, int result);
/* The leader's block is being written, and was flushed. */
void model_block(struct vol *vol);
void model_published(struct vol *vol);
/* Counts a write of the leader's block, announced by model_block(), that finds no room. */
void model_block_refused(void);
/* The process is gone: what was begun is open. */
void model_process_over(void);
/* Returns true, at rest, unless a block failed for other reasons than a log without room: what such a block names keeps its space until a
 * restart. */
bool model_is_known(void);
/* After a start: exactly the published state, and the block that was on its way up to some record. */
void model_recovered(struct store *st, struct store_port *p);
/* The next start may find anything that is whole: a repair cut the log. */
extern bool model_any_state;
/* ... and objects that are not, if they are told as damaged. */
extern bool model_damaged;
/* A map went with a file, so a chunk or part that is named may be absent. */
extern bool model_lost_map;
/* Notes in which segments the bytes of each object and part are.  Returns the bits of all segments that any record names. */
uint32_t model_places(const struct vol *vol);
/* Bits of segments that a record, or a chunk or part that it names, has bytes in; maps: those of its maps are added. */
uint32_t sim_segs_of(const struct vol *vol, const uint8_t *key, size_t len, const struct rec *r,
		     uint32_t *maps);
/* Those segments are lost.  Returns the number of objects and parts that lose bytes. */
unsigned model_lose(uint32_t segs);
/* Returns true if some bytes of the object, or of one of its parts, are lost. */
bool model_is_lost(uint32_t id);
/* Lists everything: published state, at once. */
void model_list(struct store_port *p, struct model *ret);
/* No unit has two owners, and what has none is free; at rest the same for chunks. */
void model_space(struct store *st, const char *when, bool at_rest);
const char *bucket_name(int b);
const char *key_name(int k);

/* ---- client.c ---- */

extern int ops_left;
void clients_begin(void);
void clients_start(void);
bool clients_over(void);
int client_op_of(const struct commit *c);
/* uploads.c */
struct client;
void upload_op(struct client *c, int b, int k);
/* An upload with some parts. */
void upload_prepare(struct client *c);
void attrs_op(struct client *c, int b, int k);
/* Reads everything the model has; as client 0. */
void client_verify(int nr);
/* Makes a bucket and some objects; as client 0. */
void client_prepare(int nr);
/* A store at rest takes a PUT, if there is room for it, and a delete; as client 0. */
void client_can_write(int nr);
/* A store whose file system has had no room takes a PUT as soon as there is room; as client 0. */
void client_finds_room(int nr);
/* Deletes all there is, which nothing may refuse, and puts into what is empty then; as client 0. */
void client_can_empty(int nr);

/* ---- history.c ---- */

struct sim_result {
	bool failed;
	uint64_t seed, hash;
	char what[512];
};
extern struct sim_result outcome;
extern struct store *sim_store; /* NULL: not open */
extern bool sim_disk_may_fail;

struct plan {
	/* exhaustive: cut at that step of the first life (-1: by chance), what is kept, and the same in the
	 * recovery behind it */
	int64_t cut_step, recovery_step;
	uint64_t mask, recovery_mask;
	/* ... then the store is of an earlier format version, and cut at that step of the upgrade (-1: it runs to its
	 * end), which keeps what recovery_mask says */
	bool is_upgrade;
	int64_t upgrade_step;
	uint64_t ret_upgrade_steps;
	/* ... or that page of all files cannot be read any more at the start behind it, which goes on or says which
	 * one it is, and goes on behind a repair; ret_sectors: there were so many */
	bool is_sector;
	uint64_t sector, ret_sectors;
	int end; /* 0: a clean stop; 1: a kill; 2: a cut */
	bool is_exact;
	uint64_t ret_steps, ret_recovery_steps;
	unsigned ret_units, ret_recovery_units;
};

struct vol *sim_vol(void);
/* Bits of segments that a snapshot is in. */
uint32_t sim_snapshot_segs(const struct vol *vol);
/* A superblock without a table, and the files of a disk that has it. */
struct super sim_super(void);
void sim_make_disk(int disk, const struct super *sb);
/* Goes on until done() (true), or for so many steps; 0: however long that takes. */
bool sim_go(bool (*done)(void), uint64_t life);
/* Exhaustive runs of several disks: what follows what makes a difference to a cut, or to a client.  Behind that one of them sim_go() ends;
 * behind that one a disk fails. */
struct events {
	bool is_on;
	uint64_t nr, last; /* so far; what told of the last */
	int64_t cut_at;    /* -1: none */
	int64_t fail_at;
	int fails; /* -1: none */
};
extern struct events sim_events;
/* many.c: a history of a set. */
void many_run(void);
/* What clients were told, as a number that grows; and a disk fails. */
uint64_t many_told(void);
void many_fail(int disk);

/* many_exact.c: short histories of two or three disks, each with one cut and a start without one of the disks behind it. */
struct many_plan {
	int scenario;
	int64_t hold_at, cut_at, fail_at, start_cut_at;
	uint64_t mask, start_mask;
	int missing; /* -1: none */
	/* how many there are of each; pages that a cut may keep or not */
	uint64_t ret_decisions, ret_events, ret_start_events;
	unsigned ret_units, ret_start_units;
	bool ret_was_held, ret_was_cut, ret_start_was_cut;
};
void many_exact(struct many_plan *p);
void many_exact_profile(int scenario);
/* NULL: there is no such scenario. */
const char *many_exact_name(int scenario);
bool many_exact_fails(int scenario);
int many_exact_disks(int scenario);
void profile_for_exact(int disks, unsigned two, bool moves);
/* Runs it; what came of it is in outcome. */
void history_run_exact(uint64_t seed, struct many_plan *p);
_Noreturn void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Runs one history; what came of it is in outcome. */
void history_run(uint64_t seed, struct plan *plan);
/* Chooses prof by seed, or the fixed one of a hunt. */
void profile_choose(uint64_t seed);
/* The same of several disks. */
void profile_choose_many(uint64_t seed);
void profile_for_rule(enum sim_rule rule);

struct sim_counts {
	uint64_t histories, uploads, parts, completed, repeated, aborted, attrs, starts, cuts, kills, cleans,
		puts, gets, dels, records_open, snapshots, refused, io_errors, rots, laps, no_space, not_now,
		repairs, healed, storm_starts, late_writes, soft, given_up, maps, map_lists, beats,
		host_waits, over_quota, index_full, packed, moves, sectors, sectors_told, drains, drained,
		added, cancels, slots_moved, put_back, missed, read_second, repaired, compared,
		copies_changed, older, quotas, to_one, no_room, found_room, lost_files, lost_objects,
		lost_reads;
};
extern struct sim_counts counts;

#endif
