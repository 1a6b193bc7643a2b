/* SPDX-License-Identifier: Apache-2.0 */
/* In place of extent/disk/rules.h: the rules as variables, so that one program can switch each of them
 * off; those of set/map/set_rules.h and model/rules.h after them. */
#ifndef GANTRY_EXTENT_DISK_RULES_H
#define GANTRY_EXTENT_DISK_RULES_H

#include <stdbool.h>

#define SIM_RULES(X)                                                                                         \
	X(LOCK_EVERY_FILE)                                                                                   \
	X(VERSION_FIRST)                                                                                     \
	X(SUPER_OLDER_COPY)                                                                                  \
	X(CHUNKS_AFTER_MANIFEST)                                                                             \
	X(MANIFEST_AFTER_CHUNKS)                                                                             \
	X(COLLECT_ONLY_ENDED)                                                                                \
	X(JUDGE_PENDING)                                                                                     \
	X(LARGE_FLUSHED_FIRST)                                                                               \
	X(PARTS_MAP_FLUSHED_FIRST)                                                                           \
	X(LOG_NONCE)                                                                                         \
	X(EPOCH_KEYED_OLD)                                                                                   \
	X(REUSE_STAMPED)                                                                                     \
	X(REUSE_QUIESCENT)                                                                                   \
	X(REUSE_UNPINNED)                                                                                    \
	X(PIN_BYTES)                                                                                         \
	X(REUSE_WRITES_OVER)                                                                                 \
	X(TAIL_VERIFIED)                                                                                     \
	X(TAIL_PREFIX)                                                                                       \
	X(DAMAGE_STOPS)                                                                                      \
	X(END_IS_KNOWN)                                                                                      \
	X(EPOCH_BEFORE_SERVING)                                                                              \
	X(BEFORE_FLUSH)                                                                                      \
	X(BEFORE_BLOCK)                                                                                      \
	X(BEFORE_BLOCK_FLUSHED)                                                                              \
	X(BEFORE_SUPER)                                                                                      \
	X(SUPER_FLUSHED)                                                                                     \
	X(SUPER_NEWER_FLUSHED)                                                                               \
	X(TRIM_TO_PREVIOUS)                                                                                  \
	X(QUOTA_PENDING)                                                                                     \
	X(GROW_WITH_ROOM)                                                                                    \
	X(START_EXTENDS)                                                                                     \
	X(PACK_NEVER_REWRITES)                                                                               \
	X(PACK_LAST_FREES)                                                                                   \
	X(TOUCHED_FILES_FLUSHED)                                                                             \
	X(FLUSHED_BEFORE_LOOKED_AT)                                                                          \
	X(REWRITTEN_FLUSHED)                                                                                 \
	X(MEND_UNWRITTEN)                                                                                    \
	X(MEND_CLAIMS)                                                                                       \
	X(FLUSH_ERRORS_SHARED)                                                                               \
	X(FAILED_IS_FINAL)                                                                                   \
	X(GATE_PENDING)                                                                                      \
	X(VERSION_HAS_START)                                                                                 \
	X(TABLE_NEWEST)                                                                                      \
	X(QUORUM)                                                                                            \
	X(HALF_ONLY_IF_ALL_IN)                                                                               \
	X(START_NO)                                                                                          \
	X(TABLE_ALL)                                                                                         \
	X(TABLE_IN_BOTH)                                                                                     \
	X(TABLE_REDO)                                                                                        \
	X(TABLE_REDO_SERVING)                                                                                \
	X(BELOW_HALF_READ_ONLY)                                                                              \
	X(ONE_CHANGE)                                                                                        \
	X(MISSING_IS_503)                                                                                    \
	X(TABLE_DECIDES)                                                                                     \
	X(AWAY_BEFORE_ANSWER)                                                                                \
	X(BUCKET_ON_ALL)                                                                                     \
	X(BUCKETS_FROM_HEAD)                                                                                 \
	X(GATE_ALL_PRESENT)                                                                                  \
	X(GATE_CLOSED)                                                                                       \
	X(GATE_FORWARD)                                                                                      \
	X(HEAD_REMOVES_FIRST)                                                                                \
	X(OLDER_THAN_BUCKET)                                                                                 \
	X(FAILED_HAS_NO_BUCKETS)                                                                             \
	X(LEFTOVERS_HIDDEN)                                                                                  \
	X(MOVE_REMOVES)                                                                                      \
	X(ALIGN_REMOVES)                                                                                     \
	X(MOVE_WATCH)                                                                                        \
	X(MOVE_FREEZE)                                                                                       \
	X(REMOVE_AFTER_SWITCH)                                                                               \
	X(COPY_BEFORE_ANSWER)                                                                                \
	X(AWAY_BEFORE_COPY_ANSWER)                                                                           \
	X(SETTLED_VISIBLE)                                                                                   \
	X(ONE_PER_KEY)                                                                                       \
	X(FULL_ONLY)                                                                                         \
	X(SAME_VERSION_READ)                                                                                 \
	X(ALIGN_START)                                                                                       \
	X(BOTH_TABLES)                                                                                       \
	X(BOTH_AWAY_KEEP_FULL)                                                                               \
	X(BEHIND_IS_AWAY)                                                                                    \
	X(MOVE_NOT_COLLECTED)                                                                                \
	X(MEMBERS_BOTH)                                                                                      \
	X(QUOTA_OF_ALL)

#define SIM_RULE_ENUM(name) SIM_##name,
enum sim_rule { SIM_RULES(SIM_RULE_ENUM) SIM_RULE_NR };
#undef SIM_RULE_ENUM

extern bool sim_rule_on[SIM_RULE_NR];

#define RULE_LOCK_EVERY_FILE sim_rule_on[SIM_LOCK_EVERY_FILE]
#define RULE_VERSION_FIRST sim_rule_on[SIM_VERSION_FIRST]
#define RULE_SUPER_OLDER_COPY sim_rule_on[SIM_SUPER_OLDER_COPY]
#define RULE_CHUNKS_AFTER_MANIFEST sim_rule_on[SIM_CHUNKS_AFTER_MANIFEST]
#define RULE_MANIFEST_AFTER_CHUNKS sim_rule_on[SIM_MANIFEST_AFTER_CHUNKS]
#define RULE_COLLECT_ONLY_ENDED sim_rule_on[SIM_COLLECT_ONLY_ENDED]
#define RULE_JUDGE_PENDING sim_rule_on[SIM_JUDGE_PENDING]
#define RULE_LARGE_FLUSHED_FIRST sim_rule_on[SIM_LARGE_FLUSHED_FIRST]
#define RULE_PARTS_MAP_FLUSHED_FIRST sim_rule_on[SIM_PARTS_MAP_FLUSHED_FIRST]
#define RULE_LOG_NONCE sim_rule_on[SIM_LOG_NONCE]
#define RULE_EPOCH_KEYED_OLD sim_rule_on[SIM_EPOCH_KEYED_OLD]
#define RULE_REUSE_STAMPED sim_rule_on[SIM_REUSE_STAMPED]
#define RULE_REUSE_QUIESCENT sim_rule_on[SIM_REUSE_QUIESCENT]
#define RULE_REUSE_UNPINNED sim_rule_on[SIM_REUSE_UNPINNED]
#define RULE_PIN_BYTES sim_rule_on[SIM_PIN_BYTES]
#define RULE_REUSE_WRITES_OVER sim_rule_on[SIM_REUSE_WRITES_OVER]
#define RULE_TAIL_VERIFIED sim_rule_on[SIM_TAIL_VERIFIED]
#define RULE_TAIL_PREFIX sim_rule_on[SIM_TAIL_PREFIX]
#define RULE_DAMAGE_STOPS sim_rule_on[SIM_DAMAGE_STOPS]
#define RULE_END_IS_KNOWN sim_rule_on[SIM_END_IS_KNOWN]
#define RULE_EPOCH_BEFORE_SERVING sim_rule_on[SIM_EPOCH_BEFORE_SERVING]
#define RULE_BEFORE_FLUSH sim_rule_on[SIM_BEFORE_FLUSH]
#define RULE_BEFORE_BLOCK sim_rule_on[SIM_BEFORE_BLOCK]
#define RULE_BEFORE_BLOCK_FLUSHED sim_rule_on[SIM_BEFORE_BLOCK_FLUSHED]
#define RULE_BEFORE_SUPER sim_rule_on[SIM_BEFORE_SUPER]
#define RULE_SUPER_FLUSHED sim_rule_on[SIM_SUPER_FLUSHED]
#define RULE_SUPER_NEWER_FLUSHED sim_rule_on[SIM_SUPER_NEWER_FLUSHED]
#define RULE_TRIM_TO_PREVIOUS sim_rule_on[SIM_TRIM_TO_PREVIOUS]
#define RULE_QUOTA_PENDING sim_rule_on[SIM_QUOTA_PENDING]
#define RULE_GROW_WITH_ROOM sim_rule_on[SIM_GROW_WITH_ROOM]
#define RULE_START_EXTENDS sim_rule_on[SIM_START_EXTENDS]
#define RULE_PACK_NEVER_REWRITES sim_rule_on[SIM_PACK_NEVER_REWRITES]
#define RULE_PACK_LAST_FREES sim_rule_on[SIM_PACK_LAST_FREES]
#define RULE_TOUCHED_FILES_FLUSHED sim_rule_on[SIM_TOUCHED_FILES_FLUSHED]
#define RULE_FLUSHED_BEFORE_LOOKED_AT sim_rule_on[SIM_FLUSHED_BEFORE_LOOKED_AT]
#define RULE_REWRITTEN_FLUSHED sim_rule_on[SIM_REWRITTEN_FLUSHED]
#define RULE_MEND_UNWRITTEN sim_rule_on[SIM_MEND_UNWRITTEN]
#define RULE_MEND_CLAIMS sim_rule_on[SIM_MEND_CLAIMS]
#define RULE_TABLE_IN_BOTH sim_rule_on[SIM_TABLE_IN_BOTH]
#define RULE_FLUSH_ERRORS_SHARED sim_rule_on[SIM_FLUSH_ERRORS_SHARED]
#define RULE_FAILED_IS_FINAL sim_rule_on[SIM_FAILED_IS_FINAL]
#define RULE_GATE_PENDING sim_rule_on[SIM_GATE_PENDING]
#define RULE_VERSION_HAS_START sim_rule_on[SIM_VERSION_HAS_START]

#define RULE_LEFTOVERS_HIDDEN sim_rule_on[SIM_LEFTOVERS_HIDDEN]
/* Those that an engine and the set have halves of are one here. */
#define RULE_MOVE_WATCH sim_rule_on[SIM_MOVE_WATCH]
#define RULE_MOVE_FREEZE sim_rule_on[SIM_MOVE_FREEZE]
#define RULE_MOVE_REMOVES sim_rule_on[SIM_MOVE_REMOVES]
#define RULE_REMOVE_AFTER_SWITCH sim_rule_on[SIM_REMOVE_AFTER_SWITCH]
#define RULE_ALIGN_REMOVES sim_rule_on[SIM_ALIGN_REMOVES]
#define RULE_MOVE_NOT_COLLECTED sim_rule_on[SIM_MOVE_NOT_COLLECTED]

#endif
