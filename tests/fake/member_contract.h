/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine promises a set (struct store_member_ops of store/ops.h), as tests over any engine: two of them, which are opened as a set
 * opens them.  Linked with LINK-module/test_x := member_contract.
 */
#ifndef TESTS_FAKE_MEMBER_CONTRACT_H
#define TESTS_FAKE_MEMBER_CONTRACT_H

#include "store/ops.h"

struct member_contract {
	const struct store_ops *engine;
	struct store_disk_conf disk[2]; /* where nothing is yet: each test makes them anew */
	uint64_t index_bytes;
};

/* Runs all tests with cmocka, and returns how many failed. */
int member_contract_run(const struct member_contract *c);

#endif
