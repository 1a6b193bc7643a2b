/* SPDX-License-Identifier: Apache-2.0 */
/* What the players share: a control plane over HTTP, as a program of one's own has it, and what must be so. */
#ifndef GANTRY_TESTS_CUOBJECT_PLAY_HPP
#define GANTRY_TESTS_CUOBJECT_PLAY_HPP

#include "cuobjclient.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#define must(x) ((x) ? (void)0 : failed(#x, __FILE__, __LINE__))

static inline void
failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	exit(1);
}

/* host:port of the server. */
static std::string server;

struct answer {
	int status;
	int reply; /* x-amz-rdma-reply; 0: none */
	std::string body;
};

/* One request; token: its header, "" without. */
static inline struct answer
http(const char *method, const std::string &path, const std::string &token)
{
	struct answer a = { 0, 0, "" };
	std::string text = std::string(method) + " " + path + " HTTP/1.1\r\nhost: " + server +
			   "\r\nconnection: close\r\n" +
			   (token.empty() ? "" : "x-amz-rdma-token: " + token + "\r\n") +
			   (*method == 'P' ? "content-length: 0\r\n\r\n" : "\r\n");
	size_t colon = server.rfind(':'), end, at;
	struct addrinfo *ai = nullptr;
	char buf[65536];
	ssize_t n;

	must(getaddrinfo(server.substr(0, colon).c_str(), server.substr(colon + 1).c_str(), nullptr, &ai) ==
	     0);
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && connect(fd, ai->ai_addr, ai->ai_addrlen) == 0);
	freeaddrinfo(ai);
	must(send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
	text.clear();
	while ((n = recv(fd, buf, sizeof buf, 0)) > 0)
		text.append(buf, static_cast<size_t>(n));
	close(fd);
	end = text.find("\r\n\r\n");
	must(end != std::string::npos && text.compare(0, 9, "HTTP/1.1 ") == 0);
	a.status = atoi(text.c_str() + 9);
	a.body = text.substr(end + 4);
	text.resize(end);
	for (size_t i = 0; i < text.size(); i++)
		text[i] = static_cast<char>(tolower(text[i]));
	at = text.find("\r\nx-amz-rdma-reply: ");
	a.reply = at == std::string::npos ? 0 : atoi(text.c_str() + at + 20);
	return a;
}

/* Did the bytes go by RDMA? */
static inline bool
by_rdma(const char *method, const std::string &path, const std::string &token)
{
	struct answer a = http(method, path, token);

	return a.status / 100 == 2 && a.reply / 100 == 2;
}

/* What a callback's context is: an object of the server. */
struct object {
	std::string path;
	std::string token; /* of the last callback */
	loff_t offset;
	size_t size;
	int calls;
};

static inline struct object *
told(const void *handle, size_t size, loff_t offset, const cufileRDMAInfo_t *info)
{
	struct object *o = static_cast<struct object *>(cuObjClient::getCtx(handle));

	/* A token of RC is shorter. */
	must(info->version == 1 && info->desc_len == static_cast<int>(strlen(info->desc_str)) + 1);
	must(info->desc_len == 82 || !strncmp(info->desc_str, "rc:", 3));
	o->token = info->desc_str;
	o->offset = offset;
	o->size = size;
	o->calls++;
	return o;
}

static inline ssize_t
get_object(const void *handle, char *, size_t size, loff_t offset, const cufileRDMAInfo_t *info)
{
	struct object *o = told(handle, size, offset, info);

	return by_rdma("GET", o->path, o->token) ? static_cast<ssize_t>(size) : -1;
}

static inline ssize_t
put_object(const void *handle, const char *, size_t size, loff_t offset, const cufileRDMAInfo_t *info)
{
	struct object *o = told(handle, size, offset, info);

	return by_rdma("PUT", o->path, o->token) ? static_cast<ssize_t>(size) : -1;
}

#endif
