LINK-req/test_cancel := fake_chan mem_store
LINK-req/test_counts := fake_chan
LINK-req/test_edges := fake_chan mem_store
LINK-req/test_get := fake_chan mem_store
LINK-req/test_put := fake_chan mem_store
LINK-req/test_random := fake_chan mem_store
LINK-req/test_s3 := fake_chan mem_store
LINK-req/test_copies := fake_chan mem_store
