/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the fake channel share.  See fake_chan.h. */
#ifndef GANTRY_TESTS_FAKE_CHAN_INT_H
#define GANTRY_TESTS_FAKE_CHAN_INT_H

#include "fake_chan.h"

#define OP_MAGIC 0x6661634fu
#define WINDOWS_MAX 64
#define SCRIPTS_MAX 64
#define LOST_NS (100 * NS_PER_MS)

struct window {
	uint64_t addr;
	char *mem;
	size_t len;
};

/* What an operation is doing; lives in the table, because chan_op has no private room. */
struct slot {
	struct chan_op *op; /* NULL: free */
	uint64_t order;
	char *mem;
	uint64_t remote;
	bool lost, flushing;
	bool refused; /* never reached the wire: its lease was in error already */
};

struct chan {
	struct chan_params params;
	struct window window[WINDOWS_MAX];
	int window_nr;
	struct slot *slots;
	int slot_nr;
	uint64_t order;
	struct list waiting;
	int channels;
	int decline;
	enum chan_reason decline_reason;
	bool hold, hold_leases, hold_flush;
	uint32_t torn;
	struct {
		uint64_t at;
		enum rdma_status status;
	} script[SCRIPTS_MAX];
	int script_nr;
	uint64_t rng;
	uint32_t fail_ppm, lose_ppm;
	bool random;
	struct timer lost_timer;
	struct list ready; /* leases to be told that they were granted, from chan_poll() */
	struct fake_chan_stats stats;
	uint8_t *conn; /* states of connections, by number; NULL: rc: tokens are not served */
	uint32_t conn_nr;
};

/* The connection that a token names; 0: it is DC's. */
uint32_t fc_conn_of(const struct token *tok);
/* CHAN_OK: the lease has it now. */
enum chan_reason fc_conn_take(struct chan *ch, uint32_t nr);
/* Gives back the connection of a lease that never had a channel. */
void fc_leave(struct chan *ch, struct chan_lease *ls);
/* nr 0: nothing. */
void fc_conn_put(struct chan *ch, uint32_t nr, bool failed);

void fc_lease_take(struct chan *ch, struct chan_lease *ls);
void fc_unwait(struct chan *ch, struct chan_lease *ls);
/* A channel came free: the oldest waiter has it, and hears of it from chan_poll(). */
void fc_grant_waiting(struct chan *ch);
/* Everything outstanding on this lease ends as flushed, later; what was lost waits for the watch. */
void fc_lease_error(struct chan *ch, struct chan_lease *ls);
struct slot *fc_slot_of(struct chan *ch, struct chan_op *op);
/* The oldest outstanding operation that satisfies want(); NULL for none. */
struct slot *fc_oldest(struct chan *ch, bool (*want)(const struct slot *));
void fc_finish(struct chan *ch, struct slot *s, enum rdma_status status);
bool fc_is_held_back(const struct slot *s);

#endif
