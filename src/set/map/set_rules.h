/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules - the rules of docs/set.md ("M") for many disks, one switch each, as extent/disk/rules.h has those of one.
 *
 * Private to src/set.  M4 is an assertion (start/begin_disks.c), and a part of M35 is.  With one copy M8 has nothing to protect (docs/set.md).
 * M20 and M31c are held by each engine: extent/disk/rules.h.
 */
#ifndef GANTRY_SET_RULES_H
#define GANTRY_SET_RULES_H

/* M1: the newest table of those present counts, whole. */
#ifndef RULE_TABLE_NEWEST
#define RULE_TABLE_NEWEST 1
#endif
/* M2: a start needs more than half of the members, ... */
#ifndef RULE_QUORUM
#define RULE_QUORUM 1
#endif
/* M3: ... or half of them, if all that took part in the newest table are among them. */
#ifndef RULE_HALF_ONLY_IF_ALL_IN
#define RULE_HALF_ONLY_IF_ALL_IN 1
#endif
/* M5: a start number above all is on every disk before a table has it. */
#ifndef RULE_START_NO
#define RULE_START_NO 1
#endif
/* M6: a table is on all disks that it names before anything is answered by it. */
#ifndef RULE_TABLE_ALL
#define RULE_TABLE_ALL 1
#endif
/* M7: a table that was begun and is not on all is followed by a newer one. */
#ifndef RULE_TABLE_REDO
#define RULE_TABLE_REDO 1
#endif
/* M7, in service: another disk fails while a table is written: a newer one follows. */
#ifndef RULE_TABLE_REDO_SERVING
#define RULE_TABLE_REDO_SERVING 1
#endif
/* M8: from before a table says that a second has all it has what is answered. */
#ifndef RULE_BOTH_TABLES
#define RULE_BOTH_TABLES 1
#endif
/* M9: with fewer than half of the members in service nothing is written. */
#ifndef RULE_BELOW_HALF_READ_ONLY
#define RULE_BELOW_HALF_READ_ONLY 1
#endif
/* M35: while members change, nothing goes on without half of those before and half of those after it. */
#ifndef RULE_MEMBERS_BOTH
#define RULE_MEMBERS_BOTH 1
#endif
/* M11: of changes of buckets one is under way at a time. */
#ifndef RULE_ONE_CHANGE
#define RULE_ONE_CHANGE 1
#endif
/* M12: what a missing disk has is looked for, and put, nowhere else. */
#ifndef RULE_MISSING_IS_503
#define RULE_MISSING_IS_503 1
#endif
/* M13: what the table does not give to a disk is not there: slots of others; one that it does not list is refused. */
#ifndef RULE_TABLE_DECIDES
#define RULE_TABLE_DECIDES 1
#endif
/* M14: a change of a key with two copies is answered when both disks have it. */
#ifndef RULE_COPY_BEFORE_ANSWER
#define RULE_COPY_BEFORE_ANSWER 1
#endif
/* M15: a disk that fails leaves the table before a change of buckets that it missed is answered. */
#ifndef RULE_AWAY_BEFORE_ANSWER
#define RULE_AWAY_BEFORE_ANSWER 1
#endif
/* M15: ... and before a change of a key that it has one copy of. */
#ifndef RULE_AWAY_BEFORE_COPY_ANSWER
#define RULE_AWAY_BEFORE_COPY_ANSWER 1
#endif
/* M16: a version is shown when both disks have it. */
#ifndef RULE_SETTLED_VISIBLE
#define RULE_SETTLED_VISIBLE 1
#endif
/* M17: of a key one change is under way at a time. */
#ifndef RULE_ONE_PER_KEY
#define RULE_ONE_PER_KEY 1
#endif
/* M18: a second that has not all never becomes the first. */
#ifndef RULE_FULL_ONLY
#define RULE_FULL_ONLY 1
#endif
/* M19: what the first disk cannot give is read from the second if that has the same version. */
#ifndef RULE_SAME_VERSION_READ
#define RULE_SAME_VERSION_READ 1
#endif
/* M21: before anything is served, seconds that have all are made equal to their firsts. */
#ifndef RULE_ALIGN_START
#define RULE_ALIGN_START 1
#endif
/* M36: a second that has all still has it when both disks were away. */
#ifndef RULE_BOTH_AWAY_KEEP_FULL
#define RULE_BOTH_AWAY_KEEP_FULL 1
#endif
/* M22: what is sent to a disk is all that it has of a key, or of slots, afterwards. */
#ifndef RULE_ALIGN_REMOVES
#define RULE_ALIGN_REMOVES 1
#endif
/* M24: what changes in slots that are filled elsewhere is sent again. */
#ifndef RULE_MOVE_WATCH
#define RULE_MOVE_WATCH 1
#endif
/* M25: before slots change hands their writers wait. */
#ifndef RULE_MOVE_FREEZE
#define RULE_MOVE_FREEZE 1
#endif
/* M26: a disk gives slots away only when nobody looks for them there any more. */
#ifndef RULE_REMOVE_AFTER_SWITCH
#define RULE_REMOVE_AFTER_SWITCH 1
#endif
/* M29: nothing is put into a bucket before all disks have it. */
#ifndef RULE_BUCKET_ON_ALL
#define RULE_BUCKET_ON_ALL 1
#endif
/* M30: at a start the buckets of all disks are made those of the head. */
#ifndef RULE_BUCKETS_FROM_HEAD
#define RULE_BUCKETS_FROM_HEAD 1
#endif
/* M31a: a bucket is removed only when all members are there. */
#ifndef RULE_GATE_ALL_PRESENT
#define RULE_GATE_ALL_PRESENT 1
#endif
/* M31b: nothing is put into a bucket from when a disk says that it is empty until it is gone. */
#ifndef RULE_GATE_CLOSED
#define RULE_GATE_CLOSED 1
#endif
/* M31d: a removal that was begun is completed on all that remain; else the gate stays closed. */
#ifndef RULE_GATE_FORWARD
#define RULE_GATE_FORWARD 1
#endif
/* M38: the head removes a bucket first: what ends with it has ended nowhere where the next start still has the bucket. */
#ifndef RULE_HEAD_REMOVES_FIRST
#define RULE_HEAD_REMOVES_FIRST 1
#endif
/* M32: what is in a bucket of a name that was made anew since is not in the one that there is. */
#ifndef RULE_OLDER_THAN_BUCKET
#define RULE_OLDER_THAN_BUCKET 1
#endif
/* M33: a failed disk, which is still read, is not asked about buckets; M39: nor about what is in one that has changed since. */
#ifndef RULE_FAILED_HAS_NO_BUCKETS
#define RULE_FAILED_HAS_NO_BUCKETS 1
#endif
/* M41: a disk that has not heard of the start of a table that has it is an older copy, and as one that was away. */
#ifndef RULE_BEHIND_IS_AWAY
#define RULE_BEHIND_IS_AWAY 1
#endif

#endif
