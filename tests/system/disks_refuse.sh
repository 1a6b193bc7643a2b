#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `gantry disk drain` by path, by UUID and by its first digits, and not by a number; and what it says, and the control call answers, where the others have no room (507), and where
# it is the last one (409): exit 1, the sentence on standard error, and nothing moves.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' DISKS=3 DISK_SIZE=64MiB BUCKETS='bkt'
MORE='log: { access: false }'
disks() { curl_admin /disks | jq -r "$1"; }
states() { curl_admin /disks | json state; }
ended() { [ "$(curl_admin /control/disk/drain | json running)" = false ]; }
control() { # BODY: the status
	curl -sS --unix-socket "$T/admin.sock" -o "$T/body" -w '%{http_code}' -d "$1" http://gantryd/control/disk/drain
}
drain() { gantry --admin "$T/admin.sock" disk drain "$@" >"$T/out" 2>"$T/err"; }
refused() { # DISK STATUS SENTENCE
	local rc=0 were
	were=$(states)
	assert_eq "$(control "{\"disk\":\"$1\"}")" "$2" "$1: $(<"$T/body")"
	assert_match "$(jq -r .error "$T/body")" "$3"
	drain "$1" || rc=$?
	assert_eq "$rc,$(<"$T/out")" "1," "gantry disk drain $1"
	assert_match "$(<"$T/err")" "$3"
	assert_eq "$(states),$(ended && echo ended)" "$were,ended"
}
start_daemon

# ---- no room ----
head -c 1500000 /dev/urandom >"$T/one"
all() { curl -sS --fail -Z --parallel-max 4 -o /dev/null "$@" 2>>"$T/curl" || fail "curl $*: $(<"$T/curl")"; }
has_room() { [ "$(disks 'map(.free_bytes) | min')" -gt $((14 << 20)) ]; }
for ((nr = 0; nr < 30; nr++)); do
	has_room || break
	all -T "$T/one" "$URL_S3/bkt/k$nr-[1-8]"
done
has_room && fail "the disks do not become full"
# Half of what one has would go to the one that has least left.
refused "$(disks 'sort_by(.free_bytes)[1].disk')" 507 "there is no room: disk [0-9a-f]{8} $T/disk[0-2] would get [0-9]+ MiB and has [0-9]+ MiB left"

# ---- by digits and by UUID; the last one stays ----
all -X DELETE "$URL_S3/bkt/k[1-$((nr - 1))]-[1-8]"
DIGITS=$(curl_admin /disks | json disk 2)
assert_match "$DIGITS" '^[0-9a-f]{8}$'
goes() { drain "$DIGITS"; }
# The room comes back by and by.
wait_for 60 goes
assert_match "$(<"$T/out")" "^disk $DIGITS $T/disk2 is being drained"
wait_for 60 ended
assert_eq "$(states)" "serving serving drained"
refused "${DIGITS^^}" 409 'it is drained already, and may be pulled'
drain "$(curl_admin /disks | json uuid 1)" || fail "gantry disk drain UUID: $(<"$T/err")"
wait_for 60 ended
assert_eq "$(states)" "serving drained drained"
refused "$T/disk0" 409 'it is the last disk of the store'
for i in 1 8; do curl_s3 "/bkt/k0-$i" | cmp - "$T/one" || fail "what was put"; done
for disk in nowhere 0 "${DIGITS:0:7}"; do
	rc=0
	drain "$disk" || rc=$?
	assert_eq "$rc" 3 "gantry disk drain $disk"
	assert_match "$(<"$T/err")" 'no disk has this path, this UUID, or these first digits of it'
done
stop_daemon
