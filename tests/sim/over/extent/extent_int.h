/* extent/extent_int.h with small pools. */
#ifndef GANTRY_TESTS_SIM_STORE_INT_H
#define GANTRY_TESTS_SIM_STORE_INT_H

#include_next "extent/extent_int.h"

#undef TAIL_BYTES_MAX
#define TAIL_BYTES_MAX (64u << 10)
#undef CHUNK_WRITERS_PER_PORT
#define CHUNK_WRITERS_PER_PORT 24
#undef TRAILERS_PER_PORT
#define TRAILERS_PER_PORT 4u

#endif
