/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mput and mget: move many files in one process, several at a time. A list has their names; a name is a
 * path below -C DIR and, percent-encoded, a key below the URL.
 */
#include "client/cmd/move/files.h"
#include "client/cmd/move/tree.h"
#include "client/cmd/move/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct many {
	struct cmd *c;
	bool is_put;
	FILE *list;
	pthread_mutex_t lock; /* protects list */
	const char *url;
	int dir, acks_fd;
	struct batch batch;
};

/* Returns the next name, which the caller frees; NULL at the end. */
static char *
next_name(struct many *m)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	pthread_mutex_lock(&m->lock);
	do {
		n = getline(&line, &cap, m->list);
		if (n > 0 && line[n - 1] == '\n')
			line[--n] = 0;
	} while (n == 0);
	pthread_mutex_unlock(&m->lock);
	if (n > 0)
		return line;
	free(line);
	return NULL;
}

/* Prints a line for each object as soon as it is stored, so that a caller knows the complete objects if
 * this process is killed. */
static void
acknowledge(struct many *m, const char *name)
{
	size_t n = strlen(name);
	char *line = malloc(n + 1);

	if (!line)
		return;
	memcpy(line, name, n);
	line[n] = '\n';
	if (write(m->acks_fd, line, n + 1) < 0)
		perror("gantry: --acks");
	free(line);
}

static bool
one(void *cookie, struct buffer *b)
{
	struct many *m = cookie;
	const char *dir = m->c->dir ? m->c->dir : ".";
	char *name = next_name(m), *path = NULL, *url;
	struct outcome o;

	if (!name)
		return false;
	url = gantry_url_join(m->url, name);
	if (asprintf(&path, "%s/%s", dir, name) < 0)
		path = NULL;
	outcome_init(&o, m->is_put ? "put" : "get", url, path);
	if (!path || !url)
		outcome_local(&o, -ENOMEM, "no memory");
	else if (m->is_put)
		put_file(m->c, b, 1, path, url, &o);
	else
		get_below(m->c, b, 1, url, m->dir, name, NULL, &o);
	o.file = path;
	batch_done(&m->batch, &o);
	if (o.error == 0 && m->acks_fd >= 0)
		acknowledge(m, name);
	free(name);
	free(path);
	free(url);
	return true;
}

static int
open_files(struct many *m, const char *list)
{
	m->list = strcmp(list, "-") != 0 ? fopen(list, "re") : stdin;
	if (!m->list) {
		fprintf(stderr, "gantry: %s: %s\n", list, strerror(errno));
		return -1;
	}
	m->dir = open(m->c->dir ? m->c->dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->dir < 0) {
		fprintf(stderr, "gantry: %s: %s\n", m->c->dir, strerror(errno));
		return -1;
	}
	m->acks_fd = -1;
	if (m->c->acks) {
		m->acks_fd = open(m->c->acks, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		if (m->acks_fd < 0) {
			fprintf(stderr, "gantry: %s: %s\n", m->c->acks, strerror(errno));
			return -1;
		}
	}
	return 0;
}

int
cmd_many(struct cmd *c, bool is_put, const char *list, const char *url)
{
	struct many m = { .c = c, .is_put = is_put, .url = url, .dir = -1 };
	bool ran;

	if (open_files(&m, list) < 0)
		return EXIT_FAILED;
	batch_init(&m.batch, c);
	pthread_mutex_init(&m.lock, NULL);
	bar_begin(c, 0);
	ran = batch_run(&m.batch, c->jobs ? c->jobs : 4, one, &m);
	bar_end(c);
	tally_report(c, &m.batch.tally, is_put ? "mput" : "mget");
	if (m.acks_fd >= 0)
		close(m.acks_fd);
	if (m.dir >= 0)
		close(m.dir);
	if (m.list != stdin)
		fclose(m.list);
	pthread_mutex_destroy(&m.lock);
	batch_fini(&m.batch);
	return ran ? tally_exit(c, &m.batch.tally) : EXIT_FAILED;
}
