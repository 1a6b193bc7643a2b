/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CORS rules of a bucket: read from XML, stored in a packed form among the bucket's attributes, and evaluated
 * for every request with an Origin header. Pure functions, which any thread may call.
 */
#ifndef GANTRY_S3DOC_CORS_H
#define GANTRY_S3DOC_CORS_H

#include "dialect/fault.h"
#include "dialect/text.h"

#define CORS_RULES_MAX 100
#define CORS_PACKED_MAX (16u << 10)
#define CORS_NAMES_MAX 128 /* largest number of header names that a preflight request may ask for */

/* Parses the rules of a body and appends their packed form to `packed`. Returns FAULT_NONE,
 * FAULT_MALFORMED_XML, FAULT_BAD_REQUEST, or FAULT_BUSY if there is no memory. */
enum fault cors_from_xml(const char *body, size_t len, struct text *packed, const char **ret_why);
/* Appends a <CORSConfiguration> element to x. Returns 0, or -EINVAL if cors_from_xml() did not write the
 * packed bytes. */
int cors_to_xml(struct text *x, const void *packed, size_t packed_len);

/* The CORS headers of an answer. A member that is empty or 0 stands for a header that the answer does not
 * have. */
struct cors_answer {
	char origin[512]; /* access-control-allow-origin: "*" or the origin of the request */
	/* true: the answer has access-control-allow-credentials: true; always false with the origin "*" */
	bool credentials;
	char methods[64];   /* value of access-control-allow-methods */
	char headers[4096]; /* access-control-allow-headers, only in the answer to a preflight */
	char expose[1024];  /* value of access-control-expose-headers */
	uint32_t max_age_s; /* access-control-max-age */
};

/*
 * Finds the first rule that allows the method, the origin and all header names. headers: value of
 * Access-Control-Request-Headers of a preflight request, a list of names; NULL or empty: no names. Returns
 * true and fills in *ret; false: no rule allows the request, or the request has more than CORS_NAMES_MAX
 * names or 4 KiB of names. With either result the answer has "vary: Origin, Access-Control-Request-Headers,
 * Access-Control-Request-Method".
 */
bool cors_match(const void *packed, size_t packed_len, const char *origin, size_t origin_len,
		const char *method, size_t method_len, const char *headers, size_t headers_len,
		struct cors_answer *ret);

#endif
