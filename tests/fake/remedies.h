/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the form of a message with remedies (base/advice.h). */
#ifndef GANTRY_TESTS_FAKE_REMEDIES_H
#define GANTRY_TESTS_FAKE_REMEDIES_H

#include <stdbool.h>
#include <string.h>

/* Returns true if a message is one line for the problem, and a line for each remedy; a last resort is the last line. */
static inline bool
remedies_are_in_order(const char *message)
{
	const char *line = strchr(message, '\n');

	if (!message[0] || message[0] == '\n')
		return false;
	while (line && strncmp(line + 1, "remedy: ", 8) == 0)
		line = strchr(line + 1, '\n');
	return !line || (strstr(line + 1, "; last resort: ") && !strchr(line + 1, '\n'));
}

#endif
