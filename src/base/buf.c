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

static int
fill(struct bufpool *bp, const int nr[BUF_CLASS_NR], int region_base)
{
	memset(bp, 0, sizeof *bp);
	bp->bufs = calloc((size_t)(nr[BUF_SMALL] + nr[BUF_LARGE]), sizeof *bp->bufs);
	if (!bp->bufs)
		return -ENOMEM;
	for (int cls = 0; cls < BUF_CLASS_NR; cls++) {
		for (int left = nr[cls]; left > 0;) {
			int fit = (int)(REGION_BYTES_MAX / stride[cls]);

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
	return 0;
}

/* How many of cls go into bytes; at least one. */
static int
count(enum buf_class cls, size_t bytes)
{
	size_t nr = bytes / stride[cls];

	return nr < 1 ? 1 : (int)nr;
}

int
bufpool_init(struct bufpool *bp, size_t bytes)
{
	int nr[BUF_CLASS_NR] = {
		[BUF_SMALL] = count(BUF_SMALL, bytes / 8), [BUF_LARGE] = count(BUF_LARGE, bytes / 8 * 7)
	};

	return fill(bp, nr, 0);
}

int
bufpool_init_class(struct bufpool *bp, enum buf_class cls, size_t bytes, int region_base)
{
	int nr[BUF_CLASS_NR] = { 0 };

	nr[cls] = count(cls, bytes);
	return fill(bp, nr, region_base);
}

void
bufpool_fini(struct bufpool *bp)
{
	for (int i = 0; i < bp->region_nr; i++)
		munmap(bp->region[i].iov_base, bp->region[i].iov_len);
	free(bp->bufs);
	memset(bp, 0, sizeof *bp);
}

struct buf *
bufpool_get(struct bufpool *bp, enum buf_class cls)
{
	struct buf *b = bp->free[cls];

	if (!b)
		return NULL;
	bp->free[cls] = b->next;
	b->next = NULL;
	b->in_use = true;
	if (--bp->avail[cls] < bp->low[cls])
		bp->low[cls] = bp->avail[cls];
	return b;
}

void
bufpool_put(struct bufpool *bp, struct buf *b)
{
	check(b->in_use);
	b->in_use = false;
	b->next = bp->free[b->cls];
	bp->free[b->cls] = b;
	bp->avail[b->cls]++;
}
