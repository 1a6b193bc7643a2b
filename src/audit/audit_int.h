/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of audit/. */
#ifndef GANTRY_AUDIT_AUDIT_INT_H
#define GANTRY_AUDIT_AUDIT_INT_H

#include "audit/audit.h"

/* Size, in bytes, of the text of any event: a key of 1024 bytes takes up to 6 bytes for each of its bytes. */
#define AUDIT_TEXT_BYTES 10240

/* Writes the event as a JSON object and a line end. held: number of refusals before it that the stream does
 * not have. Returns the length. */
size_t audit_text(const struct audit_event *e, uint64_t now_ns, uint64_t held, char out[AUDIT_TEXT_BYTES]);
/* Writes a time as RFC 3339 text with microseconds: 2026-11-29T12:00:00.000000Z. */
void audit_time(uint64_t wall_ns, char out[32]);

/* Returns true if the stream takes events of this kind. */
bool stream_takes(enum audit_kind kind);
/* Counts a refusal. Returns true if the stream takes it, with the number of those before it that the stream
 * did not take. */
bool stream_takes_refusal(uint64_t *ret_held);
/* Puts the line of an event into the queue, or counts it as dropped. */
void stream_put(enum audit_kind kind, const char *line, size_t len);

/* Returns true if there are followers. */
bool follow_any(void);
/* Gives the line of an event to the followers whose filter it passes. */
void follow_put(const struct audit_event *e, const char *line, size_t len);

#endif
