#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The gantry command and libgantry against the real daemon: both dialects, both ways, and what they say about it.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
NICS=2
start_daemon
cd "$T" || exit 1

field() { json "$1" 0; }
rc_of() { "$@" >say 2>&1; echo $?; }

bytes pattern:1 5000001 >a
bytes pattern:2 70000000 >big
printf 'hello' >small
: >empty

for dialect in s3 scality; do
	opt='' url=$URL_S3/bkt
	[ $dialect = s3 ] || { opt=--scality url=$URL_SCAL; }
	for f in a big small; do
		assert_eq "$(gantry $opt --json --require-rdma put $f "$url/$f" | field path)" rdma "$dialect put $f"
		assert_eq "$(gantry $opt --json --require-rdma get "$url/$f" out | tee say | field path)" rdma "$dialect get $f"
		assert_same out $f
		rm -f out
	done
	gantry $opt -q put empty "$url/empty" || fail "$dialect put empty"
	gantry $opt -q get "$url/empty" out || fail "$dialect get empty"
	assert_same out empty
	assert_eq "$(gantry $opt --json head "$url/a" | field size)" 5000001
	gantry $opt -q put - "$url/piped" <a || fail "put from a pipe"
	gantry $opt get "$url/piped" - 2>say | cmp - a || fail "get to a pipe"
	# Over HTTP: the same objects, said as it is.
	assert_eq "$(gantry $opt --json --no-rdma get "$url/a" out | field path)" http
	assert_same out a
	assert_eq "$(rc_of gantry $opt --no-rdma --require-rdma put a "$url/a")" 4
	assert_match "$(<say)" "not by RDMA: RDMA is switched off"
	gantry $opt rm "$url/a" || fail "rm"
	assert_eq "$(rc_of gantry $opt get "$url/a" gone)" 3
	assert_eq "$(rc_of gantry $opt head "$url/a")" 3
	[ ! -e gone ] || fail "a failed get left a file"
done
assert_eq "$(find . -maxdepth 1 -name '.gantry-*' | wc -l)" 0 "temporary files"
assert_eq "$(rc_of gantry put)" 2
assert_eq "$(rc_of gantry put a ftp://x/y)" 2

# Plain S3 sees the same bytes, and the other way round.
curl_s3 /bkt/big | cmp - big || fail "curl got other bytes"
curl -sS --fail -T a "$URL_S3/bkt/c" || fail "curl put"
gantry -q --require-rdma get "$URL_S3/bkt/c" out || fail "get of what curl put"
assert_same out a

# CRC64NVME, end to end.
gantry -q --checksum --require-rdma put a "$URL_S3/bkt/sum" || fail "put with checksum"
assert_match "$(gantry --checksum get "$URL_S3/bkt/sum" out)" "checksum verified"
assert_eq "$(gantry --checksum --json get "$URL_S3/bkt/sum" out | field crc64nvme)" "$(crc64 a)"

# Names of many kinds, many at once.
mkdir -p in/sub out.d
for i in 1 2 3 4 5 6 7 8 9; do bytes pattern:$i $((i * 12345)) >"in/sub/f $i%+&.txt"; done
(cd in && find . -type f -printf '%P\n') >list
gantry -q --require-rdma -j 4 -C in mput list "$URL_S3/bkt/many" || fail mput
gantry -q --require-rdma -j 4 -C out.d mget list "$URL_S3/bkt/many" || fail mget
diff -r in out.d || fail "mput and mget changed files"

# A client whose ports are down has another; without any it says why and goes over HTTP.
softnicctl port mlx5_0 down || fail softnicctl
assert_match "$(gantry ports)" mlx5_1
softnicctl port mlx5_1 down || fail softnicctl
assert_match "$(gantry put a "$URL_S3/bkt/down")" "by HTTP .* not by RDMA: mlx5_. port 1 is not active"
softnicctl port mlx5_0 up && softnicctl port mlx5_1 up || fail softnicctl
wait_for 60 gantry -q --require-rdma put a "$URL_S3/bkt/up"

# A DC key that is not the server's: the transfer fails, HTTP brings the bytes, and the reason is told.
assert_match "$(gantry --dc-key 0x1234 get "$URL_S3/bkt/c" out)" "by HTTP .* not by RDMA: "
assert_same out a
assert_alive
stop_daemon
assert_eq "$(rc_of gantry get "$URL_S3/bkt/c" gone)" 1
[ ! -e gone ] || fail "a failed get left a file"
