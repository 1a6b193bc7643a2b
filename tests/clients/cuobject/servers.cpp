/* SPDX-License-Identifier: Apache-2.0 */
/*
 * servers [NAME...]: public programs that are written to cuObject's server, each as far as the library sees it: its headers
 * and link names, the calls that it makes, in its order, on its threads, with its conventions.  The client is a process of
 * its own with the client's library.  The numbered facts are those of tests/cuobject/server_facts.cpp.
 *
 * servers peer: that client alone, for a program in another language: says its token, then obeys lines of standard input.
 */
#include "peer.hpp"

#include <atomic>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include <dlfcn.h>

static const char *const address = "127.0.0.1";
static struct client peer;

/* [at, + size) of the client's window to or from a buffer of the server, and back: byte for byte. */
static void
round_trip(cuObjServer &s, struct rdma_buffer *buffer, void *memory, uint16_t channel, size_t at, size_t size,
	   size_t offset = 0)
{
	std::vector<unsigned char> sent(size);
	unsigned char *mine = static_cast<unsigned char *>(memory) + offset;
	/* Fact 13: the start is read out of the token. */
	uint64_t start = strtoull(peer.token.substr(0, peer.token.find(':')).c_str(), nullptr, 16) + at;

	fill(sent.data(), size, static_cast<unsigned>(at + size));
	memcpy(peer.memory + at, sent.data(), size);
	must(s.handlePutObject("key", buffer, start, size, peer.token, channel, offset) ==
	     static_cast<ssize_t>(size));
	must(!memcmp(mine, sent.data(), size));
	memset(peer.memory + at, 0, size);
	must(s.handleGetObject("key", buffer, start, size, peer.token, channel, offset) ==
	     static_cast<ssize_t>(size));
	must(!memcmp(peer.memory + at, sent.data(), size));
}

/* ---- versitygw ---- */

/* A wrapper in C around the class, for a program in Go: tunables in a struct, both constructors, telemetry, a session that is
 * started once more and closed before the object goes, buffers of hundreds of MiB at the start, a channel a request. */
extern "C" {
struct wrapper_tunables {
	int num_dcis, pkey_index, poll_events, service_level, max_wr, max_sge;
	unsigned cq_depth, hop_limit, delay_interval;
	unsigned long dc_key;
	uint8_t timeout, retry_cnt;
	cuObjDelayMode_t delay_mode;
};

static void *
wrapper_new(const char *ip, unsigned short port, const struct wrapper_tunables *w)
{
	cuObjRDMATunable t;

	if (!w)
		return new (std::nothrow) cuObjServer(ip, port, CUOBJ_PROTO_RDMA_DC_V1);
	t.setNumDcis(w->num_dcis);
	t.setCqDepth(w->cq_depth);
	t.setDcKey(w->dc_key);
	t.setIbvPollMaxCompEv(w->poll_events);
	t.setServiceLevel(w->service_level);
	t.setTimeout(w->timeout);
	t.setHopLimit(w->hop_limit);
	t.setPkeyIndex(w->pkey_index);
	t.setMaxWr(w->max_wr);
	t.setMaxSge(w->max_sge);
	t.setDelayMode(w->delay_mode);
	t.setDelayInterval(w->delay_interval);
	t.setRetryCount(w->retry_cnt);
	return new (std::nothrow) cuObjServer(ip, port, CUOBJ_PROTO_RDMA_DC_V1, t);
}

static ssize_t
wrapper_put(void *h, const char *key, void *buffer, uint64_t start, size_t size, const char *token,
	    size_t offset)
{
	cuObjServer *s = static_cast<cuObjServer *>(h);
	uint16_t channel = s->allocateChannelId();
	ssize_t n;

	if (channel == INVALID_CHANNEL_ID)
		return -EBUSY;
	n = s->handlePutObject(key, static_cast<struct rdma_buffer *>(buffer), start, size, token, channel,
			       offset);
	s->freeChannelId(channel);
	return n;
}
}

static void
versitygw()
{
	const struct wrapper_tunables w = {
		32, 0, 16, 0, 128, 10, 640, 64, 5000, 0xffeeddcc, 16, 7, CUOBJ_DELAY_BATCH
	};
	const size_t big = static_cast<size_t>(256) << 20;

	for (int with = 0; with < 2; with++) {
		void *h = wrapper_new(address, 18515, with ? &w : nullptr);
		cuObjServer *s = static_cast<cuObjServer *>(h);
		std::vector<void *> memory(4);
		std::vector<struct rdma_buffer *> buffer(4);
		std::vector<std::thread> requests;

		must(h);
		s->setupTelemetry(false, &std::cerr);
		s->setTelemFlags(CUOBJ_LOG_PATH_ERROR);
		if (with)
			s->initRDMAConfigParams(s->params);
		must(s->startRDMASession() == 0 && s->isConnected());
		for (size_t i = 0; i < 4; i++) {
			memory[i] = s->allocHostBuffer(big);
			buffer[i] = s->registerBuffer(memory[i], big);
			must(memory[i] && buffer[i]);
		}
		/* Requests on threads of the runtime's, each with a channel of its own. */
		fill(peer.memory, 4 << 20, 1);
		for (size_t i = 0; i < 4; i++)
			requests.emplace_back([&, i] {
				for (size_t k = 0; k < 8; k++) {
					size_t at = i * 262144 + k * 1000;

					must(wrapper_put(h, "o", buffer[i], peer.start + at, 65536,
							 peer.token.c_str(), at) == 65536);
				}
			});
		for (auto &t : requests)
			t.join();
		for (size_t i = 0; i < 4; i++)
			must(!memcmp(static_cast<char *>(memory[i]) + i * 262144, peer.memory + i * 262144,
				     65536));
		uint16_t channel = s->allocateChannelId();

		must(channel != INVALID_CHANNEL_ID);
		round_trip(*s, buffer[0], memory[0], channel, 5, 1000003, 77);
		s->freeChannelId(channel);
		for (size_t i = 0; i < 4; i++) {
			s->deRegisterBuffer(buffer[i]);
			free(memory[i]);
		}
		s->closeRDMASession();
		s->shutdownTelemetry();
		delete s;
	}
}

/* ---- NooBaa ---- */

/* Four arguments, thirteen setters whose values are read again, a channel for each thread of the pool or for each request,
 * an operation that is waited for or one that is polled for; buffers freed by whoever collects them (fact 15).  The module
 * for Node.js is server_addon.cpp. */
static void
noobaa()
{
	std::ostringstream out;
	cuObjRDMATunable t;

	t.setNumDcis(16);
	t.setCqDepth(256);
	t.setDcKey(0xffeeddcc);
	t.setIbvPollMaxCompEv(8);
	t.setServiceLevel(0);
	t.setTimeout(14);
	t.setHopLimit(64);
	t.setPkeyIndex(0);
	t.setMaxWr(64);
	t.setMaxSge(4);
	t.setDelayMode(CUOBJ_DELAY_NONE);
	t.setDelayInterval(1000);
	t.setTrafficClass(96);
	cuObjServer::setupTelemetry(false, &out);
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_INFO | CUOBJ_LOG_PATH_DEBUG | CUOBJ_LOG_PATH_ERROR);
	std::unique_ptr<cuObjServer> s(new cuObjServer(address, 18515, CUOBJ_PROTO_RDMA_DC_V1, t));

	must(t.getNumDcis() == 16 && t.getCqDepth() == 256 && t.getDcKey() == 0xffeeddcc &&
	     t.getIbvPollMaxCompEv() == 8 && t.getServiceLevel() == 0 && t.getTimeout() == 14 &&
	     t.getHopLimit() == 64 && t.getPkeyIndex() == 0 && t.getMaxWr() == 64 && t.getMaxSge() == 4 &&
	     t.getDelayMode() == CUOBJ_DELAY_NONE && t.getDelayInterval() == 1000 &&
	     t.getTrafficClass() == 96);
	must(s->isConnected());
	void *memory = s->allocHostBuffer(1 << 20);
	struct rdma_buffer *buffer = s->registerBuffer(memory, 1 << 20);
	static thread_local uint16_t mine = INVALID_CHANNEL_ID;
	std::vector<std::thread> pool;

	must(memory && buffer);
	for (size_t i = 0; i < 4; i++)
		pool.emplace_back([&, i] {
			cuObjAsyncEvent_t event;
			char handle;
			int n;

			if (mine == INVALID_CHANNEL_ID)
				mine = s->allocateChannelId();
			must(mine != INVALID_CHANNEL_ID);
			round_trip(*s, buffer, memory, mine, i * 100000, 50001, i * 100000);
			/* Event mode. */
			event = { nullptr, 0 };
			memset(peer.memory + i * 100000, 0, 50001);
			must(s->handleGetObject("e", buffer, peer.start + i * 100000, 50001, peer.token, mine,
						i * 100000, nullptr, &handle) == 0);
			while ((n = s->poll(&event, 1, mine)) == 0)
				std::this_thread::yield();
			must(n == 1 && event.async_handle == &handle && event.status == IBV_WC_SUCCESS);
			must(!memcmp(peer.memory + i * 100000, static_cast<char *>(memory) + i * 100000,
				     50001));
		});
	for (auto &p : pool)
		p.join();
	std::thread([&] {
		s->deRegisterBuffer(buffer);
		free(memory);
	}).join();
	s.reset();
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
	cuObjServer::shutdownTelemetry();
	must(out.str().find("cuObject interface of Gantry") != std::string::npos &&
	     out.str().find("GET of \"e\"") != std::string::npos);
}

/* ---- Ceph RGW ---- */

/* Both headers in one unit; a table of all channels at the start, taken and given back under a lock, never freed; two flags. */
static void
ceph_rgw()
{
	cuObjRDMATunable t;
	std::mutex mutex;
	std::vector<uint16_t> idle;
	std::vector<std::thread> frontends;

	t.setNumDcis(8);
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR | CUOBJ_LOG_PATH_INFO,
				   CUOBJ_LOG_OP_GET | CUOBJ_LOG_OP_PUT);
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
	cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1, t);

	must(s.isConnected());
	for (uint16_t c; (c = s.allocateChannelId()) != INVALID_CHANNEL_ID;)
		idle.push_back(c);
	must(idle.size() == 8);
	for (size_t i = 0; i < 8; i++)
		frontends.emplace_back([&, i] {
			std::vector<char> memory(262144);
			struct rdma_buffer *b = s.registerBuffer(memory.data(), memory.size());

			must(b);
			for (int k = 0; k < 10; k++) {
				uint16_t channel;
				{
					std::lock_guard<std::mutex> lock(mutex);
					channel = idle.back();
					idle.pop_back();
				}
				round_trip(s, b, memory.data(), channel, i << 18, 262144);
				std::lock_guard<std::mutex> lock(mutex);
				idle.push_back(channel);
			}
			s.deRegisterBuffer(b);
		});
	for (auto &f : frontends)
		f.join();
}

/* ---- Ceph OSD ---- */

/* Threads of the OSD's, each with a channel and sixteen operations under way; after a poll below 0 entries that were filled
 * are known by their handle (fact 14). */
static void
ceph_osd()
{
	cuObjRDMATunable t;
	std::vector<std::thread> shards;
	std::vector<char> memory(4 << 20);

	t.setNumDcis(4);
	t.setDcKey(0xffeeddcc);
	cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1, t);
	struct rdma_buffer *b = s.registerBuffer(memory.data(), memory.size());

	must(s.isConnected() && b);
	fill(peer.memory, 4 << 20, 9);
	for (size_t i = 0; i < 4; i++)
		shards.emplace_back([&, i] {
			uint16_t channel = s.allocateChannelId();
			std::map<void *, size_t> under_way;
			size_t begun = 0, ended = 0, at = i << 20;
			char handles[64];

			must(channel != INVALID_CHANNEL_ID);
			while (ended < 64) {
				cuObjAsyncEvent_t events[16];

				while (begun < 64 && under_way.size() < 16) {
					size_t from = at + begun * 16384;

					must(s.handlePutObject("osd", b, peer.start + from, 16384, peer.token,
							       channel, from, nullptr, &handles[begun]) == 0);
					under_way[&handles[begun]] = begun;
					begun++;
				}
				memset(events, 0, sizeof events);
				must(s.poll(events, 16, channel) >= 0);
				for (int k = 0; k < 16 && events[k].async_handle; k++) {
					must(events[k].status == IBV_WC_SUCCESS);
					must(under_way.erase(events[k].async_handle) == 1);
					ended++;
				}
			}
			must(!memcmp(memory.data() + at, peer.memory + at, 1 << 20));
			round_trip(s, b, memory.data(), channel, at, 4096, at);
			s.freeChannelId(channel);
		});
	for (auto &x : shards)
		x.join();
	s.deRegisterBuffer(b);
}

/* ---- elbencho's test server ---- */

/* A channel for each buffer, made with it; two flags of telemetry; nothing is given back. */
static void
elbencho()
{
	cuObjRDMATunable t;

	t.setNumDcis(16);
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR | CUOBJ_LOG_PATH_INFO);
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
	static cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1, t);

	must(s.isConnected());
	for (int i = 0; i < 16; i++) {
		void *memory = s.allocHostBuffer(1 << 20);
		struct rdma_buffer *b = s.registerBuffer(memory, 1 << 20);
		uint16_t channel = s.allocateChannelId();

		must(memory && b && channel == i);
		round_trip(s, b, memory, channel, 4096, (1 << 20) - 1);
	}
}

/* ---- US3 ---- */

static void
us3()
{
	cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);
	std::vector<char> memory(1 << 20);
	struct rdma_buffer *b = s.registerBuffer(memory.data(), memory.size());

	must(s.isConnected() && b);
	for (int i = 0; i < 20; i++) {
		uint16_t channel = s.allocateChannelId();

		must(channel != INVALID_CHANNEL_ID);
		round_trip(s, b, memory.data(), channel, static_cast<size_t>(i) * 1000, 70000);
		s.freeChannelId(channel);
	}
	s.deRegisterBuffer(b);
}

/* ---- hipObject ---- */

/* Is there a library of that name, and does it have the class?  The program links to it, or opens it by its soname. */
static void
hipobject()
{
	static const char *const names[] = {
		"_ZN11cuObjServerC1EPKctj",
		"_ZN11cuObjServerC1EPKctj16cuObjRDMATunable",
		"_ZN11cuObjServer11isConnectedEv",
		"_ZN11cuObjServer14registerBufferEPvm",
		"_ZN11cuObjServer16deRegisterBufferEP11rdma_buffer",
		"_ZN11cuObjServer15allocHostBufferEm",
		"_ZN11cuObjServer17allocateChannelIdEv",
		"_ZN11cuObjServer13freeChannelIdEt",
	};
	void *library = dlopen("libcuobjserver.so.1", RTLD_NOW | RTLD_LOCAL);

	must(library && dlopen("libcuobjserver.so", RTLD_NOW | RTLD_LOCAL) == library);
	for (const char *n : names) {
		if (!dlsym(library, n))
			failed(n, __FILE__, __LINE__);
	}
}

/* ---- a client for others ---- */

static int
be_peer()
{
	std::string word;
	unsigned seed;
	size_t size;

	printf("%s\n", peer.token.c_str());
	fflush(stdout);
	while (std::cin >> word >> seed >> size) {
		std::vector<unsigned char> want(size);

		must(size <= WINDOW);
		fill(want.data(), size, seed);
		if (word == "fill")
			memcpy(peer.memory, want.data(), size);
		puts(word == "fill" || !memcmp(peer.memory, want.data(), size) ? "yes" : "no");
		fflush(stdout);
	}
	client_end(&peer);
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)();
	} rows[] = { { "versitygw", versitygw }, { "noobaa", noobaa },     { "ceph_rgw", ceph_rgw },
		     { "ceph_osd", ceph_osd },   { "elbencho", elbencho }, { "us3", us3 },
		     { "hipobject", hipobject } };

	peer = client_new();
	if (argc == 2 && strcmp(argv[1], "peer") == 0)
		return be_peer();
	for (const auto &r : rows) {
		bool wanted = argc < 2;

		for (int i = 1; i < argc; i++)
			wanted |= strcmp(argv[i], r.name) == 0;
		if (!wanted)
			continue;
		r.play();
		passed((std::string("server ") + r.name).c_str());
	}
	client_end(&peer);
	return 0;
}
