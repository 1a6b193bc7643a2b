/* SPDX-License-Identifier: Apache-2.0 */
#include "softnic/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the driver ---- */

/* Of its interface; these numbers are part of its ABI. */
enum {
	CUDA_MEMORY_TYPE = 2,
	CUDA_BUFFER_ID = 7,
	CUDA_ORDINAL = 9,
	CUDA_RANGE_START = 11,
	CUDA_RANGE_SIZE = 12
};
enum { CUDA_DEVICE = 2, CUDA_STREAM_NON_BLOCKING = 1, CUDA_CAPTURE_RELAXED = 2 };

static struct {
	int (*attributes)(unsigned nr, const int *attribute, void **data, unsigned long long ptr);
	int (*device)(int *device, int ordinal);
	int (*retain)(void **ctx, int device);
	int (*release)(int device);
	int (*push)(void *ctx);
	int (*pop)(void **ctx);
	int (*stream)(void **stream, unsigned flags);
	int (*no_stream)(void *stream);
	int (*wait)(void *stream);
	int (*to_device)(unsigned long long dst, const void *src, size_t len, void *stream);
	int (*to_host)(void *dst, unsigned long long src, size_t len, void *stream);
	int (*capture)(int *mode); /* NULL in old drivers, the only one that may be */
} driver;
static bool has_driver;

/* Under lock, like all that is not the driver's own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool
find_driver(void)
{
	const struct {
		const char *name;
		void *fn;
	} symbol[] = { { "cuThreadExchangeStreamCaptureMode", &driver.capture },
		       { "cuPointerGetAttributes", &driver.attributes },
		       { "cuDeviceGet", &driver.device },
		       { "cuDevicePrimaryCtxRetain", &driver.retain },
		       { "cuDevicePrimaryCtxRelease_v2", &driver.release },
		       { "cuCtxPushCurrent_v2", &driver.push },
		       { "cuCtxPopCurrent_v2", &driver.pop },
		       { "cuStreamCreate", &driver.stream },
		       { "cuStreamDestroy_v2", &driver.no_stream },
		       { "cuStreamSynchronize", &driver.wait },
		       { "cuMemcpyHtoDAsync_v2", &driver.to_device },
		       { "cuMemcpyDtoHAsync_v2", &driver.to_host } };
	void *lib = has_driver ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	/* The handle keeps it loaded. */
	has_driver = has_driver || lib;
	for (size_t i = 0; lib && i < sizeof(symbol) / sizeof(*symbol); i++) {
		void *fn = dlsym(lib, symbol[i].name);

		*(void **)symbol[i].fn = fn;
		has_driver = has_driver && (fn || i == 0);
	}

	return has_driver;
}

/* ---- devices ---- */

enum { DEVICES = 64 };

/* A device of which windows are served: its primary context, retained, and a stream that waits for no other. */
static struct {
	unsigned uses;
	int device;
	void *ctx, *stream;
} devices[DEVICES];

static bool
open_device(int ordinal)
{
	void *popped;
	int r;

	if (ordinal < 0 || ordinal >= DEVICES)
		return false;
	if (devices[ordinal].uses++)
		return true;
	r = driver.device(&devices[ordinal].device, ordinal);
	if (r == 0)
		r = driver.retain(&devices[ordinal].ctx, devices[ordinal].device);
	if (r == 0) {
		r = driver.push(devices[ordinal].ctx);
		if (r == 0) {
			r = driver.stream(&devices[ordinal].stream, CUDA_STREAM_NON_BLOCKING);
			driver.pop(&popped);
		}
		if (r)
			driver.release(devices[ordinal].device);
	}
	devices[ordinal].uses = r == 0;

	return r == 0;
}

static void
close_device(int ordinal)
{
	void *popped;

	if (--devices[ordinal].uses)
		return;
	if (driver.push(devices[ordinal].ctx) == 0) {
		driver.no_stream(devices[ordinal].stream);
		driver.pop(&popped);
	}
	driver.release(devices[ordinal].device);
}

/* Moves bytes on a device's stream and waits for it: on return they are there.  Of memory that is not pinned the copy
 * itself returns before. */
static bool
move(int ordinal, uint64_t addr, void *host, size_t len, bool to_host)
{
	void *stream = devices[ordinal].stream, *popped;
	int r = driver.push(devices[ordinal].ctx), w;

	if (r)
		return false;
	r = to_host ? driver.to_host(host, addr, len, stream) : driver.to_device(addr, host, len, stream);
	w = driver.wait(stream);
	driver.pop(&popped);

	return r == 0 && w == 0;
}

/* ---- windows ---- */

/* Looks at every allocation that the window has a part of. */
static int
look(uint64_t addr, uint64_t len, struct cuda_window *ret)
{
	static const int attribute[] = { CUDA_MEMORY_TYPE, CUDA_BUFFER_ID, CUDA_ORDINAL, CUDA_RANGE_START,
					 CUDA_RANGE_SIZE };
	uint64_t at = addr, identity = 0xcbf29ce484222325u;

	while (at - addr < len) {
		unsigned type = 0;
		unsigned long long id = 0, start = 0;
		size_t size = 0;
		int ordinal = 0;
		void *data[] = { &type, &id, &ordinal, &start, &size };

		if (driver.attributes(5, attribute, data, at) != 0 || type != CUDA_DEVICE || at < start ||
		    at - start >= size || (at != addr && ordinal != ret->ordinal))
			return SN_ENOTSUPP;
		ret->ordinal = ordinal;
		identity = (identity ^ id) * 0x100000001b3u;
		at = start + size;
	}
	ret->addr = addr;
	ret->len = len;
	ret->identity = identity;

	return 0;
}

int
cuda_find(uint64_t addr, uint64_t len, struct cuda_window *ret)
{
	int r = SN_ENOTSUPP;

	pthread_mutex_lock(&lock);
	if (find_driver())
		r = look(addr, len, ret);
	pthread_mutex_unlock(&lock);

	return r;
}

/* The address of the first byte of a dma-buf of which the byte at `offset` is said to be at iova.  One as long as the
 * allocation that iova lies in is that allocation, whatever iova is; of another the address must be right. */
static uint64_t
start_of(uint64_t buf_len, uint64_t offset, uint64_t iova)
{
	static const int attribute[] = { CUDA_RANGE_START, CUDA_RANGE_SIZE };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE) - 1, from, to;
	unsigned long long start = 0;
	size_t size = 0;
	void *data[] = { &start, &size };

	if (driver.attributes(2, attribute, data, iova) != 0 || size == 0)
		return iova - offset;
	from = start & ~page;
	to = (start + size + page) & ~page;

	return to - from == buf_len ? from : iova - offset;
}

int
cuda_find_dmabuf(uint64_t buf_len, uint64_t offset, uint64_t len, uint64_t iova, struct cuda_window *ret)
{
	int r = SN_ENOTSUPP;

	pthread_mutex_lock(&lock);
	if (find_driver())
		r = look(start_of(buf_len, offset, iova) + offset, len, ret);
	pthread_mutex_unlock(&lock);

	return r;
}

struct served {
	struct cuda_window w;
	uint32_t key;
	unsigned ops;
};
static struct served *windows[FAB_MRS]; /* by the index in the key */

static struct served **
window_at(uint32_t key)
{
	return &windows[(key >> 8) % FAB_MRS];
}

/* ---- the thread ---- */

static struct fab_proc *served_proc; /* NULL: no thread */
static uint8_t *stage;
static bool exiting;

/* Checks everything again: what the initiator saw may have gone since. */
static enum fab_job_result
run(uint32_t key, uint32_t op, uint64_t offset, uint32_t len, uint8_t *buf)
{
	const struct served *s = *window_at(key);
	struct cuda_window now;

	if (exiting)
		return FAB_JOB_GONE;
	if (!s || s->key != key || len == 0 || len > FAB_STAGE_BYTES || offset > s->w.len ||
	    len > s->w.len - offset || (op != FAB_OP_READ && op != FAB_OP_WRITE) || !(s->ops & 1u << op))
		return FAB_JOB_REFUSED;
	/* Memory that was freed since, and may be another allocation's. */
	if (look(s->w.addr, s->w.len, &now) != 0 || now.identity != s->w.identity)
		return FAB_JOB_FAILED;

	return move(s->w.ordinal, s->w.addr + offset, buf, len, op == FAB_OP_READ) ? FAB_JOB_OK
										   : FAB_JOB_FAILED;
}

static void
do_job(struct fab_job *job, uint8_t *buf)
{
	uint32_t asked = FAB_JOB_ASKED;

	if (atomic_load(&job->state) != FAB_JOB_ASKED ||
	    !atomic_compare_exchange_strong(&job->state, &asked, FAB_JOB_RUNNING))
		return;
	pthread_mutex_lock(&lock);
	atomic_store(&job->result, run(job->key, job->op, job->offset, job->len, buf));
	pthread_mutex_unlock(&lock);
	atomic_store(&job->state, FAB_JOB_DONE);
	syscall(SYS_futex, &job->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void *
serve(void *arg)
{
	struct fab_proc *p = arg;
	int mode = CUDA_CAPTURE_RELAXED;

	pthread_setname_np(pthread_self(), "softnic-cuda");
	/* Else a copy here ends what another thread captures into a graph. */
	if (driver.capture)
		driver.capture(&mode);
	for (;;) {
		uint32_t bell = atomic_load(&p->job_bell);

		for (int i = 0; i < FAB_JOBS; i++)
			do_job(&p->job[i], stage + (size_t)i * FAB_STAGE_BYTES);
		syscall(SYS_futex, &p->job_bell, FUTEX_WAIT, bell, NULL, NULL, 0);
	}

	return NULL;
}

/* The driver ends with the program, perhaps in the middle of a copy. */
static void
stop_at_exit(void)
{
	pthread_mutex_lock(&lock);
	exiting = true;
	pthread_mutex_unlock(&lock);
}

static int
start_thread(struct fab_proc *proc)
{
	static bool has_exit_handler;
	const size_t size = (size_t)FAB_JOBS * FAB_STAGE_BYTES;
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int r;

	if (served_proc)
		return 0;
	if (!stage) {
		void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED)
			return ENOMEM;
		stage = map;
	}
	has_exit_handler = has_exit_handler || atexit(stop_at_exit) == 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attr, serve, proc);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return ENOMEM;
	served_proc = proc;
	atomic_store(&proc->stage, (uint64_t)(uintptr_t)stage);

	return 0;
}

int
cuda_serve(struct fab_proc *proc, uint32_t key, const struct cuda_window *w, unsigned ops)
{
	struct served *s = malloc(sizeof(*s));
	int r = s ? 0 : ENOMEM;

	if (s)
		*s = (struct served){ .w = *w, .key = key, .ops = ops };
	pthread_mutex_lock(&lock);
	if (r == 0)
		r = start_thread(proc);
	if (r == 0 && !open_device(w->ordinal))
		r = SN_ENOTSUPP;
	if (r == 0)
		*window_at(key) = s;
	pthread_mutex_unlock(&lock);
	if (r)
		free(s);

	return r;
}

void
cuda_withdraw(uint32_t key)
{
	struct served *s;

	pthread_mutex_lock(&lock);
	s = *window_at(key);
	*window_at(key) = NULL;
	if (s && !exiting)
		close_device(s->w.ordinal);
	pthread_mutex_unlock(&lock);
	free(s);
}

void
cuda_forget(void)
{
	pthread_mutex_init(&lock, NULL);
	for (size_t i = 0; served_proc && i < FAB_MRS; i++) {
		free(windows[i]);
		windows[i] = NULL;
	}
	for (int i = 0; i < DEVICES; i++)
		devices[i].uses = 0;
	/* The buffers stay: the child has a copy of them. */
	served_proc = NULL;
}
