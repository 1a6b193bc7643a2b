/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST of an HTML form (multipart/form-data): an incremental parser that passes on the bytes of the file
 * without a copy, and the policy document of signed forms. One request, one thread.
 *
 * Order on the wire: fields, then the file; parts after the file are read and ignored, as by S3.
 */
#ifndef GANTRY_S3DOC_FORM_H
#define GANTRY_S3DOC_FORM_H

#include "dialect/dialect.h"

#define FORM_FIELDS_MAX 64
#define FORM_BYTES_MAX (20u << 10) /* names and values of all fields */
#define FORM_BOUNDARY_MAX 70
#define FORM_HEAD_MAX 2048 /* headers of one part */

struct form_field {
	uint32_t name, name_len, value, value_len; /* in form.bytes, terminated; names in lower case */
};

struct form {
	/* Private. */
	int state, mode;
	char delim[FORM_BOUNDARY_MAX + 5]; /* "\r\n--boundary" */
	size_t delim_len, matched, head_len, tail;
	bool saw_file, accepted;
	char head[FORM_HEAD_MAX];

	/* Complete once have_file is set. */
	int field_nr;
	struct form_field field[FORM_FIELDS_MAX];
	size_t used;
	char bytes[FORM_BYTES_MAX];
	bool have_file; /* the fields are complete, the file begins */
	size_t filename_len;
	char filename[256];  /* as sent by the browser: the last component of a path, cut at 255 bytes */
	uint64_t file_bytes; /* handed out so far */
};

/* Begins a form with the given Content-Type. FAULT_POST_FORM if that is not the type of a form, or its
 * boundary is invalid. */
enum fault form_init(struct form *f, const char *content_type, size_t len, const char **ret_why);
/*
 * Takes bytes of the body: *ret_used of them, and returns at most one run of the file, inside `data` or
 * inside the form itself; valid until the next call. Call again with the rest. Once the fields are complete
 * it stops before the file (have_file; no more bytes are used) until form_accept().
 */
enum fault form_feed(struct form *f, const void *data, size_t len, size_t *ret_used, const void **ret_run,
		     size_t *ret_run_len, const char **ret_why);
/* Allows the bytes of the file: the fields are accepted. */
void form_accept(struct form *f);
/* Ends the body: FAULT_NONE if the last boundary and a file were received. */
enum fault form_end(const struct form *f, const char **ret_why);
/* Returns a field by lower-case name; NULL when absent. */
const char *form_get(const struct form *f, const char *name, size_t *ret_len);

/* The result for the client of a form: success_action_status (200, 201, 204) and redirect. form_target() sets
 * the target of the upload from the fields: key (with ${filename}), attributes, tags, checksums, acl. */
struct form_success {
	int status;
	const char *redirect; /* or NULL */
	size_t redirect_len;
};
enum fault form_target(const struct form *f, const struct dialect_in *in, struct target *t,
		       struct form_success *ret, const char **ret_why);

/*
 * The limits of the policy: base64 of JSON in field "policy". Every field must be allowed by a condition,
 * every condition must hold, and the policy must not have expired. auth/ checks its signature, and whether a
 * policy is required: without the field every form is accepted. After form_target().
 */
struct form_limits {
	uint64_t min_bytes, max_bytes; /* content-length-range */
};
enum fault form_policy(const struct form *f, const struct target *t, uint64_t now_s, struct form_limits *ret,
		       const char **ret_why);

#endif
