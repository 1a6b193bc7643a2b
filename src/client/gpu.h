/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu - memory of devices, and the drivers that own it: the kind of memory of a pointer, dma-bufs, copies on
 * streams. A driver is used only if the program has loaded it. Each driver is a table of functions
 * (gpu_cuda.c, gpu_rocm.c); users of this header do not distinguish between drivers. Any thread may call
 * these functions, which take no lock of the context.
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
	/* context of the driver in which the allocation was made; NULL: the shared context of the device */
	void *ctx;
	int ordinal;  /* number of the device */
	bool is_pool; /* true: the allocation is from a memory pool */
};

/* A context of a driver and its state while it is current on this thread, from enter() to leave(). */
struct gpu_place {
	int ordinal;
	void *ctx;    /* context of the driver; NULL: the shared context of the device */
	int saved;    /* device that leave() makes current again */
	bool is_held; /* true: enter() has retained the shared context */
};

/*
 * The functions of one driver. Functions that return int return 0 or an error number of the driver;
 * error_name() returns the name of such an error. pin() and the functions after it are called between enter()
 * and leave().
 */
struct gpu_driver {
	const char *name; /* name of the driver, such as "CUDA" */
	/* name of the peer-memory driver, which registers memory of the device without a dma-buf */
	const char *peer;
	/* Finds the functions of the driver in this process. Returns false if the driver is not loaded, or
	 * too old. */
	bool (*find)(void);
	bool (*can_stage)(void);
	/* Returns the kind of memory at ptr. UNKNOWN: the driver does not know ptr. */
	enum gantry_memory (*type)(const void *ptr);
	/* Finds the allocation that contains ptr, which is memory of kind DEVICE or MANAGED. */
	int (*look)(const void *ptr, struct gpu_range *ret);
	/* Retains the shared context of a device, so that its streams remain valid, and sets *ctx to NULL.
	 * If *ctx is neither NULL nor the shared context, does nothing. */
	int (*hold)(int ordinal, void **ctx);
	void (*unhold)(int ordinal);
	/* export() makes a dma-buf of the whole pages [start, start + size); *ret_offset: offset of start in
	 * the dma-buf. can_export(): true: the driver can do this. */
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
	/* Makes the writes of a NIC visible to work of the device that is queued later. NULL: the driver
	 * needs no such call. */
	int (*flush)(void);
	/* Returns the name of an error; NULL: the error has no name. */
	const char *(*error_name)(int error);
};

extern const struct gpu_driver gpu_cuda, gpu_rocm;

/* Returns the driver that knows ptr, and the kind of memory in *ret_type; NULL: no loaded driver knows
 * ptr. */
const struct gpu_driver *gpu_of(const void *ptr, enum gantry_memory *ret_type);

/* Finds the allocation of a device that contains ptr. Returns its driver; NULL: no loaded driver has such an
 * allocation. */
const struct gpu_driver *gpu_look(const void *ptr, struct gpu_range *ret);
/* Exports the allocation that contains [ptr, ptr + size) as a dma-buf. Returns its file descriptor, which the
 * caller owns, and in *ret_offset the offset of ptr in the dma-buf; or -EOPNOTSUPP with the reason in why. */
int gpu_dmabuf(const struct gpu_driver *d, const struct gpu_range *range, const void *ptr, size_t size,
	       uint64_t *ret_offset, char *why, size_t why_len);
/* Makes the writes of a NIC to memory at ptr visible to later work of the device. Returns 0, or -EIO with the
 * reason in why. */
int gpu_flush(const void *ptr, char *why, size_t why_len);
/* Waits for a stream or an event of the program. A default stream is that of the device that has the memory
 * at ptr. Returns 0; or, with the reason in why, -EOPNOTSUPP: no driver is loaded; -EINVAL: wait is invalid;
 * -EIO: the driver failed. */
int gpu_wait(const void *ptr, enum gantry_wait wait, void *wait_for, char *why, size_t why_len);

/* ---- detection of memory that was allocated again ---- */

/* The driver's ids of the allocations in a range of memory, at the time when the memory was registered. */
struct gpu_ids {
	size_t nr;
	struct gpu_id {
		uintptr_t at;
		uint64_t id;
	} id[];
};
/* Returns the ids of the allocations in a range of memory, for a later comparison; the caller frees them with
 * free(). Returns NULL if the driver has no ids for this memory, or if there is no memory. */
struct gpu_ids *gpu_ids_of(const void *ptr, size_t size);
enum gpu_same { GPU_SAME, GPU_ANOTHER, GPU_GONE };
/* Compares ids with the current ids of the allocations in [ptr, ptr + size). Returns GPU_SAME, also if ids is
 * NULL; GPU_ANOTHER: the memory was allocated again; GPU_GONE: the memory was freed. */
enum gpu_same gpu_ids_hold(const struct gpu_ids *ids, const void *ptr, size_t size);

/* ---- streams of the library: copies between a device and the stage ---- */

struct gpu_stream {
	struct gpu_stream *next; /* link in the list of idle streams of a context */
	const struct gpu_driver *driver;
	int ordinal;
	void *home; /* context of the driver that has the memory for which the stream was made */
	/* context of the driver in which the stream was made; NULL: the shared context of the device, which
	 * the stream retains */
	void *ctx;
	void *stream;
	bool is_open, is_used, has_failed;
};

/* Makes a stream for copies from and to memory of a device. Returns 0; -ENOMEM; or -EIO with the reason in
 * why. */
int gpu_stream_new(const struct gpu_driver *d, const struct gpu_range *range, struct gpu_stream **ret_stream,
		   char *why, size_t why_len);
void gpu_stream_free(struct gpu_stream *s);
/* Queues a copy on a stream. Returns 0, or -EIO with the reason in why. */
int gpu_copy_start(struct gpu_stream *s, void *dst, const void *src, size_t size, enum gantry_copy_to to,
		   char *why, size_t why_len);
/* Waits for all work queued on the stream. Returns 0, or -EIO with the reason in why. */
int gpu_copy_wait(struct gpu_stream *s, char *why, size_t why_len);
/* Pins host memory for the driver of s, and retains the shared context of the device. Returns true; false:
 * the memory was not pinned, and copies from and to it are slower. */
bool gpu_pin(const struct gpu_stream *s, void *ptr, size_t size);
/* Unpins host memory pinned by gpu_pin(). */
void gpu_unpin(const struct gpu_driver *d, int ordinal, void *ptr);

/* ---- memory that the CPU can read ---- */

/*
 * Returns true if the CPU can read all of this memory. Tests one byte at the beginning, at the end and in
 * every 2 MiB, because devices map memory in such steps. The test changes nothing, not even the set of
 * present pages, because the kernel reads the bytes.
 */
bool cpu_reaches(const void *ptr, size_t size);
/* Returns true if the CPU can read every page of this memory, according to the list of mappings of the
 * process. Takes longer than cpu_reaches(). */
bool cpu_reaches_all(const void *ptr, size_t size);
/* Returns true if all of [from, to) is readable according to `maps`, an open /proc/PID/maps. */
bool maps_reach(FILE *maps, uintptr_t from, uintptr_t to);
/*
 * Determines the kind of memory that a call moves. thorough: true: checks every page. Returns 0: host memory;
 * 1: memory of a device, which the CPU must not access; -EFAULT: the CPU cannot read the memory, and no
 * loaded driver knows its first or its last byte.
 */
int memory_kind(const void *ptr, size_t size, bool thorough);
/* Writes to out a sentence that says that the memory is neither host memory nor memory of a device. */
void explain_unmapped(const void *ptr, size_t size, char *out, size_t cap);
/* Returns a description of memory of a device for messages: "device memory (CUDA)". */
const char *memory_name(const void *ptr, size_t size);

#endif
