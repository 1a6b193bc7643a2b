/* SPDX-License-Identifier: Apache-2.0 */
/* claim TM2: a request with a descriptor reads or writes a client's memory: what of it has to be signed,
 * and how often and from where it may come. */
#include "ask.h"

#include "base/log.h"

#include <netinet/in.h>

static const struct {
	enum wire_form form;
	const char *header;
	enum conf_dialect dialect;
	bool always;
} wires[] = {
#define WIRE(id, header_, dialect_, parse_, shape_, served_, decline_, reply_, sign, ...)                    \
	{ WIRE_##id, header_, DIALECT_##dialect_, #sign[0] == 'A' },
#include "dialect/wire.def"
};

static const char *const besides[] = {
#define BESIDE(header) header,
#include "dialect/wire.def"
};

/* A signed GET with a descriptor. */
static struct rq *
tokened(enum op op, enum wire_form form, const char *header, const char *beside)
{
	struct signer s = example_signer();
	struct rq *r = for_op(rq_with(s3("GET", "/bkt/obj"), "x-amz-content-sha256", EMPTY, "x-amz-date",
				      STAMP, header, DC81, NULL),
			      op);

	r->t.wire = form;
	if (beside)
		rq_field(r, beside, "bytes=0-3");
	return sign(r, &s);
}

/* item 82: what decides which bytes move, and whether, is signed where the descriptor is. */
static void
beside_a_descriptor(void **state)
{
	struct auth_env env = example_env();
	struct identity id;
	struct rq *r;

	for (size_t w = 0; w < sizeof wires / sizeof *wires; w++) {
		if (wires[w].dialect != DIALECT_S3)
			continue; /* without signatures */
		for (size_t b = 0; b < sizeof besides / sizeof *besides; b++) {
			r = tokened(OP_GET_OBJECT, wires[w].form, wires[w].header, besides[b]);
			assert_fault(ask(r), FAULT_NONE);
			r = tokened(OP_GET_OBJECT, wires[w].form, wires[w].header, NULL);
			rq_field(r, besides[b], "bytes=0-3");
			assert_fault(ask(r), FAULT_ACCESS_DENIED);
			assert_int_equal(strncmp(r->why, besides[b], strlen(besides[b])), 0);
			/* Where anybody may put in another descriptor, a range more is no matter. */
			env.relax = true;
			assert_fault(ask_at(r, &env, DAY_S, &id),
				     wires[w].always ? FAULT_ACCESS_DENIED : FAULT_NONE);
			identity_put(&id);
			env.relax = false;
			/* Nothing moves: the descriptor is ignored. */
			r = tokened(OP_HEAD_OBJECT, wires[w].form, wires[w].header, NULL);
			rq_field(r, besides[b], "bytes=0-3");
			assert_fault(ask(r), FAULT_NONE);
			/* Without a descriptor they may come unsigned. */
			r = tokened(OP_GET_OBJECT, WIRE_NONE, "x-amz-meta-a", NULL);
			rq_field(r, besides[b], "bytes=0-3");
			assert_fault(ask(r), FAULT_NONE);
		}
	}
}

/* ---- once, and from where ---- */

static enum fault
ask_from(struct rq *r, enum conf_replay mode, struct auth_replay *table, uint8_t last)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000000u | last) };
	struct auth_env env = example_env();
	struct identity id;
	enum fault f;

	env.replay = table;
	env.replay_mode = mode;
	env.peer = (struct sockaddr *)&sa;
	f = ask_at(r, &env, DAY_S, &id);
	identity_put(&id);
	return f;
}

/* item 82 */
static void
replayed(void **state)
{
	static const struct {
		enum conf_replay mode;
		enum fault token_same, token_other, plain_other; /* from the same address, another, without */
	} row[] = {
		{ REPLAY_PEER, FAULT_NONE, FAULT_REPLAYED, FAULT_NONE },
		{ REPLAY_ONCE, FAULT_REPLAYED, FAULT_REPLAYED, FAULT_NONE },
		{ REPLAY_REJECT, FAULT_NONE, FAULT_REPLAYED, FAULT_ACCESS_DENIED },
	};

	log_set_level((enum log_level) - 1);
	assert_int_equal(fault_info(FAULT_REPLAYED)->status, 503);
	assert_string_equal(fault_info(FAULT_REPLAYED)->code, "SlowDown");
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct auth_replay_info info;
		struct auth_replay *table;
		struct rq *r;

		assert_int_equal(auth_replay_new(1 << 20, &table), 0);
		r = tokened(OP_GET_OBJECT, WIRE_AMZ, "x-amz-rdma-token", NULL);
		assert_fault(ask_from(r, row[i].mode, table, 1), FAULT_NONE);
		assert_fault(ask_from(r, row[i].mode, table, 1), row[i].token_same);
		assert_fault(ask_from(r, row[i].mode, table, 2), row[i].token_other);
		/* What does not hold is no replay, and enters nothing. */
		rq_field(r, "x-amz-meta-a", "b");
		assert_fault(ask_from(r, row[i].mode, table, 2), FAULT_ACCESS_DENIED);
		/* Of the same signature where nothing moves. */
		r = tokened(OP_HEAD_OBJECT, WIRE_AMZ, "x-amz-rdma-token", NULL);
		assert_fault(ask_from(r, row[i].mode, table, 3), row[i].plain_other);
		r = tokened(OP_GET_OBJECT, WIRE_NONE, "x-amz-meta-a", NULL);
		assert_fault(ask_from(r, row[i].mode, table, 1), FAULT_NONE);
		assert_fault(ask_from(r, row[i].mode, table, 1), FAULT_NONE);
		assert_fault(ask_from(r, row[i].mode, table, 2), row[i].plain_other);
		auth_replay_get_info(table, &info);
		assert_int_equal(info.key_nr, 1);
		assert_string_equal(info.by_key[0].access_key, AK);
		assert_true(info.refused == info.by_key[0].refused && info.refused > 0);
		auth_replay_free(table);
	}
	assert_fault(
		ask_from(tokened(OP_GET_OBJECT, WIRE_AMZ, "x-amz-rdma-token", NULL), REPLAY_OFF, NULL, 1),
		FAULT_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beside_a_descriptor),
		cmocka_unit_test(replayed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
