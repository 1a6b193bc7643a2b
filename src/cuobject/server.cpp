/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class cuObjServer and its base, over libgantry-server.  An object is the tunables and one pointer to a session of ours,
 * which outlives the object's close and open.  A child that was forked has the objects, and none of their sessions.
 */
#include "cuobject/cuobjserver.h"

#include "cuobject/telemetry.hpp"
#include "server/gantry_server.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

enum {
	PROTO_RDMA_EXT_RC_V1 = 1002, /* what protocol.md calls external RC */
	ENTRIES_MAX = 10,            /* of one registration */
	POLL_MAX = 16,
};

/* A channel as programs number it.  Whoever uses it is counted, so that who frees it waits for them. */
struct numbered {
	std::atomic<struct gantry_channel *> channel;
	std::atomic<int> users;
	std::atomic<bool> is_ending; /* not to be allocated yet */
};

struct session {
	char ip[INET6_ADDRSTRLEN]; /* "": none that could be used */
	unsigned short port;
	unsigned proto;
	std::atomic<struct gantry_server *> server; /* null: closed */
	std::atomic<int> askers;                    /* who use it without the mutex; its end waits for them */
	unsigned forks;                             /* of which process it is */
	struct numbered *channels;
	int channel_nr;
	struct rdma_buffer *buffers; /* registered */
	pthread_mutex_t mutex;       /* of opening and closing, of allocating channels */
	/* Of the list and its regions, taken behind the other.  A device that died may keep its holder waiting; whoever
	 * wants a channel does not wait with it. */
	pthread_mutex_t memory;
	pthread_mutex_t list; /* of buffers; behind both, for a moment */
	struct session *next;
};

struct rdma_buffer {
	struct session *of;
	struct rdma_buffer *base; /* what a view shows; null: it is registered itself */
	struct rdma_buffer *next; /* of those that are registered */
	std::atomic<int> refs;    /* itself, and the views of it */
	size_t size;
	int nr;
	struct gantry_piece piece[]; /* without a region: it was taken back, or their session closed */
};

/* ---- telemetry ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session *sessions; /* that are open */
static bool is_greeted;
static std::atomic<unsigned> forks;

static void __attribute__((format(printf, 2, 3))) say(unsigned flag, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	if (!telemetry_wants(flag))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	telemetry_line(flag, 0, text);
}

static void
on_log(void *, enum gantry_server_log level, const char *text)
{
	telemetry_line(level == GANTRY_SERVER_LOG_ERROR  ? CUOBJ_LOG_PATH_ERROR
		       : level == GANTRY_SERVER_LOG_INFO ? CUOBJ_LOG_PATH_INFO
							 : CUOBJ_LOG_PATH_DEBUG,
		       0, text);
}

static enum gantry_server_log
wanted_level()
{
	return telemetry_wants(CUOBJ_LOG_PATH_DEBUG)  ? GANTRY_SERVER_LOG_DEBUG
	       : telemetry_wants(CUOBJ_LOG_PATH_INFO) ? GANTRY_SERVER_LOG_INFO
						      : GANTRY_SERVER_LOG_ERROR;
}

/* Says which library this is, once where it is heard.  Locked. */
static void
greet(const struct gantry_server *server)
{
	char text[600], port[128];
	size_t n = (size_t)snprintf(text, sizeof text, "cuObject interface of Gantry %s, server",
				    gantry_server_version());

	if (is_greeted || !telemetry_wants(CUOBJ_LOG_PATH_INFO))
		return;
	for (int i = 0; gantry_server_port(server, i, port, sizeof port) == 0 && n < sizeof text; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : ": ", port);
	telemetry_line(CUOBJ_LOG_PATH_INFO, 0, text);
	is_greeted = true;
}

/* ---- sessions ---- */

/* Null also in a child, of what is its parent's: on an adapter that would take it from the parent. */
static struct session *
session_of(void *state)
{
	struct session *s = static_cast<struct session *>(state);

	return s && s->forks == forks ? s : nullptr;
}

/* Who held the lock is not in the child. */
static void
in_child()
{
	forks++;
	sessions = nullptr;
	pthread_mutex_init(&lock, nullptr);
	telemetry_in_child();
}

static void
watch_forks()
{
	pthread_atfork(nullptr, nullptr, in_child);
}

/* A closed one for an address. */
static struct session *
session_new(const char *ip, unsigned short port)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct session *s = new (std::nothrow) struct session();
	struct in6_addr a;

	pthread_once(&once, watch_forks);

	if (!s) {
		say(CUOBJ_LOG_PATH_ERROR, "no memory for a server");
		return nullptr;
	}
	pthread_mutex_init(&s->mutex, nullptr);
	pthread_mutex_init(&s->memory, nullptr);
	pthread_mutex_init(&s->list, nullptr);
	s->forks = forks;
	s->port = port;
	s->proto = CUOBJ_PROTO_RDMA_DC_V1;
	if (ip && strlen(ip) < sizeof s->ip &&
	    (inet_pton(AF_INET, ip, &a) == 1 || inet_pton(AF_INET6, ip, &a) == 1))
		strcpy(s->ip, ip);
	else
		say(CUOBJ_LOG_PATH_ERROR, "\"%s\" is no IPv4 or IPv6 address", ip ? ip : "(null)");
	return s;
}

static void
params_of(const cuObjRDMATunable &t, const char *ip, struct gantry_server_params *ret_p)
{
	gantry_server_defaults(ret_p, sizeof *ret_p);
	ret_p->address = strcmp(ip, "0.0.0.0") != 0 && strcmp(ip, "::") != 0 ? ip : nullptr;
	ret_p->log = on_log;
	ret_p->log_level = wanted_level();
	ret_p->channels = t.getNumDcis();
	ret_p->cq_depth = t.getCqDepth();
	ret_p->dc_key = t.getDcKey();
	ret_p->service_level = t.getServiceLevel();
	ret_p->timeout = t.getTimeout();
	ret_p->hop_limit = (int)t.getHopLimit();
	ret_p->pkey_index = t.getPkeyIndex();
	ret_p->max_sge = t.getMaxSge();
	ret_p->delay_interval_ns = t.getDelayInterval();
	ret_p->qp_reset_on_failure = t.getQPResetOnFailure();
	ret_p->retry_cnt = t.getRetryCount();
	ret_p->max_rd_atomic = t.getMaxRdAtomic();
	if (t.getDelayMode() >= CUOBJ_DELAY_NONE && t.getDelayMode() < CUOBJ_DELAY_INVALID)
		ret_p->delay_mode = static_cast<enum gantry_delay>(t.getDelayMode());
	/* The default, where a port has one that the driver forces on it. */
	if (t.getTrafficClass() >= 256)
		say(CUOBJ_LOG_PATH_ERROR, "traffic class %u is not below 256: the default is used",
		    t.getTrafficClass());
	else if (t.getTrafficClass() != 96)
		ret_p->traffic_class = (int)t.getTrafficClass();
}

/* Locked. */
static int
open_locked(struct session *s, const cuObjRDMATunable &t)
{
	struct gantry_server *server = nullptr;
	struct gantry_server_params p;
	int nr = t.getNumDcis();

	if (s->server)
		return 0;
	if (!*s->ip || nr < 1 || nr > GANTRY_CHANNELS_MAX) {
		say(CUOBJ_LOG_PATH_ERROR, "no session: %s",
		    *s->ip ? "the number of channels is not 1 to 65535" : "there is no address");
		return -1;
	}
	params_of(t, s->ip, &p);
	if (s->channel_nr != nr) {
		delete[] s->channels;
		s->channels = new (std::nothrow) struct numbered[(size_t)nr]();
		s->channel_nr = s->channels ? nr : 0;
	}
	if (!s->channels) {
		say(CUOBJ_LOG_PATH_ERROR, "no session: no memory");
		return -1;
	}
	if (gantry_server_open(&p, &server) < 0)
		return -1; /* on_log() has heard why */
	pthread_mutex_lock(&lock);
	s->server = server;
	s->next = sessions;
	sessions = s;
	/* Flags that were set while it was opened. */
	gantry_server_set_log_level(server, wanted_level());
	greet(server);
	pthread_mutex_unlock(&lock);
	say(CUOBJ_LOG_PATH_INFO, "session on %s, %d channels", s->ip, nr);
	return 0;
}

/* Lets others get on. */
static void
nap()
{
	const struct timespec t = { 0, 50000 };

	nanosleep(&t, nullptr);
}

/* Takes a channel away from whoever may use it, and frees it. */
static void
channel_end(struct numbered *n)
{
	struct gantry_channel *c = n->channel.exchange(nullptr);

	while (c && (n->users.load() || gantry_channel_free(c) == -EBUSY))
		nap();
}

/* Locked. */
static void
close_locked(struct session *s)
{
	struct gantry_server *server;

	pthread_mutex_lock(&s->memory);
	server = s->server.exchange(nullptr);
	pthread_mutex_unlock(&s->memory);
	if (!server)
		return;
	pthread_mutex_lock(&lock);
	for (struct session **at = &sessions; *at; at = &(*at)->next) {
		if (*at == s) {
			*at = s->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	while (s->askers)
		nap();
	for (int i = 0; i < s->channel_nr; i++)
		channel_end(&s->channels[i]);
	pthread_mutex_lock(&s->memory);
	for (struct rdma_buffer *b = s->buffers; b; b = b->next) {
		for (int i = 0; i < b->nr; i++)
			b->piece[i].region = nullptr;
	}
	pthread_mutex_unlock(&s->memory);
	gantry_server_close(server);
	say(CUOBJ_LOG_PATH_INFO, "session on %s closed", s->ip);
}

/* By who registered it, and by each view. */
static void
buffer_drop(struct rdma_buffer *b)
{
	if (--b->refs == 0)
		free(b);
}

RDMAConnection::RDMAConnection(const char *ip, unsigned short port) : state(session_new(ip, port)), reserved()
{
}

RDMAConnection::RDMAConnection() : state(nullptr), reserved()
{
}

RDMAConnection::~RDMAConnection()
{
	struct session *s = session_of(state);

	if (!s)
		return;
	closeRDMASession();
	for (struct rdma_buffer *b = s->buffers, *next; b; b = next) {
		next = b->next;
		buffer_drop(b);
	}
	delete[] s->channels;
	pthread_mutex_destroy(&s->mutex);
	pthread_mutex_destroy(&s->memory);
	pthread_mutex_destroy(&s->list);
	delete s;
	state = nullptr;
}

int
RDMAConnection::startRDMASession()
{
	struct session *s = session_of(state);
	int r;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->mutex);
	r = open_locked(s, params);
	pthread_mutex_unlock(&s->mutex);
	return r;
}

void
RDMAConnection::closeRDMASession()
{
	struct session *s = session_of(state);

	if (!s)
		return;
	pthread_mutex_lock(&s->mutex);
	close_locked(s);
	pthread_mutex_unlock(&s->mutex);
}

void
RDMAConnection::initRDMAConfigParams(cuObjRDMATunable config_params)
{
	params = config_params;
}

void
RDMAConnection::handleDisconnectEvent(struct rdma_cm_id *)
{
	say(CUOBJ_LOG_PATH_DEBUG, "a disconnect: DC has no connections");
}

char *
RDMAConnection::getChannelIP(struct rdma_cm_id *id)
{
	static thread_local char text[INET6_ADDRSTRLEN];
	const struct sockaddr *a = id ? &id->route.addr.src_addr : nullptr;
	const struct session *s = session_of(state);

	*text = 0;
	if (!a)
		snprintf(text, sizeof text, "%s", s ? s->ip : "");
	else if (a->sa_family == AF_INET)
		inet_ntop(AF_INET, &id->route.addr.src_sin.sin_addr, text, sizeof text);
	else if (a->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &id->route.addr.src_sin6.sin6_addr, text, sizeof text);
	return text;
}

int
RDMAConnection::getChannelPort(struct rdma_cm_id *id)
{
	const struct session *s = session_of(state);

	if (!id)
		return s ? s->port : 0;
	return id->route.addr.src_addr.sa_family == AF_INET6  ? ntohs(id->route.addr.src_sin6.sin6_port)
	       : id->route.addr.src_addr.sa_family == AF_INET ? ntohs(id->route.addr.src_sin.sin_port)
							      : 0;
}

void
RDMAConnection::getConfigTunableParam(struct cuObjRDMATunableParam *param)
{
	if (!param)
		return;
	param->num_dcis = params.getNumDcis();
	param->cq_depth = params.getCqDepth();
	param->dc_key = params.getDcKey();
	param->ibv_poll_max_comp_event = params.getIbvPollMaxCompEv();
	param->service_level = params.getServiceLevel();
	param->timeout = params.getTimeout();
	param->hop_limit = params.getHopLimit();
	param->pkey_index = params.getPkeyIndex();
	param->max_wr = params.getMaxWr();
	param->max_sge = params.getMaxSge();
	param->delay_interval = params.getDelayInterval();
	param->delay_mode = params.getDelayMode();
	param->qp_reset_on_failure = params.getQPResetOnFailure();
	param->retry_cnt = params.getRetryCount();
	param->traffic_class = params.getTrafficClass();
	param->max_rd_atomic = params.getMaxRdAtomic();
}

cuObjServer::cuObjServer(const char *ip, unsigned short port, unsigned proto) : RDMAConnection(ip, port)
{
	if (state)
		session_of(state)->proto = proto;
	startRDMASession();
}

cuObjServer::cuObjServer(const char *ip, unsigned short port, unsigned proto, cuObjRDMATunable tunables)
    : RDMAConnection(ip, port)
{
	if (state)
		session_of(state)->proto = proto;
	initRDMAConfigParams(tunables);
	startRDMASession();
}

cuObjServer::~cuObjServer()
{
}

bool
cuObjServer::isConnected()
{
	struct session *s = session_of(state);
	struct gantry_server *server;
	bool is;

	if (!s)
		return false;
	if (s->proto == PROTO_RDMA_EXT_RC_V1) {
		say(CUOBJ_LOG_PATH_ERROR, "protocol 1002 (external RC) is not offered: 1001 is, which is DC");
		return false;
	}
	s->askers++;
	server = s->server;
	is = server && gantry_server_is_alive(server);
	s->askers--;
	return is;
}

/* ---- memory ---- */

void *
cuObjServer::allocHostBuffer(size_t size)
{
	return gantry_host_alloc(size);
}

static struct rdma_buffer *
buffer_new(struct session *s, size_t nr)
{
	struct rdma_buffer *b = static_cast<struct rdma_buffer *>(
		calloc(1, sizeof(struct rdma_buffer) + nr * sizeof(struct gantry_piece)));

	if (b) {
		b->of = s;
		b->refs = 1;
	} else {
		say(CUOBJ_LOG_PATH_ERROR, "no memory for a buffer of %zu entries", nr);
	}
	return b;
}

/* Takes its regions back.  -EBUSY: an operation uses it, and so the first of them; none is taken back then.  Locked. */
static int
regions_end(struct rdma_buffer *b)
{
	int e = 0;

	for (int i = 0; i < b->nr && e == 0; i++) {
		e = gantry_region_del(b->piece[i].region);
		if (e == 0)
			b->piece[i].region = nullptr;
	}
	return e;
}

static struct rdma_buffer *
register_all(struct session *s, const cuObjScatterGatherEntry_t *entry, size_t nr)
{
	struct rdma_buffer *b;
	int e = 0;

	if (nr == 0 || nr > ENTRIES_MAX) {
		say(CUOBJ_LOG_PATH_ERROR, "registering %zu entries: 1 to %d", nr, ENTRIES_MAX);
		return nullptr;
	}
	for (size_t i = 0; i < nr; i++) {
		if (!entry[i].addr || !entry[i].size) {
			say(CUOBJ_LOG_PATH_ERROR, "registering %zu bytes at %p: there is nothing",
			    entry[i].size, entry[i].addr);
			return nullptr;
		}
	}
	if (!s || !s->server) {
		say(CUOBJ_LOG_PATH_ERROR, "registering: there is no session");
		return nullptr;
	}
	b = buffer_new(s, nr);
	if (!b)
		return nullptr;
	pthread_mutex_lock(&s->memory);
	for (size_t i = 0; i < nr && e == 0; i++) {
		b->piece[i].mem = entry[i].addr;
		b->piece[i].len = entry[i].size;
		e = s->server
			    ? gantry_region_add(s->server, entry[i].addr, entry[i].size, &b->piece[i].region)
			    : -ENODEV;
		b->nr += e == 0;
		b->size += entry[i].size;
	}
	if (e < 0) {
		/* Nobody has used what was registered before. */
		regions_end(b);
		buffer_drop(b);
		b = nullptr;
	} else {
		pthread_mutex_lock(&s->list);
		b->next = s->buffers;
		s->buffers = b;
		pthread_mutex_unlock(&s->list);
	}
	pthread_mutex_unlock(&s->memory);
	return b;
}

struct rdma_buffer *
cuObjServer::registerBuffer(void *ptr, size_t size)
{
	cuObjScatterGatherEntry_t one = { ptr, size };

	return register_all(session_of(state), &one, 1);
}

struct rdma_buffer *
cuObjServer::registerBuffer(std::vector<cuObjScatterGatherEntry_t> sglist)
{
	return register_all(session_of(state), sglist.data(), sglist.size());
}

/* Where the list has it, which is all that is known of a pointer that a program gives; null: nowhere.  With s->list. */
static struct rdma_buffer **
place_of(struct session *s, const struct rdma_buffer *b)
{
	for (struct rdma_buffer **at = &s->buffers; *at; at = &(*at)->next) {
		if (*at == b)
			return at;
	}
	return nullptr;
}

/* -ENOENT: it is not registered.  Where it stays registered, on_log() hears why.  Locked. */
static int
deregister(struct session *s, struct rdma_buffer *b)
{
	struct rdma_buffer **at;
	int e;

	pthread_mutex_lock(&s->list);
	at = place_of(s, b);
	pthread_mutex_unlock(&s->list);
	e = at ? regions_end(b) : -ENOENT;
	if (e == 0) {
		pthread_mutex_lock(&s->list);
		*place_of(s, b) = b->next;
		pthread_mutex_unlock(&s->list);
		buffer_drop(b);
	}
	return at ? 0 : -ENOENT;
}

void
cuObjServer::deRegisterBuffer(struct rdma_buffer *b)
{
	struct session *s = session_of(state);
	int e;

	if (!b || !s)
		return;
	pthread_mutex_lock(&s->memory);
	e = deregister(s, b);
	pthread_mutex_unlock(&s->memory);
	if (e < 0)
		say(CUOBJ_LOG_PATH_ERROR, "deregistering what is no registered buffer of this server, or was "
					  "one: putRDMABufferFromSgList() takes views back");
}

/* Is every part within the buffer?  *ret_sum: how long they are together. */
static bool
are_within(const struct rdma_buffer *base, const std::vector<cuObjScatterGatherEntryWithOffset_t> &parts,
	   size_t *ret_sum)
{
	size_t sum = 0;

	for (const auto &e : parts) {
		sum += e.size;
		if (e.offset < 0 || (size_t)e.offset > base->size || e.size == 0 ||
		    e.size > base->size - (size_t)e.offset || sum > base->size) {
			say(CUOBJ_LOG_PATH_ERROR,
			    "a view of %zu bytes at %lld is not within the %zu bytes of its buffer", e.size,
			    (long long)e.offset, base->size);
			return false;
		}
	}
	*ret_sum = sum;
	return true;
}

struct rdma_buffer *
cuObjServer::getRDMABufferFromSgList(struct rdma_buffer *base,
				     std::vector<cuObjScatterGatherEntryWithOffset_t> sglist)
{
	struct session *s = session_of(state);
	struct rdma_buffer *view = nullptr;
	size_t sum;
	bool is;

	if (!s)
		return nullptr;
	pthread_mutex_lock(&s->list);
	is = !sglist.empty() && place_of(s, base) && base->nr == 1;
	if (is && are_within(base, sglist, &sum))
		view = buffer_new(s, sglist.size());
	if (view) {
		view->base = base;
		base->refs++;
	}
	pthread_mutex_unlock(&s->list);
	if (!is)
		say(CUOBJ_LOG_PATH_ERROR,
		    "a view is of a registered buffer of one entry, and has one part at least");
	if (!view)
		return nullptr;
	view->size = sum;
	for (const auto &e : sglist) {
		struct gantry_piece *p = &view->piece[view->nr++];

		p->mem = static_cast<char *>(base->piece[0].mem) + e.offset;
		p->len = e.size;
	}
	return view;
}

void
cuObjServer::putRDMABufferFromSgList(struct rdma_buffer *b)
{
	if (!b || !b->base) {
		say(CUOBJ_LOG_PATH_ERROR, "%s is no view", b ? "a registered buffer" : "null");
		return;
	}
	buffer_drop(b->base);
	buffer_drop(b);
}

/* ---- channels ---- */

uint16_t
cuObjServer::allocateChannelId()
{
	struct session *s = session_of(state);
	struct gantry_channel *c = nullptr;
	const char *why = nullptr;
	int i, e = -ENODEV;

	if (!s) {
		say(CUOBJ_LOG_PATH_ERROR, "no channel: there is no session");
		return INVALID_CHANNEL_ID;
	}
	pthread_mutex_lock(&s->mutex);
	for (i = 0; i < s->channel_nr && (s->channels[i].channel.load() || s->channels[i].is_ending); i++)
		;
	if (!s->server)
		why = "there is no session";
	else if (i == s->channel_nr)
		why = "all are allocated (setNumDcis())";
	else
		e = gantry_channel_new(s->server, &c); /* and on_log() hears why not */
	if (e == 0)
		s->channels[i].channel = c;
	pthread_mutex_unlock(&s->mutex);
	if (why)
		say(CUOBJ_LOG_PATH_ERROR, "no channel: %s", why);
	return e == 0 ? (uint16_t)i : (uint16_t)INVALID_CHANNEL_ID;
}

void
cuObjServer::freeChannelId(uint16_t channel_id)
{
	struct session *s = session_of(state);
	struct numbered *n = nullptr;

	if (!s)
		return;
	pthread_mutex_lock(&s->mutex);
	if (s->server && channel_id < s->channel_nr && !s->channels[channel_id].is_ending) {
		n = &s->channels[channel_id];
		n->is_ending = true;
		s->askers++;
	}
	pthread_mutex_unlock(&s->mutex);
	if (!n)
		return;
	/* Its last operation, or a device that has died, takes its time: other channels do not wait for that. */
	channel_end(n);
	n->is_ending = false;
	s->askers--;
}

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

/* ---- operations ---- */

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

/* ---- telemetry ---- */

void
cuObjServer::setupTelemetry(bool, std::ostream *os)
{
	telemetry_to(os);
}

void
cuObjServer::shutdownTelemetry()
{
	telemetry_to(nullptr);
}

void
cuObjServer::setTelemFlags(unsigned flags)
{
	setTelemFlags(flags, ~0u);
}

void
cuObjServer::setTelemFlags(unsigned flags, unsigned ops)
{
	telemetry_flags(flags, ops);
	pthread_mutex_lock(&lock);
	for (struct session *s = sessions; s; s = s->next) {
		/* Who closes one takes the pointer first, and then the lock. */
		struct gantry_server *server = s->server;

		if (server)
			gantry_server_set_log_level(server, wanted_level());
	}
	pthread_mutex_unlock(&lock);
}
