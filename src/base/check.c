/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a failed check: say what, let the daemon dump its state once, abort. */
#include "base/check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void (*check_on_failure)(void);

_Noreturn void
check_failed(const char *expr, const char *file, int line, const char *func)
{
	static atomic_flag once = ATOMIC_FLAG_INIT;

	fprintf(stderr, "check failed: %s at %s:%d in %s()\n", expr, file, line, func);
	if (!atomic_flag_test_and_set(&once) && check_on_failure)
		check_on_failure();
	abort();
}
