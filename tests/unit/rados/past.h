/* SPDX-License-Identifier: Apache-2.0 */
/* Direct access to the meta pool of the store of diff_rados_end(), on the cluster in memory. */
#ifndef TESTS_UNIT_RADOS_PAST_H
#define TESTS_UNIT_RADOS_PAST_H

#include "base/check.h"

#include <rados/librados.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static rados_t cluster;
static rados_ioctx_t meta;

static void
open_pool(void)
{
	check(rados_create(&cluster, "admin") == 0);
	check(rados_ioctx_create(cluster, "gantry.meta", &meta) == 0);
	rados_ioctx_set_namespace(meta, "diff");
}

static void
close_pool(void)
{
	rados_ioctx_destroy(meta);
	rados_shutdown(cluster);
}

/* Reads the first row of an object whose key begins with a prefix. Returns the length of its value; 0: there is no such row. */
static size_t
look_for_row(const char *object, const char *prefix, char key[80], char *val, size_t cap)
{
	rados_read_op_t op = rados_create_read_op();
	rados_omap_iter_t iter;
	unsigned char more;
	char *k = NULL, *v;
	size_t k_len, v_len = 0;
	int rv = 0;

	rados_read_op_omap_get_vals2(op, "", prefix, 1, &iter, &more, &rv);
	assert_int_equal(rados_read_op_operate(op, meta, object, 0), 0);
	rados_omap_get_next2(iter, &k, &v, &k_len, &v_len);
	if (k) {
		assert_true(k_len < 80 && v_len > 0 && v_len <= cap);
		memcpy(key, k, k_len + 1);
		memcpy(val, v, v_len);
	}
	rados_omap_get_end(iter);
	rados_release_read_op(op);
	return v_len;
}

/* Reads a row that must exist, with a value of at most 64 bytes. */
static inline size_t
first_row(const char *object, const char *prefix, char key[80], char val[64])
{
	size_t len = look_for_row(object, prefix, key, val, 64);

	assert_true(len > 0);
	return len;
}

/* Sets a row; val NULL: removes it. */
static void
set_row(const char *object, const char *key, const char *val, size_t len)
{
	rados_write_op_t op = rados_create_write_op();

	if (val)
		rados_write_op_omap_set(op, &key, &val, &len, 1);
	else
		rados_write_op_omap_rm_keys(op, &key, 1);
	assert_int_equal(rados_write_op_operate(op, meta, object, NULL, 0), 0);
	rados_release_write_op(op);
}

#endif
