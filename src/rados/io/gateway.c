/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateways of the store: their rows (docs/rados.md, "Several gateways").
 *
 * Each gateway writes its row every BEAT_NS: the oldest epoch that it still uses, and the ids that may be in
 * use. The epoch advances when every row has reached it. If a row does not change for dead_after, by the
 * clock of the observer, its gateway is declared dead, and another gateway cleans up after it (dead.c).
 * Garbage is removed after EPOCHS_KEPT epochs (sweep.c).
 *
 * For helper threads; gateway_calls.c has the calls for any thread.
 */
#include "rados/io/gateway.h"

#include "base/check.h"
#include "base/clock.h"
#include "rados/io/array.h"
#include "rados/io/fault.h"
#include "rados/io/format.h"
#include "rados/io/rows.h"
#include "rados/io/rstore.h"
#include "rados/io/usage.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BEAT_NS (2 * NS_PER_S)
#define START_TRIES 1000
/* Maximum time that is added to the silence of other gateways between two reads of the table: a longer gap
 * in this gateway, for example of a stopped machine, has probably stopped the others as well. */
#define LOOK_MAX_NS (2 * BEAT_NS)

/* ---- rows ---- */

static int
on_peer(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct gateway_table *t = cookie;
	struct peer *p = room_for_one(t->peers, t->nr, &t->cap, sizeof *p);

	if (!p)
		return -ENOMEM;
	t->peers = p;
	p += t->nr++;
	*p = (struct peer){ .instance = (uint32_t)strtoul(key + 1, NULL, 10), .row.host = "an unknown host" };
	p->is_dead = key[0] == 'x';
	p->is_damaged = gateway_decode(val, val_len, &p->row) < 0;
	if (!p->is_damaged)
		memcpy(p->bytes, val, GATEWAY_ROW_BYTES);
	return 0;
}

int
gateway_read_table(const struct rstore *st, const char *kinds, struct gateway_table *ret_table)
{
	int e;

	*ret_table = (struct gateway_table){ 0 };
	e = read_number(st, "E", &ret_table->epoch);
	if (e == 0)
		e = read_number(st, "N", &ret_table->next);
	for (; e == 0 && *kinds; kinds++)
		e = each_row(st, OBJECT_STORE, (char[]){ *kinds, 0 }, on_peer, ret_table);
	if (e < 0) {
		free(ret_table->peers);
		ret_table->peers = NULL;
	}
	return e;
}

/* Executes a write on the table of gateways. */
static int
operate(struct rstore *st, rados_write_op_t op)
{
	return write_now(st->client[0].io[POOL_META], OBJECT_STORE, op);
}

/* Returns the addresses of all connections in *ret_addrs, by which the cluster blocks this gateway after
 * its death: the clean-up requires that all connections are blocked. Returns 0 or -errno. */
static int
get_addrs(struct rstore *st, struct gateway_addrs *ret_addrs)
{
	_Static_assert(CLIENTS_MAX <= GATEWAY_ADDRS_MAX, "each connection has its address");
	*ret_addrs = (struct gateway_addrs){ 0 };
	for (int i = 0; i < st->client_nr; i++) {
		char *addr = NULL, *to = ret_addrs->addr[ret_addrs->nr];
		int e = rados_getaddrs(st->client[i].cluster, &addr);

		if (e < 0 || !addr)
			return e < 0 ? e : -EIO;
		snprintf(to, sizeof ret_addrs->addr[0], "%s", addr);
		ret_addrs->nr++;
		rados_buffer_free(addr);
	}
	return 0;
}

/* Takes an instance number, and writes the first row, and a second row with the addresses. */
static int
enter(struct rstore *st)
{
	struct gateway *gw = &st->gw;
	struct gateway_row row = {
		.first = 1, .last = 1 + ID_AHEAD, .since_ns = clock_wall_ns(), .version = STORE_FORMAT_VERSION
	};
	uint8_t bytes[GATEWAY_ADDRS_BYTES];
	struct gateway_addrs addrs;
	int e;

	gethostname(row.host, sizeof row.host - 1);
	e = get_addrs(st, &addrs);
	if (e < 0)
		return e;
	memcpy(row.addrs, addrs.addr[0], sizeof row.addrs);
	gateway_addrs_encode(bytes, &addrs);
	for (int i = 0; i < START_TRIES; i++) {
		rados_write_op_t op;
		uint64_t number, next;

		e = read_number(st, "E", &row.epoch);
		if (e == 0)
			e = read_number(st, "N", &number);
		if (e < 0)
			return e;
		next = number + 1;
		gateway_encode(gw->row, &row);
		op = rados_create_write_op();
		op_compare(op, "E", &row.epoch, 8);
		op_compare(op, "N", &number, 8);
		op_set(op, "N", &next, 8);
		op_set(op, gateway_key('i', (uint32_t)number).text, gw->row, GATEWAY_ROW_BYTES);
		op_set(op, gateway_key('a', (uint32_t)number).text, bytes, sizeof bytes);
		e = operate(st, op);
		if (e == -ECANCELED)
			continue;
		if (e < 0)
			return e;
		gw->instance = (uint32_t)number;
		atomic_store(&gw->epoch, row.epoch);
		atomic_store(&gw->epoch_ns, clock_ns());
		gw->first = gw->next = 1;
		gw->last = row.last;
		return 0;
	}
	return -EBUSY;
}

/* Writes this gateway's row in the place of the value `was`. */
static int
write_row(struct rstore *st, const uint8_t *was, size_t was_len, const uint8_t bytes[GATEWAY_ROW_BYTES])
{
	const struct label key = gateway_key('i', st->gw.instance);
	rados_write_op_t op = rados_create_write_op();

	op_compare(op, key.text, was, was_len);
	op_set(op, key.text, bytes, GATEWAY_ROW_BYTES);
	return operate(st, op);
}

/* Writes this gateway's row. If it has another value, or does not exist, this gateway has been declared
 * dead. A damaged value of any length is replaced: after the declaration the row would not exist. An empty value is not
 * replaced, because a comparison cannot distinguish the empty value from an absent row. */
static int
beat(struct rstore *st)
{
	struct gateway *gw = &st->gw;
	uint8_t bytes[GATEWAY_ROW_BYTES], was[16 * GATEWAY_ROW_BYTES];
	struct gateway_row row;
	int e, n;

	check(gateway_decode(gw->row, GATEWAY_ROW_BYTES, &row) == 0);
	row.beats++;
	row.epoch = gateway_oldest_epoch(gw);
	pthread_mutex_lock(&gw->id_lock);
	row.first = gw->first;
	row.last = gw->next + ID_AHEAD;
	pthread_mutex_unlock(&gw->id_lock);
	gateway_encode(bytes, &row);
	e = write_row(st, gw->row, sizeof gw->row, bytes);
	if (e == -ECANCELED) {
		n = read_value(st, OBJECT_STORE, gateway_key('i', gw->instance).text, was, sizeof was);
		if (n > 0 && gateway_decode(was, (size_t)n, &row) < 0) {
			lasting_log(st, LOG_WARN, "the row of this gateway is damaged: it is written again");
			e = write_row(st, was, (size_t)n, bytes);
		}
	}
	if (e == -ECANCELED || e == -ENOENT || e == -ESHUTDOWN)
		gateway_fence(st);
	if (e < 0)
		return e;
	memcpy(gw->row, bytes, sizeof bytes);
	pthread_mutex_lock(&gw->id_lock);
	check(row.last >= gw->last);
	gw->last = row.last;
	pthread_mutex_unlock(&gw->id_lock);
	atomic_fetch_add(&gw->beats, 1);
	atomic_store(&gw->last_beat_ns, clock_ns());
	return 0;
}

static void
leave(struct rstore *st)
{
	struct gateway *gw = &st->gw;
	const struct label key = gateway_key('i', gw->instance);
	rados_write_op_t op;

	/* With ids in use the row stays, so that another gateway cleans up. */
	if (gw->first != gw->next || atomic_load(&gw->is_fenced))
		return;
	usage_forget(st, gw->instance);
	op = rados_create_write_op();
	op_compare(op, key.text, gw->row, GATEWAY_ROW_BYTES);
	op_remove(op, key.text);
	op_remove(op, gateway_key('a', gw->instance).text);
	operate(st, op);
}

/* ---- the helper thread ---- */

/* Advances the epoch if every gateway has reached it. */
static void
advance(struct rstore *st, const struct gateway_table *t)
{
	rados_write_op_t op;
	uint64_t next = t->epoch + 1;

	for (uint32_t i = 0; i < t->nr; i++) {
		if (t->peers[i].row.epoch != t->epoch)
			return;
	}
	op = rados_create_write_op();
	op_compare(op, "E", &t->epoch, 8);
	for (uint32_t i = 0; i < t->nr; i++)
		op_compare(op, gateway_key('i', t->peers[i].instance).text, t->peers[i].bytes,
			   GATEWAY_ROW_BYTES);
	op_set(op, "E", &next, 8);
	operate(st, op);
}

/* Declares a silent gateway dead: its row becomes the row of a dead gateway, which remains until the
 * clean-up has ended. */
static void
declare_dead(struct rstore *st, const struct peer *p)
{
	const struct label key = gateway_key('i', p->instance);
	rados_write_op_t op = rados_create_write_op();

	op_compare(op, key.text, p->bytes, GATEWAY_ROW_BYTES);
	op_remove(op, key.text);
	op_set(op, gateway_key('x', p->instance).text, p->bytes, GATEWAY_ROW_BYTES);
	if (operate(st, op) == 0)
		log_warn("gateway %u on %s is silent: it is taken for dead, and cleaned up after",
			 p->instance, p->row.host);
	fault_point("dead.declared");
}

/* Measures for how long each other gateway has been silent, and declares gateways dead (rule 3). */
static void
watch_peers(struct rstore *st, struct gateway_table *t)
{
	struct gateway *gw = &st->gw;
	uint64_t now = clock_ns(), looked_ns = now - gw->looked_ns;
	struct peer *old;
	uint32_t rank = 0, nr = 0;

	for (uint32_t i = 0; i < t->nr; i++) {
		struct peer *p = &t->peers[i];

		if (p->is_damaged) {
			lasting_log(st, LOG_WARN, "gateway %u: its row is damaged: all garbage stays",
				    p->instance);
			continue;
		}
		for (uint32_t j = 0; j < gw->peer_nr; j++) {
			if (gw->peers[j].instance == p->instance &&
			    memcmp(gw->peers[j].bytes, p->bytes, GATEWAY_ROW_BYTES) == 0)
				p->silent_ns = gw->peers[j].silent_ns +
					       (looked_ns < LOOK_MAX_NS ? looked_ns : LOOK_MAX_NS);
		}
		rank += p->instance < gw->instance;
		nr++;
		if (p->instance != gw->instance && p->silent_ns >= st->dead_after_ns)
			declare_dead(st, p);
	}
	pthread_mutex_lock(&gw->lock);
	old = gw->peers;
	gw->peers = t->peers;
	gw->peer_nr = t->nr;
	gw->next_instance = (uint32_t)t->next;
	gw->rank = rank;
	pthread_mutex_unlock(&gw->lock);
	free(old);
	gw->looked_ns = now;
	atomic_store(&gw->gateways, nr);
}

static void
turn(void *cookie)
{
	struct rstore *st = cookie;
	struct gateway *gw = &st->gw;
	struct gateway_table t;
	int e = beat(st);

	if (e == 0)
		e = gateway_read_table(st, "i", &t);
	if (e < 0) {
		if (!atomic_load(&gw->is_fenced))
			lasting_log(st, LOG_WARN, "the table of gateways cannot be written: %s",
				    e == -EBADMSG ? "the row E or N is damaged" : strerror(-e));
		return;
	}
	/* The epoch advances by one at a time, so at most one epoch before the current one is pinned. */
	if (t.epoch > atomic_load(&gw->epoch)) {
		atomic_store(&gw->epoch, t.epoch);
		atomic_store(&gw->epoch_ns, clock_ns());
	}
	advance(st, &t);
	watch_peers(st, &t); /* takes over t.peers */
	format_look(st);
}

/* ---- start, stop ---- */

int
gateway_start(struct rstore *st, char *err, size_t err_len)
{
	struct gateway *gw = &st->gw;
	int e;

	pthread_mutex_init(&gw->lock, NULL);
	pthread_mutex_init(&gw->id_lock, NULL);
	list_init(&gw->dirty);
	gw->id_over = calloc(1, ID_WINDOW / 8);
	e = gw->id_over ? enter(st) : -ENOMEM;
	if (e == 0) {
		gw->is_entered = true;
		atomic_store(&gw->last_beat_ns, clock_ns());
		e = periodic_start(&gw->beat, "store-beat", BEAT_NS, turn, st);
	}
	if (e < 0) {
		gateway_stop(st);
		snprintf(err, err_len, "pool %s: this gateway cannot be entered: %s", st->meta_pool,
			 strerror(-e));
	}
	return e;
}

void
gateway_stop(struct rstore *st)
{
	struct gateway *gw = &st->gw;
	struct list *l;

	periodic_stop(&st->usage);
	periodic_stop(&gw->cleaner);
	periodic_stop(&gw->watcher);
	/* Last, so that the row is written while the other threads still wait for the cluster. */
	periodic_stop(&gw->beat);
	if (gw->is_entered)
		leave(st);
	while ((l = list_pop(&gw->dirty)))
		rbucket_release(container_of(l, struct rshard, dirty)->bucket);
	free(gw->peers);
	free(gw->id_over);
	gw->peers = NULL;
	gw->id_over = NULL;
	gw->is_entered = false;
}
