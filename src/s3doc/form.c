/* SPDX-License-Identifier: Apache-2.0 */
/* multipart/form-data as it comes, see form.h.  Called by req/ with the body of a POST. */
#include "s3doc/form.h"

#include "base/check.h"
#include "dialect/rules.h"
#include "s3doc/tags_xml.h"

enum { S_BODY, S_AFTER, S_HEAD, S_END }; /* S_AFTER: after a boundary */
enum { M_PREAMBLE, M_FIELD, M_FILE, M_SKIP };

static enum fault
broken(const char **ret_why, const char *why)
{
	return refuse(ret_why, FAULT_POST_FORM, why);
}

/* The value of `name` in "a; name=value; other=\"value\"", without quotes; false when absent. */
static bool
find_param(struct span s, const char *name, struct span *ret)
{
	size_t n = strlen(name);
	const char *p = s.p, *end = p + s.len;

	while ((p = memchr(p, ';', (size_t)(end - p)))) {
		const char *from;

		for (p++; p < end && (*p == ' ' || *p == '\t'); p++)
			;
		if ((size_t)(end - p) <= n || strncasecmp(p, name, n) != 0 || p[n] != '=') {
			/* A ';' between quotes is not a separator. */
			while (p < end && *p != ';' && *p != '"')
				p++;
			if (p < end && *p == '"') {
				p = memchr(p + 1, '"', (size_t)(end - p) - 1);
				if (!p)
					return false;
			}
			continue;
		}
		p += n + 1;
		if (p < end && *p == '"') {
			from = ++p;
			p = memchr(p, '"', (size_t)(end - p));
			if (!p)
				return false;
		} else {
			for (from = p; p < end && *p != ';' && *p != ' ' && *p != '\t'; p++)
				;
		}
		*ret = (struct span){ from, (size_t)(p - from) };
		return true;
	}
	return false;
}

enum fault
form_init(struct form *f, const char *content_type, size_t len, const char **ret_why)
{
	static const char type[] = "multipart/form-data";
	struct span s = { content_type, len }, boundary;

	*ret_why = "";
	f->state = S_BODY;
	f->mode = M_PREAMBLE;
	f->head_len = f->tail = f->used = f->filename_len = 0;
	f->field_nr = 0;
	f->saw_file = f->accepted = f->have_file = false;
	f->file_bytes = 0;
	f->filename[0] = 0;
	if (len < sizeof type - 1 || strncasecmp(content_type, type, sizeof type - 1) != 0 ||
	    !find_param(s, "boundary", &boundary))
		return broken(ret_why, "Content-Type is not multipart/form-data with a boundary.");
	if (boundary.len == 0 || boundary.len > FORM_BOUNDARY_MAX || has_control(boundary.p, boundary.len))
		return broken(ret_why, "The boundary of the form has not 1 to 70 characters.");
	memcpy(f->delim, "\r\n--", 4);
	memcpy(f->delim + 4, boundary.p, boundary.len);
	f->delim_len = boundary.len + 4;
	/* The first boundary has no line in front of it. */
	f->matched = 2;
	return FAULT_NONE;
}

/*
 * What of data[0..len) is content: one run, and how much of data is dealt with.  A possible beginning of a
 * boundary is held back; if it was none, its bytes are those of the boundary and are given from there.  A
 * boundary has one CR, in front, so a failed match can begin again only where it failed.
 */
static bool
scan(struct form *f, const char *data, size_t len, size_t *ret_used, struct span *ret_run)
{
	size_t at = 0;

	check(len > 0 && f->matched < f->delim_len);
	*ret_run = (struct span){ data, 0 };
	if (f->matched) {
		while (at < len && f->matched < f->delim_len && data[at] == f->delim[f->matched]) {
			at++;
			f->matched++;
		}
		*ret_used = at;
		if (f->matched == f->delim_len)
			return true;
		if (at < len) {
			*ret_run = (struct span){ f->delim, f->matched };
			f->matched = 0;
		}
		return false;
	}
	for (;;) {
		const char *cr = memchr(data + at, '\r', len - at);
		size_t from, n = 0;

		if (!cr) {
			*ret_run = (struct span){ data, len };
			*ret_used = len;
			return false;
		}
		from = (size_t)(cr - data);
		while (from + n < len && n < f->delim_len && data[from + n] == f->delim[n])
			n++;
		if (n == f->delim_len || from + n == len) {
			f->matched = n;
			*ret_run = (struct span){ data, from };
			*ret_used = from + n;
			return n == f->delim_len;
		}
		at = from + n;
	}
}

static enum fault
add_bytes(struct form *f, const char *p, size_t len, const char **ret_why)
{
	check(f->used <= sizeof f->bytes);
	/* Room for the terminator. */
	if (len >= sizeof f->bytes - f->used)
		return refuse(ret_why, FAULT_POST_TOO_LARGE, "The fields of the form exceed 20 KiB.");
	memcpy(f->bytes + f->used, p, len);
	f->used += len;
	f->bytes[f->used] = 0;
	return FAULT_NONE;
}

static enum fault
begin_field(struct form *f, struct span name, const char **ret_why)
{
	struct form_field *fd = &f->field[f->field_nr];
	enum fault r;

	if (f->field_nr == FORM_FIELDS_MAX)
		return refuse(ret_why, FAULT_POST_TOO_LARGE, "The form has more than 64 fields.");
	fd->name = (uint32_t)f->used;
	fd->name_len = (uint32_t)name.len;
	r = add_bytes(f, name.p, name.len, ret_why);
	if (r != FAULT_NONE)
		return r;
	for (size_t i = 0; i < name.len; i++) {
		char *c = &f->bytes[fd->name + i];

		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
	}
	for (int i = 0; i < f->field_nr; i++) {
		if (f->field[i].name_len == fd->name_len &&
		    memcmp(f->bytes + f->field[i].name, f->bytes + fd->name, name.len) == 0)
			return broken(ret_why, "A field of the form came more than once.");
	}
	r = add_bytes(f, "", 1, ret_why); /* NUL after the name */
	fd->value = (uint32_t)f->used;
	fd->value_len = 0;
	f->mode = M_FIELD;
	return r;
}

#define VARIABLE "${filename}"
#define VARIABLE_LEN (sizeof VARIABLE - 1)

/* Where the variable stands in s, or NULL. */
static const char *
find_variable(struct span s)
{
	for (const char *p = s.p, *end = s.p + s.len; (p = memchr(p, '$', (size_t)(end - p))); p++) {
		if ((size_t)(end - p) < VARIABLE_LEN)
			return NULL;
		if (memcmp(p, VARIABLE, VARIABLE_LEN) == 0)
			return p;
	}
	return NULL;
}

/*
 * The name of the file in place of ${filename}, in each field's value and before anybody looks at it: what
 * the policy speaks of is what the field then says.  A value that has it is written again after all others;
 * the policy itself is what was signed.
 */
static enum fault
put_filename(struct form *f, const char **ret_why)
{
	for (int i = 0; i < f->field_nr; i++) {
		struct form_field *fd = &f->field[i];
		struct span rest = { f->bytes + fd->value, fd->value_len };
		const char *at = find_variable(rest);
		size_t from = f->used;

		if (!at || span_is((struct span){ f->bytes + fd->name, fd->name_len }, "policy"))
			continue;
		while (at) {
			size_t before = (size_t)(at - rest.p);
			enum fault r = add_bytes(f, rest.p, before, ret_why);

			if (r == FAULT_NONE)
				r = add_bytes(f, f->filename, f->filename_len, ret_why);
			if (r != FAULT_NONE)
				return r;
			rest = (struct span){ at + VARIABLE_LEN, rest.len - before - VARIABLE_LEN };
			at = find_variable(rest);
		}
		if (add_bytes(f, rest.p, rest.len, ret_why) != FAULT_NONE)
			return FAULT_POST_TOO_LARGE;
		fd->value = (uint32_t)from;
		fd->value_len = (uint32_t)(f->used - from);
		f->used++; /* the NUL after the value */
	}
	return FAULT_NONE;
}

static enum fault
begin_file(struct form *f, struct span filename, const char **ret_why)
{
	/* Some browsers give the whole path. */
	for (size_t i = filename.len; i > 0; i--) {
		if (filename.p[i - 1] == '/' || filename.p[i - 1] == '\\') {
			filename = (struct span){ filename.p + i, filename.len - i };
			break;
		}
	}
	if (filename.len >= sizeof f->filename)
		filename.len = sizeof f->filename - 1;
	memcpy(f->filename, filename.p, filename.len);
	f->filename[filename.len] = 0;
	f->filename_len = filename.len;
	f->mode = M_FILE;
	f->saw_file = f->have_file = true;
	return put_filename(f, ret_why);
}

/* The headers of a part are in f->head, each line with its CRLF. */
static enum fault
end_head(struct form *f, const char **ret_why)
{
	static const char header[] = "content-disposition:";
	const char *p = f->head, *end = p + f->head_len;
	struct span line = { p, 0 }, name, filename = { "", 0 };
	bool found = false;

	while (p < end && !found) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const char *stop = nl ? nl : end;

		line = (struct span){ p, (size_t)(stop - p) };
		if (line.len && line.p[line.len - 1] == '\r')
			line.len--;
		found = line.len > sizeof header - 1 && strncasecmp(line.p, header, sizeof header - 1) == 0;
		p = nl ? nl + 1 : end;
	}
	if (!found || !find_param(line, "name", &name) || name.len == 0 || memchr(name.p, 0, name.len))
		return broken(ret_why, "A part of the form has no Content-Disposition with a name.");
	f->head_len = 0;
	f->state = S_BODY;
	f->matched = 0;
	if (f->saw_file) {
		f->mode = M_SKIP;
	} else if (span_is_nocase(name, "file")) {
		(void)find_param(line, "filename", &filename);
		return begin_file(f, filename, ret_why);
	} else {
		enum fault r = begin_field(f, name, ret_why);

		if (r != FAULT_NONE)
			return r;
	}
	return FAULT_NONE;
}

/* Bytes of a part's headers, up to the end of a line: how many is left in *ret_used. */
static enum fault
head_bytes(struct form *f, const char *data, size_t len, size_t *ret_used, const char **ret_why)
{
	const char *nl = memchr(data, '\n', len);
	size_t n = nl ? (size_t)(nl - data) + 1 : len;

	check(f->head_len <= sizeof f->head);
	*ret_used = n;
	if (n > sizeof f->head - f->head_len)
		return broken(ret_why, "The headers of a part exceed 2048 bytes.");
	if (memchr(data, 0, n))
		return broken(ret_why, "The headers of a part have a NUL.");
	memcpy(f->head + f->head_len, data, n);
	f->head_len += n;
	if (!nl)
		return FAULT_NONE;
	if (f->head_len >= 4 && memcmp(f->head + f->head_len - 4, "\r\n\r\n", 4) == 0)
		return end_head(f, ret_why);
	if (f->head_len == 2 && memcmp(f->head, "\r\n", 2) == 0)
		return broken(ret_why, "A part of the form has no headers.");
	return FAULT_NONE;
}

/* One byte after a boundary: "--", or blanks and a line's end. */
static enum fault
after_byte(struct form *f, char c, const char **ret_why)
{
	if ((c == '-' && f->tail == 0) || (c == '\r' && f->tail == 0)) {
		f->tail = c == '-' ? 1 : 2;
	} else if (c == '-' && f->tail == 1) {
		f->state = S_END;
	} else if (c == '\n' && f->tail == 2) {
		f->state = S_HEAD;
		f->head_len = 0;
	} else if (f->tail != 0 || (c != ' ' && c != '\t')) {
		return broken(ret_why,
			      "A boundary of the form is followed by something else than a line's end.");
	}
	return FAULT_NONE;
}

static enum fault
end_part(struct form *f)
{
	if (f->mode == M_FIELD) {
		struct form_field *fd = &f->field[f->field_nr++];

		check(f->field_nr <= FORM_FIELDS_MAX && fd->value <= f->used && f->used < sizeof f->bytes);
		fd->value_len = (uint32_t)(f->used - fd->value);
		f->used++; /* the NUL after the value */
	}
	f->state = S_AFTER;
	f->tail = 0;
	f->matched = 0;
	return FAULT_NONE;
}

/* Content of the part at hand; a run of the file is left in *run. */
static enum fault
body_bytes(struct form *f, const char *data, size_t len, size_t *ret_used, struct span *ret_run,
	   const char **ret_why)
{
	bool over = scan(f, data, len, ret_used, ret_run);
	enum fault r = FAULT_NONE;

	if (f->mode == M_FIELD)
		r = add_bytes(f, ret_run->p, ret_run->len, ret_why);
	else if (f->mode == M_FILE)
		f->file_bytes += ret_run->len;
	else if (f->mode == M_PREAMBLE && ret_run->len)
		r = broken(ret_why, "The form does not begin with its boundary.");
	if (f->mode != M_FILE)
		ret_run->len = 0;
	return r == FAULT_NONE && over ? end_part(f) : r;
}

enum fault
form_feed(struct form *f, const void *data, size_t len, size_t *ret_used, const void **ret_run,
	  size_t *ret_run_len, const char **ret_why)
{
	const char *p = data;
	struct span run = { p, 0 };
	enum fault r = FAULT_NONE;
	size_t at = 0;

	*ret_why = "";
	while (at < len && run.len == 0 && r == FAULT_NONE && (!f->have_file || f->accepted)) {
		size_t used = 1;

		switch (f->state) {
		case S_BODY:
			r = body_bytes(f, p + at, len - at, &used, &run, ret_why);
			break;
		case S_AFTER:
			r = after_byte(f, p[at], ret_why);
			break;
		case S_HEAD:
			r = head_bytes(f, p + at, len - at, &used, ret_why);
			break;
		default:
			used = len - at;
			break;
		}
		at += used;
	}
	*ret_used = at;
	*ret_run = run.p;
	*ret_run_len = run.len;
	return r;
}

void
form_accept(struct form *f)
{
	check(f->have_file);
	f->accepted = true;
}

enum fault
form_end(const struct form *f, const char **ret_why)
{
	*ret_why = "";
	if (f->state != S_END)
		return refuse(ret_why, FAULT_INCOMPLETE_BODY, "The form ended before its last boundary.");
	if (!f->saw_file)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "The form has no field named file.");
	return FAULT_NONE;
}

const char *
form_get(const struct form *f, const char *name, size_t *ret_len)
{
	for (int i = 0; i < f->field_nr; i++) {
		if (span_is((struct span){ f->bytes + f->field[i].name, f->field[i].name_len }, name)) {
			*ret_len = f->field[i].value_len;
			return f->bytes + f->field[i].value;
		}
	}
	*ret_len = 0;
	return NULL;
}

/* ---- what the fields say ---- */

static enum fault
take_key(const struct form *f, struct target *t, const char **ret_why)
{
	size_t len;
	const char *key = form_get(f, "key", &len);
	enum fault r;

	t->key[0] = 0;
	t->key_len = 0;
	if (!key)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "The form has no field named key.");
	if (len > DIALECT_KEY_MAX)
		return refuse(ret_why, FAULT_KEY_TOO_LONG, "The key is longer than 1024 bytes.");
	r = memchr(key, 0, len) ? refuse(ret_why, FAULT_BAD_ARGUMENT, "The key has a NUL.")
				: key_check(key, len, ret_why);
	if (r != FAULT_NONE)
		return r == FAULT_BAD_URI ? FAULT_BAD_ARGUMENT : r;
	memcpy(t->key, key, len);
	t->key[len] = 0;
	t->key_len = (uint16_t)len;
	return FAULT_NONE;
}

static enum fault
take_tags(const struct form *f, struct target *t, const char **ret_why)
{
	size_t len;
	const char *xml = form_get(f, "tagging", &len);
	struct text x = { 0 };
	enum fault r;

	if (!xml)
		return FAULT_NONE;
	r = tags_from_xml(xml, len, TAGS_OBJECT_MAX, &x, &t->tag_nr, ret_why);
	if (r == FAULT_NONE && t->tag_nr)
		r = attrs_put(t, "x-amz-tagging", strlen("x-amz-tagging"), (struct span){ x.p, x.len },
			      ret_why);
	text_free(&x);
	return r;
}

static enum fault
take_success(const struct form *f, struct form_success *s, const char **ret_why)
{
	size_t len;
	const char *status = form_get(f, "success_action_status", &len);

	s->status = 204;
	/* Anything else than the three is as if it were not there, as on S3. */
	if (status && span_is((struct span){ status, len }, "200"))
		s->status = 200;
	if (status && span_is((struct span){ status, len }, "201"))
		s->status = 201;
	s->redirect = form_get(f, "success_action_redirect", &s->redirect_len);
	if (!s->redirect)
		s->redirect = form_get(f, "redirect", &s->redirect_len);
	if (s->redirect && ((s->redirect_len < 8 || strncasecmp(s->redirect, "http", 4) != 0) ||
			    has_control(s->redirect, s->redirect_len)))
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "success_action_redirect is not a URL.");
	return FAULT_NONE;
}

enum fault
form_target(const struct form *f, const struct dialect_in *in, struct target *t, struct form_success *ret,
	    const char **ret_why)
{
	struct field fields[FORM_FIELDS_MAX];
	struct dialect_in as_headers = *in;
	const char *acl;
	size_t len;
	enum fault r;

	check(f->have_file);
	*ret_why = "";
	as_headers.fields = fields;
	as_headers.field_nr = 0;
	as_headers.absent_lengths = 0;
	for (int i = 0; i < f->field_nr; i++) {
		const struct form_field *fd = &f->field[i];
		struct span name = { f->bytes + fd->name, fd->name_len };

		/* Those that say what headers say, and have to be as clean. */
		if (span_is(name, "key") || span_is(name, "tagging") || span_is(name, "policy") ||
		    span_is(name, "x-amz-content-sha256"))
			continue;
		if (!dialect_is_field_name(name.p, name.len)) {
			if (name.len > 6 && memcmp(name.p, "x-amz-", 6) == 0)
				return refuse(ret_why, FAULT_BAD_ARGUMENT,
					      "The name of a field of the form cannot be that of a header.");
			continue;
		}
		if (has_control(f->bytes + fd->value, fd->value_len)) {
			if (name.len > 6 &&
			    (memcmp(name.p, "x-amz-", 6) == 0 || memchr(name.p, '-', name.len)))
				return refuse(ret_why, FAULT_BAD_ARGUMENT,
					      "A field of the form that stands for a header has a control "
					      "character.");
			continue;
		}
		fields[as_headers.field_nr++] =
			(struct field){ name.p, f->bytes + fd->value, fd->name_len, fd->value_len };
	}
	acl = form_get(f, "acl", &len);
	if (acl && len && !span_is((struct span){ acl, len }, "private") &&
	    !span_is((struct span){ acl, len }, "bucket-owner-full-control"))
		return refuse(ret_why, FAULT_NO_ACLS,
			      "acl: there are no access control lists, only private is taken.");
	r = take_key(f, t, ret_why);
	if (r == FAULT_NONE)
		r = refused_check(&as_headers, t, ret_why);
	if (r == FAULT_NONE)
		r = attrs_parse(&as_headers, t, ret_why);
	if (r == FAULT_NONE)
		r = attrs_parse_class(&as_headers, t, ret_why);
	if (r == FAULT_NONE)
		r = sums_parse(&as_headers, t, ret_why);
	if (r == FAULT_NONE)
		r = ttl_parse(&as_headers, t, ret_why);
	if (r == FAULT_NONE)
		r = take_tags(f, t, ret_why);
	return r == FAULT_NONE ? take_success(f, ret, ret_why) : r;
}
