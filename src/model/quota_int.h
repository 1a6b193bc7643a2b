/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows and patterns of the quota ledger, for the files of quota.h: quota.c (rows, usage, documents), quota_reserve.c
 * (planned changes, reservations, removed objects with readers), quota_rules.c (patterns, lists, totals).
 */
#ifndef GANTRY_MODEL_QUOTA_INT_H
#define GANTRY_MODEL_QUOTA_INT_H

#include "model/quota.h"

/* The usage of a bucket in one engine, or of the buckets of a pattern, and its growth. */
struct quota_sums {
	struct quota_change used, pend;
	struct quota_change held; /* growth reserved by PUTs in progress */
	/* all bytes of PUTs in progress, and of removed objects and parts that are still read */
	int64_t whole_bytes;
};

/* The limits of a pattern, and the usage of all buckets whose names match it. */
struct quota_rule {
	char name[STORE_BUCKET_MAX];
	uint8_t len;
	bool any_suffix;
	struct store_use max;
	uint64_t max_buckets;
	struct quota_sums sums; /* of all counters, without buckets and documents */
	/* number of buckets whose names match, and bytes of the documents of these buckets */
	int64_t buckets, doc_bytes;
	uint64_t refused;
};

/* The part of a row that belongs to one counter. */
struct quota_part {
	/* version of the bucket in the counter's engine; 0: the engine does not have the bucket */
	uint64_t version;
	struct quota_sums sums;
	int64_t doc_bytes;
	int64_t pend_docs; /* growth of the documents by unpublished changes; counts for patterns alone */
	struct quota_row *next_pending;
	bool is_pending; /* true: the row is in the counter's list of pending rows */
};

/* A bucket. The address of a row stays the same. */
struct quota_row {
	struct quota_row *next;
	uint32_t hash;
	uint8_t len;
	bool has_bound;
	struct store_use max;
	uint64_t refused;
	/* number of users of the row: plans, reservations, and removed objects that are still read. The row
	 * is kept until the number is 0, even if the bucket was removed. */
	int64_t user_nr;
	int plan_nr;        /* number of plans, which user_nr includes */
	int64_t plan_bytes; /* growth of the documents by these plans */
	int rule_nr;
	int *rule; /* indexes of the patterns that match the name */
	char name[STORE_BUCKET_MAX + 1];
	struct quota_part *part; /* one for each counter */
};

extern const struct store_use quota_unbounded;

/* The caller of each function holds the lock. */

/* Returns true if an engine has the bucket, or is making it. */
bool quota_row_is_there(const struct quota_book *book, const struct quota_row *row);
/* Returns the link to the row of a name, or the link to NULL to which a new row of this name belongs. */
struct quota_row **quota_link_of(struct quota_book *book, const char *name, size_t len);
/* Returns the row of a name, which is made if there is none. Returns NULL if there is no memory. */
struct quota_row *quota_row_for(struct quota_book *book, int counter, const void *name, size_t len);
/* Frees a row that has neither a bucket nor users. */
void quota_drop_row(struct quota_book *book, struct quota_row *row);
/* Sets *ret_list to the indexes of the patterns that match a name, for free(); NULL: no pattern matches. Returns 0
 * or -ENOMEM. */
int quota_find_rules(const struct quota_rule *rules, int nr, const char *name, size_t len, int **ret_list,
		     int *ret_nr);
/* Notes whether any limit exists. */
void quota_note_active(struct quota_book *book);
void quota_sums_add(struct quota_sums *to, const struct quota_sums *more);
/* Adds to the sums of a row in a counter, and of the patterns that match its name. */
void quota_row_add(struct quota_book *book, int counter, struct quota_row *row,
		   const struct quota_sums *more);
/* Returns the sums of a bucket. counter: counter of the engine that checks a change; QUOTA_ANY: no engine checks a
 * change. */
#define QUOTA_ANY (-1)
struct quota_sums quota_sums_of(const struct quota_book *book, int counter, const struct quota_row *row);
/* Returns the sums of the buckets of a pattern: the buckets count as objects, and their documents as bytes. */
struct quota_sums quota_sums_of_rule(const struct quota_rule *r);
/* The bytes of a bucket's documents, and their growth by unpublished changes. Every engine stores the documents; of
 * several sizes the largest one counts. */
struct quota_docs {
	int64_t bytes, ahead;
};
struct quota_docs quota_docs_of(const struct quota_book *book, const struct quota_row *row);

/* A growth of the usage that is compared with limits. */
struct quota_growth {
	struct quota_change more;
	bool without_pending; /* true: unpublished changes are not in the usage */
	/* Of a reservation of a PUT: all bytes of the PUT, and those of them that are reserved already. */
	bool reserves;
	int64_t whole_bytes, own_bytes;
};
/* Compares a growth with the limits of a bucket and of its patterns. Returns 0, or -EDQUOT, which is counted as a
 * refusal. */
int quota_judge_growth(struct quota_book *book, int counter, struct quota_row *row,
		       const struct quota_growth *g);

#endif
