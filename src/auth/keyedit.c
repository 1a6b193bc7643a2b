/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a credentials file with an entry more or less, see keyfile.h and keylayout.h. */
#include "auth/keyfile.h"

#include "auth/keylayout.h"
#include "base/printable.h"
#include "conf/conf.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <yaml.h>

/* ---- an entry as text ---- */

static void
put_quoted(FILE *f, const char *text)
{
	putc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', f);
		putc(*text, f);
	}
	putc('"', f);
}

struct style {
	int indent;
	bool in_brackets;
};

static void
put_next(FILE *f, const struct style *s)
{
	if (s->in_brackets)
		fputs(", ", f);
	else
		fprintf(f, "\n%*s", s->indent + 2, "");
}

static void
put_bound(FILE *f, const char *name, const char *bound)
{
	if (bound)
		fprintf(f, ", %s: %s", name, bound);
}

static void
put_grants(FILE *f, const struct key_wish *w, const struct style *s)
{
	static const char *const all[] = { "*" };
	const char *const *bucket = w->bucket_nr ? w->bucket : all;
	int nr = w->bucket_nr ? w->bucket_nr : 1;

	put_next(f, s);
	fputs(s->in_brackets ? "grants: [" : "grants:", f);
	for (int i = 0; i < nr; i++) {
		if (s->in_brackets)
			fputs(i ? ", " : "", f);
		else
			fprintf(f, "\n%*s- ", s->indent + 4, "");
		fputs("{ bucket: ", f);
		put_quoted(f, bucket[i]);
		if (w->prefix) {
			fputs(", prefix: ", f);
			put_quoted(f, w->prefix);
		}
		put_bound(f, "max_objects", w->max_objects);
		put_bound(f, "max_bytes", w->max_bytes);
		put_bound(f, "max_uploads", w->max_uploads);
		put_bound(f, "max_buckets", w->max_buckets);
		fputs(" }", f);
	}
	fputs(s->in_brackets ? "]" : "", f);
}

static void
put_if(FILE *f, bool is_true, const char *name, const struct style *s)
{
	if (!is_true)
		return;
	put_next(f, s);
	fprintf(f, "%s: true", name);
}

static void
put_entry(FILE *f, const struct key_pair *pair, const struct key_wish *w, const struct style *s)
{
	if (s->in_brackets)
		fputs("{ ", f);
	else
		fprintf(f, "%*s- ", s->indent, "");
	fprintf(f, "access_key: %s", pair->access_key);
	put_next(f, s);
	fprintf(f, "secret_key: %s", pair->secret);
	if (w->made) {
		put_next(f, s);
		fprintf(f, "made: \"%s\"", w->made);
	}
	if (w->comment) {
		put_next(f, s);
		fputs("comment: ", f);
		put_quoted(f, w->comment);
	}
	if (w->expires) {
		put_next(f, s);
		fprintf(f, "expires: \"%s\"", w->expires);
	}
	put_if(f, w->read_only, "read_only", s);
	put_if(f, w->no_delete, "no_delete", s);
	put_if(f, w->no_overwrite, "no_overwrite", s);
	if (w->from_nr) {
		put_next(f, s);
		fputs("from: [", f);
		for (int i = 0; i < w->from_nr; i++) {
			fputs(i ? ", " : "", f);
			put_quoted(f, w->from[i]);
		}
		putc(']', f);
	}
	if (w->bucket_nr || w->prefix)
		put_grants(f, w, s);
	fputs(s->in_brackets ? " }" : "", f);
}

/* ---- what came out ---- */

static bool
is_one_of(const struct auth_entry *e, const char *access_key, const char *id)
{
	return strcmp(e->access_key, access_key) == 0 && (!id || strcmp(e->id, id) == 0);
}

static int
how_many(const struct auth_keys *keys, const char *access_key, const char *id)
{
	int nr = 0;

	for (int i = 0; i < keys->nr; i++)
		nr += is_one_of(&keys->entry[i], access_key, id);
	return nr;
}

static bool
others_same(const struct auth_keys *a, const struct auth_keys *b, const char *access_key, const char *id)
{
	int i = 0, j = 0;

	for (;;) {
		while (i < a->nr && is_one_of(&a->entry[i], access_key, id))
			i++;
		while (j < b->nr && is_one_of(&b->entry[j], access_key, id))
			j++;
		if (i == a->nr || j == b->nr)
			return i == a->nr && j == b->nr;
		if (!entry_same(&a->entry[i++], &b->entry[j++]))
			return false;
	}
}

/* May this text take the place of that one? */
static int
verify(const char *text, size_t len, const char *source, const struct auth_keys *before, edit_good_fn good,
       const void *cookie, FILE *err)
{
	struct auth_keys *after = NULL;
	FILE *nowhere = fopen("/dev/null", "we");
	int e = nowhere ? credentials_parse(text, len, source, false, &after, nowhere) : -errno;
	bool is_good = e == 0 && good(before, after, cookie);

	if (nowhere)
		fclose(nowhere);
	auth_keys_put(after);
	if (e < 0 && e != -EINVAL)
		fprintf(err, "%s: %s\n", source, strerror(-e));
	else if (!is_good)
		fprintf(err,
			"%s: this cannot be changed without changing more of the file than that; edit it by "
			"hand\n",
			source);
	return is_good ? 0 : e < 0 ? e : -EINVAL;
}

int
edit_begin(struct layout *l, const char *source, struct auth_keys **ret_keys, FILE *err)
{
	int e = credentials_parse(l->text, l->len, source, true, ret_keys, err);

	if (e < 0)
		return e;
	e = layout_find(l);
	if (e == 0)
		return 0;
	fprintf(err, "%s: %s\n", source, e == -EINVAL ? "is not UTF-8" : strerror(-e));
	free(l->item);
	auth_keys_put(*ret_keys);
	return e;
}

int
edit_end(struct layout *l, const char *source, struct auth_keys *before, edit_good_fn good,
	 const void *cookie, FILE *f, char **text, size_t *len, FILE *err)
{
	int e = f && fclose(f) == 0 ? 0 : -ENOMEM;

	if (e < 0)
		fprintf(err, "%s: out of memory\n", source);
	else
		e = verify(*text, *len, source, before, good, cookie, err);
	if (e < 0 && f) {
		OPENSSL_cleanse(*text, *len);
		free(*text);
	}
	free(l->item);
	auth_keys_put(before);
	return e;
}

/* ---- adding ---- */

/* [] on a line of its own: it makes room for a list that reads better. */
static bool
is_bare_empty(const struct layout *l)
{
	size_t at = l->at + 1;

	if (!l->in_brackets || l->nr || !layout_begins_line(l, l->at))
		return false;
	while (l->text[at] == ' ')
		at++;
	if (at + 1 != l->end)
		return false;
	at = l->end;
	while (at < l->len && (l->text[at] == ' ' || l->text[at] == '\t'))
		at++;
	return at == l->len || l->text[at] == '#' || layout_break(l, at);
}

static void
write_added(FILE *f, const struct layout *l, const struct key_pair *pair, const struct key_wish *wish)
{
	struct style style = { .in_brackets = l->in_brackets && !is_bare_empty(l) };
	size_t at = l->end, behind = l->end;

	if (l->in_brackets) {
		at = l->nr ? l->item[l->nr - 1].end : style.in_brackets ? l->at + 1 : l->at;
		behind = style.in_brackets ? at : l->end;
	} else if (l->nr) {
		style.indent = (int)(l->item[0].at - layout_unindented(l, l->item[0].at));
	}
	fwrite(l->text, 1, at, f);
	if (style.in_brackets)
		fputs(l->nr ? ", " : " ", f);
	else if (!layout_begins_line(l, at))
		putc('\n', f);
	put_entry(f, pair, wish, &style);
	if (style.in_brackets)
		fputs(l->nr ? "" : " ", f);
	else if (!l->in_brackets)
		putc('\n', f);
	fwrite(l->text + behind, 1, l->len - behind, f);
}

static bool
is_added(const struct auth_keys *before, const struct auth_keys *after, const void *cookie)
{
	const char *access_key = cookie;

	return how_many(after, access_key, NULL) == 1 && others_same(before, after, access_key, NULL);
}

int
keyfile_add(const char *text, size_t len, const char *source, const struct key_pair *pair,
	    const struct key_wish *wish, char **ret_text, size_t *ret_len, FILE *err)
{
	struct layout l = { .text = text, .len = len };
	struct auth_keys *before;
	FILE *f;
	int e = edit_begin(&l, source, &before, err);

	if (e < 0)
		return e;
	f = open_memstream(ret_text, ret_len);
	if (f)
		write_added(f, &l, pair, wish);
	return edit_end(&l, source, before, is_added, pair->access_key, f, ret_text, ret_len, err);
}

/* ---- cutting ---- */

/* The secrets to cut. */
struct cut {
	const char *access_key, *id; /* id NULL: all of the access key */
	bool *marked;                /* of each entry, in the order of the file */
	const struct layout *l;
};

static void
mark(void *cookie, int i, const struct entry_nodes *n)
{
	struct cut *c = cookie;
	char id[AUTH_SECRET_ID_LEN + 1];
	const char *access_key = (const char *)n->access_key->data.scalar.value;

	if (i >= c->l->nr)
		return;
	secret_id(access_key, (const char *)n->secret->data.scalar.value, id);
	c->marked[i] = strcmp(access_key, c->access_key) == 0 && (!c->id || strcmp(id, c->id) == 0);
}

/* The whole lines of an entry; what stands between two of them belongs to neither. */
static void
cut_lines(FILE *f, const struct layout *l, const bool *marked, bool empty)
{
	size_t at = 0;

	for (int i = 0; i < l->nr; i++) {
		size_t from = layout_unindented(l, l->item[i].at), to = l->item[i].end;

		if (!marked[i])
			continue;
		fwrite(l->text + at, 1, from - at, f);
		if (empty)
			fputs("[]\n", f);
		empty = false;
		/* A scalar in lines of its own ends where the next line begins. */
		at = layout_begins_line(l, to) ? to : layout_line_end(l, to);
	}
	fwrite(l->text + at, 1, l->len - at, f);
}

static void
cut_in_brackets(FILE *f, const struct layout *l, const bool *marked)
{
	size_t at = 0;
	int last = l->nr - 1; /* that stays */

	while (last >= 0 && marked[last])
		last--;
	for (int i = 0; i < l->nr; i++) {
		size_t comma_at = l->item[i].comma_at;

		if (marked[i]) {
			fwrite(l->text + at, 1, l->item[i].at - at, f);
			at = l->item[i].end;
		}
		/* Also the comma of the last one that stays, when another one followed it. */
		if (comma_at && (marked[i] || (i == last && i < l->nr - 1))) {
			fwrite(l->text + at, 1, comma_at - at, f);
			at = comma_at + 1;
		}
	}
	fwrite(l->text + at, 1, l->len - at, f);
}

static bool
is_cut(const struct auth_keys *before, const struct auth_keys *after, const void *cookie)
{
	const struct cut *c = cookie;

	return how_many(after, c->access_key, c->id) == 0 && others_same(before, after, c->access_key, c->id);
}

int
keyfile_cut(const char *text, size_t len, const char *source, const char *access_key, const char *id,
	    char **ret_text, size_t *ret_len, FILE *err)
{
	struct layout l = { .text = text, .len = len };
	struct cut c = { .access_key = access_key, .id = id, .l = &l };
	struct auth_keys *before;
	FILE *f = NULL;
	int e = edit_begin(&l, source, &before, err);

	if (e < 0)
		return e;
	c.marked = calloc((size_t)l.nr + 1, sizeof *c.marked);
	if (c.marked && layout_nodes(&l, mark, &c) == 0)
		f = open_memstream(ret_text, ret_len);
	if (f && l.in_brackets)
		cut_in_brackets(f, &l, c.marked);
	else if (f)
		cut_lines(f, &l, c.marked, how_many(before, access_key, id) == before->nr);
	free(c.marked);
	return edit_end(&l, source, before, is_cut, &c, f, ret_text, ret_len, err);
}
