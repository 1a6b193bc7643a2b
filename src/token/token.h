/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parser of the client's RDMA descriptor (token): a text that names one window of client memory; protocol.md
 * section 2. A token is checked for its bounds and never trusted.
 *
 * Pure functions over bytes; any thread. For any input, no byte outside the text is read, and no byte of
 * the text is logged.
 */
#ifndef GANTRY_TOKEN_TOKEN_H
#define GANTRY_TOKEN_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_DC_LEN 81         /* length of the form of protocol.md 2.1, characters */
#define TOKEN_DC_SUFFIX_LEN 115 /* length of the form of protocol.md 2.2, characters */
#define TOKEN_RC_LEN 88         /* length of the form of protocol.md 2.4, characters */
#define TOKEN_TEXT_MAX 256

enum token_kind {
	TOKEN_DC,      /* protocol.md 2.1, 2.2 and 2.3 */
	TOKEN_RC_V1,   /* protocol.md 2.4: declined for requests of objects */
	TOKEN_RC_SCAL, /* protocol.md 2.6: recognised, and answered 501 */
	TOKEN_RC_SHIM, /* protocol.md section 8, "rc:": declined */
	TOKEN_OFI,     /* protocol.md section 8: declined */
	TOKEN_RC_BACK, /* protocol.md section 8, the form of 2.1 with DCT number 0, with which a client
	                * asks the server to connect to it: declined */
	TOKEN_JSON,    /* protocol.md section 8: declined */
	TOKEN_BASE64,  /* protocol.md section 8, a token of another kind in base64: declined */
	TOKEN_OFF,     /* any kind, if its header is switched off (protocol.md 2.7): declined; set by
	                * dialect/ */
	TOKEN_KIND_NR
};

struct token {
	enum token_kind kind;
	/* The window, after a suffix or the versity trio was applied. Every work request is within [addr,
	 * addr + size). addr + size may be 2^64 (item 6), so compare differences. */
	uint64_t addr;
	uint64_t size;
	uint32_t rkey;
	uint16_t lid;
	uint32_t dctn; /* number of the DC target; of RC_V1: of the QP */
	bool have_gid; /* the token has a GID (G = 1) */
	uint8_t gid[16];
	uint8_t port; /* port of RC_V1 */
};

/*
 * Classifies a token (protocol.md section 8) and decodes it. Returns 0, or -EINVAL with *ret_why pointing
 * to a static sentence that names the field. For a recognised family other than DC it returns 0 and only the
 * kind; the fields are not checked (RC_V1: see token_parse_rc()). Size 0 is accepted, because only the caller
 * knows whether the request moves bytes (token_check_move()). Spaces and tabs around the text and a trailing
 * ';' are ignored (item 8).
 */
int token_parse(const char *text, size_t len, struct token *ret_token, const char **ret_why);

/* Parses the value of a header that may only have the form of protocol.md 2.1 or 2.6, without a suffix
 * (x-scal-rdma, x-rdma-info: `allow_suffix` false). */
int token_parse_plain(const char *text, size_t len, struct token *ret_token, const char **ret_why);

/* Parses the three headers of versity clients (protocol.md 2.3). start, length: decimal texts or NULL.
 * is_put: the length is required. */
int token_parse_trio(const char *descr, size_t descr_len, const char *start, size_t start_len,
		     const char *length, size_t length_len, bool is_put, struct token *ret_token,
		     const char **ret_why);

/* Returns true if the text has the shape of protocol.md 2.1, whatever its values are; used for
 * x-amz-meta-rdma-token if that header is switched off (2.7). */
bool token_has_dc_shape(const char *text, size_t len);

/* Returns true if token_parse() would classify the text as TOKEN_RC_V1. */
bool token_has_rc_shape(const char *text, size_t len);

/* Checks that bytes can be moved: address and size are not 0. Returns 0 or -EINVAL; returns 0 for a family
 * whose fields token_parse() does not check. */
int token_check_move(const struct token *t, const char **ret_why);

/* Writes the 81 characters of protocol.md 2.1 and a NUL (items 112, 113). Returns 0, or -EFBIG if t->size
 * has more than 32 bits (item 114). */
int token_format(const struct token *t, char text[TOKEN_DC_LEN + 1]);

/* Parses the form of protocol.md 2.4 and its form with a suffix, and checks all fields (items 13, 14). */
int token_parse_rc(const char *text, size_t len, struct token *ret_token, const char **ret_why);
void token_format_rc(const struct token *t, char text[TOKEN_RC_LEN + 1]);

#endif
