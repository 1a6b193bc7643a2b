/* SPDX-License-Identifier: Apache-2.0 */
/* The published specification of cuObjClient, said by the compiler: every signature, field and number of it. */
#include "cuobjclient.h"

#include <type_traits>

#define same(a, b) static_assert(std::is_same<a, b>::value, #a)

/* 1.3 */
static_assert(CU_OBJ_SUCCESS == 0 && CU_OBJ_FAIL == 1, "1.3.1");
static_assert(CUOBJ_PROTO_RDMA_DC_V1 == 1001 && CUOBJ_PROTO_MAX > 1001, "1.3.2");
static_assert(CUOBJ_GET == 0 && CUOBJ_PUT == 1 && CUOBJ_INVALID == 9999, "1.3.3");
static_assert(CUOBJ_MEMORY_SYSTEM == 0 && CUOBJ_MEMORY_CUDA_MANAGED == 1 && CUOBJ_MEMORY_CUDA_DEVICE == 2 &&
		      CUOBJ_MEMORY_UNKNOWN == 3 && CUOBJ_MEMORY_INVALID == 4,
	      "1.3.4");
same(cuObjErr_t, enum cuObjErr_enum);
same(cuObjProto_t, enum cuObjProto_enum);
same(cuObjOpType_t, enum cuObjOpType_enum);
same(cuObjMemoryType_t, enum cuObjMemoryType_enum);

/* 1.4, 1.5 */
static_assert(std::is_constructible<cuObjClient, CUObjOps_t &>::value, "1.4.2");
static_assert(std::is_constructible<cuObjClient, CUObjOps_t &, cuObjProto_t>::value, "1.4.2");
static_assert(!std::has_virtual_destructor<cuObjClient>::value, "1.4.1");
same(decltype(&cuObjClient::cuMemObjGetDescriptor), cuObjErr_t (cuObjClient::*)(void *, size_t));
same(decltype(&cuObjClient::cuMemObjPutDescriptor), cuObjErr_t (cuObjClient::*)(void *));
same(decltype(&cuObjClient::cuMemObjGetMaxRequestCallbackSize), ssize_t (cuObjClient::*)(void *));
same(decltype(&cuObjClient::cuMemObjGetRDMAToken),
     cuObjErr_t (cuObjClient::*)(void *, size_t, size_t, cuObjOpType_t, char **));
static_assert(sizeof(static_cast<cuObjErr_t (cuObjClient::*)(char *)>(&cuObjClient::cuMemObjPutRDMAToken)) >
		      0,
	      "1.5.5");
static_assert(
	sizeof(static_cast<cuObjErr_t (cuObjClient::*)(char *, int)>(&cuObjClient::cuMemObjPutRDMAToken)) > 0,
	"a later release");

/* 1.6, 1.7: the offsets have defaults. */
same(decltype(&cuObjClient::cuObjGet), ssize_t (cuObjClient::*)(void *, void *, size_t, loff_t, loff_t));
same(decltype(&cuObjClient::cuObjPut), ssize_t (cuObjClient::*)(void *, void *, size_t, loff_t, loff_t));
same(decltype(std::declval<cuObjClient>().cuObjGet(nullptr, nullptr, 0)), ssize_t);
same(decltype(std::declval<cuObjClient>().cuObjPut(nullptr, nullptr, 0, 0)), ssize_t);
same(decltype(&cuObjClient::isConnected), bool (cuObjClient::*)(void));

/* 1.8, 1.9 */
same(decltype(&cuObjClient::getCtx), void *(*)(const void *));
same(decltype(&cuObjClient::getMemoryType), cuObjMemoryType_t (*)(const void *));
same(decltype(&cuObjClient::setupTelemetry), void (*)(bool, std::ostream *));
same(decltype(&cuObjClient::shutdownTelemetry), void (*)());
static_assert(sizeof(static_cast<void (*)(unsigned)>(&cuObjClient::setTelemFlags)) > 0, "1.9.3");
static_assert(sizeof(static_cast<void (*)(unsigned, unsigned)>(&cuObjClient::setTelemFlags)) > 0,
	      "a later release");
static_assert(CUOBJ_LOG_PATH_INFO == 1 && CUOBJ_LOG_PATH_DEBUG == 2 && CUOBJ_LOG_PATH_ERROR == 4,
	      "the server's 1.5.8");
static_assert((CUOBJ_LOG_OP_GET & CUOBJ_LOG_OP_PUT) == 0, "two bits");

/* 1.10 */
same(CUObjOps_t, struct CUObjIOOps);
same(decltype(CUObjOps_t::get), ssize_t (*)(const void *, char *, size_t, loff_t, const cufileRDMAInfo_t *));
same(decltype(CUObjOps_t::put),
     ssize_t (*)(const void *, const char *, size_t, loff_t, const cufileRDMAInfo_t *));
static_assert(offsetof(CUObjOps_t, get) == 0 && offsetof(CUObjOps_t, put) == sizeof(void *), "1.10.1");
same(cufileRDMAInfo_t, struct cufileRDMAInfo);
same(decltype(cufileRDMAInfo_t::version), int);
same(decltype(cufileRDMAInfo_t::desc_len), int);
same(decltype(cufileRDMAInfo_t::desc_str), const char *);

/* 1.13: of a later release, so that a program that passes its own check is not refused. */
static_assert(CUOBJ_MAX_MEMORY_REG_SIZE == (4ULL << 30) - 65536, "1.13.1");
static_assert(sizeof OBJ_RDMA_V1 == 6 && OBJ_RDMA_V1[0] == 'C' && OBJ_RDMA_V1[4] == 'J', "1.13.2");

/* What programs ask for by #ifdef is there only on demand. */
#ifdef CUOBJ_CLIENT_MAJOR_VERSION
#error "CUOBJ_CLIENT_MAJOR_VERSION is not asked for"
#endif
static_assert(sizeof(cuObjClient) == 72, "a pointer and eight words");

int
main()
{
	return 0;
}
