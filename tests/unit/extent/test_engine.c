/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store through its header, on one port: sizes at every seam, preconditions, buckets, overwriting and
 * deleting under an open reader, restarts, listing.
 */
#include "fixture.h"

#include <signal.h>
#include <sys/wait.h>

static int
setup(void **state)
{
	return make_store(256 * MIB);
}

static const uint64_t sizes[] = { 0,       1,           255,     256,         257,     4095,    4096,
				  4097,    65535,       65536,   65537,       131072,  MIB - 1, MIB,
				  MIB + 1, 3 * MIB + 5, 8 * MIB, 8 * MIB + 1, 65 * MIB };
#define SIZE_NR (sizeof sizes / sizeof *sizes)

static void
name_of(char *name, size_t i)
{
	snprintf(name, 32, "size-%llu", (unsigned long long)sizes[i]);
}

static void
check_sizes(void)
{
	for (size_t i = 0; i < SIZE_NR; i++) {
		char name[32];

		name_of(name, i);
		assert_int_equal(obj_check(&l, "b", name, sizes[i], i), 0);
	}
}

/* put, get, and again after a restart */
static void
test_sizes(void **state)
{
	for (size_t i = 0; i < SIZE_NR; i++) {
		char name[32];

		name_of(name, i);
		assert_int_equal(put_simple(&l, "b", name, sizes[i], i), 0);
		assert_int_equal(obj_check(&l, "b", name, sizes[i], i), 0);
	}
	check_sizes();
	close_store();
	open_store();
	check_sizes();
	close_store();
	open_store();
	check_sizes();
}

/* the same, unannounced, with smaller pieces, and with the last piece written beforehand */
static void
test_ways(void **state)
{
	for (size_t i = 0; i < SIZE_NR; i++) {
		struct put_args a = { .bucket = "b", .key = "way", .size = sizes[i], .seed = 7 * i };

		if (i + 1 == SIZE_NR)
			a.piece = 960 << 10; /* pieces that lie in two chunks */
		a.announce = STORE_SIZE_UNKNOWN;
		assert_int_equal(obj_put(&l, &a), 0);
		assert_int_equal(obj_check(&l, "b", "way", sizes[i], 7 * i), 0);
		a.no_ride = true;
		a.seed++;
		assert_int_equal(obj_put(&l, &a), 0);
		assert_int_equal(obj_check(&l, "b", "way", sizes[i], 7 * i + 1), 0);
		if (sizes[i] <= 3 * MIB) {
			a.piece = 64 << 10;
			a.seed++;
			assert_int_equal(obj_put(&l, &a), 0);
			assert_int_equal(obj_check(&l, "b", "way", sizes[i], 7 * i + 2), 0);
		}
	}
}

static void
test_errors(void **state)
{
	struct put_args a = { .bucket = "b", .key = "x", .size = 1000, .wrong_crc = true };
	struct store_obj obj;

	assert_int_equal(obj_open(&l, "b", "nothing", &obj), -ENOENT);
	assert_int_equal(obj_open(&l, "nowhere", "nothing", &obj), -ENXIO);
	assert_int_equal(put_simple(&l, "nowhere", "x", 10, 1), -ENXIO);
	assert_int_equal(obj_put(&l, &a), -EILSEQ);
	a.size = 10;
	assert_int_equal(obj_put(&l, &a), -EILSEQ);
	assert_int_equal(obj_open(&l, "b", "x", &obj), -ENOENT);
	assert_int_equal(obj_delete(&l, "b", "x", NULL), 0);
	assert_int_equal(obj_delete(&l, "nowhere", "x", NULL), -ENXIO);
}

static void
test_preconditions(void **state)
{
	struct store_pre absent = { .kind = PRE_ABSENT }, any = { .kind = PRE_MATCH_ANY };
	struct store_pre match = { .kind = PRE_MATCH, .etag_nr = 1 },
			 none = { .kind = PRE_NONE_MATCH, .etag_nr = 1 };
	struct put_args a = { .bucket = "b", .key = "p", .size = 10, .seed = 1 };

	memset(a.etag.sum, 1, 16);
	a.pre = &any;
	assert_int_equal(obj_put(&l, &a), -ENOENT);
	a.pre = &absent;
	assert_int_equal(obj_put(&l, &a), 0);
	assert_int_equal(obj_put(&l, &a), -EEXIST);
	a.pre = &any;
	assert_int_equal(obj_put(&l, &a), 0);
	match.etags[0] = a.etag;
	none.etags[0] = a.etag;
	a.pre = &none;
	assert_int_equal(obj_put(&l, &a), -EEXIST);
	a.pre = &match;
	memset(a.etag.sum, 2, 16);
	assert_int_equal(obj_put(&l, &a), 0);
	assert_int_equal(obj_put(&l, &a), -ESTALE);
	assert_int_equal(obj_delete(&l, "b", "p", &match), -ESTALE);
	match.etags[0] = a.etag;
	match.etags[0].parts = 3;
	assert_int_equal(obj_delete(&l, "b", "p", &match), -ESTALE);
	match.etags[0] = a.etag;
	assert_int_equal(obj_delete(&l, "b", "p", &match), 1);
	assert_int_equal(obj_delete(&l, "b", "p", NULL), 0);
}

static void
test_buckets(void **state)
{
	uint64_t ctime = 0;

	assert_int_equal(bucket_make(&l, "b"), -EEXIST);
	assert_int_equal(bucket_remove(&l, "c"), -ENXIO);
	assert_int_equal(bucket_make(&l, "c"), 0);
	assert_int_equal(bucket_head(&l, "c", &ctime), 0);
	assert_true(ctime > 0);
	assert_int_equal(put_simple(&l, "c", "k", 5000, 3), 0);
	assert_int_equal(bucket_remove(&l, "c"), -ENOTEMPTY);
	assert_int_equal(obj_delete(&l, "c", "k", NULL), 1);
	assert_int_equal(bucket_remove(&l, "c"), 0);
	assert_int_equal(bucket_head(&l, "c", NULL), -ENXIO);
	/* a name that begins like another one */
	assert_int_equal(bucket_make(&l, "cc"), 0);
	assert_int_equal(bucket_make(&l, "c"), 0);
	assert_int_equal(put_simple(&l, "cc", "k", 5, 3), 0);
	assert_int_equal(bucket_remove(&l, "c"), 0);
	close_store();
	open_store();
	assert_int_equal(bucket_head(&l, "c", NULL), -ENXIO);
	assert_int_equal(bucket_head(&l, "cc", NULL), 0);
	assert_int_equal(obj_check(&l, "cc", "k", 5, 3), 0);
}

/* A bucket is made anew while its namesake's attributes wait for their removal: its own are not removed for
 * them, though they come in the same block. */
static void
test_bucket_again(void **state)
{
	static struct store_del gone, made;
	static struct store_bucket_set set;
	char got[4];

	assert_int_equal(bucket_make(&l, "c"), 0);
	for (int i = 0; i < 3; i++) {
		set.op.done = gone.op.done = made.op.done = on_put;
		assert_int_equal(store_bucket_set_attrs(l.p, "c", 1, STORE_VERSION_ANY, "old", 3, &set), 0);
		assert_int_equal(op_wait(&l, &set.op), 0);
		assert_int_equal(store_bucket_delete(l.p, "c", 1, &gone), 0);
		/* Both are judged when the removal is published,
		 * and that is when what it leaves is removed. */
		assert_int_equal(store_bucket_create(l.p, "c", 1, 0, &made), 0);
		assert_int_equal(store_bucket_set_attrs(l.p, "c", 1, STORE_VERSION_ANY, "new", 3, &set), 0);
		assert_int_equal(op_wait(&l, &gone.op), 0);
		assert_int_equal(op_wait(&l, &made.op), 0);
		assert_int_equal(op_wait(&l, &set.op), 0);
		loop_for(&l, 10 * NS_PER_MS);
		for (int again = 0; again < 2; again++) {
			assert_int_equal(bucket_get_attrs(&l, "c", got, sizeof got), 3);
			assert_memory_equal(got, "new", 3);
			close_store();
			open_store();
		}
	}
}

/* attributes, ETag and times come back, also after a restart */
static void
test_meta(void **state)
{
	static char attrs[STORE_ATTRS_MAX];
	struct put_args a = { .bucket = "b",
			      .key = "m",
			      .size = 70000,
			      .seed = 5,
			      .attrs = attrs,
			      .attrs_len = sizeof attrs,
			      .etag = { .parts = STORE_ETAG_RDMA } };
	struct store_obj obj;

	memset(attrs, 'a', sizeof attrs);
	memset(a.etag.sum, 9, 16);
	assert_int_equal(obj_put(&l, &a), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(obj_open(&l, "b", "m", &obj), 0);
		assert_int_equal(obj.version, a.ret_version);
		assert_int_equal(obj.meta.attrs_len, sizeof attrs);
		assert_memory_equal(obj.meta.attrs, attrs, sizeof attrs);
		assert_memory_equal(&obj.meta.etag, &a.etag, sizeof a.etag);
		assert_true(obj.meta.mtime_ns > 0);
		store_close(l.p, &obj);
		close_store();
		open_store();
	}
}

/* a reader keeps its version, whole, whatever happens to the name and however often the space could be used
 * again */
static void
test_reader_keeps(void **state)
{
	static const uint64_t size[] = { 3 * MIB + 77, 100000, 65 * MIB, 200 };

	for (int i = 0; i < 4; i++) {
		struct store_obj obj;
		struct store_unit_info info;

		assert_int_equal(put_simple(&l, "b", "old", size[i], 1), 0);
		assert_int_equal(obj_open(&l, "b", "old", &obj), 0);
		if (i % 2)
			assert_int_equal(obj_delete(&l, "b", "old", NULL), 1);
		else
			assert_int_equal(put_simple(&l, "b", "old", 1000, 2), 0);
		loop_for(&l, 30 * NS_PER_MS);
		for (int j = 0; j < 12; j++)
			assert_int_equal(put_simple(&l, "b", "noise", 12 * MIB, 1000 + j), 0);
		loop_for(&l, 30 * NS_PER_MS);
		assert_int_equal(obj_read(&l, &obj, 1), 0);
		store_unit_info(st, 0, &info);
		assert_int_equal(store_unit_number(&info, "pins"), 1);
		store_close(l.p, &obj);
		store_unit_info(st, 0, &info);
		assert_int_equal(store_unit_number(&info, "pins"), 0);
		assert_int_equal(obj_delete(&l, "b", "noise", NULL), 1);
	}
}

struct listing {
	struct store_list ls;
	char names[4096];
};

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	struct listing *li = container_of(ls, struct listing, ls);

	strncat(li->names, e->name, e->name_len);
	strcat(li->names, " ");
	return true;
}

static void
list(struct listing *li, const char *bucket, const char *prefix, const char *after, uint32_t max)
{
	int r;

	memset(li, 0, sizeof *li);
	li->ls.op.done = on_put;
	li->ls.entry = on_entry;
	li->ls.bucket = bucket;
	li->ls.bucket_len = bucket ? (uint16_t)strlen(bucket) : 0;
	li->ls.prefix = prefix;
	li->ls.prefix_len = prefix ? (uint16_t)strlen(prefix) : 0;
	li->ls.after = after;
	li->ls.after_len = after ? (uint16_t)strlen(after) : 0;
	li->ls.max = max;
	r = store_list(l.p, &li->ls);
	if (r == 0)
		op_wait(&l, &li->ls.op);
}

static void
test_list(void **state)
{
	struct listing li;

	assert_int_equal(bucket_make(&l, "a"), 0);
	assert_int_equal(bucket_make(&l, "bb"), 0);
	for (const char *const *k = (const char *const[]){ "a", "b/1", "b/2", "b/3", "c", NULL }; *k; k++)
		assert_int_equal(put_simple(&l, "b", *k, 10, 1), 0);
	assert_int_equal(put_simple(&l, "bb", "other", 10, 1), 0);
	list(&li, NULL, NULL, NULL, 100);
	assert_string_equal(li.names, "a b bb ");
	list(&li, NULL, "b", NULL, 1);
	assert_string_equal(li.names, "b ");
	assert_true(li.ls.more);
	list(&li, "b", NULL, NULL, 100);
	assert_string_equal(li.names, "a b/1 b/2 b/3 c ");
	assert_false(li.ls.more);
	list(&li, "b", "b/", NULL, 2);
	assert_string_equal(li.names, "b/1 b/2 ");
	assert_true(li.ls.more);
	list(&li, "b", "b/", "b/2", 2);
	assert_string_equal(li.names, "b/3 ");
	assert_false(li.ls.more);
	list(&li, "b", "b/", "a", 1);
	assert_string_equal(li.names, "b/1 ");
	list(&li, "b", "b/", "c", 1);
	assert_string_equal(li.names, "");
	list(&li, "b", NULL, NULL, 0);
	assert_true(li.ls.more);
	list(&li, "a", NULL, NULL, 10);
	assert_string_equal(li.names, "");
	list(&li, "no", NULL, NULL, 10);
	assert_int_equal(li.ls.op.result, -ENXIO);
}

static bool
on_count(struct store_list *ls, const struct store_entry *e)
{
	return true;
}

/* a page longer than a slice, in pieces, sees every key once */
static void
test_list_long(void **state)
{
	struct listing li;

	for (int i = 0; i < 700; i++) {
		char name[32];

		snprintf(name, sizeof name, "k%05d", i);
		assert_int_equal(put_simple(&l, "b", name, 3, 1), 0);
	}
	memset(&li, 0, sizeof li);
	li.ls.op.done = on_put;
	li.ls.entry = on_count;
	li.ls.bucket = "b";
	li.ls.bucket_len = 1;
	li.ls.max = 1000;
	assert_int_equal(store_list(l.p, &li.ls), 0);
	assert_int_equal(op_wait(&l, &li.ls.op), 700);
	assert_false(li.ls.more);
}

/* all space comes back when everything is deleted */
static void
test_space_returns(void **state)
{
	struct store_unit_info before, after;

	store_unit_info(st, 0, &before);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(put_simple(&l, "b", "s1", 70 * MIB, 1), 0);
		assert_int_equal(put_simple(&l, "b", "s2", 20 * MIB, 1), 0);
		assert_int_equal(put_simple(&l, "b", "s3", 300000, 1), 0);
		assert_int_equal(obj_delete(&l, "b", "s1", NULL), 1);
		assert_int_equal(obj_delete(&l, "b", "s2", NULL), 1);
		assert_int_equal(obj_delete(&l, "b", "s3", NULL), 1);
	}
	wait_free(before.free_bytes, 0);
	after = disk_info();
	assert_int_equal(after.free_bytes, before.free_bytes);
	assert_int_equal(store_unit_number(&after, "objects"), 0);
}

/* An aborted PUT leaves nothing, however far it came: also chunks that are in the log already, or on their
 * way. */
static void
test_abort(void **state)
{
	struct store_unit_info before, after;
	struct store_put *put = calloc(1, sizeof *put);
	struct store_write *w = calloc(1, sizeof *w);
	struct store_key k = key_of("b", "gone");
	struct buf *b = bufpool_get(&l.bufs, BUF_LARGE);

	store_unit_info(st, 0, &before);
	for (int pieces = 0; pieces < 140; pieces += pieces < 3 ? 1 : 23) {
		assert_int_equal(store_put_init(l.p, put, &k, STORE_SIZE_UNKNOWN), 0);
		for (int i = 0; i < pieces; i++) {
			w->op.done = on_put;
			fill(b->mem, STORE_PIECE, 1, 0);
			assert_int_equal(store_put_write(l.p, put, w, b, STORE_PIECE, false), 0);
			assert_int_equal(op_wait(&l, &w->op), 0);
		}
		store_put_abort(l.p, put);
		/* where it lay may be anything now */
		memset(put, 0xaa, sizeof *put);
		memset(put, 0, sizeof *put);
	}
	wait_free(before.free_bytes, 0);
	after = disk_info();
	assert_int_equal(after.free_bytes, before.free_bytes);
	bufpool_put(&l.bufs, b);
	free(w);
	free(put);
}

/* A PUT of several chunks that never ended: the next start collects them. */
static void
half_a_put(void)
{
	struct store_put *put = calloc(1, sizeof *put);
	struct store_write *w = calloc(1, sizeof *w);
	struct store_key k = key_of("b", "half");
	struct buf *b = bufpool_get(&l.bufs, BUF_LARGE);

	check(store_put_init(l.p, put, &k, STORE_SIZE_UNKNOWN) == 0);
	for (int i = 0; i < 80; i++) {
		w->op.done = on_put;
		fill(b->mem, STORE_PIECE, 1, 0);
		check(store_put_write(l.p, put, w, b, STORE_PIECE, false) == 0);
		check(op_wait(&l, &w->op) == 0);
	}
	loop_for(&l, 50 * NS_PER_MS);
}

static void
test_ownerless(void **state)
{
	struct store_unit_info before, after;
	int status;
	pid_t pid;

	store_unit_info(st, 0, &before);
	close_store();
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		open_store();
		half_a_put();
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status));
	open_store();
	store_unit_info(st, 0, &after);
	assert_true(after.free_bytes + 64 * MIB <= before.free_bytes);
	wait_free(before.free_bytes, 0);
	after = disk_info();
	assert_int_equal(after.free_bytes, before.free_bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sizes, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_ways, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_errors, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_preconditions, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_buckets, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_bucket_again, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_meta, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_reader_keeps, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_list, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_list_long, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_space_returns, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_abort, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_ownerless, setup, remove_store),
	};

	log_init(LOG_PLAIN, LOG_WARN);
	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
