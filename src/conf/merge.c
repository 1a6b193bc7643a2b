/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_merge(): what a reload makes of a configuration that was loaded again.  Values of keys that need a
 * restart are taken over from the running one, by printing them and reading them back, so that each type
 * needs no copying of its own.  Called by main/ on whatever thread reloads.
 */
#include "conf/conf_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct merge {
	struct loader ld; /* of the fresh one */
	struct conf *fresh;
	const struct conf *running;
	conf_change_fn change;
	void *cookie;
};

static char *
raw_text(struct merge *m, const struct conf_key *k, const void *base)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f) {
		value_print(k, base, f);
		if (fclose(f) == 0)
			return text;
		free(text);
	}
	m->ld.no_memory = true;
	return NULL;
}

static bool
differs(struct merge *m, const struct conf_key *k, const void *a, const void *b)
{
	char *x = raw_text(m, k, a), *y = raw_text(m, k, b);
	bool differ = x && y && strcmp(x, y) != 0;

	free(x);
	free(y);
	return differ;
}

static void
tell(struct merge *m, const struct conf_key *k, const void *from, const void *to, const char *path,
     bool applied)
{
	char *a = from ? value_text(k, from) : NULL, *b = to ? value_text(k, to) : NULL;

	m->change(m->cookie, path, a ? a : "", b ? b : "", applied);
	free(a);
	free(b);
}

/* ---- taking over ---- */

static void
take_origin(struct merge *m, const char *path)
{
	size_t len = strlen(path);

	for (const struct conf_origin *o = m->running->origins; o && o->path; o++) {
		struct node at = { .line = o->line, .column = o->column };

		if (strncmp(o->path, path, len) != 0 || (o->path[len] && o->path[len] != '['))
			continue;
		m->ld.source = o->source;
		m->ld.is_file = o->line > 0;
		load_set_origin(&m->ld, o->path, &at);
	}
	m->ld.source = NULL;
	m->ld.is_file = false;
}

static void
print_maps(const struct conf_key *k, const struct conf *c, FILE *out)
{
	const struct key_list *l = k->list;
	int nr = *(const int *)(const void *)((const char *)c + l->nr_offset);

	putc('[', out);
	for (int i = 0; i < nr; i++) {
		const char *sep = i ? "}, {" : "{";

		for (int j = 0; j < l->key_nr; j++) {
			if (key_is_foreign(c, l, i, &l->keys[j]))
				continue;
			fprintf(out, "%s%s: ", sep, l->keys[j].name);
			value_print(&l->keys[j], (const char *)c + l->offset + (size_t)i * l->elem_bytes,
				    out);
			sep = ", ";
		}
	}
	fputs(nr ? "}]" : "]", out);
}

static void
take_over(struct merge *m, const struct conf_key *k)
{
	struct node *n = NULL;
	char *text = NULL;
	size_t len;
	bool ok;
	FILE *f;

	if (k->type == KT_CORES) {
		/* What is printed is resolved, and nobody resolves again. */
		memcpy(m->fresh->cores, m->running->cores, sizeof m->fresh->cores);
		m->fresh->core_nr = m->running->core_nr;
		m->fresh->pin = m->running->pin;
		take_origin(m, k->name);
		return;
	}
	f = open_memstream(&text, &len);
	if (f) {
		if (k->type == KT_MAPS)
			print_maps(k, m->running, f);
		else
			value_print(k, m->running, f);
		if (fclose(f) == 0)
			n = yaml_read(&m->ld, text, len, &ok);
		free(text);
	}
	if (!n || value_set(&m->ld, k, k->name, n, m->fresh) < 0)
		m->ld.no_memory = true; /* it was read once before */
	else
		take_origin(m, k->name);
	node_free(n);
}

/* ---- comparing ---- */

static bool
can_reload(const struct conf_key *k, const void *from, const void *to)
{
	if (!(k->flags & KEY_RELOAD))
		return false;
	return !(k->flags & KEY_KIND) ||
	       !*(char *const *)(const void *)((const char *)from + k->offset) ==
		       !*(char *const *)(const void *)((const char *)to + k->offset);
}

static void
merge_value(struct merge *m, const struct conf_key *k)
{
	bool reload = can_reload(k, m->running, m->fresh);

	if (!differs(m, k, m->running, m->fresh))
		return;
	tell(m, k, m->running, m->fresh, k->name, reload);
	if (!reload)
		take_over(m, k);
}

/* Calls fn for every key of every element that differs; true as soon as it says so. */
static bool
each_difference(struct merge *m, const struct conf_key *k,
		bool (*fn)(struct merge *m, const struct conf_key *ek, const void *from, const void *to,
			   const char *path))
{
	const struct key_list *l = k->list;
	int nr = *(const int *)(const void *)((const char *)m->running + l->nr_offset);
	char path[128];

	for (int i = 0; i < nr * l->key_nr; i++) {
		const struct conf_key *ek = &l->keys[i % l->key_nr];
		size_t at = l->offset + (size_t)(i / l->key_nr) * l->elem_bytes;
		const void *from = (const char *)m->running + at, *to = (const char *)m->fresh + at;

		snprintf(path, sizeof path, "%s[%d].%s", k->name, i / l->key_nr, ek->name);
		if (differs(m, ek, from, to) && fn(m, ek, from, to, path))
			return true;
	}
	return false;
}

static bool
needs_restart(struct merge *m, const struct conf_key *k, const void *from, const void *to, const char *path)
{
	return !can_reload(k, from, to);
}

static bool
tell_applied(struct merge *m, const struct conf_key *k, const void *from, const void *to, const char *path)
{
	tell(m, k, from, to, path, true);
	return false;
}

static bool
tell_kept(struct merge *m, const struct conf_key *k, const void *from, const void *to, const char *path)
{
	tell(m, k, from, to, path, false);
	return false;
}

/* Elements have no names: only when none of them needs a restart is the n-th still the same as before, and
 * may it be changed.  A list that a reload may change as a whole may grow and shrink. */
static void
merge_list(struct merge *m, const struct conf_key *k)
{
	const struct key_list *l = k->list;
	bool reload = k->flags & KEY_RELOAD;

	if (*(const int *)(const void *)((const char *)m->running + l->nr_offset) !=
	    *(const int *)(const void *)((const char *)m->fresh + l->nr_offset)) {
		m->change(m->cookie, k->name, "", "", reload);
		if (reload)
			return;
	} else if (each_difference(m, k, needs_restart)) {
		each_difference(m, k, tell_kept);
	} else {
		each_difference(m, k, tell_applied);
		return;
	}
	take_over(m, k);
}

int
conf_merge(struct conf *fresh, const struct conf *running, conf_change_fn change, void *cookie)
{
	struct merge m = { .fresh = fresh, .running = running, .change = change, .cookie = cookie };
	FILE *sink = fopen("/dev/null", "we");

	if (!sink)
		return -errno;
	m.ld = (struct loader){ .conf = fresh, .err = sink, .origin = fresh->origins };
	while (m.ld.origin && m.ld.origin[m.ld.origin_nr].path)
		m.ld.origin_nr++;
	m.ld.origin_cap = m.ld.origin ? m.ld.origin_nr + 1 : 0;
	for (int i = 0; i < conf_key_nr && !m.ld.no_memory; i++) {
		if (conf_keys[i].type == KT_MAPS)
			merge_list(&m, &conf_keys[i]);
		else
			merge_value(&m, &conf_keys[i]);
	}
	fresh->origins = m.ld.origin;
	fclose(sink);
	return m.ld.no_memory ? -ENOMEM : 0;
}
