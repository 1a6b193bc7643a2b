/* SPDX-License-Identifier: Apache-2.0 */
/* The engine on disks under the contract of a set's engines, on directories. */
#include "tests/unit/extent/harness.h"
#include "tests/fake/member_contract.h"

int
main(void)
{
	char dir[2][128];
	struct member_contract c = { .engine = &extent_ops, .index_bytes = 16 * MIB };
	int failed;

	log_init(LOG_PLAIN, LOG_WARN);
	for (int i = 0; i < 2; i++) {
		dir_make(dir[i]);
		c.disk[i] = (struct store_disk_conf){ .path = dir[i], .size_bytes = 128 * MIB };
	}
	failed = member_contract_run(&c);
	for (int i = 0; i < 2; i++)
		dir_remove(dir[i]);
	return failed != 0;
}
