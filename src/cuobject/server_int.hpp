/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of libcuobjserver. Any thread may call the functions. */
#ifndef GANTRY_CUOBJECT_SERVER_INT_HPP
#define GANTRY_CUOBJECT_SERVER_INT_HPP

#include "cuobject/cuobjserver.h"

#include "cuobject/telemetry.hpp"
#include "server/gantry_server.h"

#include <atomic>
#include <cstdlib>

#include <netinet/in.h>
#include <pthread.h>

/* A channel under the number that programs use. users: number of calls that use it; the call that frees the channel waits for them. */
struct numbered {
	std::atomic<struct gantry_channel *> channel;
	std::atomic<int> users;
	std::atomic<bool> is_ending; /* true: the channel cannot be allocated yet */
};

struct session {
	char ip[INET6_ADDRSTRLEN]; /* "": there is no usable address */
	unsigned short port;
	unsigned proto;
	std::atomic<struct gantry_server *> server; /* null: closed */
	std::atomic<int>
		askers; /* number of calls that use the server without the mutex; its end waits for them */
	unsigned forks; /* number of forks at which the session was made */
	struct numbered *channels;
	int channel_nr;
	struct rdma_buffer *buffers; /* registered buffers */
	pthread_mutex_t mutex;       /* protects opening, closing and the allocation of channels */
	/* Protects the list and its regions; taken after `mutex`. A device that died may keep the holder waiting;
	 * calls for channels do not wait with it. */
	pthread_mutex_t memory;
	pthread_mutex_t list; /* protects buffers; taken after the other two, briefly */
	struct session *next;
};

struct rdma_buffer {
	struct session *of;
	struct rdma_buffer *base; /* buffer of which this one is a view; null: it is registered itself */
	struct rdma_buffer *next; /* next registered buffer */
	std::atomic<int> refs;    /* one for the buffer itself, and one for each view of it */
	size_t size;
	int nr;
	struct gantry_piece piece[]; /* region null: it was deregistered, or its session is closed */
};

/* ---- server.cpp ---- */

/* Writes a line of telemetry if the flag is set. */
void say(unsigned flag, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns the session of an object. Null: the object has none, or the session belongs to the parent of this forked process, which
 * must not touch the adapter of its parent. */
struct session *session_of(void *state);

/* ---- server_memory.cpp ---- */

/* Removes a reference to a buffer, and frees the buffer with the last one. */
void buffer_drop(struct rdma_buffer *b);

#endif
