/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header fields that came in the query: SDKs move them into a URL that they sign (those for JavaScript and Go
 * do so with every x-amz-* of an upload), so that whoever is handed the URL need not send them.  The
 * signature covers the query as it covers headers.  What an object is to carry may come that way; all else of
 * that form is refused by query.c, and a descriptor above all (protocol.md 4.5: only as a signed header).
 */
#include "dialect/dialect_int.h"

bool
query_key_moved(struct span key)
{
	if (span_begins_nocase(key, "x-amz-meta-"))
		return !dialect_is_wire_header(key);
	return span_is_nocase(key, "x-amz-tagging") || span_is_nocase(key, "x-amz-storage-class");
}

static enum fault
move_one(struct moved *m, struct span key, struct span value, const char **ret_why)
{
	if (m->in.field_nr == DIALECT_FIELDS_MAX)
		return refuse(ret_why, FAULT_HEADERS_TOO_LARGE,
			      "The request has more than 128 header fields, with those in its query.");
	if (!dialect_is_field_name(key.p, key.len) || !dialect_is_text(value.p, value.len))
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "A header in the query has a bad name or a control character.");
	m->fields[m->in.field_nr++] =
		(struct field){ key.p, value.p, (uint32_t)key.len, (uint32_t)value.len };
	return FAULT_NONE;
}

enum fault
moved_find(const struct dialect_in *in, struct moved *m, const char **ret_why)
{
	enum fault f = FAULT_NONE;

	m->in = *in;
	for (int i = 0; i < in->uri->param_nr && f == FAULT_NONE; i++) {
		if (!query_key_moved(uri_name(in->uri, i)))
			continue;
		if (m->in.fields != m->fields) {
			memcpy(m->fields, in->fields, (size_t)in->field_nr * sizeof *in->fields);
			m->in.fields = m->fields;
		}
		f = move_one(m, uri_name(in->uri, i), uri_value(in->uri, i), ret_why);
	}
	return f;
}
