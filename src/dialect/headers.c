/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x-amz-* header fields: header.def as a table, and the three questions that it answers of a request on an S3
 * listener.  Called by parse.c, query.c and the forms of s3doc/.
 *
 * What asks for something that is not done here is refused with its name (NotImplemented; AccessDenied where
 * it names another owner; of access control lists what S3 says of buckets that have none), never silence and
 * never 200.  What nobody here knows is taken, as S3 takes it; but one that S3 invents tomorrow may ask for
 * something, so it is not taken in silence: req/ counts and logs it.  And what SDKs moved into the query of a
 * URL is read as the field that it was.
 */
#include "dialect/dialect_int.h"

#define PREFIX "x-amz-"
#define PREFIX_LEN (sizeof PREFIX - 1)

enum match { WHOLE, BEGINS };

struct header_row {
	const char *name; /* after x-amz- */
	uint8_t len;
	enum match match;
	enum header_query query;
	enum fault fault; /* with why */
	const char *allow[2];
	const char *why; /* NULL: it is taken */
};

static const struct header_row rows[] = {
#define TAKEN(name, match, query)                                                                            \
	{ name, sizeof name - 1, match, HEADER_##query, FAULT_NONE, { NULL }, NULL },
#define REFUSED(name, match, query, allow, also, fault, why)                                                 \
	{ name, sizeof name - 1, match, HEADER_##query, FAULT_##fault, { allow, also }, why },
#include "dialect/header.def"
};

/* The number of the first row of each letter, and of the row before, so that the rows are counted on. */
enum {
	ROW_BEFORE = -1,
#define LETTER(letter, c) ROW_##letter, ROW_BEFORE_##letter = ROW_##letter - 1,
#define COUNTED(line) ROW_AT_##line,
#define COUNT(line) COUNTED(line)
#define TAKEN(...) COUNT(__LINE__)
#define REFUSED(...) COUNT(__LINE__)
#include "dialect/header.def"
};

static const uint8_t first[26] = {
#define LETTER(letter, c) [c - 'a'] = ROW_##letter,
#define TAKEN(...)
#define REFUSED(...)
#include "dialect/header.def"
};

/* The row of a name; NULL: it has none. */
static const struct header_row *
row_of(struct span name)
{
	unsigned letter;

	if (name.len == PREFIX_LEN || !dialect_is_amz(name))
		return NULL;
	name.p += PREFIX_LEN;
	name.len -= PREFIX_LEN;
	letter = (unsigned)((name.p[0] | 0x20) - 'a');
	if (letter >= 26)
		return NULL;
	for (size_t i = first[letter]; i < sizeof rows / sizeof *rows; i++) {
		const struct header_row *r = &rows[i];

		if (r->name[0] != (char)('a' + letter))
			return NULL;
		/* Names of one length often differ in their last letter. */
		if ((r->match == WHOLE ? name.len == r->len : name.len >= r->len) &&
		    span_may_be_letter(name.p[r->len - 1], r->name[r->len - 1]) &&
		    span_is_name(name.p, r->name, r->len))
			return r;
	}
	return NULL;
}

bool
header_is_known(struct span name)
{
	return row_of(name) || dialect_is_wire_header(name);
}

/* ---- what is refused ---- */

static bool
row_allows(const struct header_row *r, struct span value)
{
	/* An empty value asks for nothing. */
	if (value.len == 0)
		return true;
	for (int i = 0; i < 2 && r->allow[i]; i++) {
		if (span_is(value, r->allow[i]))
			return true;
	}
	return false;
}

/* What the disks do anyway, as the operator says. */
static bool
is_done_below(const struct dialect_in *in, const struct field *f)
{
	return in->s3 && in->s3->encrypted_below && name_is(f, "x-amz-server-side-encryption") &&
	       span_is(field_text(f), "AES256");
}

enum fault
refused_check(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	for (int i = 0; i < in->field_nr; i++) {
		const struct field *f = &in->fields[i];
		struct span name = { f->name, f->name_len };
		const struct header_row *r = row_of(name);

		if (!r && !t->unknown_header.len && dialect_is_amz(name) && !dialect_is_wire_header(name))
			t->unknown_header = name;
		if (!r || !r->why || row_allows(r, field_text(f)) || is_done_below(in, f))
			continue;
		/* Of a new bucket S3 has a name of its own for an access control list. */
		return refuse(ret_why,
			      r->fault == FAULT_NO_ACLS && t->op == OP_CREATE_BUCKET ? FAULT_BUCKET_ACL
										     : r->fault,
			      r->why);
	}
	return FAULT_NONE;
}

/* ---- what came in the query ---- */

enum header_query
header_in_query(struct span key)
{
	const struct header_row *r = row_of(key);

	return !r || dialect_is_wire_header(key) ? HEADER_STAYS : r->query;
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
moved_find(const struct dialect_in *in, enum op op, struct moved *m, const char **ret_why)
{
	enum fault f = FAULT_NONE;

	m->in = *in;
	m->in.fields = m->fields;
	m->in.absent_lengths = 0;
	memcpy(m->fields, in->fields, (size_t)in->field_nr * sizeof *in->fields);
	for (int i = 0; i < in->uri->param_nr && f == FAULT_NONE; i++) {
		enum header_query q = header_in_query(uri_name(in->uri, i));

		if (q == HEADER_MOVES || (q == HEADER_SUMS && !op_pulls(op)))
			f = move_one(m, uri_name(in->uri, i), uri_value(in->uri, i), ret_why);
	}
	return f;
}
