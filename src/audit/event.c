/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an event, and its way to the stream and to followers. */
#include "audit/audit_int.h"

#include "base/clock.h"
#include "base/escape.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

struct text {
	char *p;
	size_t n, cap;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->p + t->n, t->cap - t->n, fmt, ap);
	va_end(ap);
	/* All or nothing: the line stays JSON. */
	if (n > 0 && (size_t)n < t->cap - t->n)
		t->n += (size_t)n;
}

static void
add_number(struct text *t, const char *name, uint64_t value)
{
	add(t, ",\"%s\":%llu", name, (unsigned long long)value);
}

/* Adds a member, unless there is no text.  Returns false if the string lacks bytes of it. */
static bool
add_span(struct text *t, const char *name, struct span s)
{
	char value[ESCAPE_JSON_MAX * 1024 + 1];
	bool is_whole;

	if (!s.len)
		return true;
	escape_json(value, sizeof value, s.p, s.len, &is_whole);
	add(t, ",\"%s\":\"%s\"", name, value);
	return is_whole;
}

static void
add_string(struct text *t, const char *name, const char *value)
{
	if (value)
		add_span(t, name, span_of(value));
}

/* A key is any bytes: one that is no text is written as in a URL, under another name, so that no two keys look the same. */
static void
add_key(struct text *t, struct span key)
{
	char value[ESCAPE_URL_BYTES(1024)];
	size_t before = t->n;

	if (add_span(t, "key", key))
		return;
	t->n = before;
	escape_url(value, sizeof value, key.p, key.len);
	add(t, ",\"key_url\":\"%s\"", value);
}

void
audit_time(uint64_t wall_ns, char out[32])
{
	time_t s = (time_t)(wall_ns / NS_PER_S);
	struct tm tm;
	size_t n;

	gmtime_r(&s, &tm);
	n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, 32 - n, ".%06uZ", (unsigned)(wall_ns % NS_PER_S / 1000));
}

size_t
audit_text(const struct audit_event *e, uint64_t now_ns, uint64_t held, char out[AUDIT_TEXT_BYTES])
{
	/* Room for the end of the line. */
	struct text t = { out, 0, AUDIT_TEXT_BYTES - 2 };
	char when[32];

	audit_time(now_ns, when);
	add(&t, "{\"time\":\"%s\",\"op\":\"%s\"", when, e->op);
	add_string(&t, "subject", e->subject);
	if (e->args)
		add(&t, ",\"args\":%s", e->args);
	if (e->has_status)
		add_number(&t, "status", (uint64_t)e->status);
	add_string(&t, "fault", e->fault);
	add_span(&t, "bucket", e->bucket);
	add_key(&t, e->key);
	if (e->has_size)
		add_number(&t, "size", e->size_bytes);
	add_string(&t, "etag", e->etag);
	add_string(&t, "peer", e->peer);
	add_string(&t, "access_key", e->access_key);
	add_string(&t, "claimed_access_key", e->claimed_access_key);
	add_string(&t, "secret_id", e->secret_id);
	add_string(&t, "request", e->request);
	if (e->is_request) {
		add_number(&t, "rdma_bytes", e->rdma_bytes);
		add_number(&t, "http_bytes", e->http_bytes);
		add_number(&t, "us", e->us);
	}
	add_string(&t, "declined", e->declined);
	if (held)
		add_number(&t, "held_back", held);
	memcpy(out + t.n, "}\n", 2);
	return t.n + 2;
}

bool
audit_wants(enum audit_kind kind)
{
	return stream_takes(kind) || follow_any();
}

void
audit_put(const struct audit_event *e)
{
	char line[AUDIT_TEXT_BYTES];
	bool takes = stream_takes(e->kind), follows = follow_any();
	uint64_t held = 0;
	size_t len;

	if (takes && e->kind == AUDIT_REFUSAL)
		takes = stream_takes_refusal(&held);
	if (!takes && !follows)
		return;
	len = audit_text(e, clock_wall_ns(), held, line);
	if (takes)
		stream_put(e->kind, line, len);
	if (follows)
		follow_put(e, line, len);
}

void
audit_expired(const char *op, const char *bucket, size_t bucket_len, const char *key, size_t key_len)
{
	audit_put(
		&(struct audit_event){ .op = op, .bucket = { bucket, bucket_len }, .key = { key, key_len } });
}
