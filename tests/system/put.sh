#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# PUT by token on the S3 listener, item by item of docs/protocol.md section 7.
. "$(dirname "$0")/lib.sh"
start_daemon

# item 33, item 34, item 36, item 50, item 79: done
raw <<-END
	window w 70000 pattern:1
	request PUT /bkt/a x-amz-rdma-token:@w content-length:0
	expect status 200
	expect header x-amz-rdma-reply 200
	expect header etag ~^.[0-9a-f]{32}(-r)?.$
	expect header content-length 0
	expect header x-amz-rdma-bytes-transferred 70000
	expect body empty
	expect alive
	expect lower x-
	request HEAD /bkt/a
	expect header content-length 70000
	# item 35: readable at once
	window g 70000
	request GET /bkt/a x-amz-rdma-token:@g
	expect window g pattern:1
	# item 40: no content-length at all
	request PUT /bkt/b x-amz-rdma-token:@w nolength
	expect status 200
	expect header x-amz-rdma-reply 200
	# item 78: every name of our own is in lower case
	expect lower x-amz-
	# item 84
	request PUT /bkt/b x-amz-rdma-token:@w x-amz-rdma-agent:cuobj content-length:0
	expect status 200
	expect header x-amz-rdma-agent cuobj
	request PUT /bkt/b x-amz-rdma-token:@w x-amz-rdma-agent:other content-length:0
	expect status 200
	expect noheader x-amz-rdma-agent
END

# item 39: contradictions, nothing stored
raw <<-END
	window w 4096 pattern:1
	token zero w size=0
	request PUT /bkt/no x-amz-rdma-token:@zero content-length:0
	expect status 400
	expect noheader x-amz-rdma-reply
	request PUT /bkt/no x-amz-rdma-token:@w body=text:hello
	expect status 400
	request PUT /bkt/no x-amz-rdma-token:@w body=text:hello chunk=2
	expect status 400
	request PUT /bkt/no x-amz-rdma-token:@w content-length:0 x-amz-copy-source:/bkt/a
	expect status 400
	request HEAD /bkt/no
	expect status 404
END

# item 43: a bad token
raw <<-END
	window w 4096 pattern:1
	token bad w cut=-1
	request PUT /bkt/no x-amz-rdma-token:@bad content-length:0
	expect status 400
	expect body contains InvalidRDMAToken
	expect noheader x-amz-rdma-reply
	# a bad one is 400 after 404: the bucket decides nothing about the token
	request PUT /nobucket/no x-amz-rdma-token:@w content-length:0
	expect status 404
	expect noheader x-amz-rdma-reply
END

# item 48, item 49
raw <<-END
	window w 4096 pattern:2
	request PUT /bkt/a x-amz-rdma-token:@w content-length:0 if-none-match:*
	expect status 412
	expect noheader x-amz-rdma-reply
	request HEAD /bkt/a
	expect header content-length 70000
	request PUT /bkt/m x-amz-rdma-token:@w content-length:0 if-none-match:* content-type:text/x-test x-amz-meta-colour:blue
	expect status 200
	request HEAD /bkt/m
	expect header content-type text/x-test
	expect header x-amz-meta-colour blue
	save tag header etag
	request PUT /bkt/m x-amz-rdma-token:@w content-length:0 if-match:@tag
	expect status 200
	request PUT /bkt/m x-amz-rdma-token:@w content-length:0 if-match:@tag
	expect status 412
END

# item 44, item 45, item 46: checksums over the bytes that RDMA brought
raw <<-END
	window w 300000 pattern:5
	request PUT /bkt/c x-amz-rdma-token:@w content-length:0 x-amz-checksum-crc64nvme:@crc64:w
	expect status 200
	expect header x-amz-checksum-crc64nvme @crc64:w
	request PUT /bkt/c2 x-amz-rdma-token:@w content-length:0 x-amz-checksum-crc64nvme:rosUhgp5mIg=
	expect status 400
	expect body contains BadDigest
	expect noheader x-amz-rdma-reply
	request HEAD /bkt/c2
	expect status 404
	request PUT /bkt/c3 x-amz-rdma-token:@w content-length:0 x-amz-checksum-crc32:AAAAAA==
	expect status 200
	request PUT /bkt/c4 x-amz-rdma-token:@w content-length:0 x-amz-checksum-algorithm:CRC64NVME
	expect status 200
	expect header x-amz-checksum-crc64nvme @crc64:w
END
# item 41, item 42: the data plane fails, the version before remains, a repeat with a new token succeeds
raw <<-END
	window w 300000 pattern:6
	window dead 300000 pattern:7
	token t dead
	dereg dead
	request PUT /bkt/c x-amz-rdma-token:@t content-length:0
	expect status 500
	expect header x-amz-rdma-reply 500
	expect body contains RDMATransferFailed
	window g 300000
	request GET /bkt/c x-amz-rdma-token:@g
	expect window g pattern:5
	request PUT /bkt/c x-amz-rdma-token:@w content-length:0
	expect status 200
	request GET /bkt/c x-amz-rdma-token:@g
	expect window g pattern:6
END
assert_alive
