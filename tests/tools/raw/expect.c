/* SPDX-License-Identifier: Apache-2.0 */
/* What a script may expect of a response or of a window. */
#include "raw.h"

#include <ctype.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static char why[3000];

static const char *say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static const char *
say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	return why;
}

/* Want: "text", "~regex" (extended), "" or "*" for anything. */
static bool
value_matches(const char *have, const char *want)
{
	regex_t re;

	if (*want != '~')
		return !strcmp(have, want) || !strcmp(want, "*");
	if (regcomp(&re, want + 1, REG_EXTENDED | REG_NOSUB) != 0)
		raw_die(EXIT_SCRIPT, "bad regular expression %s", want + 1);
	bool yes = regexec(&re, have, 0, NULL, 0) == 0;

	regfree(&re);
	return yes;
}

static const char *
check_status(const struct resp *r, const char *want)
{
	char have[16];

	/* "200", "2xx", "200|206" */
	snprintf(have, sizeof have, "%d", r->status);
	char list[128], *save = NULL;

	snprintf(list, sizeof list, "%s", want);
	for (char *one = strtok_r(list, "|", &save); one; one = strtok_r(NULL, "|", &save)) {
		bool yes = strlen(one) == 3;

		for (int i = 0; yes && i < 3; i++)
			yes = one[i] == 'x' || one[i] == have[i];
		if (yes)
			return NULL;
	}
	return say("status is %s, want %s", have, want);
}

static const char *
check_header(const struct resp *r, char **w, int nr)
{
	const char *have = resp_header(r, w[0]);

	if (!have)
		return say("no header %s", w[0]);
	if (nr > 1 && !value_matches(have, w[1])) {
		snprintf(why, sizeof why, "header %s is \"%s\", want \"%s\"", w[0], have, w[1]);
		return why;
	}
	return NULL;
}

/* Every header name that begins with the prefix is lower case (item 78). */
static const char *
check_lower(const struct resp *r, const char *prefix)
{
	for (const char *line = strstr(r->head, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		size_t n = strcspn(line, ":\r");

		if (strncasecmp(line, prefix, strlen(prefix)) != 0)
			continue;
		for (size_t i = 0; i < n; i++) {
			if (isupper((unsigned char)line[i])) {
				snprintf(why, sizeof why, "header name %.*s is not lower case", (int)n, line);
				return why;
			}
		}
	}
	return NULL;
}

/* Tells whether the name is spelled as AWS spells it: its own and ours in lower case, any other with a capital
 * at the beginning of each word, but for ETag. */
static bool
is_spelled(const char *name, size_t n)
{
	bool own = n > 6 && (strncasecmp(name, "x-amz-", 6) == 0 || strncasecmp(name, "x-gantry-", 9) == 0);

	if (n == 4 && strncasecmp(name, "etag", n) == 0)
		return strncmp(name, "ETag", n) == 0;
	for (size_t i = 0; i < n; i++) {
		bool begins = !own && (i == 0 || name[i - 1] == '-');

		if (begins ? islower((unsigned char)name[i]) : isupper((unsigned char)name[i]))
			return false;
	}
	return true;
}

/* Every header name is spelled so; with want "lower", in lower case, but for those that the HTTP library
 * adds. */
static const char *
check_spelled(const struct resp *r, bool lower)
{
	static const char *const library[] = { "Date", "Connection", "Content-Length" };

	for (const char *line = strstr(r->head, "\r\n"); line && line[2]; line = strstr(line, "\r\n")) {
		line += 2;
		size_t n = strcspn(line, ":\r");
		bool good = lower || is_spelled(line, n);

		for (size_t i = 0; i < n && lower; i++)
			good = good && !isupper((unsigned char)line[i]);
		for (size_t i = 0; i < sizeof library / sizeof *library && !good; i++)
			good = n == strlen(library[i]) && strncmp(line, library[i], n) == 0;
		if (!good) {
			snprintf(why, sizeof why, "header name %.*s is spelled otherwise", (int)n, line);
			return why;
		}
	}
	return NULL;
}

static const char *
differs(const char *what, int64_t at, uint64_t len)
{
	snprintf(why, sizeof why, "%s: byte %lld of %llu differs", what, (long long)at,
		 (unsigned long long)len);
	return why;
}

/* body empty | length N | contains TEXT | matches REGEX | FILL [OFFSET [LENGTH]] */
static const char *
check_body(const struct resp *r, char **w, int nr)
{
	char have[32];

	snprintf(have, sizeof have, "%zu", r->body_len);
	if (!strcmp(w[0], "empty"))
		return r->body_len ? say("body has %s bytes, want none", have) : NULL;
	if (!strcmp(w[0], "length") && nr > 1)
		return r->body_len == raw_number(w[1]) ? NULL : say("body has %s bytes, want %s", have, w[1]);
	if (!strcmp(w[0], "contains") && nr > 1)
		return r->body && memmem(r->body, r->body_len, w[1], strlen(w[1]))
			       ? NULL
			       : say("body lacks \"%s\"", w[1]);
	if (!strcmp(w[0], "lacks") && nr > 1)
		return r->body && memmem(r->body, r->body_len, w[1], strlen(w[1]))
			       ? say("body has \"%s\"", w[1])
			       : NULL;
	struct fill f = fill_parse(w[0]);
	uint64_t off = nr > 1 ? raw_number(w[1]) : 0;
	uint64_t len = nr > 2 ? raw_number(w[2]) : f.kind == FILL_FILE ? f.file_len - off : r->body_len;

	if (r->body_len != len) {
		snprintf(why, sizeof why, "body has %zu bytes, want %llu", r->body_len,
			 (unsigned long long)len);
		return why;
	}
	int64_t at = fill_compare(&f, off, r->body, r->body_len);

	return at < 0 ? NULL : differs("body", at, len);
}

static struct window *
need_window(const char *name)
{
	struct window *w = window_find(name);

	if (!w)
		raw_die(EXIT_SCRIPT, "no window \"%s\"", name);
	return w;
}

static uint64_t
clip(const struct window *w, uint64_t off, const char *len_text)
{
	uint64_t len = !len_text || !strcmp(len_text, "-") ? w->len - off : raw_number(len_text);

	if (off > w->len || len > w->len - off)
		raw_die(EXIT_SCRIPT, "window %s has only %zu bytes", w->name, w->len);
	return len;
}

/* window W FILL [FILL_OFFSET [LENGTH|- [WINDOW_OFFSET]]] */
static const char *
check_window(char **a, int nr)
{
	struct window *w = need_window(a[0]);

	if (nr < 2)
		raw_die(EXIT_SCRIPT, "expect window W FILL ...");
	struct fill f = fill_parse(a[1]);
	uint64_t fill_off = nr > 2 ? raw_number(a[2]) : 0, at = nr > 4 ? raw_number(a[4]) : 0;
	uint64_t len = clip(w, at, nr > 3 ? a[3] : NULL);
	int64_t bad = fill_compare(&f, fill_off, w->mem + at, len);

	return bad < 0 ? NULL : differs(w->name, bad + (int64_t)at, len);
}

/* untouched W [OFFSET [LENGTH|-]] */
static const char *
check_untouched(char **a, int nr)
{
	struct window *w = need_window(a[0]);
	uint64_t off = nr > 1 ? raw_number(a[1]) : 0, len = clip(w, off, nr > 2 ? a[2] : NULL);
	int64_t bad = fill_compare(&w->fill, off, w->mem + off, len);

	return bad < 0 ? NULL : differs(w->name, bad + (int64_t)off, len);
}

/* rdmasum W [OFFSET [LENGTH]]: x-amz-rdma-checksum is right for these bytes
 * of the window (protocol.md section 8) */
static const char *
check_sum(const struct resp *r, char **a, int nr)
{
	struct window *w = need_window(a[0]);
	uint64_t off = nr > 1 ? raw_number(a[1]) : 0, len = clip(w, off, nr > 2 ? a[2] : NULL);
	char want[40] = "CRC64NVME ";
	const char *have = resp_header(r, "x-amz-rdma-checksum");

	raw_crc64_base64(raw_crc64(0, w->mem + off, len), want + 10);
	return have && !strcmp(have, want)
		       ? NULL
		       : say("x-amz-rdma-checksum is \"%s\", want \"%s\"", have ? have : "(none)", want);
}

static const char *
check_time(const struct resp *r, const char *op, const char *ms)
{
	long want = raw_millis(ms);
	char have[32];

	snprintf(have, sizeof have, "%.1f ms", r->ms);
	if (*op == '<' ? r->ms < (double)want : r->ms > (double)want)
		return NULL;
	return say("the answer took %s, want other (%s)", have, ms);
}

const char *
expect_check(struct conn *c, char **w, int nr)
{
	const char *what = w[0];
	const struct resp *r = c ? &c->resp : NULL;

	if (!strcmp(what, "window") && nr > 2)
		return check_window(w + 1, nr - 1);
	if (!strcmp(what, "untouched") && nr > 1)
		return check_untouched(w + 1, nr - 1);
	if (!strcmp(what, "guards") && nr > 1)
		return window_guards(need_window(w[1]));
	if (!strcmp(what, "equal") && nr > 2)
		return value_matches(w[1], w[2]) ? NULL : say("\"%s\" is not \"%s\"", w[1], w[2]);
	if (!r)
		raw_die(EXIT_SCRIPT, "expect %s: there was no request", what);
	if (!strcmp(what, "failure"))
		return *r->err ? NULL : say("there was a response");
	if (!strcmp(what, "pending"))
		return r->done ? say("there is a response already") : NULL;
	if (!r->done)
		return say("no response in time");
	if (!strcmp(what, "closed"))
		return r->closed ? NULL : say("the connection was kept");
	if (*r->err)
		return say("no response: %s", r->err);
	if (!strcmp(what, "alive"))
		return r->closed ? say("the server closed the connection") : NULL;
	if (!strcmp(what, "status") && nr > 1)
		return check_status(r, w[1]);
	if (!strcmp(what, "header") && nr > 1)
		return check_header(r, w + 1, nr - 1);
	if (!strcmp(what, "noheader") && nr > 1)
		return resp_header(r, w[1]) ? say("header %s is there: %s", w[1], resp_header(r, w[1]))
					    : NULL;
	if (!strcmp(what, "once") && nr > 1)
		return resp_header_count(r, w[1]) == 1 ? NULL
						       : say("header %s is not there exactly once", w[1]);
	if (!strcmp(what, "spelled"))
		return check_spelled(r, nr > 1 && !strcmp(w[1], "lower"));
	if (!strcmp(what, "lower") && nr > 1)
		return check_lower(r, w[1]);
	if (!strcmp(what, "body") && nr > 1)
		return check_body(r, w + 1, nr - 1);
	if (!strcmp(what, "rdmasum") && nr > 1)
		return check_sum(r, w + 1, nr - 1);
	if (!strcmp(what, "time") && nr > 2)
		return check_time(r, w[1], w[2]);
	if (!strcmp(what, "interim") && nr > 1)
		return r->interim_nr == (int)raw_number(w[1])
			       ? NULL
			       : say("other number of 1xx answers than %s", w[1]);
	raw_die(EXIT_SCRIPT, "expect: \"%s\" is not known, or lacks a word", what);
}
