/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the entries in the text of a credentials file, see keylayout.h. */
#include "auth/keylayout.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <yaml.h>

/* ---- where entries are ---- */

size_t
layout_byte(struct layout *l, size_t mark)
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
	l->item[l->nr++] = (struct item){ .at = layout_byte(l, mark) };
	l->is_open = true;
	return 0;
}

static void
close_item(struct layout *l)
{
	if (l->is_open)
		l->item[l->nr - 1].end = layout_byte(l, l->last_mark);
	l->is_open = false;
}

/* A token that ends something. */
static void
on_end(struct layout *l, const yaml_token_t *t)
{
	bool is_block = t->type == YAML_BLOCK_END_TOKEN;

	if (l->depth == 1) {
		close_item(l);
		l->end = layout_byte(l, is_block ? t->start_mark.index : t->end_mark.index);
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
			l->item[l->nr - 1].comma_at = layout_byte(l, t->start_mark.index);
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
			l->at = layout_byte(l, t->start_mark.index);
		}
		break;
	default:
		break;
	}
	l->last_mark = t->end_mark.index;
	return 0;
}

/* Of a text that auth/ has parsed.  0, -ENOMEM, or -EINVAL: it is not UTF-8. */
int
layout_find(struct layout *l)
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
size_t
layout_break(const struct layout *l, size_t at)
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

bool
layout_begins_line(const struct layout *l, size_t at)
{
	for (size_t n = 1; n <= 3 && n <= at; n++) {
		if (layout_break(l, at - n) == n)
			return true;
	}
	return at == 0 || (at == 3 && memcmp(l->text, "\xef\xbb\xbf", 3) == 0);
}

/* Where the line ends, its break included. */
size_t
layout_line_end(const struct layout *l, size_t at)
{
	while (at < l->len && !layout_break(l, at))
		at++;
	return at < l->len ? at + layout_break(l, at) : at;
}

size_t
layout_unindented(const struct layout *l, size_t at)
{
	while (at > 0 && l->text[at - 1] == ' ')
		at--;
	return at;
}

/* ---- what stands in the entries ---- */

static void
take_node(struct entry_nodes *n, const yaml_node_t *k, const yaml_node_t *v)
{
	const char *name = (const char *)k->data.scalar.value;

	if (strcmp(name, "access_key") == 0)
		n->access_key = v;
	else if (strcmp(name, "expires") == 0)
		n->expires = v;
	else if (strcmp(name, "made") == 0)
		n->made = v;
	else if (strcmp(name, "secret_key") == 0) {
		n->secret_name = k;
		n->secret = v;
	}
}

int
layout_nodes(const struct layout *l, void (*fn)(void *cookie, int i, const struct entry_nodes *n),
	     void *cookie)
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
		const yaml_node_t *e = yaml_document_get_node(&doc, root->data.sequence.items.start[i]);
		struct entry_nodes n = { .in_braces = e->data.mapping.style == YAML_FLOW_MAPPING_STYLE };

		for (const yaml_node_pair_t *p = e->data.mapping.pairs.start; p < e->data.mapping.pairs.top;
		     p++)
			take_node(&n, yaml_document_get_node(&doc, p->key),
				  yaml_document_get_node(&doc, p->value));
		fn(cookie, i, &n);
	}
	credentials_wipe_document(&doc);
	credentials_wipe(&y);
	return 0;
}
