/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control calls on a store that lacks what they need: 501, with the back end's name, in every phase.  settle answers when neither the
 * store nor the walk of the lifecycle works, or names the work after its timeout.
 */
#include "main/daemon.h"

#include "core/core_int.h"
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

/* Posts with a member (NULL: none); the answer is in text. */
static int
post_with(const char *path, const char *name, const char *value, char *text, size_t cap)
{
	struct admin_args args = { .nr = name != NULL };
	struct admin_env env = { .control_nr = 0 };
	int status = 0;

	if (name) {
		snprintf(args.arg[0].name, sizeof args.arg[0].name, "%s", name);
		snprintf(args.arg[0].value, sizeof args.arg[0].value, "%s", value);
	}
	control_env(&env);
	for (int i = 0; i < env.control_nr; i++) {
		if (env.controls[i].path && strcmp(env.controls[i].path, path) == 0) {
			FILE *out = fmemopen(text, cap, "w");

			assert_non_null(out);
			status = env.controls[i].post(&d, &args, out);
			fclose(out);
		}
	}
	assert_int_not_equal(status, 0);
	return status;
}

static int
post(const char *path, char *text, size_t cap)
{
	return post_with(path, NULL, NULL, text, cap);
}

/* ---- settle ---- */

static int asked;        /* how often the store was asked */
static int works_before; /* so many times it works */

static const char *
odd_background(const struct store *st)
{
	return asked++ < works_before ? "packing" : NULL;
}

static void
test_settle(void **state)
{
	struct store_ops ops = mem_store_ops;
	struct store odd = { .ops = &ops };
	struct cores *cores = calloc(1, sizeof *cores);
	char text[256];

	assert_non_null(cores);
	assert_int_equal(walks_public_new(false, &cores->walks), 0);
	atomic_store(&d.store, &odd);
	atomic_store(&d.cores, cores);
	atomic_store(&d.phase, PHASE_SERVING);
	/* A back end without background work. */
	ops.background = NULL;
	assert_int_equal(post("/control/settle", text, sizeof text), 200);
	/* It ends before the timeout, or does not. */
	ops.background = odd_background;
	works_before = 3;
	assert_int_equal(post("/control/settle", text, sizeof text), 200);
	assert_int_equal(asked, 4);
	asked = 0;
	works_before = 1 << 30;
	assert_int_equal(post_with("/control/settle", "timeout", "1", text, sizeof text), 503);
	assert_string_equal(text, "{\"error\":\"packing is in progress\",\"busy\":\"packing\"}");
	works_before = 0;
	atomic_store(&walks_get(cores->walks, WALK_LIFECYCLE)->state, WALK_RUNNING);
	assert_int_equal(post_with("/control/settle", "timeout", "1", text, sizeof text), 503);
	assert_string_equal(text, "{\"error\":\"lifecycle is in progress\",\"busy\":\"lifecycle\"}");
	atomic_store(&walks_get(cores->walks, WALK_LIFECYCLE)->state, WALK_IDLE);
	assert_int_equal(post("/control/settle", text, sizeof text), 200);
	/* What it does not take, and when there is no one to ask. */
	for (const char *const *bad = (const char *const[]){ "0", "3601", "1s", "-1", "", "999999", NULL };
	     *bad; bad++)
		assert_int_equal(post_with("/control/settle", "timeout", *bad, text, sizeof text), 400);
	atomic_store(&d.phase, PHASE_DRAINING);
	assert_int_equal(post("/control/settle", text, sizeof text), 503);
	assert_null(strstr(text, "busy"));
	atomic_store(&d.store, NULL);
	atomic_store(&d.cores, NULL);
	walks_public_free(cores->walks);
	free(cores);
}

static int
odd_snapshot(struct store *st)
{
	return 0;
}

/* Snapshots of a store that has none, that is not asked yet, and that is not there yet. */
static void
test_lacks(void **state)
{
	struct store_ops ops = mem_store_ops;
	struct store odd = { .ops = &ops };
	char text[256];

	ops.name = "odd";
	for (int phase = 0; phase < PHASE_NR; phase++) {
		atomic_store(&d.phase, phase);
		atomic_store(&d.store, &odd);
		ops.snapshot = NULL;
		assert_int_equal(post("/control/snapshot", text, sizeof text), 501);
		assert_string_equal(text, "{\"error\":\"a store on odd makes no snapshots\"}");
		if (phase == PHASE_SERVING)
			continue;
		ops.snapshot = odd_snapshot;
		assert_int_equal(post("/control/snapshot", text, sizeof text), 503);
		atomic_store(&d.store, NULL);
		assert_int_equal(post("/control/snapshot", text, sizeof text), 503);
		assert_int_equal(post("/control/scrub", text, sizeof text), 503);
		assert_int_equal(post("/control/drain", text, sizeof text), 503);
		assert_int_equal(post("/control/resume", text, sizeof text), 503);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lacks), cmocka_unit_test(test_settle) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
