/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec - what lies in the omaps of the meta pool, byte for byte: keys, and the values behind them.
 *
 * Pure functions, any thread.  Little endian.  Every value ends with a CRC64-NVME of what is before it.
 * Decoders take hostile bytes: they return -EBADMSG, never read outside their buffer, and give pointers into
 * it.  docs/rados.md describes the layout.
 *
 * Keys have no NUL: librados takes where a page begins as a string.
 */
#ifndef GANTRY_RADOS_IO_CODEC_H
#define GANTRY_RADOS_IO_CODEC_H

#include "base/cursor.h"
#include "model/decide.h"
#include "model/key.h"
#include "model/quota.h"

#include <stdbool.h>

/* ---- ids ---- */

static inline bool
rid_same(struct rid a, struct rid b)
{
	return a.instance == b.instance && a.counter == b.counter;
}

/* A short text: the name of an object of the cluster, the key of a row, an id. */
struct label {
	char text[2 + STORE_BUCKET_MAX];
};

struct label rid_text(struct rid id);
/* Returns the name of the n-th data object of an id. */
struct label data_name(struct rid id, uint32_t n);
/* Returns the name of the map of an object: the object of the meta pool that has the list of its parts. */
struct label map_name(struct rid id);
/* Returns the name of the n-th shard of a bucket. */
struct label shard_name(struct rid uid, uint32_t n);

/* ---- keys ---- */

#define OMAP_KEY_MAX RADOS_KEY_MAX

/* Returns the key of a bucket's row in the table of buckets. kind: 'b': the bucket, 'a': its attributes, 'q': its quota. */
struct label table_key(char kind, const char *name, size_t len);
/* Returns the key, in the same table, of the row that remains of a removed bucket. */
struct label doomed_key(struct rid uid);
/* Returns the key of a gateway's row in the table of gateways. kind: 'i': the row; 'a': the addresses of its connections;
 * 'x': the row of a dead gateway. */
struct label gateway_key(char kind, uint32_t instance);

/* Kinds of keys, which model/record.def describes: the first byte. */
enum key_kind {
#define RADOS_KEY(name, type, parts) KEY_##name = type,
#include "model/record.def"
};

/* Writes the key of a record, ended by a NUL that does not count, and returns its length; so do the next ones. */
size_t key_object(char out[OMAP_KEY_MAX], const char *key, size_t len);
size_t key_upload(char out[OMAP_KEY_MAX], const char *key, size_t len, const uint8_t *id);
size_t key_part(char out[OMAP_KEY_MAX], const uint8_t *id, uint32_t number);
size_t key_garbage(char out[OMAP_KEY_MAX], uint64_t epoch, struct rid id);
struct label key_counter(uint32_t instance);
/* Returns the instance of a counter's key, UINT32_MAX if it is none. */
uint32_t key_counter_instance(const char *k, size_t len);
/* Writes what all uploads of keys that begin with so many bytes begin with. */
size_t key_upload_prefix(char out[OMAP_KEY_MAX], const char *key, size_t len);
/* Takes an upload's key apart; key has room for STORE_KEY_MAX bytes. */
int key_upload_decode(const char *k, size_t k_len, char *key, uint16_t *ret_len,
		      uint8_t id[STORE_UPLOAD_ID_BYTES]);
/* Returns the number of a part's key, 0 if it is none. */
uint32_t key_part_number(const char *k, size_t len);
/* Reads epoch and id of a garbage key. */
int key_garbage_decode(const char *k, size_t len, uint64_t *ret_epoch);

/* ---- the record of an object or of a part ---- */

enum rec_kind {
	REC_INLINE = 1, /* the bytes follow */
	REC_DATA,       /* data objects; the granules' CRCs follow where all is one piece */
	REC_PARTS,      /* parts follow */
	REC_MAP,        /* parts lie in an object of the meta pool */
};
#define REC_CRCS_MAX (STORE_PIECE / STORE_GRANULE)
#ifndef REC_PARTS_BYTES_MAX
#define REC_PARTS_BYTES_MAX (8u << 10) /* more parts than that go to a map */
#endif

/* A record, or a part in the list of a finished object, which has a number, REC_INLINE or REC_DATA, and the fields with a
 * place there; model/record.def describes the fields. */
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
	const void *inline_data;  /* REC_INLINE: size_bytes bytes */
	const uint8_t *crcs;      /* REC_DATA: of crc_nr granules, 8 bytes each, of any alignment */
	const uint8_t *upload_id; /* REC_PARTS, REC_MAP: of the upload of the parts */
	const uint8_t *parts;     /* REC_PARTS: encoded, parts_len bytes */
};

/* Returns the version of the format of the pools that a record needs. */
uint32_t record_version(const struct record *r);
size_t record_bytes(const struct record *r);
/* Encodes a record; the caller made room of record_bytes(). */
void record_encode(void *out, const struct record *r);
int record_decode(const void *buf, size_t len, struct record *ret_record);
/* Returns the fields that decisions read. */
struct model_record record_show(const struct record *r);
/* Returns the metadata for a reader; the attributes belong to the owner of r. */
struct store_meta record_meta(const struct record *r);
/* Sets the fields of a new record that its writer gives. */
void record_take(struct record *r, const struct store_meta *m);
/* Sets the fields of an entry of a list, except the name. */
void record_list(const struct record *r, struct store_entry *e);

/* Encodes a part as it lies in a record or map; out NULL: only counts.  Returns the bytes. */
size_t part_encode(void *out, const struct record *p);
/* Decodes the next part of a list into *part, which has the part before, or zeros. Returns 1; 0: the list has ended; or
 * -EBADMSG. */
int part_next(struct cur *list, struct record *part);
/* Returns a part for the reader of a list, or of the object in which the part begins at off_bytes. */
struct store_part part_show(const struct record *p, uint64_t off_bytes);

/* ---- uploads, buckets ---- */

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

/* Attributes of a bucket. */
struct battrs {
#define BATTRS(at) at
#define HERE(name, type, at) type name;
#include "model/record.def"
	const void *attrs;
};
size_t battrs_bytes(uint32_t attrs_len);
void battrs_encode(void *out, const struct battrs *b);
int battrs_decode(const void *buf, size_t len, struct battrs *ret_battrs);

/* ---- quotas ---- */

/* What one gateway has added to a shard, and which change of it was the last; of instance 0: what those have added that
 * are no more. */
struct counter {
	struct quota_change sum;
	uint64_t last; /* no two changes of a gateway have the same */
};
#define COUNTER_BYTES 44
void counter_encode(uint8_t out[COUNTER_BYTES], const struct counter *c);
int counter_decode(const void *buf, size_t len, struct counter *ret_counter);

/* The bound of a bucket. */
#define BOUND_BYTES 36
void bound_encode(uint8_t out[BOUND_BYTES], const struct store_use *max);
int bound_decode(const void *buf, size_t len, struct store_use *ret_max);

/* ---- garbage: what a record that is gone named ---- */

struct garbage_data {
	struct rid id;
	uint64_t size_bytes;
};
struct garbage {
	bool has_map;
	struct rid map; /* whose parts are garbage, and then the map */
	uint32_t data_nr;
	const uint8_t *data; /* encoded; garbage_data() reads them */
};
#define GARBAGE_DATA_BYTES 20
size_t garbage_bytes(uint32_t data_nr);
void garbage_encode(void *out, const struct garbage_data *data, uint32_t nr, const struct rid *map);
int garbage_decode(const void *buf, size_t len, struct garbage *ret_garbage);
struct garbage_data garbage_data(const struct garbage *g, uint32_t i);

/* ---- gateways ---- */

#define GATEWAY_TEXT 64
struct gateway_row {
	uint64_t beats;
	uint64_t epoch;       /* the oldest that is still in use there */
	uint64_t first, last; /* ids that may be under way: first <= counter < last */
	uint64_t since_ns;
	char host[GATEWAY_TEXT];
	char addrs[2 * GATEWAY_TEXT]; /* for the blocklist */
	uint32_t version;             /* newest format of the pools that the gateway knows; 0: 1 */
};
#define GATEWAY_ROW_BYTES 256
void gateway_encode(uint8_t out[GATEWAY_ROW_BYTES], const struct gateway_row *g);
int gateway_decode(const void *buf, size_t len, struct gateway_row *ret_row);

/* All addresses of a gateway, one for each of its connections, beside its row: the blocklist takes them one by one. */
#define GATEWAY_ADDRS_MAX 16
struct gateway_addrs {
	uint64_t nr;
	char addr[GATEWAY_ADDRS_MAX][2 * GATEWAY_TEXT];
};
#define GATEWAY_ADDRS_BYTES (4 + 8 + GATEWAY_ADDRS_MAX * 2 * GATEWAY_TEXT + 8)
void gateway_addrs_encode(uint8_t out[GATEWAY_ADDRS_BYTES], const struct gateway_addrs *a);
int gateway_addrs_decode(const void *buf, size_t len, struct gateway_addrs *ret_addrs);
/* Tells whether a text is the address of one connection of a client, as librados gives it ("10.0.0.1:0/1234567"): with port 0, which no daemon of
 * the cluster has, and a number that is not 0, which would stand for all connections of the host. */
bool gateway_addr_is_client(const char *addr);

/* ---- the store ---- */

/* The newest version of the format of the pools: 1, or the highest number that a row of model/record.def has. */
union store_format_since {
	char first[1];
#define RECORD_MORE(bit, since) since
#define HERE(name, type, since) char name[since];
#include "model/record.def"
};
#define STORE_FORMAT_VERSION ((uint32_t)sizeof(union store_format_since))
#define DATA_OBJECT_MAX (16u << 20) /* its trailer fits behind a buffer */
struct store_format_row {
	uint32_t version;
	uint8_t uuid[16];
	uint32_t object_bytes; /* of a data object, without its trailer */
};
#define STORE_FORMAT_BYTES 64
void format_encode(uint8_t out[STORE_FORMAT_BYTES], const struct store_format_row *f);
/* Decodes a description of the pools. Returns 0, -EBADMSG, or -EPROTONOSUPPORT: of a later version, which is the only
 * field that is set. */
int format_decode(const void *buf, size_t len, struct store_format_row *ret_row);

/* ---- trailers of data objects ---- */

/* Counts the bytes of a trailer, which ends a data object that has one: the CRC of each granule, then one of these, of the data
 * object's own name, and of its length.  So bytes of another object, however whole, are not taken. */
static inline uint32_t
trailer_bytes(uint32_t data_bytes)
{
	return (data_bytes + STORE_GRANULE - 1) / STORE_GRANULE * 8 + 8;
}
void trailer_seal(uint8_t *trailer, uint32_t data_bytes, struct rid id, uint32_t n);
int trailer_check(const uint8_t *trailer, uint32_t data_bytes, struct rid id, uint32_t n);

#endif
