/* SPDX-License-Identifier: Apache-2.0 */
/* The table of connections of RC, with the connections of a fake channel (fake_chan_serve_rc()). */
#ifndef GANTRY_TESTS_FAKE_RCTABLE_H
#define GANTRY_TESTS_FAKE_RCTABLE_H

#include "fake_chan.h"

/* From now on the table has the connections of this channel; NULL: none. */
void fake_rctable(const struct chan *ch);

#endif
