#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where io_uring is forbidden, as in a container, the daemon starts on threads, says so and why, and serves: HTTP and
# RDMA, many at once, a restart in between; --format and --fsck work as well.  Its other tests run so in the tier `threads`.
. "$(dirname "$0")/lib.sh"
DAEMON_WRAP=$BUILD/tools/no_uring
write_config
mkdir -p "$T/disk0"
nic "$DAEMON_WRAP" "$BUILD/gantryd" -c "$T/gantryd.yaml" --format >"$T/out" 2>&1 || fail "--format: $(<"$T/out")"
daemon_run
make_buckets
wait_for 60 grep -q 'io_uring cannot be used: .*threads do its work' "$T/daemon.log"
grep -Eq 'io_uring cannot be used: (a filter of system calls denies it|kernel.io_uring_disabled is [12])' "$T/daemon.log" ||
	fail "the log does not say why: $(grep io_uring "$T/daemon.log")"
assert_eq "$(metric gantry_io_backend 'backend="threads"')" 1
bytes pattern:1 3M >"$T/body"
curl_s3 /bkt/http -T "$T/body"
curl_s3 /bkt/http | cmp - "$T/body" || fail "over HTTP"
raw <<-END
	window w 8M pattern:7
	request PUT /bkt/rdma x-amz-rdma-token:@w content-length:0
	expect status 200
END
assert_eq "$(curl_s3 /bkt/rdma | md5)" "$(bytes pattern:7 8M | md5)"
puts=()
for i in $(seq 24); do
	curl_s3 "/bkt/many$i" -T "$T/body" &
	puts+=($!)
done
for p in "${puts[@]}"; do wait "$p" || fail "one of many PUTs"; done
for i in 1 12 24; do curl_s3 "/bkt/many$i" | cmp - "$T/body" || fail "object $i of many at once"; done
restart_daemon
assert_eq "$(curl_s3 /bkt/rdma | md5)" "$(bytes pattern:7 8M | md5)"
assert_alive
stop_daemon
nic "$DAEMON_WRAP" "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/out" 2>&1 || fail "--fsck: $(<"$T/out")"
