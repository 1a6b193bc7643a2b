/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations: what a caller asks for is checked, cut into work requests as long as the adapter takes them,
 * and counted down as these complete.
 *
 * A work request carries a number, not a pointer: a completion that comes twice, or after its queue pair was
 * destroyed, then matches nothing and harms nobody.  Those of a queue pair complete in order, so the time
 * that counts is that of the oldest: one that is lost is found out though others come.
 */
#include "server/server_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "token/token.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEP_NS (1 * NS_PER_MS)
#define BLOCK_MAX 4096u

/* ---- their memory ---- */

static struct op *
op_new(struct gantry_channel *c)
{
	unsigned nr = c->s->p.cq_depth < BLOCK_MAX ? c->s->p.cq_depth : BLOCK_MAX;
	struct list *l = list_pop(&c->free);
	struct op_block *b = c->ops;

	if (l)
		return container_of(l, struct op, link);
	if (!b || b->used == (int)nr) {
		b = malloc(sizeof *b + nr * sizeof b->op[0]);
		if (!b)
			return NULL;
		b->used = 0;
		b->next = c->ops;
		c->ops = b;
	}
	check(b->used >= 0 && b->used < (int)nr);
	list_init(&b->op[b->used].link);
	return &b->op[b->used++];
}

void
ops_free(struct gantry_channel *c)
{
	struct op_block *next;

	for (struct op_block *b = c->ops; b; b = next) {
		next = b->next;
		free(b);
	}
}

static void
uses_put(struct op *op)
{
	for (int i = 0; i < op->piece_nr; i++) {
		uint64_t was =
			atomic_fetch_sub_explicit(&op->pieces[i].region->uses, 1, memory_order_release);

		check(was > 0);
	}
}

/* Counts the operation in the regions of its pieces; false: one is being taken back. */
static bool
uses_get(struct op *op)
{
	bool is_going = false;

	for (int i = 0; i < op->piece_nr; i++) {
		atomic_fetch_add(&op->pieces[i].region->uses, 1);
		is_going |= atomic_load(&op->pieces[i].region->is_going);
	}
	if (is_going)
		uses_put(op);
	return !is_going;
}

void
op_note(struct op *op, int wc_status)
{
	if (!op->has_status || op->wc_status == IBV_WC_SUCCESS)
		op->wc_status = wc_status;
	op->has_status = true;
}

void
op_end(struct op *op)
{
	struct gantry_channel *c = op->c;

	check(!op->is_over && op->on_wire == 0 && op->unposted == 0);
	uses_put(op);
	held_put(c, op);
	op->is_over = true;
	if (op->is_sync)
		return;
	check(c->under_way > 0);
	c->under_way--;
	list_push_tail(&c->over, &op->link);
}

/* ---- posting ---- */

static int
post_one(struct op *op)
{
	struct lane *l = op->lane;
	struct rdma_sge sge[RDMA_SGE_MAX];
	struct rdma_wr wr = {
		.wr_id = l->next_nr,
		.is_write = op->is_write,
		.target = &op->target,
		.rkey = op->rkey,
		.remote = op->remote,
		.sge = sge,
	};
	struct wire *w = &l->wire[l->next_nr & l->wire_mask];
	int piece = op->piece, r;
	size_t at = op->at;
	uint32_t len = 0;

	check(!w->op && op->unposted > 0 && piece < op->piece_nr && at < op->pieces[piece].len);
	while (piece < op->piece_nr && wr.sge_nr < l->limits.max_sge && len < l->message_max) {
		const struct gantry_piece *p = &op->pieces[piece];
		size_t part = p->len - at;

		if (part > l->message_max - len)
			part = l->message_max - len;
		sge[wr.sge_nr++] = (struct rdma_sge){ .mem = (char *)p->mem + at,
						      .region = p->region->nr,
						      .len = (uint32_t)part };
		len += (uint32_t)part;
		at += part;
		if (at == p->len) {
			at = 0;
			piece++;
		}
	}
	check(len > 0 && len <= op->unposted);
	r = rdma_ep_post(l->ep, &wr);
	if (r < 0)
		return r;
	*w = (struct wire){ .nr = l->next_nr++, .op = op, .len = len };
	if (l->outstanding++ == 0) {
		l->since_ns = clock_ns();
		l->bytes = 0;
	}
	if (len > l->bytes)
		l->bytes = len;
	l->reads += !op->is_write;
	op->on_wire++;
	op->piece = piece;
	op->at = at;
	op->remote += len;
	op->unposted -= len;
	return 0;
}

/* Says whether another one fits.  A place is taken for as long as a completion is lost. */
static bool
has_room(const struct lane *l, bool is_write)
{
	return rdma_has_room(&l->limits, l->outstanding, l->reads, is_write) &&
	       l->next_nr - l->oldest_nr <= l->wire_mask;
}

/* Posts as much of it as there is room for. */
static int
post_some(struct op *op)
{
	int r = 0;

	while (r == 0 && op->unposted && has_room(op->lane, op->is_write))
		r = post_one(op);
	return r;
}

/* Posts what waits; true: a post has failed. */
static bool
post_waiting(struct lane *l)
{
	while (!list_empty(&l->waiting)) {
		struct op *op = container_of(list_first(&l->waiting), struct op, link);
		int r = post_some(op);

		if (r < 0) {
			say(l->c->s, GANTRY_SERVER_LOG_ERROR, "channel %u takes no work: %s", l->c->nr,
			    strerror(-r));
			op_note(op, IBV_WC_GENERAL_ERR);
			return true;
		}
		if (op->unposted)
			return false;
		list_del(&op->link);
	}
	return false;
}

/* ---- starting ---- */

static int
refuse(struct gantry_channel *c, const char *what)
{
	say(c->s, GANTRY_SERVER_LOG_ERROR, "channel %u: %s", c->nr, what);
	return -EIO;
}

static int
check_pieces(struct gantry_channel *c, const struct gantry_piece *p, int n, uint64_t *ret_bytes)
{
	struct gantry_server *s = c->s;
	uint64_t bytes = 0;

	if (!p || n < 1)
		return refuse(c, "a transfer has no piece");
	if (n > s->p.max_sge) {
		say(s, GANTRY_SERVER_LOG_ERROR,
		    "channel %u: a transfer has %d pieces: %d are possible (max_sge)", c->nr, n,
		    s->p.max_sge);
		return -EIO;
	}
	for (int i = 0; i < n; i++) {
		const struct gantry_region *g = p[i].region;
		uint64_t from;

		if (!g || g->s != s)
			return refuse(c, "a piece is of no region of this server");
		from = (uint64_t)((uintptr_t)p[i].mem - (uintptr_t)g->mem);
		if (!p[i].len)
			return refuse(c, "a piece has no bytes");
		if (from > g->len || p[i].len > g->len - from) {
			say(s, GANTRY_SERVER_LOG_ERROR,
			    "channel %u: a piece of %zu bytes at %p leaves its region of %zu bytes at %p",
			    c->nr, p[i].len, p[i].mem, g->len, (void *)g->mem);
			return -EIO;
		}
		bytes += p[i].len;
		if (bytes > GANTRY_MOVE_MAX) {
			say(s, GANTRY_SERVER_LOG_ERROR,
			    "channel %u: a transfer has more than %zu bytes, which is all that one may have",
			    c->nr, (size_t)GANTRY_MOVE_MAX);
			return -EIO;
		}
	}
	*ret_bytes = bytes;
	return 0;
}

static int
check_token(struct gantry_channel *c, const char *text, uint64_t remote, uint64_t bytes,
	    struct token *ret_tok)
{
	struct gantry_server *s = c->s;
	const char *why = "";
	size_t len = text ? strnlen(text, TOKEN_TEXT_MAX + 1) : 0;

	if (!text || !remote)
		return refuse(c, text ? "the remote address is 0" : "there is no token");
	if (token_parse(text, len, ret_tok, &why) < 0 ||
	    (ret_tok->kind == TOKEN_DC && token_check_move(ret_tok, &why) < 0)) {
		say(s, GANTRY_SERVER_LOG_ERROR, "channel %u: a token of %zu characters cannot be read: %s",
		    c->nr, len, why);
		return -EIO;
	}
	if (ret_tok->kind != TOKEN_DC)
		return refuse(c, "a token is not of the kind that is served, which is DC");
	if (remote < ret_tok->addr || bytes > ret_tok->size ||
	    remote - ret_tok->addr > ret_tok->size - bytes) {
		say(s, GANTRY_SERVER_LOG_ERROR,
		    "channel %u: %llu bytes at 0x%llx leave the token's window, which is %llu bytes at "
		    "0x%llx",
		    c->nr, (unsigned long long)bytes, (unsigned long long)remote,
		    (unsigned long long)ret_tok->size, (unsigned long long)ret_tok->addr);
		return -EIO;
	}
	return 0;
}

/* Puts one on the wire, or in line after those that wait. */
static int
submit(struct op *op)
{
	struct lane *l = op->lane;
	int r = list_empty(&l->waiting) ? post_some(op) : 0;

	if (r == 0) {
		if (op->unposted)
			list_push_tail(&l->waiting, &op->link);
		return 0;
	}
	say(op->c->s, GANTRY_SERVER_LOG_ERROR, "channel %u takes no work: %s", op->c->nr, strerror(-r));
	op->unposted = 0;
	if (op->on_wire == 0)
		return r;
	/* A part of it is on its way, so it ends as one that has failed. */
	op_note(op, IBV_WC_GENERAL_ERR);
	lane_repair(l, IBV_WC_GENERAL_ERR);
	return 0;
}

int
op_begin(struct gantry_channel *c, enum gantry_dir d, const struct gantry_piece *p, int n, uint64_t remote,
	 const char *token, void *handle, bool is_sync, struct op **ret_op)
{
	struct token tok;
	uint64_t bytes;
	struct op *op;
	int r;

	if (c->is_fenced)
		return refuse(c,
			      "is fenced, as a transfer has failed and qp_reset_on_failure is off: free it");
	r = d == GANTRY_PUSH || d == GANTRY_PULL ? check_pieces(c, p, n, &bytes)
						 : refuse(c, "a transfer has no direction");
	if (r == 0)
		r = check_token(c, token, remote, bytes, &tok);
	if (r < 0)
		return r;
	op = op_new(c);
	if (!op) {
		say(c->s, GANTRY_SERVER_LOG_ERROR, "channel %u: no memory for an operation", c->nr);
		return -ENOMEM;
	}
	op->c = c;
	op->lane = NULL;
	op->held = NULL;
	op->handle = handle;
	op->is_write = d == GANTRY_PUSH;
	op->is_sync = is_sync;
	op->is_over = op->has_status = false;
	op->rkey = tok.rkey;
	op->remote = remote;
	op->bytes = op->unposted = bytes;
	op->piece = op->on_wire = op->wc_status = 0;
	op->at = 0;
	op->piece_nr = n;
	memcpy(op->pieces, p, (size_t)n * sizeof *p);
	r = held_get(c, &tok, op);
	if (r == 0 && !uses_get(op)) {
		r = refuse(c, "a region is being taken back");
		held_put(c, op);
	}
	if (r < 0) {
		list_push_head(&c->free, &op->link);
		return r;
	}
	c->under_way += !is_sync;
	r = submit(op);
	if (r < 0) {
		c->under_way -= !is_sync;
		uses_put(op);
		held_put(c, op);
		list_push_head(&c->free, &op->link);
		/* Of a region that was removed the queue pair knows nothing. */
		if (r != -ESTALE)
			lane_repair(op->lane, IBV_WC_GENERAL_ERR);
		return -EIO;
	}
	*ret_op = op;
	return 0;
}

int
gantry_channel_start(struct gantry_channel *c, enum gantry_dir d, const struct gantry_piece *p, int n,
		     uint64_t remote, const char *token, void *handle)
{
	struct op *op;
	int r = channel_enter(c);

	if (r < 0)
		return r;
	r = op_begin(c, d, p, n, remote, token, handle, false, &op);
	channel_leave(c);
	return r;
}

/* ---- completions ---- */

static const char *
hint(enum rdma_status status)
{
	switch (status) {
	case WCS_RETRY_EXC:
		return ": no answer: is the client's DC key another (dc_key), is it gone, or does a "
		       "switch or "
		       "its port have a smaller MTU (path_mtu)?";
	case WCS_REM_ACCESS:
		return ": is the client's memory not registered any more, or for the other direction?";
	case WCS_LOCAL_PROT:
		return ": is the memory of a piece there, and may it be written to?";
	default:
		return "";
	}
}

static void
say_bad(const struct op *op, const struct rdma_completion *c)
{
	char name[64] = "";

	if (c->status == WCS_FLUSHED)
		return;
	if (op->held && op->held->have_gid)
		gid_name(op->held->gid, name, sizeof name);
	say(op->c->s, GANTRY_SERVER_LOG_ERROR,
	    "channel %u: %s of %llu bytes %s %s has failed: %s (%d, vendor 0x%x)%s", op->c->nr,
	    op->is_write ? "PUSH" : "PULL", (unsigned long long)op->bytes, op->is_write ? "to" : "from",
	    *name ? name : "a client", gantry_status_text(c->wc_status), c->wc_status, c->vendor_err,
	    hint(c->status));
}

/* One completion; true: a failure. */
static bool
complete(struct lane *l, const struct rdma_completion *c)
{
	struct wire *w = &l->wire[c->wr_id & l->wire_mask];
	bool is_bad = c->status != WCS_SUCCESS;
	struct op *op = w->op;

	if (!op || w->nr != c->wr_id) {
		say(l->c->s, GANTRY_SERVER_LOG_DEBUG,
		    "channel %u: a completion of nothing that is outstanding", l->c->nr);
		return false;
	}
	check(l->outstanding > 0 && op->on_wire > 0 && op->lane == l);
	w->op = NULL;
	l->outstanding--;
	l->reads -= !op->is_write;
	op->on_wire--;
	op_note(op, c->wc_status);
	if (is_bad) {
		say_bad(op, c);
		rdma_heed_status(l->rail, &op->target, c->status);
	}
	if (op->on_wire == 0 && (op->unposted == 0 || is_bad)) {
		if (op->unposted)
			list_del(&op->link);
		op->unposted = 0;
		op_end(op);
	}
	return is_bad;
}

/* The oldest has completed: another one is. */
static void
pass_on(struct lane *l)
{
	uint64_t was = l->oldest_nr;

	check(was <= l->next_nr && l->next_nr - was <= l->wire_mask + 1);
	while (l->oldest_nr != l->next_nr && !l->wire[l->oldest_nr & l->wire_mask].op)
		l->oldest_nr++;
	if (l->oldest_nr != was && l->outstanding)
		l->since_ns = clock_ns();
}

bool
lane_reap(struct lane *l, int *ret_nr)
{
	struct rdma_completion wc[16];
	bool is_bad = false;
	int n;

	*ret_nr = 0;
	do {
		n = rdma_cq_poll(l->cq, wc, 16);
		if (n < 0) {
			rdma_rail_broken(l->rail, "a completion queue cannot be polled");
			return true;
		}
		for (int i = 0; i < n; i++)
			is_bad |= complete(l, &wc[i]);
		*ret_nr += n;
	} while (n == 16);
	if (*ret_nr)
		pass_on(l);
	return is_bad;
}

/* Of one that is ON. */
static int
reap_on(struct lane *l)
{
	uint64_t late;
	int nr;

	if (lane_reap(l, &nr) || post_waiting(l)) {
		lane_repair(l, IBV_WC_GENERAL_ERR);
		return nr + 1;
	}
	if (nr)
		return nr;
	late = lane_deadline(l);
	if (!late || clock_ns() < late)
		return 0;
	say(l->c->s, GANTRY_SERVER_LOG_ERROR, "channel %u: a completion is late by 100 ms", l->c->nr);
	lane_repair(l, IBV_WC_RESP_TIMEOUT_ERR);
	return 1;
}

int
channel_reap(struct gantry_channel *c)
{
	int nr = 0;

	for (int i = 0; i < RDMA_RAILS_MAX; i++) {
		struct lane *l = c->lane[i];

		if (!l || l->state == LANE_OFF)
			continue;
		if (l->state == LANE_ON && rdma_rail_context(l->rail) == l->context) {
			if (l->outstanding)
				nr += reap_on(l);
			continue;
		}
		if (clock_ns() < c->step_ns)
			continue;
		c->step_ns = clock_ns() + STEP_NS;
		/* Whatever of the device this channel has, on whichever port. */
		for (int k = 0; k < RDMA_RAILS_MAX; k++) {
			if (c->lane[k])
				lane_step(c->lane[k]);
		}
	}
	return nr;
}

int
gantry_channel_poll(struct gantry_channel *c, struct gantry_done *done, int max)
{
	int n = 0, r;

	if (!done || max < 0) {
		say(c->s, GANTRY_SERVER_LOG_ERROR,
		    "channel %u: gantry_channel_poll() has no room for anything", c->nr);
		return -EINVAL;
	}
	r = channel_enter(c);
	if (r < 0)
		return r;
	wait_take_events(c);
	channel_reap(c);
	for (struct list *l; n < max && (l = list_pop(&c->over)); n++) {
		struct op *op = container_of(l, struct op, link);

		check(op->is_over && !op->is_sync && op->c == c);
		done[n] = (struct gantry_done){
			.handle = op->handle,
			.bytes = op->wc_status == IBV_WC_SUCCESS ? op->bytes : 0,
			.wc_status = op->wc_status,
			.error = op->wc_status == IBV_WC_SUCCESS ? 0 : -EIO,
		};
		list_push_head(&c->free, &op->link);
	}
	r = n;
	if (n == 0 && c->under_way == 0 && list_empty(&c->over))
		r = c->is_fenced ? -EIO : gantry_server_is_alive(c->s) ? 0 : -ENODEV;
	channel_leave(c);
	return r;
}
