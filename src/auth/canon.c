/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical request: what a signature covers, made of the decoded target and the fields and hashed on the
 * way.  Called by auth.c; pure.
 *
 * S3 signs for the meaning of a target and not for its spelling: path, names and values are encoded again, in
 * the one way there is, in the order of the encoded names.  Encoding is one-to-one, and what it gives has no
 * line end, '?', '&' or '='; so the text determines the decoded path and the set of parameters, and from
 * these and the fields follows all that the daemon does.  Two targets with one canonical request are one
 * request. What would break this: anybody who decodes a second time, or goes by the order in which parameters
 * came.
 */
#include "auth/auth_int.h"

#include "base/check.h"

static bool
same_name(struct span name, const struct field *f)
{
	return name.len == f->name_len && strncasecmp(name.p, f->name, name.len) == 0;
}

/* Byte order, shorter first. */
static int
compare(struct span a, struct span b)
{
	int c = memcmp(a.p, b.p, a.len < b.len ? a.len : b.len);

	return c ? c : (a.len > b.len) - (a.len < b.len);
}

/*
 * Finds the parameter that stands for a header named in SignedHeaders and not sent: the AWS SDK for JavaScript of
 * version 2 writes an x-amz-* header into the URL that it signs, and names it in SignedHeaders all the same.  The
 * signature covers the parameter twice then.  A header of a descriptor is read as a header alone.
 */
static bool
param_for(const struct dialect_in *in, const struct sigv4 *s, struct span name, struct span *ret_value)
{
	if (!s->presigned || !span_begins(name, "x-amz-") || dialect_is_wire_header(name))
		return false;
	for (int i = 0; i < in->uri->param_nr; i++) {
		struct span key = uri_name(in->uri, i);

		if (key.len == name.len && strncasecmp(key.p, name.p, key.len) == 0) {
			*ret_value = uri_value(in->uri, i);
			return true;
		}
	}
	return false;
}

/* Lower case, ascending, each once, each there.  Marks the fields that the list names. */
static enum fault
check_list(const struct dialect_in *in, struct sigv4 *s, enum fault bad, const char **ret_why)
{
	struct span before = { "", 0 }, list = s->signed_headers, value;

	memset(s->listed, 0, sizeof s->listed);
	while (list.len) {
		struct span name = span_cut(&list, ';');
		bool more = name.p + name.len != list.p, there = false;

		for (size_t i = 0; i < name.len; i++) {
			if ((name.p[i] >= 'A' && name.p[i] <= 'Z') || (unsigned char)name.p[i] <= ' ')
				return refuse(ret_why, bad, "SignedHeaders has a name not in lower case.");
		}
		if (compare(before, name) >= 0 || (more && !list.len))
			return refuse(ret_why, bad, "SignedHeaders is not in ascending order.");
		before = name;
		for (int i = 0; i < in->field_nr; i++) {
			if (same_name(name, &in->fields[i]))
				s->listed[i] = there = true;
		}
		if (!there && !param_for(in, s, name, &value))
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

	/* Mostly there is none at all, which is asked first. */
	if (!v.len || (!memchr(v.p, ' ', v.len) && !memchr(v.p, '\t', v.len)) ||
	    !dialect_header_steers((struct span){ f->name, f->name_len }))
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

static bool
must_be_listed(const struct dialect_in *in, const struct sigv4 *s, const struct field *f, bool relax)
{
	/* One that says nothing beside a presigned URL. */
	if (s->presigned && name_is(f, "x-amz-content-sha256") && !dialect_payload_hash(in, NULL))
		return false;
	if (name_is(f, "date") && !s->presigned && !dialect_field(in, "x-amz-date", NULL))
		return true;
	return dialect_must_sign((struct span){ f->name, f->name_len }, relax);
}

enum fault
canon_check_headers(const struct dialect_in *in, struct sigv4 *s, bool relax, const char **ret_why)
{
	enum fault bad = s->presigned ? FAULT_AUTH_QUERY : FAULT_AUTH_HEADER, f;

	check(in->field_nr <= DIALECT_FIELDS_MAX);
	f = check_list(in, s, bad, ret_why);
	for (int i = 0; i < in->field_nr && f == FAULT_NONE; i++) {
		const struct field *h = &in->fields[i];

		if (!s->listed[i] && must_be_listed(in, s, h, relax))
			return refuse(ret_why, FAULT_ACCESS_DENIED,
				      "Headers that must be signed are not: host, x-amz-*, x-gantry-*, "
				      "x-rdma-info and x-cuobj-* have to be.");
		f = check_blanks(h, ret_why);
	}
	return f;
}

enum fault
canon_check_beside(const struct dialect_in *in, const struct sigv4 *s, enum wire_form w, bool relax,
		   const char **ret_why)
{
	for (int i = 0; i < in->field_nr; i++) {
		const struct field *h = &in->fields[i];
		const char *why;

		if (s->listed[i])
			continue;
		why = dialect_must_sign_beside(w, (struct span){ h->name, h->name_len }, relax);
		if (why)
			return refuse(ret_why, FAULT_ACCESS_DENIED, why);
	}
	return FAULT_NONE;
}

/* The text, as far as it is not hashed yet; a text that is to be shown is not hashed. */
struct sink {
	char *text;
	size_t len, cap;
	struct sha256 *hash; /* NULL: the text is to be shown */
	bool is_over;        /* the text to be shown is longer than cap */
};

/* Puts what has no room any more. */
static void
put_over(struct sink *k, const char *p, size_t len)
{
	k->is_over = true;
	if (k->hash) {
		sha256_add(k->hash, k->text, k->len);
		sha256_add(k->hash, p, len);
	}
	k->len = 0;
}

static inline void
put(struct sink *k, const char *p, size_t len)
{
	if (len == 0)
		return;
	if (len > k->cap - k->len) {
		put_over(k, p, len);
		return;
	}
	memcpy(k->text + k->len, p, len);
	k->len += len;
}

/* What is hashed, and shown to nobody: who reads the answer to a client may not be the client. */
static bool
is_hidden(const struct sink *k, struct span name)
{
	return !k->hash && (span_is_nocase(name, "x-amz-security-token") || dialect_is_wire_header(name));
}

/* Runs of spaces become one; blanks around it were taken off. */
static void
put_value(struct sink *k, struct span v)
{
	size_t from = 0;

	/* Most values have no blank. */
	for (size_t i = memchr(v.p, ' ', v.len) ? 1 : v.len; i < v.len; i++) {
		if (v.p[i] != ' ' || v.p[i - 1] != ' ')
			continue;
		put(k, v.p + from, i - from);
		while (i + 1 < v.len && v.p[i + 1] == ' ')
			i++;
		from = i + 1;
	}
	put(k, v.p + from, v.len - from);
}

static void
put_headers(struct sink *k, const struct dialect_in *in, const struct sigv4 *s)
{
	struct span list = s->signed_headers;

	while (list.len) {
		struct span name = span_cut(&list, ';'), value;
		const char *sep = ":";

		put(k, name.p, name.len);
		for (int i = 0; i < in->field_nr; i++) {
			if (!same_name(name, &in->fields[i]))
				continue;
			put(k, sep, 1);
			sep = ",";
			put_value(k, is_hidden(k, name) ? span_of("...") : field_text(&in->fields[i]));
		}
		if (*sep == ':' && param_for(in, s, name, &value)) {
			put(k, sep, 1);
			put_value(k, is_hidden(k, name) ? span_of("...") : value);
		}
		put(k, "\n", 1);
	}
	put(k, "\n", 1);
}

/* Puts it encoded.  What needs no escape goes in one piece: mostly all of it. */
static void
put_encoded(struct sink *k, struct span s, bool keep_slash)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t from = 0;

	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (uri_unreserved[c] || (c == '/' && keep_slash))
			continue;
		put(k, s.p + from, i - from);
		put(k, (char[]){ '%', digits[c >> 4], digits[c & 15] }, 3);
		from = i + 1;
	}
	put(k, s.p + from, s.len - from);
}

/* Parameters are in order; the signature itself is left out. */
static void
put_query(struct sink *k, const struct uri *uri, bool presigned)
{
	bool first = true;

	for (int i = 0; i < uri->param_nr; i++) {
		if (presigned && span_is(uri_name(uri, i), "X-Amz-Signature"))
			continue;
		put(k, "&", !first);
		first = false;
		put_encoded(k, uri_name(uri, i), false);
		put(k, "=", 1);
		put_encoded(k, is_hidden(k, uri_name(uri, i)) ? span_of("...") : uri_value(uri, i), false);
	}
}

static void
put_request(struct sink *k, const struct dialect_in *in, const struct sigv4 *s, struct span payload)
{
	put(k, in->method, strlen(in->method));
	put(k, "\n", 1);
	put_encoded(k, in->uri->path, true);
	put(k, "\n", 1);
	put_query(k, in->uri, s->presigned);
	put(k, "\n", 1);
	put_headers(k, in, s);
	put(k, s->signed_headers.p, s->signed_headers.len);
	put(k, "\n", 1);
	put(k, payload.p, payload.len);
}

void
canon_hash(const struct dialect_in *in, const struct sigv4 *s, struct span payload, uint8_t out[32])
{
	char text[1024]; /* mostly all of it */
	struct sha256 hash;
	struct sink k = { .text = text, .cap = sizeof text, .hash = &hash };

	sha256_begin(&hash);
	put_request(&k, in, s, payload);
	sha256_add(&hash, text, k.len);
	sha256_end(&hash, out);
}

size_t
canon_text(const struct dialect_in *in, const struct sigv4 *s, struct span payload, char *out, size_t cap)
{
	struct sink k = { .text = out, .cap = cap };

	put_request(&k, in, s, payload);
	return k.is_over ? 0 : k.len;
}
