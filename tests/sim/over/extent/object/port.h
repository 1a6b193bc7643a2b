/* SPDX-License-Identifier: Apache-2.0 */
/* extent/object/port.h with small pools. */
#ifndef GANTRY_TESTS_SIM_PORT_H
#define GANTRY_TESTS_SIM_PORT_H

#include_next "extent/object/port.h"

#undef CHUNK_WRITERS_PER_PORT
#define CHUNK_WRITERS_PER_PORT 24
#undef CRC_BLOCKS_PER_PORT
#define CRC_BLOCKS_PER_PORT 4u

#endif
