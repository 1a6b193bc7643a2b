/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Followers: each has a filter and a buffer of lines, which it takes away with each read.  One lock for all of
 * them, held for a copy of a line or for an exchange of buffers.
 */
#include "audit/audit_int.h"

#include "base/clock.h"
#include "base/hex.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define LINES_BYTES (256u << 10)

struct follower {
	char id[17];
	struct audit_filter filter;
	char *lines; /* NULL: the place is free */
	size_t len;
	uint64_t lost, read_ns; /* read_ns: time of the last read by clock_ns() */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct follower list[AUDIT_FOLLOWERS_MAX];
static _Atomic int nr;

bool
follow_any(void)
{
	return atomic_load_explicit(&nr, memory_order_relaxed) > 0;
}

/* Called with the lock held, as the functions below. */
static void
drop(struct follower *f)
{
	free(f->lines);
	f->lines = NULL;
	atomic_fetch_sub(&nr, 1);
}

static void
drop_silent(uint64_t now)
{
	for (int i = 0; i < AUDIT_FOLLOWERS_MAX; i++) {
		if (list[i].lines && now - list[i].read_ns > AUDIT_FOLLOW_NS)
			drop(&list[i]);
	}
}

static struct follower *
find(const char *id)
{
	for (int i = 0; i < AUDIT_FOLLOWERS_MAX; i++) {
		if (list[i].lines && strcmp(list[i].id, id) == 0)
			return &list[i];
	}
	return NULL;
}

/* An IPv4 address is the same in both of its forms. */
static bool
same_client(const char *peer, const char *client)
{
	static const char mapped[] = "::ffff:";
	size_t n = sizeof mapped - 1;

	if (strncmp(peer, mapped, n) == 0)
		peer += n;
	if (strncmp(client, mapped, n) == 0)
		client += n;
	return strcmp(peer, client) == 0;
}

static bool
passes(const struct audit_filter *f, const struct audit_event *e)
{
	const char *key = e->access_key ? e->access_key : e->claimed_access_key;

	return (!f->bucket[0] || span_is(e->bucket, f->bucket)) &&
	       (!f->access_key[0] || (key && strcmp(key, f->access_key) == 0)) &&
	       (!f->client[0] || (e->peer && same_client(e->peer, f->client))) &&
	       (!f->op[0] || strcasecmp(e->op, f->op) == 0) &&
	       (!f->errors || e->fault || (e->has_status && (e->status == 0 || e->status >= 400))) &&
	       (!f->slow_us || (e->is_request && e->us >= f->slow_us));
}

void
follow_put(const struct audit_event *e, const char *line, size_t len)
{
	pthread_mutex_lock(&lock);
	drop_silent(clock_ns());
	for (int i = 0; i < AUDIT_FOLLOWERS_MAX; i++) {
		struct follower *f = &list[i];

		if (!f->lines || !passes(&f->filter, e))
			continue;
		if (f->len + len > LINES_BYTES) {
			f->lost++;
			continue;
		}
		/* Its line end becomes the comma of a list. */
		memcpy(f->lines + f->len, line, len);
		f->len += len;
		f->lines[f->len - 1] = ',';
	}
	pthread_mutex_unlock(&lock);
}

int
audit_follow(const struct audit_filter *filter, char ret_id[17])
{
	char *lines = malloc(LINES_BYTES);
	struct follower *f = NULL;
	uint64_t id;

	if (!lines)
		return -ENOMEM;
	if (getrandom(&id, sizeof id, 0) != sizeof id) {
		free(lines);
		return -EIO;
	}
	pthread_mutex_lock(&lock);
	drop_silent(clock_ns());
	for (int i = 0; i < AUDIT_FOLLOWERS_MAX && !f; i++)
		f = list[i].lines ? NULL : &list[i];
	if (f) {
		*f = (struct follower){ .filter = *filter, .lines = lines, .read_ns = clock_ns() };
		hex_write_u64(f->id, id);
		memcpy(ret_id, f->id, sizeof f->id);
		atomic_fetch_add(&nr, 1);
	}
	pthread_mutex_unlock(&lock);
	if (!f)
		free(lines);
	return f ? 0 : -EBUSY;
}

int
audit_follow_read(const char *id, FILE *out)
{
	char *lines = malloc(LINES_BYTES), *taken = NULL;
	struct follower *f;
	uint64_t lost = 0;
	size_t len = 0;

	if (!lines)
		return -ENOMEM;
	pthread_mutex_lock(&lock);
	f = find(id);
	if (f) {
		taken = f->lines;
		len = f->len;
		lost = f->lost;
		f->lines = lines;
		f->len = 0;
		f->lost = 0;
		f->read_ns = clock_ns();
	}
	pthread_mutex_unlock(&lock);
	if (f) {
		fprintf(out, "{\"lost\":%llu,\"events\":[", (unsigned long long)lost);
		fwrite(taken, 1, len ? len - 1 : 0, out);
		fputs("]}", out);
	}
	free(f ? taken : lines);
	return f ? 0 : -ENOENT;
}

void
audit_follow_end(const char *id)
{
	struct follower *f;

	pthread_mutex_lock(&lock);
	f = find(id);
	if (f)
		drop(f);
	pthread_mutex_unlock(&lock);
}
