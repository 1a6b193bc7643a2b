/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of objects, buckets, uploads and parts, page after page. */
#include "client/client_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES_MAX (16u << 20)
/* Servers that filter may send pages with nothing in them, but not for ever. */
#define EMPTY_PAGES_MAX 1000

/* A list that is under way. */
struct listing {
	enum list_kind kind;
	list_fn *fn;
	void *cookie;
	const struct field *pair; /* of every page's query */
	int pair_nr;
	const char *next_name, *next_id_name; /* of the query's keys that say where a page begins */
	struct list_page page;                /* the last one */
	struct list_page mark;          /* an earlier one: that of the last number that was a power of two */
	uint64_t pages, entries, empty; /* that came; pages in a row without any entry */
};

static void
page_free(struct list_page *p)
{
	free(p->next);
	free(p->next_id);
	*p = (struct list_page){ 0 };
}

static bool
is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/*
 * Takes a page that is not the last, and finds out when such pages go round in a circle, of whatever length, or bring
 * nothing: each is compared with a mark, which moves on to every 2^n-th.
 */
static int
go_on(struct listing *l, struct call *c, uint64_t entries)
{
	const struct list_page *p = &l->page;
	bool is_circle =
		p->next && is_same_text(p->next, l->mark.next) && is_same_text(p->next_id, l->mark.next_id);

	l->empty = entries ? 0 : l->empty + 1;
	if (is_circle || l->empty == EMPTY_PAGES_MAX) {
		call_say(c,
			 is_circle
				 ? "the server's list does not come to an end: its pages go round in a circle"
				 : "the server's list does not come to an end: page after page is empty");
		return -EPROTO;
	}
	if ((l->pages & (l->pages - 1)) == 0) {
		page_free(&l->mark);
		l->mark = (struct list_page){ .next = p->next ? strdup(p->next) : NULL,
					      .next_id = p->next_id ? strdup(p->next_id) : NULL };
	}
	return 0;
}

/* Counts what comes, and hands it on. */
static int
count(void *cookie, const struct gantry_entry *e, const struct gantry_part *p)
{
	struct listing *l = cookie;

	l->entries++;
	return l->fn(l->cookie, e, p);
}

#define PAIRS_MAX 8

static char *
page_url(const struct listing *l, const char *url)
{
	struct field pair[PAIRS_MAX];
	int nr = 0;

	for (int i = 0; i < l->pair_nr; i++)
		pair[nr++] = l->pair[i];
	pair[nr++] = (struct field){ l->next_name, l->page.next };
	if (l->next_id_name)
		pair[nr++] = (struct field){ l->next_id_name, l->page.next_id };
	return url_query(url, pair, nr);
}

/* One page; *ret_more says whether another one follows. */
static int
one_page(struct listing *l, struct call *c, char *body, bool *ret_more)
{
	struct exchange x = call_exchange(c, METHOD_GET);
	char *url = page_url(l, c->url);
	struct list_page page = { 0 };
	uint64_t before = l->entries;
	int e;

	if (!url)
		return -ENOMEM;
	x.url = url;
	x.buffer = body;
	x.buffer_size = PAGE_BYTES_MAX;
	e = call_s3(c, &x);
	free(url);
	if (e < 0)
		return e;
	if (c->r.body_overflow) {
		call_say(c, "a page of the list is longer than 16 MiB");
		return -EPROTO;
	}
	e = list_read(body, (size_t)c->r.body_bytes, l->kind, count, l, &page);
	if (e == -ENOMSG)
		e = -EPROTO;
	if (e == -EPROTO)
		call_say(c, "the server's answer is not the list that was asked for");
	*ret_more = page.is_truncated;
	page_free(&l->page);
	l->page = page;
	l->pages++;
	return e == 0 && page.is_truncated ? go_on(l, c, l->entries - before) : e;
}

static int
list_all(struct gantry *g, const char *url, unsigned timeout_ms, struct listing *l, struct gantry_result *res)
{
	struct gantry_request req = { .size = sizeof req, .timeout_ms = timeout_ms };
	struct gantry_result own;
	struct call c;
	char *body = malloc(PAGE_BYTES_MAX);
	bool more = true;
	int e = (l->kind == LIST_OBJECTS || l->kind == LIST_UPLOADS ? call_begin_bucket : call_begin)(
		&c, g, url, &req, res, &own);

	if (e == 0 && !body)
		e = -ENOMEM;
	while (e == 0 && more)
		e = one_page(l, &c, body, &more);
	free(body);
	page_free(&l->page);
	page_free(&l->mark);
	/* What the callback returned is no error of the request, even if it is negative. */
	return call_end(&c, e, res);
}

/* What a program gave to be called. */
struct told {
	gantry_entry_fn *entry;
	gantry_part_fn *part;
	void *cookie;
};

static int
tell(void *cookie, const struct gantry_entry *e, const struct gantry_part *p)
{
	const struct told *t = cookie;

	return e ? t->entry(t->cookie, e) : t->part(t->cookie, p);
}

int
gantry_list(struct gantry *g, const char *url, const struct gantry_list_options *options, gantry_entry_fn *fn,
	    void *cookie, struct gantry_result *res)
{
	struct gantry_list_options o = { 0 };
	struct told told = { .entry = fn, .cookie = cookie };
	char page[16];

	if (options)
		memcpy(&o, options, options->size && options->size < sizeof o ? options->size : sizeof o);
	snprintf(page, sizeof page, "%u", o.page ? o.page : 1000);

	const struct field pair[] = { { "list-type", "2" },         { "encoding-type", "url" },
				      { "max-keys", page },         { "prefix", o.prefix },
				      { "delimiter", o.delimiter }, { "start-after", o.start_after } };
	struct listing l = { .kind = LIST_OBJECTS,
			     .fn = tell,
			     .cookie = &told,
			     .pair = pair,
			     .pair_nr = sizeof pair / sizeof *pair,
			     .next_name = "continuation-token" };

	return list_all(g, url, o.timeout_ms, &l, res);
}

int
gantry_list_buckets(struct gantry *g, const char *url, gantry_entry_fn *fn, void *cookie,
		    struct gantry_result *res)
{
	struct told told = { .entry = fn, .cookie = cookie };
	struct listing l = {
		.kind = LIST_BUCKETS, .fn = tell, .cookie = &told, .next_name = "continuation-token"
	};

	return list_all(g, url, 0, &l, res);
}

int
gantry_uploads(struct gantry *g, const char *url, const char *prefix, gantry_entry_fn *fn, void *cookie,
	       struct gantry_result *res)
{
	struct told told = { .entry = fn, .cookie = cookie };
	const struct field pair[] = { { "uploads", "" }, { "encoding-type", "url" }, { "prefix", prefix } };
	struct listing l = { .kind = LIST_UPLOADS,
			     .fn = tell,
			     .cookie = &told,
			     .pair = pair,
			     .pair_nr = sizeof pair / sizeof *pair,
			     .next_name = "key-marker",
			     .next_id_name = "upload-id-marker" };

	return list_all(g, url, 0, &l, res);
}

int
gantry_upload_parts(struct gantry *g, const char *url, const char *id, gantry_part_fn *fn, void *cookie,
		    struct gantry_result *res)
{
	struct told told = { .part = fn, .cookie = cookie };
	const struct field pair[] = { { "uploadId", id } };
	struct listing l = { .kind = LIST_PARTS,
			     .fn = tell,
			     .cookie = &told,
			     .pair = pair,
			     .pair_nr = 1,
			     .next_name = "part-number-marker" };

	return list_all(g, url, 0, &l, res);
}
