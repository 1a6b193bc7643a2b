/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantryd --reload: asks the daemon that runs to reload, and returns its answer as the exit status. `systemctl reload` runs
 * it, as the daemon's user and in its sandbox. A main thread of its own process; no thread of the daemon.
 */
#include "main/options.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_BYTES (64u << 10)
#define ANSWER_S 60

/* Copies the socket of a daemon whose file cannot be read: that of -o, or the packaged one, in the directory that systemd
 * makes for the unit. */
static void
likely_socket(const struct conf_source *src, char *path, size_t len)
{
	static const char key[] = "admin.socket=";
	const char *dir = getenv("RUNTIME_DIRECTORY");

	snprintf(path, len, "%s/admin.sock", dir && *dir == '/' ? dir : "/run/gantry");
	for (int i = 0; i < src->override_nr; i++) {
		const char *text = src->overrides[i].text;

		if (strncmp(text, key, sizeof key - 1) == 0)
			snprintf(path, len, "%s", text + sizeof key - 1);
	}
}

/* Copies admin.socket of the configuration to path, which is empty for `none`. */
static void
socket_of(const struct conf_source *src, char *path, size_t len)
{
	char *said = NULL;
	size_t said_len;
	FILE *unsaid = open_memstream(&said, &said_len);
	struct conf *conf = NULL;

	/* The daemon reads the same file, and says what is wrong with it. */
	if (unsaid && conf_load(src, &conf, unsaid) == 0)
		snprintf(path, len, "%s", conf->admin.socket ? conf->admin.socket : "");
	else
		likely_socket(src, path, len);
	conf_free(conf);
	if (unsaid)
		fclose(unsaid);
	free(said);
}

int
socket_ask(const char *path, const char *what, char *answer, size_t len)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = ANSWER_S };
	char request[160];
	size_t at = 0;
	ssize_t n = -1;
	int fd, r = 0;

	if (strlen(path) >= sizeof sun.sun_path)
		return -ENAMETOOLONG;
	strcpy(sun.sun_path, path);
	snprintf(request, sizeof request,
		 "%s HTTP/1.1\r\nHost: gantryd\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", what);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (connect(fd, (struct sockaddr *)&sun, sizeof sun) < 0 ||
	    send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		r = -errno;
	while (r == 0 && at < len - 1 && (n = recv(fd, answer + at, len - 1 - at, 0)) != 0) {
		if (n < 0 && errno != EINTR)
			r = errno == EAGAIN ? -ETIMEDOUT : -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	answer[at] = 0;
	close(fd);
	return r;
}

/* Sends the signal to the process that systemd names: without a socket its log alone has the answer. */
static int
signal_only(void)
{
	const char *text = getenv("MAINPID");
	long pid = text ? strtol(text, NULL, 10) : 0;

	if (pid <= 1 || kill((pid_t)pid, SIGHUP) < 0) {
		fprintf(stderr, "gantryd: admin.socket is none, so the daemon cannot be asked; SIGHUP makes "
				"it reload, and its "
				"log has the result\n");
		return EXIT_CONFIG;
	}
	printf("gantryd: SIGHUP was sent; the log has the result (admin.socket is none)\n");
	return EXIT_OK;
}

int
reload_ask(const struct conf_source *src)
{
	static char answer[ANSWER_BYTES];
	char path[sizeof((struct sockaddr_un *)0)->sun_path + 1];
	const char *body;
	int status = 0, r;

	socket_of(src, path, sizeof path);
	if (!path[0])
		return signal_only();
	r = socket_ask(path, "POST /control/reload", answer, sizeof answer);
	if (r < 0) {
		fprintf(stderr, "gantryd: not reloaded: %s: %s%s\n", path, strerror(-r),
			r == -ENOENT || r == -ECONNREFUSED
				? ": does the daemon run, and is this its admin.socket?"
				: "");
		return r == -ETIMEDOUT ? EXIT_RUNTIME : EXIT_MISSING;
	}
	body = strstr(answer, "\r\n\r\n");
	if (sscanf(answer, "HTTP/1.%*1d %3d", &status) != 1 || !body) {
		fprintf(stderr, "gantryd: not reloaded: %s: this is no answer of gantryd\n", path);
		return EXIT_RUNTIME;
	}
	fprintf(status == 200 ? stdout : stderr, "gantryd: %s: %s\n",
		status == 200 ? "reloaded" : "not reloaded", body + 4);
	return status == 200 ? EXIT_OK : status == 400 ? EXIT_CONFIG : EXIT_RUNTIME;
}
