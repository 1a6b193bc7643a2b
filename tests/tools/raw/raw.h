/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of rawclient, the instrument of the conformance tests.  It shares no code with libgantry nor with the
 * daemon: what it reports is a second opinion.  One thread.  See ../rawclient.c for the script language.
 */
#ifndef GANTRY_TESTS_RAW_H
#define GANTRY_TESTS_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ibv_context;
struct ibv_pd;
struct ibv_cq;
struct ibv_srq;
struct ibv_qp;
struct ibv_mr;

#define RAW_NAME_MAX 64
#define RAW_TOKEN_MAX 600

/* ---- errors: message to stderr with the script line, then exit ---- */

enum { EXIT_FAILED = 1, EXIT_SCRIPT = 2, EXIT_NO_NIC = 3 };
_Noreturn void raw_die(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- bytes: bytes.c ---- */

enum fill_kind { FILL_PATTERN, FILL_ZERO, FILL_FILE };
/* A stream of known bytes: a pattern of a seed, zeros, or a file. */
struct fill {
	enum fill_kind kind;
	uint64_t seed;
	const unsigned char *file; /* mapped; never unmapped */
	uint64_t file_len;
};
/* "pattern:7", "zero", "file:PATH".  Dies on anything else. */
struct fill fill_parse(const char *text);
/* Bytes [off, off + len) of the stream. */
void fill_bytes(const struct fill *f, uint64_t off, unsigned char *out, size_t len);
/* Position of the first byte of mem that differs from the stream at off, or -1. */
int64_t fill_compare(const struct fill *f, uint64_t off, const unsigned char *mem, size_t len);

uint64_t raw_crc64(uint64_t crc, const void *data, size_t len);
void raw_crc64_base64(uint64_t crc, char out[13]);
/* "4096", "1M", "0x1000": bytes.  Dies on anything else. */
uint64_t raw_number(const char *text);
/* "250ms", "2s", "250": milliseconds. */
long raw_millis(const char *text);
double raw_now_ms(void);

/* ---- script words: words.c ---- */

#define WORDS_MAX 64

struct words {
	char *w[WORDS_MAX]; /* each malloc'ed */
	int nr;
};
void words_split(const char *line, struct words *ws);
/* i, serial: what %i and %n become; < 0: they stay. */
void words_expand(char **w, int nr, int i, long serial, struct words *out);
void words_free(struct words *ws);
/* The same for one word; malloc'ed. */
char *expand(const char *word, int i, long serial);
/* Takes "key" or "key=value" out of the words: its value, or NULL when it is not there.  Good for three more
 * calls. */
const char *take(char **w, int *nr, const char *key);
void set_var(const char *name, const char *value);

/* ---- NIC, windows, tokens: nic.c ---- */

struct nic {
	char name[RAW_NAME_MAX];
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *dct; /* NULL: the device has no DC */
	uint32_t dctn;
	uint64_t dc_key;
	uint8_t gid[16];
	uint16_t lid;
	bool ethernet;
	int gid_index;
	struct nic *next;
};

struct window {
	char name[RAW_NAME_MAX];
	struct nic *nic;
	unsigned char *map; /* guard, window, guard */
	size_t map_len;
	unsigned char *mem;
	size_t len, guard;
	struct ibv_mr *mr; /* NULL after dereg */
	uint32_t rkey;
	struct fill fill;
	struct rc_qp *rc; /* with RAW_RC: queue pair of its last token; NULL: none yet */
	struct window *next;
};

struct token_text {
	char name[RAW_NAME_MAX];
	char text[RAW_TOKEN_MAX];
	struct token_text *next;
};

struct nic *nic_find(const char *name, bool may_open);
struct nic *nic_open(const char *name, const char *device, uint64_t dc_key, int gid_index);
void nic_destroy_dct(struct nic *n);

struct window *window_find(const char *name);
/* access: enum ibv_access_flags; exact: the MR covers the window only, not its guards. */
struct window *window_new(const char *name, struct nic *n, size_t len, struct fill fill, size_t guard,
			  size_t shift, int access, bool exact);
void window_refill(struct window *w, struct fill fill);
void window_dereg(struct window *w);
void window_free(struct window *w);
/* NULL, or a sentence about the first guard byte that changed. */
const char *window_guards(const struct window *w);
struct window *window_first(void);

/* words: modifications, see rawclient.c. */
void token_make(const char *name, struct window *w, char **words, int nr);
const struct token_text *token_find(const char *name);
/* A token of DC. */
void token_of_window(const struct window *w, char text[RAW_TOKEN_MAX]);
/* A token of DC, or of a connection of RC for this token (RAW_RC). */
void token_of(struct window *w, char text[RAW_TOKEN_MAX]);

/* Another text of a token. */
void token_set(const char *name, const char *text);

/* ---- HTTP: http.c ---- */

struct resp {
	bool done;
	bool closed;   /* the server closed after it, or said so */
	char err[160]; /* why there is no response */
	int status;
	char *head; /* status line and headers as they came, terminated */
	size_t head_len;
	unsigned char *body;
	size_t body_len;
	int interim_nr; /* 1xx answers before it */
	double ms;      /* from the first byte sent to the last one received */
};

struct conn {
	char name[RAW_NAME_MAX];
	char server[128];
	int fd; /* -1: not connected */
	bool busy, head_request;
	char *out;
	size_t out_len, out_pos;
	unsigned char *in; /* what came and belongs to no response yet */
	size_t in_len, in_cap;
	double start_ms;
	uint64_t first_ns; /* when the response began to come, CLOCK_MONOTONIC; 0: not yet */
	struct resp resp;
	long serial; /* flood: number of the request on its way */
	struct conn *next;
};

/* Notes the end of every request that names a window, see -t. */
void replies_to(const char *path);
struct conn *conn_get(const char *name, const char *server);
struct conn *conn_find(const char *name);
/* 0 or -errno; connects when not connected. */
int conn_open(struct conn *c);
void conn_close(struct conn *c, bool reset);
/* Sends bytes and expects a response to them.  Takes `out` (malloc'ed). */
void conn_start(struct conn *c, char *out, size_t len, bool head_request);
/* Drives all busy connections until `until` says done (any of nr: the first nr) or the time is over.  Returns
 * how many of them are done. */
int conns_drive(struct conn **cs, int nr, double deadline_ms, bool any);
/* Value of a header (first occurrence) or NULL; terminated copy in a static buffer that the second next call
 * overwrites. */
const char *resp_header(const struct resp *r, const char *name);
int resp_header_count(const struct resp *r, const char *name);
void resp_print(const struct conn *c);
void resp_reset(struct resp *r);

/* ---- requests: request.c ---- */

/* words: METHOD TARGET name:value... and options.  Returns malloc'ed bytes. */
char *request_build(const char *server, char **words, int nr, size_t *ret_len, bool *ret_head);
/* The headers that sign a head (request line and headers so far); leave_out: one that is not signed.  The
 * caller frees it. */
char *head_sign(const char *head, const char *key_and_secret, const char *leave_out);

/* ---- queue pairs of RC: rc.c ---- */

/* In INIT.  Sets the variables NAME_token and NAME_psn. */
void rc_qp_new(const char *name, struct nic *n, bool with_gid);
/* With RAW_RC=HOST:PORT in the environment, where clients connect, windows have queue pairs of RC instead of the DCT, and
 * tokens are rc: tokens. */
bool rc_is_on(void);
/* The id of a connection for a token of this window: that of rc_window_new(), then another for each token.  Where the server
 * declines the connect, that of the last one. */
const char *rc_window_id(struct window *w);
/* Connects a queue pair for the window's first token. */
void rc_window_new(struct window *w);
/* The number by which the server sends to the window: that of its last queue pair, or of the DCT. */
uint32_t window_qpn(const struct window *w);
/* Destroys the queue pairs of a NIC. */
void rc_destroy_all(const struct nic *n);
/* To RTS, with what the answer to a connect says; sets NAME_id. */
void rc_qp_join(const char *name, const struct resp *r);
void rc_qp_destroy(const char *name);
/* An rc: token for the window from off, size bytes of it; 0: to its end.  id: NULL: the one of the connection. */
void rc_token(const char *name, const char *qp, const char *id, const struct window *w, uint64_t off,
	      uint64_t size);

/* ---- expectations: expect.c ---- */

/* One expectation on one response (may be NULL for those about windows).
 * NULL when met, else what is wrong. */
const char *expect_check(struct conn *c, char **words, int nr);

#endif
