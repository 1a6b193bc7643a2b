/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a tree, several files at once; see move.h. */
#include "client/cmd/move/move.h"
#include "client/cmd/move/parts.h"
#include "client/cmd/move/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- one entry ---- */

/* Opens a file of the source. Returns a descriptor, or -errno, after noting the error in o. */
static int
open_source(struct move *m, const struct entry *n, struct outcome *o)
{
	const char *leaf, *why;
	int dir = name_parent(m->from_dir, n->name, false, &leaf, &why), fd, e;

	if (dir < 0) {
		outcome_local(o, dir, "%s", *why ? why : strerror(-dir));
		return dir;
	}
	fd = openat(dir, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	e = -errno;
	close(dir);
	if (fd >= 0)
		return fd;
	outcome_local(o, e, "%s", strerror(-e));
	return e;
}

/* Returns true for an object that represents a directory, as some programs create them. */
static bool
is_marker(const struct entry *n)
{
	return n->size == 0 && (n->name_len == 0 || n->name[n->name_len - 1] == '/');
}

static void
make_marked(struct move *m, struct entry *n, struct outcome *o)
{
	const char *leaf, *fault = NULL, *why;
	int dir;

	if (n->name_len == 0)
		return;
	n->name[n->name_len - 1] = 0;
	fault = name_fault(n->name, n->name_len - 1);
	n->name[n->name_len - 1] = '/';
	if (fault) {
		outcome_local(o, -EINVAL, "%s", fault);
		return;
	}
	dir = name_parent(m->to_dir, n->name, true, &leaf, &why);
	if (dir < 0)
		outcome_local(o, dir, "%s", *why ? why : strerror(-dir));
	else
		close(dir);
}

static void
get_one(struct move *m, struct buffer *b, struct entry *n, const char *url, int streams, struct outcome *o)
{
	const char *fault = name_fault(n->name, n->name_len);

	if (is_marker(n))
		make_marked(m, n, o);
	else if (n->is_raw || fault)
		outcome_local(o, -EINVAL, "%s", n->is_raw ? "the name has a NUL in it" : fault);
	else
		get_below(m->c, b, streams, url, m->to_dir, n->name, &m->written, o);
}

/* Compares an entry with the object or file at the destination. Returns 1 if they are equal, 0 if they
 * differ, or -errno, after noting the error in o. */
static int
is_same(struct move *m, struct buffer *b, const struct entry *n, const char *from, const char *to,
	struct outcome *o)
{
	struct entry file = *n;
	const char *leaf, *why;
	struct stat st;
	int fd, dir, same;

	if (m->how == MOVE_COPY)
		return same_object(m->c, from, to, o);
	if (m->how == MOVE_PUT) {
		fd = open_source(m, n, o);
		if (fd < 0)
			return fd;
	} else {
		dir = name_parent(m->to_dir, n->name, false, &leaf, &why);
		fd = dir < 0 ? -1 : openat(dir, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (dir >= 0)
			close(dir);
		/* A file that cannot be read is replaced. */
		if (fd < 0)
			return 0;
		if (fstat(fd, &st) == 0)
			file.mtime = st.st_mtim;
	}
	same = same_file(m->c, b, fd, &file, m->how == MOVE_PUT ? to : from, m->how == MOVE_PUT, o);
	close(fd);
	return same;
}

static void
move_one(struct move *m, struct buffer *b, struct entry *n, int streams, struct outcome *o)
{
	char *from = m->from.is_url ? place_url(&m->from, n->name) : NULL;
	char *to = m->to.is_url ? place_url(&m->to, n->name) : NULL;
	bool may_skip = m->todo[n - m->tree.all] == MOVE_UNLESS_SAME;
	int fd, same = 0;

	outcome_init(o, m->op, from ? from : to, n->name);
	if ((m->from.is_url && !from) || (m->to.is_url && !to))
		outcome_local(o, -ENOMEM, "no memory");
	else if (may_skip)
		same = is_same(m, b, n, from, to, o);
	if (o->error || same) {
		bar_add(same > 0 ? n->size : 0);
		m->todo[n - m->tree.all] = same > 0 ? MOVE_NOTHING : MOVE_IT;
	} else if (m->c->dry_run) {
		m->todo[n - m->tree.all] = MOVE_IT;
	} else if (m->how == MOVE_PUT) {
		fd = open_source(m, n, o);
		if (fd >= 0) {
			put_fd(m->c, b, streams, WHOLE_MAX, fd, n->name, to, o);
			close(fd);
		}
	} else if (m->how == MOVE_GET) {
		get_one(m, b, n, from, streams, o);
	} else if (n->is_raw) {
		outcome_local(o, -EINVAL, "the name has a NUL in it");
	} else {
		copy_object(m->c, b, streams, from, to, o);
	}
	o->op = m->op;
	pthread_mutex_lock(&m->batch.lock);
	m->same += same > 0;
	pthread_mutex_unlock(&m->batch.lock);
	if (o->error || (same <= 0 && !m->c->dry_run))
		batch_done(&m->batch, o);
	free(from);
	free(to);
}

static bool
next_one(void *cookie, struct buffer *b)
{
	struct move *m = cookie;
	struct entry *n = NULL;
	struct outcome o;

	pthread_mutex_lock(&m->batch.lock);
	while (m->next < m->tree.nr && m->todo[m->next] == MOVE_NOTHING)
		m->next++;
	if (m->next < m->tree.nr)
		n = &m->tree.all[m->next++];
	pthread_mutex_unlock(&m->batch.lock);
	if (!n)
		return false;
	/* If there is only one entry, its pieces are moved in parallel. */
	move_one(m, b, n, m->tree.nr == 1 ? (m->c->jobs ? m->c->jobs : 4) : 1, &o);
	return true;
}

/* ---- all of them ---- */

static int
cannot(const char *op, const char *word, const char *why)
{
	fprintf(stderr, "gantry: %s: %s: %s\n", op, word, why);
	return EXIT_FAILED;
}

/* Opens the destination directory; creates it only if files will be written to it. */
static int
open_target(struct move *m)
{
	m->to_dir = open(m->to.word, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->to_dir < 0 && errno == ENOENT && (!m->tree.nr || m->c->dry_run))
		return EXIT_OK;
	if (m->to_dir < 0 && errno == ENOENT && mkdir(m->to.word, 0777) == 0)
		m->to_dir = open(m->to.word, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return m->to_dir < 0 ? cannot(m->op, m->to.word, strerror(errno)) : EXIT_OK;
}

static int
list_source(struct move *m)
{
	int rc = EXIT_OK, e = 0;

	if (m->from.is_url) {
		tree_of_place(m->c, &m->from, NULL, &m->tree, &rc);
		return rc;
	}
	m->from_dir = open(m->from.word, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	e = m->from_dir < 0 ? -errno : tree_of_directory(m->c, m->from_dir, m->from.word, &m->tree);
	return e < 0 ? cannot(m->op, m->from.word, strerror(-e)) : EXIT_OK;
}

int
move_begin(struct move *m, struct cmd *c, const char *op, const char *from, const char *to)
{
	int rc;

	*m = (struct move){ .c = c, .op = op, .from_dir = -1, .to_dir = -1 };
	batch_init(&m->batch, c);
	written_init(&m->written);
	place_init(&m->from, from);
	place_init(&m->to, to);
	if (m->from.is_url)
		place_as_directory(&m->from);
	if (m->to.is_url)
		place_as_directory(&m->to);
	m->how = !m->from.is_url ? MOVE_PUT : m->to.is_url ? MOVE_COPY : MOVE_GET;
	rc = list_source(m);
	if (rc == EXIT_OK && !m->to.is_url)
		rc = open_target(m);
	if (rc != EXIT_OK)
		return rc;
	m->todo = malloc(m->tree.nr + 1);
	if (!m->todo)
		return cannot(op, from, strerror(ENOMEM));
	memset(m->todo, MOVE_IT, m->tree.nr + 1);
	return EXIT_OK;
}

void
move_run(struct move *m)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < m->tree.nr; i++)
		bytes += m->todo[i] != MOVE_NOTHING ? m->tree.all[i].size : 0;
	bar_begin(m->c, bytes);
	m->c->total_is_known = true;
	if (!batch_run(&m->batch, m->c->jobs ? m->c->jobs : 4, next_one, m))
		m->batch.tally.failed++;
	m->c->total_is_known = false;
	bar_end(m->c);
}

int
move_end(struct move *m)
{
	int rc = tally_exit(m->c, &m->batch.tally);

	if (m->todo && !m->c->dry_run) {
		m->batch.tally.same = m->same;
		m->batch.tally.deleted = m->deleted;
		m->batch.tally.skipped = m->tree.skipped;
		tally_report(m->c, &m->batch.tally, m->op);
	}
	if (m->todo && !m->tree.is_whole)
		rc = EXIT_FAILED;
	if (m->from_dir >= 0)
		close(m->from_dir);
	if (m->to_dir >= 0)
		close(m->to_dir);
	tree_fini(&m->tree);
	free(m->todo);
	written_fini(&m->written);
	batch_fini(&m->batch);
	place_fini(&m->from);
	place_fini(&m->to);
	return rc;
}
