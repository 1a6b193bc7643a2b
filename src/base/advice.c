/* SPDX-License-Identifier: Apache-2.0 */
/* The remedies of advice.def as lines of messages; see advice.h. */
#include "base/advice.h"

#include "base/log.h"

#include <stdarg.h>
#include <string.h>

#define REMEDY "remedy: "

const struct advice advice_table[ADVICE_NR] = {
#define TRY(...)                                                                                             \
	{                                                                                                    \
		__VA_ARGS__                                                                                  \
	}
#define LOSE(loss, command) loss, command
#define NOTHING_LOST NULL, NULL
#define ADVICE(id, ...) { #id, __VA_ARGS__ },
#include "base/advice.def"
#undef ADVICE
};

/* Returns the value of the name that begins at `at` with '{', and its length with the braces; NULL: no value. */
static const char *
value_of(const struct advice_values *v, const char *at, size_t *ret_len)
{
	const struct {
		const char *name, *value;
	} known[] = {
		{ "{path}", v->path },     { "{away}", v->away }, { "{accept}", v->accept },
		{ "{forget}", v->forget }, { "{loss}", v->loss }, { "{store}", v->store },
		{ "{record}", v->record }, { "{line}", v->line }, { "{size}", v->size },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		*ret_len = strlen(known[i].name);
		if (strncmp(at, known[i].name, *ret_len) == 0)
			return known[i].value && known[i].value[0] ? known[i].value : NULL;
	}
	return NULL;
}

/* Appends a text with its values.  Without one of them, or without room for all of it, the message stays as it was: half a
 * remedy is none. */
static bool
fill_in(char *text, size_t len, const char *head, const char *from, const struct advice_values *v)
{
	size_t was = strlen(text),
	       at = was + (size_t)snprintf(text + was, len - was, "%s%s", was ? "\n" : "", head), n;

	while (*from && at < len) {
		const char *value = *from == '{' ? value_of(v, from, &n) : NULL;

		if (*from == '{' && !value)
			break;
		if (!value)
			n = strcspn(from, "{");
		at += (size_t)snprintf(text + at, len - at, "%.*s", value ? (int)len : (int)n,
				       value ? value : from);
		from += n;
	}
	if (!*from && at < len)
		return true;
	text[was] = 0;
	return false;
}

void
advice_add(char *text, size_t len, enum advice_id id, const struct advice_values *values)
{
	const struct advice *a = &advice_table[id];
	const struct advice_values none = { 0 }, *v = values ? values : &none;
	char last[512];

	for (int i = 0; a->harmless[i]; i++)
		fill_in(text, len, REMEDY, a->harmless[i], v);
	if (!a->loss)
		return;
	snprintf(last, sizeof last, "%s; last resort: %s", a->loss, a->last);
	fill_in(text, len, "", last, v);
}

void
advice_first(char *text, size_t len, enum advice_id id, const struct advice_values *values)
{
	const struct advice_values none = { 0 };

	text[0] = 0;
	for (int i = 0; advice_table[id].harmless[i]; i++) {
		if (fill_in(text, len, "", advice_table[id].harmless[i], values ? values : &none))
			return;
	}
}

size_t
advice_problem(const char *text)
{
	return strcspn(text, "\n");
}

bool
advice_insert(char *text, size_t len, const char *fmt, ...)
{
	size_t at = advice_problem(text), rest = strlen(text) - at, n;
	char words[512];
	va_list ap;

	va_start(ap, fmt);
	n = (size_t)vsnprintf(words, sizeof words, fmt, ap);
	va_end(ap);
	if (n >= sizeof words || at + n + rest >= len)
		return false;
	memmove(text + at + n, text + at, rest + 1);
	memcpy(text + at, words, n);
	return true;
}

const char *
advice_last(const char *text)
{
	const char *line = strrchr(text, '\n');

	return line && strstr(line, "; last resort: ") ? line + 1 : NULL;
}

void
advice_log(int level, const char *module, const char *text)
{
	const char *line = text + advice_problem(text);

	while (*line) {
		size_t n = advice_problem(++line);

		log_write((enum log_level)level, module, "%.*s", (int)n, line);
		line += n;
	}
}
