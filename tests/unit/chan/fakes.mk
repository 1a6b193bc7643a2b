# SPDX-License-Identifier: Apache-2.0
LINK-chan/test_fake := fake_chan
LINK-chan/test_chan := fake_ep
LINK-chan/test_chan_repair := fake_ep
LINK-chan/test_chan_delay := fake_ep
LINK-chan/test_chan_renew := fake_ep
LINK-chan/test_chan_connect := fake_ep
LINK-chan/test_wire := dc_peer
LINK-chan/test_rc := dc_peer rc_peer
