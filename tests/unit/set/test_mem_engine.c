/* SPDX-License-Identifier: Apache-2.0 */
/* The engine in memory under the contract of a set's engines, in turns: SEED= repeats a run. */
#include "tests/fake/mem_disks.h"
#include "tests/fake/member_contract.h"
#include "tests/fake/turns.h"

#define SEEDS 5

int
main(void)
{
	const struct member_contract c = { .engine = &mem_engine_ops,
					   .disk = { { .path = "/mem/a", .size_bytes = 1 << 30 },
						     { .path = "/mem/b", .size_bytes = 1 << 30 } },
					   .index_bytes = 1 << 20 };
	uint64_t seed = turns_seed();
	int failed = 0;

	for (uint64_t i = 0; i < SEEDS; i++) {
		turns_begin(seed + i);
		turns_step = mem_disks_step;
		mem_disks_begin(seed + i);
		failed += member_contract_run(&c);
		mem_disks_begin(0);
	}
	return failed != 0;
}
