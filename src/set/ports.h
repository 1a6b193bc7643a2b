/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ports - the ports of a set: one for each thread that uses the store, with a port of every engine in it.
 *
 * A port is used on its own thread, but for what says otherwise.  The list of all ports has a lock of its own, which is the last of the lock
 * order (set_int.h): with it a message is posted, and nothing else is called.
 */
#ifndef GANTRY_SET_PORTS_H
#define GANTRY_SET_PORTS_H

#include "base/mailbox.h"
#include "ring/ring.h"
#include "store/merge.h"
#include "store/ops.h"

struct set;
struct set_port;
struct set_ports;

/* ---- one port ---- */

/* Returns the port of a set that a caller of the store knows by its base, and the other way round. */
struct set_port *set_port(struct store_port *sp);
const struct set_port *set_port_const(const struct store_port *sp);
struct store_port *port_base(struct set_port *p);
/* Returns the set.  Any thread. */
struct set *port_set(const struct set_port *p);
/* Returns the mailbox of the port's thread.  Any thread. */
struct mailbox *port_mailbox(const struct set_port *p);
/* Counts the engines that the port knows: all of the set, but for those that no barrier has passed since they came. */
int port_engines(const struct set_port *p);
/* Returns the port of one of them. */
struct store_port *port_engine(const struct set_port *p, int engine);
/* Notes that an operation of the set's own begins, or has ended: a port with such operations is not detached. */
void port_pin(struct set_port *p);
void port_unpin(struct set_port *p);
bool port_is_pinned(const struct set_port *p);
/* Returns the operations on keys with two copies that wait at the port. */
struct two_waiting *port_two(struct set_port *p);
/* Returns the carrier of the port's PUTs (carry_put.c), and the port of a carrier. */
struct store_carrier *port_carrier(struct set_port *p);
struct set_port *port_of_carrier(struct store_carrier *sc);
/* Returns what a merged list has to know of its port; sources and bucket are the caller's to add. */
struct merge_of port_merge(struct set_port *p);

/* ---- its life, for attach.c ---- */

/* Makes a port that knows no engine, and is not on the list.  NULL: no memory. */
struct set_port *port_new(struct set *s, struct ring *ring, struct mailbox *mb, struct timers *timers);
/* Frees a port that is not on the list and has no engine any more. */
void port_free(struct set_port *p);
/* Attaches to the engines of the set that the port does not know yet.  0 or -errno. */
int port_attach_more(struct set_port *p);
/* Detaches from all engines.  True: no engine has a port of it any more; false: again later. */
bool port_detach_all(struct set_port *p);
/* Puts the port on the list.  False: an engine has come meanwhile, which it does not know. */
bool port_join(struct set_port *p);
/* Takes the port off the list.  False: a message to it is on its way. */
bool port_leave(struct set_port *p);
/* Calls f for the port of each engine. */
void port_each_engine(struct set_port *p, void (*f)(struct store_port *e));

/* ---- all ports: any thread ---- */

/* Makes the list of ports, empty.  0 or -ENOMEM. */
int set_ports_new(struct set_ports **ret_ports);
/* Frees the list, which is empty.  NULL is fine. */
void set_ports_free(struct set_ports *ps);
/*
 * Begins a barrier: a message to each port.  After the last answer no thread uses anything that it looked up before: which engine has a
 * slot, or that there was but one.  Every port then knows all engines of the set.  One barrier at a time.
 */
void set_barrier(struct set *s);
/* Returns true if every port has passed the barrier that was begun last. */
bool set_barrier_is_done(const struct set *s);
/* Returns the error of a port that could not attach to a new engine, or 0.  After the barrier. */
int set_barrier_error(const struct set *s);
/* Wakes all ports: go() runs on the thread of each, and takes the message by port_take_wake(). */
void set_wake_ports(struct set *s, void (*go)(struct msg *m));
/* Returns the port of that message, which may be woken again from now on. */
struct set_port *port_take_wake(struct msg *m);
/* Posts a message to the first port of the list, which is *ret_port before go() runs, and stays until port_take_sent().  False: there is none. */
bool set_send_to_one(struct set *s, struct msg *m, void (*go)(struct msg *m), struct set_port **ret_port);
/* Takes that message: the port is pinned from now on, instead of waiting for it. */
void port_take_sent(struct set_port *p);

#endif
