LINK-chan/test_fake := fake_chan
LINK-chan/test_chan := fake_dc
LINK-chan/test_chan_repair := fake_dc
LINK-chan/test_chan_delay := fake_dc
LINK-chan/test_chan_renew := fake_dc
LINK-chan/test_wire := dc_peer
