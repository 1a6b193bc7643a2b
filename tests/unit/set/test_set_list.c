/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists over several engines, at random against a sorted model: prefixes, delimiters, markers on entries and
 * between them, pages that end anywhere, and attributes so large that an engine is asked more than once for a
 * page.  SEED= repeats a run.
 */
#include "set_rig.h"

#include "base/check.h"

#define NAMES 120
#define NAME_MAX_LEN 6

static struct loop l;
static uint64_t seed;

/* ---- the model: names in byte order; of uploads several of one name ---- */

struct entry {
	char name[NAME_MAX_LEN + 1];
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint32_t attrs_len;
	bool is_prefix;
};

struct model {
	struct entry e[NAMES];
	int nr;
	bool is_uploads;
};

static int
compare(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* How much of the name is a common prefix; 0: none. */
static size_t
common(const char *name, const char *prefix, const char *delimiter)
{
	const char *at = *delimiter ? strstr(name + strlen(prefix), delimiter) : NULL;

	return at ? (size_t)(at - name) + strlen(delimiter) : 0;
}

/* A page: what is asked, and what comes. */
struct page {
	struct store_list ls;
	const char *prefix, *delimiter, *after;
	const uint8_t *after_id;
	uint32_t max;
	int stop; /* entry() says no at the stop-th; 0: never */
	struct entry got[NAMES];
	int nr;
	bool more;
};

/* What the page should be. */
static void
expect(const struct model *m, const struct page *p, struct page *ret)
{
	size_t prefix_len = strlen(p->prefix);
	bool in_prefix = p->after && strncmp(p->after, p->prefix, prefix_len) == 0 &&
			 common(p->after, p->prefix, p->delimiter) == strlen(p->after) && *p->after;
	bool is_behind = !p->after_id;

	ret->nr = 0;
	ret->more = false;
	for (int i = 0; i < m->nr; i++) {
		struct entry e = m->e[i];
		size_t n;

		if (p->after && p->after_id && strcmp(e.name, p->after) == 0) {
			if (!is_behind) {
				is_behind = memcmp(e.id, p->after_id, sizeof e.id) == 0;
				continue;
			}
		} else if (p->after && strcmp(e.name, p->after) <= 0) {
			continue;
		}
		if (strncmp(e.name, p->prefix, prefix_len) != 0)
			continue;
		if (in_prefix && strncmp(e.name, p->after, strlen(p->after)) == 0)
			continue;
		n = common(e.name, p->prefix, p->delimiter);
		if (n) {
			memset(e.name + n, 0, sizeof e.name - n);
			e.is_prefix = true;
			e.attrs_len = 0;
			memset(e.id, 0, sizeof e.id);
			if (ret->nr && ret->got[ret->nr - 1].is_prefix &&
			    strcmp(ret->got[ret->nr - 1].name, e.name) == 0)
				continue;
		}
		if (ret->nr == (int)p->max || (p->stop && ret->nr == p->stop)) {
			ret->more = true;
			return;
		}
		ret->got[ret->nr++] = e;
	}
}

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	struct page *p = container_of(ls, struct page, ls);
	struct entry *g = &p->got[p->nr++];
	const char *attrs = e->attrs;

	check(p->nr <= NAMES && e->name_len <= NAME_MAX_LEN);
	memset(g, 0, sizeof *g);
	memcpy(g->name, e->name, e->name_len);
	g->is_prefix = e->is_prefix;
	g->attrs_len = e->attrs_len;
	for (uint32_t i = 0; i < e->attrs_len; i++)
		check(attrs[i] == (char)(e->name[0] + (char)i));
	if (e->upload_id)
		memcpy(g->id, e->upload_id, sizeof g->id);
	return p->nr != p->stop;
}

static void
ask(const struct model *m, struct page *p)
{
	int r;

	p->nr = 0;
	p->ls = (struct store_list){ .bucket = "b",
				     .bucket_len = 1,
				     .prefix = p->prefix,
				     .prefix_len = (uint16_t)strlen(p->prefix),
				     .delimiter = p->delimiter,
				     .delimiter_len = (uint16_t)strlen(p->delimiter),
				     .after = p->after,
				     .after_len = p->after ? (uint16_t)strlen(p->after) : 0,
				     .after_id = p->after_id,
				     .max = p->max,
				     .entry = on_entry };
	r = DO(&l, &p->ls.op,
	       m->is_uploads ? store_list_uploads(l.port, &p->ls) : store_list(l.port, &p->ls));
	assert_int_equal(r, p->nr);
	p->more = p->ls.more;
}

static void
same(const struct page *got, const struct page *want)
{
	assert_int_equal(got->nr, want->nr);
	for (int i = 0; i < got->nr; i++) {
		assert_string_equal(got->got[i].name, want->got[i].name);
		assert_int_equal(got->got[i].is_prefix, want->got[i].is_prefix);
		assert_int_equal(got->got[i].attrs_len, want->got[i].attrs_len);
		assert_memory_equal(got->got[i].id, want->got[i].id, sizeof got->got[i].id);
	}
	assert_int_equal(got->more, want->more);
}

/* ---- what the store holds ---- */

static char attrs[STORE_ATTRS_MAX];

static const char *
attrs_for(char c, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		attrs[i] = (char)(c + (char)i);
	return attrs;
}

static void
random_name(char name[NAME_MAX_LEN + 1])
{
	size_t len = 1 + rnd(&seed) % NAME_MAX_LEN;

	memset(name, 0, NAME_MAX_LEN + 1);
	for (size_t i = 0; i < len; i++)
		name[i] = "ab/\xff"[rnd(&seed) % 7 / 2];
}

static void
add(struct model *m, const char *name, uint32_t attrs_len)
{
	struct store_key k = key_of("b", name);
	struct entry *e = &m->e[m->nr++];

	memset(e, 0, sizeof *e);
	strcpy(e->name, name);
	e->attrs_len = attrs_len;
	if (m->is_uploads) {
		struct store_upload u;

		assert_int_equal(
			DO(&l, &u.op,
			   store_upload_create(l.port, &k, attrs_for(name[0], attrs_len), attrs_len, &u)),
			0);
		memcpy(e->id, u.id, sizeof e->id);
	} else {
		struct store_commit c = { .meta = { .attrs = attrs_for(name[0], attrs_len),
						    .attrs_len = attrs_len } };
		struct store_put p;

		assert_int_equal(store_put_init(l.port, &p, &k, 0), 0);
		assert_int_equal(DO(&l, &p.op, store_put_commit(l.port, &p, &c)), 0);
		store_put_abort(l.port, &p);
	}
}

static bool
has(const struct model *m, const char *name)
{
	for (int i = 0; i < m->nr; i++) {
		if (strcmp(m->e[i].name, name) == 0)
			return true;
	}
	return false;
}

static void
fill(struct model *m)
{
	int nr = (int)(rnd(&seed) % NAMES);

	while (m->nr < nr) {
		char name[NAME_MAX_LEN + 1];

		random_name(name);
		if (m->is_uploads || !has(m, name))
			add(m, name, rnd(&seed) % 4 ? rnd(&seed) % 300 : rnd(&seed) % (STORE_ATTRS_MAX + 1));
	}
	/* By name, then in the order in which they were made: qsort() may not keep that. */
	for (int i = 1; i < m->nr; i++) {
		struct entry e = m->e[i];
		int at = i;

		for (; at > 0 && compare(&m->e[at - 1], &e) > 0; at--)
			m->e[at] = m->e[at - 1];
		m->e[at] = e;
	}
}

/* ---- the tests ---- */

static void
ask_at_random(const struct model *m)
{
	static const char *const delimiters[] = { "", "", "/", "/", "a", "b/", "\xff" };
	static struct page got, want;
	char prefix[NAME_MAX_LEN + 1] = "", after[NAME_MAX_LEN + 1];
	const struct entry *e = m->nr ? &m->e[rnd(&seed) % (uint64_t)m->nr] : NULL;

	if (rnd(&seed) % 2) {
		random_name(prefix);
		prefix[rnd(&seed) % 3] = 0;
	}
	got = (struct page){ .prefix = prefix,
			     .delimiter = delimiters[rnd(&seed) % 7],
			     .max = (uint32_t)(rnd(&seed) % 3 ? rnd(&seed) % 8 : 1000),
			     .stop = rnd(&seed) % 3 ? 0 : (int)(rnd(&seed) % 6) };
	switch (rnd(&seed) % 4) {
	case 0:
		break;
	case 1:
		random_name(after);
		got.after = after;
		break;
	default:
		if (e) {
			strcpy(after, e->name);
			got.after = after;
			if (rnd(&seed) % 3 == 0)
				after[common(after, "", "/")] = 0;
			else if (m->is_uploads && rnd(&seed) % 2)
				got.after_id = e->id;
		}
	}
	/* A marker names an upload; a common prefix has none. */
	if (got.after && strncmp(got.after, prefix, strlen(prefix)) == 0 &&
	    common(got.after, prefix, got.delimiter))
		got.after_id = NULL;
	want = got;
	expect(m, &got, &want);
	ask(m, &got);
	same(&got, &want);
}

/* Page by page, each behind the last entry of the one before, comes what comes at once. */
static void
turn_pages(const struct model *m, const char *prefix, const char *delimiter, uint32_t max)
{
	static struct page whole, got, all;
	struct entry last;

	whole = (struct page){ .prefix = prefix, .delimiter = delimiter, .max = 1000 };
	expect(m, &whole, &whole);
	got = (struct page){ .prefix = prefix, .delimiter = delimiter, .max = max };
	all = (struct page){ .nr = 0 };
	do {
		ask(m, &got);
		assert_true(got.nr > 0 || !got.more);
		memcpy(&all.got[all.nr], got.got, (size_t)got.nr * sizeof got.got[0]);
		all.nr += got.nr;
		if (got.nr == 0)
			break;
		last = got.got[got.nr - 1];
		got.after = last.name;
		got.after_id = m->is_uploads && !last.is_prefix ? last.id : NULL;
	} while (got.more);
	same(&all, &whole);
}

static void
run(int engines, bool is_uploads)
{
	static struct model m;
	struct mem_store_tuning t = { .seed = rnd(&seed),
				      .delay_max_us = 5,
				      .open_at_once = rnd(&seed) % 2 ? 90 : 100,
				      .stat_at_once = 100,
				      .other_at_once = 100 };

	m = (struct model){ .is_uploads = is_uploads };
	set_begin(engines, 1, &t);
	loop_begin(&l);
	assert_int_equal(make(&l, "a"), 0);
	assert_int_equal(make(&l, "b"), 0);
	assert_int_equal(put(&l, l.port, "a", "z"), 0);
	fill(&m);
	for (int i = 0; i < 100; i++)
		ask_at_random(&m);
	for (uint32_t max = 1; max < 6; max++) {
		turn_pages(&m, "", "/", max);
		turn_pages(&m, "a", "", max);
	}
	loop_end(&l);
	set_end();
}

static void
test_objects(void **state)
{
	for (int n = 0; n < 30; n++)
		run(1 + n % ENGINES_MAX, false);
}

static void
test_uploads(void **state)
{
	for (int n = 0; n < 12; n++)
		run(1 + n % ENGINES_MAX, true);
}

/* More than what one turn of the loop gives, every entry there once and in order. */
static bool
on_count(struct store_list *ls, const struct store_entry *e)
{
	unsigned *next = (unsigned *)(uintptr_t)ls->after_id;
	char name[16];

	snprintf(name, sizeof name, "n%04u", (*next)++);
	check(strncmp(e->name, name, e->name_len) == 0 && e->name_len == 5);
	return true;
}

static void
test_long(void **state)
{
	struct mem_store_tuning t = {
		.seed = 1, .open_at_once = 100, .stat_at_once = 100, .other_at_once = 100
	};
	unsigned next = 0;
	struct store_list ls = {
		.bucket = "b", .bucket_len = 1, .max = 2000, .entry = on_count, .after_id = (uint8_t *)&next
	};
	int r;

	set_begin(3, 1, &t);
	loop_begin(&l);
	assert_int_equal(make(&l, "b"), 0);
	for (unsigned i = 0; i < 1000; i++) {
		char name[16];

		snprintf(name, sizeof name, "n%04u", i);
		assert_int_equal(put(&l, l.port, "b", name), 0);
	}
	ls.op.done = on_done;
	/* every engine answers at once, and yet the loop gets its turns */
	assert_int_equal(store_list(l.port, &ls), 0);
	assert_in_range(next, 1, 500);
	r = wait_for(&l, &ls.op, 0);
	assert_int_equal(r, 1000);
	assert_int_equal(next, 1000);
	assert_false(ls.more);
	loop_end(&l);
	set_end();
}

/* What an engine says that cannot list, first or later; and a bucket that only some have (yet). */
static void
test_errors(void **state)
{
	struct mem_store_tuning t = {
		.seed = 1, .open_at_once = 50, .stat_at_once = 100, .other_at_once = 100
	};
	static struct model m;
	static struct page p, want;

	m = (struct model){ .nr = 0 };
	set_begin(3, 1, &t);
	loop_begin(&l);
	p = want = (struct page){ .prefix = "", .delimiter = "", .max = 1000 };
	p.ls = (struct store_list){ .bucket = "b", .bucket_len = 1, .max = 10, .entry = on_entry };
	assert_int_equal(DO(&l, &p.ls.op, store_list(l.port, &p.ls)), -ENXIO);
	assert_int_equal(DO(&l, &p.ls.op, store_list_uploads(l.port, &p.ls)), -ENXIO);
	assert_int_equal(make(&l, "b"), 0);
	for (int i = 0; i < 20; i++) {
		char name[32];

		add(&m, key_on(name, "b", i % 3, i / 3), STORE_ATTRS_MAX);
	}
	for (int i = 0; i < 3; i++) {
		for (unsigned skip = 0; skip < 2; skip++) {
			mem_store_fail(engine(i), MEM_LIST, -EIO, skip, 1);
			p.nr = 0;
			assert_int_equal(DO(&l, &p.ls.op, store_list(l.port, &p.ls)), -EIO);
			mem_store_fail(engine(i), MEM_LIST, 0, 0, 0);
		}
	}
	/* the first one's word counts */
	mem_store_fail(engine(1), MEM_LIST, -ENXIO, 0, 1);
	p.nr = 0;
	p.ls.max = 1000;
	assert_in_range(DO(&l, &p.ls.op, store_list(l.port, &p.ls)), 13, 14);
	mem_store_fail(engine(0), MEM_LIST, -ENXIO, 0, 1);
	p.nr = 0;
	assert_int_equal(DO(&l, &p.ls.op, store_list(l.port, &p.ls)), -ENXIO);
	assert_int_equal(p.nr, 0);
	loop_end(&l);
	set_end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_uploads),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_errors),
	};

	seed = seed_from_env();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
