LINK-chan/test_fake := fake_chan
