/* SPDX-License-Identifier: Apache-2.0 */
/* extent/log/pack.h, with a mover that waits for little and is content with little. */
#ifndef GANTRY_TESTS_SIM_PACK_H
#define GANTRY_TESTS_SIM_PACK_H

#include_next "extent/log/pack.h"

#undef MOVES_MAX
#define MOVES_MAX 8
#undef MOVE_UNITS_MAX
#define MOVE_UNITS_MAX 3
#undef MOVE_SLICE
#define MOVE_SLICE 3
#undef MOVE_SETTLED_NS
#define MOVE_SETTLED_NS (NS_PER_MS / 4)
#undef MOVE_REST_NS
#define MOVE_REST_NS (NS_PER_MS / 2)
#undef MOVE_REST_MAX_NS
#define MOVE_REST_MAX_NS (8 * NS_PER_MS)
#undef MOVE_SLICE_REST_NS
#define MOVE_SLICE_REST_NS (NS_PER_MS / 100)
#undef PACK_FILL_MIN
#define PACK_FILL_MIN(steps) ((steps) / 3)
#undef PACK_SPARSE
#define PACK_SPARSE(steps) ((steps) / 4)

#endif
