/* SPDX-License-Identifier: Apache-2.0 */
/* What there is in the store, as anybody sees it, and who owns its space: see sim.h. */
#include "tests/sim/sim.h"

#include "base/check.h"

#include <string.h>

/* ---- everything, listed ---- */

struct listing {
	struct store_list ls;
	struct model *m;
	int bucket; /* -1: of buckets */
};

struct parts {
	struct store_part_list pl;
	struct model *m;
	uint32_t up;
};

static bool
same(const void *a, size_t len, const char *b)
{
	return len == strlen(b) && memcmp(a, b, len) == 0;
}

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	struct listing *l = container_of(ls, struct listing, ls);
	uint32_t id = model_id(&e->etag), attr;

	for (int b = 0; b < BUCKETS && l->bucket < 0; b++) {
		if (same(e->name, e->name_len, bucket_name(b))) {
			l->m->bucket[b] = true;
			return true;
		}
	}
	for (int k = 0; k < KEYS_MAX && l->bucket >= 0; k++) {
		if (!same(e->name, e->name_len, key_name(k)))
			continue;
		if (!id || ops[id].bucket != l->bucket || ops[id].key != k || ops[id].size != e->size_bytes)
			sim_fail("bucket %d key %d holds what nobody wrote there (id %u, %llu bytes)",
				 l->bucket, k, id, (unsigned long long)e->size_bytes);
		if (e->expires_ns != sim_expiry(id))
			sim_fail("bucket %d key %d has another expiry than op %u gave", l->bucket, k, id);
		attr = model_attrs_id(e->attrs, e->attrs_len);
		if (attr &&
		    (ops[attr].kind != OP_ATTRS || ops[attr].bucket != l->bucket || ops[attr].key != k))
			sim_fail("bucket %d key %d has attributes that nobody set there (op %u)", l->bucket,
				 k, attr);
		model_version_seen(attr ? attr : id, e->version);
		l->m->attr[l->bucket][k] = attr;
		l->m->id[l->bucket][k] = id;
		return true;
	}
	sim_fail("a name nobody made: %.*s", (int)e->name_len, e->name);
}

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	struct parts *ps = container_of(pl, struct parts, pl);
	uint32_t id = model_id(&part->etag);

	if (!id || ops[id].kind != OP_PART || ops[id].create != ps->up ||
	    ops[id].number != (int)part->number || ops[id].size != part->size_bytes)
		sim_fail("part %u of upload %u is what nobody put there (id %u)", part->number, ps->up, id);
	model_version_seen(id, part->version);
	ps->m->part[ops[ps->up].slot][part->number - 1] = id;
	return true;
}

static bool
on_upload(struct store_list *ls, const struct store_entry *e)
{
	struct listing *l = container_of(ls, struct listing, ls);
	uint32_t up = model_upload_of(e->upload_id);

	if (ops[up].bucket != l->bucket || !same(e->name, e->name_len, key_name(ops[up].key)) ||
	    l->m->up[ops[up].slot])
		sim_fail("upload %u is where nobody made it", up);
	model_version_seen(up, e->version);
	l->m->up[ops[up].slot] = up;
	return true;
}

static void
list_parts(struct store_port *p, struct model *m, uint32_t up)
{
	static struct parts ps;
	const struct sim_op *o = &ops[up];
	struct store_key k = { .bucket = bucket_name(o->bucket),
			       .key = key_name(o->key),
			       .bucket_len = (uint16_t)strlen(bucket_name(o->bucket)),
			       .key_len = (uint16_t)strlen(key_name(o->key)) };

	ps.m = m;
	ps.up = up;
	ps.pl = (struct store_part_list){ .max = 100, .part = on_part };
	if (store_list_parts(p, &k, o->uid, &ps.pl) != 1 || ps.pl.op.result < 0 || ps.pl.more)
		sim_fail("listing the parts of upload %u: %d", up, ps.pl.op.result);
}

/* Attributes and uploads of a bucket. */
static void
list_more(struct store_port *p, struct model *m, struct listing *l, int b)
{
	const char *name = bucket_name(b);
	char attrs[512];
	struct store_stat st;
	uint32_t len;

	if (store_bucket_get_attrs(p, name, strlen(name), attrs, sizeof attrs, &st) != 1 ||
	    st.op.result < 0 || (st.attrs_len == 0) != (st.version == 0))
		sim_fail("attributes of bucket %d: %d", b, st.op.result);
	len = st.attrs_len;
	m->battr[b] = len ? model_attrs_id(attrs, len) : 0;
	if (len && (!m->battr[b] || ops[m->battr[b]].kind != OP_BATTRS || ops[m->battr[b]].bucket != b))
		sim_fail("bucket %d has attributes that nobody set there", b);
	if (len)
		model_version_seen(m->battr[b], st.version);
	l->ls.entry = on_upload;
	l->ls.more = false;
	if (store_list_uploads(p, &l->ls) != 1 || l->ls.op.result < 0 || l->ls.more)
		sim_fail("listing the uploads of bucket %d: %d", b, l->ls.op.result);
}

void
model_list(struct store_port *p, struct model *ret)
{
	static struct listing l;

	memset(ret, 0, sizeof *ret);
	for (int b = -1; b < BUCKETS; b++) {
		if (b >= 0 && !ret->bucket[b])
			continue;
		l.bucket = b;
		l.m = ret;
		l.ls = (struct store_list){ .bucket = b < 0 ? NULL : bucket_name(b),
					    .bucket_len = b < 0 ? 0 : (uint16_t)strlen(bucket_name(b)),
					    .max = 1000,
					    .entry = on_entry };
		if (store_list(p, &l.ls) != 1 || l.ls.op.result < 0 || l.ls.more)
			sim_fail("listing %d: %d", b, l.ls.op.result);
		if (b >= 0)
			list_more(p, ret, &l, b);
	}
	for (int s = 0; s < UPS_MAX; s++) {
		if (ret->up[s])
			list_parts(p, ret, ret->up[s]);
	}
}

/* ---- space ---- */

struct space {
	uint8_t used[SEGS_MAX * 64];
	uint8_t steps[SEGS_MAX * 64][FMT_UNIT_BYTES / PLACE_STEP]; /* of units that objects share */
	uint32_t steps_nr[SEGS_MAX * 64];
	uint64_t nr;
	uint64_t chunks, named;      /* that there are; that manifests name */
	uint64_t parts, parts_named; /* the same of parts; those of an upload are its own */
	uint64_t leftovers;          /* of buckets that are gone */
	const struct vol *vol;
};

static void
take(struct space *s, uint64_t unit, uint32_t nr, const char *what)
{
	for (uint64_t u = unit; u < unit + nr; u++) {
		if (u >= sizeof s->used || s->used[u]++)
			sim_fail("unit %llu of %s is named twice, or beyond the disk", (unsigned long long)u,
				 what);
	}
	s->nr += nr;
}

/* Side by side with others: each has its own steps of the unit, and the unit is named by all of them. */
static void
take_place(struct space *s, uint64_t place, uint64_t size)
{
	uint64_t unit = ext_unit(place);

	if (unit >= sizeof s->used)
		sim_fail("place %llx is beyond the disk", (unsigned long long)place);
	if (!s->steps_nr[unit])
		take(s, unit, 1, "small objects");
	for (uint32_t i = ext_nr(place); i < ext_nr(place) + place_steps(size); i++) {
		if (i >= FMT_UNIT_BYTES / PLACE_STEP || s->steps[unit][i]++)
			sim_fail("step %u of unit %llu is named twice, or beyond it", i,
				 (unsigned long long)unit);
		s->steps_nr[unit]++;
	}
	counts.packed++;
}

/* What is counted is what records name. */
static void
places_agree(const struct space *s, const char *when)
{
	uint64_t units = 0;

	for (uint64_t u = 0; u < geo_units(&s->vol->disk.geo); u++) {
		units += s->steps_nr[u] != 0;
		if (pack_steps(s->vol, u) != s->steps_nr[u])
			sim_fail("%s: unit %llu has %u steps in use, records name %u", when,
				 (unsigned long long)u, pack_steps(s->vol, u), s->steps_nr[u]);
	}
	if (atomic_load(&s->vol->packs.unit_nr) != units)
		sim_fail("%s: %llu units are shared, not %llu", when, (unsigned long long)units,
			 (unsigned long long)atomic_load(&s->vol->packs.unit_nr));
}

static int
on_record(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	struct space *s = cookie;
	const uint64_t *ext = rec_entries(r);
	struct map_ref map;

	if (rec_version(r->flags) > FMT_VERSION && rec_version(r->flags) > s->vol->disk.sb.records_version)
		sim_fail("a record needs version %u of the superblocks, which have %u", rec_version(r->flags),
			 s->vol->disk.sb.records_version);
	for (uint32_t i = 0; r->body == BODY_EXTENTS && i < r->entry_nr; i++)
		take(cookie, ext_unit(ext[i]), ext_nr(ext[i]), key[0] == KEY_CHUNK ? "a chunk" : "an object");
	if (r->body == BODY_PACKED)
		take_place(s, ext[0], r->size_bytes);
	s->chunks += key[0] == KEY_CHUNK;
	if (r->body == BODY_MANIFEST)
		s->named += r->entry_nr;
	if (r->body == BODY_PARTS)
		s->parts_named += r->entry_nr;
	if (key[0] == KEY_PART) {
		s->parts++;
		s->parts_named += tree_find(s->vol->tree, rec_owner(r), r->owner_len) != NULL;
	}
	if (key_is_upload(key[0]) || key[0] == KEY_BATTRS) {
		size_t n = (size_t)((const uint8_t *)memchr(key, 0, len) - key);
		uint8_t bucket[1 + STORE_BUCKET_MAX];
		const struct rec *b;

		memcpy(bucket, key, n);
		bucket[0] = KEY_BUCKET;
		b = tree_find(s->vol->tree, bucket, n);
		s->leftovers += !b || b->version > r->version;
	}
	if (!rec_map(r, &map))
		return 0;
	counts.maps++;
	counts.map_lists += map.nr > 1;
	for (uint32_t i = 0; i < map.nr; i++)
		take(cookie, ext_unit(map.ext[i]), ext_nr(map.ext[i]), "a map");
	return 0;
}

void
model_space(struct store *st, const char *when, bool at_rest)
{
	struct vol *vol = extent_store(st)->vol;
	static struct space s;
	struct alloc_stats as;

	memset(&s, 0, sizeof s);
	s.vol = vol;
	each_record(vol, 0, on_record, &s);
	for (int i = 0; i < 2; i++) {
		for (uint32_t j = 0; j < vol->snap.space[i].nr; j++)
			take(&s, ext_unit(vol->snap.space[i].ext[j]), ext_nr(vol->snap.space[i].ext[j]),
			     "a snapshot");
	}
	/* A repair may have dropped some. */
	if (!model_damaged && !model_lost_map && (s.named > s.chunks || (at_rest && s.named != s.chunks)))
		sim_fail("%s: there are %llu chunks, manifests name %llu", when, (unsigned long long)s.chunks,
			 (unsigned long long)s.named);
	if ((!model_lost_map && (s.parts_named > s.parts || (at_rest && s.parts_named != s.parts))) ||
	    (at_rest && s.leftovers))
		sim_fail("%s: there are %llu parts, objects and uploads have %llu; %llu records are left of "
			 "buckets",
			 when, (unsigned long long)s.parts, (unsigned long long)s.parts_named,
			 (unsigned long long)s.leftovers);
	places_agree(&s, when);
	alloc_stats(vol->disk.alloc, &as);
	if (as.free + as.leased + s.nr != as.units)
		sim_fail("%s: %llu units, %llu free, %llu leased, but records and snapshots name %llu", when,
			 (unsigned long long)as.units, (unsigned long long)as.free,
			 (unsigned long long)as.leased, (unsigned long long)s.nr);
}

/* ---- which files have what ---- */

static uint32_t
segs_of(const struct vol *vol, const uint64_t *ext, uint32_t nr)
{
	uint64_t per_seg = geo_seg_units(&vol->disk.geo);
	uint32_t segs = 0;

	for (uint32_t i = 0; i < nr; i++)
		segs |= 1u << ext_unit(ext[i]) / per_seg;
	return segs;
}

uint32_t
sim_segs_of(const struct vol *vol, const uint8_t *key, size_t len, const struct rec *r, uint32_t *maps)
{
	const struct chunk_ref *ch = rec_entries(r);
	struct rec_view v;
	uint32_t segs = 0;

	rec_view_of(r, key, len, &v);
	if (v.flags & REC_MAPPED)
		*maps |= segs_of(vol, v.map.ext, v.map.nr);
	if (r->body == BODY_EXTENTS || r->body == BODY_PACKED)
		segs |= segs_of(vol, rec_entries(r), r->body == BODY_PACKED ? 1 : r->entry_nr);
	for (uint32_t i = 0; (r->body == BODY_MANIFEST || r->body == BODY_PARTS) && i < r->entry_nr; i++) {
		uint8_t part[CHUNK_KEY_BYTES];
		const struct rec *p;

		key_chunk(part, ch[i].id, ch[i].index);
		if (r->body == BODY_PARTS)
			part[0] = KEY_PART;
		p = tree_find(vol->tree, part, sizeof part);
		if (p)
			segs |= sim_segs_of(vol, part, sizeof part, p, maps);
	}
	return segs | *maps;
}

struct places {
	const struct vol *vol;
	uint32_t segs;
};

static int
on_placed(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	struct places *pl = cookie;
	uint32_t maps = 0, segs = sim_segs_of(pl->vol, key, len, r, &maps);
	struct rec_view v;

	pl->segs |= segs;
	rec_view_of(r, key, len, &v);
	if (key_is_object(key[0]) || key[0] == KEY_PART)
		ops[model_id(&v.etag)].segs = segs;
	if (key_is_object(key[0]) || key[0] == KEY_PART)
		ops[model_id(&v.etag)].map_segs = maps;
	return 0;
}

uint32_t
model_places(const struct vol *vol)
{
	struct places pl = { .vol = vol };

	each_record((struct vol *)(uintptr_t)vol, 0, on_placed, &pl);
	return pl.segs;
}

static unsigned
lose(uint32_t id, uint32_t segs)
{
	bool is = id && ops[id].segs & segs;

	ops[id].is_lost |= is;
	ops[id].may_be_dropped = is && ops[id].map_segs & segs;
	model_lost_map |= ops[id].may_be_dropped;
	return is;
}

unsigned
model_lose(uint32_t segs)
{
	unsigned nr = 0;

	for (int b = 0; b < BUCKETS; b++) {
		for (int k = 0; k < KEYS_MAX; k++)
			nr += lose(model.id[b][k], segs);
	}
	for (int s = 0; s < UPS_MAX; s++) {
		for (int i = 0; i < PARTS_MAX; i++)
			nr += lose(model.part[s][i], segs);
	}
	return nr;
}

bool
model_is_lost(uint32_t id)
{
	bool is = ops[id].is_lost;

	for (int i = 0; ops[id].kind == OP_COMPLETE && i < PARTS_MAX; i++)
		is |= ops[ops[id].part[i]].is_lost;
	return is;
}

/* ---- quotas ---- */

struct recount {
	struct vol *vol;
	struct quota_book *book;
	bool buckets;
};

static int
on_counted(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	struct recount *rc = cookie;

	return rc->buckets == (key[0] == KEY_BUCKET) ? usage_start(rc->vol, rc->book, key, len, r) : 0;
}

int
model_recount(struct vol *vol, struct quota_book *book)
{
	int e = each_record(vol, 0, on_counted, &(struct recount){ vol, book, true });

	return e < 0 ? e : each_record(vol, 0, on_counted, &(struct recount){ vol, book, false });
}
