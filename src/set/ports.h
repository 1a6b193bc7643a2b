/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports - the ports of a set: one for each thread that uses the store. The port of a set contains a port of
 * every engine. A port is used on the thread that owns it, unless stated otherwise; any thread may read `set`
 * and `mb`. The list of all ports has a separate lock, the last in the lock order (set_int.h): under this lock
 * only messages are posted.
 */
#ifndef GANTRY_SET_PORTS_H
#define GANTRY_SET_PORTS_H

#include "base/list.h"
#include "base/mailbox.h"
#include "ring/ring.h"
#include "set/set.h"
#include "store/ops.h"

#include <pthread.h>

struct set;

/* The list of all ports. */
struct set_ports {
	pthread_mutex_t lock; /* protects the list, and the message flags of its ports */
	struct list list;
	/* State of the newest barrier. */
	_Atomic int left;  /* number of ports that have not passed the barrier */
	_Atomic int error; /* error of a port that could not attach to a new engine; 0: no error */
};

/* The lists of operations that wait at a port. */
enum port_list {
	PORT_CHANGES, /* changes that wait for their secondary (change.c) */
	PORT_PIECES,  /* pieces of PUTs that are being written to a secondary (put.c) */
	PORT_REPAIRS, /* repairs of a copy from the other copy; the first one is in progress (look.c) */
	PORT_LISTS
};

struct set_port {
	struct store_port base;
	struct set *set;
	struct mailbox *mb; /* mailbox of the port's thread */
	struct ring *ring;
	struct timers *timers;
	struct list link; /* link in set_ports.list */
	struct msg barrier, wake;
	/* true: the message of the barrier, or of the wake-up, is in flight; protected by the lock of the
	 * list */
	bool has_barrier, has_wake;
	/* true: a message of set_send_to_one() is in flight; protected by the lock of the list */
	bool has_sent;
	struct list waiting[PORT_LISTS]; /* operations that wait for a secondary or for a repair */
	struct store_carrier carrier;    /* carrier of the port's PUTs, for replays (carry_put.c) */
	/* number of operations of the set itself in flight at the port, which is not detached meanwhile */
	unsigned inflight;
	/* number of engines to which the port has attached: all engines of the set, except those added since the
	 * last barrier */
	int nr;
	struct store_port *engine[STORE_SET_MAX]; /* ports at the engines; NULL: not attached */
};

/* ---- one port ---- */

/* Returns the set port that contains this store port. */
struct set_port *set_port(struct store_port *sp);
/* Returns the port of an engine that belongs to this set port. */
struct store_port *port_engine(const struct set_port *p, int engine);
/* Returns a list of operations that wait at this port, to which its file adds and from which it removes. */
struct list *port_waiting(struct set_port *p, enum port_list list);
/* Notes that an operation of the set itself begins. A port with such operations in flight is not detached. */
void port_pin(struct set_port *p);
/* Notes that an operation of the set itself has ended. */
void port_unpin(struct set_port *p);

/* ---- its life, for attach.c ---- */

/* Allocates a port that has no engines and is not on the list. Returns NULL if there is no memory. */
struct set_port *port_new(struct set *s, struct ring *ring, struct mailbox *mb, struct timers *timers);
/* Frees a port that is not on the list and has no engines. */
void port_free(struct set_port *p);
/* Attaches the port to the engines of the set that it does not know yet. Returns 0 or -errno. */
int port_attach_more(struct set_port *p);
/* Detaches the port from all engines. Returns false if an engine is busy: the caller tries again later. */
bool port_detach_all(struct set_port *p);
/* Puts the port on the list. Returns false if an engine was added that the port does not know yet. */
bool port_join(struct set_port *p);
/* Removes the port from the list. Returns false if a message to the port is in flight. */
bool port_leave(struct set_port *p);

/* ---- all ports: any thread ---- */

/*
 * Begins a barrier: posts a message to each port. After the last port has answered, no thread uses a result
 * that it looked up before the barrier (the engine of a slot, the number of engines), and every port knows
 * all engines of the set. One barrier runs at a time.
 */
void set_barrier(struct set *s);
/* Returns true if every port has passed the latest barrier. */
bool set_barrier_is_done(const struct set *s);
/* Returns the error of a port that could not attach to a new engine, or 0. Called after the barrier has
 * ended. */
int set_barrier_error(const struct set *s);
/* Wakes all ports: go() runs on the thread of each port, and gets the port from port_take_wake(). */
void set_wake_ports(struct set *s, void (*go)(struct msg *m));
/* Returns the port to which a wake-up message was posted, and allows the next wake-up of this port. */
struct set_port *port_take_wake(struct msg *m);
/* Posts a message to the first port of the list. *ret_port is set to this port before go() runs; the port is
 * not freed before port_take_sent(). Returns false if there is no port. */
bool set_send_to_one(struct set *s, struct msg *m, void (*go)(struct msg *m), struct set_port **ret_port);
/* Notes that the message of set_send_to_one() has arrived, and that an operation of the set itself begins at
 * the port, as port_pin() does. */
void port_take_sent(struct set_port *p);

#endif
