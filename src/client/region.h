/* SPDX-License-Identifier: Apache-2.0 */
/* Registrations as the files that make them see them: memory.c, register.c, window.c.  Locks: client_int.h. */
#ifndef GANTRY_CLIENT_REGION_H
#define GANTRY_CLIENT_REGION_H

#include "client/client_int.h"

/* What is to be registered. */
struct wanted {
	void *ptr;
	size_t size;
	unsigned flags;
	bool is_device;
	bool is_export; /* the dma-buf is of our own making: the memory is registered without it where that fails */
	int fd;         /* of a dma-buf, or -1 */
	uint64_t offset;
	struct port *only; /* for one call; NULL: for all ports */
};

/* Makes a registration that has one user and that nobody finds yet.  0 or -errno. */
int region_new(struct gantry *g, const struct wanted *w, struct region **ret_region);
/* Deregisters everywhere and frees what nobody can find any more.  0, or -errno: then it is kept for the end. */
int region_free(struct gantry *g, struct region *r);
/* Puts a registration on the list of those that no program can find, and takes it off. */
void region_keep(struct gantry *g, struct region *r);
void region_unkeep(struct gantry *g, struct region *r);
/* Says who refused the memory of a device that this thread tried to register last, apart from a peer-memory driver; "". */
const char *refusals(void);
/* Says in a sentence why a registration failed with e, and what would help. */
void explain_registration(const struct gantry *g, const struct wanted *w, int e, char *out, size_t cap);

#endif
