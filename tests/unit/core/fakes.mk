# SPDX-License-Identifier: Apache-2.0
LINK-core/test_accept := fake_req fake_chan hook_clock
LINK-core/test_core := fake_req fake_chan hook_clock
