/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a device: what kind it is, and whether the CPU can read it, found out without a touch.  The kernel reads a
 * byte for us and says when it cannot; a driver is asked only where the program has loaded it already.  Any thread; no lock.
 */
#include "client/gpu.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- drivers ---- */

static const struct gpu_driver *const all[] = { &gpu_cuda, &gpu_rocm };
#define ALL (sizeof all / sizeof *all)

/* Gives how many libraries this process has loaded so far. */
static int
first_object(struct dl_phdr_info *info, size_t size, void *ret_loads)
{
	*(unsigned long long *)ret_loads = info->dlpi_adds;
	return 1;
}

/* Tells whether a driver is loaded.  A search takes the loader some 10 us, and each call asks: after one in vain there is none before
 * another library is loaded. */
static bool
is_loaded(size_t i)
{
	static _Atomic unsigned long long in_vain[ALL];
	unsigned long long loads = 0;
	bool is_there;

	dl_iterate_phdr(first_object, &loads);
	if (loads && in_vain[i] == loads)
		return false;
	is_there = all[i]->find();
	if (!is_there)
		in_vain[i] = loads;
	return is_there;
}

/* A driver that is loaded; NULL: none is. */
static const struct gpu_driver *
loaded(void)
{
	for (size_t i = 0; i < ALL; i++)
		if (is_loaded(i))
			return all[i];
	return NULL;
}

const struct gpu_driver *
gpu_of(const void *ptr, enum gantry_memory *ret_type)
{
	*ret_type = GANTRY_MEM_UNKNOWN;
	for (size_t i = 0; i < ALL; i++) {
		if (!is_loaded(i))
			continue;
		*ret_type = all[i]->type(ptr);
		if (*ret_type != GANTRY_MEM_UNKNOWN)
			return all[i];
	}
	return NULL;
}

/* Writes a driver's error as text: "error 801, CUDA_ERROR_NOT_SUPPORTED". */
static const char *
error_of(const struct gpu_driver *d, int error, char *out, size_t cap)
{
	const char *name = d->error_name ? d->error_name(error) : NULL;

	snprintf(out, cap, name ? "error %d, %s" : "error %d", error, name);
	return out;
}

const struct gpu_driver *
gpu_look(const void *ptr, struct gpu_range *ret)
{
	enum gantry_memory type;
	const struct gpu_driver *d = gpu_of(ptr, &type);

	return d && (type == GANTRY_MEM_DEVICE || type == GANTRY_MEM_MANAGED) && d->look(ptr, ret) == 0
		       ? d
		       : NULL;
}

int
gantry_memory_look(const void *ptr, struct gantry_memory_info *ret_info)
{
	size_t size = ret_info->size && ret_info->size < sizeof *ret_info ? ret_info->size : sizeof *ret_info;
	struct gantry_memory_info info = { .size = size };
	struct gpu_range range = { .start = 0 };
	const struct gpu_driver *d;

	if (!loaded())
		return -EOPNOTSUPP;
	d = gpu_of(ptr, &info.type);
	if (!d || d->look(ptr, &range) != 0)
		return -ENOENT;
	info.device = range.ordinal;
	info.start = range.start;
	info.length = range.size;
	info.id = range.id;
	info.driver = d->name;
	memcpy(ret_info, &info, size);
	return 0;
}

/* ---- memory that a driver exports ---- */

/* Memory of a device is mapped in pieces of at least this size, at multiples of it. */
#define STEP ((uintptr_t)2 << 20)

struct extent {
	uintptr_t start, end;
};

static struct extent
aligned(uintptr_t start, uintptr_t end, uintptr_t to)
{
	return (struct extent){ start & ~(to - 1), (end + to - 1) & ~(to - 1) };
}

/*
 * The whole allocation, of which a part has no descriptor of its own.  One that is cut from a pool is no mapping of the
 * device: then the mappings that it lies in, and the part itself.
 */
static int
extents_of(const struct gpu_range *range, uintptr_t from, size_t size, struct extent ret[3])
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	bool is_inside =
		from >= range->start && size <= range->size && from - range->start <= range->size - size;
	uintptr_t start = is_inside ? range->start : from;
	uintptr_t end = is_inside ? range->start + range->size : from + size;
	int nr = 0;

	ret[nr++] = aligned(start, end, page);
	if (range->is_pool) {
		ret[nr++] = aligned(start, end, STEP);
		ret[nr++] = aligned(from, from + size, page);
	}
	return nr;
}

int
gpu_dmabuf(const struct gpu_driver *d, const struct gpu_range *range, const void *ptr, size_t size,
	   uint64_t *ret_offset, char *why, size_t why_len)
{
	struct extent at[3];
	int fd = -1, first = 0, e = -1;

	if (!d->can_export()) {
		snprintf(why, why_len, "this version of %s exports no memory", d->name);
		return -EOPNOTSUPP;
	}
	for (int i = 0, nr = extents_of(range, (uintptr_t)ptr, size, at); e != 0 && i < nr; i++) {
		uint64_t offset = 0;

		e = d->export(range, at[i].start, at[i].end - at[i].start, &fd, &offset);
		*ret_offset = offset + ((uintptr_t)ptr - at[i].start);
		/* The error of the first is what the driver says of memory like this. */
		first = i == 0 ? e : first;
	}
	if (e == 0)
		return fd;
	snprintf(why, why_len, "%s exports no dma-buf of %s (error %d)", d->name,
		 range->is_pool ? "this part of a memory pool" : "it", first);
	return -EOPNOTSUPP;
}

struct gpu_ids *
gpu_ids_of(const void *ptr, size_t size)
{
	/* As many as lie under the largest registration, each of the driver's least size. */
	enum { MOST = GANTRY_REGISTER_MAX / STEP + 2 };
	uintptr_t at = (uintptr_t)ptr, end = at + size;
	struct gpu_ids *ids = NULL;

	for (size_t nr = 0; at < end && nr < MOST; nr++) {
		struct gpu_ids *more = NULL;
		struct gpu_range range;

		if (gpu_look((const void *)at, &range) && range.id && range.start + range.size > at)
			more = realloc(ids, sizeof *ids + (nr + 1) * sizeof *ids->id);
		if (!more) {
			free(ids);
			return NULL;
		}
		ids = more;
		ids->nr = nr + 1;
		ids->id[nr] = (struct gpu_id){ .at = at, .id = range.id };
		at = range.start + range.size;
	}
	return ids;
}

enum gpu_same
gpu_ids_hold(const struct gpu_ids *ids, const void *ptr, size_t size)
{
	uintptr_t from = (uintptr_t)ptr, to = from + size;

	for (size_t i = 0; ids && i < ids->nr && ids->id[i].at < to; i++) {
		struct gpu_range range;

		if (i + 1 < ids->nr && ids->id[i + 1].at <= from)
			continue;
		if (!gpu_look((const void *)ids->id[i].at, &range))
			return GPU_GONE;
		if (range.id != ids->id[i].id)
			return GPU_ANOTHER;
	}
	return GPU_SAME;
}

/* ---- order ---- */

int
gpu_wait(const void *ptr, enum gantry_wait wait, void *wait_for, char *why, size_t why_len)
{
	const char *name = wait == GANTRY_WAIT_STREAM ? "stream" : "event";
	struct gpu_range range = { .start = 0 };
	enum gantry_memory type;
	const struct gpu_driver *d = gpu_of(ptr, &type);
	/* Pinned memory of the host has a device as well. */
	bool has_place = d && d->look(ptr, &range) == 0;
	struct gpu_place p = { .ordinal = range.ordinal, .ctx = range.ctx };
	char error[64];
	int e = 0;

	if (wait != GANTRY_WAIT_STREAM && wait != GANTRY_WAIT_EVENT) {
		snprintf(why, why_len, "there is no kind %d of wait", (int)wait);
		return -EINVAL;
	}
	d = d ? d : loaded();
	if (!d) {
		snprintf(why, why_len, "no driver of a device is loaded, whose %s could be waited for", name);
		return -EOPNOTSUPP;
	}
	if (has_place)
		e = d->enter(&p);
	if (e == 0) {
		e = wait == GANTRY_WAIT_STREAM ? d->stream_wait(wait_for) : d->event_wait(wait_for);
		if (has_place)
			d->leave(&p);
	}
	if (e != 0)
		snprintf(why, why_len, "waiting for the %s: %s: %s", name, d->name,
			 error_of(d, e, error, sizeof error));
	return e == 0 ? 0 : -EIO;
}

int
gpu_flush(const void *ptr, char *why, size_t why_len)
{
	struct gpu_range range;
	const struct gpu_driver *d = gpu_look(ptr, &range);
	char error[64];
	int e = 0;

	if (d && d->flush) {
		struct gpu_place p = { .ordinal = range.ordinal, .ctx = range.ctx };

		e = d->enter(&p);
		if (e == 0) {
			e = d->flush();
			d->leave(&p);
		}
	}
	if (e != 0)
		snprintf(why, why_len, "making the bytes visible to the device: %s: %s", d->name,
			 error_of(d, e, error, sizeof error));
	return e == 0 ? 0 : -EIO;
}

/* ---- streams of the library ---- */

static int
say_error(const struct gpu_driver *d, int e, char *why, size_t why_len)
{
	char error[64];

	snprintf(why, why_len, "copying between device and host: %s: %s", d->name,
		 error_of(d, e, error, sizeof error));
	return -EIO;
}

static struct gpu_place
place_of(const struct gpu_stream *s)
{
	return (struct gpu_place){ .ordinal = s->ordinal, .ctx = s->ctx };
}

/* Makes the driver's stream.  0 or the driver's error. */
static int
stream_open(struct gpu_stream *s)
{
	struct gpu_place p;
	int e;

	s->ctx = s->home;
	e = s->driver->hold(s->ordinal, &s->ctx);
	if (e != 0)
		return e;
	p = place_of(s);
	e = s->driver->enter(&p);
	if (e == 0) {
		e = s->driver->stream_new(&s->stream);
		s->driver->leave(&p);
	}
	s->is_open = e == 0;
	if (e != 0 && !s->ctx)
		s->driver->unhold(s->ordinal);
	return e;
}

static void
stream_close(struct gpu_stream *s)
{
	struct gpu_place p = place_of(s);

	if (!s->is_open)
		return;
	s->is_open = false;
	if (s->driver->enter(&p) == 0) {
		s->driver->stream_free(s->stream);
		s->driver->leave(&p);
	}
	if (!s->ctx)
		s->driver->unhold(s->ordinal);
}

int
gpu_stream_new(const struct gpu_driver *d, const struct gpu_range *range, struct gpu_stream **ret_stream,
	       char *why, size_t why_len)
{
	struct gpu_stream *s = calloc(1, sizeof *s);
	int e;

	if (!s)
		return -ENOMEM;
	*s = (struct gpu_stream){ .driver = d, .ordinal = range->ordinal, .home = range->ctx };
	e = stream_open(s);
	if (e != 0) {
		free(s);
		return say_error(d, e, why, why_len);
	}
	*ret_stream = s;
	return 0;
}

void
gpu_stream_free(struct gpu_stream *s)
{
	stream_close(s);
	free(s);
}

static int
copy_once(struct gpu_stream *s, void *dst, const void *src, size_t size, enum gantry_copy_to to)
{
	struct gpu_place p = place_of(s);
	int e = s->driver->enter(&p);

	if (e != 0)
		return e;
	e = s->driver->copy(dst, src, size, to, s->stream);
	s->driver->leave(&p);
	return e;
}

int
gpu_copy_start(struct gpu_stream *s, void *dst, const void *src, size_t size, enum gantry_copy_to to,
	       char *why, size_t why_len)
{
	int e = copy_once(s, dst, src, size, to);

	/* The program may have reset the device, and all streams with it. */
	if (e != 0 && !s->is_used) {
		stream_close(s);
		e = stream_open(s);
		e = e == 0 ? copy_once(s, dst, src, size, to) : e;
	}
	s->is_used = true;
	s->has_failed |= e != 0;
	return e == 0 ? 0 : say_error(s->driver, e, why, why_len);
}

int
gpu_copy_wait(struct gpu_stream *s, char *why, size_t why_len)
{
	struct gpu_place p = place_of(s);
	int e;

	/* The copy that was to be queued failed, and no other stream could be made: nothing is queued. */
	if (!s->is_open)
		return 0;
	e = s->driver->enter(&p);
	if (e == 0) {
		e = s->driver->stream_wait(s->stream);
		s->driver->leave(&p);
	}
	s->has_failed |= e != 0;
	return e == 0 ? 0 : say_error(s->driver, e, why, why_len);
}

bool
gpu_pin(const struct gpu_stream *s, void *ptr, size_t size)
{
	struct gpu_place p = place_of(s);
	void *shared = NULL;
	int e = -1;

	/* The pin would end with a context of the program's own. */
	if (s->ctx || s->driver->hold(s->ordinal, &shared) != 0)
		return false;
	if (s->driver->enter(&p) == 0) {
		e = s->driver->pin(ptr, size);
		s->driver->leave(&p);
	}
	if (e != 0)
		s->driver->unhold(s->ordinal);
	return e == 0;
}

void
gpu_unpin(const struct gpu_driver *d, int ordinal, void *ptr)
{
	struct gpu_place p = { .ordinal = ordinal };

	if (d->enter(&p) == 0) {
		d->unpin(ptr);
		d->leave(&p);
	}
	d->unhold(ordinal);
}

/* ---- what the CPU reaches ---- */

#define PROBES 64

/* Has the kernel read one byte at each address.  1 or 0, or -errno where it does not do such things. */
static int
probe(const struct iovec *at, unsigned nr)
{
	char bytes[PROBES];
	struct iovec to = { .iov_base = bytes, .iov_len = nr };
	ssize_t n = process_vm_readv(getpid(), &to, 1, at, nr, 0);

	if (n < 0 && errno != EFAULT)
		return -errno;
	return n == (ssize_t)nr;
}

bool
maps_reach(FILE *maps, uintptr_t from, uintptr_t to)
{
	char *line = NULL;
	size_t cap = 0;

	while (from < to && getline(&line, &cap, maps) > 0) {
		char *end;
		uintptr_t first = strtoull(line, &end, 16);
		uintptr_t behind = *end == '-' ? strtoull(end + 1, &end, 16) : 0;

		if (behind <= from)
			continue;
		if (first > from || end[0] != ' ' || end[1] != 'r' || strstr(end, " /dev/nvidia"))
			break;
		from = behind;
	}
	free(line);
	return from >= to;
}

bool
cpu_reaches_all(const void *ptr, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool reaches;

	/* Nobody to ask. */
	if (!maps)
		return true;
	reaches = maps_reach(maps, (uintptr_t)ptr, (uintptr_t)ptr + size);
	fclose(maps);
	return reaches;
}

bool
cpu_reaches(const void *ptr, size_t size)
{
	uintptr_t first = (uintptr_t)ptr, last = first + size - 1, at = first;
	struct iovec piece[PROBES];
	unsigned nr = 0;

	for (bool more = size > 0 && last >= first; more;) {
		piece[nr++] = (struct iovec){ .iov_base = (void *)at, .iov_len = 1 };
		more = at != last;
		at = (last & ~(STEP - 1)) > at ? (at | (STEP - 1)) + 1 : last;
		if (nr == PROBES || !more) {
			int r = probe(piece, nr);

			if (r <= 0)
				return r < 0 && cpu_reaches_all(ptr, size);
			nr = 0;
		}
	}
	return true;
}

/* ---- the kind of it ---- */

enum gantry_memory
gantry_memory_type(const void *ptr)
{
	uintptr_t page = (uintptr_t)ptr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	enum gantry_memory type = GANTRY_MEM_INVALID;
	unsigned char vec;

	if (!ptr)
		return type;
	gpu_of(ptr, &type);
	if (type != GANTRY_MEM_UNKNOWN)
		return type;
	if (cpu_reaches(ptr, 1))
		return GANTRY_MEM_SYSTEM;
	return mincore((void *)page, 1, &vec) < 0 ? GANTRY_MEM_INVALID : GANTRY_MEM_UNKNOWN;
}

static bool
is_known(const void *ptr)
{
	enum gantry_memory type;

	return gpu_of(ptr, &type) != NULL;
}

int
memory_kind(const void *ptr, size_t size, bool thorough)
{
	enum gantry_memory type;

	/* ROCm maps memory of a device for the CPU, where its BAR has all of it: slow for loads, and no memory to register as the
	 * host's. */
	if (thorough ? cpu_reaches_all(ptr, size) : cpu_reaches(ptr, size))
		return gpu_of(ptr, &type) && type == GANTRY_MEM_DEVICE;
	if (!loaded())
		return 1;
	return is_known(ptr) && is_known((const char *)ptr + size - 1) ? 1 : -EFAULT;
}

void
explain_unmapped(const void *ptr, size_t size, char *out, size_t cap)
{
	const struct gpu_driver *d = loaded();

	snprintf(out, cap,
		 "%zu bytes at %p are not mapped: the CPU cannot read them, and %s does not know them", size,
		 ptr, d ? d->name : "no driver");
}

const char *
memory_name(const void *ptr, size_t size)
{
	enum gantry_memory type = gantry_memory_type(ptr), known;
	bool is_rocm = gpu_of(ptr, &known) == &gpu_rocm;

	switch (type) {
	case GANTRY_MEM_MANAGED:
		return is_rocm ? "managed memory (ROCm)" : "managed memory (CUDA)";
	case GANTRY_MEM_DEVICE:
		return is_rocm ? "device memory (ROCm)" : "device memory (CUDA)";
	case GANTRY_MEM_UNKNOWN:
		return "memory that the CPU cannot read";
	case GANTRY_MEM_INVALID:
		return "memory that is not mapped";
	default:
		return cpu_reaches_all(ptr, size) ? "memory of a device"
						  : "memory of which the CPU cannot read every page";
	}
}
