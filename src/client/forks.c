/* SPDX-License-Identifier: Apache-2.0 */
/* Which process a context belongs to: see shared.c, which counts. */
#include "client/client_int.h"

_Atomic unsigned forks;

bool
is_mine(const struct gantry *g)
{
	return g->forks == forks;
}
