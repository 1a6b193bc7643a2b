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
	/* header, dialect, parser, decline, reply, always */
	[WIRE_NONE] = { NULL, DIALECT_S3, NULL, DECLINE_501, false, false },
	[WIRE_AMZ] = { "x-amz-rdma-token", DIALECT_S3, parse_any, DECLINE_BODY, true, false },
	[WIRE_SCAL] = { "x-scal-rdma", DIALECT_SCALITY, parse_plain, DECLINE_501, false, false },
	[WIRE_DELL] = { "x-rdma-info", DIALECT_S3, parse_plain, DECLINE_501_REPLY, true, false },
	[WIRE_META] = { "x-amz-meta-rdma-token", DIALECT_S3, parse_plain, DECLINE_501_REPLY, true, false },
	[WIRE_TRIO] = { "x-cuobj-rdma-descr", DIALECT_S3, parse_trio, DECLINE_501_REPLY, true, false },
	/* 88 digits in x-amz-rdma-token: its client takes a missing reply header for success (2.4.1). */
	[WIRE_HIP] = { NULL, DIALECT_S3, parse_any, DECLINE_BODY, true, true },
};

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
	t->token_family_declined = t->token.kind != TOKEN_DC;
	/* A GET may find an empty object, for which SIZE 0 is right: req/ asks again once it knows (2.1). */
	if (!t->token_family_declined && op_pulls(t->op) && token_check_move(&t->token, ret_why) < 0)
		return FAULT_BAD_TOKEN;
	return FAULT_NONE;
}
