/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgantry: objects in and out of memory by RDMA, over a plain HTTP request.
 *
 * The bytes of an object travel between registered memory of this process and the server's NIC.  The HTTP
 * request only carries a descriptor ("token") that names the memory, and the reply.  Whatever cannot go by
 * RDMA (no device, a server that declines, 4 GiB and more) goes in the HTTP body instead, and struct
 * gantry_result says so and why.
 *
 *     struct gantry *g;
 *     struct gantry_result res;
 *
 *     gantry_open(NULL, &g);
 *     gantry_register(g, buf, len, 0);   // optional: it saves the registration of every call
 *     gantry_put(g, "http://10.0.0.9:9000/bkt/key", buf, len, NULL, &res);
 *     gantry_get(g, "http://10.0.0.9:9000/bkt/key", buf, len, 0, NULL, &res);
 *     gantry_close(g);
 *
 * Threads: every call may be made from any thread, also at the same time; two calls must not use the same
 * memory at the same time unless both only read it.  gantry_open() calls curl_global_init(): call it before
 * threads start, or initialise curl yourself.  gantry_close() must be the last call.
 *
 * Errors: functions that can fail return 0 or a negative errno value.  Strings in results are terminated, cut
 * to fit and fit for a terminal: a control character of the server's is a question mark, and an ETag with one
 * is "".  Sizes are bytes, times milliseconds.
 *
 * The names follow NVIDIA's cuObjClient where there is an equivalent; each place says which.
 */
#ifndef GANTRY_H
#define GANTRY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gantry;

/* Returns the version of this library, "1.2.3". */
const char *gantry_version(void);

/* ---- a context ---- */

enum gantry_dialect {
	GANTRY_S3 = 0,      /* x-amz-rdma-token, x-amz-rdma-reply */
	GANTRY_SCALITY = 1, /* x-scal-rdma; any 2xx is success */
};

enum gantry_open_flags {
	GANTRY_NO_RDMA = 1 << 0,   /* everything over HTTP */
	GANTRY_RDMA_ONLY = 1 << 1, /* put and get fail with -EOPNOTSUPP instead of going over HTTP */
	/* A token becomes invalid when its put or get returns. Costs each call a DC target. */
	GANTRY_TARGET_PER_CALL = 1 << 2,
};

enum gantry_copy_to { GANTRY_TO_HOST = 0, GANTRY_TO_DEVICE = 1 };

/*
 * Copies size bytes, at most 256 KiB, between memory that the CPU cannot read and memory that it can; `to`
 * gives the direction. The copy is complete on return. Called by the thread of the put or get, without a
 * lock, concurrently for concurrent calls. 0, or -errno, with which that call fails without a retry.
 */
typedef int gantry_copy_fn(void *cookie, void *dst, const void *src, size_t size, enum gantry_copy_to to);

/* Zeroed memory is a good default; set size to sizeof. */
struct gantry_options {
	size_t size;
	unsigned flags;
	enum gantry_dialect dialect;
	/*
	 * Local ports, separated by commas: device names ("mlx5_0", "mlx5_0:1" with a port) or addresses
	 * ("10.0.0.5"). "auto" is every active port with DC. NULL or empty: rdma_dev_addr_list of the
	 * configuration file, else auto. With several ports, tokens take turns. The address of a port is read
	 * again after a failed transfer, because it may have changed.
	 */
	const char *device;
	/* DC key, any base with prefix ("0xffeeddcc").  NULL: rdma_dc_key of the configuration file, else
	 * 0xffeeddcc. */
	const char *dc_key;
	/*
	 * JSON with comments, as cufile.json.  NULL: the file named by CUOBJ_ENV_PATH_JSON, else
	 * /etc/cuobj.json, else the one named by CUFILE_ENV_PATH_JSON, else /etc/cufile.json, else none.  A
	 * file named by a variable must be readable.  "" means none.
	 */
	const char *config_file;
	unsigned connect_timeout_ms; /* 0: 5000 */
	/* For one request.  0: 10 s and 1 s for every 32 MiB with a token;
	 * without one 30 s without progress. */
	unsigned timeout_ms;
	uint64_t max_callback_bytes; /* for gantry_obj_get() and _put(); 0: GANTRY_REGISTER_MAX */
	/*
	 * Access key and secret, both or none: requests are then signed (AWS Signature Version 4), the token
	 * with them. session_token may be NULL, region too: "us-east-1".  Copied; the S3 dialect only.
	 */
	const char *access_key, *secret_key, *session_token, *region;
	/*
	 * Lifetime of a DC target, and of the tokens of puts and gets that name it, in ms. 0: 5000. Calls
	 * share targets, because making one takes the driver some 100 us; at that age each is destroyed, by a
	 * thread of the library if no call does it. See gantry_put().
	 */
	unsigned target_life_ms;
	/*
	 * Marking of the packets sent by this end, above all the bytes of puts: the server reads them from
	 * the DC target, which uses the settings with which it was made. 0 is the default for each: the value
	 * of the configuration file (rdma_traffic_class, rdma_service_level, rdma_path_mtu, rdma_pkey_index),
	 * else the value given below.
	 */
	/* 1 to 255, GANTRY_TRAFFIC_CLASS_0; 0: the driver's class of the port, else 96 */
	int traffic_class;
	int service_level; /* 0 to 15; on Ethernet the priority; 0: 0 */
	int path_mtu; /* bytes, 256 to 4096: for servers with a smaller MTU than this port's, which is the default */
	int pkey_index; /* row of the port's table of partitions; 0: 0 */
	/*
	 * For memory of a device, such as a GPU: copies from and to it when the bytes move over HTTP, and for
	 * the checksum of a put. NULL: both are errors then, -EOPNOTSUPP. copy_cookie is passed to it.
	 */
	gantry_copy_fn *copy;
	void *copy_cookie;
	/*
	 * 1: memory of a device that no port can register is staged: the driver that the program has loaded
	 * (libcuda.so.1, libamdhip64) copies it from and to host memory of the context, which is pinned and
	 * registered once, and the bytes move by RDMA from there (GANTRY_PATH_RDMA_STAGED). The same memory
	 * serves HTTP bodies and checksums if no copy function is given. 0: no staging. See "Staging" at
	 * gantry_put().
	 */
	int stage;
	/* Size of that host memory, which is allocated at its first use: 256 KiB to GANTRY_REGISTER_MAX. 0:
	 * 64 MiB. Objects up to this size are put with one request. */
	uint64_t stage_bytes;
};

#define GANTRY_TRAFFIC_CLASS_0 (-1)

/* Opens a context. 0; -EINVAL (options, configuration file), -ENODEV (a port that was named does not exist),
 * -ENOMEM. gantry_open_error() has the reason. Without any device it succeeds if none was named:
 * gantry_rdma_reason() reports it then. options may be NULL. */
int gantry_open(const struct gantry_options *options, struct gantry **ret_g);
/* Returns the reason why the last gantry_open() of this thread failed; "" after success. */
const char *gantry_open_error(void);
/*
 * Opens the process's one context, or counts one more opening of it: its registrations belong to the process.
 * Options are those of NULL; the environment may request a stage (GANTRY_STAGE=1, or its bytes). Each opening
 * has a gantry_close(); the last one closes the context if nothing is registered, otherwise it stays for the
 * next opening. As gantry_open().
 */
int gantry_open_shared(struct gantry **ret_g);
/*
 * Frees the context with its remaining registrations. No call may be running. NULL is allowed. A context
 * belongs to the process that opened it: in a forked child this does nothing, registrations through it fail,
 * and puts and gets use HTTP.
 */
void gantry_close(struct gantry *g);

/* Failures; ports and registrations; each operation of gantry_obj_get() and gantry_obj_put() that succeeded. */
enum gantry_log_level { GANTRY_LOG_ERROR, GANTRY_LOG_INFO, GANTRY_LOG_GET, GANTRY_LOG_PUT };
/* Takes one line without its end.  By any thread, also by several at once; it must not call gantry_set_log(). */
typedef void gantry_log_fn(void *cookie, enum gantry_log_level level, const char *text);
/* Sets the log function of the library: failures with their causes, ports and registrations, and operations.
 * NULL: none. The former function is not called any longer after the return. */
void gantry_set_log(struct gantry *g, gantry_log_fn *fn, void *cookie);
/* Suppresses lines above `most`, which then cost nothing. The default is GANTRY_LOG_PUT. */
void gantry_set_log_level(struct gantry *g, enum gantry_log_level most);

/* Returns 1 when there is a port to use that is up, else 0.  (cuObjClient: isConnected) */
int gantry_is_connected(const struct gantry *g);
/* Returns the reason why gantry_is_connected() is 0; "" when it is 1. */
const char *gantry_rdma_reason(const struct gantry *g);
/* Returns a port in use: text like "mlx5_0:1 10.0.0.5"; NULL beyond the last. */
const char *gantry_port(const struct gantry *g, int i);

/* ---- memory ---- */

#define GANTRY_REGISTER_MAX 0xffffffffu /* 4 GiB - 1: SIZE of a token has 32 bits */

enum gantry_register_flags {
	GANTRY_READ_ONLY = 1 << 0, /* for puts only: the memory need not be writable */
	/* Memory of a device: never read or written by the CPU. Memory that the CPU cannot read, or that a
	 * driver reports as a device's, is treated so without this flag. */
	GANTRY_DEVICE = 1 << 1,
	/* A start that is registered already is counted once more, or registered a second time if the
	 * existing registration is shorter or not writable; each gantry_deregister() takes one count back,
	 * and the last one removes all registrations that begin there. */
	GANTRY_COUNTED = 1 << 2,
	/* Memory of a device that no port registers is accepted, to be staged, if the context has a stage:
	 * puts, gets and the operations of gantry_obj_get() and _put() use the stage; there are no tokens of
	 * such memory. */
	GANTRY_STAGED = 1 << 3,
};

/* Numbers of cuObjClient's getMemoryType. */
enum gantry_memory {
	GANTRY_MEM_SYSTEM,
	GANTRY_MEM_MANAGED,
	GANTRY_MEM_DEVICE,
	GANTRY_MEM_UNKNOWN,
	GANTRY_MEM_INVALID
};
/*
 * Returns the kind of memory of ptr, without reading it. A driver of devices is asked if the program has
 * loaded it (CUDA's libcuda.so.1, ROCm's libamdhip64; neither is ever loaded for this). UNKNOWN: it is
 * mapped, the CPU cannot read it, and no driver knows it; INVALID: it is not mapped.
 */
enum gantry_memory gantry_memory_type(const void *ptr);

/* Memory that a driver of devices knows.  Zeroed memory is a good default; set size to sizeof. */
struct gantry_memory_info {
	size_t size;
	enum gantry_memory type; /* as gantry_memory_type() */
	int device;              /* the driver's number of it */
	uint64_t start, length;  /* of the allocation that the pointer lies in, in bytes */
	uint64_t id; /* of the allocation, never used again in this process; 0: the driver gives none */
	const char *driver; /* "CUDA" or "ROCm"; static */
};
/* Asks the driver that the program has loaded about ptr.  Any thread; takes microseconds, touches nothing.  0; -ENOENT: it does
 * not know the memory; -EOPNOTSUPP: no driver is loaded. */
int gantry_memory_look(const void *ptr, struct gantry_memory_info *ret_info);

/*
 * Registers [ptr, ptr + size) with every port.  (cuMemObjGetDescriptor)  0; -EFBIG for 4 GiB and more;
 * -EINVAL; -EEXIST when one begins there already (they may overlap; see GANTRY_COUNTED); -ENODEV without RDMA (not
 * fatal: calls go over HTTP); the driver's errno, e.g. -ENOMEM when memlock is too small; -EFAULT for memory that is not mapped, or that
 * the CPU cannot read and no driver of its device registers.  For CUDA and ROCm, where the program has loaded the driver,
 * that exports a dma-buf; where that cannot be registered, a peer-memory driver (nvidia-peermem) is asked.
 *
 * A registration of memory that a driver knows remembers the driver's ids of the allocations.  Each use compares them: where
 * the memory was freed and allocated again, the registration is made again for what is there now, and tokens that were made
 * before are dead; where it was freed, the use fails with -EFAULT.  So a program may keep registrations of memory that an
 * allocator hands out and takes back.
 */
int gantry_register(struct gantry *g, void *ptr, size_t size, unsigned flags);
/*
 * Registers [ptr, ptr + size), which is what the dma-buf has from byte offset on; the CPU need not reach it.  ptr and
 * offset lie in the same place of a page.  fd stays the caller's, and may be closed afterwards.  Where no port can do
 * it (Linux 5.12 and a driver for it are needed) the memory is registered as by gantry_register(), without an export.  flags:
 * GANTRY_DEVICE, GANTRY_READ_ONLY.  As gantry_register(); also -EBADF, and -EINVAL where the dma-buf ends before or is
 * none.
 */
int gantry_register_dmabuf(struct gantry *g, void *ptr, size_t size, int fd, uint64_t offset, unsigned flags);
/* Returns the reason why the last gantry_register() or gantry_register_dmabuf() of this thread failed; ""
 * after success. */
const char *gantry_register_error(void);
/* Deregisters memory; ptr as given to gantry_register(). Does not wait: -EBUSY while a call uses the memory,
 * -ENOENT. The memory of its tokens cannot be reached any longer; the tokens may still be returned.
 * (cuMemObjPutDescriptor) */
int gantry_deregister(struct gantry *g, void *ptr);

/* ---- tokens, for programs that speak HTTP themselves ---- */

enum gantry_op { GANTRY_OP_GET = 0, GANTRY_OP_PUT = 1, GANTRY_OP_INVALID = 9999 };

/*
 * Makes a token for exactly [ptr + offset, ptr + offset + size), which must lie in registered memory: of several
 * registrations that hold it from ptr on, it is of the smallest that can be written to.
 * (cuMemObjGetRDMAToken) *ret_token: 81 characters and a NUL; *ret_len (may be NULL) counts the NUL: 82.  The
 * text is good until gantry_token_put() or gantry_deregister(), not for the length of any callback; what it
 * names can be reached by every reader of the token until gantry_deregister(), gantry_token_drop() with an error, or
 * gantry_close(): the targets of these tokens live as long as the context.  0; -ENOENT not registered; -ENODEV;
 * -ENETDOWN every port is down; -EINVAL; -EFBIG; -ENOMEM; -EFAULT the memory of a device was freed; -EOPNOTSUPP it is
 * staged (GANTRY_STAGED).
 */
int gantry_token_get(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
		     char **ret_token, size_t *ret_len);
/* Frees the text.  The memory must not be reused while a server may still act on it.  (cuMemObjPutRDMAToken)
 * 0 or -ENOENT. */
int gantry_token_put(struct gantry *g, char *token);
/*
 * Frees the text; if error is not 0 the token is invalid for every holder when this returns: its target is
 * destroyed. Tokens with the same target become invalid too; a port has 16 targets, and tokens share one only
 * if more than 16 of a port are in use, or callbacks have used it before. (cuMemObjPutRDMAToken) 0; -ENOENT;
 * another -errno: the driver did not destroy it, which is tried again every second.
 */
int gantry_token_drop(struct gantry *g, char *token, int error);

/* ---- objects ---- */

enum gantry_path {
	GANTRY_PATH_NONE = 0,
	GANTRY_PATH_RDMA = 1,
	GANTRY_PATH_HTTP = 2,
	GANTRY_PATH_RDMA_STAGED =
		3, /* by RDMA, with a copy by the device's driver between its memory and the host's */
};

/* The kind of pending device work for which a put or get waits before it accesses the memory. */
enum gantry_wait {
	GANTRY_WAIT_NONE = 0,
	GANTRY_WAIT_STREAM = 1, /* wait_for is a stream: CUstream, cudaStream_t, hipStream_t */
	GANTRY_WAIT_EVENT = 2,  /* wait_for is an event: CUevent, cudaEvent_t, hipEvent_t */
};

struct gantry_result {
	size_t size;           /* set to sizeof before the call, or 0 (then it is taken for this version's) */
	enum gantry_path path; /* path of the bytes */
	int status;            /* HTTP status of the last answer; 0: there was none */
	int reply;             /* x-amz-rdma-reply of the last answer to a token; 0: none */
	int requests;          /* HTTP requests made */
	int checksum_verified; /* 1: the server sent a checksum of the delivered bytes, and it matches */
	uint64_t bytes;        /* moved */
	uint64_t object_size;  /* of the whole object, when has_object_size */
	int has_object_size;
	/* of the bytes moved, when has_crc64nvme (put: when asked for; get: when verified, and into memory of a device
	 * as the server said it) */
	uint64_t crc64nvme;
	int has_crc64nvme;
	char etag[136]; /* with its quotes */
	/* why not by RDMA, or why staged: a word of the server (x-gantry-rdma-reason) or a sentence of ours */
	char reason[160];
	char code[64];     /* S3 error code, "NoSuchKey" */
	char message[256]; /* S3 error message, or what failed on our side */
	/* x-amz-checksum-crc64nvme of the object as the server stated it, base64; "" without */
	char checksum[16];
	char last_modified[40];
};

/* Parameters of a single request. Zeroed memory is a good default; set size to sizeof. */
struct gantry_request {
	size_t size;
	int checksum;              /* put: send x-amz-checksum-crc64nvme; head: ask for the stored one */
	int no_rdma;               /* this request uses HTTP */
	const char *if_match;      /* an ETag with its quotes, or NULL */
	const char *if_none_match; /* the same, or "*" */
	const char *content_type;  /* put; NULL: application/octet-stream */
	unsigned timeout_ms;       /* 0: that of the context */
	/* copies: the ETag, with its quotes, that the source must have, or NULL */
	const char *source_if_match;
	/*
	 * put, get: waits for the work that is queued there at the call, on the thread of the call, before a put reads the
	 * memory and before a get writes to it.  A stream may be one of the driver's own numbers: 0 or 1 (the legacy default
	 * stream) and 2 (that of the calling thread), of the device that the memory is on, else of the thread's own.  When the call
	 * has returned, the bytes of a get are there for all work that is queued after it, on any stream.  The call fails with
	 * -EOPNOTSUPP where no driver is loaded, and with -EIO where the driver fails.
	 */
	enum gantry_wait wait;
	void *wait_for;
};

/*
 * Stores size bytes as the object.  url: http://host:port/bucket/key (Scality: /key), key percent-encoded as
 * far as the caller cares; blanks, control characters and bytes above 0x7e are encoded here.
 *
 * 0 only if the server vouches for it: HTTP 2xx and, for RDMA, reply 200 or 206 (protocol.md item 116).  A
 * decline (reply absent or 501) is repeated with the bytes in the body.  A transfer that failed is repeated
 * once with a new token, then over HTTP.
 *
 * Access to the memory after the call has returned: the server has confirmed that it has finished, or the
 * target of the token is destroyed.  But a token is a capability, and HTTP shows it to every eavesdropper.
 * As long as both the target and the registration live, an attacker who captured it can have its server read
 * or write the window again.  The target lives for target_life_ms (5 s) at most from its making, which was
 * before the call or in it; with GANTRY_TARGET_PER_CALL not beyond the call.  Memory that was not
 * registered before the call cannot be reached after it in any case.  Over HTTPS no eavesdropper sees a token;
 * a gantryd refuses a signed request that comes again from another address (auth.replay).
 *
 * -ENOENT 404; -EACCES 403; -EEXIST or -ESTALE 412; -ERANGE 416; -EAGAIN 503 after retries; -ENOSPC 507;
 * -EBADMSG wrong checksum; -ETIMEDOUT; -ECONNREFUSED, -EHOSTUNREACH no connection; -EPIPE the connection
 * broke; -EPROTO an answer that contradicts itself; -EOPNOTSUPP not by RDMA, with GANTRY_RDMA_ONLY or memory of a
 * device and neither a copy function nor staging; -EFAULT memory that is not mapped: the CPU cannot read it, and the driver
 * that is loaded does not know it; -EINVAL; -EIO any other error of the server, or one of the device's driver.  res may be
 * NULL.
 *
 * Memory of a device is moved by RDMA, registered for the call where it is not, if a driver of the device does that;
 * the CPU does not touch it, and a checksum of what a get brought is compared only where the bytes were staged in one piece.
 *
 * Staging (gantry_options.stage): memory of a device that no port can register, that the server's NIC could not reach, or
 * of 4 GiB and more, goes through the context's stage: pinned host memory of stage_bytes in equal pieces (a quarter of it
 * each, 16 MiB at most unless stage_bytes is above 1 GiB), which all calls share.  A call waits for pieces as long as others have them, in turn.
 *   - A put of up to stage_bytes is copied to the stage and then stored by one request.
 *   - A larger put is an S3 multipart upload: pieces are copied and stored by up to four threads at once, and
 *     the object appears, whole, at the end.  Its ETag has the form of uploads ("...-3").  Conditions and the checksum
 *     hold for the object.  A call that fails aborts the upload; that of a process that dies stays until the
 *     server's time for uploads is over.
 *   - Where uploads do not do (the Scality dialect, gantry_upload_put(), a server that refuses them, a stage smaller than
 *     5 MiB, more than 10000 parts) the bytes go in the body of one HTTP request, through the stage.
 *   - A get larger than a piece is made of ranges, four at once, of one version of the object: If-Match, from the beginning
 *     again when it was replaced meanwhile; -ESTALE after the third time.
 */
int gantry_put(struct gantry *g, const char *url, const void *ptr, size_t size,
	       const struct gantry_request *req, struct gantry_result *res);

/*
 * Fetches size bytes of the object from byte offset on into ptr; res->bytes says how many there were,
 * res->object_size how long the object is.  Fewer than size means that the object ends there, and nothing
 * else: the server said so in its answer.  A server or a cache that answers less of the range than there is
 * (HTTP allows it) did not answer the question: -EPROTO, and what the memory holds is undefined.  Bytes of the
 * memory beyond what came stay as they were.  An empty object read at 0 gives 0 bytes; an offset at or beyond
 * the end of another one is -ERANGE.
 */
int gantry_get(struct gantry *g, const char *url, void *ptr, size_t size, uint64_t offset,
	       const struct gantry_request *req, struct gantry_result *res);

/*
 * Copies size bytes from memory of a device to memory of this host, by the device's driver and after the work that req
 * (may be NULL) says to wait for; its other members do not count.  Any thread; asks no server.  0; -EOPNOTSUPP the context
 * does not stage, or is another process's; -EFAULT no driver knows src; -EIO the driver fails; res->message says more.
 */
int gantry_copy_to_host(struct gantry *g, void *dst, const void *src, size_t size,
			const struct gantry_request *req, struct gantry_result *res);

/* Asks for size, ETag, last_modified, checksum. */
int gantry_head(struct gantry *g, const char *url, const struct gantry_request *req,
		struct gantry_result *res);

/* Takes one header of an answer.  name is in lower case; value is terminated, and fit for a terminal. */
typedef void gantry_header_fn(void *cookie, const char *name, const char *value);
/* Asks for what gantry_head() asks for, the stored checksums with it, and calls fn for each header of the answer, in
 * its order: content-type, x-amz-meta-*, x-amz-checksum-*, x-amz-tagging-count and whatever else there is.  Not a
 * single call when it fails. */
int gantry_stat(struct gantry *g, const char *url, const struct gantry_request *req, gantry_header_fn *fn,
		void *cookie, struct gantry_result *res);
/* Deletes an object; 0 also when the server says 204 for an object that was not there. */
int gantry_delete(struct gantry *g, const char *url, const struct gantry_request *req,
		  struct gantry_result *res);
/* Creates, S3 only, the bucket http://host:port/bucket; 0 also when it exists already (409).  Here, and wherever
 * a bucket is wanted: -EINVAL when the URL names a key or has a query. */
int gantry_make_bucket(struct gantry *g, const char *url, struct gantry_result *res);
/* Does the same, with each object of the bucket on so many disks (x-gantry-copies: 1 or 2; 0: as the server's default is).  A bucket that is there
 * with another number, and is empty, is changed.  -ENOTEMPTY when it is not empty; -EINVAL when the server has not so many disks;
 * -EOPNOTSUPP when it knows nothing of copies: it made the bucket, or had it, all the same. */
int gantry_make_bucket_copies(struct gantry *g, const char *url, int copies, struct gantry_result *res);
/* Removes, S3 only, an empty bucket.  -ENOTEMPTY when it holds objects or uploads, -ENOENT when there is none. */
int gantry_remove_bucket(struct gantry *g, const char *url, struct gantry_result *res);

/* ---- lists (S3 only) ---- */

/*
 * An object, a bucket, or an upload in progress. All texts are terminated and valid during the callback only.
 * name: any bytes; a server may send a name that is not safe for a file ("../x").
 */
struct gantry_entry {
	const char *name; /* the whole key, or the bucket's name */
	size_t name_len;
	int is_prefix; /* stands for all keys that begin with name, which ends in the delimiter */
	/* name is as the server wrote it, percent sequences and all, because it cannot be decoded: a NUL is in it */
	int is_raw;
	uint64_t size;
	const char *etag;      /* with its quotes, "" without */
	const char *date;      /* last modified, made, begun: "2026-11-20T10:00:00.000Z" */
	const char *upload_id; /* "" unless it is one */
};

/* The selection of a list. Zeroed memory is a good default: everything; set size to sizeof. */
struct gantry_list_options {
	size_t size;
	const char *prefix;      /* keys that begin with it, or NULL */
	const char *delimiter;   /* keys that contain it after the prefix are one entry, or NULL */
	const char *start_after; /* keys after this one, or NULL */
	unsigned page;           /* how many to ask for in one request; 0: 1000 */
	unsigned timeout_ms;     /* of one request; 0: as the context says */
};

/* Takes one entry, on the thread of the call.  Not 0 ends the list, which returns it. */
typedef int gantry_entry_fn(void *cookie, const struct gantry_entry *e);

/*
 * Calls fn for every object of the bucket http://host:port/bucket, in the order of the server (that of the keys'
 * bytes), page after page.  0: fn has seen all that there is; what fn returned; -EPROTO: an answer that is no
 * list, or pages without end; otherwise as gantry_get().  A page that is not sound is not shown in part.
 * options may be NULL.
 */
int gantry_list(struct gantry *g, const char *url, const struct gantry_list_options *options,
		gantry_entry_fn *fn, void *cookie, struct gantry_result *res);
/* Calls fn for every bucket of http://host:port/ that the keys may see. */
int gantry_list_buckets(struct gantry *g, const char *url, gantry_entry_fn *fn, void *cookie,
			struct gantry_result *res);

/* ---- objects in parts (S3 only) ---- */

#define GANTRY_UPLOAD_ID_MAX 1024 /* bytes of an upload's id, with the NUL */
#define GANTRY_PARTS_MAX 10000    /* numbers of parts are 1 to this */

struct gantry_part {
	int number;
	uint64_t size;
	char etag[136];    /* with its quotes */
	char checksum[16]; /* CRC64NVME in base64, "" without */
};

/* Begins an upload of the object; ret_id, GANTRY_UPLOAD_ID_MAX bytes, takes its id.  It stays until it is completed or
 * aborted, or the server's time for uploads is over. */
int gantry_upload_begin(struct gantry *g, const char *url, const struct gantry_request *req, char *ret_id,
			struct gantry_result *res);
/* Stores memory as a part, in all like gantry_put(); res->etag is the part's.  A part that is there is replaced.
 * Every part but the last must have 5 MiB at least. */
int gantry_upload_put(struct gantry *g, const char *url, const char *id, int number, const void *ptr,
		      size_t size, const struct gantry_request *req, struct gantry_result *res);
/* Copies size bytes from byte first on of the object `source` on the same server into a part.  size 0: all of it, which
 * is first 0. */
int gantry_upload_copy(struct gantry *g, const char *url, const char *id, int number, const char *source,
		       uint64_t first, uint64_t size, const struct gantry_request *req,
		       struct gantry_result *res);
/* Takes one part, as gantry_entry_fn takes an entry. */
typedef int gantry_part_fn(void *cookie, const struct gantry_part *part);
/* Calls fn for every part that the server has, in order of their numbers.  -ENOENT: there is no such upload. */
int gantry_upload_parts(struct gantry *g, const char *url, const char *id, gantry_part_fn *fn, void *cookie,
			struct gantry_result *res);
/* Makes the object of these parts, in ascending order; number and etag of each count.  if_match and if_none_match of
 * req are for the object that is replaced. */
int gantry_upload_complete(struct gantry *g, const char *url, const char *id, const struct gantry_part *parts,
			   size_t nr, const struct gantry_request *req, struct gantry_result *res);
/* Ends an upload and removes its parts.  -ENOENT: there is no such upload. */
int gantry_upload_abort(struct gantry *g, const char *url, const char *id, struct gantry_result *res);
/* Calls fn for every upload of the bucket that has been begun and neither completed nor aborted; prefix may be NULL. */
int gantry_uploads(struct gantry *g, const char *url, const char *prefix, gantry_entry_fn *fn, void *cookie,
		   struct gantry_result *res);

/*
 * Copies the object `source`, a URL, to url without its bytes leaving the server; metadata comes along.
 * -EXDEV: the two are on different servers, by their URLs.  S3 allows 5 GiB; gantry_upload_copy() is for more.
 * res->etag is the new object's, res->path stays GANTRY_PATH_NONE.
 */
int gantry_copy(struct gantry *g, const char *url, const char *source, const struct gantry_request *req,
		struct gantry_result *res);

#define GANTRY_PRESIGN_MAX_S 604800u /* seven days: no S3 server takes more */

/*
 * Makes a URL with which anybody may do one thing to an object, for expires_s seconds (1 to GANTRY_PRESIGN_MAX_S) and
 * without keys: it is signed in its query (AWS Signature Version 4), with the keys of the context, for the host, and
 * with whatever query url has.  method: "GET", "PUT", "HEAD" or "DELETE".  Asks no server.  *ret_url: free() it.
 * 0; -ENOKEY the context has no access key; -EOPNOTSUPP the Scality dialect; -EEXIST the URL is signed already;
 * -EINVAL another method, time, or no URL with a host alone in front of its path; -ENOMEM.
 */
int gantry_presign(struct gantry *g, const char *method, const char *url, unsigned expires_s, char **ret_url);

/* Joins base and key, with every byte of key encoded that is not unreserved or '/'.  free() it.  NULL: no
 * memory. */
char *gantry_url_join(const char *base, const char *key);

/* Continues a CRC64-NVME over more bytes (crc: 0 for the start). */
uint64_t gantry_crc64nvme(uint64_t crc, const void *data, size_t len);
/* Computes the CRC64-NVME of A followed by B. */
uint64_t gantry_crc64nvme_combine(uint64_t crc_a, uint64_t crc_b, uint64_t len_b);
/* Writes a CRC as x-amz-checksum-crc64nvme has it: 12 characters and a NUL. */
void gantry_crc64nvme_text(uint64_t crc, char text[13]);

/* ---- the shape of cuObjClient ---- */

#define GANTRY_PROTOCOL_RDMA_DC_V1 1001

/* Handed to the callbacks. */
struct gantry_io_info {
	int version;      /* 1 */
	size_t descr_len; /* counts the NUL: 82 */
	/* the token: its text is good for 64 later ones of callbacks of the registration, what it says until that ends */
	const char *descr;
};

/*
 * The program's own control plane.  Each callback tells the server about the token and waits for its answer,
 * and returns how many bytes moved, or a negative number to abort.  handle: see gantry_handle_ctx().  offset: in the
 * object.  One that is never needed may be NULL.  They may call the library.
 */
struct gantry_ops {
	ssize_t (*get)(const void *handle, char *ptr, size_t size, off_t offset,
		       const struct gantry_io_info *info);
	ssize_t (*put)(const void *handle, const char *ptr, size_t size, off_t offset,
		       const struct gantry_io_info *info);
};

/* Sets the callbacks of a context, before operations that use them; ops is copied.  -EPROTONOSUPPORT for another
 * protocol than 1001. */
int gantry_set_ops(struct gantry *g, const struct gantry_ops *ops, int protocol);
/* Returns the ctx that was given to gantry_obj_get() or _put().  (getCtx) */
void *gantry_handle_ctx(const void *handle);
/* Returns the largest piece that a callback will see.  (cuMemObjGetMaxRequestCallbackSize) ptr: registered
 * memory, else -ENOENT. */
ssize_t gantry_max_callback_size(struct gantry *g, const void *ptr);

/*
 * Moves [ptr + buf_offset, + size) from or to byte obj_offset of the object, by calling the callback as often
 * as needed with advancing offsets.  ptr must be registered.  Memory that is staged moves in pieces of the stage's size at
 * most: the callback gets the program's pointer and the token of a piece of the stage.  Where that callback fails, its token works
 * no more when it has returned.  Bytes moved (short when a callback moved
 * fewer), or a negative errno; when nothing had moved before, the negative number that a callback returned, as it is.
 * -EINVAL where there is no such callback.  (cuObjGet, cuObjPut)
 */
ssize_t gantry_obj_get(struct gantry *g, void *ctx, void *ptr, size_t size, off_t obj_offset,
		       off_t buf_offset);
ssize_t gantry_obj_put(struct gantry *g, void *ctx, void *ptr, size_t size, off_t obj_offset,
		       off_t buf_offset);
/* Does either with callbacks of its own, which are copied: the context's are not looked at. */
ssize_t gantry_obj_move(struct gantry *g, enum gantry_op op, const struct gantry_ops *ops, void *ctx,
			void *ptr, size_t size, off_t obj_offset, off_t buf_offset);

#ifdef __cplusplus
}
#endif

#endif
