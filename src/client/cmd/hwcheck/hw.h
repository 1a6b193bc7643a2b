/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hw - declarations shared by the files of gantry hwcheck, which tests an adapter. The initiators of its
 * transfers are on this host; their targets are on the far side, in this process or on another host.
 * hwcheck.c chooses ports and prints the findings, hw_rows.c and hw_errors.c have the checks, hw_far.c
 * implements the far side, and hw_wire.c its messages from and to another host. All functions are called by
 * the main thread.
 */
#ifndef GANTRY_CLIENT_CMD_HW_H
#define GANTRY_CLIENT_CMD_HW_H

#include "client/cmd/common/cmd.h"
#include "client/cmd/hwcheck/hw_verbs.h"

#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_SLOTS 4
#define HW_GUARD 4096u /* number of guard bytes before a window, and after it, which no transfer may change */
/* smallest allowed value of hw_side.largest in bytes, because the tests of flushes need windows of this
 * size */
#define HW_SMALLEST (16u << 20)
#define HW_WINDOW_MAX (HW_LARGEST + 2 * HW_GUARD)
#define HW_ACCESS HW_REMOTE
#define HW_PORT_NR 18517

/* ---- the far side ---- */

/* Requests to the far side. All requests except HELLO are about one slot, which is a target with its
 * memory. */
enum hw_op {
	HW_HELLO = 1, /* asks for the identity of the far side */
	/* allocates len bytes of memory, registers them with mr_access, and makes a target with dct_access */
	HW_OPEN,
	HW_FILL, /* fills len bytes from `at` on by content_fill() with seed */
	/* compares len bytes from `at` on with content_fill(); the answer's value is 1: the bytes are equal;
	 * 0: they differ */
	HW_SAME,
	HW_DEREGISTER,
	HW_REGISTER, /* registers the memory again after HW_DEREGISTER, with mr_access */
	HW_END,      /* destroys the target; the memory stays registered */
	HW_CLOSE,    /* frees the slot */
	/* connects the slot's target of RC to the initiator with the number `at`, the PSN `seed`, the GID `gid`, the LID
	 * `len` and the MTU `mtu` */
	HW_CONNECT,
	HW_OP_NR
};

struct hw_ask {
	uint8_t op, slot, mtu; /* mtu: an enum ibv_mtu; 0: the MTU of the port */
	bool is_rc;            /* OPEN: true: makes a target of RC */
	union ibv_gid gid;     /* CONNECT: GID of the initiator */
	uint32_t dct_access, mr_access;
	uint64_t dc_key, at, len, seed;
};

struct hw_answer {
	int error; /* 0, or a negative errno of the far side */
	uint64_t value;
	/* data about the target, for initiators; after HELLO only GID and LID are set */
	struct hw_token token;
	uint8_t mtu;
	bool is_ib;
	bool has_rc; /* true: the far side knows RC */
	char firmware[48];
};

/* The far side in the process that has the targets. largest: largest size of a window in bytes, at least
 * HW_SMALLEST. */
struct hw_side {
	struct hw_port *port;
	uint64_t largest;
	struct hw_target slot[HW_SLOTS];
};

/* ---- its messages: hw_wire.c ---- */

enum { HW_ASK_BYTES = 64, HW_ANSWER_BYTES = 128 };
void hw_ask_encode(const struct hw_ask *q, uint8_t raw[HW_ASK_BYTES]);
/* Decodes a request. Returns false if the bytes are not a request, or if a value is out of bounds. */
bool hw_ask_decode(const uint8_t raw[HW_ASK_BYTES], struct hw_ask *ret);
void hw_answer_encode(const struct hw_answer *a, uint8_t raw[HW_ANSWER_BYTES]);
bool hw_answer_decode(const uint8_t raw[HW_ANSWER_BYTES], struct hw_answer *ret);

/* The way to the far side, which is in this process or on another host. */
struct hw_far {
	int fd; /* socket to the other host; -1: the far side is `side`, in this process */
	struct hw_side side;
	char why[160]; /* reason why the connection was lost */
};

/* Sends a request to the far side, and receives its answer. Returns 0; the -errno in the answer; or the
 * -errno of the connection, which is then closed. */
int hw_far_ask(struct hw_far *f, const struct hw_ask *q, struct hw_answer *ret);
/* Connects to the far side on another host. host: HOST[:PORT]. Returns 0, or -errno with the reason in
 * f->why. */
int hw_far_connect(struct hw_far *f, const char *host);
void hw_far_close(struct hw_far *f);
/* Serves as the far side for other hosts, one at a time. where: [ADDRESS][:PORT] on which it listens; the
 * default is a loopback address. count: number of hosts to serve; 0: no limit. Returns the exit status of the
 * program. */
int hw_listen(struct hw_port *p, const char *name, const char *where, uint64_t largest, int count,
	      bool quiet);

/* ---- the checks ---- */

enum hw_result { HW_PASS, HW_FAIL, HW_SKIP };

struct hw_row {
	const char *name;
	enum hw_result result;
	char why[200];    /* reason why the check has failed, or was omitted */
	json_t *facts;    /* results that are the same in every run */
	json_t *measured; /* results that vary between runs: times, random counts */
};

struct hw_run {
	struct hw_port port;
	struct hw_far far;
	struct hw_answer hello; /* the far side's answer to HELLO */
	const char *device;     /* name of the device */
	uint64_t largest;
	uint32_t message_max; /* largest number of bytes that the port takes in a work request */
	bool far_is_lost;
	bool is_rc; /* true: the checks are of the RC transport, otherwise of DC */
};

/* The transport that a check is about; 0: both. */
enum hw_of { HW_DC = 1, HW_RC };

struct hw_check {
	const char *name;
	void (*check)(struct hw_run *r, struct hw_row *row, uint64_t arg);
	uint64_t arg;
	enum hw_of of;
};
extern const struct hw_check hw_device_checks[], hw_transfer_checks[], hw_error_checks[], hw_life_checks[],
	/* tables of checks, in the order in which they run; each ends with an entry whose name is NULL */
	hw_cost_checks[];
/* Waits for `ms` milliseconds. */
void hw_nap(unsigned ms);

/* Makes a JSON string. Used in place of json_string() of the library jansson, because gantryd has a function
 * of that name. */
static inline json_t *
text_of(const char *text)
{
	return json_pack("s", text);
}

/* Sets the result of a check to a failure with a reason, unless it has failed already. */
void hw_fail(struct hw_row *row, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void hw_skip(struct hw_row *row, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void hw_fact(struct hw_row *row, const char *name, json_t *value);
void hw_measured(struct hw_row *row, const char *name, double value);
/* Adds the median and the largest of nr times to row->measured, as NAME_us and NAME_max_us. ns: the times in
 * ns, which the function sorts. */
void hw_times(struct hw_row *row, const char *name, uint64_t *ns, size_t nr);

/* Opens a slot of the far side, with len bytes between guard bytes and these access rights. Returns true;
 * false: this failed, and the check of this row has failed or is omitted. */
bool hw_open_window(struct hw_run *r, struct hw_row *row, uint8_t slot, uint64_t len, unsigned dct_access,
		    unsigned mr_access, struct hw_token *ret_tok);
void hw_close_window(struct hw_run *r, uint8_t slot);
bool hw_far_fill(struct hw_run *r, struct hw_row *row, uint8_t slot, uint64_t at, uint64_t len,
		 uint64_t seed);
/* Compares bytes on the far side with content_fill(). Returns 1: they are equal; 0: they differ; -1: the far
 * side reported an error, and the check of this row has failed. */
int hw_far_same(struct hw_run *r, struct hw_row *row, uint8_t slot, uint64_t at, uint64_t len, uint64_t seed);
/* Makes an initiator in the state RTS for the target of a token; tok NULL: without a target, which hw_join() sets.
 * Returns false if this failed; then the check of this row has failed. */
bool hw_initiator(struct hw_run *r, struct hw_row *row, struct hw_dci *i, const struct hw_token *tok,
		  unsigned depth, unsigned timeout, unsigned retry);
bool hw_initiator_of(struct hw_run *r, struct hw_row *row, struct hw_dci *i, const struct hw_token *tok,
		     const struct hw_dci_opt *opt);
/* Directs an initiator without a target at the target of a token in slot 0: by an address handle, or for RC by a
 * connection. opt: for RC. Returns 0 or -errno. */
int hw_join(struct hw_run *r, struct hw_dci *i, const struct hw_token *tok, const struct hw_dci_opt *opt);
#define HW_PATIENCE_MS 30000 /* largest time in ms to wait for a transfer; no transfer takes so long */
/* Counters of the port's network interface by priority: packets sent and received (hw_class.c). */
struct hw_classes {
	char netdev[32];
	uint64_t tx[8], rx[8];
};
bool hw_classes_read(const struct hw_run *r, struct hw_classes *ret, char why[128]);

#endif
