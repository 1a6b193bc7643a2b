/* SPDX-License-Identifier: Apache-2.0 */
/* The gateways of the store: their rows, ids and epochs (gateway.c, gateway_calls.c). */
#ifndef GANTRY_RADOS_IO_GATEWAY_H
#define GANTRY_RADOS_IO_GATEWAY_H

#include "base/list.h"
#include "base/periodic.h"
#include "rados/io/codec.h"

#include <pthread.h>
#include <stdatomic.h>

#define ID_WINDOW (1u << 20) /* maximum number of ids from the oldest in use to the newest */
#ifndef ID_AHEAD
#define ID_AHEAD (1u << 13) /* number of ids that a gateway's row reserves in advance (rule 4) */
#endif
#define EPOCHS_KEPT 3 /* number of epochs after which garbage is removed (rule 2) */

struct rshard;
struct rstore;

/* The row of a gateway, which may be this one. */
struct peer {
	uint32_t instance;
	/* The row is damaged, and it is unknown whether the gateway runs, and which epoch and ids it uses. So it is never
	 * declared dead, its row stays, and no data is removed that it may use: the epoch does not advance, because a row
	 * of zeros has reached no epoch, and --fsck leaves out data with its ids. A gateway that runs writes its damaged
	 * row again with its next heartbeat; otherwise an operator has to remove the row. */
	bool is_damaged;
	bool is_dead; /* declared dead, and not cleaned up yet */
	struct gateway_row row;
	uint8_t bytes[GATEWAY_ROW_BYTES];
	/* time for which the row has not changed, counted while this gateway has read it */
	uint64_t silent_ns;
};

/* A problem that remains until an operator solves it. In the table of such problems its place follows from crc64; a
 * later problem with the same place replaces it. */
struct lasting {
	uint64_t crc64;    /* CRC of its name: the text of a log line, or the row whose clean-up failed */
	uint64_t at_ns;    /* time of the last line, or of the end of the last attempt */
	uint64_t pause_ns; /* time from then to the next line or attempt */
};
#define LASTING_MAX 4096
#define LASTING_NS (600 * NS_PER_S) /* maximum pause */

struct gateway {
	struct store_format_row format; /* description of the pools, as read at the start */
	/* current format version of the pools; records have no fields of later versions */
	_Atomic uint32_t format_version;
	uint32_t instance;
	_Atomic uint64_t epoch;    /* newest epoch that this gateway has read */
	_Atomic uint64_t epoch_ns; /* time at which this gateway read that epoch */
	/* numbers of pins of this epoch and of the one before, indexed by the lowest bit of the epoch
	 * (rule 2) */
	_Atomic uint64_t pins[2];
	_Atomic bool is_fenced; /* another gateway has declared this one dead; every request fails */
	char fenced_by[128];    /* reason, for operators; set before is_fenced */
	/* Ids: those from first up to next may be in use, those up to last are reserved in this gateway's
	 * row. */
	pthread_mutex_t id_lock;
	uint64_t first, next, last;
	uint8_t *id_over; /* one bit for each id, at counter modulo ID_WINDOW: the id is no longer in use */
	/* Helper threads: one writes this gateway's row; one removes garbage and cleans up after dead
	 * gateways, and may wait for a placement group that is down; one asks the monitors. */
	struct periodic beat, cleaner, watcher;
	bool is_entered;
	pthread_mutex_t lock; /* protects the following fields, except atomic ones */
	struct lasting lasting[LASTING_MAX];
	_Atomic bool sweep_all; /* the next sweep reads all shards, for garbage of earlier gateways */
	struct list dirty;      /* list of struct rshard with garbage */
	bool is_sweeping;       /* a sweep is in progress; the shards that it handles are not in `dirty` */
	struct peer *peers;     /* rows of all gateways, as read last */
	uint32_t peer_nr;
	uint32_t next_instance;         /* instance number of the next gateway that starts, read with peers */
	uint64_t looked_ns;             /* time at which peers were read */
	_Atomic uint32_t rank;          /* number of gateways with a lower instance number */
	uint8_t row[GATEWAY_ROW_BYTES]; /* this gateway's row, as written last */
	/* Counters for operators. */
	_Atomic uint64_t beats, last_beat_ns, swept, gateways, dead_cleaned;
};

/* ---- gateway.c; any thread that may block ---- */

/* The table of gateways: the epoch, the instance number of the next gateway, and the rows of all gateways. */
struct gateway_table {
	uint64_t epoch, next;
	struct peer *peers;
	uint32_t nr;
	size_t cap;
};
/* Reads the table, the rows last: a gateway with a lower number than `next` has its row there, or has
 * ended. kinds: "i": running gateways; "ix": also dead ones, whose rows move from "i" to "x". The caller frees
 * ret_table->peers. Returns 0 or -errno. Any thread that may block. */
int gateway_read_table(const struct rstore *st, const char *kinds, struct gateway_table *ret_table);
int gateway_start(struct rstore *st, char *err, size_t err_len);
void gateway_stop(struct rstore *st);

/* ---- gateway_calls.c; any thread ---- */

/* Returns a new id. -EAGAIN: too many ids are in use; -ESHUTDOWN: this gateway was declared dead. */
int gateway_id(struct rstore *st, struct rid *ret_id);
/* Ends the use of an id: no operation with it is in progress. */
void gateway_id_over(struct rstore *st, struct rid id);
/* Pins the current epoch, and returns it: data named in this epoch is not removed before the unpin (rule
 * 2). */
uint64_t gateway_pin(struct rstore *st);
void gateway_unpin(struct rstore *st, uint64_t epoch);
/* Notes that a shard has garbage. */
void gateway_dirty(struct rstore *st, struct rshard *s);
/* Logs a problem that is found again and again until it is solved: at the level at first, and again after
 * LASTING_NS; otherwise at level debug. level: an enum log_level. */
void lasting_log(struct rstore *st, int level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Returns true if a problem is new, or the pause after it was noted has ended; then notes the problem again, with
 * a pause of first_ns, which doubles each time, up to LASTING_NS. first_ns 0: notes nothing. */
bool lasting_due(struct rstore *st, uint64_t crc64, uint64_t first_ns);
/* Notes that another gateway has declared this one dead. */
void gateway_fence(struct rstore *st);
/* Returns true if the gateway with this number has ended or was declared dead, according to the rows that
 * were read last. */
bool gateway_is_gone(struct rstore *st, uint32_t instance);
/* Returns the oldest epoch that this gateway pins; if it pins none, the current one. */
uint64_t gateway_oldest_epoch(struct gateway *gw);

#endif
