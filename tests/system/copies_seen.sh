#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is said of a bucket with two copies: nothing where there is none; how many objects have one copy while a disk is away, which disk that is, and
# how far copying is when it is back, in health, metrics, /status, gantry top, status, disk status and doctor; the disk that is needed. Bytes that
# one disk has lost are read from the other one, and one scrub mends all of them.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' DISKS=3 DISK_SIZE=256MiB BUCKETS='plain'
MORE='log: { access: false }'
KEYS=40
G=$BUILD/gantryd
status() { curl_admin /status | jq -r ".store.copies | $1"; }
health() { curl_admin /healthz | jq -r '.reasons[].text'; }
codes() { curl_admin /healthz | jq -r '.reasons[].code'; }
admin() { gantry --admin "$T/admin.sock" "$@"; }
configure() { # what store: says besides
	{
		sed '/^store:/,$d' "$T/first.yaml"
		echo "store:"
		printf '  %s\n' "$@"
		sed '1,/^store:/d' "$T/first.yaml"
	} >"$T/gantryd.yaml"
}
uuid_of() { curl_admin /disks | json uuid "$1"; }
put_all() { curl -sS --fail -Z --parallel-max 8 -X PUT --data-binary @"$T/body" -o /dev/null "$URL_S3/$1" 2>>"$T/curl" || fail "PUTs: $1"; }
# How many of KEYS objects answer each status.
statuses() { curl -sS -o /dev/null -w '%{http_code}\n' "$URL_S3/two/k[1-$KEYS]" | sort | uniq -c | awk '{ printf "%s%s:%s", n++ ? " " : "", $2, $1 }'; }
exposed() { metric gantry_copies_exposed_objects; }
none_exposed() { [ "$(exposed)" = 0 ] && [ "$(metric gantry_copies_exposed_bytes)" = 0 ]; }
is_healing() { [ "$(metric gantry_copies_healing)" = 1 ]; }
is_well() { [ "$(curl_admin /healthz | json status)" = ok ]; }
assert_has() { grep -qE -- "$2" <<<"$1" || fail "$3: no $2 in: $1"; }
assert_lacks() { ! grep -qE -- "$2" <<<"$1" || fail "$3: $2 in: $1"; }

start_daemon
cp "$T/gantryd.yaml" "$T/first.yaml"
bytes pattern:1 50000 >"$T/body"

# ---- where there is none, nothing is said ----
put_all 'plain/k[1-5]'
assert_eq "$(curl_admin /status | jq '.store | has("copies")')" false
assert_eq "$(metric gantry_copies_objects) $(exposed)" "0 0"
admin top --count 1 --interval 0.1 >"$T/said" || fail "gantry top"
assert_lacks "$(<"$T/said")" '^copies' "gantry top"
assert_lacks "$(admin disk status)" ' have (one copy|two copies)' "gantry disk status"

# ---- all is well ----
gantry mb "$URL_S3/two" --copies 2 || fail "gantry mb --copies 2"
put_all "two/k[1-$KEYS]"
assert_eq "$(metric gantry_copies_objects) $(metric gantry_copies_bytes) $(exposed)" "$KEYS $((KEYS * 50000)) 0"
assert_eq "$(status '[.objects, .bytes, .exposed_objects, .unreachable_slots, .healing, (.away | length), (.needed | length)] | join(" ")')" \
	"$KEYS $((KEYS * 50000)) 0 0 false 0 0"
is_well || fail "$(health)"
assert_has "$(admin status)" "^copies +$KEYS objects \\(.*\\) have two copies" "gantry status"
assert_lacks "$(admin top --count 1 --interval 0.1)" '^copies' "gantry top"
U0=$(uuid_of 0) U1=$(uuid_of 1)
stop_daemon

# ---- bytes of one disk are spoiled: they are read from the other one, and written anew ----
for f in "$T"/disk0/seg-*; do dd if=/dev/zero of="$f" bs=64K count=$(($(stat -c %s "$f") / 65536)) conv=notrunc status=none || fail "dd $f"; done
daemon_run
seconds() { metric gantry_copies_second_reads_total; }
repaired() { metric gantry_copies_repaired_total; }
right() {
	local i
	for i in $(seq 1 $KEYS); do curl_s3 "/two/k$i" | cmp - "$T/body" || fail "two/k$i"; done
}
assert_eq "$(seconds) $(repaired)" "0 0"
right
N=$(seconds)
[ "$N" -gt 0 ] && [ "$N" -lt "$KEYS" ] || fail "$N of $KEYS objects were read from the other copy"
assert_eq "$(statuses)" "200:$KEYS"
# Whoever read it has it written anew behind; then it is read where it was.
whole() { N=$(seconds); right; [ "$(seconds)" = "$N" ]; }
wait_for 60 whole
[ "$(repaired)" -gt 0 ] || fail "nothing was written anew"
# What it has of others' second copies nobody reads but the scrub, which finds all of it in one walk; of what has one copy nobody has the bytes.
put_all 'plain/k[1-5]'
N=$(repaired)
curl -sS --fail --unix-socket "$T/admin.sock" -X POST http://gantryd/control/scrub -o "$T/said" || fail "scrub: $(<"$T/said")"
walks() { [ "$(metric gantry_scrub_walks_total)" = 1 ]; }
wait_for 60 walks
[ "$(metric gantry_scrub_errors_total)" -gt 0 ] || fail "the scrub found nothing"
assert_eq "$(repaired)" $((N + $(metric gantry_scrub_errors_total))) "objects that were written anew"
stop_daemon
"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 || fail "--fsck: $(<"$T/said")"

# ---- a disk is away ----
mv "$T/disk1" "$T/away"
configure "accept_missing: [\"$U1\"]"
daemon_run
assert_eq "$(statuses)" "200:$KEYS"
N=$(exposed)
[ "$N" -gt 0 ] && [ "$N" -lt "$KEYS" ] || fail "$N of $KEYS objects have one copy"
assert_eq "$(metric gantry_copies_exposed_bytes) $(metric gantry_copies_objects) $(metric gantry_copies_disks_away)" "$((N * 50000)) $KEYS 1"
is_well && fail "a disk is away, and health is well"
assert_eq "$(curl_admin /readyz -o /dev/null -w '%{http_code}')" 200
assert_has "$(health)" "^$N objects \\($((N * 50000)) bytes\\) have one copy: disk ${U1::8} $T/disk1 is away, and another takes its place in [0-9]+ min\$" health
assert_has "$(codes)" '^one_copy$' codes
assert_has "$(codes)" '^disk_missing$' codes
assert_eq "$(status '[.exposed_objects, .exposed_bytes, .away[0].disk, .away[0].uuid, (.away[0].replaced_in_seconds > 1000), .healing] | join(" ")')" \
	"$N $((N * 50000)) ${U1::8} $U1 true false"
assert_has "$(admin top --count 1 --interval 0.1)" "^copies +$N objects \\(.*\\) have one copy, away: disk ${U1::8} $T/disk1\$" "gantry top"
admin status >"$T/said" && fail "gantry status ends well"
assert_has "$(<"$T/said")" "^copies +$N objects .* have one copy, away: disk ${U1::8} $T/disk1" "gantry status"
assert_has "$(admin disk status)" "^$N objects .* have one copy, away: disk ${U1::8} $T/disk1" "gantry disk status"
assert_has "$(admin doctor 2>&1 || true)" "copies +$N objects .* have one copy, away: disk ${U1::8} $T/disk1" "gantry doctor"
# What is written now has one copy, too; what is replaced or goes counts as what it is.
put_all "two/new[1-$KEYS]"
M=$(exposed)
[ "$M" -gt "$N" ] || fail "$M after $N objects have one copy"
put_all "two/new[1-$KEYS]"
assert_eq "$(exposed) $(metric gantry_copies_exposed_bytes)" "$M $((M * 50000))"
stop_daemon

# ---- it is back: what it lacks is copied, slowly at first ----
mv "$T/away" "$T/disk1"
configure 'move_rate: 1'
daemon_run
wait_for 60 is_healing
assert_eq "$(metric gantry_copies_disks_away)" 0
assert_has "$(health)" '^[0-9]+ objects \([0-9]+ bytes\) have one copy and are being copied, [0-9]+ of about [0-9]+ bytes' health
assert_has "$(codes)" '^one_copy$' codes
[ "$(metric gantry_copies_to_heal_bytes)" -gt 0 ] || fail "nothing is to be copied"
assert_has "$(admin top --count 1 --interval 0.1)" '^copies .* have one copy, being copied: .* of about ' "gantry top"
assert_eq "$(status .healing)" true
# gantry disk status --wait shows it on a terminal.
/usr/bin/python3 "$ROOT/tests/system/on_terminal.py" "$T/screen" 240 "$BUILD/gantry" --admin "$T/admin.sock" disk status --wait >"$T/waits" 2>&1 &
waits=$!
is_on_screen() { tr '\r' '\n' <"$T/screen" | grep -qE '[0-9.]+ ([KM]i)?B of about [0-9.]+ [KM]iB.*: second copies are made'; }
wait_for 60 is_on_screen
kill_daemon
wait "$waits" && fail "disk status --wait ends well without a daemon: $(<"$T/waits")"

# ---- the disk that has all is away: it is needed ----
mv "$T/disk0" "$T/away"
configure "accept_missing: [\"$U0\"]" 'move_rate: 1'
daemon_run
[ "$(metric gantry_copies_unreachable_slots)" -gt 0 ] || fail "everything can be reached"
assert_has "$(health)" "^disk ${U0::8} $T/disk0 is needed: of keys with two copies no other disk has all in [0-9]+ of 4096 slots, which answer 503\$" health
assert_has "$(codes)" '^disk_needed$' codes
assert_eq "$(curl_admin /readyz -o /dev/null -w '%{http_code}')" 200
assert_eq "$(status '.needed | map(.disk) | join(" ")')" "${U0::8}"
assert_has "$(admin top --count 1 --interval 0.1)" "^copies .*; needed for what only it has: disk ${U0::8} $T/disk0\$" "gantry top"
assert_match "$(statuses)" '503:[0-9]+$' "none answers 503"
stop_daemon

# ---- all are there: all is well again ----
mv "$T/away" "$T/disk0"
configure 'move_rate: 1'
daemon_run
sed -i '/move_rate/d' "$T/gantryd.yaml"
curl -sS --fail --unix-socket "$T/admin.sock" -X POST http://gantryd/control/reload -o "$T/said" || fail "reload: $(<"$T/said")"
wait_for 60 none_exposed
wait_for 60 is_well
assert_eq "$(metric gantry_copies_objects) $(metric gantry_copies_bytes)" "$((2 * KEYS)) $((2 * KEYS * 50000))"
assert_eq "$(metric gantry_copies_unreachable_slots) $(metric gantry_copies_healing)" "0 0"
assert_eq "$(statuses)" "200:$KEYS"
assert_has "$(admin disk status)" "^$((2 * KEYS)) objects .* have two copies" "gantry disk status"
curl_admin /metrics >"$T/metrics"
promtool check metrics <"$T/metrics" || fail "promtool check metrics"
stop_daemon
"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 || fail "--fsck: $(<"$T/said")"
