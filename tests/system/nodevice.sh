#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No RDMA device: a warning, and everything is served over HTTP; a token is declined with its reason (item 37, item 67, item 95).
. "$(dirname "$0")/lib.sh"
NO_NIC=1
start_daemon
grep -qi 'no .*RDMA device' "$T/daemon.log" || fail "the log does not say that there is no device"
tok=000073967e5ff000:00001000:01f2e973:0000:007a03:1:00000000000000000000ffff7f000001
bytes pattern:1 100000 >"$T/body"
curl_s3 /bkt/o -T "$T/body"
curl -sS -D "$T/h" -o "$T/back" -H "x-amz-rdma-token: $tok" "$URL_S3/bkt/o"
tr -d '\r' <"$T/h" >"$T/hh"
grep -qx 'HTTP/1.1 501 Not Implemented' "$T/hh" && grep -qx 'x-amz-rdma-reply: 501' "$T/hh" || fail "declined GET: $(<"$T/hh")"
grep -qx 'x-gantry-rdma-reason: no-device' "$T/hh" || fail "no reason: $(<"$T/hh")"
grep -q '<Code>RDMANotSupported</Code><Message>This server has no RDMA device' "$T/back" || fail "a declined GET's body: $(head -c 300 "$T/back")"
curl_s3 /bkt/o >"$T/back"
assert_same "$T/body" "$T/back"
curl -sS -D "$T/h" -o "$T/back" -X PUT -H "x-amz-rdma-token: $tok" "$URL_S3/bkt/p"
tr -d '\r' <"$T/h" >"$T/hh"
grep -qx 'HTTP/1.1 501 Not Implemented' "$T/hh" && grep -qx 'x-amz-rdma-reply: 501' "$T/hh" || fail "declined PUT: $(<"$T/hh")"
! grep -qi '^etag' "$T/hh" || fail "a declined PUT has an ETag"
grep -q '<Code>RDMANotSupported</Code>' "$T/back" || fail "a declined PUT's body: $(<"$T/back")"
assert_status GET /bkt/p 404
assert_status PUT /bkt/p 200 -T "$T/body"
assert_eq "$(status_of_scal PUT /k -H "x-scal-rdma: $tok")" 501
assert_eq "$(status_of PUT /bkt/i -H "x-rdma-info: $tok")" 501
# Without a device there is no subnet of ours that an address could be outside of.
assert_eq "$(header_of x-gantry-rdma-reason /bkt/o -H "x-amz-rdma-token: ${tok%7f000001}0a090001")" no-device
assert_ne "$(metric gantry_declines_total 'reason="no-device"')" 0
# What is wrong with the request itself is said first, and of a decline the log says that it was one.
for c in "404 /bkt/none" "412 /bkt/o -H if-match:\"x\"" "416 /bkt/o -H range:bytes=100000-" "404 /none/o" "400 /bkt/o -H x-rdma-info:$tok"; do
	read -r -a w <<<"$c"
	assert_eq "$(status_of GET "${w[@]:1}" -H "x-amz-rdma-token: $tok")" "${w[0]}" "${w[*]}"
done
# A line is written behind the answer.
wait_for 60 grep -q 'op=GetObject status=501 .*declined=no-device' "$T/daemon.log"
assert_alive
stop_daemon

RDMA='{ devices: none }'
write_config
daemon_run
assert_eq "$(header_of x-gantry-rdma-reason /bkt/o -H "x-amz-rdma-token: $tok")" disabled
assert_status PUT /bkt/p 501 -H "x-amz-rdma-token: $tok"
stop_daemon

# An adapter that the kernel's driver has and the verbs library does not show: everything is served, and that is told.
mkdir -p "$T/sys/class/infiniband/mlx5_0/device" "$T/sys/bus/pci/drivers/mlx5_core"
ln -s ../../../../bus/pci/drivers/mlx5_core "$T/sys/class/infiniband/mlx5_0/device/driver"
printf '#!/bin/sh\nmount --bind "%s" /sys && exec "$@"\n' "$T/sys" >"$T/wrap"
chmod +x "$T/wrap"
RDMA='{ devices: auto }' DAEMON_WRAP="unshare -m $T/wrap"
write_config
daemon_run
assert_eq "$(curl_admin /healthz -o "$T/health" -w '%{http_code}')" 200 "an adapter that is not shown"
grep -q '"status":"degraded".*the kernel has the RDMA device mlx5_0, and the verbs library does not show it' "$T/health" || fail "$(<"$T/health")"
assert_eq "$(metric gantry_rdma_devices_missing)" 1
assert_eq "$(curl_admin /readyz -o /dev/null -w '%{http_code}')" 200 "ready all the same"
assert_eq "$(curl_s3 /bkt/o | md5)" "$(bytes pattern:1 100000 | md5)" "served"
stop_daemon
