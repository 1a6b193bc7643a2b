#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What --fsck says of damage on one disk of two: for each object whether the other disk has it whole, a sum, and a last line that is true. Damage in the log:
# the question of --repair begins with the objects that are lost, which are those with one copy, and after the repair all others are there, with two copies.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' DISKS=2 DISK_SIZE=256MiB BUCKETS=one CORES=1
MORE='log: { access: false }'
mkdir "$T/state"
export GANTRY_STORE_STATE_DIR=$T/state
KEYS=16
G=$BUILD/gantryd
code() { curl -sS -o /dev/null -w '%{http_code}' "$URL_S3/$1"; }
# flip FILE HEX...: turns over eight bytes at the first place with these bytes.
flip() {
	/usr/bin/python3 - "$1" "$2" <<-'END' || fail "flip $1"
		import mmap, sys
		with open(sys.argv[1], "r+b") as f:
		    m = mmap.mmap(f.fileno(), 0)
		    at = m.find(bytes.fromhex(sys.argv[2]))
		    if at < 0:
		        sys.exit(3)
		    m[at:at + 8] = bytes(255 - b for b in m[at:at + 8])
	END
}
body() { { printf 'object %s ' "$1"; bytes pattern:1 30000; } >"$T/body.$1"; }
hex() { printf %s "$1" | od -An -tx1 | tr -d ' \n'; }
has() { ! /usr/bin/python3 -c 'import sys; sys.exit(open(sys.argv[1], "rb").read().find(bytes.fromhex(sys.argv[2])) >= 0)' "$1" "$2"; }
fsck() { # STATUS OPTIONS...
	local rc=0
	"$G" -c "$T/gantryd.yaml" --fsck "${@:2}" >"$T/said" 2>&1 </dev/null || rc=$?
	assert_eq "$rc" "$1" "--fsck ${*:2}: $(<"$T/said")"
}
said() { grep -qx -- "$1" "$T/said" || fail "no line '$1' in: $(<"$T/said")"; }

start_daemon
gantry mb "$URL_S3/two" --copies 2 || fail "gantry mb --copies 2"
for i in $(seq "$KEYS"); do
	for b in one two; do
		body "$b-$i"
		curl -sS --fail -T "$T/body.$b-$i" -o /dev/null "$URL_S3/$b/k-$i-" || fail "PUT $b/k-$i-"
	done
done
curl -sS --fail --unix-socket "$T/admin.sock" -X POST 'http://x/control/settle?timeout=600' -o /dev/null
stop_daemon
fsck 0

# ---- the log ----
# The names in the damaged block are not known.
flip "$T/disk0/log" "$(hex 'k-9-')"
fsck 74
grep -q "^[0-9a-f]\{8\} $T/disk0: drops the writing of 'two/k-16-' (version [0-9]*): whole on [0-9a-f]\{8\} $T/disk1\$" "$T/said" || fail "what a repair drops: $(<"$T/said")"
! grep "drops the writing of 'two/" "$T/said" | grep -v ": whole on [0-9a-f]\{8\} $T/disk1\$" || fail "objects with two copies: $(<"$T/said")"
all=$(grep -c 'drops the writing of ' "$T/said") gone=$(grep -c "drops the writing of 'one/.*: no other disk has it whole\$" "$T/said")
[ "$all" -gt "$gone" ] && [ "$gone" -gt 1 ] || fail "$gone of $all: $(<"$T/said")"
said 'lost or dropped as well: an unknown number of objects, whose names cannot be read'
assert_eq "$(tail -n 1 "$T/said")" 'gantryd: fsck: the store is damaged, foreign, or not made yet: a start would be refused'
fsck 2 --repair
grep -q "^$gone objects ([0-9]* bytes) are lost, of $all that are listed, and those whose names cannot be read; last resort: type yes, or use --yes\$" "$T/said" || fail "the question: $(<"$T/said")"
grep -o "drops the writing of 'one/[^']*'" "$T/said" | sort -u >"$T/lost"
fsck 0 --repair --yes
grep -q 'the next start begins a scrub, which restores what another disk has whole' "$T/said" || fail "no scrub is announced: $(<"$T/said")"
daemon_run
for i in $(seq "$KEYS"); do
	curl_s3 "/two/k-$i-" | cmp - "$T/body.two-$i" || fail "two/k-$i-"
	want=200
	! grep -q "one/k-$i-'" "$T/lost" || want=404
	[ "$i" = 9 ] || assert_eq "$(code "one/k-$i-")" "$want" "one/k-$i-"
done
is_whole() { [ "$(curl_admin /status | jq '.store.copies | .exposed_objects == 0 and .objects == '"$KEYS")" = true ]; }
wait_for 60 is_whole
begun() { [ "$(metric gantry_scrub_walks_total)" = 1 ]; }
wait_for 60 begun
stop_daemon
fsck 0

# ---- bytes of objects: one in one copy, one in both, one of the only copy ----
flip_in() { local d; for d in $2; do ! has "$T/disk$d/seg-0000" "$(hex "object $1 ")" || flip "$T/disk$d/seg-0000" "$(hex "object $1 ")"; done; }
flip_in two-1 0
flip_in two-2 '0 1'
flip_in one-3 '0 1'
fsck 74
grep -q "^[0-9a-f]\{8\} $T/disk0: object 'two/k-1-' (version .* bytes): does not match its checksum: whole on [0-9a-f]\{8\} $T/disk1\$" "$T/said" || fail "damage of one copy: $(<"$T/said")"
assert_eq "$(grep -c "^[0-9a-f]\{8\} $T/disk.: object 'two/k-2-' .*: does not match its checksum: no other disk has it whole\$" "$T/said")" 2 "damage of both copies: $(<"$T/said")"
assert_eq "$(grep -c "^[0-9a-f]\{8\} $T/disk.: object 'one/k-3-' .*: no other disk has it whole\$" "$T/said")" 1 "damage of the only copy: $(<"$T/said")"
said "3 of [0-9]* objects are damaged (2 of them in all copies); the daemon restores 1 from their whole copies"
said 'remedy: write them again, or delete them; --repair does nothing for them, and loses no object'
assert_eq "$(tail -n 1 "$T/said")" 'gantryd: fsck: objects are damaged; the store itself is whole, and a start would serve it'
# A repair would drop nothing, so it does not ask.
fsck 74 --repair
daemon_run
curl_s3 /two/k-1- | cmp - "$T/body.two-1" || fail "the damaged copy was not read from the other disk"
rewritten() { grep -q 'an object of bucket two that was damaged was rewritten from its other copy' "$T/daemon.log"; }
wait_for 60 rewritten
! grep -q 'k-1-' "$T/daemon.log" || fail "a key is in the log: $(grep 'k-1-' "$T/daemon.log")"
for o in two/k-2- one/k-3-; do [ "$(code "$o")" = 500 ] || fail "$o is damaged, and was served"; done
for o in two-2 one-3; do curl -sS --fail -T "$T/body.$o" -o /dev/null "$URL_S3/${o%-*}/k-${o#*-}-" || fail "PUT $o"; done
stop_daemon
fsck 0
