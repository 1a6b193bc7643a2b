/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tolerant reader for configuration files in JSON: cufile.json as shipped has comments.  Any thread, no
 * allocation.
 */
#include "client/client_int.h"

#include <errno.h>
#include <string.h>

#define DEPTH_MAX 32
#define TEXT_MAX 1024

struct json {
	const char *p, *end;
	int line;
	const char *why;
	json_fn *fn;
	void *cookie;
	char text[TEXT_MAX];
	size_t text_len;
	/* The key of each open object; an array has that of the object around it. */
	char key[DEPTH_MAX + 1][TEXT_MAX];
	bool is_object[DEPTH_MAX + 1];
	int depth;
};

static int
bad(struct json *j, const char *why)
{
	j->why = why;
	return -EINVAL;
}

/* Past blanks, line ends and comments. */
static int
skip(struct json *j)
{
	while (j->p < j->end) {
		char c = *j->p;

		if (c == '\n')
			j->line++;
		if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
			j->p++;
		} else if (c == '#' || (c == '/' && j->p + 1 < j->end && j->p[1] == '/')) {
			while (j->p < j->end && *j->p != '\n')
				j->p++;
		} else if (c == '/' && j->p + 1 < j->end && j->p[1] == '*') {
			for (j->p += 2;; j->p++) {
				if (j->end - j->p < 2)
					return bad(j, "a comment does not end");
				if (j->p[0] == '*' && j->p[1] == '/')
					break;
				j->line += *j->p == '\n';
			}
			j->p += 2;
		} else {
			break;
		}
	}
	return 0;
}

static int
add(struct json *j, unsigned char c)
{
	if (j->text_len + 1 >= TEXT_MAX)
		return bad(j, "a string or number is too long");
	j->text[j->text_len++] = (char)c;
	j->text[j->text_len] = 0;
	return 0;
}

static int
add_code_point(struct json *j, unsigned c)
{
	int r = 0;

	if (c == 0)
		return bad(j, "a string contains a NUL");
	if (c < 0x80)
		return add(j, (unsigned char)c);
	if (c < 0x800) {
		r = add(j, (unsigned char)(0xc0 | c >> 6));
	} else {
		r = add(j, (unsigned char)(0xe0 | c >> 12));
		if (!r)
			r = add(j, (unsigned char)(0x80 | (c >> 6 & 0x3f)));
	}
	return r ? r : add(j, (unsigned char)(0x80 | (c & 0x3f)));
}

static int
read_escape(struct json *j)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

	if (j->p == j->end)
		return bad(j, "a string does not end");
	char c = *j->p++;
	const char *at = c ? strchr(from, c) : NULL;

	if (at)
		return add(j, (unsigned char)to[at - from]);
	if (c != 'u' || j->end - j->p < 4)
		return bad(j, "an unknown escape in a string");
	unsigned code = 0;

	for (int i = 0; i < 4; i++) {
		char d = *j->p++;

		if (d >= '0' && d <= '9')
			code = code * 16 + (unsigned)(d - '0');
		else if ((d | 32) >= 'a' && (d | 32) <= 'f')
			code = code * 16 + (unsigned)((d | 32) - 'a') + 10;
		else
			return bad(j, "an unknown escape in a string");
	}
	/* Halves of surrogate pairs have no place in names and addresses. */
	if (code >= 0xd800 && code < 0xe000)
		code = 0xfffd;
	return add_code_point(j, code);
}

/* Reads a string; j->p is after the opening quote. */
static int
read_string(struct json *j)
{
	j->text_len = 0;
	j->text[0] = 0;
	for (;;) {
		int r;

		if (j->p == j->end || *j->p == '\n')
			return bad(j, "a string does not end");
		char c = *j->p++;

		if (c == '"')
			return 0;
		if (c == 0)
			return bad(j, "a string contains a NUL");
		r = c == '\\' ? read_escape(j) : add(j, (unsigned char)c);
		if (r)
			return r;
	}
}

/* Numbers and words; hexadecimal numbers without quotes are common in these files. */
static int
read_word(struct json *j, enum json_type *ret_type)
{
	j->text_len = 0;
	j->text[0] = 0;
	while (j->p < j->end) {
		char c = *j->p;
		int r;

		if (!((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '+' ||
		      c == '-' || c == '.'))
			break;
		r = add(j, (unsigned char)c);
		if (r)
			return r;
		j->p++;
	}
	if (!strcmp(j->text, "true"))
		*ret_type = JSON_TRUE;
	else if (!strcmp(j->text, "false"))
		*ret_type = JSON_FALSE;
	else if (!strcmp(j->text, "null"))
		*ret_type = JSON_NULL;
	else if ((j->text[0] >= '0' && j->text[0] <= '9') || (j->text[0] == '-' && j->text_len > 1))
		*ret_type = JSON_NUMBER;
	else
		return bad(j, "neither a value nor a bracket");
	return 0;
}

static int
open_bracket(struct json *j, bool is_object)
{
	if (j->depth == DEPTH_MAX)
		return bad(j, "nested too deeply");
	j->depth++;
	j->is_object[j->depth] = is_object;
	memcpy(j->key[j->depth], j->key[j->depth - 1], TEXT_MAX);
	return 0;
}

/* "key" : */
static int
read_key(struct json *j)
{
	int r;

	if (*j->p != '"')
		return bad(j, "a key in quotes is missing");
	j->p++;
	r = read_string(j);
	if (!r)
		r = skip(j);
	if (r)
		return r;
	if (j->p == j->end || *j->p != ':')
		return bad(j, "a ':' is missing after a key");
	j->p++;
	memcpy(j->key[j->depth], j->text, TEXT_MAX);
	return skip(j);
}

/* One value at j->p: a scalar is reported, a bracket opened.  *ret_closed: a value is complete. */
static int
read_value(struct json *j, bool *ret_complete)
{
	enum json_type type = JSON_STRING;
	int r;

	*ret_complete = true;
	if (j->p == j->end)
		return bad(j, "a value is missing");
	if (*j->p == '{' || *j->p == '[') {
		*ret_complete = false;
		return open_bracket(j, *j->p++ == '{');
	}
	if (*j->p == '"') {
		j->p++;
		r = read_string(j);
	} else {
		r = read_word(j, &type);
	}
	return r ? r : j->fn(j->cookie, j->key[j->depth], type, j->text, j->text_len);
}

static int
run(struct json *j)
{
	bool after_value = false;
	int r;

	if (j->end - j->p >= 3 && !memcmp(j->p, "\xef\xbb\xbf", 3))
		j->p += 3;
	for (;;) {
		r = skip(j);
		if (r)
			return r;
		if (j->depth == 0 && after_value)
			return j->p == j->end ? 0 : bad(j, "something follows the end");
		if (j->p == j->end)
			return bad(j, j->depth ? "a bracket is not closed" : "the file is empty");
		if (j->depth && *j->p == (j->is_object[j->depth] ? '}' : ']')) {
			j->p++;
			j->depth--;
			after_value = true;
			continue;
		}
		if (after_value) {
			if (*j->p != ',')
				return bad(j, "a ',' is missing");
			j->p++;
			after_value = false;
			continue;
		}
		if (j->depth && j->is_object[j->depth]) {
			r = read_key(j);
			if (r)
				return r;
		}
		r = read_value(j, &after_value);
		if (r)
			return r;
	}
}

int
json_parse(const char *text, size_t len, json_fn *fn, void *cookie, int *ret_line, const char **ret_why)
{
	struct json j = { .p = text, .end = text + len, .line = 1, .fn = fn, .cookie = cookie };
	int r = run(&j);

	if (r == -EINVAL && j.why) {
		*ret_line = j.line;
		*ret_why = j.why;
	}
	return r;
}
