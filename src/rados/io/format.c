/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format of the pools: a version, which determines the fields that a record may have. Pools keep the
 * version with which they were made, until `gantryd --upgrade` raises it (upgrade.c); docs/rados.md,
 * "Versions of the format".
 */
#include "rados/io/format.h"

#include "base/advice.h"
#include "base/refuse.h"
#include "rados/io/rstore.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <string.h>

/* ---- start ---- */

int
format_row(struct rstore *st, enum pool pool, uint8_t bytes[STORE_FORMAT_BYTES],
	   struct store_format_row *ret_row)
{
	int n = rados_getxattr(st->client[0].io[pool], OBJECT_STORE, XATTR_FORMAT, (char *)bytes,
			       STORE_FORMAT_BYTES);

	return n < 0 ? n : format_decode(bytes, (size_t)n, ret_row);
}

/* Checks that the data pool belongs to the store in the meta pool: the data objects of another store have
 * the same names. */
static int
check_data_pool(struct rstore *st, char *err, size_t err_len)
{
	uint8_t bytes[STORE_FORMAT_BYTES];
	struct store_format_row row;
	int e = format_row(st, POOL_DATA, bytes, &row);

	if (e == -ENOENT || e == -ENODATA)
		return refuse(err, err_len, -EINVAL, "pool %s: it is not the data pool of the store in %s",
			      st->data_pool, st->meta_pool);
	if (e == -EBADMSG || e == -EPROTONOSUPPORT)
		return refuse(err, err_len, -ENOTRECOVERABLE, "pool %s: the store's description is damaged",
			      st->data_pool);
	if (e < 0)
		return refuse(err, err_len, e, "pool %s: %s", st->data_pool, strerror(-e));
	if (memcmp(row.uuid, st->gw.format.uuid, sizeof row.uuid) != 0)
		return refuse(err, err_len, -EINVAL,
			      "pool %s: it is the data pool of another store than that in %s", st->data_pool,
			      st->meta_pool);
	return 0;
}

int
format_read(struct rstore *st, char *err, size_t err_len)
{
	uint8_t bytes[STORE_FORMAT_BYTES];
	struct store_format_row *row = &st->gw.format;
	int e = format_row(st, POOL_META, bytes, row);

	if (e == -ENOENT || e == -ENODATA) {
		refuse(err, err_len, -EINVAL, "pool %s: no store", st->meta_pool);
		advice_add(err, err_len, ADVICE_NO_POOL_STORE, NULL);
		return -EINVAL;
	}
	if (e == -EPROTONOSUPPORT)
		return refuse(err, err_len, -EINVAL,
			      "pool %s: the store has format version %u, and this gantryd knows %u: "
			      "start a newer gantryd",
			      st->meta_pool, row->version, STORE_FORMAT_VERSION);
	if (e == -EBADMSG)
		return refuse(err, err_len, -ENOTRECOVERABLE, "pool %s: the store's description is damaged",
			      st->meta_pool);
	if (e < 0)
		return refuse(err, err_len, e, "pool %s: %s", st->meta_pool, strerror(-e));
	atomic_store(&st->gw.format_version, row->version);
	return check_data_pool(st, err, err_len);
}

/* ---- while a gateway runs ---- */

void
format_look(struct rstore *st)
{
	uint32_t was = atomic_load(&st->gw.format_version);
	uint8_t bytes[STORE_FORMAT_BYTES];
	struct store_format_row row;

	if (was == STORE_FORMAT_VERSION || format_row(st, POOL_META, bytes, &row) < 0 || row.version <= was)
		return;
	atomic_store(&st->gw.format_version, row.version);
	log_info("the pools have format version %u now, which was %u", row.version, was);
}

int
format_allows(struct rstore *st, uint32_t version)
{
	uint32_t have = atomic_load_explicit(&st->gw.format_version, memory_order_relaxed);
	char remedy[160];

	if (version <= have)
		return 0;
	advice_first(remedy, sizeof remedy, ADVICE_POOLS_OLD, NULL);
	log_limited(LOG_ERROR, "a change is refused: it needs format version %u, and the pools have %u; %s",
		    version, have, remedy);
	return -EOPNOTSUPP;
}
