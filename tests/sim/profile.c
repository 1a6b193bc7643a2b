/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of histories, see sim.h. */
#include "tests/sim/sim.h"

static struct profile
general(void)
{
	return (struct profile){ .ports = 2,
				 .clients = 4,
				 .keys = 4,
				 .ops = 24,
				 .lives = 3,
				 .seg_nr = 5,
				 .segs_there = 5,
				 .log_bytes = 128u << 10,
				 .index_bytes = 4u << 20,
				 .flush_covers_all = true,
				 .clean = 4,
				 .cut_in_recovery = 4,
				 .slow = 8,
				 .size_inline = 4,
				 .size_small = 6,
				 .size_mid = 3,
				 .size_large = 2,
				 .size_huge = 1,
				 .w_put = 10,
				 .w_del = 4,
				 .w_get = 5,
				 .w_list = 1,
				 .w_bucket = 1,
				 .w_upload = 3,
				 .w_attrs = 2,
				 .second = 5,
				 .pre = 4,
				 .abort = 16,
				 .hold = 16,
				 .forge = 40,
				 .kill = 3,
				 .helper_weight = 24,
				 .time_weight = 1 };
}

static void
profile_for_full(void)
{
	prof.seg_nr = prof.segs_there = 2;
	prof.keys = KEYS_MAX;
	prof.second = 2;
	prof.ballast = 1;
	prof.size_equal = 0;
	prof.size_inline = 10;
	prof.size_huge = prof.size_large = 6;
	prof.w_put = 30;
	prof.w_del = 2;
	prof.w_get = prof.w_upload = prof.w_attrs = 1;
	prof.pre = 0;
	prof.ops = 200;
}

/* An index that is full long before the disk: of records that are large, and of many sizes. */
static void
profile_for_full_index(void)
{
	prof.index_bytes = 18u << 16;
	prof.keys = KEYS_MAX;
	prof.second = 2;
	prof.ballast = 1;
	prof.size_equal = 0;
	prof.size_small = 2;
	prof.size_mid = prof.size_large = prof.size_huge = 0;
	prof.pack_rate = 0;
	prof.seg_nr = prof.segs_there = 8;
	prof.log_bytes = 256u << 10;
	prof.w_put = 30;
	prof.w_del = 4;
	prof.w_get = prof.w_upload = 1;
	prof.pre = 0;
	prof.ops = 120;
}

static void
profile_for_packs(void)
{
	prof.pack_rate = 1 << 30;
	prof.keys = KEYS_MAX;
	prof.clients = CLIENTS_MAX;
	prof.second = 8;
	prof.size_equal = 700 + (uint32_t)(prof.log_bytes >> 17) * 300;
	prof.seg_nr = prof.segs_there = 2;
	prof.w_put = 20;
	prof.w_del = 8;
	prof.w_get = 8;
	prof.ops = 80;
}

/* Everything in a proportion of its own: some of it much, some of it never.  What few have thought of
 * together is found this way (Groce and others, "Swarm testing", 2012). */
static void
swarm(uint64_t h)
{
	static const uint32_t weights[] = { 0, 1, 4, 16 }, faults[] = { 0, 0, 0, 0, 0, 40, 200, 800 };
	uint32_t *const weight[] = { &prof.w_put,       &prof.w_del,      &prof.w_get,      &prof.w_bucket,
				     &prof.w_upload,    &prof.w_attrs,    &prof.size_small, &prof.size_mid,
				     &prof.size_inline, &prof.size_large, &prof.size_huge };
	uint32_t *const fault[] = { &prof.eio_write, &prof.eio_flush, &prof.eio_read };

	for (size_t i = 0; i < sizeof weight / sizeof *weight; i++, h >>= 2)
		*weight[i] = weights[h & 3];
	prof.w_put += prof.w_del == 0;
	h *= 0x9e3779b97f4a7c15u;
	for (size_t i = 0; i < sizeof fault / sizeof *fault; i++, h >>= 3)
		*fault[i] = faults[h & 7];
	prof.second = 2 + (h & 3);
	prof.seg_nr = 2 + (h >> 2 & 7) % 7;
	prof.segs_there = 1 + (uint32_t)(h >> 5 & 7) % prof.seg_nr;
	prof.ops = 10 + (int)(h >> 8 & 127);
	prof.pre = 1 + (uint32_t)(h >> 15 & 7);
	prof.abort = 2 + (uint32_t)(h >> 18 & 31);
	prof.hold = 1 + (uint32_t)(h >> 23 & 31);
	prof.storm = h >> 28 & 3 ? 0 : 6;
	prof.soft = h >> 30 & 3 ? 0 : 30;
}

/* Chosen as in profile_choose_many(). */
void
profile_choose(uint64_t seed)
{
	uint64_t h = (seed + 1) * 0x9e3779b97f4a7c15u;

	h ^= h >> 31;
	prof = general();
	prof.ports = 1 + (int)(h >> 8 & 0xff) % PORTS_MAX;
	prof.clients = 1 + (int)(h >> 16 & 0xff) % CLIENTS_MAX;
	prof.keys = 1 + (int)(h >> 24 & 0xff) % 6;
	prof.flush_covers_all = (h >> 32 & 3) != 0;
	prof.helper_weight = (h >> 34 & 3) ? 24 : 1;
	prof.time_weight = (h >> 38 & 3) ? 1 : 16;
	prof.log_bytes = (h >> 36 & 3) ? 128u << 10 : 256u << 10;
	prof.is_device = (h >> 56 & 3) == 0;
	if (h >> 20 & 1) {
		prof.copied = 1 + (uint32_t)(h >> 21 & 3) * 8;
		prof.copied_how = h >> 23 & 1 ? ODD_HOLE : ODD_SHARED;
		prof.copied_again = h >> 60 & 1 ? 2 : 0;
	}
	if ((h >> 52 & 3) != 0)
		prof.pack_rate = (uint64_t)1 << ((h >> 52 & 3) == 1 ? 22 : 30);
	prof.size_equal = (h >> 58 & 7) == 0 ? 4096 + (uint32_t)(h >> 61) * 2500 : 0;
	if ((h >> 44 & 3) == 0)
		prof.quota = (struct store_use){ BUCKETS + 1 + (h >> 47 & 3), 20000 + (h >> 49 & 0xff) * 400,
						 1 + (h >> 57 & 1) };
	prof.no_room = (h >> 11 & 7) == 0 ? 20 + (uint32_t)(h >> 54 & 3) * 100 : 0;
	prof.lost = (h >> 14 & 7) == 0 && !prof.is_device ? 3 : 0;
	switch ((h >> 40 & 0xff) % 15) {
	case 0: /* many small records: the log wraps */
		prof.size_small = prof.size_mid = prof.size_large = prof.size_huge = 0;
		prof.ops = 120;
		prof.size_inline = 20;
		prof.size_small = 2;
		break;
	case 1: /* a disk that is nearly full, and grows */
		prof.seg_nr = 2 + (h >> 48 & 1);
		prof.segs_there = 1;
		prof.keys = 6;
		prof.size_huge = 6;
		prof.size_large = 4;
		prof.w_del = 2;
		prof.ops = 50;
		break;
	case 2: /* chunked objects */
		prof.size_huge = 8;
		prof.seg_nr = prof.segs_there = 8;
		break;
	case 14: /* an index that is full */
		profile_for_full_index();
		break;
	case 13: /* small objects, which are moved together, and what is left of them again */
		profile_for_packs();
		break;
	case 12: /* full of data, and of records that grow */
		profile_for_full();
		prof.ballast = 1 + (uint32_t)(h >> 48 & 1);
		break;
	case 11: /* a kernel without memory, now and then */
		prof.soft = 12;
		prof.is_device = false;
		break;
	case 3: /* a disk that fails */
		prof.eio_write = 60;
		prof.eio_flush = 40;
		prof.eio_read = 200;
		break;
	case 4: /* one key, preconditions, many at once */
		prof.keys = 1 + (int)(h >> 48 & 1);
		prof.clients = CLIENTS_MAX;
		prof.pre = 2;
		prof.w_bucket = 4;
		break;
	case 5: /* short lives */
		prof.lives = LIVES_MAX;
		prof.ops = 8;
		prof.cut_in_recovery = 2;
		prof.storm = 6;
		break;
	case 7: /* uploads */
		prof.w_upload = 30;
		prof.w_attrs = 4;
		prof.keys = 1 + (int)(h >> 48 & 1);
		prof.seg_nr = prof.segs_there = 8;
		prof.size_huge = 2;
		prof.ops = 60;
		break;
	case 8: /* the second bucket comes and goes, with attributes and uploads */
		prof.second = 2;
		prof.keys = 1;
		prof.clients = CLIENTS_MAX;
		prof.w_bucket = 16;
		prof.w_attrs = 14;
		prof.w_upload = 6;
		prof.w_put = 3;
		prof.w_del = 6;
		prof.ops = 80;
		break;
	case 6: /* rot */
		prof.rot = 2;
		prof.lost = 0;
		prof.forge = 0; /* what rots shall be a block */
		prof.ops = 60;
		break;
	case 9:
	case 10:
		swarm(h * 0x9e3779b97f4a7c15u);
		break;
	default:
		break;
	}
}

/* Of several disks, of which some are away now and then. */
static void
profile_for_many(int disks)
{
	prof = general();
	prof.disks = disks;
	prof.lives = 8;
	prof.ops = 30;
	prof.seg_nr = prof.segs_there = 3;
	prof.index_bytes = 4u << 20;
	prof.cut_in_recovery = 3;
	prof.log_bytes = 256u << 10;
	prof.w_put = 10;
	prof.w_del = 6;
	prof.w_get = 4;
	prof.w_bucket = 8;
	prof.w_attrs = 3;
	prof.w_upload = 0;
}

/* Of disks that may fail one does so once in that many writes or flushes; of superblocks sooner, as the table is written then. */
static void
prof_fails(uint32_t odds)
{
	prof.eio_write = prof.eio_flush = odds;
	prof.eio_super = 4;
}

/* Disks that come and go. */
static void
profile_for_moves(int disks, int spare)
{
	prof.disks = disks;
	prof.spare = spare;
	prof.moves = 4;
	prof.look_hold = 8;
	prof.ops = 80;
	prof.lives = 4;
	prof.seg_nr = prof.segs_there = 5;
}

bool sim_pairs, sim_no_room, sim_lost;

/* Buckets with two copies, of more disks than one. */
static void
profile_for_pairs(unsigned two, bool rots)
{
	prof.two = two;
	prof.ops = 50;
	prof.seg_nr = prof.segs_there = 6;
	if (prof.disks < 2)
		prof.disks = 2;
	prof.w_get = 8;
	prof.lacks = 2;
	if (prof.eio_write)
		prof.eio_read = 10;
	if (rots) {
		prof.two = 3;
		prof.rot = 2;
		prof.abort = 0;
		prof.slow = prof.eio_write = prof.eio_flush = prof.eio_super = prof.eio_read = 0;
		/* Nobody mends parts of uploads in progress: what moves one that has rotted stands still, and says so. */
		if (prof.moves)
			prof.w_upload = 0;
	}
}

/* A disk is put back from a copy, now and then. */
static void
profile_for_older(void)
{
	prof.two = 3;
	prof.older = 2;
	prof.abort = 0;
	prof.eio_write = prof.eio_flush = prof.eio_super = prof.eio_read = 0;
}

/* Segments are lost, of objects with one copy.  What a part of an upload in progress loses, its completion would not know. */
static void
profile_for_lost(void)
{
	prof.lost = 3;
	prof.w_upload = 0;
	prof.w_get = 10;
	prof.slow = prof.eio_write = prof.eio_flush = prof.eio_super = prof.eio_read = 0;
}

/* Few clients that do one thing each, and nothing goes wrong but what is said. */
void
profile_for_exact(int disks, unsigned two, bool moves)
{
	profile_for_many(disks);
	if (moves)
		profile_for_moves(disks, 0);
	prof.two = two;
	prof.look_hold = prof.slow = 0;
	prof.cut_in_recovery = prof.abort = 0;
	prof.ports = 2;
	prof.seg_nr = prof.segs_there = 3;
	prof.index_bytes = 2u << 20;
	prof.flush_covers_all = true;
}

/* Chosen by the first random numbers of the history's seed, not from its stream. */
void
profile_choose_many(uint64_t seed)
{
	uint64_t h = (seed + 1) * 0x9e3779b97f4a7c15u;

	h ^= h >> 31;
	profile_for_many(1 + (int)(h >> 8 & 3));
	prof.ports = 1 + (int)(h >> 16 & 0xff) % PORTS_MAX;
	prof.helper_weight = (h >> 34 & 3) ? 24 : 1;
	prof.abort = (h >> 24 & 3) ? 8 : 0;
	prof.slow = (h >> 26 & 1) ? 8 : 0;
	prof.flush_covers_all = (h >> 28 & 1) != 0;
	prof.w_bucket = (h >> 30 & 1) ? 8 : 1;
	prof.lives = (h >> 32 & 1) ? LIVES_MAX : 4;
	prof.w_upload = (h >> 40 & 3) * 6;
	if (h >> 36 & 1)
		prof_fails((h >> 37 & 1) ? 20 : 80);
	if ((h >> 42 & 0xff) % 3 == 0 && (sim_pairs || !sim_lost))
		profile_for_moves(2 + (int)(h >> 50 & 0xff) % 3, (int)(h >> 58 & 1));
	if (sim_pairs && ((h >> 12 & 0xff) % 3 == 0 || sim_lost))
		profile_for_pairs(1 + (unsigned)(h >> 60 & 0xf) % 3, (h >> 44 & 3) == 0 || sim_lost);
	if (prof.two && !prof.moves && !prof.rot && (h >> 46 & 1))
		profile_for_older();
	if ((h >> 10 & 3) == 0)
		prof.w_quota = 4;
	h *= 0x9e3779b97f4a7c15u;
	if ((sim_lost || (h >> 55 & 7) == 0) && prof.rot)
		prof.lost = 3;
	else if ((sim_lost || (h >> 55 & 7) == 0) && !prof.moves && !prof.two)
		profile_for_lost();
	if ((sim_no_room || h >> 61 == 0) && !prof.rot && !prof.older)
		prof.no_room = 10 + (uint32_t)(h >> 58 & 3) * 30;
}

static void
profile_for_attrs(void)
{
	prof.w_attrs = 10;
	prof.keys = 2;
	prof.clients = CLIENTS_MAX;
	prof.size_inline = 0;
	prof.seg_nr = prof.segs_there = 3;
	prof.w_get = 12;
	prof.ops = 80;
}

/* Writes, and cuts in the middle of them, one after the other. */
static void
profile_for_cuts(void)
{
	prof.w_get = prof.w_list = prof.w_bucket = prof.w_attrs = prof.w_upload = 0;
	prof.kill = prof.clean = 0;
	prof.lives = LIVES_MAX;
}

static void
profile_for_reuse(void)
{
	prof.keys = 2;
	prof.clients = CLIENTS_MAX;
	prof.ports = PORTS_MAX;
	prof.hold = 1;
	prof.size_inline = 0;
	prof.seg_nr = prof.segs_there = 2;
	prof.w_get = 12;
	prof.ops = 80;
}

static void
profile_for_copies(void)
{
	profile_for_cuts();
	prof.copied = 1;
	prof.copied_how = ODD_SHARED;
	prof.copied_again = 2;
	prof.seg_nr = prof.segs_there = 2;
	prof.size_equal = 6000;
	prof.clients = CLIENTS_MAX;
}

/* What a killed process had not flushed, and a cut within the start behind it. */
static void
profile_for_starts(void)
{
	prof.kill = 2;
	prof.cut_in_recovery = 2;
	prof.clients = CLIENTS_MAX;
	/* Else other flushes of a start cover the first one. */
	prof.flush_covers_all = false;
	prof.clean = 0;
	prof.ops = 12;
	prof.lives = LIVES_MAX;
}

/* Snapshot after snapshot. */
static void
profile_for_snapshots(void)
{
	prof.size_small = prof.size_mid = prof.size_large = prof.size_huge = 0;
	prof.forge = 0;
	prof.ops = 120;
}

static void
profile_for_pairs_rule(enum sim_rule rule)
{
	bool fails = rule == SIM_AWAY_BEFORE_COPY_ANSWER || rule == SIM_SETTLED_VISIBLE ||
		     rule == SIM_BOTH_TABLES || rule == SIM_SAME_VERSION_READ;

	/* Of five a start may lack both disks of a slot. */
	profile_for_many(rule == SIM_BOTH_AWAY_KEEP_FULL ? 5 : rule == SIM_BOTH_TABLES ? 2 : 3);
	if (fails)
		prof_fails(20);
	profile_for_pairs(3, false);
	prof.lives = LIVES_MAX;
	prof.w_bucket = 1;
	prof.w_get = 16;
	if (rule == SIM_BEHIND_IS_AWAY)
		profile_for_older();
	if (fails)
		prof.slow = 4;
	if (rule == SIM_SAME_VERSION_READ) {
		/* Reads fail, and little else, while what they read is replaced. */
		prof.eio_read = 3;
		prof.eio_write = prof.eio_flush = 4000;
		prof.eio_super = prof.slow = 0;
		prof.w_put = 16;
		prof.w_del = 1;
	}
	if (rule == SIM_BOTH_TABLES) {
		/* The first fails right after it has made a change, and who waits for that is slow to hear of it: his core stands still. */
		prof.eio_write = prof.eio_flush = 16;
		prof.ports = PORTS_MAX;
		prof.stall = 60;
		prof.ops = 30;
		prof.w_bucket = 3;
		prof.w_put = 60;
		prof.w_upload = prof.w_attrs = 2;
	}
	if (rule == SIM_BOTH_AWAY_KEEP_FULL) {
		prof.ops = 8;
		prof.cut_in_recovery = 12;
	}
}

/* Objects of parts that go back and forth, and readers who still have what went when it is there again. */
static void
profile_for_back(void)
{
	profile_for_many(3);
	profile_for_moves(3, 0);
	prof.moves = 1;
	prof.swings = true;
	prof.read_hold = 6000;
	prof.life = 20000;
	prof.ops = 200;
	prof.lives = 1;
	prof.w_upload = 40;
	prof.w_get = 20;
	prof.w_bucket = 6;
	prof.w_put = prof.w_del = 1;
	prof.w_attrs = 0;
}

/* The only disk of a store fails while another one becomes a member. */
static void
profile_for_members(void)
{
	profile_for_many(2);
	profile_for_moves(2, 1);
	prof.moves = 1;
	prof.swings = true;
	/* Who looks for the new one may be told of another path. */
	prof.unlisted = 1;
	prof_fails(4000);
	prof.eio_super = 3;
	prof.w_bucket = prof.w_attrs = 20;
	prof.w_put = prof.w_del = 2;
}

/* Bounds that are nearly reached, and PUTs on all disks at once. */
static void
profile_for_quotas(void)
{
	profile_for_many(3);
	prof.w_quota = 3;
	prof.w_put = 30;
	prof.w_del = 10;
	prof.w_bucket = 1;
	prof.w_attrs = 0;
	prof.lives = 4;
	prof.ops = 60;
}

void
profile_for_rule(enum sim_rule rule)
{
	prof = general();
	switch (rule) {
	case SIM_LOCK_EVERY_FILE:
		prof.kill = 1;
		prof.clean = 0;
		/* Late writes of data, too, and little room beside what they go to. */
		prof.size_inline = 0;
		prof.size_large = prof.size_huge = 0;
		prof.size_mid = 20;
		prof.seg_nr = prof.segs_there = 2;
		prof.clients = CLIENTS_MAX;
		prof.slow = 4;
		prof.ops = 30;
		prof.lives = LIVES_MAX;
		break;
	case SIM_SUPER_OLDER_COPY:
		/* Cut in the middle of writing the only one that is ever written, and the other one's log has
		 * been written over. */
		profile_for_cuts();
		prof.size_small = prof.size_mid = prof.size_large = prof.size_huge = 0;
		prof.forge = 0;
		prof.ops = 120;
		prof.cut_in_recovery = 2;
		break;
	case SIM_CHUNKS_AFTER_MANIFEST:
	case SIM_MANIFEST_AFTER_CHUNKS:
	case SIM_COLLECT_ONLY_ENDED:
		prof.size_huge = 10;
		prof.seg_nr = prof.segs_there = 8;
		break;
	case SIM_LARGE_FLUSHED_FIRST:
		prof.size_large = 20;
		break;
	case SIM_PARTS_MAP_FLUSHED_FIRST:
		profile_for_cuts();
		prof.w_upload = 40;
		prof.w_del = 0;
		prof.w_put = 0;
		prof.keys = 1;
		prof.clients = CLIENTS_MAX;
		prof.seg_nr = prof.segs_there = 8;
		prof.size_huge = prof.size_large = prof.size_mid = prof.size_inline = 0;
		prof.pre = prof.abort = 0;
		break;
	case SIM_JUDGE_PENDING:
		prof.keys = 1;
		prof.clients = CLIENTS_MAX;
		prof.pre = 2;
		break;
	case SIM_LOG_NONCE:
	case SIM_EPOCH_KEYED_OLD:
		prof.clients = 1;
		prof.forge = 1;
		prof.size_small = prof.size_mid = prof.size_large = prof.size_huge = 0;
		prof.w_get = prof.w_list = prof.w_bucket = 1;
		prof.kill = 0;
		break;
	case SIM_REUSE_STAMPED:
		profile_for_cuts();
		prof.keys = 1;
		prof.clients = CLIENTS_MAX;
		/* What is put into a space that was given back too early fits into it. */
		prof.size_equal = 6000;
		prof.seg_nr = prof.segs_there = 1;
		prof.pre = prof.abort = 0;
		break;
	case SIM_PIN_BYTES:
		profile_for_attrs();
		break;
	case SIM_REUSE_QUIESCENT:
	case SIM_REUSE_UNPINNED:
		profile_for_reuse();
		break;
	case SIM_REUSE_WRITES_OVER:
		prof.eio_write = 20;
		prof.data_faults_only = true;
		prof.seg_nr = prof.segs_there = 2;
		prof.ops = 60;
		prof.size_inline = 0;
		break;
	case SIM_EPOCH_BEFORE_SERVING:
	case SIM_BEFORE_BLOCK_FLUSHED:
		profile_for_starts();
		break;
	case SIM_BEFORE_FLUSH:
	case SIM_BEFORE_BLOCK:
		profile_for_starts();
		prof.w_get = prof.w_list = prof.w_bucket = prof.w_attrs = prof.w_upload = prof.pre = 0;
		prof.size_inline = prof.size_large = prof.size_huge = 0;
		prof.slow = 3;
		if (rule == SIM_BEFORE_FLUSH)
			prof.at_log = 4;
		break;
	case SIM_BEFORE_SUPER:
		prof.rot = 1;
		prof.forge = 0;
		prof.kill = 0;
		break;
	case SIM_SUPER_FLUSHED:
		profile_for_cuts();
		profile_for_snapshots();
		prof.flush_covers_all = false;
		break;
	case SIM_SUPER_NEWER_FLUSHED:
		profile_for_starts();
		prof.storm = 2;
		prof.at_super = 3;
		break;
	case SIM_END_IS_KNOWN:
		prof.rot = 1;
		prof.forge = 0;
		prof.kill = 0;
		prof.ops = 12;
		break;
	case SIM_TAIL_PREFIX:
		/* Blocks of several records, whose data is not flushed. */
		profile_for_cuts();
		prof.clients = CLIENTS_MAX;
		prof.ports = 1;
		prof.keys = 6;
		prof.pre = prof.abort = prof.forge = 0;
		prof.size_large = prof.size_huge = 0;
		prof.size_small = prof.size_mid = 10;
		prof.size_inline = 6;
		break;
	case SIM_QUOTA_PENDING:
		prof.quota = (struct store_use){ BUCKETS + 3, 20000, 1 };
		prof.clients = CLIENTS_MAX;
		prof.size_large = prof.size_huge = 0;
		prof.w_upload = prof.w_del = 8;
		prof.pre = 0;
		break;
	case SIM_GROW_WITH_ROOM:
		profile_for_full();
		prof.kill = 0;
		prof.w_del = prof.w_get = prof.w_upload = prof.w_attrs = 0;
		prof.size_small = prof.size_mid = 0;
		prof.size_inline = 12;
		prof.clients = 1;
		prof.ops = 300;
		break;
	case SIM_START_EXTENDS:
		profile_for_full_index();
		break;
	case SIM_PACK_NEVER_REWRITES:
		profile_for_packs();
		prof.kill = prof.clean = 0;
		prof.w_upload = prof.w_list = prof.w_bucket = prof.w_attrs = 0;
		prof.w_del = 14;
		prof.lives = LIVES_MAX;
		break;
	case SIM_PACK_LAST_FREES:
		profile_for_packs();
		break;
	case SIM_TRIM_TO_PREVIOUS:
		/* The newest snapshot rots, and the log that goes back to the one before has been written
		 * over: by a helper that is slow enough. */
		prof.rot = 1;
		prof.forge = 0;
		prof.kill = 0;
		prof.helper_weight = 1;
		prof.size_small = prof.size_mid = prof.size_large = prof.size_huge = 0;
		prof.ops = 200;
		prof.lives = 4;
		break;
	case SIM_DAMAGE_STOPS:
		prof.rot = 1;
		prof.forge = 0;
		prof.ops = 80;
		prof.kill = 0;
		break;
	case SIM_TOUCHED_FILES_FLUSHED:
		profile_for_copies();
		prof.helper_weight = 1;
		break;
	case SIM_MEND_UNWRITTEN:
		profile_for_copies();
		prof.copied_how = ODD_HOLE;
		prof.copied_again = 0;
		break;
	case SIM_MEND_CLAIMS:
		profile_for_copies();
		prof.copied_how = ODD_HOLE;
		prof.copied_again = 0;
		prof.seg_nr = prof.segs_there = 1;
		prof.size_equal = 0;
		prof.size_large = prof.size_huge = prof.size_inline = 0;
		prof.keys = 12;
		prof.w_del = 10;
		prof.helper_weight = 2;
		break;
	case SIM_FLUSHED_BEFORE_LOOKED_AT:
		/* One page of few, written by one process and not flushed, looks well to the next. */
		profile_for_copies();
		prof.copied = 24;
		prof.kill = 2;
		break;
	case SIM_REWRITTEN_FLUSHED:
		profile_for_copies();
		prof.copied = 24;
		prof.helper_weight = 60;
		prof.time_weight = 16;
		break;
	case SIM_FLUSH_ERRORS_SHARED:
		/* The helper flushes, for snapshots, while the leader does. */
		profile_for_cuts();
		profile_for_snapshots();
		prof.log_bytes = 64u << 10;
		prof.eio_flush = 20;
		prof.lives = 6;
		prof.clients = CLIENTS_MAX;
		prof.pre = 0;
		prof.slow = 3;
		prof.ops = 80;
		break;
	case SIM_FAILED_IS_FINAL:
		prof.eio_flush = 10;
		prof.size_large = 10;
		break;
	case SIM_TABLE_NEWEST:
	case SIM_QUORUM:
	case SIM_HALF_ONLY_IF_ALL_IN:
	case SIM_START_NO:
	case SIM_TABLE_ALL:
	case SIM_TABLE_IN_BOTH:
	case SIM_TABLE_REDO:
	case SIM_TABLE_REDO_SERVING:
	case SIM_ONE_CHANGE:
	case SIM_MISSING_IS_503:
	case SIM_TABLE_DECIDES:
	case SIM_BUCKET_ON_ALL:
	case SIM_BUCKETS_FROM_HEAD:
	case SIM_GATE_ALL_PRESENT:
	case SIM_GATE_CLOSED:
	case SIM_GATE_PENDING:
	case SIM_GATE_FORWARD:
	case SIM_OLDER_THAN_BUCKET:
	case SIM_HEAD_REMOVES_FIRST:
	case SIM_VERSION_HAS_START:
	case SIM_BELOW_HALF_READ_ONLY:
	case SIM_AWAY_BEFORE_ANSWER:
	case SIM_FAILED_HAS_NO_BUCKETS:
		profile_for_many(
			rule == SIM_QUORUM || rule == SIM_HALF_ONLY_IF_ALL_IN || rule == SIM_TABLE_IN_BOTH ? 2
			: rule == SIM_TABLE_REDO_SERVING                                                   ? 4
							 : 3);
		if (rule == SIM_TABLE_DECIDES)
			prof.abort = 1;
		if (rule == SIM_GATE_FORWARD) {
			prof.w_put = prof.w_get = 4;
			prof.ops = 60;
		}
		if (rule == SIM_VERSION_HAS_START || rule == SIM_HEAD_REMOVES_FIRST)
			prof.w_upload = 20;
		if (rule == SIM_OLDER_THAN_BUCKET) {
			/* Uploads do not keep a bucket, objects do. */
			prof_fails(10);
			prof.lives = LIVES_MAX;
			prof.w_upload = 20;
			prof.w_bucket = 20;
			prof.w_put = 1;
		}
		if (rule == SIM_START_NO || rule == SIM_TABLE_REDO) {
			prof.cut_in_recovery = 2;
			prof.at_super = 12;
			prof.lives = LIVES_MAX;
			prof.ops = 4;
		}
		if (rule == SIM_BELOW_HALF_READ_ONLY || rule == SIM_AWAY_BEFORE_ANSWER ||
		    rule == SIM_FAILED_HAS_NO_BUCKETS || rule == SIM_GATE_FORWARD ||
		    rule == SIM_TABLE_IN_BOTH || rule == SIM_TABLE_REDO_SERVING) {
			prof_fails(10);
			prof.lives = LIVES_MAX;
			prof.w_bucket = 20;
		}
		if (rule == SIM_TABLE_IN_BOTH) {
			/* One goes on alone, and then cannot read what says so. */
			prof.slow = 4;
			prof.eio_super = 3;
			prof.eio_read = 12;
			prof.w_attrs = 20;
			prof.w_put = prof.w_del = 1;
			prof.ops = 12;
		}
		break;
	case SIM_COPY_BEFORE_ANSWER:
	case SIM_AWAY_BEFORE_COPY_ANSWER:
	case SIM_SETTLED_VISIBLE:
	case SIM_ONE_PER_KEY:
	case SIM_FULL_ONLY:
	case SIM_SAME_VERSION_READ:
	case SIM_ALIGN_START:
	case SIM_BOTH_TABLES:
	case SIM_BOTH_AWAY_KEEP_FULL:
	case SIM_BEHIND_IS_AWAY:
		profile_for_pairs_rule(rule);
		break;
	case SIM_MOVE_NOT_COLLECTED:
		profile_for_back();
		break;
	case SIM_MEMBERS_BOTH:
		profile_for_members();
		break;
	case SIM_QUOTA_OF_ALL:
		profile_for_quotas();
		break;
	case SIM_LEFTOVERS_HIDDEN:
	case SIM_MOVE_REMOVES:
	case SIM_ALIGN_REMOVES:
	case SIM_MOVE_WATCH:
	case SIM_MOVE_FREEZE:
	case SIM_REMOVE_AFTER_SWITCH:
		profile_for_many(3);
		profile_for_moves(3, 1);
		break;
	default:
		break;
	}
}
