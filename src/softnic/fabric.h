/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fabric: one sparse file that every process that uses the software NIC maps. It stands for the wires,
 * the switch, and the state of each adapter that other adapters need: processes, queue pairs, memory regions,
 * ports.
 *
 * fabric.c has the functions of the fabric. softnicctl maps the file, too. The file contains no pointers, and
 * processes need no lock: a slot is claimed by a compare-and-swap of its owner, published by storing its key,
 * and unpublished by clearing the key. A user of a slot first stores the key as a hazard word of its process,
 * and then checks the slot again. The owner unpublishes a slot, and waits until no live process has its key
 * as a hazard word. So after a crash of a process the others continue without a clean-up.
 */
#ifndef SOFTNIC_FABRIC_H
#define SOFTNIC_FABRIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAB_MAGIC 0x3143494e54464f53ull /* magic number of the file: "SOFTNIC1" */
#define FAB_VERSION 8u

enum {
	FAB_PROCS = 256,
	FAB_DEVS = 16,
	FAB_GIDS = 1024,
	FAB_QPS = 1 << 16,
	FAB_MRS = 1 << 16,
	/* number of pairs of hazard words of a process: at most so many threads of the process execute work
	 * requests at a time */
	FAB_HZ = 64,
	FAB_RULES = 16,
	FAB_ROUTES = 64,
	FAB_VECTORS = 8, /* number of completion vectors of a device */
	/* number of jobs of a process: at most so many transfers from and to its device memory run at a
	 * time */
	FAB_JOBS = 16,
	FAB_STAGE_BYTES = 1 << 20,
	FAB_INBOX = 64, /* number of queue pairs with which a process can have unread messages at a time */
	/* lowest number of a queue pair, because a real adapter reserves the small numbers */
	FAB_QP_FIRST = 64,
	FAB_MR_FIRST = 1,
};

enum fab_proc_state { FAB_PROC_FREE, FAB_PROC_LIVE, FAB_PROC_DEAD };
enum fab_qp_type { FAB_QP_RC = 1, FAB_QP_DCI, FAB_QP_DCT };
/* Type of an entry of the GID table. NONE: this entry and all later ones were never used; GONE: the address
 * of the entry was removed. */
enum fab_gid_type { FAB_GID_NONE, FAB_GID_V1, FAB_GID_V2, FAB_GID_IB, FAB_GID_GONE };
/*
 * Notifications for the owner of a queue pair, as bits. FATAL is set by `softnicctl qp N fatal`, and the others by an
 * initiator whose packet has arrived: ACCESS and REQUEST after a violation, which breaks an RC queue pair; COMM if the
 * queue pair is still in RTR. TOLD: the owner has raised the event for COMM.
 */
enum fab_poke {
	FAB_POKE_FATAL = 1,
	FAB_POKE_ACCESS = 2,
	FAB_POKE_REQUEST = 4,
	FAB_POKE_COMM = 8,
	FAB_POKE_TOLD = 16,
	FAB_POKE_BROKEN = FAB_POKE_ACCESS | FAB_POKE_REQUEST,
	FAB_POKE_EVENTS = FAB_POKE_FATAL | FAB_POKE_BROKEN | FAB_POKE_COMM,
};
enum fab_hz { FAB_HZ_QP, FAB_HZ_MR, FAB_HZ_NR };

struct fab_gid {
	uint8_t raw[16];
	uint32_t type;   /* type of the entry, an enum fab_gid_type */
	uint32_t prefix; /* length of the subnet's prefix, 0 to 128 bits */
	uint32_t reserved[2];
};

/* Bits for the behaviour of a context that was open during `softnicctl device reset`; see softnicctl(8). */
enum fab_reset {
	FAB_RESET_FLUSH = 1,
	FAB_RESET_RUNS = 2,
	FAB_RESET_DESTROY_FAILS = 4,
	FAB_RESET_DESTROY_LIES = 8,
	FAB_RESET_FLAGS = 0xff,
	FAB_RESET_ONE = 0x100, /* the reset counter is in the upper bits: it is incremented by this number */
};

enum fab_down { FAB_DOWN_PORT = 1, FAB_DOWN_LOST = 2 };

/* The events of a port, except those that the members `down`, `changes` and `losses` report. */
enum fab_news { FAB_NEWS_ACTIVE, FAB_NEWS_GID, FAB_NEWS_PKEY, FAB_NEWS_LID, FAB_NEWS_NR };

struct fab_port {
	/* bits of enum fab_down, reasons why the port carries no packets; 0: it carries packets */
	_Atomic uint32_t down;
	/* number of changes of FAB_DOWN_PORT so far; even a short interruption counts as two changes, and
	 * makes two events */
	_Atomic uint32_t changes;
	_Atomic uint32_t losses; /* number of times that the device was lost */
	_Atomic uint32_t mtu;    /* active MTU, an enum ibv_mtu; 0: 4096 */
	/* time of CLOCK_MONOTONIC in ns before which the device cannot be opened */
	_Atomic uint64_t away_until_ns;
	_Atomic uint32_t lid;     /* LID on InfiniBand; 0: the port is Ethernet */
	_Atomic uint16_t pkey;    /* partition key; 0: the default one */
	_Atomic uint16_t no_gids; /* true: the device is a representor, whose GID table is empty */
	_Atomic uint32_t news[FAB_NEWS_NR];
	char name[16]; /* name of the device after it was renamed; "": its name is mlx5_N */
	struct fab_gid gid[FAB_GIDS];
};

/* Counters of the work requests that a process has sent as initiator, printed by `softnicctl stats`. */
struct fab_stats {
	_Atomic uint64_t written_bytes;
	_Atomic uint64_t read_bytes;
	_Atomic uint64_t ops;
	_Atomic uint64_t errors;
	_Atomic uint64_t copy_ns;
	uint64_t reserved[3];
};

/*
 * A job: the request to move a piece of a transfer from or to device memory (of a GPU), which only a thread
 * of the process that owns the memory can access. The initiator claims a job, moves the bytes between its own
 * memory and the buffer of the job in the owner by process_vm_*, and requests the owner to move them between
 * this buffer and the device memory (job.h).
 *
 *     FREE -> ASKED (initiator) -> RUNNING -> DONE (owner) -> FREE (initiator)
 */
enum fab_job_state { FAB_JOB_FREE, FAB_JOB_ASKED, FAB_JOB_RUNNING, FAB_JOB_DONE };
enum fab_job_result {
	FAB_JOB_OK,
	FAB_JOB_REFUSED, /* the memory region, or the requested range of it, no longer exists */
	FAB_JOB_FAILED,  /* the driver could not copy; some of the bytes may have been copied */
	FAB_JOB_GONE,    /* the owner is exiting */
};

struct fab_job {
	/* initiator that has claimed the job: its serial << 16 | its index + 1; 0: the job is free */
	_Atomic uint64_t holder;
	_Atomic uint32_t state;  /* state of the job, an enum fab_job_state; a futex */
	_Atomic uint32_t result; /* result of the job in the state DONE, an enum fab_job_result */
	/* The fields from here on are the request of the initiator. key: key of the memory region */
	uint32_t key;
	uint32_t op;  /* operation: FAB_OP_READ or FAB_OP_WRITE */
	uint32_t len; /* length in bytes, at most FAB_STAGE_BYTES */
	uint32_t reserved0;
	uint64_t offset; /* offset of the first byte in the region */
	uint64_t reserved[3];
};

struct fab_proc {
	_Atomic uint32_t state; /* state of the process, an enum fab_proc_state */
	uint32_t pid;
	/* id of a thread whose memory process_vm_*() calls access; the thread lives as long as the memory of
	 * the process */
	_Atomic uint32_t tid;
	_Atomic uint32_t hz_high;
	/* start time of the process in clock ticks; pid and start time together identify the process */
	uint64_t start_ticks;
	/* number of the process, never reused in this fabric, so that caches notice that a slot has a new
	 * process */
	uint64_t serial;
	char comm[16];
	/* reset counter and flags (enum fab_reset) of each device; contexts opened before the last change do
	 * not work any longer */
	_Atomic uint32_t resets[FAB_DEVS];
	_Atomic uint32_t cqs[FAB_VECTORS]; /* number of completion queues created on each completion vector */
	struct fab_stats stats;
	_Atomic uint32_t hz[FAB_HZ][FAB_HZ_NR];
	_Atomic uint32_t job_bell; /* futex that wakes the thread which runs the jobs */
	uint32_t reserved;
	/* address, in this process, of the buffers of the jobs, FAB_STAGE_BYTES for each job */
	_Atomic uint64_t stage;
	struct fab_job job[FAB_JOBS];
	/* Numbers of queue pairs whose fab_msg this process has to look at; 0: the entry is free. */
	_Atomic uint32_t inbox[FAB_INBOX];
	_Atomic uint32_t inbox_bell; /* number of entries made so far; a futex */
	/* true: the process reads its inbox; false: it has not posted a receive yet */
	_Atomic uint32_t inbox_on;
	uint32_t reserved1[14];
};

/*
 * A message: the request of the sender, in its own fab_qp, for a receive of its target, and the answer. Only the
 * process of the target has access to its receive queue and completion queue.
 *
 *     FREE -> TAKE (sender) -> BUSY -> ANSWERED (receiver) -> PUT (sender) -> BUSY -> ANSWERED (receiver) -> FREE (sender)
 *
 * TAKE requests a receive, whose buffers the sender then fills; PUT ends the receive. An RDMA write with immediate data
 * needs only PUT. The sender can withdraw a request that is not BUSY.
 */
enum fab_msg_state { FAB_MSG_FREE, FAB_MSG_TAKE, FAB_MSG_PUT, FAB_MSG_BUSY, FAB_MSG_ANSWERED };
enum fab_msg_result {
	FAB_MSG_OK,
	FAB_MSG_NOBODY,    /* the target is not ready: it sends no answer in a real network */
	FAB_MSG_NOT_READY, /* there is no receive (RNR NAK) */
	FAB_MSG_INVALID,   /* the message is longer than the receive */
	FAB_MSG_BROKEN,    /* the buffers of the receive violate their registration */
};

struct fab_msg {
	/* number of the sender's queue pair << 8 | an enum fab_msg_state */
	_Atomic uint32_t state;
	/* The request, by the sender. */
	uint32_t to_qpn;
	uint32_t opcode; /* opcode of the work request, an enum ibv_wr_opcode */
	uint32_t imm;    /* immediate data, in network byte order */
	uint64_t len;    /* length of the message in bytes */
	uint32_t solicited;
	uint32_t broken; /* true: the sender could not write to the buffers of the receive */
	/* The answer, by the receiver. */
	uint32_t result; /* result of the request, an enum fab_msg_result */
	uint32_t sge_nr; /* after TAKE: number of buffers of the receive */
	uint64_t sge;    /* after TAKE: address of their struct ibv_sge, in the process of the target */
	uint32_t pd;     /* after TAKE: protection domain of the buffers */
	uint32_t reserved;
};

struct fab_qp {
	/* number of the queue pair: generation << 16 | index; 0: it does not exist, or is not published */
	_Atomic uint32_t qpn;
	_Atomic uint32_t owner; /* index of the owner process + 1; 0: the slot is free */
	uint32_t gen;
	uint32_t type; /* type of the queue pair, an enum fab_qp_type */
	uint32_t pd;
	uint32_t dev;
	_Atomic uint32_t state; /* state of the queue pair, an enum ibv_qp_state */
	_Atomic uint32_t access;
	_Atomic uint32_t dest_qpn;
	/* bits of enum fab_poke; the owner raises their events and clears them */
	_Atomic uint32_t poke;
	uint64_t dc_key;
	_Atomic uint32_t mtu; /* MTU of the path, an enum ibv_mtu */
	/* FAB_MARKS() of the packets with which this queue pair answers as a target, from its address
	 * vector */
	_Atomic uint32_t marks;
	_Atomic uint32_t rnr_timer; /* time after an RNR NAK, as in ibv_qp_attr.min_rnr_timer */
	uint32_t reserved;
	struct fab_msg msg; /* message of this queue pair as a sender */
	uint64_t reserved1;
};

/* Marks of packets in one number: traffic class, service level, and the index of the source address in the
 * GID table. */
#define FAB_MARKS(class, level, row) ((uint32_t)(class) | (uint32_t)(level) << 8 | (uint32_t)(row) << 16)

enum fab_mr_flag { FAB_MR_DEVICE = 1 };

struct fab_mr {
	/* key of the region: index << 8 | generation; 0: it does not exist, or is not published */
	_Atomic uint32_t key;
	_Atomic uint32_t owner;
	uint32_t gen;
	uint32_t pd;
	uint32_t access;
	uint32_t dev;
	uint64_t iova;
	/* address of the region in its process; process_vm_* cannot use it if the region is device memory */
	uint64_t va;
	uint64_t len;
	uint32_t flags; /* flags of the region, enum fab_mr_flag */
	uint32_t reserved0;
	uint64_t reserved;
};

/*
 * A fault rule has three parts: the operations to which it applies, the share of them that it hits, and its
 * effect. softnicctl writes a rule with the file locked; it stores id last and clears id first, and never
 * reuses an id. A reader copies the rule, and checks that id is unchanged. In fab_match 0 means any, in
 * fab_act it means none, unless stated otherwise.
 */
enum fab_op {
	FAB_OP_ANY,
	FAB_OP_READ,
	FAB_OP_WRITE,
	FAB_OP_SEND,
	FAB_OP_CREATE_QP,
	FAB_OP_REG_MR,
	FAB_OP_CREATE_AH,
	FAB_OP_CREATE_CQ,
	FAB_OP_MODIFY_QP,
	FAB_OP_DESTROY_QP,
	FAB_OP_DEREG_MR,
	FAB_OP_CREATE_DCT,
	FAB_OP_NR
};

enum fab_act_flag {
	FAB_ACT_STATUS = 1 << 0,
	FAB_ACT_TORN = 1 << 1,
	FAB_ACT_CORRUPT = 1 << 2,
	FAB_ACT_DROP = 1 << 3,
	FAB_ACT_DUP = 1 << 4,
	FAB_ACT_KILL_TARGET = 1 << 5,
	FAB_ACT_KILL_SELF = 1 << 6,
	FAB_ACT_SCRAMBLE = 1 << 7,
};

struct fab_act {
	uint32_t flags;
	uint32_t status; /* status of the completion, an enum ibv_wc_status */
	uint32_t vendor;
	uint32_t error; /* errno of a call that the rule refuses */
	uint32_t torn_pct;
	uint32_t chunk_bytes;
	uint64_t corrupt_at;
	uint64_t kill_at;
	uint64_t delay_ns; /* delay in ns before the copy, or before the call */
	uint64_t hold_ns;  /* delay in ns between the copy and the completion */
	uint64_t pause_ns; /* delay in ns between two chunks */
	uint64_t reserved[4];
};

struct fab_match {
	uint32_t op;  /* operation to which the rule applies, an enum fab_op */
	uint32_t dev; /* index of the device + 1 */
	uint32_t pid; /* process id of the initiator */
	uint32_t qpn;
	uint32_t dctn;
	uint32_t reserved0;
	uint64_t min_len;
	/* The members skip, every, limit, prob and seed select the operations that the rule hits, among the
	 * matching operations of all processes. skip: number of operations before the first hit; every: after
	 * these, each every-th operation is hit; limit: largest number of hits. */
	uint64_t skip;
	uint64_t every;
	uint64_t limit;
	uint64_t prob; /* probability, times 2^32, that a selected operation is hit */
	uint64_t seed;
};

struct fab_rule {
	_Atomic uint32_t id;
	uint32_t reserved0;
	_Atomic uint64_t seen, hits;
	struct fab_match match;
	struct fab_act act;
	uint64_t reserved[8];
};

/* The devices that reach each other: all, or those in a common subnet. */
enum fab_reach { FAB_REACH_ALL, FAB_REACH_SUBNET };

/* A network that a device reaches in addition to its own subnets. */
struct fab_route {
	_Atomic uint32_t dev; /* index of the device + 1; 0: the entry is free */
	uint32_t prefix;
	uint8_t raw[16];
	uint64_t reserved;
};

/* Bits of fabric.active: there are fault rules, or there is a trace. Each step of a work request checks
 * them. */
enum fab_active { FAB_ACTIVE_RULES = 1, FAB_ACTIVE_TRACE = 2 };

struct fabric {
	_Atomic uint64_t magic;
	uint32_t version;
	uint32_t reserved0;
	uint64_t size;
	_Atomic uint64_t serial;
	/* number of events so far; a futex on which the watcher thread of every process waits */
	_Atomic uint32_t event_seq;
	_Atomic uint32_t proc_high;
	/* Numbers of slots assigned so far. Slots are assigned in the order of the table, and after its end
	 * again from its beginning, so that a number is not reused soon. */
	_Atomic uint64_t qp_next;
	_Atomic uint64_t mr_next;
	uint64_t reserved1;
	_Atomic uint32_t active; /* bits of enum fab_active */
	_Atomic uint32_t rule_next;
	_Atomic uint32_t trace_gen; /* version of trace_path; odd while it is being written */
	/* number of work requests that are not in the trace because their process could not open it */
	_Atomic uint32_t trace_missed;
	_Atomic uint32_t reach; /* reachability of devices, an enum fab_reach */
	uint32_t reserved2;
	/* time in ns that the look-up of a neighbour without an answer takes; 0: neighbours are not looked
	 * up */
	_Atomic uint64_t absent_ns;
	_Atomic uint64_t call_ns; /* time in ns that a firmware command takes */
	/* time in ns during which bytes of an RDMA write may still arrive after its queue pair has changed to
	 * ERR */
	_Atomic uint64_t ghost_ns;
	_Atomic uint64_t qps_max; /* largest number of queue pairs of a device; 0: no limit */
	uint64_t reserved3;
	struct fab_port port[FAB_DEVS];
	struct fab_rule rule[FAB_RULES];
	struct fab_route route[FAB_ROUTES];
	char trace_path[1024];
	struct fab_proc proc[FAB_PROCS];
	struct fab_qp qp[FAB_QPS];
	struct fab_mr mr[FAB_MRS];
};

_Static_assert(sizeof(struct fab_gid) == 32, "fabric layout");
_Static_assert(sizeof(struct fab_port) == 64 + 32 * FAB_GIDS, "fabric layout");
_Static_assert(sizeof(struct fab_stats) == 64, "fabric layout");
_Static_assert(sizeof(struct fab_job) == 64, "fabric layout");
_Static_assert(sizeof(struct fab_proc) == 288 + 8 * FAB_HZ + 64 * FAB_JOBS + 4 * FAB_INBOX, "fabric layout");
_Static_assert(sizeof(struct fab_msg) == 56, "fabric layout");
_Static_assert(sizeof(struct fab_qp) == 128, "fabric layout");
_Static_assert(sizeof(struct fab_mr) == 64, "fabric layout");
_Static_assert(sizeof(struct fab_rule) == 256, "fabric layout");
_Static_assert(sizeof(struct fab_route) == 32, "fabric layout");
_Static_assert(offsetof(struct fabric, active) == 64, "a cache line that hardly ever changes");
_Static_assert(offsetof(struct fabric, port) == 128, "fabric layout");

/*
 * Maps the fabric (fab_map()): finds the directory (SOFTNIC_DIR, or /dev/shm/softnic-<uid>) and, under flock,
 * checks magic, version and size of the file. create: true: creates the file if it does not exist. Returns 0,
 * or -errno after writing a message to stderr. fab_path() writes the path of the file to buf. Any thread may
 * call this function.
 */
int fab_map(bool create, struct fabric **ret_fab, int *ret_fd);
void fab_path(char *buf, size_t len);

/* Frees the slots of dead processes. The caller has locked the file. */
void fab_reap(struct fabric *f);

/* Returns false if the process is certainly dead; true: it may live, and its threads may still copy bytes. */
bool fab_proc_alive(const struct fab_proc *p);
int fab_start_ticks(uint32_t pid, uint64_t *ret_ticks);

/* Returns the index after the last slot that was ever used. Later slots must not be read, because each read
 * of a new page makes the sparse file larger. */
uint32_t fab_qp_high(struct fabric *f);
uint32_t fab_mr_high(struct fabric *f);

/* Returns true if the first `bits` bits of two GIDs are equal. */
bool fab_prefix_equal(const uint8_t a[16], const uint8_t b[16], uint32_t bits);
/* Parses an address with or without /PREFIX; raw: the address, IPv4 as IPv4-mapped. *ret_prefix: length of
 * the prefix, as of an IPv6 address; without /PREFIX it is 64 for IPv6, /24 for IPv4, and /8 for 127.0.0.0.
 * Returns false if the text is invalid. */
bool fab_parse_net(const char *s, uint8_t raw[16], uint32_t *ret_prefix);

/* Sets the behaviour of the fabric to that of real networks (realistic true) or to the default of softnic
 * (false); see `profile` in softnicctl(8). */
void fab_profile(struct fabric *f, bool realistic);

/* Wakes the watcher thread of every process. Called after a change of a port or of fab_qp.poke. */
void fab_event(struct fabric *f);

#endif
