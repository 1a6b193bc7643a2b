/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of class cuObjServer: GET, PUT and their completions. */
#include "cuobject/server_int.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>

enum { POLL_MAX = 16 };

/* The channel of a number, kept from being freed until channel_let(); null: it is not allocated. */
static struct gantry_channel *
channel_use(struct session *s, uint16_t number)
{
	struct gantry_channel *c;

	if (number >= s->channel_nr)
		return nullptr;
	s->channels[number].users++;
	c = s->channels[number].channel;
	if (!c)
		s->channels[number].users--;
	return c;
}

static void
channel_let(struct session *s, uint16_t number)
{
	s->channels[number].users--;
}

/* One call, as it came. */
struct call {
	enum gantry_dir dir;
	const std::string &key;
	const struct rdma_buffer *buffer;
	uint64_t remote;
	size_t size;
	const std::string &token;
	uint32_t delay_ns;
	uint16_t channel;
	uint64_t offset;
	ibv_wc_status *status;
	void *handle;
};

/* A longer key, which is whatever a client asks for, would leave no room for what is said about it. */
#define KEY_SHOWN 200

static const char *
key_rest(const struct call *c)
{
	return c->key.size() > KEY_SHOWN ? "..." : "";
}

static ssize_t
refuse(const struct call *c, int error, const char *why)
{
	say(CUOBJ_LOG_PATH_ERROR, "%s of \"%.*s%s\", %zu bytes on channel %u: %s",
	    c->dir == GANTRY_PUSH ? "GET" : "PUT", KEY_SHOWN, c->key.c_str(), key_rest(c), c->size,
	    c->channel, why);
	return error;
}

/* Which parts of the buffer these bytes are.  Their number. */
static int
cut(const struct call *c, uint64_t offset, struct gantry_piece *out)
{
	const struct rdma_buffer *b = c->buffer;
	size_t left = c->size;
	int n = 0;

	for (int i = 0; i < b->nr && left; i++) {
		out[n] = b->piece[i];
		if (b->base)
			out[n].region = b->base->piece[0].region;
		out[n].mem = static_cast<char *>(out[n].mem) + offset;
		out[n].len -= offset;
		offset = 0;
		if (out[n].len > left)
			out[n].len = left;
		left -= out[n++].len;
	}
	return n;
}

static void
tell(const struct call *c, ssize_t result, int wc_status, uint64_t ns)
{
	bool is_get = c->dir == GANTRY_PUSH;
	char text[400];

	snprintf(text, sizeof text, "%s of \"%.*s%s\", %zu bytes on channel %u: %zd, %s, %llu us",
		 is_get ? "GET" : "PUT", KEY_SHOWN, c->key.c_str(), key_rest(c), c->size, c->channel, result,
		 wc_status < 0 ? "no completion" : gantry_status_text(wc_status),
		 (unsigned long long)(ns / 1000));
	telemetry_line(CUOBJ_LOG_PATH_DEBUG, is_get ? CUOBJ_LOG_OP_GET : CUOBJ_LOG_OP_PUT, text);
}

static uint64_t
now_ns()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static ssize_t
transfer(void *state, const cuObjRDMATunable &params, const struct call *c)
{
	struct session *s = session_of(state);
	struct gantry_piece piece[GANTRY_PIECES_MAX];
	const struct rdma_buffer *b = c->buffer;
	const bool is_told = telemetry_wants(CUOBJ_LOG_PATH_DEBUG);
	uint64_t offset = c->offset, began_ns = is_told ? now_ns() : 0;
	struct gantry_channel *channel;
	int wc_status = -1;
	ssize_t n;

	if (!s || !s->server)
		return refuse(c, -ENODEV, "there is no session");
	if (!b || b->of != s || !c->remote || !c->size)
		return refuse(c, -EIO, "no buffer, no address or no size");
	if (c->size > GANTRY_MOVE_MAX || c->offset > b->size || c->size > b->size - c->offset)
		return refuse(c, -EIO, "more than the buffer has from there on, or than 1 GiB");
	if (b->nr > params.getMaxSge() || b->nr > GANTRY_PIECES_MAX)
		return refuse(c, -EIO, "the buffer has more entries than setMaxSge() allows");
	if (b->nr > 1 && offset) {
		say(CUOBJ_LOG_PATH_ERROR, "an offset of %llu into a buffer of %d entries counts as 0",
		    (unsigned long long)offset, b->nr);
		offset = 0;
	}
	channel = channel_use(s, c->channel);
	if (!channel)
		return refuse(c, -EIO, "the channel is not allocated");
	n = cut(c, offset, piece);
	if (!piece[0].region)
		n = refuse(c, -EIO, "the buffer was taken back, or its session closed");
	else if (c->handle)
		n = gantry_channel_start(channel, c->dir, piece, (int)n, c->remote, c->token.c_str(),
					 c->handle);
	else
		n = gantry_channel_move(channel, c->dir, piece, (int)n, c->remote, c->token.c_str(),
					c->delay_ns, &wc_status);
	channel_let(s, c->channel);
	if (c->status && wc_status >= 0)
		*c->status = static_cast<ibv_wc_status>(wc_status);
	if (is_told)
		tell(c, n, wc_status, now_ns() - began_ns);
	return n;
}

ssize_t
cuObjServer::handleGetObject(const std::string &key, struct rdma_buffer *local_rdma_buff,
			     uint64_t remote_buf_start, size_t size, const std::string &rdma_descr,
			     uint32_t poll_delay, uint16_t channel, uint64_t local_offset,
			     ibv_wc_status *status, void *async_handle)
{
	const struct call c = { GANTRY_PUSH,  key,        local_rdma_buff, remote_buf_start,
				size,         rdma_descr, poll_delay,      channel,
				local_offset, status,     async_handle };

	return transfer(state, params, &c);
}

ssize_t
cuObjServer::handleGetObject(const std::string &key, struct rdma_buffer *local_rdma_buff,
			     uint64_t remote_buf_start, size_t size, const std::string &rdma_descr,
			     uint16_t channel, uint64_t local_offset, ibv_wc_status *status,
			     void *async_handle)
{
	return handleGetObject(key, local_rdma_buff, remote_buf_start, size, rdma_descr,
			       params.getDelayInterval(), channel, local_offset, status, async_handle);
}

ssize_t
cuObjServer::handlePutObject(const std::string &key, struct rdma_buffer *local_rdma_buff,
			     uint64_t remote_buf_start, size_t size, const std::string &rdma_descr,
			     uint32_t poll_delay, uint16_t channel, uint64_t local_offset,
			     ibv_wc_status *status, void *async_handle)
{
	const struct call c = { GANTRY_PULL,  key,        local_rdma_buff, remote_buf_start,
				size,         rdma_descr, poll_delay,      channel,
				local_offset, status,     async_handle };

	return transfer(state, params, &c);
}

ssize_t
cuObjServer::handlePutObject(const std::string &key, struct rdma_buffer *local_rdma_buff,
			     uint64_t remote_buf_start, size_t size, const std::string &rdma_descr,
			     uint16_t channel, uint64_t local_offset, ibv_wc_status *status,
			     void *async_handle)
{
	return handlePutObject(key, local_rdma_buff, remote_buf_start, size, rdma_descr,
			       params.getDelayInterval(), channel, local_offset, status, async_handle);
}

int
cuObjServer::poll(cuObjAsyncEvent_t *events, int max_events, uint16_t channel)
{
	struct session *s = session_of(state);
	struct gantry_done done[POLL_MAX];
	struct gantry_channel *c;
	bool has_failed = false;
	int n;

	if (!s || !s->server) {
		say(CUOBJ_LOG_PATH_ERROR, "polling channel %u: there is no session", channel);
		return -ENODEV;
	}
	c = events && max_events >= 0 ? channel_use(s, channel) : nullptr;
	if (!c) {
		say(CUOBJ_LOG_PATH_ERROR, "polling channel %u: %s", channel,
		    events && max_events >= 0 ? "it is not allocated" : "there is no room for events");
		return -EINVAL;
	}
	n = gantry_channel_poll(c, done, max_events > POLL_MAX ? POLL_MAX : max_events);
	channel_let(s, channel);
	for (int i = 0; i < n; i++) {
		events[i].async_handle = done[i].handle;
		events[i].status = done[i].wc_status;
		has_failed |= done[i].error != 0;
	}
	return has_failed ? -EIO : n;
}
