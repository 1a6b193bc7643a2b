/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgantry-server: the server's side of object transfers by RDMA, for a program that speaks to its clients
 * itself.
 *
 * A client sends a token, a line of text that names a window of its memory. The program transports the token
 * and the request. This library moves bytes between that window and memory of the program:
 *
 *     struct gantry_server_params p;
 *     struct gantry_server *s;
 *     struct gantry_region *r;
 *     struct gantry_channel *c;
 *
 *     gantry_server_defaults(&p, sizeof p);
 *     p.address = "10.0.0.9";
 *     if (gantry_server_open(&p, &s) < 0)
 *             errx(1, "%s", gantry_server_open_error());
 *     buf = gantry_host_alloc(1 << 20);
 *     gantry_region_add(s, buf, 1 << 20, &r);
 *     gantry_channel_new(s, &c);
 *     struct gantry_piece piece = { r, buf, size };
 *     n = gantry_channel_move(c, GANTRY_PUSH, &piece, 1, remote, token, GANTRY_INTERVAL, NULL);
 *
 * The library moves bytes by DC only. Tokens of RC ("rc:...") are refused; gantryd serves them.
 *
 * Units: sizes are bytes, delays nanoseconds, waits milliseconds.
 *
 * Threads: any thread may use a server and its regions, and make and free channels, at any time. One thread
 * at a time uses a channel; another thread may use it afterwards. A second thread that uses a channel at the
 * same time gets -EIO and a line in the log, and causes no damage. A thread must not be cancelled during a
 * call. The threads of the library have all signals blocked.
 *
 * Forks: a child process cannot use the objects that its parent has opened: calls on them return -ENODEV, and
 * freeing and closing do nothing. A child may open a new server.
 *
 * Errors: functions that can fail return a negative errno value, and each failure has a line in the log
 * (gantry_server_params.log) that names the cause and, if there is one, the remedy. Errors of transfers:
 *
 *   -ENODEV        no port of the server can be used: all are down, or their device has died and was
 *                  not re-opened yet; or another process opened the server, before a fork
 *   -EAFNOSUPPORT  the token's address is of another family (IPv4, IPv6) than the server's
 *   -ENOMEM        no memory
 *   -EIO           any other error: an invalid argument or token, a range outside of the token's window or of a
 *                  region, more than GANTRY_MOVE_MAX bytes, an address that is not allowed or cannot be reached,
 *                  a channel that another thread uses or that is fenced, a failed transfer
 */
#ifndef GANTRY_SERVER_H
#define GANTRY_SERVER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gantry_server;
struct gantry_region;
struct gantry_channel;

/* Returns the version of this library, "1.2.3". */
const char *gantry_server_version(void);

/* ---- a server ---- */

/* The way in which gantry_channel_move() waits for a completion. The interval is its argument delay_ns or,
 * with GANTRY_INTERVAL, gantry_server_params.delay_interval_ns. */
enum gantry_delay {
	GANTRY_DELAY_NONE = 0,  /* polls without pause */
	GANTRY_DELAY_BATCH = 1, /* pauses for the interval after an unsuccessful poll */
	GANTRY_DELAY_ENTRY = 2, /* pauses for one interval after each completion that was found */
	/* polls without pause for four intervals, then sleeps until a completion arrives */
	GANTRY_DELAY_ADAPTIVE = 3,
};

/* Levels of log lines. ERROR: failures. INFO: ports, sessions, channels and regions that are added and
 * removed. DEBUG: details for debugging. */
enum gantry_server_log { GANTRY_SERVER_LOG_ERROR, GANTRY_SERVER_LOG_INFO, GANTRY_SERVER_LOG_DEBUG };
/* Receives a log line, without a line feed. Called by any thread, also by several threads at a time. The
 * function must not call this library, and must not throw. */
typedef void gantry_server_log_fn(void *cookie, enum gantry_server_log level, const char *text);

#define GANTRY_CHANNELS_MAX 65535
#define GANTRY_PIECES_MAX 32
#define GANTRY_MOVE_MAX ((size_t)1 << 30) /* largest number of bytes in one transfer */

/* Parameters of a server, filled in by gantry_server_defaults(). The program then sets the members whose
 * defaults it does not want. gantry_server_open() copies the strings. */
struct gantry_server_params {
	/* size of this struct in bytes, as the program was compiled; set by gantry_server_defaults() */
	size_t size;
	/*
	 * The RDMA ports that the server uses, separated by commas: an address of this machine ("10.0.0.9",
	 * "fd00::9") selects the port that has this address, and the port's addresses of the same family; a
	 * device ("mlx5_0") selects all its ports, or one ("mlx5_0:1"). NULL or "auto": every port that
	 * supports DC, with all its addresses.
	 */
	const char *address;
	/*
	 * The addresses that tokens may name, separated by commas: address blocks ("10.0.0.0/8, fd00::/8"),
	 * or "subnet" (the subnets of the server's ports); "routed" (all addresses to which the kernel has a
	 * route through a port of the server); "loopback"; "self" (the server's own addresses); "link-local".
	 * NULL: the list in the environment variable GANTRY_SERVER_ALLOW or, without this variable, "subnet".
	 * Bytes are sent to no other address, and never to a multicast or unspecified address, whatever the
	 * list says. gantry_server_open() refuses a block with bits set after its length.
	 */
	const char *allow;

	gantry_server_log_fn *log; /* log function; NULL: nothing is logged */
	void *log_cookie;
	/* most detailed level that is logged, default INFO; more detailed lines cost no time */
	enum gantry_server_log log_level;

	/* largest number of channels at a time, 1 to GANTRY_CHANNELS_MAX; default 128 */
	int channels;
	/* largest number of work requests of a channel in flight; further work requests wait in the library;
	 * default 640 */
	unsigned cq_depth;
	uint64_t dc_key;   /* DC key, default 0xffeeddcc; must equal the key of the clients */
	int service_level; /* service level, 0 to 15, on Ethernet to 7; default 0 */
	/* exponent t of the acknowledgement timeout of one try, 4.096 us * 2^t; 0 to 31; 0: no limit; default
	 * 16 */
	int timeout;
	int retry_cnt; /* number of retries after the first try, 0 to 7; default 7 */
	/* number of retries if the client's adapter is not ready (RNR); 7: no limit; default 7 */
	int rnr_retry;
	int hop_limit;     /* hop limit of packets, 1 to 255; default 64 */
	int pkey_index;    /* index in the port's table of partition keys; default 0 */
	int traffic_class; /* traffic class, 0 to 255; default -1: the driver's class of the port, else 96 */
	int max_sge;       /* largest number of pieces in a transfer, 1 to GANTRY_PIECES_MAX; default 10 */
	/* largest number of RDMA reads (PULL) of a channel in flight; default 0: chosen automatically */
	int max_rd_atomic;
	/* path MTU in bytes: a power of two from 256 to 4096, at most the MTU of the port; default 0: the MTU
	 * of the port */
	int path_mtu;
	/* the way in which gantry_channel_move() waits; default GANTRY_DELAY_BATCH */
	enum gantry_delay delay_mode;
	uint32_t delay_interval_ns; /* interval of delay_mode in ns; default 5000 */
	/* 1 (default): a channel is reset after a failed transfer, and works again. 0: the channel is fenced:
	 * calls on it return -EIO until the channel is freed. */
	int qp_reset_on_failure;
};

/* Sets all members of *p to their defaults. size: sizeof *p, as the program was compiled. */
void gantry_server_defaults(struct gantry_server_params *p, size_t size);

/*
 * Opens a server: finds its ports, and begins to watch them. Several servers may be open. p may be NULL (the
 * defaults). Returns 0; -EINVAL if p is invalid, or the adapter does not support so many channels or so deep
 * a queue; -ENODEV if no device supports DC, or an address is not of this machine; -ENOMEM; or another errno
 * value of the system. gantry_server_open_error() describes the error. The first call sets environment
 * variables, which tell libibverbs how to treat a device that disappears: at this time no other thread may
 * use the environment.
 */
int gantry_server_open(const struct gantry_server_params *p, struct gantry_server **ret_s);
/* Returns the reason why the last gantry_server_open() of this thread failed; "" after a success. */
const char *gantry_server_open_error(void);
/* Frees the remaining channels, deregisters the remaining regions, and closes the server. No other call may
 * be running. After the return none of these objects may be used. The program still owns the memory of the
 * regions. NULL is allowed. */
void gantry_server_close(struct gantry_server *s);

/* Returns 1 if a port of the server is up; 0: every port is down, or its device has died and was not
 * re-opened yet. */
int gantry_server_is_alive(const struct gantry_server *s);
/* Writes port i of the server (from 0) as text, like "mlx5_0:1 10.0.0.9", truncated to size bytes. Returns 0,
 * or -ENOENT if the server has at most i ports. */
int gantry_server_port(const struct gantry_server *s, int i, char *text, size_t size);
/* Sets the most detailed level that is logged, in place of gantry_server_params.log_level. */
void gantry_server_set_log_level(struct gantry_server *s, enum gantry_server_log most);
/* Returns the name of a status of verbs (enum ibv_wc_status), such as "remote access error". */
const char *gantry_status_text(int wc_status);

/* ---- memory ---- */

/* Allocates whole pages of memory for a region, to be freed by free(). Returns NULL if size is 0 or there is
 * no memory. */
void *gantry_host_alloc(size_t size);

/*
 * Registers [mem, mem + len) with every port. mem and len need not be aligned, and regions may overlap. The
 * program owns the memory, and must not free it before gantry_region_del(). Returns 0; -EINVAL: mem or len is
 * 0; -ENODEV: every device has died and was not re-opened yet; -ENOMEM: no memory, or the limit of locked
 * memory is too small; or the negative errno value of the driver, such as -EFAULT for unmapped memory.
 */
int gantry_region_add(struct gantry_server *s, void *mem, size_t len, struct gantry_region **ret_r);
/*
 * Removes a region. Returns 0, also for NULL: no device accesses the memory any longer; -EBUSY: an operation
 * in the region has not been returned by gantry_channel_poll() yet; or another negative errno value: a device
 * did not deregister the region. After an error the region still exists, and the program calls again later.
 * If a device has died, the call waits until the device is closed, which takes some seconds.
 */
int gantry_region_del(struct gantry_region *r);

/* ---- channels ---- */

enum gantry_dir {
	GANTRY_PUSH = 0, /* bytes go to the client, for its GET */
	GANTRY_PULL = 1, /* bytes come from the client, for its PUT */
};

/* A piece of memory in a region, for one transfer. */
struct gantry_piece {
	struct gantry_region *region;
	void *mem; /* memory of the piece: [mem, mem + len) lies in the region */
	size_t len;
};

/* Makes a channel. Its queue pairs are made later, when the channel gets its first token. Returns 0; -ENOSPC
 * if the server has gantry_server_params.channels channels; -ENODEV; -ENOMEM. */
int gantry_channel_new(struct gantry_server *s, struct gantry_channel **ret_c);
/*
 * Frees a channel. Unfinished operations end without a report, and no device accesses their pieces after the
 * return. Any thread may call this function. Returns 0, also for NULL; -EBUSY: another thread is in a call on
 * the channel, and the channel was not freed.
 */
int gantry_channel_free(struct gantry_channel *c);

/* The result of an operation. */
struct gantry_done {
	void *handle;
	uint64_t bytes; /* number of bytes moved: all bytes of the operation, or 0 */
	int wc_status;  /* status of verbs, an enum ibv_wc_status; 0: success */
	int error;      /* error of the operation: 0 or -EIO */
};

/*
 * Begins to move all bytes of n pieces, one after the other, to or from the client's memory at remote, which
 * is an address in the token's window. n: 1 to gantry_server_params.max_sge. handle: any pointer, by which
 * gantry_channel_poll() names the operation. The call does not use the array p and the token after the
 * return; the device uses the memory of the pieces until gantry_channel_poll() has returned handle. Work
 * requests beyond cq_depth wait in the library. Returns 0, or an error of a transfer; after an error
 * gantry_channel_poll() does not return handle.
 *
 * The call takes no lock, allocates no memory and makes no system call, with three exceptions. The first use
 * of a port takes some milliseconds, and so does an address that is not among the last eight used, or up to 5
 * s if this address does not answer. Each time that another cq_depth operations wait for
 * gantry_channel_poll(), memory is allocated. After a failure the channel is repaired.
 */
int gantry_channel_start(struct gantry_channel *c, enum gantry_dir d, const struct gantry_piece *p, int n,
			 uint64_t remote, const char *token, void *handle);

/*
 * Returns up to max operations that have ended, in the order in which they ended, without waiting. Returns
 * their number; 0: none has ended. If an operation has failed, its entry has the status, the other operations
 * on the wire end with IBV_WC_WR_FLUSH_ERR, and the channel is reset before the return. An operation whose
 * completion does not arrive ends with IBV_WC_RESP_TIMEOUT_ERR, 100 ms after the time limit of the transport
 * (gantry_server_params.timeout); without a time limit (timeout 0) it never ends. Errors: -EINVAL: done is
 * NULL or max is negative; -EIO: another thread uses the channel, or the channel is fenced and has no
 * operation to return; -ENODEV: no port can be used, and the channel has no operation to return.
 */
int gantry_channel_poll(struct gantry_channel *c, struct gantry_done *done, int max);

/*
 * Waits until gantry_channel_poll() can return an operation, at most timeout_ms; -1: without a limit. Returns
 * 1: gantry_channel_poll() can return an operation; 0: the time has passed, or no operation is in flight;
 * -EIO: another thread uses the channel. The thread sleeps during the wait, and a signal does not end the
 * wait.
 */
int gantry_channel_wait(struct gantry_channel *c, int timeout_ms);
/*
 * Returns the channel's file descriptor for poll() and epoll. Before each sleep on the descriptor the program
 * calls gantry_channel_wait(c, 0), and sleeps only if the result is 0. Then the descriptor becomes readable
 * as soon as gantry_channel_poll() may return an operation; without this call it may stay unreadable.
 */
int gantry_channel_fd(struct gantry_channel *c);

/* value of delay_ns that stands for gantry_server_params.delay_interval_ns */
#define GANTRY_INTERVAL UINT32_MAX

/*
 * Moves all bytes of n pieces to or from the client's memory, with the arguments of gantry_channel_start(),
 * and waits for the end. delay_ns: interval in ns for gantry_server_params.delay_mode. Returns the number of
 * bytes moved, or an error of a transfer. After the return, with any result, no device accesses the pieces.
 * *ret_wc_status (may be NULL): an enum ibv_wc_status, written only if a completion arrived or was overdue.
 * Earlier operations of gantry_channel_start() continue, and gantry_channel_poll() returns them.
 */
ssize_t gantry_channel_move(struct gantry_channel *c, enum gantry_dir d, const struct gantry_piece *p, int n,
			    uint64_t remote, const char *token, uint32_t delay_ns, int *ret_wc_status);

#ifdef __cplusplus
}
#endif

#endif
