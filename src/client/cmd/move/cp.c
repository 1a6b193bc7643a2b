/* SPDX-License-Identifier: Apache-2.0 */
/* gantry cp: one file or object, or with -r a tree of them, in any direction.  Main thread. */
#include "client/cmd/move/move.h"
#include "client/cmd/move/parts.h"
#include "client/cmd/common/words.h"
#include "client/cmd/move/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the last part of a path or URL. */
static const char *
last_part(const char *word)
{
	const char *slash = strrchr(word, '/');

	return slash ? slash + 1 : word;
}

/* Returns the URL of the object that a copy creates: the given URL; or, if it ends in '/' or names a
 * bucket, a URL below it with the name of the source. The caller frees it. */
static char *
target_url(const char *to, const char *from, bool from_is_url)
{
	struct place p;
	size_t n = strlen(to);
	char *url;

	place_init(&p, to);
	if (*p.prefix && to[n - 1] != '/') {
		url = strdup(to);
	} else if (!*last_part(from)) {
		words_bad("cp", "the source has no name to append to the '/'", from);
	} else if (from_is_url) { /* the name is encoded already */
		if (asprintf(&url, "%s%s%s", to, to[n - 1] == '/' ? "" : "/", last_part(from)) < 0)
			url = NULL;
	} else {
		url = gantry_url_join(to, last_part(from));
	}
	place_fini(&p);
	if (!url) {
		fprintf(stderr, "gantry: out of memory\n");
		exit(EXIT_FAILED);
	}
	return url;
}

/* Reports the copy that --dry-run prevents, or that the source cannot be read. */
static int
copy_none(struct cmd *c, const char *from)
{
	struct gantry_request req = request_of(c);
	struct gantry_result res = { .size = sizeof res };
	struct outcome o;

	outcome_init(&o, "cp", from, words_is_url(from) ? NULL : from);
	if (words_is_url(from))
		outcome_add(&o, gantry_head(c->g, from, &req, &res), &res);
	else if (access(from, R_OK) < 0)
		outcome_local(&o, -errno, "%s", strerror(errno));
	if (!o.error) {
		would(c, "copy", "", from);
		return EXIT_OK;
	}
	explain(&o);
	report(c, &o, false);
	return o.error == -ENOENT && !o.is_local ? EXIT_NOT_FOUND : EXIT_FAILED;
}

static int
copy_one(struct cmd *c, const char *from, const char *to)
{
	bool from_is_url = words_is_url(from);
	char *url = words_is_url(to) ? target_url(to, from, from_is_url) : NULL;
	int streams = c->jobs ? c->jobs : 4, fd;
	struct outcome o;
	struct tally t;
	struct buffer b;

	outcome_init(&o, "cp", url ? url : from, url ? from : to);
	if (buffer_init(&b, c->g) < 0) {
		outcome_local(&o, -ENOMEM, "no memory for a buffer");
	} else if (!url) {
		get_file(c, &b, streams, from, to, &o);
	} else if (from_is_url) {
		copy_object(c, &b, streams, from, url, &o);
	} else {
		fd = open(from, O_RDONLY | O_CLOEXEC);
		put_fd(c, &b, streams, WHOLE_MAX, fd, from, url, &o);
		if (fd >= 0)
			close(fd);
	}
	buffer_fini(&b);
	o.op = "cp";
	explain(&o);
	report(c, &o, false);
	tally_init(&t);
	tally_add(&t, &o);
	free(url);
	return tally_exit(c, &t);
}

static void
say_dry(const struct move *m)
{
	for (size_t i = 0; i < m->tree.nr; i++)
		would(m->c, "copy", "", m->tree.all[i].name);
}

/* Ends the program unless the URL can be the source or destination of a copy. */
static void
judge(const struct cmd *c, const char *word, bool is_source)
{
	struct place p;

	place_init(&p, word);
	if (p.is_url && !p.has_bucket && !c->scality)
		words_bad("cp", "the URL names no bucket", word);
	if (p.is_url && is_source && !c->recursive && !*p.prefix && !c->scality)
		words_bad("cp", "the URL names a bucket and no key (with -r all that is in it is copied)",
			  word);
	place_fini(&p);
}

int
cmd_cp(struct cmd *c, const char *from, const char *to)
{
	struct move m;
	struct stat st;
	int rc;

	if (!strcmp(from, "-") || !strcmp(to, "-"))
		words_bad("cp",
			  "standard input and output are what put and get take; a file of that name is ./-",
			  "-");
	if (!words_is_url(from) && !words_is_url(to))
		words_bad("cp", "one of the two is a URL, the source or the destination", from);
	judge(c, from, true);
	judge(c, to, false);
	if (!words_is_url(from) && stat(from, &st) == 0 && S_ISDIR(st.st_mode)) {
		if (!c->recursive)
			words_bad("cp", "this is a directory (with -r all that is in it is copied)", from);
	} else if (!words_is_url(from) || !c->recursive) {
		return c->dry_run ? copy_none(c, from) : copy_one(c, from, to);
	}
	rc = move_begin(&m, c, "cp", from, to);
	if (rc == EXIT_OK && m.from.is_url && !m.tree.nr) {
		fprintf(stderr, "gantry: cp %s: nothing is there\n", from);
		rc = EXIT_NOT_FOUND;
	} else if (rc == EXIT_OK && c->dry_run) {
		say_dry(&m);
	} else if (rc == EXIT_OK) {
		move_run(&m);
		return move_end(&m);
	}
	c->dry_run = true; /* suppresses the summary of an empty run */
	move_end(&m);
	return rc;
}
