LINK-core/test_core := fake_req fake_chan
