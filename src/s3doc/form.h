/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST of an HTML form (multipart/form-data): an incremental parser that passes the bytes of the file on
 * without a copy, and the policy document of signed forms. One thread at a time uses a form.
 *
 * A form has fields, and the file after them. Content after the file is read and ignored, as S3 does.
 */
#ifndef GANTRY_S3DOC_FORM_H
#define GANTRY_S3DOC_FORM_H

#include "dialect/dialect.h"

#define FORM_FIELDS_MAX 64
#define FORM_BYTES_MAX (20u << 10) /* largest size of the names and values of all fields together, in bytes */
#define FORM_BOUNDARY_MAX 70
#define FORM_HEAD_MAX 2048 /* largest size of the headers of one field, in bytes */

struct form_field {
	/* offsets in form.bytes and lengths, in bytes; the texts end with a NUL, names are in lower case */
	uint32_t name, name_len, value, value_len;
};

struct form {
	/* The state of the parser, private to form.c. */
	int state, mode;
	char delim[FORM_BOUNDARY_MAX + 5]; /* "\r\n--boundary": the text before each part of the form */
	size_t delim_len, matched, head_len, tail;
	bool saw_file, accepted;
	char head[FORM_HEAD_MAX];

	/* The fields of the form, complete when have_file is true. */
	int field_nr;
	struct form_field field[FORM_FIELDS_MAX];
	size_t used;
	char bytes[FORM_BYTES_MAX];
	bool have_file; /* true: the fields are complete, and the file begins */
	size_t filename_len;
	/* name of the file: the last component of the path that the browser sent, truncated to 255 bytes */
	char filename[256];
	uint64_t file_bytes; /* number of bytes of the file passed on so far */
};

/* Begins to parse a form. content_type: value of Content-Type, with the boundary. Returns FAULT_NONE;
 * FAULT_POST_FORM: content_type is not the type of a form, or the boundary is invalid. */
enum fault form_init(struct form *f, const char *content_type, size_t len, const char **ret_why);
/*
 * Parses the first *ret_used bytes of data; the caller calls again with the rest. *ret_run: bytes of the
 * file, in data or in *f and valid until the next call; *ret_run_len: their number, which can be 0. When the
 * fields are complete (have_file), the parser stops before the file, and uses no further bytes before
 * form_accept(). Returns FAULT_NONE or the fault of the body.
 */
enum fault form_feed(struct form *f, const void *data, size_t len, size_t *ret_used, const void **ret_run,
		     size_t *ret_run_len, const char **ret_why);
/* Lets the parser continue with the bytes of the file. Called when have_file is true and the fields were
 * accepted. */
void form_accept(struct form *f);
/* Ends the body. Returns FAULT_NONE if a file and the last boundary were received; otherwise the fault. */
enum fault form_end(const struct form *f, const char **ret_why);
/* Returns the value of a field by its lower-case name; NULL if the form does not have the field. */
const char *form_get(const struct form *f, const char *name, size_t *ret_len);

/* The reply to a successful form: success_action_status (200, 201 or 204) and the redirect. form_target()
 * fills in the reply from the fields, and sets in *t the target of the upload: key (with ${filename}
 * replaced), attributes, tags, checksums, acl. */
struct form_success {
	int status;
	const char *redirect; /* URL of the redirect; NULL: no redirect */
	size_t redirect_len;
};
enum fault form_target(const struct form *f, const struct dialect_in *in, struct target *t,
		       struct form_success *ret, const char **ret_why);

/*
 * The limits that the policy of a form sets. The policy is the field "policy": JSON in base64. form_policy()
 * is called after form_target(). form_policy() checks that the policy has not expired, that a condition of
 * the policy allows each field, and that every condition holds. It accepts a form without a policy: auth/
 * checks whether a policy is required, and the signature of the policy.
 */
struct form_limits {
	uint64_t min_bytes, max_bytes; /* smallest and largest size of the file, from content-length-range */
};
enum fault form_policy(const struct form *f, const struct target *t, uint64_t now_s, struct form_limits *ret,
		       const char **ret_why);

#endif
