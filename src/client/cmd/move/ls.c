/* SPDX-License-Identifier: Apache-2.0 */
/* gantry ls and du: list objects, and add up their sizes. Main thread. */
#include "client/cmd/move/tree.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
print_size(const struct cmd *c, uint64_t bytes, int width)
{
	char text[32];

	if (c->human)
		printf("%*s", width, size_text(bytes, text));
	else
		printf("%*llu", width, (unsigned long long)bytes);
}

/* Adds a name to a JSON object; the name is percent-encoded if it is not UTF-8, which JSON requires. */
static void
json_name(json_t *out, const char *key, const char *name)
{
	json_t *text = json_pack("s", name);
	char *encoded = NULL;

	if (!text && (encoded = gantry_url_join("", name)))
		text = json_pack("s", *encoded == '/' ? encoded + 1 : encoded);
	if (encoded)
		json_object_set_new(out, "encoded", json_true());
	json_object_set_new(out, key, text ? text : json_null());
	free(encoded);
}

static void
print_json(json_t *out)
{
	json_dumpf(out, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(out);
}

static void
list_json(const struct place *p, const struct entry *n)
{
	json_t *out = json_pack("{s:s, s:s}", "op", "ls", "type",
				!p->has_bucket ? "bucket"
				: n->is_prefix ? "prefix"
					       : "object");
	char *name;

	if (asprintf(&name, "%s%s", p->prefix, n->name) < 0)
		return;
	json_name(out, "name", name);
	free(name);
	if (n->is_raw)
		json_object_set_new(out, "encoded", json_true());
	if (p->has_bucket && !n->is_prefix) {
		json_object_set_new(out, "size", json_integer((json_int_t)n->size));
		json_object_set_new(out, "etag", json_pack("s", n->etag));
	}
	if (*n->date)
		json_object_set_new(out, "last_modified", json_pack("s", n->date));
	print_json(out);
}

static void
list_text(const struct cmd *c, const struct place *p, const struct entry *n)
{
	char room[4096];

	if (c->is_long) {
		printf("%-19.19s%c ", *n->date ? n->date : "-", *n->date ? 'Z' : ' ');
		if (p->has_bucket && !n->is_prefix)
			print_size(c, n->size, 14);
		else
			printf("%14s", "-");
		putchar(' ');
	} else if (c->human && p->has_bucket && !n->is_prefix) {
		print_size(c, n->size, 10);
		putchar(' ');
	}
	fputs(name_shown(stdout, p->prefix, room, sizeof room), stdout);
	puts(name_shown(stdout, n->name, room, sizeof room));
}

/* Shows the list of a place; returns an exit code. */
typedef int show_fn(const struct cmd *c, const struct place *p, const struct tree *t);

static int
show_place(struct cmd *c, const char *url, const char *delimiter, show_fn *show)
{
	struct place p;
	struct tree t;
	int rc = EXIT_OK;

	place_init(&p, url);
	if (tree_of_place(c, &p, delimiter, &t, &rc) == 0)
		rc = show(c, &p, &t);
	tree_fini(&t);
	place_fini(&p);
	return rc;
}

static int
show_list(const struct cmd *c, const struct place *p, const struct tree *t)
{
	for (size_t i = 0; i < t->nr; i++) {
		if (c->json)
			list_json(p, &t->all[i]);
		else
			list_text(c, p, &t->all[i]);
	}
	if (!t->nr && *p->prefix) {
		fprintf(stderr, "gantry: ls %s: nothing begins with that\n", p->word);
		return EXIT_NOT_FOUND;
	}
	return EXIT_OK;
}

int
cmd_ls(struct cmd *c, const char *url)
{
	return show_place(c, url, c->recursive ? NULL : "/", show_list);
}

/* ---- du ---- */

static void
print_sum(const struct cmd *c, const struct place *p, const char *below, size_t len, uint64_t bytes,
	  uint64_t objects)
{
	char name[8192], room[8192];

	snprintf(name, sizeof name, "%s%.*s", p->prefix, (int)len, below);
	if (c->json) {
		json_t *out = json_pack("{s:s, s:I, s:I}", "op", "du", "bytes", (json_int_t)bytes, "objects",
					(json_int_t)objects);

		json_name(out, "prefix", name);
		print_json(out);
		return;
	}
	print_size(c, bytes, 14);
	printf(" %10llu %s\n", (unsigned long long)objects,
	       *name ? name_shown(stdout, name, room, sizeof room) : ".");
}

/* Returns the length of the beginning of a name that has `depth` slashes; 0 if the name has fewer slashes. */
static size_t
head_len(const char *name, int depth)
{
	const char *p = name;

	for (int i = 0; i < depth; i++) {
		p = strchr(p, '/');
		if (!p)
			return 0;
		p++;
	}
	return (size_t)(p - name);
}

/* Prints the sums of one level. The names are sorted, so the entries of a group follow each other. */
static void
print_level(const struct cmd *c, const struct place *p, const struct tree *t, int depth)
{
	for (size_t i = 0, next; i < t->nr; i = next) {
		size_t len = head_len(t->all[i].name, depth);
		uint64_t bytes = 0;

		next = i + 1;
		if (!len)
			continue;
		for (next = i; next < t->nr && !strncmp(t->all[next].name, t->all[i].name, len); next++)
			bytes += t->all[next].size;
		print_sum(c, p, t->all[i].name, len, bytes, next - i);
	}
}

static int
show_sums(const struct cmd *c, const struct place *p, const struct tree *t)
{
	for (int depth = c->depth; depth > 0; depth--)
		print_level(c, p, t, depth);
	print_sum(c, p, "", 0, t->bytes, t->nr);
	return EXIT_OK;
}

int
cmd_du(struct cmd *c, const char *url)
{
	return show_place(c, url, NULL, show_sums);
}
