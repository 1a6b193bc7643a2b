# SPDX-License-Identifier: Apache-2.0
# All programs here are deterministic: threads take turns, and engines are in memory.
LINK-set/test_mem_engine := mem_store turns member_contract
LINK-set/test_mem_carried := mem_store turns
LINK-set/test_mem_copies := mem_store turns
LINK-set/test_mem_disks := mem_store turns
LINK-set/test_mem_fail := mem_store turns
LINK-set/test_mem_moves := mem_store turns
LINK-set/test_mem_pairs := mem_store turns
LINK-set/test_mem_names := mem_store turns
LINK-set/test_mem_random := mem_store turns
LINK-set/test_mem_seen := mem_store turns
LINK-set/test_mem_starts := mem_store turns
LINK-set/test_set := mem_store turns
LINK-set/test_set_contract := mem_store turns store_contract
LINK-set/test_set_list := mem_store turns
