/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of a transaction, and the garbage of a change. */
#include "rados/io/txn.h"

#include "base/check.h"
#include "base/clock.h"
#include "rados/io/array.h"
#include "rados/io/format.h"
#include "rados/io/rstore.h"

#include <errno.h>
#include <string.h>

void
txn_set_owner(rados_write_op_t op, const struct txn *t)
{
	char owner[STORE_BUCKET_MAX + 1 + STORE_KEY_MAX];

	memcpy(owner, t->bucket, t->bucket_len);
	owner[t->bucket_len] = 0;
	memcpy(owner + t->bucket_len + 1, t->object, t->object_len);
	rados_write_op_setxattr(op, XATTR_OWNER, owner, (size_t)t->bucket_len + 1 + t->object_len);
}

int
txn_add_key(struct txn *t, const char *key, size_t len)
{
	struct txn_key *k = &t->key[t->key_nr];

	check(t->key_nr < TXN_KEYS && len > 0 && len < OMAP_KEY_MAX);
	k->key = strndup(key, len);
	if (!k->key)
		return -ENOMEM;
	k->len = (uint16_t)len;
	t->key_nr++;
	return 0;
}

void
txn_more_free(struct txn *t)
{
	for (uint32_t i = 0; i < t->more_nr; i++) {
		free(t->more[i].key);
		free(t->more[i].set.p);
	}
	t->more_nr = 0;
}

void *
txn_set(struct txn *t, int key, size_t len)
{
	check(key >= 0 && key < t->key_nr && len > 0);
	bytes_free(&t->key[key].set);
	t->result = bytes_new(&t->key[key].set, len) ? 0 : -ENOMEM;
	t->key[key].fate = FATE_SET;
	return t->key[key].set.p;
}

void
txn_remove(struct txn *t, int key)
{
	check(key >= 0 && key < t->key_nr);
	bytes_free(&t->key[key].set);
	t->key[key].fate = FATE_REMOVE;
}

int
txn_more(struct txn *t, const char *key, size_t len, struct bytes value)
{
	struct txn_more *m = room_for_one(t->more, t->more_nr, &t->more_cap, sizeof *m);

	if (m) {
		t->more = m;
		m += t->more_nr;
	}
	if (!m || !(m->key = strndup(key, len))) {
		free(value.p);
		return -ENOMEM;
	}
	m->len = (uint16_t)len;
	m->set = value;
	t->more_nr++;
	return 0;
}

int
txn_garbage_data(struct txn *t, const struct garbage_data *data, uint32_t nr, const struct rid *map)
{
	char key[OMAP_KEY_MAX];
	struct bytes value;
	struct rid id;
	int e;

	if (nr == 0 && !map)
		return 0;
	e = gateway_id(t->port->st, &id);
	if (e < 0)
		return e;
	/* Only the name is needed. */
	gateway_id_over(t->port->st, id);
	if (!bytes_new(&value, garbage_bytes(nr)))
		return -ENOMEM;
	garbage_encode(value.p, data, nr, map);
	return txn_more(t, key, key_garbage(key, t->epoch, id), value);
}

int
txn_garbage(struct txn *t, const struct record *old)
{
	struct garbage_data one = { old->data, old->size_bytes }, *data;
	struct cur list = cursor(old->parts, old->parts_len);
	struct record part = { 0 };
	uint32_t nr = 0;
	int e = 1;

	switch (old->kind) {
	case REC_INLINE:
		return 0;
	case REC_DATA:
		return txn_garbage_data(t, &one, 1, NULL);
	case REC_MAP:
		return txn_garbage_data(t, NULL, 0, &old->data);
	case REC_PARTS:
		break;
	}
	data = calloc(old->part_nr, sizeof *data);
	if (!data)
		return -ENOMEM;
	for (uint32_t i = 0; e > 0 && i < old->part_nr; i++) {
		e = part_next(&list, &part);
		if (e > 0 && part.kind == REC_DATA)
			data[nr++] = (struct garbage_data){ part.data, part.size_bytes };
	}
	e = e > 0 && list.p == list.end ? txn_garbage_data(t, data, nr, NULL) : -EBADMSG;
	free(data);
	return e;
}

enum txn_say
txn_set_record(struct txn *t, int key, const struct record *new)
{
	void *value;

	t->result = format_allows(t->port->st, record_version(new));
	value = t->result < 0 ? NULL : txn_set(t, key, record_bytes(new));
	if (!value)
		return TXN_OVER;
	record_encode(value, new);
	return TXN_COMMIT;
}

enum txn_say
txn_put_record(struct txn *t, int key, struct record *new, const struct store_meta *meta,
	       const struct record *old)
{
	record_take(new, meta);
	if (!new->mtime_ns)
		new->mtime_ns = clock_wall_ns();
	new->version = next_version(old ? old->version : 0);
	t->result = 0;
	if (old) {
		new->replaced = old->id;
		t->result = txn_garbage(t, old);
	}
	return t->result < 0 ? TXN_OVER : txn_set_record(t, key, new);
}

void
txn_fini(struct txn *t)
{
	for (int i = 0; i < t->key_nr; i++) {
		free(t->key[i].key);
		free(t->key[i].old.p);
		free(t->key[i].set.p);
	}
	txn_more_free(t);
	free(t->more);
	rbucket_release(t->rb);
}
