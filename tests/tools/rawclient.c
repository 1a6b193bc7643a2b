/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * rawclient: the instrument of the conformance tests.  It registers memory with verbs, mints descriptors
 * (wrong ones too), sends exact HTTP requests over plain sockets, and says what came back and what happened
 * to the memory.  It shares no code with the daemon nor with libgantry.  One thread, no other process.
 *
 *     rawclient [-v] [-s HOST:PORT] [-t LOG] [FILE | -e 'LINE; LINE ...']  the script: FILE, -e, or standard input
 *     rawclient --bytes FILL LENGTH                                writes known bytes to standard output
 *     rawclient --crc64 FILE                                       base64, as in x-amz-checksum-crc64nvme
 *
 * With RAW_RC=HOST:PORT in the environment windows have queue pairs of RC, connected there, and @WINDOW and `token` make rc:
 * tokens (raw/raw.h): a script that does not speak of DC is then one of RC.
 *
 * -t appends a line to LOG for each window that a request named, when that request ends:
 *     reply|failure|hangup TIME STATUS REPLY WINDOW DCTN RKEY
 * TIME, CLOCK_MONOTONIC in ns, is when the first packet of the response came: compare with `softnicctl
 * trace`.
 *
 * Exit: 0 all expectations met, 1 one was not (what came is printed), 2 script error, 3 no RDMA device.
 *
 * One command a line; '#' begins a comment; words may be quoted: "a b\r\n".  In a word
 *   @NAME       becomes the token or variable of that name, or the plain token of the window of that name
 *   @addr:W (decimal) @hexaddr:W @rkey:W @size:W @dctn:W @gid:W @crc64:W (base64)   speak of a window
 *   @@          is '@'
 *   %i          is the number of the connection in `parallel` and `flood`, of the response in `expect`
 *   %n          is the number of the request in `flood`
 * FILL is pattern:SEED, zero or file:PATH.  Sizes take K M G, times ms s.
 *
 * Memory
 *   nic NAME [dev=mlx5_0] [dc_key=N] [gid=INDEX]
 *       A DCT.  "nic" is opened by itself when a window needs it (device: $RAW_DEVICE, else the first).
 *   destroy NIC                      destroys its DCT: tokens that name it are dead
 *   window NAME SIZE [FILL] [nic=NIC] [guard=64K] [shift=N] [access=rw|r|w|none] [exact]
 *       Known bytes between two guards; all of it is registered (exact: the window only).  Without FILL a
 *       pattern of its own.  Guards are checked after every command.
 *   windows NAME COUNT SIZE [...]    NAME0, NAME1, ...; %i in the rest is the number
 *   fill NAME FILL | dereg NAME | free NAME
 *   token NAME WINDOW [change ...]
 *       addr= size= rkey= dctn= lid= (N, or +N -N ^N against the truth)  g=N  gid=ADDRESS|HEX  upper
 *       suffix suffix_addr= suffix_size= (same forms);  on the text: cut=N (N characters stay) cut=-N (all but N)
 *       append=T prepend=T at=POS:CHAR
 * Connections of RC
 *   qp NAME [nic=NIC] [gid]          a queue pair; sets the variables NAME_token (88 digits) and NAME_psn
 *                                    gid: the token has the GID on InfiniBand too
 *   connect NAME [NAME:VALUE ...]    POST /.s3rdma-rc/connect, which must be answered 200, and join
 *   join NAME                        connects its queue pair by the last response; sets NAME_id
 *   destroyqp NAME
 *   rctoken TOKEN NAME WINDOW [off=N] [size=N] [id=ID]
 * Requests
 *   server HOST:PORT[/FROM] | timeout 10s    (FROM: the IPv4 address to speak from)
 *   request METHOD TARGET [NAME:VALUE ...] [option ...]   sends it and waits; on the kept connection "main"
 *       body=text:T|file:PATH|pattern:SEED:LEN|window:W (adds content-length)  nolength  chunk=N (chunked)
 *       sign=KEY:SECRET (x-amz-date and, when there is none, x-amz-content-sha256 are added)  unsigned=NAME
 *       cut=N (only N bytes of the body are sent)  nohost  http=1.0  conn=NAME
 *   start NAME METHOD TARGET ...     sends it on connection NAME and goes on
 *   wait NAME                        its response becomes the one that `expect` looks at
 *   send NAME TEXT | hangup NAME [reset] | halfclose NAME
 *   raw TEXT                         sends exactly these bytes on a new connection and waits for a response
 *   connections N                    opens N kept connections for `parallel`
 *   parallel N METHOD TARGET ...     N at once; `expect` then looks at every response
 *   flood N COUNT ACKFILE METHOD TARGET ...
 *       N connections, COUNT requests in all; a line "%n STATUS REPLY" goes to ACKFILE as each answer comes.
 *       Ends without error when the server goes away.
 * Answers
 *   expect status 200 | 2xx | 200|206        expect header NAME [VALUE | ~REGEX]     expect noheader NAME
 *   expect once NAME                         expect lower PREFIX (of header names)   expect interim N (1xx)
 *   expect spelled | spelled lower           all header names as AWS spells them; as on Scality listeners
 *   expect alive | closed | failure | pending                                        expect time < 500ms
 *   expect body empty | length N | contains T | lacks T | FILL [OFFSET [LENGTH]]
 *   expect window W FILL [FILL_OFFSET [LENGTH|- [WINDOW_OFFSET]]]
 *   expect untouched W [OFFSET [LENGTH|-]]   the bytes are those that `window` or `fill` put there
 *   expect rdmasum W [OFFSET [LENGTH]]       x-amz-rdma-checksum is right for these bytes
 *   expect equal A B|~REGEX
 *   save VAR header NAME | status | body | ms
 *   set VAR TEXT | print [TEXT]              print alone: the last response
 * The rest
 *   sleep 100ms | touch FILE | waitfile FILE | quit
 *   stop [MS] | kill [MS]                    SIGSTOP, SIGKILL to itself, now or after MS
 */
/* clang-format on */
#include "raw/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char server[128];
static double timeout_ms = 60000;
static bool verbose;
static int line_nr;
static const char *line_text;

/* What `expect` looks at. */
static struct conn **last;
static int last_nr;

void
raw_die(int code, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	if (line_nr)
		fprintf(stderr, "rawclient: line %d: %s\n", line_nr, line_text);
	fprintf(stderr, "rawclient: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

/* ---- memory ---- */

static void
do_nic(char **w, int nr)
{
	const char *dev = take(w, &nr, "dev"), *key = take(w, &nr, "dc_key"), *gid = take(w, &nr, "gid");

	if (nr != 1)
		raw_die(EXIT_SCRIPT, "nic NAME [dev=] [dc_key=] [gid=]");
	nic_open(w[0], dev, key ? raw_number(key) : 0xffeeddcc, gid ? (int)raw_number(gid) : -1);
}

static int
access_flags(const char *text)
{
	if (!text || !strcmp(text, "rw"))
		return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	if (!strcmp(text, "r"))
		return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	if (!strcmp(text, "w"))
		return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	if (!strcmp(text, "none"))
		return IBV_ACCESS_LOCAL_WRITE;
	raw_die(EXIT_SCRIPT, "access=%s: want rw, r, w or none", text);
}

static void
do_window(char **w, int nr)
{
	static uint64_t own_seed = 0x5eed;
	const char *nic = take(w, &nr, "nic"), *guard = take(w, &nr, "guard"), *shift = take(w, &nr, "shift");
	int access = access_flags(take(w, &nr, "access"));
	bool exact = take(w, &nr, "exact") != NULL;

	if (nr < 2 || nr > 3)
		raw_die(EXIT_SCRIPT, "window NAME SIZE [FILL] [nic=] [guard=] [shift=] [access=] [exact]");
	struct fill fill = { .kind = FILL_PATTERN, .seed = own_seed++ };

	if (nr == 3)
		fill = fill_parse(w[2]);
	window_new(w[0], nic_find(nic ? nic : "nic", true), raw_number(w[1]), fill,
		   guard ? raw_number(guard) : 65536, shift ? raw_number(shift) : 0, access, exact);
}

static void
do_windows(char **w, int nr)
{
	if (nr < 3)
		raw_die(EXIT_SCRIPT, "windows NAME COUNT SIZE ...");
	int count = (int)raw_number(w[1]);

	for (int i = 0; i < count; i++) {
		struct words ws;
		char name[RAW_NAME_MAX];

		words_expand(w + 1, nr - 1, i, -1, &ws);
		snprintf(name, sizeof name, "%s%d", w[0], i);
		free(ws.w[0]);
		ws.w[0] = strdup(name);
		do_window(ws.w, ws.nr);
		words_free(&ws);
	}
}

static struct window *
need_window(const char *name)
{
	struct window *win = window_find(name);

	if (!win)
		raw_die(EXIT_SCRIPT, "no window \"%s\"", name);
	return win;
}

static void
check_guards(void)
{
	for (const struct window *w = window_first(); w; w = w->next) {
		const char *why = window_guards(w);

		if (why)
			raw_die(EXIT_FAILED, "%s", why);
	}
}

/* ---- requests ---- */

static void
set_last(struct conn **cs, int nr)
{
	last = realloc(last, (size_t)nr * sizeof *last);
	memcpy(last, cs, (size_t)nr * sizeof *last);
	last_nr = nr;
}

static void
start_on(struct conn *c, char **w, int nr, int i, long serial)
{
	struct words ws;
	size_t len;
	bool head;

	words_expand(w, nr, i, serial, &ws);
	char *bytes = request_build(c->server, ws.w, ws.nr, &len, &head);

	words_free(&ws);
	conn_start(c, bytes, len, head);
}

static void
wait_for(struct conn **cs, int nr)
{
	conns_drive(cs, nr, raw_now_ms() + timeout_ms, false);
	set_last(cs, nr);
	for (int i = 0; verbose && i < nr; i++)
		resp_print(cs[i]);
}

static const char *
need_server(void)
{
	if (!*server)
		raw_die(EXIT_SCRIPT, "no server: say `server HOST:PORT` or -s");
	return server;
}

static void
do_request(char **w, int nr)
{
	const char *name = take(w, &nr, "conn");
	struct conn *c = conn_get(name ? name : "main", need_server());

	start_on(c, w, nr, -1, -1);
	wait_for(&c, 1);
}

/* connect NAME [NAME:VALUE ...]: the connect of a queue pair, and its other end. */
static void
connect_qp(char **w, int nr)
{
	char token[2 * RAW_NAME_MAX], psn[2 * RAW_NAME_MAX];
	char *words[WORDS_MAX] = { (char *)"POST", (char *)"/.s3rdma-rc/connect", token, psn };

	snprintf(token, sizeof token, "x-amz-rdma-token:@%s_token", w[0]);
	snprintf(psn, sizeof psn, "x-amz-rdma-psn:@%s_psn", w[0]);
	for (int i = 1; i < nr; i++)
		words[3 + i] = w[i];
	do_request(words, nr + 3);
	if (last[0]->resp.status != 200)
		raw_die(EXIT_FAILED, "connect: status %d", last[0]->resp.status);
	rc_qp_join(w[0], &last[0]->resp);
}

static void
do_start(char **w, int nr)
{
	if (nr < 3)
		raw_die(EXIT_SCRIPT, "start NAME METHOD TARGET ...");
	struct conn *c = conn_get(w[0], need_server());

	start_on(c, w + 1, nr - 1, -1, -1);
	/* Push out what the socket takes; the rest goes during `wait`. */
	double until = raw_now_ms() + 1000;

	while (c->busy && c->out_pos < c->out_len && raw_now_ms() < until)
		conns_drive(&c, 1, raw_now_ms() + 5, false);
}

static void
do_raw(const char *text)
{
	struct conn *c = conn_get("raw", need_server());
	char *copy = expand(text, -1, -1);

	conn_close(c, false);
	conn_start(c, copy, strlen(copy), !strncmp(copy, "HEAD ", 5));
	wait_for(&c, 1);
}

static struct conn *
need_conn(const char *name)
{
	struct conn *c = conn_find(name);

	if (!c)
		raw_die(EXIT_SCRIPT, "no connection \"%s\"", name);
	return c;
}

static struct conn **
pool(int nr)
{
	struct conn **cs = calloc((size_t)nr, sizeof *cs);

	for (int i = 0; i < nr; i++) {
		char name[RAW_NAME_MAX];

		snprintf(name, sizeof name, "p%d", i);
		cs[i] = conn_get(name, need_server());
	}
	return cs;
}

static void
do_connections(int nr)
{
	struct conn **cs = pool(nr);

	for (int i = 0; i < nr; i++) {
		int r = conn_open(cs[i]);

		if (r < 0)
			raw_die(EXIT_FAILED, "connection %d of %d: %s", i + 1, nr, strerror(-r));
	}
	free(cs);
}

static void
do_parallel(char **w, int nr)
{
	int n = (int)raw_number(w[0]);
	struct conn **cs = pool(n);

	for (int i = 0; i < n; i++)
		start_on(cs[i], w + 1, nr - 1, i, -1);
	wait_for(cs, n);
	free(cs);
}

static void
do_flood(char **w, int nr)
{
	if (nr < 5)
		raw_die(EXIT_SCRIPT, "flood CONNECTIONS COUNT ACKFILE METHOD TARGET ...");
	int n = (int)raw_number(w[0]), fd = open(w[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	long count = (long)raw_number(w[1]), next = 0;
	struct conn **cs = pool(n);
	bool gone = false;

	if (fd < 0)
		raw_die(EXIT_SCRIPT, "%s: %s", w[2], strerror(errno));
	for (int i = 0; i < n && next < count; i++) {
		cs[i]->serial = next++;
		start_on(cs[i], w + 3, nr - 3, i, cs[i]->serial);
	}
	for (int busy = 1; busy;) {
		conns_drive(cs, n, raw_now_ms() + timeout_ms, true);
		busy = 0;
		for (int i = 0; i < n; i++) {
			struct resp *r = &cs[i]->resp;

			if (r->done) {
				char line[128];
				const char *reply = resp_header(r, "x-amz-rdma-reply");

				gone = gone || *r->err;
				int len = snprintf(line, sizeof line, "%ld %d %s\n", cs[i]->serial, r->status,
						   reply ? reply : "-");

				if (!*r->err && write(fd, line, (size_t)len) != len)
					raw_die(EXIT_FAILED, "%s: %s", w[2], strerror(errno));
				resp_reset(r);
				if (!gone && next < count) {
					cs[i]->serial = next++;
					start_on(cs[i], w + 3, nr - 3, i, cs[i]->serial);
				}
			}
			busy += cs[i]->busy;
		}
	}
	close(fd);
	free(cs);
}

/* ---- answers ---- */

static void
do_expect(char **w, int nr, bool per_response)
{
	for (int i = 0; i < (last_nr ? last_nr : 1); i++) {
		struct words ws;
		struct conn *c = last_nr ? last[i] : NULL;

		words_expand(w, nr, i, -1, &ws);
		const char *why = expect_check(c, ws.w, ws.nr);

		if (why) {
			if (c && !verbose) {
				fflush(stdout);
				resp_print(c);
			}
			if (last_nr > 1)
				raw_die(EXIT_FAILED, "response %d of %d: %s", i, last_nr, why);
			raw_die(EXIT_FAILED, "%s", why);
		}
		words_free(&ws);
		if (!per_response)
			break;
	}
}

static void
do_save(char **w, int nr)
{
	char text[64];

	if (!last_nr || nr < 2)
		raw_die(EXIT_SCRIPT, "save VAR header NAME | status | body | ms, after a request");
	const struct resp *r = &last[0]->resp;

	if (!strcmp(w[1], "header") && nr > 2) {
		const char *v = resp_header(r, w[2]);

		if (!v)
			raw_die(EXIT_FAILED, "no header %s to save", w[2]);
		set_var(w[0], v);
	} else if (!strcmp(w[1], "status")) {
		snprintf(text, sizeof text, "%d", r->status);
		set_var(w[0], text);
	} else if (!strcmp(w[1], "ms")) {
		snprintf(text, sizeof text, "%.3f", r->ms);
		set_var(w[0], text);
	} else if (!strcmp(w[1], "body")) {
		char *copy = strndup(r->body ? (char *)r->body : "", r->body_len);

		set_var(w[0], copy);
		free(copy);
	} else {
		raw_die(EXIT_SCRIPT, "save: \"%s\" is not known", w[1]);
	}
}

static void
do_print(char **w, int nr)
{
	for (int i = 0; i < nr; i++) {
		char *text = expand(w[i], -1, -1);

		printf("%s%s", text, i + 1 < nr ? " " : "\n");
		free(text);
	}
	for (int i = 0; nr == 0 && i < last_nr; i++)
		resp_print(last[i]);
	fflush(stdout);
}

static void
do_waitfile(const char *path)
{
	double until = raw_now_ms() + 60000;
	struct stat st;

	while (stat(path, &st) < 0) {
		if (raw_now_ms() > until)
			raw_die(EXIT_FAILED, "%s did not appear within 60 s", path);
		usleep(5000);
	}
}

/* A signal to ourselves, now or later. */
static void
signal_self(int sig, const char *after)
{
	if (!after) {
		fflush(stdout);
		kill(getpid(), sig);
		return;
	}
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig };
	long ms = raw_millis(after);
	struct itimerspec it = { .it_value = { ms / 1000, ms % 1000 * 1000000 + 1 } };
	timer_t id;

	if (timer_create(CLOCK_MONOTONIC, &ev, &id) < 0 || timer_settime(id, 0, &it, NULL) < 0)
		raw_die(EXIT_FAILED, "timer: %s", strerror(errno));
}

/* ---- the interpreter ---- */

static bool
memory_command(const char *cmd, char **w, int nr)
{
	if (!strcmp(cmd, "nic"))
		do_nic(w, nr);
	else if (!strcmp(cmd, "destroy") && nr == 1)
		nic_destroy_dct(nic_find(w[0], false));
	else if (!strcmp(cmd, "window"))
		do_window(w, nr);
	else if (!strcmp(cmd, "windows"))
		do_windows(w, nr);
	else if (!strcmp(cmd, "fill") && nr == 2)
		window_refill(need_window(w[0]), fill_parse(w[1]));
	else if (!strcmp(cmd, "dereg") && nr == 1)
		window_dereg(need_window(w[0]));
	else if (!strcmp(cmd, "free") && nr == 1)
		window_free(need_window(w[0]));
	else if (!strcmp(cmd, "token") && nr >= 2)
		token_make(w[0], need_window(w[1]), w + 2, nr - 2);
	else
		return false;
	return true;
}

static bool
rc_command(const char *cmd, char **w, int nr)
{
	const char *nic, *off, *size, *id, *with_gid;
	char *text;

	if (!strcmp(cmd, "qp")) {
		nic = take(w, &nr, "nic");
		with_gid = take(w, &nr, "gid");
		if (nr != 1)
			raw_die(EXIT_SCRIPT, "qp NAME [nic=NIC] [gid]");
		rc_qp_new(w[0], nic_find(nic ? nic : "nic", true), with_gid);
	} else if (!strcmp(cmd, "connect") && nr >= 1) {
		connect_qp(w, nr);
	} else if (!strcmp(cmd, "join") && nr == 1) {
		if (!last_nr)
			raw_die(EXIT_SCRIPT, "join NAME, after a request");
		rc_qp_join(w[0], &last[0]->resp);
	} else if (!strcmp(cmd, "destroyqp") && nr == 1) {
		rc_qp_destroy(w[0]);
	} else if (!strcmp(cmd, "rctoken")) {
		off = take(w, &nr, "off");
		id = take(w, &nr, "id");
		text = id ? expand(id, -1, -1) : NULL;
		size = take(w, &nr, "size");
		if (nr != 3)
			raw_die(EXIT_SCRIPT, "rctoken NAME QP WINDOW [off=N] [size=N] [id=ID]");
		rc_token(w[0], w[1], text, need_window(w[2]), off ? raw_number(off) : 0,
			 size ? raw_number(size) : 0);
		free(text);
	} else {
		return false;
	}
	return true;
}

static bool
request_command(const char *cmd, char **w, int nr)
{
	if (!strcmp(cmd, "server") && nr == 1) {
		snprintf(server, sizeof server, "%s", w[0]);
	} else if (!strcmp(cmd, "timeout") && nr == 1) {
		timeout_ms = (double)raw_millis(w[0]);
	} else if (!strcmp(cmd, "request")) {
		do_request(w, nr);
	} else if (!strcmp(cmd, "start")) {
		do_start(w, nr);
	} else if (!strcmp(cmd, "wait") && nr == 1) {
		struct conn *c = need_conn(w[0]);

		wait_for(&c, 1);
	} else if (!strcmp(cmd, "send") && nr == 2) {
		char *text = expand(w[1], -1, -1);

		if (send(need_conn(w[0])->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
			raw_die(EXIT_FAILED, "send: %s", strerror(errno));
		free(text);
	} else if (!strcmp(cmd, "hangup") && nr >= 1) {
		conn_close(need_conn(w[0]), nr > 1);
	} else if (!strcmp(cmd, "halfclose") && nr == 1) {
		shutdown(need_conn(w[0])->fd, SHUT_WR);
	} else if (!strcmp(cmd, "raw") && nr == 1) {
		do_raw(w[0]);
	} else if (!strcmp(cmd, "connections") && nr == 1) {
		do_connections((int)raw_number(w[0]));
	} else if (!strcmp(cmd, "parallel") && nr >= 3) {
		do_parallel(w, nr);
	} else if (!strcmp(cmd, "flood")) {
		do_flood(w, nr);
	} else {
		return false;
	}
	return true;
}

static bool
other_command(const char *cmd, char **w, int nr)
{
	if (!strcmp(cmd, "save")) {
		do_save(w, nr);
	} else if (!strcmp(cmd, "set") && nr == 2) {
		char *text = expand(w[1], -1, -1);

		set_var(w[0], text);
		free(text);
	} else if (!strcmp(cmd, "print")) {
		do_print(w, nr);
	} else if (!strcmp(cmd, "sleep") && nr == 1) {
		usleep((useconds_t)raw_millis(w[0]) * 1000);
	} else if (!strcmp(cmd, "touch") && nr == 1) {
		close(open(w[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	} else if (!strcmp(cmd, "waitfile") && nr == 1) {
		do_waitfile(w[0]);
	} else if (!strcmp(cmd, "stop")) {
		signal_self(SIGSTOP, nr ? w[0] : NULL);
	} else if (!strcmp(cmd, "kill")) {
		signal_self(SIGKILL, nr ? w[0] : NULL);
	} else if (!strcmp(cmd, "quit")) {
		exit(0);
	} else {
		return false;
	}
	return true;
}

static void
run_line(const char *line)
{
	struct words ws;

	line_nr++;
	line_text = line;
	words_split(line, &ws);
	if (ws.nr) {
		char **w = ws.w + 1;
		int nr = ws.nr - 1;

		if (!strcmp(ws.w[0], "expect") && nr >= 1) {
			bool window_only = !strcmp(w[0], "window") || !strcmp(w[0], "untouched") ||
					   !strcmp(w[0], "guards") || !strcmp(w[0], "equal");

			do_expect(w, nr, !window_only || strstr(line, "%i"));
		} else if (!memory_command(ws.w[0], w, nr) && !rc_command(ws.w[0], w, nr) &&
			   !request_command(ws.w[0], w, nr) && !other_command(ws.w[0], w, nr)) {
			raw_die(EXIT_SCRIPT, "\"%s\" is not known, or has too few or too many words",
				ws.w[0]);
		}
		check_guards();
	}
	words_free(&ws);
}

static void
run_text(char *text)
{
	char *save = NULL;

	for (char *line = strtok_r(text, ";\n", &save); line; line = strtok_r(NULL, ";\n", &save))
		run_line(line);
}

static int
write_bytes(const char *fill, const char *length)
{
	static unsigned char block[1 << 20];
	struct fill f = fill_parse(fill);
	uint64_t len = raw_number(length);

	for (uint64_t at = 0; at < len; at += sizeof block) {
		size_t n = len - at < sizeof block ? len - at : sizeof block;

		fill_bytes(&f, at, block, n);
		if (fwrite(block, 1, n, stdout) != n)
			return 1;
	}
	return fflush(stdout) ? 1 : 0;
}

static int
print_crc64(const char *path)
{
	char spec[1024], sum[13];

	snprintf(spec, sizeof spec, "file:%s", path);
	struct fill f = fill_parse(spec);

	raw_crc64_base64(raw_crc64(0, f.file, f.file_len), sum);
	puts(sum);
	return 0;
}

int
main(int argc, char **argv)
{
	struct rlimit rl;
	char *inline_script = NULL;
	int opt = 1;

	if (argc == 4 && !strcmp(argv[1], "--bytes"))
		return write_bytes(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "--crc64"))
		return print_crc64(argv[2]);
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	for (; opt < argc && *argv[opt] == '-'; opt++) {
		if (!strcmp(argv[opt], "-v"))
			verbose = true;
		else if (!strcmp(argv[opt], "-s") && opt + 1 < argc)
			snprintf(server, sizeof server, "%s", argv[++opt]);
		else if (!strcmp(argv[opt], "-t") && opt + 1 < argc)
			replies_to(argv[++opt]);
		else if (!strcmp(argv[opt], "-e") && opt + 1 < argc)
			inline_script = argv[++opt];
		else
			raw_die(EXIT_SCRIPT,
				"usage: rawclient [-v] [-s HOST:PORT] [-t LOG] [FILE | -e 'LINE; LINE']");
	}
	if (inline_script) {
		run_text(inline_script);
		return 0;
	}
	FILE *in = opt < argc ? fopen(argv[opt], "r") : stdin;
	char *line = NULL;
	size_t cap = 0;

	if (!in)
		raw_die(EXIT_SCRIPT, "%s: %s", argv[opt], strerror(errno));
	while (getline(&line, &cap, in) > 0) {
		line[strcspn(line, "\n")] = 0;
		run_line(line);
	}
	free(line);
	return 0;
}
