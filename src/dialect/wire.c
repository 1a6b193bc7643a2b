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

const struct wire_row wire_rows[WIRE_NR] = {
	[WIRE_NONE] = { .dialect = DIALECT_S3, .decline = DECLINE_501 },
	[WIRE_AMZ] = { .header = "x-amz-rdma-token",
		       .dialect = DIALECT_S3,
		       .parse = parse_any,
		       .decline = DECLINE_BODY,
		       .reply = true,
		       .sign = SIGN_ALWAYS },
	[WIRE_SCAL] = { .header = "x-scal-rdma",
			.dialect = DIALECT_SCALITY,
			.parse = parse_plain,
			.decline = DECLINE_501,
			.sign = SIGN_ALWAYS,
			.clips_as_200 = true },
	[WIRE_DELL] = { .header = "x-rdma-info",
			.dialect = DIALECT_S3,
			.parse = parse_plain,
			.decline = DECLINE_501_REPLY,
			.reply = true,
			.sign = SIGN_UNLESS_RELAXED },
	[WIRE_META] = { .header = "x-amz-meta-rdma-token",
			.dialect = DIALECT_S3,
			.parse = parse_plain,
			.decline = DECLINE_501_REPLY,
			.reply = true,
			.sign = SIGN_ALWAYS },
	[WIRE_TRIO] = { .header = "x-cuobj-rdma-descr",
			.family = "x-cuobj-",
			.dialect = DIALECT_S3,
			.parse = parse_trio,
			.decline = DECLINE_501_REPLY,
			.reply = true,
			.sign = SIGN_UNLESS_RELAXED },
	/* 88 digits in x-amz-rdma-token: its client takes a missing reply header for success (2.4.1). */
	[WIRE_HIP] = { .dialect = DIALECT_S3,
		       .parse = parse_any,
		       .decline = DECLINE_BODY,
		       .reply = true,
		       .reply_always = true,
		       .sign = SIGN_ALWAYS },
};

const char *
dialect_wire_header(enum wire_form w)
{
	return wire_rows[w].header;
}

bool
dialect_wire_clips(enum wire_form w)
{
	return wire_rows[w].clips_as_200;
}

static const struct wire_row *
row_of(struct span name)
{
	for (enum wire_form w = 0; w < WIRE_NR; w++) {
		const struct wire_row *row = &wire_rows[w];

		if (row->header && (span_is_nocase(name, row->header) ||
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
	const struct wire_row *row = row_of(name);

	if (row && (row->sign == SIGN_ALWAYS || !relax))
		return true;
	return span_begins_nocase(name, "x-amz-") || span_is_nocase(name, "host");
}

const struct field *
wire_field(const struct dialect_in *in, const struct target *t)
{
	return dialect_field(in, wire_rows[t->wire == WIRE_HIP ? WIRE_AMZ : t->wire].header, NULL);
}

/* x-amz-meta-rdma-token is metadata unless it is served or looks exactly
 * like a descriptor (2.7, item 102). */
static bool
meta_is_descriptor(const struct dialect_in *in)
{
	if (in->rdma->meta_token)
		return true;
	for (int i = 0; i < in->field_nr; i++) {
		const struct field *f = &in->fields[i];

		if (name_is(f, wire_rows[WIRE_META].header) && token_has_dc_shape(f->value, f->value_len))
			return true;
	}
	return false;
}

enum fault
wire_find(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	bool foreign = false;
	int total = 0, nr;

	t->wire = WIRE_NONE;
	for (enum wire_form w = WIRE_AMZ; w < WIRE_NR; w++) {
		const struct field *f =
			wire_rows[w].header ? dialect_field(in, wire_rows[w].header, &nr) : NULL;

		if (!f || (w == WIRE_META && !meta_is_descriptor(in)))
			continue;
		total += nr;
		if (wire_rows[w].dialect != in->listen->dialect)
			foreign = true;
		if (t->wire == WIRE_NONE)
			t->wire = w == WIRE_AMZ && token_has_rc_shape(f->value, f->value_len) ? WIRE_HIP : w;
	}
	if (total > 1)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "The request carries more than one RDMA descriptor.");
	if (foreign)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "This listener does not speak the dialect of that RDMA descriptor header.");
	if (t->wire == WIRE_TRIO) {
		const struct field *f;
		enum fault r = field_one(in, TRIO_START, TRIO_START " came more than once.", &f, ret_why);

		return r ? r : field_one(in, TRIO_LENGTH, TRIO_LENGTH " came more than once.", &f, ret_why);
	}
	return FAULT_NONE;
}

enum fault
dialect_token(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *f;

	if (!op_moves(t->op))
		t->wire = WIRE_NONE;
	if (t->wire == WIRE_NONE)
		return FAULT_NONE;
	f = wire_field(in, t);
	if (wire_rows[t->wire].parse(in, f, t, ret_why) < 0)
		return FAULT_BAD_TOKEN;
	/* A GET may find an empty object, for which SIZE 0 is right: req/ asks again once it knows (2.1). */
	if (op_pulls(t->op) && token_check_move(&t->token, ret_why) < 0)
		return FAULT_BAD_TOKEN;
	return FAULT_NONE;
}
