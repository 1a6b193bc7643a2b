/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads objects in parts, from a file or another object, several parts at a time. An interrupted upload
 * continues with the parts that the server has. For a file, each of these parts is read again and compared by
 * its CRC64NVME; for an object, an equal ETag shows that nothing has changed.
 */
#include "client/cmd/move/parts.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_MAX (5ull << 30)  /* S3: limit of a copy without parts */
#define COPY_PART (1ull << 30) /* size of a part that the server copies */
#define MIB (1ull << 20)

struct upload {
	struct cmd *c;
	struct origin *from;
	const char *url;
	struct outcome *o;
	struct resume resume;
	uint64_t part_size;
	size_t nr;
	struct gantry_part *part;
	uint64_t *crc;
	bool *has;
	pthread_mutex_t lock; /* protects o and failed */
	_Atomic size_t next;
	_Atomic bool failed;
};

/* ---- where it comes from ---- */

static void
mark_file(struct origin *from, const struct stat *st)
{
	from->size = (uint64_t)st->st_size;
	snprintf(from->mark, sizeof from->mark, "%lld.%09ld %lld.%09ld %llu", (long long)st->st_mtim.tv_sec,
		 st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec,
		 (unsigned long long)st->st_ino);
}

int
origin_of_file(struct origin *from, int fd, const char *name)
{
	struct stat st;

	*from = (struct origin){ .fd = fd, .name = name };
	if (fstat(fd, &st) < 0)
		return -errno;
	mark_file(from, &st);
	return 0;
}

static void
on_header(void *cookie, const char *name, const char *value)
{
	struct origin *from = cookie;

	if (!strcasecmp(name, "content-type"))
		snprintf(from->content_type, sizeof from->content_type, "%s", value);
}

static bool
on_one_server(const char *a, const char *b)
{
	size_t n = strcspn(strstr(a, "://") + 3, "/") + (size_t)(strstr(a, "://") + 3 - a);

	return strncasecmp(a, b, n) == 0 && (!b[n] || b[n] == '/');
}

static int
origin_of_object(struct cmd *c, struct origin *from, const char *url, const char *to, struct outcome *o)
{
	struct gantry_request req = request_of(c);
	struct gantry_result res = { .size = sizeof res };
	int e;

	*from = (struct origin){ .fd = -1, .name = url, .same_server = on_one_server(url, to) };
	e = gantry_stat(c->g, url, &req, on_header, from, &res);
	if (e < 0) {
		outcome_add(o, e, &res);
	} else if (!res.has_object_size || !*res.etag) {
		e = -EPROTO;
		outcome_local(o, e, "the server does not say size and ETag of %s", url);
	}
	from->size = res.object_size;
	snprintf(from->mark, sizeof from->mark, "%s", res.etag);
	return e;
}

/* Returns true if the file has not changed since the start of the upload. */
static bool
is_unchanged(const struct origin *from)
{
	struct origin now;

	return from->fd < 0 || (origin_of_file(&now, from->fd, from->name) == 0 && now.size == from->size &&
				!strcmp(now.mark, from->mark));
}

/* ---- one part ---- */

static void
fail(struct upload *u, int e, const struct gantry_result *res, const char *what)
{
	pthread_mutex_lock(&u->lock);
	if (!u->failed) {
		if (res)
			outcome_add(u->o, e, res);
		else
			outcome_local(u->o, e, "%s", what);
	}
	u->failed = true;
	pthread_mutex_unlock(&u->lock);
}

static void
count(struct upload *u, const struct gantry_result *res, uint64_t copied)
{
	pthread_mutex_lock(&u->lock);
	if (!u->failed)
		outcome_add(u->o, 0, res);
	u->o->copied_bytes += copied;
	pthread_mutex_unlock(&u->lock);
}

static size_t
len_of(const struct upload *u, size_t i)
{
	uint64_t left = u->from->size - i * u->part_size;

	return (size_t)(left < u->part_size ? left : u->part_size);
}

/* Reads part i into memory. Returns 0, or -errno after noting the error. */
static int
read_part(struct upload *u, size_t i, char *mem)
{
	size_t len = len_of(u, i), have = 0;
	uint64_t at = i * u->part_size;

	if (u->from->fd < 0) {
		struct gantry_request req = request_of(u->c);
		struct gantry_result res = { .size = sizeof res };
		int e;

		req.if_match = u->from->mark;
		e = gantry_get(u->c->g, u->from->name, mem, len, at, &req, &res);
		if (e == -ESTALE || e == -ERANGE || (e == 0 && res.bytes != len)) {
			fail(u, e = -ESTALE, NULL, "the object changed while it was read");
		} else if (e < 0) {
			fail(u, e, &res, NULL);
		} else {
			count(u, &res, 0);
		}
		return e;
	}
	while (have < len) {
		ssize_t n = pread(u->from->fd, mem + have, len - have, (off_t)(at + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int e = n < 0 ? -errno : -ESTALE;

			fail(u, e, NULL, n < 0 ? strerror(-e) : "the file became shorter while it was read");
			return e;
		}
		have += (size_t)n;
	}
	return 0;
}

static void
put_part(struct upload *u, size_t i, struct buffer *b)
{
	struct gantry_request req = request_of(u->c);
	struct gantry_result res = { .size = sizeof res };
	size_t len = len_of(u, i);
	int e;

	if (u->from->same_server) {
		req.source_if_match = u->from->mark;
		e = gantry_upload_copy(u->c->g, u->url, u->resume.id, (int)i + 1, u->from->name,
				       i * u->part_size, len, &req, &res);
	} else {
		if (read_part(u, i, b->mem) < 0)
			return;
		req.checksum = 1;
		e = gantry_upload_put(u->c->g, u->url, u->resume.id, (int)i + 1, b->mem, len, &req, &res);
		u->crc[i] = res.crc64nvme;
	}
	if (e < 0) {
		fail(u, e, &res, NULL);
		return;
	}
	memcpy(u->part[i].etag, res.etag, sizeof u->part[i].etag);
	u->part[i].number = (int)i + 1;
	count(u, &res, u->from->same_server ? len : 0);
	bar_add(len);
}

static void
put_rest(struct upload *u, struct buffer *b)
{
	for (;;) {
		size_t i = atomic_fetch_add(&u->next, 1);

		if (i >= u->nr || u->failed)
			return;
		if (!u->has[i])
			put_part(u, i, b);
	}
}

static void *
stream(void *arg)
{
	struct upload *u = arg;
	struct buffer b;

	/* If there is no buffer, the other streams do the work. */
	if (buffer_make(&b, u->c->g, u->from->same_server ? BUFFER_BYTES : u->part_size) == 0)
		put_rest(u, &b);
	buffer_fini(&b);
	return NULL;
}

static void
put_all(struct upload *u, int streams)
{
	pthread_t thread[JOBS_MAX];
	int nr = 0;

	while (nr < streams && nr < JOBS_MAX && (size_t)nr < u->nr &&
	       pthread_create(&thread[nr], NULL, stream, u) == 0)
		nr++;
	while (nr > 0)
		pthread_join(thread[--nr], NULL);
	if (!u->failed && u->next < u->nr)
		fail(u, -ENOMEM, NULL, "no memory for a buffer");
}

/* ---- what the server has of an earlier run ---- */

/* Accepts a part of the server that has the right size; for a file, only if its bytes are equal. */
static int
on_part(void *cookie, const struct gantry_part *p)
{
	struct upload *u = cookie;
	size_t i = (size_t)p->number - 1;

	if (i >= u->nr || p->size != len_of(u, i) || !*p->etag || (!*p->checksum && u->from->fd >= 0))
		return 0;
	u->part[i] = *p;
	u->has[i] = true;
	return 0;
}

static void
compare_parts(struct upload *u)
{
	char *mem = malloc(u->part_size), sum[13];

	for (size_t i = 0; i < u->nr; i++) {
		if (!u->has[i])
			continue;
		u->has[i] = mem && !u->failed && read_part(u, i, mem) == 0;
		if (!u->has[i])
			continue;
		u->crc[i] = gantry_crc64nvme(0, mem, len_of(u, i));
		gantry_crc64nvme_text(u->crc[i], sum);
		u->has[i] = !strcmp(sum, u->part[i].checksum);
	}
	free(mem);
}

/* Continues the upload that the state names. Returns false if the server no longer has it. */
static bool
find_parts(struct upload *u)
{
	struct gantry_result res = { .size = sizeof res };
	int e = gantry_upload_parts(u->c->g, u->url, u->resume.id, on_part, u, &res);

	if (e == -ENOENT)
		return false;
	if (e < 0) {
		fail(u, e, &res, NULL);
		return true;
	}
	if (u->from->fd >= 0)
		compare_parts(u);
	for (size_t i = 0; i < u->nr; i++)
		u->o->kept_bytes += u->has[i] ? len_of(u, i) : 0;
	bar_add(u->o->kept_bytes);
	return true;
}

static void
begin(struct upload *u)
{
	struct gantry_request req = request_of(u->c);
	struct gantry_result res = { .size = sizeof res };
	int e;

	req.checksum = 1;
	req.content_type = *u->from->content_type ? u->from->content_type : NULL;
	e = gantry_upload_begin(u->c->g, u->url, &req, u->resume.id, &res);
	u->resume.part_size = u->part_size;
	if (e < 0)
		fail(u, e, &res, NULL);
	else
		resume_keep(&u->resume, u->from, u->url);
}

/* ---- the end ---- */

static void
complete(struct upload *u)
{
	struct gantry_request req = { .size = sizeof req, .timeout_ms = u->c->timeout_ms };
	struct gantry_result res = { .size = sizeof res };
	uint64_t crc = u->crc[0];
	char sum[13];
	int e;

	if (!is_unchanged(u->from)) {
		fail(u, -ESTALE, NULL, "the file changed while it was read");
		return;
	}
	e = gantry_upload_complete(u->c->g, u->url, u->resume.id, u->part, u->nr, &req, &res);
	if (e < 0) {
		fail(u, e, &res, NULL);
		return;
	}
	outcome_add(u->o, 0, &res);
	if (u->from->fd < 0 || !*res.checksum)
		return;
	for (size_t i = 1; i < u->nr; i++)
		crc = gantry_crc64nvme_combine(crc, u->crc[i], len_of(u, i));
	gantry_crc64nvme_text(crc, sum);
	if (strcmp(sum, res.checksum) != 0)
		outcome_local(u->o, -EBADMSG, "the file has CRC64NVME %s, the server says %s", sum,
			      res.checksum);
	else
		u->o->res.checksum_verified = 1;
}

/* Ends the upload: one that failed and cannot be continued is aborted on the server. */
static void
finish(struct upload *u)
{
	struct gantry_result res = { .size = sizeof res };
	bool keep = u->o->error && outcome_may_pass(u->o) && u->resume.fd >= 0;

	if (u->o->error && !keep && *u->resume.id)
		gantry_upload_abort(u->c->g, u->url, u->resume.id, &res);
	resume_close(&u->resume, keep && *u->resume.id);
}

static int
prepare(struct upload *u)
{
	uint64_t least = (u->from->size / GANTRY_PARTS_MAX + MIB) / MIB * MIB;
	int e = resume_open(&u->resume, u->from, u->url);

	if (e < 0) {
		outcome_local(u->o, e, "another gantry stores this already");
		return e;
	}
	u->part_size = u->from->same_server ? COPY_PART : BUFFER_BYTES;
	if (u->part_size < least)
		u->part_size = least;
	/* An upload of another version of this program, with another part size, is not continued. */
	if (u->resume.part_size && u->resume.part_size != u->part_size) {
		memcpy(u->resume.stale_id, u->resume.id, sizeof u->resume.stale_id);
		*u->resume.id = 0;
	}
	if (*u->resume.stale_id)
		gantry_upload_abort(u->c->g, u->url, u->resume.stale_id, NULL);
	u->nr = (size_t)((u->from->size + u->part_size - 1) / u->part_size);
	u->part = calloc(u->nr, sizeof *u->part);
	u->has = calloc(u->nr, sizeof *u->has);
	u->crc = calloc(u->nr, sizeof *u->crc);
	if (!u->part || !u->has || !u->crc) {
		outcome_local(u->o, -ENOMEM, "no memory");
		return -ENOMEM;
	}
	return 0;
}

void
put_parts(struct cmd *c, int streams, struct origin *from, const char *url, struct outcome *o)
{
	struct upload u = { .c = c, .from = from, .url = url, .o = o, .resume = { .fd = -1 } };

	pthread_mutex_init(&u.lock, NULL);
	if (prepare(&u) == 0) {
		if (!*u.resume.id || !find_parts(&u))
			begin(&u);
		if (!u.failed)
			put_all(&u, streams);
		if (!u.failed)
			complete(&u);
		finish(&u);
	}
	o->res.object_size = from->size;
	o->res.has_object_size = 1;
	resume_close(&u.resume, true);
	pthread_mutex_destroy(&u.lock);
	free(u.part);
	free(u.has);
	free(u.crc);
}

/* ---- from object to object ---- */

static void
copy_small(struct cmd *c, struct buffer *b, const struct origin *from, const char *url, struct outcome *o)
{
	struct gantry_request req = request_of(c);
	struct gantry_result res = { .size = sizeof res };
	int e = 0;

	if (from->size) {
		req.if_match = from->mark;
		e = gantry_get(c->g, from->name, b->mem, from->size, 0, &req, &res);
		if (e == 0 && res.bytes != from->size)
			e = -ESTALE;
		if (e == -ESTALE)
			outcome_local(o, e, "the object changed while it was read");
		else
			outcome_add(o, e, &res);
		if (e < 0)
			return;
		req.if_match = NULL;
	}
	req.checksum = 1;
	req.content_type = *from->content_type ? from->content_type : NULL;
	res = (struct gantry_result){ .size = sizeof res };
	e = gantry_put(c->g, url, b->mem, from->size, &req, &res);
	outcome_add(o, e, &res);
	bar_add(from->size);
}

void
copy_object(struct cmd *c, struct buffer *b, int streams, const char *from_url, const char *url,
	    struct outcome *o)
{
	struct gantry_request req = request_of(c);
	struct gantry_result res = { .size = sizeof res };
	struct origin from;

	outcome_init(o, "copy", url, from_url);
	if (origin_of_object(c, &from, from_url, url, o) == 0) {
		bar_begin(c, from.size);
		if (from.same_server && from.size <= COPY_MAX) {
			int e;

			req.source_if_match = from.mark;
			e = gantry_copy(c->g, url, from_url, &req, &res);
			outcome_add(o, e, &res);
			o->copied_bytes = e == 0 ? from.size : 0;
			bar_add(from.size);
		} else if (from.size <= b->cap) {
			copy_small(c, b, &from, url, o);
		} else {
			put_parts(c, streams, &from, url, o);
		}
		bar_end(c);
	}
	o->seconds = now_s() - o->seconds;
}
