/* SPDX-License-Identifier: Apache-2.0 */
/* extent/log/rec_codec.h, which asserts that a record fits into a unit: the real one.  The simulation's
 * records are small, and so are its maps, of which a unit holds a little. */
#ifndef GANTRY_TESTS_SIM_REC_CODEC_H
#define GANTRY_TESTS_SIM_REC_CODEC_H

#include "extent/disk/format.h"

#define MAP_UNIT_MAX 32u

#pragma push_macro("FMT_UNIT_BYTES")
#undef FMT_UNIT_BYTES
#define FMT_UNIT_BYTES (16u << 10)
#include_next "extent/log/rec_codec.h"
#pragma pop_macro("FMT_UNIT_BYTES")

#endif
