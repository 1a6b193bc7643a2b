/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of the cluster in memory, and what one operation does to an object. */
#include "tests/fake/librados_int.h"

#include "base/check.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fake_pool fake_pools[FAKE_POOLS] = { { .name = "gantry.meta" }, { .name = "gantry.data" } };

char *
fake_copy(const char *bytes, size_t len)
{
	char *p = malloc(len + 1);

	check(p);
	if (len)
		memcpy(p, bytes, len);
	p[len] = 0;
	return p;
}

/* ---- sorted maps ---- */

static int
order(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t len = a_len < b_len ? a_len : b_len;
	int c = len ? memcmp(a, b, len) : 0;

	return c ? c : (a_len > b_len) - (a_len < b_len);
}

/* Returns the index of the first pair whose key is not less. */
static uint32_t
place(const struct pairs *p, const char *key, size_t len)
{
	uint32_t lo = 0, hi = p->nr;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (order(p->pair[mid].key, p->pair[mid].key_len, key, len) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct pair *
find(const struct pairs *p, const char *key, size_t len)
{
	uint32_t at = place(p, key, len);

	return at < p->nr && order(p->pair[at].key, p->pair[at].key_len, key, len) == 0 ? &p->pair[at] : NULL;
}

static void
insert(struct pairs *p, uint32_t at, const struct pair *from)
{
	if (p->nr == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 4;
		p->pair = realloc(p->pair, p->cap * sizeof *p->pair);
		check(p->pair);
	}
	memmove(p->pair + at + 1, p->pair + at, (p->nr - at) * sizeof *p->pair);
	p->nr++;
	p->pair[at] = (struct pair){ fake_copy(from->key, from->key_len), fake_copy(from->val, from->val_len),
				     from->key_len, from->val_len };
}

static void
set(struct pairs *p, const struct pair *from)
{
	struct pair *there = find(p, from->key, from->key_len);

	if (!there) {
		insert(p, place(p, from->key, from->key_len), from);
		return;
	}
	free(there->val);
	there->val = fake_copy(from->val, from->val_len);
	there->val_len = from->val_len;
}

static void
unset(struct pairs *p, const struct pair *which)
{
	struct pair *there = find(p, which->key, which->key_len);

	if (!there)
		return;
	free(there->key);
	free(there->val);
	p->nr--;
	memmove(there, there + 1, (size_t)(p->pair + p->nr - there) * sizeof *there);
}

void
fake_pairs_free(struct pairs *p)
{
	for (uint32_t i = 0; i < p->nr; i++) {
		free(p->pair[i].key);
		free(p->pair[i].val);
	}
	free(p->pair);
	*p = (struct pairs){ 0 };
}

/* ---- objects ---- */

static struct object **
object_place(struct fake_pool *pool, const char *ns, const char *name)
{
	struct object **link =
		&pool->hash[crc64_nvme(0, name, strlen(name)) % (sizeof pool->hash / sizeof *pool->hash)];

	while (*link && (strcmp((*link)->name, name) != 0 || strcmp((*link)->ns, ns) != 0))
		link = &(*link)->next;
	return link;
}

static struct object *
object_make(struct object **link, const char *ns, const char *name)
{
	if (!*link) {
		*link = calloc(1, sizeof **link);
		check(*link);
		(*link)->ns = fake_copy(ns, strlen(ns));
		(*link)->name = fake_copy(name, strlen(name));
	}
	return *link;
}

static void
object_drop(struct object **link)
{
	struct object *o = *link;

	if (!o)
		return;
	*link = o->next;
	fake_pairs_free(&o->xattrs);
	fake_pairs_free(&o->omap);
	free(o->name);
	free(o->ns);
	free(o->data);
	free(o);
}

void
fake_objects_drop(void)
{
	for (int i = 0; i < FAKE_POOLS; i++) {
		for (size_t h = 0; h < sizeof fake_pools[i].hash / sizeof *fake_pools[i].hash; h++) {
			while (fake_pools[i].hash[h])
				object_drop(&fake_pools[i].hash[h]);
		}
	}
}

bool
fake_raise(struct fake_pool *pool, const char *ns, const char *name)
{
	struct object *o = *object_place(pool, ns, name);
	struct pair *g = o ? find(&o->xattrs, "g", 1) : NULL;
	uint64_t generation;

	if (!g || g->val_len != sizeof generation)
		return false;
	memcpy(&generation, g->val, sizeof generation);
	generation++;
	memcpy(g->val, &generation, sizeof generation);
	return true;
}

/* ---- steps of an operation ---- */

struct step *
fake_step(struct operation *op, enum step_kind kind)
{
	if (op->nr == op->cap) {
		op->cap = op->cap ? 2 * op->cap : 4;
		op->step = realloc(op->step, op->cap * sizeof *op->step);
		check(op->step);
	}
	op->step[op->nr] = (struct step){ .kind = kind };
	return &op->step[op->nr++];
}

void
fake_step_pair(struct step *s, const char *key, size_t key_len, const char *val, size_t val_len)
{
	insert(&s->pairs, s->pairs.nr, &(struct pair){ (char *)key, (char *)val, key_len, val_len });
}

void
fake_operation_free(struct operation *op)
{
	for (uint32_t i = 0; i < op->nr; i++)
		fake_pairs_free(&op->step[i].pairs);
	free(op->step);
	*op = (struct operation){ 0 };
}

bool
fake_is_write(const struct operation *op)
{
	return op->nr && op->step[0].kind < STEP_READ;
}

bool
fake_compares_omap(const struct operation *op)
{
	for (uint32_t i = 0; i < op->nr; i++) {
		if (op->step[i].kind == STEP_CMP_OMAP)
			return true;
	}
	return false;
}

/* ---- writes ---- */

static bool
equals(const struct pairs *p, const struct pair *want)
{
	const struct pair *is = find(p, want->key, want->key_len);
	size_t len = is ? is->val_len : 0; /* a missing value is an empty one */

	return len == want->val_len && (len == 0 || memcmp(is->val, want->val, len) == 0);
}

static int
judge(const struct object *o, const struct step *s)
{
	switch (s->kind) {
	case STEP_CREATE:
		return o && s->exclusive ? -EEXIST : 0;
	case STEP_CMP_XATTR:
		return !o ? -ENOENT : equals(&o->xattrs, &s->pairs.pair[0]) ? 0 : -ECANCELED;
	case STEP_CMP_OMAP:
		return !o ? -ENOENT : equals(&o->omap, &s->pairs.pair[0]) ? 0 : -ECANCELED;
	case STEP_ASSERT_EXISTS:
	case STEP_REMOVE:
	case STEP_RM_OMAP:
		return o ? 0 : -ENOENT;
	default:
		return 0;
	}
}

static void
write_data(struct object *o, const struct step *s)
{
	const struct pair *bytes = &s->pairs.pair[0];
	size_t end = s->off + bytes->val_len;

	if (s->kind == STEP_WRITE_FULL || end > o->len) {
		o->data = realloc(o->data, end + 1);
		check(o->data);
		if (s->off > o->len)
			memset(o->data + o->len, 0, s->off - o->len);
		o->len = end;
	}
	memcpy(o->data + s->off, bytes->val, bytes->val_len);
}

static void
change(struct object *o, const struct step *s)
{
	switch (s->kind) {
	case STEP_SET_XATTR:
		set(&o->xattrs, &s->pairs.pair[0]);
		break;
	case STEP_SET_OMAP:
		for (uint32_t i = 0; i < s->pairs.nr; i++)
			set(&o->omap, &s->pairs.pair[i]);
		break;
	case STEP_RM_OMAP:
		for (uint32_t i = 0; i < s->pairs.nr; i++)
			unset(&o->omap, &s->pairs.pair[i]);
		break;
	case STEP_WRITE:
	case STEP_WRITE_FULL:
		write_data(o, s);
		break;
	default:
		break;
	}
}

/* A condition sees the object as it was before the operation, on an OSD too. */
static int
operate_write(struct fake_pool *pool, const char *ns, const char *name, const struct operation *op)
{
	struct object **link = object_place(pool, ns, name);
	bool is_created = false;

	for (uint32_t i = 0; i < op->nr; i++) {
		const struct step *s = &op->step[i];
		int e = is_created && (s->kind == STEP_REMOVE || s->kind == STEP_RM_OMAP) ? 0
											  : judge(*link, s);

		if (e < 0)
			return e;
		is_created |= s->kind == STEP_CREATE || s->kind >= STEP_SET_XATTR;
	}
	for (uint32_t i = 0; i < op->nr; i++) {
		const struct step *s = &op->step[i];

		if (s->kind == STEP_REMOVE)
			object_drop(link);
		else if (s->kind == STEP_CREATE || s->kind >= STEP_SET_XATTR)
			change(object_make(link, ns, name), s);
	}
	return 0;
}

/* ---- reads ---- */

static void
read_page(const struct object *o, const struct step *s, uint64_t page_max)
{
	const struct pair *after = &s->pairs.pair[0], *prefix = &s->pairs.pair[1];
	uint64_t max = page_max && s->ret_more && s->max > page_max ? page_max : s->max;
	uint32_t at = place(&o->omap, after->key, after->key_len),
		 first = place(&o->omap, prefix->key, prefix->key_len);
	bool more = false;

	if (at < o->omap.nr &&
	    order(o->omap.pair[at].key, o->omap.pair[at].key_len, after->key, after->key_len) == 0)
		at++;
	for (at = at > first ? at : first; at < o->omap.nr; at++) {
		const struct pair *p = &o->omap.pair[at];

		if (p->key_len < prefix->key_len || memcmp(p->key, prefix->key, prefix->key_len) != 0)
			break;
		more = s->iter->pairs.nr == max;
		if (more)
			break;
		insert(&s->iter->pairs, s->iter->pairs.nr, p);
	}
	if (s->ret_more)
		*s->ret_more = more;
}

static int
read_step(const struct object *o, const struct step *s, uint64_t page_max)
{
	const struct pair *p;
	size_t n;

	switch (s->kind) {
	case STEP_READ:
		n = s->off >= o->len ? 0 : o->len - s->off < s->cap ? o->len - s->off : s->cap;
		if (n)
			memcpy(s->buf, o->data + s->off, n);
		if (s->ret_len)
			*s->ret_len = n;
		return (int)n;
	case STEP_GET_XATTR:
		p = find(&o->xattrs, s->pairs.pair[0].key, s->pairs.pair[0].key_len);
		if (!p)
			return -ENODATA;
		if (p->val_len > s->cap)
			return -ERANGE;
		memcpy(s->buf, p->val, p->val_len);
		return (int)p->val_len;
	case STEP_GET_XATTRS:
		for (uint32_t i = 0; i < o->xattrs.nr; i++)
			insert(&s->iter->pairs, i, &o->xattrs.pair[i]);
		return 0;
	case STEP_GET_OMAP:
		read_page(o, s, page_max);
		return 0;
	case STEP_GET_OMAP_KEYS:
		for (uint32_t i = 0; i < s->pairs.nr; i++) {
			p = find(&o->omap, s->pairs.pair[i].key, s->pairs.pair[i].key_len);
			if (p && !find(&s->iter->pairs, p->key, p->key_len))
				set(&s->iter->pairs, p);
		}
		return 0;
	default: /* STEP_STAT */
		*s->ret_len = o->len;
		return 0;
	}
}

int
fake_operate(struct fake_pool *pool, const char *ns, const char *name, struct operation *op,
	     uint64_t page_max)
{
	const struct object *o;
	int e = 0;

	if (fake_is_write(op))
		return operate_write(pool, ns, name, op);
	o = *object_place(pool, ns, name);
	if (!o)
		return -ENOENT;
	for (uint32_t i = 0; i < op->nr; i++) {
		e = read_step(o, &op->step[i], page_max);
		if (op->step[i].ret_error)
			*op->step[i].ret_error = e < 0 ? e : 0;
	}
	/* The result of several reads is that of none of them. */
	return op->nr == 1 || e < 0 ? e : 0;
}
