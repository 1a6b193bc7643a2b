/* SPDX-License-Identifier: Apache-2.0 */
/* The walks of a core together: which cores have them, calls of one of them, and the state that other threads read. */
#include "tests/unit/walk/rig.h"

#include "base/buf.h"
#include "conf/conf.h"
#include "stats/stats.h"
#include "walk/walks.h"

static struct conf conf;
static struct stats *stats;
static struct bufpool bufs;
static struct walks_public *pub;
static struct walks walks;

static int
setup(void **state)
{
	static const struct stats_names names;

	rig_start(state);
	memset(&conf, 0, sizeof conf);
	conf.lifecycle.day_ns = 86400 * NS_PER_S;
	conf.lifecycle.rate = 1000;
	conf.store.scrub_rate = 1 << 20;
	assert_int_equal(stats_new(1, &names, &stats), 0);
	assert_int_equal(bufpool_init(&bufs, 4u << 20), 0);
	assert_int_equal(walks_public_new(true, &pub), 0);
	return 0;
}

static int
teardown(void **state)
{
	walks_pause(&walks, true);
	while (walks_busy(&walks))
		rig_turn();
	walks_end(&walks);
	walks_public_free(pub);
	bufpool_fini(&bufs);
	stats_free(stats);
	return rig_stop(state);
}

static void
start(struct store_port *store, bool has_walks)
{
	struct walk_env env = {
		.store = store, .bufs = &bufs, .timers = &rig.timers, .stats = stats_core(stats, 0)
	};

	assert_int_equal(walks_start(&walks, pub, &env, &conf, has_walks), 0);
}

static const char *
shown(const struct walks_public *of, enum walk_id id)
{
	static char text[512];
	FILE *out = fmemopen(text, sizeof text, "w");

	assert_non_null(out);
	walks_show(of, id, rig.store, out);
	fclose(out);
	return text;
}

/* Without a store, and in every core but the first, there are no walks. */
static void
test_none(void **state)
{
	start(NULL, true);
	assert_null(walks.expiry);
	assert_int_equal(walks_call(&walks, WALK_SCRUB, true), -ENOSYS);
	assert_int_equal(walks_call(&walks, WALK_LIFECYCLE, false), -ENOSYS);
	walks_set_conf(&walks, &conf);
	walks_end(&walks);
	start(rig.port, false);
	assert_non_null(walks.expiry);
	assert_non_null(walks.queue);
	assert_int_equal(walks_call(&walks, WALK_SCRUB, true), -ENOSYS);
	assert_int_equal(walks_busy(&walks), 0);
	walks_public_free(NULL);
}

static const bool settle[] = {
#define WALK(id, name, settles, has_call, args) settles,
#include "walk/walk.def"
};

static void
test_calls(void **state)
{
	make_bucket("bkt");
	start(rig.port, true);
	assert_string_equal(shown(NULL, WALK_LIFECYCLE), "{\"state\":\"idle\"}");
	assert_string_equal(shown(pub, WALK_LIFECYCLE), "{\"state\":\"idle\"}");
	assert_null(walks_unsettled(pub));
	for (int i = 0; i < WALK_NR; i++) {
		bool settles = settle[i];

		assert_int_equal(walks_call(&walks, (enum walk_id)i, false), -EALREADY);
		assert_int_equal(walks_call(&walks, (enum walk_id)i, true), 0);
		assert_int_equal(walks_call(&walks, (enum walk_id)i, true), -EALREADY);
		assert_int_equal(walks_get(pub, (enum walk_id)i)->state, WALK_RUNNING);
		assert_non_null(strstr(shown(pub, (enum walk_id)i), "{\"state\":\"running\""));
		assert_true(settles == (walks_unsettled(pub) != NULL));
		walks_pause(&walks, true);
		assert_non_null(strstr(shown(pub, (enum walk_id)i), "{\"state\":\"paused\""));
		assert_true(settles == (walks_unsettled(pub) != NULL));
		walks_set_conf(&walks, &conf);
		walks_pause(&walks, false);
		rig_until(walks_get(pub, (enum walk_id)i)->state == WALK_IDLE);
		assert_null(walks_unsettled(pub));
	}
	/* Ended on request. */
	assert_int_equal(walks_call(&walks, WALK_SCRUB, true), 0);
	assert_int_equal(walks_call(&walks, WALK_SCRUB, false), 0);
	rig_until(walks_get(pub, WALK_SCRUB)->state == WALK_IDLE);
	assert_non_null(strstr(shown(pub, WALK_SCRUB), "\"walks\":1"));
	assert_non_null(strstr(shown(NULL, WALK_SCRUB), "{\"state\":\"idle\",\"bytes\":0"));
}

/* Errors that the scrub has found remain while it leaves out a damaged bucket. */
static void
test_scrub_leaves_out(void **state)
{
	static const struct {
		enum mem_fault fault;
		int error, skip, nr; /* operations without the fault; with it */
		const char *shows;
	} walk[] = { { MEM_READ, -EIO, 0, 1, "\"damaged_objects\":1,\"walks\":1" },
		     /* The first list is that of the buckets. */
		     { MEM_LIST, -EBADMSG, 1, 1, "\"damaged_objects\":1,\"walks\":2" },
		     { MEM_LIST, 0, 0, 0, "\"damaged_objects\":0,\"walks\":3" } };

	make_bucket("bkt");
	make_object("bkt", "key");
	start(rig.port, true);
	for (size_t i = 0; i < sizeof walk / sizeof *walk; i++) {
		mem_store_fail(rig.store, walk[i].fault, walk[i].error, walk[i].skip, walk[i].nr);
		assert_int_equal(walks_call(&walks, WALK_SCRUB, true), 0);
		rig_until(walks_get(pub, WALK_SCRUB)->state == WALK_IDLE);
		assert_non_null(strstr(shown(pub, WALK_SCRUB), walk[i].shows));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scrub_leaves_out, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
