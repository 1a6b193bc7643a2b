/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second copy of a PUT: an engine whose own the key is not gets the same pieces as the first one, and commits after it
 * what that has made of them (struct store_member_ops).  On the thread that has both ports.
 *
 * It is an ordinary PUT (put.c) which is not judged by quotas, and whose record has its version, times, ETag, attributes and
 * checksums from the first one's, which is pinned until the end.
 */
#include "extent/object/put_int.h"

#include "base/check.h"

#include <errno.h>

void
put_copy_over(struct put_int *pi)
{
	struct extent_port *from = pi->copy.from;

	if (!from)
		return;
	pin_drop(from->vp.vol->pins, &pi->copy.pin);
	from->vp.io.inflight--;
	pi->copy.from = NULL;
}

int
extent_copy_commit(struct store_port *to, struct store_put *put, struct store_port *from, uint64_t version,
		   const struct store_commit *sc)
{
	struct put_int *pi = put_int(put);
	struct extent_port *f = extent_port(from);
	const struct rec *r = tree_get(f->vp.vol->tree, pi->key, pi->key_len);
	uint64_t size_bytes = put->size_bytes + (sc->last ? sc->last_len : sc->inline_len);
	struct store_commit c;
	int e;

	check(put->is_started && pi->sent == &pi->copy.ps && !pi->copy.from);
	if (!r || r->version != version || r->size_bytes != size_bytes)
		return -EAGAIN;
	c = (struct store_commit){ .meta = rec_meta(r),
				   .last = sc->last,
				   .last_len = sc->last_len,
				   .inline_data = sc->inline_data,
				   .inline_len = sc->inline_len,
				   .have_expect_crc64 = true,
				   .expect_crc64 = r->crc64 };
	pin_add(f->vp.vol->pins, &pi->copy.pin, rec_pin_id(r));
	f->vp.io.inflight++;
	pi->copy.from = f;
	pi->copy.ps.rec = r;
	pi->copy.ps.sent = put_sent_of(r);
	e = extent_put_commit(to, put, &c);
	if (e < 0)
		put_copy_over(pi);
	return e;
}
