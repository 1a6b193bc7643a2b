/* SPDX-License-Identifier: Apache-2.0 */
/* conf_print(): every value and where it came from, as YAML that could be read back.  Any thread: the struct
 * is read-only. */
#include "conf/conf_int.h"

#include <stdlib.h>
#include <string.h>

#define COMMENT_COLUMN 48

void
conf_origin(const struct conf *c, const char *path, char *out, size_t cap)
{
	const struct conf_origin *o = c->origins;

	while (o && o->path && strcmp(o->path, path) != 0)
		o++;
	if (!o || !o->path || !o->source)
		snprintf(out, cap, "default");
	else if (o->line)
		snprintf(out, cap, "%s:%d", o->source, o->line);
	else
		snprintf(out, cap, "%s", o->source);
}

static void
print_origin(const struct conf *c, const char *path, size_t column, FILE *out)
{
	char origin[512];

	conf_origin(c, path, origin, sizeof origin);
	fprintf(out, "%*s# %s\n", column < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - column) : 1, "", origin);
}

char *
value_text(const struct conf_key *k, const void *base)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	value_print(k, base, f);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	if ((k->flags & KEY_SECRET) && k->def && strcmp(text, k->def) != 0) {
		free(text);
		return strdup("\"********\"");
	}
	return text;
}

static void
print_value(const struct conf *c, const char *lead, const char *name, const struct conf_key *k,
	    const void *base, const char *path, FILE *out)
{
	char *text = value_text(k, base);
	int n = fprintf(out, "%s%s: %s", lead, name, text ? text : "");

	print_origin(c, path, n > 0 ? (size_t)n : 0, out);
	free(text);
}

bool
key_is_foreign(const struct conf *c, const struct key_list *l, int elem, const struct conf_key *k)
{
	unsigned only = k->flags & (KEY_S3 | KEY_SCALITY);

	return only && l->offset == offsetof(struct conf, listen) &&
	       only != (c->listen[elem].dialect == DIALECT_S3 ? KEY_S3 : KEY_SCALITY);
}

static void
print_maps(const struct conf *c, const char *indent, const char *name, const struct conf_key *k, FILE *out)
{
	const struct key_list *l = k->list;
	int nr = *(const int *)(const void *)((const char *)c + l->nr_offset);
	int n = fprintf(out, "%s%s:%s", indent, name, nr ? "" : " []");

	print_origin(c, k->name, n > 0 ? (size_t)n : 0, out);
	for (int i = 0; i < nr; i++) {
		const void *elem = (const char *)c + l->offset + (size_t)i * l->elem_bytes;
		bool first = true;

		for (int j = 0; j < l->key_nr; j++) {
			const struct conf_key *ek = &l->keys[j];
			char path[128], lead[32];

			if (key_is_foreign(c, l, i, ek))
				continue;
			snprintf(path, sizeof path, "%s[%d].%s", k->name, i, ek->name);
			snprintf(lead, sizeof lead, "%s  %s", indent, first ? "- " : "  ");
			print_value(c, lead, ek->name, ek, elem, path, out);
			first = false;
		}
	}
}

void
conf_print(const struct conf *c, FILE *out)
{
	char path[64] = "";

	for (int i = 0; i < conf_key_nr; i++) {
		const struct conf_key *k = &conf_keys[i];
		const char *name = k->name;
		char indent[16] = "";

		/* A line for each section that the key before was not in. */
		for (const char *dot; (dot = strchr(name, '.')); name = dot + 1) {
			size_t len = (size_t)(dot - k->name);

			if (strncmp(path, k->name, len + 1) != 0)
				fprintf(out, "%s%.*s:\n", indent, (int)(dot - name), name);
			snprintf(indent + strlen(indent), sizeof indent - strlen(indent), "  ");
		}
		snprintf(path, sizeof path, "%s", k->name);
		if (k->type == KT_MAPS)
			print_maps(c, indent, name, k, out);
		else
			print_value(c, indent, name, k, c, k->name, out);
	}
}

/* ---- JSON ---- */

static void
json_quote(const char *text, FILE *out)
{
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		if ((unsigned char)*text >= 0x20)
			putc(*text, out);
	}
	putc('"', out);
}

static void
json_value(const struct conf *c, const struct conf_key *k, const void *base, const char *path, bool first,
	   FILE *out)
{
	char origin[512], *text = value_text(k, base);
	size_t len = text ? strlen(text) : 0;

	fputs(first ? "\n" : ",\n", out);
	json_quote(path, out);
	fputs(":{\"value\":", out);
	/* A text is printed with quotes and escapes, which are JSON's own. */
	if (len >= 2 && text[0] == '"' && text[len - 1] == '"')
		fputs(text, out);
	else
		json_quote(text ? text : "", out);
	conf_origin(c, path, origin, sizeof origin);
	fputs(",\"origin\":", out);
	json_quote(origin, out);
	putc('}', out);
	free(text);
}

void
conf_print_json(const struct conf *c, FILE *out)
{
	bool first = true;

	putc('{', out);
	for (int i = 0; i < conf_key_nr; i++) {
		const struct conf_key *k = &conf_keys[i];
		const struct key_list *l = k->list;

		if (!l) {
			json_value(c, k, c, k->name, first, out);
			first = false;
			continue;
		}
		for (int e = 0; e < *(const int *)(const void *)((const char *)c + l->nr_offset); e++) {
			const void *elem = (const char *)c + l->offset + (size_t)e * l->elem_bytes;

			for (int j = 0; j < l->key_nr; j++) {
				char path[128];

				if (key_is_foreign(c, l, e, &l->keys[j]))
					continue;
				snprintf(path, sizeof path, "%s[%d].%s", k->name, e, l->keys[j].name);
				json_value(c, &l->keys[j], elem, path, first, out);
				first = false;
			}
		}
	}
	fputs("\n}\n", out);
}
