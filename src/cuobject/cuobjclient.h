/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client interface of cuObject, on libgantry: registers memory, and makes tokens of this memory for the
 * control plane of the program. gantry-cuobject(7) lists the differences from NVIDIA's library.
 *
 * Any thread may make any call, also of constructors and destructors. Registrations belong to the process,
 * and every object may use them. The library throws no exception.
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
 * The callbacks of the program's control plane. Each sends rdma_info->desc_str to a server, and returns
 * the number of bytes moved, or a negative number. A callback may be null if the program does not use its
 * operation.
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
	/* Copies ops. isConnected() then returns true if the client can be used. */
	cuObjClient(CUObjOps_t &ops, cuObjProto_t proto = CUOBJ_PROTO_RDMA_DC_V1);
	/* Destroys the client. The registrations of the process remain. */
	~cuObjClient();

	/* Registers memory; a registration that begins at ptr already gets one more count. */
	cuObjErr_t cuMemObjGetDescriptor(void *ptr, size_t size);
	/* Removes one count of a registration; without counts the registration and its tokens end. Returns
	 * CU_OBJ_FAIL while an operation uses the memory, and for memory that is not registered;
	 * CU_OBJ_SUCCESS for null. */
	cuObjErr_t cuMemObjPutDescriptor(void *ptr);
	/* Returns the largest size, in bytes, that is passed to a callback; -1 for memory that is not
	 * registered. */
	ssize_t cuMemObjGetMaxRequestCallbackSize(void *ptr);
	/* Makes a token for size bytes from ptr + buffer_offset on, which must be in the registration of
	 * ptr. */
	cuObjErr_t cuMemObjGetRDMAToken(void *ptr, size_t size, size_t buffer_offset, cuObjOpType_t operation,
					char **desc_str_out);
	/* Frees the text of a token. Peers can access the token's memory until the registration ends. */
	cuObjErr_t cuMemObjPutRDMAToken(char *desc_str);
	/* Frees the text of a token. If error is not 0, the token is invalid after the return. */
	cuObjErr_t cuMemObjPutRDMAToken(char *desc_str, int error);

	/* Moves bytes of an object, from byte `offset` on, to size bytes of memory at ptr + buf_offset, by
	 * the program's callbacks. Returns the number of bytes moved, the negative number of a callback,
	 * or -errno. */
	ssize_t cuObjGet(void *ctx, void *ptr, size_t size, loff_t offset = 0, loff_t buf_offset = 0);
	/* Moves size bytes of memory at ptr + buf_offset to byte `offset` of an object. The result is that
	 * of cuObjGet(). */
	ssize_t cuObjPut(void *ctx, void *ptr, size_t size, loff_t offset = 0, loff_t buf_offset = 0);

	/* Returns true if a port is up and the library supports the client's protocol. */
	bool isConnected(void);

	/* Returns the ctx of the operation, in a callback with that handle. */
	static void *getCtx(const void *handle);
	static cuObjMemoryType_t getMemoryType(const void *ptr);

	/* Writes log lines to a stream until shutdownTelemetry() returns; os null: to standard error. */
	static void setupTelemetry(bool use_OTEL, std::ostream *os);
	static void shutdownTelemetry();
	/* Selects the lines (flags: CUOBJ_LOG_PATH_..., default CUOBJ_LOG_PATH_ERROR) and the operations
	 * (ops: CUOBJ_LOG_OP_...) that are logged. */
	static void setTelemFlags(unsigned flags);
	static void setTelemFlags(unsigned flags, unsigned ops);

      private:
	cuObjClient(const cuObjClient &);
	cuObjClient &operator=(const cuObjClient &);

	void *state;
	/* not used; a later version can use it without a change of the object's size */
	void *reserved[8];
};

#endif
