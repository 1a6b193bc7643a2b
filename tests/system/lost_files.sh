#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One file of a disk is removed: the start names it, and no key; --fsck lists the objects that are lost, --fsck --repair makes the file again, and the
# next start serves the rest, with room for new objects. In a bucket with two copies nothing is lost: the other copy is read, and restores the lost one.
# Parts of uploads in progress are treated as objects are: named by bucket, key, number and upload, looked for on the other disk, and restored.
. "$(dirname "$0")/lib.sh"
export GANTRY_STORE_STATE_DIR=$T/state
mkdir "$T/state"
NO_NIC=1 RDMA='{ devices: none }' DISKS=2 DISK_SIZE=256MiB BUCKETS='plain'
MORE='log: { access: false }'
KEYS=30
G=$BUILD/gantryd
code() { curl -sS -o /dev/null -w '%{http_code}' "$URL_S3/$1"; }
# begin BUCKET I: an upload of BUCKET/up-I in progress, with part I; its id is in $T/id-BUCKET-I.
begin() {
	curl_s3 "/$1/up-$2?uploads" -X POST | xml UploadId >"$T/id-$1-$2"
	curl -sS --fail -T "$T/body" -o /dev/null "$URL_S3/$1/up-$2?partNumber=$2&uploadId=$(<"$T/id-$1-$2")" || fail "part $2 of $1/up-$2"
}
complete() { # BUCKET I
	curl_s3 "/$1/up-$2?uploadId=$(<"$T/id-$1-$2")" -d "<CompleteMultipartUpload><Part><PartNumber>$2</PartNumber><ETag>\"$MD5\"</ETag></Part></CompleteMultipartUpload>" |
		grep -q '<ETag>' || fail "complete $1/up-$2"
}
put() { curl -sS --fail -X PUT --data-binary @"$T/body" -o /dev/null "$URL_S3/$1" || fail "PUT $1"; }

start_daemon
bytes pattern:1 300000 >"$T/body"
MD5=$(md5 "$T/body")
gantry mb "$URL_S3/two" --copies 2 || fail "gantry mb --copies 2"
put "{two,plain}/secret-[1-$KEYS]"
for i in $(seq "$KEYS"); do
	begin two "$i"
	begin plain "$i"
	[ $((i % 5)) != 0 ] || complete two "$i"
done
stop_daemon

rm "$T/disk0/seg-0000"
rc=0
"$G" -c "$T/gantryd.yaml" >"$T/said" 2>&1 || rc=$?
[ "$rc" != 0 ] || fail "the daemon served without a file"
grep -q "$T/disk0/seg-0000 is not there" "$T/said" || fail "the file is not named: $(<"$T/said")"
! grep -q secret "$T/said" || fail "a key is in the log: $(<"$T/said")"

rc=0
"$G" -c "$T/gantryd.yaml" --fsck >"$T/look" 2>&1 || rc=$?
assert_eq "$rc" 74 "exit status of --fsck"
[ ! -e "$T/disk0/seg-0000" ] || fail "--fsck changed the disk"
# Each line says whether the other disk has the object whole; the sums, and what a repair loses, are those of the lines.
grep -q "lost: object 'two/.*: whole on [0-9a-f]\{8\} $T/disk1\$" "$T/look" || fail "what is whole on the other disk: $(<"$T/look")"
! grep "lost: object 'two/" "$T/look" | grep -v ": whole on [0-9a-f]\{8\} $T/disk1\$" || fail "objects with two copies: $(<"$T/look")"
! grep "lost: object 'plain/" "$T/look" | grep -v ': no other disk has it whole$' || fail "objects with one copy: $(<"$T/look")"
all=$(grep -c 'lost: object ' "$T/look") whole=$(grep -c "lost: object .*: whole on [0-9a-f]\{8\} $T/disk1\$" "$T/look")
gone=$((all - whole))
[ "$whole" -gt 0 ] && [ "$gone" -gt 1 ] || fail "$whole of $all are whole: $(<"$T/look")"
# So do the lines of parts, which name the upload.
! grep 'lost: ' "$T/look" | grep -v "^[0-9a-f]\{8\} $T/disk0: lost: object '\|^[0-9a-f]\{8\} $T/disk0: lost: part [0-9]* of an upload of '\(two\|plain\)/up-[0-9]*', id [0-9a-f]* (version [0-9]*, 300000 bytes): " ||
	fail "a line without object or part: $(<"$T/look")"
! grep 'lost: part ' "$T/look" | grep "'two/" | grep -v ": whole on [0-9a-f]\{8\} $T/disk1\$" || fail "parts with two copies: $(<"$T/look")"
! grep 'lost: part ' "$T/look" | grep "'plain/" | grep -v ': no other disk has it whole$' || fail "parts with one copy: $(<"$T/look")"
all_parts=$(grep -c 'lost: part ' "$T/look") whole_parts=$(grep -c "lost: part .*: whole on [0-9a-f]\{8\} $T/disk1\$" "$T/look")
gone_parts=$((all_parts - whole_parts))
[ "$whole_parts" -gt 1 ] && [ "$gone_parts" -gt 1 ] || fail "$whole_parts of $all_parts parts are whole: $(<"$T/look")"
for b in two plain; do
	i=$(grep -o "'$b/up-[0-9]*" "$T/look" | head -n 1)
	i=${i##*-}
	id=$(<"$T/id-$b-$i")
	grep -q "lost: part $i of an upload of '$b/up-$i', id ${id: -32} (" "$T/look" || fail "part $i, upload $id of $b/up-$i: $(<"$T/look")"
done
sum() { echo "$1 objects and $2 parts of uploads, $((($1 + $2) * 300000)) bytes"; }
grep -qx "lost or dropped: $(sum $all $all_parts); whole on another disk: $(sum $whole $whole_parts); nowhere else: $(sum $gone $gone_parts)" "$T/look" ||
	fail "the sums: $(<"$T/look")"
assert_eq "$(tail -n 1 "$T/look")" 'gantryd: fsck: the store is damaged, foreign, or not made yet: a start would be refused'
# Without an answer, with another one, and with half a line it lists, and changes nothing.
(cd "$T/disk0" && cksum -- *) >"$T/before"
for answer in '' 'no\n' 'y\n' 'yes' 'yes please\n' '\n'; do
	rc=0
	printf %b "$answer" | "$G" -c "$T/gantryd.yaml" --fsck --repair >"$T/asked" 2>&1 || rc=$?
	assert_eq "$rc" 2 "exit status of a repair that was answered '$answer'"
	grep -o "lost: object '[^']*'" "$T/asked" | sort | cmp -s - <(grep -o "lost: object '[^']*'" "$T/look" | sort) || fail "not all is listed: $(<"$T/asked")"
	grep -qx "$gone objects and $gone_parts parts of uploads ($(((gone + gone_parts) * 300000)) bytes) are lost, of $((all + all_parts)) that are listed; last resort: type yes, or use --yes" "$T/asked" ||
		fail "the question does not begin with the loss: $(<"$T/asked")"
	(cd "$T/disk0" && cksum -- *) | cmp -s - "$T/before" || fail "the answer '$answer' changed the disk"
done
echo yes | "$G" -c "$T/gantryd.yaml" --fsck --repair >"$T/repaired" 2>&1 || fail "--fsck --repair: $(<"$T/repaired")"
grep -o "lost: object '[^']*'" "$T/look" | sort >"$T/a"
grep -o "lost: object '[^']*'" "$T/repaired" | sort -u >"$T/b"
assert_same "$T/a" "$T/b"
rc=0
"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 || rc=$?
assert_eq "$rc" 74 "--fsck after the repair: $(<"$T/said")"
grep -A1 "^$all of $((2 * KEYS + KEYS / 5)) objects and $all_parts parts of uploads are damaged ($((gone + gone_parts)) of them in all copies); the daemon restores $((whole + whole_parts)) from their whole copies\$" "$T/said" |
	grep -q '^remedy: write them again, or delete them; --repair does nothing for them' || fail "the sum and its remedy: $(<"$T/said")"
assert_eq "$(tail -n 1 "$T/said")" 'gantryd: fsck: objects are damaged; the store itself is whole, and a start would serve it'

daemon_run
lost=0
for i in $(seq "$KEYS"); do
	curl_s3 "/two/secret-$i" >"$T/back"
	assert_same "$T/body" "$T/back"
	want=200
	! grep -q "plain/secret-$i'" "$T/a" || want=500 lost=$((lost + 1))
	[ "$want" = 500 ] || curl_s3 "/plain/secret-$i" | cmp - "$T/body" || fail "plain/secret-$i"
	[ "$want" = 200 ] || [ "$(code "plain/secret-$i")" != 200 ] || fail "plain/secret-$i is lost, and was served"
done
[ "$lost" -gt 0 ] && [ "$lost" -lt "$KEYS" ] || fail "$lost of $KEYS objects with one copy are lost"
# Written again or deleted, they are objects as all others.
for i in $(seq "$KEYS"); do
	[ $((i % 2)) = 0 ] && put "plain/secret-$i" || curl -sS --fail -X DELETE "$URL_S3/plain/secret-$i"
done
# A part that is lost is uploaded again, and an upload can be aborted.
for i in $(seq "$KEYS"); do
	[ $((i % 2)) = 0 ] && curl -sS --fail -T "$T/body" -o /dev/null "$URL_S3/plain/up-$i?partNumber=$i&uploadId=$(<"$T/id-plain-$i")" && complete plain "$i" ||
		curl -sS --fail -X DELETE "$URL_S3/plain/up-$i?uploadId=$(<"$T/id-plain-$i")" || fail "the upload of plain/up-$i"
	[ $((i % 5)) != 0 ] || curl_s3 "/two/up-$i" | cmp - "$T/body" || fail "two/up-$i"
done
# The scrub that restores second copies begins by itself.
walks() { [ "$(metric gantry_scrub_walks_total)" = 1 ] && [ -z "$(ls "$T"/state/scrub-* 2>/dev/null)" ]; }
wait_for 60 walks
put plain/new
assert_alive
stop_daemon
# The parts of uploads in progress have two whole copies.
"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 || fail "--fsck after the scrub: $(<"$T/said")"
# Where nothing would be lost nobody is asked; with --yes neither.
"$G" -c "$T/gantryd.yaml" --fsck --repair </dev/null >"$T/said" 2>&1 || fail "a repair of a whole store: $(<"$T/said")"
rm "$T/disk1/log"
"$G" -c "$T/gantryd.yaml" --fsck --repair --yes </dev/null >"$T/said" 2>&1 || fail "--yes: $(<"$T/said")"
grep -q "written after the newest snapshot" "$T/said" || fail "the log is not named: $(<"$T/said")"
daemon_run
for i in $(seq "$KEYS"); do
	[ $((i % 5)) = 0 ] || complete two "$i"
	curl_s3 "/two/up-$i" | cmp - "$T/body" || fail "two/up-$i"
done
assert_alive
stop_daemon
"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 || fail "--fsck in the end: $(<"$T/said")"
