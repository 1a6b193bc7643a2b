#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claims TM9, TM10, TM11: whose memory an access key may aim the adapter at: `gids` in the credentials file, read anew on a reload; that a start says when HTTP
# and RDMA share a subnet and nothing ties tokens to their client; and that misses are counted by access key.
. "$(dirname "$0")/../system/lib.sh"

keys() {
	cat >"$T/keys.yaml" <<-END
		- { access_key: AKHERE, secret_key: here-secret-1, gids: [ $1 ] }
		- { access_key: AKELSE, secret_key: else-secret-1, gids: [ 10.9.8.0/24, "fd00::/8" ] }
		- { access_key: AKFREE, secret_key: free-secret-1 }
	END
	chmod 0600 "$T/keys.yaml"
}
keys 127.0.0.0/8
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
start_daemon
wait_for 60 grep -q ' notice .*127.0.0.1:0 and the RDMA rails share a subnet, and rdma.bind_gid is off' "$T/daemon.log"

# aim KEY SECRET STATUS [TOKEN-CHANGES]: a PUT and a GET by that key
aim() {
	raw <<-END
		window w 64K pattern:7
		token t w ${4:-}
		request PUT /bkt/aimed x-amz-rdma-token:@t content-length:0 sign=$1:$2
		expect status $3
		request GET /bkt/here x-amz-rdma-token:@t sign=$1:$2
		expect status $3
	END
}
raw -e 'window w 64K pattern:7; request PUT /bkt/here x-amz-rdma-token:@w content-length:0; expect status 200'
refused=$(raw <<-END
	window w 64K pattern:7
	request PUT /bkt/never x-amz-rdma-token:@w content-length:0 sign=AKELSE:else-secret-1
	expect noheader etag
	save status status
	print @status
END
)
refused=${refused##* }
assert_match "$refused" '^(403|501)$' "an address that the key must not name"
aim AKHERE here-secret-1 200
aim AKFREE free-secret-1 200
aim AKELSE else-secret-1 "$refused"
assert_status GET /bkt/never 404
# Over HTTP the list says nothing.
assert_eq "$("$BUILD/tools/s3sign" -s "$S3" -k AKELSE -p else-secret-1 -m empty -o /dev/null GET /bkt/here)" 200
# Another list, without a restart.
keys 127.0.0.2
curl -sS --fail --max-time 30 --unix-socket "$T/admin.sock" -X POST http://x/control/reload >"$T/out" || fail "$(<"$T/out")"
aim AKHERE here-secret-1 "$refused"
aim AKFREE free-secret-1 200

# ---- misses are counted by who asked ----
misses() { metric gantry_rdma_remote_access_errors_total "access_key=\"$1\""; }
assert_eq "$(misses AKFREE)$(misses -)" 00 "before"
aim AKFREE free-secret-1 500 rkey=^0x5500
aim AKFREE free-secret-1 500 rkey=+77
raw <<-END
	window w 64K pattern:7
	token t w rkey=^0x5500
	request GET /bkt/here x-amz-rdma-token:@t
	expect status 500
END
assert_eq "$(misses AKFREE)" 4 "of the key"
assert_eq "$(misses -)" 1 "of those without one"
assert_eq "$(misses AKHERE)$(misses 'other keys')" 00 "of nobody else"
serves_rdma

# ---- a start with nothing to say ----
restart_daemon -o rdma.bind_gid=subnet
[ "$(grep -c 'share a subnet' "$T/daemon.log")" = 1 ] || fail "it was said although tokens are bound"
stop_daemon
