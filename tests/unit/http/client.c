/* SPDX-License-Identifier: Apache-2.0 */
/* See client.h. */
#include "client.h"

int
client_of(int port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)port) };
	struct timeval tv = { .tv_sec = 60 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	return fd;
}

void
put_bytes(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		assert_true(n > 0);
		p += n;
		len -= (size_t)n;
	}
}

void
put_text(int fd, const char *text)
{
	put_bytes(fd, text, strlen(text));
}

char *
get_all(int fd, size_t *ret_len, int *ret_err)
{
	size_t cap = 65536, len = 0;
	char *buf = malloc(cap + 1);
	ssize_t n;

	while ((n = recv(fd, buf + len, cap - len, 0)) > 0) {
		len += (size_t)n;
		if (len == cap)
			buf = realloc(buf, (cap *= 2) + 1);
	}
	buf[len] = 0;
	if (ret_len)
		*ret_len = len;
	*ret_err = n < 0 ? errno : 0;
	return buf;
}

const char *
answer_header(const struct answer *a, const char *name, char *out, size_t cap)
{
	const char *p = a->head;
	size_t n = strlen(name);

	while ((p = strstr(p, "\r\n"))) {
		p += 2;
		if (strncasecmp(p, name, n) == 0 && p[n] == ':') {
			const char *v = p + n + 1;
			size_t len;

			while (*v == ' ')
				v++;
			len = strcspn(v, "\r");
			len = len < cap ? len : cap - 1;
			memcpy(out, v, len);
			out[len] = 0;
			return out;
		}
	}
	return NULL;
}

bool
get_answer(int fd, struct answer *a, bool is_head, char **ret_body)
{
	size_t n = 0;
	char v[64], *body, *p;

	memset(a, 0, sizeof *a);
	while (n < 4 || memcmp(a->head + n - 4, "\r\n\r\n", 4) != 0) {
		ssize_t r;

		assert_true(n < sizeof a->head - 1);
		r = recv(fd, a->head + n, 1, 0);
		if (r <= 0) {
			if (r == 0)
				errno = 0;
			return false;
		}
		n++;
	}
	assert_int_equal(sscanf(a->head, "HTTP/1.%*d %d", &a->status), 1);
	a->content_length = -1;
	if (answer_header(a, "content-length", v, sizeof v))
		a->content_length = atoll(v);
	for (p = a->head; (p = strcasestr(p, "\r\ncontent-length:")); p++)
		a->lengths++;
	a->has_close = answer_header(a, "connection", v, sizeof v) && strcasecmp(v, "close") == 0;
	if (ret_body)
		*ret_body = NULL;
	if (is_head || a->content_length <= 0)
		return true;
	body = malloc((size_t)a->content_length + 1);
	while (a->body_len < (size_t)a->content_length) {
		ssize_t r = recv(fd, body + a->body_len, (size_t)a->content_length - a->body_len, 0);

		if (r <= 0)
			break;
		a->body_len += (size_t)r;
	}
	body[a->body_len] = 0;
	if (ret_body)
		*ret_body = body;
	else
		free(body);
	return true;
}

void
expect_status(int fd, struct answer *a, int status)
{
	assert_true(get_answer(fd, a, false, NULL));
	assert_int_equal(a->status, status);
}

void
expect_end(int fd)
{
	char c;

	assert_int_equal(recv(fd, &c, 1, 0), 0);
}
