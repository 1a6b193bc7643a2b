/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: the first byte sets up the listener, then "METHOD TARGET" and "name: value" lines.  Whatever
 * comes, the target keeps what dialect.h promises, and every outcome can be answered.
 *
 * And whatever the spelling of a target, what is done follows from its canonical form: that form, other
 * spellings of it, and the request with a signature beside it are the same request.
 */
#include "dialect/dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())
#define FIELDS (DIALECT_FIELDS_MAX + 4)

enum { IS_SCALITY = 1, HAS_V1 = 2, DECODES = 4, META_TOKEN = 8, ANONYMOUS = 16, HAS_DOMAIN = 32 };

/* A terminated copy in its own memory. */
static char *
copy_of(const char *p, size_t len)
{
	char *copy = malloc(len + 1);

	must(copy);
	if (len)
		memcpy(copy, p, len);
	copy[len] = 0;
	return copy;
}

/* Cuts the next line off; NULL at the end. */
static const char *
next_line(const char **p, const char *end, size_t *ret_len)
{
	const char *line = *p, *nl;

	if (line == end)
		return NULL;
	nl = memchr(line, '\n', (size_t)(end - line));
	*ret_len = (size_t)((nl ? nl : end) - line);
	*p = nl ? nl + 1 : end;
	return line;
}

static int
split_fields(const char *p, const char *end, struct field *fields)
{
	const char *line;
	size_t len;
	int nr = 0;

	while (nr < FIELDS && (line = next_line(&p, end, &len))) {
		const char *colon = memchr(line, ':', len);
		size_t name_len = colon ? (size_t)(colon - line) : len;
		const char *value = colon ? colon + 1 : line + len;

		if (value < line + len && *value == ' ')
			value++;
		fields[nr].name_len = (uint32_t)name_len;
		fields[nr].value_len = (uint32_t)(line + len - value);
		fields[nr].name = copy_of(line, name_len);
		fields[nr].value = copy_of(value, fields[nr].value_len);
		nr++;
	}
	return nr;
}

/* What attrs holds, packed anew. */
struct repack {
	unsigned char bytes[DIALECT_ATTRS_MAX];
	uint32_t len;
};

/* As metadata it fits a header, whatever it is. */
static void
must_become_words(const char *value, size_t len)
{
	char words[8192];
	size_t n = len ? dialect_words(value, len, words, sizeof words) : 0;

	must(n > 0 || len == 0);
	must(n == 0 || (words[n] == 0 && !dialect_needs_words(words, n)));
}

static void
on_attr(void *cookie, const char *name, size_t name_len, const char *value, size_t value_len)
{
	struct repack *rp = cookie;

	if (value_len <= DIALECT_META_MAX)
		must_become_words(value, value_len);

	must(name_len > 0);
	must(!memchr(value, '\n', value_len) && !memchr(value, 0, value_len));
	(void)dialect_attrs_add(rp->bytes, &rp->len, sizeof rp->bytes, name, name_len, value, value_len);
}

static void
must_repack(const void *attrs, size_t len)
{
	static struct repack rp;

	rp.len = 0;
	if (dialect_attrs_each(attrs, len, on_attr, &rp) == 0 && len <= sizeof rp.bytes)
		must(rp.len == len && (len == 0 || memcmp(rp.bytes, attrs, len) == 0));
}

/* The parts of a target: as large as it needs them, so that a step beyond them is seen. */
static void *
part_of(void *cookie, enum target_part part)
{
	static void *parts[TARGET_LIST + 1];
	size_t len = part == TARGET_ATTRS  ? DIALECT_ATTRS_MAX
		     : part == TARGET_COPY ? sizeof(struct copy_source)
					   : sizeof(struct list_query);

	if (!parts[part])
		parts[part] = malloc(len);
	must(parts[part]);
	memset(parts[part], 0x5a, len);
	return parts[part];
}

static void
must_be_sound(const struct dialect_in *in, const struct target *t)
{
	static struct repack rp;
	char text[DIALECT_UPLOAD_ID_LEN + 1];
	uint8_t id[16];
	size_t len;
	bool object = t->op == OP_OPTIONS ? t->key_len > 0 : op_info[t->op].level == LEVEL_OBJECT;

	must(t->op > OP_NONE && t->op < OP_NR);
	must(t->key_len <= DIALECT_KEY_MAX && strlen(t->key) == t->key_len);
	must(strlen(t->bucket) == t->bucket_len && object == (t->key_len > 0));
	if (in->listen->dialect == DIALECT_SCALITY)
		must(object && strcmp(t->bucket, in->listen->bucket) == 0);
	else
		must(t->bucket[0] != '.' && (t->bucket_len > 0) == (op_info[t->op].level != LEVEL_SERVICE));
	must(!(t->have_content_length && t->chunked));
	if (op_pulls(t->op) && t->wire == WIRE_NONE)
		must(t->have_content_length || t->chunked);
	if (t->wire != WIRE_NONE)
		must(op_moves(t->op) && !t->aws_chunked && !t->chunked && t->content_length == 0);
	must(t->if_match.nr <= DIALECT_ETAGS_MAX && t->if_none_match.nr <= DIALECT_ETAGS_MAX);
	must(t->attrs_len <= DIALECT_ATTRS_MAX);
	must(t->attrs || !(op_info[t->op].parts & TARGET_ATTRS));
	must(!t->copy == !(op_info[t->op].parts & TARGET_COPY));
	must(!t->list == !(op_info[t->op].parts & TARGET_LIST));
	if (t->list) {
		const struct list_query *l = t->list;

		must(strlen(l->prefix) == l->prefix_len && strlen(l->after) == l->after_len);
		must(strlen(l->start_after) == l->start_after_len);
		must(strlen(l->delimiter) == l->delimiter_len && l->max <= 10000);
	}
	must(t->part_number <= DIALECT_PARTS_MAX);
	must((t->part_number > 0) >= (t->op == OP_UPLOAD_PART || t->op == OP_UPLOAD_PART_COPY));
	must(t->have_upload_id || (t->op != OP_UPLOAD_PART && t->op != OP_UPLOAD_PART_COPY &&
				   t->op != OP_COMPLETE_MULTIPART_UPLOAD &&
				   t->op != OP_ABORT_MULTIPART_UPLOAD && t->op != OP_LIST_PARTS));
	if (t->op == OP_COPY_OBJECT || t->op == OP_UPLOAD_PART_COPY)
		must(t->copy->bucket_len >= 3 && strlen(t->copy->key) == t->copy->key_len &&
		     t->copy->key_len);
	must(!t->have_trailer || t->aws_chunked);
	rp.len = 0;
	must(dialect_attrs_each(t->attrs, t->attrs_len, on_attr, &rp) == 0);
	must(rp.len == t->attrs_len);
	must(dialect_attr(t->attrs, t->attrs_len, "content-type", &len) || !len);
	if (t->have_upload_id) {
		dialect_upload_id_text(t->upload_id, text);
		must(dialect_upload_id_parse(text, DIALECT_UPLOAD_ID_LEN, id) == 0);
		must(memcmp(id, t->upload_id, sizeof id) == 0);
	}
	for (enum checksum_kind k = 0; k < SUM_NR; k++)
		must(!t->sum[k].given || t->sum[k].len == checksum_len(k));
}

static void
answer(const struct dialect_in *in, const struct target *t, enum fault f, const char *why)
{
	char out[2048];
	struct error_detail e = { .message = why,
				  .resource = in->uri->path.p,
				  .resource_len = in->uri->path.len,
				  .request_id = "r" };
	struct outcome o = dialect_outcome(t->wire, t->op, f ? OUT_ERROR : OUT_DONE, false, f);
	size_t n;

	must(o.status >= 200 && o.status < 600);
	/* What else may become of it. */
	for (int partial = 0; partial < 2 && !f; partial++) {
		struct outcome no = dialect_outcome(t->wire, t->op, OUT_DECLINED, partial, FAULT_NONE);
		struct outcome bad = dialect_outcome(t->wire, t->op, OUT_FAILED, partial, FAULT_INTERNAL);

		must(no.status == 501 &&
		     no.reply == (t->wire == WIRE_SCAL || t->wire == WIRE_NONE ? 0 : 501));
		must(!no.etag && !no.body_data && !no.bytes);
		must(bad.status >= 500 && bad.status < 600);
	}
	if (t->wire == WIRE_HIP && f)
		must(o.reply == o.status);
	if (!f)
		return;
	n = dialect_error_body(in->listen->dialect, f, &e, out, sizeof out);
	must(n > 0 && n <= sizeof out);
	e.have_size = true;
	e.range_text = "bytes=5-";
	e.region = "us-east-1";
	n = dialect_error_body(in->listen->dialect, f, &e, out, sizeof out);
	must(n > 0 && n <= sizeof out);
}

static void
run(const struct dialect_in *in)
{
	static struct target t;
	const char *why = NULL;
	const struct field *host;
	uint64_t off, len;
	bool partial;
	enum fault f;

	memset(&t, 0x5a, sizeof t);
	f = dialect_parse(in, &t, &why);
	(void)dialect_query_signed(in);
	host = dialect_field(in, "host", NULL);
	if (host)
		(void)conf_host_is_ours(in->s3, host->value, host->value_len);
	must(why && (unsigned)f < FAULT_NR && (unsigned)t.wire < WIRE_NR);
	if (f == FAULT_NONE) {
		must_be_sound(in, &t);
		f = dialect_token(in, &t, &why);
		must(f == FAULT_NONE || f == FAULT_BAD_TOKEN);
	}
	if (f == FAULT_NONE && t.wire != WIRE_NONE && t.token.kind == TOKEN_DC)
		must(t.op != OP_PUT_OBJECT || (t.token.addr && t.token.size));
	answer(in, &t, f, why);
	if (f != FAULT_NONE)
		return;
	f = dialect_conditions(&t, "0123456789abcdef-r", 18, 1445412480);
	must(f == FAULT_NONE || f == FAULT_PRECONDITION || f == FAULT_NOT_MODIFIED);
	f = dialect_conditions(&t, NULL, 0, 0);
	must(f == FAULT_NONE || f == FAULT_NO_SUCH_KEY);
	if (t.copy) {
		f = dialect_copy_conditions(t.copy, "0123456789abcdef-r", 18, 1445412480);
		must(f == FAULT_NONE || f == FAULT_PRECONDITION);
	}
	if (range_resolve(&t.range, 10000000, &off, &len, &partial) == 0)
		must(len > 0 && off < 10000000 && len <= 10000000 - off);
}

/* ---- spellings ---- */

/* Of the compiler's hands and not of dialect/'s. */
static bool
is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
	       c == '.' || c == '_' || c == '~';
}

#define SPELLED_MAX (3 * DIALECT_TARGET_MAX + 4 * DIALECT_PARAMS_MAX)

struct spelling {
	char text[SPELLED_MAX + 1];
	size_t len;
};

static uint64_t dice;

static unsigned
roll(unsigned sides)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(dice >> 33) % sides;
}

static void
spell(struct spelling *s, struct span what, bool in_path, bool canonical)
{
	for (size_t i = 0; i < what.len; i++) {
		unsigned char c = (unsigned char)what.p[i];
		bool raw = is_plain(c) || (c == '/' && (in_path || !canonical));

		/* What may also stand as it is. */
		if (!canonical && (c >= 0x80 || strchr("=:@,$;!*'()", c)))
			raw = true;
		if (!canonical && c == '+')
			raw = in_path;
		if (raw && (canonical || i == 0 || roll(3)) && !(in_path && i == 0 && c != '/'))
			s->text[s->len++] = (char)c;
		else if (c == ' ' && !in_path && !canonical && roll(2))
			s->text[s->len++] = '+';
		else
			s->len += (size_t)sprintf(s->text + s->len,
						  canonical || roll(2) ? "%%%02X" : "%%%02x", c);
	}
}

/* Writes a target that means that: as it is hashed, or in any other way. */
static void
spell_target(struct spelling *s, const struct uri *uri, bool canonical)
{
	int order[DIALECT_PARAMS_MAX];

	s->len = 0;
	spell(s, uri->path, true, canonical);
	for (int i = 0; i < uri->param_nr; i++) {
		int k = canonical ? i : (int)roll((unsigned)i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	for (int i = 0; i < uri->param_nr; i++) {
		struct span name = uri_name(uri, order[i]), value = uri_value(uri, order[i]);

		s->text[s->len++] = i ? '&' : '?';
		if (!canonical && !roll(4))
			s->text[s->len++] = '&';
		/* A '=' of a name has to be encoded. */
		for (size_t k = 0; k < name.len; k++) {
			if (name.p[k] == '=')
				s->len += (size_t)sprintf(s->text + s->len, "%%3D");
			else
				spell(s, (struct span){ name.p + k, 1 }, false, canonical);
		}
		if (value.len || canonical || roll(2))
			s->text[s->len++] = '=';
		spell(s, value, false, canonical);
	}
	s->text[s->len] = 0;
}

/* All that a target says, as far as it is text and numbers: pointers say where, and differ. */
struct meaning {
	enum fault fault;
	struct target t;
	struct list_query list;
	struct copy_source copy;
	unsigned char attrs[DIALECT_ATTRS_MAX];
};

static void
meaning_of(const struct dialect_in *in, struct meaning *m)
{
	const char *why;

	memset(m, 0, sizeof *m);
	m->fault = dialect_parse(in, &m->t, &why);
	if (m->fault != FAULT_NONE) {
		/* How the answer looks, and about what it is. */
		struct target was = m->t;

		memset(&m->t, 0, sizeof m->t);
		m->t.op = was.op;
		m->t.wire = was.wire;
		memcpy(m->t.bucket, was.bucket, sizeof was.bucket);
		return;
	}
	if (m->t.attrs)
		memcpy(m->attrs, m->t.attrs, m->t.attrs_len);
	if (m->t.list) {
		m->list = *m->t.list;
		memset(m->list.prefix + m->list.prefix_len, 0, sizeof m->list.prefix - m->list.prefix_len);
		memset(m->list.after + m->list.after_len, 0, sizeof m->list.after - m->list.after_len);
	}
	if (m->t.copy) {
		m->copy = *m->t.copy;
		memset(m->copy.key + m->copy.key_len, 0, sizeof m->copy.key - m->copy.key_len);
	}
	m->t.attrs = NULL;
	m->t.list = NULL;
	m->t.copy = NULL;
	memset(m->t.bucket + m->t.bucket_len, 0, sizeof m->t.bucket - m->t.bucket_len);
	memset(m->t.key + m->t.key_len, 0, sizeof m->t.key - m->t.key_len);
}

/* What was read is in order, each name once, and inside. */
static void
must_be_read(const struct uri *uri, size_t len)
{
	static struct spelling before, name;

	must(uri->param_nr >= 0 && uri->param_nr <= DIALECT_PARAMS_MAX && uri->path.len <= len + 1);
	must(uri->path.p[uri->path.len] == 0 || uri->fault);
	before.len = 0;
	before.text[0] = 0;
	for (int i = 0; i < uri->param_nr; i++) {
		struct span v = uri_value(uri, i);

		must(uri->param[i].value + uri->param[i].value_len <= len);
		must(v.p[v.len] == 0 && strlen(v.p) == v.len);
		must(strlen(uri_name(uri, i).p) == uri_name(uri, i).len);
		name.len = 0;
		spell(&name, uri_name(uri, i), false, true);
		name.text[name.len] = 0;
		must(strcmp(before.text, name.text) < 0);
		before = name;
	}
}

static bool
read_spelling(struct dialect_in *in, const struct spelling *s, char *text, struct uri *uri)
{
	if (s->len > DIALECT_TARGET_MAX)
		return false;
	memset(text, 0x5a, DIALECT_TARGET_MAX + 32);
	memcpy(text, s->text, s->len + 1);
	dialect_read_target(in, text, s->len, uri);
	for (size_t i = s->len + 1; i < s->len + 16; i++)
		must(text[i] == 0x5a);
	in->uri = uri;
	return true;
}

static void
spellings(const struct dialect_in *given, const char *target, size_t len)
{
	static struct uri first, other;
	static struct meaning a, b;
	static struct spelling canon, again, s;
	static char text[DIALECT_TARGET_MAX + 32];
	static struct field fields[FIELDS];
	struct dialect_in in = *given;
	char *copy = copy_of(target, len);

	dialect_read_target(&in, copy, len, &first);
	if (in.listen->dialect != DIALECT_S3 || first.fault != FAULT_NONE) {
		free(copy);
		return;
	}
	dice = len * 31 + (unsigned char)copy[len / 2];
	in.uri = &first;
	meaning_of(&in, &a);
	spell_target(&canon, &first, true);
	/* Four others; the first is the canonical form itself. */
	for (int i = 0; i < 5; i++) {
		spell_target(&s, &first, i == 0);
		if (!read_spelling(&in, &s, text, &other))
			continue;
		must(other.fault == FAULT_NONE);
		must_be_read(&other, s.len);
		spell_target(&again, &other, true);
		must(again.len == canon.len && memcmp(again.text, canon.text, canon.len) == 0);
		meaning_of(&in, &b);
		must(memcmp(&a, &b, sizeof a) == 0);
	}
	/* One bit is another canonical form, another spelling, or none. */
	s = canon;
	s.text[roll((unsigned)s.len)] ^= (char)(1 << roll(8));
	if (!memchr(s.text, 0, s.len) && read_spelling(&in, &s, text, &other) && other.fault == FAULT_NONE) {
		spell_target(&again, &other, true);
		if (again.len == canon.len && memcmp(again.text, canon.text, canon.len) == 0) {
			meaning_of(&in, &b);
			must(memcmp(&a, &b, sizeof a) == 0);
		}
	}
	/* With a signature beside it, where that is not the field too many. */
	if (in.field_nr + first.param_nr < DIALECT_FIELDS_MAX) {
		memcpy(fields, in.fields, (size_t)in.field_nr * sizeof *fields);
		fields[in.field_nr++] = (struct field){ "authorization", "AWS4", 13, 4 };
		in.fields = fields;
		in.uri = &first;
		meaning_of(&in, &b);
		must(memcmp(&a, &b, sizeof a) == 0);
	}
	free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct conf_listen listen = { .bucket = (char *)".scality" };
	struct conf_rdma rdma = { 0 };
	struct conf_s3 s3 = { .domains = { (char *)"s3.test", (char *)"test" }, .domain_nr = 2 };
	struct field fields[FIELDS];
	struct dialect_in in = {
		.listen = &listen, .rdma = &rdma, .s3 = &s3, .parts = { part_of, NULL }, .fields = fields
	};
	const char *p = (const char *)data + 1, *end = (const char *)data + len, *line, *space;
	static struct uri uri;
	char *method, *target;
	size_t line_len = 0, target_len;

	if (len == 0)
		return 0;
	listen.dialect = data[0] & IS_SCALITY ? DIALECT_SCALITY : DIALECT_S3;
	listen.v1_prefix = data[0] & HAS_V1;
	listen.decode = data[0] & DECODES;
	listen.anonymous = data[0] & ANONYMOUS;
	if (!(data[0] & HAS_DOMAIN))
		s3.domain_nr = 0;
	rdma.meta_token = data[0] & META_TOKEN;
	must_repack(p, len - 1);

	line = next_line(&p, end, &line_len);
	if (!line)
		return 0;
	space = memchr(line, ' ', line_len);
	method = copy_of(line, space ? (size_t)(space - line) : line_len);
	target_len = space ? line_len - (size_t)(space - line) - 1 : 0;
	target = copy_of(space ? space + 1 : line, target_len);
	in.method = method;
	in.uri = &uri;
	in.field_nr = split_fields(p, end, fields);
	spellings(&in, target, target_len);
	in.absent_lengths = UINT64_MAX;
	for (int i = 0; i < in.field_nr; i++)
		in.absent_lengths &= ~(UINT64_C(1) << fields[i].name_len % 64);
	dialect_read_target(&in, target, target_len, &uri);
	must_be_read(&uri, target_len);
	run(&in);
	for (int i = 0; i < in.field_nr; i++) {
		free((char *)fields[i].name);
		free((char *)fields[i].value);
	}
	free(method);
	free(target);
	return 0;
}
