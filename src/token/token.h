/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parser of RDMA descriptors (tokens). A token is a text in which a client names one window of its memory;
 * protocol.md section 2. The parser checks the bounds of a token; nothing else in it is trusted.
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
	TOKEN_DC,      /* forms of protocol.md 2.1, 2.2 and 2.3 */
	TOKEN_RC_V1,   /* form of protocol.md 2.4: declined for requests of objects */
	TOKEN_RC_SCAL, /* form of protocol.md 2.6: recognised, and answered 501 */
	TOKEN_RC_SHIM, /* form "rc:" of protocol.md section 8: names a connection of the RC transport */
	TOKEN_OFI,     /* form "ofi:" of protocol.md section 8: declined */
	/* the form of protocol.md 2.1 with DCT number 0 (section 8): a client asks the server to connect to
	 * it; declined */
	TOKEN_RC_BACK,
	TOKEN_JSON,   /* JSON form of protocol.md section 8: declined */
	TOKEN_BASE64, /* a token of another kind in base64 (protocol.md section 8): declined */
	/* a token of any kind in a header that is switched off (protocol.md 2.7): declined; set by dialect/,
	 * not by the parser */
	TOKEN_OFF,
	TOKEN_KIND_NR
};

struct token {
	enum token_kind kind;
	/* The window [addr, addr + size), after a suffix or the headers of versity clients were applied;
	 * every work request stays inside. addr + size can be 2^64 (item 6), so code must compare
	 * differences. */
	uint64_t addr;
	uint64_t size;
	uint32_t rkey;
	uint16_t lid;
	uint32_t dctn; /* number of the DC target; for RC_V1: number of the QP */
	bool have_gid; /* true: the token has a GID (G = 1) */
	uint8_t gid[16];
	uint8_t port;   /* for RC_V1: number of the port of the adapter */
	uint8_t id[16]; /* for RC_SHIM: id of the connection */
	/* for RC_SHIM: sentence that names the invalid field, if the token is malformed; NULL: it is valid */
	const char *bad;
};

/*
 * Determines the kind of a token (protocol.md section 8) and decodes it. Returns 0; or -EINVAL with a static
 * sentence in *ret_why that names the invalid field. Only tokens of kind TOKEN_DC and TOKEN_RC_SHIM are decoded: for
 * another kind the function returns 0 and sets only ret_token->kind (RC_V1: see token_parse_rc()). For RC_SHIM the
 * function always returns 0, because a server that does not serve this kind declines it whatever is in it:
 * ret_token->bad tells whether it is valid. Size 0 is
 * accepted, because only the caller knows whether the request moves bytes (token_check_move()). Spaces and
 * tabs around the text and a trailing ';' are ignored (item 8).
 */
int token_parse(const char *text, size_t len, struct token *ret_token, const char **ret_why);

/* Parses the value of a header that allows only the forms of protocol.md 2.1 and 2.6, without a suffix:
 * x-scal-rdma and x-rdma-info. Returns 0, or -EINVAL with a static sentence in *ret_why. */
int token_parse_plain(const char *text, size_t len, struct token *ret_token, const char **ret_why);

/* Parses the three headers of versity clients (protocol.md 2.3). start, length: decimal texts; NULL: the
 * header is missing. is_put: true: length is required. Returns 0, or -EINVAL with a static sentence in
 * *ret_why. */
int token_parse_trio(const char *descr, size_t descr_len, const char *start, size_t start_len,
		     const char *length, size_t length_len, bool is_put, struct token *ret_token,
		     const char **ret_why);

/* Returns true if the text has the shape of protocol.md 2.1: length, digits and colons; the values are not
 * checked. Used for x-amz-meta-rdma-token while this header is switched off (2.7). */
bool token_has_dc_shape(const char *text, size_t len);

/* Returns true if token_parse() would classify the text as TOKEN_RC_V1. */
bool token_has_rc_shape(const char *text, size_t len);

/* Checks that the address and the size of the window are not 0, so that bytes can be moved. Returns 0 or
 * -EINVAL; always 0 for a kind that token_parse() does not decode. */
int token_check_move(const struct token *t, const char **ret_why);

/* Writes a token of 81 characters and a NUL in the form of protocol.md 2.1 (items 112, 113). Returns 0, or
 * -EFBIG if t->size has more than 32 bits (item 114). */
int token_format(const struct token *t, char text[TOKEN_DC_LEN + 1]);

/* Parses a token in the form of protocol.md 2.4, with or without a suffix, and checks all fields (items 13,
 * 14). Returns 0, or -EINVAL with a static sentence in *ret_why. */
int token_parse_rc(const char *text, size_t len, struct token *ret_token, const char **ret_why);
/* Parses a token in the form of protocol.md 2.4 that names the client's end of a connection: queue pair, GID or LID, port;
 * window and suffix are ignored. Returns 0, or -EINVAL with a static sentence in *ret_why. */
int token_parse_end(const char *text, size_t len, struct token *ret_token, const char **ret_why);
void token_format_rc(const struct token *t, char text[TOKEN_RC_LEN + 1]);

#endif
