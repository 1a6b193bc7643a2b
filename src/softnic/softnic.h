/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of the software mlx5 device. Programs use only <infiniband/verbs.h> and
 * <infiniband/mlx5dv.h>.
 *
 * Locks, in the order in which a thread takes them; "leaf": the thread takes no further lock:
 *
 *     qp->post_lock -> qp->lock -> cq->lock -> channel->lock
 *                      qp->lock -> ctx->lock (leaf), async.lock (leaf)
 *
 * The application's thread holds qp->post_lock from wr_start to wr_complete, and cq->poll_lock from
 * start_poll to end_poll; the threads of softnic never take cq->poll_lock. No lock is held during a copy:
 * qp->busy is true while a copy runs.
 */
#ifndef SOFTNIC_SOFTNIC_H
#define SOFTNIC_SOFTNIC_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <infiniband/verbs.h>
#include <infiniband/mlx5dv.h>
#include "softnic/fabric.h"
#include "softnic/recv.h"

#define SN_EXPORT __attribute__((visibility("default")))

/* Ends the process if x is false, which is an error of softnic itself; also in release builds. */
#define sn_check(x) ((x) ? (void)0 : sn_check_failed(#x, __FILE__, __LINE__))
_Noreturn void sn_check_failed(const char *what, const char *file, int line);

enum {
	SN_MAX_SGE = 30,
	SN_MAX_WR = 32768,
	SN_MAX_INLINE = 1024,
	SN_MAX_CQE = 4194303,
	SN_MAX_RD_ATOM = 16,
	SN_STEP_BYTES =
		/* largest number of bytes of one process_vm_* call, and of one step of a work request */
	1 << 20,
};
#define SN_MAX_MSG 0x40000000u

/* Values of the vendor syndrome in completions: those of a real adapter, as far as known; values above 0xf0
 * are softnic's own. */
enum sn_vendor {
	SN_VE_RETRY = 0x81,
	SN_VE_REM_ACCESS = 0x88,
	SN_VE_REM_OP = 0x89,
	SN_VE_RNR = 0x87,
	SN_VE_REM_INV = 0x8a,
	SN_VE_DC_KEY = 0x8c,
	SN_VE_LOC_PROT = 0x51,
	SN_VE_LOC_LEN = 0x52,
	SN_VE_LOC_OP = 0x68,
	SN_VE_FLUSH = 0xf9,
	SN_VE_NO_PERM = 0xfe,
};

/* ---- settings and the process: common.c, attach.c, slot.c ---- */

enum sn_pin { SN_PIN_COUNT = 1, SN_PIN_FRAMES = 2 };

struct sn_conf {
	unsigned devices_nr;
	bool run_inline; /* SOFTNIC_EXEC=inline: work requests are executed on the caller's thread */
	/* time in ns after which a thread that polls executes waiting work itself (poll assist); < 0:
	 * never */
	int64_t assist_ns;
	/* time in ns after which retries end; < 0: it follows from timeout and retry_cnt of the queue pair */
	int64_t retry_ns;
	int dckey_status; /* status of a completion after a wrong DC key, an enum ibv_wc_status */
	bool no_dc;       /* true: the devices are not of the mlx5 driver, and have no DC */
	int dc_rd_atomic; /* largest number of RDMA reads of an initiator in flight */
	bool peer_mem;    /* SOFTNIC_PEER_MEM: memory that the CPU cannot reach can be registered */
	bool no_dmabuf;   /* SOFTNIC_DMABUF=0: dma-bufs are not supported */
	bool cuda;        /* SOFTNIC_CUDA: memory that only the CUDA driver reaches can be registered */
	bool debug;
	unsigned pin; /* SOFTNIC_PIN: enum sn_pin */
	/* true: hazard words are not used, so that the stress test can show that they are needed */
	bool no_hazard;
};
extern struct sn_conf sn_conf;
void sn_conf_read(void); /* Reads the settings from the environment. */

/* This process in the fabric; fab is NULL until the program has asked for a list of devices. */
struct sn_self {
	struct fabric *fab;
	struct fab_proc *proc;
	uint32_t index;
	uint32_t forks; /* number of forks between this process and the first one */
	int fd;
};
extern struct sn_self sn_self;

void sn_slots_forget(void); /* Forgets the executors and the other processes in a forked child. */
int sn_attach(void); /* Maps the fabric and claims a slot for the process, once. Returns 0 or -errno. */
void sn_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sn_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
uint64_t sn_now_ns(void);
void sn_sleep_ns(uint64_t ns);
#define SN_NAP_NS 2000000u
uint32_t sn_pow2(uint32_t n); /* Returns the smallest power of two that is not below n. */

/* Claims a slot for a queue pair, and returns it with its number in *ret_qpn; NULL: the table is full. */
struct fab_qp *sn_qp_claim(uint32_t *ret_qpn);
struct fab_mr *sn_mr_claim(uint32_t *ret_key);
/* Unpublishes a slot: clears its number, waits until no live process can use the slot, and frees it. */
void sn_qp_release(struct fab_qp *q, uint32_t qpn);
void sn_mr_release(struct fab_mr *m, uint32_t key);

/* Begins a step of a work request on this thread, which thereby becomes an executor with a pair of hazard
 * words of its own. Returns the number x of the executor, for sn_exec_leave(x), which ends the step. */
int sn_exec_enter(void);
void sn_exec_leave(int x);
/* Finds a queue pair by its number; its slot is not freed before sn_exec_leave(). Returns NULL if there is no
 * such queue pair. */
struct fab_qp *sn_exec_find_qp(int x, uint32_t qpn);
/* Finds a memory region by its rkey; its slot is not freed before sn_exec_leave(). Returns NULL if there is
 * no such region. */
struct fab_mr *sn_exec_find_mr(int x, uint32_t rkey);
/* Finds a memory region of this process by its lkey; its slot is not freed before sn_exec_leave(). Returns
 * NULL if there is no such region. */
struct fab_mr *sn_find_own_mr(uint32_t lkey);
/* Waits until every step that has begun before this call has ended (sn_exec_leave()). */
void sn_exec_quiesce(void);
/* Returns true if the process with this index is alive. exact: false: the answer may be up to 1 ms old. */
bool sn_peer_alive(uint32_t index, uint64_t now_ns, bool exact);
/* Waits until no live process executes a step to this queue pair. */
void sn_qp_quiesce(uint32_t qpn);

/* ---- device and context ---- */

struct sn_dev {
	struct ibv_device dev; /* first member, because programs hold a pointer to it */
	uint32_t index;
	__be64 guid;
};

/* A file descriptor that is readable exactly while a queue is not empty; for completion channels and
 * asynchronous events. */
struct sn_flag {
	int fd;
	bool set;
};
int sn_flag_init(struct sn_flag *fl);
void sn_flag_fini(struct sn_flag *fl);
void sn_flag_set(struct sn_flag *fl, bool on); /* Sets or clears the flag, under the lock of its queue. */
int sn_flag_wait(const struct sn_flag *fl,
		 /* Waits until the flag is set; fd: its descriptor. Returns 0, or -1 with errno (EAGAIN if fd
		  * is non-blocking). */
		 int fd);

struct sn_chan;

struct sn_event {
	struct sn_event *next;
	struct ibv_async_event ev;
};

struct sn_async {
	pthread_mutex_t lock;
	struct sn_flag flag;
	struct sn_event *first, **last;
	uint32_t port_changes; /* value of fab_port.changes already reported to the application */
	uint32_t losses;       /* value of fab_port.losses already reported to the application */
	uint32_t news[FAB_NEWS_NR];
};

struct sn_qp;
struct sn_left;

struct sn_ctx {
	struct verbs_context v; /* context of verbs; it ends with the ibv_context that programs hold */
	struct sn_dev *dev;
	/* value of sn_self.forks when the context was opened; another value: this process is a child, with a
	 * copy of its parent's context */
	uint32_t forks;
	struct sn_ctx *next; /* link in the list of open contexts, for the watcher */
	struct sn_async async;
	uint32_t resets;    /* value of sn_resets() for this device when the context was opened */
	bool dead_reported; /* true: the watcher has reported the loss of the device to the application */
	/* objects that exist although the application has called destroy for them, because their device was
	 * reset (dead.c); protected by lock */
	struct sn_left *left;
	_Atomic uint32_t pd_next;
	/* Fields of the engine (engine.c, sched.c), protected by lock; runq_nr may be read without it. */
	pthread_mutex_t lock;
	pthread_cond_t wake;  /* condition for which the thread of the engine waits */
	pthread_cond_t unpin; /* condition for which the destruction of a queue pair waits */
	pthread_t thread;
	bool thread_on, idle, stop;
	struct sn_qp *qps; /* all queue pairs of the context */
	struct sn_qp *run_first, *run_last;
	_Atomic uint32_t runq_nr;
	struct sn_qp **heap; /* heap of the queue pairs that wait until park_until_ns, the earliest first */
	uint32_t heap_nr, heap_max;
};

static inline struct sn_ctx *
sn_ctx(struct ibv_context *c)
{
	return (struct sn_ctx *)((char *)c - offsetof(struct sn_ctx, v.context));
}

/* Returns true if this process is a child with a copy of its parent's context. The child may free its copies
 * of objects, as exit handlers do, but the objects in the fabric still belong to the parent. */
static inline bool
sn_inherited(struct ibv_context *c)
{
	return sn_ctx(c)->forks != sn_self.forks;
}

static inline struct fab_port *
sn_port_of(const struct sn_dev *dev)
{
	return &sn_self.fab->port[dev->index];
}

static inline struct fab_port *
sn_port(const struct sn_ctx *ctx)
{
	return sn_port_of(ctx->dev);
}

struct sn_pd {
	struct ibv_pd pd;
	_Atomic uint32_t uses;
	/* for a parent domain: the protection domain from which it was made; otherwise NULL */
	struct sn_pd *of;
};

/* The destination in an address handle, or in the address vector of a queue pair. */
struct sn_dest {
	uint8_t dgid[16];
	uint16_t dlid;
	bool is_global;
	uint32_t marks; /* marks of the packets, from FAB_MARKS() */
	uint32_t flow_label;
};

struct sn_ah {
	struct ibv_ah ah;
	struct sn_dest to;
};

/* ---- reach.c: reachability between ports ---- */

/* Returns true if the entry `index` of the port's GID table has an address. */
bool sn_has_row(const struct fab_port *port, uint32_t index);

struct sn_dest sn_dest_of(const struct ibv_ah_attr *a);
/* Returns true if an address vector is valid for the port; checks the members that the kernel checks. */
bool sn_good_av(const struct sn_ctx *ctx, const struct ibv_ah_attr *a);
/* Looks up the neighbour for a destination, as the kernel does when an address handle is made. Returns 0;
 * ENETUNREACH: there is no route; or, after fabric.absent_ns, ETIMEDOUT: the neighbour does not answer. */
int sn_resolve(const struct sn_ctx *ctx, const struct sn_dest *to);
/* Looks up a neighbour without waiting for the answer. Returns 0; ENETUNREACH: there is no route; ETIMEDOUT: no port has the
 * address, which the kernel would know after *ret_wait_ns. */
int sn_look_up(const struct sn_ctx *ctx, const uint8_t gid[16], uint64_t *ret_wait_ns);
/* Returns true if packets from the port `from` to the destination `to` reach `port`. */
bool sn_delivers(const struct fab_port *from, uint32_t from_dev, const struct fab_port *port,
		 const struct sn_dest *to);
/* Returns the index of the interface that has the address gid; 0: none. */
uint32_t sn_ifindex(const struct fab_port *port, const uint8_t gid[16]);

/*
 * Returns the reset counter and flags of a device. A context opened before the last reset does not work
 * again (dead.c).
 */
uint32_t sn_resets(const struct sn_dev *dev); /* reset counter and flags, see enum fab_reset */
bool sn_dead(const struct sn_ctx *ctx);
bool sn_dead_how(const struct sn_ctx *ctx, enum fab_reset how);
/* Kinds of objects, in the order of their destruction when the context is closed. */
enum sn_kind { SN_QP, SN_SRQ, SN_CQ, SN_CHAN, SN_AH, SN_MR, SN_PD, SN_KIND_NR };
/* An object in the list sn_ctx.left. */
struct sn_left {
	struct sn_left *next;
	enum sn_kind kind;
	void *object;
};
/* Decides about a call that destroys an object. Returns -1: the caller destroys the object; any other value
 * is the result of the call, and the object stays until its context is closed. */
int sn_left_keep(struct ibv_context *context, enum sn_kind kind, void *object);
/* Destroys the remaining objects when the context is closed (left.c). */
void sn_left_destroy(struct sn_ctx *ctx);
void sn_qp_destroy(struct ibv_qp *qp);
/* Destroys a shared receive queue (sn_srq_destroy()), a completion queue (sn_cq_destroy()) or a protection
 * domain (sn_pd_destroy()). Returns 0; EBUSY: another object uses it. */
int sn_srq_destroy(struct ibv_srq *srq);
int sn_cq_destroy(struct ibv_cq *cq);
int sn_pd_destroy(struct ibv_pd *pd);
void sn_pd_ops(struct sn_ctx *ctx);
void sn_chan_destroy(struct sn_chan *ch);
void sn_mr_destroy(struct ibv_mr *mr);

/* Touches every page of the memory, so that it is present. Returns true if every byte is readable and, with
 * write true, writable. */
bool sn_fault_in(const void *addr, size_t len, bool write);

/* Pins (sn_pin()) or unpins (sn_unpin()) the memory of a region, if SOFTNIC_PIN requires this (pin.c).
 * sn_pin() is called before the region is published, and returns 0 or an errno value. *ret_kept: a descriptor
 * that sn_unpin() closes; -1: none. */
int sn_pin(const struct fab_mr *m, uint32_t key, int *ret_kept);
void sn_unpin(const struct fab_mr *m, uint32_t key, int kept);
/* Returns true if the pages of [addr, addr + len) of a region are still those that were registered. Otherwise
 * kills the process `pid`, which has replaced the pages. */
bool sn_pin_check(uint32_t pid, const struct fab_mr *m, uint32_t key, uint64_t addr, uint64_t len);

struct sn_mr {
	struct ibv_mr mr;
	struct fab_mr *slot;
	/* mapping of a dma-buf or of another driver's memory; NULL: the memory is the program's own */
	void *map;
	size_t map_len;
	int kept; /* of sn_pin() */
};

void sn_ctx_ops(struct sn_ctx *ctx); /* Fills the tables of functions that inline functions of verbs call. */
int sn_fill_port(struct sn_ctx *ctx, uint8_t port, struct ibv_port_attr *ret_attr);

/* ---- completion queues: cq.c, cqe.c, event.c ---- */

struct sn_cqe {
	uint64_t wr_id;
	uint64_t ts_ns;
	struct sn_qp *qp;
	/* index in the send queue: the entries before it become free when the completion is polled */
	uint32_t sq_upto;
	uint32_t qpn;
	uint32_t vendor;
	uint32_t byte_len;
	uint8_t status;
	uint8_t opcode;
	bool is_recv;
	uint8_t flags; /* flags of the completion, enum ibv_wc_flags */
	__be32 imm;
	bool solicited;
};

struct sn_chan {
	struct ibv_comp_channel chan; /* completion channel; chan.fd is flag.fd */
	pthread_mutex_t lock;
	struct sn_flag flag;
	/* completion queues with an event that the program has not fetched yet */
	struct sn_cq *first, **last;
};

struct sn_cq {
	struct ibv_cq_ex ex; /* completion queue of verbs; it begins like ibv_cq */
	struct sn_ctx *ctx;
	pthread_mutex_t poll_lock;
	bool single_threaded;
	struct sn_cqe cur; /* current completion between start_poll and end_poll */
	pthread_mutex_t lock;
	struct sn_cqe *ring;
	uint32_t mask;
	_Atomic uint32_t head, tail; /* producers increment head */
	/* 0: not armed; 1: armed for any completion; 2: for errors and solicited completions only */
	int armed;
	bool overrun;
	_Atomic uint32_t users; /* number of queue pairs and receive queues that use this completion queue */
	/* link in the list of the channel; protected by the channel's lock */
	struct sn_cq *ev_next;
	uint32_t ev_waiting, ev_got;
	/* number of asynchronous events that the program has fetched; protected by async.lock of the
	 * context */
	uint32_t async_got;
};

/* Adds a completion to the queue. Returns true; false: the queue is full, and the completion is lost. */
bool sn_cq_push(struct sn_cq *cq, const struct sn_cqe *e);
void sn_cq_purge(struct sn_cq *cq, const struct sn_qp *qp);
void sn_chan_notify(struct sn_chan *ch, struct sn_cq *cq);
void sn_chan_forget(struct sn_chan *ch, struct sn_cq *cq);
struct ibv_cq_ex *sn_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *a);
int sn_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int sn_req_notify(struct ibv_cq *cq, int solicited_only);

/* Initializes asynchronous events (event.c). */
int sn_async_init(struct sn_ctx *ctx);
void sn_async_fini(struct sn_ctx *ctx);
void sn_async_raise(struct sn_ctx *ctx, enum ibv_event_type type, void *element);
void sn_async_raise_port(struct sn_ctx *ctx, enum ibv_event_type type);
/* Removes the events of element that were not fetched yet. */
void sn_async_forget(struct sn_ctx *ctx, const void *element);

/* Starts the watcher of this process (watch.c), a thread that delivers port events. The id of this thread is
 * fab_proc.tid, with which process_vm_*() calls access the memory of the process. Returns 0 or an errno
 * value. */
int sn_watch_start(void);
void sn_watch_add(struct sn_ctx *ctx);
void sn_watch_remove(struct sn_ctx *ctx);

/* ---- queue pairs: qp.c, state.c, modify.c, wr.c, recv.c ---- */

struct sn_wqe {
	uint64_t wr_id;
	uint64_t raddr;
	uint64_t dc_key;
	uint64_t total; /* number of bytes of the work request */
	uint32_t rkey;
	uint32_t dctn; /* number of the target queue pair; for RC set when the work request is executed */
	struct sn_dest to;
	uint8_t opcode; /* opcode of the work request, an enum ibv_wr_opcode */
	bool signaled;
	bool is_inline;
	bool has_dc;
	bool solicited;
	uint32_t sge_nr;
	__be32 imm;
};

/* The fault rule that has hit the work request at sn_qp.next, and the progress of its effect (fault.c). */
struct sn_fault {
	uint32_t rule; /* number of the rule; 0: no rule hit */
	uint32_t chunk;
	uint8_t phase;
	bool killed;
	uint32_t target; /* index of the target's process, which the rule has killed */
	/* time until which the engine waits for the end of the target; 0: it does not wait */
	uint64_t kill_wait_ns;
	uint64_t seed;
	struct fab_act act;
	/* For each fault rule, its id and the number of operations of this queue pair that the rule has
	 * checked. */
	struct {
		uint32_t id;
		uint32_t nr;
	} asked[FAB_RULES];
};

struct trace_rec;
struct sn_trace_map;

struct sn_qp {
	struct ibv_qp_ex ex; /* queue pair of verbs; it begins with the ibv_qp that programs hold */
	struct mlx5dv_qp_ex dv;
	struct sn_ctx *ctx;
	enum fab_qp_type type;
	struct fab_qp *slot;
	/* number of the queue pair in the fabric; set also while ex.qp_base.qp_num of a DCT is still 0 */
	uint32_t qpn;
	bool has_ex;
	bool sig_all;
	struct ibv_qp_cap cap;
	uint64_t send_ops;

	/* Fields for building work requests, protected by post_lock. */
	pthread_mutex_t post_lock;
	uint32_t build_nr;
	int build_err;

	/* The send queue. Its entries [freed, head) are in use; those in [next, head) wait for their
	 * execution or are being executed. */
	pthread_mutex_t lock;
	pthread_cond_t quiet; /* signalled when busy becomes false */
	struct sn_wqe *sq;
	struct ibv_sge *sge;
	uint8_t *inl;
	uint32_t depth, mask;
	uint32_t head, next;
	_Atomic uint32_t freed;
	uint64_t off; /* number of finished bytes of the work request at `next` */
	struct sn_send send;
	bool busy, parked;
	/* true: bytes of an RDMA write that was posted before the change to ERR may still arrive */
	bool haunted;
	bool marked; /* true: sn_mark_begin() was called for the work request at `next` */
	/* time at which the retries of the work request at `next` end and it fails; 0: no packet of it was
	 * dropped yet */
	uint64_t give_up_ns;
	enum ibv_qp_state state;
	struct ibv_qp_attr attr;
	struct sn_rq rq;
	struct sn_rx *rx; /* receives that senders have taken and not ended yet */
	bool sqd_notify;

	/* Fields protected by ctx->lock. */
	struct sn_qp *all_next, **all_at;
	struct sn_qp *run_next;
	bool queued;
	uint64_t queued_ns;
	uint32_t pins;
	uint64_t park_until_ns;
	int32_t heap_at; /* index in the heap; -1: not in the heap */
	uint32_t async_got;

	/* Fields that only the executor uses while busy is true; otherwise protected by lock. */
	struct sn_fault fault;
	struct trace_rec *rec; /* trace record of the work request at `next` */
	struct sn_trace_map *rec_map;
};

static inline struct sn_qp *
sn_qp(struct ibv_qp *qp)
{
	return (struct sn_qp *)qp;
}

SN_EXPORT struct ibv_qp *softnic_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *a,
					   struct mlx5dv_qp_init_attr *m);
SN_EXPORT struct mlx5dv_qp_ex *softnic_qp_dv(struct ibv_qp_ex *qp);
SN_EXPORT bool softnic_is_mlx5(struct ibv_device *device);
struct ibv_qp *sn_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *a);

/* Puts a queue pair into the error state, under qp->lock (state.c). sn_qp_run() flushes queued work, and work that is posted later. */
void sn_qp_to_err(struct sn_qp *qp);
/* Puts a queue pair into RESET, under qp->lock. Queued work and completions that the application has not polled disappear, and no
 * byte is moved after this. */
void sn_qp_reset(struct sn_qp *qp);
void sn_qp_set_state(struct sn_qp *qp, enum ibv_qp_state s); /* Sets the state alone, under qp->lock. */
void sn_wr_ops(struct sn_qp *qp); /* Fills the functions that build work requests (wr.c). */
int sn_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/* ---- steps of work requests: exec.c, fault.c, trace.c ---- */

/* Results of a step. WAIT: the next step follows the receiver's answer; RNR: it follows an RNR NAK. */
enum sn_step { SN_STEP_MORE, SN_STEP_DONE, SN_STEP_DROP, SN_STEP_FAIL, SN_STEP_WAIT, SN_STEP_RNR };

struct sn_outcome {
	/* status of the work request, an enum ibv_wc_status; for DROP the status after all retries */
	uint8_t status;
	uint8_t vendor;
	uint32_t moved;   /* number of bytes moved, for MORE and DONE */
	uint32_t landed;  /* number of bytes that were copied to the target, also by a step that failed */
	uint64_t now_ns;  /* time at which the copy ended; 0: no bytes were copied */
	uint64_t wait_ns; /* earliest time of the next step after MORE, WAIT, RNR; 0: immediately */
};

/* Executes one step, at most SN_STEP_BYTES, of the work request at qp->next.  Called with qp->busy set and
 * no lock held. */
enum sn_step sn_exec_step(struct sn_qp *qp, const struct sn_wqe *w, struct sn_outcome *ret_out);
/* Executes a step for the bytes [at, at + len) of a work request. flip_at: offset of a byte that arrives
 * inverted; SN_NO_FLIP: none. Returns SN_STEP_DONE when these bytes have arrived. */
#define SN_NO_FLIP UINT64_MAX
enum sn_step sn_exec_piece(struct sn_qp *qp, const struct sn_wqe *w, uint64_t at, uint64_t len,
			   uint64_t flip_at, struct sn_outcome *ret_out);

/* Lets bytes of an RDMA write that is being flushed arrive later, like packets that are still in the network.
 * The caller holds qp->lock. */
void sn_exec_ghost(const struct sn_qp *qp, const struct sn_wqe *w);

/*
 * Returns the bits of enum fab_active, which say whether the fabric has fault rules (fault.c) or a trace
 * (trace.c). If the fabric has rules or a trace when the first step of a work request begins, the work
 * request is marked (sn_mark_begin()): its steps use sn_marked_step() until it is finished or reset.
 */
static inline uint32_t
sn_active(void)
{
	return atomic_load_explicit(&sn_self.fab->active, memory_order_relaxed);
}
void sn_mark_begin(struct sn_qp *qp, const struct sn_wqe *w, bool ask_rules);
enum sn_step sn_marked_step(struct sn_qp *qp, const struct sn_wqe *w, struct sn_outcome *ret_out);
/* Ends a marked work request. The caller holds qp->lock, and is the executor unless busy is false. Returns
 * the number of completions to deliver. */
unsigned sn_mark_end(struct sn_qp *qp, uint8_t status, uint8_t vendor);
/* Ends a marked work request because its queue pair was reset or destroyed. */
void sn_mark_drop(struct sn_qp *qp);
/* Returns the errno value of a call of verbs that a fault rule refuses (rule.c), or that fails because the device is
 * lost; 0: the call continues. */
int sn_refused(struct ibv_context *context, enum fab_op op, uint64_t len);
/* Returns the errno value of a call of verbs that a fault rule refuses; 0: no rule does. The caller checks
 * for a lost device itself. */
int sn_refused_by_rule(struct ibv_context *context, enum fab_op op, uint64_t len);
bool sn_lost(const struct sn_ctx *ctx);

enum { TRACE_STATUS_RESET = 0xff };
void sn_trace_begin(struct sn_qp *qp, const struct sn_wqe *w);
void sn_trace_copying(struct sn_qp *qp);
void sn_trace_copied(struct sn_qp *qp, const struct sn_outcome *out);
void sn_trace_end(struct sn_qp *qp, uint8_t status, uint8_t vendor);
void sn_trace_forget(void); /* Forgets the trace in a forked child. */

#endif
