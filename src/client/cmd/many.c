/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mput and mget: many files with one process, several at once.  Each thread has its own registered buffer.
 * Names come from a list; a name is a path below -C DIR and, percent-encoded, a key below the URL.
 */
#include "client/cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ERRORS_TOLD 20

struct many {
	struct cmd *c;
	bool is_put;
	FILE *list;
	const char *url;
	int acks_fd;
	pthread_mutex_t lock; /* list, stop, printing */
	bool stop;            /* no more names: the list ended, or the server is gone */
	bool gone;            /* and that was told */
	int errors;           /* told so far */
	struct tally tally;
};

/* The next name, malloc'ed; NULL at the end. */
static char *
next_name(struct many *m)
{
	char *line = NULL;
	size_t cap = 0;

	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		ssize_t n = getline(&line, &cap, m->list);

		if (n <= 0) {
			m->stop = true;
			break;
		}
		if (line[n - 1] == '\n')
			line[--n] = 0;
		if (n > 0) {
			pthread_mutex_unlock(&m->lock);
			return line;
		}
	}
	pthread_mutex_unlock(&m->lock);
	free(line);
	return NULL;
}

static void
make_directories(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		mkdir(path, 0777);
		*p = '/';
	}
}

/* A key may name any path: one that leads out of the directory is refused. */
static bool
leads_out(const char *name)
{
	size_t n = strlen(name);

	return *name == '/' || !strcmp(name, "..") || !strncmp(name, "../", 3) || strstr(name, "/../") ||
	       (n >= 3 && !strcmp(name + n - 3, "/.."));
}

/* One line for each object that is safe, at once: what a caller may rely on when we are killed. */
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

static void
one(struct many *m, struct buffer *b, const char *name)
{
	const char *dir = m->c->dir ? m->c->dir : ".";
	size_t cap = strlen(dir) + strlen(name) + 2;
	char *path = malloc(cap), *url = gantry_url_join(m->url, name);
	struct outcome o;

	outcome_init(&o, m->is_put ? "put" : "get", url, path);
	if (!path || !url) {
		outcome_local(&o, -ENOMEM, "no memory");
	} else {
		snprintf(path, cap, "%s/%s", dir, name);
		if (m->is_put) {
			put_file(m->c, b, path, url, &o);
		} else if (leads_out(name)) {
			outcome_local(&o, -EINVAL, "this name leads out of the directory");
		} else {
			make_directories(path);
			get_file(m->c, b, 1, url, path, &o);
		}
	}
	pthread_mutex_lock(&m->lock);
	/* What is wrong with the address is wrong for all of them. */
	if (m->errors == 0)
		explain(&o);
	pthread_mutex_unlock(&m->lock);
	tally_add(&m->tally, &o);
	if (o.error == 0 && m->acks_fd >= 0)
		acknowledge(m, name);
	pthread_mutex_lock(&m->lock);
	/* Without a server the rest of the list would only repeat the message. */
	bool gone = o.error == -ECONNREFUSED || o.error == -EHOSTUNREACH;

	if (o.error && !(gone && m->gone)) {
		m->errors++;
		if (m->c->json || m->errors <= ERRORS_TOLD)
			report(m->c, &o, false);
		else if (m->errors == ERRORS_TOLD + 1)
			fprintf(stderr, "gantry: further failures are only counted\n");
	}
	m->gone = m->gone || gone;
	m->stop = m->stop || gone;
	pthread_mutex_unlock(&m->lock);
	free(path);
	free(url);
}

static void *
worker(void *arg)
{
	struct many *m = arg;
	struct buffer b;
	char *name;

	if (buffer_init(&b, m->c->g) == 0) {
		while ((name = next_name(m))) {
			one(m, &b, name);
			free(name);
		}
	}
	buffer_fini(&b);
	return NULL;
}

static int
open_files(struct many *m, const char *list)
{
	m->list = strcmp(list, "-") != 0 ? fopen(list, "re") : stdin;
	if (!m->list) {
		fprintf(stderr, "gantry: %s: %s\n", list, strerror(errno));
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
	struct many m = { .c = c, .is_put = is_put, .url = url };
	pthread_t thread[JOBS_MAX];
	int nr = 0, jobs = c->jobs ? c->jobs : 4;

	if (open_files(&m, list) < 0)
		return EXIT_FAILED;
	tally_init(&m.tally);
	pthread_mutex_init(&m.lock, NULL);
	while (nr < jobs && pthread_create(&thread[nr], NULL, worker, &m) == 0)
		nr++;
	for (int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	tally_report(c, &m.tally, is_put ? "mput" : "mget");
	if (m.acks_fd >= 0)
		close(m.acks_fd);
	if (m.list != stdin)
		fclose(m.list);
	if (!nr) {
		fprintf(stderr, "gantry: no thread could be started\n");
		return EXIT_FAILED;
	}
	return tally_exit(c, &m.tally);
}
