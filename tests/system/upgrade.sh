#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store whose superblocks have a format version that this gantryd does not read, an older and a newer one: a start, --check-config,
# --upgrade, --fsck and --format refuse it with one line that names the version, and write nothing. With the right number all of it is
# served. --upgrade of a current store says so and writes nothing. (tests/unit/extent/test_upgrade makes the step itself.)
. "$(dirname "$0")/lib.sh"

G=$BUILD/gantryd NO_NIC=1 RDMA='{ devices: none }' DISK_SIZE=64MiB
write_config
sum() { (cd "$T/disk0" && stat -c '%n %s %y' ./* && cat ./*) | md5; }
said() { grep -qF "$1" "$T/said" || fail "not said: $1: $(<"$T/said")"; }
# renumber N: both superblocks get format version N, and the CRC64-NVME over the whole copy that goes with it.
renumber() {
	/usr/bin/python3 - "$1" "$T/disk0/super" "$T/disk0/super2" <<-'PY'
		import struct, sys
		table = []
		for i in range(256):
		    c = i
		    for _ in range(8):
		        c = c >> 1 ^ (0x9A6C9329AC4BC9B5 if c & 1 else 0)
		    table.append(c)
		for path in sys.argv[2:]:
		    with open(path, "r+b") as f:
		        b = bytearray(f.read(65536))
		        b[8:12] = struct.pack("<I", int(sys.argv[1]))
		        b[16:24] = bytes(8)
		        c = 0xFFFFFFFFFFFFFFFF
		        for x in b:
		            c = table[(c ^ x) & 255] ^ c >> 8
		        b[16:24] = struct.pack("<Q", c ^ 0xFFFFFFFFFFFFFFFF)
		        f.seek(0)
		        f.write(b)
	PY
}

"$G" -c "$T/gantryd.yaml" --format >"$T/said" 2>&1 || fail "--format: $(<"$T/said")"
daemon_run
assert_status PUT /alpha 200
seq 1 2000 >"$T/object"
assert_status PUT /alpha/small 200 --data-binary "@$T/object"
stop_daemon

# ---- the current version ----
before=$(sum)
"$G" -c "$T/gantryd.yaml" --upgrade >"$T/said" 2>&1 || fail "--upgrade: $(<"$T/said")"
said "$T/disk0: is of format 3 already"
assert_eq "$(sum)" "$before" "--upgrade of a current store has changed it"

# ---- others ----
for version in 2 9; do
	renumber "$version"
	before=$(sum)
	for act in '' --check-config --upgrade --fsck --format; do
		rc=0
		# shellcheck disable=SC2086
		timeout 60 "$G" -c "$T/gantryd.yaml" $act >"$T/said" 2>&1 || rc=$?
		[ "$rc" != 0 ] || fail "gantryd $act took format $version: $(<"$T/said")"
		[ "$act" = --format ] || said "was made by another version of Gantry (its format is $version, and this one reads 3 to 5)"
		assert_eq "$(sum)" "$before" "gantryd $act has changed a store of format $version"
	done
done

# ---- the right number again ----
renumber 3
daemon_run
assert_eq "$(curl_s3 /alpha/small | md5)" "$(seq 1 2000 | md5)"
stop_daemon
"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 || fail "--fsck: $(<"$T/said")"
