#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM92: a wall clock that is 400 days ahead for some walks of the lifecycle deletes neither objects nor uploads, while the daemon serves and at a start; it is
# a warning and a reason of health with both times, which ends when the clock is right.
. "$(dirname "$0")/lib.sh"
MORE='lifecycle: { interval: 300ms }' COPIES=1
command -v cc >/dev/null || skip "no C compiler for the clock of this test"
cc -O -shared -fPIC -o "$T/wall.so" tests/system/wall_clock.c -ldl || fail "the clock of this test does not compile"
ahead() { printf '%010d' $(($1 * 86400)) | dd of="$T/wall" conv=notrunc status=none; } # DAYS
printf 0000000000 >"$T/wall"
DAEMON_WRAP="env LD_PRELOAD=$T/wall.so WALL_OFFSET=$T/wall"
health() { curl_admin /healthz | jq -r "$1"; }
jumped() { [ "$(health '[.reasons[] | select(.code == "clock_jumped")] | length')" = 1 ]; }
calm() { [ "$(health '[.reasons[] | select(.code == "clock_jumped")] | length')" = 0 ]; }
walks() { metric gantry_lifecycle_walks_total; }
walked() { [ "$(walks)" -ge "$1" ]; }
some_walks() { wait_for 60 walked $(($(walks) + 3)); }
uploads() { curl_s3 '/bkt?uploads' | grep -o '<UploadId>' | wc -l; }
untouched() { # WHEN
	assert_eq "$(status_of GET /bkt/tmp/young) $(uploads)" "200 1" "$1"
}

start_daemon
assert_status PUT /bkt/tmp/young 200 -d bytes
curl_s3 '/bkt/tmp/upload?uploads' -X POST >/dev/null
cat >"$T/rules" <<'END'
<LifecycleConfiguration><Rule><ID>a</ID><Status>Enabled</Status><Filter><Prefix>tmp/</Prefix></Filter><Expiration><Days>30</Days></Expiration><AbortIncompleteMultipartUpload><DaysAfterInitiation>30</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule></LifecycleConfiguration>
END
assert_status PUT '/bkt?lifecycle' 200 -T "$T/rules"
some_walks
untouched "with the right clock"
assert_eq "$(curl_admin /healthz | json status)" ok

# ---- ahead for some walks ----
ahead 400
some_walks
untouched "with a clock that is ahead"
wait_for 60 jumped
assert_match "$(health '.reasons[0].text')" '^the clock jumped from 20[0-9T:-]+Z to 20[0-9T:-]+Z: nothing is deleted because of its age by the new time for another [1-6][0-9] min'
assert_eq "$(curl_admin /healthz | json status) $(metric gantry_health_reason 'code="clock_jumped"')" "degraded 1"
wait_for 60 grep -qE 'warning clock: the clock jumped from .*Z to .*Z' "$T/daemon.log"
some_walks
untouched "after more walks"
ahead 0
wait_for 60 calm
some_walks
untouched "with the right clock again"
assert_eq "$(grep -c 'warning clock: the clock jumped' "$T/daemon.log")" 1 "warnings"

# ---- at a start: the disk knows the time of its last heartbeat ----
stop_daemon
ahead 400
daemon_run
some_walks
untouched "after a start with a clock that is ahead"
wait_for 60 jumped
# A restart does not make that time a known one.
restart_daemon
some_walks
untouched "after another start"
wait_for 60 jumped
stop_daemon
ahead 0
daemon_run
some_walks
untouched "after a start with the right clock"
wait_for 60 calm
stop_daemon
