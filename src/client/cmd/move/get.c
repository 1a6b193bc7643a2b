/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Downloads objects into files in pieces: each is a ranged GET into a registered buffer. The first GET
 * returns the object's size and ETag; the other GETs run several at a time and require this ETag. Pieces that
 * an earlier run downloaded are kept (sink.c). Standard output needs the pieces in order: each waits in its
 * buffer for its turn.
 */
#include "client/cmd/common/cmd.h"
#include "client/cmd/move/files.h"
#include "client/cmd/move/transfer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAMS_MAX 16

/* ---- the pieces ---- */

struct fetch {
	struct cmd *c;
	const char *url;
	struct sink sink;
	struct outcome *o;
	pthread_mutex_t lock; /* protects o and turn */
	uint64_t size;
	uint64_t first, end; /* range of the object's bytes to download */
	uint64_t turn;       /* offset of the piece to write next, if bytes must be in order */
	pthread_cond_t turned;
	_Atomic uint64_t next;
	_Atomic bool failed;
	char etag[136];
	uint64_t *crc; /* CRC of each downloaded piece */
	bool *has;     /* true for each piece of an earlier run; NULL: none */
	bool is_part;
};

static size_t
piece_len(const struct fetch *f, uint64_t offset)
{
	return f->end - offset < BUFFER_BYTES ? (size_t)(f->end - offset) : BUFFER_BYTES;
}

/* Stops the download. The caller holds the lock. */
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

/* Waits until all pieces before a piece are written. A stream has each of them, and writes it or fails. */
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

/* Writes a downloaded piece to the file, and adds it to the totals. */
static void
take_piece(struct fetch *f, const char *mem, const struct gantry_result *res, uint64_t offset)
{
	uint64_t piece = offset / BUFFER_BYTES;
	int e;

	if (f->crc)
		f->crc[piece] = gantry_crc64nvme(0, mem, (size_t)res->bytes);
	if (!wait_for_turn(f, offset))
		return;
	e = sink_write(&f->sink, mem, (size_t)res->bytes, offset);
	if (e < 0) {
		fail(f, e, "writing");
		return;
	}
	if (f->crc)
		sink_note(&f->sink, piece, f->crc[piece]);
	pthread_mutex_lock(&f->lock);
	if (!f->failed)
		outcome_add(f->o, 0, res);
	f->turn = offset + BUFFER_BYTES;
	pthread_cond_broadcast(&f->turned);
	pthread_mutex_unlock(&f->lock);
	bar_add(res->bytes);
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
		if (!f->has || !f->has[offset / BUFFER_BYTES])
			fetch_piece(f, b, offset);
	}
}

static void *
stream(void *arg)
{
	struct fetch *f = arg;
	struct buffer b;

	/* If there is no buffer, the other streams do the work. */
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
	/* The first piece is downloaded already, and this thread is one of the streams. */
	while (nr + 1 < streams && (uint64_t)nr + 2 < pieces &&
	       pthread_create(&thread[nr], NULL, stream, f) == 0)
		nr++;
	fetch_rest(f, b);
	while (nr > 0)
		pthread_join(thread[--nr], NULL);
}

/* Compares the checksum of the whole file with that of the server (--checksum). */
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

/* Finds the first byte of a range that is given by its length at the end; only the server knows the
 * object's size. */
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

/* Prepares the destination when the number of bytes is known. */
static bool
begin(struct fetch *f)
{
	bool is_long = f->end - f->first > BUFFER_BYTES;
	int e;

	if (f->c->checksum || is_long) {
		f->crc = calloc((size_t)(f->size / BUFFER_BYTES + 1), sizeof *f->crc);
		if (!f->crc) {
			outcome_local(f->o, -ENOMEM, "no memory");
			return false;
		}
	}
	e = sink_begin(&f->sink, f->url, is_long && !f->is_part ? f->etag : "", f->size);
	if (e < 0)
		outcome_local(f->o, e, "%s", *f->sink.why ? f->sink.why : strerror(-e));
	bar_more(f->c, f->end - f->first);
	return e == 0;
}

/* Downloads the first piece, whose answer describes the object. */
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
	f->turn = f->first;
	f->next = f->first + BUFFER_BYTES;
	if (begin(f))
		take_piece(f, b->mem, &res, f->first);
}

/* Continues an earlier download, if its remains belong to the current version of the object. */
static bool
go_on(struct fetch *f, struct buffer *b)
{
	struct gantry_request req = request_of(f->c);
	struct gantry_result res = { .size = sizeof res };
	struct unfinished u;
	int e = sink_resume(&f->sink, f->url, b->mem, BUFFER_BYTES, &u);

	if (e < 0)
		outcome_local(f->o, e, "%s", f->sink.why);
	if (e <= 0)
		return false;
	e = gantry_head(f->c->g, f->url, &req, &res);
	if (e < 0)
		outcome_add(f->o, e, &res);
	/* The object has changed: download all of it again. */
	if (e < 0 || strcmp(res.etag, u.etag) != 0 || !res.has_object_size || res.object_size != u.size) {
		if (e < 0)
			f->sink.written = 1; /* the file is kept if this run fails */
		free(u.crc);
		free(u.has);
		return false;
	}
	f->size = f->end = u.size;
	f->crc = u.crc;
	f->has = u.has;
	snprintf(f->etag, sizeof f->etag, "%s", u.etag);
	for (uint64_t at = 0; at < u.size; at += BUFFER_BYTES)
		f->sink.written += u.has[at / BUFFER_BYTES] ? piece_len(f, at) : 0;
	f->o->kept_bytes = f->sink.written;
	bar_more(f->c, f->size);
	bar_add(f->sink.written);
	return true;
}

/* Downloads an object into an open sink. */
static void
fetch(struct fetch *f, struct buffer *b, int streams, const struct part *part)
{
	bool keep;
	int e;

	/* The bytes themselves are on the terminal. */
	if (f->sink.in_order && isatty(STDOUT_FILENO))
		f->c->has_no_bar = true;
	bar_begin(f->c, 0);
	if (f->is_part || !go_on(f, b))
		if (f->o->error == 0)
			fetch_first(f, b, part);
	if (f->o->error == 0 && (f->has || f->end - f->first > BUFFER_BYTES))
		fetch_all(f, b, streams);
	bar_end(f->c);
	if (f->o->error == 0 && f->c->checksum)
		compare_checksum(f);
	f->o->res.object_size = f->size;
	f->o->res.has_object_size = f->o->error == 0;
	keep = outcome_may_pass(f->o);
	e = sink_close(&f->sink, f->o->error == 0, keep, f->end - f->first);
	if (e < 0 && f->o->error == 0)
		outcome_local(f->o, e, "%s",
			      *f->sink.why   ? f->sink.why
			      : e == -EPROTO ? "the file has not all bytes of the object"
					     : strerror(-e));
}

static struct fetch *
fetch_new(struct cmd *c, const char *url, const char *file, struct outcome *o)
{
	struct fetch *f = calloc(1, sizeof *f);

	outcome_init(o, "get", url, file);
	if (!f) {
		outcome_local(o, -ENOMEM, "no memory");
		return NULL;
	}
	f->c = c;
	f->url = url;
	f->o = o;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->turned, NULL);
	return f;
}

static void
fetch_free(struct fetch *f)
{
	struct outcome *o = f->o;

	pthread_cond_destroy(&f->turned);
	pthread_mutex_destroy(&f->lock);
	free(f->crc);
	free(f->has);
	free(f);
	o->seconds = now_s() - o->seconds;
}

static void
could_not_open(struct fetch *f, int e)
{
	outcome_local(f->o, e, "%s", *f->sink.why ? f->sink.why : strerror(-e));
	if (f->sink.dir >= 0)
		sink_close(&f->sink, false, false, 0);
}

void
get_part(struct cmd *c, struct buffer *b, int streams, const char *url, const char *file,
	 const struct part *part, struct outcome *o)
{
	struct fetch *f = fetch_new(c, url, file, o);
	int e;

	if (!f)
		return;
	f->is_part = part->first || part->is_suffix || part->last != UINT64_MAX;
	e = sink_open(&f->sink, file, url);
	if (e < 0)
		could_not_open(f, e);
	else
		fetch(f, b, streams, part);
	fetch_free(f);
}

void
get_file(struct cmd *c, struct buffer *b, int streams, const char *url, const char *file, struct outcome *o)
{
	get_part(c, b, streams, url, file, &(struct part){ .last = UINT64_MAX }, o);
}

void
get_below(struct cmd *c, struct buffer *b, int streams, const char *url, int dir, const char *name,
	  struct written *others, struct outcome *o)
{
	struct fetch *f = fetch_new(c, url, name, o);
	int e;

	if (!f)
		return;
	e = sink_open_below(&f->sink, dir, name, others);
	if (e < 0)
		could_not_open(f, e);
	else
		fetch(f, b, streams, &(struct part){ .last = UINT64_MAX });
	fetch_free(f);
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
