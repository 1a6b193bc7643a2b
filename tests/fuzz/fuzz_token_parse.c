/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors.  Whatever the text: nothing outside it is read, and what passes names a window inside the
 * address space. The first byte chooses where the text is cut for the numbers of the trio.
 */
#include "token/token.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

static void
must_be_sound(const struct token *t)
{
	char text[TOKEN_DC_LEN + 1];
	struct token back;
	const char *why;

	must(t->kind < TOKEN_KIND_NR);
	must(!t->bad || t->kind == TOKEN_RC_SHIM);
	if (t->kind == TOKEN_RC_SHIM && !t->bad)
		must(t->addr && t->size && t->size <= UINT32_MAX && t->size - 1 <= UINT64_MAX - t->addr);
	if (t->kind != TOKEN_DC)
		return;
	must(t->size == 0 || t->size - 1 <= UINT64_MAX - t->addr);
	must(t->size <= UINT32_MAX);
	must(t->dctn > 0 && t->dctn <= 0xffffff && t->lid < 0xc000 && (t->have_gid || t->lid));
	/* What was understood can be said again. */
	must(token_format(t, text) == 0);
	must(token_has_dc_shape(text, TOKEN_DC_LEN));
	must(token_parse_plain(text, TOKEN_DC_LEN, &back, &why) == 0);
	must(back.addr == t->addr && back.size == t->size && back.rkey == t->rkey && back.lid == t->lid &&
	     back.dctn == t->dctn);
	must(back.have_gid == t->have_gid && memcmp(back.gid, t->gid, 16) == 0);
	(void)token_check_move(t, &why);
}

/* A copy that ends where its memory ends. */
static char *
copy_of(const char *p, size_t len)
{
	char *copy = malloc(len ? len : 1);

	must(copy);
	memcpy(copy, p, len);
	return copy;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data + 1, *why = NULL;
	char rc_text[TOKEN_RC_LEN + 1], *descr, *start, *length;
	struct token t, plain, rc;
	size_t cut1, cut2;

	if (len == 0)
		return 0;
	len--;
	descr = copy_of(text, len);
	if (token_parse(descr, len, &t, &why) == 0)
		must_be_sound(&t);
	else
		must(why && *why);
	if (token_parse_plain(descr, len, &plain, &why) == 0)
		must_be_sound(&plain);
	if (token_has_dc_shape(descr, len) && token_parse(descr, len, &t, &why) == 0)
		must(t.kind == TOKEN_DC || t.kind == TOKEN_RC_BACK);
	if (token_has_rc_shape(descr, len))
		must(token_parse(descr, len, &t, &why) == 0 && t.kind == TOKEN_RC_V1);
	if (token_parse_rc(descr, len, &rc, &why) == 0) {
		must(rc.kind == TOKEN_RC_V1 && rc.size && rc.dctn && rc.dctn <= 0xffffff && rc.port);
		token_format_rc(&rc, rc_text);
		must(token_parse_rc(rc_text, TOKEN_RC_LEN, &t, &why) == 0);
		must(t.addr == rc.addr && t.size == rc.size && t.rkey == rc.rkey && t.lid == rc.lid &&
		     t.port == rc.port);
	}
	if (token_parse_end(descr, len, &rc, &why) == 0)
		must(rc.dctn && rc.dctn <= 0xffffff && rc.port && (rc.have_gid || rc.lid) && rc.lid < 0xc000);
	else
		must(why && *why);
	free(descr);

	cut1 = len < TOKEN_DC_LEN ? len : TOKEN_DC_LEN;
	cut2 = cut1 + (len - cut1 ? data[0] % (len - cut1) : 0);
	descr = copy_of(text, cut1);
	start = copy_of(text + cut1, cut2 - cut1);
	length = copy_of(text + cut2, len - cut2);
	for (int put = 0; put < 2; put++) {
		if (token_parse_trio(descr, cut1, start, cut2 - cut1, length, len - cut2, put, &t, &why) == 0)
			must_be_sound(&t);
		if (token_parse_trio(descr, cut1, NULL, 0, length, len - cut2, put, &t, &why) == 0)
			must_be_sound(&t);
		/* Whoever takes bytes has to be told how many. */
		if (token_parse_trio(descr, cut1, start, cut2 - cut1, NULL, 0, put, &t, &why) == 0) {
			must(t.kind != TOKEN_DC || !put);
			must_be_sound(&t);
		}
	}
	free(descr);
	free(start);
	free(length);
	return 0;
}
