/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of devices, and the drivers that own it: what a pointer leads to, dma-bufs, copies on streams.  A driver is used
 * only where the program has loaded it; each is a table of functions (gpu_cuda.c, gpu_rocm.c), and nothing above this
 * header knows which one it talks to.  Any thread; nothing here takes a lock of the context.
 */
#ifndef GANTRY_CLIENT_GPU_H
#define GANTRY_CLIENT_GPU_H

#include "client/gantry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* An allocation of a device. */
struct gpu_range {
	uintptr_t start;
	size_t size;
	uint64_t id; /* never used again in this process; 0: the driver gives none */
	void *ctx; /* the driver's context that it was allocated in; NULL: that which the device's users share */
	int ordinal;  /* of the device */
	bool is_pool; /* cut from a memory pool */
};

/* A context of a driver that this thread works in, from enter() to leave(). */
struct gpu_place {
	int ordinal;
	void *ctx;    /* as in struct gpu_range */
	int saved;    /* the device that leave() goes back to */
	bool is_held; /* the shared context was retained by enter() */
};

/*
 * The functions of one driver.  Those that return int give 0 or the driver's own number of an error, which error_name()
 * has in words.  Functions from pin() on are called between enter() and
 * leave().
 */
struct gpu_driver {
	const char *name; /* "CUDA" */
	const char *peer; /* what registers its memory without a dma-buf */
	/* Finds the driver's functions in this process.  False: it is not loaded, or too old. */
	bool (*find)(void);
	bool (*can_stage)(void);
	/* UNKNOWN: it knows nothing of the pointer. */
	enum gantry_memory (*type)(const void *ptr);
	/* Of memory of the types DEVICE and MANAGED. */
	int (*look)(const void *ptr, struct gpu_range *ret);
	/* Holds the context that a device's users share, so that streams in it stay; *ctx NULL, or that one, which is made NULL.
	 * Of another context nothing is held and *ctx stays. */
	int (*hold)(int ordinal, void **ctx);
	void (*unhold)(int ordinal);
	/* Exports [start, start + size), whole pages, as a dma-buf; *ret_offset: where start is in it. */
	bool (*can_export)(void);
	int (*export)(const struct gpu_range *range, uintptr_t start, size_t size, int *ret_fd,
		      uint64_t *ret_offset);
	int (*enter)(struct gpu_place *p);
	void (*leave)(struct gpu_place *p);
	int (*pin)(void *ptr, size_t size);
	int (*unpin)(void *ptr);
	int (*stream_new)(void **ret_stream);
	int (*stream_free)(void *stream);
	int (*copy)(void *dst, const void *src, size_t size, enum gantry_copy_to to, void *stream);
	int (*stream_wait)(void *stream);
	int (*event_wait)(void *event);
	/* Makes what a NIC has written visible to work that is queued from now on; NULL: nothing has to be done. */
	int (*flush)(void);
	/* NULL: it has no name. */
	const char *(*error_name)(int error);
};

extern const struct gpu_driver gpu_cuda, gpu_rocm;

/* Returns the driver that knows ptr; NULL: none that is loaded does. */
const struct gpu_driver *gpu_of(const void *ptr, enum gantry_memory *ret_type);

/* Says of which allocation of a device ptr is a part, and whose.  NULL: of none, or nobody knows. */
const struct gpu_driver *gpu_look(const void *ptr, struct gpu_range *ret);
/* Has the allocation that [ptr, ptr + size) is a part of exported as a dma-buf: a descriptor that is the caller's, and
 * where ptr is in it; or -EOPNOTSUPP and why. */
int gpu_dmabuf(const struct gpu_driver *d, const struct gpu_range *range, const void *ptr, size_t size,
	       uint64_t *ret_offset, char *why, size_t why_len);
/* Makes what a NIC has written to ptr visible to the device's later work.  0, or -EIO and why. */
int gpu_flush(const void *ptr, char *why, size_t why_len);
/* Waits for a stream or an event of the program's, on the device of ptr where that is one's.  0; -EOPNOTSUPP: no driver is
 * loaded; -EINVAL: no such kind of wait; -EIO; with why. */
int gpu_wait(const void *ptr, enum gantry_wait wait, void *wait_for, char *why, size_t why_len);

/* ---- the same memory as before? ---- */

/* What the driver's ids of the allocations under a range were. */
struct gpu_ids {
	size_t nr;
	struct gpu_id {
		uintptr_t at;
		uint64_t id;
	} id[];
};
/* Returns what is to be compared later; free() it.  NULL: the driver has no ids of this memory, or there is no memory. */
struct gpu_ids *gpu_ids_of(const void *ptr, size_t size);
enum gpu_same { GPU_SAME, GPU_ANOTHER, GPU_GONE };
/* Compares the part under [ptr, ptr + size).  ids may be NULL: the same. */
enum gpu_same gpu_ids_hold(const struct gpu_ids *ids, const void *ptr, size_t size);

/* ---- streams of the library: copies between a device and the stage ---- */

struct gpu_stream {
	struct gpu_stream *next; /* idle ones of a context */
	const struct gpu_driver *driver;
	int ordinal;
	void *home; /* the context of the memory that it was made for */
	void *ctx;  /* NULL: the shared one, which it holds */
	void *stream;
	bool is_open, is_used, has_failed;
};

/* Makes a stream for copies from and to memory of a device.  0, -ENOMEM, or -EIO and why. */
int gpu_stream_new(const struct gpu_driver *d, const struct gpu_range *range, struct gpu_stream **ret_stream,
		   char *why, size_t why_len);
void gpu_stream_free(struct gpu_stream *s);
/* Queues a copy.  0, or -EIO and why. */
int gpu_copy_start(struct gpu_stream *s, void *dst, const void *src, size_t size, enum gantry_copy_to to,
		   char *why, size_t why_len);
/* Waits for all that was queued on it.  0, or -EIO and why. */
int gpu_copy_wait(struct gpu_stream *s, char *why, size_t why_len);
/* Pins host memory for the driver of s, in the shared context of the device, which it holds.  False: not pinned; copies work
 * without, more slowly. */
bool gpu_pin(const struct gpu_stream *s, void *ptr, size_t size);
/* Ends that. */
void gpu_unpin(const struct gpu_driver *d, int ordinal, void *ptr);

/* ---- what the CPU reaches ---- */

/*
 * Tells whether the CPU can read all of this memory, by a byte at its beginning, its end and every 2 MiB, which is as
 * finely as memory of a device is mapped.  The kernel reads them; nothing changes, not even which pages are there.
 */
bool cpu_reaches(const void *ptr, size_t size);
/* Tells the same of every page, by the process's list of mappings, which takes longer. */
bool cpu_reaches_all(const void *ptr, size_t size);
/* Reads that list, /proc/PID/maps: is all of [from, to) readable? */
bool maps_reach(FILE *maps, uintptr_t from, uintptr_t to);
/*
 * Says what a call may do with memory: 0, it is the host's; 1, it is a device's, and the CPU leaves it alone, also where it
 * could read it; -EFAULT, it is not mapped: the CPU cannot read it, and the driver that is loaded does not know its first or its last byte.  thorough:
 * looks at every page.
 */
int memory_kind(const void *ptr, size_t size, bool thorough);
/* Says in a sentence that memory is neither the host's nor a device's. */
void explain_unmapped(const void *ptr, size_t size, char *out, size_t cap);
/* Says in words what memory it is that the CPU leaves alone: "device memory (CUDA)". */
const char *memory_name(const void *ptr, size_t size);

#endif
