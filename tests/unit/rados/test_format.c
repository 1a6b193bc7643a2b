/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format version of the pools, with a build whose records have one more field (tests/unit/rados/row.def):
 * pools of the previous version keep their records, `gantryd --upgrade` raises the version while the gateway
 * runs, and gateways of earlier and later versions are refused. The cluster is in memory
 * (tests/fake/librados.h).
 */
#define RECORD_DEF_MORE "tests/unit/rados/row.def"
#include "rados/io/codec.h"
#include "tests/fake/librados.h"
#include "tests/fake/store_loop.h"

#include "base/check.h"
#include "base/crc64.h"
#include "base/log.h"

#include <errno.h>
#include <rados/librados.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define OLD (STORE_FORMAT_VERSION - 1)

static struct store_conf conf;
static const struct store_key key = { "b", "k", 1, 1 };
static struct loop l;
static struct store *store;
static char said[512], logged[512];

static void
on_done(struct store_op *op)
{
	l.is_over = true;
}

static int
result_of(int started, const struct store_op *op)
{
	if (started < 0)
		return started;
	while (started == 0 && !l.is_over)
		check(fake_rados_turn(&l.mb));
	l.is_over = false;
	return op->result;
}

static void
on_log(enum log_level level, const char *text)
{
	snprintf(logged, sizeof logged, "%s", text);
}

/* ---- direct access to the pools ---- */

static rados_t cluster;

static rados_ioctx_t
meta_pool(void)
{
	rados_ioctx_t io;

	check(rados_create(&cluster, "admin") == 0);
	check(rados_ioctx_create(cluster, "gantry.meta", &io) == 0);
	rados_ioctx_set_namespace(io, "format");
	return io;
}

static void
close_pool(rados_ioctx_t io)
{
	rados_ioctx_destroy(io);
	rados_shutdown(cluster);
}

static uint32_t
version_of_pools(void)
{
	rados_ioctx_t io = meta_pool();
	uint8_t bytes[STORE_FORMAT_BYTES];
	struct store_format_row row;

	assert_int_equal(rados_getxattr(io, "gantry", "format", (char *)bytes, sizeof bytes), sizeof bytes);
	close_pool(io);
	format_decode(bytes, sizeof bytes, &row);
	return row.version;
}

static void
set_version_of_pools(uint32_t version)
{
	rados_ioctx_t io = meta_pool();
	rados_write_op_t op = rados_create_write_op();
	uint8_t bytes[STORE_FORMAT_BYTES];
	uint64_t crc;

	rados_getxattr(io, "gantry", "format", (char *)bytes, sizeof bytes);
	memcpy(bytes + 4, &version, sizeof version);
	crc = crc64_nvme(0, bytes, sizeof bytes - 8);
	memcpy(bytes + sizeof bytes - 8, &crc, 8);
	rados_write_op_setxattr(op, "format", (const char *)bytes, sizeof bytes);
	assert_int_equal(rados_write_op_operate(op, io, "gantry", NULL, 0), 0);
	rados_release_write_op(op);
	close_pool(io);
}

static void
set_row(const char *object, const char *row, const void *val, size_t len)
{
	rados_ioctx_t io = meta_pool();
	rados_write_op_t op = rados_create_write_op();
	const char *v = val;

	if (val)
		rados_write_op_omap_set(op, &row, &v, &len, 1);
	else
		rados_write_op_omap_rm_keys(op, &row, 1);
	assert_int_equal(rados_write_op_operate(op, io, object, NULL, 0), 0);
	rados_release_write_op(op);
	close_pool(io);
}

/* Decodes the record of object "k" in the only shard. Copies the name of the shard, and the bytes that the
 * record points into. Returns the additional field. */
static uint64_t
find_record(char shard[64], struct record *ret_record, char copy[512])
{
	rados_ioctx_t io = meta_pool();
	rados_list_ctx_t list;
	rados_omap_iter_t iter;
	rados_read_op_t op = rados_create_read_op();
	const char *name, *rows[] = { "ok" };
	char *k = NULL, *v;
	size_t k_len, v_len;
	int rv = 0;

	assert_int_equal(rados_nobjects_list_open(io, &list), 0);
	while (rados_nobjects_list_next(list, &name, NULL, NULL) == 0) {
		if (strncmp(name, "idx.", 4) == 0)
			snprintf(shard, 64, "%s", name);
	}
	rados_nobjects_list_close(list);
	rados_read_op_omap_get_vals_by_keys(op, rows, 1, &iter, &rv);
	assert_int_equal(rados_read_op_operate(op, io, shard, 0), 0);
	rados_omap_get_next2(iter, &k, &v, &k_len, &v_len);
	assert_non_null(k);
	memcpy(copy, v, v_len);
	assert_int_equal(record_decode(copy, v_len, ret_record), 0);
	rados_omap_get_end(iter);
	rados_release_read_op(op);
	close_pool(io);
	return ret_record->lock_ns;
}

static uint64_t
lock_of_object(void)
{
	char shard[64], copy[512];
	struct record r;

	return find_record(shard, &r, copy);
}

/* Sets the additional field of the object's record, as a gateway of the next version does. */
static void
lock_object(void)
{
	char shard[64], copy[512], bytes[512];
	struct record r;

	find_record(shard, &r, copy);
	r.lock_ns = 7;
	record_encode(bytes, &r);
	set_row(shard, "ok", bytes, record_bytes(&r));
}

/* ---- operations of the store ---- */

static int
put(void)
{
	struct store_put p = { .op.done = on_done };
	struct store_commit c = { .inline_data = "bytes", .inline_len = 5 };

	assert_int_equal(store_put_init(l.port, &p, &key, 5), 0);
	return result_of(store_put_commit(l.port, &p, &c), &p.op);
}

static int
set_attrs(void)
{
	struct store_del d = { .op.done = on_done };

	return result_of(store_set_attrs(l.port, &key, 0, "a", 1, &d), &d.op);
}

static int
start(void)
{
	int e = store_start(&conf, &store, said, sizeof said);

	if (e == 0)
		assert_int_equal(store_attach(store, NULL, &l.mb, NULL, &l.port), 0);
	return e;
}

static void
stop(void)
{
	while (!store_detach(l.port))
		fake_rados_turn(&l.mb);
	store_stop(store);
}

/* Makes a store of a format version, with a bucket and an object. */
static void
make(uint32_t version)
{
	struct store_del d = { .op.done = on_done };

	fake_rados_reset(NULL);
	assert_int_equal(store_format(&conf, false, said, sizeof said), 0);
	assert_int_equal(version_of_pools(), STORE_FORMAT_VERSION);
	set_version_of_pools(version);
	assert_int_equal(start(), 0);
	assert_int_equal(result_of(store_bucket_create(l.port, "b", 1, 1, &d), &d.op), 0);
	assert_int_equal(put(), 0);
}

static void
assert_said(const char *text)
{
	if (!strstr(said, text))
		printf("'%s' is not in '%s'\n", text, said);
	assert_non_null(strstr(said, text));
}

/* ---- tests ---- */

static void
test_upgrade(void **state)
{
	make(OLD);
	lock_object();
	assert_int_equal(set_attrs(), -EOPNOTSUPP);
	assert_non_null(strstr(logged, "needs format version 3, and the pools have 2; gantryd --upgrade"));
	assert_int_equal(lock_of_object(), 7);
	fake_rados_turn_helpers();
	assert_int_equal(set_attrs(), -EOPNOTSUPP);
	assert_int_equal(version_of_pools(), OLD);
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), 0);
	assert_said("format version 3 now, which was 2");
	assert_int_equal(version_of_pools(), STORE_FORMAT_VERSION);
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), 0);
	assert_said("format version 3 already");
	assert_int_equal(set_attrs(), -EOPNOTSUPP);
	fake_rados_turn_helpers();
	assert_int_equal(set_attrs(), 0);
	assert_int_equal(lock_of_object(), 7);
	assert_int_equal(put(), 0);
	assert_int_equal(lock_of_object(), 0);
	stop();
}

/* Records without the field are written as before. */
static void
test_plain(void **state)
{
	make(OLD);
	assert_int_equal(set_attrs(), 0);
	lock_object();
	assert_int_equal(put(), 0);
	assert_int_equal(lock_of_object(), 0);
	stop();
}

static void
test_other_gateways(void **state)
{
	struct gateway_row row = { .host = "oldhost", .version = OLD };
	uint8_t bytes[GATEWAY_ROW_BYTES];

	make(OLD);
	gateway_encode(bytes, &row);
	set_row("gantry", "i0000000099", "damaged", 7);
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), -EBUSY);
	assert_non_null(strstr(said, "gateway 99 on an unknown host has a damaged row"));
	set_row("gantry", "i0000000099", bytes, sizeof bytes);
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), -EBUSY);
	assert_said("gateway 99 on oldhost");
	assert_int_equal(version_of_pools(), OLD);
	row.version = STORE_FORMAT_VERSION;
	gateway_encode(bytes, &row);
	set_row("gantry", "i0000000099", bytes, sizeof bytes);
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), 0);
	stop();
	set_version_of_pools(STORE_FORMAT_VERSION + 1);
	assert_int_equal(start(), -EINVAL);
	assert_said("format version 4, and this gantryd knows 3");
	assert_null(strchr(said, '\n'));
	assert_int_equal(store_task(&conf, TASK_UPGRADE, said, sizeof said), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_upgrade),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_other_gateways),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	log_set_sink(on_log);
	conf = fake_rados_conf("format", 1);
	check(mailbox_init(&l.mb) == 0);
	return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
