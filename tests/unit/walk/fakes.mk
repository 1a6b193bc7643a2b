LINK-walk/test_lifecycle := mem_store
LINK-walk/test_scrub := fault_ring
NEEDS-walk/test_scrub := extent
