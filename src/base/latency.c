/* SPDX-License-Identifier: Apache-2.0 */
/* See latency.h. */
#include "base/latency.h"

#define US(n) ((n)*1000ull)
#define MS(n) ((n)*1000000ull)

const uint64_t latency_bound_ns[LATENCY_NR] = {
	US(50), US(100), US(250), US(500), MS(1),    MS(2) + US(500), MS(5),    MS(10),    MS(25),
	MS(50), MS(100), MS(250), MS(500), MS(1000), MS(2500),        MS(5000), MS(10000), UINT64_MAX,
};
const char *const latency_bound_text[LATENCY_NR] = {
	"5e-05", "0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025",
	"0.05",  "0.1",    "0.25",    "0.5",    "1",     "2.5",    "5",     "10",   "+Inf",
};
