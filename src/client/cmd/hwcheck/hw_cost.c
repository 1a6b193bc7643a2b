/* SPDX-License-Identifier: Apache-2.0 */
/* gantry hwcheck: what objects of the adapter cost, and events of completion, see hw.h. */
#include "client/cmd/hwcheck/hw.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* ---- what things cost ---- */

enum cost { COST_DCI, COST_CQ, COST_AH };

static void
check_cost(struct hw_run *r, struct hw_row *row, uint64_t what)
{
	enum { ROUNDS = 16 };
	uint64_t create[ROUNDS], destroy[ROUNDS];
	struct hw_dci i = { .port = &r->port };
	struct hw_token t = r->hello.token;

	for (int n = 0; n < ROUNDS && row->result == HW_PASS; n++) {
		uint64_t began = clock_ns(), made;
		struct ibv_cq *cq = NULL;

		if (what == COST_DCI && !hw_initiator(r, row, &i, NULL, 64, 14, 7))
			return;
		if (what == COST_CQ && !(cq = ibv_create_cq(r->port.ctx, 1024, NULL, NULL, 0)))
			hw_fail(row, "%s", strerror(errno));
		if (what == COST_AH && hw_dci_to(&i, &t) < 0)
			hw_fail(row, "an address handle to the far side: %s", strerror(errno));
		made = clock_ns();
		if (what == COST_DCI)
			hw_dci_free(&i);
		if (cq)
			ibv_destroy_cq(cq);
		if (what == COST_AH && i.ah) {
			ibv_destroy_ah(i.ah);
			i.ah = NULL;
		}
		create[n] = made - began;
		destroy[n] = clock_ns() - made;
	}
	if (row->result == HW_PASS) {
		hw_times(row, "create", create, ROUNDS);
		hw_times(row, "destroy", destroy, ROUNDS);
	}
}

/* A connection to a target: its queue pair, both ends connected, its end. */
static void
check_cost_rc(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	enum { ROUNDS = 16 };
	uint64_t create[ROUNDS], connect[ROUNDS], destroy[ROUNDS], at[3];
	struct hw_token t;
	struct hw_dci i;

	(void)arg;
	if (!hw_open_window(r, row, 0, 4096, HW_ACCESS, HW_ACCESS, &t))
		return;
	for (int n = 0; n < ROUNDS && row->result == HW_PASS; n++) {
		int e;

		at[0] = clock_ns();
		e = hw_rc_new(&i, &r->port, &hw_dci_plain);
		at[1] = clock_ns();
		if (e < 0) {
			hw_fail(row, "a queue pair: %s", strerror(-e));
			break;
		}
		e = hw_join(r, &i, &t, &hw_dci_plain);
		at[2] = clock_ns();
		if (e < 0)
			hw_fail(row, "connection %d: %s", n, strerror(-e));
		hw_dci_free(&i);
		create[n] = at[1] - at[0];
		connect[n] = at[2] - at[1];
		destroy[n] = clock_ns() - at[2];
	}
	if (row->result == HW_PASS) {
		hw_times(row, "create", create, ROUNDS);
		hw_times(row, "connect", connect, ROUNDS);
		hw_times(row, "destroy", destroy, ROUNDS);
	}
	hw_close_window(r, 0);
}

static void
check_cost_mr(struct hw_run *r, struct hw_row *row, uint64_t len)
{
	enum { ROUNDS = 8 };
	uint64_t reg[ROUNDS], dereg[ROUNDS];
	uint8_t *mem = malloc(len);

	if (!mem) {
		hw_skip(row, "no memory");
		return;
	}
	memset(mem, 1, len);
	for (int n = 0; n < ROUNDS && row->result == HW_PASS; n++) {
		uint64_t began = clock_ns(), made;
		struct ibv_mr *mr = ibv_reg_mr(r->port.pd, mem, len, IBV_ACCESS_LOCAL_WRITE);

		made = clock_ns();
		if (!mr) {
			hw_skip(row, "%s (ulimit -l)", strerror(errno));
			break;
		}
		if (ibv_dereg_mr(mr) != 0)
			hw_fail(row, "it cannot be deregistered: %s", strerror(errno));
		reg[n] = made - began;
		dereg[n] = clock_ns() - made;
	}
	if (row->result == HW_PASS) {
		hw_times(row, "register", reg, ROUNDS);
		hw_times(row, "deregister", dereg, ROUNDS);
	}
	free(mem);
}

/* ---- events of completion ---- */

enum event_kind { EVENT_SLEEP, EVENT_RACE, EVENT_EARLIER, EVENT_UNASKED };

/* Waits on the channel as the daemon does: 1 an event, 0 none in time. */
static int
take_event(struct ibv_comp_channel *ch, struct ibv_cq *cq, int ms)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };
	struct ibv_cq *got;
	void *context;

	if (poll(&p, 1, ms) != 1 || ibv_get_cq_event(ch, &got, &context) != 0)
		return 0;
	ibv_ack_cq_events(cq, 1);
	return 1;
}

/* One transfer and its event; true when the completion came without being late.  lost: it was there, and nobody was woken. */
static bool
one_event(struct hw_run *r, struct hw_row *row, struct hw_dci *i, const struct hw_token *t, struct ibv_mr *mr,
	  struct ibv_comp_channel *ch, bool race, int *lost)
{
	struct ibv_cq *cq = hw_dci_cq(i);
	struct hw_done done;
	int e;

	(void)r;
	if (!race)
		ibv_req_notify_cq(cq, 0);
	e = hw_post(i, false, t, t->addr, mr, mr->addr, 64, 1);
	if (e) {
		hw_fail(row, "it cannot be posted: %s", strerror(e));
		return false;
	}
	if (race) {
		ibv_req_notify_cq(cq, 0);
		/* Once more: what came before the question has no event of its own. */
		if (hw_wait(i, 0, &done) == 0)
			return true;
	}
	if (!take_event(ch, cq, 1000))
		++*lost;
	if (hw_wait(i, HW_PATIENCE_MS, &done) < 0) {
		hw_fail(row, "no completion");
		return false;
	}
	return true;
}

/* What an event tells when the completion is older than the question, or nobody asked. */
static void
ask_late(struct hw_row *row, struct hw_dci *i, const struct hw_token *t, struct ibv_mr *mr,
	 struct ibv_comp_channel *ch, bool asks)
{
	struct ibv_cq *cq = hw_dci_cq(i);
	struct hw_done done;

	if (hw_post(i, false, t, t->addr, mr, mr->addr, 64, 1) != 0) {
		hw_fail(row, "it cannot be posted");
		return;
	}
	hw_nap(100);
	if (asks)
		ibv_req_notify_cq(cq, 0);
	hw_fact(row, "event", json_boolean(take_event(ch, cq, 100)));
	if (hw_wait(i, HW_PATIENCE_MS, &done) < 0)
		hw_fail(row, "no completion");
}

static void
check_events(struct hw_run *r, struct hw_row *row, uint64_t kind)
{
	enum { ROUNDS = 1000 };
	struct ibv_comp_channel *ch = ibv_create_comp_channel(r->port.ctx);
	struct ibv_mr *mr = hw_mem_new(&r->port, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct hw_dci_opt o = hw_dci_plain;
	struct hw_token t;
	struct hw_dci i;
	int lost = 0;

	o.chan = ch;
	if (!ch || !mr) {
		hw_skip(row, "a channel or memory: %s", strerror(errno));
	} else if (hw_open_window(r, row, 0, 4096, HW_ACCESS, HW_ACCESS, &t)) {
		bool made = hw_initiator_of(r, row, &i, &t, &o);

		if (made && (kind == EVENT_SLEEP || kind == EVENT_RACE))
			for (int n = 0; n < ROUNDS && lost < 3; n++) {
				if (!one_event(r, row, &i, &t, mr, ch, kind == EVENT_RACE, &lost))
					break;
			}
		else if (made)
			ask_late(row, &i, &t, mr, ch, kind == EVENT_EARLIER);
		if (kind == EVENT_SLEEP || kind == EVENT_RACE)
			hw_fact(row, "lost", json_integer(lost));
		if (lost)
			hw_fail(row, "%d times a completion came and no thread was woken", lost);
		if (made)
			hw_dci_free(&i);
		hw_close_window(r, 0);
	}
	if (mr)
		hw_mem_free(mr);
	if (ch)
		ibv_destroy_comp_channel(ch);
}

const struct hw_check hw_cost_checks[] = {
	{ "event.sleep", check_events, EVENT_SLEEP },
	{ "event.race", check_events, EVENT_RACE },
	{ "event.earlier", check_events, EVENT_EARLIER },
	{ "event.unasked", check_events, EVENT_UNASKED },
	{ "cost.dci", check_cost, COST_DCI, HW_DC },
	{ "cost.rc", check_cost_rc, 0, HW_RC },
	{ "cost.cq", check_cost, COST_CQ },
	{ "cost.ah", check_cost, COST_AH, HW_DC },
	{ "cost.memory.4096", check_cost_mr, 4096 },
	{ "cost.memory.1048576", check_cost_mr, 1048576 },
	{ "cost.memory.67108864", check_cost_mr, 67108864 },
	{ NULL, NULL, 0 },
};
