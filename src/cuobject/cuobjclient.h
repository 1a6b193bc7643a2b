/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client interface of cuObject, implemented with libgantry: registers memory, and makes tokens of this
 * memory, which the program sends to a server itself. gantry-cuobject(7) lists the differences from NVIDIA's
 * library.
 *
 * Any thread may make any call, constructors and destructors included. Registrations belong to the process:
 * every cuObjClient may use them. The library throws no exception.
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

/* Largest size of one registration, in bytes. */
#define CUOBJ_MAX_MEMORY_REG_SIZE (4ULL * 1024 * 1024 * 1024 - 64 * 1024)

/*
 * The functions of the program by which the library reaches a server. Each sends the token
 * rdma_info->desc_str to the server, and returns the number of bytes that the server moved, or a negative
 * number. A function may be null if the program does not use its operation.
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
	/* Makes a client, with a copy of ops. If this fails, isConnected() returns false. */
	cuObjClient(CUObjOps_t &ops, cuObjProto_t proto = CUOBJ_PROTO_RDMA_DC_V1);
	/* Destroys the client. The registrations of the process remain. */
	~cuObjClient();

	/* Registers memory. If there is a registration that begins at ptr, its count is increased by one
	 * instead. */
	cuObjErr_t cuMemObjGetDescriptor(void *ptr, size_t size);
	/* Decreases the count of a registration by one; at 0 the registration and its tokens end. Returns
	 * CU_OBJ_SUCCESS, also for null; CU_OBJ_FAIL: an operation uses the memory, or the memory is not
	 * registered. */
	cuObjErr_t cuMemObjPutDescriptor(void *ptr);
	/* Returns the largest size, in bytes, that the library passes to a callback for this memory; -1: this
	 * memory is not registered. */
	ssize_t cuMemObjGetMaxRequestCallbackSize(void *ptr);
	/* Makes a token for the size bytes at ptr + buffer_offset, which must be in the registration that
	 * begins at ptr. *desc_str_out: text of the token, to be freed by cuMemObjPutRDMAToken(). */
	cuObjErr_t cuMemObjGetRDMAToken(void *ptr, size_t size, size_t buffer_offset, cuObjOpType_t operation,
					char **desc_str_out);
	/* Frees the text of a token. Servers that know the token can access its memory until the registration
	 * ends. */
	cuObjErr_t cuMemObjPutRDMAToken(char *desc_str);
	/* Frees the text of a token. With error other than 0 the token is also revoked: after the return no
	 * server can access its memory. */
	cuObjErr_t cuMemObjPutRDMAToken(char *desc_str, int error);

	/* Moves bytes of an object, from byte `offset` on, to size bytes of memory at ptr + buf_offset, by
	 * the program's callbacks. Returns the number of bytes moved, the negative number of a callback,
	 * or -errno. */
	ssize_t cuObjGet(void *ctx, void *ptr, size_t size, loff_t offset = 0, loff_t buf_offset = 0);
	/* Moves size bytes of memory at ptr + buf_offset to an object, from byte `offset` on, by the
	 * program's callbacks. Returns the number of bytes moved, the negative number of a callback, or
	 * -errno. */
	ssize_t cuObjPut(void *ctx, void *ptr, size_t size, loff_t offset = 0, loff_t buf_offset = 0);

	/* Returns true if a port is up and the library supports the client's protocol. */
	bool isConnected(void);

	/* Returns the ctx argument of the operation for which a callback runs; handle: argument of the
	 * callback. */
	static void *getCtx(const void *handle);
	static cuObjMemoryType_t getMemoryType(const void *ptr);

	/* Starts to write log lines to a stream, until shutdownTelemetry() returns; os null: standard
	 * error. */
	static void setupTelemetry(bool use_OTEL, std::ostream *os);
	static void shutdownTelemetry();
	/* Selects which lines are logged. flags: CUOBJ_LOG_PATH_... bits, default CUOBJ_LOG_PATH_ERROR; ops:
	 * the operations about which CUOBJ_LOG_PATH_DEBUG logs lines, CUOBJ_LOG_OP_... bits. */
	static void setTelemFlags(unsigned flags);
	static void setTelemFlags(unsigned flags, unsigned ops);

      private:
	cuObjClient(const cuObjClient &);
	cuObjClient &operator=(const cuObjClient &);

	void *state;
	/* not used; reserved for later versions, so that the size of the object need not change */
	void *reserved[8];
};

#endif
