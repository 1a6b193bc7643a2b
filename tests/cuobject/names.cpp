/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names LIBRARY: fact 8.  A program that knows nothing of the headers: it finds the client's calls by their linker names
 * and keeps the object in 72 bytes of its own, between guards.  Runs on an adapter.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/types.h>

#define must(x) ((x) ? (void)0 : failed(#x, __LINE__))

static void
failed(const char *what, int line)
{
	fprintf(stderr, "names.cpp:%d: not so: %s\n", line, what);
	exit(1);
}

static void *library;

template <class F>
static F
named(const char *name)
{
	F f;
	void *p = dlsym(library, name);

	if (!p)
		failed(name, __LINE__);
	memcpy(&f, &p, sizeof f);
	return f;
}

struct ops {
	ssize_t (*get)(const void *, char *, size_t, loff_t, const void *);
	ssize_t (*put)(const void *, const char *, size_t, loff_t, const void *);
};

struct info {
	int version, len;
	const char *text;
};

static void *(*get_ctx)(const void *);
static char seen[100];

static ssize_t
on_put(const void *handle, const char *, size_t size, loff_t offset, const void *i)
{
	const struct info *info = static_cast<const struct info *>(i);

	must(get_ctx(handle) == seen && offset == 7);
	must(info->len == 82 && strlen(info->text) == 81);
	memcpy(seen, info->text, 82);
	return static_cast<ssize_t>(size);
}

int
main(int argc, char **argv)
{
	struct {
		unsigned char before[64], object[72], after[64];
	} mine;
	char memory[4096], *token = nullptr;
	struct ops ops = { nullptr, on_put };

	library = dlopen(argc > 1 ? argv[1] : "libcuobjclient.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		failed(dlerror(), __LINE__);
	auto construct = named<void (*)(void *, struct ops *, int)>(
		"_ZN11cuObjClientC1ER10CUObjIOOps15cuObjProto_enum");
	auto construct2 = named<void (*)(void *, struct ops *, int)>(
		"_ZN11cuObjClientC2ER10CUObjIOOps15cuObjProto_enum");
	auto destroy = named<void (*)(void *)>("_ZN11cuObjClientD1Ev");
	named<void (*)(void *)>("_ZN11cuObjClientD2Ev");
	auto get_descriptor =
		named<int (*)(void *, void *, size_t)>("_ZN11cuObjClient21cuMemObjGetDescriptorEPvm");
	auto put_descriptor = named<int (*)(void *, void *)>("_ZN11cuObjClient21cuMemObjPutDescriptorEPv");
	auto max =
		named<ssize_t (*)(void *, void *)>("_ZN11cuObjClient33cuMemObjGetMaxRequestCallbackSizeEPv");
	auto get_token = named<int (*)(void *, void *, size_t, size_t, int, char **)>(
		"_ZN11cuObjClient20cuMemObjGetRDMATokenEPvmm16cuObjOpType_enumPPc");
	auto put_token = named<int (*)(void *, char *)>("_ZN11cuObjClient20cuMemObjPutRDMATokenEPc");
	auto drop_token = named<int (*)(void *, char *, int)>("_ZN11cuObjClient20cuMemObjPutRDMATokenEPci");
	auto get = named<ssize_t (*)(void *, void *, void *, size_t, loff_t, loff_t)>(
		"_ZN11cuObjClient8cuObjGetEPvS0_mll");
	auto put = named<ssize_t (*)(void *, void *, void *, size_t, loff_t, loff_t)>(
		"_ZN11cuObjClient8cuObjPutEPvS0_mll");
	auto connected = named<bool (*)(void *)>("_ZN11cuObjClient11isConnectedEv");
	get_ctx = named<void *(*)(const void *)>("_ZN11cuObjClient6getCtxEPKv");
	auto type = named<int (*)(const void *)>("_ZN11cuObjClient13getMemoryTypeEPKv");
	named<void (*)(bool, void *)>("_ZN11cuObjClient14setupTelemetryEbPSo");
	auto shutdown = named<void (*)()>("_ZN11cuObjClient17shutdownTelemetryEv");
	auto flags = named<void (*)(unsigned)>("_ZN11cuObjClient13setTelemFlagsEj");
	named<void (*)(unsigned, unsigned)>("_ZN11cuObjClient13setTelemFlagsEjj");

	flags(0);
	for (int round = 0; round < 2; round++) {
		memset(&mine, 0xa5, sizeof mine);
		(round ? construct2 : construct)(mine.object, &ops, 1001);
		must(connected(mine.object));
		must(get_descriptor(mine.object, memory, sizeof memory) == 0);
		must(max(mine.object, memory) >= static_cast<ssize_t>(sizeof memory));
		must(get_token(mine.object, memory, 100, 10, 1, &token) == 0 && strlen(token) == 81);
		must(put_token(mine.object, token) == 0);
		must(get_token(mine.object, memory, 100, 10, 0, &token) == 0);
		must(drop_token(mine.object, token, 5) == 0);
		must(put(mine.object, seen, memory, 4096, 7, 0) == 4096 && strlen(seen) == 81);
		must(get(mine.object, seen, memory, 4096, 7, 0) < 0);
		must(type(memory) == 0 && type(nullptr) == 4);
		must(put_descriptor(mine.object, memory) == 0);
		destroy(mine.object);
		for (size_t i = 0; i < 64; i++)
			must(mine.before[i] == 0xa5 && mine.after[i] == 0xa5);
		/* One pointer is all that it takes: an object of another release's size will do. */
		for (size_t i = sizeof(void *); i < 72; i++)
			must(mine.object[i] == 0xa5);
	}
	shutdown();
	puts("ok fact_8_linker_names_and_an_object_of_72_bytes");
	return 0;
}
