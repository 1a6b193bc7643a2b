/* SPDX-License-Identifier: Apache-2.0 */
/* store/store.h with small pieces: the simulation's histories wrap, split and reuse early. */
#ifndef GANTRY_TESTS_SIM_STORE_H
#define GANTRY_TESTS_SIM_STORE_H

#include_next "store/store.h"

#undef STORE_GRANULE
#define STORE_GRANULE 4096u
#undef STORE_PIECE
#define STORE_PIECE (16u << 10)

#endif
