/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's RDMA descriptor: one window of client memory as text. Decoded, bounded, never trusted;
 * protocol.md section 2.
 *
 * Pure functions over bytes, any thread. For any input, no byte outside the text is read and no byte of it is
 * logged.
 */
#ifndef GANTRY_TOKEN_TOKEN_H
#define GANTRY_TOKEN_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_DC_LEN 81         /* protocol.md 2.1 */
#define TOKEN_DC_SUFFIX_LEN 115 /* 2.2 */
#define TOKEN_RC_LEN 88         /* 2.4 */
#define TOKEN_TEXT_MAX 256

enum token_kind {
	TOKEN_DC,      /* 2.1, 2.2, 2.3 */
	TOKEN_RC_V1,   /* 2.4: declined on object requests */
	TOKEN_RC_SCAL, /* 2.6: recognised, 501 */
	TOKEN_RC_SHIM, /* section 8, "rc:": declined */
	TOKEN_OFI,     /* section 8: declined */
	TOKEN_RC_BACK, /* section 8: 2.1 with DCT number 0, the server is to connect back: declined */
	TOKEN_JSON,    /* section 8: declined */
	TOKEN_BASE64,  /* section 8, one of the others in base64: declined */
	TOKEN_OFF,     /* any kind whose header is switched off (2.7): declined; set by dialect/ */
	TOKEN_KIND_NR
};

struct token {
	enum token_kind kind;
	/* Effective window (after suffix or trio): every work request is within [addr, addr + size). addr +
	 * size may be 2^64 (item 6): compare by differences. */
	uint64_t addr;
	uint64_t size;
	uint32_t rkey;
	uint16_t lid;
	uint32_t dctn; /* RC_V1: the QP number */
	bool have_gid; /* G = 1 */
	uint8_t gid[16];
	uint8_t port; /* RC_V1 only */
};

/*
 * Classifies (protocol.md section 8) and decodes. 0, or -EINVAL with *ret_why pointing at a static sentence
 * that names the field. A recognised family other than DC gives 0 and its kind; its fields are not checked
 * (RC_V1: see token_parse_rc()). SIZE 0 is accepted: only the caller knows whether the request moves bytes
 * (token_check_move()). Spaces and tabs around the text and one trailing ';' are tolerated (item 8).
 */
int token_parse(const char *text, size_t len, struct token *ret_token, const char **ret_why);

/* Parses the value of a header that carries 2.1 only, or 2.6 (x-scal-rdma, x-rdma-info: `allow_suffix`
 * false). */
int token_parse_plain(const char *text, size_t len, struct token *ret_token, const char **ret_why);

/* Parses the versity trio (2.3).  start, length: decimal text or NULL.  is_put: the length is required. */
int token_parse_trio(const char *descr, size_t descr_len, const char *start, size_t start_len,
		     const char *length, size_t length_len, bool is_put, struct token *ret_token,
		     const char **ret_why);

/* Returns true if text has exactly the shape of 2.1, regardless of its values (for x-amz-meta-rdma-token when
 * off, 2.7). */
bool token_has_dc_shape(const char *text, size_t len);

/* Returns true if token_parse() would classify text as TOKEN_RC_V1. */
bool token_has_rc_shape(const char *text, size_t len);

/* Checks the conditions for moving bytes: addr != 0, size != 0. 0 or -EINVAL. 0 for a family whose fields
 * token_parse() does not check. */
int token_check_move(const struct token *t, const char **ret_why);

/* Writes the 81 characters of 2.1 and a NUL (items 112, 113).  t->size must fit 32 bits: else -EFBIG (item
 * 114). */
int token_format(const struct token *t, char text[TOKEN_DC_LEN + 1]);

/* Parses 2.4 and its suffix form, all fields validated (items 13, 14). */
int token_parse_rc(const char *text, size_t len, struct token *ret_token, const char **ret_why);
void token_format_rc(const struct token *t, char text[TOKEN_RC_LEN + 1]);

#endif
