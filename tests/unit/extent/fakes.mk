# SPDX-License-Identifier: Apache-2.0
LINK-extent/test_books := fault_ring
LINK-extent/test_faults := fault_ring
LINK-extent/test_full := fault_ring
LINK-extent/test_hang := fault_ring
LINK-extent/test_host := fault_ring
LINK-extent/test_layout := fault_ring
LINK-extent/test_moves_fail := fault_ring
LINK-extent/test_no_room := fault_ring
LINK-extent/test_power := fault_ring
LINK-extent/test_reread := fault_ring
LINK-extent/test_sectors := fault_ring
LINK-extent/test_space := fault_ring hook_alloc
LINK-extent/test_starts := fault_ring
LINK-extent/test_steps := fault_ring
LINK-extent/test_upgrade := fault_ring
LINK-extent/test_xio := fault_ring
NEEDS-extent/test_device := set
