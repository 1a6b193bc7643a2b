/* SPDX-License-Identifier: Apache-2.0 */
/* The contract suite: objects with an expiry. See store_contract.c. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/fake/store_contract_int.h"

#include "base/age_clock.h"
#include "base/clock.h"
#include "base/list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define HOUR_NS (3600 * NS_PER_S)

static int
put_expiring(const char *key, size_t size, uint64_t expires_ns, const struct store_pre *pre)
{
	static struct putting pt;

	memset(&pt, 0, sizeof pt);
	pt.commit.meta.expires_ns = expires_ns;
	pt.commit.meta.attrs = "attrs";
	pt.commit.meta.attrs_len = 5;
	if (pre)
		pt.commit.pre = *pre;
	return sc_put_end(&pt, sc_put_begin(&pt, key, 0, size, HOW_COMMIT, STORE_PIECE, true));
}

static uint64_t
expiry_of(const char *key)
{
	static struct store_obj obj;
	uint64_t ns;

	assert_int_equal(sc_open_obj(key, &obj), 0);
	assert_int_equal(obj.meta.attrs_len, 5);
	ns = obj.meta.expires_ns;
	store_close(sc->port, &obj);
	return ns;
}

/* ---- lists ---- */

struct listed {
	struct store_list ls;
	char names[512], after[64];
	size_t len;
	uint32_t nr;
};

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	struct listed *l = container_of(ls, struct listed, ls);

	l->nr++;
	l->len += (size_t)snprintf(l->names + l->len, sizeof l->names - l->len, "%.*s%s ", (int)e->name_len,
				   e->name, e->expires_ns ? "*" : "");
	snprintf(l->after, sizeof l->after, "%.*s", (int)e->name_len, e->name);
	return true;
}

/* Lists what begins with "x", pages of `max`. */
static void
assert_list(const char *delimiter, bool shows_gone, uint32_t max, const char *names)
{
	static struct listed l;
	char from[64];
	int r;

	memset(&l, 0, sizeof l);
	do {
		memcpy(from, l.after, sizeof from);
		l.ls = (struct store_list){ .bucket = BUCKET,
					    .bucket_len = sizeof BUCKET - 1,
					    .prefix = "x",
					    .prefix_len = 1,
					    .after = *from ? from : NULL,
					    .after_len = (uint16_t)strlen(from),
					    .delimiter = delimiter,
					    .delimiter_len = (uint16_t)strlen(delimiter),
					    .max = max,
					    .shows_gone = shows_gone,
					    .entry = on_entry };
		l.nr = 0;
		r = sc_wait_for(&l.ls.op, START(&l.ls.op, store_list(sc->port, &l.ls)));
		assert_int_equal(r, l.nr);
	} while (l.ls.more);
	assert_string_equal(l.names, names);
}

/* ---- tests ---- */

static void
wait_past(uint64_t ns)
{
	while (age_clock_ns() <= ns)
		nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
}

/* Removes an object if it has expired. */
static int
remove_expired(const char *key)
{
	const struct store_pre pre = { .kind = PRE_EXPIRED, .expired_ns = age_clock_ns() };

	return sc_del_pre(key, &pre);
}

void
sc_test_expiry(void **state)
{
	const struct store_pre absent = { .kind = PRE_ABSENT }, any = { .kind = PRE_MATCH_ANY };
	uint64_t soon_ns, later_ns = age_clock_ns() + HOUR_NS;
	static struct store_obj obj, open;
	size_t sizes[] = { 0, 100, 70000 };

	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(put_expiring("x1", sizes[i], later_ns, NULL), 0);
		assert_true(expiry_of("x1") == later_ns);
		assert_int_equal(put_expiring("x1", sizes[i], later_ns, &absent), -EEXIST);
		assert_int_equal(remove_expired("x1"), -ESTALE);
		/* A cluster may answer later than in 300 ms. */
		soon_ns = age_clock_ns() + 300 * NS_PER_MS;
		assert_int_equal(put_expiring("x1", sizes[i], soon_ns, NULL), 0);
		memset(&open, 0, sizeof open);
		if (sc_open_obj("x1", &open) == 0) {
			wait_past(soon_ns);
			sc_read_all(&open, 0, sizes[i]); /* a reader that has begun */
			store_close(sc->port, &open);
		}
		wait_past(soon_ns);
		assert_int_equal(sc_open_obj("x1", &obj), -ENOENT);
		assert_int_equal(sc_set_attrs("x1", 0, "other", 5), -ENOENT);
		assert_int_equal(put_expiring("x1", 10, 0, &any), -ENOENT);
		assert_int_equal(put_expiring("x1", sizes[i], later_ns, &absent), 0);
		assert_true(expiry_of("x1") == later_ns);
		assert_int_equal(sc_set_attrs("x1", 0, "other", 5), 0);
		assert_true(expiry_of("x1") == later_ns);
		sc_expect("x1", 0, sizes[i]);
	}
	assert_int_equal(put_expiring("x1", 10, 0, NULL), 0);
	assert_true(expiry_of("x1") == 0);
	assert_int_equal(remove_expired("x1"), -ESTALE);
	assert_int_equal(sc_del("x1"), 1);
	assert_int_equal(remove_expired("x1"), -ENOENT);
}

void
sc_test_expiry_list(void **state)
{
	static const char *const gone[] = { "x-a", "xd/1", "xd/2", "xe/1", "x-z" };
	uint64_t past_ns = age_clock_ns() - 1;

	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
		assert_int_equal(put_expiring(gone[i], 10, past_ns, NULL), 0);
	assert_int_equal(put_expiring("xe/2", 10, past_ns + HOUR_NS, NULL), 0);
	assert_int_equal(put_expiring("xf", 10, 0, NULL), 0);
	for (uint32_t max = 1; max < 4; max++) {
		assert_list("", false, max, "xe/2* xf ");
		assert_list("/", false, max, "xe/ xf ");
		assert_list("", true, max, "x-a* x-z* xd/1* xd/2* xe/1* xe/2* xf ");
	}
	assert_int_equal(sc_del(gone[0]), 0); /* absent for the caller; the record is removed */
	assert_int_equal(remove_expired(gone[0]), -ENOENT);
	for (size_t i = 1; i < sizeof gone / sizeof *gone; i++)
		assert_int_equal(remove_expired(gone[i]), 1);
	assert_list("", true, 100, "xe/2* xf ");
	assert_int_equal(sc_del("xe/2"), 1);
	assert_int_equal(sc_del("xf"), 1);
}
