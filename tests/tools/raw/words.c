/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a script: quotes, variables, @NAME, %i and %n. */
#include "raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct var {
	char name[RAW_NAME_MAX];
	char *value;
	struct var *next;
};
static struct var *vars;

void
set_var(const char *name, const char *value)
{
	struct var *v = vars;

	while (v && strcmp(v->name, name) != 0)
		v = v->next;
	if (!v) {
		v = calloc(1, sizeof *v);
		snprintf(v->name, sizeof v->name, "%s", name);
		v->next = vars;
		vars = v;
	}
	free(v->value);
	v->value = strdup(value);
}

void
words_free(struct words *ws)
{
	for (int i = 0; i < ws->nr; i++)
		free(ws->w[i]);
	ws->nr = 0;
}

static const char *
unquote(const char *p, char *out, size_t *n)
{
	for (p++; *p && *p != '"'; p++) {
		char c = *p;

		if (c == '\\' && p[1]) {
			unsigned x;

			c = *++p;
			if (c == 'r')
				c = '\r';
			else if (c == 'n')
				c = '\n';
			else if (c == 't')
				c = '\t';
			else if (c == 'x' && sscanf(p + 1, "%2x", &x) == 1)
				c = (char)x, p += 2;
		}
		out[(*n)++] = c;
	}
	return *p ? p + 1 : p;
}

void
words_split(const char *line, struct words *ws)
{
	char *word = malloc(strlen(line) + 1);

	ws->nr = 0;
	for (const char *p = line;;) {
		size_t n = 0;

		p += strspn(p, " \t\r\n");
		if (!*p || *p == '#')
			break;
		while (*p && !strchr(" \t\r\n", *p)) {
			if (*p == '"')
				p = unquote(p, word, &n);
			else
				word[n++] = *p++;
		}
		word[n] = 0;
		if (ws->nr == WORDS_MAX)
			raw_die(EXIT_SCRIPT, "more than %d words", WORDS_MAX);
		ws->w[ws->nr++] = strdup(word);
	}
	free(word);
}

static void
of_window(const char *what, const struct window *w, char *out, size_t cap)
{
	if (!strcmp(what, "addr"))
		snprintf(out, cap, "%llu", (unsigned long long)(uintptr_t)w->mem);
	else if (!strcmp(what, "hexaddr"))
		snprintf(out, cap, "%016llx", (unsigned long long)(uintptr_t)w->mem);
	else if (!strcmp(what, "rkey"))
		snprintf(out, cap, "%08x", w->rkey);
	else if (!strcmp(what, "size"))
		snprintf(out, cap, "%zu", w->len);
	else if (!strcmp(what, "dctn"))
		snprintf(out, cap, "%06x", window_qpn(w));
	else if (!strcmp(what, "gid"))
		for (size_t i = 0; i < 16; i++)
			snprintf(out + 2 * i, cap - 2 * i, "%02x", w->nic->gid[i]);
	else if (!strcmp(what, "crc64"))
		raw_crc64_base64(raw_crc64(0, w->mem, w->len), out);
	else
		raw_die(EXIT_SCRIPT, "@%s: is not known", what);
}

/* The text behind '@'; returns how many characters of p it took. */
static size_t
lookup(const char *p, char *out, size_t cap)
{
	char name[RAW_NAME_MAX];
	size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	snprintf(name, sizeof name, "%.*s", (int)n, p);
	for (const struct var *v = vars; v; v = v->next) {
		if (!strcmp(v->name, name)) {
			snprintf(out, cap, "%s", v->value);
			return n;
		}
	}
	const struct token_text *t = token_find(name);
	struct window *w = window_find(name);

	if (t) {
		snprintf(out, cap, "%s", t->text);
		return n;
	}
	if (w) {
		token_of(w, out);
		return n;
	}
	if (p[n] == ':') {
		char win[RAW_NAME_MAX];
		size_t m =
			strspn(p + n + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

		snprintf(win, sizeof win, "%.*s", (int)m, p + n + 1);
		if ((w = window_find(win))) {
			of_window(name, w, out, cap);
			return n + 1 + m;
		}
	}
	raw_die(EXIT_SCRIPT, "@%s: no such token, window or variable", name);
}

char *
expand(const char *word, int i, long serial)
{
	size_t cap = strlen(word) + 16384, n = 0;
	char *out = malloc(cap), numbers[8192];
	size_t m = 0;

	/* Numbers first, so that @w%i finds w3. */
	for (const char *p = word; *p && m < sizeof numbers - 32; p++) {
		if (p[0] == '%' && (p[1] == 'i' || p[1] == 'n') && (p[1] == 'i' ? i >= 0 : serial >= 0))
			m += (size_t)snprintf(numbers + m, 32, "%ld", *++p == 'i' ? (long)i : serial);
		else
			numbers[m++] = *p;
	}
	numbers[m] = 0;
	for (const char *p = numbers; *p;) {
		char text[4096];

		if (*p != '@') {
			out[n++] = *p++;
			continue;
		}
		if (p[1] == '@') {
			out[n++] = '@';
			p += 2;
			continue;
		}
		p += 1 + lookup(p + 1, text, sizeof text);
		size_t len = strlen(text);

		if (n + len + 1 >= cap)
			out = realloc(out, cap = (n + len + 1) * 2);
		memcpy(out + n, text, len);
		n += len;
	}
	out[n] = 0;
	return out;
}

void
words_expand(char **w, int nr, int i, long serial, struct words *out)
{
	out->nr = nr;
	for (int k = 0; k < nr; k++)
		out->w[k] = expand(w[k], i, serial);
}

/* Takes "key=value" out of the words; NULL when it is not there. */
const char *
take(char **w, int *nr, const char *key)
{
	static char values[4][512];
	static int turn;
	size_t n = strlen(key);

	for (int i = 0; i < *nr; i++) {
		if (strncmp(w[i], key, n) != 0 || (w[i][n] != '=' && w[i][n]))
			continue;
		char *out = values[turn = (turn + 1) % 4];

		snprintf(out, sizeof values[0], "%s", w[i][n] ? w[i] + n + 1 : "");
		char *gone = w[i];

		memmove(w + i, w + i + 1, (size_t)(*nr - i - 1) * sizeof *w);
		w[--*nr] = gone; /* still owned by the list */
		return out;
	}
	return NULL;
}
