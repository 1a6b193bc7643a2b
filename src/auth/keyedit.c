/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a credentials file with an entry more or less, see keyfile.h. */
#include "auth/keyfile.h"

#include "auth/auth_int.h"
#include "base/printable.h"
#include "conf/conf.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <yaml.h>

/* ---- where entries are ---- */

/* Bytes of the text: from its dash, or in a list in brackets from its first character, to behind its last one; the
 * comma behind it, with one byte, if comma_at is not 0. */
struct item {
	size_t at, end, comma_at;
};

struct layout {
	const char *text;
	size_t len;
	bool in_brackets;
	size_t at, end; /* of the list; end: where the next entry goes, unless in brackets */
	int depth;
	bool is_open; /* the last item */
	struct item *item;
	int nr, cap;
	/* Of the scanner's marks, which count characters: the last one that was looked for. */
	size_t chars, bytes;
	size_t last_mark; /* behind what was scanned last and is not nothing */
};

static size_t
byte_of(struct layout *l, size_t mark)
{
	if (mark < l->chars) {
		l->chars = 0;
		l->bytes = 0;
	}
	/* A mark before the first character does not count it. */
	if (l->bytes == 0 && l->len >= 3 && memcmp(l->text, "\xef\xbb\xbf", 3) == 0)
		l->bytes = 3;
	for (; l->chars < mark && l->bytes < l->len; l->chars++) {
		l->bytes++;
		while (l->bytes < l->len && ((unsigned char)l->text[l->bytes] & 0xc0) == 0x80)
			l->bytes++;
	}
	return l->bytes;
}

static int
open_item(struct layout *l, size_t mark)
{
	if (l->nr == l->cap) {
		int cap = l->cap ? 2 * l->cap : 64;
		struct item *more = realloc(l->item, (size_t)cap * sizeof *more);

		if (!more)
			return -ENOMEM;
		l->item = more;
		l->cap = cap;
	}
	l->item[l->nr++] = (struct item){ .at = byte_of(l, mark) };
	l->is_open = true;
	return 0;
}

static void
close_item(struct layout *l)
{
	if (l->is_open)
		l->item[l->nr - 1].end = byte_of(l, l->last_mark);
	l->is_open = false;
}

/* A token that ends something. */
static void
on_end(struct layout *l, const yaml_token_t *t)
{
	bool is_block = t->type == YAML_BLOCK_END_TOKEN;

	if (l->depth == 1) {
		close_item(l);
		l->end = byte_of(l, is_block ? t->start_mark.index : t->end_mark.index);
	}
	l->depth--;
	/* The end of a block is nothing that stands there. */
	if (!is_block)
		l->last_mark = t->end_mark.index;
}

static int
on_token(struct layout *l, const yaml_token_t *t)
{
	switch (t->type) {
	case YAML_BLOCK_END_TOKEN:
	case YAML_FLOW_SEQUENCE_END_TOKEN:
	case YAML_FLOW_MAPPING_END_TOKEN:
		on_end(l, t);
		return 0;
	case YAML_STREAM_START_TOKEN:
	case YAML_STREAM_END_TOKEN:
	case YAML_DOCUMENT_START_TOKEN:
	case YAML_DOCUMENT_END_TOKEN:
	case YAML_VERSION_DIRECTIVE_TOKEN:
	case YAML_TAG_DIRECTIVE_TOKEN:
		return 0;
	case YAML_BLOCK_ENTRY_TOKEN:
		if (l->depth != 1 || l->in_brackets)
			break;
		close_item(l);
		l->last_mark = t->end_mark.index;
		return open_item(l, t->start_mark.index);
	case YAML_FLOW_ENTRY_TOKEN:
		if (l->depth != 1)
			break;
		close_item(l);
		if (l->nr)
			l->item[l->nr - 1].comma_at = byte_of(l, t->start_mark.index);
		l->last_mark = t->end_mark.index;
		return 0;
	default:
		if (l->depth == 1 && l->in_brackets && !l->is_open) {
			int e = open_item(l, t->start_mark.index);

			if (e < 0)
				return e;
		}
	}
	switch (t->type) {
	case YAML_FLOW_SEQUENCE_START_TOKEN:
	case YAML_FLOW_MAPPING_START_TOKEN:
	case YAML_BLOCK_SEQUENCE_START_TOKEN:
	case YAML_BLOCK_MAPPING_START_TOKEN:
		if (l->depth++ == 0) {
			l->in_brackets = t->type == YAML_FLOW_SEQUENCE_START_TOKEN;
			l->at = byte_of(l, t->start_mark.index);
		}
		break;
	default:
		break;
	}
	l->last_mark = t->end_mark.index;
	return 0;
}

/* Of a text that auth/ has parsed.  0, -ENOMEM, or -EINVAL: it is not UTF-8. */
static int
find_items(struct layout *l)
{
	yaml_parser_t y;
	yaml_token_t t;
	int e = 0;
	bool at_end = false;

	if (!yaml_parser_initialize(&y))
		return -ENOMEM;
	yaml_parser_set_input_string(&y, (const unsigned char *)l->text, l->len);
	/* Where there is no list the next entry goes to the end. */
	l->end = l->len;
	while (e == 0 && !at_end) {
		if (!yaml_parser_scan(&y, &t)) {
			e = -EINVAL;
			break;
		}
		at_end = t.type == YAML_STREAM_END_TOKEN;
		if (t.type == YAML_STREAM_START_TOKEN && t.data.stream_start.encoding != YAML_UTF8_ENCODING)
			e = -EINVAL;
		else
			e = on_token(l, &t);
		if (t.type == YAML_SCALAR_TOKEN)
			OPENSSL_cleanse(t.data.scalar.value, t.data.scalar.length);
		yaml_token_delete(&t);
	}
	credentials_wipe(&y);
	return e;
}

/* ---- lines ---- */

/* How long the line break is that stands there; 0: none.  All that YAML knows. */
static size_t
break_at(const struct layout *l, size_t at)
{
	const char *p = l->text + at;
	size_t left = l->len - at;

	if (left >= 2 && memcmp(p, "\r\n", 2) == 0)
		return 2;
	if (left >= 1 && (*p == '\n' || *p == '\r'))
		return 1;
	if (left >= 2 && memcmp(p, "\xc2\x85", 2) == 0)
		return 2;
	return left >= 3 && (memcmp(p, "\xe2\x80\xa8", 3) == 0 || memcmp(p, "\xe2\x80\xa9", 3) == 0) ? 3 : 0;
}

static bool
begins_line(const struct layout *l, size_t at)
{
	for (size_t n = 1; n <= 3 && n <= at; n++) {
		if (break_at(l, at - n) == n)
			return true;
	}
	return at == 0 || (at == 3 && memcmp(l->text, "\xef\xbb\xbf", 3) == 0);
}

/* Where the line ends, its break included. */
static size_t
line_end(const struct layout *l, size_t at)
{
	while (at < l->len && !break_at(l, at))
		at++;
	return at < l->len ? at + break_at(l, at) : at;
}

static size_t
without_indent(const struct layout *l, size_t at)
{
	while (at > 0 && l->text[at - 1] == ' ')
		at--;
	return at;
}

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

/* Is every entry that is not of that access key in both, and nothing else? */
static bool
others_same(const struct auth_keys *a, const struct auth_keys *b, const char *access_key)
{
	int i = 0, j = 0;

	for (;;) {
		while (i < a->nr && strcmp(a->entry[i].access_key, access_key) == 0)
			i++;
		while (j < b->nr && strcmp(b->entry[j].access_key, access_key) == 0)
			j++;
		if (i == a->nr || j == b->nr)
			return i == a->nr && j == b->nr;
		if (!entry_same(&a->entry[i++], &b->entry[j++]))
			return false;
	}
}

/* May this text take the place of that one, with nr entries of the access key in it? */
static int
verify(const char *text, size_t len, const char *source, const struct auth_keys *before,
       const char *access_key, int nr, FILE *err)
{
	struct auth_keys *after = NULL;
	FILE *nowhere = fopen("/dev/null", "we");
	int e = nowhere ? credentials_parse(text, len, source, false, &after, nowhere) : -errno, have = 0;
	bool good;

	if (nowhere)
		fclose(nowhere);
	if (e == 0)
		keys_find(after, span_of(access_key), &have);
	good = e == 0 && have == nr && others_same(before, after, access_key);
	auth_keys_put(after);
	if (e < 0 && e != -EINVAL)
		fprintf(err, "%s: %s\n", source, strerror(-e));
	else if (!good)
		fprintf(err,
			"%s: this cannot be changed without changing more of the file than that; edit it by "
			"hand\n",
			source);
	return good ? 0 : e < 0 ? e : -EINVAL;
}

/* Parses, and finds the entries. */
static int
begin(struct layout *l, const char *source, struct auth_keys **ret_keys, FILE *err)
{
	int e = credentials_parse(l->text, l->len, source, true, ret_keys, err);

	if (e < 0)
		return e;
	e = find_items(l);
	if (e == 0)
		return 0;
	fprintf(err, "%s: %s\n", source, e == -EINVAL ? "is not UTF-8" : strerror(-e));
	free(l->item);
	auth_keys_put(*ret_keys);
	return e;
}

/* Ends what begin() began and f was written for; f may be NULL. */
static int
end(struct layout *l, const char *source, struct auth_keys *before, const char *access_key, int nr, FILE *f,
    char **text, size_t *len, FILE *err)
{
	int e = f && fclose(f) == 0 ? 0 : -ENOMEM;

	if (e < 0)
		fprintf(err, "%s: out of memory\n", source);
	else
		e = verify(*text, *len, source, before, access_key, nr, err);
	if (e < 0 && f) {
		OPENSSL_cleanse(*text, *len);
		free(*text);
	}
	free(l->item);
	auth_keys_put(before);
	return e;
}

/* [] on a line of its own: it makes room for a list that reads better. */
static bool
is_bare_empty(const struct layout *l)
{
	size_t at = l->at + 1;

	if (!l->in_brackets || l->nr || !begins_line(l, l->at))
		return false;
	while (l->text[at] == ' ')
		at++;
	if (at + 1 != l->end)
		return false;
	at = l->end;
	while (at < l->len && (l->text[at] == ' ' || l->text[at] == '\t'))
		at++;
	return at == l->len || l->text[at] == '#' || break_at(l, at);
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
		style.indent = (int)(l->item[0].at - without_indent(l, l->item[0].at));
	}
	fwrite(l->text, 1, at, f);
	if (style.in_brackets)
		fputs(l->nr ? ", " : " ", f);
	else if (!begins_line(l, at))
		putc('\n', f);
	put_entry(f, pair, wish, &style);
	if (style.in_brackets)
		fputs(l->nr ? "" : " ", f);
	else if (!l->in_brackets)
		putc('\n', f);
	fwrite(l->text + behind, 1, l->len - behind, f);
}

int
keyfile_add(const char *text, size_t len, const char *source, const struct key_pair *pair,
	    const struct key_wish *wish, char **ret_text, size_t *ret_len, FILE *err)
{
	struct layout l = { .text = text, .len = len };
	struct auth_keys *before;
	FILE *f;
	int e = begin(&l, source, &before, err);

	if (e < 0)
		return e;
	f = open_memstream(ret_text, ret_len);
	if (f)
		write_added(f, &l, pair, wish);
	return end(&l, source, before, pair->access_key, 1, f, ret_text, ret_len, err);
}

/* ---- cutting ---- */

/* The access key of each entry, in the order of the file. */
static int
find_marked(const struct layout *l, const char *access_key, bool *marked)
{
	yaml_parser_t y;
	yaml_document_t doc;
	const yaml_node_t *root;

	if (!yaml_parser_initialize(&y))
		return -ENOMEM;
	yaml_parser_set_input_string(&y, (const unsigned char *)l->text, l->len);
	if (!yaml_parser_load(&y, &doc)) {
		credentials_wipe(&y);
		return -ENOMEM;
	}
	root = yaml_document_get_root_node(&doc);
	for (int i = 0; root && i < root->data.sequence.items.top - root->data.sequence.items.start; i++) {
		const yaml_node_t *n = yaml_document_get_node(&doc, root->data.sequence.items.start[i]);

		for (const yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top;
		     p++) {
			const yaml_node_t *k = yaml_document_get_node(&doc, p->key);
			const yaml_node_t *v = yaml_document_get_node(&doc, p->value);

			if (i < l->nr && strcmp((const char *)k->data.scalar.value, "access_key") == 0)
				marked[i] = strcmp((const char *)v->data.scalar.value, access_key) == 0;
		}
	}
	credentials_wipe_document(&doc);
	credentials_wipe(&y);
	return 0;
}

/* The whole lines of an entry; what stands between two of them belongs to neither. */
static void
cut_lines(FILE *f, const struct layout *l, const bool *marked, bool empty)
{
	size_t at = 0;

	for (int i = 0; i < l->nr; i++) {
		size_t from = without_indent(l, l->item[i].at), to = l->item[i].end;

		if (!marked[i])
			continue;
		fwrite(l->text + at, 1, from - at, f);
		if (empty)
			fputs("[]\n", f);
		empty = false;
		/* A scalar in lines of its own ends where the next line begins. */
		at = begins_line(l, to) ? to : line_end(l, to);
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
		/* Also the comma of the last one that stays, when it had somebody behind it. */
		if (comma_at && (marked[i] || (i == last && i < l->nr - 1))) {
			fwrite(l->text + at, 1, comma_at - at, f);
			at = comma_at + 1;
		}
	}
	fwrite(l->text + at, 1, l->len - at, f);
}

int
keyfile_cut(const char *text, size_t len, const char *source, const char *access_key, char **ret_text,
	    size_t *ret_len, FILE *err)
{
	struct layout l = { .text = text, .len = len };
	struct auth_keys *before;
	bool *marked = NULL;
	FILE *f = NULL;
	int nr, e = begin(&l, source, &before, err);

	if (e < 0)
		return e;
	keys_find(before, span_of(access_key), &nr);
	marked = calloc((size_t)l.nr + 1, sizeof *marked);
	if (marked && find_marked(&l, access_key, marked) == 0)
		f = open_memstream(ret_text, ret_len);
	if (f && l.in_brackets)
		cut_in_brackets(f, &l, marked);
	else if (f)
		cut_lines(f, &l, marked, nr == before->nr);
	free(marked);
	return end(&l, source, before, access_key, 0, f, ret_text, ret_len, err);
}
