/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class cuObjServer and its base, over libgantry-server.  An object is the tunables and one pointer to a session of ours,
 * which outlives the object's close and open.  A child that was forked has the objects, and none of their sessions.
 */
#include "cuobject/server_int.hpp"

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

enum { PROTO_RDMA_EXT_RC_V1 = 1002 /* protocol "external RC" of protocol.md */ };

/* ---- telemetry ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session *sessions; /* that are open */
static bool is_greeted;
static std::atomic<unsigned> forks;

void
say(unsigned flag, const char *fmt, ...)
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

struct session *
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

/* Withdraws a channel from the threads that may use it, and frees it. */
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
