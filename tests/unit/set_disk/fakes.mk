# SPDX-License-Identifier: Apache-2.0
# A set over engines on files, with threads of their own.
LINK-set_disk/test_carried := fault_ring
LINK-set_disk/test_come_go := fault_ring
LINK-set_disk/test_disks := fault_ring
LINK-set_disk/test_engines_contract := store_contract
LINK-set_disk/test_member_contract := member_contract
LINK-set_disk/test_two := fault_ring
NEEDS-set_disk := set extent
