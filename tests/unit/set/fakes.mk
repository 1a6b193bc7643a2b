# SPDX-License-Identifier: Apache-2.0
LINK-set/test_carried := fault_ring
LINK-set/test_come_go := fault_ring
LINK-set/test_disks_fail := fault_ring
LINK-set/test_engines_contract := store_contract
LINK-set/test_seen := fault_ring
LINK-set/test_set := mem_store
LINK-set/test_set_contract := mem_store store_contract
LINK-set/test_set_list := mem_store
LINK-set/test_two := fault_ring
NEEDS-set/test_carried := extent
NEEDS-set/test_come_go := extent
NEEDS-set/test_disks := extent
NEEDS-set/test_disks_fail := extent
NEEDS-set/test_engines_contract := extent
NEEDS-set/test_seen := extent
NEEDS-set/test_two := extent
