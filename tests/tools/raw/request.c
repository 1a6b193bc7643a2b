/* SPDX-License-Identifier: Apache-2.0 */
/* rawclient's requests: the words of the script to the exact bytes that go out. */
#include "raw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
	char *p;
	size_t len, cap;
};

static void
add(struct bytes *b, const void *p, size_t len)
{
	if (b->len + len + 1 > b->cap) {
		b->cap = (b->len + len + 1) * 2;
		b->p = realloc(b->p, b->cap);
	}
	memcpy(b->p + b->len, p, len);
	b->len += len;
	b->p[b->len] = 0;
}

static void
add_text(struct bytes *b, const char *text)
{
	add(b, text, strlen(text));
}

struct options {
	const char *body, *version;
	const char *sign, *leave_out;
	long cut;     /* < 0: the whole body */
	size_t chunk; /* > 0: chunked, this much each */
	bool no_host, no_length;
};

static void
add_body_bytes(struct bytes *b, const char *spec)
{
	char copy[512], *len_text;
	struct window *w;

	snprintf(copy, sizeof copy, "%s", spec);
	if (!strncmp(spec, "text:", 5)) {
		add(b, spec + 5, strlen(spec + 5));
	} else if (!strncmp(spec, "window:", 7)) {
		if (!(w = window_find(spec + 7)))
			raw_die(EXIT_SCRIPT, "no window \"%s\"", spec + 7);
		add(b, w->mem, w->len);
	} else if (!strncmp(spec, "file:", 5)) {
		struct fill f = fill_parse(spec);

		if (f.file_len)
			add(b, f.file, f.file_len);
	} else if (!strncmp(spec, "pattern:", 8) && (len_text = strrchr(copy + 8, ':'))) {
		*len_text++ = 0;
		struct fill f = fill_parse(copy);
		size_t len = raw_number(len_text);
		unsigned char *bytes = malloc(len + 1);

		fill_bytes(&f, 0, bytes, len);
		add(b, bytes, len);
		free(bytes);
	} else {
		raw_die(EXIT_SCRIPT, "body=%s: want text:T, file:PATH, pattern:SEED:LEN or window:NAME",
			spec);
	}
}

static void
add_body(struct bytes *b, const struct bytes *body, const struct options *o)
{
	size_t len = o->cut >= 0 && (size_t)o->cut < body->len ? (size_t)o->cut : body->len;

	if (!o->chunk) {
		add(b, body->p ? body->p : "", len);
		return;
	}
	for (size_t at = 0; at < len; at += o->chunk) {
		char line[32];
		size_t n = len - at < o->chunk ? len - at : o->chunk;

		snprintf(line, sizeof line, "%zx\r\n", n);
		add_text(b, line);
		add(b, body->p + at, n);
		add_text(b, "\r\n");
	}
	if (o->cut < 0)
		add_text(b, "0\r\n\r\n");
}

static bool
take_option(const char *word, struct options *o)
{
	if (!strncmp(word, "body=", 5))
		o->body = word + 5;
	else if (!strncmp(word, "cut=", 4))
		o->cut = (long)raw_number(word + 4);
	else if (!strncmp(word, "chunk=", 6))
		o->chunk = raw_number(word + 6);
	else if (!strncmp(word, "http=", 5))
		o->version = word + 5;
	else if (!strncmp(word, "sign=", 5))
		o->sign = word + 5;
	else if (!strncmp(word, "unsigned=", 9))
		o->leave_out = word + 9;
	else if (!strcmp(word, "nohost"))
		o->no_host = true;
	else if (!strcmp(word, "nolength"))
		o->no_length = true;
	else
		return false;
	return true;
}

char *
request_build(const char *server, char **words, int nr, size_t *ret_len, bool *ret_head)
{
	struct options o = { .version = "1.1", .cut = -1 };
	struct bytes b = { 0 }, body = { 0 };
	bool has_length = false, has_host = false;
	char line[256];

	if (nr < 2)
		raw_die(EXIT_SCRIPT, "want METHOD TARGET");
	for (int i = 2; i < nr; i++) {
		if (!strncasecmp(words[i], "content-length:", 15))
			has_length = true;
		if (!strncasecmp(words[i], "host:", 5))
			has_host = true;
		if (!take_option(words[i], &o) && !strchr(words[i], ':'))
			raw_die(EXIT_SCRIPT, "\"%s\": want NAME:VALUE or an option", words[i]);
	}
	if (o.body)
		add_body_bytes(&body, o.body);
	snprintf(line, sizeof line, "%s ", words[0]);
	add_text(&b, line);
	add_text(&b, words[1]);
	snprintf(line, sizeof line, " HTTP/%s\r\n", o.version);
	add_text(&b, line);
	if (!o.no_host && !has_host) {
		snprintf(line, sizeof line, "host: %.*s\r\n", (int)strcspn(server, "/"), server);
		add_text(&b, line);
	}
	for (int i = 2; i < nr; i++) {
		struct options dummy;
		char *colon = strchr(words[i], ':');

		if (take_option(words[i], &dummy))
			continue;
		add(&b, words[i], (size_t)(colon - words[i]));
		add_text(&b, ": ");
		add_text(&b, colon + 1);
		add_text(&b, "\r\n");
	}
	if (o.chunk)
		snprintf(line, sizeof line, "transfer-encoding: chunked\r\n");
	else
		snprintf(line, sizeof line, "content-length: %zu\r\n", body.len);
	if (o.body && !has_length && !o.no_length)
		add_text(&b, line);
	if (o.sign) {
		char *more = head_sign(b.p, o.sign, o.leave_out);

		add_text(&b, more);
		free(more);
	}
	add_text(&b, "\r\n");
	if (o.body)
		add_body(&b, &body, &o);
	free(body.p);
	*ret_len = b.len;
	*ret_head = !strcmp(words[0], "HEAD");
	return b.p;
}
