#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An erasure-coded data pool without overwrites: objects of all kinds of sizes, in one piece and in parts, are whole; what a pool cannot take
# is said at the start; a pool that has something in it is no place for a store (exit 78).
MORE=''
. "$(dirname "$0")/lib.sh"
own_cluster OSDS=3
ceph osd erasure-code-profile set k2 k=2 m=1 crush-failure-domain=osd
ceph osd erasure-code-profile set odd k=2 m=1 crush-failure-domain=osd stripe_unit=12288
ceph osd pool create gantry.ec 16 16 erasure k2
ceph osd pool create gantry.odd 16 16 erasure odd
write_config
sed -i 's/^rados: { /rados: { data_pool: gantry.ec, /' "$T/gantryd.yaml"
format_store
daemon_run
make_buckets
for n in 0 1 255 256 257 4095 4096 65535 65536 65537 1048575 1048576 1048577 4194303 4194304 4194305 8388608 13000001; do
	head -c "$n" /dev/urandom >"$T/f.$n"
	assert_status PUT "/bkt/f.$n" 200 -T "$T/f.$n"
	nic "$BUILD/gantry" --require-rdma put "$T/f.$n" "$URL_S3/bkt/r.$n" >"$T/out" 2>&1 || [ "$n" = 0 ] || fail "put of $n by RDMA: $(cat "$T/out")"
done
for f in "$T"/f.*; do
	n=${f##*.}
	curl -sS "$URL_S3/bkt/f.$n" | cmp - "$f" || fail "$n bytes"
	[ "$n" = 0 ] || curl -sS "$URL_S3/bkt/r.$n" | cmp - "$f" || fail "$n bytes by RDMA"
	[ "$n" -lt 100 ] || assert_eq "$(curl -sS -r 77-99 "$URL_S3/bkt/f.$n" | cmp - <(tail -c +78 "$f" | head -c 23) && echo same)" same "a range of $n"
done
# in parts
id=$(curl -sS -X POST "$URL_S3/bkt/parts?uploads" | sed -n 's:.*<UploadId>\(.*\)</UploadId>.*:\1:p')
list=
for p in 1 2; do
	e=$(curl -sS -D - -o /dev/null -T "$T/f.8388608" "$URL_S3/bkt/parts?partNumber=$p&uploadId=$id" | tr -d '\r' | sed -n 's/^etag: //Ip')
	list="$list<Part><PartNumber>$p</PartNumber><ETag>$e</ETag></Part>"
done
curl -sS -d "<CompleteMultipartUpload>$list</CompleteMultipartUpload>" "$URL_S3/bkt/parts?uploadId=$id" | grep -q '<ETag>' || fail "complete"
curl -sS "$URL_S3/bkt/parts" | cmp - <(cat "$T/f.8388608" "$T/f.8388608") || fail "parts"
assert_status PUT "/bkt/copy" 200 -H 'x-amz-copy-source: /bkt/f.13000001' -H 'content-length: 0'
curl -sS "$URL_S3/bkt/copy" | cmp - "$T/f.13000001" || fail "a copy"
# overwritten, deleted; and one OSD of three may be gone for reads
assert_status PUT /bkt/f.4194305 200 -T "$T/f.65537"
assert_status DELETE /bkt/f.1 204
"$ROOT/tests/rados/rados-one" kill "$CLUSTER" 2 >>"$T/ceph.log" 2>&1
reads() { curl -sS -m 10 "$URL_S3/bkt/f.8388608" | cmp -s - "$T/f.8388608"; }
wait_for 60 reads
"$ROOT/tests/rados/rados-one" start "$CLUSTER" 2 >>"$T/ceph.log" 2>&1
takes() { [ "$(status_of PUT /bkt/after -T "$T/f.4194305")" = 200 ]; }
wait_for 60 takes
stop_daemon
fsck || fail "fsck: $(cat "$T/fsck")"

# ---- not empty: another store, or something else
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --format >"$T/out" 2>&1
assert_eq "$?" 78 "--format over a store: $(cat "$T/out")"
grep -q 'pool gantry.meta: not empty' "$T/out" || fail "$(cat "$T/out")"
sed -i 's/namespace: "[^"]*"/namespace: "other"/' "$T/gantryd.yaml"
echo x | rados -p gantry.ec put foreign -
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --format >"$T/out" 2>&1
assert_eq "$?" 78 "--format over what is foreign: $(cat "$T/out")"
grep -q 'pool gantry.ec: not empty' "$T/out" || fail "$(cat "$T/out")"
# A store that is there, and another one's data pool: still, nothing is lost.
sed -i 's/namespace: "[^"]*"/namespace: "third"/; s/data_pool: gantry.ec/data_pool: gantry.odd/' "$T/gantryd.yaml"
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --format >"$T/out" 2>&1 || fail "--format: $(cat "$T/out")"
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" >"$T/out" 2>&1
assert_eq "$?" 78 "a stripe of 24 KiB: $(cat "$T/out")"
grep -q 'pool gantry.odd: its stripe of 24576 bytes does not divide 65536' "$T/out" || fail "$(cat "$T/out")"
