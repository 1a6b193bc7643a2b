/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curl(1) for one plain request, as a static program: curl(1) loads 33 libraries, which is most of the CPU time of a request to the loopback.
 * tests/system/lib.sh puts this program ahead of curl(1) in PATH. A word or a URL that is not in this file (several URLs, globs, TLS, forms,
 * signatures, limits of the rate, ...) makes the program execute curl(1) with all words, before anything was read or sent.
 *
 * Options: -s -S -f -I -o -D -X -T FILE -d -H -r -w -m, --fail --head --data --data-binary --max-time --unix-socket.
 * Requests, files and exit statuses are those of curl 7.88.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	E_HTTP09 = 1,
	E_CONNECT = 7,
	E_PARTIAL = 18,
	E_STATUS = 22,
	E_WRITE = 23,
	E_TIME = 28,
	E_EMPTY = 52,
	E_SEND = 55,
	E_RECV = 56
};
/* A body of -T, and one of -d above this size, waits for the answer 100, at most a second. */
#define EXPECT_ABOVE (1 << 20)

static struct {
	char **argv;
	bool silent, show, fail, no_body;
	const char *out, *head, *method, *upload, *range, *format, *socket, *url;
	bool has_data;
	char *data;
	size_t data_len;
	double max_time;
	const char *headers[64];
	int header_nr;
} o = { .max_time = 0 };

static struct {
	char host[128], target[16384];
	struct sockaddr_in sin;
	int fd, body_fd;
	uint64_t body_len, body_sent; /* of the request */
	bool waits_100;
	double began, until_100;
	char *head; /* of the last response, with its empty line */
	size_t head_len;
	int status;
	bool got_any;
	uint64_t got; /* bytes of the body */
	FILE *out, *dump;
	char *buf; /* received, not yet used */
	size_t buf_len;
} t = { .fd = -1, .body_fd = -1 };

static void
other(void)
{
	execv("/usr/bin/curl", o.argv);
	fprintf(stderr, "curl: /usr/bin/curl: %s\n", strerror(errno));
	exit(2);
}

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- the words ---- */

static bool
is_header(const char *line, const char *name)
{
	size_t n = strlen(name);

	return strncasecmp(line, name, n) == 0 && line[n] == ':';
}

static bool
has_header(const char *name)
{
	for (int i = 0; i < o.header_nr; i++)
		if (is_header(o.headers[i], name))
			return true;
	return false;
}

static void
take_header(const char *line)
{
	static const char *const not_ours[] = { "host",          "content-length", "transfer-encoding",
						"expect",        "connection",     "te",
						"range",         "cookie",         "accept-encoding",
						"authorization", "referer" };

	if (!strchr(line, ':') || strpbrk(line, "\r\n") || *line == '@' || o.header_nr == 64)
		other();
	for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
		if (is_header(line, not_ours[i]))
			other();
	o.headers[o.header_nr++] = line;
}

static char *
read_all(int fd, size_t *ret_len)
{
	size_t len = 0, room = 65536;
	char *p = malloc(room);
	ssize_t n;

	while (p && (n = read(fd, p + len, room - len)) > 0) {
		len += (size_t)n;
		if (len == room)
			p = realloc(p, room *= 2);
	}
	*ret_len = len;
	return p;
}

/* Texts of -d are joined by '&'; @FILE is read without its line ends, by --data-binary as it is. */
static void
take_data(const char *word, bool binary)
{
	size_t len = strlen(word);
	char *text = strdup(word);

	if (o.has_data)
		other();
	if (*word == '@') {
		int fd = strcmp(word, "@-") == 0 ? -2 : open(word + 1, O_RDONLY | O_CLOEXEC);

		if (fd == -1)
			other();
		/* Standard input is read only after all words are known. */
		o.has_data = true;
		o.data = NULL;
		t.body_fd = fd;
		o.data_len = binary;
		free(text);
		return;
	}
	o.has_data = true;
	o.data = text;
	o.data_len = len;
}

static void
read_data(void)
{
	if (o.has_data && !o.data) {
		bool binary = o.data_len;
		size_t len = 0, n = 0;

		o.data = read_all(t.body_fd == -2 ? 0 : t.body_fd, &len);
		for (size_t i = 0; i < len; i++)
			if (binary || !strchr("\r\n", o.data[i]))
				o.data[n++] = o.data[i];
		o.data_len = n;
		t.body_fd = -1;
	}
	if (o.has_data)
		t.body_len = o.data_len;
}

/* Fields of -w: %{http_code}, %{time_total}, %header{NAME}; \n \r \t. */
static void
check_format(const char *f)
{
	for (; *f; f++) {
		if (*f == '\\' && (!f[1] || !strchr("nrt", f[1])))
			other();
		if (*f == '%' && strncmp(f, "%{http_code}", 12) != 0 &&
		    strncmp(f, "%{time_total}", 13) != 0 &&
		    (strncmp(f, "%header{", 8) != 0 || !strchr(f, '}')))
			other();
	}
	if (*o.format == '@')
		other();
}

static void
once(const char **field, const char *value)
{
	if (*field)
		other();
	*field = value;
}

static void
option(char c, const char *v)
{
	char *end;

	switch (c) {
	case 'o':
		once(&o.out, v);
		break;
	case 'D':
		once(&o.head, v);
		break;
	case 'X':
		once(&o.method, v);
		break;
	case 'T':
		once(&o.upload, v);
		break;
	case 'r':
		once(&o.range, v);
		break;
	case 'w':
		once(&o.format, v);
		break;
	case 'U':
		once(&o.socket, v);
		break;
	case 'd':
		take_data(v, false);
		break;
	case 'B':
		take_data(v, true);
		break;
	case 'H':
		take_header(v);
		break;
	case 'm':
		o.max_time = strtod(v, &end);
		if (end == v || *end)
			other();
		break;
	default:
		other();
	}
}

/* A long option as a short one, with B and U for two without a short form. */
static char
short_of(const char *word)
{
	static const struct {
		const char *name;
		char c;
	} longs[] = { { "fail", 'f' },   { "head", 'I' },        { "silent", 's' },   { "show-error", 'S' },
		      { "data", 'd' },   { "data-binary", 'B' }, { "max-time", 'm' }, { "unix-socket", 'U' },
		      { "output", 'o' }, { "request", 'X' },     { "header", 'H' } };

	for (size_t i = 0; i < sizeof longs / sizeof *longs; i++)
		if (strcmp(word, longs[i].name) == 0)
			return longs[i].c;
	other();
	return 0;
}

static bool
flag(char c)
{
	switch (c) {
	case 's':
		o.silent = true;
		return true;
	case 'S':
		o.show = true;
		return true;
	case 'f':
		o.fail = true;
		return true;
	case 'I':
		o.no_body = true;
		return true;
	default:
		return false;
	}
}

static void
read_words(char **w)
{
	for (; *w; w++) {
		if (**w != '-' || !w[0][1]) {
			once(&o.url, *w);
		} else if (w[0][1] == '-') {
			char c = short_of(*w + 2);

			if (!flag(c)) {
				if (!w[1])
					other();
				option(c, *++w);
			}
		} else {
			for (const char *c = *w + 1; *c; c++) {
				if (flag(*c))
					continue;
				/* -U is of curl(1) alone. */
				if (strchr("UB", *c) || (!c[1] && !w[1]))
					other();
				option(*c, c[1] ? c + 1 : *++w);
				break;
			}
		}
	}
	if (!o.url || !o.silent)
		other();
}

/* http://ADDRESS[:PORT][/PATH][?QUERY], where curl would send path and query as they are. */
static void
read_url(void)
{
	const char *p = o.url;
	size_t n;
	unsigned port = 80;
	char name[64];

	if (strncmp(p, "http://", 7) != 0)
		other();
	for (const char *c = p; *c; c++)
		if (*c <= ' ' || *c > '~' || strchr("[]{}#\\", *c))
			other();
	p += 7;
	n = strcspn(p, "/?");
	if (n == 0 || n >= sizeof t.host || memchr(p, '@', n))
		other();
	memcpy(t.host, p, n);
	if (strlen(p + n) + 2 > sizeof t.target || strstr(p + n, "/."))
		other();
	snprintf(t.target, sizeof t.target, "%s%s", p[n] == '/' ? "" : "/", p + n);
	n = strcspn(t.host, ":");
	if (n >= sizeof name || (t.host[n] && (sscanf(t.host + n, ":%5u", &port) != 1 || port == 0 ||
					       port > 65535 || port == 80)))
		other();
	memcpy(name, t.host, n);
	name[n] = 0;
	for (const char *c = name; *c; c++)
		if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '.' && *c != '-')
			other();
	t.sin = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	if (!o.socket && inet_pton(AF_INET, name, &t.sin.sin_addr) != 1)
		other();
}

static void
look_at_words(void)
{
	struct stat st;

	read_url();
	if (o.format)
		check_format(o.format);
	if (o.range && (!strchr(o.range, '-') || o.upload))
		other();
	if ((o.upload || o.no_body) && o.has_data)
		other();
	/* Without -I the body of an answer to HEAD is waited for. */
	if (o.no_body ? o.upload || o.method : o.method && strcmp(o.method, "HEAD") == 0)
		other();
	if (o.head && strcmp(o.head, "-") == 0 && !o.out)
		other();
	if (o.socket && strlen(o.socket) >= sizeof((struct sockaddr_un *)0)->sun_path)
		other();
	if (o.upload) {
		if (t.target[strlen(t.target) - 1] == '/' || strcmp(o.upload, "-") == 0)
			other();
		t.body_fd = open(o.upload, O_RDONLY | O_CLOEXEC);
		if (t.body_fd < 0 || fstat(t.body_fd, &st) < 0 || !S_ISREG(st.st_mode))
			other();
		t.body_len = (uint64_t)st.st_size;
	}
	read_data();
}

/* ---- the end ---- */

/* The first header of that name of the last response, without blanks around it; its length, 0 without one. */
static size_t
header_of(const char *name, size_t name_len, const char **ret)
{
	char *end = t.head ? t.head + t.head_len : NULL;

	for (char *line = t.head; line && line < end;
	     line = memchr(line, '\n', (size_t)(end - line))
			    ? (char *)memchr(line, '\n', (size_t)(end - line)) + 1
			    : end) {
		size_t n = strcspn(line, "\r\n");

		if (n <= name_len || line[name_len] != ':' || strncasecmp(line, name, name_len) != 0)
			continue;
		line += name_len + 1;
		n -= name_len + 1;
		while (n && isblank((unsigned char)*line))
			line++, n--;
		while (n && isblank((unsigned char)line[n - 1]))
			n--;
		*ret = line;
		return n;
	}
	return 0;
}

static void
write_format(void)
{
	const char *v;

	for (const char *f = o.format; f && *f; f++) {
		if (*f == '\\') {
			f++;
			putchar(*f == 'n' ? '\n' : *f == 'r' ? '\r' : '\t');
		} else if (strncmp(f, "%{http_code}", 12) == 0) {
			printf("%03d", t.status);
			f += 11;
		} else if (strncmp(f, "%{time_total}", 13) == 0) {
			printf("%.6f", now() - t.began);
			f += 12;
		} else if (*f == '%') {
			size_t n = strcspn(f, "}");
			size_t len = header_of(f + 8, n - 8, &v);

			if (len)
				fwrite(v, 1, len, stdout);
			f += n;
		} else {
			putchar(*f);
		}
	}
}

static _Noreturn void end(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static _Noreturn void
end(int code, const char *fmt, ...)
{
	va_list ap;

	if (code && (o.show || !o.silent)) {
		fprintf(stderr, "curl: (%d) ", code);
		va_start(ap, fmt);
		vfprintf(stderr, fmt, ap);
		va_end(ap);
		fputc('\n', stderr);
	}
	/* A transfer without bytes leaves an empty file. */
	if (!code && o.out && !t.out && strcmp(o.out, "-") != 0)
		t.out = fopen(o.out, "wbe");
	write_format();
	if ((t.out && t.out != stdout && fclose(t.out)) || (t.dump && t.dump != stdout && fclose(t.dump)) ||
	    fflush(stdout))
		code = code ? code : E_WRITE;
	_exit(code);
}

/* ---- the transfer ---- */

static _Noreturn void
timed_out(void)
{
	end(E_TIME, "Operation timed out after %.0f milliseconds with %llu bytes received",
	    (now() - t.began) * 1000, (unsigned long long)t.got);
}

/* Waits for events, to the deadline. */
static short
wait_events(short events, double until)
{
	struct pollfd p = { .fd = t.fd, .events = events };
	double last = o.max_time > 0 ? t.began + o.max_time : 0;

	for (;;) {
		double left = -1;
		int rc;

		if (last > 0 && (left = last - now()) <= 0)
			timed_out();
		if (until > 0 && (left < 0 || until - now() < left))
			left = until > now() ? until - now() : 0;
		rc = poll(&p, 1, left < 0 ? -1 : (int)(left * 1000) + 1);
		if (rc > 0)
			return p.revents;
		if (rc == 0 && until > 0 && now() >= until)
			return 0;
	}
}

static void
connect_to(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int err = 0, one = 1, rc;
	socklen_t len = sizeof err;

	if (o.socket)
		memcpy(sun.sun_path, o.socket, strlen(o.socket));
	t.fd = socket(o.socket ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (!o.socket)
		setsockopt(t.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	rc = connect(t.fd, o.socket ? (struct sockaddr *)&sun : (struct sockaddr *)&t.sin,
		     o.socket ? sizeof sun : sizeof t.sin);
	if (rc < 0 && errno == EINPROGRESS) {
		wait_events(POLLOUT, 0);
		rc = getsockopt(t.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || err ? -1 : 0;
	}
	if (rc < 0)
		end(E_CONNECT, "Failed to connect to %.*s port %d after %.0f ms: Couldn't connect to server",
		    (int)strcspn(t.host, ":"), t.host, ntohs(t.sin.sin_port), (now() - t.began) * 1000);
}

static bool
send_some(const char *p, size_t len, size_t *ret_sent)
{
	ssize_t n = send(t.fd, p, len, MSG_NOSIGNAL);

	*ret_sent = n > 0 ? (size_t)n : 0;
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static void
send_head(void)
{
	static char head[65536];
	int n = 0;
	const bool post = o.has_data, put = o.upload;
	const char *method = o.method ? o.method : o.no_body ? "HEAD" : put ? "PUT" : post ? "POST" : "GET";

	t.waits_100 = put ? t.body_len > 0 : post && t.body_len > EXPECT_ABOVE;
#define SAY(...) n += snprintf(head + n, n < (int)sizeof head ? sizeof head - (size_t)n : 0, __VA_ARGS__)
	SAY("%s %s HTTP/1.1\r\nHost: %s\r\n", method, t.target, t.host);
	if (o.range)
		SAY("Range: bytes=%s\r\n", o.range);
	if (!has_header("user-agent"))
		SAY("User-Agent: curl/7.88.1\r\n");
	if (!has_header("accept"))
		SAY("Accept: */*\r\n");
	for (int i = 0; i < o.header_nr; i++) {
		const char *v = strchr(o.headers[i], ':') + 1;

		/* A header without a value is left out. */
		if (v[strspn(v, " \t")])
			SAY("%s\r\n", o.headers[i]);
	}
	if (post || put)
		SAY("Content-Length: %llu\r\n", (unsigned long long)t.body_len);
	if (post && !has_header("content-type"))
		SAY("Content-Type: application/x-www-form-urlencoded\r\n");
	if (t.waits_100)
		SAY("Expect: 100-continue\r\n");
	SAY("\r\n");
#undef SAY
	if (n >= (int)sizeof head)
		end(E_SEND, "headers of more than %zu bytes", sizeof head);
	for (size_t sent = 0, some; sent < (size_t)n; sent += some) {
		if (!send_some(head + sent, (size_t)n - sent, &some))
			end(E_SEND, "Send failure: %s", strerror(errno));
		if (some == 0)
			wait_events(POLLOUT, 0);
	}
	t.until_100 = t.waits_100 ? now() + 1 : 0;
}

/* Sends a piece of the body; false when the server takes no more. */
static bool
send_body(void)
{
	static char piece[65536];
	static size_t from, have;
	size_t some;

	if (o.has_data) {
		if (!send_some(o.data + t.body_sent, o.data_len - t.body_sent, &some))
			return false;
		t.body_sent += some;
		return true;
	}
	if (from == have) {
		ssize_t n = read(t.body_fd, piece, sizeof piece);

		if (n <= 0)
			end(26, "read function returned funny value");
		from = 0;
		have = (size_t)n;
	}
	if (have - from > t.body_len - t.body_sent)
		have = from + (size_t)(t.body_len - t.body_sent);
	if (!send_some(piece + from, have - from, &some))
		return false;
	from += some;
	t.body_sent += some;
	return true;
}

/* Waits until more bytes were received, and sends the body meanwhile; false at the end of the connection. */
static bool
receive(void)
{
	static size_t room;
	static bool broken;

	for (;;) {
		bool sends = t.body_sent < t.body_len && !broken && t.status < 400;
		short ev = wait_events(POLLIN | (sends && !t.waits_100 ? POLLOUT : 0),
				       sends && t.waits_100 ? t.until_100 : 0);
		ssize_t n;

		if (ev == 0) {
			t.waits_100 = false;
			continue;
		}
		if (ev & (POLLIN | POLLHUP | POLLERR)) {
			if (room - t.buf_len < 65536)
				t.buf = realloc(t.buf, room = t.buf_len + (1 << 18));
			n = recv(t.fd, t.buf + t.buf_len, room - t.buf_len - 1, 0);
			if (n > 0) {
				t.buf_len += (size_t)n;
				t.got_any = true;
				return true;
			}
			if (n == 0)
				return false;
			if (errno != EAGAIN && errno != EINTR)
				end(broken && !t.got_any ? E_SEND : E_RECV, "Recv failure: %s",
				    strerror(errno));
		}
		if ((ev & POLLOUT) && sends && !t.waits_100 && !send_body())
			broken = true;
	}
}

static void
use(size_t n)
{
	memmove(t.buf, t.buf + n, t.buf_len - n);
	t.buf_len -= n;
}

static void
write_out(FILE **f, const char *path, const char *p, size_t len)
{
	if (!*f && path && strcmp(path, "-") != 0)
		*f = fopen(path, "wbe");
	else if (!*f)
		*f = stdout;
	if (!*f || fwrite(p, 1, len, *f) != len || (*f == stdout && fflush(stdout)))
		end(E_WRITE, "Failure writing output to destination");
}

static void
write_head(const char *p, size_t len)
{
	if (o.head)
		write_out(&t.dump, o.head, p, len);
	if (o.no_body)
		write_out(&t.out, o.out, p, len);
}

/* Uses the next line that was received, with its end: its length, in t.buf. */
static size_t
next_line(void)
{
	size_t seen = 0;
	char *nl;

	while (!(nl = t.buf_len > seen ? memchr(t.buf + seen, '\n', t.buf_len - seen) : NULL)) {
		seen = t.buf_len;
		if (!receive()) {
			if (!t.got_any)
				end(E_EMPTY, "Empty reply from server");
			end(t.head ? E_PARTIAL : E_RECV, "%s",
			    t.head ? "transfer closed with outstanding read data remaining"
				   : "Recv failure: the head is not whole");
		}
	}
	return (size_t)(nl - t.buf) + 1;
}

/* Reads the head of one response. */
static void
read_head(void)
{
	size_t n = 0, room = 0;

	free(t.head);
	t.head = NULL;
	for (t.head_len = 0; t.head_len == 0 || n > 2; t.head_len += n) {
		n = next_line();
		if (t.head_len == 0) {
			t.buf[n - 1] = 0;
			if (sscanf(t.buf, "HTTP/1.%*1[01] %3d", &t.status) != 1)
				end(E_HTTP09, "Received HTTP/0.9 when not allowed");
			t.buf[n - 1] = '\n';
		}
		if (t.head_len + n + 1 > room)
			t.head = realloc(t.head, room = 2 * (t.head_len + n + 1));
		memcpy(t.head + t.head_len, t.buf, n);
		t.head[t.head_len + n] = 0;
		write_head(t.buf, n);
		use(n);
	}
}

/* Takes LEN bytes of the body, or all to the end of the connection. */
static void
take_body(uint64_t len, bool to_end, bool chunked)
{
	while (len || to_end) {
		size_t n = !to_end && t.buf_len > len ? (size_t)len : t.buf_len;

		if (n)
			write_out(&t.out, o.out, t.buf, n);
		t.got += n;
		use(n);
		len -= to_end ? 0 : n;
		if ((len || to_end) && !receive()) {
			if (!to_end && chunked)
				end(E_PARTIAL, "transfer closed with outstanding read data remaining");
			if (!to_end)
				end(E_PARTIAL, "transfer closed with %llu bytes remaining to read",
				    (unsigned long long)len);
			return;
		}
	}
}

static void
take_chunks(void)
{
	size_t n;

	for (;;) {
		char *stop;
		unsigned long long len;

		n = next_line();
		len = strtoull(t.buf, &stop, 16);
		if (stop == t.buf)
			end(E_RECV, "Illegal or missing hexadecimal sequence in chunked-encoding");
		use(n);
		if (len == 0)
			break;
		take_body(len, false, true);
		use(next_line());
	}
	while ((n = next_line()) > 2 || (n == 2 && *t.buf != '\r')) {
		write_head(t.buf, n);
		use(n);
	}
}

int
main(int argc __attribute__((unused)), char **argv)
{
	const char *v = NULL;
	size_t n;

	o.argv = argv;
	signal(SIGPIPE, SIG_IGN);
	read_words(argv + 1);
	look_at_words();
	t.began = now();
	if (o.head && strcmp(o.head, "-") != 0 && !(t.dump = fopen(o.head, "wbe")))
		end(E_WRITE, "Failed to open %s", o.head);
	connect_to();
	send_head();
	do {
		read_head();
		t.waits_100 = false;
	} while (t.status < 200);
	if (o.fail && t.status >= 400)
		end(E_STATUS, "The requested URL returned error: %d", t.status);
	if (!o.no_body && t.status != 204 && t.status != 304) {
		n = header_of("transfer-encoding", 17, &v);
		if (n == 7 && strncasecmp(v, "chunked", 7) == 0)
			take_chunks();
		else if (header_of("content-length", 14, &v))
			take_body(strtoull(v, NULL, 10), false, false);
		else
			take_body(0, true, false);
	}
	end(0, "%s", "");
}
