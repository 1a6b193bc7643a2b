#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Small objects, put at 32 under way, are moved together in the background: they take the room they need, by RDMA and over HTTP and in
# ranges they are what they were, a kill -9 while they are moved loses nothing, and when they are deleted their units are free.
. "$(dirname "$0")/lib.sh"
DISK_SIZE=256MiB
write_config
sed -i 's|^store:|store:\n  pack_rate: 0|' "$T/gantryd.yaml"
format_store
daemon_run
make_buckets
N=320

disk() { curl_admin /disks | sed -nE 's/.*"'"$1"'": ?([0-9]+).*/\1/p' | head -1; }
# What small objects take, in bytes: without log, index and snapshots.
room() { echo $((($(disk packed_units) + $(disk loose_objects)) * 16384)); }
takes_at_most() { [ "$(room)" -le "$1" ]; }
put() { # NAME BYTES
	raw <<-END
		timeout 60s
		windows w $N $2 pattern:%i
		connections 32
		parallel $N PUT /bkt/$1%i x-amz-rdma-token:@w%i content-length:0
		expect status 200
	END
}
all() { curl -sS --fail --max-time 60 "$URL_S3/bkt/$1[0-$((N - 1))]"; }

put a 4096
# Nothing is moved before it is looked at.
four=$(room)
[ "$four" -gt $((N * 4096 * 3 / 2)) ] || fail "$N objects of 4 KiB take $four bytes as they come: this shows nothing"
all a >"$T/a"
sed -i 's|pack_rate: 0|pack_rate: 1GiB|' "$T/gantryd.yaml"
restart_daemon
wait_for 60 takes_at_most $((N * 4096 * 3 / 2))
four=$(room)
put b 1024
all b >"$T/b"
wait_for 60 takes_at_most $((four + N * 1024 * 5 / 2))
echo "4 KiB take $((four * 100 / N / 4096)) %, 1 KiB $((($(room) - four) * 100 / N / 1024)) % of their size"

# ---- they are what they were ----
all a | cmp - "$T/a" || fail "4 KiB over HTTP"
all b | cmp - "$T/b" || fail "1 KiB over HTTP"
raw <<-END
	timeout 60s
	windows g $N 4096
	connections 32
	parallel $N GET /bkt/a%i x-amz-rdma-token:@g%i
	expect status 200
	expect window g0 pattern:0
	expect window g77 pattern:77
	expect window g$((N - 1)) pattern:$((N - 1))
	windows h $N 1024
	parallel $N GET /bkt/b%i x-amz-rdma-token:@h%i
	expect status 200
	expect window h1 pattern:1
	expect window h99 pattern:99
	window r 300
	request GET /bkt/b99 x-amz-rdma-token:@r range:bytes=77-376
	expect status 206
	expect window r pattern:99 77 300
	request GET /bkt/a5 x-amz-rdma-token:@r range:bytes=3796-4095
	expect status 206
	expect window r pattern:5 3796 300
END
for r in 0-0 63-64 1000-1023; do
	a=${r%-*} b=${r#*-}
	curl_s3 /bkt/b7 -r "$r" | cmp - <(tail -c "+$((7 * 1024 + a + 1))" "$T/b" | head -c "$((b - a + 1))") || fail "range $r"
done
tag=$(header_of etag /bkt/b7 --head)
assert_status GET /bkt/b7 200 -H "if-match: $tag"
curl_s3 /bkt/copy -X PUT -H 'x-amz-copy-source: /bkt/b7' -o /dev/null
curl_s3 /bkt/copy | cmp - <(tail -c "+$((7 * 1024 + 1))" "$T/b" | head -c 1024) || fail "a copy"

# ---- killed in the middle of it ----
# Some may be moved before all are read.
moves=$(disk packed_moves)
put c 2000
all c >"$T/c"
moving() { [ "$(disk packed_moves)" -gt "$moves" ]; }
wait_for 60 moving
kill_daemon
daemon_run
for k in a b c; do all $k | cmp - "$T/$k" || fail "$k after a kill"; done
stop_daemon
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || fail "fsck: $(<"$T/fsck")"

# ---- and gone ----
daemon_run
raw <<-END
	timeout 60s
	connections 32
	parallel $N DELETE /bkt/a%i
	expect status 204
	parallel $N DELETE /bkt/b%i
	expect status 204
	parallel $N DELETE /bkt/c%i
	expect status 204
	request DELETE /bkt/copy
	expect status 204
END
none_is_left() { [ "$(disk packed_units)" = 0 ] && [ "$(disk packed_objects)" = 0 ]; }
wait_for 60 none_is_left
stop_daemon
