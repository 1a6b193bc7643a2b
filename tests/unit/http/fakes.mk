NEEDS-http := ring
LINK-http/test_http := fake_req
LINK-http/test_raw := fake_req
