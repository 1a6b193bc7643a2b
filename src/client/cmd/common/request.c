/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as the options want them, and buffers for them; see cmd.h. */
#include "client/cmd/common/cmd.h"

#include <errno.h>
#include <sys/mman.h>

int
buffer_make(struct buffer *b, struct gantry *g, size_t cap)
{
	*b = (struct buffer){ .g = g, .cap = cap };
	b->mem = mmap(NULL, b->cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->mem == MAP_FAILED) {
		b->mem = NULL;
		return -ENOMEM;
	}
	madvise(b->mem, b->cap, MADV_HUGEPAGE);
	/* When it cannot be registered, each request says why in its result. */
	gantry_register(g, b->mem, b->cap, 0);
	return 0;
}

int
buffer_init(struct buffer *b, struct gantry *g)
{
	return buffer_make(b, g, BUFFER_BYTES);
}

void
buffer_fini(struct buffer *b)
{
	if (!b->mem)
		return;
	gantry_deregister(b->g, b->mem);
	munmap(b->mem, b->cap);
}

struct gantry_request
request_of(const struct cmd *c)
{
	return (struct gantry_request){ .size = sizeof(struct gantry_request),
					.checksum = c->checksum,
					.ttl_s = c->ttl_s,
					.timeout_ms = c->timeout_ms };
}
