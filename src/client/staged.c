/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts and gets of memory of a device through the stage: the driver copies between the device and a piece, and the bytes of
 * the piece go as those of any registered memory do.  Several pieces are on their way at once, each by a thread that copies
 * it and waits for its request; so copies and transfers overlap.
 */
#include "client/stage.h"

#include "base/crc64.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CREW 4                /* threads of a call, with its own */
#define PART_LEAST (5u << 20) /* S3: of a part that is not the last */
#define REPLACED_TRIES 3      /* while the object is replaced */

/* Takes over what another call came to.  The reason stays that for which the memory is staged, unless there is a later one. */
static void
adopt(struct call *c, const struct gantry_result *res)
{
	int requests = c->res->requests + res->requests;
	size_t size = c->res->size;
	char why[sizeof c->res->reason];

	memcpy(why, c->res->reason, sizeof why);
	*c->res = *res;
	c->res->size = size;
	if (!*res->reason)
		memcpy(c->res->reason, why, sizeof why);
	c->res->requests = requests;
	c->r = (struct reply){ .status = 0 };
	c->is_filled_in = true;
}

static void
name_path(struct gantry_result *res)
{
	if (res->path == GANTRY_PATH_RDMA)
		res->path = GANTRY_PATH_RDMA_STAGED;
}

/* The request of a piece: what the program said, apart from what holds for the whole alone. */
static struct gantry_request
request_of_piece(const struct call *c)
{
	return (struct gantry_request){ .size = sizeof(struct gantry_request),
					.timeout_ms = c->req.timeout_ms };
}

/* Copies n bytes and waits. */
static int
copy(struct gpu_stream *s, void *dst, const void *src, size_t n, enum gantry_copy_to to,
     struct gantry_result *res)
{
	int e = gpu_copy_start(s, dst, src, n, to, res->message, sizeof res->message);

	return e == 0 ? gpu_copy_wait(s, res->message, sizeof res->message) : e;
}

/* What a NIC may still reach is not used again. */
static void
give(struct gantry *g, const struct stage_run *run, int e)
{
	if (e == -EBUSY)
		stage_lose(g, run);
	else
		stage_give(g, run);
}

/* ---- several threads ---- */

struct crew {
	const struct call *c;
	struct gantry *g;
	/* Moves piece i, with a stream of the thread.  0, or -errno: then all end. */
	int (*piece)(struct crew *w, struct gpu_stream *s, size_t i, struct gantry_result *res);
	size_t nr;
	uint64_t from,
		unit; /* piece i begins at byte from + i * unit of the memory, and has unit bytes but the last */
	_Atomic size_t next;
	_Atomic int error;
	char id[GANTRY_UPLOAD_ID_MAX]; /* put */
	char etag[136];                /* get */
	struct gantry_part *part;      /* put; of each piece */
	uint64_t *crc;                 /* of each piece */
	_Atomic bool has_all_crc, is_verified;
	pthread_mutex_t lock; /* what follows */
	int requests;
	struct gantry_result first; /* that failed, else that did not go by RDMA */
};

static uint64_t
at_of(const struct crew *w, size_t i)
{
	return w->from + i * w->unit;
}

static size_t
size_of(const struct crew *w, size_t i)
{
	uint64_t left = w->c->size - at_of(w, i);

	return (size_t)(left < w->unit ? left : w->unit);
}

static void
count(struct crew *w, int e, const struct gantry_result *res)
{
	pthread_mutex_lock(&w->lock);
	w->requests += res->requests;
	if (e < 0 && w->error == 0) {
		w->error = e;
		w->first = *res;
	} else if (e == 0 && w->error == 0 && res->path == GANTRY_PATH_HTTP) {
		w->first = *res;
	}
	pthread_mutex_unlock(&w->lock);
}

static void *
work(void *arg)
{
	struct crew *w = arg;
	struct gantry_result res = { .size = sizeof res };
	struct gpu_stream *s = NULL;
	int e = stage_stream(w->g, w->c->memory.ptr, &s, res.message, sizeof res.message);
	size_t i;

	if (e < 0)
		count(w, e, &res);
	while (e == 0 && w->error == 0 && (i = w->next++) < w->nr) {
		res = (struct gantry_result){ .size = sizeof res };
		e = w->piece(w, s, i, &res);
		count(w, e, &res);
	}
	stage_stream_give(w->g, s);
	return NULL;
}

/* Has all pieces moved.  0, or the first error. */
static int
run_crew(struct crew *w)
{
	pthread_t thread[CREW - 1];
	sigset_t all, before;
	int nr = 0;

	pthread_mutex_init(&w->lock, NULL);
	/* Signals are the program's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (nr < CREW - 1 && (size_t)nr + 1 < w->nr && pthread_create(&thread[nr], NULL, work, w) == 0)
		nr++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	work(w);
	while (nr > 0)
		pthread_join(thread[--nr], NULL);
	pthread_mutex_destroy(&w->lock);
	return w->error;
}

/* Has arrays for nr pieces.  0 or -ENOMEM. */
static int
crew_init(struct crew *w, struct call *c, uint64_t from, uint64_t unit, bool has_parts)
{
	*w = (struct crew){
		.c = c, .g = c->g, .from = from, .unit = unit, .has_all_crc = true, .is_verified = true
	};
	w->nr = (size_t)((c->size - from + unit - 1) / unit);
	w->crc = calloc(w->nr, sizeof *w->crc);
	w->part = has_parts ? calloc(w->nr, sizeof *w->part) : NULL;
	return w->crc && (w->part || !has_parts) ? 0 : -ENOMEM;
}

static void
crew_end(struct crew *w)
{
	free(w->crc);
	free(w->part);
}

/* The checksum of crc followed by those of all pieces. */
static uint64_t
sum_of(const struct crew *w, uint64_t crc)
{
	for (size_t i = 0; i < w->nr; i++)
		crc = gantry_crc64nvme_combine(crc, w->crc[i], size_of(w, i));
	return crc;
}

/* ---- put ---- */

/* All of it at once, by one request. */
static int
put_whole(struct call *c)
{
	struct gantry_result res = { .size = sizeof res };
	struct gantry_request req = c->req;
	struct gpu_stream *s = NULL;
	struct stage_run run;
	int e = stage_take(c->g, (size_t)c->size, true, &run, res.message, sizeof res.message);

	if (e < 0) {
		call_reason(c, res.message);
		return 1;
	}
	e = stage_stream(c->g, c->memory.ptr, &s, res.message, sizeof res.message);
	if (e == 0)
		e = copy(s, run.ptr, c->memory.ptr, (size_t)c->size, GANTRY_TO_HOST, &res);
	stage_stream_give(c->g, s);
	req.size = sizeof req;
	req.wait = GANTRY_WAIT_NONE;
	if (e == 0)
		e = gantry_put(c->g, c->url, run.ptr, (size_t)c->size, &req, &res);
	give(c->g, &run, e);
	adopt(c, &res);
	name_path(c->res);
	return e;
}

static int
put_piece(struct crew *w, struct gpu_stream *s, size_t i, struct gantry_result *res)
{
	struct gantry_request req = request_of_piece(w->c);
	size_t n = size_of(w, i);
	struct stage_run run;
	int e = stage_take(w->g, n, true, &run, res->message, sizeof res->message);

	if (e < 0)
		return e;
	req.checksum = w->c->req.checksum;
	e = copy(s, run.ptr, w->c->memory.ptr + at_of(w, i), n, GANTRY_TO_HOST, res);
	if (e == 0)
		e = gantry_upload_put(w->g, w->c->url, w->id, (int)i + 1, run.ptr, n, &req, res);
	give(w->g, &run, e);
	if (e < 0)
		return e;
	w->part[i].number = (int)i + 1;
	memcpy(w->part[i].etag, res->etag, sizeof w->part[i].etag);
	w->crc[i] = res->crc64nvme;
	return 0;
}

/* Bytes of a part; 0: the object does not go in parts. */
static uint64_t
part_size(const struct call *c)
{
	uint64_t piece = stage_piece(c->g), unit = piece;

	if (c->g->dialect != GANTRY_S3 || strchr(c->url, '?'))
		return 0;
	while (unit < PART_LEAST || (c->size + unit - 1) / unit > GANTRY_PARTS_MAX)
		unit += piece;
	return unit <= stage_size(c->g) ? unit : 0;
}

/* Makes the object of its parts. */
static int
complete(struct crew *w, struct call *c, struct gantry_result *res)
{
	struct gantry_request req = request_of_piece(c);
	int path = w->first.path == GANTRY_PATH_HTTP ? GANTRY_PATH_HTTP : GANTRY_PATH_RDMA_STAGED;
	char text[13];
	int e;

	req.if_match = c->req.if_match;
	req.if_none_match = c->req.if_none_match;
	*res = (struct gantry_result){ .size = sizeof *res };
	e = gantry_upload_complete(w->g, c->url, w->id, w->part, w->nr, &req, res);
	if (e < 0)
		return e;
	res->path = path;
	memcpy(res->reason, w->first.reason, sizeof res->reason);
	res->bytes = c->size;
	if (c->req.checksum) {
		res->crc64nvme = sum_of(w, 0);
		res->has_crc64nvme = 1;
		gantry_crc64nvme_text(res->crc64nvme, text);
		if (*res->checksum && strcmp(res->checksum, text) != 0) {
			snprintf(res->message, sizeof res->message,
				 "the server's checksum of the object is not that of the bytes");
			e = -EBADMSG;
		}
	}
	return e;
}

/* In parts.  1: the server begins no upload. */
static int
put_parts(struct call *c, uint64_t unit)
{
	struct gantry_result res = { .size = sizeof res }, ended;
	struct gantry_request req = request_of_piece(c);
	struct crew w;
	int e = crew_init(&w, c, 0, unit, true), requests;

	req.checksum = c->req.checksum;
	req.content_type = c->req.content_type;
	req.ttl_s = c->req.ttl_s;
	if (e == 0)
		e = gantry_upload_begin(c->g, c->url, &req, w.id, &res);
	w.piece = put_piece;
	requests = res.requests;
	/* One that knows no uploads says so. */
	if (e < 0 && (res.status == 400 || res.status == 405 || res.status == 501)) {
		call_reason(c, "the object is larger than the stage, and the server begins no upload");
		c->res->requests += requests;
		crew_end(&w);
		return 1;
	}
	if (e == 0) {
		e = run_crew(&w);
		if (e == 0)
			e = complete(&w, c, &res);
		else
			res = w.first;
		requests += (res.requests && e == 0 ? res.requests : 0) + w.requests;
		if (e < 0) {
			ended = (struct gantry_result){ .size = sizeof ended };
			gantry_upload_abort(c->g, c->url, w.id, &ended);
			requests += ended.requests;
		}
	}
	res.requests = requests;
	adopt(c, &res);
	crew_end(&w);
	return e;
}

int
staged_put(struct call *c)
{
	uint64_t unit;

	if (c->size <= stage_size(c->g))
		return put_whole(c);
	unit = part_size(c);
	if (unit)
		return put_parts(c, unit);
	call_reason(c, "the object is larger than the stage and does not go in parts");
	return 1;
}

/* ---- get ---- */

/* Fetches n bytes from byte `at` of the memory on.  0 or -errno. */
static int
fetch(const struct call *c, struct gpu_stream *s, uint64_t at, size_t n, const struct gantry_request *req,
      struct gantry_result *res)
{
	struct stage_run run;
	int e = stage_take(c->g, n, true, &run, res->message, sizeof res->message);

	if (e < 0)
		return e;
	e = gantry_get(c->g, c->url, run.ptr, n, c->offset + at, req, res);
	if (e == 0 && res->bytes)
		e = copy(s, c->memory.ptr + at, run.ptr, (size_t)res->bytes, GANTRY_TO_DEVICE, res);
	give(c->g, &run, e);
	return e;
}

static int
get_piece(struct crew *w, struct gpu_stream *s, size_t i, struct gantry_result *res)
{
	struct gantry_request req = request_of_piece(w->c);
	size_t n = size_of(w, i);
	int e;

	req.if_match = w->etag;
	req.checksum = w->c->req.checksum;
	e = fetch(w->c, s, at_of(w, i), n, &req, res);
	if (e == 0 && res->bytes != n) {
		snprintf(res->message, sizeof res->message, "a version of the object has two lengths");
		e = -EPROTO;
	}
	w->crc[i] = res->crc64nvme;
	if (!res->has_crc64nvme)
		w->has_all_crc = false;
	if (!res->checksum_verified)
		w->is_verified = false;
	return e;
}

/* What follows the first piece, of which res is. */
static int
get_rest(struct call *c, uint64_t from, struct gantry_result *res)
{
	struct crew w;
	int e = crew_init(&w, c, from, stage_piece(c->g), false);

	if (e == 0) {
		memcpy(w.etag, res->etag, sizeof w.etag);
		w.piece = get_piece;
		e = run_crew(&w);
	}
	if (e < 0) {
		w.first.requests = res->requests + w.requests;
		w.first.size = sizeof w.first;
		*res = w.first;
	} else {
		res->requests += w.requests;
		res->bytes = c->size;
		res->crc64nvme = sum_of(&w, res->crc64nvme);
		res->has_crc64nvme &= w.has_all_crc;
		res->checksum_verified &= w.is_verified;
		if (w.first.path == GANTRY_PATH_HTTP) {
			res->path = GANTRY_PATH_HTTP;
			memcpy(res->reason, w.first.reason, sizeof res->reason);
		}
	}
	crew_end(&w);
	return e;
}

/* Is what came the whole of what there is? */
static bool
is_all(const struct call *c, const struct gantry_result *res, size_t first)
{
	return res->bytes < first || first == c->size ||
	       (res->has_object_size && res->object_size <= c->offset + first);
}

/* One version of the object.  1: it has to go over HTTP in one piece; -ESTALE, -ENOENT with *ret_began: it was replaced. */
static int
get_version(struct call *c, struct gpu_stream *s, struct gantry_result *res, bool *ret_began)
{
	size_t first = stage_piece(c->g) < c->size ? stage_piece(c->g) : (size_t)c->size;
	struct gantry_request req = c->req;
	uint64_t asked = c->size;
	int e;

	*ret_began = false;
	*res = (struct gantry_result){ .size = sizeof *res };
	req.size = sizeof req;
	req.wait = GANTRY_WAIT_NONE;
	e = fetch(c, s, 0, first, &req, res);
	if (e < 0 || is_all(c, res, first))
		return e;
	/* Nothing else says that pieces are of one version; nor do ranges over HTTP do better than one request. */
	if (res->path == GANTRY_PATH_HTTP || !*res->etag || !res->has_object_size) {
		if (res->path != GANTRY_PATH_HTTP)
			snprintf(res->reason, sizeof res->reason,
				 "the server does not say which version of the object its answer is of");
		return 1;
	}
	*ret_began = true;
	if (c->size > res->object_size - c->offset)
		c->size = res->object_size - c->offset;
	e = get_rest(c, first, res);
	c->size = asked;
	return e;
}

int
staged_get(struct call *c)
{
	struct gantry_result res = { .size = sizeof res };
	struct gpu_stream *s = NULL;
	int e = stage_stream(c->g, c->memory.ptr, &s, res.message, sizeof res.message);
	bool began = true;

	if (e < 0) {
		adopt(c, &res);
		return e;
	}
	for (int tries = 0; tries < REPLACED_TRIES; tries++) {
		e = get_version(c, s, &res, &began);
		if (!began || (e != -ESTALE && e != -ENOENT))
			break;
		c->res->requests += res.requests;
	}
	stage_stream_give(c->g, s);
	if (e == 1) {
		c->res->requests += res.requests;
		snprintf(c->res->reason, sizeof c->res->reason, "%s", res.reason);
		return 1;
	}
	if (e == -ESTALE && began) {
		snprintf(res.message, sizeof res.message,
			 "the object was replaced while it was read, three times");
		res.requests = 0;
	}
	adopt(c, &res);
	name_path(c->res);
	return e;
}
