/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_facts: what programs rely on in the server's interface, and decisions where its text is silent, a client process
 * and a server process over the client's and the server's library.  The client has a window of WINDOW bytes; the server is
 * told its token.  SOFTNICCTL is the program that makes faults.  With an argument: bytes there and back alone.
 */
#include "peer.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

#include <rdma/rdma_cma.h>
#include <unistd.h>

static void
softnicctl(const std::string &words)
{
	std::string command = std::string(getenv("SOFTNICCTL")) + " " + words + " >/dev/null";

	must(system(command.c_str()) == 0);
}

static const char *const address = "127.0.0.1";

/* ---- facts ---- */

static void
fact_11(const struct client &c)
{
	cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);
	std::vector<char> memory(4096);

	must(s.isConnected() && s.startRDMASession() == 0 && s.startRDMASession() == 0 && s.isConnected());
	struct rdma_buffer *b = s.registerBuffer(memory.data(), memory.size());
	uint16_t channel = s.allocateChannelId();

	must(b && channel == 0);
	must(s.handleGetObject("k", b, c.start, 100, c.token, channel) == 100);
	s.closeRDMASession();
	must(!s.isConnected() && s.allocateChannelId() == INVALID_CHANNEL_ID &&
	     !s.registerBuffer(memory.data(), 1));
	must(s.handleGetObject("k", b, c.start, 100, c.token, channel) == -ENODEV);
	/* What is left of the session does no harm. */
	s.freeChannelId(channel);
	s.closeRDMASession();
	must(s.startRDMASession() == 0 && s.isConnected());
	channel = s.allocateChannelId();
	must(channel == 0 && s.handleGetObject("k", b, c.start, 100, c.token, channel) == -EIO);
	s.deRegisterBuffer(b);
	s.closeRDMASession();
	passed("fact_11_a_session_is_started_again_and_closed_before_the_destructor");
}

static void
fact_12(const struct client &c)
{
	cuObjRDMATunable t;

	t.setNumDcis(4);
	{
		cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1, t);
		std::vector<char> memory(4 * 4096);
		struct rdma_buffer *b = s.registerBuffer(memory.data(), memory.size());
		uint16_t id[4];

		must(b);
		for (int i = 0; i < 4; i++) {
			id[i] = s.allocateChannelId();
			must(id[i] == i);
		}
		must(s.allocateChannelId() == INVALID_CHANNEL_ID);
		fill(c.memory, 4 * 4096, 3);
		std::vector<std::thread> all;

		for (uint16_t i = 0; i < 4; i++)
			all.emplace_back([&, i] {
				for (int k = 0; k < 50; k++)
					must(s.handlePutObject("t", b, c.start + i * 4096u, 4096, c.token,
							       id[i], i * 4096u) == 4096);
			});
		for (auto &x : all)
			x.join();
		must(!memcmp(memory.data(), c.memory, 4 * 4096));
		/* Freed by another thread than the one that used it, and by nobody. */
		std::thread([&] { s.freeChannelId(id[2]); }).join();
		must(s.allocateChannelId() == 2);
		s.freeChannelId(999);
		s.freeChannelId(INVALID_CHANNEL_ID);
		/* Allocated and freed for each request, by more threads than there are channels. */
		cuObjServer::setTelemFlags(0);
		s.freeChannelId(2);
		s.freeChannelId(3);
		all.clear();
		for (int i = 0; i < 4; i++)
			all.emplace_back([&] {
				for (int k = 0; k < 25; k++) {
					uint16_t n = s.allocateChannelId();

					if (n == INVALID_CHANNEL_ID)
						continue;
					must(s.handleGetObject("r", b, c.start, 512, c.token, n) == 512);
					s.freeChannelId(n);
				}
			});
		for (auto &x : all)
			x.join();
		cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
		s.deRegisterBuffer(b);
	}
	passed("fact_12_channels_per_request_per_thread_and_never_freed");
}

static void
facts_13_to_16(const struct client &c)
{
	cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);
	uint16_t channel = s.allocateChannelId();
	const size_t big = static_cast<size_t>(256) << 20;
	struct rdma_buffer *large[4];
	void *memory[4];

	fill(c.memory, WINDOW, 5);
	for (int i = 0; i < 4; i++) {
		memory[i] = s.allocHostBuffer(big);
		must(memory[i] && reinterpret_cast<uintptr_t>(memory[i]) % 4096 == 0);
		large[i] = s.registerBuffer(memory[i], big);
		must(large[i]);
	}
	passed("fact_16_buffers_of_256_mib_registered_at_start");
	must(s.handlePutObject("k", large[1], c.start + 4096, 1000000, c.token, channel, big - 1000000) ==
	     1000000);
	must(!memcmp(static_cast<char *>(memory[1]) + big - 1000000, c.memory + 4096, 1000000));
	passed("fact_13_the_remote_start_is_the_tokens_first_field_and_an_offset");

	/* One of five is out of the window: the channel's others are flushed, and every handle comes once. */
	cuObjAsyncEvent_t events[16];
	char handles[5];
	int status[5] = { -1, -1, -1, -1, -1 }, n = 0, left = 5, polls = 0, bad = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t at = c.start + static_cast<uint64_t>(i) * 65536;

		if (i == 2)
			softnicctl("rule add op=write status=REM_ACCESS_ERR limit=1");
		must(s.handleGetObject("a", large[0], at, 65536, c.token, channel, 0, nullptr, &handles[i]) ==
		     0);
	}
	while (left && polls++ < 10000000) {
		memset(events, 0, sizeof events);
		events[15].status = 12345;
		n = s.poll(events, 16, channel);
		must(n >= 0 || n == -EIO);
		must(events[15].status == 12345);
		for (int i = 0; i < 16 && events[i].async_handle; i++) {
			long k = static_cast<char *>(events[i].async_handle) - handles;

			must(k >= 0 && k < 5 && status[k] == -1);
			status[k] = events[i].status;
			left--;
			must(n == -EIO || events[i].status == IBV_WC_SUCCESS);
		}
	}
	softnicctl("rule clear");
	must(left == 0);
	while (bad < 5 && status[bad] == IBV_WC_SUCCESS)
		bad++;
	must(bad < 5 && status[bad] == IBV_WC_REM_ACCESS_ERR);
	for (int i = bad + 1; i < 5; i++)
		must(status[i] == IBV_WC_WR_FLUSH_ERR);
	passed("decision_flushed_handles_come_out_before_the_reset");
	must(s.handleGetObject("k", large[0], c.start, 4096, c.token, channel) == 4096);
	must(s.poll(events, 16, channel) == 0);
	passed("fact_14_entries_that_were_filled_have_a_handle");

	for (int i = 0; i < 4; i++)
		std::thread([&] {
			s.deRegisterBuffer(large[i]);
			free(memory[i]);
		}).join();
	passed("fact_15_memory_is_freed_after_deregister_by_another_thread");
}

/* ---- decisions, and what the text says of errors ---- */

static void
arguments(const struct client &c)
{
	std::ostringstream out;

	cuObjServer::setupTelemetry(false, &out);
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR | CUOBJ_LOG_PATH_INFO | CUOBJ_LOG_PATH_DEBUG);
	{
		cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);
		uint16_t ch = s.allocateChannelId();
		std::vector<char> memory(65536);
		struct rdma_buffer *b = s.registerBuffer(memory.data(), memory.size());
		ibv_wc_status status = IBV_WC_GENERAL_ERR;
		cuObjAsyncEvent_t e;
		const std::string &t = c.token;
		auto get = [&](struct rdma_buffer *buffer, uint64_t at, size_t size, uint16_t channel,
			       uint64_t offset, const std::string &token) {
			return s.handleGetObject("arg", buffer, at, size, token, channel, offset, &status);
		};

		must(b && ch == 0);
		must(get(nullptr, c.start, 1, ch, 0, t) == -EIO && get(b, 0, 1, ch, 0, t) == -EIO);
		must(get(b, c.start, 0, ch, 0, t) == -EIO && get(b, c.start, 1, 77, 0, t) == -EIO);
		must(get(b, c.start, 65537, ch, 0, t) == -EIO && get(b, c.start, 65536, ch, 1, t) == -EIO);
		must(get(b, c.start, 1, ch, UINT64_MAX, t) == -EIO);
		must(get(b, c.start - 1, 2, ch, 0, t) == -EIO &&
		     get(b, c.start + WINDOW - 1, 2, ch, 0, t) == -EIO);
		must(get(b, c.start, 1, ch, 0, "") == -EIO && get(b, c.start, 1, ch, 0, "no token") == -EIO);
		/* status is not written before there was a completion. */
		must(status == IBV_WC_GENERAL_ERR);
		must(get(b, c.start, 100, ch, 65436, t) == 100 && status == IBV_WC_SUCCESS);
		must(s.handleGetObject("delay", b, c.start, 100, t, static_cast<uint32_t>(1000), ch) == 100);
		must(s.poll(nullptr, 1, ch) == -EINVAL && s.poll(&e, 1, 77) == -EINVAL &&
		     s.poll(&e, -1, ch) == -EINVAL);
		must(s.poll(&e, 0, ch) == 0 && s.poll(&e, 1000, ch) == 0);
		must(!s.registerBuffer(nullptr, 1) && !s.registerBuffer(memory.data(), 0) &&
		     !s.allocHostBuffer(0));
		std::vector<cuObjScatterGatherEntry_t> list(11, { memory.data(), 10 });

		must(!s.registerBuffer(list) && !s.registerBuffer(std::vector<cuObjScatterGatherEntry_t>()));
		list.resize(10);
		struct rdma_buffer *ten = s.registerBuffer(list);

		must(ten && get(ten, c.start, 100, ch, 0, t) == 100 &&
		     get(ten, c.start, 101, ch, 0, t) == -EIO);
		s.params.setMaxSge(9);
		must(get(ten, c.start, 100, ch, 0, t) == -EIO);
		s.params.setMaxSge(10);
		list[3].addr = nullptr;
		must(!s.registerBuffer(list));
		list[3] = { memory.data(), 0 };
		must(!s.registerBuffer(list));
		s.deRegisterBuffer(ten);
		s.deRegisterBuffer(nullptr);
		s.deRegisterBuffer(b);
		s.freeChannelId(ch);
		must(get(b = nullptr, c.start, 1, ch, 0, t) == -EIO);
	}
	/* Every failure has a line, with both numbers where a range is left. */
	must(out.str().find("cuObject interface of Gantry") != std::string::npos);
	must(out.str().find("GET of \"arg\", 65537 bytes on channel 0: more than the buffer has") !=
	     std::string::npos);
	must(out.str().find("the channel is not allocated") != std::string::npos);
	must(out.str().find("GET of \"arg\", 100 bytes on channel 0: 100, success") != std::string::npos);
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
	cuObjServer::shutdownTelemetry();
	passed("arguments_are_refused_as_the_text_says_with_a_line_each");
}

static void
lists_and_views(const struct client &c)
{
	cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);
	uint16_t ch = s.allocateChannelId();
	std::vector<char> one(4096), two(8192), base(1 << 20), sent;
	std::vector<cuObjScatterGatherEntry_t> list = { { one.data(), 4096 }, { two.data(), 8192 } };
	struct rdma_buffer *sg = s.registerBuffer(list), *b = s.registerBuffer(base.data(), base.size());

	must(sg && b);
	fill(one.data(), 4096, 1);
	fill(two.data(), 8192, 2);
	must(s.handleGetObject("sg", sg, c.start, 12288, c.token, ch) == 12288);
	must(!memcmp(c.memory, one.data(), 4096) && !memcmp(c.memory + 4096, two.data(), 8192));
	/* A part that ends in the middle of an entry; an offset counts as 0. */
	fill(c.memory, 12288, 7);
	std::fill(one.begin(), one.end(), 0);
	std::fill(two.begin(), two.end(), 0);
	must(s.handlePutObject("sg", sg, c.start, 5000, c.token, ch, 4) == 5000);
	must(!memcmp(c.memory, one.data(), 4096) && !memcmp(c.memory + 4096, two.data(), 904) &&
	     two[904] == 0);
	must(s.handlePutObject("sg", sg, c.start, 12288, c.token, ch, 4) == -EIO);
	passed("scatter_lists_go_piece_by_piece");

	auto view = [&](std::vector<cuObjScatterGatherEntryWithOffset_t> v) {
		return s.getRDMABufferFromSgList(b, v);
	};
	struct rdma_buffer *v = view({ { 0, 4096 }, { 16384, 8192 }, { (1 << 20) - 1, 1 } });

	must(v);
	fill(c.memory, 12289, 9);
	must(s.handlePutObject("view", v, c.start, 12289, c.token, ch) == 12289);
	must(!memcmp(base.data(), c.memory, 4096) && !memcmp(base.data() + 16384, c.memory + 4096, 8192));
	must(base[(1 << 20) - 1] == static_cast<char>(c.memory[12288]) && base[4096] == 0 &&
	     base[16384 + 8192] == 0);
	must(!s.getRDMABufferFromSgList(v, { { 0, 1 } }) && !s.getRDMABufferFromSgList(sg, { { 0, 1 } }));
	must(!s.getRDMABufferFromSgList(nullptr, { { 0, 1 } }) && !view({}));
	must(!view({ { 0, 1 << 20 }, { 0, 1 } }) && !view({ { -1, 1 } }) && !view({ { 1 << 20, 1 } }));
	must(!view({ { (1 << 20) - 10, 11 } }) && !view({ { 0, SIZE_MAX } }) && !view({ { INT64_MAX, 1 } }));
	s.deRegisterBuffer(v);
	must(s.handlePutObject("view", v, c.start, 100, c.token, ch) == 100);
	s.putRDMABufferFromSgList(v);
	s.putRDMABufferFromSgList(nullptr);
	s.putRDMABufferFromSgList(b);
	s.deRegisterBuffer(b);
	s.deRegisterBuffer(sg);
	passed("decision_views_that_leave_their_base_are_null");
}

static void
sessions(const struct client &c)
{
	std::vector<char> memory(4096);

	cuObjServer::setTelemFlags(0);
	cuObjServer none, wrong("10.1.2.3.4", 1, 1001), null(nullptr, 1, 1001),
		elsewhere("203.0.113.9", 1, 1001);

	for (cuObjServer *s : { &none, &wrong, &null, &elsewhere }) {
		must(!s->isConnected() && s->startRDMASession() == -1 &&
		     s->allocateChannelId() == INVALID_CHANNEL_ID);
		must(!s->registerBuffer(memory.data(), memory.size()));
		must(s->handlePutObject("k", nullptr, 1, 1, c.token, static_cast<uint16_t>(0)) == -ENODEV);
		must(s->poll(nullptr, 0, 0) == -ENODEV);
		s->closeRDMASession();
		s->freeChannelId(0);
	}
	passed("a_bad_address_starts_no_session");
	cuObjServer other(address, 18515, 7), rc(address, 18515, 1002), all("0.0.0.0", 18515, 1001);

	must(other.isConnected() && !rc.isConnected() && all.isConnected());
	passed("decision_other_protocols_are_accepted_and_1002_is_not_connected");
	must(other.params.getHopLimit() == 64);
	passed("decision_hop_limit_64");
	std::ostringstream out;

	cuObjServer::setupTelemetry(false, &out);
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
	cuObjRDMATunable t;

	t.setTrafficClass(300);
	cuObjServer tc(address, 18515, 1001, t);

	must(tc.isConnected() && out.str().find("traffic class 300") != std::string::npos);
	passed("decision_a_traffic_class_above_255_is_logged");
	struct rdma_cm_id id = {};

	id.route.addr.src_sin.sin_family = AF_INET;
	id.route.addr.src_sin.sin_port = htons(4711);
	id.route.addr.src_sin.sin_addr.s_addr = htonl(0x0a010203);
	must(!strcmp(tc.getChannelIP(&id), "10.1.2.3") && tc.getChannelPort(&id) == 4711);
	must(!strcmp(tc.getChannelIP(nullptr), address) && tc.getChannelPort(nullptr) == 18515);
	tc.handleDisconnectEvent(&id);
	/* Of the other family: the token's GID is an IPv4 address in IPv6 form. */
	uint16_t ch = tc.allocateChannelId();
	struct rdma_buffer *b = tc.registerBuffer(memory.data(), memory.size());
	std::string six = c.token.substr(0, c.token.size() - 32) + "fd000000000000000000000000000009";

	must(tc.handleGetObject("six", b, c.start, 10, six, ch) == -EAFNOSUPPORT);
	passed("decision_a_token_of_the_other_family_is_EAFNOSUPPORT");
	cuObjServer::shutdownTelemetry();
}

static size_t
count(const std::string &text, const std::string &what)
{
	size_t n = 0;

	for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size())
		n++;
	return n;
}

/* What a client asks for and sends stands in one line, and leaves room for the cause. */
static void
lines(const struct client &c)
{
	std::ostringstream out;
	std::vector<char> memory(4096);

	cuObjServer::setupTelemetry(false, &out);
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR | CUOBJ_LOG_PATH_DEBUG);
	{
		cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);
		struct rdma_buffer *b = s.registerBuffer(memory.data(), memory.size());
		uint16_t ch = s.allocateChannelId();
		const std::string key(1024, 'k');

		must(s.handleGetObject(key, b, c.start, 4097, c.token, ch) == -EIO);
		must(s.handleGetObject(key, b, c.start, 100, c.token, ch) == 100);
		must(s.handleGetObject("a\n2026 error\x7f", b, c.start, 4097, c.token, ch) == -EIO);
	}
	must(out.str().find("kkk...\", 4097 bytes on channel 0: more than the buffer has") !=
	     std::string::npos);
	must(out.str().find("kkk...\", 100 bytes on channel 0: 100, success") != std::string::npos);
	must(out.str().find("GET of \"a?2026 error?\", 4097 bytes") != std::string::npos);
	out.str("");
	passed("a_line_is_one_line_whatever_the_key_is");

	/* One failure is one line, and so is what a device says, however many sessions there are. */
	cuObjRDMATunable t;

	t.setTimeout(200);
	cuObjServer wrong(address, 18515, CUOBJ_PROTO_RDMA_DC_V1, t);

	must(!wrong.isConnected() && count(out.str(), "no session: timeout is 200") == 1 &&
	     count(out.str(), "\n") == 1);
	t.setTimeout(16);
	t.setServiceLevel(9);
	cuObjServer one(address, 18515, CUOBJ_PROTO_RDMA_DC_V1), two(address, 18515, CUOBJ_PROTO_RDMA_DC_V1),
		high(address, 18515, CUOBJ_PROTO_RDMA_DC_V1, t);

	must(one.isConnected() && two.isConnected() && high.isConnected());
	must(count(out.str(), "service_level 9") == 1);
	t = cuObjRDMATunable();
	t.setNumDcis(1);
	{
		cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1, t), none;
		struct rdma_buffer *b = s.registerBuffer(memory.data(), memory.size());
		uint16_t ch = s.allocateChannelId();
		cuObjAsyncEvent_t e;

		auto is_one_line = [&](const char *what) {
			bool is = count(out.str(), "\n") == 1 && count(out.str(), what) == 1;

			if (!is)
				fprintf(stderr, "not one line of \"%s\": %s", what, out.str().c_str());
			out.str("");
			return is;
		};

		cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
		out.str("");
		must(s.allocateChannelId() == INVALID_CHANNEL_ID && is_one_line("all are allocated"));
		must(none.allocateChannelId() == INVALID_CHANNEL_ID && is_one_line("there is no session"));
		must(s.poll(nullptr, 1, ch) == -EINVAL && is_one_line("no room for events"));
		must(s.poll(&e, 1, 99) == -EINVAL && is_one_line("polling channel 99: it is not allocated"));
		must(none.poll(&e, 1, 0) == -ENODEV && is_one_line("there is no session"));
		must(s.handleGetObject("k", b, c.start, 100, c.token, ch, 0, nullptr, &e) == 0);
		s.deRegisterBuffer(b);
		must(is_one_line("1 operations in it are not over, or not polled"));
		must(s.handleGetObject("k", b, c.start, 100, "x", ch) == -EIO && is_one_line("a token of 1"));
	}
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
	cuObjServer::shutdownTelemetry();
	passed("a_failure_has_one_line");
}

/* Handles that are none any more, in an order that is none. */
static void
stale(const struct client &c)
{
	std::vector<char> memory(4096), stranger(512);
	struct rdma_buffer *left, *left_view, *b, *view;
	std::ostringstream out;

	cuObjServer::setupTelemetry(false, &out);
	{
		cuObjServer gone(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);

		left = gone.registerBuffer(memory.data(), memory.size());
		left_view = gone.getRDMABufferFromSgList(left, { { 0, 100 } });
		must(left_view);
	}
	cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);
	uint16_t ch = s.allocateChannelId();

	s.putRDMABufferFromSgList(left_view);
	s.deRegisterBuffer(left);
	b = s.registerBuffer(memory.data(), memory.size());
	view = s.getRDMABufferFromSgList(b, { { 0, 100 } });
	must(view && s.handleGetObject("view", view, c.start, 100, c.token, ch) == 100);
	s.deRegisterBuffer(b);
	must(s.handleGetObject("view", view, c.start, 100, c.token, ch) == -EIO);
	must(!s.getRDMABufferFromSgList(b, { { 0, 100 } }));
	s.deRegisterBuffer(b);
	s.deRegisterBuffer(reinterpret_cast<struct rdma_buffer *>(stranger.data()));
	must(!s.getRDMABufferFromSgList(reinterpret_cast<struct rdma_buffer *>(stranger.data()),
					{ { 0, 1 } }));
	s.putRDMABufferFromSgList(view);
	must(count(out.str(), "deregistering what is no registered buffer") == 3);
	s.freeChannelId(ch);
	s.freeChannelId(ch);
	cuObjServer::shutdownTelemetry();
	passed("handles_that_are_stale_are_refused");
}

/* Asking, while another thread closes and opens. */
static void
closing(const struct client &c)
{
	cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);
	std::atomic<bool> over(false);
	std::vector<std::thread> all;
	std::vector<char> memory(4096);

	cuObjServer::setTelemFlags(0);
	all.emplace_back([&] {
		while (!over)
			s.isConnected();
	});
	all.emplace_back([&] {
		while (!over)
			cuObjServer::setTelemFlags(0);
	});
	all.emplace_back([&] {
		cuObjAsyncEvent_t e;

		while (!over) {
			uint16_t ch = s.allocateChannelId();
			struct rdma_buffer *b = s.registerBuffer(memory.data(), memory.size());
			ssize_t n = b ? s.handleGetObject("k", b, c.start, 100, c.token, ch) : 0;

			must(n == 100 || n == 0 || n == -EIO || n == -ENODEV);
			s.poll(&e, 1, ch);
			s.deRegisterBuffer(b);
			s.freeChannelId(ch);
		}
	});
	for (int i = 0; i < 30; i++) {
		s.closeRDMASession();
		must(s.startRDMASession() == 0);
	}
	over = true;
	for (auto &t : all)
		t.join();
	must(s.isConnected());
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
	passed("a_session_is_closed_while_others_ask");
}

/* A child has none of its parent's sessions, ends as any program does, and opens its own. */
static void
forked(const struct client &c)
{
	static cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);
	std::vector<char> memory(4096);
	struct rdma_buffer *b = s.registerBuffer(memory.data(), memory.size());
	uint16_t ch = s.allocateChannelId();
	int status;

	must(s.handlePutObject("parent", b, c.start, 100, c.token, ch) == 100);
	cuObjServer::setTelemFlags(0);
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0) {
		alarm(60);
		must(!s.isConnected() && s.handlePutObject("child", b, c.start, 100, c.token, ch) == -ENODEV);
		must(s.allocateChannelId() == INVALID_CHANNEL_ID && !s.registerBuffer(memory.data(), 1));
		must(s.startRDMASession() == -1);
		s.freeChannelId(ch);
		s.deRegisterBuffer(b);
		s.closeRDMASession();
#ifndef __SANITIZE_THREAD__ /* which knows no new threads in such a child */
		{
			cuObjServer own(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);
			struct rdma_buffer *mine = own.registerBuffer(memory.data(), memory.size());

			ch = own.allocateChannelId();
			must(own.isConnected() &&
			     own.handlePutObject("own", mine, c.start, 100, c.token, ch) == 100);
		}
#endif
		exit(0);
	}
	must(waitpid(pid, &status, 0) == pid && status == 0);
	must(s.isConnected() && s.handlePutObject("parent", b, c.start, 100, c.token, ch) == 100);
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
	s.deRegisterBuffer(b);
	s.closeRDMASession();
	passed("a_forked_child_has_no_session_and_opens_its_own");
}

/* Registering, allocating, asking, telemetry and sessions of other objects, all while bytes move on other channels. */
static void
threads(const struct client &c)
{
	cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);
	std::vector<char> memory(1 << 20);
	struct rdma_buffer *b = s.registerBuffer(memory.data(), memory.size());
	std::atomic<bool> over(false);
	std::vector<std::thread> movers, others;
	std::ostringstream out, other;

	must(b);
	cuObjServer::setTelemFlags(0);
	for (int i = 0; i < 2; i++)
		movers.emplace_back([&, i] {
			const uint64_t at = static_cast<uint64_t>(i) << 19;
			uint16_t ch = s.allocateChannelId();
			cuObjAsyncEvent_t e[16];
			char handles[8];

			for (int k = 0; k < 100; k++) {
				must(s.handlePutObject("t", b, c.start + at, 65536, c.token, ch, at) ==
				     65536);
				for (char &h : handles)
					must(s.handleGetObject("t", b, c.start + at, 4096, c.token, ch, at,
							       nullptr, &h) == 0);
				for (int left = 8, n; left; left -= n) {
					n = s.poll(e, 16, ch);
					must(n >= 0);
				}
			}
			s.freeChannelId(ch);
		});
	others.emplace_back([&] {
		std::vector<char> own(65536);

		while (!over) {
			struct rdma_buffer *mine = s.registerBuffer(own.data(), own.size());

			must(mine);
			struct rdma_buffer *view = s.getRDMABufferFromSgList(mine, { { 100, 1000 } });

			must(view);
			s.putRDMABufferFromSgList(view);
			s.deRegisterBuffer(mine);
		}
	});
	others.emplace_back([&] {
		while (!over) {
			uint16_t ch = s.allocateChannelId();

			must(ch != INVALID_CHANNEL_ID && s.isConnected());
			must(s.handlePutObject("n", b, c.start, 100, c.token, ch, 200000) == 100);
			s.freeChannelId(ch);
		}
	});
	others.emplace_back([&] {
		for (unsigned i = 0; !over; i++) {
			if (i % 64 == 0)
				cuObjServer::setupTelemetry(false, i % 128 ? &out : &other);
			cuObjServer::setTelemFlags(i % 8, i);
		}
		cuObjServer::setTelemFlags(0);
		cuObjServer::shutdownTelemetry();
	});
	others.emplace_back([&] {
		while (!over) {
			cuObjServer second(address, 18515, CUOBJ_PROTO_RDMA_DC_V1);

			must(second.isConnected() && second.allocateChannelId() == 0);
			second.closeRDMASession();
		}
	});
	for (auto &t : movers)
		t.join();
	over = true;
	for (auto &t : others)
		t.join();
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
	s.deRegisterBuffer(b);
	passed("every_call_from_any_thread_at_any_time");
}

static void
faults()
{
	cuObjRDMATunable t;

	t.setTimeout(8);
	t.setRetryCount(1);
	t.setCqDepth(8);
	cuObjServer s(address, 18515, CUOBJ_PROTO_RDMA_DC_V1, t);
	uint16_t ch = s.allocateChannelId(), other = s.allocateChannelId();
	struct client c = client_new();
	std::vector<char> memory(1 << 20);
	struct rdma_buffer *b = s.registerBuffer(memory.data(), memory.size());
	ibv_wc_status status = IBV_WC_SUCCESS;
	cuObjAsyncEvent_t events[16];
	char handles[40];

	must(b);
	/* A synchronous call beside asynchronous ones; more of them than the queue is deep wait in the library. */
	for (char &h : handles)
		must(s.handleGetObject("a", b, c.start, 4096, c.token, ch, 0, nullptr, &h) == 0);
	must(s.handlePutObject("sync", b, c.start, 100, c.token, ch, 0, &status) == 100 &&
	     status == IBV_WC_SUCCESS);
	for (int left = 40, n; left; left -= n) {
		n = s.poll(events, 1000, ch);
		must(n >= 0 && n <= 16);
	}
	passed("decision_a_synchronous_call_leaves_asynchronous_ones_to_poll");

	softnicctl("rule add op=write drop limit=1");
	memset(c.memory, 0, 4096);
	must(s.handleGetObject("lost", b, c.start, 4096, c.token, ch, 0, &status) == -EIO);
	must(status == IBV_WC_RESP_TIMEOUT_ERR);
	softnicctl("rule clear");
	must(s.handleGetObject("after", b, c.start, 4096, c.token, ch, 0, &status) == 4096);
	passed("decision_a_completion_that_never_comes_is_a_response_timeout");

	/* The client dies under a call: it ends, the buffer is let be, other channels go on. */
	client_end(&c);
	must(s.handlePutObject("dead", b, c.start, 4096, c.token, ch, 0, &status) == -EIO &&
	     status != IBV_WC_SUCCESS);
	c = client_new();
	must(s.handlePutObject("next", b, c.start, 4096, c.token, ch) == 4096);
	must(s.handlePutObject("next", b, c.start, 4096, c.token, other) == 4096);
	passed("a_client_that_was_killed_costs_one_call");

	/* One is freed under a call that is not over: who wants another channel does not wait for that. */
	{
		std::atomic<bool> is_over(false);
		cuObjAsyncEvent_t e;

		t.setTimeout(18);
		t.setRetryCount(0);
		cuObjServer slow(address, 18515, CUOBJ_PROTO_RDMA_DC_V1, t);
		struct rdma_buffer *mine = slow.registerBuffer(memory.data(), memory.size());
		uint16_t stuck = slow.allocateChannelId();

		must(mine && slow.handleGetObject("ok", mine, c.start, 10, c.token, stuck) == 10);
		softnicctl("rule add op=write drop limit=1");
		std::thread call([&] {
			ibv_wc_status what = IBV_WC_SUCCESS;

			/* Again, where the poll() below was on the channel. */
			while (what == IBV_WC_SUCCESS)
				must(slow.handleGetObject("lost", mine, c.start, 4096, c.token, stuck, 0,
							  &what) == -EIO);
			is_over = true;
		});

		/* Until it is in the call, the channel has nothing to tell. */
		while (slow.poll(&e, 1, stuck) != -EIO)
			usleep(1000);
		std::thread end([&] { slow.freeChannelId(stuck); });

		while (slow.poll(&e, 1, stuck) != -EINVAL)
			usleep(1000);
		for (int k = 0; k < 3; k++) {
			uint16_t next = slow.allocateChannelId();

			must(next != stuck && next != INVALID_CHANNEL_ID);
			slow.freeChannelId(next);
		}
		must(!is_over);
		end.join();
		must(is_over && slow.allocateChannelId() == stuck);
		call.join();
		softnicctl("rule clear");
		t.setTimeout(8);
		t.setRetryCount(1);
	}
	passed("a_channel_that_is_freed_late_keeps_nobody_from_another");

	/* Two threads on one channel: one of them is told, nothing is torn. */
	std::atomic<int> told(0), went(0);
	std::vector<std::thread> all;

	cuObjServer::setTelemFlags(0);
	for (int i = 0; i < 2; i++)
		all.emplace_back([&, i] {
			for (int k = 0; k < 2000 || (!told && k < 200000); k++) {
				ssize_t n = s.handlePutObject("two", b, c.start, 4096, c.token, ch,
							      static_cast<uint64_t>(i) * 65536);

				must(n == 4096 || n == -EIO);
				(n == 4096 ? went : told)++;
			}
		});
	for (auto &x : all)
		x.join();
	cuObjServer::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
	must(told > 0 && went > 0 && s.handlePutObject("two", b, c.start, 4096, c.token, ch) == 4096);
	passed("a_channel_that_two_threads_use_is_EIO_for_one");

	/* A device that dies and comes back: channels and registrations survive. */
	std::atomic<bool> was_connected(true), is_back(false);
	/* The call that meets it may return when it is back. */
	std::thread watcher([&] {
		while (!is_back) {
			if (!s.isConnected())
				was_connected = false;
			usleep(1000);
		}
	});
	bool was_away = false;
	int i;

	softnicctl("device mlx5_0 reset pid=" + std::to_string(getpid()) + " away=300ms");

	for (i = 0; i < 3000; i++) {
		ssize_t n = s.handlePutObject("back", b, c.start, 4096, c.token, ch);

		if (n == 4096 && was_away)
			break;
		was_away |= n < 0;
		usleep(10000);
	}
	is_back = true;
	watcher.join();
	must(was_away && !was_connected && i < 3000 && s.isConnected());
	passed("a_device_that_dies_comes_back_with_channels_and_buffers");
	s.deRegisterBuffer(b);
	client_end(&c);

	t.setQPResetOnFailure(false);
	cuObjServer fenced(address, 18515, CUOBJ_PROTO_RDMA_DC_V1, t);

	c = client_new();
	b = fenced.registerBuffer(memory.data(), memory.size());
	ch = fenced.allocateChannelId();
	must(b && fenced.handlePutObject("ok", b, c.start, 10, c.token, ch) == 10);
	softnicctl("rule add op=read status=REM_ACCESS_ERR limit=1");
	must(fenced.handlePutObject("bad", b, c.start, 10, c.token, ch, 0, &status) == -EIO &&
	     status == IBV_WC_REM_ACCESS_ERR);
	softnicctl("rule clear");
	must(fenced.handlePutObject("fenced", b, c.start, 10, c.token, ch) == -EIO);
	fenced.freeChannelId(ch);
	ch = fenced.allocateChannelId();
	must(fenced.handlePutObject("ok", b, c.start, 10, c.token, ch) == 10);
	passed("decision_without_reset_a_channel_stays_fenced_until_it_is_freed");
	client_end(&c);
}

int
main(int argc, char **)
{
	struct client c = client_new();

	if (argc > 1) {
		fact_11(c);
		fact_12(c);
		lists_and_views(c);
		client_end(&c);
		return 0;
	}
	must(getenv("SOFTNICCTL"));
	fact_11(c);
	fact_12(c);
	facts_13_to_16(c);
	arguments(c);
	lists_and_views(c);
	sessions(c);
	lines(c);
	stale(c);
	threads(c);
	closing(c);
	forked(c);
	client_end(&c);
	faults();
	return 0;
}
