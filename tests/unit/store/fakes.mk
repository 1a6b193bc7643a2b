LINK-store/test_mem_store := mem_store store_contract
LINK-store/test_store_books := fault_ring
LINK-store/test_store_contract := store_contract
LINK-store/test_store_faults := fault_ring
LINK-store/test_store_power := fault_ring
LINK-store/test_store_space := fault_ring hook_alloc
LINK-store/test_store_xio := fault_ring
