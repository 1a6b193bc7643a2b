/* SPDX-License-Identifier: Apache-2.0 */
/* What client.c, puts.c and uploads.c share: one client, and how it waits.  See sim.h. */
#ifndef GANTRY_TESTS_SIM_CLIENT_INT_H
#define GANTRY_TESTS_SIM_CLIENT_INT_H

#include "tests/sim/sim.h"

#define PIECES 3
#define ATTRS_FORGED 8000u

struct client {
	int nr, port, op;
	bool f_put, f_w[PIECES], f_del, f_rd, f_up, f_complete, f_set;
	struct store_put put;
	struct store_write w[PIECES];
	struct store_del del;
	struct store_obj obj;
	struct store_read rd;
	struct store_upload up;
	struct store_complete complete;
	struct store_part_ref refs[PARTS_MAX];
	struct store_bucket_set set;
	struct buf buf[PIECES];
	uint8_t attrs[ATTRS_FORGED + 8];
};

/* The client that p lies in. */
struct client *client_at(const void *p);
struct store_port *client_port(struct client *c);
/* The done() of every operation of a client: sets its flag. */
void client_done(struct store_op *op);
void client_wait(struct client *c, const bool *flag);
void client_idle(struct client *c, uint32_t turns);
int client_new_op(struct client *c, enum op_kind kind, int b, int k);
struct store_key client_key(int b, int k);
struct store_pre client_pre(int b, int k);
uint32_t client_size(void);
/* The bytes of c->op and the commit; the put was begun with r.  The result. */
int client_put(struct client *c, int r, uint32_t size, struct store_commit *sc, bool forged);
void client_do_put(struct client *c, int b, int k, uint32_t size);

#endif
