/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's interface of cuObject, on libgantry: memory is registered, and tokens for it are made for a
 * control plane of the program. gantry-cuobject(7) lists the differences from NVIDIA's library.
 *
 * Every call may be made by any thread, constructor and destructor too. Registrations belong to the process:
 * any object may use them. No exception leaves the library.
 */
#ifndef GANTRY_CUOBJCLIENT_H
#define GANTRY_CUOBJCLIENT_H

#include <ostream>

#include "cuobjrdma.h"
#include "cuobjtelem.h"
#include "cuobjtypes.h"
#include "protocol.h"

typedef enum cuObjMemoryType_enum {
	CUOBJ_MEMORY_SYSTEM = 0,
	CUOBJ_MEMORY_CUDA_MANAGED = 1,
	CUOBJ_MEMORY_CUDA_DEVICE = 2,
	CUOBJ_MEMORY_UNKNOWN = 3,
	CUOBJ_MEMORY_INVALID = 4,
} cuObjMemoryType_t;

/* The limit of one registration. */
#define CUOBJ_MAX_MEMORY_REG_SIZE (4ULL * 1024 * 1024 * 1024 - 64 * 1024)

/*
 * The program's control plane: each tells a server about rdma_info->desc_str, and returns how many bytes moved, or a
 * negative number.  One that is never needed may be null.
 */
typedef struct CUObjIOOps {
	ssize_t (*get)(const void *handle, char *ptr, size_t size, loff_t offset,
		       const cufileRDMAInfo_t *rdma_info);
	ssize_t (*put)(const void *handle, const char *ptr, size_t size, loff_t offset,
		       const cufileRDMAInfo_t *rdma_info);
} CUObjOps_t;

class cuObjClient
{
      public:
	/* Copies ops.  isConnected() says whether it can be used. */
	cuObjClient(CUObjOps_t &ops, cuObjProto_t proto = CUOBJ_PROTO_RDMA_DC_V1);
	/* Keeps the registrations. */
	~cuObjClient();

	/* Registers memory.  A start that is registered is counted. */
	cuObjErr_t cuMemObjGetDescriptor(void *ptr, size_t size);
	/* Takes one count back; the last one ends the registration and its tokens. CU_OBJ_FAIL while an
	 * operation uses it, and for memory that is not registered. Null is CU_OBJ_SUCCESS. */
	cuObjErr_t cuMemObjPutDescriptor(void *ptr);
	/* Returns the most that a callback is asked for at once; -1 for memory that is not registered. */
	ssize_t cuMemObjGetMaxRequestCallbackSize(void *ptr);
	/* Makes a token for [ptr + buffer_offset, + size), which lies in one registration with ptr. */
	cuObjErr_t cuMemObjGetRDMAToken(void *ptr, size_t size, size_t buffer_offset, cuObjOpType_t operation,
					char **desc_str_out);
	/* Frees a token's text. Its memory can be reached until the memory's registration ends. */
	cuObjErr_t cuMemObjPutRDMAToken(char *desc_str);
	/* The same; with an error that is not 0 it works no more when this returns. */
	cuObjErr_t cuMemObjPutRDMAToken(char *desc_str, int error);

	/* Move [ptr + buf_offset, + size) from or to byte `offset` of an object by the program's callbacks.  The bytes that
	 * moved, or a negative number: the callback's, or -errno. */
	ssize_t cuObjGet(void *ctx, void *ptr, size_t size, loff_t offset = 0, loff_t buf_offset = 0);
	ssize_t cuObjPut(void *ctx, void *ptr, size_t size, loff_t offset = 0, loff_t buf_offset = 0);

	/* Is there a port that is up, and is the protocol one of ours? */
	bool isConnected(void);

	/* Returns the ctx of the operation that a callback's handle is of. */
	static void *getCtx(const void *handle);
	static cuObjMemoryType_t getMemoryType(const void *ptr);

	/* Has lines written to a stream, until shutdownTelemetry() has returned; without one, to standard error. */
	static void setupTelemetry(bool use_OTEL, std::ostream *os);
	static void shutdownTelemetry();
	/* CUOBJ_LOG_PATH_...: which lines; CUOBJ_LOG_PATH_ERROR where nobody says.  Of CUOBJ_LOG_OP_...: which operations. */
	static void setTelemFlags(unsigned flags);
	static void setTelemFlags(unsigned flags, unsigned ops);

      private:
	cuObjClient(const cuObjClient &);
	cuObjClient &operator=(const cuObjClient &);

	void *state;
	void *reserved[8]; /* never touched: an object of another size will do */
};

#endif
