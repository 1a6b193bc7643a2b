/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scalar values: text to the field of struct conf and back.  Called by the loader for every assignment, the
 * defaults included, so that a default is written as an operator would write it.
 */
#include "conf/conf_int.h"

#include "base/check.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int
bool_parse(const char *text, bool *ret_value)
{
	static const char *const yes[] = { "true", "on", "yes" }, *const no[] = { "false", "off", "no" };

	for (int i = 0; i < 3; i++) {
		if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
			*ret_value = strcmp(text, yes[i]) == 0;
			return 0;
		}
	}
	return -EINVAL;
}

static int
word_parse(const struct conf_key *k, const char *text, int *ret_value)
{
	for (int i = 0; k->words[i]; i++) {
		if (strcmp(k->words[i], text) == 0) {
			*ret_value = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Numbers of every kind, with "auto" as 0. */
/* What stands for `auto`: no value that the key can have. */
static uint64_t
auto_value(const struct conf_key *k)
{
	return k->min > 0 ? 0 : k->max + 1;
}

static int
number_parse(const struct conf_key *k, const char *text, uint64_t *ret_value)
{
	uint64_t v;
	int r;

	if ((k->flags & KEY_AUTO) && strcmp(text, "auto") == 0) {
		*ret_value = auto_value(k);
		return 0;
	}
	if (k->type == KT_SIZE)
		r = size_parse(text, &v);
	else if (k->type == KT_TIME)
		r = time_parse(text, &v);
	else
		r = u64_parse(text, &v);
	if (r < 0)
		return r;
	if (v < k->min || v > k->max)
		return -ERANGE;
	if (k->type == KT_MTU && (v & (v - 1)))
		return -EINVAL;
	*ret_value = v;
	return 0;
}

static bool
is_printable(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		/* ASCII's controls, and those of Unicode (two of which end a line in YAML). */
		if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
			return false;
		if (*p == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
			return false;
	}
	return true;
}

static int
string_set(const struct conf_key *k, const char *text, char **field)
{
	char *copy = NULL;

	if (!*text || !is_printable(text))
		return -EINVAL;
	if (!(k->flags & KEY_NONE) || strcmp(text, "none") != 0) {
		copy = strdup(text);
		if (!copy)
			return -ENOMEM;
	}
	free(*field);
	*field = copy;
	return 0;
}

static int
addr_set(const struct conf_key *k, const char *text, struct addr_field *f)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = 0;
	int r;

	if (!(k->flags & KEY_NONE) || strcmp(text, "none") != 0) {
		r = conf_addr_parse(text, &sa, &len);
		if (r < 0)
			return r;
	}
	r = string_set(k, text, &f->address);
	if (r < 0)
		return r;
	f->sa = sa;
	f->sa_len = len;
	return 0;
}

static int
scalar_set(const struct conf_key *k, const char *text, void *field)
{
	uint64_t v = 0;
	int r;

	switch (k->type) {
	case KT_BOOL:
		return bool_parse(text, field);
	case KT_WORD:
		return word_parse(k, text, field);
	case KT_STRING:
		return string_set(k, text, field);
	case KT_ADDR:
		return addr_set(k, text, field);
	case KT_INT:
	case KT_MTU:
		r = number_parse(k, text, &v);
		if (r == 0) {
			check(v <= INT_MAX);
			*(int *)field = (int)v;
		}
		return r;
	default:
		r = number_parse(k, text, &v);
		if (r == 0)
			*(uint64_t *)field = v;
		return r;
	}
}

static const char *
node_what(const struct node *n)
{
	if (node_is_null(n))
		return "nothing";
	return n->kind == NODE_LIST ? "a list" : n->kind == NODE_MAP ? "a map" : n->text;
}

/* Returns true with the value that the text may have meant. */
static bool
hint(const struct conf_key *k, const char *text, char *out, size_t cap)
{
	uint64_t v;
	bool is_near = k->type == KT_SIZE ? size_hint(text, out, cap)
					  : k->type == KT_TIME && time_hint(text, out, cap);

	return is_near && number_parse(k, out, &v) == 0;
}

int
value_set(struct loader *ld, const struct conf_key *k, const char *path, const struct node *n, void *base)
{
	char expected[256], meant[64];
	bool scalar = n->kind == NODE_SCALAR && !node_is_null(n);
	bool is_near;
	int r;

	if (k->type >= KT_NETS)
		return lists_set(ld, k, path, n, base);
	r = scalar ? scalar_set(k, n->text, (char *)base + k->offset) : -EINVAL;
	if (r == 0) {
		load_set_origin(ld, path, n);
		return 0;
	}
	if (r == -ENOMEM) {
		ld->no_memory = true;
		return -ENOMEM;
	}
	key_expected(k, expected, sizeof expected);
	is_near = scalar && hint(k, n->text, meant, sizeof meant);
	load_fail(ld, n, path, "expected %s, not %s%.100s%s%s%s%s", expected, scalar ? "\"" : "",
		  node_what(n), scalar ? "\"" : "", is_near ? "; did you mean " : "", is_near ? meant : "",
		  is_near ? "?" : "");
	return -EINVAL;
}

void
value_free(const struct conf_key *k, void *base)
{
	char **field = (char **)(void *)((char *)base + k->offset);

	if (k->type >= KT_NETS) {
		lists_free(k, base);
	} else if (k->type == KT_STRING || k->type == KT_ADDR) {
		free(*field);
		*field = NULL;
	}
}

void
string_print(const char *s, FILE *out)
{
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', out);
		putc(*s, out);
	}
	putc('"', out);
}

void
value_print(const struct conf_key *k, const void *base, FILE *out)
{
	const void *field = (const char *)base + k->offset;
	char text[64];

	switch (k->type) {
	case KT_BOOL:
		fputs(*(const bool *)field ? "true" : "false", out);
		return;
	case KT_WORD:
		fputs(k->words[*(const int *)field], out);
		return;
	case KT_STRING:
	case KT_ADDR:
		if (*(char *const *)field)
			string_print(*(char *const *)field, out);
		else
			fputs("none", out);
		return;
	case KT_INT:
	case KT_MTU:
		snprintf(text, sizeof text, "%d", *(const int *)field);
		break;
	case KT_U64:
		snprintf(text, sizeof text, "0x%llx", (unsigned long long)*(const uint64_t *)field);
		break;
	case KT_SIZE:
		size_format(*(const uint64_t *)field, text, sizeof text);
		break;
	case KT_TIME:
		time_format(*(const uint64_t *)field, text, sizeof text);
		break;
	default:
		lists_print(k, base, out);
		return;
	}
	if (k->type == KT_INT && (k->flags & KEY_AUTO) && (uint64_t) * (const int *)field == auto_value(k))
		fputs("auto", out);
	else
		fputs((k->flags & KEY_AUTO) && k->min > 0 && text[0] == '0' ? "auto" : text, out);
}
