/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgantry: objects in and out of memory by RDMA, over a plain HTTP request.
 *
 * The bytes of an object travel between registered memory of this process and the server's NIC. The HTTP
 * request carries only a descriptor ("token") that names the memory. Bytes that cannot move by RDMA (no
 * device, a server that declines, 4 GiB and more) move in the HTTP body, and struct gantry_result says why.
 *
 *     struct gantry *g;
 *     struct gantry_result res;
 *
 *     gantry_open(NULL, &g);
 *     gantry_register(g, buf, len, 0); // optional: otherwise each call registers the memory
 *     gantry_put(g, "http://10.0.0.9:9000/bkt/key", buf, len, NULL, &res);
 *     gantry_get(g, "http://10.0.0.9:9000/bkt/key", buf, len, 0, NULL, &res);
 *     gantry_close(g);
 *
 * Threads: every function may be called by any thread, also by several at a time. Two calls must not use the
 * same memory at the same time, unless both only read it. gantry_open() calls curl_global_init(): a program
 * calls gantry_open() before it starts threads, or initialises curl itself. gantry_close() is the last call.
 *
 * Errors: functions that can fail return 0 or a negative errno value. Strings in results end with a NUL, are
 * truncated if necessary, and are safe for a terminal: a question mark replaces each control character from
 * the server; an ETag with a control character becomes "". Sizes are in bytes, times in milliseconds.
 *
 * If NVIDIA's cuObjClient has an equivalent of a function, the function's comment names it in parentheses.
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
	/* each put or get makes a DC target of its own, so the token of the call is invalid after the call */
	GANTRY_TARGET_PER_CALL = 1 << 2,
};

/* Transports of RDMA. AUTO: DC if both the port and the server have it, else RC. RC: the library connects queue
 * pairs with the server (POST /.s3rdma-rc/connect), and each transfer uses one of these connections. */
enum gantry_transport { GANTRY_TRANSPORT_AUTO = 0, GANTRY_TRANSPORT_DC = 1, GANTRY_TRANSPORT_RC = 2 };

enum gantry_copy_to { GANTRY_TO_HOST = 0, GANTRY_TO_DEVICE = 1 };

/* Copies size bytes, at most 256 KiB, between memory of a device, which the CPU cannot read, and host memory.
 * to: the kind of memory of dst. The copy must be complete on return. Called by the thread of the put or get,
 * without a lock. Returns 0, or the -errno with which the put or get fails without a retry. */
typedef int gantry_copy_fn(void *cookie, void *dst, const void *src, size_t size, enum gantry_copy_to to);

/* Options of a context. 0 in every member but size is the default; size is sizeof this struct. */
struct gantry_options {
	size_t size;
	unsigned flags;
	enum gantry_dialect dialect;
	/* Local ports, separated by commas: device names ("mlx5_0", or "mlx5_0:1" with a port number) or
	 * addresses ("10.0.0.5"). "auto": every active port that supports DC. NULL or "": rdma_dev_addr_list
	 * of the configuration file, or "auto" if the file has none. With several ports, tokens use them in
	 * turn. The address of a port is read again after a failed transfer, because it may have changed. */
	const char *device;
	/* DC key as text, in decimal or in hexadecimal with 0x. NULL: rdma_dc_key of the configuration file,
	 * or 0xffeeddcc if the file has none. */
	const char *dc_key;
	/* Path of the configuration file: JSON with comments, like cufile.json. "": no file is read. NULL:
	 * the first of these files that exists is read: the file named by the environment variable
	 * CUOBJ_ENV_PATH_JSON, /etc/cuobj.json, the file named by CUFILE_ENV_PATH_JSON, /etc/cufile.json. If
	 * a variable is set, its file must be readable. */
	const char *config_file;
	unsigned connect_timeout_ms; /* time limit for opening a connection, in ms; 0: 5000 */
	/* Time limit of a request, in ms. 0: for a request with a token 10 s plus 1 s for every 32 MiB; for
	 * any other request 30 s without progress. */
	unsigned timeout_ms;
	uint64_t max_callback_bytes; /* largest piece for a callback, in bytes; 0: GANTRY_REGISTER_MAX */
	/* Access key and secret key, with which requests and their tokens are signed (AWS Signature Version
	 * 4); both NULL: requests are not signed. session_token: NULL: none. region: NULL: "us-east-1". The
	 * strings are copied. S3 dialect only. */
	const char *access_key, *secret_key, *session_token, *region;
	/* Largest age of a DC target of puts and gets, in ms; 0: 5000. Calls use a target one after the other,
	 * because the driver needs some 100 us to make one. A target of this age is destroyed, which makes its
	 * tokens invalid. A connection of RC is closed when no call has used it for this time. See gantry_put(). */
	unsigned target_life_ms;
	/* Settings of the packets that this host sends, which are mainly the bytes of puts. A DC target keeps
	 * the settings with which it was made. 0: the value of the configuration file (rdma_traffic_class,
	 * rdma_service_level, rdma_path_mtu, rdma_pkey_index) or, if the file has none, the value that the
	 * member's comment gives. */
	/* 1 to 255, or GANTRY_TRAFFIC_CLASS_0 for class 0; 0: the class that the driver has for the port, else 96 */
	int traffic_class;
	int service_level; /* service level, 0 to 15; on Ethernet the priority */
	/* path MTU in bytes, a power of two from 256 to 4096, at most the MTU of this port; set it if the MTU
	 * of the server's port is smaller. 0: the MTU of this port */
	int path_mtu;
	int pkey_index; /* index in the port's table of partition keys */
	/* Function that copies from and to memory of a device, such as a GPU; needed if the bytes of such memory
	 * move over HTTP, and for the checksum of a put from it. NULL: without a stage these calls fail with
	 * -EOPNOTSUPP. copy_cookie: first argument of the function. */
	gantry_copy_fn *copy;
	void *copy_cookie;
	/* 1: the context has a stage: host memory that is pinned and registered once. If no port can register
	 * memory of a device, the bytes move by RDMA between the server and the stage (GANTRY_PATH_RDMA_STAGED),
	 * and the driver of the device copies them between the stage and the device. The program has to have
	 * loaded this driver (libcuda.so.1, libamdhip64). Without a copy function the stage is also used for HTTP
	 * bodies and checksums. 0: there is no stage. See "Staging" at gantry_put(). */
	int stage;
	/* Size of the stage in bytes, 256 KiB to GANTRY_REGISTER_MAX; 0: 64 MiB. The memory is allocated at
	 * its first use. Objects of at most this size are put with one request. */
	uint64_t stage_bytes;
	/* AUTO: rdma_transport ("auto", "dc" or "rc") of the configuration file, else AUTO. With DC or RC
	 * gantry_open() fails with -ENODEV if no port has this transport. */
	enum gantry_transport transport;
	/* Path of a PEM file of certificates that https servers need one of. NULL, "": the file that AWS_CA_BUNDLE
	 * names, else those of the system. -EINVAL of gantry_open(): the file cannot be read. */
	const char *ca_file;
};

#define GANTRY_TRAFFIC_CLASS_0 (-1)

/* Opens a context. options NULL: the defaults. Returns 0; -EINVAL: the options or the configuration file are
 * invalid; -ENODEV: a port that they name does not exist; -ENOMEM. gantry_open_error() has the reason. On a
 * machine without an RDMA device the call succeeds if options and file name no port; gantry_rdma_reason()
 * then returns the reason why there is no RDMA. */
int gantry_open(const struct gantry_options *options, struct gantry **ret_g);
/* Returns the reason why the last gantry_open() of this thread failed; "" after success. */
const char *gantry_open_error(void);
/* Opens the context that all users in this process share; if the context is open already, counts one more
 * user. The context has the default options; the environment variable GANTRY_STAGE requests a stage (1, or
 * its size in bytes). Each call needs a gantry_close(). The last gantry_close() closes the context, unless
 * memory is still registered. Returns the results of gantry_open(). */
int gantry_open_shared(struct gantry **ret_g);
/* Frees the context with its remaining registrations. No call may be running. NULL is allowed. A context
 * belongs to the process that opened it. In a forked child gantry_close() does nothing, gantry_register()
 * fails, and puts and gets use HTTP. */
void gantry_close(struct gantry *g);

/* Levels of log lines. ERROR: failures. INFO: ports and registrations. GET: successful gantry_obj_get(). PUT:
 * successful gantry_obj_put(). */
enum gantry_log_level { GANTRY_LOG_ERROR, GANTRY_LOG_INFO, GANTRY_LOG_GET, GANTRY_LOG_PUT };
/* Receives a log line, without a newline. Called by any thread, also by several at a time. The function must
 * not call gantry_set_log(). */
typedef void gantry_log_fn(void *cookie, enum gantry_log_level level, const char *text);
/* Sets the log function, which receives the lines of enum gantry_log_level. NULL: nothing is logged. After
 * the return the previous function is no longer called. */
void gantry_set_log(struct gantry *g, gantry_log_fn *fn, void *cookie);
/* Sets the highest level that is logged, default GANTRY_LOG_PUT. Lines of higher levels cost no time. */
void gantry_set_log_level(struct gantry *g, enum gantry_log_level most);

/* Returns 1 if a port in use is up, otherwise 0. (cuObjClient: isConnected) */
int gantry_is_connected(const struct gantry *g);
/* Returns the reason why gantry_is_connected() returns 0; "" if it returns 1. */
const char *gantry_rdma_reason(const struct gantry *g);
/* Returns port i in use (from 0) as text, like "mlx5_0:1 10.0.0.5"; NULL: there is no such port. */
const char *gantry_port(const struct gantry *g, int i);
/* Returns the transports that tokens of port i may use: "dc", "rc" or "dc, rc"; NULL: there is no such port. */
const char *gantry_port_transports(const struct gantry *g, int i);

/* ---- memory ---- */

/* largest size of a registration in bytes: the size in a token has 32 bits */
#define GANTRY_REGISTER_MAX 0xffffffffu

enum gantry_register_flags {
	GANTRY_READ_ONLY = 1 << 0, /* the memory is used for puts only, and need not be writable */
	/* Memory of a device, which the CPU must not read or write. The flag is not needed if the CPU cannot
	 * read the memory, or if a driver reports it as memory of a device. */
	GANTRY_DEVICE = 1 << 1,
	/* Registrations are counted by the address at which they begin. If a registration begins there
	 * already, the count is increased by one, and the memory is registered again only if the existing
	 * registration is shorter or not writable. gantry_deregister() reduces the count by one; at 0 all
	 * registrations that begin there end. */
	GANTRY_COUNTED = 1 << 2,
	/* Memory of a device is accepted also if no port can register it, provided that the context has a
	 * stage. Puts, gets, gantry_obj_get() and gantry_obj_put() of this memory then use the stage;
	 * gantry_token_get() fails. */
	GANTRY_STAGED = 1 << 3,
};

/* Kinds of memory, with the numbers that cuObjClient's getMemoryType returns. */
enum gantry_memory {
	GANTRY_MEM_SYSTEM,
	GANTRY_MEM_MANAGED,
	GANTRY_MEM_DEVICE,
	GANTRY_MEM_UNKNOWN,
	GANTRY_MEM_INVALID
};
/* Returns the kind of the memory at ptr, without reading it. Asks the drivers of devices that the program has
 * loaded (CUDA's libcuda.so.1, ROCm's libamdhip64), and loads none. UNKNOWN: the memory is mapped, the CPU
 * cannot read it, and no driver knows it. INVALID: the memory is not mapped. */
enum gantry_memory gantry_memory_type(const void *ptr);

/* Data about memory that a driver of devices knows. The program sets size to sizeof this struct before the
 * call. */
struct gantry_memory_info {
	size_t size;
	enum gantry_memory type; /* kind of the memory, as gantry_memory_type() returns it */
	int device;              /* number of the device in the driver's numbering */
	uint64_t start, length;  /* start address and length in bytes of the pointer's allocation */
	/* id of the allocation, never reused in this process; 0: the driver has no ids */
	uint64_t id;
	const char *driver; /* name of the driver, "CUDA" or "ROCm"; a constant */
};
/* Fills in *ret_info about the memory at ptr, from a driver that the program has loaded. Any thread may call
 * this function, which takes microseconds and does not access the memory. Returns 0; -ENOENT: no loaded
 * driver knows the memory; -EOPNOTSUPP: no driver is loaded. */
int gantry_memory_look(const void *ptr, struct gantry_memory_info *ret_info);

/*
 * Registers [ptr, ptr + size) with every port. (cuMemObjGetDescriptor) Returns 0; -EFBIG: 4 GiB or more;
 * -EINVAL; -EEXIST: a registration begins at ptr already (other overlaps are allowed; see GANTRY_COUNTED);
 * -ENODEV: there is no RDMA, and calls use HTTP; -EFAULT: the memory is not mapped, or the CPU cannot read it
 * and no driver of its device can register it; or the negative errno of the driver, such as -ENOMEM if the
 * limit of locked memory is too small. Memory of CUDA and ROCm, if the program has loaded the driver, is
 * registered by a dma-buf that the driver exports; if this fails, by a peer-memory driver (nvidia-peermem).
 *
 * A registration of memory of a device stores the driver's ids of the allocations, and each use compares
 * these ids with the current ids. If the memory was freed and allocated again, the new allocation is
 * registered, and earlier tokens become invalid; if it was only freed, the use fails with -EFAULT. So a
 * program may keep a registration while an allocator frees and reuses the memory.
 */
int gantry_register(struct gantry *g, void *ptr, size_t size, unsigned flags);
/* Registers [ptr, ptr + size), which are the bytes of the dma-buf fd from byte `offset` on. The CPU need not
 * be able to access this memory. ptr and offset must have the same offset in a page. The caller owns fd, and
 * may close it after the return. If no port can register a dma-buf (this needs Linux 5.12 and support by the
 * driver), the address is registered without a dma-buf. flags: GANTRY_DEVICE, GANTRY_READ_ONLY. Returns the
 * results of gantry_register(); also -EBADF; -EINVAL: fd is not a dma-buf, or the dma-buf is too short. */
int gantry_register_dmabuf(struct gantry *g, void *ptr, size_t size, int fd, uint64_t offset, unsigned flags);
/* Returns the reason why this thread's last gantry_register() or gantry_register_dmabuf() failed; "" after a
 * success. */
const char *gantry_register_error(void);
/* Ends a registration. ptr: the address that was registered. Does not wait. Returns 0; -EBUSY: a call uses
 * the memory; -ENOENT: no registration begins at ptr. After the return no holder of a token can access the
 * memory; gantry_token_put() may still be called for its tokens. (cuMemObjPutDescriptor) */
int gantry_deregister(struct gantry *g, void *ptr);

/* ---- tokens, for programs that speak HTTP themselves ---- */

enum gantry_op { GANTRY_OP_GET = 0, GANTRY_OP_PUT = 1, GANTRY_OP_INVALID = 9999 };

/* Makes a token for exactly [ptr + offset, ptr + offset + size). A registration must contain the memory from ptr to
 * the end of this range; if several do, the smallest writable one is used. (cuMemObjGetRDMAToken) *ret_token: for
 * DC 81 characters and a NUL; for RC (rdma_rc_endpoint, man libgantry) it names a connection, which ends as the
 * text does. *ret_len (may be NULL): length with the NUL, 82 for DC. The text is valid until gantry_token_put() or
 * gantry_deregister(). Every reader of the token can access the memory until gantry_deregister(),
 * gantry_token_drop() with an error, or gantry_close(). Returns 0; -ENOENT: the memory is not registered; -ENODEV;
 * -ENETDOWN: every port is down; -EINVAL; -EFBIG; -ENOMEM; -EFAULT: memory of a device was freed; -EOPNOTSUPP: the
 * memory is staged (GANTRY_STAGED). */
int gantry_token_get(struct gantry *g, const void *ptr, size_t size, size_t offset, enum gantry_op op,
		     char **ret_token, size_t *ret_len);
/* Frees the text of a token. The token itself stays valid: the program must not reuse the memory while a
 * server may still use the token. (cuMemObjPutRDMAToken) Returns 0; -ENOENT: the text is not a token of this
 * context. */
int gantry_token_put(struct gantry *g, char *token);
/* Frees the text of a token. With error other than 0 the call also destroys the token's DC target or connection of RC:
 * afterwards no holder can use the token. Other tokens with this target become invalid as well: a port has 16
 * targets for tokens, and tokens share one only if more than 16 tokens of the port are in use, or if callbacks have
 * used the target before. (cuMemObjPutRDMAToken) Returns 0; -ENOENT: the text is not a token of this context;
 * another -errno: the driver did not destroy the target yet, and the library tries again every second. */
int gantry_token_drop(struct gantry *g, char *token, int error);

/* ---- objects ---- */

enum gantry_path {
	GANTRY_PATH_NONE = 0,
	GANTRY_PATH_RDMA = 1,
	GANTRY_PATH_HTTP = 2,
	/* by RDMA between server and stage; the device's driver copied between stage and device */
	GANTRY_PATH_RDMA_STAGED = 3,
};

/* The queued work of a device that must end before a put or get accesses the memory. */
enum gantry_wait {
	GANTRY_WAIT_NONE = 0,
	GANTRY_WAIT_STREAM = 1, /* wait_for is a stream: a CUstream, cudaStream_t or hipStream_t */
	GANTRY_WAIT_EVENT = 2,  /* wait_for is an event: a CUevent, cudaEvent_t or hipEvent_t */
};

struct gantry_result {
	/* sizeof this struct, set by the program before the call; 0: the size in this version of the library */
	size_t size;
	enum gantry_path path; /* path on which the bytes moved */
	int status;            /* HTTP status of the last answer; 0: there was no answer */
	int reply;             /* x-amz-rdma-reply in the last answer to a request with a token; 0: absent */
	int requests;          /* number of HTTP requests made */
	int checksum_verified; /* 1: the server has sent a checksum, and the received bytes match it */
	uint64_t bytes;        /* number of bytes moved */
	uint64_t object_size;  /* size of the whole object, in bytes; valid if has_object_size */
	int has_object_size;
	/* CRC64-NVME of the bytes moved, valid if has_crc64nvme: after a put that requested it, and after a
	 * get that has verified it; for memory of a device the value that the server sent */
	uint64_t crc64nvme;
	int has_crc64nvme;
	char etag[136]; /* ETag of the object, with its quotes */
	/* reason for HTTP or the stage: the word in x-gantry-rdma-reason of the answer, or a sentence */
	char reason[160];
	char code[64];     /* S3 error code, such as "NoSuchKey" */
	char message[256]; /* S3 error message, or a sentence of the library */
	char checksum[16]; /* x-amz-checksum-crc64nvme that the server sent, in base64; "": none */
	char last_modified[40];
	enum gantry_transport transport; /* transport of the bytes, if they moved by RDMA */
	char declined_address[48];       /* address in the last token that the server declined; "": none */
	uint64_t first_byte_ns; /* time in ns from the call to the first byte of its answer; 0: unknown */
};

/* Parameters of a request. 0 in every member but size is the default; size is sizeof this struct. */
struct gantry_request {
	size_t size;
	int checksum;         /* 1: put sends x-amz-checksum-crc64nvme, head asks for the stored checksum */
	int no_rdma;          /* 1: this request uses HTTP */
	const char *if_match; /* condition If-Match: an ETag with its quotes; NULL: none */
	const char *if_none_match; /* condition If-None-Match: an ETag with its quotes, or "*"; NULL: none */
	const char *content_type;  /* content type of a put; NULL: application/octet-stream */
	unsigned timeout_ms;       /* limit of the request in ms; 0: the limit of the context */
	const char *source_if_match; /* copies: ETag, with quotes, that the source must have; NULL: any */
	/* put, get: the work of the device for which the call waits before it accesses the memory: the work
	 * that was in a stream when the call began, or the work before an event. The thread of the call
	 * waits. A stream can be a number of the driver: 0 or 1 (the legacy default stream) or 2 (the default
	 * stream of the calling thread); then it is a stream of the device that has the memory, or of the
	 * thread's device if the memory is host memory. After the return all work that is queued later, on
	 * any stream, sees the bytes of a get. The call fails with -EOPNOTSUPP if no driver is loaded, and
	 * with -EIO if the driver fails. */
	enum gantry_wait wait;
	void *wait_for;
	unsigned busy_ms; /* longest wait in ms before a request is repeated after a 503; 0: no limit */
	uint64_t ttl_s; /* put, copy, upload_begin: seconds until the object expires; 0: it does not expire */
};

/*
 * Stores size bytes as the object. url: http://host:port/bucket/key (Scality: http://host:port/key). The
 * caller percent-encodes the key; the function encodes only remaining blanks, control characters and bytes
 * above 0x7e.
 *
 * Returns 0 only if the server confirms the object: HTTP 2xx and, for RDMA, reply 200 or 206 (protocol.md
 * item 116). If the server declines RDMA (reply absent or 501), the request is repeated with the bytes in the
 * body. If a transfer fails, the request is repeated once with a new token, and then over HTTP.
 *
 * Access to the memory after the return: when the call returns, either the server has confirmed the end of
 * its access, or the queue pair that the token names is destroyed. But a token is a capability, which an eavesdropper
 * on HTTP can read. As long as both the target and the registration exist, an attacker who has the token can
 * make the server read or write the window again. A target exists for at most target_life_ms (5 s), counted
 * from its creation in this call or an earlier one; with GANTRY_TARGET_PER_CALL it ends with the call. Memory
 * that was not registered before the call cannot be accessed after it. Over HTTPS no eavesdropper sees a
 * token; a gantryd refuses a signed request that is repeated from another address (auth.replay).
 *
 * Errors: -ENOENT: status 404; -EACCES: 403; -EEXIST or -ESTALE: 412; -ERANGE: 416; -EAGAIN: 503 after
 * retries; -ENOSPC: 507; -EBADMSG: wrong checksum; -ETIMEDOUT; -ECONNREFUSED, -EHOSTUNREACH: no connection;
 * -EPIPE: the connection broke; -EPROTO: an answer that contradicts itself; -EOPNOTSUPP: RDMA is not
 * possible, and HTTP is not allowed (GANTRY_RDMA_ONLY) or cannot be used (memory of a device, with neither a
 * copy function nor a stage); -EFAULT: the CPU cannot read the memory, and no loaded driver knows it;
 * -EINVAL; -EIO: any other error of the server, or an error of the device's driver. res may be NULL.
 *
 * Bytes of memory of a device move by RDMA. Memory that is not registered is registered for the call, if a
 * driver of the device supports this. The CPU does not access the memory; the checksum of a get is compared
 * only if the bytes moved through the stage in one piece.
 *
 * Staging (gantry_options.stage): the stage of a context is pinned host memory of stage_bytes, divided into
 * equal pieces, which all calls share. A piece is a quarter of the stage and at most 16 MiB; if stage_bytes
 * is above 1 GiB, pieces are larger. Memory of a device moves through the stage in three cases: no port can
 * register the memory, the server's NIC could not reach the memory, or the memory has 4 GiB or more. If too
 * few pieces are free, calls wait in turn.
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

/* Fetches size bytes of the object, from byte offset on, into ptr. res->bytes: number of bytes fetched;
 * res->object_size: size of the object. Fewer than size bytes are fetched only if the object ends there,
 * according to the server. If the answer ends before the end of the range although the object has further
 * bytes (HTTP allows this, and a cache may do so), returns -EPROTO, and the contents of the memory are
 * undefined. Memory after the fetched bytes is unchanged. Returns -ERANGE if offset is at or beyond the end
 * of the object, except for an empty object and offset 0, of which 0 bytes are fetched. Other errors are
 * those of gantry_put(). */
int gantry_get(struct gantry *g, const char *url, void *ptr, size_t size, uint64_t offset,
	       const struct gantry_request *req, struct gantry_result *res);

/* Copies size bytes from memory of a device to host memory, by the device's driver; no server takes part.
 * Before the copy waits for the work that wait and wait_for of req name (req may be NULL; its other members
 * are ignored). Any thread may call this function. Returns 0; or, with the reason in res->message,
 * -EOPNOTSUPP: the context has no stage, or belongs to another process; -EFAULT: no driver knows src; -EIO:
 * the driver failed. */
int gantry_copy_to_host(struct gantry *g, void *dst, const void *src, size_t size,
			const struct gantry_request *req, struct gantry_result *res);

/* Asks the server for size, ETag, time of modification and checksum of an object. */
int gantry_head(struct gantry *g, const char *url, const struct gantry_request *req,
		struct gantry_result *res);

/* Receives a header of an answer. name: in lower case; value: ends with a NUL and is safe for a terminal. */
typedef void gantry_header_fn(void *cookie, const char *name, const char *value);
/* Asks the server for all data about an object, stored checksums included. After a success calls fn for each
 * header of the answer, in the server's order: content-type, x-amz-meta-*, x-amz-checksum-*,
 * x-amz-tagging-count and all others. */
int gantry_stat(struct gantry *g, const char *url, const struct gantry_request *req, gantry_header_fn *fn,
		void *cookie, struct gantry_result *res);
/* Deletes an object. Returns 0 also if the object did not exist (204). */
int gantry_delete(struct gantry *g, const char *url, const struct gantry_request *req,
		  struct gantry_result *res);
/* Creates the bucket http://host:port/bucket (S3 only). Returns 0, also if the bucket exists already (409).
 * Returns -EINVAL, like all functions for buckets, if the URL names a key or has a query. */
int gantry_make_bucket(struct gantry *g, const char *url, struct gantry_result *res);
/* Creates a bucket whose objects are each stored on `copies` disks: 1 or 2 (x-gantry-copies), 0: the server's
 * default. An existing bucket with another number of copies is changed if it is empty. Returns 0; -ENOTEMPTY:
 * the existing bucket is not empty; -EINVAL: the server has too few disks; -EOPNOTSUPP: the server does not
 * support copies, and the bucket exists without them. */
int gantry_make_bucket_copies(struct gantry *g, const char *url, int copies, struct gantry_result *res);
/* Removes an empty bucket (S3 only). Returns 0; -ENOTEMPTY: it has objects or uploads; -ENOENT: there is none. */
int gantry_remove_bucket(struct gantry *g, const char *url, struct gantry_result *res);

/* ---- lists (S3 only) ---- */

/* An entry of a list: an object, a common prefix, a bucket, or an upload in progress. All texts end with a
 * NUL, and are valid only during the callback. name can have any bytes, and may be dangerous as the name of a
 * file ("../x"). */
struct gantry_entry {
	const char *name; /* whole key of the object, or name of the bucket */
	size_t name_len;
	int is_prefix; /* 1: the entry is a common prefix: it stands for all keys that begin with name */
	/* 1: name is the server's text with percent sequences, because the decoded name contains a NUL */
	int is_raw;
	uint64_t size;
	const char *etag;      /* ETag with its quotes; "": the entry has none */
	const char *date;      /* time of modification, creation or beginning: "2026-11-20T10:00:00.000Z" */
	const char *upload_id; /* id of the upload; "": the entry is not an upload */
};

/* Options of a list. With 0 in every member but size the list has everything; size is sizeof this struct. */
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

/* Calls fn for every object of the bucket http://host:port/bucket, in the order of the server (sorted by the
 * bytes of the keys), page after page. No entry of an invalid page is passed to fn. options NULL: the
 * defaults. Returns 0: fn has received all entries; the result of fn that ended the list; -EPROTO: an answer
 * is not a list, or the pages do not end; or another error of gantry_get(). */
int gantry_list(struct gantry *g, const char *url, const struct gantry_list_options *options,
		gantry_entry_fn *fn, void *cookie, struct gantry_result *res);
/* Calls fn for every bucket of http://host:port/ that the access key may see. */
int gantry_list_buckets(struct gantry *g, const char *url, gantry_entry_fn *fn, void *cookie,
			struct gantry_result *res);

/* ---- objects in parts (S3 only) ---- */

#define GANTRY_UPLOAD_ID_MAX 1024 /* size of the buffer for the id of an upload, with the NUL */
#define GANTRY_PARTS_MAX 10000    /* largest part number; parts are numbered from 1 */

struct gantry_part {
	int number;
	uint64_t size;
	char etag[136];    /* ETag of the part, with its quotes */
	char checksum[16]; /* CRC64NVME of the part in base64; "": none */
};

/* Begins an upload of the object in parts, and writes its id to ret_id (GANTRY_UPLOAD_ID_MAX bytes). The
 * upload exists until it is completed or aborted, or until the server's time limit for uploads has passed. */
int gantry_upload_begin(struct gantry *g, const char *url, const struct gantry_request *req, char *ret_id,
			struct gantry_result *res);
/* Stores memory as part `number` of an upload, and replaces an existing part of this number. res->etag: ETag
 * of the part. Every part except the last must have at least 5 MiB. Arguments and errors are those of
 * gantry_put(). */
int gantry_upload_put(struct gantry *g, const char *url, const char *id, int number, const void *ptr,
		      size_t size, const struct gantry_request *req, struct gantry_result *res);
/* Copies size bytes of the object `source` (a URL) on the same server, from byte `first` on, to part `number`
 * of an upload. size 0: the whole object. */
int gantry_upload_copy(struct gantry *g, const char *url, const char *id, int number, const char *source,
		       uint64_t first, uint64_t size, const struct gantry_request *req,
		       struct gantry_result *res);
/* Receives a part. A result other than 0 ends the list, which returns this result. */
typedef int gantry_part_fn(void *cookie, const struct gantry_part *part);
/* Calls fn for every part of an upload that the server has, in the order of part numbers. Returns -ENOENT if
 * there is no such upload. */
int gantry_upload_parts(struct gantry *g, const char *url, const char *id, gantry_part_fn *fn, void *cookie,
			struct gantry_result *res);
/* Completes an upload: the object consists of the nr parts, in ascending order of numbers; only number and
 * etag of each part are used. if_match and if_none_match of req are conditions on the object that is
 * replaced. */
int gantry_upload_complete(struct gantry *g, const char *url, const char *id, const struct gantry_part *parts,
			   size_t nr, const struct gantry_request *req, struct gantry_result *res);
/* Aborts an upload and removes its parts. Returns -ENOENT if there is no such upload. */
int gantry_upload_abort(struct gantry *g, const char *url, const char *id, struct gantry_result *res);
/* Calls fn for every upload in progress of a bucket if the upload's key begins with prefix; NULL: any key. */
int gantry_uploads(struct gantry *g, const char *url, const char *prefix, gantry_entry_fn *fn, void *cookie,
		   struct gantry_result *res);

/* Copies the object `source` (a URL) with its metadata to url, within the server. S3 allows objects of at
 * most 5 GiB; gantry_upload_copy() copies larger ones. res->etag: ETag of the new object; res->path:
 * GANTRY_PATH_NONE. Returns -EXDEV if the two URLs name different servers. */
int gantry_copy(struct gantry *g, const char *url, const char *source, const struct gantry_request *req,
		struct gantry_result *res);

/* longest lifetime of a presigned URL in seconds: seven days, the maximum of S3 servers */
#define GANTRY_PRESIGN_MAX_S 604800u

/* Makes a presigned URL, with which every holder can send one kind of request for an object for expires_s
 * seconds (1 to GANTRY_PRESIGN_MAX_S). The query of the new URL has a signature (AWS Signature Version 4),
 * which is made with the keys of the context and covers the method and the host, path and query of url.
 * method: "GET", "PUT", "HEAD" or "DELETE". The function sends no request. The caller frees *ret_url with
 * free(). Returns 0; -ENOKEY: the context has no access key; -EOPNOTSUPP: the dialect is Scality; -EEXIST:
 * the URL has a signature already; -EINVAL: invalid method, time or URL (a URL with a user name before the
 * host is invalid); -ENOMEM. */
int gantry_presign(struct gantry *g, const char *method, const char *url, unsigned expires_s, char **ret_url);

/* Returns the URL base/key, which the caller frees with free(); every byte of key is percent-encoded, except
 * '/' and the bytes that are unreserved in URLs. Returns NULL if there is no memory. */
char *gantry_url_join(const char *base, const char *key);

/* Returns the CRC64-NVME of the bytes so far followed by data. crc: CRC of the bytes so far; 0 at the
 * start. */
uint64_t gantry_crc64nvme(uint64_t crc, const void *data, size_t len);
/* Returns the CRC64-NVME of A followed by B, from the CRCs of both and the length of B in bytes. */
uint64_t gantry_crc64nvme_combine(uint64_t crc_a, uint64_t crc_b, uint64_t len_b);
/* Writes a CRC in the form of x-amz-checksum-crc64nvme: 12 characters and a NUL. */
void gantry_crc64nvme_text(uint64_t crc, char text[13]);

/* ---- the shape of cuObjClient ---- */

#define GANTRY_PROTOCOL_RDMA_DC_V1 1001

/* The description of memory that callbacks receive. */
struct gantry_io_info {
	int version;      /* version of the struct: 1 */
	size_t descr_len; /* length of descr with its NUL: 82 for DC */
	/* text of the token, readable until 64 more callbacks for the registration were made. The token is valid
	 * until the registration ends, one of RC until the callback returns */
	const char *descr;
};

/* The functions of the program that speak to a server. Each callback sends the token to the server, waits for
 * the answer, and returns the number of bytes moved, or a negative number to abort. handle: for
 * gantry_handle_ctx(). offset: offset in the object, in bytes. A callback may be NULL if its operation is not
 * used. Callbacks may call the library. */
struct gantry_ops {
	ssize_t (*get)(const void *handle, char *ptr, size_t size, off_t offset,
		       const struct gantry_io_info *info);
	ssize_t (*put)(const void *handle, const char *ptr, size_t size, off_t offset,
		       const struct gantry_io_info *info);
};

/* Sets the callbacks of a context for later operations; ops is copied. protocol: GANTRY_PROTOCOL_RDMA_DC_V1.
 * Returns 0; -EPROTONOSUPPORT: another protocol. */
int gantry_set_ops(struct gantry *g, const struct gantry_ops *ops, int protocol);
/* Returns the ctx argument of the gantry_obj_get() or gantry_obj_put() for which a callback runs. (getCtx) */
void *gantry_handle_ctx(const void *handle);
/* Returns the largest size in bytes that is passed to a callback for the memory at ptr; -ENOENT: this memory
 * is not registered. (cuMemObjGetMaxRequestCallbackSize) */
ssize_t gantry_max_callback_size(struct gantry *g, const void *ptr);

/* Moves size bytes between memory at ptr + buf_offset and an object, from byte obj_offset of the object
 * on. Calls the callback as often as needed, with advancing offsets. ptr must be registered. Staged memory
 * moves in pieces of at most the size of the stage: the callback gets the program's pointer, and the token
 * of a piece of the stage; if the callback fails, the token is invalid after the return of the callback.
 * Returns the number of bytes moved, which is less than size if a callback moved fewer bytes; or a negative
 * errno, such as -EINVAL: there is no such callback. If the first callback fails, returns its negative
 * result. (cuObjGet, cuObjPut) */
ssize_t gantry_obj_get(struct gantry *g, void *ctx, void *ptr, size_t size, off_t obj_offset,
		       off_t buf_offset);
ssize_t gantry_obj_put(struct gantry *g, void *ctx, void *ptr, size_t size, off_t obj_offset,
		       off_t buf_offset);
/* Works like gantry_obj_get() or gantry_obj_put(), as op says, but calls the callbacks in ops instead of the
 * callbacks of g. */
ssize_t gantry_obj_move(struct gantry *g, enum gantry_op op, const struct gantry_ops *ops, void *ctx,
			void *ptr, size_t size, off_t obj_offset, off_t buf_offset);

#ifdef __cplusplus
}
#endif

#endif
