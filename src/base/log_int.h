/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the log. */
#ifndef GANTRY_BASE_LOG_INT_H
#define GANTRY_BASE_LOG_INT_H

#include "base/log.h"

#define LINE_BYTES 4608 /* a line of the access log may have a key of 1024 bytes, three characters each */

/* Attributes of a line in addition to its text. */
struct log_about {
	enum log_event ev;
	enum log_level level;
	const char *module, *request; /* request: NULL where there is none */
	const struct log_field *fields;
	int field_nr;
};

extern enum log_format log_format_;
/* Writes a line to the journal; NULL before log_init(). */
typedef void log_journal_fn(const struct log_about *a, const char *text);
extern log_journal_fn *log_journal_;

#endif
