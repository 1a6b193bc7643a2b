/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the functions that subres.def names: for each subresource of a bucket, one that parses its XML and
 * one that writes it. Pure functions, which any thread may call. */
#ifndef GANTRY_S3DOC_SUBRES_H
#define GANTRY_S3DOC_SUBRES_H

#include "dialect/fault.h"
#include "dialect/text.h"

#define SUBRES(id, number, code, message, from_xml, to_xml)                                                  \
	enum fault from_xml(const char *body, size_t len, struct text *packed, const char **ret_why);        \
	int to_xml(struct text *x, const void *packed, size_t packed_len);
#include "dialect/subres.def"

#endif
