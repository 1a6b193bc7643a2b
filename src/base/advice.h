/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advice - remedies in messages for operators, from the table advice.def.  Any thread.
 *
 * A message is one line that says the problem, and a line for each remedy: "remedy: " and the text for a harmless one, in the
 * order in which to try them; the last resort, if there is one, is the last line and begins with what it loses.
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
	const char *id;                                /* name of the row */
	const char *harmless[ADVICE_HARMLESS_MAX + 1]; /* ends with NULL */
	const char *loss, *last;                       /* the last resort; NULL: there is none */
};
extern const struct advice advice_table[ADVICE_NR];

/* Values of the names in the texts; NULL or "": unknown. */
struct advice_values {
	const char *path;   /* {path}: path of a disk or file, or several */
	const char *away;   /* {away}: UUIDs of disks without a known path */
	const char *accept; /* {accept}: UUIDs for store.accept_missing */
	const char *forget; /* {forget}: options of gantryd */
	const char *loss;   /* {loss}: number or share of objects */
	const char *store;  /* {store}: UUID of a store */
	const char *record; /* {record}: path of the record of the store */
	const char *line;   /* {line}: entry of store.disks */
};

/* Appends the remedies of a row to a message in text, which has len bytes.  values: NULL: none are known. */
void advice_add(char *text, size_t len, enum advice_id id, const struct advice_values *values);
/* Writes the first remedy alone, without "remedy: ": for messages of one line. */
void advice_first(char *text, size_t len, enum advice_id id, const struct advice_values *values);
/* Returns the length of the first line of a message, which is its problem. */
size_t advice_problem(const char *text);
/* Inserts formatted words at the end of the first line of a message. */
void advice_insert(char *text, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Returns true if a message has a last resort. */
bool advice_has_last(const char *text);
/* Logs each remedy of a message, as a line of its own.  level: an enum log_level. */
void advice_log(int level, const char *module, const char *text);

#endif
