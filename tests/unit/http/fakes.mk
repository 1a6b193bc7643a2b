# SPDX-License-Identifier: Apache-2.0
NEEDS-http := ring
LINK-http/test_http := fake_req hook_clock http/serve http/client
LINK-http/test_raw := fake_req http/serve http/client
LINK-http/test_admit := fake_req hook_clock http/serve http/client
LINK-http/test_proxy := fake_req http/serve http/client
