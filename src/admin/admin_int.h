/* SPDX-License-Identifier: Apache-2.0 */
/* Private to admin/: the thread's functions for the pages. */
#ifndef GANTRY_ADMIN_ADMIN_INT_H
#define GANTRY_ADMIN_ADMIN_INT_H

#include "admin/admin.h"
#include "base/list.h"

#include <microhttpd.h>
#include <pthread.h>

#define REASONS_MAX 96
#define REASON_OBJECT_BYTES 64

struct admin_reasons {
	int nr; /* may be more than are kept */
	struct {
		enum admin_reason_id id;
		char object[REASON_OBJECT_BYTES];
		char text[512];         /* with the path of a disk */
		uint64_t since_wall_ns; /* when it was first seen */
		uint64_t muted_until_s; /* seconds since 1970; 0: it is not */
	} reason[REASONS_MAX];
};

/* ---- health.c ---- */

/* Makes the state of env->reasons.  NULL: no memory. */
struct admin_health *health_new(void);
void health_free(struct admin_health *h);
/* Looks at all reasons, so that each has the time when it began, and logs.  Admin thread, every second. */
void health_look(const struct admin_env *env);
/* Writes what /livez, /readyz or /healthz answers, whose HTTP status is the value. */
int health_page(const struct admin_env *env, const char *path, FILE *out);
/* Implements admin_mute() and admin_keep_mutes(). */
int health_mute(struct admin_health *h, const char *code, uint64_t for_s);
int health_keep(struct admin_health *h, const char *path);
/* Emits gantry_health_reason. */
void health_metrics(const struct admin_env *env, struct stats_out *out);

struct page {
	int status;
	const char *type;   /* Content-Type */
	const char *policy; /* Content-Security-Policy, or NULL */
	char *body;         /* freed by the receiver */
	size_t len;
	const char *allow; /* Allow field of a 405 */
};

/* Fills *ret_page for a GET of that path.  0 or -ENOMEM.  Admin thread. */
int admin_page(const struct admin_env *env, const char *path, struct page *ret_page);
/* Returns true if there is a page of that path, by making it. */
bool admin_is_page(const struct admin_env *env, const char *path);
/* page.html, as it is (html.c). */
extern const char admin_html[], admin_html_end[];
/* Makes the page {"error":"..."}.  Returns the status. */
int admin_error_page(int status, const char *text, struct page *ret_page);

/* ---- door.c ---- */

/* Counts connections that were closed before they had an answer. */
struct admin_closed {
	uint64_t late, room;
};

/* A listening socket, its connections, and the libmicrohttpd daemon that serves them. */
struct door {
	int fd, epoll_fd; /* -1: none; descriptor of libmicrohttpd */
	bool tcp;
	int max; /* limit of connections */
	struct MHD_Daemon *mhd;
	struct list visitors; /* connections, in the order in which their current wait began */
	int nr, leaving;      /* connections; those that are being ended */
	struct admin_closed *closed;
};

/* The stage of a connection: no request, or an incomplete head; an incomplete body; being answered; in a slow
 * control call. */
enum visit { VISIT_HEAD, VISIT_BODY, VISIT_ANSWER, VISIT_CALL };

struct visitor {
	struct list link;
	struct door *door;
	int fd;
	enum visit stage;
	uint64_t since_ns, head_ns; /* start, or last answer; start of the current request (0: none) */
	uint64_t taken;             /* bytes of its requests so far */
	struct in6_addr from;       /* address of the client */
	bool asked, leaving;        /* it had a request; it is being ended */
	/* end of the request's target in the library's buffer, before the library decoded its copy */
	const char *target_end;
};

/* Starts the daemon of a door whose socket listens.  0 or -ENOMEM. */
int door_open(struct door *d, MHD_AccessHandlerCallback on_request, MHD_RequestCompletedCallback on_over,
	      void *cookie);
/* Ends the daemon and closes the socket, if they exist. */
void door_close(struct door *d);
/* Accepts all pending connections. */
void door_accept(struct door *d);
/* Runs the daemon, and ends connections that have timed out. */
void door_run(struct door *d);
/* Returns the time that the thread may wait before door_run(); -1: until an event. */
int door_wait_ms(const struct door *d);
/* Returns true if the target of the request with that version contains a NUL: up to 0.9.76 the library takes
 * it for the end. */
bool door_hides(struct MHD_Connection *conn, const char *version);
/* Notes the progress of a connection's request: its head is complete; that number of bytes of its body has
 * arrived; it is complete (waits: for a slow control call); it has ended. */
void door_request(struct MHD_Connection *conn);
void door_body(struct MHD_Connection *conn, size_t len);
void door_whole(struct MHD_Connection *conn, bool waits);
void door_over(struct MHD_Connection *conn);

/* ---- args.c ---- */

/* Parses the members of a JSON body. body: terminated; a blank one has no members. known: the allowed names,
 * separated by blanks. 0, or -EINVAL and a static text in *ret_why. */
int args_parse(const char *body, const char *known, struct admin_args *ret_args, const char **ret_why);
/* Adds a member that the query gives, value NULL or text.  0, or -EINVAL with the reason. */
int args_add(struct admin_args *args, const char *known, const char *name, const char *value,
	     const char **ret_why);

/* ---- control.c ---- */

#define CONTROL_BODY_MAX 4096

/* One request of any method, from its head to its end. */
struct call {
	struct list link;
	struct MHD_Connection *conn;
	const struct admin_control *ctl;
	char body[CONTROL_BODY_MAX + 1];
	size_t len;
	bool too_large;
	struct admin_args args;
	bool ready, failed; /* for a slow call: page is set, or memory for it was not available */
	struct page page;
};

struct control {
	const struct admin_env *env;
	/* By number; the lane of immediate calls is not used. */
	struct lane {
		struct control *ct;
		pthread_t worker;
		bool has_worker;
		pthread_cond_t cond;
		struct list waiting;
	} lane[CONTROL_LANE_NR];
	bool stop;
	int done_fd; /* readable: call control_resume() */
	pthread_mutex_t lock;
	struct list done;
	char token[ADMIN_TOKEN_MAX + 1]; /* empty: none */
	const struct conf_s3 *s3;        /* domains that Host may name; NULL: none */
	bool is_loopback;                /* the TCP address */
};

int control_start(struct control *ct, const struct admin_env *env);
/* Ends the threads of slow calls and answers their requests, before the library's daemon is stopped. */
void control_stop(struct control *ct);
void control_set_token(struct control *ct, const char *token);
void control_resume(struct control *ct);
/* Handles a complete request, or one whose slow part has ended. *ret_wait: the connection was suspended;
 * otherwise *ret_page is the answer. 0 or -ENOMEM. */
int control_call(struct control *ct, struct call *c, struct MHD_Connection *conn, const char *method,
		 const char *path, const char *version, bool *ret_wait, struct page *ret_page);

#endif
