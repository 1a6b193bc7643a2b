/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that libmicrohttpd would make by itself: to a head that is malformed or too large, and to a body in
 * chunks that are not.  They are pages of HTML, and after a Content-Length that is no number 0.9.75 sends one
 * of them twice.  There is no option for them; but the library queues them by MHD_queue_response(), a symbol
 * that it looks up like any other, so it finds the one below: the client gets one answer in the form of the
 * listener's dialect and the end of the connection, and the library's page fails at the socket.  (If nothing
 * were queued instead, the library would free its memory at once and read on in it.)
 *
 * Where the library was linked so that it finds its own functions first (-Bsymbolic), it sends its page.
 */
#include "http/http_int.h"

#include "base/check.h"
#include "stats/stats.h"

#include <dlfcn.h>
#include <pthread.h>

typedef enum MHD_Result (*queue_fn)(struct MHD_Connection *, unsigned, struct MHD_Response *);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static queue_fn library_queue;
static _Thread_local bool inside; /* a daemon of ours runs on this thread */

static void
find_library_queue(void)
{
	library_queue = (queue_fn)dlsym(RTLD_NEXT, "MHD_queue_response");
	check(library_queue);
}

static void
refuse(struct hconn *c, unsigned status)
{
	static const struct {
		unsigned status;
		enum fault fault;
		const char *why;
	} rows[] = {
		{ 400, FAULT_BAD_REQUEST,
		  "The request is not HTTP/1.1: its head or its chunks are malformed." },
		{ 413, FAULT_BAD_REQUEST,
		  "Content-Length, or the size of a chunk, is larger than 64 bits hold." },
		{ 414, FAULT_BAD_URI, "The request line is too long." },
		{ 431, FAULT_HEADERS_TOO_LARGE, NULL },
		{ 505, FAULT_HTTP_VERSION, NULL },
	};
	size_t i = 0;

	while (i < sizeof rows / sizeof *rows && rows[i].status != status)
		i++;
	stats_event(c->l->h->stats, STATS_HTTP_REFUSED);
	c->replied_early = true;
	/* Any other is an error of the library's own: then the connection ends without an answer. */
	c->linger = i < sizeof rows / sizeof *rows && past_refuse(c, rows[i].fault, rows[i].why);
	if (c->linger)
		past_close(c);
	else
		conn_reset(c);
}

/* Called by libmicrohttpd for its own answers, and by who serves HTTP with it elsewhere in the process. */
__attribute__((visibility("default"))) enum MHD_Result
MHD_queue_response(struct MHD_Connection *mc, unsigned status, struct MHD_Response *resp)
{
	struct hconn *c;

	pthread_once(&once, find_library_queue);
	c = inside ? MHD_get_connection_info(mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context : NULL;
	if (c && !c->aborted && !c->replied_early)
		refuse(c, status);
	return library_queue(mc, status, resp);
}

enum MHD_Result
mhd_queue(struct MHD_Connection *mc, unsigned status, struct MHD_Response *resp)
{
	return library_queue(mc, status, resp);
}

void
mhd_run(struct MHD_Daemon *d)
{
	pthread_once(&once, find_library_queue);
	inside = true;
	MHD_run(d);
	inside = false;
}
