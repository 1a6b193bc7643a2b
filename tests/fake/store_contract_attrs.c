/* SPDX-License-Identifier: Apache-2.0 */
/* The contract suite: other attributes of objects, attributes of buckets.  See store_contract.c. */
#include "tests/fake/store_contract_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

int
sc_set_attrs(const char *key, uint64_t version, const void *attrs, uint32_t len)
{
	static struct store_del op;
	struct store_key k = sc_key_of(key);

	return sc_wait_for(&op.op, START(&op.op, store_set_attrs(sc->port, &k, version, attrs, len, &op)));
}

void
sc_test_set_attrs(void **state)
{
	static const size_t sizes[] = { 0, 100, 70000, 3000000, 9000000 };
	struct store_obj before, after;

	assert_int_equal(sc_set_attrs("at", 0, "x", 1), -ENOENT);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(sc_put("at", i, sizes[i]), 0);
		assert_int_equal(sc_open_obj("at", &before), 0);
		assert_int_equal(sc_set_attrs("at", before.version - 1, "x", 1), -ESTALE);
		assert_int_equal(sc_set_attrs("at", before.version, "one", 3), 0);
		assert_int_equal(sc_set_attrs("at", before.version, "no", 2), -ESTALE);
		assert_int_equal(sc_open_obj("at", &after), 0);
		assert_true(after.version > before.version && after.meta.mtime_ns == before.meta.mtime_ns);
		assert_memory_equal(&after.meta.etag, &before.meta.etag, sizeof after.meta.etag);
		assert_true(after.meta.attrs_len == 3 && memcmp(after.meta.attrs, "one", 3) == 0);
		assert_int_equal(before.meta.attrs_len, 0);
		assert_int_equal(sc_set_attrs("at", 0, sc_pattern, STORE_ATTRS_MAX), 0);
		store_close(sc->port, &after);
		sc_expect("at", i, sizes[i]);
		/* deleted while one is open that had other attributes: its bytes stay */
		assert_int_equal(sc_del("at"), 1);
		for (int n = 0; n < 20; n++) {
			assert_int_equal(sc_put("reuse", 77, 300000), 0);
			sc->turn(sc);
		}
		sc_read_all(&before, i, sizes[i]);
		store_close(sc->port, &before);
	}
	assert_int_equal(sc_del("reuse"), 1);
}

static int
set_bucket(const char *name, uint64_t version, const void *attrs, uint32_t len)
{
	static struct store_bucket_set op;

	return sc_wait_for(&op.op, START(&op.op, store_bucket_set_attrs(sc->port, name, strlen(name), version,
									attrs, len, &op)));
}

static int
create_as(const char *name, const void *attrs, uint32_t len)
{
	const struct store_bucket_spec spec = { .attrs = attrs, .attrs_len = len };
	struct store_del op;

	return sc_wait_for(&op.op,
			   START(&op.op, store_bucket_create_as(sc->port, name, strlen(name), &spec, &op)));
}

/* A bucket that is made with attributes has them; one that is there keeps its own, and the next of its name has none of
 * theirs. */
static void
test_made_with(const char *name)
{
	static const uint32_t sizes[] = { STORE_BUCKET_ATTRS_MAX, 1, 12289, 0 };
	static unsigned char got[STORE_BUCKET_ATTRS_MAX];
	uint64_t version;

	assert_int_equal(create_as(name, sc_pattern, STORE_BUCKET_ATTRS_MAX + 1), -EINVAL);
	assert_int_equal(sc_bucket_head(name, NULL), -ENXIO);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(create_as(name, sc_pattern + i, sizes[i]), 0);
		assert_int_equal(create_as(name, "other", 5), -EEXIST);
		assert_int_equal(sc_bucket_get_attrs(name, got, sizeof got, &version), sizes[i]);
		assert_memory_equal(got, sc_pattern + i, sizes[i]);
		assert_int_equal(version > 0, sizes[i] > 0);
		assert_int_equal(set_bucket(name, version, "x", 1), 0);
		assert_int_equal(sc_bucket_get_attrs(name, got, sizeof got, NULL), 1);
		assert_int_equal(sc_bucket_delete(name), 0);
	}
}

void
sc_test_bucket_attrs(void **state)
{
	static const uint32_t sizes[] = { 1, 12288, 12289, 32768, 20000, 5, 0, 24576 };
	static unsigned char got[STORE_BUCKET_ATTRS_MAX];
	const char *name = "contract-at";
	uint64_t version = 0, was = 0;

	test_made_with("contract-am");
	assert_int_equal(set_bucket(name, 0, "x", 1), -ENXIO);
	assert_int_equal(sc_bucket_get_attrs(name, NULL, 0, NULL), -ENXIO);
	assert_int_equal(sc_bucket_create(name), 0);
	assert_int_equal(sc_bucket_get_attrs(name, got, sizeof got, &version), 0);
	assert_true(version == 0);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(set_bucket(name, version, sc_pattern + i, sizes[i]), 0);
		assert_int_equal(sc_bucket_get_attrs(name, got, sizeof got, &version), sizes[i]);
		assert_memory_equal(got, sc_pattern + i, sizes[i]);
		assert_true(sizes[i] ? version > was : version == 0);
		assert_int_equal(set_bucket(name, version + 1, "x", 1), -ESTALE);
		was = version ? version : was;
	}
	memset(got, 0, sizeof got);
	assert_int_equal(sc_bucket_get_attrs(name, got, 13000, NULL), 24576);
	assert_memory_equal(got, sc_pattern + 7, 13000);
	assert_int_equal(got[13000], 0);
	assert_int_equal(set_bucket(name, STORE_VERSION_ANY, "y", 1), 0);
	assert_int_equal(set_bucket(name, 0, got, STORE_BUCKET_ATTRS_MAX + 1), -EINVAL);
	/* gone with the bucket, and another of its name has none */
	assert_int_equal(sc_bucket_delete(name), 0);
	assert_int_equal(sc_bucket_get_attrs(name, NULL, 0, NULL), -ENXIO);
	assert_int_equal(sc_bucket_create(name), 0);
	assert_int_equal(sc_bucket_get_attrs(name, NULL, 0, &version), 0);
	assert_true(version == 0);
	assert_int_equal(set_bucket(name, 0, "z", 1), 0);
	assert_int_equal(sc_bucket_get_attrs(name, got, 9, NULL), 1);
	assert_int_equal(got[0], 'z');
	assert_int_equal(sc_bucket_delete(name), 0);
}
