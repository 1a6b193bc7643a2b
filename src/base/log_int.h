/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the log. */
#ifndef GANTRY_BASE_LOG_INT_H
#define GANTRY_BASE_LOG_INT_H

#include "base/log.h"

#include <stddef.h>

/* Size of a line in bytes; a line of the access log may contain a key of 1024 bytes, each written as three
 * characters. */
#define LINE_BYTES 4608

/* Size of a line in bytes with the additions of its format: JSON, or fields of the journal. */
#define LINE_ROOM (2 * LINE_BYTES + 1024)

/* The attributes of a log line, in addition to its text. */
struct log_about {
	enum log_event ev;
	enum log_level level;
	const char *module, *request; /* request: id of the request; NULL: the line is about no request */
	const struct log_field *fields;
	int field_nr;
};

extern enum log_format log_format_;

/* The destination of the bytes of a line. */
enum log_dest { LOG_TO_STDERR, LOG_TO_STDOUT, LOG_TO_JOURNAL };

/* Writes the fields of a line for the journal to out, at most cap bytes. Returns the number of bytes. The
 * function pointer is NULL before log_init(). */
typedef size_t log_journal_pack_fn(const struct log_about *a, const char *text, char *out, size_t cap);
extern log_journal_pack_fn *log_journal_pack_;
/* Sends the fields that log_journal_pack_() has written. */
extern void (*log_journal_send_)(const char *packed, size_t len);

/* Puts a line into the queue, whose thread calls log_send() later. The function pointer is NULL while lines
 * are sent immediately. */
typedef void log_enqueue_fn(const struct log_about *a, enum log_dest to, const char *data, size_t len);
extern log_enqueue_fn *log_enqueue_;

/* Sends the bytes of a line. Waits if the reader of the log does not read. */
void log_send(enum log_dest to, const char *data, size_t len);
/* Sends the bytes of a line, or puts them into the queue if log_enqueue_ is set. */
void log_emit(const struct log_about *a, enum log_dest to, const char *data, size_t len);
/* Formats a line of printable text and sends it. Waits if the reader of the log does not read. */
void log_deliver_now(const struct log_about *a, const char *text);

#endif
