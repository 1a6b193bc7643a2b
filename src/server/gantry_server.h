/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgantry-server: the server's side of object transfers by RDMA, for a program that speaks to its clients
 * itself.
 *
 * A client sends a token, a line of text that names a window of its memory; its transport, and the
 * request, are the program's business.  This library moves bytes between that window and memory of the program:
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
 * Threads: a server and its regions may be used by any thread at any time, and channels made and freed.  A
 * channel is one thread's at a time; it may be another's the next time.  A second thread that uses it
 * meanwhile gets -EIO, a line in the log, and does no harm.  A thread is not to be cancelled in a call.  The
 * library has threads of its own, with all signals blocked.
 *
 * Forks: a child has none of what its parent has opened: calls on it are -ENODEV, and freeing and closing do
 * nothing, as at the end of a child that exits.  It may open a server of its own.
 *
 * Errors: functions that can fail return a negative errno value, and each failure has one line in the log
 * (gantry_server_params.log) that names the cause and, where there is one, the cure.  Errors of transfers:
 *
 *   -ENODEV        no port of the server can be used: it is down, or its device has died and is not back yet;
 *                  or the server was opened before a fork, by another process
 *   -EAFNOSUPPORT  the token's address is of another family (IPv4, IPv6) than the server's
 *   -ENOMEM        no memory
 *   -EIO           everything else: an argument, a token that cannot be read, a range outside of the token's
 *                  window or of a region, more than GANTRY_MOVE_MAX, an address that is not allowed or cannot
 *                  be reached, a channel that another thread uses or that is fenced, a transfer that failed
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

/* The way in which a synchronous transfer waits for its completion; the interval is
 * gantry_server_params.delay_interval_ns, or the call's. */
enum gantry_delay {
	GANTRY_DELAY_NONE = 0,     /* without pause */
	GANTRY_DELAY_BATCH = 1,    /* pauses for the interval after an unsuccessful poll */
	GANTRY_DELAY_ENTRY = 2,    /* pauses for the interval once for each completion found */
	GANTRY_DELAY_ADAPTIVE = 3, /* without pause for four intervals, then sleeps until a completion */
};

/* Failures; ports, sessions, channels and regions that are added and removed; details for debugging. */
enum gantry_server_log { GANTRY_SERVER_LOG_ERROR, GANTRY_SERVER_LOG_INFO, GANTRY_SERVER_LOG_DEBUG };
/* Takes one line without its end.  By any thread, also by several at once; it must not call this library, nor
 * throw. */
typedef void gantry_server_log_fn(void *cookie, enum gantry_server_log level, const char *text);

#define GANTRY_CHANNELS_MAX 65535
#define GANTRY_PIECES_MAX 32
#define GANTRY_MOVE_MAX ((size_t)1 << 30) /* of one transfer */

/* Filled in by gantry_server_defaults(); then set the differing members. Strings are copied by
 * gantry_server_open(). */
struct gantry_server_params {
	size_t size; /* of this struct in the program's version */
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
	 * client has sent: bytes are sent to no other address, and to none that stands for several hosts or
	 * for none. A block with bits set after its length is -EINVAL.
	 */
	const char *allow;

	gantry_server_log_fn *log; /* NULL: no log */
	void *log_cookie;
	enum gantry_server_log log_level; /* INFO; levels above it cost nothing */

	int channels;      /* 128: gantry_channel_new() beyond them fails; 1 to GANTRY_CHANNELS_MAX */
	unsigned cq_depth; /* 640: work requests of a channel in flight; further ones wait in the library */
	uint64_t dc_key;   /* 0xffeeddcc; must equal the clients' */
	int service_level; /* 0; 0 to 15, on Ethernet to 7 */
	int timeout;       /* 16; 4.096 us * 2^timeout without an answer are one try; 0 to 31, 0: no limit */
	int retry_cnt;     /* 7; tries after the first; 0 to 7 */
	int rnr_retry;     /* 7; retries if the client's adapter is not ready; 7: no limit */
	int hop_limit;     /* 64; 1 to 255 */
	int pkey_index;    /* 0; row of the port's table of partitions */
	int traffic_class; /* -1: the driver's class of the port, else 96; 0 to 255 */
	int max_sge;       /* 10; pieces of one transfer; 1 to GANTRY_PIECES_MAX */
	int max_rd_atomic; /* 0: automatic; requests of PULLs in flight per channel */
	int path_mtu;      /* 0: the port's, 4096 at most */
	enum gantry_delay delay_mode; /* BATCH */
	uint32_t delay_interval_ns;   /* 5000 */
	/* 1: a channel is reset after a failed transfer, and works again. 0: it is fenced then: -EIO, until
	 * it is freed. */
	int qp_reset_on_failure;
};

/* Fills in *p, of which size bytes exist in the program, with the defaults named above. */
void gantry_server_defaults(struct gantry_server_params *p, size_t size);

/*
 * Opens a server: finds its ports, and begins to watch them.  Several servers may be open.  p may be NULL
 * (the defaults).  0; -EINVAL: p, or more channels or a deeper queue than the adapter has; -ENODEV: no device
 * can do DC, or an address is not here; -ENOMEM; another errno value of the system.
 * gantry_server_open_error() says more.  Call it before other threads use the environment for the first time:
 * libibverbs is told by it how to treat a device that goes away.
 */
int gantry_server_open(const struct gantry_server_params *p, struct gantry_server **ret_s);
/* Returns the reason why the last gantry_server_open() of this thread failed; "" after success. */
const char *gantry_server_open_error(void);
/* Frees the remaining channels, deregisters the remaining regions, and closes the server. No other call may
 * be running; afterwards none of them may be used. Memory stays the program's. NULL is allowed. */
void gantry_server_close(struct gantry_server *s);

/* Returns 1 when a port of the server is up, else 0: all are down, or their device has died and is not
 * back yet, for which channels and regions wait. */
int gantry_server_is_alive(const struct gantry_server *s);
/* Writes a port, like "mlx5_0:1 10.0.0.9", truncated to size. 0; -ENOENT: there are at most i ports. */
int gantry_server_port(const struct gantry_server *s, int i, char *text, size_t size);
/* Sets the least important level that is logged. */
void gantry_server_set_log_level(struct gantry_server *s, enum gantry_server_log most);
/* Returns the name of a status of verbs (enum ibv_wc_status), such as "remote access error". */
const char *gantry_status_text(int wc_status);

/* ---- memory ---- */

/* Allocates whole pages for a region; NULL: size is 0, or there is no memory.  To be freed by free(). */
void *gantry_host_alloc(size_t size);

/*
 * Registers [mem, mem + len) with every port; neither needs to be aligned, and regions may overlap. The
 * memory stays the program's, and must remain until gantry_region_del(). 0; -EINVAL: mem or len is 0;
 * -ENODEV: every device has died and is not back yet; -ENOMEM: also if the limit of locked memory is too
 * small; another errno value of the driver, such as -EFAULT for unmapped memory.
 */
int gantry_region_add(struct gantry_server *s, void *mem, size_t len, struct gantry_region **ret_r);
/*
 * Removes a region: after a return of 0 no device accesses the memory any longer. -EBUSY: an operation in it
 * has not ended (gantry_channel_poll() has not returned it); another errno value: a device keeps it; in both
 * cases the region still exists: call again later. Waits for a device that has died to be closed, which takes
 * some seconds. NULL is allowed: 0.
 */
int gantry_region_del(struct gantry_region *r);

/* ---- channels ---- */

enum gantry_dir {
	GANTRY_PUSH = 0, /* to the client: its GET */
	GANTRY_PULL = 1, /* from the client: its PUT */
};

/* A part of a region. */
struct gantry_piece {
	struct gantry_region *region;
	void *mem; /* [mem, mem + len) lies in the region */
	size_t len;
};

/* Makes a channel. 0; -ENOSPC: there are gantry_server_params.channels; -ENODEV; -ENOMEM. Its queue pairs are
 * made at its first token. */
int gantry_channel_new(struct gantry_server *s, struct gantry_channel **ret_c);
/*
 * Frees a channel. Unfinished operations end without being reported: after the return, no byte of their
 * pieces is accessed any longer. By any thread, also by another than the one that used it. 0; -EBUSY: another
 * thread is in a call on it, and it is not freed. NULL is allowed: 0.
 */
int gantry_channel_free(struct gantry_channel *c);

/* The result of an operation. */
struct gantry_done {
	void *handle;
	uint64_t bytes; /* moved: all, or 0 */
	int wc_status;  /* enum ibv_wc_status; 0: success */
	int error;      /* 0 or -EIO */
};

/*
 * Begins to move all bytes of n pieces, one after the other, to or from the client's memory at remote, which
 * is an address in the token's window.  n: 1 to gantry_server_params.max_sge.  The pieces and the token are
 * not looked at after the return; the pieces' memory is the device's until gantry_channel_poll() has returned
 * handle, which may be any pointer.  What is beyond the queue's depth waits in the library.  0, or an error
 * of a transfer, and handle will not come.
 *
 * No lock, no allocation and no system call, but: when the channel meets an address that is none of the last
 * eight, or a port for the first time, which may take some milliseconds, or up to 5 s where nobody answers;
 * for every cq_depth operations that have not been polled (memory); after a failure.
 */
int gantry_channel_start(struct gantry_channel *c, enum gantry_dir d, const struct gantry_piece *p, int n,
			 uint64_t remote, const char *token, void *handle);

/*
 * Takes up to max operations that are over, in the order in which they ended; returns how many, 0 without
 * waiting.  Of one that failed the entry says so; whatever else was on the wire is flushed then
 * (IBV_WC_WR_FLUSH_ERR), and the channel is reset, before this returns.  One whose completion does not come
 * ends IBV_WC_RESP_TIMEOUT_ERR 100 ms after the transport's own limit; with a limit of 0 (timeout) never.
 * -EINVAL: done is NULL, or max below 0; -EIO: another thread uses the channel, or it is fenced and there is
 * nothing to return; -ENODEV: no port can be used, and there is nothing to return.
 */
int gantry_channel_poll(struct gantry_channel *c, struct gantry_done *done, int max);

/*
 * Waits until gantry_channel_poll() may return an operation; -1: without limit. 1: it may; 0: timeout, or no
 * operation is in flight; -EIO: another thread uses the channel. Sleeps; a signal does not end it.
 */
int gantry_channel_wait(struct gantry_channel *c, int timeout_ms);
/*
 * Returns the channel's descriptor for poll() and epoll, which is readable when gantry_channel_poll() may
 * return an operation. It becomes readable only after gantry_channel_wait(c, 0) has returned 0, each time
 * again: call that, and sleep if it returned 0.
 */
int gantry_channel_fd(struct gantry_channel *c);

#define GANTRY_INTERVAL UINT32_MAX /* gantry_server_params.delay_interval_ns */

/*
 * Moves bytes as gantry_channel_start(), and returns when it is over: their number, or an error of a
 * transfer.  Whatever it returned, the device does not touch the pieces any more.  *ret_wc_status (NULL: not
 * asked for): enum ibv_wc_status, written only when a completion came, or stayed away.  delay_ns: the
 * interval of delay_mode.  Operations that were started before go on, and are for gantry_channel_poll() as
 * before.
 */
ssize_t gantry_channel_move(struct gantry_channel *c, enum gantry_dir d, const struct gantry_piece *p, int n,
			    uint64_t remote, const char *token, uint32_t delay_ns, int *ret_wc_status);

#ifdef __cplusplus
}
#endif

#endif
