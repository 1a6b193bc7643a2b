/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgantry: objects in and out of memory by RDMA, over a plain HTTP request.
 *
 * The bytes of an object travel between registered memory of this process and the server's NIC. The HTTP
 * request only carries a descriptor ("token") that names the memory, and the reply. Bytes that cannot move by
 * RDMA (no device, a server that declines, 4 GiB and more) move in the HTTP body, and struct gantry_result
 * has the path and the reason.
 *
 *     struct gantry *g;
 *     struct gantry_result res;
 *
 *     gantry_open(NULL, &g); gantry_register(g, buf, len, 0); // optional: saves the registration in every
 *     call gantry_put(g, "http://10.0.0.9:9000/bkt/key", buf, len, NULL, &res); gantry_get(g,
 *     "http://10.0.0.9:9000/bkt/key", buf, len, 0, NULL, &res); gantry_close(g);
 *
 * Threads: every call may be made from any thread, also at the same time; two calls must not use the same
 * memory at the same time unless both only read it. gantry_open() calls curl_global_init(): programs call it
 * before they start threads, or initialise curl themselves. gantry_close() must be the last call.
 *
 * Errors: functions that can fail return 0 or a negative errno value. Strings in results are terminated,
 * truncated if necessary, and safe for a terminal: a control character from the server is replaced by a
 * question mark, and an ETag that contains one by "". Sizes are bytes, times milliseconds.
 *
 * The names follow NVIDIA's cuObjClient where an equivalent exists, which the comment of each function names.
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

/* Returns the version of this library as text, such as "1.2.3". */
const char *gantry_version(void);

/* ---- a context ---- */

enum gantry_dialect {
	GANTRY_S3 = 0,      /* S3: headers x-amz-rdma-token and x-amz-rdma-reply */
	GANTRY_SCALITY = 1, /* Scality: header x-scal-rdma; any 2xx answer is a success */
};

enum gantry_open_flags {
	GANTRY_NO_RDMA = 1 << 0,   /* all bytes move over HTTP */
	GANTRY_RDMA_ONLY = 1 << 1, /* put and get fail with -EOPNOTSUPP instead of using HTTP */
	/* each put or get makes its own DC target, so its token is invalid after the call */
	GANTRY_TARGET_PER_CALL = 1 << 2,
};

enum gantry_copy_to { GANTRY_TO_HOST = 0, GANTRY_TO_DEVICE = 1 };

/*
 * Copies size bytes, at most 256 KiB, between memory that the CPU cannot read and memory that it can; `to`
 * gives the direction. The copy is complete on return. Called by the thread of the put or get, without a
 * lock, concurrently for concurrent calls. Returns 0, or the -errno with which the put or get fails without a
 * retry.
 */
typedef int gantry_copy_fn(void *cookie, void *dst, const void *src, size_t size, enum gantry_copy_to to);

/* Options of a context. Zeroed memory is a good default; the program sets size to sizeof. */
struct gantry_options {
	size_t size;
	unsigned flags;
	enum gantry_dialect dialect;
	/*
	 * Local ports, separated by commas: device names ("mlx5_0", or "mlx5_0:1" with a port number) or
	 * addresses ("10.0.0.5"). "auto": every active port with DC. NULL or empty: rdma_dev_addr_list of the
	 * configuration file, else "auto". With several ports, tokens take turns. The address of a port is
	 * read again after a failed transfer, because it may have changed.
	 */
	const char *device;
	/* DC key as text, in decimal or with a prefix ("0xffeeddcc"). NULL: rdma_dc_key of the configuration
	 * file, else 0xffeeddcc. */
	const char *dc_key;
	/*
	 * Configuration file: JSON with comments, like cufile.json. NULL: the first of these files that
	 * exists: the file named by CUOBJ_ENV_PATH_JSON, /etc/cuobj.json, the file named by
	 * CUFILE_ENV_PATH_JSON, /etc/cufile.json. A file named by a variable must be readable. "": no file.
	 */
	const char *config_file;
	unsigned connect_timeout_ms; /* limit of the connection setup, in ms; 0: 5000 */
	/* Limit of a request, in ms. 0: with a token 10 s and 1 s for every 32 MiB; otherwise 30 s without
	 * progress. */
	unsigned timeout_ms;
	uint64_t max_callback_bytes; /* largest piece for a callback, in bytes; 0: GANTRY_REGISTER_MAX */
	/*
	 * Keys with which requests, including tokens, are signed (AWS Signature Version 4). access_key and
	 * secret_key: both NULL: requests are not signed. session_token NULL: none; region NULL: "us-east-1".
	 * The library copies the strings. Only for the S3 dialect.
	 */
	const char *access_key, *secret_key, *session_token, *region;
	/*
	 * Lifetime of a DC target, and of the tokens of puts and gets that name it, in ms. 0: 5000. Calls
	 * share targets, because the driver needs some 100 us to make a target. When a target has reached
	 * this age, a call or a thread of the library destroys it. See gantry_put().
	 */
	unsigned target_life_ms;
	/*
	 * Settings of the packets that this end sends, above all those with the bytes of puts: the server
	 * reads these bytes from the DC target, which keeps the settings with which it was made. 0: the value
	 * of the configuration file (rdma_traffic_class, rdma_service_level, rdma_path_mtu, rdma_pkey_index),
	 * else the default given below.
	 */
	int traffic_class; /* 1 to 255, GANTRY_TRAFFIC_CLASS_0; 0: the driver's class of the port, else 96 */
	int service_level; /* service level, 0 to 15, on Ethernet the priority */
	/* path MTU in bytes, a power of two from 256 to 4096, at most the MTU of this port; set it if the MTU
	 * of the server's port is smaller. 0: the MTU of this port */
	int path_mtu;
	int pkey_index; /* index in the port's table of partition keys */
	/*
	 * Copies memory of a device, such as a GPU, when the bytes move over HTTP, and for the checksum of a
	 * put. NULL: a put or get that needs a copy fails with -EOPNOTSUPP. copy_cookie: first argument.
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
	/* Size of the stage's host memory, which is allocated at its first use: 256 KiB to
	 * GANTRY_REGISTER_MAX. 0: 64 MiB. Objects up to this size are put with one request. */
	uint64_t stage_bytes;
};

#define GANTRY_TRAFFIC_CLASS_0 (-1)

/* Opens a context. options NULL: the defaults. Returns 0, also if no device is named and none exists
 * (gantry_rdma_reason() has the reason); -EINVAL (options, configuration file); -ENODEV (a port that was
 * named does not exist); or -ENOMEM. gantry_open_error() describes the error. */
int gantry_open(const struct gantry_options *options, struct gantry **ret_g);
/* Returns the reason why the last gantry_open() of this thread failed; "" after success. */
const char *gantry_open_error(void);
/*
 * Opens the process's one context, with the default options, or counts one more opening of it: its
 * registrations belong to the process. The environment may request a stage (GANTRY_STAGE=1, or its bytes).
 * Each opening needs a gantry_close(). The last one closes the context if no memory is registered; otherwise
 * the context remains. Returns 0, or an error of gantry_open().
 */
int gantry_open_shared(struct gantry **ret_g);
/*
 * Frees the context with its remaining registrations. No call may be running. NULL is allowed. A context
 * belongs to the process that opened it: in a forked child this does nothing, registrations through it fail,
 * and puts and gets use HTTP.
 */
void gantry_close(struct gantry *g);

/* Levels of log lines: failures; ports and registrations; successful gantry_obj_get(); gantry_obj_put(). */
enum gantry_log_level { GANTRY_LOG_ERROR, GANTRY_LOG_INFO, GANTRY_LOG_GET, GANTRY_LOG_PUT };
/* Receives a log line without a newline. Called by any thread, also by several at a time; must not call
 * gantry_set_log(). */
typedef void gantry_log_fn(void *cookie, enum gantry_log_level level, const char *text);
/* Sets the log function, which receives failures with their causes, ports and registrations, and operations.
 * NULL: no lines are logged. The previous function is not called any longer after the return. */
void gantry_set_log(struct gantry *g, gantry_log_fn *fn, void *cookie);
/* Suppresses lines above the level `most`, which then cost no time. The default is GANTRY_LOG_PUT. */
void gantry_set_log_level(struct gantry *g, enum gantry_log_level most);

/* Returns 1 if a port in use is up, otherwise 0. (cuObjClient: isConnected) */
int gantry_is_connected(const struct gantry *g);
/* Returns the reason why gantry_is_connected() returns 0; "" if it returns 1. */
const char *gantry_rdma_reason(const struct gantry *g);
/* Returns the i-th port in use as text, like "mlx5_0:1 10.0.0.5"; NULL: there are fewer ports. */
const char *gantry_port(const struct gantry *g, int i);

/* ---- memory ---- */

#define GANTRY_REGISTER_MAX 0xffffffffu /* largest registration in bytes: SIZE of a token has 32 bits */

enum gantry_register_flags {
	GANTRY_READ_ONLY = 1 << 0, /* the memory is used for puts only, and need not be writable */
	/* Memory of a device: never read or written by the CPU. The flag is not needed for memory that the
	 * CPU cannot read, or that a driver reports as a device's. */
	GANTRY_DEVICE = 1 << 1,
	/* Memory whose start is registered already is counted once more; if the existing registration is
	 * shorter or not writable, the memory is registered a second time. Each gantry_deregister() reduces
	 * the count by one, and the last one removes all registrations that begin there. */
	GANTRY_COUNTED = 1 << 2,
	/* Memory of a device that no port can register is accepted, if the context has a stage. Puts, gets,
	 * gantry_obj_get() and gantry_obj_put() then use the stage. Staged memory has no tokens. */
	GANTRY_STAGED = 1 << 3,
};

/* Kinds of memory, with the numbers of cuObjClient's getMemoryType. */
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

/* Data about memory that a driver of devices knows. Zeroed memory is a good default; the program sets size to
 * sizeof. */
struct gantry_memory_info {
	size_t size;
	enum gantry_memory type; /* kind of the memory, the result of gantry_memory_type() */
	int device;              /* number of the device, as the driver counts */
	uint64_t start, length;  /* start address and length in bytes of the pointer's allocation */
	uint64_t id;             /* id of the allocation, never reused in this process; 0: none */
	const char *driver;      /* name of the driver, "CUDA" or "ROCm"; a constant */
};
/* Asks the driver that the program has loaded about ptr. Any thread; takes microseconds, and does not access
 * the memory. Returns 0; -ENOENT: the driver does not know the memory; -EOPNOTSUPP: no driver is loaded. */
int gantry_memory_look(const void *ptr, struct gantry_memory_info *ret_info);

/*
 * Registers [ptr, ptr + size) with every port. (cuMemObjGetDescriptor) Returns 0; -EFBIG for 4 GiB and more;
 * -EINVAL; -EEXIST when a registration begins at ptr already (registrations may overlap; see GANTRY_COUNTED);
 * -ENODEV without RDMA (not fatal: calls use HTTP); the driver's errno, e.g. -ENOMEM when memlock is too
 * small; -EFAULT for memory that is not mapped, or that the CPU cannot read and no driver of its device
 * registers. For CUDA and ROCm, if the program has loaded the driver, the driver exports a dma-buf; if the
 * dma-buf cannot be registered, a peer-memory driver (nvidia-peermem) is asked.
 *
 * A registration of memory that a driver knows contains the driver's ids of the allocations. Each use
 * compares the ids: if the memory was freed and allocated again, the new allocation is registered, and
 * earlier tokens are invalid; if the memory was only freed, the use fails with -EFAULT. So a program may keep
 * registrations of memory that an allocator frees and reuses.
 */
int gantry_register(struct gantry *g, void *ptr, size_t size, unsigned flags);
/*
 * Registers [ptr, ptr + size), the contents of a dma-buf from byte `offset` on; the CPU need not reach this
 * memory. ptr and offset have the same offset in a page. The caller keeps fd, and may close it afterwards. If
 * no port can register a dma-buf (Linux 5.12 and a driver with this function are needed), the memory is
 * registered as by gantry_register(), without an export. flags: GANTRY_DEVICE, GANTRY_READ_ONLY. As
 * gantry_register(); also -EBADF, and -EINVAL if fd is not a dma-buf or the dma-buf is too short.
 */
int gantry_register_dmabuf(struct gantry *g, void *ptr, size_t size, int fd, uint64_t offset, unsigned flags);
/* Returns the reason why this thread's last gantry_register() or gantry_register_dmabuf() failed; "" after a
 * success. */
const char *gantry_register_error(void);
/* Deregisters the memory that was registered at ptr. Returns 0; -EBUSY, without a wait, while a call uses the
 * memory; -ENOENT: no registration begins at ptr. Afterwards its tokens give no access to the memory; their
 * text may still be freed. (cuMemObjPutDescriptor) */
int gantry_deregister(struct gantry *g, void *ptr);

/* ---- tokens, for programs that speak HTTP themselves ---- */

enum gantry_op { GANTRY_OP_GET = 0, GANTRY_OP_PUT = 1, GANTRY_OP_INVALID = 9999 };

/*
 * Makes a token for exactly [ptr + offset, ptr + offset + size), which must be in registered memory: of
 * several registrations that contain this range from ptr on, the token uses the smallest writable one.
 * (cuMemObjGetRDMAToken) *ret_token: 81 characters and a NUL; *ret_len (may be NULL) counts the NUL: 82. The
 * text is valid until gantry_token_put() or gantry_deregister(), independently of callbacks; every reader of
 * the token can reach the memory until gantry_deregister(), gantry_token_drop() with an error, or
 * gantry_close(): the targets of these tokens live as long as the context. Returns 0; -ENOENT not registered;
 * -ENODEV; -ENETDOWN every port is down; -EINVAL; -EFBIG; -ENOMEM; -EFAULT the memory of a device was freed;
 * -EOPNOTSUPP the memory is staged (GANTRY_STAGED).
 */
int gantry_token_get(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
		     char **ret_token, size_t *ret_len);
/* Frees the text of a token. The program must not reuse the memory while a server may still act on the token.
 * (cuMemObjPutRDMAToken) Returns 0 or -ENOENT. */
int gantry_token_put(struct gantry *g, char *token);
/*
 * Frees the text of a token; if error is not 0, the token is invalid for every holder after the return: its
 * target is destroyed. Tokens with the same target become invalid too; a port has 16 targets, and tokens
 * share one only if more than 16 tokens of a port are in use, or callbacks have used the target before.
 * (cuMemObjPutRDMAToken) Returns 0; -ENOENT; another -errno: the driver did not destroy the target, and is
 * asked again every second.
 */
int gantry_token_drop(struct gantry *g, char *token, int error);

/* ---- objects ---- */

enum gantry_path {
	GANTRY_PATH_NONE = 0,
	GANTRY_PATH_RDMA = 1,
	GANTRY_PATH_HTTP = 2,
	GANTRY_PATH_RDMA_STAGED = 3, /* by RDMA from or to host memory, with a copy by the device's driver */
};

/* The kind of pending device work for which a put or get waits before it accesses the memory. */
enum gantry_wait {
	GANTRY_WAIT_NONE = 0,
	GANTRY_WAIT_STREAM = 1, /* wait_for is a stream: a CUstream, cudaStream_t or hipStream_t */
	GANTRY_WAIT_EVENT = 2,  /* wait_for is an event: a CUevent, cudaEvent_t or hipEvent_t */
};

struct gantry_result {
	size_t size; /* size of the struct, set to sizeof before the call; 0: the size in this version */
	enum gantry_path path; /* path on which the bytes moved */
	int status;            /* HTTP status of the last answer; 0: there was no answer */
	/* x-amz-rdma-reply of the last answer to a request with a token; 0: none */
	int reply;
	int requests;          /* number of HTTP requests made */
	int checksum_verified; /* 1: the server sent a checksum of the delivered bytes that matches */
	uint64_t bytes;        /* number of bytes moved */
	uint64_t object_size;  /* size of the whole object, in bytes; valid if has_object_size */
	int has_object_size;
	/* CRC of the bytes moved, valid if has_crc64nvme. For a put: if requested. For a get: if verified;
	 * for memory of a device it is the value that the server sent */
	uint64_t crc64nvme;
	int has_crc64nvme;
	char etag[136];    /* ETag of the object, with its quotes */
	char reason[160];  /* reason for HTTP or staging: word of x-gantry-rdma-reason, or a sentence */
	char code[64];     /* S3 error code, such as "NoSuchKey" */
	char message[256]; /* S3 error message, or a sentence of the library */
	char checksum[16]; /* x-amz-checksum-crc64nvme that the server sent, in base64; "": none */
	char last_modified[40];
};

/* Parameters of a request. Zeroed memory is a good default; the program sets size to sizeof. */
struct gantry_request {
	size_t size;
	int checksum;         /* 1: put sends x-amz-checksum-crc64nvme, head asks for the stored checksum */
	int no_rdma;          /* 1: this request uses HTTP */
	const char *if_match; /* condition If-Match: an ETag with its quotes; NULL: none */
	const char *if_none_match; /* condition If-None-Match: an ETag with its quotes, or "*"; NULL: none */
	const char *content_type;  /* content type of a put; NULL: application/octet-stream */
	unsigned timeout_ms;       /* limit of the request in ms; 0: the limit of the context */
	const char *source_if_match; /* copies: ETag with quotes that the source must have; NULL: any */
	/*
	 * put, get: the call waits, on its thread, for the work that is queued in the stream or before the
	 * event at the call, before a put reads the memory and before a get writes to it. A stream may be a
	 * number of the driver: 0 or 1 (the legacy default stream) or 2 (the default stream of the calling
	 * thread), of the device that has the memory, otherwise of the thread's device. After the return the
	 * bytes of a get are visible to all work that is queued later, on any stream. The call fails with
	 * -EOPNOTSUPP if no driver is loaded, and with -EIO if the driver fails.
	 */
	enum gantry_wait wait;
	void *wait_for;
};

/*
 * Stores size bytes as the object. url: http://host:port/bucket/key (Scality: /key), key percent-encoded as
 * far as the caller cares; blanks, control characters and bytes above 0x7e are encoded here.
 *
 * Returns 0 only if the server confirms the object: HTTP 2xx and, for RDMA, reply 200 or 206 (protocol.md
 * item 116). A decline (reply absent or 501) is repeated with the bytes in the body. A transfer that failed
 * is repeated once with a new token, then over HTTP.
 *
 * Access to the memory after the call has returned: the server has confirmed that it has finished, or the
 * target of the token is destroyed. But a token is a capability, and HTTP shows it to every eavesdropper. As
 * long as both the target and the registration live, an attacker who captured it can have its server read or
 * write the window again. The target exists for target_life_ms (5 s) at most after its creation, which was
 * before or in the call; with GANTRY_TARGET_PER_CALL only until the end of the call. Memory that was not
 * registered before the call cannot be reached after it in any case. Over HTTPS no eavesdropper sees a token;
 * a gantryd refuses a signed request that is repeated from another address (auth.replay).
 *
 * -ENOENT 404; -EACCES 403; -EEXIST or -ESTALE 412; -ERANGE 416; -EAGAIN 503 after retries; -ENOSPC 507;
 * -EBADMSG wrong checksum; -ETIMEDOUT; -ECONNREFUSED, -EHOSTUNREACH no connection; -EPIPE the connection
 * broke; -EPROTO an answer that contradicts itself; -EOPNOTSUPP RDMA is not possible, with GANTRY_RDMA_ONLY
 * or memory of a device and neither a copy function nor staging; -EFAULT memory that is not mapped: neither
 * the CPU can read the memory nor a loaded driver knows it; -EINVAL; -EIO any other error of the server, or
 * one of the device's driver. res may be NULL.
 *
 * Memory of a device is moved by RDMA; if not registered, it is registered for the call, if a driver of the
 * device supports this. The CPU does not access the memory, and the checksum of a get is compared only if the
 * bytes were staged in one piece.
 *
 * Staging (gantry_options.stage): memory of a device that no port can register, that the server's NIC could
 * not reach, or of 4 GiB and more, is moved through the context's stage: pinned host memory of stage_bytes in
 * equal pieces (a quarter of it each, 16 MiB at most unless stage_bytes is above 1 GiB), which all calls
 * share. A call waits in turn for pieces that other calls use.
 *   - A put of up to stage_bytes is copied to the stage and then stored by one request.
 *   - A larger put is an S3 multipart upload: pieces are copied and stored by up to four threads at once,
 *     and the complete object appears at the end. Its ETag has the form of uploads ("...-3"). Conditions
 *     and the checksum apply to the object. A call that fails aborts the upload; the upload of a process
 *     that is killed exists until the server's time limit of uploads.
 *   - If an upload is not possible (the Scality dialect, gantry_upload_put(), a server that refuses
 *     uploads, a stage smaller than 5 MiB, more than 10000 parts), the bytes are sent in the body of one
 *     HTTP request, through the stage.
 *   - A get larger than a piece is made of ranges, four at once, of one version of the object (If-Match).
 *     If the object is replaced during the get, the get starts again; -ESTALE after the third time.
 */
int gantry_put(struct gantry *g, const char *url, const void *ptr, size_t size,
	       const struct gantry_request *req, struct gantry_result *res);

/*
 * Fetches size bytes of the object from byte offset on into ptr; res->bytes is the number of bytes fetched,
 * res->object_size the size of the object. Fewer than size bytes always mean that the object ends there
 * according to the server's answer. If a server or a cache answers less of the range than exists (HTTP allows
 * this), the result is -EPROTO, and the contents of the memory are undefined. Memory after the fetched bytes
 * is unchanged. An empty object read at 0 gives 0 bytes; otherwise an offset at or beyond the end is -ERANGE.
 */
int gantry_get(struct gantry *g, const char *url, void *ptr, size_t size, uint64_t offset,
	       const struct gantry_request *req, struct gantry_result *res);

/*
 * Copies size bytes from memory of a device to memory of this host, by the device's driver and after the work
 * that req (may be NULL) names; other members of req are ignored. Any thread; without a server. Returns 0;
 * -EOPNOTSUPP the context does not stage, or belongs to another process; -EFAULT no driver knows src; -EIO
 * the driver fails; res->message has the reason.
 */
int gantry_copy_to_host(struct gantry *g, void *dst, const void *src, size_t size,
			const struct gantry_request *req, struct gantry_result *res);

/* Asks the server for size, ETag, time of modification and checksum of an object. */
int gantry_head(struct gantry *g, const char *url, const struct gantry_request *req,
		struct gantry_result *res);

/* Receives a header of an answer. name is in lower case; value is terminated and safe for a terminal. */
typedef void gantry_header_fn(void *cookie, const char *name, const char *value);
/* Asks the server for the headers of an object, with the stored checksums, and calls fn for each header of a
 * success, in order: content-type, x-amz-meta-*, x-amz-checksum-*, x-amz-tagging-count and all others. */
int gantry_stat(struct gantry *g, const char *url, const struct gantry_request *req, gantry_header_fn *fn,
		void *cookie, struct gantry_result *res);
/* Deletes an object. Returns 0 also if it did not exist (204). */
int gantry_delete(struct gantry *g, const char *url, const struct gantry_request *req,
		  struct gantry_result *res);
/* Creates the bucket http://host:port/bucket (S3 only). Returns 0, also if the bucket exists already (409);
 * -EINVAL, like all functions of buckets, if the URL names a key or has a query; or another -errno. */
int gantry_make_bucket(struct gantry *g, const char *url, struct gantry_result *res);
/* Creates a bucket whose objects are on `copies` disks each (x-gantry-copies: 1 or 2; 0: the server's
 * default), or changes the number of an existing, empty bucket. -ENOTEMPTY: the bucket is not empty; -EINVAL:
 * too few disks; -EOPNOTSUPP: the server does not know copies, but the bucket exists. */
int gantry_make_bucket_copies(struct gantry *g, const char *url, int copies, struct gantry_result *res);
/* Removes an empty bucket, S3 only. -ENOTEMPTY: it has objects or uploads; -ENOENT: it does not exist. */
int gantry_remove_bucket(struct gantry *g, const char *url, struct gantry_result *res);

/* ---- lists (S3 only) ---- */

/*
 * An object, a bucket, or an upload in progress. All texts are terminated and valid during the callback only.
 * name: any bytes; a server may send a name that is not safe for a file ("../x").
 */
struct gantry_entry {
	const char *name; /* whole key of the object, or name of the bucket */
	size_t name_len;
	int is_prefix; /* 1: the entry is for all keys that begin with name, a common prefix */
	/* 1: name is the server's text with percent sequences, because the decoded name contains a NUL */
	int is_raw;
	uint64_t size;
	const char *etag;      /* ETag with its quotes; "": the entry has none */
	const char *date;      /* time of modification, creation or beginning: "2026-11-20T10:00:00.000Z" */
	const char *upload_id; /* id of the upload; "": the entry is not an upload */
};

/* The selection of a list. Zeroed memory, which selects everything, is a good default; the program sets size
 * to sizeof. */
struct gantry_list_options {
	size_t size;
	const char *prefix;      /* prefix of the listed keys; NULL: all keys */
	const char *delimiter;   /* delimiter, for common prefixes as in S3; NULL: none */
	const char *start_after; /* key after which the list begins; NULL: from the first key */
	unsigned page;           /* number of entries per request; 0: 1000 */
	unsigned timeout_ms;     /* time limit of a request in ms; 0: the limit of the context */
};

/* Receives an entry, on the thread of the call. A result other than 0 ends the list, which returns this
 * result. */
typedef int gantry_entry_fn(void *cookie, const struct gantry_entry *e);

/*
 * Calls fn for every object of the bucket http://host:port/bucket, in the order of the server (that of the
 * keys' bytes), page after page. options NULL: all objects. Returns 0 after fn has received all entries; the
 * result of fn that ended the list; -EPROTO: an answer that is not a list, or pages without end; or an error
 * of gantry_get(). No entry of an invalid page is passed to fn.
 */
int gantry_list(struct gantry *g, const char *url, const struct gantry_list_options *options,
		gantry_entry_fn *fn, void *cookie, struct gantry_result *res);
/* Calls fn for every bucket of http://host:port/ that the access key may see. */
int gantry_list_buckets(struct gantry *g, const char *url, gantry_entry_fn *fn, void *cookie,
			struct gantry_result *res);

/* ---- objects in parts (S3 only) ---- */

#define GANTRY_UPLOAD_ID_MAX 1024 /* size of the buffer for the id of an upload, with the NUL */
#define GANTRY_PARTS_MAX 10000    /* largest number of a part; parts are numbered from 1 */

struct gantry_part {
	int number;
	uint64_t size;
	char etag[136];    /* ETag of the part, with its quotes */
	char checksum[16]; /* CRC64NVME of the part in base64; "": none */
};

/* Begins an upload of the object; ret_id, GANTRY_UPLOAD_ID_MAX bytes, takes its id. The upload exists until
 * it is completed or aborted, or until the server's time limit of uploads. */
int gantry_upload_begin(struct gantry *g, const char *url, const struct gantry_request *req, char *ret_id,
			struct gantry_result *res);
/* Stores memory as part `number` of an upload, by the way of gantry_put(); res->etag is the ETag of the part.
 * An existing part with this number is replaced. Every part except the last must have at least 5 MiB. */
int gantry_upload_put(struct gantry *g, const char *url, const char *id, int number, const void *ptr,
		      size_t size, const struct gantry_request *req, struct gantry_result *res);
/* Copies size bytes (0: all) of the object `source` on the same server, from byte first on, to a part. */
int gantry_upload_copy(struct gantry *g, const char *url, const char *id, int number, const char *source,
		       uint64_t first, uint64_t size, const struct gantry_request *req,
		       struct gantry_result *res);
/* Receives a part. A result other than 0 ends the list, which returns this result. */
typedef int gantry_part_fn(void *cookie, const struct gantry_part *part);
/* Calls fn for every part that the server has, in order of their numbers. -ENOENT: no such upload. */
int gantry_upload_parts(struct gantry *g, const char *url, const char *id, gantry_part_fn *fn, void *cookie,
			struct gantry_result *res);
/* Completes an upload: makes the object of these parts, in ascending order; only number and etag of each part
 * are used. if_match and if_none_match of req are for the object that is replaced. */
int gantry_upload_complete(struct gantry *g, const char *url, const char *id, const struct gantry_part *parts,
			   size_t nr, const struct gantry_request *req, struct gantry_result *res);
/* Aborts an upload and removes its parts. -ENOENT: the upload does not exist. */
int gantry_upload_abort(struct gantry *g, const char *url, const char *id, struct gantry_result *res);
/* Calls fn for every upload in progress of the bucket whose key begins with prefix; NULL: every upload. */
int gantry_uploads(struct gantry *g, const char *url, const char *prefix, gantry_entry_fn *fn, void *cookie,
		   struct gantry_result *res);

/*
 * Copies the object `source`, a URL, to url on the server, with its metadata; the bytes do not leave the
 * server. -EXDEV: the two are on different servers, by their URLs. S3 allows 5 GiB; gantry_upload_copy() is
 * for more. res->etag is the ETag of the new object; res->path is GANTRY_PATH_NONE.
 */
int gantry_copy(struct gantry *g, const char *url, const char *source, const struct gantry_request *req,
		struct gantry_result *res);

/* longest lifetime of a presigned URL in seconds: seven days, the maximum of S3 servers */
#define GANTRY_PRESIGN_MAX_S 604800u

/*
 * Makes a URL that permits one action on an object to every holder, for expires_s seconds (1 to
 * GANTRY_PRESIGN_MAX_S): the query has a signature (AWS Signature Version 4) by the keys of the context,
 * which covers the host and the query of url. method: "GET", "PUT", "HEAD" or "DELETE". Without a server. The
 * caller frees *ret_url with free(). Returns 0; -ENOKEY the context has no access key; -EOPNOTSUPP the
 * Scality dialect; -EEXIST the URL is signed already; -EINVAL another method or time, or not a URL with only
 * a host before its path; -ENOMEM.
 */
int gantry_presign(struct gantry *g, const char *method, const char *url, unsigned expires_s, char **ret_url);

/* Joins base and key into a URL to be freed with free(). Bytes of key other than unreserved ones and '/' are
 * encoded. Returns NULL if there is no memory. */
char *gantry_url_join(const char *base, const char *key);

/* Continues a CRC64-NVME over more bytes (crc: 0 for the start). */
uint64_t gantry_crc64nvme(uint64_t crc, const void *data, size_t len);
/* Computes the CRC64-NVME of A followed by B. */
uint64_t gantry_crc64nvme_combine(uint64_t crc_a, uint64_t crc_b, uint64_t len_b);
/* Writes a CRC in the form of x-amz-checksum-crc64nvme: 12 characters and a NUL. */
void gantry_crc64nvme_text(uint64_t crc, char text[13]);

/* ---- the shape of cuObjClient ---- */

#define GANTRY_PROTOCOL_RDMA_DC_V1 1001

/* The description of memory that callbacks receive. */
struct gantry_io_info {
	int version;      /* version of the struct: 1 */
	size_t descr_len; /* length of descr with its NUL: 82 */
	/* text of the token. The token is valid until the registration ends, its text until 64 later
	 * callbacks for the registration */
	const char *descr;
};

/*
 * The callbacks of the program's control plane. Each callback sends the token to the server, waits for the
 * answer, and returns the number of bytes moved, or a negative number to abort. handle: see
 * gantry_handle_ctx(). offset: in the object. A callback may be NULL if its operation is not used. Callbacks
 * may call the library.
 */
struct gantry_ops {
	ssize_t (*get)(const void *handle, char *ptr, size_t size, off_t offset,
		       const struct gantry_io_info *info);
	ssize_t (*put)(const void *handle, const char *ptr, size_t size, off_t offset,
		       const struct gantry_io_info *info);
};

/* Sets the callbacks of a context for later operations; ops is copied. -EPROTONOSUPPORT: protocol not
 * 1001. */
int gantry_set_ops(struct gantry *g, const struct gantry_ops *ops, int protocol);
/* Returns the ctx passed to gantry_obj_get() or gantry_obj_put(). (getCtx) */
void *gantry_handle_ctx(const void *handle);
/* Returns the largest piece passed to a callback, in bytes; -ENOENT: ptr is not registered.
 * (cuMemObjGetMaxRequestCallbackSize) */
ssize_t gantry_max_callback_size(struct gantry *g, const void *ptr);

/*
 * Moves size bytes between ptr + buf_offset and the object, from byte obj_offset on, by calling the callback
 * as often as needed with advancing offsets. ptr must be registered. Staged memory moves in pieces of at most
 * the stage's size: the callback gets the program's pointer and the token of a piece of the stage. If that
 * callback fails, its token is invalid after its return. Returns the number of bytes moved (fewer than size
 * if a callback moved fewer), or a negative errno; if no bytes were moved before, the negative result of a
 * callback. -EINVAL: the context has no callback for the operation. (cuObjGet, cuObjPut)
 */
ssize_t gantry_obj_get(struct gantry *g, void *ctx, void *ptr, size_t size, off_t obj_offset,
		       off_t buf_offset);
ssize_t gantry_obj_put(struct gantry *g, void *ctx, void *ptr, size_t size, off_t obj_offset,
		       off_t buf_offset);
/* Does the work of gantry_obj_get() or gantry_obj_put(), according to op, with a copy of ops as callbacks. */
ssize_t gantry_obj_move(struct gantry *g, enum gantry_op op, const struct gantry_ops *ops, void *ctx,
			void *ptr, size_t size, off_t obj_offset, off_t buf_offset);

#ifdef __cplusplus
}
#endif

#endif
