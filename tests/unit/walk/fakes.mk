# SPDX-License-Identifier: Apache-2.0
LINK-walk/test_expiry := mem_store
LINK-walk/test_lifecycle := mem_store tick_clock
LINK-walk/test_scrub := fault_ring hook_clock
LINK-walk/test_ttl := mem_store
LINK-walk/test_walk := mem_store
LINK-walk/test_walks := mem_store
NEEDS-walk/test_scrub := extent set
