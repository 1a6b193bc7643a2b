/* SPDX-License-Identifier: Apache-2.0 */
/* What a start, a check and a format count of their progress, seen at each read and write: each step's count grows to its total. */
#include "fixture.h"

#include "store/meter.h"
#include "tests/fake/fault_ring.h"

#define OBJECTS 6
#define OBJECT_BYTES (300u << 10)

static struct store_meter meter;
/* Of each step: the largest counts seen, how often, and whether one was above its total. */
static struct {
	uint64_t done, total, seen;
	bool too_many, is_estimate;
} step[METER_STEPS];

static int
note(const struct fault_io *io)
{
	const struct meter_disk *d = &meter.disk[0];
	int s = atomic_load(&d->step);
	uint64_t done = atomic_load(&d->done), total = atomic_load(&d->total);

	step[s].seen++;
	step[s].done = done > step[s].done ? done : step[s].done;
	step[s].total = total > step[s].total ? total : step[s].total;
	step[s].too_many |= total && done > total;
	step[s].is_estimate |= atomic_load(&d->is_estimate);
	return 0;
}

static int
setup(void **state)
{
	int r = make_store(100 * MIB);

	for (int i = 0; r == 0 && i < OBJECTS; i++) {
		char name[16];

		snprintf(name, sizeof name, "k%d", i);
		r = obj_put(&l, &(struct put_args){ .bucket = "b", .key = name, .size = OBJECT_BYTES });
	}
	make_snapshot();
	for (int i = 0; r == 0 && i < 200; i++) {
		char name[16];

		snprintf(name, sizeof name, "s%d", i);
		r = obj_put(&l, &(struct put_args){ .bucket = "b", .key = name, .size = 8 });
	}
	close_store();
	conf.disks.meter = &meter;
	return r;
}

static void
begin(void)
{
	memset(step, 0, sizeof step);
	fault_ring_hook = note;
}

/* The log and the objects' space are counted; at the end nothing is under way. */
static void
start(void **state)
{
	struct progress_view v = { .what = "" };

	begin();
	open_store();
	fault_ring_hook = NULL;
	assert_string_equal(meter.disk[0].path, dir);
	assert_true(step[METER_INDEX].seen > 0);
	/* The host block says how far the log goes: all but the part that one read brings is seen. */
	assert_true(step[METER_LOG].seen > 0);
	assert_false(meter_view(&meter, &v));
	close_store();
}

static uint64_t read_bytes, said_done, said_total;

static void
say(void *cookie, const char *line)
{
	const char *at = strstr(line, " objects, ");

	if (!at)
		return;
	read_bytes = strtoull(at + strlen(" objects, "), NULL, 10);
	said_done = atomic_load(&meter.disk[0].done);
	said_total = atomic_load(&meter.disk[0].total);
}

static void
check_all(void **state)
{
	struct progress_view v = { .what = "" };

	begin();
	assert_int_equal(store_fsck(&conf, FSCK_LOOK, say, NULL), 0);
	fault_ring_hook = NULL;
	assert_true(read_bytes >= OBJECTS * OBJECT_BYTES);
	/* The last sums are of the whole. */
	assert_int_equal(said_done, read_bytes);
	assert_int_equal(said_total, read_bytes);
	/* Before the last object was read, its bytes were not counted; the total was known from the beginning. */
	assert_true(step[METER_CHECK].seen >= OBJECTS);
	assert_int_equal(step[METER_CHECK].total, read_bytes);
	assert_true(step[METER_CHECK].done >= (OBJECTS - 2) * OBJECT_BYTES);
	assert_true(step[METER_CHECK].done < read_bytes);
	assert_false(step[METER_CHECK].too_many);
	assert_false(meter_view(&meter, &v));
}

static void
format(void **state)
{
	struct store_birth birth = { .number = 0 };
	struct store_conf c = conf;
	char other[sizeof dir];

	dir_make(other);
	dc.path = other;
	memset(&meter, 0, sizeof meter);
	table_make(&birth.table, (const uint8_t[][UUID_BYTES]){ { 1 } }, &(uint64_t){ 100 * MIB }, 1, 1);
	c.disks.birth = &birth;
	begin();
	assert_int_equal(store_format(&c, false, err, sizeof err), 0);
	fault_ring_hook = NULL;
	/* The writes of the superblocks come after all that is counted. */
	assert_true(step[METER_MAKE].total > 2 * MIB);
	assert_int_equal(step[METER_MAKE].done, step[METER_MAKE].total);
	assert_false(step[METER_MAKE].too_many);
	dc.path = dir;
	dir_remove(other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(start), cmocka_unit_test(check_all),
					    cmocka_unit_test(format) };

	return cmocka_run_group_tests(tests, setup, remove_store);
}
