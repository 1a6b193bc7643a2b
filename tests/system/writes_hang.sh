#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The only disk: its writes hang (a file system that is frozen) and its reads work.  Writes take their share of buffers and requests, over HTTP and
# by RDMA; objects are read meanwhile, health names the reason, and after the thaw each write that was not refused at once is done.
. "$(dirname "$0")/lib.sh"
CORES=1 DISK_SIZE=800MiB COPIES=1 DISKS=1 PUTS=14 HTTP_PUTS=30 MANY=70
MORE=$'limits: { requests: 64, connections: 400, body_rate: 0, s3_progress: 500s, s3_total: 500s }'
write_config
sed -i 's|^memory:.*|memory: { buffers: 32MiB, http_buffers: 16MiB, index: 64MiB }|' "$T/gantryd.yaml"
mkdir "$T/disk0"
truncate -s 1100M "$T/image"
mkfs.ext4 -q -F "$T/image" || fail "mkfs.ext4"
LOOP=$(losetup -f --show "$T/image" 2>/dev/null) && mount "$LOOP" "$T/disk0" 2>/dev/null || { [ -z "$LOOP" ] || losetup -d "$LOOP"; skip "no loop device or no mount: a file system cannot be frozen"; }
trap 'rc=$?; fsfreeze -u "$T/disk0" 2>/dev/null; [ -z "$DAEMON_PID" ] || kill -KILL "$DAEMON_PID" 2>/dev/null; wait; umount "$T/disk0" || umount -l "$T/disk0"; losetup -d "$LOOP"; (exit $rc); _at_exit' EXIT
rm -rf "$T/disk0/lost+found"
format_store
daemon_run
make_buckets
timely() { curl -sS --max-time 100 -o "$T/out" -w '%{http_code}' "$@"; }
rdma() { nic timeout "$1" "$BUILD/gantry" --require-rdma "${@:2}"; }
# Nothing ends before the thaw but what is answered without the disk's writes.
reads() {
	for ((r = 0; r < 3; r++)); do
		assert_eq "$(timely "$URL_S3/bkt/there")" 200 "GET over HTTP while $1"
		cmp "$T/out" "$T/body" || fail "GET over HTTP while $1: other bytes"
		rdma 100 get "$URL_S3/bkt/there" "$T/got" >"$T/said" 2>&1 || fail "GET by RDMA while $1: $(<"$T/said")"
		cmp "$T/got" "$T/body" || fail "GET by RDMA while $1: other bytes"
	done
}

bytes pattern:1 3M >"$T/body"
bytes pattern:2 100 >"$T/small"
assert_eq "$(status_of PUT /bkt/there -T "$T/body")" 200
reads "nothing hangs"

# ---- large ones take what they may of the buffers ----
fsfreeze -f "$T/disk0"
for ((w = 0; w < HTTP_PUTS; w++)); do
	curl -sS --max-time 400 -o /dev/null -w '%{http_code}' -T "$T/body" "$URL_S3/bkt/http$w" >"$T/http.$w" 2>>"$T/curl" &
	pids+=($!)
done
{
	echo "timeout 400s"
	echo "windows w $PUTS 3M pattern:1"
	for ((w = 0; w < PUTS; w++)); do echo "start p$w PUT /bkt/rdma$w x-amz-rdma-token:@w$w content-length:0"; done
	for ((w = 0; w < PUTS; w++)); do echo "wait p$w"; echo "expect status 200"; done
} >"$T/script"
raw "$T/script" &
rdma_puts=$!
in_flight() { [ "$(metric gantry_requests_in_flight)" -ge "$1" ]; }
wait_for 60 in_flight $((HTTP_PUTS + PUTS))
used() { [ "$(metric gantry_buffers "class=\"$1\",state=\"used\"")" -ge "$2" ]; }
all() { metric gantry_buffers "class=\"$1\""; }
wait_for 60 used http $(($(all http) * 3 / 4))
wait_for 60 used large $(($(all large) * 3 / 4))
reads "writes have their share of the buffers"

# ---- small ones, and deletes, take what they may of the requests ----
for ((w = 0; w < MANY; w++)); do
	case $((w % 3)) in
	0) curl -sS --max-time 400 -o /dev/null -w '%{http_code}' -T "$T/small" "$URL_S3/bkt/small$w" >"$T/many.$w" 2>>"$T/curl" & ;;
	1) curl -sS --max-time 400 -o /dev/null -w '%{http_code}' -X DELETE "$URL_S3/bkt/small$w" >"$T/many.$w" 2>>"$T/curl" & ;;
	2) curl -sS --max-time 400 -o /dev/null -w '%{http_code}' -X PUT "$URL_S3/many$w" >"$T/many.$w" 2>>"$T/curl" & ;;
	esac
	pids+=($!)
done
refused() { grep -lq 503 "$T"/many.*; }
wait_for 100 refused
waits_is_said() { [[ " $(curl_admin /healthz | json code) " = *" write_waits "* ]]; }
WAIT_USUAL=60 wait_for 60 waits_is_said
reads "writes have their share of the requests"

# ---- the thaw ----
fsfreeze -u "$T/disk0"
for p in "${pids[@]}"; do wait "$p"; done
wait $rdma_puts || fail "PUTs by RDMA that hung"
for ((w = 0; w < HTTP_PUTS; w++)); do
	assert_eq "$(<"$T/http.$w")" 200 "PUT over HTTP that hung"
	curl -sS "$URL_S3/bkt/http$w" | cmp - "$T/body" || fail "bytes of http$w"
done
for ((w = 0; w < PUTS; w++)); do
	curl -sS "$URL_S3/bkt/rdma$w" | cmp - "$T/body" || fail "bytes of rdma$w"
done
for ((w = 0; w < MANY; w++)); do
	case $((w % 3)):$(<"$T/many.$w") in 0:200 | 1:204 | 2:200 | ?:503) ;; *) fail "write $w was told $(<"$T/many.$w")" ;; esac
done
wait_for 60 nothing_is_held
healthy() { [ "$(curl_admin /healthz | json status),$(curl_admin /healthz | json code)" = ok, ]; }
wait_for 60 healthy
assert_eq "$(status_of PUT /bkt/after -T "$T/body")" 200 "after the thaw"
assert_alive
stop_daemon
