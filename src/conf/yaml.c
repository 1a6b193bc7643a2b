/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libyaml's documents as a small tree with line and column at every node.  Called by the loader for each file
 * and for values that are lists.  What libyaml says stops here: outside nobody knows its conventions.
 *
 * The tree is bounded in depth and in nodes, so that aliases (which libyaml resolves to shared nodes,
 * possibly in a circle) can neither blow it up nor run without end.
 */
#include "conf/conf_int.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define DEPTH_MAX 8
#define NODES_MAX 8192

struct reader {
	yaml_document_t *doc;
	int nodes;
	bool too_large;
};

static struct node *
node_new(enum node_kind kind)
{
	struct node *n = calloc(1, sizeof *n);

	if (n)
		n->kind = kind;
	return n;
}

struct node *
node_scalar(const char *text, size_t len)
{
	struct node *n = node_new(NODE_SCALAR);

	if (!n)
		return NULL;
	n->plain = true;
	n->text = strndup(text, len);
	if (!n->text) {
		free(n);
		return NULL;
	}
	return n;
}

void
node_free(struct node *n)
{
	if (!n)
		return;
	for (int i = 0; i < n->item_nr; i++)
		node_free(n->item[i]);
	free(n->item);
	free(n->text);
	free(n);
}

bool
node_is_null(const struct node *n)
{
	return n->kind == NODE_SCALAR && n->plain &&
	       (!*n->text || strcmp(n->text, "~") == 0 || strcmp(n->text, "null") == 0);
}

static struct node *copy_node(struct reader *rd, int id, int depth);

static int
copy_item(struct reader *rd, struct node *to, int id, int depth)
{
	struct node *n = copy_node(rd, id, depth + 1);

	if (!n)
		return -1;
	to->item[to->item_nr++] = n;
	return 0;
}

/* The children of a list or map, in to->item, which is made large enough first. */
static int
copy_items(struct reader *rd, const yaml_node_t *y, struct node *to, int depth)
{
	size_t nr = y->type == YAML_SEQUENCE_NODE
			    ? (size_t)(y->data.sequence.items.top - y->data.sequence.items.start)
			    : (size_t)(y->data.mapping.pairs.top - y->data.mapping.pairs.start) * 2;

	if (nr > NODES_MAX) {
		rd->too_large = true;
		return -1;
	}
	to->item = calloc(nr ? nr : 1, sizeof(struct node *));
	if (!to->item)
		return -1;
	if (y->type == YAML_SEQUENCE_NODE) {
		for (yaml_node_item_t *it = y->data.sequence.items.start; it < y->data.sequence.items.top;
		     it++) {
			if (copy_item(rd, to, *it, depth) < 0)
				return -1;
		}
		return 0;
	}
	for (yaml_node_pair_t *p = y->data.mapping.pairs.start; p < y->data.mapping.pairs.top; p++) {
		if (copy_item(rd, to, p->key, depth) < 0 || copy_item(rd, to, p->value, depth) < 0)
			return -1;
	}
	return 0;
}

static struct node *
copy_node(struct reader *rd, int id, int depth)
{
	yaml_node_t *y = yaml_document_get_node(rd->doc, id);
	struct node *n;

	check(y);
	if (depth > DEPTH_MAX || ++rd->nodes > NODES_MAX) {
		rd->too_large = true;
		return NULL;
	}
	if (y->type == YAML_SCALAR_NODE) {
		/* A NUL inside would hide what comes after it: such a text is cut, and is then no valid
		 * value of anything. */
		n = node_scalar((const char *)y->data.scalar.value, y->data.scalar.length);
		if (n)
			n->plain = y->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
		if (n && strlen(n->text) != y->data.scalar.length) {
			free(n->text);
			n->text = strdup("\001");
			n->plain = false;
		}
		if (n && !n->text) {
			free(n);
			n = NULL;
		}
	} else {
		n = node_new(y->type == YAML_SEQUENCE_NODE ? NODE_LIST : NODE_MAP);
		if (n && copy_items(rd, y, n, depth) < 0) {
			node_free(n);
			n = NULL;
		}
	}
	if (n) {
		n->line = (int)y->start_mark.line + 1;
		n->column = (int)y->start_mark.column + 1;
	}
	return n;
}

static void
parser_failed(struct loader *ld, const yaml_parser_t *parser)
{
	struct node at = { .line = (int)parser->problem_mark.line + 1,
			   .column = (int)parser->problem_mark.column + 1 };

	if (parser->error == YAML_READER_ERROR)
		load_fail(ld, &(struct node){ 0 }, NULL, "not valid text at byte %zu: %s",
			  parser->problem_offset, parser->problem ? parser->problem : "unknown");
	else if (parser->error == YAML_MEMORY_ERROR)
		ld->no_memory = true;
	else if (parser->error == YAML_SCANNER_ERROR && *parser->buffer.pointer == '\t')
		load_fail(ld, &at, NULL, "not valid YAML: a tab; YAML is indented with blanks");
	else
		load_fail(ld, &at, NULL, "not valid YAML: %s%s%s", parser->context ? parser->context : "",
			  parser->context ? ": " : "", parser->problem ? parser->problem : "unknown");
}

/* One document, and nothing after it. */
static struct node *
read_document(struct loader *ld, yaml_parser_t *parser, bool *ret_ok)
{
	struct reader rd = { 0 };
	yaml_document_t doc, next;
	struct node *n = NULL;

	if (!yaml_parser_load(parser, &doc)) {
		parser_failed(ld, parser);
		return NULL;
	}
	*ret_ok = true;
	if (yaml_document_get_root_node(&doc)) {
		rd.doc = &doc;
		n = copy_node(&rd, 1, 0);
		if (!n) {
			*ret_ok = false;
			if (rd.too_large)
				load_fail(ld, &(struct node){ 0 }, NULL,
					  "too large: at most %d values, nested at most %d deep", NODES_MAX,
					  DEPTH_MAX);
			else
				ld->no_memory = true;
		}
	}
	yaml_document_delete(&doc);
	if (!n)
		return NULL;
	if (!yaml_parser_load(parser, &next)) {
		parser_failed(ld, parser);
		*ret_ok = false;
	} else {
		yaml_node_t *second = yaml_document_get_root_node(&next);

		if (second) {
			struct node at = { .line = (int)second->start_mark.line + 1,
					   .column = (int)second->start_mark.column + 1 };

			load_fail(ld, &at, NULL, "a second document; expected only one");
			*ret_ok = false;
		}
		yaml_document_delete(&next);
	}
	if (!*ret_ok) {
		node_free(n);
		n = NULL;
	}
	return n;
}

struct node *
yaml_read(struct loader *ld, const char *text, size_t len, bool *ret_ok)
{
	yaml_parser_t parser;
	struct node *n;

	*ret_ok = false;
	if (!yaml_parser_initialize(&parser)) {
		ld->no_memory = true;
		return NULL;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	n = read_document(ld, &parser, ret_ok);
	yaml_parser_delete(&parser);
	return n;
}
