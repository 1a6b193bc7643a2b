/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucket - the operations on buckets, their quotas, and the lists of names. Part of store.h, which callers
 * include.
 */
#ifndef GANTRY_STORE_BUCKET_H
#define GANTRY_STORE_BUCKET_H

#include "store/object.h"

struct store;

/* ---- buckets ---- */

#define STORE_COPIES_MAX 2u
/*
 * Makes a bucket with a number of copies of each key: 1 or STORE_COPIES_MAX; 0: the store's default_copies
 * for a new bucket, and the current number for an existing bucket. An existing bucket with another number of
 * copies is changed if it has neither objects nor uploads in progress; time, attributes and quota do not
 * change.
 *   0            made or changed
 *   -EEXIST      the bucket exists with this number of copies
 *   -ENOTEMPTY   the bucket exists with another number of copies, and is not empty
 *   -EDOM        the store has too few disks
 *   -EOPNOTSUPP  this back end does not support copies
 *   -EROFS, -ENODEV   (for a change) not all disks are in service
 */
int store_bucket_create(struct store_port *p, const char *name, size_t len, unsigned copies,
			struct store_del *op);

/* The specification of a bucket to be made. */
struct store_bucket_spec {
	unsigned copies;
	const void *attrs;  /* attributes, see store_bucket_set_attrs(); kept by the caller until the end */
	uint32_t attrs_len; /* length of attrs in bytes, at most STORE_BUCKET_ATTRS_MAX; 0: no attributes */
};
/* Makes a bucket like store_bucket_create(), and sets its attributes in the same change: after a crash the
 * bucket has its attributes or does not exist. An existing bucket keeps its attributes. Additional error:
 * -EINVAL: too many bytes of attributes. */
int store_bucket_create_as(struct store_port *p, const char *name, size_t len,
			   const struct store_bucket_spec *spec, struct store_del *op);
/* Removes a bucket. result: 0; -ENXIO: no such bucket; -ENOTEMPTY: the bucket has objects. Uploads in
 * progress do not prevent the removal, and end with the bucket. */
int store_bucket_delete(struct store_port *p, const char *name, size_t len, struct store_del *op);
/* Looks up a bucket. result: 0; -ENXIO: no such bucket. */
int store_bucket_head(struct store_port *p, const char *name, size_t len, struct store_stat *st);
/* Returns true if the bucket existed within the last second. This is sufficient for a request that begins to
 * write into the bucket, because the commit checks again. Returns false if unknown: the caller calls
 * store_bucket_head(). */
bool store_bucket_was_there(struct store_port *p, const char *name, size_t len);

/*
 * Value of `version` that matches every version of a bucket's attributes. The attributes of a bucket are
 * opaque to the store, and are removed with the bucket. store_bucket_set_attrs() replaces all attributes of
 * the bucket; attrs_len 0: the bucket has none afterwards. version: the version that the attributes must
 * have, from store_bucket_get_attrs(); 0: the bucket must have no attributes. The caller keeps attrs until
 * the end. result: 0; -ENXIO: no such bucket; -ESTALE: the attributes have another version; -ENOSPC; or
 * another -errno.
 */
#define STORE_VERSION_ANY UINT64_MAX
struct store_bucket_set {
	struct store_op op;
	_Alignas(8) unsigned char priv[STORE_PRIV_BUCKET_SET];
};
int store_bucket_set_attrs(struct store_port *p, const char *name, size_t len, uint64_t version,
			   const void *attrs, uint32_t attrs_len, struct store_bucket_set *op);
/* Copies up to cap bytes of the bucket's attributes to attrs, which the caller keeps until the end. result:
 * 0; -ENXIO: no such bucket. */
int store_bucket_get_attrs(struct store_port *p, const char *name, size_t len, void *attrs, uint32_t cap,
			   struct store_stat *st);

/* ---- quotas ---- */

/*
 * Limits on the contents of buckets. A limit of one bucket is stored with the bucket and removed with it. A
 * limit of a pattern applies to the buckets whose names match the pattern; the caller sets these limits again
 * after each start. All limits of a bucket apply to all writers. A change that would exceed a limit ends with
 * -EDQUOT. Changes are validated in their order, each against the usage that includes the earlier changes.
 * Only growth is validated: only the difference of the sizes counts if an object is replaced, a removal
 * always succeeds, and a limit below the usage removes nothing.
 *
 *   objects   a new key; for a pattern also each of its buckets
 *   bytes     the bytes of objects as read, and the bytes of the parts of unfinished uploads, each part as at
 *             least 16 KiB. A part counts from its commit until the end of its upload, so a completed upload
 *             does not count twice. For a pattern, the attributes of its buckets count too.
 *   uploads   uploads in progress
 *   buckets   buckets of a pattern; the creation of one more ends with -EMLINK
 *
 * A PUT reserves its bytes when it begins; a PUT of unknown size reserves the bytes received so far. Two
 * conditions apply. First, the usage and the growth by all reservations together stay within the limit. Second,
 * the bytes of all reserved PUTs together stay within the limit; a PUT is exempt from this second condition if
 * no other PUT is in progress and the PUT has no more bytes than the usage. A back end that does not know the
 * replaced object before the commit validates the growth at the commit. A back end may have several logs, each
 * without knowledge of the last block of the others; such a back end may exceed a limit by the contents of
 * these last blocks.
 */

/* Sets the limits of one bucket. If all members are STORE_UNBOUNDED, the bucket has no limits. result: 0: the
 * limits are durable; -ENXIO: no such bucket; -ENOSPC: no space for the record; or another -errno. */
int store_bucket_set_quota(struct store_port *p, const char *name, size_t len, const struct store_use *max,
			   struct store_bucket_set *op);

/* The state of the quota of a bucket or of a pattern; see store_list_quotas(). */
struct store_quota_info {
	char name[STORE_BUCKET_MAX + 2]; /* name of a bucket, or a pattern with its '*' */
	bool is_pattern;
	bool has_bound;
	struct store_use used, max;
	/* of a pattern: number of the buckets that match the pattern, and the limit of this number;
	 * STORE_UNBOUNDED: no limit */
	uint64_t buckets, max_buckets;
	/* bytes of PUTs that are not committed yet, and of removed objects that are being read */
	uint64_t in_progress_bytes;
	uint64_t refused; /* refused changes since the start; counted while there is a limit */
};

/* Limits for all buckets whose names begin with `bucket` (any_suffix true), or for the one bucket of this
 * name (any_suffix false). */
struct store_pattern_quota {
	char bucket[STORE_BUCKET_MAX];
	uint8_t bucket_len;
	bool any_suffix;
	struct store_use max;
	uint64_t max_buckets; /* limit of the number of buckets; STORE_UNBOUNDED: no limit */
};
/* Replaces the limits of all patterns. If a pattern has two entries, the smaller limit applies. All
 * validations after the return use the new limits. Any thread may call this function. Returns 0, -ENOMEM
 * (without a change), -EOPNOTSUPP. */
int store_set_quotas(struct store *st, const struct store_pattern_quota *quota, int nr);
/* Returns a bucket's usage and its own limits, if any. Any thread may call this function. Returns 0, -ENXIO,
 * -EOPNOTSUPP. */
int store_bucket_quota(struct store *st, const char *name, size_t len, struct store_quota_info *ret_info);
/* Lists the patterns, and then the buckets that have limits, each sorted by name. Any thread may call this
 * function. Returns the number of entries, or -ENOMEM, -EOPNOTSUPP; the caller frees the list. */
int store_list_quotas(struct store *st, struct store_quota_info **ret_list);

/* Writes to list the usage and the limits of the largest buckets, at most max, the largest first. Reads the
 * usage of all buckets, while changes wait: a millisecond for some ten thousand buckets of a disk. Any thread
 * may call this function. Returns the number of all buckets of which the back end knows the usage; on RADOS
 * these are the buckets with limits. */
int store_largest_buckets(struct store *st, struct store_quota_info *list, int max);

/* ---- listing ---- */

struct store_entry {
	const char *name; /* object key or bucket name; names are in byte order; valid during the callback */
	size_t name_len;
	uint64_t size_bytes, mtime_ns, version;
	struct store_etag etag;
	uint8_t copies;      /* number of copies of the keys of a bucket */
	uint64_t expires_ns; /* of an object, as in struct store_meta; 0: none */
	/* true: name is a common prefix, including the delimiter, and no other member is set */
	bool is_prefix;
	const uint8_t *upload_id; /* id of the upload, for store_list_uploads() */
	const void *attrs;        /* attributes of the object or upload; valid during the callback */
	uint32_t attrs_len;
};

/*
 * A page of a list of names that begin with `prefix`, in key order, from the first name after `after` on
 * (NULL: from the first name). With a delimiter, all names that contain the delimiter after the prefix are
 * replaced by their common prefix. A common prefix ends with the first delimiter after `prefix`, and is
 * listed once. If `after` is a common prefix itself, the page begins after all names with this prefix. The
 * caller keeps the memory to which this struct points until the end of the operation.
 */
struct store_list {
	/* operation of the list; result: number of entries; `more` is set if further entries follow */
	struct store_op op;
	const char *bucket; /* name of the bucket; NULL: the buckets are listed (never with a delimiter) */
	/* prefix, last name before the page, and delimiter; delimiter_len 0: no delimiter */
	const char *prefix, *after, *delimiter;
	uint16_t bucket_len, prefix_len, after_len, delimiter_len;
	/* store_list_uploads(): the list begins after this upload of the key `after`; NULL: after all uploads
	 * of that key */
	const uint8_t *after_id;
	uint32_t max;
	/* true: expired objects are listed, too, for their removal */
	bool shows_gone;
	/* Set by store_list(): time by age_clock_ns(); objects that have expired by then are not listed. 0: shows_gone */
	uint64_t now_ns;
	/* true: keys of a missing disk may be omitted; false: if a disk is missing, the result is -ENODEV */
	bool may_be_partial;
	/* partitions whose names are listed, for an engine in a set; kept until the end. NULL: the partitions
	 * assigned to the engine. */
	const struct store_slots *slots;
	/* Receives an entry, on the port's thread. Returns false to end the page. */
	bool (*entry)(struct store_list *ls, const struct store_entry *e);
	bool of_uploads; /* true: uploads are listed; set by store_list() and store_list_uploads() */
	bool more;
	bool is_partial; /* result; true: keys of a missing disk were omitted */
	_Alignas(8) unsigned char priv[STORE_PRIV_LIST];
};
int store_list(struct store_port *p, struct store_list *ls);
/* Lists the uploads in progress of a bucket, by key, then in order of creation. entry: mtime_ns is the time
 * at which the upload began. */
int store_list_uploads(struct store_port *p, struct store_list *ls);

#endif
