/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of admin/: the functions of the admin thread for the pages. */
#ifndef GANTRY_ADMIN_ADMIN_INT_H
#define GANTRY_ADMIN_ADMIN_INT_H

#include "admin/admin.h"
#include "base/list.h"

#include <microhttpd.h>
#include <pthread.h>

#define REASONS_MAX 96
#define REASON_OBJECT_BYTES 64

struct admin_reasons {
	int nr; /* number of reasons that were added; reasons beyond REASONS_MAX are only counted */
	struct {
		enum admin_reason_id id;
		char object[REASON_OBJECT_BYTES];
		char text[512];         /* sentence about the reason; it may contain the path of a disk */
		uint64_t since_wall_ns; /* wall clock at which the reason was first seen */
		uint64_t muted_until_s; /* end of the mute, seconds since 1970; 0: the reason is not muted */
	} reason[REASONS_MAX];
};

/* ---- health.c ---- */

/* Allocates the state of reasons (admin_env.reasons). Returns NULL if there is no memory. */
struct admin_health *health_new(void);
void health_free(struct admin_health *h);
/* Collects all reasons of health, stores when each of them began, and logs the changes. Called every second
 * by the admin thread. */
void health_look(const struct admin_env *env);
/* Writes the answer of /livez, /readyz or /healthz, and returns its HTTP status. */
int health_page(const struct admin_env *env, const char *path, FILE *out);
/* Implements admin_mute() (health_mute()) or admin_keep_mutes() (health_keep()), with its results. */
int health_mute(struct admin_health *h, const char *code, uint64_t for_s);
int health_keep(struct admin_health *h, const char *path);
/* Adds the metric gantry_health_reason to out. */
void health_metrics(const struct admin_env *env, struct stats_out *out);

struct page {
	int status;
	const char *type;   /* value of the header Content-Type */
	const char *policy; /* value of the header Content-Security-Policy; NULL: none */
	char *body;         /* content, freed by the receiver */
	size_t len;
	const char *allow; /* Allow header of a 405 */
	bool basic;        /* true: the request of this 401 may have the token as a password */
};

/* Fills in *ret_page, the answer to a GET of that path. Returns 0 or -ENOMEM. Called by the admin thread. */
int admin_page(const struct admin_env *env, const char *path, struct page *ret_page);
/* Returns true if the path is that of a page of health. */
bool admin_is_health(const char *path);
/* Returns true if there is a page for a GET of that path. */
bool admin_is_page(const struct admin_env *env, const char *path);
/* The bytes of page.html, and of docs/runbook.md (html.c). */
extern const char admin_html[], admin_html_end[], admin_runbook[], admin_runbook_end[];
/* Makes the page {"error":"text"} with the given HTTP status, and returns this status. */
int admin_error_page(int status, const char *text, struct page *ret_page);

/* ---- door.c ---- */

/* Numbers of connections that were closed before they had an answer: `late` because their request took too
 * long, `room` to make room for another connection. */
struct admin_closed {
	uint64_t late, room;
};

/* A listener of the admin thread: the socket, its connections, and the libmicrohttpd daemon that serves
 * them. */
struct door {
	int fd, epoll_fd; /* fd: listening socket, or -1; epoll_fd: descriptor of libmicrohttpd */
	bool tcp;
	struct tls_cert *cert; /* certificate; NULL: plain HTTP */
	int max;               /* limit of connections */
	struct MHD_Daemon *mhd;
	/* connections (struct visitor), in the order in which their current wait began */
	struct list visitors;
	int nr, leaving; /* nr: number of connections; leaving: number of connections that are being
	                       * ended */
	struct admin_closed *closed;
};

/* The stage of a connection. HEAD: the connection has no request, or an incomplete head of a request. BODY:
 * the body is incomplete. ANSWER: the request is complete and is being answered. CALL: the request waits for
 * a slow control call. */
enum visit { VISIT_HEAD, VISIT_BODY, VISIT_ANSWER, VISIT_CALL };

struct visitor {
	struct list link;
	struct door *door;
	int fd;
	enum visit stage;
	/* since_ns: time at which the connection began or its last request ended; head_ns: time at which the
	 * current request began, 0: no request */
	uint64_t since_ns, head_ns;
	uint64_t taken;       /* number of bytes received that belong to requests */
	struct in6_addr from; /* address of the client */
	/* asked: true: the connection has had a request; leaving: true: the connection is being ended */
	bool asked, leaving;
	/* end of the received target (request line) in the buffer of the library */
	const char *target_end;
};

/* Starts the libmicrohttpd daemon of a door; its socket listens already. Returns 0 or -ENOMEM. */
int door_open(struct door *d, MHD_AccessHandlerCallback on_request, MHD_RequestCompletedCallback on_over,
	      void *cookie);
/* Stops the libmicrohttpd daemon and closes the socket, if they exist. */
void door_close(struct door *d);
/* Accepts all pending connections. */
void door_accept(struct door *d);
/* Runs the libmicrohttpd daemon, and ends connections whose time limit has passed. */
void door_run(struct door *d);
/* Returns the time, in milliseconds, after which door_run() must be called; -1: not before an event. */
int door_wait_ms(const struct door *d);
/* Returns true if the target of the request contains a NUL, which the library up to 0.9.76 treats as the
 * end of the target. */
bool door_hides(struct MHD_Connection *conn, const char *version);
/* Changes the stage of a connection. door_request(): the head of a request is complete. door_body(): len
 * bytes of its body have arrived. door_whole(): the request is complete; waits: true: it waits for a slow
 * control call. door_over(): the request has ended. */
void door_request(struct MHD_Connection *conn);
void door_body(struct MHD_Connection *conn, size_t len);
void door_whole(struct MHD_Connection *conn, bool waits);
void door_over(struct MHD_Connection *conn);

/* ---- args.c ---- */

/* Parses the JSON object in a body into arguments; the body ends with a NUL, and a blank body has no
 * arguments. known: the allowed names, separated by blanks. Returns 0, or -EINVAL with a static text in
 * *ret_why. */
int args_parse(const char *body, const char *known, struct admin_args *ret_args, const char **ret_why);
/* Adds an argument of the query. known: the allowed names, separated by blanks. value NULL: the query has the
 * name without a value. Returns 0, or -EINVAL with a static text in *ret_why. */
int args_add(struct admin_args *args, const char *known, const char *name, const char *value,
	     const char **ret_why);

#define CONTROL_BODY_MAX 4096

/* ---- record.c ---- */

#define RECORD_PEER_BYTES 64
struct call;
/* Writes the client of a connection to out: an address, or the user and process at the other end of the Unix socket.
 * Called by the admin thread. */
void record_peer(struct MHD_Connection *conn, char out[RECORD_PEER_BYTES]);
/* Writes an event of audit/ about a call that has ended with this HTTP status. Called by the thread that ran
 * the call. */
void record_call(const struct call *c, int status);

/* ---- control.c ---- */

/* A request of any method, from its head to its end. */
struct call {
	struct list link;
	struct MHD_Connection *conn;
	const struct admin_control *ctl;
	char body[CONTROL_BODY_MAX + 1];
	size_t len;
	bool too_large;
	struct admin_args args;
	/* state of a slow call. ready: true: the call has ended, and page is set; failed: true: the call has
	 * ended, and there was no memory for the page */
	bool ready, failed;
	struct page page;
	char peer[RECORD_PEER_BYTES]; /* the client, as record_peer() writes it */
};

struct control {
	const struct admin_env *env;
	/* The threads that run control calls, by enum control_lane; the element of CONTROL_AT_ONCE is not
	 * used. */
	struct lane {
		struct control *ct;
		pthread_t worker;
		bool has_worker;
		pthread_cond_t cond;
		struct list waiting;
	} lane[CONTROL_LANE_NR];
	bool stop;
	int done_fd; /* descriptor that becomes readable when control_resume() must be called */
	pthread_mutex_t lock;
	struct list done;
	char token[ADMIN_TOKEN_MAX + 1]; /* bearer token; empty: none */
	char no_token[256];              /* the refusal of a call over TCP while there is no token */
	/* settings with the domains that a Host field may name; NULL: no domains */
	const struct conf_s3 *s3;
	bool is_loopback;        /* the TCP address is a loopback address */
	bool pages_need_a_token; /* on TCP, if there is a token */
};

int control_start(struct control *ct, const struct admin_env *env);
/* Ends the threads of slow calls, and answers the requests that wait for them. Called before door_close(). */
void control_stop(struct control *ct);
void control_set_token(struct control *ct, const char *token);
void control_resume(struct control *ct);
/* Handles a request that is complete. Called again for this request after its slow call has ended. *ret_wait:
 * true: the connection was suspended until a slow call has ended; false: *ret_page is the answer. Returns 0
 * or -ENOMEM. */
int control_call(struct control *ct, struct call *c, struct MHD_Connection *conn, const char *method,
		 const char *path, const char *version, bool *ret_wait, struct page *ret_page);

#endif
