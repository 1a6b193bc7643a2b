/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the log. */
#ifndef GANTRY_BASE_LOG_INT_H
#define GANTRY_BASE_LOG_INT_H

#include "base/log.h"

#include <stddef.h>

#define LINE_BYTES 4608 /* a line of the access log may have a key of 1024 bytes, three characters each */

/* Bytes of a line with all that its form adds: JSON, or fields of the journal. */
#define LINE_ROOM (2 * LINE_BYTES + 1024)

/* Attributes of a line in addition to its text. */
struct log_about {
	enum log_event ev;
	enum log_level level;
	const char *module, *request; /* request: NULL where there is none */
	const struct log_field *fields;
	int field_nr;
};

extern enum log_format log_format_;

/* Where the bytes of a line go. */
enum log_dest { LOG_TO_STDERR, LOG_TO_STDOUT, LOG_TO_JOURNAL };

/* Makes the fields of a line for the journal, at most cap bytes of out; returns how many.  NULL before log_init(). */
typedef size_t log_journal_pack_fn(const struct log_about *a, const char *text, char *out, size_t cap);
extern log_journal_pack_fn *log_journal_pack_;
/* Sends what log_journal_pack_() made. */
extern void (*log_journal_send_)(const char *packed, size_t len);

/* Takes a line that log_send() sends later; NULL: lines are sent at once. */
typedef void log_enqueue_fn(const struct log_about *a, enum log_dest to, const char *data, size_t len);
extern log_enqueue_fn *log_enqueue_;

/* Sends the bytes of a line; waits for their reader. */
void log_send(enum log_dest to, const char *data, size_t len);
/* Sends them, or enqueues them where log_enqueue_ is set. */
void log_emit(const struct log_about *a, enum log_dest to, const char *data, size_t len);
/* Formats a line of printable text and sends it; waits for its reader. */
void log_deliver_now(const struct log_about *a, const char *text);

#endif
