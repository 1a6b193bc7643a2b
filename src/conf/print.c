/* conf_print(): every value and where it came from, as YAML that could be read back.  Any thread: the struct
 * is read-only. */
#include "conf/conf_int.h"

#include <stdlib.h>
#include <string.h>

#define COMMENT_COLUMN 48

static void
print_origin(const struct conf *c, const char *path, size_t column, FILE *out)
{
	const struct conf_origin *o = c->origins;

	while (o && o->path && strcmp(o->path, path) != 0)
		o++;
	fprintf(out, "%*s# ", column < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - column) : 1, "");
	if (!o || !o->path || !o->source)
		fprintf(out, "default\n");
	else if (o->line)
		fprintf(out, "%s:%d\n", o->source, o->line);
	else
		fprintf(out, "%s\n", o->source);
}

/* The value as text; the caller frees it.  NULL: out of memory. */
static char *
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
			unsigned only = ek->flags & (KEY_S3 | KEY_SCALITY);
			char path[128], lead[32];

			if (only && l->offset == offsetof(struct conf, listen) &&
			    only != (c->listen[i].dialect == DIALECT_S3 ? KEY_S3 : KEY_SCALITY))
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
	char section[32] = "";

	for (int i = 0; i < conf_key_nr; i++) {
		const struct conf_key *k = &conf_keys[i];
		const char *dot = strchr(k->name, '.'), *name = dot ? dot + 1 : k->name;
		const char *indent = dot ? "  " : "";

		if (dot &&
		    (strncmp(section, k->name, (size_t)(dot - k->name)) != 0 || section[dot - k->name])) {
			snprintf(section, sizeof section, "%.*s", (int)(dot - k->name), k->name);
			fprintf(out, "%s:\n", section);
		}
		if (k->type == KT_MAPS)
			print_maps(c, indent, name, k, out);
		else
			print_value(c, indent, name, k, c, k->name, out);
	}
}
