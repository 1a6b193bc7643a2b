/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that a program sees: one stream for all objects of a library, written under one lock. */
#ifndef GANTRY_CUOBJECT_TELEMETRY_HPP
#define GANTRY_CUOBJECT_TELEMETRY_HPP

#include <ostream>

/* Where lines go; null: standard error. */
void telemetry_to(std::ostream *os);
/* In a child that was forked: who wrote a line is not there. */
void telemetry_in_child();
void telemetry_flags(unsigned flags, unsigned ops);
/* Is one of these flags set? */
bool telemetry_wants(unsigned flag);
/* Writes `time level thread what`, where the flag is set, and of an operation its bit of ops (0: it is none). */
void telemetry_line(unsigned flag, unsigned op, const char *text);

#endif
