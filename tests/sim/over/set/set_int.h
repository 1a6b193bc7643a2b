/* SPDX-License-Identifier: Apache-2.0 */
/* set/set_int.h; where it was looked up who has a key, and before that one is called, others may run. */
#ifndef GANTRY_TESTS_SIM_SET_INT_H
#define GANTRY_TESTS_SIM_SET_INT_H

#include_next "set/set_int.h"

#ifdef SIM_LOOKED_UP
void sim_looked_up(void);
#define set_is_in(s, engine) (sim_looked_up(), set_is_in(s, engine))
#endif

#endif
