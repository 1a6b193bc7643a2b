/* SPDX-License-Identifier: Apache-2.0 */
/*
 * set_rules - a switch for each rule (M1, M2, ...) of docs/set.md about many disks. The rules about one disk
 * are in extent/disk/rules.h. Private to src/set. M4 and a part of M35 are assertions (start/begin_disks.c).
 * For keys with one copy M8 needs no switch (docs/set.md). M20 and M31c are rules of each engine:
 * extent/disk/rules.h. The simulation switches a rule off to prove that the rule is needed.
 */
#ifndef GANTRY_SET_RULES_H
#define GANTRY_SET_RULES_H

/* M1: the newest map of the present disks is valid, as a whole. */
#define RULE_TABLE_NEWEST 1
/* M2: a start needs more than half of the members; M3 is the exception. */
#define RULE_QUORUM 1
/* M3: a start may also have exactly half of the members, if they include all disks that took part in the
 * newest map. */
#define RULE_HALF_ONLY_IF_ALL_IN 1
/* M5: before a map with a start number is written, every disk has stored this number, which is greater than
 * all earlier start numbers. */
#define RULE_START_NO 1
/* M6: a map is on all disks that it names before an answer depends on it. */
#define RULE_TABLE_ALL 1
/* M7: if the write of a map was begun and not completed on all disks, a newer map is written. */
#define RULE_TABLE_REDO 1
/* M7, in service: if another disk fails while a map is written, a newer map is written. */
#define RULE_TABLE_REDO_SERVING 1
/* M8: before the write of a map that marks a secondary as in sync begins, the secondary has every answered
 * change; from then on it receives every change before the answer. */
#define RULE_BOTH_TABLES 1
/* M9: while fewer than half of the members are in service, no change is made. */
#define RULE_BELOW_HALF_READ_ONLY 1
/* M35: while members change, the store serves only with half of the previous members and half of the new
 * ones. */
#define RULE_MEMBERS_BOTH 1
/* M11: at most one change of buckets is in progress. */
#define RULE_ONE_CHANGE 1
/* M12: a key of a missing disk is neither read from nor written to another disk. */
#define RULE_MISSING_IS_503 1
/* M13: a record in a slot that the map does not assign to its disk counts as absent. A disk that the map does
 * not list is refused. */
#define RULE_TABLE_DECIDES 1
/* M14: a change of a key with two copies is answered when both disks have flushed it. */
#define RULE_COPY_BEFORE_ANSWER 1
/* M15: a failed disk is removed from the map before the answer to a change of buckets that the disk has
 * missed. */
#define RULE_AWAY_BEFORE_ANSWER 1
/* M15: a failed disk is removed from the map before the answer to a change of a key that has a copy on the
 * disk. */
#define RULE_AWAY_BEFORE_COPY_ANSWER 1
/* M16: a version of a key is visible to readers only when both disks have it. */
#define RULE_SETTLED_VISIBLE 1
/* M17: at most one change of a key is in progress. */
#define RULE_ONE_PER_KEY 1
/* M18: a secondary that is not in sync never becomes primary. */
#define RULE_FULL_ONLY 1
/* M19: data that the primary cannot return is read from the secondary if the secondary has the same
 * version. */
#define RULE_SAME_VERSION_READ 1
/* M21: before serving, in-sync secondaries are made equal to their primaries. */
#define RULE_ALIGN_START 1
/* M36: a secondary that was in sync stays in sync if it was away together with its primary. */
#define RULE_BOTH_AWAY_KEEP_FULL 1
/* M22: after a push of a key or of slots, the target has exactly those records of the key or slots that the
 * source has. */
#define RULE_ALIGN_REMOVES 1
/* M24: a key that changes while its slot is copied to another disk is pushed again. */
#define RULE_MOVE_WATCH 1
/* M25: writers of slots wait before the slots move to another disk. */
#define RULE_MOVE_FREEZE 1
/* M26: a disk hands over slots only after all ports look up the keys of these slots at the new disk. */
#define RULE_REMOVE_AFTER_SWITCH 1
/* M29: no object is written to a bucket before all disks have the bucket. */
#define RULE_BUCKET_ON_ALL 1
/* M30: a start makes the buckets of all disks equal to those of the metadata leader. */
#define RULE_BUCKETS_FROM_HEAD 1
/* M31a: a bucket is removed only with all members present. */
#define RULE_GATE_ALL_PRESENT 1
/* M31b: after a disk has reported a bucket as empty, no object is written to the bucket until the bucket is
 * removed. */
#define RULE_GATE_CLOSED 1
/* M31d: after the first engine has removed a bucket, all other engines remove the bucket, too. If an engine
 * cannot, the gate of the bucket stays closed. */
#define RULE_GATE_FORWARD 1
/* M38: the metadata leader removes a bucket first. If the next start still finds the bucket on the leader,
 * the uploads in the bucket still exist. */
#define RULE_HEAD_REMOVES_FIRST 1
/* M32: the contents of a former bucket do not belong to a new bucket of the same name. */
#define RULE_OLDER_THAN_BUCKET 1
/* M33: a failed disk is still read, but is not asked about buckets. M39: nor is a failed disk asked about the
 * contents of a bucket that has changed since the failure. */
#define RULE_FAILED_HAS_NO_BUCKETS 1
/* M41: a disk that took part in a map, but does not know the start of that map, is an older copy of itself,
 * and counts as away. */
#define RULE_BEHIND_IS_AWAY 1

#endif
