/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of payload buffers; see buf.h. */
#include "base/buf.h"

#include "base/check.h"
#include "base/nodump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)
#define REGION_BYTES_MAX ((size_t)1 << 30)

static const size_t stride[BUF_CLASS_NR] = {
	[BUF_SMALL] = BUF_SMALL_BYTES + BUF_SLACK_BYTES,
	[BUF_LARGE] = BUF_LARGE_BYTES + BUF_SLACK_BYTES,
};
static const uint32_t cap[BUF_CLASS_NR] = { BUF_SMALL_BYTES, BUF_LARGE_BYTES };

/* One region, hugepages if the system has them to give, else transparent ones, else what there is. */
static int
map_region(struct bufpool *bp, size_t len)
{
	char *p, *aligned;

	len = (len + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	/* A container that may not have any gets the range all the same, and SIGBUS when it touches it. */
	if (p != MAP_FAILED && madvise(p, len, MADV_POPULATE_WRITE) < 0 && errno != EINVAL) {
		munmap(p, len);
		p = MAP_FAILED;
	}
	if (p == MAP_FAILED) {
		size_t lead;

		p = mmap(NULL, len + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return -ENOMEM;
		aligned = (char *)(((uintptr_t)p + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
		lead = (size_t)(aligned - p);
		if (lead)
			munmap(p, lead);
		if (lead < HUGE_BYTES)
			munmap(aligned + len, HUGE_BYTES - lead);
		p = aligned;
		if (bp->backing < BUF_THP)
			bp->backing = BUF_THP;
		if (madvise(p, len, MADV_HUGEPAGE) < 0)
			bp->backing = BUF_SMALL_PAGES;
	}
	nodump(p, len);
	bp->region[bp->region_nr++] = (struct iovec){ p, len };
	return 0;
}

/* Makes a run of large buffers, which lie side by side and are free. */
static void
run_init(struct bufpool *bp, struct buf_run *run, struct buf *first)
{
	run->whole = (struct buf){
		.mem = first->mem, .cap_bytes = BUF_RUN_BYTES, .region = first->region, .cls = BUF_RUN
	};
	for (int i = 0; i < BUF_RUN_NR; i++) {
		first[i].next = run->free;
		run->free = &first[i];
	}
	run->free_nr = BUF_RUN_NR;
	list_push_tail(&bp->whole, &run->link);
}

static void
add_bufs(struct bufpool *bp, enum buf_class cls, char *mem, int nr, uint16_t region)
{
	for (int i = 0; i < nr; i++) {
		struct buf *b = &bp->bufs[bp->buf_nr++];

		*b = (struct buf){ .mem = mem + (size_t)i * stride[cls],
				   .cap_bytes = cap[cls],
				   .region = region,
				   .cls = (uint8_t)cls,
				   .next = bp->free[cls] };
		bp->free[cls] = b;
		bp->total[cls]++;
	}
}

/* Makes large buffers that were added into runs. */
static void
add_runs(struct bufpool *bp)
{
	struct buf *first = bp->bufs + bp->total[BUF_SMALL];

	for (int i = 0; i < bp->total[BUF_LARGE] / BUF_RUN_NR; i++)
		run_init(bp, &bp->runs[i], first + i * BUF_RUN_NR);
	bp->free[BUF_LARGE] = NULL;
}

/* together: so many of a class lie in one region; large ones that are more than one make a run. */
static int
fill(struct bufpool *bp, const int nr[BUF_CLASS_NR], int together, int region_base)
{
	memset(bp, 0, sizeof *bp);
	list_init(&bp->whole);
	list_init(&bp->broken);
	bp->bufs = calloc((size_t)(nr[BUF_SMALL] + nr[BUF_LARGE]), sizeof *bp->bufs);
	if (together > 1)
		bp->runs = calloc((size_t)(nr[BUF_LARGE] / together), sizeof *bp->runs);
	if (!bp->bufs || (together > 1 && !bp->runs)) {
		bufpool_fini(bp);
		return -ENOMEM;
	}
	for (int cls = 0; cls < BUF_CLASS_NR; cls++) {
		for (int left = nr[cls]; left > 0;) {
			int fit = (int)(REGION_BYTES_MAX / stride[cls]) / together * together;

			fit = left < fit ? left : fit;
			if (bp->region_nr == BUF_REGIONS_MAX ||
			    map_region(bp, (size_t)fit * stride[cls]) < 0) {
				bufpool_fini(bp);
				return -ENOMEM;
			}
			add_bufs(bp, cls, bp->region[bp->region_nr - 1].iov_base, fit,
				 (uint16_t)(region_base + bp->region_nr - 1));
			left -= fit;
		}
		bp->avail[cls] = bp->low[cls] = bp->total[cls];
	}
	if (bp->runs)
		add_runs(bp);
	return 0;
}

/* How many of cls go into bytes; at least one. */
static int
count(enum buf_class cls, size_t bytes)
{
	size_t nr = bytes / stride[cls];

	return nr < 1 ? 1 : (int)nr;
}

static int
init(struct bufpool *bp, size_t bytes, int together)
{
	int nr[BUF_CLASS_NR] = {
		[BUF_SMALL] = count(BUF_SMALL, bytes / 8), [BUF_LARGE] = count(BUF_LARGE, bytes / 8 * 7)
	};

	nr[BUF_LARGE] = nr[BUF_LARGE] < together ? together : nr[BUF_LARGE] / together * together;
	return fill(bp, nr, together, 0);
}

int
bufpool_init(struct bufpool *bp, size_t bytes)
{
	return init(bp, bytes, 1);
}

int
bufpool_init_runs(struct bufpool *bp, size_t bytes)
{
	return init(bp, bytes, BUF_RUN_NR);
}

int
bufpool_init_class(struct bufpool *bp, enum buf_class cls, size_t bytes, int region_base)
{
	int nr[BUF_CLASS_NR] = { 0 };

	nr[cls] = count(cls, bytes);
	return fill(bp, nr, 1, region_base);
}

void
bufpool_fini(struct bufpool *bp)
{
	for (int i = 0; i < bp->region_nr; i++)
		munmap(bp->region[i].iov_base, bp->region[i].iov_len);
	free(bp->bufs);
	free(bp->runs);
	memset(bp, 0, sizeof *bp);
}

/* Counts buffers as taken. */
static void
take(struct bufpool *bp, enum buf_class cls, int nr)
{
	bp->avail[cls] -= nr;
	if (bp->avail[cls] < bp->low[cls])
		bp->low[cls] = bp->avail[cls];
}

/* Takes a large buffer out of a run: of a broken one, if there is one.  NULL: all are out. */
static struct buf *
get_of_run(struct bufpool *bp)
{
	struct list *l = list_first(&bp->broken);
	struct buf_run *run;
	struct buf *b;

	l = l ? l : list_first(&bp->whole);
	if (!l)
		return NULL;
	run = container_of(l, struct buf_run, link);
	b = run->free;
	run->free = b->next;
	if (run->free_nr == BUF_RUN_NR) {
		list_del(&run->link);
		list_push_head(&bp->broken, &run->link);
	} else if (run->free_nr == 1) {
		list_del(&run->link);
	}
	run->free_nr--;
	return b;
}

/* Gives a large buffer back to its run. */
static void
put_to_run(struct bufpool *bp, struct buf *b)
{
	struct buf_run *run = &bp->runs[(b - bp->bufs - bp->total[BUF_SMALL]) / BUF_RUN_NR];

	b->next = run->free;
	run->free = b;
	run->free_nr++;
	if (run->free_nr == BUF_RUN_NR) {
		list_del(&run->link);
		list_push_head(&bp->whole, &run->link);
	} else if (run->free_nr == 1) {
		list_push_head(&bp->broken, &run->link);
	}
}

struct buf *
bufpool_get(struct bufpool *bp, enum buf_class cls)
{
	struct buf *b;

	if (cls == BUF_LARGE && bp->runs) {
		b = get_of_run(bp);
	} else {
		b = bp->free[cls];
		if (b)
			bp->free[cls] = b->next;
	}
	if (!b)
		return NULL;
	b->next = NULL;
	b->in_use = true;
	take(bp, cls, 1);
	return b;
}

struct buf *
bufpool_get_run(struct bufpool *bp)
{
	struct list *l = bp->runs ? list_pop(&bp->whole) : NULL;
	struct buf_run *run;

	if (!l)
		return NULL;
	run = container_of(l, struct buf_run, link);
	run->free_nr = 0;
	run->whole.in_use = true;
	take(bp, BUF_LARGE, BUF_RUN_NR);
	return &run->whole;
}

void
bufpool_put(struct bufpool *bp, struct buf *b)
{
	check(b->in_use);
	b->in_use = false;
	if (b->cls == BUF_RUN) {
		struct buf_run *run = container_of(b, struct buf_run, whole);

		run->free_nr = BUF_RUN_NR;
		list_push_head(&bp->whole, &run->link);
		bp->avail[BUF_LARGE] += BUF_RUN_NR;
		return;
	}
	bp->avail[b->cls]++;
	if (b->cls == BUF_LARGE && bp->runs) {
		put_to_run(bp, b);
		return;
	}
	b->next = bp->free[b->cls];
	bp->free[b->cls] = b;
}
