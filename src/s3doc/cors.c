/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CORS rules, see cors.h.
 *
 * Packed: a byte for the form, then rules one after the other: methods as bits, whether and what max-age,
 * the id, then origins, allowed headers and exposed headers, each as a count and that many strings.
 */
#include "s3doc/cors.h"

#include "base/check.h"
#include "s3doc/pack.h"
#include "s3doc/xml_int.h"

#include <errno.h>

#define FORM 1
#define VALUE_MAX 255
#define LIST_MAX 255

enum { L_ORIGIN, L_HEADER, L_EXPOSE, L_NR };

static const char *const method_names[] = { "GET", "PUT", "POST", "DELETE", "HEAD" };
#define METHODS (sizeof method_names / sizeof *method_names)

/* A rule being read from XML: lists are packed as they come. */
struct building {
	struct text *out, list[L_NR];
	int rules;
	unsigned nr[L_NR], methods;
	bool have_age, have_id;
	uint32_t age;
	uint8_t id_len;
	char id[VALUE_MAX];
};

enum { P_RULE, P_ID, P_METHOD, P_AGE, P_LISTS };
static const char *const paths[] = { [P_RULE] = "CORSRule",
				     [P_ID] = "CORSRule/ID",
				     [P_METHOD] = "CORSRule/AllowedMethod",
				     [P_AGE] = "CORSRule/MaxAgeSeconds",
				     [P_LISTS + L_ORIGIN] = "CORSRule/AllowedOrigin",
				     [P_LISTS + L_HEADER] = "CORSRule/AllowedHeader",
				     [P_LISTS + L_EXPOSE] = "CORSRule/ExposeHeader",
				     NULL };

static enum fault
on_begin(void *cookie, int path, const char **ret_why)
{
	struct building *b = cookie;

	if (path != P_RULE)
		return FAULT_NONE;
	if (b->rules++ == CORS_RULES_MAX)
		return refuse(ret_why, FAULT_BAD_REQUEST, "There are more than 100 CORS rules.");
	for (int i = 0; i < L_NR; i++) {
		text_reset(&b->list[i]);
		b->nr[i] = 0;
	}
	b->methods = 0;
	b->have_age = b->have_id = false;
	b->age = 0;
	b->id_len = 0;
	return FAULT_NONE;
}

static enum fault
add_method(struct building *b, struct span text, const char **ret_why)
{
	for (size_t i = 0; i < METHODS; i++) {
		if (span_is(text, method_names[i])) {
			b->methods |= 1u << i;
			return FAULT_NONE;
		}
	}
	return refuse(ret_why, FAULT_BAD_REQUEST, "AllowedMethod is none of GET, PUT, POST, DELETE, HEAD.");
}

/* These values become headers. */
static enum fault
add_value(struct building *b, int list, struct span text, const char **ret_why)
{
	const char *star = memchr(text.p, '*', text.len);

	if (text.len == 0 || text.len > VALUE_MAX || has_control(text.p, text.len))
		return refuse(
			ret_why, FAULT_BAD_REQUEST,
			"A value of a CORS rule is empty, longer than 255 bytes, or has control characters.");
	if (star && (list == L_EXPOSE || memchr(star + 1, '*', text.len - (size_t)(star - text.p) - 1)))
		return refuse(ret_why, FAULT_BAD_REQUEST, "A value of a CORS rule has a wildcard too many.");
	if (list == L_EXPOSE && memchr(text.p, ',', text.len))
		return refuse(ret_why, FAULT_BAD_REQUEST, "ExposeHeader is not the name of one header.");
	if (b->nr[list]++ == LIST_MAX)
		return refuse(ret_why, FAULT_BAD_REQUEST, "A CORS rule has more than 255 values of a kind.");
	pack_span(&b->list[list], text);
	return FAULT_NONE;
}

static enum fault
end_rule(struct building *b, const char **ret_why)
{
	bool ok = true;

	check(b->rules > 0 && b->rules <= CORS_RULES_MAX);
	if (!b->methods || !b->nr[L_ORIGIN])
		return refuse(ret_why, FAULT_MALFORMED_XML,
			      "A CORS rule lacks AllowedMethod or AllowedOrigin.");
	pack_number(b->out, b->methods | (b->have_age ? 0x80u : 0), 1);
	pack_number(b->out, b->age, 4);
	pack_span(b->out, (struct span){ b->id, b->id_len });
	for (int i = 0; i < L_NR; i++) {
		pack_number(b->out, b->nr[i], 1);
		text_put(b->out, b->list[i].p, b->list[i].len);
		ok = ok && text_ok(&b->list[i]);
	}
	return ok && text_ok(b->out) ? FAULT_NONE
				     : refuse(ret_why, FAULT_BUSY, "There is no memory for the CORS rules.");
}

static enum fault
on_end(void *cookie, int path, struct span text, const char **ret_why)
{
	struct building *b = cookie;
	uint64_t v;

	switch (path) {
	case P_RULE:
		return end_rule(b, ret_why);
	case P_ID:
		if (b->have_id)
			return refuse(ret_why, FAULT_MALFORMED_XML, "A CORS rule has two IDs.");
		if (text.len > VALUE_MAX)
			return refuse(ret_why, FAULT_BAD_REQUEST,
				      "The ID of a CORS rule is longer than 255 bytes.");
		b->have_id = true;
		b->id_len = (uint8_t)text.len;
		memcpy(b->id, text.p, text.len);
		return FAULT_NONE;
	case P_METHOD:
		return add_method(b, text, ret_why);
	case P_AGE:
		if (b->have_age || span_decimal(text, &v) < 0 || v > INT32_MAX)
			return refuse(ret_why, FAULT_MALFORMED_XML, "MaxAgeSeconds is not one number.");
		b->have_age = true;
		b->age = (uint32_t)v;
		return FAULT_NONE;
	default:
		return add_value(b, path - P_LISTS, text, ret_why);
	}
}

enum fault
cors_from_xml(const char *body, size_t len, struct text *packed, const char **ret_why)
{
	struct building b = { .out = packed };
	struct xml_doc doc = {
		.root = "CORSConfiguration", .paths = paths, .begin = on_begin, .end = on_end, .cookie = &b
	};
	size_t from = packed->len;
	enum fault f;

	pack_number(packed, FORM, 1);
	f = xml_read(&doc, body, len, ret_why);
	for (int i = 0; i < L_NR; i++)
		text_free(&b.list[i]);
	if (f == FAULT_NONE && b.rules == 0)
		return refuse(ret_why, FAULT_MALFORMED_XML, "There are no CORS rules.");
	if (f == FAULT_NONE && packed->len - from > CORS_PACKED_MAX)
		return refuse(ret_why, FAULT_BAD_REQUEST, "The CORS rules are larger than 16 KiB.");
	return f;
}

struct rule {
	unsigned methods;
	bool have_age;
	uint32_t age;
	struct span id;
	struct unpacker list[L_NR]; /* stands after the count */
	unsigned nr[L_NR];
};

static bool
next_rule(struct unpacker *u, struct rule *r)
{
	if (u->bad || u->p == u->end)
		return false;
	r->methods = (unsigned)unpack_number(u, 1);
	r->have_age = r->methods & 0x80;
	r->age = (uint32_t)unpack_number(u, 4);
	r->id = unpack_span(u);
	for (int i = 0; i < L_NR; i++) {
		r->nr[i] = (unsigned)unpack_number(u, 1);
		r->list[i] = *u;
		for (unsigned k = 0; k < r->nr[i]; k++)
			unpack_span(u);
	}
	return !u->bad;
}

static struct unpacker
rules_of(const void *packed, size_t len)
{
	struct unpacker u = { packed, (const unsigned char *)packed + len, len == 0 };

	if (unpack_number(&u, 1) != FORM)
		u.bad = true;
	return u;
}

int
cors_to_xml(struct text *x, const void *packed, size_t packed_len)
{
	static const char *const elements[L_NR] = { "AllowedOrigin", "AllowedHeader", "ExposeHeader" };
	struct unpacker u = rules_of(packed, packed_len);
	struct rule r;

	text_str(x, XML_DECL "<CORSConfiguration xmlns=\"" XML_NS "\">");
	while (next_rule(&u, &r)) {
		text_str(x, "<CORSRule>");
		if (r.id.len)
			text_element(x, "ID", r.id.p, r.id.len);
		for (size_t i = 0; i < METHODS; i++) {
			if (r.methods & 1u << i)
				text_element_str(x, "AllowedMethod", method_names[i]);
		}
		for (int i = 0; i < L_NR; i++) {
			for (unsigned k = 0; k < r.nr[i]; k++) {
				struct span s = unpack_span(&r.list[i]);

				text_element(x, elements[i], s.p, s.len);
			}
		}
		if (r.have_age)
			text_element_u64(x, "MaxAgeSeconds", r.age);
		text_str(x, "</CORSRule>");
	}
	text_str(x, "</CORSConfiguration>");
	return u.bad ? -EINVAL : 0;
}

/* One '*' at most, standing for anything. */
static bool
matches(struct span pattern, struct span text)
{
	const char *star = memchr(pattern.p, '*', pattern.len);
	size_t head, tail;

	if (!star)
		return pattern.len == text.len && strncasecmp(pattern.p, text.p, text.len) == 0;
	head = (size_t)(star - pattern.p);
	tail = pattern.len - head - 1;
	return text.len >= head + tail && strncasecmp(pattern.p, text.p, head) == 0 &&
	       strncasecmp(star + 1, text.p + text.len - tail, tail) == 0;
}

static bool
list_matches(const struct rule *r, int list, struct span text)
{
	struct unpacker u = r->list[list];

	for (unsigned i = 0; i < r->nr[list]; i++) {
		if (matches(unpack_span(&u), text))
			return true;
	}
	return false;
}

/* Appends to a string of a header; false when it does not fit. */
static bool
append(char *out, size_t cap, struct span s)
{
	size_t n = strlen(out), comma = n ? 2 : 0;

	check(n < cap);
	if (s.len + comma >= cap - n)
		return false;
	if (comma)
		memcpy(out + n, ", ", 2);
	memcpy(out + n + comma, s.p, s.len);
	out[n + comma + s.len] = 0;
	return true;
}

static char
lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* The names of Access-Control-Request-Headers, in lower case. */
struct names {
	int nr;
	struct span name[CORS_NAMES_MAX]; /* in the text of the answer */
};

/* Writes the names of the list to out as well, as they go back.  false: they are too many, or one cannot be a name. */
static bool
read_names(struct span list, char *out, size_t cap, struct names *ret)
{
	ret->nr = 0;
	out[0] = 0;
	while (list.len) {
		struct span one = span_trim(span_cut(&list, ','));
		struct span *name = &ret->name[ret->nr];

		if (one.len == 0)
			continue;
		if (ret->nr == CORS_NAMES_MAX || has_control(one.p, one.len) || !append(out, cap, one))
			return false;
		*name = (struct span){ out + strlen(out) - one.len, one.len };
		ret->nr++;
	}
	for (char *c = out; *c; c++)
		*c = lower(*c);
	return true;
}

/* Tells whether the rule allows every name.  Each pattern is read once, because a bucket may have thousands. */
static bool
allows_names(const struct rule *r, const struct names *n)
{
	struct unpacker u = r->list[L_HEADER];
	bool allowed[CORS_NAMES_MAX] = { false };
	int left = n->nr;

	for (unsigned i = 0; i < r->nr[L_HEADER] && left > 0; i++) {
		struct span pattern = unpack_span(&u);
		const char *star = memchr(pattern.p, '*', pattern.len);
		size_t head = star ? (size_t)(star - pattern.p) : pattern.len;
		size_t tail = star ? pattern.len - head - 1 : 0;
		char text[VALUE_MAX];

		if (pattern.len > sizeof text)
			continue;
		for (size_t k = 0; k < pattern.len; k++)
			text[k] = lower(pattern.p[k]);
		for (int k = 0; k < n->nr; k++) {
			struct span name = n->name[k];

			if (allowed[k] || (star ? name.len < head + tail : name.len != head) ||
			    memcmp(name.p, text, head) != 0 ||
			    memcmp(name.p + name.len - tail, text + pattern.len - tail, tail) != 0)
				continue;
			allowed[k] = true;
			left--;
		}
	}
	return left == 0;
}

static bool
rule_answers(const struct rule *r, struct span origin, unsigned method, const struct names *names,
	     struct cors_answer *a)
{
	static const struct span star = { "*", 1 };
	struct unpacker u = r->list[L_ORIGIN];
	bool any = false;

	if (!(r->methods & method) || !list_matches(r, L_ORIGIN, origin) || !allows_names(r, names))
		return false;
	for (unsigned i = 0; i < r->nr[L_ORIGIN]; i++)
		any = span_is(unpack_span(&u), "*") || any;
	a->credentials = !any;
	if (!append(a->origin, sizeof a->origin, any ? star : origin))
		return false;
	for (size_t i = 0; i < METHODS; i++) {
		if (r->methods & 1u << i)
			append(a->methods, sizeof a->methods,
			       (struct span){ method_names[i], strlen(method_names[i]) });
	}
	u = r->list[L_EXPOSE];
	for (unsigned i = 0; i < r->nr[L_EXPOSE]; i++)
		append(a->expose, sizeof a->expose, unpack_span(&u));
	a->max_age_s = r->age;
	return true;
}

bool
cors_match(const void *packed, size_t packed_len, const char *origin, size_t origin_len, const char *method,
	   size_t method_len, const char *headers, size_t headers_len, struct cors_answer *ret)
{
	struct unpacker u = rules_of(packed, packed_len);
	struct span o = { origin, origin_len }, list = { headers ? headers : "", headers ? headers_len : 0 };
	struct names names;
	unsigned bit = 0;
	struct rule r;

	memset(ret, 0, sizeof *ret);
	for (size_t i = 0; i < METHODS; i++) {
		if (span_is((struct span){ method, method_len }, method_names[i]))
			bit = 1u << i;
	}
	if (!bit || origin_len == 0 || has_control(origin, origin_len) ||
	    !read_names(list, ret->headers, sizeof ret->headers, &names)) {
		ret->headers[0] = 0;
		return false;
	}
	while (next_rule(&u, &r)) {
		if (rule_answers(&r, o, bit, &names, ret))
			return true;
	}
	ret->headers[0] = 0;
	return false;
}
