/* SPDX-License-Identifier: Apache-2.0 */
/* Control calls on a store that lacks what they need: 501, with the back end's name, in every phase. */
#include "main/daemon.h"

#include "store/ops.h"
#include "tests/fake/mem_store.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static struct daemon d;
static unsigned can;

static unsigned
odd_can(const struct store *st)
{
	return can;
}

/* Posts without arguments; the answer is in text. */
static int
post(const char *path, char *text, size_t cap)
{
	static const struct admin_args none;
	struct admin_env env = { .control_nr = 0 };
	int status = 0;

	control_env(&env);
	for (int i = 0; i < env.control_nr; i++) {
		if (strcmp(env.controls[i].path, path) == 0) {
			FILE *out = fmemopen(text, cap, "w");

			assert_non_null(out);
			status = env.controls[i].post(&d, &none, out);
			fclose(out);
		}
	}
	assert_int_not_equal(status, 0);
	return status;
}

static void
test_lacks(void **state)
{
	static const struct {
		const char *path;
		unsigned need;
		const char *answer;
	} calls[] = {
		{ "/control/snapshot", STORE_CAN_SNAPSHOT, "a store on odd makes no snapshots" },
		{ "/control/scrub", STORE_CAN_SCRUB, "a store on odd has no scrub" },
		{ "/control/drain", STORE_CAN_DRAIN, "a store on odd cannot be drained" },
		{ "/control/resume", STORE_CAN_DRAIN, "a store on odd cannot be drained" },
	};
	struct store_ops ops = mem_store_ops;
	struct store odd = { .ops = &ops };
	char text[256], want[256];

	ops.name = "odd";
	ops.can = odd_can;
	for (int phase = 0; phase < PHASE_NR; phase++) {
		atomic_store(&d.phase, phase);
		for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
			snprintf(want, sizeof want, "{\"error\":\"%s\"}", calls[i].answer);
			atomic_store(&d.store, &odd);
			can = ~calls[i].need;
			assert_int_equal(post(calls[i].path, text, sizeof text), 501);
			assert_string_equal(text, want);
			if (phase == PHASE_SERVING)
				continue;
			/* one that can is asked later, and one that is not there yet says nothing of
			 * itself */
			can = calls[i].need;
			assert_int_equal(post(calls[i].path, text, sizeof text), 503);
			atomic_store(&d.store, NULL);
			assert_int_equal(post(calls[i].path, text, sizeof text), 503);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lacks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
