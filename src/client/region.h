/* SPDX-License-Identifier: Apache-2.0 */
/* region - functions that make and end registrations, for memory.c, register.c and window.c. client_int.h
 * describes the locks. */
#ifndef GANTRY_CLIENT_REGION_H
#define GANTRY_CLIENT_REGION_H

#include "client/client_int.h"

/* The parameters of a registration. */
struct wanted {
	void *ptr;
	size_t size;
	unsigned flags;
	bool is_device;
	/* true: the library has exported the dma-buf; if no port can register it, the memory is registered
	 * without it */
	bool is_export;
	int fd; /* file descriptor of the dma-buf that has the memory; -1: none */
	uint64_t offset;
	/* the only port that registers the memory, for a registration that serves one call; NULL: all ports
	 * do */
	struct port *only;
};

/* Makes a registration with one user. The registration is not in the map yet, so look-ups do not find the
 * registration. Returns 0 or -errno. */
int region_new(struct gantry *g, const struct wanted *w, struct region **ret_region);
/* Deregisters memory on all ports, and frees the registration, which is not in the map. Returns 0; -errno: a
 * port did not deregister the memory, and the registration is kept until the context is closed. */
int region_free(struct gantry *g, struct region *r);
/* Adds a registration to g->regions, the list of registrations that are not in the map (region_keep()), or
 * removes it from the list (region_unkeep()). */
void region_keep(struct gantry *g, struct region *r);
void region_unkeep(struct gantry *g, struct region *r);
/* Returns a text about the drivers that refused to register memory of a device in this thread's last
 * registration; peer-memory drivers are omitted. "": no driver refused. */
const char *refusals(void);
/* Writes to out a sentence with the reason why the registration of w failed with the error e, and with the
 * remedy. */
void explain_registration(const struct gantry *g, const struct wanted *w, int e, char *out, size_t cap);

#endif
