/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the loader says about a source: errors with their place, and where each value came from.  Called by all
 * that read a source; on the thread of conf_load().
 */
#include "conf/conf_int.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void
write_line(struct loader *ld, const char *source, int line, int column, const char *path, const char *text)
{
	char shown[512];

	snprintf(shown, sizeof shown, "%s", text);
	/* What the file holds must not reach the terminal raw. */
	for (char *p = shown; *p; p++) {
		if (iscntrl((unsigned char)*p))
			*p = '?';
	}
	if (source)
		fprintf(ld->err, "%s:", source);
	if (line)
		fprintf(ld->err, "%d:%d:", line, column);
	fprintf(ld->err, "%s%s%s%s\n", source ? " " : "", path ? path : "", path ? ": " : "", shown);
}

static void
say(struct loader *ld, const char *source, int line, int column, const char *path, const char *text)
{
	if (ld->errors++ < ERRORS_SHOWN)
		write_line(ld, source, line, column, path, text);
}

void
load_note(struct loader *ld, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	write_line(ld, NULL, 0, 0, NULL, text);
}

void
load_fail(struct loader *ld, const struct node *n, const char *path, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	say(ld, ld->source, ld->is_file ? n->line : 0, n->column, path, text);
}

static struct conf_origin *
origin_find(struct loader *ld, const char *path)
{
	for (int i = 0; i < ld->origin_nr; i++) {
		if (strcmp(ld->origin[i].path, path) == 0)
			return &ld->origin[i];
	}
	return NULL;
}

void
load_fail_key(struct loader *ld, const char *path, const char *fmt, ...)
{
	const struct conf_origin *o = origin_find(ld, path);
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	say(ld, o ? o->source : NULL, o ? o->line : 0, o ? o->column : 0, path, text);
}

void
load_set_origin(struct loader *ld, const char *path, const struct node *n)
{
	/* Of the defaults none is there already. */
	struct conf_origin *o = ld->defaults ? NULL : origin_find(ld, path);
	char *source = ld->source ? strdup(ld->source) : NULL;

	if (!o && ld->origin_nr + 1 >= ld->origin_cap) {
		int cap = ld->origin_cap ? ld->origin_cap * 2 : 128;
		struct conf_origin *more = reallocarray(ld->origin, (size_t)cap, sizeof *more);

		if (more) {
			ld->origin = more;
			ld->origin_cap = cap;
		} else {
			ld->no_memory = true;
			free(source);
			return;
		}
	}
	if (!o) {
		o = &ld->origin[ld->origin_nr++];
		*o = (struct conf_origin){ .path = strdup(path) };
		ld->origin[ld->origin_nr] = (struct conf_origin){ 0 };
	}
	free(o->source);
	o->source = source;
	o->line = ld->is_file ? n->line : 0;
	o->column = n->column;
	if (!o->path || (ld->source && !source)) {
		ld->no_memory = true;
		/* An entry without a name would end the list. */
		if (!o->path)
			free(ld->origin[--ld->origin_nr].source);
		ld->origin[ld->origin_nr] = (struct conf_origin){ 0 };
	}
}

void
load_drop_origins(struct loader *ld, const char *prefix)
{
	int kept = 0;

	for (int i = 0; i < ld->origin_nr; i++) {
		struct conf_origin *o = &ld->origin[i];

		if (strncmp(o->path, prefix, strlen(prefix)) == 0) {
			free(o->path);
			free(o->source);
		} else {
			ld->origin[kept++] = *o;
		}
	}
	ld->origin_nr = kept;
	if (ld->origin)
		ld->origin[kept] = (struct conf_origin){ 0 };
}
