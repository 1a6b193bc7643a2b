/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST of an HTML form (multipart/form-data): an incremental parser that passes the bytes of the file on
 * without a copy, and the policy document of signed forms. One request, one thread.
 *
 * Order on the wire: fields, then the file. Parts after the file are read and ignored, as by S3.
 */
#ifndef GANTRY_S3DOC_FORM_H
#define GANTRY_S3DOC_FORM_H

#include "dialect/dialect.h"

#define FORM_FIELDS_MAX 64
#define FORM_BYTES_MAX (20u << 10) /* limit of the names and values of all fields together, bytes */
#define FORM_BOUNDARY_MAX 70
#define FORM_HEAD_MAX 2048 /* limit of the headers of one part, bytes */

struct form_field {
	uint32_t name, name_len, value, value_len; /* offsets in form.bytes, and lengths, bytes; the texts
	                                            * end with a NUL, names are in lower case */
};

struct form {
	/* Private. */
	int state, mode;
	char delim[FORM_BOUNDARY_MAX + 5]; /* "\r\n--boundary" */
	size_t delim_len, matched, head_len, tail;
	bool saw_file, accepted;
	char head[FORM_HEAD_MAX];

	/* Complete after have_file is set. */
	int field_nr;
	struct form_field field[FORM_FIELDS_MAX];
	size_t used;
	char bytes[FORM_BYTES_MAX];
	bool have_file; /* true: the fields are complete, and the file begins */
	size_t filename_len;
	char filename[256];  /* name that the browser sent: the last component of its path, cut at 255
	                      * bytes */
	uint64_t file_bytes; /* number of bytes of the file passed on so far */
};

/* Begins a form with the given Content-Type. Returns FAULT_POST_FORM if that is not the type of a form, or
 * if its boundary is invalid. */
enum fault form_init(struct form *f, const char *content_type, size_t len, const char **ret_why);
/*
 * Parses *ret_used bytes of the body, and returns at most one run of bytes of the file, which is in `data`
 * or in the form itself and valid until the next call. The caller calls again with the rest of the bytes.
 * When the fields are complete (have_file), the parser stops before the file, and uses no bytes until
 * form_accept().
 */
enum fault form_feed(struct form *f, const void *data, size_t len, size_t *ret_used, const void **ret_run,
		     size_t *ret_run_len, const char **ret_why);
/* Accepts the fields, so that the parser continues with the bytes of the file. */
void form_accept(struct form *f);
/* Ends the body. Returns FAULT_NONE if the last boundary and a file were received. */
enum fault form_end(const struct form *f, const char **ret_why);
/* Returns the value of a field by its lower-case name; NULL if the form does not have the field. */
const char *form_get(const struct form *f, const char *name, size_t *ret_len);

/* The reply to the client of a form: success_action_status (200, 201, 204) and the redirect. form_target()
 * also sets the target of the upload from the fields: key (with ${filename}), attributes, tags, checksums,
 * acl. */
struct form_success {
	int status;
	const char *redirect; /* NULL: no redirect */
	size_t redirect_len;
};
enum fault form_target(const struct form *f, const struct dialect_in *in, struct target *t,
		       struct form_success *ret, const char **ret_why);

/*
 * The limits set by the policy, which is base64 of JSON in the field "policy". form_policy() is called
 * after form_target(). It checks that a condition allows every field, that every condition holds, and that
 * the policy has not expired. A form without the field is accepted: auth/ checks the signature of the policy,
 * and whether a policy is required.
 */
struct form_limits {
	uint64_t min_bytes, max_bytes; /* limits of the size of the file, from content-length-range */
};
enum fault form_policy(const struct form *f, const struct target *t, uint64_t now_s, struct form_limits *ret,
		       const char **ret_why);

#endif
