LINK-walk/test_scrub := fault_ring
