/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header fields that came in the query: SDKs move them into a URL that they sign (those for JavaScript and Go
 * do so with every x-amz-* of an upload), so that whoever is handed the URL need not send them.  The
 * signature covers the query as it covers headers.  What an object is to carry may come that way; all else of
 * that form is refused by query.c, and a descriptor above all (protocol.md 4.5: only as a signed header).
 */
#include "dialect/dialect_int.h"

#include <errno.h>

#define NAME_MAX_BYTES (sizeof "x-amz-meta-" + DIALECT_META_MAX)

bool
query_key_moved(struct span key)
{
	static const char *const whole[] = { "x-amz-tagging", "x-amz-storage-class" };
	char name[NAME_MAX_BYTES];
	int n = span_decode(key, DECODE_STRICT, name, sizeof name);

	if (n < 0)
		return false;
	key = (struct span){ name, (size_t)n };
	if (span_begins_nocase(key, "x-amz-meta-"))
		return !dialect_is_wire_header(key);
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		if (span_is_nocase(key, whole[i]))
			return true;
	}
	return false;
}

/* Decodes to the end of m->text, behind it a NUL.  The length, or as span_decode(). */
static int
add_text(struct moved *m, struct span s, const char **ret_p)
{
	char *p = m->text + m->used;
	int n = m->used == sizeof m->text ? -E2BIG
					  : span_decode(s, DECODE_STRICT, p, sizeof m->text - m->used - 1);

	if (n < 0)
		return n;
	p[n] = 0;
	m->used += (size_t)n + 1;
	*ret_p = p;
	return n;
}

/* Adds a field to those of the request, of which there are `from`.  A '+' stands for itself: the form that is
 * signed has blanks as %20. */
static enum fault
move_one(struct moved *m, int from, struct span key, struct span value, const char **ret_why)
{
	struct field *f = &m->fields[m->in.field_nr];
	int name_len, len;

	if (m->in.field_nr == DIALECT_FIELDS_MAX)
		return refuse(ret_why, FAULT_HEADERS_TOO_LARGE,
			      "The request has more than 128 header fields, with those in its query.");
	name_len = add_text(m, key, &f->name);
	len = name_len < 0 ? name_len : add_text(m, value, &f->value);
	if (len == -E2BIG)
		return refuse(ret_why, FAULT_META_TOO_LARGE, "The metadata in the query is too large.");
	if (len < 0 || !dialect_is_field_name(f->name, (size_t)name_len) ||
	    !dialect_is_text(f->value, (size_t)len))
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "A header in the query has a bad name, a bad percent sequence or a control "
			      "character.");
	f->name_len = (uint32_t)name_len;
	f->value_len = (uint32_t)len;
	for (int i = from; i < m->in.field_nr; i++) {
		if (name_is(&m->in.fields[i], f->name))
			return refuse(
				ret_why, FAULT_BAD_ARGUMENT,
				"A header came twice in the query; a signature does not say in which order.");
	}
	m->in.field_nr++;
	return FAULT_NONE;
}

enum fault
moved_find(const struct dialect_in *in, struct moved *m, const char **ret_why)
{
	struct span path, query, key, value;
	enum fault f = FAULT_NONE;

	m->in = *in;
	m->used = 0;
	dialect_target_split(in, &path, &query);
	while (f == FAULT_NONE && query_next(&query, &key, &value)) {
		if (!query_key_moved(key))
			continue;
		if (m->in.fields != m->fields) {
			memcpy(m->fields, in->fields, (size_t)in->field_nr * sizeof *in->fields);
			m->in.fields = m->fields;
		}
		f = move_one(m, in->field_nr, key, value, ret_why);
	}
	return f;
}
