/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry sync: makes one tree like another. An entry whose size differs at the destination is copied; with
 * the same size, it is copied unless the content is equal. An entry that only the destination has is deleted
 * only with --delete, and only if the list of the source is complete.
 */
#include "base/advice.h"
#include "client/cmd/move/move.h"
#include "client/cmd/common/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sync {
	struct move m;
	struct tree there;
	bool *alone; /* true for each entry that only the destination has */
	size_t alone_nr, next;
};

static int
list_there(struct sync *s)
{
	struct move *m = &s->m;
	int rc = EXIT_OK, e;

	if (m->to.is_url) {
		tree_of_place(m->c, &m->to, NULL, &s->there, &rc);
		return rc;
	}
	/* With --dry-run the directory need not exist. */
	if (m->to_dir < 0)
		return EXIT_OK;
	e = tree_of_directory(m->c, m->to_dir, m->to.word, &s->there);
	if (e < 0 || !s->there.is_whole) {
		fprintf(stderr, "gantry: sync: %s: %s\n", m->to.word,
			e < 0 ? strerror(-e) : "not all of it could be listed, nothing is done");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* Compares the two lists, which have the same order. */
static int
compare_lists(struct sync *s)
{
	const struct tree *here = &s->m.tree, *there = &s->there;
	size_t i = 0, k = 0;

	s->alone = calloc(there->nr + 1, sizeof *s->alone);
	if (!s->alone) {
		fprintf(stderr, "gantry: out of memory\n");
		return EXIT_FAILED;
	}
	while (k < there->nr) {
		int order = i < here->nr ? strcmp(here->all[i].name, there->all[k].name) : 1;

		if (order == 0 && here->all[i].size == there->all[k].size)
			s->m.todo[i] = MOVE_UNLESS_SAME;
		if (order > 0) {
			s->alone[k] = true;
			s->alone_nr++;
		}
		i += order <= 0;
		k += order >= 0;
	}
	return EXIT_OK;
}

static bool
delete_file(struct sync *s, const struct entry *n)
{
	const char *leaf, *why;
	int dir = name_parent(s->m.to_dir, n->name, false, &leaf, &why);
	struct outcome o;

	outcome_init(&o, "sync", s->m.to.word, n->name);
	if (dir < 0)
		outcome_local(&o, dir, "%s", *why ? why : strerror(-dir));
	else if (unlinkat(dir, leaf, 0) < 0)
		outcome_local(&o, -errno, "%s", strerror(errno));
	if (dir >= 0)
		close(dir);
	if (o.error)
		batch_done(&s->m.batch, &o);
	return !o.error;
}

static bool
delete_next(void *cookie, struct buffer *b)
{
	struct sync *s = cookie;
	struct move *m = &s->m;
	const struct entry *n = NULL;
	bool is_gone;

	pthread_mutex_lock(&m->batch.lock);
	while (s->next < s->there.nr && !s->alone[s->next])
		s->next++;
	if (s->next < s->there.nr)
		n = &s->there.all[s->next++];
	pthread_mutex_unlock(&m->batch.lock);
	if (!n)
		return false;
	is_gone = m->to.is_url ? batch_delete(&m->batch, &m->to, n, "sync", n->name) : delete_file(s, n);
	pthread_mutex_lock(&m->batch.lock);
	m->deleted += is_gone;
	pthread_mutex_unlock(&m->batch.lock);
	return true;
}

/* Deletes the entries that only the destination has, if the list of the source is complete. */
static int
delete_alone(struct sync *s)
{
	struct move *m = &s->m;
	const char *why = !m->tree.is_whole       ? "not all of the source could be listed"
			  : m->batch.tally.failed ? "something could not be copied"
						  : NULL;

	if (!m->c->deletes || !s->alone_nr)
		return EXIT_OK;
	if (why) {
		fprintf(stderr, "gantry: sync: nothing is deleted: %s\n", why);
		return EXIT_FAILED;
	}
	batch_run(&m->batch, m->c->jobs ? m->c->jobs : 4, delete_next, s);
	return EXIT_OK;
}

static void
say_dry(const struct sync *s)
{
	for (size_t i = 0; i < s->m.tree.nr; i++)
		if (s->m.todo[i] != MOVE_NOTHING)
			would(s->m.c, "copy", "", s->m.tree.all[i].name);
	for (size_t k = 0; s->m.c->deletes && k < s->there.nr; k++)
		if (s->alone[k])
			would(s->m.c, "delete", "", s->there.all[k].name);
}

/* Refuses --delete with an empty source, which is probably a mistyped name. */
static int
refuse_to_empty(const struct sync *s)
{
	char remedies[2048] = "", loss[64];

	if (!s->m.c->deletes || s->m.c->yes || s->m.tree.nr || !s->there.nr)
		return EXIT_OK;
	snprintf(loss, sizeof loss, "%zu objects or files", s->there.nr);
	advice_add(remedies, sizeof remedies, ADVICE_SYNC_FROM_NOTHING,
		   &(struct advice_values){ .path = s->m.from.word, .loss = loss });
	fprintf(stderr, "gantry: sync: there is nothing at %s, and all at %s would be removed\n%s\n",
		s->m.from.word, s->m.to.word, remedies);
	return EXIT_FAILED;
}

int
cmd_sync(struct cmd *c, const char *from, const char *to)
{
	struct sync s = { .there = { .nr = 0 } };
	int rc, end;

	if (!words_is_url(from) && !words_is_url(to))
		words_bad("sync", "one of the two is a URL, the source or the destination", from);
	rc = move_begin(&s.m, c, "sync", from, to);
	if (rc == EXIT_OK)
		rc = list_there(&s);
	if (rc == EXIT_OK)
		rc = compare_lists(&s);
	if (rc == EXIT_OK)
		rc = refuse_to_empty(&s);
	if (rc != EXIT_OK) {
		c->dry_run = true; /* suppresses the summary of an empty run */
	} else {
		move_run(&s.m);
		if (c->dry_run)
			say_dry(&s);
		else
			rc = delete_alone(&s);
	}
	end = move_end(&s.m);
	tree_fini(&s.there);
	free(s.alone);
	return rc ? rc : end;
}
