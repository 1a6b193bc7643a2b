/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects into files, in pieces: each is a ranged GET into a registered buffer.  The first tells the object's
 * size and ETag; the others go several at once, and only match that ETag.  A file appears under its name when
 * it is whole, by rename.  To standard output pieces go in their order: each waits in its buffer for its turn.
 */
#include "client/cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STREAMS_MAX 16

/* ---- temporary names, also removed when a signal ends us ---- */

static _Atomic(char *) temporary[JOBS_MAX + 1];

static void
on_signal(int sig)
{
	for (size_t i = 0; i < sizeof temporary / sizeof *temporary; i++) {
		char *name = temporary[i];

		if (name)
			unlink(name);
	}
	_exit(128 + sig);
}

static void
catch_signals(void)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_handler = on_signal };

	for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++)
		sigaction(sigs[i], &sa, NULL);
}

static int
remember(char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, catch_signals);
	for (int i = 0; i <= JOBS_MAX; i++) {
		char *none = NULL;

		if (atomic_compare_exchange_strong(&temporary[i], &none, name))
			return i;
	}
	return -1;
}

/* ---- where the bytes go ---- */

struct sink {
	int fd;
	bool in_order; /* standard output, a pipe, a device: bytes must come in order */
	_Atomic uint64_t written;
	char temp[4096]; /* "" when written directly */
	char name[4096];
	int slot;
};

static int
open_temporary(struct sink *s)
{
	const char *slash = strrchr(s->name, '/');
	int dir = slash ? (int)(slash - s->name) + 1 : 0;
	mode_t mask = umask(0);

	umask(mask);
	if (snprintf(s->temp, sizeof s->temp, "%.*s.gantry-XXXXXX", dir, s->name) >= (int)sizeof s->temp)
		return -ENAMETOOLONG;
	s->fd = mkostemp(s->temp, O_CLOEXEC);
	if (s->fd < 0) {
		*s->temp = 0;
		return -errno;
	}
	s->slot = remember(s->temp);
	return fchmod(s->fd, 0666 & ~mask) < 0 ? -errno : 0;
}

static int
sink_open(struct sink *s, const char *file, const char *url)
{
	struct stat st;

	s->fd = s->slot = -1;
	s->written = 0;
	*s->temp = 0;
	s->in_order = false;
	if (!strcmp(file, "-")) {
		s->fd = STDOUT_FILENO;
		s->in_order = true;
		return 0;
	}
	if (snprintf(s->name, sizeof s->name, "%s", file) >= (int)sizeof s->name)
		return -ENAMETOOLONG;
	int e = stat(s->name, &st) < 0 ? -errno : 0;

	if (e == 0 && S_ISDIR(st.st_mode)) {
		const char *base = strrchr(url, '/');

		if (!base || !base[1])
			return -EISDIR;
		if (snprintf(s->name, sizeof s->name, "%s/%s", file, base + 1) >= (int)sizeof s->name)
			return -ENAMETOOLONG;
		e = stat(s->name, &st) < 0 ? -errno : 0;
	}
	if (e == -ENOENT)
		return open_temporary(s);
	if (e < 0)
		return e;
	if (S_ISREG(st.st_mode))
		return open_temporary(s);
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	s->fd = open(s->name, O_WRONLY | O_CLOEXEC);
	s->in_order = true;
	return s->fd < 0 ? -errno : 0;
}

static int
sink_write(struct sink *s, const char *mem, size_t len, uint64_t at)
{
	s->written += len;
	while (len) {
		ssize_t n = s->in_order ? write(s->fd, mem, len) : pwrite(s->fd, mem, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		mem += n;
		len -= (size_t)n;
		at += (size_t)n;
	}
	return 0;
}

/* Gives the file its name if it has all of the object's bytes, or leaves nothing behind. */
static int
sink_close(struct sink *s, bool good, uint64_t size)
{
	int e = good && s->written != size ? -EPROTO : 0;

	if (s->fd >= 0 && s->fd != STDOUT_FILENO && close(s->fd) < 0 && good)
		e = -errno;
	if (*s->temp) {
		if (good && e == 0 && rename(s->temp, s->name) < 0)
			e = -errno;
		if (!good || e < 0)
			unlink(s->temp);
		if (s->slot >= 0)
			temporary[s->slot] = NULL;
	}
	return e;
}

/* ---- the pieces ---- */

struct fetch {
	struct cmd *c;
	const char *url;
	struct sink sink;
	struct outcome *o;
	pthread_mutex_t lock; /* o, done, turn */
	uint64_t size, done;
	uint64_t first, end; /* what is wanted of the object */
	uint64_t turn;       /* the piece that is written next, where bytes must come in order */
	pthread_cond_t turned;
	_Atomic uint64_t next;
	_Atomic bool failed;
	char etag[136];
	uint64_t *crc; /* per piece, when --checksum */
	double start_s;
};

static size_t
piece_len(const struct fetch *f, uint64_t offset)
{
	return f->end - offset < BUFFER_BYTES ? (size_t)(f->end - offset) : BUFFER_BYTES;
}

/* Called with the lock. */
static void
stop(struct fetch *f)
{
	f->failed = true;
	pthread_cond_broadcast(&f->turned);
}

static void
fail(struct fetch *f, int error, const char *what)
{
	pthread_mutex_lock(&f->lock);
	if (!f->failed)
		outcome_local(f->o, error, "%s: %s", what, strerror(-error));
	stop(f);
	pthread_mutex_unlock(&f->lock);
}

/* Waits until what lies in front of a piece is written.  Somebody has each of those pieces, and writes it or fails. */
static bool
wait_for_turn(struct fetch *f, uint64_t offset)
{
	bool mine;

	if (!f->sink.in_order)
		return true;
	pthread_mutex_lock(&f->lock);
	while (f->turn != offset && !f->failed)
		pthread_cond_wait(&f->turned, &f->lock);
	mine = f->turn == offset;
	pthread_mutex_unlock(&f->lock);
	return mine;
}

/* A piece that has come: to the file, and into the account. */
static void
take_piece(struct fetch *f, const char *mem, const struct gantry_result *res, uint64_t offset)
{
	int e;

	if (f->crc)
		f->crc[offset / BUFFER_BYTES] = gantry_crc64nvme(0, mem, (size_t)res->bytes);
	if (!wait_for_turn(f, offset))
		return;
	e = sink_write(&f->sink, mem, (size_t)res->bytes, offset);
	if (e < 0) {
		fail(f, e, "writing");
		return;
	}
	pthread_mutex_lock(&f->lock);
	if (!f->failed)
		outcome_add(f->o, 0, res);
	f->done += res->bytes;
	f->turn = offset + BUFFER_BYTES;
	pthread_cond_broadcast(&f->turned);
	progress(f->c, f->done, f->end - f->first, f->start_s);
	pthread_mutex_unlock(&f->lock);
}

static void
fetch_piece(struct fetch *f, struct buffer *b, uint64_t offset)
{
	struct gantry_request req = request_of(f->c);
	struct gantry_result res = { .size = sizeof res };
	size_t len = piece_len(f, offset);

	req.if_match = *f->etag ? f->etag : NULL;
	int e = gantry_get(f->c->g, f->url, b->mem, len, offset, &req, &res);

	if (e == 0 && res.bytes == len && (!res.has_object_size || res.object_size == f->size)) {
		take_piece(f, b->mem, &res, offset);
	} else if (e == 0 || e == -ESTALE || e == -ERANGE) {
		fail(f, -ESTALE, "the object changed while it was read");
	} else {
		pthread_mutex_lock(&f->lock);
		if (!f->failed)
			outcome_add(f->o, e, &res);
		stop(f);
		pthread_mutex_unlock(&f->lock);
	}
}

static void
fetch_rest(struct fetch *f, struct buffer *b)
{
	for (;;) {
		uint64_t offset = atomic_fetch_add(&f->next, BUFFER_BYTES);

		if (offset >= f->end || f->failed)
			return;
		fetch_piece(f, b, offset);
	}
}

static void *
stream(void *arg)
{
	struct fetch *f = arg;
	struct buffer b;

	/* Without a buffer the other streams do the work. */
	if (buffer_init(&b, f->c->g) == 0)
		fetch_rest(f, &b);
	buffer_fini(&b);
	return NULL;
}

static void
fetch_all(struct fetch *f, struct buffer *b, int streams)
{
	pthread_t thread[STREAMS_MAX];
	uint64_t pieces = (f->end - f->first + BUFFER_BYTES - 1) / BUFFER_BYTES;
	int nr = 0;

	if (streams > STREAMS_MAX)
		streams = STREAMS_MAX;
	/* The first piece has come already, and this thread is a stream as well. */
	while (nr + 1 < streams && (uint64_t)nr + 2 < pieces &&
	       pthread_create(&thread[nr], NULL, stream, f) == 0)
		nr++;
	fetch_rest(f, b);
	while (nr > 0)
		pthread_join(thread[--nr], NULL);
}

/* --checksum: the whole file against what the server stored. */
static void
compare_checksum(struct fetch *f)
{
	struct gantry_request req = request_of(f->c);
	struct gantry_result res = { .size = sizeof res };
	uint64_t crc = 0;
	char sum[13];
	int e = gantry_head(f->c->g, f->url, &req, &res);

	for (uint64_t at = 0; at < f->size; at += BUFFER_BYTES)
		crc = at ? gantry_crc64nvme_combine(crc, f->crc[at / BUFFER_BYTES], piece_len(f, at))
			 : f->crc[0];
	gantry_crc64nvme_text(crc, sum);
	f->o->res.crc64nvme = crc;
	f->o->res.has_crc64nvme = 1;
	if (e < 0) {
		outcome_local(f->o, e, "asking for the checksum: %s", res.message);
	} else if (!*res.checksum) {
		outcome_local(f->o, -ENODATA, "the server has no CRC64NVME of this object");
	} else if (strcmp(res.checksum, sum) != 0) {
		outcome_local(f->o, -EBADMSG, "the bytes have CRC64NVME %s, the server says %s", sum,
			      res.checksum);
	} else {
		f->o->res.checksum_verified = 1;
		snprintf(f->o->res.checksum, sizeof f->o->res.checksum, "%s", sum);
	}
}

/* The end of an object: where that begins, only the server knows. */
static int
find_end(struct fetch *f, uint64_t length)
{
	struct gantry_request req = request_of(f->c);
	struct gantry_result res = { .size = sizeof res };
	int e = gantry_head(f->c->g, f->url, &req, &res);

	if (e == 0 && !res.has_object_size) {
		outcome_local(f->o, -EPROTO, "the server does not say how long the object is");
		return -EPROTO;
	}
	if (e < 0) {
		outcome_add(f->o, e, &res);
		return e;
	}
	f->first = res.object_size > length ? res.object_size - length : 0;
	snprintf(f->etag, sizeof f->etag, "%s", res.etag);
	return 0;
}

static void
first_failed(struct fetch *f, int e, const struct gantry_result *res)
{
	if (e == -ESTALE && *f->etag)
		outcome_local(f->o, e, "the object changed while it was read");
	else if (e == -ERANGE && res->has_object_size)
		outcome_local(f->o, e, "the object ends before that range: it has %llu bytes",
			      (unsigned long long)res->object_size);
	else
		outcome_add(f->o, e, res);
}

/* The first piece, which says what the rest is. */
static void
fetch_first(struct fetch *f, struct buffer *b, const struct part *part)
{
	struct gantry_request req = request_of(f->c);
	struct gantry_result res = { .size = sizeof res };
	uint64_t most = part->last - part->first;
	size_t len = most < b->cap ? (size_t)most + 1 : b->cap;
	int e;

	f->first = part->first;
	if (part->is_suffix) {
		len = part->last < b->cap ? (size_t)part->last : b->cap;
		if (find_end(f, part->last) < 0)
			return;
	}
	req.if_match = *f->etag ? f->etag : NULL;
	e = gantry_get(f->c->g, f->url, b->mem, len, f->first, &req, &res);
	if (e < 0) {
		first_failed(f, e, &res);
		return;
	}
	f->size = res.has_object_size ? res.object_size : f->first + res.bytes;
	if (!res.has_object_size && res.bytes == b->cap) {
		outcome_local(f->o, -EPROTO, "the server does not say how long the object is");
		return;
	}
	f->end = part->is_suffix || part->last >= f->size ? f->size : part->last + 1;
	if (res.bytes != piece_len(f, f->first)) {
		outcome_local(f->o, -EPROTO, "the server sent less than there is");
		return;
	}
	snprintf(f->etag, sizeof f->etag, "%s", res.etag);
	if (f->c->checksum) {
		f->crc = calloc((size_t)(f->size / BUFFER_BYTES + 1), sizeof *f->crc);
		if (!f->crc) {
			outcome_local(f->o, -ENOMEM, "no memory");
			return;
		}
	}
	f->turn = f->first;
	f->next = f->first + BUFFER_BYTES;
	take_piece(f, b->mem, &res, f->first);
}

void
get_part(struct cmd *c, struct buffer *b, int streams, const char *url, const char *file,
	 const struct part *part, struct outcome *o)
{
	struct fetch *f = calloc(1, sizeof *f);
	int e;

	outcome_init(o, "get", url, file);
	if (!f) {
		outcome_local(o, -ENOMEM, "no memory");
		return;
	}
	f->c = c;
	f->url = url;
	f->o = o;
	f->start_s = o->seconds;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->turned, NULL);
	e = sink_open(&f->sink, file, url);
	if (e < 0) {
		outcome_local(o, e, "%s", strerror(-e));
	} else {
		fetch_first(f, b, part);
		if (o->error == 0 && f->end - f->first > BUFFER_BYTES)
			fetch_all(f, b, streams);
		progress_end(c);
		if (o->error == 0 && c->checksum)
			compare_checksum(f);
	}
	o->res.object_size = f->size;
	o->res.has_object_size = o->error == 0;
	e = sink_close(&f->sink, o->error == 0, f->end - f->first);
	if (e < 0 && o->error == 0)
		outcome_local(o, e, "%s",
			      e == -EPROTO ? "the file has not all bytes of the object" : strerror(-e));
	pthread_cond_destroy(&f->turned);
	pthread_mutex_destroy(&f->lock);
	free(f->crc);
	free(f);
	o->seconds = now_s() - o->seconds;
}

void
get_file(struct cmd *c, struct buffer *b, int streams, const char *url, const char *file, struct outcome *o)
{
	get_part(c, b, streams, url, file, &(struct part){ .last = UINT64_MAX }, o);
}

/* ---- a range in words ---- */

static bool
take_decimal(const char **text, uint64_t *ret)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*ret = strtoull(*text, &end, 10);
	*text = end;
	return errno == 0;
}

bool
part_parse(const char *text, struct part *ret)
{
	*ret = (struct part){ .last = UINT64_MAX, .is_suffix = *text == '-' };
	if (!ret->is_suffix && !take_decimal(&text, &ret->first))
		return false;
	if (*text++ != '-')
		return false;
	if ((*text || ret->is_suffix) && !take_decimal(&text, &ret->last))
		return false;
	return !*text && (ret->is_suffix ? ret->last > 0 : ret->first <= ret->last);
}
