#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The scrub: on a clean store it reads everything and finds nothing; a byte flipped at rest is found before anybody asks for the
# object, whose GET then fails while the others are fine; it keeps to store.scrub_rate, stops when told to, and pauses in a drain.
. "$(dirname "$0")/lib.sh"
DISK_SIZE=256MiB
write_config
sed -i 's|^store:|store:\n  scrub_rate: 1GiB|' "$T/gantryd.yaml"
format_store
daemon_run
make_buckets

control() { curl -sS --max-time 30 -o "$T/answer" -w '%{http_code}' --unix-socket "$T/admin.sock" -X "$1" "http://x$2" "${@:3}"; }
scrub() { assert_eq "$(control POST /control/scrub "$@")" 200 "POST /control/scrub: $(<"$T/answer")"; }
# What GET /control/scrub says of a member that is a number or a word.
says() { curl_admin /control/scrub | sed -nE 's/.*"'"$1"'":"?([a-z0-9.]+).*/\1/p'; }
walks() { [ "$(metric gantry_scrub_walks_total)" -ge "$1" ]; }

bytes pattern:1 3000000 >"$T/one"
bytes pattern:2 3000000 >"$T/two"
bytes pattern:3 200 >"$T/three"
for k in one two three; do curl_s3 /bkt/$k -T "$T/$k" -o /dev/null || fail "PUT $k"; done

# ---- a clean store ----
assert_eq "$(says state)" idle "before"
assert_eq "$(says last_finished_unix_seconds)" null "before"
scrub
assert_match "$(<"$T/answer")" '^\{"started":true,"scrub":\{"state":"' "the answer"
wait_for 60 walks 1
assert_eq "$(metric gantry_scrub_objects_total)" 3 "objects"
assert_eq "$(metric gantry_scrub_bytes_total)" 6000200 "bytes"
assert_eq "$(metric gantry_scrub_errors_total)" 0 "errors"
assert_eq "$(metric gantry_scrub_damaged_objects)" 0 "damaged"
assert_eq "$(metric gantry_scrub_running)" 0 "running"
awk -v t="$(metric gantry_scrub_last_finished_timestamp_seconds)" 'BEGIN { exit !(t > 1e9) }' || fail "when it finished"
assert_match "$(curl_admin /status)" '"scrub":\{"state":"idle","bytes":6000200,"objects":3,"errors":0' "the status page"
wait_for 60 grep -q 'scrub: all was read: 3 objects and 6000200 bytes' "$T/daemon.log"

# ---- what it does not take ----
assert_eq "$(control POST /control/scrub -d '{"action":"now"}')" 400 "an action that it does not know"
assert_eq "$(control POST /control/scrub -d '{"bucket":"bkt"}')" 400 "a member that it does not take"
assert_eq "$(control DELETE /control/scrub)" 405 "DELETE"
assert_eq "$(curl -sS -o /dev/null -w '%{http_code}' -X POST "$URL_ADMIN/control/scrub")" 401 "over TCP without a token"
scrub -d '{"action":"stop"}'
assert_match "$(<"$T/answer")" '"stopped":false' "there is nothing to stop"

# ---- a byte flipped at rest ----
stop_daemon
/usr/bin/python3 - "$T/one" "$T"/disk0/seg-* <<'END' || fail "the object is in no segment"
import sys
whole = open(sys.argv[1], "rb").read()
for path in sys.argv[2:]:
    with open(path, "r+b") as f:
        data = f.read()
        at = data.find(whole[:4096])
        if at >= 0:
            f.seek(at + 2000000)
            b = f.read(1)
            f.seek(at + 2000000)
            f.write(bytes([b[0] ^ 1]))
            sys.exit(0)
sys.exit(1)
END
daemon_run
scrub
wait_for 60 walks 1
assert_eq "$(metric gantry_scrub_errors_total 'kind="crc"')" 1 "one object"
assert_eq "$(metric gantry_scrub_errors_total 'kind="io"')" 0 "the disk reads"
assert_eq "$(metric gantry_scrub_damaged_objects)" 1 "damaged"
assert_eq "$(says errors)" 1 "what GET says"
wait_for 60 grep -q 'scrub: bucket bkt, version [0-9]*, 3000000 bytes: bytes 1966080 to 2031615 do not match' "$T/daemon.log"
! grep 'scrub: ' "$T/daemon.log" | grep -qE 'bkt/|\bone\b' || fail "a key is in the log"
# The bytes are never served; the other objects are.
if curl_s3 /bkt/one -o "$T/back" 2>/dev/null; then fail "a damaged object was served"; fi
for k in two three; do
	curl_s3 /bkt/$k -o "$T/back" || fail "GET $k"
	assert_same "$T/$k" "$T/back" "$k"
done
# Written anew it is whole, and the next walk says so.
curl_s3 /bkt/one -T "$T/one" -o /dev/null || fail "PUT one again"
scrub
wait_for 60 walks 2
assert_eq "$(metric gantry_scrub_damaged_objects)" 0 "nothing is damaged any more"
assert_eq "$(metric gantry_scrub_errors_total)" 1 "the counter stays"

# ---- its rate, by a reload; stop; drain ----
sed -i 's|scrub_rate: 1GiB|scrub_rate: 256KiB|' "$T/gantryd.yaml"
assert_eq "$(control POST /control/reload)" 200 "reload: $(<"$T/answer")"
before=$(metric gantry_scrub_bytes_total) began=$(date +%s%N)
scrub
assert_match "$(<"$T/answer")" '"state":"running"' "the walk"
scrub
assert_match "$(<"$T/answer")" '"started":false' "it runs already"
moved() { [ "$(metric gantry_scrub_bytes_total)" -ge $((before + 393216)) ]; }
wait_for 60 moved
read_bytes=$(($(metric gantry_scrub_bytes_total) - before))
allowed=$((($(date +%s%N) - began) * 2 / 7629 + 262144)) # 262144 in a second
[ $read_bytes -le $allowed ] || fail "$read_bytes bytes where $allowed were allowed"
assert_eq "$(control POST /control/drain)" 200 "drain"
paused() { [ "$(says state)" = paused ]; }
wait_for 60 paused
assert_eq "$(control POST /control/resume)" 200 "resume"
running() { [ "$(says state)" = running ]; }
wait_for 60 running
scrub -d '{"action":"stop"}'
assert_match "$(<"$T/answer")" '"stopped":true' "stopped"
idle() { [ "$(says state)" = idle ]; }
wait_for 60 idle
assert_eq "$(metric gantry_scrub_walks_total)" 2 "it did not come to its end"
wait_for 60 grep -q 'scrub: ended on request' "$T/daemon.log"

# ---- walks by themselves, and a stop in the midst of one ----
sed -i 's|scrub_rate: 256KiB|scrub_rate: 1GiB\n  scrub_interval: 100ms|' "$T/gantryd.yaml"
assert_eq "$(control POST /control/reload)" 200 "reload: $(<"$T/answer")"
wait_for 60 walks 4
no_buffer() { [ "$(metric gantry_buffers 'state="used"')" = 0 ]; }
wait_for 60 no_buffer
stop_daemon
