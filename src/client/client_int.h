/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of libgantry and the calls between its files.  Private; the world sees gantry.h.
 *
 *     context.c    gantry_open, gantry_close
 *     call.c       what all calls to a server share
 *     transfer.c   put, get: attempts and fallbacks
 *     stage.c      host memory that memory of a device is copied from and to: stage.h
 *     staged.c     puts and gets through it
 *     bounce.c     bodies of HTTP through it
 *     plain.c      head, delete, buckets
 *     choice.c     which port a token names
 *     config.c     cuobj.json, cufile.json, options
 *     http.c       one HTTP exchange over libcurl
 *     json.c       the tolerant JSON reader
 *     list.c       lists of objects, buckets, uploads, parts
 *     page.c       one page of a list
 *     reply.c      what an answer means (pure)
 *     device.c     ports, DC targets
 *     memory.c     registrations: region.h
 *     register.c   those that programs ask for
 *     window.c     the windows of calls
 *     map.c        which registration holds an address (pure)
 *     mint.c       tokens that programs and callbacks get
 *     slot.c       where their texts lie
 *     gpu.c        memory that the CPU cannot read: gpu.h; gpu_cuda.c, gpu_rocm.c: its drivers
 *     events.c     ports that go down and come up
 *     shared.c     the process's one context, and processes that fork
 *     log.c        what a program is told
 *     targets.c    DC targets between calls
 *     ops.c        the shape of cuObjClient
 *     sign.c       AWS Signature Version 4
 *     upload.c     uploads in parts, copies on the server
 *     url.c        encoding
 *     xml.c        answers in XML, read by libxml2
 *
 * Locks, of which none is held across verbs, network or callbacks, in the order in which they are taken:
 * g->map_lock, read and written, guards which registrations there are and what tokens say of ports; r->lock the slots
 * of one registration; g->lock idle targets, free slots and free curl handles.
 */
#ifndef GANTRY_CLIENT_CLIENT_INT_H
#define GANTRY_CLIENT_CLIENT_INT_H

#include "base/list.h"
#include "client/gantry.h"
#include "client/gpu.h"
#include "token/token.h"

#include <pthread.h>
#include <stdio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORTS_MAX 16
#define SHARED_MAX 16 /* targets of a port for tokens: that one can be revoked and few others with it */
#define DEFAULT_DC_KEY 0xffeeddccull /* protocol.md item 25 */
#define HOP_LIMIT 64                 /* section 6 */

struct ibv_context;
struct ibv_pd;
struct ibv_cq;
struct ibv_srq;
struct ibv_qp;
struct ibv_mr;

/* ---- configuration: config.c ---- */

#define CONFIG_DEVICES_MAX 16

struct config {
	char device[CONFIG_DEVICES_MAX][64]; /* names or addresses; none: auto */
	int device_nr;
	uint64_t dc_key;
	bool has_dc_key;
	int traffic_class; /* -1: the port's */
	int service_level, path_mtu /* bytes, 0: the port's */, pkey_index;
	bool no_dmabuf; /* memory of a device is registered by a peer-memory driver alone */
	bool is_multipath;
	int retries;        /* of a callback's failure, where is_multipath */
	int retry_delay_ms; /* before each, where there is no other port */
	char origin[256];   /* the file, or "" */
};

/* Parses a JSON text.  0, or -EINVAL with a sentence in err. */
int config_parse(const char *text, size_t len, struct config *c, char *err, size_t err_len);
/* Options, then the file they or the environment name.  0, or -errno with a sentence in err. */
int config_load(const struct gantry_options *o, struct config *ret_c, char *err, size_t err_len);

/* ---- JSON: json.c ---- */

enum json_type { JSON_STRING, JSON_NUMBER, JSON_TRUE, JSON_FALSE, JSON_NULL };
/* Takes one scalar.  key: that of the nearest object around it ("" in none).  text: decoded string or the
 * number's digits; terminated. Not 0 stops the parser, which returns it. */
typedef int json_fn(void *cookie, const char *key, enum json_type type, const char *text, size_t len);

/*
 * Reads a JSON text and calls fn for every scalar, wherever it is nested.  Tolerates // and block comments,
 * '#' comments, trailing commas and a byte order mark, as configuration files have them.  0, what fn
 * returned, or -EINVAL with the line in *ret_line and a reason in *ret_why.  No allocation; depth and string
 * length are bounded (32, 1023).
 */
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
	uint8_t wish[16];     /* the address that was asked for */
	_Atomic bool is_down; /* as events said */
	/* What tokens say: g->map_lock.  Read anew after a transfer failed. */
	uint16_t lid;
	uint8_t gid[16];
	_Atomic uint8_t gid_index;
	_Atomic unsigned changes; /* how many times that was another */
	int mtu;                  /* enum ibv_mtu */
	uint8_t traffic_class, service_level;
	uint16_t pkey_index;
	uint64_t dc_key;
	/* What tokens of gantry_token_get() and of callbacks name, the first from the beginning; they live as long as
	 * the port, or until gantry_token_drop(); g->map_lock */
	struct target *shared[SHARED_MAX];
	struct target *free;    /* idle ones, for puts and gets; g->lock */
	struct target *retired; /* shared ones from before its address changed; g->map_lock */
};

/* A DC target.  A put or get has one of its own, so that destroying it ends every access of that call, and
 * only of that. */
struct target {
	struct ibv_qp *qp;
	uint32_t dctn;
	unsigned changes;     /* of its port, when it was made */
	_Atomic unsigned out; /* tokens that name it and have not been given back */
	uint64_t made_ns;     /* clock_ns() */
	struct target *next;
};

/* Opens what c names, or every usable port.  0 (none found, auto: *ret_nr 0 and the reason in why), or
 * -ENODEV. */
int ports_open(const struct config *c, struct port *ports, int *ret_nr, char *why, size_t why_len);
void port_close(struct port *p);
/* The address of a port, as tokens have it. */
struct address {
	uint8_t gid[16], gid_index;
	uint16_t lid;
};
/* Reads the port's address anew.  False: it has none now. */
bool port_address(const struct port *p, struct address *ret);
struct target *target_new(struct port *p);
/* Destroys a target.  0, or -errno: it may still be reached then. */
int target_free(struct target *t);

/* ---- memory: memory.c ---- */

enum slot_state { SLOT_FREE, SLOT_OUT, SLOT_DEAD };

/* Holds the text of a token that the program has, or had. */
struct token_slot {
	_Alignas(128) struct token_slot *next; /* free ones, those that are out, dead ones */
	struct token_slot *prev;               /* of those that are out */
	_Atomic(struct region *) region;       /* NULL: the context's */
	uint32_t dctn;                         /* what it names */
	uint8_t state, port, shared;
	char text[TOKEN_DC_LEN + 1];
};
_Static_assert(sizeof(struct token_slot) == 128, "a page holds 32");

/* How many texts a registration keeps for callbacks; the oldest makes room.  So a program may still use one when
 * the callback has returned, and any number of operations costs no more memory. */
#define REGION_TEXTS 64

struct region {
	struct list link; /* of g->regions */
	char *ptr;
	size_t size;
	unsigned flags;
	bool is_device;    /* the CPU leaves it alone */
	bool is_temporary; /* made for one call */
	bool is_stale; /* another has taken its place, for the memory was allocated again; freed after its users */
	bool is_staged;               /* no port has it: it goes through the stage */
	struct gpu_ids *ids;          /* of the allocations that were registered, or NULL */
	_Atomic unsigned users;       /* calls that rely on it; from none to one with g->map_lock */
	unsigned count;               /* of the times that it was registered; g->map_lock */
	struct ibv_mr *mr[PORTS_MAX]; /* NULL where registering failed */
	pthread_mutex_t lock;
	struct token_slot *free, *out;
	struct token_slot **recent; /* REGION_TEXTS of them, from the first callback on */
	unsigned recent_at;
};

/* ---- which registration: map.c ---- */

struct held {
	uintptr_t start, end;
	struct region *region;
	uint32_t above; /* the nearest one before it that ends behind it */
};

struct map {
	struct held *at;
	size_t nr, cap;
};

/* Puts a registration in.  0 or -ENOMEM. */
int map_add(struct map *m, struct region *r);
/* Takes one out, where it is in. */
void map_remove(struct map *m, const struct region *r);
/* Puts a registration of the same memory in the place of one; false: that is not in. */
bool map_replace(struct map *m, const struct region *old, struct region *r);
/* Returns the smallest registration that holds [start, end): of those that can be written to, where there is one. */
struct region *map_find(const struct map *m, uintptr_t start, uintptr_t end);
/* Returns the index of the first that begins at start or behind. */
size_t map_from(const struct map *m, uintptr_t start);

/* What a server's answers have told of a port: choice.c. */
#define REACH_MAX 128
enum reach_state { REACH_TRIED, REACH_REACHED, REACH_AVOIDED };
struct reach {
	uint64_t server; /* server_of() */
	uint64_t until_ns;
	int port;
	enum reach_state state;
};

struct gantry {
	pthread_mutex_t lock;
	unsigned flags;
	enum gantry_dialect dialect;
	unsigned connect_timeout_ms, timeout_ms;
	/* Signatures; access_key NULL: none. */
	char *access_key, *secret_key, *session_token, *region;
	uint64_t max_callback_bytes;
	bool no_dmabuf;       /* of what CUDA exports */
	int retries;          /* of callbacks that failed for the sake of a path */
	int retry_delay_ms;   /* before each, where there is no other port */
	gantry_copy_fn *copy; /* from and to memory of a device; NULL: none */
	void *copy_cookie;
	struct stage *stage; /* stage.h; NULL: memory of a device is not staged */
	struct gantry_ops ops;
	char why_no_rdma[160];
	struct port port[PORTS_MAX];
	int port_nr;
	_Atomic unsigned next_port; /* rotates */
	struct reach reach[REACH_MAX];
	pthread_cond_t settled; /* one of them, and by choice_waits calls it is waited for */
	int choice_waits;
	pthread_rwlock_t map_lock;
	struct map map;      /* what programs registered, and the stage */
	size_t own_regions;  /* of those in it that no program registered; map_lock */
	struct list regions; /* for one call, and what the driver kept; g->lock */
	/* slot.c */
	_Atomic(struct slabs *) slabs;
	struct token_slot *free_slots, *dead, *dead_last;
	unsigned dead_nr;
	/* events.c */
	pthread_t watcher;
	int wake_fd;
	bool watcher_runs;
	/* log.c */
	pthread_rwlock_t log_lock;
	_Atomic(gantry_log_fn *) log;
	void *log_cookie;
	_Atomic int log_most;
	/* shared.c */
	unsigned forks; /* when it was opened */
	struct handle *free_handles;
	/* targets.c */
	uint64_t target_life_ns; /* 0: with its call */
	pthread_t reaper;
	pid_t reaper_pid;
	pthread_cond_t reap;
	bool reaper_runs, reaper_waits, closes; /* waits: for a first target */
	struct target *undead;                  /* that the driver did not destroy */
	uint64_t undead_again_ns;
};

struct window {
	struct gantry *g;
	struct region *region;
	bool owns_region; /* made for it alone */
	struct port *port;
	struct target *target;
	char token[96];
};

/* Takes the region that holds [ptr, ptr + size), with one more user; NULL. */
struct region *region_get(struct gantry *g, const void *ptr, size_t size);
/* Does the same, and registers the memory again where a driver says that it is another by now.  0, *ret_region NULL where it
 * is not registered; -EFAULT: it was freed. */
int region_take(struct gantry *g, const void *ptr, size_t size, struct region **ret_region);
void region_put(struct region *r);
void regions_close(struct gantry *g);
/* Finds it, and nothing more: g->map_lock is held. */
struct region *region_at(const struct gantry *g, const void *ptr, size_t size);

/* ---- tokens: mint.c, slot.c ---- */

/* Writes a token of [ptr, ptr + size) of r at a port that r has, to text; g->map_lock is held. */
int mint(const struct gantry *g, const struct region *r, const struct port *p, uint32_t dctn, const void *ptr,
	 size_t size, char text[TOKEN_DC_LEN + 1]);
/* Takes a slot, which belongs to r and is out; g->map_lock is held.  NULL: no memory. */
struct token_slot *slot_take(struct gantry *g, struct region *r);
/* Gives one back.  False: it was not out.  g->map_lock is held. */
bool slot_give(struct gantry *g, struct token_slot *s);
/* Gives one back whose text stays for REGION_TEXTS later ones; r has a user. */
void slot_give_late(struct region *r, struct token_slot *s);
/* Returns the slot of a text; NULL: it is none of ours. */
struct token_slot *slot_of(struct gantry *g, const char *text);
/* Takes all slots from a registration that ends; those that are out are remembered for a while.  g->map_lock is held for
 * writing, where others can have tokens of it. */
void slots_release(struct gantry *g, struct region *r);
/* Frees them all. */
void slots_close(struct gantry *g);

/* ---- ports that go down: events.c ---- */

/* Starts to watch the ports.  0 or -errno. */
int events_start(struct gantry *g);
void events_stop(struct gantry *g);

/* ---- one context a process: shared.c ---- */

/* Counts the forks that led to this process. */
unsigned forks_now(void);
/* Tells whether the context was opened by this process, and not by one that forked it. */
bool is_mine(const struct gantry *g);
/* Gives back a context of gantry_open_shared().  True: it is to be closed, or was never shared. */
bool shared_give(struct gantry *g);

/* ---- what a program is told: log.c ---- */

/* Tells whether somebody listens to lines of that level. */
bool is_told(const struct gantry *g, enum gantry_log_level level);
#define KERNEL_ENOTSUPP 524 /* a number of the kernel's own, which drivers of devices let out */
/* Returns the text of an errno, as strerror() does. */
const char *error_text(int error);
/* Hands one line on. */
void client_log(struct gantry *g, enum gantry_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The memory of one call. */
struct memory {
	char *ptr;
	size_t size;
	struct region *region; /* registered, with a user that is this call; NULL: it is not */
	bool is_device;        /* the CPU leaves it alone */
};

/* Makes a token for one call to server (server_of()): chooses a port, registers m with that port alone where it is not
 * registered, takes a target.  0, or -errno and why. */
int window_open(struct gantry *g, uint64_t server, const struct memory *m, bool is_put, struct window *w,
		char *why, size_t why_len);
/* Ends a call's token.  clean: the server has answered and vouches that nothing is under way.  Otherwise the
 * target is destroyed (or, if that fails, the memory deregistered): 0, or -EBUSY when neither worked. */
int window_close(struct window *w, bool clean);

/* Makes a token for a callback; as gantry_token_get(), but *ret_slot goes back with slot_give_late(). */
int token_for_callback(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
		       struct region **ret_region, struct token_slot **ret_slot);
/* Takes it back. */
void token_after_callback(struct gantry *g, struct region *r, struct token_slot *s);

/* ---- which port: choice.c ---- */

/* Returns a number for the server of a URL, its scheme, host and port. */
uint64_t server_of(const char *url);
/* Returns the next port in turn that is up and that r is registered with (NULL: any).  NULL: there is none.  g->map_lock is held. */
struct port *port_choose(struct gantry *g, const struct region *r);
/* Returns such a port for a request to a server, one that it has not called unreachable within a minute where there is one.  May wait
 * for what comes of other threads' requests; the caller tells what comes of its own by port_settle() or port_avoid(). */
struct port *port_take(struct gantry *g, const struct region *r, uint64_t server);
/* Takes it that this server reaches the port, or that the request has not told. */
void port_settle(struct gantry *g, const struct port *p, uint64_t server, bool reached);
/* Takes it that this server cannot reach the port, for a minute.  Returns whether r has another one to try. */
bool port_avoid(struct gantry *g, const struct port *p, const struct region *r, uint64_t server);

/* ---- DC targets between calls: targets.c ---- */

/* Reads the address of a port anew, after something failed that named it.  True: it was another, and what is made from
 * now on names the new one. */
bool port_reread(struct gantry *g, struct port *p);

/* Makes what the functions below need.  0 or -errno. */
int targets_init(struct gantry *g);
/* Destroys one, or keeps it to try again.  0 or -errno. */
int target_end(struct gantry *g, struct target *t);
/* Destroys all that are idle; no call may be running. */
void targets_close(struct gantry *g);
/* Takes an idle target that is not old, or makes one.  NULL: errno. */
struct target *target_take(struct gantry *g, struct port *p);
/* Gives one back that nobody uses any more: destroyed when it is old, and that is soon.  0, or -errno: it is
 * old, and may still be reached. */
int target_give(struct gantry *g, struct port *p, struct target *t);

/* ---- HTTP: http.c, reply.c ---- */

/* What an answer said; filled by http.c, judged by reply.c. */
struct reply {
	int status;
	bool has_reply, has_bytes, has_content_length, has_range, has_total;
	bool has_request_id; /* every S3 server gives one */
	bool is_chunked;     /* the body has an end of its own */
	int code;            /* x-amz-rdma-reply */
	uint64_t bytes;      /* x-amz-rdma-bytes-transferred, else x-amz-rdma-bytes */
	uint64_t content_length;
	uint64_t range_first, range_last, range_total;
	/* Content-Range; has_total also for the form bytes */ /* N */
	uint64_t body_bytes;                                   /* that came */
	bool body_overflow;                                    /* more came than the buffer holds */
	unsigned retry_after_s;
	unsigned copies; /* x-gantry-copies; 0: it did not come */
	char etag[136], reason[160], checksum[64] /* x-amz-rdma-checksum */, stored_checksum[16],
		last_modified[40];
	char error[1024]; /* the beginning of an error body */
	size_t error_len;
};

void reply_init(struct reply *r);
/* Takes one header line, without its line end. */
void reply_header(struct reply *r, const char *line, size_t len);
/* Copies a text of the server's, with a question mark for what a terminal would obey.  Returns whether it came as
 * it is. */
bool reply_copy(char *out, size_t cap, const char *text);
/* Hands a header line on, its name in lower case, name and value fit for a terminal.  One that is none is not. */
void reply_header_to(const char *line, size_t len, gantry_header_fn *fn, void *cookie);
/* Copies the text between <name> and </name> in an error body, unescaped; "" when there is none. */
void reply_xml(const struct reply *r, const char *name, char *out, size_t cap);

enum verdict {
	VERDICT_RDMA,     /* done by RDMA */
	VERDICT_BODY,     /* done: the answer's body is the data */
	VERDICT_DECLINED, /* do it over HTTP */
	VERDICT_FAILED,   /* the transfer failed: once more with a new token, then over HTTP */
	VERDICT_ERROR,    /* an error of the request itself: no use repeating it */
	VERDICT_BUSY,     /* 503: later */
	VERDICT_END,      /* 416: beyond the end */
	VERDICT_NR
};
/* Judges the answer to a request with a token (protocol.md 3, 4.1, 4.2; item 116).  *ret_why: why not by
 * RDMA. */
enum verdict judge_put(const struct reply *r, enum gantry_dialect d, uint64_t size, const char **ret_why);
enum verdict judge_get(const struct reply *r, enum gantry_dialect d, uint64_t offset, uint64_t size,
		       uint64_t *ret_bytes, const char **ret_why);
/* Judges the answer to a request without a token. */
enum verdict judge_plain(const struct reply *r);
/* Tells whether the body is all that an answer to a get of size bytes from offset on has to bring: size bytes,
 * or fewer where the answer itself says that the object ends there. */
bool body_is_all(const struct reply *r, uint64_t offset, uint64_t size);
int status_errno(const struct reply *r);

enum method { METHOD_PUT, METHOD_GET, METHOD_HEAD, METHOD_DELETE, METHOD_POST };

/* A header field of one request; name NULL: none. */
struct field {
	const char *name, *value;
};

#define EXTRA_MAX 4
#define FIELD_VALUE_MAX 4000 /* a longer one is cut */

struct exchange {
	enum method method;
	const char *url;   /* encoded */
	const char *token; /* or NULL */
	enum gantry_dialect dialect;
	const void *body; /* put without a token, post */
	uint64_t size;    /* of the body */
	void *buffer;     /* takes the body of a 2xx; NULL: nobody wants it */
	uint64_t buffer_size;
	bool has_range;
	uint64_t range_first, range_last;
	const char *checksum; /* x-amz-checksum-crc64nvme, or NULL */
	const char *if_match, *if_none_match, *content_type;
	struct field extra[EXTRA_MAX];
	bool no_content_type;                    /* a put without any */
	bool want_checksum;                      /* x-amz-checksum-mode: ENABLED */
	unsigned connect_timeout_ms, timeout_ms; /* timeout 0: as long as bytes move */
	bool is_device; /* body and buffer are: what comes and goes is copied by g->copy, or through the stage */
	gantry_header_fn *header; /* or NULL: gets the headers of a 2xx */
	void *header_cookie;
};

struct handle;
struct handle *handle_get(struct gantry *g);
void handle_put(struct gantry *g, struct handle *h);
void handles_close(struct gantry *g);
/* Runs one HTTP exchange.  0 with an answer in r, or -errno and a sentence in why. */
int http_exchange(struct handle *h, const struct exchange *x, struct reply *r, char *why, size_t why_len);

/* Adds to the headers what signs them.  false: no memory. */
struct curl_slist;
bool sign_exchange(const struct gantry *g, const char *method, const char *url, struct curl_slist **list);

/* Encodes what must not stand in a URL and leaves the rest; malloc'ed.  NULL: no memory. */
char *url_clean(const char *url);
bool url_is_unreserved(unsigned char c);
/* Says whether there is more in a URL's path than a bucket. */
bool url_names_key(const char *url);
/* Says whether a text, which may be NULL, can stand in a header: no control character, so that it is one line. */
bool fits_header(const char *text);
/* Encodes every byte that is not unreserved, as a value in a signed query has it; malloc'ed.  NULL: no memory. */
char *url_encode_all(const char *text);
/* Puts name=value pairs behind a URL, every byte of a value encoded that is not unreserved; a value that is NULL
 * leaves its pair out.  malloc'ed.  NULL: no memory. */
char *url_query(const char *url, const struct field *pair, int nr);

/* ---- one call of a program: call.c ---- */

struct call {
	struct gantry *g;
	struct gantry_request req;
	struct gantry_result *res;
	struct handle *h;
	char *url;
	struct memory memory;
	uint64_t size, offset;
	char checksum[16]; /* put: of the bytes, when asked for and known */
	bool wants_stage;  /* the memory is a device's, and the NIC did not reach it */
	bool is_filled_in; /* the result is complete: other calls made it */
	struct reply r;    /* the last answer */
};

/* Begins a call, whose results are gathered in own.  0, or -errno; call_end() follows in any case. */
int call_begin(struct call *c, struct gantry *g, const char *url, const struct gantry_request *req,
	       struct gantry_result *res, struct gantry_result *own);
/* Begins one for a bucket: -EINVAL where the URL names a key or has a query, which the request would be for. */
int call_begin_bucket(struct call *c, struct gantry *g, const char *url, const struct gantry_request *req,
		      struct gantry_result *res, struct gantry_result *own);
/* Ends a call with e: fills in what the last answer said, and copies as much as the caller's res takes.  Returns e. */
int call_end(struct call *c, int e, struct gantry_result *res);
/* Puts a sentence of ours into the result. */
void call_say(struct call *c, const char *why);
/* Returns the exchange that the call's request describes. */
struct exchange call_exchange(const struct call *c, enum method method);
#define BUSY_TRIES 4 /* while the server says 503 */
/* Says why the bytes do not go by RDMA; the server's own word, where there is one, is more precise. */
void call_reason(struct call *c, const char *why);
/* Sends a request once.  0 with an answer in c->r, or -errno. */
int call_run(struct call *c, const struct exchange *x);
/* Sends it, again while the server says 503.  0 with an answer in c->r, or -errno. */
int call_run_plain(struct call *c, const struct exchange *x);
/* Waits before the next try, longer with each turn. */
void call_back_off(const struct call *c, int turn);
/* Sends a request of which only S3 knows, again while the server says 503.  0 with a 2xx in c->r, or -errno; -EOPNOTSUPP
 * in another dialect. */
int call_s3(struct call *c, const struct exchange *x);

/* ---- answers in XML: xml.c ---- */

/* Takes an element that has ended: its path below the root ("Contents/Key") and its text, terminated, "" of one with
 * elements in it.  Not 0 ends the reading, which returns it. */
typedef int xml_fn(void *cookie, const char *path, const char *text, size_t len);
/*
 * Reads a document and calls fn for each element but the root as it ends.  0, what fn returned, -ENOMSG when the
 * root has another name, -EPROTO (not well-formed, a document type, an entity of its own, nested deeper than 8, a
 * text beyond 8 KiB, a tag beyond 1 KiB), -ENOMEM.  Nothing but `body` is ever opened or fetched.
 */
int xml_answer(const char *body, size_t len, const char *root, xml_fn *fn, void *cookie);
/* Sends x and reads the XML of its 2xx, cap bytes at most, like xml_answer(); an error that comes in a 2xx is one. */
int call_xml(struct call *c, struct exchange *x, size_t cap, const char *root, xml_fn *fn, void *cookie);

/* ---- a page of a list: page.c ---- */

enum list_kind { LIST_OBJECTS, LIST_BUCKETS, LIST_UPLOADS, LIST_PARTS, LIST_NR };

struct list_page {
	bool is_truncated;
	char *next, *next_id; /* where the next page begins; malloc'ed, or NULL */
};

/* Takes an entry, or a part; the other is NULL. */
typedef int list_fn(void *cookie, const struct gantry_entry *e, const struct gantry_part *p);
/* Reads a page and calls fn for all that it lists, once the whole is known to be sound.  0, what fn returned, or as
 * xml_answer().  The page's texts are the caller's to free, also after an error. */
int list_read(const char *body, size_t len, enum list_kind kind, list_fn *fn, void *cookie,
	      struct list_page *ret_page);

#endif
