/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu - memory of devices, and the drivers that own it: the kind of memory of a pointer, dma-bufs, copies on
 * streams. A driver is used only if the program has loaded it. Each driver is a table of functions
 * (gpu_cuda.c, gpu_rocm.c), and code above this header does not distinguish between them. Any thread; no
 * function takes a lock of the context.
 */
#ifndef GANTRY_CLIENT_GPU_H
#define GANTRY_CLIENT_GPU_H

#include "client/gantry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* An allocation in memory of a device. */
struct gpu_range {
	uintptr_t start;
	size_t size;
	/* id of the allocation, which is never reused in this process; 0: the driver has no ids */
	uint64_t id;
	/* context of the driver in which the allocation was made; NULL: the context that the users of the
	 * device share */
	void *ctx;
	int ordinal;  /* number of the device */
	bool is_pool; /* true: the allocation is from a memory pool */
};

/* A context of a driver that is current on this thread, from enter() to leave(). */
struct gpu_place {
	int ordinal;
	void *ctx;    /* context of the driver, as in struct gpu_range */
	int saved;    /* device that leave() makes current again */
	bool is_held; /* true: enter() has retained the shared context */
};

/*
 * The functions of one driver. Functions of type int return 0 or the driver's own error number, for which
 * error_name() has a text. Functions from pin() on are called between enter() and leave().
 */
struct gpu_driver {
	const char *name; /* name of the driver, such as "CUDA" */
	/* name of the peer-memory driver that registers memory of the device without a dma-buf */
	const char *peer;
	/* Finds the functions of the driver in this process. Returns false if the driver is not loaded, or
	 * too old. */
	bool (*find)(void);
	bool (*can_stage)(void);
	/* Returns the kind of memory. UNKNOWN: the driver does not know the pointer. */
	enum gantry_memory (*type)(const void *ptr);
	/* Finds the allocation that contains ptr. For memory of the types DEVICE and MANAGED. */
	int (*look)(const void *ptr, struct gpu_range *ret);
	/* Retains the context that the users of a device share, so that its streams remain valid. If *ctx is
	 * NULL or the shared context, *ctx becomes NULL. Any other context is not retained, and *ctx does not
	 * change. */
	int (*hold)(int ordinal, void **ctx);
	void (*unhold)(int ordinal);
	/* Exports [start, start + size), whole pages, as a dma-buf; *ret_offset: offset of start in it. */
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
	/* Makes the writes of a NIC visible to work that is queued later. NULL: the driver does not need
	 * this. */
	int (*flush)(void);
	/* Returns the name of an error; NULL: the error has no name. */
	const char *(*error_name)(int error);
};

extern const struct gpu_driver gpu_cuda, gpu_rocm;

/* Returns the driver that knows ptr; NULL: no loaded driver does. */
const struct gpu_driver *gpu_of(const void *ptr, enum gantry_memory *ret_type);

/* Finds the allocation of a device that contains ptr, and returns its driver. Returns NULL if there is none,
 * or if it is unknown. */
const struct gpu_driver *gpu_look(const void *ptr, struct gpu_range *ret);
/* Exports the allocation that contains [ptr, ptr + size) as a dma-buf: a descriptor owned by the caller, and
 * the offset of ptr in it; or -EOPNOTSUPP and the reason. */
int gpu_dmabuf(const struct gpu_driver *d, const struct gpu_range *range, const void *ptr, size_t size,
	       uint64_t *ret_offset, char *why, size_t why_len);
/* Makes the writes of a NIC to ptr visible to later work of the device. Returns 0, or -EIO with the
 * reason. */
int gpu_flush(const void *ptr, char *why, size_t why_len);
/* Waits for a stream or an event of the program, on the device to which ptr belongs, if any. Returns 0, or
 * with the reason: -EOPNOTSUPP if no driver is loaded; -EINVAL if the kind of wait does not exist; -EIO. */
int gpu_wait(const void *ptr, enum gantry_wait wait, void *wait_for, char *why, size_t why_len);

/* ---- detection of memory that was allocated again ---- */

/* The driver's ids of the allocations in a range of memory, at the time of a call. */
struct gpu_ids {
	size_t nr;
	struct gpu_id {
		uintptr_t at;
		uint64_t id;
	} id[];
};
/* Returns the ids of the allocations for a later comparison, to be freed with free(). NULL: the driver has
 * no ids of this memory, or no memory is left. */
struct gpu_ids *gpu_ids_of(const void *ptr, size_t size);
enum gpu_same { GPU_SAME, GPU_ANOTHER, GPU_GONE };
/* Compares ids with the current ids of the allocations in [ptr, ptr + size). ids NULL: GPU_SAME. */
enum gpu_same gpu_ids_hold(const struct gpu_ids *ids, const void *ptr, size_t size);

/* ---- streams of the library: copies between a device and the stage ---- */

struct gpu_stream {
	struct gpu_stream *next; /* link in the list of idle streams of a context */
	const struct gpu_driver *driver;
	int ordinal;
	void *home; /* context of the memory for which the stream was made */
	/* context of the driver in which the stream was made; NULL: the shared context, which the stream
	 * retains */
	void *ctx;
	void *stream;
	bool is_open, is_used, has_failed;
};

/* Makes a stream for copies from and to memory of a device. Returns 0, -ENOMEM, or -EIO with the reason. */
int gpu_stream_new(const struct gpu_driver *d, const struct gpu_range *range, struct gpu_stream **ret_stream,
		   char *why, size_t why_len);
void gpu_stream_free(struct gpu_stream *s);
/* Queues a copy on a stream. Returns 0, or -EIO with the reason. */
int gpu_copy_start(struct gpu_stream *s, void *dst, const void *src, size_t size, enum gantry_copy_to to,
		   char *why, size_t why_len);
/* Waits for all work queued on the stream. Returns 0, or -EIO with the reason. */
int gpu_copy_wait(struct gpu_stream *s, char *why, size_t why_len);
/* Pins host memory for the driver of s, in the shared context of the device, which it retains. Returns false
 * if the memory was not pinned; copies are slower then. */
bool gpu_pin(const struct gpu_stream *s, void *ptr, size_t size);
/* Unpins host memory pinned by gpu_pin(). */
void gpu_unpin(const struct gpu_driver *d, int ordinal, void *ptr);

/* ---- memory that the CPU can read ---- */

/*
 * Returns true if the CPU can read all of this memory. The function tests a byte at the beginning, at the end
 * and every 2 MiB, the granularity of device mappings. The kernel reads these bytes, so nothing changes, not
 * even the set of present pages.
 */
bool cpu_reaches(const void *ptr, size_t size);
/* Returns true if the CPU can read every page, according to the process's list of mappings. This takes longer
 * than cpu_reaches(). */
bool cpu_reaches_all(const void *ptr, size_t size);
/* Returns true if all of [from, to) is readable according to `maps`, an open /proc/PID/maps. */
bool maps_reach(FILE *maps, uintptr_t from, uintptr_t to);
/*
 * Determines the kind of memory for a call: 0, host memory; 1, device memory, which the CPU must not
 * access, even if it could; -EFAULT, memory that is not mapped: the CPU cannot read it, and no loaded
 * driver knows its first or its last byte. thorough: checks every page.
 */
int memory_kind(const void *ptr, size_t size, bool thorough);
/* Writes a sentence that the memory belongs neither to the host nor to a device. */
void explain_unmapped(const void *ptr, size_t size, char *out, size_t cap);
/* Returns a description of device memory: "device memory (CUDA)". */
const char *memory_name(const void *ptr, size_t size);

#endif
