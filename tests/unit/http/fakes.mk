# SPDX-License-Identifier: Apache-2.0
NEEDS-http := ring
LINK-http/test_http := fake_req hook_clock
LINK-http/test_raw := fake_req
