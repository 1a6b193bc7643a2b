/* SPDX-License-Identifier: Apache-2.0 */
/* extent/log/vol.h with little data in the tail. */
#ifndef GANTRY_TESTS_SIM_VOL_H
#define GANTRY_TESTS_SIM_VOL_H

#include_next "extent/log/vol.h"

#undef TAIL_BYTES_MAX
#define TAIL_BYTES_MAX (64u << 10)

#endif
