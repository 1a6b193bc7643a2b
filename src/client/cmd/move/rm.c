/* SPDX-License-Identifier: Apache-2.0 */
/* gantry rm: removes an object, or with -r all objects with a prefix. gantry rb: removes a bucket, with
 * --force after its content. The main thread lists, workers remove. */
#include "base/advice.h"
#include "client/cmd/move/tree.h"
#include "client/cmd/common/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct removal {
	struct cmd *c;
	struct place place;
	struct tree tree;
	size_t next;
	struct batch batch;
	uint64_t removed;
};

static bool
remove_next(void *cookie, struct buffer *b)
{
	struct removal *r = cookie;
	const struct entry *n = NULL;
	bool is_gone;

	pthread_mutex_lock(&r->batch.lock);
	if (r->next < r->tree.nr)
		n = &r->tree.all[r->next++];
	pthread_mutex_unlock(&r->batch.lock);
	if (!n)
		return false;
	is_gone = batch_delete(&r->batch, &r->place, n, "rm", NULL);
	pthread_mutex_lock(&r->batch.lock);
	r->removed += is_gone;
	pthread_mutex_unlock(&r->batch.lock);
	return true;
}

static bool
is_agreed(const struct removal *r)
{
	char answer[16], size[32];

	if (r->c->yes)
		return true;
	fprintf(stderr, "gantry: remove %zu objects, %s, below %s? [y/N] ", r->tree.nr,
		size_text(r->tree.bytes, size), r->place.word);
	fflush(stderr);
	return fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y');
}

static int
remove_all(struct removal *r)
{
	if (r->c->dry_run) {
		for (size_t i = 0; i < r->tree.nr; i++)
			would(r->c, "remove", r->place.prefix, r->tree.all[i].name);
		return EXIT_OK;
	}
	if (!is_agreed(r)) {
		fprintf(stderr, "gantry: nothing was removed\n");
		return EXIT_FAILED;
	}
	if (!batch_run(&r->batch, r->c->jobs ? r->c->jobs : 4, remove_next, r))
		return EXIT_FAILED;
	if (r->c->json)
		printf("{\"op\":\"rm\",\"removed\":%llu,\"failed\":%llu}\n", (unsigned long long)r->removed,
		       (unsigned long long)r->batch.tally.failed);
	else if (!r->c->quiet)
		printf("rm: %llu objects removed\n", (unsigned long long)r->removed);
	return r->batch.tally.failed || r->removed < r->tree.nr ? EXIT_FAILED : EXIT_OK;
}

/* Removes all objects below a URL. op: the command; the bucket that rb removes may be empty. */
static int
remove_below(struct cmd *c, const char *url, const char *op)
{
	struct removal r = { .c = c };
	bool is_rb = !strcmp(op, "rb");
	int rc = EXIT_OK;

	if (!c->yes && !c->dry_run && !isatty(STDIN_FILENO))
		words_bad(op,
			  is_rb ? "--force asks before it removes; without a terminal it wants --yes"
				: "-r asks before it removes; without a terminal it wants --yes",
			  url);
	place_init(&r.place, url);
	place_as_directory(&r.place);
	batch_init(&r.batch, c);
	if (tree_of_place(c, &r.place, NULL, &r.tree, &rc) == 0) {
		if (r.tree.nr) {
			rc = remove_all(&r);
		} else if (!is_rb) {
			fprintf(stderr, "gantry: rm %s: nothing is there\n", url);
			rc = EXIT_NOT_FOUND;
		}
	}
	tree_fini(&r.tree);
	batch_fini(&r.batch);
	place_fini(&r.place);
	return rc;
}

/* Ends the program if the URL has no key. */
static void
judge(const struct cmd *c, const char *url)
{
	struct place p;

	/* A query can name a version. */
	if (strchr(url, '?'))
		return;
	place_init(&p, url);
	if (!*p.prefix && !c->scality)
		words_bad("rm", "the URL names a bucket and no key (with -r all that is in it is removed)",
			  url);
	place_fini(&p);
}

int
cmd_rm(struct cmd *c, const char *url)
{
	struct gantry_request req = request_of(c);
	struct gantry_result res = { .size = sizeof res };
	struct outcome o;

	if (c->recursive)
		return remove_below(c, url, "rm");
	judge(c, url);
	if (c->dry_run) {
		would(c, "remove", "", url);
		return EXIT_OK;
	}
	outcome_init(&o, "rm", url, NULL);
	return report_without_bytes(c, &o, gantry_delete(c->g, url, &req, &res), &res);
}

/* ---- buckets ---- */

/* Aborts an unfinished upload, whose parts count as content of the bucket. */
static int
abort_upload(void *cookie, const struct gantry_entry *e)
{
	const struct removal *r = cookie;
	struct gantry_result res = { .size = sizeof res };
	char *url = e->is_raw ? NULL : gantry_url_join(r->place.bucket, e->name);
	struct outcome o;

	if (r->c->dry_run) {
		would(r->c, "abort upload", "", e->name);
		free(url);
		return 0;
	}
	outcome_init(&o, "rb", url ? url : r->place.word, NULL);
	if (!url)
		outcome_local(&o, -EINVAL, "%s",
			      e->is_raw ? "an upload's name has a NUL in it" : "no memory");
	else
		outcome_add(&o, gantry_upload_abort(r->c->g, url, e->upload_id, &res), &res);
	/* Another client removed it before. */
	if (o.error && o.error != -ENOENT)
		report(r->c, &o, false);
	free(url);
	return o.error == -ENOENT ? 0 : o.error;
}

static int
abort_uploads(struct cmd *c, const char *url)
{
	struct removal r = { .c = c };
	struct gantry_result res = { .size = sizeof res };
	struct outcome o;
	int e;

	place_init(&r.place, url);
	e = gantry_uploads(c->g, r.place.bucket, NULL, abort_upload, &r, &res);
	/* A worker has reported its error already. */
	if (e < 0 && (res.status >= 300 || *res.message)) {
		outcome_init(&o, "rb", url, NULL);
		outcome_add(&o, e, &res);
		report(c, &o, false);
	}
	place_fini(&r.place);
	return e < 0 ? EXIT_FAILED : EXIT_OK;
}

int
cmd_rb(struct cmd *c, const char *url)
{
	struct gantry_result res = { .size = sizeof res };
	char remedies[2048] = "";
	struct outcome o;
	int rc = EXIT_OK;

	if (c->force)
		rc = remove_below(c, url, "rb");
	if (c->force && rc == EXIT_OK)
		rc = abort_uploads(c, url);
	if (rc != EXIT_OK)
		return rc;
	if (c->dry_run) {
		would(c, "remove", "", url);
		return EXIT_OK;
	}
	outcome_init(&o, "rb", url, NULL);
	rc = report_without_bytes(c, &o, gantry_remove_bucket(c->g, url, &res), &res);
	if (o.error == -ENOTEMPTY && !c->force && !c->json) {
		advice_add(remedies, sizeof remedies, ADVICE_BUCKET_NOT_EMPTY,
			   &(struct advice_values){ .path = url });
		fprintf(stderr, "%s\n", remedies);
	}
	return rc;
}
