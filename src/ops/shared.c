/* SPDX-License-Identifier: Apache-2.0 */
/* What several operations need: attributes picked from others, and what some replies say of an object.  The
 * core's thread. */
#include "ops/ops_int.h"

#include "base/age_clock.h"
#include "base/clock.h"
#include "walk/expiry.h"
#include "walk/ttl.h"
#include "walk/walks.h"

/* ---- attributes without some of them ---- */

struct attrs_walk {
	struct req *rq;
	bool (*keep)(const char *name, size_t len);
	int err;
};

static void
on_attr(void *cookie, const char *name, size_t name_len, const char *value, size_t value_len)
{
	struct attrs_walk *w = cookie;
	struct target *t = &w->rq->target;

	if (w->err == 0 && w->keep(name, name_len))
		w->err = dialect_attrs_add(t->attrs, &t->attrs_len, DIALECT_ATTRS_MAX, name, name_len, value,
					   value_len);
}

int
attrs_add_from(struct req *rq, const void *attrs, size_t len, bool (*keep)(const char *name, size_t len))
{
	struct attrs_walk w = { rq, keep, 0 };
	int r = dialect_attrs_each(attrs, len, on_attr, &w);

	return r < 0 ? r : w.err;
}

/* ---- of an object, for the reply ---- */

/* Where a day of the rules is none, dates say nothing. */
void
reply_expiration(struct req *rq, uint64_t size_bytes, const struct store_meta *meta)
{
	const struct req_env *env = &rq->rs->env;
	struct store_key k = req_key(rq);

	if (rq->listen->dialect != DIALECT_S3 || env->conf->lifecycle.day_ns != 86400 * NS_PER_S)
		return;
	if (expiry_text(env->walks->expiry, &k, size_bytes, meta, rq->began_ns, &rq->out))
		reply_ref(rq, "x-amz-expiration", rq->out.p);
}

uint64_t
expires_after(uint32_t ttl_s)
{
	return ttl_s ? age_clock_ns() + ttl_s * NS_PER_S : 0;
}

void
expires_written(struct req *rq)
{
	struct store_key k = req_key(rq);

	if (rq->expires_ns)
		ttl_queue_note(rq->rs->env.walks->queue, k.bucket, k.bucket_len, k.key, k.key_len,
			       rq->expires_ns);
}

void
write_location(struct req *rq, struct text *x)
{
	const struct field *host = dialect_field(&rq->in, "host", NULL);
	const struct target *t = &rq->target;

	text_str(x, rq->listen->tls_certificate ? "https://" : "http://");
	if (host)
		text_put(x, host->value, host->value_len);
	text_str(x, "/");
	if (!t->virtual_host) {
		text_put(x, t->bucket, t->bucket_len);
		text_str(x, "/");
	}
	text_url(x, t->key, t->key_len, true);
	text_put(x, "", 1);
}
