/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of libgantry. Programs use gantry.h instead.
 *
 *     context.c    gantry_open, gantry_close
 *     call.c       the common part of all calls to a server
 *     transfer.c   put, get: attempts and fallbacks
 *     stage.c      the stage, host memory for copies from and to memory of a device: stage.h
 *     staged.c     puts and gets through the stage
 *     stripe.c     the lock of the map, in parts: stripe.h
 *     bounce.c     HTTP bodies through the stage
 *     plain.c      head, delete, buckets
 *     choice.c     choice of the port and the transport for a token: choice.h
 *     config.c     cuobj.json, cufile.json, options
 *     http.c       an HTTP exchange by libcurl
 *     json.c       the tolerant JSON reader
 *     list.c       lists of objects, buckets, uploads, parts
 *     page.c       a page of a list
 *     rc.c         connections of RC, between calls: rc.h; rc_connect.c: how one is made
 *     reply.c      interpretation of answers (pure)
 *     device.c     ports, DC targets
 *     memory.c     registrations: region.h
 *     register.c   registrations that programs request
 *     window.c     the windows of calls
 *     map.c        look-up of the registration of an address (pure)
 *     mint.c       tokens for programs and callbacks
 *     slot.c       memory for the texts of tokens
 *     gpu.c        memory that the CPU cannot read: gpu.h; drivers: gpu_cuda.c, gpu_rocm.c
 *     events.c     ports that go down and come up
 *     shared.c     the shared context of a process; forks.c: the number of forks
 *     log.c        log lines for the program
 *     targets.c    idle DC targets, between calls
 *     ops.c        calls in the form of cuObjClient
 *     sign.c       AWS Signature Version 4
 *     sum.c        the checksum of a put
 *     upload.c     uploads in parts, copies on the server
 *     url.c        encoding of URLs
 *     xml.c        answers in XML, read by libxml2
 *
 * Locks, in the order in which a thread takes them: g->map_lock, a read-write lock in parts (stripe.h), protects the map of
 * registrations and the addresses of ports in tokens; r->lock of a registration protects its slots; g->lock
 * protects idle targets, free slots and curl handles. No lock is held during calls of verbs, network I/O or
 * callbacks.
 */
#ifndef GANTRY_CLIENT_CLIENT_INT_H
#define GANTRY_CLIENT_CLIENT_INT_H

#include "base/list.h"
#include "client/choice.h"
#include "client/gantry.h"
#include "client/gpu.h"
#include "client/stripe.h"
#include "token/token.h"

#include <pthread.h>
#include <stdio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORTS_MAX 16
/* flag of gantry_open_shared(): ports are of use only for tokens of programs */
#define OPEN_FOR_TOKENS (1u << 31)
/* number of DC targets of a port, one for each stripe: revoking a token invalidates all tokens with the same DC target */
#define SHARED_MAX 16
#define DEFAULT_DC_KEY 0xffeeddccull /* default DC key (protocol.md item 25) */
#define HOP_LIMIT 64                 /* hop limit of the packets (protocol.md section 6) */

struct ibv_context;
struct ibv_pd;
struct ibv_cq;
struct ibv_srq;
struct ibv_qp;
struct ibv_mr;

/* ---- configuration: config.c ---- */

#define CONFIG_DEVICES_MAX 16

struct config {
	char device[CONFIG_DEVICES_MAX][64]; /* names or addresses of ports; device_nr 0: automatic choice */
	int device_nr;
	uint64_t dc_key;
	bool has_dc_key;
	int traffic_class; /* traffic class; -1: the class of the port */
	int service_level, path_mtu /* path MTU in bytes; 0: the MTU of the port */, pkey_index;
	bool no_dmabuf; /* true: memory of a device is registered only through a peer-memory driver */
	enum gantry_transport transport;
	/* beginning of the URLs of the server to which tokens for programs are sent; "": unknown */
	char rc_endpoint[256];
	bool is_multipath;
	int retries;        /* number of retries after a callback has failed; used if is_multipath */
	int retry_delay_ms; /* pause in ms before each retry, if there is no other port */
	char origin[256];   /* path of the configuration file; "": none */
};

/* Parses a JSON text into a configuration. Returns 0, or -EINVAL with a sentence in err. */
int config_parse(const char *text, size_t len, struct config *c, char *err, size_t err_len);
/* Reads the options and the configuration file into *ret_c. Returns 0, or -errno with a sentence in err. */
int config_load(const struct gantry_options *o, struct config *ret_c, char *err, size_t err_len);

/* ---- JSON: json.c ---- */

enum json_type { JSON_STRING, JSON_NUMBER, JSON_TRUE, JSON_FALSE, JSON_NULL };
/* Receives a scalar value. key: name of the value in its object; "": none. text: decoded string or number,
 * with a NUL at its end. A result other than 0 ends the parser, which returns this result. */
typedef int json_fn(void *cookie, const char *key, enum json_type type, const char *text, size_t len);

/* Reads a JSON text and calls fn for every scalar value at any depth. Accepts comments (//, # and block
 * comments), trailing commas and a byte order mark, which configuration files may have. Allocates no memory;
 * the depth is at most 32, a string at most 1023 bytes. Returns 0; the result of fn that ended the parser; or
 * -EINVAL with the line in *ret_line and the reason in *ret_why. */
int json_parse(const char *text, size_t len, json_fn *fn, void *cookie, int *ret_line, const char **ret_why);

/* ---- ports and DC targets: device.c ---- */

struct port {
	char name[80];
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	uint8_t port_num;
	bool is_ethernet, has_wish;
	bool has_dc;          /* true: the port makes DC targets; false: it has RC alone */
	uint8_t wish[16];     /* address by which the configuration names the port, if has_wish */
	_Atomic bool is_down; /* true: the port is down, according to its last event */
	/* lid, gid, gid_index: the port's address in tokens; protected by g->map_lock */
	uint16_t lid;
	uint8_t gid[16];
	_Atomic uint8_t gid_index;
	_Atomic unsigned changes; /* number of times that the address has changed */
	int mtu;                  /* path MTU, an enum ibv_mtu */
	uint8_t traffic_class, service_level;
	uint16_t pkey_index;
	uint64_t dc_key;
	/* The targets of tokens from gantry_token_get() and of callbacks; NULL: unused entry. A target exists
	 * until the port is closed or gantry_token_drop() destroys it. Protected by g->map_lock. */
	struct target *shared[SHARED_MAX];
	struct target *free; /* idle targets for puts and gets; protected by g->lock */
	/* shared targets that were made with a former address of the port; protected by g->map_lock */
	struct target *retired;
};

/* A DC target, or the client's end of a connection of RC. No two puts or gets use a target at the same time, so
 * destroying it affects one call only. */
struct target {
	struct rc_conn *conn; /* connection of RC; NULL: a DC target */
	struct ibv_qp *qp;
	uint32_t dctn;
	unsigned changes;     /* value of port.changes when the target was made */
	_Atomic unsigned out; /* number of tokens in use that name this target */
	uint64_t made_ns;     /* clock_ns() when the target was made */
	struct target *next;
};

/* Opens the ports that c names; if c names none, every usable port. Returns 0 and the number of ports in
 * *ret_nr; if this number is 0, the reason is in why. Returns -ENODEV if a named port cannot be used. */
int ports_open(const struct config *c, struct port *ports, int *ret_nr, char *why, size_t why_len);
void port_close(struct port *p);
/* The address of a port in the form that tokens contain. */
struct address {
	uint8_t gid[16], gid_index;
	uint16_t lid;
};
/* Reads the address of a port from the device. Returns false if the port has no address now. */
bool port_address(const struct port *p, struct address *ret);
struct target *target_new(struct port *p);
/* Makes a queue pair of RC, in RESET. Returns NULL and sets errno on failure. */
struct ibv_qp *port_qp(struct port *p);
/* Destroys a target. Returns 0; -errno: the driver failed, and servers may still use the target. */
int target_free(struct target *t);

/* ---- memory: memory.c ---- */

enum slot_state { SLOT_FREE, SLOT_OUT, SLOT_DEAD };

/* A slot: memory for the text of a token. */
struct token_slot {
	_Alignas(128) struct token_slot *next; /* next slot in the list of free, used or dead slots */
	struct token_slot *prev;               /* previous slot in the list of used slots */
	_Atomic(struct region *) region;       /* registration of the token; NULL: none */
	uint32_t dctn;                         /* number of the DC target that the token names */
	uint8_t state, port, shared;
	_Atomic(struct rc_conn *) conn; /* connection of RC that the token names; NULL: none */
	char text[TOKEN_DC_LEN + 1];
};
_Static_assert(sizeof(struct token_slot) == 128, "a page holds 32");

/* Number of token texts of callbacks that a registration keeps. A new text replaces the oldest one. So a
 * program may read a text for some time after its callback has returned. */
#define REGION_TEXTS 64

struct region {
	struct list link; /* link in g->regions */
	char *ptr;
	size_t size;
	unsigned flags;
	bool is_device;         /* true: the CPU must not access the memory */
	bool is_temporary;      /* true: the registration was made for one call */
	bool is_stale;          /* true: replaced by another registration; the last user frees this struct */
	bool is_staged;         /* true: no port registered the memory: the stage moves its bytes */
	struct gpu_ids *ids;    /* driver's ids of the registered allocations; NULL: unknown */
	_Atomic unsigned users; /* number of users (calls); raised from 0 only under g->map_lock */
	unsigned count;         /* registrations by the program (GANTRY_COUNTED); protected by g->map_lock */
	struct ibv_mr *mr[PORTS_MAX]; /* memory region on each port; NULL: registering failed */
	pthread_mutex_t lock;
	struct token_slot *free, *out;
	struct token_slot **recent; /* last REGION_TEXTS texts of callbacks; NULL: no callback yet */
	unsigned recent_at;
};

/* ---- the map of registrations: map.c ---- */

struct held {
	uintptr_t start, end;
	struct region *region;
	uint32_t above; /* index of the nearest earlier entry with a larger `end` than this entry */
};

struct map {
	struct held *at;
	size_t nr, cap;
};

/* Adds a registration. Returns 0 or -ENOMEM. */
int map_add(struct map *m, struct region *r);
/* Removes a registration, if it is in the map. */
void map_remove(struct map *m, const struct region *r);
/* Replaces the registration `old` by r, of the same memory. Returns false if `old` is not in the map. */
bool map_replace(struct map *m, const struct region *old, struct region *r);
/* Returns the smallest writable, else the smallest read-only registration that contains [start, end). */
struct region *map_find(const struct map *m, uintptr_t start, uintptr_t end);
/* Returns the index of the first registration that begins at or after start. */
size_t map_from(const struct map *m, uintptr_t start);

struct gantry {
	pthread_mutex_t lock;
	unsigned flags;
	enum gantry_dialect dialect;
	unsigned connect_timeout_ms, timeout_ms;
	/* keys for signatures; access_key NULL: requests are not signed */
	char *access_key, *secret_key, *session_token, *region;
	char *ca_file; /* path of the certificates for https; NULL: those of the system */
	uint64_t max_callback_bytes;
	bool no_dmabuf;       /* true: dma-bufs exported by CUDA are not used */
	int retries;          /* number of retries of a failed callback, on other ports */
	int retry_delay_ms;   /* pause in ms before each retry, if there is no other port */
	gantry_copy_fn *copy; /* copies from and to memory of a device; NULL: none */
	void *copy_cookie;
	struct stage *stage; /* the stage of the context (stage.h); NULL: there is none */
	struct gantry_ops ops;
	char why_no_rdma[160];
	struct port port[PORTS_MAX];
	int port_nr;
	enum gantry_transport transport; /* transport that the program requests, or AUTO */
	struct rc *rc;                   /* connections of RC; NULL: none are made */
	char *rc_endpoint;               /* server of tokens for programs; NULL: unknown, so they are of DC */
	struct reach reach[REACH_MAX];
	struct lack lack[LACKS_MAX]; /* transports that servers do not have */
	/* condition on which calls wait, choice_waits of them, for the results of other calls (choice.c) */
	pthread_cond_t settled;
	int choice_waits;
	struct stripe map_lock[STRIPES];
	struct map map; /* map of the registrations of programs, and of the stage */
	/* number of entries of map that the library made; protected by map_lock */
	size_t own_regions;
	struct list regions;           /* registrations that are not in map; protected by g->lock */
	_Atomic(struct slabs *) slabs; /* memory of token slots (slot.c) */
	struct token_slot *free_slots, *dead, *dead_last;
	unsigned dead_nr;
	/* Fields of events.c: the thread that watches the ports. */
	pthread_t watcher;
	int wake_fd;
	bool watcher_runs;
	/* Fields of log.c: the log function, and the lock that protects it. */
	pthread_rwlock_t log_lock;
	_Atomic(gantry_log_fn *) log;
	void *log_cookie;
	_Atomic int log_most;
	/* shared.c */
	unsigned forks; /* value of forks when the context was opened */
	struct handle *free_handles;
	/* targets.c */
	uint64_t target_life_ns; /* lifetime of an idle target in ns; 0: a target ends with its call */
	pthread_t reaper;
	pid_t reaper_pid;
	pthread_cond_t reap;
	/* reaper_waits: true: the reaper, which destroys old idle targets, sleeps because no target is
	 * idle */
	bool reaper_runs, reaper_waits, closes;
	struct target *undead; /* targets that the driver could not destroy yet */
	uint64_t undead_again_ns;
};

struct window {
	struct gantry *g;
	struct region *region;
	bool owns_region; /* true: the registration was made for this window only */
	struct port *port;
	struct target *target;
	enum gantry_transport transport;
	bool is_final; /* true: window_open() failed for a reason that also holds without a token */
	char token[96];
};

/* Returns the registration that contains [ptr, ptr + size), and adds a user to it; region_put() removes the
 * user. Returns NULL if there is no such registration. */
struct region *region_get(struct gantry *g, const void *ptr, size_t size);
/* Finds the registration that contains [ptr, ptr + size), and adds a user to it. If the driver reports that
 * the memory was allocated again, registers the new allocation. Returns 0, with *ret_region NULL if the
 * memory is not registered; -EFAULT: the memory was freed. */
int region_take(struct gantry *g, const void *ptr, size_t size, struct region **ret_region);
void region_put(struct region *r);
void regions_close(struct gantry *g);
/* Finds a registration without adding a user; NULL: none. The caller holds g->map_lock. */
struct region *region_at(const struct gantry *g, const void *ptr, size_t size);

/* ---- tokens: mint.c, slot.c ---- */

/* Writes a token to text for the memory [ptr, ptr + size) of registration r, and the target dctn of port p.
 * Port p must have registered r. The caller holds g->map_lock. */
int mint(const struct gantry *g, const struct region *r, const struct port *p, uint32_t dctn, const void *ptr,
	 size_t size, char text[TOKEN_DC_LEN + 1]);
/* Takes a free slot for a token of r. Returns NULL if there is no memory. The caller holds g->map_lock. */
struct token_slot *slot_take(struct gantry *g, struct region *r);
/* Frees a slot. Returns false if the slot was not in use. The caller holds g->map_lock. */
bool slot_give(struct gantry *g, struct token_slot *s);
/* Frees a slot after REGION_TEXTS more calls for r; until then the slot's text is readable. r has a user. */
void slot_give_late(struct region *r, struct token_slot *s);
/* Returns the slot that contains a text; NULL: the text is not from this library. */
struct token_slot *slot_of(struct gantry *g, const char *text);
/* Detaches all slots from a registration that ends. Unused slots become free. Slots in use enter g->dead, and
 * become free when g->dead has DEAD_MAX newer slots. If other threads may have tokens of r, the caller holds
 * map_lock for writing. */
void slots_release(struct gantry *g, struct region *r);
/* Frees the memory of all slots of the context. */
void slots_close(struct gantry *g);

/* ---- ports that go down: events.c ---- */

/* Starts to watch the ports for events. Returns 0 or -errno. */
int events_start(struct gantry *g);
void events_stop(struct gantry *g);

/* ---- one context a process: shared.c, forks.c ---- */

/* Number of forks that led to this process; only shared.c changes it. */
extern _Atomic unsigned forks;
/* Returns true if this process has opened the context; false: its parent did, before a fork. */
bool is_mine(const struct gantry *g);
/* Removes a user. Returns true if the caller must close g: no user is left, or g is not shared. */
bool shared_give(struct gantry *g);

/* ---- log lines for the program: log.c ---- */

/* Returns true if lines of this level are logged. */
bool is_logged(const struct gantry *g, enum gantry_log_level level);
#define KERNEL_ENOTSUPP 524 /* ENOTSUPP of the kernel, which some drivers return to programs */
/* Returns the text of a positive errno value; knows KERNEL_ENOTSUPP, unlike strerror(). */
const char *error_text(int error);
/* Passes a line to the program's log function. */
void client_log(struct gantry *g, enum gantry_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The memory that a call moves. */
struct memory {
	char *ptr;
	size_t size;
	struct region *region; /* registration of the memory, which counts this call as a user; NULL: none */
	bool is_device;        /* true: the CPU must not access the memory */
};

struct call;
/* Makes a token for a request of a call to a server (a result of server_of()): chooses a port and a transport,
 * registers the memory of the call with this port if it is not registered, and takes a target or a connection.
 * Returns 0, or -errno with the reason in why: -EOPNOTSUPP: the server has no transport of the port;
 * -EHOSTUNREACH: the server cannot connect to the port. */
int window_open(struct call *c, uint64_t server, bool is_put, struct window *w, char *why, size_t why_len);
/* Ends the token of a call. clean: true: the answer guarantees that the server no longer accesses the memory;
 * false: the target is destroyed or, if this fails, the memory is deregistered. Returns 0; -EBUSY: both
 * failed, and the server may still access the memory. */
int window_close(struct window *w, bool clean);

/* Makes a token for a callback, with the arguments and errors of gantry_token_get(). *ret_slot: slot with the
 * text. The call adds a user to *ret_region; token_after_callback() frees the slot and removes this user. */
int token_for_callback(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
		       struct region **ret_region, struct token_slot **ret_slot);
/* Ends the token of a callback: frees its slot, and removes the user of r. clean: false: the server may still
 * use a connection of RC, which is destroyed. */
void token_after_callback(struct gantry *g, struct region *r, struct token_slot *s, bool clean);

/* ---- DC targets between calls: targets.c ---- */

/* Reads the address of a port again, after a failed operation. Returns true if it has changed. */
bool port_reread(struct gantry *g, struct port *p);

/* Initializes the fields of targets.c in a context. Returns 0 or -errno. */
int targets_init(struct gantry *g);
/* Destroys a target. Returns 0; -errno: the driver failed, and the library tries again later. */
int target_end(struct gantry *g, struct target *t);
/* Destroys all idle targets. No call may be running. */
void targets_close(struct gantry *g);
/* Takes an idle target younger than target_life_ns, or makes one. Returns NULL and sets errno on failure. */
struct target *target_take(struct gantry *g, struct port *p);
/* Adds a target that no server uses any longer to the idle targets; at the age target_life_ns it is
 * destroyed. Returns 0; -errno: the target has this age already, and the driver could not destroy it. */
int target_give(struct gantry *g, struct port *p, struct target *t);

/* ---- HTTP: http.c, reply.c ---- */

/* The data of an HTTP answer, which http.c fills in and reply.c interprets. */
struct reply {
	int status;
	bool has_reply, has_bytes, has_content_length, has_range, has_total;
	bool has_request_id; /* true: the answer has a request id, as answers of S3 servers have */
	bool is_chunked;     /* true: the body is chunked, so its end can be recognised */
	int code;            /* value of x-amz-rdma-reply, if has_reply; -1: invalid */
	uint64_t bytes;      /* value of x-amz-rdma-bytes-transferred, else of x-amz-rdma-bytes */
	uint64_t content_length;
	/* first byte, last byte and total size in Content-Range, which may have only the total size */
	uint64_t range_first, range_last, range_total;
	uint64_t body_bytes;            /* number of bytes of the body received */
	bool body_overflow;             /* true: more bytes arrived than the buffer holds */
	unsigned retry_after_s, copies; /* copies: value of x-gantry-copies; 0: absent */
	uint64_t first_ns; /* time of clock_ns() at the first byte of the answer; 0: there is no answer */
	char etag[136], reason[160], checksum[64] /* x-amz-rdma-checksum */, stored_checksum[16],
		last_modified[40];
	char error[1024]; /* beginning of the body of an error answer */
	size_t error_len;
};

void reply_init(struct reply *r);
/* Stores the data of a header line, given without its line end. */
void reply_header(struct reply *r, const char *line, size_t len);
/* Copies a text from the server to out. A question mark replaces each character that a terminal would
 * interpret. Returns true if no character was replaced. */
bool reply_copy(char *out, size_t cap, const char *text);
/* Passes name (in lower case) and value of a header line to fn, safe for a terminal; ignores other lines. */
void reply_header_to(const char *line, size_t len, gantry_header_fn *fn, void *cookie);
/* Copies the text of the element <name> in an error body to out, without XML escapes; "": none. */
void reply_xml(const struct reply *r, const char *name, char *out, size_t cap);

enum verdict {
	VERDICT_RDMA,     /* the transfer by RDMA succeeded */
	VERDICT_BODY,     /* success; the body of the answer is the data */
	VERDICT_DECLINED, /* the server declines RDMA: repeat the request over HTTP */
	VERDICT_FAILED,   /* the transfer failed: repeat the request once with a new token, then over HTTP */
	VERDICT_ERROR,    /* an error of the request itself: do not repeat it */
	VERDICT_BUSY,     /* 503: repeat the request later */
	VERDICT_END,      /* 416: the offset is at or beyond the end of the object */
	VERDICT_NR
};
/* Interprets the answer to a put (judge_put()) or a get (judge_get()) with a token; protocol.md 3, 4.1, 4.2,
 * item 116. *ret_why: the reason, if RDMA was not used. *ret_bytes: number of bytes moved by RDMA. */
enum verdict judge_put(const struct reply *r, enum gantry_dialect d, uint64_t size, const char **ret_why);
enum verdict judge_get(const struct reply *r, enum gantry_dialect d, uint64_t offset, uint64_t size,
		       uint64_t *ret_bytes, const char **ret_why);
/* Interprets the answer to a request without a token. */
enum verdict judge_plain(const struct reply *r);
/* Returns true if the body of a get of size bytes at offset is complete: it has this size, or ends at the end
 * of the object. */
bool body_is_all(const struct reply *r, uint64_t offset, uint64_t size);
int status_errno(const struct reply *r);

enum method { METHOD_PUT, METHOD_GET, METHOD_HEAD, METHOD_DELETE, METHOD_POST };

/* A header field of a request, or a parameter of a query; name NULL: it is not sent. */
struct field {
	const char *name, *value;
};

#define EXTRA_MAX 4
#define FIELD_VALUE_MAX 4000 /* largest length of a header's value in bytes; longer values are truncated */

struct exchange {
	enum method method;
	const char *url;   /* encoded URL */
	const char *token; /* token; NULL: none */
	enum gantry_dialect dialect;
	const void *body; /* body of a put without a token, or of a post */
	uint64_t size;    /* length of the body in bytes */
	void *buffer;     /* buffer that receives the body of a 2xx answer; NULL: the body is discarded */
	uint64_t buffer_size;
	bool has_range;
	uint64_t range_first, range_last;
	const char *checksum; /* value of x-amz-checksum-crc64nvme; NULL: not sent */
	const char *if_match, *if_none_match, *content_type;
	struct field extra[EXTRA_MAX];
	uint64_t ttl_s;                          /* value of x-gantry-ttl of a put or post; 0: not sent */
	bool no_content_type;                    /* true: a put without Content-Type */
	bool want_checksum;                      /* true: sends x-amz-checksum-mode: ENABLED */
	unsigned connect_timeout_ms, timeout_ms; /* limits; timeout_ms 0: none while bytes move */
	bool is_device; /* true: body and buffer are memory of a device, which g->copy or the stage copies */
	gantry_header_fn *header; /* receives the headers of a 2xx answer; NULL: none */
	void *header_cookie;
};

struct handle;
struct handle *handle_get(struct gantry *g);
void handle_put(struct gantry *g, struct handle *h);
void handles_close(struct gantry *g);
/* Sends a request, receives the answer. Returns 0 with the answer in r, or -errno with a sentence in why. */
int http_exchange(struct handle *h, const struct exchange *x, struct reply *r, char *why, size_t why_len);

struct curl_slist;
/* Appends the signature's headers to a list of request headers. Returns false if there is no memory. */
bool sign_exchange(const struct gantry *g, const char *method, const char *url, struct curl_slist **list);

/* Returns an allocated copy of url with invalid characters percent-encoded; NULL: no memory. */
char *url_clean(const char *url);
bool url_is_unreserved(unsigned char c);
/* Returns true if the path of a URL has more than a bucket, so that it names a key. */
bool url_names_key(const char *url);
/* Returns true if a text can be the value of a header: it has no control character. NULL is allowed. */
bool fits_header(const char *text);
/* Returns an allocated copy of text with all but unreserved bytes percent-encoded; NULL: no memory. */
char *url_encode_all(const char *text);
/* Returns a URL with nr pairs name=value appended to its query, the values percent-encoded; a pair with the
 * value NULL is omitted. The caller frees the text; NULL: no memory. */
char *url_query(const char *url, const struct field *pair, int nr);

/* ---- one call of a program: call.c ---- */

struct call {
	struct gantry *g;
	struct gantry_request req;
	struct gantry_result *res;
	struct handle *h;
	char *url;
	struct memory memory;
	uint64_t began_ns, size, offset; /* began_ns: time of clock_ns() at the beginning of the call */
	char checksum[16];               /* for a put: checksum of the bytes in base64; "": not sent */
	/* true: the server's NIC did not reach memory of a device, so the next attempt uses the stage */
	bool wants_stage;
	bool is_filled_in; /* true: the calls for the parts of this call have filled in the result */
	struct reply r;    /* answer to the last request of the call */
};

/* Begins a call. res: the program's result, may be NULL; own: the result that the library fills in, from
 * which call_end() copies to res. The caller calls call_end() also after an error. Returns 0 or -errno. */
int call_begin(struct call *c, struct gantry *g, const char *url, const struct gantry_request *req,
	       struct gantry_result *res, struct gantry_result *own);
/* Begins a call for a bucket, with the arguments of call_begin(). Returns 0 or -errno; -EINVAL if the URL
 * names a key or has a query, because the request would then not be for the bucket. */
int call_begin_bucket(struct call *c, struct gantry *g, const char *url, const struct gantry_request *req,
		      struct gantry_result *res, struct gantry_result *own);
/* Ends a call: adds data of the last answer to the result, and copies the result to res. Returns e. */
int call_end(struct call *c, int e, struct gantry_result *res);
/* Sets the message of the result to the sentence why. */
void call_say(struct call *c, const char *why);
/* Returns an exchange with the URL, the method and the parameters of the call's request. */
struct exchange call_exchange(const struct call *c, enum method method);
#define BUSY_TRIES 4 /* largest number of tries while the server answers 503 */
/* Sets the reason why RDMA is not used, unless the server has given a reason. */
void call_reason(struct call *c, const char *why);
/* Computes the checksum of a put once, if the request wants one (sum.c). Returns 0 or -errno. */
int sum_up(struct call *c);
/* Sends a request once. Returns 0 with the answer in c->r, or -errno. */
int call_run(struct call *c, const struct exchange *x);
/* Sends a request, repeats it while the server answers 503. Returns 0 with an answer in c->r, or -errno. */
int call_run_plain(struct call *c, const struct exchange *x);
/* Waits before a request is repeated. turn: number of the last try. Returns false if there is no further try. */
bool call_back_off(const struct call *c, int turn);
/* Sends a request that exists only in S3, and repeats it while the server answers 503. Returns 0 with a 2xx
 * answer in c->r; -EOPNOTSUPP: the context has another dialect; or the -errno of any other answer. */
int call_s3(struct call *c, const struct exchange *x);

/* ---- answers in XML: xml.c ---- */

/* Receives an element when it ends. path: names of the element and its parents below the root
 * ("Contents/Key"). text: its content, which ends with a NUL; "" for an element with child elements. A result
 * other than 0 ends the reader, which returns this result. */
typedef int xml_fn(void *cookie, const char *path, const char *text, size_t len);
/* Reads an XML document and calls fn at the end of each element except the root. Opens and fetches no
 * resource other than `body`. Returns 0; the result of fn that ended the reader; -ENOMSG: the root has
 * another name; -EPROTO: the document is not well-formed, has a document type or entities of its own, is
 * deeper than 8 elements, or has a text of more than 8 KiB or a tag of more than 1 KiB; -ENOMEM. */
int xml_answer(const char *body, size_t len, const char *root, xml_fn *fn, void *cookie);
/* Sends a request, and passes the elements of a 2xx answer of at most cap bytes to fn (xml_answer()). Returns
 * 0, the -errno of the request or of an error document, or a result of xml_answer(). */
int call_xml(struct call *c, struct exchange *x, size_t cap, const char *root, xml_fn *fn, void *cookie);

/* ---- a page of a list: page.c ---- */

enum list_kind { LIST_OBJECTS, LIST_BUCKETS, LIST_UPLOADS, LIST_PARTS, LIST_NR };

struct list_page {
	bool is_truncated;
	char *next, *next_id; /* markers of the next page, freed by the caller; NULL: last page */
};

/* Receives an entry (p NULL) or, for LIST_PARTS, a part (e NULL). A result other than 0 ends the list. */
typedef int list_fn(void *cookie, const struct gantry_entry *e, const struct gantry_part *p);
/* Reads a page of a list. Calls fn for each entry, after the check that the whole page is valid. Returns 0,
 * the result of fn that ended the list, or an error of xml_answer(). The caller frees *ret_page's texts. */
int list_read(const char *body, size_t len, enum list_kind kind, list_fn *fn, void *cookie,
	      struct list_page *ret_page);

#endif
