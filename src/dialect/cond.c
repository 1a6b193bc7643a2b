/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional requests, RFC 9110 section 13 with S3's answers.  See dialect.h; cond_parse() is called by
 * parse.c. */
#include "dialect/dialect_int.h"

/* Adds the ETags of one header line.  Unquoted ones are taken too: S3 clients send them. */
static enum fault
add_etags(const struct field *f, struct etag_list *l, const char **ret_why)
{
	const char *p = f->value, *end = p + f->value_len;

	for (;;) {
		const char *from;

		while (p < end && (is_blank(*p) || *p == ','))
			p++;
		if (p == end)
			return FAULT_NONE;
		if (end - p >= 3 && p[0] == 'W' && p[1] == '/' && p[2] == '"')
			p += 2;
		if (l->nr == DIALECT_ETAGS_MAX)
			return refuse(ret_why, FAULT_BAD_REQUEST,
				      "If-Match or If-None-Match names more than 8 ETags.");
		if (*p == '"') {
			from = ++p;
			p = memchr(p, '"', (size_t)(end - p));
			if (!p)
				return refuse(ret_why, FAULT_BAD_REQUEST,
					      "If-Match or If-None-Match has an open quote.");
			l->etag[l->nr].text = from;
			l->etag[l->nr++].len = (uint32_t)(p++ - from);
		} else {
			for (from = p; p < end && !is_blank(*p) && *p != ',' && *p != '"'; p++)
				;
			if (p - from == 1 && *from == '*') {
				l->any = true;
			} else {
				l->etag[l->nr].text = from;
				l->etag[l->nr++].len = (uint32_t)(p - from);
			}
		}
		while (p < end && is_blank(*p))
			p++;
		if (p < end && *p != ',')
			return refuse(ret_why, FAULT_BAD_REQUEST,
				      "If-Match or If-None-Match is not a list of ETags.");
	}
}

enum fault
cond_etags(const struct dialect_in *in, const char *name, struct etag_list *l, const char **ret_why)
{
	for (int i = 0; i < in->field_nr; i++) {
		enum fault f;

		if (!name_is(&in->fields[i], name))
			continue;
		l->present = true;
		f = add_etags(&in->fields[i], l, ret_why);
		if (f != FAULT_NONE)
			return f;
	}
	if (l->present && l->any == (l->nr > 0))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "If-Match or If-None-Match is neither * nor a list of ETags.");
	return FAULT_NONE;
}

/* What is not a date, or came twice, is no condition (RFC 9110 sections 13.1.3 and 13.1.4). */
bool
cond_date(const struct dialect_in *in, const char *name, uint64_t *ret_s)
{
	int nr;
	const struct field *f = dialect_field(in, name, &nr);
	struct span s;

	if (nr != 1)
		return false;
	s = field_text(f);
	return http_date_parse(s.p, s.len, ret_s) == 0;
}

static void
parse_if_range(const struct dialect_in *in, struct target *t)
{
	int nr;
	const struct field *f = dialect_field(in, "if-range", &nr);
	struct span s;

	if (!f || t->range.kind == RANGE_NONE)
		return;
	t->have_if_range = true;
	s = field_text(f);
	if (nr > 1 || (s.len >= 2 && s.p[0] == 'W' && s.p[1] == '/'))
		return; /* no ETag: never matches */
	if (http_date_parse(s.p, s.len, &t->if_range_s) == 0) {
		t->if_range_is_date = true;
		return;
	}
	if (s.len >= 2 && s.p[0] == '"' && s.p[s.len - 1] == '"')
		s = (struct span){ s.p + 1, s.len - 2 };
	t->if_range_etag = s.p;
	t->if_range_etag_len = (uint32_t)s.len;
}

/* Conditions of DeleteObject on size and time. */
static enum fault
parse_delete(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *size, *time;
	enum fault f;

	f = field_one(in, "x-amz-if-match-size", "x-amz-if-match-size came more than once.", &size, ret_why);
	if (f == FAULT_NONE)
		f = field_one(in, "x-amz-if-match-last-modified-time",
			      "x-amz-if-match-last-modified-time came more than once.", &time, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (size && span_decimal(field_text(size), &t->if_match_size) < 0)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "x-amz-if-match-size is not a number.");
	if (time && http_date_parse(field_text(time).p, field_text(time).len, &t->if_match_mtime_s) < 0)
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "x-amz-if-match-last-modified-time is not a date.");
	t->have_if_match_size = size != NULL;
	t->have_if_match_mtime = time != NULL;
	return FAULT_NONE;
}

/* Tells whether the operation reads or replaces one object, so that it may depend on what that is. */
static bool
has_conditions(enum op op)
{
	switch (op) {
	case OP_PUT_OBJECT:
	case OP_GET_OBJECT:
	case OP_HEAD_OBJECT:
	case OP_DELETE_OBJECT:
	case OP_COPY_OBJECT:
	case OP_COMPLETE_MULTIPART_UPLOAD:
		return true;
	default:
		return false;
	}
}

/* Tells whether a field may be a condition. Most requests have no such field. */
static bool
may_have_condition(const struct dialect_in *in)
{
	for (int i = 0; i < in->field_nr; i++) {
		if (name_begins(&in->fields[i], "if-") || name_begins(&in->fields[i], "x-amz-if-"))
			return true;
	}
	return false;
}

enum fault
cond_parse(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	enum fault f;

	if (!has_conditions(t->op) || !may_have_condition(in))
		return FAULT_NONE;
	f = cond_etags(in, "if-match", &t->if_match, ret_why);
	if (f == FAULT_NONE)
		f = cond_etags(in, "if-none-match", &t->if_none_match, ret_why);
	if (f == FAULT_NONE && t->op == OP_DELETE_OBJECT)
		f = parse_delete(in, t, ret_why);
	if (f != FAULT_NONE)
		return f;
	t->have_if_modified_since = cond_date(in, "if-modified-since", &t->if_modified_since_s);
	t->have_if_unmodified_since = cond_date(in, "if-unmodified-since", &t->if_unmodified_since_s);
	parse_if_range(in, t);
	return FAULT_NONE;
}

bool
etag_list_has(const struct etag_list *l, const char *etag, size_t len)
{
	if (l->any)
		return true;
	for (int i = 0; i < l->nr; i++) {
		if (l->etag[i].len == len && memcmp(l->etag[i].text, etag, len) == 0)
			return true;
	}
	return false;
}

static bool
if_range_holds(const struct target *t, const char *etag, size_t len, uint64_t mtime_s)
{
	if (t->if_range_is_date)
		return t->if_range_s == mtime_s;
	return t->if_range_etag && t->if_range_etag_len == len && memcmp(t->if_range_etag, etag, len) == 0;
}

enum fault
dialect_conditions(struct target *t, const char *etag_text, size_t etag_len, uint64_t mtime_s)
{
	bool exists = etag_text != NULL, read = t->op == OP_GET_OBJECT || t->op == OP_HEAD_OBJECT;

	if (t->if_match.present) {
		if (!exists)
			return FAULT_NO_SUCH_KEY;
		if (!etag_list_has(&t->if_match, etag_text, etag_len))
			return FAULT_PRECONDITION;
	} else if (t->have_if_unmodified_since && exists && mtime_s > t->if_unmodified_since_s) {
		return FAULT_PRECONDITION;
	}
	if (t->if_none_match.present) {
		if (exists && etag_list_has(&t->if_none_match, etag_text, etag_len))
			return read ? FAULT_NOT_MODIFIED : FAULT_PRECONDITION;
	} else if (read && exists && t->have_if_modified_since && mtime_s <= t->if_modified_since_s) {
		return FAULT_NOT_MODIFIED;
	}
	if (exists && t->have_if_range && !if_range_holds(t, etag_text, etag_len, mtime_s))
		t->range.kind = RANGE_NONE;
	return FAULT_NONE;
}
