/* SPDX-License-Identifier: Apache-2.0 */
/* region - the internal interface of registrations, for the files that make them: memory.c, register.c,
 * window.c. Locks: client_int.h. */
#ifndef GANTRY_CLIENT_REGION_H
#define GANTRY_CLIENT_REGION_H

#include "client/client_int.h"

/* The parameters of a registration. */
struct wanted {
	void *ptr;
	size_t size;
	unsigned flags;
	bool is_device;
	/* true: the library exported the dma-buf; if registering it fails, the memory is registered without
	 * it */
	bool is_export;
	int fd; /* descriptor of a dma-buf; -1: none */
	uint64_t offset;
	/* for a registration for one call: the only port to register with; NULL: all ports */
	struct port *only;
};

/* Makes a registration that has one user and is not found by look-ups yet. Returns 0 or -errno. */
int region_new(struct gantry *g, const struct wanted *w, struct region **ret_region);
/* Deregisters memory on all ports, and frees the registration, which no look-up can find any longer. Returns
 * 0, or -errno: the registration is then kept until the context is closed. */
int region_free(struct gantry *g, struct region *r);
/* Adds a registration to the list of registrations that programs cannot find. region_unkeep() removes it from
 * the list. */
void region_keep(struct gantry *g, struct region *r);
void region_unkeep(struct gantry *g, struct region *r);
/* Returns the names of the drivers, other than peer-memory drivers, that refused the device memory which this
 * thread last tried to register; "": none. */
const char *refusals(void);
/* Writes a sentence with the reason why a registration failed with e, and the remedy. */
void explain_registration(const struct gantry *g, const struct wanted *w, int e, char *out, size_t cap);

#endif
