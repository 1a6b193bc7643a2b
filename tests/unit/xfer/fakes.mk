LINK-xfer/test_pool := fake_chan mem_store
LINK-xfer/test_digest := fake_chan mem_store
LINK-xfer/test_ranges := fake_chan mem_store
