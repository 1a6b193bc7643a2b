/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of descriptor headers: which header carries what, who reads it, and how its clients must be
 * told no. Differences between clients live here and nowhere else (protocol.md 2.0, 4.1, 4.2, 4.4).  Called
 * by parse.c and outcome.c.
 */
#include "dialect/dialect_int.h"

/* x-amz-rdma-token: 2.1, 2.2 and the families of protocol.md section 8. */
static int
parse_any(const struct dialect_in *in, const struct field *f, struct target *t, const char **ret_why)
{
	return token_parse(f->value, f->value_len, &t->token, ret_why);
}

static int
parse_plain(const struct dialect_in *in, const struct field *f, struct target *t, const char **ret_why)
{
	return token_parse_plain(f->value, f->value_len, &t->token, ret_why);
}

#define TRIO_START "x-cuobj-remote-buf-start"
#define TRIO_LENGTH "x-cuobj-content-length"

static int
parse_trio(const struct dialect_in *in, const struct field *f, struct target *t, const char **ret_why)
{
	const struct field *start = dialect_field(in, TRIO_START, NULL);
	const struct field *length = dialect_field(in, TRIO_LENGTH, NULL);

	return token_parse_trio(f->value, f->value_len, start ? start->value : NULL,
				start ? start->value_len : 0, length ? length->value : NULL,
				length ? length->value_len : 0, op_pulls(t->op), &t->token, ret_why);
}

static bool
meta_is_on(const struct conf_rdma *c)
{
	return c->meta_token;
}

#define IS_SERVED .served = NULL
#define UNLESS_OFF(function) .served = function
#define ONE_OF(name)                                                                                         \
	{                                                                                                    \
		name, name " came more than once."                                                           \
	}
#define COMPANIONS(a, b)                                                                                     \
	{                                                                                                    \
		ONE_OF(a), ONE_OF(b)                                                                         \
	}
#define NO_COMPANIONS                                                                                        \
	{                                                                                                    \
		{                                                                                            \
			NULL, NULL                                                                           \
		}                                                                                            \
	}

const struct wire_row wire_rows[WIRE_NR] = {
	[WIRE_NONE] = { .dialect = DIALECT_S3, .decline = DECLINE_501 },
#define WIRE(id, header_, dialect_, parse_, shape_, served_, decline_, reply_, sign_, clips, family_,        \
	     companions)                                                                                     \
	[WIRE_##id] = { .header = header_,                                                                   \
			.header_len = sizeof header_ - 1,                                                    \
			.family = family_,                                                                   \
			.dialect = DIALECT_##dialect_,                                                       \
			.parse = parse_,                                                                     \
			.shape = shape_,                                                                     \
			served_,                                                                             \
			.decline = DECLINE_##decline_,                                                       \
			.reply = REPLY_##reply_,                                                             \
			.sign = SIGN_##sign_,                                                                \
			.clips_as_200 = clips,                                                               \
			.companion = companions },
#include "dialect/wire.def"
};

bool
dialect_wire_clips(enum wire_form w)
{
	return wire_rows[w].clips_as_200;
}

bool
dialect_wire_carries(enum wire_form w, const char *header)
{
	return wire_carries(w, (struct span){ header, strlen(header) });
}

static const struct wire_row *
row_of(struct span name)
{
	for (enum wire_form w = 0; w < WIRE_NR; w++) {
		const struct wire_row *row = &wire_rows[w];

		if (row->header &&
		    ((name.len == row->header_len && span_is_name(name.p, row->header, name.len)) ||
		     (row->family && span_begins_nocase(name, row->family))))
			return row;
	}
	return NULL;
}

bool
dialect_is_wire_header(struct span name)
{
	return row_of(name) != NULL;
}

bool
dialect_must_sign(struct span name, bool relax)
{
	const struct wire_row *row;

	if (dialect_is_amz(name) || span_begins_nocase(name, "x-gantry-") || span_is_nocase(name, "host"))
		return true;
	row = row_of(name);
	return row && (row->sign == SIGN_ALWAYS || !relax);
}

const char *
dialect_must_sign_beside(enum wire_form w, struct span name, bool relax)
{
	static const struct {
		const char *header, *why;
		size_t len;
	} beside[] = {
#define BESIDE(header)                                                                                       \
	{ header, header " is not among SignedHeaders: with an RDMA descriptor it has to be.",               \
	  sizeof header - 1 },
#include "dialect/wire.def"
	};

	/* Where the descriptor itself may be another's, the rest is none of its signer's either. */
	if (w == WIRE_NONE || (wire_rows[w].sign != SIGN_ALWAYS && relax))
		return NULL;
	for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
		if (name.len == beside[i].len && span_is_name(name.p, beside[i].header, name.len))
			return beside[i].why;
	}
	return NULL;
}

bool
dialect_header_steers(struct span name)
{
	return row_of(name) || span_begins_nocase(name, "x-amz-copy-source") ||
	       span_is_nocase(name, "x-amz-tagging");
}

bool
wire_carries(enum wire_form w, struct span name)
{
	return wire_rows[w].header && span_is_nocase(name, wire_rows[w].header);
}

static bool
shares_header(const struct wire_row *row)
{
	const struct wire_row *next = row + 1;

	return next < wire_rows + WIRE_NR && strcmp(next->header, row->header) == 0;
}

/* Tells whether what came under the row's header is a descriptor of that row.  Of two rows with one header
 * the first value decides; a value that could be taken for metadata does not hide a descriptor after it. */
static bool
is_descriptor(const struct dialect_in *in, const struct wire_row *row)
{
	if (!row->shape || (row->served && row->served(in->rdma)))
		return true;
	for (int i = 0; i < in->field_nr; i++) {
		const struct field *f = &in->fields[i];

		if (f->name_len != row->header_len || !span_is_name(f->name, row->header, f->name_len))
			continue;
		if (row->shape(f->value, f->value_len))
			return true;
		if (shares_header(row))
			return false;
	}
	return false;
}

static enum fault
check_companions(const struct dialect_in *in, const struct wire_row *row, const char **ret_why)
{
	const struct field *f;
	enum fault r = FAULT_NONE;

	for (int i = 0; i < 2 && r == FAULT_NONE && row->companion[i].name; i++)
		r = field_one(in, row->companion[i].name, row->companion[i].repeated, &f, ret_why);
	return r;
}

enum fault
wire_find(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *f = NULL, *last = NULL;
	bool foreign = false;
	int total = 0, nr = 0;

	t->wire = WIRE_NONE;
	for (enum wire_form w = WIRE_NONE + 1; w < WIRE_NR; w++) {
		const struct wire_row *row = &wire_rows[w];

		if (row->header != row[-1].header)
			f = dialect_field_n(in, row->header, row->header_len, &nr);
		/* One header's rows stand together: the first that it fits has it. */
		if (!f || f == last || !is_descriptor(in, row))
			continue;
		last = f;
		total += nr;
		foreign |= row->dialect != in->listen->dialect;
		if (t->wire == WIRE_NONE)
			t->wire = w;
	}
	if (total > 1)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "The request carries more than one RDMA descriptor.");
	if (foreign)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "This listener does not speak the dialect of that RDMA descriptor header.");
	return check_companions(in, &wire_rows[t->wire], ret_why);
}

enum fault
dialect_token(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *f;

	if (!op_moves(t->op))
		t->wire = WIRE_NONE;
	if (t->wire == WIRE_NONE)
		return FAULT_NONE;
	f = dialect_field_n(in, wire_rows[t->wire].header, wire_rows[t->wire].header_len, NULL);
	if (wire_rows[t->wire].served && !wire_rows[t->wire].served(in->rdma)) {
		t->token = (struct token){ .kind = TOKEN_OFF };
		return FAULT_NONE;
	}
	if (wire_rows[t->wire].parse(in, f, t, ret_why) < 0)
		return FAULT_BAD_TOKEN;
	/* A GET may find an empty object, for which SIZE 0 is right: req/ asks again once it knows (2.1). */
	if (op_pulls(t->op) && token_check_move(&t->token, ret_why) < 0)
		return FAULT_BAD_TOKEN;
	return FAULT_NONE;
}
