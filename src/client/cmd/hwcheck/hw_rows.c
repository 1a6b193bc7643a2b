/* SPDX-License-Identifier: Apache-2.0 */
/* gantry hwcheck: what all checks say and do, and those of the device and of transfers that should succeed. */
#include "client/cmd/hwcheck/hw.h"

#include "base/clock.h"
#include "client/cmd/common/content.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED_GUARD = 1, SEED_DATA = 2, SEED_LOCAL = 3 };

/* ---- what a check says ---- */

static void
say(struct hw_row *row, enum hw_result result, const char *fmt, va_list ap)
{
	if (row->result != HW_PASS)
		return;
	row->result = result;
	vsnprintf(row->why, sizeof row->why, fmt, ap);
}

void
hw_fail(struct hw_row *row, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(row, HW_FAIL, fmt, ap);
	va_end(ap);
}

void
hw_skip(struct hw_row *row, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(row, HW_SKIP, fmt, ap);
	va_end(ap);
}

void
hw_fact(struct hw_row *row, const char *name, json_t *value)
{
	json_object_set_new(row->facts, name, value);
}

void
hw_measured(struct hw_row *row, const char *name, double value)
{
	json_object_set_new(row->measured, name, json_real((double)(int64_t)(value * 1000 + .5) / 1000));
}

static int
by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void
hw_times(struct hw_row *row, const char *name, uint64_t *ns, size_t nr)
{
	char text[48];

	qsort(ns, nr, sizeof *ns, by_size);
	snprintf(text, sizeof text, "%s_us", name);
	hw_measured(row, text, (double)ns[nr / 2] / 1e3);
	snprintf(text, sizeof text, "%s_max_us", name);
	hw_measured(row, text, (double)ns[nr - 1] / 1e3);
}

/* ---- the far side, for checks ---- */

/* 0, or negative when the row has ended. */
static int
ask(struct hw_run *r, struct hw_row *row, const struct hw_ask *q, struct hw_answer *a, const char *what)
{
	int e = hw_far_ask(&r->far, q, a);

	if (*r->far.why) {
		r->far_is_lost = true;
		hw_fail(row, "%s", r->far.why);
	} else if (e == -ENOMEM || e == -EFBIG || e == -EAGAIN) {
		hw_skip(row, "%s on the far side: %s%s", what, strerror(-e),
			e == -ENOMEM ? " (memory, or the limit of locked memory: ulimit -l)" : "");
	} else if (e < 0) {
		hw_fail(row, "%s on the far side: %s", what, strerror(-e));
	}
	return e;
}

bool
hw_open_window(struct hw_run *r, struct hw_row *row, uint8_t slot, uint64_t len, unsigned dct_access,
	       unsigned mr_access, struct hw_token *ret_tok)
{
	struct hw_ask q = { .op = HW_OPEN,
			    .slot = slot,
			    .dct_access = dct_access,
			    .mr_access = mr_access,
			    .is_rc = r->is_rc,
			    .dc_key = 0x676e747279000000ull + slot,
			    .len = len + 2 * HW_GUARD };
	struct hw_answer a;

	if (ask(r, row, &q, &a, "a target with memory") < 0)
		return false;
	*ret_tok = a.token;
	if (hw_far_fill(r, row, slot, 0, HW_GUARD, SEED_GUARD) &&
	    hw_far_fill(r, row, slot, HW_GUARD + len, HW_GUARD, SEED_GUARD))
		return true;
	hw_close_window(r, slot);
	return false;
}

void
hw_close_window(struct hw_run *r, uint8_t slot)
{
	struct hw_ask q = { .op = HW_CLOSE, .slot = slot };
	struct hw_answer a;

	hw_far_ask(&r->far, &q, &a);
}

bool
hw_far_fill(struct hw_run *r, struct hw_row *row, uint8_t slot, uint64_t at, uint64_t len, uint64_t seed)
{
	struct hw_ask q = { .op = HW_FILL, .slot = slot, .at = at, .len = len, .seed = seed };
	struct hw_answer a;

	return ask(r, row, &q, &a, "filling memory") == 0;
}

int
hw_far_same(struct hw_run *r, struct hw_row *row, uint8_t slot, uint64_t at, uint64_t len, uint64_t seed)
{
	struct hw_ask q = { .op = HW_SAME, .slot = slot, .at = at, .len = len, .seed = seed };
	struct hw_answer a;

	return ask(r, row, &q, &a, "comparing memory") < 0 ? -1 : a.value == 1;
}

/* The two ends agree on the number of the first packet, which differs between connections: packets of an earlier
 * connection must not pass for those of this one. */
static int
join_rc(struct hw_run *r, struct hw_dci *i, const struct hw_token *tok, const struct hw_dci_opt *opt)
{
	struct hw_end ours,
		theirs = { .qpn = tok->dctn, .gid = tok->gid, .lid = tok->lid, .mtu = r->port.mtu };
	struct hw_ask q = { .op = HW_CONNECT, .mtu = (uint8_t)r->port.mtu };
	struct hw_answer a;
	int e = hw_rc_end(&r->port, i->qp, &ours);

	if (e < 0)
		return e;
	theirs.psn = (ours.qpn * 0x9e3779b1u) >> 8;
	q.at = ours.qpn;
	q.len = ours.lid;
	q.gid = ours.gid;
	q.seed = theirs.psn;
	e = hw_far_ask(&r->far, &q, &a);
	if (*r->far.why)
		r->far_is_lost = true;
	/* ENOENT: the target was destroyed, and the connection leads nowhere. */
	return e < 0 && e != -ENOENT ? e : hw_rc_connect(&r->port, i->qp, &theirs, 0, opt);
}

int
hw_join(struct hw_run *r, struct hw_dci *i, const struct hw_token *tok, const struct hw_dci_opt *opt)
{
	return r->is_rc ? join_rc(r, i, tok, opt) : hw_dci_to(i, tok);
}

bool
hw_initiator_of(struct hw_run *r, struct hw_row *row, struct hw_dci *i, const struct hw_token *tok,
		const struct hw_dci_opt *opt)
{
	int e = r->is_rc ? hw_rc_new(i, &r->port, opt) : hw_dci_new(i, &r->port, opt);

	if (e < 0) {
		hw_fail(row, "an initiator: %s", strerror(-e));
		return false;
	}
	e = tok ? hw_join(r, i, tok, opt) : 0;
	if (e < 0) {
		hw_fail(row, "%s: %s", r->is_rc ? "a connection" : "an address handle",
			*r->far.why ? r->far.why : strerror(-e));
		hw_dci_free(i);
	}
	return e == 0;
}

bool
hw_initiator(struct hw_run *r, struct hw_row *row, struct hw_dci *i, const struct hw_token *tok,
	     unsigned depth, unsigned timeout, unsigned retry)
{
	struct hw_dci_opt o = hw_dci_plain;

	o.depth = o.cqe = depth;
	o.timeout = timeout;
	o.retry = retry;
	return hw_initiator_of(r, row, i, tok, &o);
}

/* ---- transfers ---- */

/* One work request and its completion. */
static bool
go(struct hw_row *row, struct hw_dci *i, bool read, const struct hw_token *t, struct ibv_mr *mr, uint64_t len)
{
	struct hw_done done;
	int e = hw_post(i, read, t, t->addr + HW_GUARD, mr, (char *)mr->addr + HW_GUARD, (uint32_t)len, 1);

	if (e)
		hw_fail(row, "it cannot be posted: %s", strerror(e));
	else if ((e = hw_wait(i, HW_PATIENCE_MS, &done)) < 0)
		hw_fail(row, "no completion: %s", strerror(-e));
	else if (done.status != IBV_WC_SUCCESS)
		hw_fail(row, "%s, vendor_err %#x", ibv_wc_status_str((enum ibv_wc_status)done.status),
			done.vendor_err);
	return row->result == HW_PASS;
}

/* The bytes of the target's window, and that nothing around it was touched. */
static void
compare(struct hw_run *r, struct hw_row *row, uint64_t len, uint64_t seed)
{
	int inside = hw_far_same(r, row, 0, HW_GUARD, len, seed);
	int before = hw_far_same(r, row, 0, 0, HW_GUARD, SEED_GUARD);
	int behind = hw_far_same(r, row, 0, HW_GUARD + len, HW_GUARD, SEED_GUARD);

	if (inside == 0)
		hw_fail(row, "the bytes are not those that were sent");
	if (before == 0 || behind == 0)
		hw_fail(row, "bytes %s the window were changed", before ? "behind" : "in front of");
}

static void
check_write(struct hw_run *r, struct hw_row *row, uint64_t len)
{
	struct ibv_mr *mr = hw_mem_new(&r->port, len + 2 * HW_GUARD, IBV_ACCESS_LOCAL_WRITE);
	struct hw_token t;
	struct hw_dci i;
	uint64_t began;

	if (!mr) {
		hw_skip(row, "memory here: %s (ulimit -l)", strerror(errno));
		return;
	}
	content_fill((char *)mr->addr + HW_GUARD, len, SEED_DATA);
	if (hw_open_window(r, row, 0, len, HW_ACCESS, HW_ACCESS, &t)) {
		if (hw_initiator(r, row, &i, &t, 4, 14, 7)) {
			began = clock_ns();
			if (go(row, &i, false, &t, mr, len)) {
				hw_measured(row, "us", (double)(clock_ns() - began) / 1e3);
				compare(r, row, len, SEED_DATA);
			}
			hw_dci_free(&i);
		}
		hw_close_window(r, 0);
	}
	hw_mem_free(mr);
}

static void
check_read(struct hw_run *r, struct hw_row *row, uint64_t len)
{
	struct ibv_mr *mr = hw_mem_new(&r->port, len + 2 * HW_GUARD, IBV_ACCESS_LOCAL_WRITE);
	struct hw_token t;
	struct hw_dci i;
	uint64_t began;
	uint8_t *b;

	if (!mr) {
		hw_skip(row, "memory here: %s (ulimit -l)", strerror(errno));
		return;
	}
	b = mr->addr;
	content_fill(b, HW_GUARD, SEED_LOCAL);
	content_fill(b + HW_GUARD + len, HW_GUARD, SEED_LOCAL);
	if (hw_open_window(r, row, 0, len, HW_ACCESS, HW_ACCESS, &t)) {
		if (hw_far_fill(r, row, 0, HW_GUARD, len, SEED_DATA) &&
		    hw_initiator(r, row, &i, &t, 4, 14, 7)) {
			began = clock_ns();
			if (go(row, &i, true, &t, mr, len)) {
				hw_measured(row, "us", (double)(clock_ns() - began) / 1e3);
				if (content_compare(b + HW_GUARD, len, SEED_DATA) != len)
					hw_fail(row, "the bytes are not those of the far side");
				if (content_compare(b, HW_GUARD, SEED_LOCAL) != HW_GUARD ||
				    content_compare(b + HW_GUARD + len, HW_GUARD, SEED_LOCAL) != HW_GUARD)
					hw_fail(row, "bytes around the buffer were changed");
				compare(r, row, len, SEED_DATA);
			}
			hw_dci_free(&i);
		}
		hw_close_window(r, 0);
	}
	hw_mem_free(mr);
}

/* What every transfer of more than a few pieces does: many requests on one initiator, of which READs wait for each other in the adapter. */
static void
check_many(struct hw_run *r, struct hw_row *row, uint64_t read)
{
	enum { NR = 64, LEN = 4096 };
	struct ibv_mr *mr = hw_mem_new(&r->port, NR * LEN, IBV_ACCESS_LOCAL_WRITE);
	struct hw_token t;
	struct hw_dci i;

	if (!mr) {
		hw_skip(row, "memory here: %s (ulimit -l)", strerror(errno));
		return;
	}
	content_fill(mr->addr, mr->length, read ? SEED_LOCAL : SEED_DATA);
	if (hw_open_window(r, row, 0, NR * LEN, HW_ACCESS, HW_ACCESS, &t)) {
		if (hw_far_fill(r, row, 0, 0, NR * LEN, read ? SEED_DATA : SEED_LOCAL) &&
		    hw_initiator(r, row, &i, &t, NR, 14, 7)) {
			bool in_order = true;
			struct hw_done done;
			int e = 0, n, same;

			for (n = 0; n < NR && e == 0; n++)
				e = hw_post(&i, read, &t, t.addr + (uint64_t)n * LEN, mr,
					    (char *)mr->addr + (size_t)n * LEN, LEN, (uint64_t)n);
			if (e)
				hw_fail(row, "number %d cannot be posted: %s", n, strerror(e));
			for (n = 0; n < NR && row->result == HW_PASS; n++) {
				e = hw_wait(&i, HW_PATIENCE_MS, &done);
				if (e < 0)
					hw_fail(row, "%d of %d completions came", n, NR);
				else if (done.status != IBV_WC_SUCCESS)
					hw_fail(row, "%s",
						ibv_wc_status_str((enum ibv_wc_status)done.status));
				in_order = in_order && done.wr_id == (uint64_t)n;
			}
			hw_fact(row, "completions_in_order", json_boolean(in_order));
			same = read ? content_compare(mr->addr, NR * LEN, SEED_DATA) == NR * LEN
				    : hw_far_same(r, row, 0, 0, NR * LEN, SEED_DATA);
			if (same == 0)
				hw_fail(row, "the bytes are not those that were sent");
			hw_dci_free(&i);
		}
		hw_close_window(r, 0);
	}
	hw_mem_free(mr);
}

/* One initiator and a few targets: in turn, each when the one before has answered, or all at once. */
static void
check_targets(struct hw_run *r, struct hw_row *row, uint64_t at_once)
{
	enum { ROUNDS = 250, LEN = 64 };
	struct ibv_mr *mr = hw_mem_new(&r->port, LEN, IBV_ACCESS_LOCAL_WRITE);
	struct hw_token t[HW_SLOTS];
	uint8_t open = 0;
	struct hw_dci i;

	if (!mr) {
		hw_skip(row, "memory here: %s (ulimit -l)", strerror(errno));
		return;
	}
	content_fill(mr->addr, LEN, SEED_DATA);
	while (open < HW_SLOTS && hw_open_window(r, row, open, LEN, HW_ACCESS, HW_ACCESS, &t[open]))
		open++;
	if (open == HW_SLOTS && hw_initiator(r, row, &i, &t[0], 2 * HW_SLOTS, 14, 7)) {
		int waiting = 0;

		for (int n = 0; n < ROUNDS * HW_SLOTS && row->result == HW_PASS; n++) {
			struct hw_token *to = &t[n % HW_SLOTS];
			struct hw_done done = { 0 };
			int e = hw_post(&i, false, to, to->addr, mr, mr->addr, LEN, (uint64_t)n);

			if (e) {
				hw_fail(row, "it cannot be posted: %s", strerror(e));
				break;
			}
			waiting++;
			while (waiting > (at_once && n % HW_SLOTS != HW_SLOTS - 1 ? waiting : 0) &&
			       row->result == HW_PASS) {
				e = hw_wait(&i, HW_PATIENCE_MS, &done);
				if (e < 0 || done.status != IBV_WC_SUCCESS)
					hw_fail(row, "transfer %d: %s", n,
						e < 0 ? strerror(-e)
						      : ibv_wc_status_str((enum ibv_wc_status)done.status));
				waiting--;
			}
		}
		for (uint8_t n = 0; n < HW_SLOTS && row->result == HW_PASS; n++)
			if (hw_far_same(r, row, n, 0, LEN, SEED_DATA) == 0)
				hw_fail(row, "target %d did not get its bytes", n);
		hw_dci_free(&i);
	}
	while (open > 0)
		hw_close_window(r, --open);
	hw_mem_free(mr);
}

/* Gantry signals only the last of a chain: are the slots of all of them free again when that one completes? */
static void
check_chain(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	enum { CHAIN = HW_CHAIN, ROUNDS = 100 };
	struct ibv_mr *mr = hw_mem_new(&r->port, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct hw_done done;
	struct hw_token t;
	struct hw_dci i;

	(void)arg;
	if (!mr) {
		hw_skip(row, "memory here: %s (ulimit -l)", strerror(errno));
		return;
	}
	if (hw_open_window(r, row, 0, 4096, HW_ACCESS, HW_ACCESS, &t)) {
		if (hw_initiator(r, row, &i, &t, CHAIN, 14, 7)) {
			for (int n = 0; n < ROUNDS && row->result == HW_PASS; n++) {
				int e = hw_post_chain(&i, &t, mr, CHAIN);
				if (e)
					hw_fail(row, "chain %d cannot be posted: %s", n, strerror(e));
				else if ((e = hw_wait(&i, HW_PATIENCE_MS, &done)) < 0)
					hw_fail(row, "chain %d: no completion: %s", n, strerror(-e));
				else if (done.status != IBV_WC_SUCCESS || done.wr_id != CHAIN - 1)
					hw_fail(row, "chain %d: %s of number %d", n,
						ibv_wc_status_str((enum ibv_wc_status)done.status),
						(int)done.wr_id);
			}
			hw_dci_free(&i);
		}
		hw_close_window(r, 0);
	}
	hw_mem_free(mr);
}

/* Which priority of the interface the bytes were counted in. */
static void
check_class(struct hw_run *r, struct hw_row *row, uint64_t read)
{
	struct hw_classes before, after;
	uint64_t most = 0;
	int which = -1;
	struct ibv_mr *mr;
	struct hw_token t;
	struct hw_dci i;
	char why[128];

	if (r->far.fd < 0) {
		hw_skip(row, "within one port no byte passes the wire");
		return;
	}
	if (!hw_classes_read(r, &before, why)) {
		hw_skip(row, "%s", why);
		return;
	}
	mr = hw_mem_new(&r->port, 1 << 20, IBV_ACCESS_LOCAL_WRITE);
	if (!mr) {
		hw_skip(row, "memory here: %s (ulimit -l)", strerror(errno));
		return;
	}
	if (hw_open_window(r, row, 0, 1 << 20, HW_ACCESS, HW_ACCESS, &t)) {
		if (hw_initiator(r, row, &i, &t, 4, 14, 7)) {
			for (int n = 0; n < 64; n++)
				if (!go(row, &i, read, &t, mr, (1 << 20) - HW_GUARD))
					break;
			hw_dci_free(&i);
		}
		hw_close_window(r, 0);
	}
	hw_mem_free(mr);
	if (!hw_classes_read(r, &after, why)) {
		hw_skip(row, "%s", why);
		return;
	}
	for (int n = 0; n < 8; n++) {
		uint64_t grown = read ? after.rx[n] - before.rx[n] : after.tx[n] - before.tx[n];

		if (grown > most) {
			most = grown;
			which = n;
		}
	}
	hw_fact(row, "traffic_class", json_integer(r->port.traffic_class));
	hw_fact(row, "priority", json_integer(which));
	if (which < 0)
		hw_skip(row, "no counter of %s moved", after.netdev);
}

#define SIZES(name, check)                                                                                   \
	{ name ".1", check, 1 }, { name ".2", check, 2 }, { name ".4095", check, 4095 },                     \
		{ name ".4096", check, 4096 }, { name ".4097", check, 4097 },                                \
		{ name ".65536", check, 65536 }, { name ".1048575", check, 1048575 },                        \
		{ name ".1048576", check, 1048576 }, { name ".1048577", check, 1048577 },                    \
		{ name ".67108864", check, 67108864 },                                                       \
	{                                                                                                    \
		name ".1073741824", check, 1073741824                                                        \
	}

const struct hw_check hw_transfer_checks[] = {
	SIZES("write", check_write),
	SIZES("read", check_read),
	{ "many.write", check_many, 0 },
	{ "many.read", check_many, 1 },
	{ "targets.in_turn", check_targets, 0, HW_DC },
	{ "targets.at_once", check_targets, 1, HW_DC },
	{ "chain", check_chain, 0 },
	{ "class.write", check_class, 0 },
	{ "class.read", check_class, 1 },
	{ NULL, NULL, 0 },
};
