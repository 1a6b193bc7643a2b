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

/* The way in which a synchronous transfer waits for its completion. The interval is
 * gantry_server_params.delay_interval_ns, or an argument of the call. */
enum gantry_delay {
	GANTRY_DELAY_NONE = 0,     /* polls without pause */
	GANTRY_DELAY_BATCH = 1,    /* pauses for the interval after an unsuccessful poll */
	GANTRY_DELAY_ENTRY = 2,    /* pauses for the interval once for each completion found */
	GANTRY_DELAY_ADAPTIVE = 3, /* without pause for four intervals, then sleeps until a completion */
};

/* Levels of log lines: failures; ports, sessions, channels and regions that are added and removed; details
 * for debugging. */
enum gantry_server_log { GANTRY_SERVER_LOG_ERROR, GANTRY_SERVER_LOG_INFO, GANTRY_SERVER_LOG_DEBUG };
/* Receives a log line, without a line feed. Called by any thread, also by several threads at a time. It must
 * not call this library, and must not throw. */
typedef void gantry_server_log_fn(void *cookie, enum gantry_server_log level, const char *text);

#define GANTRY_CHANNELS_MAX 65535
#define GANTRY_PIECES_MAX 32
#define GANTRY_MOVE_MAX ((size_t)1 << 30) /* largest number of bytes in one transfer */

/* Parameters of a server, filled in by gantry_server_defaults(). The program then sets the members that
 * differ. gantry_server_open() copies the strings. */
struct gantry_server_params {
	size_t size; /* size of this struct in the program's version of the header */
	/*
	 * The server's ports: an address ("10.0.0.9", "fd00::9"), of which only its port and family are used;
	 * a device ("mlx5_0", "mlx5_0:1" with a port); several of these, separated by commas. NULL or "auto":
	 * every port with DC, with all its addresses.
	 */
	const char *address;
	/*
	 * The addresses that tokens may name: address blocks ("10.0.0.0/8, fd00::/8") or "subnet" (those of
	 * the server's ports); "routed" (all addresses to which the kernel has a route through such a port),
	 * "loopback", "self" (the server's own addresses), "link-local"; separated by commas. NULL: the same
	 * list in GANTRY_SERVER_ALLOW of the environment, else "subnet". A token is a capability that the
	 * client has sent: bytes are sent to no other address, and never to an address of several hosts or of
	 * no host. A block with bits set after its length is -EINVAL.
	 */
	const char *allow;

	gantry_server_log_fn *log; /* log function; NULL: nothing is logged */
	void *log_cookie;
	/* highest level that is logged, default INFO; lines above it cost no time */
	enum gantry_server_log log_level;

	/* largest number of channels, 1 to GANTRY_CHANNELS_MAX, default 128; gantry_channel_new() fails
	 * beyond it */
	int channels;
	/* largest number of work requests of a channel in flight, default 640; further ones wait in the
	 * library */
	unsigned cq_depth;
	uint64_t dc_key;   /* DC key, default 0xffeeddcc; must equal the key of the clients */
	int service_level; /* service level, 0 to 15, on Ethernet to 7; default 0 */
	/* acknowledgement timeout of one try: 4.096 us * 2^timeout; 0 to 31, 0: no limit; default 16 */
	int timeout;
	int retry_cnt; /* number of retries after the first try, 0 to 7; default 7 */
	/* number of retries if the client's adapter is not ready (RNR); 7: no limit; default 7 */
	int rnr_retry;
	int hop_limit;     /* hop limit of packets, 1 to 255; default 64 */
	int pkey_index;    /* row of the port's partition table; default 0 */
	int traffic_class; /* traffic class, 0 to 255; default -1: the driver's class of the port, else 96 */
	int max_sge;       /* largest number of pieces in a transfer, 1 to GANTRY_PIECES_MAX; default 10 */
	/* largest number of read requests (PULL) in flight per channel; default 0: chosen automatically */
	int max_rd_atomic;
	int path_mtu;                 /* path MTU in bytes, at most 4096; default 0: the MTU of the port */
	enum gantry_delay delay_mode; /* wait of synchronous transfers; default GANTRY_DELAY_BATCH */
	uint32_t delay_interval_ns;   /* interval of delay_mode in ns; default 5000 */
	/* 1 (default): a channel is reset after a failed transfer, and works again. 0: the channel is fenced:
	 * its calls return -EIO until it is freed. */
	int qp_reset_on_failure;
};

/* Sets *p to the defaults that struct gantry_server_params names. size: size of the struct in the program. */
void gantry_server_defaults(struct gantry_server_params *p, size_t size);

/*
 * Opens a server: finds its ports, and begins to watch them. Several servers may be open. p may be NULL (the
 * defaults). Returns 0; -EINVAL if p is invalid, or the adapter does not support so many channels or so deep
 * a queue; -ENODEV if no device supports DC, or an address is not of this machine; -ENOMEM; or another errno
 * value of the system. gantry_server_open_error() describes the error. The first call must precede any use of
 * the environment by other threads, because it sets variables that tell libibverbs how to treat a device that
 * disappears.
 */
int gantry_server_open(const struct gantry_server_params *p, struct gantry_server **ret_s);
/* Returns the reason why the last gantry_server_open() of this thread failed; "" after a success. */
const char *gantry_server_open_error(void);
/* Frees the remaining channels, deregisters the remaining regions, and closes the server. No other call may
 * be running. After the return none of these objects may be used. The program still owns the memory of the
 * regions. NULL is allowed. */
void gantry_server_close(struct gantry_server *s);

/* Returns 1 if a port of the server is up, otherwise 0: all ports are down, or their device has died and was
 * not re-opened yet. */
int gantry_server_is_alive(const struct gantry_server *s);
/* Writes the i-th port as text, like "mlx5_0:1 10.0.0.9", truncated to size. Returns 0, or -ENOENT if there
 * are at most i ports. */
int gantry_server_port(const struct gantry_server *s, int i, char *text, size_t size);
/* Sets the least important level that is logged. */
void gantry_server_set_log_level(struct gantry_server *s, enum gantry_server_log most);
/* Returns the name of a status of verbs (enum ibv_wc_status), such as "remote access error". */
const char *gantry_status_text(int wc_status);

/* ---- memory ---- */

/* Allocates whole pages of memory for a region, to be freed by free(). Returns NULL if size is 0 or there is
 * no memory. */
void *gantry_host_alloc(size_t size);

/*
 * Registers [mem, mem + len) with every port; neither needs to be aligned, and regions may overlap. The
 * memory stays the program's, and must remain until gantry_region_del(). Returns 0; -EINVAL: mem or len is 0;
 * -ENODEV: every device has died and was not re-opened yet; -ENOMEM: also if the limit of locked memory is
 * too small; another errno value of the driver, such as -EFAULT for unmapped memory.
 */
int gantry_region_add(struct gantry_server *s, void *mem, size_t len, struct gantry_region **ret_r);
/*
 * Removes a region: after a return of 0 no device accesses the memory any longer. -EBUSY: an operation in it
 * has not ended (gantry_channel_poll() has not returned it); another errno value: a device did not deregister
 * the region. In both cases the region still exists, and the program calls again later. Waits for a device
 * that has died to be closed, which takes some seconds. NULL is allowed: 0.
 */
int gantry_region_del(struct gantry_region *r);

/* ---- channels ---- */

enum gantry_dir {
	GANTRY_PUSH = 0, /* to the client, for its GET */
	GANTRY_PULL = 1, /* from the client, for its PUT */
};

/* A piece of memory in a region, for one transfer. */
struct gantry_piece {
	struct gantry_region *region;
	void *mem; /* memory of the piece: [mem, mem + len) lies in the region */
	size_t len;
};

/* Makes a channel. The queue pairs of the channel are made for its first token. Returns 0; -ENOSPC if there
 * are gantry_server_params.channels channels; -ENODEV; -ENOMEM. */
int gantry_channel_new(struct gantry_server *s, struct gantry_channel **ret_c);
/*
 * Frees a channel. Unfinished operations end without a report, and after the return no byte of their pieces
 * is accessed any longer. Any thread may call this function, also a thread that never used the channel.
 * Returns 0, also for NULL; -EBUSY if another thread is in a call on the channel, which is then not freed.
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
 * is an address in the token's window. n: 1 to gantry_server_params.max_sge. The pieces and the token are not
 * read after the return. The device uses the pieces' memory until gantry_channel_poll() has returned handle,
 * which can be any pointer. Work requests beyond the depth of the queue wait in the library. Returns 0, or an
 * error of a transfer; then handle is not returned later.
 *
 * The call takes no lock, allocates no memory and makes no system call, with three exceptions: the first use
 * of a port, or of an address that is not among the last eight, which can take some milliseconds, or up to 5
 * s if there is no answer; an allocation for every cq_depth operations that have not been polled; and the
 * repair after a failure.
 */
int gantry_channel_start(struct gantry_channel *c, enum gantry_dir d, const struct gantry_piece *p, int n,
			 uint64_t remote, const char *token, void *handle);

/*
 * Takes up to max operations that have ended, in the order in which they ended, without waiting. Returns
 * their number, 0 if there are none. If an operation failed, its entry has the status; the other operations
 * on the wire are then flushed (IBV_WC_WR_FLUSH_ERR), and the channel is reset before the return. An
 * operation whose completion does not arrive ends with IBV_WC_RESP_TIMEOUT_ERR 100 ms after the limit of the
 * transport, and never if this limit is 0 (timeout). Errors: -EINVAL if done is NULL or max is negative; -EIO
 * if another thread uses the channel, or if it is fenced and no operation has ended; -ENODEV if no port can
 * be used and no operation has ended.
 */
int gantry_channel_poll(struct gantry_channel *c, struct gantry_done *done, int max);

/*
 * Waits until gantry_channel_poll() can return an operation, at most timeout_ms (-1: without a limit).
 * Returns 1 if it can; 0 after the timeout, or if no operation is in flight; -EIO if another thread uses the
 * channel. The thread sleeps during the wait, and a signal does not end it.
 */
int gantry_channel_wait(struct gantry_channel *c, int timeout_ms);
/*
 * Returns the channel's descriptor for poll() and epoll. It is readable when gantry_channel_poll() may return
 * an operation, but only after gantry_channel_wait(c, 0) has returned 0. Before each sleep on the descriptor
 * the program therefore calls gantry_channel_wait(c, 0), and sleeps only if the result is 0.
 */
int gantry_channel_fd(struct gantry_channel *c);

/* value of delay_ns that stands for gantry_server_params.delay_interval_ns */
#define GANTRY_INTERVAL UINT32_MAX

/*
 * Moves bytes as gantry_channel_start() does, and waits for the end. Returns the number of bytes, or an error
 * of a transfer. After the return, with any result, the device does not access the pieces any longer.
 * *ret_wc_status (may be NULL): an enum ibv_wc_status, written only if a completion arrived or was overdue.
 * delay_ns: interval of delay_mode. Operations that were started before continue, and gantry_channel_poll()
 * returns them.
 */
ssize_t gantry_channel_move(struct gantry_channel *c, enum gantry_dir d, const struct gantry_piece *p, int n,
			    uint64_t remote, const char *token, uint32_t delay_ns, int *ret_wc_status);

#ifdef __cplusplus
}
#endif

#endif
