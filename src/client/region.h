/* SPDX-License-Identifier: Apache-2.0 */
/* The internal view of registrations, for the files that make them: memory.c, register.c, window.c. Locks:
 * client_int.h. */
#ifndef GANTRY_CLIENT_REGION_H
#define GANTRY_CLIENT_REGION_H

#include "client/client_int.h"

/* The parameters of a registration. */
struct wanted {
	void *ptr;
	size_t size;
	unsigned flags;
	bool is_device;
	bool is_export; /* the library made the dma-buf: if it fails, the memory is registered without it */
	int fd;         /* of a dma-buf, or -1 */
	uint64_t offset;
	struct port *only; /* for one call: only this port; NULL: all ports */
};

/* Makes a registration with one user, which no look-up finds yet. 0 or -errno. */
int region_new(struct gantry *g, const struct wanted *w, struct region **ret_region);
/* Deregisters on all ports and frees a registration that no look-up can find any longer. 0, or -errno: then
 * it is kept until the end. */
int region_free(struct gantry *g, struct region *r);
/* Adds a registration to the list of those that no program can find, and removes it. */
void region_keep(struct gantry *g, struct region *r);
void region_unkeep(struct gantry *g, struct region *r);
/* Returns the names of the drivers, except a peer-memory driver, that refused the device memory which this
 * thread last tried to register; "". */
const char *refusals(void);
/* Writes a sentence with the reason why a registration failed with e, and the remedy. */
void explain_registration(const struct gantry *g, const struct wanted *w, int e, char *out, size_t cap);

#endif
