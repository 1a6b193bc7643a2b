#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# GET and HEAD by token on the S3 listener, item by item of docs/protocol.md section 7.
. "$(dirname "$0")/lib.sh"
start_daemon

raw <<-END
	window w 3000000 pattern:5
	request PUT /bkt/o x-amz-rdma-token:@w content-length:0
	expect status 200
	save tag header etag
	window g 4M
	# item 57, item 59, item 60, item 21, item 79
	request GET /bkt/o x-amz-rdma-token:@g
	expect status 200
	expect header x-amz-rdma-reply 200
	expect header etag @tag
	expect header content-length 0
	expect header x-amz-rdma-bytes-transferred 3000000
	expect header x-amz-rdma-bytes 3000000
	expect noheader content-range
	expect body empty
	expect alive
	expect window g pattern:5 0 3000000
	expect untouched g 3000000 -
	expect rdmasum g 0 3000000
	# item 72
	request GET /bkt/o x-amz-rdma-token:@g content-length:0
	expect status 200
	# item 58: a range that covers everything
	request GET /bkt/o x-amz-rdma-token:@g range:bytes=0-2999999
	expect status 206
	expect header x-amz-rdma-reply 206
	expect header content-range "bytes 0-2999999/3000000"
	# item 61, item 19
	fill g zero
	request GET /bkt/o x-amz-rdma-token:@g range:bytes=2900001-5000000
	expect status 206
	expect header x-amz-rdma-bytes-transferred 99999
	expect header content-range "bytes 2900001-2999999/3000000"
	expect window g pattern:5 2900001 99999
	expect untouched g 99999 -
	# item 66
	fill g zero
	request GET /bkt/o x-amz-rdma-token:@g range:bytes=65535-65537
	expect window g pattern:5 65535 3
	expect untouched g 3 -
END

# item 62, item 63, item 64, item 68
raw <<-END
	window g 4096
	request GET /bkt/o x-amz-rdma-token:@g range:bytes=3000000-
	expect status 416
	expect header content-range "bytes */3000000"
	expect header content-type application/xml
	expect body contains <ActualObjectSize>3000000</ActualObjectSize>
	expect noheader x-amz-rdma-reply
	request PUT /bkt/zero content-length:0
	expect status 200
	request GET /bkt/zero x-amz-rdma-token:@g
	expect status 200
	expect header x-amz-rdma-reply 200
	expect header x-amz-rdma-bytes-transferred 0
	expect untouched g
	request GET /bkt/zero x-amz-rdma-token:@g range:bytes=0-9
	expect status 416
	expect header content-range "bytes */0"
	expect body contains <ActualObjectSize>0</ActualObjectSize>
	request GET /bkt/none x-amz-rdma-token:@g
	expect status 404
	expect body contains NoSuchKey
	expect noheader x-amz-rdma-reply
	request GET /nobucket/none x-amz-rdma-token:@g
	expect status 404
	expect body contains NoSuchBucket
	expect untouched g
END

# item 65: the window is smaller than the object
raw <<-END
	window g 70001
	request GET /bkt/o x-amz-rdma-token:@g
	expect status 206
	expect header x-amz-rdma-reply 206
	expect header content-range "bytes 0-70000/3000000"
	expect header x-amz-rdma-bytes 70001
	expect window g pattern:5 0 70001
	token zero g size=0
	request GET /bkt/o x-amz-rdma-token:@zero
	expect status 400
	expect body contains InvalidRDMAToken
	# item 9: a SIZE of 4 GiB - 1 on a smaller object
	token huge g size=0xffffffff
	request GET /bkt/o x-amz-rdma-token:@huge range:bytes=0-99
	expect status 206
	expect header x-amz-rdma-bytes 100
END

# item 69, item 76
raw <<-END
	window g 3000000
	request HEAD /bkt/o x-amz-rdma-token:@g
	expect status 200
	expect header content-length 3000000
	expect noheader x-amz-rdma-reply
	save tag header etag
	request HEAD /bkt/o
	expect header etag @tag
	request GET /bkt/o x-amz-rdma-token:@g if-match:@tag
	expect status 200
	fill g zero
	request GET /bkt/o x-amz-rdma-token:@g if-match:"\"00000000000000000000000000000000\""
	expect status 412
	expect noheader x-amz-rdma-reply
	expect untouched g
	request GET /bkt/o x-amz-rdma-token:@g if-none-match:@tag
	expect status 304
END

# item 75: data plane failure
raw <<-END
	window dead 3000000
	token t dead
	dereg dead
	request GET /bkt/o x-amz-rdma-token:@t
	expect status 500
	expect header x-amz-rdma-reply 500
	expect body contains RDMATransferFailed
	expect untouched dead
	window g 3000000
	request GET /bkt/o x-amz-rdma-token:@g
	expect status 200
END
assert_alive
stop_daemon

# item 65, the option
RDMA='{ allow_special: [loopback, self], short_get_reject: true }'
write_config
daemon_run
raw <<-END
	window g 70001
	request GET /bkt/o x-amz-rdma-token:@g
	expect status 400
	expect untouched g
	request GET /bkt/o x-amz-rdma-token:@g range:bytes=0-99
	expect status 206
END
