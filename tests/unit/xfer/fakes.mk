# SPDX-License-Identifier: Apache-2.0
LINK-xfer/test_pace := fake_chan
LINK-xfer/test_pool := fake_chan
LINK-xfer/test_digest := fake_chan
LINK-xfer/test_ranges := fake_chan mem_store
