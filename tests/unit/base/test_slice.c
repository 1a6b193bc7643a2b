/* SPDX-License-Identifier: Apache-2.0 */
/* base/slice.h: what it asks for is granted where the kernel knows it,
 * and costs nothing where it does not. */
#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a child: nice is inherited, and not everybody may lower it again. */
static int
child(int nice_by)
{
	int was, policy;

	if (nice_by && setpriority(PRIO_PROCESS, 0, nice_by) < 0)
		return 2;
	was = getpriority(PRIO_PROCESS, 0);
	policy = sched_getscheduler(0);
	if (slice_short() != 0)
		return 3;
	return getpriority(PRIO_PROCESS, 0) == was && sched_getscheduler(0) == policy ? 0 : 4;
}

static void
keeps_priority(void **state)
{
	for (int n = 0; n < 2; n++) {
		int status;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(child(n * 5));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(keeps_priority) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
