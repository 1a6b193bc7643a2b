# SPDX-License-Identifier: Apache-2.0
LINK-core/test_accept := fake_req fake_chan hook_clock core/rig http/client
LINK-core/test_core := fake_req fake_chan hook_clock core/rig http/client
