/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts HOST:PORT [NAME...]: what programs rely on beyond the text, and what was decided where the text is silent or at
 * odds, a function each that names it, against a server that moves the bytes.
 */
#include "play.hpp"

#include <atomic>
#include <cerrno>
#include <new>
#include <sstream>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

static CUObjOps_t both = { get_object, put_object };
static char memory[1 << 20];

static struct object
object_of(const char *name)
{
	struct object o = { std::string("/bkt/") + name, "", 0, 0, 0 };

	return o;
}

static std::string
token_of(cuObjClient &c, void *ptr, size_t size, size_t offset, cuObjOpType_t op)
{
	char *text = nullptr;

	must(c.cuMemObjGetRDMAToken(ptr, size, offset, op, &text) == CU_OBJ_SUCCESS);
	std::string copy = text;

	must(c.cuMemObjPutRDMAToken(text) == CU_OBJ_SUCCESS);
	return copy;
}

/* ---- facts ---- */

static void
fact_1_registrations_belong_to_the_process()
{
	cuObjClient a(both);

	std::thread([] {
		cuObjClient other(both);

		must(other.cuMemObjGetDescriptor(memory, sizeof memory) == CU_OBJ_SUCCESS);
	}).join();
	/* Its object is gone, and so is its thread. */
	must(by_rdma("PUT", "/bkt/fact1", token_of(a, memory, 5000, 1, CUOBJ_PUT)));
	std::thread([&a] { must(a.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS); }).join();
	must(a.cuMemObjPutDescriptor(memory) == CU_OBJ_FAIL);
}

/* Destroyed when the program ends, after the library's own. */
static cuObjClient *
at_exit()
{
	static cuObjClient client(both);

	return &client;
}

static void *volatile lost;

static void
fact_2_objects_may_be_freed_and_not_destroyed()
{
	void *room = malloc(sizeof(cuObjClient));
	cuObjClient *freed = new (room) cuObjClient(both), *destroyed = new cuObjClient(both), stays(both);

	must(freed->isConnected() && destroyed->isConnected());
	must(destroyed->cuMemObjGetDescriptor(memory, sizeof memory) == CU_OBJ_SUCCESS);
	delete destroyed;
	/* What it leaves is lost, but for the one who looks for leaks. */
	lost = *static_cast<void **>(room);
	free(room);
	must(at_exit()->isConnected() && stays.isConnected());
	must(by_rdma("PUT", "/bkt/fact2", token_of(stays, memory, 100, 0, CUOBJ_PUT)));
	must(stays.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
}

static cuObjClient *
with_a_local_table()
{
	CUObjOps_t ops = { get_object, put_object };
	cuObjClient *c = new cuObjClient(ops);

	memset(&ops, 0, sizeof ops);
	return c;
}

static void
fact_3_the_table_is_copied()
{
	struct object o = object_of("fact3");
	cuObjClient *c = with_a_local_table();

	must(c->cuMemObjGetDescriptor(memory, sizeof memory) == CU_OBJ_SUCCESS);
	must(c->cuObjPut(&o, memory, 1000) == 1000);
	must(c->cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
	delete c;
}

static void
fact_4_null_callbacks_fail_when_they_are_needed()
{
	CUObjOps_t none = {}, half = { get_object, nullptr };
	struct object o = object_of("fact4");
	cuObjClient a(none), b(half);

	must(a.isConnected() && a.cuMemObjGetDescriptor(memory, sizeof memory) == CU_OBJ_SUCCESS);
	must(by_rdma("PUT", o.path, token_of(a, memory, 1000, 0, CUOBJ_PUT)));
	must(a.cuObjGet(&o, memory, 1000) == -EINVAL && a.cuObjPut(&o, memory, 1000) == -EINVAL);
	must(b.cuObjPut(&o, memory, 1000) == -EINVAL && b.cuObjGet(&o, memory, 1000) == 1000);
	must(a.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
}

static ssize_t
only_copy(const void *handle, const char *, size_t size, loff_t offset, const cufileRDMAInfo_t *info)
{
	told(handle, size, offset, info);
	return 0;
}

static void
fact_5_callbacks_return_0_and_the_text_is_used_afterwards()
{
	CUObjOps_t ops = { nullptr, only_copy };
	cuObjClient c(ops);
	std::vector<struct object> later(200, object_of("fact5"));

	must(c.cuMemObjGetDescriptor(memory, sizeof memory) == CU_OBJ_SUCCESS);
	for (size_t i = 0; i < later.size(); i++)
		must(c.cuObjPut(&later[i], memory + i, 1000) == 0 && later[i].calls == 1);
	for (size_t i = 0; i < later.size(); i += 13) {
		memory[i] = static_cast<char>(i + 1);
		must(by_rdma("PUT", later[i].path, later[i].token));
		must(http("GET", later[i].path, "").body == std::string(memory + i, 1000));
	}
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
	must(!by_rdma("PUT", later[0].path, later[0].token));
}

static void
fact_6_operations_from_the_middle_and_their_offsets()
{
	struct object o = object_of("fact6");
	cuObjClient c(both);

	for (size_t i = 0; i < 20000; i++)
		memory[i] = static_cast<char>(i * 31 + i / 255);
	must(c.cuMemObjGetDescriptor(memory, sizeof memory) == CU_OBJ_SUCCESS);
	must(c.cuObjPut(&o, memory + 777, 3000, 123456, 11) == 3000);
	must(o.offset == 123456 && o.size == 3000);
	must(http("GET", o.path, "").body == std::string(memory + 788, 3000));
	must(by_rdma("PUT", o.path, token_of(c, memory, 500, 999, CUOBJ_PUT)));
	must(http("GET", o.path, "").body == std::string(memory + 999, 500));
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
}

static void
fact_7_the_largest_piece_says_what_is_registered()
{
	cuObjClient c(both);

	must(c.cuMemObjGetMaxRequestCallbackSize(memory) == -1);
	must(c.cuMemObjGetMaxRequestCallbackSize(nullptr) == -1);
	must(c.cuMemObjGetDescriptor(memory, sizeof memory) == CU_OBJ_SUCCESS);
	must(c.cuMemObjGetMaxRequestCallbackSize(memory) >= static_cast<ssize_t>(sizeof memory));
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
}

static void
fact_17_one_registration_and_one_token_for_many_threads()
{
	cuObjClient c(both);
	std::vector<std::thread> threads;
	char *token = nullptr;

	memset(memory, 'm', 4096);
	must(c.cuMemObjGetDescriptor(memory, sizeof memory) == CU_OBJ_SUCCESS);
	must(c.cuMemObjGetRDMAToken(memory, 4096, 0, CUOBJ_PUT, &token) == CU_OBJ_SUCCESS);
	for (int t = 0; t < 6; t++)
		threads.emplace_back([&c, token, t] {
			std::string path = "/bkt/fact17-" + std::to_string(t);
			struct object o = { path, "", 0, 0, 0 };

			for (int i = 0; i < 8; i++) {
				must(by_rdma("PUT", path, token));
				must(c.cuObjPut(&o, memory, 4096) == 4096);
				/* The same memory again, by every thread. */
				must(c.cuMemObjGetDescriptor(memory, 8192) == CU_OBJ_SUCCESS);
				must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
			}
			must(http("GET", path, "").body == std::string(4096, 'm'));
		});
	for (auto &t : threads)
		t.join();
	must(c.cuMemObjPutRDMAToken(token) == CU_OBJ_SUCCESS);
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
}

/* The second device alone, in a file with comments and keys that are nobody's. */
static void
fact_18_the_configuration_of_cufile_json()
{
	char path[] = "/tmp/gantry-facts.XXXXXX";
	int fd = mkstemp(path), status;
	const char text[] =
		"// a comment\n{ \"properties\": { \"rdma_dev_addr_list\": [ \"127.0.0.2\" ], /* one */\n"
		"\"allow_compat_mode\": true, \"nobody_knows\": { \"x\": [1, 2,], } } }\n";
	pid_t pid;

	must(fd >= 0 && write(fd, text, sizeof text - 1) == static_cast<ssize_t>(sizeof text - 1));
	close(fd);
	pid = fork();
	if (pid == 0) {
		setenv("CUFILE_ENV_PATH_JSON", path, 1);
		cuObjClient c(both);

		must(c.isConnected() && c.cuMemObjGetDescriptor(memory, sizeof memory) == CU_OBJ_SUCCESS);
		for (int i = 0; i < 4; i++)
			must(token_of(c, memory, 10, 0, CUOBJ_PUT).substr(73) == "7f000002");
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid && status == 0);
	unlink(path);
}

/* ---- decisions ---- */

static ssize_t answers_with;

static ssize_t
answers(const void *handle, const char *, size_t size, loff_t offset, const cufileRDMAInfo_t *info)
{
	told(handle, size, offset, info);
	return answers_with;
}

static void
decision_invalid_arguments_are_negative()
{
	struct object o = object_of("d");
	cuObjClient c(both);

	must(c.cuObjGet(&o, nullptr, 10) < 0 && c.cuObjPut(&o, nullptr, 10) < 0);
	must(c.cuObjPut(&o, memory, 10) == -ENOENT);
	must(c.cuMemObjGetDescriptor(memory, 4096) == CU_OBJ_SUCCESS);
	must(c.cuObjPut(&o, memory, 0) == -EINVAL && c.cuObjPut(&o, memory, 10, -1) == -EINVAL);
	must(c.cuObjGet(&o, memory, 10, 0, -1) == -EINVAL && c.cuObjGet(&o, memory, 4097) == -ENOENT);
	must(c.cuObjGet(&o, memory, 1, 0, 4096) == -ENOENT && o.calls == 0);
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
	must(c.cuMemObjGetDescriptor(nullptr, 10) == CU_OBJ_FAIL &&
	     c.cuMemObjGetDescriptor(memory, 0) == CU_OBJ_FAIL);
	must(c.cuMemObjGetDescriptor(memory, CUOBJ_MAX_MEMORY_REG_SIZE + 65536) == CU_OBJ_FAIL);
}

static void
decision_a_callbacks_value_comes_through()
{
	CUObjOps_t ops = { nullptr, answers };
	struct object o = object_of("d");
	cuObjClient c(ops);

	must(c.cuMemObjGetDescriptor(memory, 4096) == CU_OBJ_SUCCESS);
	for (ssize_t v : { -1, -7, -1000, 0, 5, 1000 }) {
		answers_with = v;
		must(c.cuObjPut(&o, memory, 1000) == v);
	}
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
}

static ssize_t
throws(const void *, const char *, size_t, loff_t, const cufileRDMAInfo_t *)
{
	throw std::runtime_error("a callback's");
}

static void
decision_no_exception_leaves_the_library()
{
	CUObjOps_t ops = { nullptr, throws };
	cuObjClient c(ops);

	must(c.cuMemObjGetDescriptor(memory, 4096) == CU_OBJ_SUCCESS);
	must(c.cuObjPut(nullptr, memory, 1000) == -EIO);
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
}

static void
decision_put_descriptor_of_null_is_success()
{
	cuObjClient c(both);

	must(c.cuMemObjPutDescriptor(nullptr) == CU_OBJ_SUCCESS);
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_FAIL);
}

static void
decision_the_same_start_twice_and_a_range_in_another()
{
	cuObjClient c(both);
	std::string token;

	must(c.cuMemObjGetDescriptor(memory, 8192) == CU_OBJ_SUCCESS);
	must(c.cuMemObjGetDescriptor(memory, 8192) == CU_OBJ_SUCCESS);
	must(c.cuMemObjGetDescriptor(memory + 4096, 100) == CU_OBJ_SUCCESS);
	token = token_of(c, memory + 4096, 100, 0, CUOBJ_PUT);
	must(by_rdma("PUT", "/bkt/d", token));
	/* The smallest: it ends with the inner one. */
	must(c.cuMemObjPutDescriptor(memory + 4096) == CU_OBJ_SUCCESS && !by_rdma("PUT", "/bkt/d", token));
	token = token_of(c, memory, 100, 4096, CUOBJ_PUT);
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS && by_rdma("PUT", "/bkt/d", token));
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS && !by_rdma("PUT", "/bkt/d", token));
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_FAIL);
}

static cuObjClient *busy;

static ssize_t
deregisters(const void *, const char *, size_t size, loff_t, const cufileRDMAInfo_t *)
{
	char *token;

	must(busy->cuMemObjPutDescriptor(memory) == CU_OBJ_FAIL);
	/* Callbacks may call back into the library. */
	must(busy->cuMemObjGetRDMAToken(memory, 10, 0, CUOBJ_GET, &token) == CU_OBJ_SUCCESS);
	must(busy->cuMemObjPutRDMAToken(token) == CU_OBJ_SUCCESS);
	return static_cast<ssize_t>(size);
}

static void
decision_memory_stays_registered_under_an_operation()
{
	CUObjOps_t ops = { nullptr, deregisters };
	cuObjClient c(ops);

	busy = &c;
	must(c.cuMemObjGetDescriptor(memory, 4096) == CU_OBJ_SUCCESS);
	must(c.cuObjPut(nullptr, memory, 1000) == 1000);
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
}

static void
decision_tokens_that_outlive_their_memory_are_released()
{
	cuObjClient c(both);
	char *token;
	std::string copy;

	must(c.cuMemObjGetDescriptor(memory, 4096) == CU_OBJ_SUCCESS);
	must(c.cuMemObjGetRDMAToken(memory, 100, 0, CUOBJ_PUT, &token) == CU_OBJ_SUCCESS);
	copy = token;
	must(by_rdma("PUT", "/bkt/d", copy));
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS && !by_rdma("PUT", "/bkt/d", copy));
	must(c.cuMemObjPutRDMAToken(token) == CU_OBJ_SUCCESS);
}

static void
decision_a_token_with_an_error_works_no_more()
{
	cuObjClient c(both);
	char *kept, *dropped;
	std::string copy;

	must(c.cuMemObjGetDescriptor(memory, 4096) == CU_OBJ_SUCCESS);
	must(c.cuMemObjGetRDMAToken(memory, 100, 0, CUOBJ_PUT, &kept) == CU_OBJ_SUCCESS);
	must(c.cuMemObjGetRDMAToken(memory, 100, 0, CUOBJ_PUT, &dropped) == CU_OBJ_SUCCESS);
	copy = dropped;
	must(by_rdma("PUT", "/bkt/d", copy));
	must(c.cuMemObjPutRDMAToken(dropped, 5) == CU_OBJ_SUCCESS && !by_rdma("PUT", "/bkt/d", copy));
	must(by_rdma("PUT", "/bkt/d", kept));
	copy = kept;
	must(c.cuMemObjPutRDMAToken(kept, 0) == CU_OBJ_SUCCESS && by_rdma("PUT", "/bkt/d", copy));
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
}

static void
decision_memory_that_nobody_knows_is_the_systems()
{
	void *hidden = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(cuObjClient::getMemoryType(memory) == CUOBJ_MEMORY_SYSTEM);
	must(cuObjClient::getMemoryType(reinterpret_cast<void *>(4096)) == CUOBJ_MEMORY_SYSTEM);
	must(cuObjClient::getMemoryType(nullptr) == CUOBJ_MEMORY_INVALID);
	/* It is mapped, and the CPU cannot read it. */
	must(cuObjClient::getMemoryType(hidden) == CUOBJ_MEMORY_UNKNOWN);
	munmap(hidden, 4096);
}

static void
decision_other_protocols_are_accepted_and_external_rc_is_not_connected()
{
	cuObjClient other(both, static_cast<cuObjProto_t>(7)), rc(both, static_cast<cuObjProto_t>(1002));

	must(other.isConnected() && !rc.isConnected());
}

/* ---- telemetry ---- */

static void
telemetry_has_levels_operations_and_an_end()
{
	std::ostringstream out;
	struct object o = object_of("telemetry");
	cuObjClient c(both);

	cuObjClient::setupTelemetry(true, &out);
	must(c.cuMemObjGetDescriptor(nullptr, 1) == CU_OBJ_FAIL);
	must(out.str().find(" error ") != std::string::npos &&
	     out.str().find("registering") != std::string::npos);
	must(c.cuMemObjGetDescriptor(memory, 4096) == CU_OBJ_SUCCESS &&
	     out.str().find(" info ") == std::string::npos);
	cuObjClient::setTelemFlags(CUOBJ_LOG_PATH_INFO | CUOBJ_LOG_PATH_DEBUG, CUOBJ_LOG_OP_PUT);
	out.str("");
	must(c.cuObjPut(&o, memory, 1000) == 1000 && c.cuObjGet(&o, memory, 1000) == 1000);
	must(out.str().find(" debug ") != std::string::npos &&
	     out.str().find("put of 1000 bytes") != std::string::npos);
	must(out.str().find("get of") == std::string::npos);
	cuObjClient::setTelemFlags(0xffff);
	must(c.cuObjGet(&o, memory, 1000) == 1000 &&
	     out.str().find("get of 1000 bytes") != std::string::npos);
	must(out.str().back() == '\n');
	cuObjClient::shutdownTelemetry();
	cuObjClient::setTelemFlags(0);
	out.str("");
	must(c.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS &&
	     c.cuMemObjPutDescriptor(memory) == CU_OBJ_FAIL);
	must(out.str().empty());
}

#ifndef __SANITIZE_THREAD__
/* A child that was forked has the object, and opens ports of its own. */
static void
a_forked_child_opens_its_own()
{
	static cuObjClient *c = new cuObjClient(both);
	int status;
	pid_t pid;

	must(c->cuMemObjGetDescriptor(memory, 4096) == CU_OBJ_SUCCESS);
	pid = fork();
	if (pid == 0) {
		char *mine = static_cast<char *>(malloc(4096));

		memset(mine, 'c', 4096);
		must(c->isConnected() && c->cuMemObjGetMaxRequestCallbackSize(memory) == -1);
		must(c->cuMemObjGetDescriptor(mine, 4096) == CU_OBJ_SUCCESS);
		must(by_rdma("PUT", "/bkt/child", token_of(*c, mine, 4096, 0, CUOBJ_PUT)));
		must(http("GET", "/bkt/child", "").body == std::string(4096, 'c'));
		delete c;
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid && status == 0);
	must(by_rdma("PUT", "/bkt/parent", token_of(*c, memory, 4096, 0, CUOBJ_PUT)));
	must(c->cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
	delete c;
}

#endif

#define row(f)                                                                                               \
	{                                                                                                    \
#f, f                                                                                        \
	}
static const struct {
	const char *name;
	void (*run)();
} all[] = {
	/* First, so that no child has threads. */
	row(fact_18_the_configuration_of_cufile_json),
	row(fact_1_registrations_belong_to_the_process),
	row(fact_2_objects_may_be_freed_and_not_destroyed),
	row(fact_3_the_table_is_copied),
	row(fact_4_null_callbacks_fail_when_they_are_needed),
	row(fact_5_callbacks_return_0_and_the_text_is_used_afterwards),
	row(fact_6_operations_from_the_middle_and_their_offsets),
	row(fact_7_the_largest_piece_says_what_is_registered),
	row(fact_17_one_registration_and_one_token_for_many_threads),
	row(decision_invalid_arguments_are_negative),
	row(decision_a_callbacks_value_comes_through),
	row(decision_no_exception_leaves_the_library),
	row(decision_put_descriptor_of_null_is_success),
	row(decision_the_same_start_twice_and_a_range_in_another),
	row(decision_memory_stays_registered_under_an_operation),
	row(decision_tokens_that_outlive_their_memory_are_released),
	row(decision_a_token_with_an_error_works_no_more),
	row(decision_memory_that_nobody_knows_is_the_systems),
	row(decision_other_protocols_are_accepted_and_external_rc_is_not_connected),
	row(telemetry_has_levels_operations_and_an_end),
#ifndef __SANITIZE_THREAD__
	/* The sanitizer takes a child's first thread for one of the parent's, which has its address, and ends it. */
	row(a_forked_child_opens_its_own),
#endif
};

int
main(int argc, char **argv)
{
	must(argc >= 2);
	server = argv[1];
	for (const auto &t : all) {
		bool is_chosen = argc == 2;

		for (int i = 2; i < argc; i++)
			is_chosen |= strstr(t.name, argv[i]) != nullptr;
		if (!is_chosen)
			continue;
		t.run();
		printf("ok    %s\n", t.name);
		fflush(stdout);
	}
	return 0;
}
