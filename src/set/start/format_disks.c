/* SPDX-License-Identifier: Apache-2.0 */
/* Formats the disks of a new store of several disks; see start.h. */
#include "set/start/start.h"
#include "store/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

int
set_check_conf(const struct store_conf *conf, char *err, size_t err_len)
{
	int max = conf->disks.engines_max < STORE_DISKS_MAX ? conf->disks.engines_max : STORE_DISKS_MAX;

	if (conf->default_copies > 1 && conf->disks.nr + conf->disks.accept_missing_nr == 1) {
		snprintf(err, err_len,
			 "store.default_copies is %u, and one disk is configured: copies are on disks of "
			 "their own",
			 conf->default_copies);
		return -EINVAL;
	}
	if (conf->disks.nr >= 1 && conf->disks.nr <= max)
		return 0;
	if (conf->disks.nr < 1)
		snprintf(err, err_len, "no disk is configured");
	else
		snprintf(err, err_len, "%d disks are configured; a store may have %d", conf->disks.nr, max);
	return -EINVAL;
}

struct store_conf
set_engine_conf(const struct store_conf *conf, int i)
{
	struct store_conf c = *conf;

	c.ops = conf->disks.engine;
	c.disks.disk = &conf->disks.disk[i];
	c.disks.nr = 1;
	/* Members that only the record names are counted, too. */
	c.disks.beside =
		(conf->disks.record && conf->disks.record->nr > conf->disks.nr ? conf->disks.record->nr
									       : conf->disks.nr) -
		1;
	c.disks.index_bytes = conf->disks.index_bytes / (uint64_t)conf->disks.nr;
	return c;
}

/* ---- making ---- */

static int
format_all(const struct store_conf *conf, bool force, struct store_birth *birth,
	   uint64_t size[STORE_DISKS_MAX], char *err, size_t err_len)
{
	uint64_t total = 0;

	for (int i = 0; i < conf->disks.nr; i++)
		total += size[i];
	for (int i = 0; i < conf->disks.nr; i++) {
		struct store_conf c = set_engine_conf(conf, i);
		int e;

		birth->number = i;
		c.disks.birth = birth;
		if (!birth->is_look)
			c.disks.index_bytes = set_share_of(conf->disks.index_bytes, size[i], total);
		e = store_format(&c, force, err, err_len);
		if (e < 0)
			return e;
		size[i] = birth->size_bytes;
	}
	return 0;
}

/* Formats all disks. A first pass only checks them, so that every obstacle is reported before a disk is
 * written. */
int
set_format_disks(const struct store_conf *conf, bool force, char *err, size_t err_len)
{
	uint64_t size[STORE_DISKS_MAX] = { 0 };
	uint8_t uuid[STORE_DISKS_MAX][UUID_BYTES];
	struct store_birth birth = { .is_look = true };
	int e = set_check_conf(conf, err, err_len);

	if (e == 0)
		e = format_all(conf, force, &birth, size, err, err_len);
	if (e < 0)
		return e;
	birth.is_look = false;
	if (getrandom(birth.store_uuid, UUID_BYTES, 0) != UUID_BYTES ||
	    getrandom(uuid, sizeof uuid, 0) != (ssize_t)sizeof uuid) {
		snprintf(err, err_len, "no random numbers: %s", strerror(errno));
		return -EIO;
	}
	table_make(&birth.table, (const uint8_t(*)[UUID_BYTES])uuid, size, conf->disks.nr, 1);
	e = format_all(conf, force, &birth, size, err, err_len);
	if (e == 0 && conf->disks.made) {
		*conf->disks.made = (struct store_record){ .nr = 0 };
		memcpy(conf->disks.made->store_uuid, birth.store_uuid, UUID_BYTES);
		for (int i = 0; i < conf->disks.nr; i++)
			record_add(conf->disks.made, uuid[i], size[i], conf->disks.disk[i].path);
	}
	return e;
}
