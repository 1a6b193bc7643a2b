LINK-chan/test_fake := fake_chan
LINK-chan/test_chan := fake_dc
LINK-chan/test_wire := dc_peer
