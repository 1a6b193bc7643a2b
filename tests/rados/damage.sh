#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Bytes that were changed behind the gateways' backs, in a data object, its trailer, a record, a list of parts, and in small objects: never
# served, 500; the scrub finds and names them, and the rest goes on.  What a damaged list of parts names is nobody's garbage.
MORE=''
. "$(dirname "$0")/lib.sh"
start_daemon
head -c 9000000 /dev/urandom >"$T/big"
head -c 200000 /dev/urandom >"$T/small"
object_of() { rados -p gantry.data ls | sort >"$T/now"; comm -13 "$T/before" "$T/now"; }
put() { # the data objects that it made are in $made
	rados -p gantry.data ls | sort >"$T/before"
	assert_status PUT "/bkt/$1" 200 -T "$2"
	made=$(object_of)
}
# Changes one byte of a data object, or of another pool's, at an offset.
flip() {
	local pool=${3:-gantry.data}
	rados -p "$pool" get "$1" "$T/obj"
	/usr/bin/python3 - "$T/obj" "$2" <<-'END'
		import sys
		f = open(sys.argv[1], "r+b")
		at = int(sys.argv[2]) if int(sys.argv[2]) >= 0 else f.seek(0, 2) + int(sys.argv[2])
		f.seek(at)
		b = f.read(1)
		f.seek(at)
		f.write(bytes([b[0] ^ 1]))
	END
	dd if="$T/obj" of="$T/byte" bs=1 skip=$(($2 >= 0 ? $2 : $(stat -c %s "$T/obj") + $2)) count=1 2>/dev/null
	rados -p "$pool" put "$1" "$T/byte" --offset $(($2 >= 0 ? $2 : $(stat -c %s "$T/obj") + $2))
	rados -p "$pool" get "$1" "$T/obj2"
	assert_same "$T/obj" "$T/obj2" "the byte of $1 was not written"
}
served() { [ "$(curl -sS -o "$T/out" -w '%{http_code}' "$URL_S3/bkt/$1")" = 200 ] && cmp -s "$T/out" "$2"; }
whole() { served "$1" "$2" || fail "$1 is not whole"; }
broken() {
	local code
	code=$(curl -s -o "$T/out" -w '%{http_code}' "$URL_S3/bkt/$1")
	if [ "$code" = 200 ]; then
		# The reply had begun: it is cut off in front of what is not right.
		cmp -s -n "$(stat -c %s "$T/out")" "$T/out" "$2" || fail "$1: wrong bytes were served"
		[ "$(stat -c %s "$T/out")" -lt "$(stat -c %s "$2")" ] || fail "$1: served whole"
	else
		assert_eq "$code" 500 "GET of $1"
	fi
}
# The first 6000000 bytes of $T/big and the others: an object of two parts.
put_parts() { # the data objects of its second part are in $made
	local up n e xml=''
	up=$(curl_s3 "/bkt/$1?uploads" -X POST | sed -n 's:.*<UploadId>\(.*\)</UploadId>.*:\1:p')
	for n in 1 2; do
		rados -p gantry.data ls | sort >"$T/before"
		e=$(header_of etag "/bkt/$1?partNumber=$n&uploadId=$up" -T "$T/part$n")
		made=$(object_of)
		xml="$xml<Part><PartNumber>$n</PartNumber><ETag>$e</ETag></Part>"
	done
	curl_s3 "/bkt/$1?uploadId=$up" -d "<CompleteMultipartUpload>$xml</CompleteMultipartUpload>" | grep -q '<ETag>' || fail "complete $1"
}
maps() { rados -p gantry.meta ls | grep '^map' | sort; }
head -c 6000000 "$T/big" >"$T/part1"
tail -c +6000001 "$T/big" >"$T/part2"
damaged=''
put_parts listed
flip "$(sed -n 1p <<<"$made")" 70000
damaged="$damaged $(sed -n 1p <<<"$made")"

# ---- objects of many parts have their list in an object of its own; from a gateway for which two are many
stop_daemon
NO_NIC=1 BUILD=$BUILD/faults daemon_run -o rdma.devices=none
put_parts map_whole
put_parts map_data
flip "$(sed -n 1p <<<"$made")" 70000
damaged="$damaged $(sed -n 1p <<<"$made")"
before=$(maps)
assert_eq "$(wc -l <<<"$before")" 2 "lists of parts"
put_parts map
map=$(comm -13 <(echo "$before") <(maps))
# The id of the second part's data: the list names another object's instead.
put neighbour "$T/small"
theirs=$made
put_parts map_garbage
garbage_map=$(comm -13 <(echo "$before") <(maps) | grep -v "^$map$")
flip "$map" 30 gantry.meta
# The other list names the neighbour's data as that of its second part.
rados -p gantry.meta get "$garbage_map" "$T/list"
/usr/bin/python3 - "$T/list" "$(sed -n 1p <<<"$made")" "$theirs" <<-'END'
	import struct, sys
	old, new = (struct.pack("<IQ", *[int(n, 16) for n in name.split(".")[:2]]) for name in sys.argv[2:])
	b = open(sys.argv[1], "rb").read()
	assert b.count(old) == 1
	open(sys.argv[1], "wb").write(b.replace(old, new))
END
rados -p gantry.meta put "$garbage_map" "$T/list"
stop_daemon
daemon_run
whole map_whole "$T/big"
for k in listed map_data; do broken $k "$T/big"; done
for k in map map_garbage; do assert_status GET /bkt/$k 500; done
# What replaced it has no say in whose data goes.
assert_status PUT /bkt/map_garbage 200 -T "$T/small"
map_gone() { ! maps | grep -qx "$garbage_map"; }
wait_for 40 map_gone
whole neighbour "$T/small"
wait_for 60 grep -q "the list of parts $garbage_map is damaged: the parts' data stays" "$T/daemon.log"
put good "$T/big"
put data "$T/big"
damaged="$damaged $(sed -n 2p <<<"$made")"
flip "$(sed -n 2p <<<"$made")" 100000
put trailer "$T/big"
flip "$(sed -n 1p <<<"$made")" -20
damaged="$damaged $(sed -n 1p <<<"$made")"
put first "$T/big"
flip "$(sed -n 1p <<<"$made")" 5
damaged="$damaged $(sed -n 1p <<<"$made")"
put little "$T/small"
flip "$made" 70000
damaged="$damaged $made"
put gone "$T/small"
rados -p gantry.data rm "$made"
damaged="$damaged $made"
assert_status PUT /bkt/record 200 -T "$T/small"
assert_status PUT /bkt/inline 200 -d hello
for k in record inline; do
	for s in $(rados -p gantry.meta ls | grep '^idx'); do
		rados -p gantry.meta listomapkeys "$s" | grep -qx "o$k" || continue
		rados -p gantry.meta getomapval "$s" "o$k" "$T/rec" >/dev/null
		/usr/bin/python3 -c 'import sys; b = bytearray(open(sys.argv[1], "rb").read()); b[len(b) // 2] ^= 4; open(sys.argv[1], "wb").write(b)' "$T/rec"
		rados -p gantry.meta setomapval "$s" "o$k" --input-file "$T/rec"
	done
done
broken data "$T/big"
broken trailer "$T/big"
assert_status GET /bkt/first 500
broken little "$T/small"
assert_status GET /bkt/gone 500
assert_status GET /bkt/record 500
assert_status GET /bkt/inline 500
whole good "$T/big"
raw <<-END
	window w 9000000
	request GET /bkt/first x-amz-rdma-token:@w
	expect status 500
	request GET /bkt/data x-amz-rdma-token:@w
	expect status 500
	request GET /bkt/trailer x-amz-rdma-token:@w
	expect status 500
END
# ---- the scrub finds what it can read records of, and names it
lines=$(wc -l <"$T/daemon.log")
curl -sS --unix-socket "$T/admin.sock" -X POST http://x/control/scrub >"$T/answer"
over() { [ "$(metric gantry_scrub_walks_total)" -ge 1 ] && [ "$(metric gantry_scrub_running)" = 0 ]; }
wait_for 60 over
found() { tail -n +$((lines + 1)) "$T/daemon.log" >"$T/found"; grep -q "scrub: .* bytes read in" "$T/found"; }
wait_for 60 found
assert_eq "$(grep -c 'scrub: bucket bkt, version .* do not match their checksums' "$T/found")" 10 "objects that the scrub names"
assert_eq "$(grep -c "the record of 'bkt/\(record\|inline\)' is damaged" "$T/found")" 2 "records that the scrub names"
assert_eq "$(grep -c "the list of parts of 'bkt/map' is damaged" "$T/found")" 1 "lists of parts that the scrub names"
[ "$(metric gantry_scrub_damaged_objects)" = 10 ] || fail "damaged: $(metric gantry_scrub_damaged_objects)"
assert_eq "$(curl_s3 '/bkt?list-type=2' | grep -o '<Key>' | wc -l)" 14 "a list with damaged records"
for o in $damaged; do
	grep -q "data object $o is \(damaged\|missing\)" "$T/found" || fail "the scrub does not name $o: $(cat "$T/found")"
done
# ---- replaced, all is well
for k in data trailer first little gone listed map_data; do
	assert_status PUT "/bkt/$k" 200 -T "$T/small"
	whole "$k" "$T/small"
done
assert_status DELETE /bkt/record 500
# ---- fsck names records that are damaged, of a part of an upload with the upload, and says how much a repair removes
up=$(curl_s3 '/bkt/parted?uploads' -X POST | sed -n 's:.*<UploadId>\(.*\)</UploadId>.*:\1:p')
put "parted?partNumber=7&uploadId=$up" "$T/small"
part=$made
row=p${up: -32}00007
for s in $(rados -p gantry.meta ls | grep '^idx'); do
	rados -p gantry.meta listomapkeys "$s" | grep -qx "$row" || continue
	rados -p gantry.meta getomapval "$s" "$row" "$T/rec" >/dev/null
	/usr/bin/python3 -c 'import sys; b = bytearray(open(sys.argv[1], "rb").read()); b[len(b) // 2] ^= 4; open(sys.argv[1], "wb").write(b)' "$T/rec"
	rados -p gantry.meta setomapval "$s" "$row" --input-file "$T/rec"
done
# What the gateway has written last counts as under way until the gateway has said that it is not.
part_is_listed() { ! fsck && grep -qx "data object $part has no owner" "$T/fsck"; }
wait_for 60 part_is_listed
for k in record inline map; do grep -q "bucket bkt: the record of '$k' is damaged" "$T/fsck" || fail "fsck: $(cat "$T/fsck")"; done
grep -qx "bucket bkt: the record of part 7 of an upload of 'parted', id ${up: -32} is damaged" "$T/fsck" || fail "a part of an upload: $(cat "$T/fsck")"
grep -qx 'lost or dropped: 3 objects and 1 part of an upload' "$T/fsck" || fail "the sum: $(cat "$T/fsck")"
unnamed=$(grep -c ' has no owner$' "$T/fsck")
[ "$unnamed" -gt 2 ] || fail "the data of damaged records has no owner: $(cat "$T/fsck")"
bytes=$(sed -n "s/^named by no record: $unnamed objects in the pools, \([0-9]*\) bytes\$/\1/p" "$T/fsck")
# The data of two objects and a part at least.
[ "${bytes:-0}" -ge 9400000 ] || fail "the bytes that no record names: $(cat "$T/fsck")"
# Without an answer it lists, and removes nothing.
rc=0
fsck --repair </dev/null || rc=$?
assert_eq "$rc" 2 "a repair without an answer: $(cat "$T/fsck")"
grep -qx "3 objects and 1 part of an upload are lost, of 4 that are listed; $unnamed objects in the pools, $bytes bytes, that no record names, are removed; last resort: type yes, or use --yes" "$T/fsck" ||
	fail "the question: $(cat "$T/fsck")"
for k in record inline map; do grep -q "bucket bkt: the record of '$k' is damaged" "$T/fsck" || fail "it lists: $(cat "$T/fsck")"; done
! fsck || fail "a repair without an answer repaired: $(cat "$T/fsck")"
fsck --repair --yes || fail "--repair: $(cat "$T/fsck")"
fsck || fail "after the repair: $(cat "$T/fsck")"
whole map_whole "$T/big"
for k in record inline map; do
	assert_status GET "/bkt/$k" 404
	assert_status PUT "/bkt/$k" 200 -T "$T/small"
	whole "$k" "$T/small"
done

whole good "$T/big"
assert_alive
stop_daemon
fsck || fail "at the end: $(cat "$T/fsck")"
# On a terminal the check shows how far it is, also while the cluster does not answer.
for o in "$CLUSTER"/osd.*.pid; do kill -STOP "$(cat "$o")"; done
nic /usr/bin/python3 "$ROOT/tests/system/on_terminal.py" "$T/screen" 200 "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" &
checks=$!
is_on_screen() { tr '\r' '\n' <"$T/screen" | grep -qE '[0-9]+ records.*gantry.meta reads the index'; }
wait_for 60 is_on_screen
for o in "$CLUSTER"/osd.*.pid; do kill -CONT "$(cat "$o")"; done
wait "$checks" || fail "--fsck on a terminal: $(cat "$T/fsck" "$T/screen")"
