#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# item 82, claims TM3, TM5: a captured request with a token is no way into its client's memory, nor out of it (replay.py): not from another
# address, once at most where auth.replay says so, not with another range, and not when its target is gone.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
case $BUILD in *san) skip "python cannot load a library with a sanitizer" ;; esac
cat >"$T/keys.yaml" <<-END
	- { access_key: AKVICTIM, secret_key: victim-secret }
	- { access_key: AKOTHER, secret_key: other-secret, read_only: true }
END
chmod 0600 "$T/keys.yaml"
# shellcheck disable=SC2034
RDMA='{ allow_special: [loopback, self], timeout: 10, retry_cnt: 1 }' # a target that is gone is soon given up
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
start_daemon

signed() { sed 's/ admin=.*//; s/.* s3=//' "$T/ready"; }
play() { nic /usr/bin/python3 "$ROOT/tests/system/replay.py" "$BUILD/libgantry.so" "$S3" "$(signed)" "$1" || fail "replay.py $1"; }
status() { curl_admin /status | tr -d '\n' | grep -o '"replay":{.*}},' | sed 's/}},.*/}}/'; }

# ---- by default ----
assert_match "$(status)" '"mode":"peer".*"window_seconds":900.*"refused":0,"refused_by_key":\{\}'
play peer
n=$(metric gantry_replays_refused_total)
[ "$n" -gt 0 ] || fail "nothing was counted"
assert_match "$(status)" "\"refused\":$n,\"refused_by_key\":\{\"AKVICTIM\":$n\}"
assert_match "$(gantry --admin "$T/admin.sock" status)" "replays +$n requests refused .*: AKVICTIM $n"
wait_for 60 grep -q "a signature of access key AKVICTIM was used again, by 127.0.0.2: refused" "$T/daemon.log"
stop_daemon

# ---- once, in a table of a known size ----
MORE="auth: { credentials_file: \"$T/keys.yaml\", replay: once, clock_skew: 60s }
memory: { buffers: 64MiB, index: 64MiB, replay: 1MiB }"
write_config
sed -i '/^memory: { .*, http_buffers/d' "$T/gantryd.yaml"
daemon_run
assert_match "$(status)" '"mode":"once","signatures":51200,"window_seconds":60,"requests_per_second":426,"forgotten":0'
play once
assert_eq "$(metric gantry_replay_signatures_forgotten_total)" 0
stop_daemon
