/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the files below a directory, or the objects below a prefix of a bucket; see tree.h. */
#include "client/cmd/move/files.h"
#include "client/cmd/move/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 512
#define OUTSIDE 1 /* the server returned a key that does not have the requested prefix */

/* Returns true if --include and --exclude select a name. The last filter that matches decides. */
static bool
filter_takes(const struct cmd *c, const char *name)
{
	/* If the first filter is --include, other names are not selected. */
	bool takes = !c->filter_nr || !c->filter[0].is_include;

	for (int i = 0; i < c->filter_nr; i++)
		if (fnmatch(c->filter[i].glob, name, 0) == 0)
			takes = c->filter[i].is_include;
	return takes;
}

/* Makes room for one more entry. Returns NULL if there is no memory. */
static struct entry *
tree_room(struct tree *t)
{
	if (t->nr == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 256;
		struct entry *more = realloc(t->all, cap * sizeof *more);

		if (!more)
			return NULL;
		t->all = more;
		t->cap = cap;
	}
	t->all[t->nr] = (struct entry){ 0 };
	return &t->all[t->nr];
}

static int
by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return strcmp(x->name, y->name);
}

void
tree_fini(struct tree *t)
{
	for (size_t i = 0; i < t->nr; i++) {
		free(t->all[i].name);
		free(t->all[i].date);
		free(t->all[i].etag);
	}
	free(t->all);
	*t = (struct tree){ 0 };
}

/* ---- of a server ---- */

struct listing {
	struct cmd *c;
	struct tree *t;
	size_t prefix_len;
	const char *prefix;
};

static int
on_entry(void *cookie, const struct gantry_entry *e)
{
	struct listing *l = cookie;
	struct entry *n;

	/* Keys without the requested prefix are ignored. */
	if (e->name_len < l->prefix_len || memcmp(e->name, l->prefix, l->prefix_len) != 0)
		return OUTSIDE;
	if (!e->is_prefix && !filter_takes(l->c, e->name + l->prefix_len))
		return 0;
	n = tree_room(l->t);
	if (!n)
		return -ENOMEM;
	n->name = strdup(e->name + l->prefix_len);
	n->date = strdup(e->date);
	n->etag = strdup(e->etag);
	n->name_len = e->name_len - l->prefix_len;
	n->size = e->size;
	n->is_prefix = e->is_prefix;
	n->is_raw = e->is_raw;
	l->t->nr++;
	l->t->bytes += e->size;
	return n->name && n->date && n->etag ? 0 : -ENOMEM;
}

int
tree_of_place(struct cmd *c, const struct place *p, const char *delimiter, struct tree *t, int *ret_exit)
{
	struct gantry_list_options lo = { .size = sizeof lo,
					  .prefix = *p->prefix ? p->prefix : NULL,
					  .delimiter = delimiter,
					  .timeout_ms = c->timeout_ms };
	struct gantry_result res = { .size = sizeof res };
	struct listing l = { c, t, strlen(p->prefix), p->prefix };
	struct outcome o;
	int e;

	*t = (struct tree){ 0 };
	outcome_init(&o, c->name, p->word, NULL);
	e = p->has_bucket ? gantry_list(c->g, p->bucket, &lo, on_entry, &l, &res)
			  : gantry_list_buckets(c->g, p->bucket, on_entry, &l, &res);
	outcome_add(&o, e, &res);
	if (e == OUTSIDE)
		outcome_local(&o, e = -EPROTO,
			      "the server lists keys that do not begin with what was asked for");
	if (e < 0) {
		explain(&o);
		report(c, &o, false);
		*ret_exit = e == -ENOENT ? EXIT_NOT_FOUND : EXIT_FAILED;
		return e;
	}
	t->is_whole = true;
	if (t->nr)
		qsort(t->all, t->nr, sizeof *t->all, by_name);
	return 0;
}

/* ---- of a directory ---- */

struct walk {
	struct cmd *c;
	struct tree *t;
	const char *word;
};

static void
left_out(struct walk *w, const char *name, const char *why)
{
	fprintf(stderr, "gantry: %s/%s: %s\n", w->word, name, why);
	w->t->is_whole = false;
}

static void walk(struct walk *w, int dir, const char *below, int depth);

static void
take_file(struct walk *w, char *name, const struct stat *st)
{
	struct entry *n = filter_takes(w->c, name) ? tree_room(w->t) : NULL;

	if (!n) {
		free(name);
		return;
	}
	n->name = name;
	n->name_len = strlen(name);
	n->size = (uint64_t)st->st_size;
	n->mtime = st->st_mtim;
	w->t->nr++;
	w->t->bytes += n->size;
}

static void
visit(struct walk *w, int dir, const char *below, const char *leaf, int depth)
{
	struct stat st;
	char *name;
	int sub;

	if (asprintf(&name, "%s%s%s", below, *below ? "/" : "", leaf) < 0) {
		left_out(w, leaf, strerror(ENOMEM));
		return;
	}
	if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		/* A file that was removed meanwhile does not count. */
		if (errno != ENOENT)
			left_out(w, name, strerror(errno));
	} else if (S_ISREG(st.st_mode)) {
		take_file(w, name, &st);
		return;
	} else if (!S_ISDIR(st.st_mode)) {
		w->t->skipped++;
	} else {
		sub = openat(dir, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			left_out(w, name, strerror(errno));
		else if (depth == DEPTH_MAX)
			left_out(w, name, "directories are nested too deeply");
		if (sub >= 0 && depth == DEPTH_MAX)
			close(sub);
		else if (sub >= 0)
			walk(w, sub, name, depth + 1);
	}
	free(name);
}

/* Lists a directory, and closes dir. */
static void
walk(struct walk *w, int dir, const char *below, int depth)
{
	DIR *d = fdopendir(dir);
	const struct dirent *de;

	if (!d) {
		left_out(w, below, strerror(errno));
		close(dir);
		return;
	}
	for (;;) {
		errno = 0;
		de = readdir(d);
		if (!de)
			break;
		/* Incomplete downloads are not listed. */
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0 &&
		    strncmp(de->d_name, UNFINISHED, sizeof UNFINISHED - 1) != 0)
			visit(w, dirfd(d), below, de->d_name, depth);
	}
	if (errno)
		left_out(w, below, strerror(errno));
	closedir(d);
}

int
tree_of_directory(struct cmd *c, int dir, const char *word, struct tree *t)
{
	struct walk w = { c, t, word };
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*t = (struct tree){ .is_whole = true };
	if (fd < 0)
		return -errno;
	walk(&w, fd, "", 0);
	if (t->nr)
		qsort(t->all, t->nr, sizeof *t->all, by_name);
	return 0;
}
