/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three ports on three threads, all at the same uploads: parts, lists, completions, aborts, other attributes
 * and reading, at once.  For ThreadSanitizer as much as for itself.  SEED= repeats the choices.
 */
#include "fixture.h"

#include <pthread.h>

#define THREADS 3
#define NUMBERS 6

static uint64_t seed;
static int ops_per_thread = 250;

/* The upload that everybody works on; whoever ends it makes the next. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t shared_id[STORE_UPLOAD_ID_BYTES];
static _Atomic int completed, repeated, aborted, parts;

struct thread {
	pthread_t id;
	uint64_t rng;
	struct loop l;
	/* of a list */
	struct store_part_ref ref[NUMBERS];
	uint32_t nr;
	struct store_part_list pl;
	struct store_put put;
	struct store_upload up;
	struct store_complete c;
	struct store_del del;
	struct store_obj obj;
	struct store_read rd;
	struct store_bucket_set set;
};

static const struct store_key key = { "b", "shared", 1, 6 };

static void
get_id(uint8_t id[STORE_UPLOAD_ID_BYTES])
{
	pthread_mutex_lock(&lock);
	memcpy(id, shared_id, sizeof shared_id);
	pthread_mutex_unlock(&lock);
}

static void
make_upload(struct thread *t)
{
	op_arm(&t->up.op, t->l.p);
	check(store_upload_create(t->l.p, &key, "a", 1, &t->up) == 0);
	check(op_wait(&t->l, &t->up.op) == 0);
	pthread_mutex_lock(&lock);
	memcpy(shared_id, t->up.id, sizeof shared_id);
	pthread_mutex_unlock(&lock);
}

/* The ETag says what the bytes are. */
static struct store_etag
etag_of(uint64_t size, uint64_t content)
{
	struct store_etag e = { .parts = 0 };

	memcpy(e.sum, &size, 8);
	memcpy(e.sum + 8, &content, 8);
	return e;
}

static void
put_part(struct thread *t, const uint8_t *id)
{
	uint64_t size = 1 + rnd(&t->rng) % (rnd(&t->rng) % 4 ? 20000 : 900000), content = rnd(&t->rng);
	struct store_commit c = { .meta.etag = etag_of(size, content) };
	struct buf *b = bufpool_get(&t->l.bufs, BUF_LARGE);
	int r = store_put_init_part(t->l.p, &t->put, &key, id, 1 + (uint32_t)(rnd(&t->rng) % NUMBERS), size);

	if (r == 0) {
		fill(b->mem, size, content, 0);
		c.last = b;
		c.last_len = (uint32_t)size;
		op_arm(&t->put.op, t->l.p);
		r = store_put_commit(t->l.p, &t->put, &c);
		if (r == 0)
			r = op_wait(&t->l, &t->put.op);
	}
	store_put_abort(t->l.p, &t->put);
	bufpool_put(&t->l.bufs, b);
	check(r == 0 || r == -ENOENT);
	atomic_fetch_add(&parts, r == 0);
}

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	struct thread *t = container_of(pl, struct thread, pl);

	check(t->nr < NUMBERS);
	t->ref[t->nr++] = (struct store_part_ref){ .number = part->number, .etag = part->etag };
	return true;
}

static void
complete(struct thread *t, const uint8_t *id)
{
	int r;

	t->nr = 0;
	t->pl = (struct store_part_list){ .max = 100, .part = on_part };
	op_arm(&t->pl.op, t->l.p);
	r = store_list_parts(t->l.p, &key, id, &t->pl);
	r = r == 0 ? op_wait(&t->l, &t->pl.op) : r > 0 ? t->pl.op.result : r;
	check(r == -ENOENT || r == (int)t->nr);
	if (r <= 0)
		return;
	for (int i = 0; i < 2; i++) { /* and once more, as who lost the answer */
		t->c = (struct store_complete){ .parts = t->ref, .part_nr = t->nr };
		op_arm(&t->c.op, t->l.p);
		r = store_upload_complete(t->l.p, &key, id, &t->c);
		r = r == 0 ? op_wait(&t->l, &t->c.op) : r > 0 ? t->c.op.result : r;
		check(r == 0 || r == -ENOENT || r == -EBADR);
		atomic_fetch_add(&completed, r == 0 && !t->c.was_done);
		atomic_fetch_add(&repeated, r == 0 && t->c.was_done);
		if (r == 0 && !t->c.was_done)
			make_upload(t);
	}
}

static void
do_abort(struct thread *t, const uint8_t *id)
{
	int r;

	op_arm(&t->up.op, t->l.p);
	r = store_upload_abort(t->l.p, &key, id, &t->up);
	r = r == 0 ? op_wait(&t->l, &t->up.op) : r;
	check(r == 0 || r == -ENOENT);
	if (r == 0) {
		atomic_fetch_add(&aborted, 1);
		make_upload(t);
	}
}

/* Whatever is there, its parts are what their ETags say. */
static void
read_it(struct thread *t)
{
	struct buf *b = bufpool_get(&t->l.bufs, BUF_LARGE);
	char *want = malloc(STORE_PIECE + 8);
	int r;

	memset(&t->obj, 0, sizeof t->obj);
	r = obj_open(&t->l, "b", "shared", &t->obj);
	check(r == 0 || r == -ENOENT);
	for (uint32_t i = 0; r == 0 && i < t->obj.part_nr; i++) {
		struct store_part part;
		uint64_t size, content;

		check(store_obj_part_at(&t->obj, i, &part) == 0);
		memcpy(&size, part.etag.sum, 8);
		memcpy(&content, part.etag.sum + 8, 8);
		check(size == part.size_bytes);
		for (uint64_t at = 0; at < size;) {
			uint32_t skew, n = store_read_plan(&t->obj, part.off_bytes + at, size - at,
							   STORE_PIECE, &skew);
			int got;

			check(skew == 0);
			op_arm(&t->rd.op, t->l.p);
			got = store_read(t->l.p, &t->obj, &t->rd, b, part.off_bytes + at, n);
			check((got == 0 ? op_wait(&t->l, &t->rd.op) : got) == (int)n);
			fill(want, n, content, at);
			check(memcmp(want, b->mem, n) == 0);
			at += n;
		}
	}
	store_close(t->l.p, &t->obj);
	free(want);
	bufpool_put(&t->l.bufs, b);
}

static void
set_attrs(struct thread *t)
{
	char attrs[300] = "attributes";
	int r;

	op_arm(&t->del.op, t->l.p);
	r = store_set_attrs(t->l.p, &key, 0, attrs, (uint32_t)(rnd(&t->rng) % sizeof attrs), &t->del);
	r = r == 0 ? op_wait(&t->l, &t->del.op) : r;
	check(r == 0 || r == -ENOENT);
	op_arm(&t->set.op, t->l.p);
	check(store_bucket_set_attrs(t->l.p, "b", 1, STORE_VERSION_ANY, attrs, sizeof attrs, &t->set) == 0);
	check(op_wait(&t->l, &t->set.op) == 0);
	check(bucket_get_attrs(&t->l, "b", attrs, sizeof attrs) == sizeof attrs);
}

static void *
thread_main(void *cookie)
{
	struct thread *t = cookie;

	loop_start(&t->l, st);
	for (int i = 0; i < ops_per_thread; i++) {
		uint8_t id[STORE_UPLOAD_ID_BYTES];

		get_id(id);
		switch (rnd(&t->rng) % 12) {
		case 0:
			complete(t, id);
			break;
		case 1:
			if (rnd(&t->rng) % 4 == 0)
				do_abort(t, id);
			break;
		case 2:
			set_attrs(t);
			break;
		case 3:
		case 4:
			read_it(t);
			break;
		case 5:
			if (rnd(&t->rng) % 4 == 0)
				check(obj_delete(&t->l, "b", "shared", NULL) >= 0);
			break;
		default:
			put_part(t, id);
			break;
		}
	}
	loop_stop(&t->l);
	return NULL;
}

static void
test_uploads(void **state)
{
	static struct thread t[THREADS], first;
	struct store_unit_info info;

	assert_int_equal(make_store(512 * MIB), 0);
	loop_stop(&l);
	loop_start(&first.l, st);
	make_upload(&first);
	loop_stop(&first.l);
	for (int i = 0; i < THREADS; i++) {
		t[i].rng = seed + (uint64_t)i;
		assert_int_equal(pthread_create(&t[i].id, NULL, thread_main, &t[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i].id, NULL);
	print_message("%d parts, %d completed, %d again, %d aborted\n", parts, completed, repeated, aborted);
	assert_true(parts > 0 && completed > 0);
	store_unit_info(st, 0, &info);
	assert_int_equal(info.state, UNIT_OK);
	assert_int_equal(store_unit_number(&info, "pins"), 0);
	assert_int_equal(store_unit_number(&info, "crc_errors"), 0);
	store_stop(st);
	st = NULL;
	assert_int_equal(store_fsck(&conf, false, NULL, NULL), 0);
	remove_store(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uploads),
	};

	log_init(LOG_PLAIN, LOG_WARN);
	seed = seed_from_env();
	return cmocka_run_group_tests_name("store_upload_threads", tests, NULL, NULL);
}
