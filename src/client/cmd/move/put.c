/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads files into objects. A token names a whole object, so the whole file is in memory: a small file
 * is read into a buffer that stays registered, a larger file into memory of its own, and the largest are
 * mapped; such memory is registered for one request. If another process truncates a file meanwhile, the
 * upload ends with an error; the reader of a mapping is ended (main.c). A file that is too large for a token,
 * or that a command wants in parts, is sent in parts (parts.c); in the scality dialect over HTTP from the
 * mapping.
 */
#include "client/cmd/common/cmd.h"
#include "client/cmd/move/parts.h"
#include "client/cmd/move/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPIED_MAX (64u << 20) /* size above which a copy in memory is too expensive */

_Thread_local const char *mapped_file;

static void
put_memory(struct cmd *c, const void *mem, size_t size, const char *url, struct outcome *o)
{
	struct gantry_request req = request_of(c);
	struct gantry_result res = { .size = sizeof res };
	int e = gantry_put(c->g, url, mem, size, &req, &res);

	outcome_add(o, e, &res);
}

/* Reads to the end of the file or until `cap` bytes are read. Returns the number of bytes, or -errno. */
static ssize_t
read_full(int fd, char *mem, size_t cap)
{
	size_t len = 0;

	while (len < cap) {
		ssize_t n = read(fd, mem + len, cap - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

/* Uploads a pipe or another file without a size. */
static void
put_stream(struct cmd *c, struct buffer *b, int fd, const char *url, struct outcome *o)
{
	ssize_t n = read_full(fd, b->mem, b->cap);
	char *mem = NULL;
	size_t len, cap;

	if (n >= 0 && (size_t)n < b->cap) {
		put_memory(c, b->mem, (size_t)n, url, o);
		return;
	}
	len = n > 0 ? (size_t)n : 0;
	for (cap = b->cap; n > 0; len += (size_t)n) {
		char *more = realloc(mem, cap *= 2);

		if (!more) {
			n = -ENOMEM;
			break;
		}
		if (!mem)
			memcpy(more, b->mem, len);
		mem = more;
		n = read_full(fd, mem + len, cap - len);
		if (n > 0 && (size_t)n < cap - len) {
			len += (size_t)n;
			n = 0;
		}
	}
	if (n < 0)
		outcome_local(o, (int)n, "reading: %s", strerror((int)-n));
	else
		put_memory(c, mem, len, url, o);
	free(mem);
}

/* Uploads the bytes of a file that can be read into mem. */
static void
put_read(struct cmd *c, int fd, char *mem, size_t size, const char *url, struct outcome *o)
{
	ssize_t n = read_full(fd, mem, size);
	struct stat now;

	/* The size of a file in /sys is that of a page, and its content is shorter. */
	if (n >= 0 && (size_t)n < size && fstat(fd, &now) == 0 && (size_t)now.st_size < size)
		outcome_local(o, -ESTALE, "the file became shorter while it was read");
	else if (n < 0)
		outcome_local(o, (int)n, "reading: %s", strerror((int)-n));
	else
		put_memory(c, mem, (size_t)n, url, o);
	bar_add(n < 0 || o->error ? 0 : (uint64_t)n);
}

static void
put_copied(struct cmd *c, int fd, size_t size, const char *url, struct outcome *o)
{
	char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED) {
		outcome_local(o, -ENOMEM, "no memory for the file");
		return;
	}
	madvise(mem, size, MADV_HUGEPAGE);
	put_read(c, fd, mem, size, url, o);
	munmap(mem, size);
}

static void
put_mapped(struct cmd *c, int fd, size_t size, const char *file, const char *url, struct outcome *o)
{
	void *mem = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (mem == MAP_FAILED) {
		outcome_local(o, -errno, "mapping: %s", strerror(errno));
		return;
	}
	madvise(mem, size, MADV_SEQUENTIAL);
	mapped_file = file;
	put_memory(c, mem, size, url, o);
	mapped_file = NULL;
	munmap(mem, size);
	bar_add(o->error ? 0 : size);
}

/* Uploads a file in parts, several streams at a time. */
static void
put_large(struct cmd *c, int streams, int fd, const char *file, const char *url, struct outcome *o)
{
	struct origin from;
	int e = origin_of_file(&from, fd, file);

	if (e < 0)
		outcome_local(o, e, "%s", strerror(-e));
	else
		put_parts(c, streams, &from, url, o);
}

/* Uploads a regular file of `size` bytes in the way for this size. */
static void
put_regular(struct cmd *c, struct buffer *b, int streams, uint64_t whole_max, int fd, uint64_t size,
	    const char *file, const char *url, struct outcome *o)
{
	if (size <= b->cap)
		put_read(c, fd, b->mem, (size_t)size, url, o);
	else if (size > whole_max && !c->scality)
		put_large(c, streams, fd, file, url, o);
	else if (size <= COPIED_MAX)
		put_copied(c, fd, (size_t)size, url, o);
	else
		put_mapped(c, fd, (size_t)size, file, url, o);
}

void
put_fd(struct cmd *c, struct buffer *b, int streams, uint64_t whole_max, int fd, const char *file,
       const char *url, struct outcome *o)
{
	struct stat st;

	outcome_init(o, "put", url, file);
	if (fd < 0 || fstat(fd, &st) < 0) {
		outcome_local(o, -errno, "%s", strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		outcome_local(o, -EISDIR, "%s", strerror(EISDIR));
	} else if (!S_ISREG(st.st_mode) || st.st_size == 0) {
		/* Files in /proc have size 0 although they have content. */
		put_stream(c, b, fd, url, o);
	} else {
		bar_begin(c, (uint64_t)st.st_size);
		put_regular(c, b, streams, whole_max, fd, (uint64_t)st.st_size, file, url, o);
		bar_end(c);
	}
	o->seconds = now_s() - o->seconds;
}

void
put_file(struct cmd *c, struct buffer *b, int streams, const char *file, const char *url, struct outcome *o)
{
	bool is_stdin = !strcmp(file, "-");
	int fd = is_stdin ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);

	put_fd(c, b, streams, GANTRY_REGISTER_MAX, fd, file, url, o);
	if (fd >= 0 && !is_stdin)
		close(fd);
}

static int
finish(struct cmd *c, struct outcome *o, bool data_on_stdout)
{
	struct tally t;

	explain(o);
	report(c, o, data_on_stdout);
	tally_init(&t);
	tally_add(&t, o);
	return tally_exit(c, &t);
}

int
cmd_put(struct cmd *c, const char *file, const char *url)
{
	struct outcome o;
	struct buffer b;

	outcome_init(&o, "put", url, file);
	if (buffer_init(&b, c->g) < 0)
		outcome_local(&o, -ENOMEM, "no memory for a buffer");
	else
		put_file(c, &b, c->jobs ? c->jobs : 4, file, url, &o);
	buffer_fini(&b);
	return finish(c, &o, false);
}

int
cmd_get(struct cmd *c, const char *url, const char *file)
{
	struct outcome o;
	struct buffer b;

	outcome_init(&o, "get", url, file);
	if (buffer_init(&b, c->g) < 0)
		outcome_local(&o, -ENOMEM, "no memory for a buffer");
	else
		get_file(c, &b, c->jobs ? c->jobs : 4, url, file, &o);
	buffer_fini(&b);
	return finish(c, &o, !strcmp(file, "-"));
}

int
cmd_cat(struct cmd *c, const char *url)
{
	struct outcome o;
	struct buffer b;
	struct tally t;

	outcome_init(&o, "cat", url, "-");
	if (buffer_init(&b, c->g) < 0)
		outcome_local(&o, -ENOMEM, "no memory for a buffer");
	else
		get_part(c, &b, c->jobs ? c->jobs : 4, url, "-", &c->part, &o);
	buffer_fini(&b);
	o.op = "cat";
	/* The reader of standard output has closed it: end in the usual way of programs, by SIGPIPE. */
	if (o.is_local && o.error == -EPIPE) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	explain(&o);
	if (c->json || o.error)
		report(c, &o, true);
	tally_init(&t);
	tally_add(&t, &o);
	if (tally_exit(c, &t) == EXIT_NOT_RDMA && !c->json)
		fprintf(stderr, "gantry: cat %s: not by RDMA: %s\n", url, o.res.reason);
	return tally_exit(c, &t);
}

int
cmd_head(struct cmd *c, const char *url)
{
	struct gantry_request req = request_of(c);
	struct gantry_result res = { .size = sizeof res };
	struct outcome o;
	struct tally t;

	outcome_init(&o, "head", url, NULL);
	outcome_add(&o, gantry_head(c->g, url, &req, &res), &res);
	o.seconds = now_s() - o.seconds;
	explain(&o);
	report_head(c, &o);
	tally_init(&t);
	tally_add(&t, &o);
	return tally_exit(c, &t);
}

int
cmd_mb(struct cmd *c, const char *url)
{
	struct gantry_result res = { .size = sizeof res };
	struct outcome o;

	outcome_init(&o, "mb", url, NULL);
	return report_without_bytes(c, &o, gantry_make_bucket_copies(c->g, url, c->copies, &res), &res);
}

int
cmd_ports(struct cmd *c)
{
	const char *name;

	if (c->json)
		printf("{\"rdma\":%s,\"ports\":[", gantry_is_connected(c->g) ? "true" : "false");
	for (int i = 0; (name = gantry_port(c->g, i)); i++) {
		if (c->json)
			printf("%s\"%s\"", i ? "," : "", name);
		else
			printf("%s  %s\n", name, gantry_port_transports(c->g, i));
	}
	if (c->json)
		printf("],\"transports\":[");
	for (int i = 0; c->json && (name = gantry_port_transports(c->g, i)); i++)
		printf("%s\"%s\"", i ? "," : "", name);
	if (c->json)
		printf("],\"reason\":\"%s\"}\n", gantry_rdma_reason(c->g));
	else if (!gantry_is_connected(c->g))
		printf("no RDMA: %s\n", gantry_rdma_reason(c->g));
	return gantry_is_connected(c->g) || !c->require_rdma ? EXIT_OK : EXIT_NOT_RDMA;
}
