/* SPDX-License-Identifier: Apache-2.0 */
/* Records, and the blocks with records, in the log and in snapshots; see rec_codec.h. */
#include "extent/log/rec_codec.h"

#include "base/cursor.h"
#include "extent/disk/rules.h"
#include "base/check.h"
#include "base/crc64.h"

#include <errno.h>
#include <string.h>

/* ---- maps ---- */

void
map_lay_out(void *image, const void *entries, uint32_t len, const struct geometry *g)
{
	uint32_t fill = map_unit_bytes(g), done = 0;

	memset(image, 0, map_image_bytes(g, len));
	for (uint8_t *unit = image; done < len; unit += g->unit_bytes, done += fill)
		memcpy(unit, (const uint8_t *)entries + done, len - done < fill ? len - done : fill);
}

void
map_take_in(void *entries, const void *image, uint32_t len, const struct geometry *g)
{
	uint32_t fill = map_unit_bytes(g), done = 0;

	for (const uint8_t *unit = image; done < len; unit += g->unit_bytes, done += fill)
		memmove((uint8_t *)entries + done, unit, len - done < fill ? len - done : fill);
}

/* ---- record ---- */

static size_t
own_entry_bytes(const struct rec_view *v)
{
	return v->flags & REC_MAPPED ? rec_map_bytes(v->flags, v->map.nr)
				     : v->entry_nr * rec_entry_bytes(v->body);
}

/* Moves the head, without the length of the record. */
static inline void
move_head(struct rec_view *r, uint8_t *p, bool puts)
{
#define DISK(at) at
#include "model/record.def"
}

/* Offsets in the head. */
enum {
#define DISK(at) at
#define HERE(name, type, at) AT_##name = at,
#include "model/record.def"
};

/* Returns the size of the optional fields after the head. */
static size_t
more_bytes(uint16_t flags)
{
	size_t n = 0;

#define DISK_MORE 0
#define HERE(name, bit, at) n += flags & (bit) ? sizeof(uint64_t) : 0;
#define OPTIONAL(name, flag, bit, kinds, places) FIELD_(name, bit, places)
#include "model/record.def"
	return n;
}

uint32_t
rec_version(uint16_t flags)
{
	uint32_t version = FMT_VERSION;

	(void)flags;
#define DISK_SINCE(v) v
#define HERE(name, bit, v)                                                                                   \
	if (flags & (bit) && version < (v))                                                                  \
		version = v;
#define OPTIONAL(name, flag, bit, kinds, places) FIELD_(name, bit, places)
#include "model/record.def"
	return version;
}

size_t
rec_encoded_bytes(const struct rec_view *v)
{
	size_t n = REC_HEAD_BYTES + more_bytes(v->flags) + own_entry_bytes(v);

#define BYTES(name, type, len, len_type, max, kinds, places) n += v->len;
#include "model/record.def"
	return align_up(n, 8);
}

/* Writes the head, the optional fields, the entries (8-byte aligned, because all lengths before them are),
 * the bytes of variable length, and zeros up to a multiple of 8. */
size_t
rec_encode(void *buf, const struct rec_view *v)
{
	size_t len = rec_encoded_bytes(v);
	struct cur c = cursor(buf, len);
	uint16_t flags = (uint16_t)(v->flags | (v->copies > 1 ? REC_COPIES : 0));

	put_u32(&c, (uint32_t)len);
	move_head((struct rec_view *)v, buf, true);
	memcpy((uint8_t *)buf + AT_flags, &flags, sizeof flags);
	memset((uint8_t *)buf + AT_copies + 1, 0, AT_data_version - AT_copies - 1);
	c.p = (uint8_t *)buf + REC_HEAD_BYTES;
#define DISK_MORE 0
#define HERE(name, bit, at)                                                                                  \
	if (v->flags & (bit))                                                                                \
		put_u64(&c, v->name);
#define OPTIONAL(name, flag, bit, kinds, places) FIELD_(name, bit, places)
#include "model/record.def"
	if (v->flags & REC_MAPPED) {
		bool is_list = v->flags & REC_MAP_LIST;

		check(is_list ? v->map.nr > 1 && v->map.nr <= FMT_MAP_EXT_MAX : v->map.nr == 1);
		put_u64(&c, is_list ? v->map.nr : v->map.ext[0]);
		put_u64(&c, v->map.len_bytes);
		put_u64(&c, v->map.crc64);
		if (is_list)
			put_bytes(&c, v->map.ext, v->map.nr * sizeof(uint64_t));
	} else {
		put_bytes(&c, v->entries, own_entry_bytes(v));
	}
#define BYTES(name, type, len, len_type, max, kinds, places) put_bytes(&c, v->name, v->len);
#include "model/record.def"
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
	if (v->body == BODY_PACKED) {
		uint64_t place = *(const uint64_t *)entries;

		return ext_unit(place) < geo_units(geo) && place_off(place) + v->size_bytes <= geo->unit_bytes
			       ? 0
			       : -EBADMSG;
	}
	if (v->body == BODY_MANIFEST || v->body == BODY_PARTS) {
		const struct chunk_ref *ch = entries;

		for (uint32_t i = 0; i < v->entry_nr; i++) {
			bool is_chunk = v->body == BODY_MANIFEST && ch[i].len_bytes &&
					ch[i].len_bytes <= FMT_CHUNK_BYTES;
			bool is_part = v->body == BODY_PARTS && ch[i].index >= 1 &&
				       ch[i].index <= STORE_PART_NR_MAX &&
				       ch[i].len_bytes <= PART_BYTES_MAX &&
				       (!i || ch[i].index > ch[i - 1].index);

			if (!(is_chunk || is_part) || ch[i].reserved)
				return -EBADMSG;
			sum += ch[i].len_bytes;
		}
		return sum == v->size_bytes ? 0 : -EBADMSG;
	}
	return -EBADMSG;
}

/* Returns true if a map is on the disk, and its extents have room for the list. */
static bool
map_ok(const struct map_ref *map, const struct geometry *geo)
{
	uint64_t units = 0;

	for (uint32_t i = 0; i < map->nr; i++) {
		if (!ext_ok(map->ext[i], geo))
			return false;
		units += ext_nr(map->ext[i]);
	}
	return units >= map_units(geo, map->len_bytes);
}

/* Decodes the location of a map. Returns false if it is impossible. */
static bool
take_map(struct cur *c, struct rec_view *v)
{
	const uint64_t *first = (const uint64_t *)(const void *)take(c, sizeof(uint64_t));
	uint64_t len = take_u64(c);

	v->map.crc64 = take_u64(c);
	if (c->bad || len > UINT32_MAX)
		return false;
	v->map.len_bytes = (uint32_t)len;
	v->map.ext = first;
	v->map.nr = 1;
	if (!(v->flags & REC_MAP_LIST))
		return true;
	if (*first < 2 || *first > FMT_MAP_EXT_MAX)
		return false;
	v->map.nr = (uint32_t)*first;
	v->map.ext = (const uint64_t *)(const void *)take(c, v->map.nr * sizeof(uint64_t));
	return !c->bad;
}

/* Checks the fields that depend on the kind of the body, except the entries. */
static bool
body_ok(const struct rec_view *v, const struct geometry *geo)
{
	bool mapped = v->flags & REC_MAPPED;

	if (v->op == REC_DELETE)
		return v->body == BODY_NONE && !v->flags && !v->size_bytes && !v->entry_nr &&
		       !v->inline_len && !v->attrs_len && !v->copies;
	if (v->body != BODY_INLINE && v->inline_len)
		return false;
	switch (v->body) {
	case BODY_NONE:
		return (v->key[0] == KEY_BUCKET || key_is_upload(v->key[0]) || v->key[0] == KEY_BATTRS) &&
		       v->entry_nr == 0 && !mapped && v->size_bytes == 0;
	case BODY_INLINE:
		return v->entry_nr == 0 && !mapped && v->inline_len == v->size_bytes &&
		       v->inline_len <= STORE_INLINE_MAX;
	case BODY_EXTENTS:
		if (v->size_bytes == 0 || v->size_bytes > FMT_CHUNK_BYTES)
			return false;
		break;
	case BODY_PACKED:
		/* Nothing is packed before its bytes are flushed. */
		if (!key_is_object(v->key[0]) || v->entry_nr != 1 || mapped || !(v->flags & REC_FLUSHED) ||
		    v->size_bytes == 0 || v->size_bytes > place_bytes_max(geo))
			return false;
		break;
	default: /* BODY_MANIFEST, BODY_PARTS */
		if (!key_is_object(v->key[0]) && (v->key[0] != KEY_PART || v->body == BODY_PARTS))
			return false;
		break;
	}
	if (v->entry_nr == 0 || v->entry_nr > FMT_MAP_ENTRY_MAX || (!mapped && v->entry_nr > FMT_ENTRY_MAX))
		return false;
	if (!mapped)
		return true;
	return v->map.len_bytes == v->entry_nr * rec_entry_bytes(v->body) && map_ok(&v->map, geo);
}

/* Compares the fields with the kinds of record that have them, and with their flags and limits. */
static bool
fields_ok(const struct rec_view *v, enum model_kind kind)
{
#define ANY (~0u)
#define IS(name) (1u << MODEL_##name)
#define DISK(at) at
#define FIELD(name, type, kinds, places) FIELD_(name, kinds, places)
#define HERE(name, kinds, at)                                                                                \
	if ((kinds) != ANY && !((kinds)&1u << kind) && !is_zero(&v->name, sizeof v->name))                   \
		return false;
#define OPTIONAL(name, flag, bit, kinds, places)                                                             \
	if (!(v->flags & (bit)) != !v->name || (v->name && (kinds) != ANY && !((kinds)&1u << kind)))         \
		return false;
#define BYTES(name, type, len, len_type, max, kinds, places)                                                 \
	if (v->len > (max) || (v->len && (kinds) != ANY && !((kinds)&1u << kind)))                           \
		return false;
#include "model/record.def"
	return true;
}

static bool
head_ok(const struct rec_view *v)
{
#define FLAG(name, bit) | (bit)
#define OPTIONAL(name, flag, bit, kinds, places) | (bit)
	static const unsigned known = 0
#include "model/record.def"
		;

	return v->op != 0 && v->op < REC_OP_NR && v->body < BODY_NR && v->copies <= REC_COPIES_MAX &&
	       !(v->flags & ~known) && !(v->flags & REC_COPIES) == (v->copies <= 1) &&
	       !(v->flags & REC_MAP_LIST && !(v->flags & REC_MAPPED)) && v->version != 0 &&
	       v->entry_nr <= FMT_MAP_ENTRY_MAX;
}

int
rec_decode(const void *buf, size_t len, const struct geometry *geo, struct rec_view *ret_view)
{
	struct cur c = cursor(buf, len);
	struct rec_view v;
	uint32_t total = take_u32(&c);
	struct disk_key parts;
	int kind;

	if (c.bad || total > len || total % 8 || total < REC_HEAD_BYTES || total > REC_BYTES_MAX)
		return -EBADMSG;
	move_head(&v, c.end = (uint8_t *)(uintptr_t)buf, false);
	if (!head_ok(&v) || !is_zero(c.end + AT_copies + 1, AT_data_version - AT_copies - 1))
		return -EBADMSG;
	v.flags &= (uint16_t)~REC_COPIES;
	c.p = c.end + REC_HEAD_BYTES;
	c.end += total;
#define DISK_MORE 0
#define HERE(name, bit, at) v.name = v.flags & (bit) ? take_u64(&c) : 0;
#define OPTIONAL(name, flag, bit, kinds, places) FIELD_(name, bit, places)
#include "model/record.def"
	v.map = (struct map_ref){ 0 };
	v.entries = NULL;
	if (v.flags & REC_MAPPED) {
		if (!take_map(&c, &v))
			return -EBADMSG;
	} else {
		v.entries = take(&c, v.entry_nr * rec_entry_bytes(v.body));
	}
#define BYTES(name, type, len, len_type, max, kinds, places) v.name = take(&c, v.len);
#include "model/record.def"
	if (c.bad || rec_encoded_bytes(&v) != total)
		return -EBADMSG;
	kind = disk_key_read(v.key, v.key_len, &parts);
	if (kind < 0 || !fields_ok(&v, (enum model_kind)kind) || !body_ok(&v, geo) ||
	    (v.owner_len && !key_ok(v.owner, v.owner_len)) || v.data_version >= v.version ||
	    (v.entries && v.entry_nr && rec_check_entries(&v, v.entries, geo) < 0))
		return -EBADMSG;
	*ret_view = v;
	return (int)total;
}

/* ---- log block ---- */

#define BLOCK_MAGIC 0x474f4c47u /* "GLOG" */

static uint64_t
block_crc(const void *buf, size_t len, const uint8_t nonce[16])
{
	return crc64_nvme_without(RULE_LOG_NONCE ? crc64_nvme(0, nonce, 16) : 0, buf, len,
				  offsetof(struct block_head, crc64));
}

void
block_seal(void *buf, struct block_head *h, const uint8_t nonce[16])
{
	check(h->len_bytes % FMT_ALIGN == 0 && h->used_bytes <= h->len_bytes &&
	      h->len_bytes <= FMT_BLOCK_MAX);
	h->magic = BLOCK_MAGIC;
	h->version = FMT_VERSION;
	memcpy(buf, h, sizeof *h);
	memset((uint8_t *)buf + h->used_bytes, 0, h->len_bytes - h->used_bytes);
	h->crc64 = block_crc(buf, h->len_bytes, nonce);
	memcpy(buf, h, sizeof *h);
}

bool
block_claims(const void *buf, struct block_head *ret_head)
{
	memcpy(ret_head, buf, sizeof *ret_head);
	return ret_head->magic == BLOCK_MAGIC;
}

uint32_t
block_peek(const void *buf)
{
	struct block_head h;

	return block_claims(buf, &h) && h.len_bytes % FMT_ALIGN == 0 && h.len_bytes <= FMT_BLOCK_MAX
		       ? h.len_bytes
		       : 0;
}

int
block_open(const void *buf, size_t len, const uint8_t nonce[16], struct block_head *ret_head)
{
	struct block_head h;

	if (len < FMT_ALIGN || !block_claims(buf, &h))
		return -ENOENT;
	if (h.len_bytes > len || h.len_bytes > FMT_BLOCK_MAX || h.len_bytes % FMT_ALIGN ||
	    h.used_bytes > h.len_bytes || h.used_bytes < BLOCK_HEAD_BYTES)
		return -EBADMSG;
	if (h.crc64 != block_crc(buf, h.len_bytes, nonce) || h.version < fmt_oldest ||
	    h.version > FMT_VERSION || h.zero || h.zeros[0] || h.zeros[1] || h.zeros[2] ||
	    h.flushed_upto > h.seq || (h.kind != BLOCK_RECORDS && h.kind != BLOCK_EPOCH))
		return -EBADMSG;
	*ret_head = h;
	return 0;
}

/* ---- snapshot block ---- */

#define SNAP_MAGIC 0x4e534c47u /* "GLSN" */

static uint64_t
snap_crc(const void *buf, size_t len)
{
	return crc64_nvme_without(0, buf, len, offsetof(struct snap_head, crc64));
}

void
snap_seal(void *buf, size_t len, struct snap_head *h)
{
	check(h->used_bytes >= SNAP_HEAD_BYTES && h->used_bytes <= len);
	h->magic = SNAP_MAGIC;
	h->version = FMT_VERSION;
	memcpy(buf, h, sizeof *h);
	memset((uint8_t *)buf + h->used_bytes, 0, len - h->used_bytes);
	h->crc64 = snap_crc(buf, len);
	memcpy(buf, h, sizeof *h);
}

int
snap_open(const void *buf, size_t len, struct snap_head *ret_head)
{
	struct snap_head h;

	if (len < SNAP_HEAD_BYTES)
		return -EBADMSG;
	memcpy(&h, buf, sizeof h);
	if (h.magic != SNAP_MAGIC || h.crc64 != snap_crc(buf, len) || h.version < fmt_oldest ||
	    h.version > FMT_VERSION || h.zero || h.used_bytes < SNAP_HEAD_BYTES || h.used_bytes > len)
		return -EBADMSG;
	if (h.older_nr > (h.used_bytes - SNAP_HEAD_BYTES) / SNAP_OLDER_BYTES || (h.older_nr && !h.older_id))
		return -EBADMSG;
	if (h.next_ext != SNAP_LAST &&
	    (h.next_bytes == 0 || h.next_bytes > FMT_BLOCK_MAX || h.next_bytes % FMT_ALIGN))
		return -EBADMSG;
	*ret_head = h;
	return 0;
}

uint64_t
snap_older(const void *buf, const struct snap_head *h, uint32_t i)
{
	uint64_t ext;

	memcpy(&ext, (const uint8_t *)buf + h->used_bytes - (size_t)(h->older_nr - i) * SNAP_OLDER_BYTES,
	       sizeof ext);
	return ext;
}
