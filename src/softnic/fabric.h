/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fabric: one sparse file that every process on the software NIC maps. It is the wire, the switch and the
 * part of each adapter that another adapter may see: processes, queue pairs, memory regions, port states.
 *
 * Owned by fabric.c; softnicctl maps it too. It contains no pointers and needs no lock between processes: a
 * slot is claimed with a compare-and-swap of its owner, published by storing its key, and unpublished by
 * clearing it. A user of a slot publishes the key as a hazard word, then checks the slot again; unpublishing
 * waits until no live process has the key as a hazard. After a crash on either side the others can therefore
 * continue without a clean-up.
 */
#ifndef SOFTNIC_FABRIC_H
#define SOFTNIC_FABRIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAB_MAGIC 0x3143494e54464f53ull /* magic number of the file: "SOFTNIC1" */
#define FAB_VERSION 7u

enum {
	FAB_PROCS = 256,
	FAB_DEVS = 16,
	FAB_GIDS = 1024,
	FAB_QPS = 1 << 16,
	FAB_MRS = 1 << 16,
	FAB_HZ = 64, /* largest number of executors of one process in a transfer at the same time */
	FAB_RULES = 16,
	FAB_ROUTES = 64,
	FAB_VECTORS = 8, /* number of completion vectors of a device */
	FAB_JOBS = 16,   /* largest number of transfers to and from device memory of one process at a time */
	FAB_STAGE_BYTES = 1 << 20,
	FAB_QP_FIRST = 64, /* first number of a queue pair: a real adapter reserves the small numbers */
	FAB_MR_FIRST = 1,
};

enum fab_proc_state { FAB_PROC_FREE, FAB_PROC_LIVE, FAB_PROC_DEAD };
enum fab_qp_type { FAB_QP_RC = 1, FAB_QP_DCI, FAB_QP_DCT };
/* Type of a row of the GID table. NONE: this row and all later rows were never used; GONE: the row had an
 * address that was removed. */
enum fab_gid_type { FAB_GID_NONE, FAB_GID_V1, FAB_GID_V2, FAB_GID_IB, FAB_GID_GONE };
enum fab_hz { FAB_HZ_QP, FAB_HZ_MR, FAB_HZ_NR };

struct fab_gid {
	uint8_t raw[16];
	uint32_t type;   /* type of the row, an enum fab_gid_type */
	uint32_t prefix; /* length of the subnet's prefix, in bits of 128 */
	uint32_t reserved[2];
};

/* Behaviour of the contexts that a process had open, after `softnicctl device reset`, see softnicctl(8). */
enum fab_reset {
	FAB_RESET_FLUSH = 1,
	FAB_RESET_RUNS = 2,
	FAB_RESET_DESTROY_FAILS = 4,
	FAB_RESET_DESTROY_LIES = 8,
	FAB_RESET_FLAGS = 0xff,
	FAB_RESET_ONE = 0x100, /* step of the reset counter, which is in the upper bits */
};

enum fab_down { FAB_DOWN_PORT = 1, FAB_DOWN_LOST = 2 };

/* Events of a port other than up, down and lost. */
enum fab_news { FAB_NEWS_ACTIVE, FAB_NEWS_GID, FAB_NEWS_PKEY, FAB_NEWS_LID, FAB_NEWS_NR };

struct fab_port {
	_Atomic uint32_t down; /* reasons why the port carries no packets, bits of enum fab_down; 0: it
	                        * carries packets */
	/* counter, incremented with each change of FAB_DOWN_PORT, so that a short flap is two events */
	_Atomic uint32_t changes;
	_Atomic uint32_t losses;        /* counter, incremented when the device is lost */
	_Atomic uint32_t mtu;           /* active MTU, an enum ibv_mtu; 0: 4096 */
	_Atomic uint64_t away_until_ns; /* time of CLOCK_MONOTONIC before which the device cannot be opened */
	_Atomic uint32_t lid;           /* LID on InfiniBand; 0: the port is Ethernet */
	_Atomic uint16_t pkey;          /* partition key; 0: the default one */
	_Atomic uint16_t no_gids;       /* true: the device is a representor, whose GID table has no rows */
	_Atomic uint32_t news[FAB_NEWS_NR];
	char name[16]; /* name of the device if it was renamed; "": the name is mlx5_N */
	struct fab_gid gid[FAB_GIDS];
};

/* Counters of a process as initiator, printed by softnicctl stats. */
struct fab_stats {
	_Atomic uint64_t written_bytes;
	_Atomic uint64_t read_bytes;
	_Atomic uint64_t ops;
	_Atomic uint64_t errors;
	_Atomic uint64_t copy_ns;
	uint64_t reserved[3];
};

/*
 * A piece of a transfer to or from device memory (a GPU's), which only a thread of the owner process can
 * move: an initiator claims a job, moves the bytes between its own memory and the job's buffer in the owner
 * by process_vm_*, and asks the owner for the rest (job.h).
 *
 *     FREE -> ASKED (initiator) -> RUNNING -> DONE (owner) -> FREE (initiator)
 */
enum fab_job_state { FAB_JOB_FREE, FAB_JOB_ASKED, FAB_JOB_RUNNING, FAB_JOB_DONE };
enum fab_job_result {
	FAB_JOB_OK,
	FAB_JOB_REFUSED, /* the memory region, or the requested part of it, no longer exists */
	FAB_JOB_FAILED,  /* the driver could not copy; some of the bytes may have been copied */
	FAB_JOB_GONE,    /* the owner is exiting */
};

struct fab_job {
	/* serial of the initiator << 16 | index of the initiator + 1; 0: not claimed */
	_Atomic uint64_t holder;
	_Atomic uint32_t state;  /* state of the job, an enum fab_job_state; a futex */
	_Atomic uint32_t result; /* result of the job in the state DONE, an enum fab_job_result */
	/* Fields of the request: key of the region, operation, length and offset. */
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
	_Atomic uint32_t
		/* id of a thread that lives as long as the memory of the process: the target of process_vm_*
		 * calls */
		tid;
	_Atomic uint32_t hz_high;
	uint64_t start_ticks; /* start time of the process; with pid it identifies the process */
	uint64_t serial;      /* number unique in this fabric, so that caches notice a reused slot */
	char comm[16];
	/* reset state of each device, an enum fab_reset: contexts opened before its last change no longer
	 * work */
	_Atomic uint32_t resets[FAB_DEVS];
	_Atomic uint32_t cqs[FAB_VECTORS]; /* number of completion queues created on each vector */
	struct fab_stats stats;
	_Atomic uint32_t hz[FAB_HZ][FAB_HZ_NR];
	_Atomic uint32_t job_bell; /* futex of the thread that executes the jobs */
	uint32_t reserved;
	_Atomic uint64_t stage; /* address in the process of the jobs' buffers, FAB_STAGE_BYTES each */
	struct fab_job job[FAB_JOBS];
};

struct fab_qp {
	/* number of the queue pair: generation << 16 | index; 0: the queue pair is unreachable */
	_Atomic uint32_t qpn;
	_Atomic uint32_t owner; /* index of the owner process + 1; 0: the slot is free */
	uint32_t gen;
	uint32_t type; /* type of the queue pair, an enum fab_qp_type */
	uint32_t pd;
	uint32_t dev;
	_Atomic uint32_t state; /* state of the queue pair, an enum ibv_qp_state */
	_Atomic uint32_t access;
	_Atomic uint32_t dest_qpn;
	/* set by `softnicctl qp N fatal`; then the owner raises the event and clears the field */
	_Atomic uint32_t poke;
	uint64_t dc_key;
	_Atomic uint32_t mtu; /* MTU of the path, an enum ibv_mtu */
	/* marks of the packets with which a target answers: FAB_MARKS() of its address vector */
	_Atomic uint32_t marks;
	uint64_t reserved;
};

/* Marks of packets: traffic class, service level, and the row of the source in the GID table. */
#define FAB_MARKS(class, level, row) ((uint32_t)(class) | (uint32_t)(level) << 8 | (uint32_t)(row) << 16)

enum fab_mr_flag { FAB_MR_DEVICE = 1 };

struct fab_mr {
	_Atomic uint32_t key; /* key of the region: index << 8 | generation; 0: the region is unreachable */
	_Atomic uint32_t owner;
	uint32_t gen;
	uint32_t pd;
	uint32_t access;
	uint32_t dev;
	uint64_t iova;
	uint64_t va; /* address of the region; for device memory it is not an address for process_vm_* */
	uint64_t len;
	uint32_t flags; /* flags of the region, enum fab_mr_flag */
	uint32_t reserved0;
	uint64_t reserved;
};

/*
 * A fault rule: the operations to which the rule applies, the share of these operations that the rule hits,
 * and its effect. Written by softnicctl with the file locked while id is 0; id is stored last and cleared
 * first; numbers are not reused. A reader copies the rule and checks id once more. A number 0 means any or
 * none, unless stated otherwise.
 */
enum fab_op {
	FAB_OP_ANY,
	FAB_OP_READ,
	FAB_OP_WRITE,
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
	/* Share of the operations that match the rule, counted over all processes: */
	uint64_t skip;
	uint64_t every;
	uint64_t limit;
	uint64_t prob; /* probability, as a fraction of 2^32 */
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

/* The rule for which devices reach each other. */
enum fab_reach { FAB_REACH_ALL, FAB_REACH_SUBNET };

/* A network that a device reaches in addition to its own subnets. */
struct fab_route {
	_Atomic uint32_t dev; /* index of the device + 1; 0: the entry is free */
	uint32_t prefix;
	uint8_t raw[16];
	uint64_t reserved;
};

/* Reasons for additional work in a transfer. The word `active` with these bits is checked for each step of a
 * work request. */
enum fab_active { FAB_ACTIVE_RULES = 1, FAB_ACTIVE_TRACE = 2 };

struct fabric {
	_Atomic uint64_t magic;
	uint32_t version;
	uint32_t reserved0;
	uint64_t size;
	_Atomic uint64_t serial;
	_Atomic uint32_t event_seq; /* event counter and futex, on which the watcher of every process waits */
	_Atomic uint32_t proc_high;
	/* Counters of assigned slots, never reset: slots are assigned round the table, so that a number is
	 * not reused soon. */
	_Atomic uint64_t qp_next;
	_Atomic uint64_t mr_next;
	uint64_t reserved1;
	_Atomic uint32_t active; /* bits of enum fab_active */
	_Atomic uint32_t rule_next;
	_Atomic uint32_t trace_gen; /* odd while trace_path is being written */
	/* number of work requests of processes that could not open the trace */
	_Atomic uint32_t trace_missed;
	_Atomic uint32_t reach; /* reachability of devices, an enum fab_reach */
	uint32_t reserved2;
	/* duration in ns of a look-up of a missing neighbour; 0: neighbours are not checked */
	_Atomic uint64_t absent_ns;
	_Atomic uint64_t call_ns; /* duration in ns of a firmware command */
	/* time in ns after the change to ERR during which bytes of a WRITE may arrive */
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
_Static_assert(sizeof(struct fab_proc) == 224 + 8 * FAB_HZ + 64 * FAB_JOBS, "fabric layout");
_Static_assert(sizeof(struct fab_qp) == 64, "fabric layout");
_Static_assert(sizeof(struct fab_mr) == 64, "fabric layout");
_Static_assert(sizeof(struct fab_rule) == 256, "fabric layout");
_Static_assert(sizeof(struct fab_route) == 32, "fabric layout");
_Static_assert(offsetof(struct fabric, active) == 64, "a cache line that hardly ever changes");
_Static_assert(offsetof(struct fabric, port) == 128, "fabric layout");

/*
 * Maps the fabric. fab_map() finds the directory (SOFTNIC_DIR or /dev/shm/softnic-<uid>), creates missing
 * files if requested and checks magic, version and size under flock. Returns 0 or -errno, with an error
 * message on stderr. fab_path() returns the path of the file. Any thread.
 */
int fab_map(bool create, struct fabric **ret_fab, int *ret_fd);
void fab_path(char *buf, size_t len);

/* Frees the slots of dead processes. The caller has locked the file. */
void fab_reap(struct fabric *f);

/* Returns true if a thread of the process may still be copying; false if the process is certainly dead. */
bool fab_proc_alive(const struct fab_proc *p);
int fab_start_ticks(uint32_t pid, uint64_t *ret_ticks);

/* Returns the first slot that was never used; reading one would allocate a page of the sparse file. */
uint32_t fab_qp_high(struct fabric *f);
uint32_t fab_mr_high(struct fabric *f);

/* Returns true if two GIDs are equal in their first bits. */
bool fab_prefix_equal(const uint8_t a[16], const uint8_t b[16], uint32_t bits);
/* Parses an address, IPv4 as v4-mapped, with or without /PREFIX; *ret_prefix: the usual prefix of such a
 * subnet if none is given. */
bool fab_parse_net(const char *s, uint8_t raw[16], uint32_t *ret_prefix);

/* Sets the fabric to the behaviour of real networks, or to the default of softnic: see profile in
 * softnicctl(8). */
void fab_profile(struct fabric *f, bool realistic);

/* Wakes every watcher after a change of a port or a poke. */
void fab_event(struct fabric *f);

#endif
