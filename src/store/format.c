/* The on-disk formats, see format.h. */
#include "store/format.h"

#include "store/rules.h"
#include "base/check.h"
#include "base/crc64.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "entries of records are used as they lie on disk");

/* A cursor over a buffer: the only way anything here is written or read. */
struct cur {
	uint8_t *p, *end;
	bool bad; /* ran over the end */
};

static void
put_bytes(struct cur *c, const void *src, size_t n)
{
	check((size_t)(c->end - c->p) >= n);
	if (n)
		memcpy(c->p, src, n);
	c->p += n;
}

static void
put_u64(struct cur *c, uint64_t v)
{
	put_bytes(c, &v, 8);
}

static void
put_u32(struct cur *c, uint32_t v)
{
	put_bytes(c, &v, 4);
}

static void
put_u16(struct cur *c, uint16_t v)
{
	put_bytes(c, &v, 2);
}

static void
put_u8(struct cur *c, uint8_t v)
{
	put_bytes(c, &v, 1);
}

static void
put_zero_to(struct cur *c, const uint8_t *start, size_t align)
{
	static const uint8_t zero[8];
	size_t off = (size_t)(c->p - start);

	put_bytes(c, zero, align_up(off, align) - off);
}

/* n bytes in place, or NULL when they are not there (n 0: anything but NULL). */
static const uint8_t *
take(struct cur *c, size_t n)
{
	uint8_t *p = c->p;

	if (c->bad || (size_t)(c->end - c->p) < n) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	return p;
}

static void
take_bytes(struct cur *c, void *dst, size_t n)
{
	const uint8_t *p = take(c, n);

	if (p)
		memcpy(dst, p, n);
	else
		memset(dst, 0, n);
}

static uint64_t
take_u64(struct cur *c)
{
	uint64_t v;

	take_bytes(c, &v, 8);
	return v;
}

static uint32_t
take_u32(struct cur *c)
{
	uint32_t v;

	take_bytes(c, &v, 4);
	return v;
}

static uint16_t
take_u16(struct cur *c)
{
	uint16_t v;

	take_bytes(c, &v, 2);
	return v;
}

static uint8_t
take_u8(struct cur *c)
{
	uint8_t v;

	take_bytes(c, &v, 1);
	return v;
}

static struct cur
cursor(const void *buf, size_t len)
{
	return (struct cur){ (uint8_t *)(uintptr_t)buf, (uint8_t *)(uintptr_t)buf + len, false };
}

/* ---- keys ------------------------------------------------------------------------------------ */

int
key_bucket(uint8_t *buf, const char *name, size_t len)
{
	if (len > STORE_BUCKET_MAX)
		return -ENAMETOOLONG;
	if (len == 0 || memchr(name, 0, len))
		return -EINVAL;
	buf[0] = KEY_BUCKET;
	memcpy(buf + 1, name, len);
	return (int)len + 1;
}

int
key_object(uint8_t *buf, const struct store_key *k)
{
	if (k->bucket_len > STORE_BUCKET_MAX || k->key_len > STORE_KEY_MAX)
		return -ENAMETOOLONG;
	if (k->bucket_len == 0 || k->key_len == 0 || memchr(k->bucket, 0, k->bucket_len) ||
	    memchr(k->key, 0, k->key_len))
		return -EINVAL;
	buf[0] = KEY_OBJECT;
	memcpy(buf + 1, k->bucket, k->bucket_len);
	buf[1 + k->bucket_len] = 0;
	memcpy(buf + 2 + k->bucket_len, k->key, k->key_len);
	return 2 + k->bucket_len + k->key_len;
}

int
key_chunk(uint8_t *buf, const uint8_t *id, uint32_t index)
{
	buf[0] = KEY_CHUNK;
	memcpy(buf + 1, id, CHUNK_ID_BYTES);
	index = htobe32(index);
	memcpy(buf + 1 + CHUNK_ID_BYTES, &index, 4);
	return CHUNK_KEY_BYTES;
}

uint32_t
key_index(const uint8_t *chunk_key)
{
	uint32_t index;

	memcpy(&index, chunk_key + 1 + CHUNK_ID_BYTES, 4);
	return be32toh(index);
}

bool
key_ok(const uint8_t *key, size_t len)
{
	const uint8_t *nul;

	if (len < 2)
		return false;
	nul = memchr(key + 1, 0, len - 1);
	switch (key[0]) {
	case KEY_BUCKET:
		return len <= 1 + STORE_BUCKET_MAX && !nul;
	case KEY_OBJECT:
		if (!nul || nul == key + 1 || nul > key + 1 + STORE_BUCKET_MAX || nul == key + len - 1)
			return false;
		return (size_t)(key + len - nul - 1) <= STORE_KEY_MAX &&
		       !memchr(nul + 1, 0, (size_t)(key + len - nul - 1));
	case KEY_CHUNK:
		return len == CHUNK_KEY_BYTES;
	default:
		return false;
	}
}

void
key_text(char *text, size_t cap, const uint8_t *key, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	for (size_t i = len && key[0] != KEY_CHUNK ? 1 : 0; i < len && n + 4 < cap; i++) {
		uint8_t c = key[i];

		if (key[0] == KEY_CHUNK && i > 0) {
			text[n++] = digits[c >> 4];
			text[n++] = digits[c & 15];
		} else if (c == 0) {
			text[n++] = '/';
		} else {
			text[n++] = c >= 0x20 && c < 0x7f ? (char)c : '?';
		}
	}
	text[n] = 0;
}

/* ---- geometry -------------------------------------------------------------------------------- */

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
/* In front of the log on a device; a directory's files count the same, so that both hold as much. */
#define HEAD_BYTES MIB

int
geo_choose(uint64_t size_bytes, struct geometry *ret_geo)
{
	struct geometry g = { .size_bytes = size_bytes,
			      .unit_bytes = FMT_UNIT_BYTES,
			      .granule_bytes = STORE_GRANULE,
			      .chunk_bytes = FMT_CHUNK_BYTES };
	uint64_t least = size_bytes < 512 * MIB ? 4 * MIB : 16 * MIB;

	g.log_bytes = size_bytes / 32 / MIB * MIB;
	g.log_bytes = g.log_bytes < least ? least : g.log_bytes > 16 * GIB ? 16 * GIB : g.log_bytes;
	g.block_bytes = g.log_bytes / 32 < FMT_BLOCK_MAX ? (uint32_t)(g.log_bytes / 32) : FMT_BLOCK_MAX;
	/* At least eight segments where that is possible: giving space back, and making it, work by the
	 * segment. */
	for (g.seg_bytes = GIB; g.seg_bytes > 8 * MIB && size_bytes / g.seg_bytes < 8;)
		g.seg_bytes /= 2;
	if (size_bytes < HEAD_BYTES + g.log_bytes + g.seg_bytes)
		return -ENOSPC;
	if ((size_bytes - HEAD_BYTES - g.log_bytes) / g.seg_bytes > UINT32_MAX)
		return -ENOSPC;
	g.seg_nr = (uint32_t)((size_bytes - HEAD_BYTES - g.log_bytes) / g.seg_bytes);
	*ret_geo = g;
	return 0;
}

static bool
geo_ok(const struct geometry *g)
{
	uint64_t data;

	if (g->unit_bytes < FMT_UNIT_BYTES || g->unit_bytes > MIB || g->unit_bytes & (g->unit_bytes - 1))
		return false;
	if (g->granule_bytes != STORE_GRANULE || g->chunk_bytes != FMT_CHUNK_BYTES)
		return false;
	if (g->log_bytes < 4 * MIB || g->log_bytes > 16 * GIB || g->log_bytes % MIB)
		return false;
	if (g->block_bytes < 128u << 10 || g->block_bytes > FMT_BLOCK_MAX || g->block_bytes % FMT_ALIGN)
		return false;
	if (g->seg_bytes < 8 * MIB || g->seg_bytes > GIB || g->seg_bytes & (g->seg_bytes - 1) ||
	    g->seg_nr == 0)
		return false;
	if (g->size_bytes < HEAD_BYTES + g->log_bytes)
		return false;
	data = g->size_bytes - HEAD_BYTES - g->log_bytes;
	return data / g->seg_bytes >= g->seg_nr && geo_units(g) < (uint64_t)1 << 40;
}

static bool
ext_ok(uint64_t e, const struct geometry *g)
{
	return ext_nr(e) != 0 && ext_unit(e) < geo_units(g) && ext_nr(e) <= geo_units(g) - ext_unit(e);
}

/* ---- superblock ------------------------------------------------------------------------------ */

static const char super_magic[8] = "GANTRYSB";

static void
put_log_pos(struct cur *c, const struct log_pos *p)
{
	put_u64(c, p->seq);
	put_u64(c, p->lap);
	put_u64(c, p->pos);
	put_u64(c, p->prev_crc);
	put_u64(c, p->epoch);
	put_bytes(c, p->nonce, 16);
}

static void
take_log_pos(struct cur *c, struct log_pos *p)
{
	p->seq = take_u64(c);
	p->lap = take_u64(c);
	p->pos = take_u64(c);
	p->prev_crc = take_u64(c);
	p->epoch = take_u64(c);
	take_bytes(c, p->nonce, 16);
}

static void
put_snap_ref(struct cur *c, const struct snap_ref *s)
{
	put_u64(c, s->id);
	put_u64(c, s->head_ext);
	put_u64(c, s->head_bytes);
	put_u64(c, s->block_nr);
	put_u64(c, s->record_nr);
	put_u64(c, s->bytes);
	put_u64(c, s->crc64);
	put_u64(c, s->version_max);
	put_log_pos(c, &s->begin);
}

static void
take_snap_ref(struct cur *c, struct snap_ref *s)
{
	s->id = take_u64(c);
	s->head_ext = take_u64(c);
	s->head_bytes = (uint32_t)take_u64(c);
	s->block_nr = take_u64(c);
	s->record_nr = take_u64(c);
	s->bytes = take_u64(c);
	s->crc64 = take_u64(c);
	s->version_max = take_u64(c);
	take_log_pos(c, &s->begin);
}

/*
 * magic (8), version (4), kind (4), CRC64 of the whole copy with these 8 bytes zero, then the fields in the
 * order below.
 */
void
super_encode(void *buf, const struct super *sb)
{
	struct cur c = cursor(buf, FMT_SUPER_BYTES);
	uint64_t crc;

	memset(buf, 0, FMT_SUPER_BYTES);
	put_bytes(&c, super_magic, 8);
	put_u32(&c, FMT_VERSION);
	put_u32(&c, sb->kind);
	put_u64(&c, 0);
	put_u64(&c, sb->gen);
	put_bytes(&c, sb->store_uuid, 16);
	put_bytes(&c, sb->disk_uuid, 16);
	put_u64(&c, sb->geo.size_bytes);
	put_u64(&c, sb->geo.log_bytes);
	put_u64(&c, sb->geo.seg_bytes);
	put_u32(&c, sb->geo.seg_nr);
	put_u32(&c, sb->geo.unit_bytes);
	put_u32(&c, sb->geo.block_bytes);
	put_u32(&c, sb->geo.granule_bytes);
	put_u32(&c, sb->geo.chunk_bytes);
	put_u32(&c, 0);
	put_u64(&c, sb->epoch);
	put_bytes(&c, sb->nonce, 16);
	put_snap_ref(&c, &sb->snap[0]);
	put_snap_ref(&c, &sb->snap[1]);
	put_u64(&c, sb->table_version);
	put_u32(&c, sb->disk);
	put_u32(&c, sb->disk_nr);
	put_bytes(&c, sb->disk_uuids, sizeof sb->disk_uuids);
	put_bytes(&c, sb->disk_state, sizeof sb->disk_state);
	put_bytes(&c, sb->slot, sizeof sb->slot);
	crc = crc64_nvme(0, buf, FMT_SUPER_BYTES);
	memcpy((uint8_t *)buf + 16, &crc, 8);
}

static bool
log_pos_ok(const struct log_pos *p, const struct geometry *g)
{
	return p->pos % FMT_ALIGN == 0 && p->pos <= g->log_bytes && p->seq != 0;
}

static bool
super_ok(const struct super *sb)
{
	if (sb->kind != SUPER_DIRECTORY && sb->kind != SUPER_DEVICE)
		return false;
	if (!geo_ok(&sb->geo) || sb->disk_nr == 0 || sb->disk_nr > FMT_DISKS_MAX || sb->disk >= sb->disk_nr)
		return false;
	for (int i = 0; i < FMT_SLOT_NR; i++) {
		if (sb->slot[i] >= sb->disk_nr)
			return false;
	}
	for (int i = 0; i < 2; i++) {
		const struct snap_ref *s = &sb->snap[i];

		if (s->id == 0)
			continue;
		if (!log_pos_ok(&s->begin, &sb->geo) || s->head_bytes > FMT_BLOCK_MAX)
			return false;
		if (s->block_nr &&
		    (!ext_ok(s->head_ext, &sb->geo) || s->head_bytes == 0 || s->head_bytes % FMT_ALIGN ||
		     (uint64_t)ext_nr(s->head_ext) * sb->geo.unit_bytes < s->head_bytes))
			return false;
	}
	return sb->snap[0].id != 0;
}

int
super_decode(const void *buf, size_t len, struct super *ret_super)
{
	struct cur c = cursor(buf, len);
	struct super sb = { 0 };
	static const uint8_t zero8[8];
	uint32_t version;
	uint64_t crc, sum;

	if (len < FMT_SUPER_BYTES || memcmp(buf, super_magic, 8) != 0)
		return -ENOENT;
	take(&c, 8);
	version = take_u32(&c);
	sb.kind = take_u32(&c);
	crc = take_u64(&c);
	sum = crc64_nvme(0, buf, 16);
	sum = crc64_nvme(sum, zero8, 8);
	sum = crc64_nvme(sum, (const uint8_t *)buf + 24, FMT_SUPER_BYTES - 24);
	if (sum != crc)
		return -EBADMSG;
	if (version != FMT_VERSION)
		return -EPROTONOSUPPORT;
	sb.gen = take_u64(&c);
	take_bytes(&c, sb.store_uuid, 16);
	take_bytes(&c, sb.disk_uuid, 16);
	sb.geo.size_bytes = take_u64(&c);
	sb.geo.log_bytes = take_u64(&c);
	sb.geo.seg_bytes = take_u64(&c);
	sb.geo.seg_nr = take_u32(&c);
	sb.geo.unit_bytes = take_u32(&c);
	sb.geo.block_bytes = take_u32(&c);
	sb.geo.granule_bytes = take_u32(&c);
	sb.geo.chunk_bytes = take_u32(&c);
	take_u32(&c);
	sb.epoch = take_u64(&c);
	take_bytes(&c, sb.nonce, 16);
	take_snap_ref(&c, &sb.snap[0]);
	take_snap_ref(&c, &sb.snap[1]);
	sb.table_version = take_u64(&c);
	sb.disk = take_u32(&c);
	sb.disk_nr = take_u32(&c);
	take_bytes(&c, sb.disk_uuids, sizeof sb.disk_uuids);
	take_bytes(&c, sb.disk_state, sizeof sb.disk_state);
	take_bytes(&c, sb.slot, sizeof sb.slot);
	if (c.bad || !super_ok(&sb))
		return -EBADMSG;
	*ret_super = sb;
	return 0;
}

/* ---- record ---------------------------------------------------------------------------------- */

static size_t
own_entry_bytes(const struct rec_view *v)
{
	return v->flags & REC_MAPPED ? 24 : v->entry_nr * rec_entry_bytes(v->body);
}

size_t
rec_encoded_bytes(const struct rec_view *v)
{
	return align_up(REC_HEAD_BYTES + own_entry_bytes(v) + v->key_len + v->owner_len + v->sums_len +
				v->inline_len + v->attrs_len,
			8);
}

/* Head, entries (8-byte aligned: the head's length is), key, owner, checksums, inline bytes, attributes,
 * zeros up to 8. */
size_t
rec_encode(void *buf, const struct rec_view *v)
{
	size_t len = rec_encoded_bytes(v);
	struct cur c = cursor(buf, len);

	put_u32(&c, (uint32_t)len);
	put_u8(&c, v->op);
	put_u8(&c, v->body);
	put_u16(&c, v->flags);
	put_u16(&c, v->key_len);
	put_u16(&c, v->owner_len);
	put_u16(&c, v->sums_len);
	put_u16(&c, v->inline_len);
	put_u32(&c, v->attrs_len);
	put_u32(&c, v->entry_nr);
	put_u64(&c, v->version);
	put_u64(&c, v->size_bytes);
	put_u64(&c, v->mtime_ns);
	put_u64(&c, v->crc64);
	put_bytes(&c, v->etag.sum, 16);
	put_u32(&c, v->etag.parts);
	put_u32(&c, 0);
	put_u64(&c, 0);
	put_u64(&c, 0);
	check(c.p == (uint8_t *)buf + REC_HEAD_BYTES);
	if (v->flags & REC_MAPPED) {
		put_u64(&c, v->map.ext);
		put_u64(&c, v->map.len_bytes);
		put_u64(&c, v->map.crc64);
	} else {
		put_bytes(&c, v->entries, own_entry_bytes(v));
	}
	put_bytes(&c, v->key, v->key_len);
	put_bytes(&c, v->owner, v->owner_len);
	put_bytes(&c, v->sums, v->sums_len);
	put_bytes(&c, v->inline_data, v->inline_len);
	put_bytes(&c, v->attrs, v->attrs_len);
	put_zero_to(&c, buf, 8);
	check(c.p == c.end);
	return len;
}

int
rec_check_entries(const struct rec_view *v, const void *entries, const struct geometry *geo)
{
	uint64_t sum = 0;

	if (v->body == BODY_EXTENTS) {
		const uint64_t *ext = entries;

		for (uint32_t i = 0; i < v->entry_nr; i++) {
			if (!ext_ok(ext[i], geo))
				return -EBADMSG;
			sum += (uint64_t)ext_nr(ext[i]) * geo->unit_bytes;
		}
		return sum >= stored_bytes(v->size_bytes) ? 0 : -EBADMSG;
	}
	if (v->body == BODY_MANIFEST) {
		const struct chunk_ref *ch = entries;

		for (uint32_t i = 0; i < v->entry_nr; i++) {
			if (ch[i].len_bytes == 0 || ch[i].len_bytes > FMT_CHUNK_BYTES || ch[i].reserved)
				return -EBADMSG;
			sum += ch[i].len_bytes;
		}
		return sum == v->size_bytes ? 0 : -EBADMSG;
	}
	return -EBADMSG;
}

/* What the kinds of body allow, apart from the entries themselves. */
static bool
body_ok(const struct rec_view *v, const struct geometry *geo)
{
	bool mapped = v->flags & REC_MAPPED;

	if (v->op == REC_DELETE)
		return v->body == BODY_NONE && !v->flags && !v->size_bytes && !v->entry_nr &&
		       !v->inline_len && !v->attrs_len;
	if (v->body != BODY_INLINE && v->inline_len)
		return false;
	switch (v->body) {
	case BODY_NONE:
		return v->key[0] == KEY_BUCKET && v->entry_nr == 0 && !mapped && v->size_bytes == 0;
	case BODY_INLINE:
		return v->entry_nr == 0 && !mapped && v->inline_len == v->size_bytes &&
		       v->inline_len <= STORE_INLINE_MAX;
	case BODY_EXTENTS:
		if (v->size_bytes == 0 || v->size_bytes > FMT_CHUNK_BYTES)
			return false;
		break;
	default: /* BODY_MANIFEST */
		if (v->key[0] != KEY_OBJECT)
			return false;
		break;
	}
	if (v->entry_nr == 0 || v->entry_nr > FMT_MAP_ENTRY_MAX || (!mapped && v->entry_nr > FMT_ENTRY_MAX))
		return false;
	if (!mapped)
		return true;
	return v->map.len_bytes == v->entry_nr * rec_entry_bytes(v->body) && ext_ok(v->map.ext, geo) &&
	       (uint64_t)ext_nr(v->map.ext) * geo->unit_bytes >= v->map.len_bytes;
}

int
rec_decode(const void *buf, size_t len, const struct geometry *geo, struct rec_view *ret_view)
{
	struct cur c = cursor(buf, len);
	struct rec_view v = { 0 };
	uint32_t total = take_u32(&c);
	uint64_t reserved;

	if (c.bad || total > len || total % 8 || total < REC_HEAD_BYTES)
		return -EBADMSG;
	c.end = (uint8_t *)(uintptr_t)buf + total;
	v.op = take_u8(&c);
	v.body = take_u8(&c);
	v.flags = take_u16(&c);
	v.key_len = take_u16(&c);
	v.owner_len = take_u16(&c);
	v.sums_len = take_u16(&c);
	v.inline_len = take_u16(&c);
	v.attrs_len = take_u32(&c);
	v.entry_nr = take_u32(&c);
	v.version = take_u64(&c);
	v.size_bytes = take_u64(&c);
	v.mtime_ns = take_u64(&c);
	v.crc64 = take_u64(&c);
	take_bytes(&c, v.etag.sum, 16);
	v.etag.parts = take_u32(&c);
	reserved = take_u32(&c);
	for (int i = 0; i < 2; i++)
		reserved |= take_u64(&c);
	if (reserved || v.op == 0 || v.op >= REC_OP_NR || v.body >= BODY_NR ||
	    v.flags & ~(REC_FLUSHED | REC_MAPPED) || v.version == 0 || v.attrs_len > STORE_ATTRS_MAX ||
	    v.sums_len > REC_SUMS_MAX || v.inline_len > STORE_INLINE_MAX || v.entry_nr > FMT_MAP_ENTRY_MAX)
		return -EBADMSG;
	if (v.flags & REC_MAPPED) {
		uint64_t map_len;

		v.map.ext = take_u64(&c);
		map_len = take_u64(&c);
		v.map.crc64 = take_u64(&c);
		if (map_len > UINT32_MAX)
			return -EBADMSG;
		v.map.len_bytes = (uint32_t)map_len;
	} else {
		v.entries = take(&c, v.entry_nr * rec_entry_bytes(v.body));
	}
	v.key = take(&c, v.key_len);
	v.owner = take(&c, v.owner_len);
	v.sums = take(&c, v.sums_len);
	v.inline_data = take(&c, v.inline_len);
	v.attrs = take(&c, v.attrs_len);
	if (c.bad || rec_encoded_bytes(&v) != total || !key_ok(v.key, v.key_len) || !body_ok(&v, geo))
		return -EBADMSG;
	if (v.owner_len && (v.key[0] != KEY_CHUNK || !key_ok(v.owner, v.owner_len)))
		return -EBADMSG;
	if (v.entries && v.entry_nr && rec_check_entries(&v, v.entries, geo) < 0)
		return -EBADMSG;
	*ret_view = v;
	return (int)total;
}

/* ---- log block ------------------------------------------------------------------------------- */

#define BLOCK_MAGIC 0x474f4c47u /* "GLOG" */
#define BLOCK_CRC_OFF 120

static uint64_t
block_crc(const void *buf, size_t len, const uint8_t nonce[16])
{
	static const uint8_t zero8[8];
	uint64_t crc = RULE_LOG_NONCE ? crc64_nvme(0, nonce, 16) : 0;

	crc = crc64_nvme(crc, buf, BLOCK_CRC_OFF);
	crc = crc64_nvme(crc, zero8, 8);
	return crc64_nvme(crc, (const uint8_t *)buf + BLOCK_HEAD_BYTES, len - BLOCK_HEAD_BYTES);
}

void
block_seal(void *buf, struct block_head *h, const uint8_t nonce[16])
{
	struct cur c = cursor(buf, BLOCK_HEAD_BYTES);

	check(h->len_bytes % FMT_ALIGN == 0 && h->used_bytes <= h->len_bytes &&
	      h->len_bytes <= FMT_BLOCK_MAX);
	put_u32(&c, BLOCK_MAGIC);
	put_u16(&c, FMT_VERSION);
	put_u16(&c, (uint16_t)h->kind);
	put_u32(&c, h->len_bytes);
	put_u32(&c, h->used_bytes);
	put_u32(&c, h->record_nr);
	put_u32(&c, 0);
	put_u64(&c, h->epoch);
	put_u64(&c, h->seq);
	put_u64(&c, h->lap);
	put_u64(&c, h->pos);
	put_u64(&c, h->prev_crc);
	put_u64(&c, h->flushed_upto);
	put_u64(&c, h->new_epoch);
	put_bytes(&c, h->new_nonce, 16);
	put_u64(&c, 0);
	put_u64(&c, 0);
	put_u64(&c, 0);
	put_u64(&c, 0);
	check(c.p == (uint8_t *)buf + BLOCK_HEAD_BYTES);
	memset((uint8_t *)buf + h->used_bytes, 0, h->len_bytes - h->used_bytes);
	h->crc64 = block_crc(buf, h->len_bytes, nonce);
	memcpy((uint8_t *)buf + BLOCK_CRC_OFF, &h->crc64, 8);
}

uint32_t
block_peek(const void *buf)
{
	struct cur c = cursor(buf, FMT_ALIGN);
	uint32_t magic = take_u32(&c), len;

	take_u32(&c);
	len = take_u32(&c);
	return magic == BLOCK_MAGIC && len && len % FMT_ALIGN == 0 && len <= FMT_BLOCK_MAX ? len : 0;
}

uint64_t
block_epoch(const void *buf)
{
	struct cur c = cursor(buf, FMT_ALIGN);

	take(&c, 24);
	return take_u64(&c);
}

int
block_open(const void *buf, size_t len, const uint8_t nonce[16], struct block_head *ret_head)
{
	struct cur c = cursor(buf, len);
	struct block_head h;
	uint16_t version;
	uint64_t crc, zero;

	if (len < FMT_ALIGN || take_u32(&c) != BLOCK_MAGIC)
		return -ENOENT;
	version = take_u16(&c);
	h.kind = take_u16(&c);
	h.len_bytes = take_u32(&c);
	h.used_bytes = take_u32(&c);
	h.record_nr = take_u32(&c);
	zero = take_u32(&c);
	h.epoch = take_u64(&c);
	h.seq = take_u64(&c);
	h.lap = take_u64(&c);
	h.pos = take_u64(&c);
	h.prev_crc = take_u64(&c);
	h.flushed_upto = take_u64(&c);
	h.new_epoch = take_u64(&c);
	take_bytes(&c, h.new_nonce, 16);
	zero |= take_u64(&c);
	zero |= take_u64(&c);
	zero |= take_u64(&c);
	crc = take_u64(&c);
	if (h.len_bytes > len || h.len_bytes > FMT_BLOCK_MAX || h.len_bytes % FMT_ALIGN ||
	    h.used_bytes > h.len_bytes || h.used_bytes < BLOCK_HEAD_BYTES)
		return -EBADMSG;
	h.crc64 = block_crc(buf, h.len_bytes, nonce);
	if (h.crc64 != crc || version != FMT_VERSION || zero || h.flushed_upto > h.seq ||
	    (h.kind != BLOCK_RECORDS && h.kind != BLOCK_EPOCH))
		return -EBADMSG;
	*ret_head = h;
	return 0;
}

/* ---- snapshot block -------------------------------------------------------------------------- */

#define SNAP_MAGIC 0x4e534c47u /* "GLSN" */
#define SNAP_CRC_OFF 72

static uint64_t
snap_crc(const void *buf, size_t len)
{
	static const uint8_t zero8[8];
	uint64_t crc = crc64_nvme(0, buf, SNAP_CRC_OFF);

	crc = crc64_nvme(crc, zero8, 8);
	return crc64_nvme(crc, (const uint8_t *)buf + SNAP_HEAD_BYTES, len - SNAP_HEAD_BYTES);
}

void
snap_seal(void *buf, size_t len, struct snap_head *h)
{
	struct cur c = cursor(buf, SNAP_HEAD_BYTES);

	check(h->used_bytes >= SNAP_HEAD_BYTES && h->used_bytes <= len);
	put_u32(&c, SNAP_MAGIC);
	put_u32(&c, FMT_VERSION);
	put_bytes(&c, h->disk_uuid, 16);
	put_u64(&c, h->id);
	put_u32(&c, h->index);
	put_u32(&c, h->used_bytes);
	put_u32(&c, h->record_nr);
	put_u32(&c, h->next_bytes);
	put_u64(&c, h->next_ext);
	put_u64(&c, 0);
	put_u64(&c, 0);
	put_u64(&c, 0);
	check(c.p == (uint8_t *)buf + SNAP_HEAD_BYTES);
	memset((uint8_t *)buf + h->used_bytes, 0, len - h->used_bytes);
	h->crc64 = snap_crc(buf, len);
	memcpy((uint8_t *)buf + SNAP_CRC_OFF, &h->crc64, 8);
}

int
snap_open(const void *buf, size_t len, struct snap_head *ret_head)
{
	struct cur c = cursor(buf, len);
	struct snap_head h;
	uint32_t version;
	uint64_t crc, zero;

	if (len < SNAP_HEAD_BYTES || take_u32(&c) != SNAP_MAGIC)
		return -EBADMSG;
	version = take_u32(&c);
	take_bytes(&c, h.disk_uuid, 16);
	h.id = take_u64(&c);
	h.index = take_u32(&c);
	h.used_bytes = take_u32(&c);
	h.record_nr = take_u32(&c);
	h.next_bytes = take_u32(&c);
	h.next_ext = take_u64(&c);
	zero = take_u64(&c) | take_u64(&c);
	crc = take_u64(&c);
	h.crc64 = snap_crc(buf, len);
	if (h.crc64 != crc || version != FMT_VERSION || zero || h.used_bytes < SNAP_HEAD_BYTES ||
	    h.used_bytes > len)
		return -EBADMSG;
	if (h.next_ext != SNAP_LAST &&
	    (h.next_bytes == 0 || h.next_bytes > FMT_BLOCK_MAX || h.next_bytes % FMT_ALIGN))
		return -EBADMSG;
	*ret_head = h;
	return 0;
}
