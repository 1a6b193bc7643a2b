# SPDX-License-Identifier: Apache-2.0
NEEDS-ops := ring
LINK-ops/test_cancel := fake_chan mem_store
LINK-ops/test_counts := fake_chan mem_store
NEEDS-ops/test_counts := extent
LINK-ops/test_edges := fake_chan mem_store
LINK-ops/test_facts := fake_chan mem_store
LINK-ops/test_get := fake_chan mem_store
LINK-ops/test_put := fake_chan mem_store
LINK-ops/test_pace := fake_chan mem_store
LINK-ops/test_random := fake_chan fake_rctable mem_store
LINK-ops/test_s3 := fake_chan mem_store
LINK-ops/test_copies := fake_chan mem_store
LINK-ops/test_parts := fake_chan mem_store
LINK-ops/test_browser := fake_chan mem_store
LINK-ops/test_habits := fake_chan mem_store
