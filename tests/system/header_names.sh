#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# item 78: how the names of header fields are spelled, in every kind of answer: on S3 listeners as AWS spells them, on Scality listeners in lower case.
. "$(dirname "$0")/lib.sh"
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true }"
start_daemon
curl_s3 '/bkt?cors' -X PUT -d '<CORSConfiguration><CORSRule><AllowedOrigin>http://app.test</AllowedOrigin><AllowedMethod>GET</AllowedMethod>
<AllowedMethod>PUT</AllowedMethod><AllowedHeader>*</AllowedHeader><ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>7</MaxAgeSeconds></CORSRule></CORSConfiguration>' ||
	fail "CORS rules"
printf -- '--X\r\nContent-Disposition: form-data; name="key"\r\n\r\nform\r\n--X\r\nContent-Disposition: form-data; name="success_action_redirect"\r\n\r\nhttp://h.test/x\r\n--X\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nabc\r\n--X--\r\n' >"$T/form"
raw <<-END
	window w 70000 pattern:1
	# by RDMA: done, clipped, failed, declined, not a descriptor
	request PUT /bkt/a x-amz-rdma-token:@w x-amz-checksum-algorithm:CRC32 content-length:0 x-amz-meta-Mixed-Case:V content-type:a/b "content-encoding:gzip" "content-language:de" "content-disposition:inline" "cache-control:no-cache" "expires:Thu, 01 Jan 2099 00:00:00 GMT" x-amz-rdma-agent:cuobj
	expect status 200
	expect spelled
	window g 70000
	request GET /bkt/a x-amz-rdma-token:@g
	expect status 200
	expect header content-type a/b
	expect header content-encoding gzip
	expect header content-language de
	expect header content-disposition inline
	expect header cache-control no-cache
	expect header expires
	expect header x-amz-meta-mixed-case V
	expect spelled
	request GET /bkt/a x-amz-rdma-token:@g range:bytes=5-9
	expect status 206
	expect header content-range
	expect spelled
	window ro 70000 access=none
	request GET /bkt/a x-amz-rdma-token:@ro
	expect status 500
	expect spelled
	request GET /bkt/a x-amz-rdma-token:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef01234567
	expect status 501
	expect header x-gantry-rdma-reason
	expect spelled
	request GET /bkt/a x-amz-rdma-token:nonsense
	expect status 400
	expect spelled
	# over HTTP: done, a part, none of it, not changed, a condition that does not hold, absent, not implemented
	request HEAD /bkt/a
	expect status 200
	expect header content-language de
	expect spelled
	request GET /bkt/a range:bytes=1-2 x-amz-checksum-mode:ENABLED
	expect status 206
	expect spelled
	request GET /bkt/a range:bytes=70000-
	expect status 416
	expect header content-range "bytes */70000"
	expect spelled
	request GET /bkt/a if-modified-since:"Thu, 01 Jan 2099 00:00:00 GMT"
	expect status 304
	expect header last-modified
	expect header cache-control
	expect spelled
	request GET /bkt/a if-match:"x"
	expect status 412
	expect spelled
	request GET /bkt/none
	expect status 404
	expect spelled
	request PUT /bkt/a?torrent body=text:x
	expect status 501
	expect spelled
	request POST /bkt/a body=text:x
	expect status 405
	expect spelled
	request GET /bkt?list-type=2
	expect status 200
	expect header content-type application/xml
	expect spelled
	request PUT /bkt2 nolength
	expect status 200
	expect header location /bkt2
	expect spelled
	request GET /bkt/a?attributes x-amz-object-attributes:ETag
	expect header last-modified
	expect spelled
	# what pages of other origins get, and forms
	request OPTIONS /bkt/a origin:http://app.test access-control-request-method:PUT access-control-request-headers:x-a
	expect status 200
	expect header access-control-allow-headers
	expect header access-control-max-age 7
	expect header vary
	expect spelled
	request OPTIONS /bkt/a origin:http://other.test access-control-request-method:PUT
	expect status 403
	expect spelled
	request GET /bkt/a origin:http://app.test
	expect status 200
	expect header access-control-expose-headers ETag
	expect spelled
	request POST /bkt "content-type:multipart/form-data; boundary=X" body=file:$T/form
	expect status 303
	expect header location
	expect spelled
	# before the end of the body, past the library
	start early PUT /none/a content-length:100000 body=text:x
	wait early
	expect status 404
	expect header content-length
	expect header date
	expect spelled
	request GET /bkt/a nohost
	expect status 400
	expect spelled
END
curl -sS --unix-socket "$T/admin.sock" -X POST http://d/control/drain >/dev/null
raw <<-END
	request GET /bkt/a
	expect status 503
	expect header retry-after
	expect spelled
END
curl -sS --unix-socket "$T/admin.sock" -X POST http://d/control/resume >/dev/null
raw_scal <<-END
	window w 1000 pattern:1
	request PUT /k x-scal-rdma:@w content-length:0 content-type:a/b
	expect status 200
	expect spelled lower
	request GET /k
	expect status 200
	expect header content-type a/b
	expect header last-modified
	expect spelled lower
	request GET /k range:bytes=1-2
	expect status 206
	expect spelled lower
	request GET /none
	expect status 404
	expect spelled lower
END
assert_alive
