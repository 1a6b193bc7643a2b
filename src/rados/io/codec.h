/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec - the format of the omaps of the meta pool: keys and values.
 *
 * Pure functions; any thread. Integers are little endian. Every value ends with the CRC64-NVME of the bytes
 * before the CRC. Decoders accept hostile bytes: they return -EBADMSG, never read outside their buffer, and
 * return pointers into the buffer. docs/rados.md describes the layout.
 *
 * Keys have no NUL, because librados takes the key at which a page begins as a string.
 */
#ifndef GANTRY_RADOS_IO_CODEC_H
#define GANTRY_RADOS_IO_CODEC_H

#include "base/cursor.h"
#include "model/decide.h"
#include "model/key.h"
#include "model/quota.h"

#include <stdbool.h>

/* ---- ids: codec_key.c ---- */

static inline bool
rid_same(struct rid a, struct rid b)
{
	return a.instance == b.instance && a.counter == b.counter;
}

/* A short text: the name of an object, the key of a row, or an id. */
struct label {
	char text[2 + STORE_BUCKET_MAX];
};

struct label rid_text(struct rid id);
/* Returns the name of the n-th data object of an id. */
struct label data_name(struct rid id, uint32_t n);
/* Returns the name of the map of an object: the object of the meta pool with the list of its parts. */
struct label map_name(struct rid id);
/* Returns the name of the n-th shard of a bucket. */
struct label shard_name(struct rid uid, uint32_t n);

/* ---- keys: codec_key.c ---- */

#define OMAP_KEY_MAX RADOS_KEY_MAX

/* Returns the key of a bucket's row in the table of buckets. kind: 'b': the bucket; 'a': its attributes;
 * 'q': its quota. */
struct label table_key(char kind, const char *name, size_t len);
/* Returns the key of a removed bucket in the table of buckets. */
struct label doomed_key(struct rid uid);
/* Returns the key of a gateway's row in the table of gateways. kind: 'i': the row; 'a': the addresses of its connections;
 * 'x': the row of a dead gateway. */
struct label gateway_key(char kind, uint32_t instance);

/* Kinds of keys: the first byte. model/record.def describes the keys. */
enum key_kind {
#define RADOS_KEY(name, type, kind, parts) KEY_##name = type,
#include "model/record.def"
};

/* Writes the key of an object's record, followed by a NUL, and returns its length without the NUL; the
 * next functions write other keys in the same way. */
size_t key_object(char out[OMAP_KEY_MAX], const char *key, size_t len);
size_t key_upload(char out[OMAP_KEY_MAX], const char *key, size_t len, const uint8_t *id);
size_t key_part(char out[OMAP_KEY_MAX], const uint8_t *id, uint32_t number);
size_t key_garbage(char out[OMAP_KEY_MAX], uint64_t epoch, struct rid id);
struct label key_counter(uint32_t instance);
/* Returns the instance number in the key of a counter; UINT32_MAX: another key. */
uint32_t key_counter_instance(const char *k, size_t len);
/* Writes the common prefix of the keys of all uploads whose names begin with `key`. Returns its length. */
size_t key_upload_prefix(char out[OMAP_KEY_MAX], const char *key, size_t len);
/* Decodes the key of an upload; `key` has room for STORE_KEY_MAX bytes. Returns 0 or -EBADMSG. */
int key_upload_decode(const char *k, size_t k_len, char *key, uint16_t *ret_len,
		      uint8_t id[STORE_UPLOAD_ID_BYTES]);
/* Returns the number in the key of a part; 0: another key. */
uint32_t key_part_number(const char *k, size_t len);
/* Decodes the epoch in a garbage key. Returns 0 or -EBADMSG. */
int key_garbage_decode(const char *k, size_t len, uint64_t *ret_epoch);

/* ---- records of objects and of parts: codec_record.c ---- */

enum rec_kind {
	REC_INLINE = 1, /* the content follows */
	REC_DATA,       /* data objects; if the data is one piece, the CRCs of its granules follow */
	REC_PARTS,      /* the list of parts follows */
	REC_MAP,        /* the list of parts is in a map, an object of the meta pool */
};
#define REC_CRCS_MAX (STORE_PIECE / STORE_GRANULE)
#ifndef REC_PARTS_BYTES_MAX
/* maximum size of a list of parts in a record; a longer list is stored in a map */
#define REC_PARTS_BYTES_MAX (8u << 10)
#endif

/* A record, or a part in the list of a completed object. A part has a number, the kind REC_INLINE or
 * REC_DATA, and the fields with a place PART. model/record.def describes the fields. */
struct record {
#define RECORD(at) at
#define RECORD_MORE(bit, since) bit
#define DATA(at) at
#define LIST(at) at
#define MAP(at) at
#define PART(at) at
#define VIEW 0
#define HERE(name, type, at) type name;
#include "model/record.def"
	const void *attrs;
	const void *inline_data;  /* REC_INLINE: size_bytes bytes of content */
	const uint8_t *crcs;      /* REC_DATA: CRCs of crc_nr granules, 8 bytes each, unaligned */
	const uint8_t *upload_id; /* REC_PARTS, REC_MAP: id of the upload of the parts */
	const uint8_t *parts;     /* REC_PARTS: encoded list of parts, parts_len bytes */
};

/* Returns the format version of the pools that the record needs. */
uint32_t record_version(const struct record *r);
size_t record_bytes(const struct record *r);
/* Encodes a record; out has record_bytes() bytes. */
void record_encode(void *out, const struct record *r);
int record_decode(const void *buf, size_t len, struct record *ret_record);
/* Returns the fields that the object model reads. */
struct model_record record_show(const struct record *r);
/* Returns the metadata for a reader; the attributes are those of r. */
struct store_meta record_meta(const struct record *r);
/* Sets the fields of a new record from the metadata of its writer. */
void record_take(struct record *r, const struct store_meta *m);
/* Sets the fields of an entry of a list, except the name. */
void record_list(const struct record *r, struct store_entry *e);

/* Encodes a part for a record or map; out NULL: only the length is computed. Returns the length. */
size_t part_encode(void *out, const struct record *p);
/* Decodes the next part of a list into *part, which contains the previous part, or zeros. Returns 1; 0:
 * the end of the list; or -EBADMSG. */
int part_next(struct cur *list, struct record *part);
/* Returns a part for a reader. off_bytes: offset at which the part begins in its object. */
struct store_part part_show(const struct record *p, uint64_t off_bytes);

/* ---- uploads, buckets: codec_index.c ---- */

struct upload {
#define UPLOAD(at) at
#define HERE(name, type, at) type name;
#include "model/record.def"
	const void *attrs;
};
size_t upload_bytes(const struct upload *u);
void upload_encode(void *out, const struct upload *u);
int upload_decode(const void *buf, size_t len, struct upload *ret_upload);

enum bucket_state { BUCKET_MAKING = 1, BUCKET_THERE, BUCKET_ENDING };
#define BUCKET_SHARDS_MAX 4096u

struct bucket_row {
#define BUCKET(at) at
#define HERE(name, type, at) type name;
#include "model/record.def"
};
#define BUCKET_ROW_BYTES 64
void bucket_encode(uint8_t out[BUCKET_ROW_BYTES], const struct bucket_row *b);
int bucket_decode(const void *buf, size_t len, struct bucket_row *ret_row);

/* Attributes of a bucket: its documents. */
struct battrs {
#define BATTRS(at) at
#define HERE(name, type, at) type name;
#include "model/record.def"
	const void *attrs;
};
size_t battrs_bytes(uint32_t attrs_len);
void battrs_encode(void *out, const struct battrs *b);
int battrs_decode(const void *buf, size_t len, struct battrs *ret_battrs);

/* ---- quotas: codec_index.c ---- */

/* The contribution of one gateway to the usage of a shard, with the number of its last change. Instance 0:
 * the sum of the contributions of former gateways. */
struct counter {
	struct quota_change sum;
	uint64_t last; /* unique among the changes of one gateway */
};
#define COUNTER_BYTES 44
void counter_encode(uint8_t out[COUNTER_BYTES], const struct counter *c);
int counter_decode(const void *buf, size_t len, struct counter *ret_counter);

/* The limits of a bucket's quota. */
#define BOUND_BYTES 36
void bound_encode(uint8_t out[BOUND_BYTES], const struct store_use *max);
int bound_decode(const void *buf, size_t len, struct store_use *ret_max);

/* ---- garbage, the data of removed and replaced records: codec_index.c ---- */

struct garbage_data {
	struct rid id;
	uint64_t size_bytes;
};
struct garbage {
	bool has_map;
	struct rid map; /* map that is garbage, together with the data of its parts */
	uint32_t data_nr;
	const uint8_t *data; /* encoded; garbage_data() decodes an element */
};
#define GARBAGE_DATA_BYTES 20
size_t garbage_bytes(uint32_t data_nr);
void garbage_encode(void *out, const struct garbage_data *data, uint32_t nr, const struct rid *map);
int garbage_decode(const void *buf, size_t len, struct garbage *ret_garbage);
struct garbage_data garbage_data(const struct garbage *g, uint32_t i);

/* ---- gateways: codec_store.c; addresses: addr.c ---- */

#define GATEWAY_TEXT 64
struct gateway_row {
	uint64_t beats;
	uint64_t epoch;       /* oldest epoch that is in use in this gateway */
	uint64_t first, last; /* ids that may be in use: first <= counter < last */
	uint64_t since_ns;
	char host[GATEWAY_TEXT];
	char addrs[2 * GATEWAY_TEXT]; /* address of the first connection, for the blocklist */
	uint32_t version; /* newest format version of the pools that the gateway knows; 0 means 1 */
};
#define GATEWAY_ROW_BYTES 256
void gateway_encode(uint8_t out[GATEWAY_ROW_BYTES], const struct gateway_row *g);
int gateway_decode(const void *buf, size_t len, struct gateway_row *ret_row);

/* The addresses of all connections of a gateway, in a row of their own: the blocklist takes single
 * addresses. */
#define GATEWAY_ADDRS_MAX 16
struct gateway_addrs {
	uint64_t nr;
	char addr[GATEWAY_ADDRS_MAX][2 * GATEWAY_TEXT];
};
#define GATEWAY_ADDRS_BYTES (4 + 8 + GATEWAY_ADDRS_MAX * 2 * GATEWAY_TEXT + 8)
void gateway_addrs_encode(uint8_t out[GATEWAY_ADDRS_BYTES], const struct gateway_addrs *a);
int gateway_addrs_decode(const void *buf, size_t len, struct gateway_addrs *ret_addrs);
/* Returns true if addr is the address of one connection of a client, as librados returns it
 * ("10.0.0.1:0/1234567"). The port must be 0, which no daemon of the cluster has. The number must not be
 * 0, which would mean all connections of the host. */
bool gateway_addr_is_client(const char *addr);

/* ---- the store: codec_store.c ---- */

/* The newest format version of the pools: 1, or the highest version in a row of model/record.def. */
union store_format_since {
	char first[1];
#define RECORD_MORE(bit, since) since
#define HERE(name, type, since) char name[since];
#include "model/record.def"
};
#define STORE_FORMAT_VERSION ((uint32_t)sizeof(union store_format_since))
#define DATA_OBJECT_MAX (16u << 20) /* limit so that the trailer fits into the slack after a buffer */
struct store_format_row {
	uint32_t version;
	uint8_t uuid[16];
	uint32_t object_bytes; /* maximum size of a data object, without its trailer */
};
#define STORE_FORMAT_BYTES 64
void format_encode(uint8_t out[STORE_FORMAT_BYTES], const struct store_format_row *f);
/* Decodes the description of the store in a pool. Returns 0; -EBADMSG; or -EPROTONOSUPPORT: the version is
 * newer, and only the field version is set. */
int format_decode(const void *buf, size_t len, struct store_format_row *ret_row);

/* ---- trailers of data objects: codec_store.c ---- */

/* Returns the size of the trailer of a data object: the CRC of each granule, then a CRC of these CRCs, of
 * the name of the data object and of its length. The name prevents that intact bytes of another data
 * object are accepted. */
static inline uint32_t
trailer_bytes(uint32_t data_bytes)
{
	return (data_bytes + STORE_GRANULE - 1) / STORE_GRANULE * 8 + 8;
}
void trailer_seal(uint8_t *trailer, uint32_t data_bytes, struct rid id, uint32_t n);
int trailer_check(const uint8_t *trailer, uint32_t data_bytes, struct rid id, uint32_t n);

#endif
