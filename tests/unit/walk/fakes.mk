LINK-walk/test_scrub := fault_ring
NEEDS-walk/test_scrub := extent
