/* SPDX-License-Identifier: Apache-2.0 */
/* What many.c and many_uploads.c share: what may be there, and one client.  See sim.h. */
#ifndef GANTRY_TESTS_SIM_MANY_INT_H
#define GANTRY_TESTS_SIM_MANY_INT_H

#include "tests/sim/sim.h"

#define CLIENTS 3
#define KEYS 9 /* of a bucket; client i has every third */
#define SIZE 600u
#define MAY_MAX 8
#define UNKNOWN_ID UINT32_MAX

/* What may be there. */
struct cell {
	uint32_t may[MAY_MAX]; /* 0: nothing */
	int nr;
	uint32_t pending; /* what a change under way puts there; UNKNOWN_ID: none is */
	bool is_open; /* in this life something failed: what is seen now may not be what the next start finds */
	uint64_t since; /* event when it was last known to be there, and not since when it may be gone */
};

extern struct cell many_keys[BUCKETS][KEYS];
extern struct cell many_buckets[BUCKETS]; /* 1: it is there */
extern uint64_t many_events;
extern uint32_t many_ids;

struct many_client {
	int nr, port;
	bool flag;
	union {
		struct store_op op;
		struct store_put put;
		struct store_del del;
		struct store_obj obj;
		struct store_read rd;
		struct store_bucket_set set;
		struct store_stat stat;
		struct store_list ls;
		struct store_upload up;
		struct store_complete complete;
		struct store_part_list parts;
	} u;
	struct buf buf;
	char attrs[16];
};
extern struct many_client many_clients[CLIENTS];

/* ---- many.c ---- */

void cell_set(struct cell *c, uint32_t id);
bool cell_may_be(const struct cell *c, uint32_t id);
void cell_may_too(struct cell *c, uint32_t id);
/* Somebody saw it. */
void cell_seen(struct cell *c, uint32_t id, const char *what, int b, int k);
/* A change of a cell ended so: done, not done, or nobody knows. */
void cell_over(struct cell *c, int r, uint32_t id);
struct store_key many_key(int b, int k);
int many_home(int b, int k);
bool many_is_away(int b, int k);
int many_etag_nr(const struct store_etag *e);
struct store_port *many_port(struct many_client *c);
/* Chooses a port and clears what is in the way of the next operation. */
void many_begin(struct many_client *c);
/* The result of an operation whose start said r. */
int many_wait(struct many_client *c, int r);
/* Fails where only a disk could explain that answer, and none of those does. */
void many_check_error(int r, unsigned disks, const char *what);
/* Is a change of that bucket under way, or has one ended since that event? */
bool many_bucket_changed(int b, uint64_t since);

/* ---- many_uploads.c ---- */

void uploads_begin(void);
/* One thing is done with one of the client's uploads, or another one begins. */
void upload_any(struct many_client *c, int b, int k);
/* Before all is read, and when all objects were. */
void uploads_look(void);
void uploads_see(struct many_client *c);
void uploads_see_list(struct many_client *c, int b, unsigned away);
/* A removal of the bucket has ended them, or may have; is_open: the next start decides. */
void uploads_end_with(int b, bool is_gone, bool is_open);
/* The process is gone; before it is known of buckets.  heads: disks that decided about them. */
void uploads_die(unsigned heads);
/* A start is tried with these disks; or it serves with them. */
void uploads_start(unsigned present, bool serves);
void uploads_given_up(int disk);

#endif
