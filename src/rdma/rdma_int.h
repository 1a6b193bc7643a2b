/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_int - declarations shared by the files of rdma/: devices, rails, and the views from which routes are
 * chosen. No header above this one uses types of verbs. */
#ifndef GANTRY_RDMA_INT_H
#define GANTRY_RDMA_INT_H

#include "rdma/ep.h"
#include "rdma/rdma.h"

#include "base/fair.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>

#define RAIL_GIDS_MAX 64
#define RAIL_IPS_MAX 8
#define RDMA_MAX_READS 16 /* largest number of READs that an endpoint may have outstanding (item 32) */
#define WHY_BYTES 192     /* size, in bytes, of the reason why a device lacks a transport */
#define PATHS_ROCE 4
#define TRAFFIC_CLASS 96 /* default traffic class of packets */
#define AH_THREADS_MAX 16
#define AH_MAKING_PER_CLIENT 8

/* ---- gid.c: what a GID is.  IPv4 is v4-mapped. ---- */

bool gid_is_v4(const uint8_t gid[16]);
bool gid_is_loopback(const uint8_t gid[16]);
bool gid_is_link_local(const uint8_t gid[16]);
bool gid_prefix_equal(const uint8_t a[16], const uint8_t b[16], unsigned bits);
/* Converts the address of an AF_INET or AF_INET6 socket to a GID. Returns false for other families. */
bool gid_from_sockaddr(const struct sockaddr *sa, uint8_t ret_gid[16]);
/* Writes a GID as text: "10.0.0.5", "::ffff:10.0.0.5" or IPv6, never longer than INET6_ADDRSTRLEN. Returns
 * text. */
const char *gid_text(const uint8_t gid[16], char *text, size_t len);

/* ---- ahattr.c: pure choices over a view of the rails ---- */

struct rail_gid {
	uint8_t raw[16];
	uint32_t index;
	uint32_t ifindex; /* index of the GID's network interface; 0: unknown, or the GID has no interface */
	uint8_t prefix;   /* length of the prefix of the GID's subnet, in bits of 128; 128: unknown */
};

/* The data of a rail that the choice of routes needs. rail->view is read, and copied, under table_lock of
 * struct rdma. */
struct rail_view {
	bool is_ethernet;
	uint8_t port;
	uint16_t lid;
	/* gid_nr: number of GIDs in gid[]; gids_cut: number of GIDs for which gid[] has no room */
	int gid_nr, gids_cut;
	struct rail_gid gid[RAIL_GIDS_MAX]; /* usable GIDs: RoCEv2 on Ethernet, all on InfiniBand */
	int ip_nr;
	uint8_t ip[RAIL_IPS_MAX][16]; /* addresses of this rail that are in no GID table (IPoIB) */
};

struct ah_params {
	uint8_t service_level, traffic_class, hop_limit;
};

/* Chooses the route for rdma_route() from views of the rails. up: bit i is set if rail i is up. cost[i]: load
 * of rail i; cost NULL: all rails have the same load. Returns the result of rdma_route(). */
int rdma_choose(const struct rail_view *const *views, int view_nr, unsigned up, const int *cost,
		const struct token *tok, const struct rdma_asker *asker, struct rail_route *ret_route);
/* Fills in the attributes of an address handle, by the table of protocol.md 2.8. */
void rdma_ah_build(const struct rdma_ah_key *key, uint8_t port, const struct ah_params *params,
		   struct ibv_ah_attr *ret_attr);

/* The subnets that are trusted and the addresses of this machine, for rdma_gid_allowed(). */
struct rdma_trust {
	struct {
		uint8_t addr[16];
		uint8_t prefix;
		bool is_ib; /* true: a native InfiniBand subnet, even if its prefix is link-local */
	} net[RDMA_RAILS_MAX * RAIL_GIDS_MAX];
	int net_nr;
	uint8_t own[RDMA_RAILS_MAX * RAIL_GIDS_MAX][16];
	int own_nr;
};
void rdma_trust_build(const struct rail_view *const *views, int view_nr, struct rdma_trust *ret_trust);
int rdma_trust_check(const struct rdma_trust *trust, const struct conf_rdma *conf, const uint8_t *gid,
		     const struct sockaddr *peer);
/* Returns the reason why tokens may not name an address, and the remedy, as part of a sentence. */
const char *rdma_trust_why(const struct rdma_trust *trust, const struct conf_rdma *conf,
			   const uint8_t gid[16]);
/* Returns true if the address of a listener is in a subnet of a rail, or is a wildcard. */
bool rdma_trust_shares(const struct rdma_trust *trust, const struct sockaddr *listen);

/* ---- netroute.c ---- */

/* Asks the kernel whether packets from src to dst leave by the interface ifindex (0: any interface). Returns
 * 0 if they do; -ENETUNREACH if they do not; -EADDRINUSE if dst is an address of this machine; -EADDRNOTAVAIL
 * if dst is not the address of one machine (broadcast); another -errno if the answer is unknown. Blocks for
 * the duration of a system call. */
int net_route(uint32_t ifindex, const uint8_t src[16], const uint8_t dst[16]);
/* Checks, by the routes of the kernel, whether the rail leads to the address of key. Returns 0 or
 * -ENETUNREACH. If the kernel does not know, returns -ENETUNREACH if key->must_route is true, otherwise 0.
 * *ret_level: service level of the path; -1: unknown. */
int rail_routes(const struct rdma_rail *rail, const struct rdma_ah_key *key, int *ret_level);

/* ---- cmroute.c ---- */

struct cm_question {
	bool is_ib;
	uint16_t pkey; /* partition key, for is_ib */
	/* src: source address, only for is_ib; otherwise the kernel chooses the source */
	uint8_t src[16], dst[16];
};

struct cm_answer {
	__be64 guid; /* GUID of the device that leads to the address */
	int port;
	int service_level; /* service level of the path; -1: unknown */
};

struct cm_oracle;
int cm_oracle_new(struct cm_oracle **ret_oracle);
/* Ends the thread that serves cm_oracle_ask(), and frees o, after the last caller has ended. NULL is
 * allowed. */
void cm_oracle_free(struct cm_oracle *o);
/* Asks librdmacm for the device that leads to an address. Returns 0, -ENETUNREACH (no device leads there) or
 * -ENODATA (unknown). Blocks for at most 200 ms. */
int cm_oracle_ask(struct cm_oracle *o, const struct cm_question *q, struct cm_answer *ret_answer);

/* ---- select.c: which devices the operator meant ---- */

struct selector {
	char text[64];
	char device[64]; /* name of a device; "": the selector is an address */
	int port;        /* number of the port; 0: all ports */
	bool is_address;
	uint8_t gid[16];
};
/* Parses a selector: a device name, name:port, an IPv4 or IPv6 address, or a GID. Returns 0 or -EINVAL. */
int selector_parse(const char *text, struct selector *ret_sel);
/* Finds the device name and port of an address that is in no GID table, through librdmacm. Returns 0; -ENODEV
 * if no device has the address; -ENOENT if the kernel has no CM. */
int selector_by_cm(const struct selector *sel, char *ret_device, size_t device_len, int *ret_port);

/* ---- ahcache.c ---- */

struct rdma_ah {
	struct ibv_ah *ah,
		/* handle of the previous use of this slot; destroyed by the helper that makes the next
		 * handle */
		*old;
	_Atomic unsigned context; /* number of the context on which ah was made */
	struct rdma_rail *rail;
	struct rdma_ah_key key;
	enum { AH_FREE, AH_MAKING, AH_READY, AH_FAILED } state;
	/* true: look-ups do not find the handle any longer; written under ah_cache.lock */
	_Atomic bool forgotten;
	int refs;
	uint64_t since_ns; /* time at which the state became MAKING */
	uint64_t failed_until_ns;
	int failures;    /* number of consecutive failures */
	uint8_t client;  /* in the state MAKING: number of the requesting client (base/fair.h) */
	bool is_counted; /* in the state MAKING: true: the handle is counted in ah_helpers.making[client] */
	/* lru is linked only while refs is 0 and the handle is not being made */
	struct list bucket, lru, work, waiters;
};

#define AH_BUCKETS 1024
struct ah_cache {
	pthread_mutex_t lock;
	struct rdma_ah *slot;
	int slot_nr;
	struct list bucket[AH_BUCKETS];
	struct list lru; /* unused handles, in the order in which they are evicted */
};

/* The threads that make address handles, owned by struct rdma. They serve the clients in turn. */
struct ah_helpers {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct fair work;
	/* number of handles of each client that wait or are being made */
	_Atomic uint8_t making[FAIR_CLIENTS];
	pthread_t thread[AH_THREADS_MAX];
	int thread_nr, idle;
	bool stop;
	bool started; /* true: the threads were started; owned by the thread of rdma_open() */
};

/* Finds or makes the address handle for key. Returns > 0 if *ret_ah is set; 0 if w->done() follows, with the
 * handle in w->target.at; or the -errno of rdma_target_get(). */
int ah_get(struct rdma_rail *rail, const struct rdma_ah_key *key, struct rdma_target_wait *w,
	   struct rdma_ah **ret_ah);
void ah_put(struct rdma_rail *rail, struct rdma_ah *ah);
bool ah_leave(struct rdma_rail *rail, struct rdma_target_wait *w);
void ah_forget(struct rdma_rail *rail, struct rdma_ah *ah);

int ah_cache_init(struct rdma_rail *rail, int slot_nr);
void ah_cache_fini(struct rdma_rail *rail);
void ah_cache_forget_all(struct rdma_rail *rail);
/* Destroys every address handle of a rail, referenced ones included. Called before the context is closed,
 * when no holder of a reference has an endpoint left. */
void ah_cache_drop(struct rdma_rail *rail);
int ah_helpers_start(struct ah_helpers *h);
void ah_helpers_stop(struct ah_helpers *h);

/* ---- devices and rails ---- */

/* Number of slots of regions in one struct region_keys. The struct has the keys of a context for consecutive
 * slots. */
#define REGION_CHUNK 1024
struct region_keys {
	struct ibv_mr *mr[REGION_CHUNK];
	/* Local key of each slot for posting, and the number of the slot's use (from 1) in the upper bits; 0:
	 * no key. */
	_Atomic uint64_t key[REGION_CHUNK];
};

/*
 * An opening of a device, and the objects on it. A context may die although the device still exists (a
 * firmware reset, a driver bound again). The context is then abandoned, closed when the last reference is
 * released, and the device is re-opened: reopen.c.
 */
struct rdma_context {
	struct rdma_device *dev;
	unsigned nr; /* number of the context: 1 for the first context of the device, and so on */
	/* number of references to this context, under dev->lock: one of the device while dev->cur is this
	 * context, one of each completion queue and endpoint, and one of each address handle being made */
	int refs;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	const struct conf_rdma *conf;
	struct ibv_device_attr attr;
	const struct rdma_ep_ops *transport[RDMA_TRANSPORTS_MAX];
	int transport_nr;
	/* reason why the device lacks the transports that are not in transport[]; "": it has all of them */
	char why[WHY_BYTES];
	/* keys of regions, owned by region.c and freed with the context; NULL: none of these slots was
	 * used */
	struct region_keys *_Atomic keys[RDMA_REGIONS_MAX / REGION_CHUNK];
};

struct rdma_device {
	struct rdma *rd;
	int index; /* index of the device in rdma.dev[] */
	char name[64];
	__be64 guid; /* GUID, the identity of the device; its name may change */
	int numa_node;
	/* transports of every context of the device, determined when it is first opened */
	const struct rdma_ep_ops *transport[RDMA_TRANSPORTS_MAX];
	int transport_nr;
	struct ibv_device_attr attr; /* attributes of the latest context; under rd->table_lock */

	pthread_mutex_t lock; /* protects cur, old and references; the last lock in the lock order */
	/* cur: current context; old: abandoned context that is not closed yet. At most one of them is set. */
	struct rdma_context *cur, *old;
	unsigned opened;          /* sequence number of the latest context */
	_Atomic unsigned serving; /* sequence number of the context that rails may use; 0: none */
	_Atomic unsigned closed;  /* sequence number of the latest context that was closed */

	/* Lock of events against the destruction of objects. Fetching and acknowledging an event takes the
	 * write lock; destroying the object to which an event may refer takes the read lock. If the device is
	 * gone, the library treats a destroy call as done, and does not wait for acknowledgements. */
	pthread_rwlock_t event_lock;

	bool fatal; /* true: the device is fatal; under rd->state_lock */

	/* descriptor of async events; -1: none, or the device is dead. async_fd, fatal_ns and again_ns are
	 * owned by the async helper. */
	int async_fd;
	uint64_t fatal_ns, again_ns;
	/* job that closes and re-opens the device, on the recovery helper of its first rail */
	struct rdma_job job;
	_Atomic int job_state; /* state of the job, an enum reopen_state */
};

struct rdma_rail {
	struct rdma *rd;
	struct rdma_device *dev;
	uint8_t port;
	bool is_ethernet;
	/* number of GIDs in only[], which the configuration names; the rail uses only these GIDs; 0: it uses
	 * all of its GIDs */
	int only_nr;
	uint8_t only[CONF_DEVICES_MAX][16];
	int ip_nr;
	uint8_t ip[RAIL_IPS_MAX][16];

	/* data of the rail for the choice of routes; protected by rd->table_lock */
	struct rail_view view;
	struct ibv_port_attr port_attr;
	uint16_t pkey;
	/* traffic class of packets: rdma.traffic_class, or the driver's class of the port */
	_Atomic int class;
	bool is_read; /* true: the port was read at least once */

	/* state of the rail; written under rd->state_lock */
	_Atomic int state;
	_Atomic unsigned generation;
	/* written under table_lock. link: number of changes of MTU, P_Key and traffic class; path: of those and of the
	 * first GID, the source of DC initiators; addresses: number of changes of GIDs and LID */
	_Atomic unsigned path, link, addresses;
	_Atomic bool suspect;
	/* time of the last read of the port that rdma_rail_suspect() caused; owned by the async helper */
	uint64_t suspect_ns;
	bool port_up, broken;
	bool was_up;          /* true: the rail was up at least once */
	_Atomic bool refused; /* true: a line about refused initiators was logged */
	int stuck;

	struct rdma_rail_stats stats;
	struct ah_cache ahs;

	struct {
		pthread_mutex_t lock;
		pthread_cond_t more;
		struct list jobs;
		pthread_t thread;
		bool started, stop;
	} recovery;
};

/* A registered region; see region.c. */
struct rdma_region {
	struct iovec iov;
	enum { REGION_FREE, REGION_LIVE, REGION_GOING, REGION_SPENT } state;
	uint32_t count; /* number of regions that have used the slot so far, this one included */
	int next;       /* in the state FREE: index of the next free slot; -1: none */
	/* in the state GOING: for each device, the context that must be closed before the slot is free */
	unsigned until[RDMA_RAILS_MAX];
};

/* Largest number of unused devices that struct rdma_look can remember. */
#define UNUSED_MAX 64
#define WHY_MISSING_BYTES 320
struct rdma_look {
	pthread_t thread;
	bool started;
	/* sel, found, unused and said_none are owned by the thread that searches for devices */
	struct selector sel[CONF_DEVICES_MAX]; /* devices of the setting rdma.devices */
	bool found[CONF_DEVICES_MAX];
	struct unused {
		__be64 guid;
		char name[64];
		bool opened; /* true: the device is open, and serves no known family of tokens */
	} unused[UNUSED_MAX];
	int unused_nr;
	bool said_none; /* true: a line that there is no device was logged */

	pthread_mutex_t lock;
	pthread_cond_t more;
	bool asked, stop;
	char missing[WHY_MISSING_BYTES]; /* description of missing devices; "": none is missing */
};

struct rdma {
	/* copy of the configuration, which a reload may replace; strings in it are used only by
	 * rdma_open() */
	struct conf_rdma conf;
	/* devices; the array only grows, so a thread that has read dev_nr may read that many entries */
	struct rdma_device *dev[RDMA_RAILS_MAX];
	_Atomic int dev_nr;
	struct rdma_rail *rail[RDMA_RAILS_MAX];
	_Atomic int rail_nr;
	struct rdma_look look;
	/* protects views and trust, which are read for each request and written on port and GID events */
	pthread_rwlock_t table_lock;
	struct rdma_trust trust;
	/* Lock held during the registration of regions: with all devices by rdma_region_add(), or with a
	 * re-opened device. Taken before dev->lock and state_lock. */
	pthread_mutex_t region_lock;
	struct rdma_region *region; /* regions: region_nr entries, with room for region_cap */
	int region_nr, region_cap;
	int region_free; /* index of the first free slot; -1: none */
	/* protects rail states and watches; no other lock of rdma/ is taken under it */
	pthread_mutex_t state_lock;
	struct list watches;
	_Atomic uint64_t say_ns; /* earliest time of the next log line of rdma_say_not_allowed() */
	struct ah_helpers helpers;
	struct cm_oracle *oracle;
	struct rc_table *rcs; /* connections of the RC transport; NULL: the transport is off */
	struct {
		pthread_t thread;
		int stop_fd, wake_fd;
		bool started;
		_Atomic bool read_now; /* true: every port is read now instead of at the end of the minute */
		uint64_t read_ns;      /* time at which the ports were last read */
	} async;
};

static inline int
min_int(int a, int b)
{
	return a < b ? a : b;
}

/* Returns the configured limit of outstanding READs per endpoint. */
static inline int
reads_wanted(const struct conf_rdma *conf)
{
	return conf->max_rd_atomic > 0 ? conf->max_rd_atomic : RDMA_MAX_READS;
}

/* Returns the largest number of pieces in a work request: the configured number, but at most the limit
 * `allowed` of the device (0: unknown). */
static inline int
sge_max(const struct rdma *rd, int allowed)
{
	int sge = min_int(rd->conf.max_sge, RDMA_SGE_MAX);

	if (allowed > 0)
		sge = min_int(sge, allowed);
	return sge < 1 ? 1 : sge;
}

/* Finds the local key of a region on a context. Returns 0, or -ESTALE if the region was removed. */
static inline int
region_key(const struct rdma_context *c, uint64_t region, uint32_t *ret_lkey)
{
	uint32_t slot = (uint32_t)region;
	const struct region_keys *keys;
	uint64_t key;

	if (slot >= RDMA_REGIONS_MAX)
		return -ESTALE;
	keys = atomic_load_explicit(&c->keys[slot / REGION_CHUNK], memory_order_acquire);
	key = keys ? atomic_load_explicit(&keys->key[slot % REGION_CHUNK], memory_order_acquire) : 0;
	if (key >> 32 != region >> 32 || key == 0)
		return -ESTALE;
	*ret_lkey = (uint32_t)key;
	return 0;
}

/* Returns the rail's transport for a family of tokens; NULL: none. */
static inline const struct rdma_ep_ops *
rail_transport_for(const struct rdma_rail *rail, enum token_kind kind)
{
	for (int i = 0; i < rail->dev->transport_nr; i++) {
		if (rdma_ep_serves(rail->dev->transport[i], kind))
			return rail->dev->transport[i];
	}
	return NULL;
}

/* Returns true if one of these transports serves at least one family of tokens. */
static inline bool
transports_serve(const struct rdma_ep_ops *const *transport, int nr)
{
	unsigned families = 0;

	for (int i = 0; i < nr; i++)
		families |= transport[i]->families;
	return families != 0;
}

/* Returns true if one of the device's transports serves at least one family of tokens. */
static inline bool
device_serves(const struct rdma_device *dev)
{
	return transports_serve(dev->transport, dev->transport_nr);
}

/* ---- transport.c ---- */

/* Determines which transports a newly opened context supports. */
void context_probe(struct rdma_context *c);
extern const struct rdma_ep_ops rdma_dc; /* functions of the DC transport, defined in dc.c */
extern const struct rdma_ep_ops rdma_rc; /* functions of the RC transport, defined in rc.c */

/* ---- context.c: references. Any thread may call these functions. ---- */

/* Returns a new reference to the device's current context; NULL: the device has no context. */
struct rdma_context *context_get(struct rdma_device *dev);
/* Takes another reference to a context. */
void context_hold(struct rdma_context *c);
void context_put(struct rdma_context *c);
bool context_is_given_up(const struct rdma_context *c);

/* ---- rail.c ---- */

/* Chooses the rail and the address handle by the address in a token, for rdma_route(). */
int route_by_address(struct rdma *rd, const struct token *tok, const struct rdma_asker *asker,
		     struct rail_route *ret_route);
/* Reads the values of a rail again although no change was reported, and drops its address handles only if the
 * values changed. */
void rail_reread(struct rdma_rail *rail);
/* Returns the number of paths through the fabric that the rail uses to each client. */
int rail_paths(const struct rdma_rail *rail);
/* Returns the number of READs that an endpoint of the rail may have outstanding. */
int rail_reads_max(const struct rdma_rail *rail);
/* Reads a port (0: all ports) and the GID tables of a device again, and drops its address handles. */
void device_refresh(struct rdma_device *dev, int port);
void device_set_fatal(struct rdma_device *dev, bool fatal);
/* Returns true if one of the device's rails has abandoned a completion queue, so that the device needs a new
 * context. */
bool device_is_broken(struct rdma_device *dev);
/* Asks for the re-opening of a device, because it did not answer when a region was registered or removed. The
 * device is re-opened even if it works again. */
void device_lost_region(struct rdma_device *dev);
/* Takes over the attributes of the context c, which serves from now on, into its device; marks the rails of
 * the device as not broken, and counts the re-opening. */
void device_renew(struct rdma_device *dev, const struct rdma_context *c);
struct rdma_rail *device_first_rail(const struct rdma_device *dev);
/* Notifies the watches, although no state has changed. */
void watches_notify(struct rdma *rd);

/* ---- ahattr.c ---- */

struct ah_params rail_ah_params(const struct rdma_rail *rail);

/* ---- open.c ---- */

/* Searches for devices, and makes the rails of new ones. Returns 0, or -errno without a change. */
int rdma_look_once(struct rdma *rd);

/* ---- look.c ---- */

void look_init(struct rdma *rd);
int look_start(struct rdma *rd);
void look_stop(struct rdma *rd);
/* Stores the description of missing devices; "": none is missing. */
void look_missing(struct rdma *rd, const char *what);

/* ---- async.c ---- */

/* Makes the descriptor by which the async helper is woken. Returns 0 or -errno. */
int async_init(struct rdma *rd);
int async_start(struct rdma *rd);
void async_stop(struct rdma *rd);
/* Closes the descriptor of async_init(), after the last helper that may use it has ended. */
void async_fini(struct rdma *rd);

/* ---- rail_gids.c ---- */

/* Reads port, P_Key and GID table of a rail again. Returns false if the device does not answer. *ret_changed:
 * true: the values have changed; ret_changed may be NULL. */
bool rail_refresh(struct rdma_rail *rail, bool *ret_changed);
/* Returns true if one of the rails serves at least one family of tokens. */
bool any_rail_serves(const struct rdma *rd);
void trust_refresh(struct rdma *rd);
int mtu_bytes(enum ibv_mtu mtu);
enum ibv_mtu mtu_enum(int bytes);
/* Returns the traffic class of packets from a port: rdma.traffic_class, or the driver's setting. */
int port_class(const struct conf_rdma *conf, const char *device, int port);
/* Reads the whole GID table of a context. Returns the number of entries, or -errno. The caller frees the
 * entries. */
ssize_t context_gids(const struct rdma_context *c, struct ibv_gid_entry **ret_entries);

/* ---- device.c: what a device can do; also for --list-devices ---- */

/* Opens a device and determines its capabilities. The new context has no device and no number yet. Returns 0,
 * or -errno with the reason in *ret_why. */
int context_open(const struct conf_rdma *conf, struct ibv_device *ibdev, struct rdma_context **ret_c,
		 const char **ret_why);
/* Closes a context. Its objects were destroyed before, or can be destroyed only by the close. Returns 0: the
 * hardware does no more work for the context; or -errno. */
int context_close(struct rdma_context *c);
int device_open(struct rdma *rd, struct ibv_device *ibdev, struct rdma_device **ret_dev,
		const char **ret_why);
void device_free(struct rdma_device *dev);
int device_read_numa_node(const char *name);

/* ---- ordering.c ---- */

/* Returns true if the device may write payload buffers in any order (relaxed ordering). */
bool relaxed_ordering(const struct conf_rdma *conf);

/* ---- region.c ---- */

/* Registers all existing regions with a new context. The caller holds rd->region_lock. Returns 0 or
 * -errno. */
int regions_register(struct rdma *rd, struct rdma_context *c);
/* Deregisters all regions of a context that has no references. */
void regions_deregister(struct rdma_context *c);
/* Frees the keys of regions of a closed context. */
void regions_free(struct rdma_context *c);

/* ---- reopen.c: contexts that die ---- */

enum reopen_state { REOPEN_IDLE, REOPEN_OUT, REOPEN_DONE };

/* Handles a device that is fatal: the device serves again, is abandoned, or is re-opened. Returns the time in
 * ms until the next step; -1: the device is healthy. Runs on the async helper. */
int device_tend(struct rdma_device *dev);

/* ---- recovery.c ---- */

int recovery_start(struct rdma_rail *rail);
void recovery_stop(struct rdma_rail *rail);

/* ---- thread.c ---- */

/* Starts a helper thread with all signals blocked. Returns 0, or the -errno of pthread_create(). */
int thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *), void *arg);
int fd_nonblock(int fd);
/* Makes the async helper check every device that is not healthy. Any thread may call this function. */
void async_wake(struct rdma *rd);

#endif
