/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules - a switch for each rule that a crash model showed to be needed. The rules are marked R in
 * docs/disk-format.md and docs/engine.md, and M in docs/set.md.
 *
 * Private to src/extent. The switches are constants, always 1. Only the simulation is built with variables in
 * their place (tests/sim/over), so that a test can show that the simulation finds the loss.
 */
#ifndef GANTRY_EXTENT_DISK_RULES_H
#define GANTRY_EXTENT_DISK_RULES_H

/* disk-format.md §1: every open file description used for writing has an exclusive lock. */
#define RULE_LOCK_EVERY_FILE 1
/* disk-format.md §1: a write always replaces the older of the two superblocks. */
#define RULE_SUPER_OLDER_COPY 1
/* disk-format.md §1: the superblocks have the format version that a record needs before the record enters the
 * log. */
#define RULE_VERSION_FIRST 1
/* disk-format.md §2: chunks are freed only after three conditions are met: the removal of their manifest is
 * stamped, every thread was quiescent, and no reader pins the manifest. */
#define RULE_CHUNKS_AFTER_MANIFEST 1
/* disk-format.md §2: a manifest enters the log after the records of its chunks were flushed. */
#define RULE_MANIFEST_AFTER_CHUNKS 1
/* disk-format.md §2: chunks without an owner are collected only if they belong to an earlier epoch or to an
 * operation known to have ended. */
#define RULE_COLLECT_ONLY_ENDED 1
/* engine.md §2: preconditions are validated against the index and the pending records, and wait for the
 * pending records on which they depend. */
#define RULE_JUDGE_PENDING 1
/* engine.md §2: the record of an object of more than FMT_FLUSHED_BYTES, and every manifest, enters the log
 * only after a flush that began after the last write of its data. */
#define RULE_LARGE_FLUSHED_FIRST 1
/* engine.md §2: the list of the parts of a completed upload, if it is too long for the record, is in a map:
 * the record enters the log only after a flush that began after the last write of the map. */
#define RULE_PARTS_MAP_FLUSHED_FIRST 1
/* engine.md §2: the CRC of a log block is keyed with the epoch's nonce. */
#define RULE_LOG_NONCE 1
/* engine.md §2: an epoch block is keyed with the nonce of the epoch that the block ends. With the switch off,
 * the block is keyed with the nonce of the epoch that it begins. */
#define RULE_EPOCH_KEYED_OLD 1
/* engine.md §2: space is reused only after the record that freed the space is known to be flushed: the field
 * flushed_upto of a flushed block covers the record. */
#define RULE_REUSE_STAMPED 1
/* engine.md §2: space is reused only after every port and every helper thread was quiescent since the record
 * that freed the space was published. */
#define RULE_REUSE_QUIESCENT 1
/* engine.md §2: space is reused only if, after the grace period, no reader pins the extents. */
#define RULE_REUSE_UNPINNED 1
/* disk-format.md §2: if a record has the extents of an earlier record, readers pin the version that first had
 * the extents. */
#define RULE_PIN_BYTES 1
/* engine.md §2: extents of an aborted PUT are reused only after the last completion of its writes; extents of
 * a failed write are never reused. */
#define RULE_REUSE_WRITES_OVER 1
/* engine.md §3: data, CRC blocks and maps of the records at the end of the log are read and verified at a
 * start. */
#define RULE_TAIL_VERIFIED 1
/* engine.md §3: the end of the log is accepted up to the first record that fails the verification; this
 * record and all later ones are cut. */
#define RULE_TAIL_PREFIX 1
/* engine.md §3: the log is damaged if a valid block after its end says (field flushed_upto) that blocks after
 * the end were flushed, or if replay does not reach the epoch of the superblock. */
#define RULE_DAMAGE_STOPS 1
/* engine.md §3: if the block that is expected next cannot be read, the log ends before this place only if it
 * is known that no trusted block, known to be flushed, was stored there. */
#define RULE_END_IS_KNOWN 1
/* engine.md §3: before serving, a start flushes, writes the epoch block over the cut, flushes, writes the
 * superblock, and flushes. This switch is for all of these steps. */
#define RULE_EPOCH_BEFORE_SERVING 1
/* engine.md §3, first step: the data that was read is flushed before the epoch block depends on it. */
#define RULE_BEFORE_FLUSH 1
/* engine.md §3, second step: the epoch block is written over the cut. */
#define RULE_BEFORE_BLOCK 1
/* engine.md §3, third step: the epoch block is flushed before the superblock contains its epoch. */
#define RULE_BEFORE_BLOCK_FLUSHED 1
/* engine.md §3, fourth step: the superblock is written. */
#define RULE_BEFORE_SUPER 1
/* engine.md §3, fifth step: the superblock is flushed, also after each snapshot. */
#define RULE_SUPER_FLUSHED 1
/* engine.md §3: the newer superblock, which a previous process may have written, is flushed before the older
 * one is overwritten. */
#define RULE_SUPER_NEWER_FLUSHED 1
/* engine.md §3: the log is trimmed only up to the begin of the log of the previous snapshot. */
#define RULE_TRIM_TO_PREVIOUS 1
/* engine.md §2: changes are checked against the counted and the pending usage of a quota. */
#define RULE_QUOTA_PENDING 1
/* engine.md §3: the index grows only while there is room for the snapshots of the larger index. */
#define RULE_GROW_WITH_ROOM 1
/* engine.md §3: during a start the index may use more memory than the limit up to which records were
 * accepted. */
#define RULE_START_EXTENDS 1
/* disk-format.md §2: packed objects are written to free space: space that has bytes of a record is never
 * overwritten. */
#define RULE_PACK_NEVER_REWRITES 1
/* disk-format.md §2: a unit shared by several records is freed with the last of these records. */
#define RULE_PACK_LAST_FREES 1
/* disk-format.md §1: even on a file system where one flush covers the disk, a written segment is flushed
 * separately until the file system has private blocks for the whole segment. */
#define RULE_TOUCHED_FILES_FLUSHED 1
/* disk-format.md §1: a start flushes every segment before it examines the segment. The writes of a process
 * that has ended look complete, and may be lost at a power cut. */
#define RULE_FLUSHED_BEFORE_LOOKED_AT 1
/* disk-format.md §1: a segment that looks complete is flushed once more before it counts as complete. */
#define RULE_REWRITTEN_FLUSHED 1
/* disk-format.md §1: zeros are written only into holes of units that no thread writes: free units, and units
 * in use since the start. */
#define RULE_MEND_UNWRITTEN 1
/* disk-format.md §1: a unit that is freed during its repair becomes free at the end of the repair, and no
 * longer counts as in use since the start. */
#define RULE_MEND_CLAIMS 1
/* set.md §8, M13: records in partitions that the placement map does not assign to this disk are not listed,
 * not counted, and not changed by clients. */
#define RULE_LEFTOVERS_HIDDEN 1
/* M24: the sender of keys is notified of every change during the transfer. */
#define RULE_MOVE_WATCH 1
/* M25: before a partition is switched to another disk, the writers of the partition wait, and their earlier
 * changes are reported. */
#define RULE_MOVE_FREEZE 1
/* M22: keys that the source no longer has are removed at the target. */
#define RULE_MOVE_REMOVES 1
/* M28: if a part is pushed to this disk again while an earlier part with its id is being collected, the new
 * part survives. */
#define RULE_MOVE_NOT_COLLECTED 1
/* M26: records that are removed after a move are in partitions no longer assigned to this disk. */
#define RULE_REMOVE_AFTER_SWITCH 1
/* set.md §8, M40: both superblocks contain the placement map before the map takes effect. */
#define RULE_TABLE_IN_BOTH 1
/* set.md §8, M20: ids and versions that were made in different starts differ. */
#define RULE_VERSION_HAS_START 1
/* set.md §8, M31c: the gate of a bucket closes only after its pending changes have ended. */
#define RULE_GATE_PENDING 1
/* set.md §5: the kernel reports a failed flush once, to one caller. If the caller is a thread other than the
 * leader, this thread marks the disk as failed before the leader trusts a later flush. */
#define RULE_FLUSH_ERRORS_SHARED 1
/* set.md §5: a failed flush or write is final for the disk until a restart. */
#define RULE_FAILED_IS_FINAL 1

#endif
