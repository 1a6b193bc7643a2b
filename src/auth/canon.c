/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical request: what a signature covers, put together from the request exactly as it came and hashed
 * on the way.  Called by auth.c; pure.
 *
 * The path is the raw one: S3's clients encode it once and sign what they send.  Nothing is normalised, so
 * two requests that we would read differently never have the same canonical form.
 */
#include "auth/auth_int.h"

#include <errno.h>

#define PARAMS_MAX 128

struct param {
	struct span name, value;
};

static bool
same_name(struct span name, const struct field *f)
{
	return name.len == f->name_len && strncasecmp(name.p, f->name, name.len) == 0;
}

static bool
is_listed(struct span list, const struct field *f)
{
	while (list.len) {
		if (same_name(span_cut(&list, ';'), f))
			return true;
	}
	return false;
}

/* Byte order, shorter first. */
static int
compare(struct span a, struct span b)
{
	int c = memcmp(a.p, b.p, a.len < b.len ? a.len : b.len);

	return c ? c : (a.len > b.len) - (a.len < b.len);
}

/* Lower case, ascending, each once, each there. */
static enum fault
check_list(const struct dialect_in *in, struct span list, enum fault bad, const char **ret_why)
{
	struct span before = { "", 0 };

	while (list.len) {
		bool more = memchr(list.p, ';', list.len) != NULL, there = false;
		struct span name = span_cut(&list, ';');

		for (size_t i = 0; i < name.len; i++) {
			if ((name.p[i] >= 'A' && name.p[i] <= 'Z') || (unsigned char)name.p[i] <= ' ')
				return refuse(ret_why, bad, "SignedHeaders has a name not in lower case.");
		}
		if (compare(before, name) >= 0 || (more && !list.len))
			return refuse(ret_why, bad, "SignedHeaders is not in ascending order.");
		before = name;
		for (int i = 0; i < in->field_nr && !there; i++)
			there = same_name(name, &in->fields[i]);
		if (!there)
			return refuse(ret_why, FAULT_SIGNATURE,
				      "A header named in SignedHeaders is missing.");
	}
	return FAULT_NONE;
}

/*
 * SigV4 hashes a run of blanks as one, and what is acted on is the header as it came: two copy sources with
 * one signature could name two objects.
 */
static enum fault
check_blanks(const struct field *f, const char **ret_why)
{
	struct span v = field_text(f);

	if (!dialect_header_steers((struct span){ f->name, f->name_len }))
		return FAULT_NONE;
	for (size_t i = 0; i < v.len; i++) {
		if (v.p[i] == '\t' || (v.p[i] == ' ' && v.p[i + 1] == ' '))
			return refuse(
				ret_why, FAULT_BAD_REQUEST,
				"x-amz-copy-source, x-amz-tagging or a header of a descriptor has a tab, or "
				"two blanks together, which a signature does not tell from one.");
	}
	return FAULT_NONE;
}

enum fault
canon_check_headers(const struct dialect_in *in, const struct sigv4 *s, bool relax, const char **ret_why)
{
	enum fault bad = s->presigned ? FAULT_AUTH_QUERY : FAULT_AUTH_HEADER;
	enum fault f = check_list(in, s->signed_headers, bad, ret_why);
	bool date = s->presigned || dialect_field(in, "x-amz-date", NULL);

	if (f != FAULT_NONE)
		return f;
	for (int i = 0; i < in->field_nr; i++) {
		const struct field *h = &in->fields[i];
		bool must = dialect_must_sign((struct span){ h->name, h->name_len }, relax) ||
			    (!date && name_is(h, "date"));

		if (must && !is_listed(s->signed_headers, h))
			return refuse(ret_why, FAULT_ACCESS_DENIED,
				      "Headers that must be signed are not: host, x-amz-*, x-rdma-info and "
				      "x-cuobj-* have to be.");
		f = check_blanks(h, ret_why);
		if (f != FAULT_NONE)
			return f;
	}
	return FAULT_NONE;
}

enum fault
canon_check_beside(const struct dialect_in *in, const struct sigv4 *s, enum wire_form w, bool relax,
		   const char **ret_why)
{
	for (int i = 0; i < in->field_nr; i++) {
		const struct field *h = &in->fields[i];
		const char *why = dialect_must_sign_beside(w, (struct span){ h->name, h->name_len }, relax);

		if (why && !is_listed(s->signed_headers, h))
			return refuse(ret_why, FAULT_ACCESS_DENIED, why);
	}
	return FAULT_NONE;
}

/* Runs of spaces become one; blanks around it were taken off. */
static void
add_value(struct sha256 *h, struct span v)
{
	size_t from = 0;

	for (size_t i = 1; i < v.len; i++) {
		if (v.p[i] != ' ' || v.p[i - 1] != ' ')
			continue;
		sha256_add(h, v.p + from, i - from);
		while (i + 1 < v.len && v.p[i + 1] == ' ')
			i++;
		from = i + 1;
	}
	sha256_add(h, v.p + from, v.len - from);
}

static void
add_headers(struct sha256 *h, const struct dialect_in *in, struct span list)
{
	while (list.len) {
		struct span name = span_cut(&list, ';');
		const char *sep = ":";

		sha256_add(h, name.p, name.len);
		for (int i = 0; i < in->field_nr; i++) {
			if (!same_name(name, &in->fields[i]))
				continue;
			sha256_add(h, sep, 1);
			sep = ",";
			add_value(h, field_text(&in->fields[i]));
		}
		sha256_add(h, "\n", 1);
	}
	sha256_add(h, "\n", 1);
}

/* Sorted by name, then value, as they are encoded; the signature itself is left out. */
static enum fault
add_query(struct sha256 *h, struct span query, bool presigned, const char **ret_why)
{
	struct param p[PARAMS_MAX];
	int nr = 0;

	while (query.len) {
		struct span value = span_cut(&query, '&'), name = span_cut(&value, '=');
		int i;

		if (presigned && span_is(name, "X-Amz-Signature"))
			continue;
		if (nr == PARAMS_MAX)
			return refuse(ret_why, FAULT_BAD_REQUEST, "The query has more than 128 parameters.");
		for (i = nr++; i > 0; i--) {
			int c = compare(p[i - 1].name, name);

			if (c < 0 || (c == 0 && compare(p[i - 1].value, value) <= 0))
				break;
			p[i] = p[i - 1];
		}
		p[i] = (struct param){ name, value };
	}
	for (int i = 0; i < nr; i++) {
		sha256_add(h, "&", i > 0);
		sha256_add(h, p[i].name.p, p[i].name.len);
		sha256_add(h, "=", 1);
		sha256_add(h, p[i].value.p, p[i].value.len);
	}
	return FAULT_NONE;
}

enum fault
canon_hash(const struct dialect_in *in, const struct sigv4 *s, struct span payload, uint8_t out[32],
	   const char **ret_why)
{
	struct span path, query;
	struct sha256 h;
	enum fault f;

	dialect_target_split(in, &path, &query);
	if (!path.len)
		path = span_of("/");
	sha256_begin(&h);
	sha256_add(&h, in->method, strlen(in->method));
	sha256_add(&h, "\n", 1);
	sha256_add(&h, path.p, path.len);
	sha256_add(&h, "\n", 1);
	f = add_query(&h, query, s->presigned, ret_why);
	if (f != FAULT_NONE)
		return f;
	sha256_add(&h, "\n", 1);
	add_headers(&h, in, s->signed_headers);
	sha256_add(&h, s->signed_headers.p, s->signed_headers.len);
	sha256_add(&h, "\n", 1);
	sha256_add(&h, payload.p, payload.len);
	sha256_end(&h, out);
	return FAULT_NONE;
}
