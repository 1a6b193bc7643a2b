#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Descriptors as the daemon sees them: forms, refusals, families that are declined.
. "$(dirname "$0")/lib.sh"
start_daemon
bytes pattern:5 100000 >"$T/o"
curl_s3 /bkt/o -T "$T/o"

# item 3, item 4, item 12: the suffix form and the trio name the same window
raw <<-END
	window g 100000
	token s g suffix suffix_addr=+1000 suffix_size=5000
	request GET /bkt/o x-amz-rdma-token:@s
	expect status 206
	expect header x-amz-rdma-bytes 5000
	expect window g pattern:5 0 5000 1000
	expect untouched g 0 1000
	expect untouched g 6000 -
	token below g suffix suffix_addr=-1
	request GET /bkt/o x-amz-rdma-token:@below
	expect status 400
	token above g suffix suffix_addr=+100001 suffix_size=1
	request GET /bkt/o x-amz-rdma-token:@above
	expect status 400
	token beyond g suffix suffix_size=+1
	request GET /bkt/o x-amz-rdma-token:@beyond
	expect status 400
	fill g zero
	request GET /bkt/o x-cuobj-rdma-descr:@g x-cuobj-content-length:5000 x-cuobj-remote-buf-start:@addr:g
	expect status 206
	expect header x-amz-rdma-reply 206
	expect window g pattern:5 0 5000
	expect untouched g 5000 -
	request PUT /bkt/t x-cuobj-rdma-descr:@g content-length:0
	expect status 400
	request PUT /bkt/t x-cuobj-rdma-descr:@g x-cuobj-content-length:-1 content-length:0
	expect status 400
	request PUT /bkt/t x-cuobj-rdma-descr:@g x-cuobj-content-length:18446744073709551616 content-length:0
	expect status 400
	request PUT /bkt/t x-cuobj-rdma-descr:@g x-cuobj-content-length:0x10 content-length:0
	expect status 400
	# item 101
	request PUT /bkt/t x-cuobj-rdma-descr:@g x-cuobj-content-length:5000 content-length:0
	expect status 200
	expect header x-amz-rdma-reply 200
	expect header x-amz-rdma-bytes-transferred 5000
END

# item 5, item 6, item 7, item 8, item 11, item 23, claim TM1
raw <<-END
	window g 100000
	token t80 g cut=80
	request GET /bkt/o x-amz-rdma-token:@t80
	expect status 400
	token t82 g append=0
	request GET /bkt/o x-amz-rdma-token:@t82
	expect status 400
	token colon g at=16:0
	request GET /bkt/o x-amz-rdma-token:@colon
	expect status 400
	token digit g at=30:g
	request GET /bkt/o x-amz-rdma-token:@digit
	expect status 400
	token g2 g g=2
	request GET /bkt/o x-amz-rdma-token:@g2
	expect status 400
	token g0 g g=0
	request GET /bkt/o x-amz-rdma-token:@g0
	expect status 400
	token addr0 g addr=0
	request GET /bkt/o x-amz-rdma-token:@addr0
	expect status 400
	token wrap g addr=0xfffffffffffff000 size=0x2000
	request GET /bkt/o x-amz-rdma-token:@wrap
	expect status 400
	request GET /bkt/o x-amz-rdma-token:
	expect status 400
	expect untouched g
	request GET /bkt/o x-amz-rdma-token:@g x-amz-rdma-token:@g
	expect status 400
	request GET /bkt/o x-amz-rdma-token:@g x-rdma-info:@g
	expect status 400
	expect untouched g
	token up g upper
	request GET /bkt/o x-amz-rdma-token:@up
	expect status 200
	token semi g append=;
	request GET /bkt/o "x-amz-rdma-token:  @semi "
	expect status 200
	expect window g pattern:5
END

# item 15, item 103, item 104, T1, T2, T3, T4: families that are recognised are declined, not refused
hip=012a00000000000000000000000000ffff0a000005efbeadde00100000007f00000010000000000000010000
raw <<-END
	set rc rc:03b1c6f0a4e84d1796c2e5f70b8d9a1e:00007f0000200000:00100000:0001a2b3
	request GET /bkt/o x-amz-rdma-token:@rc
	expect status 501
	expect header x-amz-rdma-reply 501
	expect header x-gantry-rdma-reason token-family
	expect body contains RDMANotSupported
	request PUT /bkt/p x-amz-rdma-token:@rc content-length:0
	expect status 501
	expect header x-amz-rdma-reply 501
	expect noheader etag
	expect body contains RDMANotSupported
	request GET /bkt/o x-amz-rdma-token:0:10:ofi1:xnet.1:0200:1
	expect status 501
	expect header x-amz-rdma-reply 501
	request GET /bkt/o x-amz-rdma-token:0:10:ofi2:x
	expect status 501
	expect header x-amz-rdma-reply 501
	request GET /bkt/o x-amz-rdma-token:0:10:ofi:xnet.1:0200:1
	expect status 400
	request GET /bkt/o x-amz-rdma-token:0:10:ofi1x:xnet.1:0200:1
	expect status 400
	request GET /bkt/o x-amz-rdma-token:0:10:1:ofi1:0200:1
	expect status 400
	request GET /bkt/o x-amz-rdma-token:$hip
	expect status 501
	expect header x-amz-rdma-reply 501
	request PUT /bkt/p x-amz-rdma-token:$hip:00007f0000001000:0000000000001000 content-length:0
	expect status 501
	expect header x-amz-rdma-reply 501
	expect noheader etag
	# item T7, item T8: what clients really send of other kinds: Dell's RC (no DCT), SeaweedFS's JSON, base64, a connection for the rc: tokens.
	window w 5000
	token back w dctn=0
	request GET /bkt/o x-rdma-info:@back
	expect status 501
	expect header x-amz-rdma-reply 501
	expect header x-gantry-rdma-reason token-family
	request PUT /bkt/p x-amz-rdma-token:@back content-length:0
	expect status 501
	request GET /bkt/o x-amz-rdma-token:cmM6MDNiMWM2ZjA=
	expect status 501
	request POST /.s3rdma-rc/connect x-amz-rdma-token:$hip x-amz-rdma-psn:0a1b2c content-length:0
	expect status 501
	expect header x-amz-rdma-reply 501
	expect header x-gantry-rdma-reason token-family
	request POST /.s3rdma-rc/disconnect content-length:0
	expect status 501
	request GET /.s3rdma-rc/connect
	expect status 405
	# Malformed ones of the kind that is served stay 400.
	token back2 w dctn=0 g=2
	request GET /bkt/o x-rdma-info:@back2
	expect status 400
	request GET /bkt/none x-amz-rdma-token:$hip
	expect status 404
	expect header x-amz-rdma-reply 404
	request HEAD /bkt/p
	expect status 404
END
raw_scal <<-END
	request PUT /p x-scal-rdma:10.0.0.5:18515:0x00007f0000001000:0x00100000:0x01f2e973 content-length:0
	expect status 501
END

assert_eq "$(header_of x-gantry-rdma-reason /bkt/o -H 'x-rdma-info: {"type":"seaweed","addr":"0x7f0000001000"}')" token-family
for f in hipobj-rc:2 shim-rc:4 ofi:2 dell-rc:2 json:1 base64:1 scality-rc:1; do
	assert_eq "$(metric gantry_declined_families_total "\"${f%:*}\"")" "${f#*:}" "$f"
done

# item 100, item 102: other headers
raw <<-END
	window w 5000 pattern:8
	window g 5000
	request PUT /bkt/d x-rdma-info:@w content-length:0
	expect status 200
	expect header x-amz-rdma-reply 200
	request GET /bkt/d x-rdma-info:@g range:bytes=0-4999
	expect status 206
	expect header x-amz-rdma-bytes-transferred 5000
	expect window g pattern:8
	request PUT /bkt/meta x-amz-meta-rdma-token:@w content-length:0
	expect status 501
	expect header x-amz-rdma-reply 501
	expect header x-gantry-rdma-reason token-family
	request GET /bkt/none x-amz-meta-rdma-token:@w
	expect status 404
	request HEAD /bkt/meta
	expect status 404
	request PUT /bkt/meta x-amz-meta-rdma-token:colour body=text:hello
	expect status 200
	request HEAD /bkt/meta
	expect header x-amz-meta-rdma-token colour
END

# item 10: no rkey and no descriptor in the log at its default level
! grep -qE '[0-9a-f]{16}:[0-9a-f]{8}:[0-9a-f]{8}:' "$T/daemon.log" || fail "a descriptor is in the log"
stop_daemon

RDMA='{ allow_special: [loopback, self], meta_token: true }'
write_config
daemon_run
raw <<-END
	window w 5000 pattern:8
	request PUT /bkt/meta2 x-amz-meta-rdma-token:@w content-length:0
	expect status 200
	expect header x-amz-rdma-reply 200
	request HEAD /bkt/meta2
	expect header content-length 5000
	expect noheader x-amz-meta-rdma-token
END
stop_daemon

# claim TM7: an address that rdma.allow does not name is one that we do not go to: declined, without a work request.  What is wrong with the
# request comes before.
RDMA='{ allow_special: [] }'
write_config
daemon_run
raw <<-END
	window w 5000 pattern:8
	request PUT /bkt/forged x-amz-rdma-token:@w content-length:0
	expect status 501
	expect header x-amz-rdma-reply 501
	expect header x-gantry-rdma-reason not-allowed
	expect body contains RDMANotSupported
	expect noheader etag
	request GET /bkt/o x-amz-rdma-token:@w
	expect status 501
	expect header x-gantry-rdma-reason not-allowed
	expect untouched w
	request GET /bkt/none x-amz-rdma-token:@w
	expect status 404
	expect noheader x-amz-rdma-reply
	request PUT /none/forged x-amz-rdma-token:@w content-length:0
	expect status 404
	request GET /bkt/o x-amz-rdma-token:@w if-match:"nix"
	expect status 412
	request GET /bkt/o x-amz-rdma-token:@w range:bytes=100000-
	expect status 416
	# Nobody has such an address: 403, before anything is asked of the store.
	token many w gid=224.0.0.1
	request GET /bkt/none x-amz-rdma-token:@many
	expect status 403
	expect body contains AccessDenied
	expect noheader x-amz-rdma-reply
	request HEAD /bkt/forged
	expect status 404
END
assert_eq "$(metric gantry_declines_total '"not-allowed"')" 2
assert_eq "$(metric gantry_rdma_operations_total)" 0
stop_daemon

# ... and one that is not the client's own, where that is asked for, is 403.
RDMA='{ allow_special: [loopback, self], bind_gid: exact }'
write_config
daemon_run
raw <<-END
	window w 5000 pattern:8
	token other w gid=127.0.0.9
	request PUT /bkt/forged x-amz-rdma-token:@other content-length:0
	expect status 403
	expect noheader x-amz-rdma-reply
END
