/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a control call, one flat JSON object of few short members, and its query.  Pure. */
#include "admin/admin_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scan {
	const char *p;
	const char *why;
};

static void
blanks(struct scan *s)
{
	s->p += strspn(s->p, " \t\r\n");
}

static bool
eat(struct scan *s, char c)
{
	blanks(s);
	if (*s->p != c)
		return false;
	s->p++;
	return true;
}

/* A string without escapes beyond \" and \\: nothing that a call takes needs others. */
static int
text(struct scan *s, char *out, size_t cap)
{
	size_t n = 0;

	s->why = "expected a string";
	if (!eat(s, '"'))
		return -EINVAL;
	for (; *s->p && *s->p != '"'; s->p++) {
		if (*s->p == '\\' && *++s->p != '"' && *s->p != '\\') {
			s->why = "a string with such an escape is nothing that a control call takes";
			return -EINVAL;
		}
		if ((unsigned char)*s->p < 0x20 || n + 1 >= cap) {
			s->why = "a string is too long, or holds a control character";
			return -EINVAL;
		}
		out[n++] = *s->p;
	}
	out[n] = 0;
	return *s->p++ ? 0 : -EINVAL;
}

static int
value(struct scan *s, char *out, size_t cap)
{
	size_t n;

	blanks(s);
	if (*s->p == '"')
		return text(s, out, cap);
	n = strcspn(s->p, " \t\r\n,}");
	s->why = "expected a string, a number, true or false";
	if (n == 0 || n >= cap)
		return -EINVAL;
	memcpy(out, s->p, n);
	out[n] = 0;
	s->p += n;
	return strcmp(out, "true") == 0 || strcmp(out, "false") == 0 || strspn(out, "0123456789") == n
		       ? 0
		       : -EINVAL;
}

static bool
is_known(const char *known, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = known; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");

		if (n == len && memcmp(p, name, n) == 0)
			return true;
		p += n;
	}
	return false;
}

static int
member(struct scan *s, const char *known, struct admin_args *args)
{
	char *name = args->arg[args->nr].name;

	if (args->nr == ADMIN_ARGS_MAX) {
		s->why = "too many members";
		return -EINVAL;
	}
	if (text(s, name, sizeof args->arg[0].name) < 0)
		return -EINVAL;
	s->why = *known ? "unknown member" : "this call takes no members";
	if (!is_known(known, name))
		return -EINVAL;
	s->why = "a member is given twice";
	if (admin_arg(args, name))
		return -EINVAL;
	s->why = "expected a colon";
	if (!eat(s, ':') || value(s, args->arg[args->nr].value, sizeof args->arg[0].value) < 0)
		return -EINVAL;
	args->nr++;
	return 0;
}

int
args_parse(const char *body, const char *known, struct admin_args *ret_args, const char **ret_why)
{
	struct scan s = { .p = body };

	ret_args->nr = 0;
	blanks(&s);
	if (!*s.p)
		return 0;
	*ret_why = "expected a JSON object";
	if (!eat(&s, '{'))
		return -EINVAL;
	while (!eat(&s, '}')) {
		if ((ret_args->nr && !eat(&s, ',')) || member(&s, known, ret_args) < 0) {
			*ret_why = s.why ? s.why : "expected a comma";
			return -EINVAL;
		}
		s.why = NULL;
	}
	blanks(&s);
	*ret_why = "something follows the object";
	return *s.p ? -EINVAL : 0;
}

static bool
has_control(const char *text)
{
	while ((unsigned char)*text >= 0x20)
		text++;
	return *text != 0;
}

int
args_add(struct admin_args *args, const char *known, const char *name, const char *value,
	 const char **ret_why)
{
	if (!is_known(known, name))
		*ret_why = *known ? "unknown member" : "this call takes no members";
	else if (args->nr == ADMIN_ARGS_MAX || admin_arg(args, name))
		*ret_why = "a member is given twice";
	else if (strlen(name) >= sizeof args->arg[0].name || !value ||
		 strlen(value) >= sizeof args->arg[0].value)
		*ret_why = "a member without a value, or a value that is too long";
	else if (has_control(value))
		*ret_why = "a value holds a control character";
	else
		*ret_why = NULL;
	if (*ret_why)
		return -EINVAL;
	snprintf(args->arg[args->nr].name, sizeof args->arg[0].name, "%s", name);
	snprintf(args->arg[args->nr].value, sizeof args->arg[0].value, "%s", value);
	args->nr++;
	return 0;
}

const char *
admin_arg(const struct admin_args *args, const char *name)
{
	for (int i = 0; i < args->nr; i++) {
		if (strcmp(args->arg[i].name, name) == 0)
			return args->arg[i].value;
	}
	return NULL;
}
