LINK-store/test_mem_store := mem_store store_contract
