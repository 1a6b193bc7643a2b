/* SPDX-License-Identifier: Apache-2.0 */
/* `gantryd --upgrade`: raises the version of the format of the pools. */
#include "rados/io/format.h"

#include "base/advice.h"
#include "base/refuse.h"
#include "rados/io/rows.h"
#include "rados/io/rstore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RAISE_TRIES 100

/* Raises the version unless a gateway starts in the meantime. Returns 0; -ECANCELED: another attempt is
 * needed; or -errno. */
static int
raise_once(struct rstore *st, char *said, size_t said_len)
{
	uint8_t was[STORE_FORMAT_BYTES], bytes[STORE_FORMAT_BYTES];
	struct store_format_row row;
	struct gateway_table t;
	const struct peer *older = NULL;
	rados_write_op_t op;
	uint32_t from;
	int e = format_row(st, POOL_META, was, &row);

	if (e == 0 && row.version == STORE_FORMAT_VERSION)
		return refuse(said, said_len, 0, "pool %s: the store has format version %u already",
			      st->meta_pool, row.version);
	if (e == 0)
		e = gateway_read_table(st, "i", &t);
	if (e < 0)
		return refuse(said, said_len, e, "pool %s: %s", st->meta_pool, strerror(-e));
	for (uint32_t i = 0; i < t.nr && !older; i++)
		older = t.peers[i].row.version < STORE_FORMAT_VERSION ? &t.peers[i] : NULL;
	if (older) {
		refuse(said, said_len, -EBUSY, "pool %s: gateway %u on %s %s", st->meta_pool, older->instance,
		       older->row.host,
		       older->is_damaged ? "has a damaged row"
					 : "is of an earlier version, or has not ended cleanly");
		advice_add(said, said_len, ADVICE_GATEWAY_OLD, NULL);
		free(t.peers);
		return -EBUSY;
	}
	from = row.version;
	row.version = STORE_FORMAT_VERSION;
	format_encode(bytes, &row);
	op = rados_create_write_op();
	rados_write_op_cmpxattr(op, XATTR_FORMAT, LIBRADOS_CMPXATTR_OP_EQ, (const char *)was, sizeof was);
	op_compare(op, "N", &t.next, sizeof t.next);
	rados_write_op_setxattr(op, XATTR_FORMAT, (const char *)bytes, sizeof bytes);
	e = write_now(st->client[0].io[POOL_META], OBJECT_STORE, op);
	free(t.peers);
	return e < 0 ? refuse(said, said_len, e, "pool %s: %s", st->meta_pool, strerror(-e))
		     : refuse(said, said_len, 0,
			      "pool %s: the store has format version %u now, which was %u: gateways of "
			      "earlier versions refuse it",
			      st->meta_pool, row.version, from);
}

int
format_raise(struct rstore *st, char *said, size_t said_len)
{
	int e = -ECANCELED;

	for (int i = 0; e == -ECANCELED && i < RAISE_TRIES; i++)
		e = raise_once(st, said, said_len);
	return e;
}
