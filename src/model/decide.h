/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide - the rules of the object model, once for all back ends: whether an operation on a bucket, an object,
 * an upload or a part may be made, and how it changes the usage of the bucket.
 *
 * Pure functions: no thread, no I/O, no memory of their own. A back end has a record of each bucket, object,
 * upload and part, in its own format, and shows these records to model_decide() by a view. If the answer says
 * that the operation changes records, the back end makes all changes of the operation or none:
 *
 * 	act                     changes
 * 	MODEL_PUT               sets the object
 * 	MODEL_DELETE            removes the object
 * 	MODEL_SET_ATTRS         sets the object: other attributes, all other fields as they are
 * 	MODEL_CREATE_UPLOAD     sets the upload
 * 	MODEL_PUT_PART          sets the part
 * 	MODEL_COMPLETE          sets the object, removes the upload; the upload's parts end, or belong to the object
 * 	MODEL_ABORT             removes the upload; its parts end
 * 	MODEL_MAKE_BUCKET       sets the bucket, and its attributes, if the operation has some
 * 	MODEL_REMOVE_BUCKET     removes the bucket; its attributes and uploads end
 * 	MODEL_SET_BUCKET_ATTRS  sets the attributes of the bucket, or removes them
 * 	MODEL_SET_COPIES        sets the bucket: another number of copies
 * 	MODEL_CLOSE_BUCKET      changes no record: shows whether the bucket may be closed to writers
 *
 * A record that is set gets a new version, higher than all versions before. So an upload or attributes with a
 * version below that of the bucket belong to an earlier bucket of the same name, and count as absent.
 */
#ifndef GANTRY_MODEL_DECIDE_H
#define GANTRY_MODEL_DECIDE_H

#include "model/quota.h"
#include "model/record.h"
#include "store/store.h"

/* The fields of a record that decisions read, which record.def describes; fields that a kind does not have are 0.
 * size_bytes of an upload: bytes of its parts that the usage loses at the end of the upload. */
struct model_record {
#define VIEW 0
#define HERE(name, type, at) type name;
#include "model/record.def"
	unsigned copies; /* of a bucket: number of copies of each key */
};

/* Returns true if a record is there for readers and for preconditions at a time, in ns since 1970 by
 * age_clock_ns() (base/age_clock.h). Other records count for the usage, and keep their bucket, until they are
 * replaced or removed. */
static inline bool
model_is_there(const struct model_record *r, uint64_t now_ns)
{
	return !r->expires_ns || now_ns < r->expires_ns;
}

/* The records that are there when an operation is decided, together with those that are decided and not yet
 * published. Embedded by the back end. */
struct model_view {
	/* Finds the record of a kind that the operation names; number: of a part, ascending from call to call.
	 * Returns 1 with the record in *ret_record; 0: the record is absent; or an error, with which the
	 * decision ends: -EINPROGRESS: the record is not known now, so the operation is decided again later;
	 * -EAGAIN: the record is not known, and the client tries again; -ENOMEM; -EBADMSG: the record is damaged. */
	int (*find)(struct model_view *v, enum model_kind kind, uint32_t number,
		    struct model_record *ret_record);
	/* Returns 1 if the bucket has an object (or an upload) whose version is higher than `after`; 0: the
	 * bucket has none; or an error as find() does. Needed for operations on buckets only. */
	int (*has_any)(struct model_view *v, enum model_kind kind, uint64_t after);
};

enum model_act {
	MODEL_PUT,
	MODEL_DELETE,
	MODEL_SET_ATTRS,
	MODEL_CREATE_UPLOAD,
	MODEL_PUT_PART,
	MODEL_COMPLETE,
	MODEL_ABORT,
	MODEL_MAKE_BUCKET,
	MODEL_REMOVE_BUCKET,
	MODEL_SET_BUCKET_ATTRS,
	MODEL_SET_COPIES,
	MODEL_CLOSE_BUCKET,
	MODEL_ACTS
};

struct model_op {
	enum model_act act;
	/* PUT, DELETE, COMPLETE: precondition; NULL: none */
	const struct store_pre *pre;
	/* SET_ATTRS: version that the object must have, or 0: any version. SET_BUCKET_ATTRS: version that the
	 * attributes must have, or 0: there must be none, or STORE_VERSION_ANY. CREATE_UPLOAD: version that the
	 * bucket must have, or 0: any version. */
	uint64_t version;
	uint64_t size_bytes; /* PUT, PUT_PART: size of the object or part */
	/* objects, uploads, parts: number of copies for which the key was placed; 0: not checked.
	 * SET_COPIES: the new number */
	unsigned copies;
	uint32_t part_number; /* PUT_PART */
	/* COMPLETE: the parts, whose list model_check_list() has accepted. NULL: the list is not compared with
	 * the parts, and the size of the object counts as 0 */
	const struct store_complete *complete;
	bool adds_crc; /* COMPLETE: the CRC of the object is computed from its parts, and compared with the expected one */
	bool removes;    /* SET_BUCKET_ATTRS: the bucket has no attributes afterwards */
	bool is_alone;   /* CLOSE_BUCKET: true: uploads in progress, too, prevent that the bucket is closed */
	uint64_t now_ns; /* time of the decision by age_clock_ns() */
};

struct model_answer {
	/* result of the operation: 0; -errno as store/store.h says, with which no record changes; or 1, for DELETE
	 * only: the removed object was there for readers, or its expiry was the precondition (PRE_EXPIRED) */
	int result;
	bool replaces;             /* the record that the operation sets or removes exists */
	struct model_record old;   /* the replaced record */
	struct quota_change usage; /* change of the bucket's usage, for one copy of each key */
	/* COMPLETE: size and CRC of the object; after -EBADR and -EMSGSIZE index of the part in the list */
	uint64_t size_bytes, crc64;
	uint32_t bad;
};

/* Decides an operation. Returns true if records change; false: ret->result is the result of the operation. */
bool model_decide(const struct model_op *op, struct model_view *v, struct model_answer *ret);

/* Returns true if an upload or attributes of this version belong to the bucket; false: to an earlier bucket of the same
 * name, so they count as absent. */
static inline bool
model_is_of(uint64_t version, uint64_t bucket_version)
{
	return version > bucket_version;
}

/* Returns the change of the usage for one copy of a key when a record of this kind replaces another. Sizes of the new and
 * of the old record as in struct model_record; NULL: there is none. */
struct quota_change model_usage(enum model_kind kind, const uint64_t *size_bytes, const uint64_t *old_bytes);
/* Checks numbers and order of the parts in a list for a completion, before anything is looked up. Returns 0 or
 * -EINVAL, with the index of the part in c->bad. */
int model_check_list(struct store_complete *c);
/* Compares the list of a completion with the parts of the view, and adds up their sizes. adds_crc: also computes
 * the CRC of the object from their CRCs. Returns 0, -EBADR, -EMSGSIZE, -ERANGE, -EILSEQ, or an error of the view. */
int model_judge_parts(const struct store_complete *c, struct model_view *v, bool adds_crc,
		      struct model_answer *ret);
/* Sets the results of c, which describe the object. */
void model_tell_object(struct store_complete *c, const struct model_record *object, uint64_t mtime_ns);
/* Returns true, and sets the results of c and c->was_done, if the completion c repeats the completion that made an
 * object. part_nr: number of parts of the object, which the view shows. */
bool model_was_done(struct store_complete *c, const struct model_record *object, uint64_t mtime_ns,
		    uint32_t part_nr, struct model_view *parts);

#endif
