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
	int nr; /* number of reasons, which may be larger than the array */
	struct {
		enum admin_reason_id id;
		char object[REASON_OBJECT_BYTES];
		char text[512];         /* sentence about the reason; it may contain the path of a disk */
		uint64_t since_wall_ns; /* wall clock at which the reason was first seen */
		uint64_t muted_until_s; /* end of the mute, seconds since 1970; 0: the reason is not muted */
	} reason[REASONS_MAX];
};

/* ---- health.c ---- */

/* Makes the state of env->reasons. Returns NULL if there is no memory. */
struct admin_health *health_new(void);
void health_free(struct admin_health *h);
/* Checks all reasons, so that each has the time at which it began, and logs the changes. Admin thread,
 * every second. */
void health_look(const struct admin_env *env);
/* Writes the answer of /livez, /readyz or /healthz, and returns its HTTP status. */
int health_page(const struct admin_env *env, const char *path, FILE *out);
/* Implements admin_mute() and admin_keep_mutes(). */
int health_mute(struct admin_health *h, const char *code, uint64_t for_s);
int health_keep(struct admin_health *h, const char *path);
/* Emits gantry_health_reason. */
void health_metrics(const struct admin_env *env, struct stats_out *out);

struct page {
	int status;
	const char *type;   /* Content-Type */
	const char *policy; /* Content-Security-Policy; NULL: none */
	char *body;         /* content, freed by the receiver */
	size_t len;
	const char *allow; /* Allow header of a 405 */
};

/* Fills in *ret_page, the answer to a GET of that path. Returns 0 or -ENOMEM. Admin thread. */
int admin_page(const struct admin_env *env, const char *path, struct page *ret_page);
/* Makes the page of that path, and returns true if there is one. */
bool admin_is_page(const struct admin_env *env, const char *path);
/* The bytes of page.html (html.c). */
extern const char admin_html[], admin_html_end[];
/* Makes the page {"error":"text"}. Returns the status. */
int admin_error_page(int status, const char *text, struct page *ret_page);

/* ---- door.c ---- */

/* Numbers of connections that were closed before they had an answer: `late` because their request took too
 * long, `room` to make room for another connection. */
struct admin_closed {
	uint64_t late, room;
};

/* A listening socket, its connections, and the libmicrohttpd daemon that serves them. */
struct door {
	int fd, epoll_fd; /* fd: listening socket, or -1; epoll_fd: descriptor of libmicrohttpd */
	bool tcp;
	int max; /* limit of connections */
	struct MHD_Daemon *mhd;
	struct list visitors; /* connections, in the order in which their current wait began */
	int nr, leaving;      /* nr: number of connections; leaving: number of connections that are being
	                       * ended */
	struct admin_closed *closed;
};

/* The stage of a connection: it has no request or an incomplete head; an incomplete body; a request that
 * is being answered; a slow control call. */
enum visit { VISIT_HEAD, VISIT_BODY, VISIT_ANSWER, VISIT_CALL };

struct visitor {
	struct list link;
	struct door *door;
	int fd;
	enum visit stage;
	uint64_t since_ns, head_ns; /* since_ns: start of the connection, or its last answer; head_ns:
	                             * start of the current request (0: none) */
	uint64_t taken;             /* number of bytes of the connection's requests */
	struct in6_addr from;       /* address of the client */
	bool asked, leaving;        /* asked: the connection had a request; leaving: the connection is
	                             * being ended */
	/* end of the request's target in the buffer of the library, before the library decodes its copy */
	const char *target_end;
};

/* Starts the daemon for a door whose socket listens. Returns 0 or -ENOMEM. */
int door_open(struct door *d, MHD_AccessHandlerCallback on_request, MHD_RequestCompletedCallback on_over,
	      void *cookie);
/* Stops the daemon and closes the socket, if they exist. */
void door_close(struct door *d);
/* Accepts all pending connections. */
void door_accept(struct door *d);
/* Runs the daemon, and ends connections whose time limit has passed. */
void door_run(struct door *d);
/* Returns the time, in milliseconds, after which door_run() must be called; -1: not before an event. */
int door_wait_ms(const struct door *d);
/* Returns true if the target of the request contains a NUL, which the library up to 0.9.76 treats as the
 * end of the target. */
bool door_hides(struct MHD_Connection *conn, const char *version);
/* Notes that the head of a connection's request is complete. door_body() notes that len bytes of the body
 * have arrived, door_whole() that the request is complete (waits: for a slow control call), door_over()
 * that it has ended. */
void door_request(struct MHD_Connection *conn);
void door_body(struct MHD_Connection *conn, size_t len);
void door_whole(struct MHD_Connection *conn, bool waits);
void door_over(struct MHD_Connection *conn);

/* ---- args.c ---- */

/* Parses the members of a JSON body, which ends with a NUL; a blank body has no members. known: the
 * allowed names, separated by blanks. Returns 0, or -EINVAL and a static text in *ret_why. */
int args_parse(const char *body, const char *known, struct admin_args *ret_args, const char **ret_why);
/* Adds an argument of the query; value: a text, or NULL if the query gives the name alone. Returns 0, or
 * -EINVAL with a static text in *ret_why. */
int args_add(struct admin_args *args, const char *known, const char *name, const char *value,
	     const char **ret_why);

/* ---- control.c ---- */

#define CONTROL_BODY_MAX 4096

/* A request of any method, from its head to its end. */
struct call {
	struct list link;
	struct MHD_Connection *conn;
	const struct admin_control *ctl;
	char body[CONTROL_BODY_MAX + 1];
	size_t len;
	bool too_large;
	struct admin_args args;
	bool ready, failed; /* for a slow call: ready: page is set; failed: there was no memory for the
	                     * page */
	struct page page;
};

struct control {
	const struct admin_env *env;
	/* Indexed by enum control_lane; the element of CONTROL_AT_ONCE is not used. */
	struct lane {
		struct control *ct;
		pthread_t worker;
		bool has_worker;
		pthread_cond_t cond;
		struct list waiting;
	} lane[CONTROL_LANE_NR];
	bool stop;
	int done_fd; /* readable when control_resume() must be called */
	pthread_mutex_t lock;
	struct list done;
	char token[ADMIN_TOKEN_MAX + 1]; /* bearer token; empty: none */
	const struct conf_s3 *s3;        /* settings whose domains Host may name; NULL: none */
	bool is_loopback;                /* the TCP address is a loopback address */
};

int control_start(struct control *ct, const struct admin_env *env);
/* Ends the threads of slow calls and answers their requests. Called before the library's daemon is
 * stopped. */
void control_stop(struct control *ct);
void control_set_token(struct control *ct, const char *token);
void control_resume(struct control *ct);
/* Handles a complete request, or a request whose slow part has ended. If *ret_wait is true the connection
 * was suspended, otherwise *ret_page is the answer. Returns 0 or -ENOMEM. */
int control_call(struct control *ct, struct call *c, struct MHD_Connection *conn, const char *method,
		 const char *path, const char *version, bool *ret_wait, struct page *ret_page);

#endif
