/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules - the rules that a crash model showed to be needed (marked R in docs/disk-format.md, §2 and §3, and in docs/engine.md; M in docs/set.md, §6), one switch each.
 *
 * Private to src/extent.  Compile-time constants, always 1 in the daemon; only the objects that the
 * simulation builds for itself override one (-DRULE_X=0), so that a test can show that the simulation finds
 * the loss.
 */
#ifndef GANTRY_EXTENT_DISK_RULES_H
#define GANTRY_EXTENT_DISK_RULES_H

/* §2: an exclusive lock on every open file description that is written through. */
#ifndef RULE_LOCK_EVERY_FILE
#define RULE_LOCK_EVERY_FILE 1
#endif
/* §2: of the two superblocks always the older one is written. */
#ifndef RULE_SUPER_OLDER_COPY
#define RULE_SUPER_OLDER_COPY 1
#endif
/* §3: chunks go after their manifest's removal is stamped, everybody was quiescent and nobody pins it. */
#ifndef RULE_CHUNKS_AFTER_MANIFEST
#define RULE_CHUNKS_AFTER_MANIFEST 1
#endif
/* §3: a manifest enters the log after the records of its chunks were flushed. */
#ifndef RULE_MANIFEST_AFTER_CHUNKS
#define RULE_MANIFEST_AFTER_CHUNKS 1
#endif
/* §3: ownerless chunks are collected only of earlier epochs, or of operations known to have ended. */
#ifndef RULE_COLLECT_ONLY_ENDED
#define RULE_COLLECT_ONLY_ENDED 1
#endif
/* §4: preconditions are judged against the index and what is pending, and wait for what they depend on. */
#ifndef RULE_JUDGE_PENDING
#define RULE_JUDGE_PENDING 1
#endif
/* §4: data above the limit, and manifests, enter the log only after a flush that began behind their last
 * write. */
#ifndef RULE_LARGE_FLUSHED_FIRST
#define RULE_LARGE_FLUSHED_FIRST 1
#endif
/* §4: so does the list of a completion that is too long for its record. */
#ifndef RULE_PARTS_MAP_FLUSHED_FIRST
#define RULE_PARTS_MAP_FLUSHED_FIRST 1
#endif
/* §4: the CRC of a log block is keyed with the epoch's nonce. */
#ifndef RULE_LOG_NONCE
#define RULE_LOG_NONCE 1
#endif
/* §4: an epoch block is keyed with the nonce of the epoch it ends (off: of the one it begins). */
#ifndef RULE_EPOCH_KEYED_OLD
#define RULE_EPOCH_KEYED_OLD 1
#endif
/* §4 reuse: the freeing record is covered by a flushed flushed_upto. */
#ifndef RULE_REUSE_STAMPED
#define RULE_REUSE_STAMPED 1
#endif
/* §4 reuse: every port and helper was quiescent since the freeing record was published. */
#ifndef RULE_REUSE_QUIESCENT
#define RULE_REUSE_QUIESCENT 1
#endif
/* §4 reuse: after that, no reader pins it. */
#ifndef RULE_REUSE_UNPINNED
#define RULE_REUSE_UNPINNED 1
#endif
/* §3: where a record has an earlier one's extents, readers pin the version that first had them. */
#ifndef RULE_PIN_BYTES
#define RULE_PIN_BYTES 1
#endif
/* §4 reuse: extents of an aborted PUT only after the last completion of its writes;
 * of a failed write never. */
#ifndef RULE_REUSE_WRITES_OVER
#define RULE_REUSE_WRITES_OVER 1
#endif
/* §5: data, CRC block and map of the records in the tail are read and compared. */
#ifndef RULE_TAIL_VERIFIED
#define RULE_TAIL_VERIFIED 1
#endif
/* §5: the tail is accepted as a prefix: the first record that fails and all behind it are cut. */
#ifndef RULE_TAIL_PREFIX
#define RULE_TAIL_PREFIX 1
#endif
/* §5: a valid block behind the end that reaches past it, or an epoch not reached, is damage. */
#ifndef RULE_DAMAGE_STOPS
#define RULE_DAMAGE_STOPS 1
#endif
/* §5: where the block that is expected cannot be read, the log ends only where it is known that nothing believed was
 * there. */
#ifndef RULE_END_IS_KNOWN
#define RULE_END_IS_KNOWN 1
#endif
/* §5: before serving: flush, epoch block over the cut, flush, superblock, flush: all of it, ... */
#ifndef RULE_EPOCH_BEFORE_SERVING
#define RULE_EPOCH_BEFORE_SERVING 1
#endif
/* ... and each step of it: what was read is flushed before the epoch block believes it, */
#ifndef RULE_BEFORE_FLUSH
#define RULE_BEFORE_FLUSH 1
#endif
/* the epoch block is written over the cut, */
#ifndef RULE_BEFORE_BLOCK
#define RULE_BEFORE_BLOCK 1
#endif
/* and flushed before the superblock says that its epoch had begun; */
#ifndef RULE_BEFORE_BLOCK_FLUSHED
#define RULE_BEFORE_BLOCK_FLUSHED 1
#endif
/* the superblock says it, */
#ifndef RULE_BEFORE_SUPER
#define RULE_BEFORE_SUPER 1
#endif
/* and is flushed, here and behind each snapshot; */
#ifndef RULE_SUPER_FLUSHED
#define RULE_SUPER_FLUSHED 1
#endif
/* before the older superblock is written, the newer one, which a process before this one may have written, is. */
#ifndef RULE_SUPER_NEWER_FLUSHED
#define RULE_SUPER_NEWER_FLUSHED 1
#endif
/* §5: the log is trimmed only to where the previous snapshot's log begins. */
#ifndef RULE_TRIM_TO_PREVIOUS
#define RULE_TRIM_TO_PREVIOUS 1
#endif
/* §4: bounds on what buckets hold are judged against what is counted and what is pending. */
#ifndef RULE_QUOTA_PENDING
#define RULE_QUOTA_PENDING 1
#endif
/* §5: the index grows only as long as there is room for the snapshots of what it grows to. */
#ifndef RULE_GROW_WITH_ROOM
#define RULE_GROW_WITH_ROOM 1
#endif
/* §5: a start may use more memory for the index than what was accepted was judged by. */
#ifndef RULE_START_EXTENDS
#define RULE_START_EXTENDS 1
#endif
/* §3: what is moved together goes to fresh space: nothing that holds bytes of a record is written again. */
#ifndef RULE_PACK_NEVER_REWRITES
#define RULE_PACK_NEVER_REWRITES 1
#endif
/* §3: a unit that several records share is free when the last of them is gone. */
#ifndef RULE_PACK_LAST_FREES
#define RULE_PACK_LAST_FREES 1
#endif
/* §2: where one flush covers the disk, a segment that was touched is flushed itself as long as the file system has
 * no place of its own for all of it. */
#ifndef RULE_TOUCHED_FILES_FLUSHED
#define RULE_TOUCHED_FILES_FLUSHED 1
#endif
/* §2: at start every segment is flushed before it is looked at: what a dead process wrote looks well, and may not
 * be found after a power cut. */
#ifndef RULE_FLUSHED_BEFORE_LOOKED_AT
#define RULE_FLUSHED_BEFORE_LOOKED_AT 1
#endif
/* §2: a segment that looks well is flushed itself once more before it is not any longer. */
#ifndef RULE_REWRITTEN_FLUSHED
#define RULE_REWRITTEN_FLUSHED 1
#endif
/* §2: zeros go into the holes of units to which nobody writes: free ones, and those in use since the start. */
#ifndef RULE_MEND_UNWRITTEN
#define RULE_MEND_UNWRITTEN 1
#endif
/* §2: of these, what is given back meanwhile is free when that is over, and is in use since then if ever again. */
#ifndef RULE_MEND_CLAIMS
#define RULE_MEND_CLAIMS 1
#endif
/* §6, M13: what the table does not give to this disk is not listed, not counted, and not changed by clients. */
#ifndef RULE_LEFTOVERS_HIDDEN
#define RULE_LEFTOVERS_HIDDEN 1
#endif
/* M24: who sends keys to another disk is told of all that changes meanwhile. */
#ifndef RULE_MOVE_WATCH
#define RULE_MOVE_WATCH 1
#endif
/* M25: before the switch writers wait, and what they have begun is told. */
#ifndef RULE_MOVE_FREEZE
#define RULE_MOVE_FREEZE 1
#endif
/* M22: what the source has no more is removed at the target. */
#ifndef RULE_MOVE_REMOVES
#define RULE_MOVE_REMOVES 1
#endif
/* M28: what was sent here again is not collected because it went once before. */
#ifndef RULE_MOVE_NOT_COLLECTED
#define RULE_MOVE_NOT_COLLECTED 1
#endif
/* M26: what is removed behind a move is not this disk's own any more. */
#ifndef RULE_REMOVE_AFTER_SWITCH
#define RULE_REMOVE_AFTER_SWITCH 1
#endif
/* §6, M40: both superblocks have the table before it acts. */
#ifndef RULE_TABLE_IN_BOTH
#define RULE_TABLE_IN_BOTH 1
#endif
/* §6, M20: ids and versions of different starts differ. */
#ifndef RULE_VERSION_HAS_START
#define RULE_VERSION_HAS_START 1
#endif
/* §6, M31c: the gate of a bucket closes when what is pending in it is settled. */
#ifndef RULE_GATE_PENDING
#define RULE_GATE_PENDING 1
#endif
/* §6: a failed flush is told once, to one caller: who flushes beside the leader tells the disk before the
 * leader believes that its own ended well. */
#ifndef RULE_FLUSH_ERRORS_SHARED
#define RULE_FLUSH_ERRORS_SHARED 1
#endif
/* §6: a failed flush or write is final for the disk until a restart. */
#ifndef RULE_FAILED_IS_FINAL
#define RULE_FAILED_IS_FINAL 1
#endif

#endif
