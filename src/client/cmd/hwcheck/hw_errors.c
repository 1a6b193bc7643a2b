/* SPDX-License-Identifier: Apache-2.0 */
/* gantry hwcheck: transfers that must fail, and what is left of initiators afterwards. */
#include "client/cmd/hwcheck/hw.h"

#include "base/clock.h"
#include "client/cmd/common/content.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEN = 65536, SEED_BEFORE = 11, SEED_SENT = 12, SEED_AFTER = 13 };
#define RC_RETRIES 6 /* rdma.retry_cnt as gantryd uses it for RC */

/* ---- what must fail ---- */

enum wrong {
	WRONG_RKEY,
	WRONG_END,    /* a byte more than there is */
	WRONG_START,  /* a byte in front of it */
	WRONG_WRAP,   /* an address whose end wraps */
	WRONG_RIGHTS, /* WRITE where only READ is allowed, and the other way round */
	WRONG_TARGET_RIGHTS,
	WRONG_DEREGISTERED,
	WRONG_DESTROYED, /* the target */
	WRONG_NUMBER,    /* no such target */
	WRONG_KEY,
	WRONG_GID,
	WRONG_LKEY,
	WRONG_MTU, /* the target's is smaller: need not fail */
	WRONG_LONG /* than any work request may be */
};

/* Makes the far side, or the token, wrong.  False when the row has ended. */
static bool
make_wrong(struct hw_run *r, struct hw_row *row, enum wrong wrong, struct hw_token *t, uint64_t *raddr)
{
	struct hw_ask q = { .op = wrong == WRONG_DESTROYED ? HW_END : HW_DEREGISTER };
	struct hw_answer a;
	int e;

	switch (wrong) {
	case WRONG_RKEY:
		t->rkey ^= 0x5500;
		return true;
	case WRONG_END:
		*raddr = t->addr + t->len - LEN + 1;
		return true;
	case WRONG_START:
		*raddr = t->addr - 1;
		return true;
	case WRONG_WRAP:
		*raddr = UINT64_MAX - 3;
		return true;
	case WRONG_NUMBER:
		t->dctn ^= 0x5a5a00;
		return true;
	case WRONG_KEY:
		t->dc_key++;
		return true;
	case WRONG_GID:
		t->gid.raw[15] ^= 0x40;
		t->lid = t->lid ? t->lid ^ 0x40 : 0;
		return true;
	case WRONG_DEREGISTERED:
	case WRONG_DESTROYED:
		e = hw_far_ask(&r->far, &q, &a);
		if (e < 0)
			hw_fail(row, "the far side: %s", *r->far.why ? r->far.why : strerror(-e));
		return e == 0;
	default:
		return true;
	}
}

static void
say_done(struct hw_row *row, const struct hw_done *done)
{
	hw_fact(row, "status", json_integer(done->status));
	hw_fact(row, "means", text_of(ibv_wc_status_str((enum ibv_wc_status)done->status)));
	hw_fact(row, "vendor_err", json_integer(done->vendor_err));
}

static const char *
state_of(struct ibv_qp *qp)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	struct ibv_qp_init_attr ia;
	struct ibv_qp_attr a;

	if (ibv_query_qp(qp, &a, IBV_QP_STATE, &ia) != 0 || a.qp_state > IBV_QPS_ERR)
		return "unknown";
	return names[a.qp_state];
}

/* Posts the wrong request and a good one after it, and looks at what became of both. */
static void
post_wrong(struct hw_run *r, struct hw_row *row, enum wrong wrong, bool read, struct hw_token *good,
	   struct hw_dci *i, const struct hw_dci_opt *opt, struct ibv_mr *mr)
{
	struct hw_token t = *good;
	uint64_t raddr = t.addr + HW_GUARD, began;
	uint32_t lkey = mr->lkey;
	struct hw_done done, behind;
	int e;

	if (!make_wrong(r, row, wrong, &t, &raddr))
		return;
	e = hw_join(r, i, &t, opt);
	if (e < 0) {
		/* Where the neighbour is asked for, that is where a wrong address ends. */
		hw_fact(row, r->is_rc ? "connection" : "address_handle", text_of(strerror(-e)));
		if (wrong != WRONG_GID)
			hw_fail(row, "%s: %s", r->is_rc ? "a connection" : "an address handle", strerror(-e));
		return;
	}
	if (wrong == WRONG_LKEY)
		mr->lkey ^= 0x5500;
	began = clock_ns();
	e = hw_post(i, read, &t, raddr, mr, mr->addr, LEN, 1);
	mr->lkey = lkey;
	if (e == 0)
		e = hw_post(i, read, good, good->addr + HW_GUARD, mr, mr->addr, LEN, 2);
	if (e) {
		hw_fail(row, "it cannot be posted: %s", strerror(e));
		return;
	}
	e = hw_wait(i, HW_PATIENCE_MS, &done);
	if (e < 0) {
		hw_fail(row, "no completion: %s", strerror(-e));
		return;
	}
	hw_measured(row, "ms", (double)(clock_ns() - began) / 1e6);
	say_done(row, &done);
	e = hw_wait(i, HW_PATIENCE_MS, &behind);
	if (e < 0) {
		hw_fail(row, "no completion of the next request: %s", strerror(-e));
		return;
	}
	hw_fact(row, "behind", text_of(ibv_wc_status_str((enum ibv_wc_status)behind.status)));
	hw_fact(row, "state", text_of(state_of(i->qp)));
	if (done.wr_id != 1)
		hw_fail(row, "the next request completed first");
	if (done.status == IBV_WC_SUCCESS && wrong != WRONG_MTU)
		hw_fail(row, "it completed with success");
	if (done.status != IBV_WC_SUCCESS && behind.status != IBV_WC_WR_FLUSH_ERR)
		hw_fail(row, "the next request was not flushed: %s",
			ibv_wc_status_str((enum ibv_wc_status)behind.status));
}

static void
check_wrong(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	bool read = arg & 0x100;
	enum wrong wrong = (enum wrong)(arg & 0xff);
	unsigned rights = IBV_ACCESS_LOCAL_WRITE | (read ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ);
	/* Silence takes as long as the daemon's settings say. */
	bool silent = wrong == WRONG_DESTROYED || wrong == WRONG_NUMBER;
	struct ibv_mr *mr = hw_mem_new(&r->port, LEN, IBV_ACCESS_LOCAL_WRITE);
	struct hw_dci_opt o = hw_dci_plain;
	struct hw_answer a;
	struct hw_dci i;
	struct hw_ask q = { .op = HW_OPEN,
			    .is_rc = r->is_rc,
			    .dct_access = wrong == WRONG_TARGET_RIGHTS ? rights : HW_ACCESS,
			    .mr_access = wrong == WRONG_RIGHTS ? rights : HW_ACCESS,
			    .mtu = wrong == WRONG_MTU ? IBV_MTU_256 : 0,
			    .dc_key = 7,
			    .len = LEN + 2 * HW_GUARD };
	int e, same;

	if (!mr) {
		hw_skip(row, "memory here: %s (ulimit -l)", strerror(errno));
		return;
	}
	if (wrong == WRONG_MTU && r->port.mtu == IBV_MTU_256) {
		hw_skip(row, "this port has the smallest MTU there is");
		hw_mem_free(mr);
		return;
	}
	o.timeout = silent ? 14 : 10;
	o.retry = !silent ? 3 : r->is_rc ? RC_RETRIES : 7;
	content_fill(mr->addr, LEN, SEED_SENT);
	e = hw_far_ask(&r->far, &q, &a);
	if (e < 0) {
		hw_fail(row, "a target with memory: %s", *r->far.why ? r->far.why : strerror(-e));
		hw_mem_free(mr);
		return;
	}
	if (hw_far_fill(r, row, 0, 0, q.len, SEED_BEFORE) && hw_initiator_of(r, row, &i, NULL, &o)) {
		post_wrong(r, row, wrong, read, &a.token, &i, &o, mr);
		hw_dci_free(&i);
		if (row->result == HW_PASS && wrong != WRONG_MTU) {
			same = read ? content_compare(mr->addr, LEN, SEED_SENT) == LEN
				    : hw_far_same(r, row, 0, 0, q.len, SEED_BEFORE);
			hw_fact(row, "bytes_moved", json_boolean(same == 0));
			if (same == 0)
				hw_fail(row, "bytes were moved");
		}
	}
	hw_close_window(r, 0);
	hw_mem_free(mr);
}

/* A work request of more than there can be.  Its buffer is not there either, which must not matter. */
static void
check_long(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	struct ibv_mr *mr = hw_mem_new(&r->port, LEN, IBV_ACCESS_LOCAL_WRITE);
	struct hw_done done;
	struct hw_token t;
	struct hw_dci i;
	int e;

	(void)arg;
	if (!mr) {
		hw_skip(row, "memory here: %s (ulimit -l)", strerror(errno));
		return;
	}
	if (hw_open_window(r, row, 0, LEN, HW_ACCESS, HW_ACCESS, &t)) {
		if (hw_initiator(r, row, &i, &t, 4, 10, 3)) {
			e = hw_post(&i, false, &t, t.addr, mr, mr->addr, (uint32_t)HW_LARGEST + 1, 1);
			if (e)
				hw_fact(row, "post", text_of(strerror(e)));
			else if ((e = hw_wait(&i, HW_PATIENCE_MS, &done)) < 0)
				hw_fail(row, "no completion: %s", strerror(-e));
			else
				say_done(row, &done);
			if (e == 0 && done.status == IBV_WC_SUCCESS)
				hw_fail(row, "it completed with success");
			hw_dci_free(&i);
		}
		hw_close_window(r, 0);
	}
	hw_mem_free(mr);
}

/* Posts to a target that was destroyed, over a connection with this number of retries. Returns 0 with the completion;
 * -ETIMEDOUT: none came within ms milliseconds; or another -errno, and the check of this row has failed. */
static int
post_to_none(struct hw_run *r, struct hw_row *row, struct ibv_mr *mr, unsigned retries, unsigned ms,
	     struct hw_done *ret_done)
{
	struct hw_ask q = { .op = HW_END };
	struct hw_answer a;
	struct hw_token t;
	struct hw_dci i;
	int e = -EIO;

	if (!hw_open_window(r, row, 0, LEN, HW_ACCESS, HW_ACCESS, &t))
		return e;
	if (hw_initiator(r, row, &i, &t, 4, 10, retries)) {
		e = hw_far_ask(&r->far, &q, &a);
		if (e == 0)
			e = -hw_post(&i, false, &t, t.addr + HW_GUARD, mr, mr->addr, LEN, 1);
		if (e < 0)
			hw_fail(row, "%u retries: %s", retries, *r->far.why ? r->far.why : strerror(-e));
		else
			e = hw_wait(&i, ms, ret_done);
		hw_dci_free(&i);
	}
	hw_close_window(r, 0);
	return e;
}

/* 7 is the largest number of retries, and some drivers take it for no limit. */
static void
check_retries(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	struct ibv_mr *mr = hw_mem_new(&r->port, LEN, IBV_ACCESS_LOCAL_WRITE);
	unsigned ms = HW_PATIENCE_MS;
	uint64_t began = clock_ns();
	struct hw_done done;

	(void)arg;
	if (!mr) {
		hw_skip(row, "memory here: %s (ulimit -l)", strerror(errno));
		return;
	}
	for (unsigned n = RC_RETRIES; n <= 7 && row->result == HW_PASS; n++) {
		int e = post_to_none(r, row, mr, n, ms, &done);
		char name[16];

		snprintf(name, sizeof name, "retry_cnt_%u", n);
		if (e == 0)
			hw_fact(row, name, text_of(ibv_wc_status_str((enum ibv_wc_status)done.status)));
		else if (e == -ETIMEDOUT)
			hw_fact(row, name, text_of("without end"));
		if (e == -ETIMEDOUT && n == RC_RETRIES)
			hw_fail(row, "%u retries have no end", n);
		/* One more retry takes a seventh of the time of the others. */
		ms = 5000 + 20 * (unsigned)((clock_ns() - began) / NS_PER_MS);
	}
	hw_mem_free(mr);
}

#define BOTH(name, wrong)                                                                                    \
	{ name ".write", check_wrong, wrong },                                                               \
	{                                                                                                    \
		name ".read", check_wrong, wrong | 0x100                                                     \
	}

const struct hw_check hw_error_checks[] = {
	BOTH("error.rkey", WRONG_RKEY),
	BOTH("error.behind_the_end", WRONG_END),
	BOTH("error.before_the_start", WRONG_START),
	BOTH("error.wrapped", WRONG_WRAP),
	BOTH("error.rights_of_memory", WRONG_RIGHTS),
	BOTH("error.rights_of_target", WRONG_TARGET_RIGHTS),
	BOTH("error.deregistered", WRONG_DEREGISTERED),
	BOTH("error.target_destroyed", WRONG_DESTROYED),
	{ "error.no_such_target", check_wrong, WRONG_NUMBER },
	{ "rc.retries", check_retries, 0, HW_RC },
	{ "error.dc_key.write", check_wrong, WRONG_KEY, HW_DC },
	{ "error.dc_key.read", check_wrong, WRONG_KEY | 0x100, HW_DC },
	{ "error.gid", check_wrong, WRONG_GID },
	{ "error.lkey", check_wrong, WRONG_LKEY },
	BOTH("error.mtu", WRONG_MTU),
	{ "error.too_long", check_long, 0 },
	{ NULL, NULL, 0 },
};

/* ---- an initiator's life ---- */

enum { FLUSH_NR = 16, FLUSH_LEN = 1 << 20 };
enum flush_kind { FLUSH_WRITES, FLUSH_READS, FLUSH_SILENCE, FLUSH_DESTROY };

/* ERR with sixteen requests of a mebibyte outstanding, and every completion: the time, and how many had succeeded. */
static bool
flush(struct hw_row *row, struct hw_dci *i, const struct hw_token *t, struct ibv_mr *mr, enum flush_kind kind,
      uint64_t wait_ns, uint64_t *ret_ns, unsigned *ret_good, bool *in_order)
{
	uint64_t began, until;
	struct hw_done done;
	int e = 0;

	*ret_good = 0;
	for (unsigned n = 0; n < FLUSH_NR && e == 0; n++)
		e = hw_post(i, kind == FLUSH_READS, t, t->addr + HW_GUARD + (uint64_t)n * FLUSH_LEN, mr,
			    (char *)mr->addr + (size_t)n * FLUSH_LEN, FLUSH_LEN, n);
	if (e) {
		hw_fail(row, "it cannot be posted: %s", strerror(e));
		return false;
	}
	until = clock_ns() + wait_ns;
	while (clock_ns() < until)
		;
	began = clock_ns();
	e = hw_dci_move(i, IBV_QPS_ERR);
	for (unsigned n = 0; n < FLUSH_NR && e == 0; n++) {
		e = hw_wait(i, HW_PATIENCE_MS, &done);
		if (e < 0) {
			hw_fail(row, "%u of %d completions came", n, FLUSH_NR);
			return false;
		}
		*in_order = *in_order && done.wr_id == n;
		*ret_good += done.status == IBV_WC_SUCCESS;
		if (done.status != IBV_WC_SUCCESS && done.status != IBV_WC_WR_FLUSH_ERR &&
		    (kind != FLUSH_SILENCE || done.status != IBV_WC_RETRY_EXC_ERR))
			hw_fail(row, "%s", ibv_wc_status_str((enum ibv_wc_status)done.status));
	}
	if (e < 0)
		hw_fail(row, "the change to ERR: %s", strerror(-e));
	*ret_ns = clock_ns() - began;
	return row->result == HW_PASS;
}

void
hw_nap(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

/* Whether bytes come after the proof that none will: the last completion, or the end of the queue pair. */
static bool
is_late(struct hw_run *r, struct hw_row *row, bool *ret_late)
{
	int same;

	if (!hw_far_fill(r, row, 0, HW_GUARD, FLUSH_NR * FLUSH_LEN, SEED_AFTER))
		return false;
	hw_nap(20);
	same = hw_far_same(r, row, 0, HW_GUARD, FLUSH_NR * FLUSH_LEN, SEED_AFTER);
	*ret_late = *ret_late || same == 0;
	return same >= 0;
}

static void
check_flush(struct hw_run *r, struct hw_row *row, uint64_t kind)
{
	enum { ROUNDS = 8 };
	struct ibv_mr *mr = hw_mem_new(&r->port, FLUSH_NR * FLUSH_LEN, IBV_ACCESS_LOCAL_WRITE);
	bool in_order = true, late = false;
	uint64_t ns[ROUNDS];
	unsigned good, all_good = 0;
	struct hw_token t;
	int rounds = 0;
	struct hw_dci i;

	if (!mr) {
		hw_skip(row, "memory here: %s (ulimit -l)", strerror(errno));
		return;
	}
	content_fill(mr->addr, mr->length, SEED_SENT);
	if (!hw_open_window(r, row, 0, FLUSH_NR * FLUSH_LEN, HW_ACCESS, HW_ACCESS, &t)) {
		hw_mem_free(mr);
		return;
	}
	if (kind == FLUSH_SILENCE)
		t.dctn ^= 0x5a5a00;
	/* The wait in front of ERR grows, so that some rounds have it amid the transfers. */
	while (rounds < ROUNDS && row->result == HW_PASS && hw_initiator(r, row, &i, &t, FLUSH_NR, 18, 7)) {
		if (kind == FLUSH_DESTROY) {
			uint64_t began;
			int e = 0;

			for (unsigned n = 0; n < FLUSH_NR && e == 0; n++)
				e = hw_post(&i, false, &t, t.addr + HW_GUARD + (uint64_t)n * FLUSH_LEN, mr,
					    (char *)mr->addr + (size_t)n * FLUSH_LEN, FLUSH_LEN, n);
			began = clock_ns();
			if (e)
				hw_fail(row, "it cannot be posted: %s", strerror(e));
			e = hw_dci_free(&i);
			if (e)
				hw_fail(row, "destroying it: %s", strerror(-e));
			ns[rounds] = clock_ns() - began;
		} else {
			if (!flush(row, &i, &t, mr, (enum flush_kind)kind, (uint64_t)rounds * 200 * NS_PER_US,
				   &ns[rounds], &good, &in_order)) {
				hw_dci_free(&i);
				break;
			}
			all_good += good;
			hw_dci_free(&i);
		}
		rounds++;
		if ((kind == FLUSH_WRITES || kind == FLUSH_DESTROY) && !is_late(r, row, &late))
			break;
	}
	if (rounds == ROUNDS) {
		hw_times(row, kind == FLUSH_DESTROY ? "destroy" : "flush", ns, ROUNDS);
		if (kind != FLUSH_DESTROY) {
			hw_fact(row, "completions_in_order", json_boolean(in_order));
			hw_measured(row, "succeeded", all_good);
		}
		if (kind == FLUSH_WRITES || kind == FLUSH_DESTROY)
			hw_fact(row, "bytes_after_the_end", json_boolean(late));
		/* Half of them: a machine with other work may hold us up, too. */
		if (kind != FLUSH_DESTROY && ns[ROUNDS / 2] > 100 * NS_PER_MS)
			hw_fail(row, "it takes %.0f ms, and gantryd takes initiators for broken after 100",
				(double)ns[ROUNDS / 2] / 1e6);
		if (late)
			hw_fail(row, "bytes landed after %s",
				kind == FLUSH_DESTROY ? "the initiator was destroyed"
						      : "the last completion");
	}
	hw_close_window(r, 0);
	hw_mem_free(mr);
}

/* What a channel goes through after each failure. */
static void
check_reset(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	enum { ROUNDS = 50 };
	uint64_t to_err[ROUNDS], to_reset[ROUNDS], to_rtr[ROUNDS], to_rts[ROUNDS], at[5];
	struct hw_dci i;
	int e = 0, n;

	(void)arg;
	if (!hw_initiator(r, row, &i, NULL, FLUSH_NR, 14, 7))
		return;
	for (n = 0; n < ROUNDS && e == 0; n++) {
		at[0] = clock_ns();
		e = hw_dci_move(&i, IBV_QPS_ERR);
		at[1] = clock_ns();
		if (e == 0)
			e = hw_dci_move(&i, IBV_QPS_RESET);
		at[2] = clock_ns();
		if (e == 0)
			e = hw_dci_rtr(&i);
		at[3] = clock_ns();
		if (e == 0)
			e = hw_dci_rtr_to_rts(&i, 14, 7, 1);
		at[4] = clock_ns();
		to_err[n] = at[1] - at[0];
		to_reset[n] = at[2] - at[1];
		to_rtr[n] = at[3] - at[2];
		to_rts[n] = at[4] - at[3];
	}
	if (e < 0) {
		hw_fail(row, "round %d: %s", n, strerror(-e));
	} else {
		hw_times(row, "err", to_err, ROUNDS);
		hw_times(row, "reset", to_reset, ROUNDS);
		hw_times(row, "init_rtr", to_rtr, ROUNDS);
		hw_times(row, "rts", to_rts, ROUNDS);
	}
	hw_dci_free(&i);
}

const struct hw_check hw_life_checks[] = {
	{ "flush.write", check_flush, FLUSH_WRITES },
	{ "flush.read", check_flush, FLUSH_READS },
	{ "flush.silence", check_flush, FLUSH_SILENCE },
	{ "flush.destroy", check_flush, FLUSH_DESTROY },
	{ "reset", check_reset, 0, HW_DC },
	{ NULL, NULL, 0 },
};
