/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a failed check: what the program does before its end, once; one line; abort. */
#include "base/check.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void (*check_on_failure)(void);

_Noreturn void
check_failed(const char *expr, const char *file, int line, const char *func)
{
	static atomic_flag once = ATOMIC_FLAG_INIT;
	struct pollfd p = { STDERR_FILENO, POLLOUT, 0 };

	if (!atomic_flag_test_and_set(&once) && check_on_failure)
		check_on_failure();
	/* A reader of standard error that does not read is no reason to stay. */
	if (poll(&p, 1, 1000) == 1)
		fprintf(stderr, "check failed: %s at %s:%d in %s()\n", expr, file, line, func);
	abort();
}
