/* SPDX-License-Identifier: Apache-2.0 */
/* extent/log/recover_int.h with a small window over the log. */
#ifndef GANTRY_TESTS_SIM_RECOVER_INT_H
#define GANTRY_TESTS_SIM_RECOVER_INT_H

#include_next "extent/log/recover_int.h"

#undef WINDOW_BYTES
#define WINDOW_BYTES ((size_t)64 << 10)

#endif
