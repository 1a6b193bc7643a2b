/* SPDX-License-Identifier: Apache-2.0 */
/* extent/log/key.h with attributes of buckets that need several records early. */
#ifndef GANTRY_TESTS_SIM_KEY_H
#define GANTRY_TESTS_SIM_KEY_H

#include_next "extent/log/key.h"

#undef BATTRS_BYTES
#define BATTRS_BYTES 100u

#endif
