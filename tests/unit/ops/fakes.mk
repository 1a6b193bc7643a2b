LINK-ops/test_cancel := fake_chan mem_store
LINK-ops/test_counts := fake_chan
LINK-ops/test_edges := fake_chan mem_store
LINK-ops/test_get := fake_chan mem_store
LINK-ops/test_put := fake_chan mem_store
LINK-ops/test_random := fake_chan mem_store
LINK-ops/test_s3 := fake_chan mem_store
LINK-ops/test_copies := fake_chan mem_store
