/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advice - remedies in messages for operators, from the table advice.def. Any thread may call these
 * functions.
 *
 * A message has one line with the problem, and a line for each remedy. A harmless remedy has "remedy: "
 * before its text; harmless remedies are in the order in which to try them. If there is a last resort, it is
 * the last line, and begins with the loss that it causes.
 */
#ifndef GANTRY_BASE_ADVICE_H
#define GANTRY_BASE_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum advice_id {
#define ADVICE(id, ...) ADVICE_##id,
#include "base/advice.def"
#undef ADVICE
	ADVICE_NR
};

#define ADVICE_HARMLESS_MAX 4

struct advice {
	const char *id; /* name of the row */
	/* harmless remedies, in order; the array ends with NULL */
	const char *harmless[ADVICE_HARMLESS_MAX + 1];
	/* loss: data that the last resort loses; last: text of the last resort; NULL: the row has no last
	 * resort */
	const char *loss, *last;
};
extern const struct advice advice_table[ADVICE_NR];

/* Values of the names in the texts; NULL or "": unknown. */
struct advice_values {
	const char *path;   /* {path}: path of one or several disks or files */
	const char *away;   /* {away}: UUIDs of disks without a known path */
	const char *accept; /* {accept}: UUIDs for store.accept_missing */
	const char *forget; /* {forget}: options of gantryd that remove disks for good */
	const char *loss;   /* {loss}: number or share of the objects that a last resort loses */
	const char *store;  /* {store}: UUID of a store */
	const char *record; /* {record}: path of the record of the store */
	const char *line;   /* {line}: entry of store.disks */
	const char *size;   /* {size}: a size with its unit */
};

/* Appends the remedies of a row to the message in `text`, a buffer of len bytes. values: values of the names
 * in the remedies; NULL: no value is known. */
void advice_add(char *text, size_t len, enum advice_id id, const struct advice_values *values);
/* Writes only the first remedy of a row, without "remedy: ", for messages of one line. */
void advice_first(char *text, size_t len, enum advice_id id, const struct advice_values *values);
/* Returns the length of the first line of a message, which is its problem. */
size_t advice_problem(const char *text);
/* Inserts formatted words, of at most 511 bytes, at the end of the first line of a message. Returns false without a change if
 * not all of them fit. */
bool advice_insert(char *text, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Returns the last line of a message if it is a last resort; otherwise NULL. */
const char *advice_last(const char *text);
/* Logs each remedy of a message as a separate line. level: an enum log_level. */
void advice_log(int level, const char *module, const char *text);

#endif
