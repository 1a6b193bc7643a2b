#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# docs/operations.md, "Replacing a drive" and "Replacing a drive that failed", word for word, while clients write, read, delete and list in a bucket of
# one copy and in one with two (tests/system/disks_move.py judges each answer): what is replaced while it works costs nobody anything; what
# failed costs the bucket with two copies nothing, and the other one what it held.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=2 DISKS=3 DISK_SIZE=256MiB BUCKETS='one'
MORE=$'limits: { s3_progress: 30s, s3_total: 30s }\nlog: { access: false }'
SEED=${SEED:-$(date +%s)}
KEYS=60
echo "SEED=$SEED"
mkdir "$T/fault"
DAEMON_WRAP="$BUILD/tools/diskfault $T/fault"
export GANTRY_ADMIN=$T/admin.sock
LOADS=() LOAD=()
disks() { curl_admin /disks | jq -r "$1"; }
statuses() { # METHOD PATH [curl words]: how often each status
	curl -sS -Z --parallel-max 8 -X "$1" -o /dev/null -w '%{http_code}\n' "${@:3}" "$URL_S3$2" 2>>"$T/curl" | sort | uniq -c | awk '{ printf "%s%s:%s", n++ ? " " : "", $2, $1 }'
}
load_begin() { # BUCKET...
	local b
	LOADS=("$@")
	for b in "$@"; do
		mkdir -p "$T/$b"
		rm -f "$T/$b/stop"
		echo "$URL_S3" >"$T/$b/url"
		/usr/bin/python3 "$ROOT/tests/system/disks_move.py" "$T/$b" "$SEED" "$b" >"$T/$b/load" &
		LOAD[${#LOAD[@]}]=$!
	done
}
load_end() {
	local b i=0
	for b in "${LOADS[@]}"; do touch "$T/$b/stop"; done
	for b in "${LOADS[@]}"; do
		wait "${LOAD[i++]}" || fail "$1, $b: $(<"$T/$b/load")"
		echo "$1, $b: $(<"$T/$b/load")"
	done
	LOAD=()
}

# ---- what stands around the page's commands ----
systemctl() { # of gantryd
	local b
	case $1 in
	stop) stop_daemon ;;
	start) daemon_run; for b in "${LOADS[@]}"; do echo "$URL_S3" >"$T/$b/url"; done ;;
	esac
}
gantryd() { echo yes | "$BUILD/gantryd" -c "$T/gantryd.yaml" "$@" >"$T/said" 2>&1 || { cat "$T/said"; return 1; }; }
runuser() { shift 3; "$@"; } # -u gantry --
takes_off() { sed -i "\\|path: \"$1\"|d" "$T/gantryd.yaml"; }
puts_in() { sed -i "/^  disks:/a\\    - { path: \"$1\", size: $DISK_SIZE }" "$T/gantryd.yaml"; }
# follow SECTION [WORD=VALUE...]: each command has to succeed; between two blocks `between N` is called.
follow() {
	local section=$1
	"$ROOT/scripts/recipe" -p "$ROOT/docs/operations.md" "$section" "$T/page" "sleep 10=sleep 0.2" "2TiB=$DISK_SIZE" "${@:2}" || fail "the page has no $section"
	[ -z "${AT_ONCE:-}" ] || sed -i 's/^while .*# or at once: //' "$T/page/recipe.sh"
	BETWEEN=between
	set -E
	trap 'fail "$section: $BASH_COMMAND"' ERR
	# shellcheck source=/dev/null
	. "$T/page/recipe.sh" >"$T/page/said" 2>&1
	trap - ERR
	set +E
}

requests() { metric gantry_requests_total; }
_answered() { [ "$(requests)" -ge "$1" ]; }
load_works() { wait_for 60 _answered $(($(requests) + $1)); } # until so many more requests were answered
start_daemon
for b in two more; do gantry mb "$URL_S3/$b" --copies 2 || fail "gantry mb --copies 2"; done
head -c 20000 /dev/urandom >"$T/body"
for b in one two; do assert_eq "$(statuses PUT "/$b/still[1-$KEYS]" --data-binary @"$T/body")" "200:$KEYS"; done
still() { # BUCKET
	local i
	for i in 1 17 "$KEYS"; do curl_s3 "/$1/still$i" | cmp - "$T/body" || fail "$1/still$i"; done
	assert_eq "$(statuses GET "/$1/still[1-$KEYS]")" "200:$KEYS" "$1"
}

# ---- one that works: with the share of the new one awaited, and at once ----
between() {
	[ "$1" = 2 ] || return 0
	# The block before the last one has ended: what it says of the old one is so.
	assert_eq "$(disks ".[] | select(.path == \"$OLD\") | .state")" drained
	takes_off "$OLD"
	puts_in "$NEW"
}
export NO_FAULTS=1 LONGEST_MS=20000
load_begin one two
# Bodies that come slowly while the one disk goes, and the other comes: their keys are elsewhere when they have come.
/usr/bin/python3 "$ROOT/tests/system/slow_puts.py" "$URL_S3" "$T" one two >"$T/slow" &
SLOW=$!
wait_for 30 test -e "$T/begun"
OLD=$T/disk0 NEW=$T/disk3
follow "Replacing a drive" "/var/lib/gantry/old=$OLD" "/var/lib/gantry/new=$NEW"
touch "$T/go"
wait $SLOW || fail "slow PUTs: $(<"$T/slow")"
cat "$T/slow"
OLD=$T/disk1 NEW=$T/disk4
AT_ONCE=1 follow "Replacing a drive" "/var/lib/gantry/old=$OLD" "/var/lib/gantry/new=$NEW"
load_end "replaced"
unset NO_FAULTS LONGEST_MS
for b in one two; do ! grep -o 'GET:503=[0-9]*' "$T/$b/load" || fail "$b: reads were held up"; done
restart_daemon
assert_eq "$(curl_admin /disks | json state) $(disks 'map(.path | sub(".*/"; "")) | sort | join(" ")')" "serving serving serving disk2 disk3 disk4"
still one
still two
rm -rf "$T/disk0" "$T/disk1"

# ---- one that failed ----
load_begin more
load_works 50
echo "read write flush" >"$T/fault/disk3"
failed() { [ "$(disks '.[] | select(.path | endswith("/disk3")) | .state')" = failed ]; }
wait_for 60 failed
U=$(disks '.[] | select(.path | endswith("/disk3")) | .uuid')
still two
load_works 50
held_up=$(curl_admin /metrics | grep '^gantry_requests_total{' | grep 'operation="GetObject"' | grep -c 'code="503"')
assert_eq "$held_up" 0 "reads of the bucket with two copies that were answered 503"
between() {
	case $1 in
	1) still two; lost=$(statuses GET "/one/still[1-$KEYS]") ;;
	2) puts_in "$NEW" ;;
	esac
}
takes_off "$T/disk3"
NEW=$T/disk5
follow "Replacing a drive that failed" "1b4e28ba-2fa1-11d2-883f-0016d3cca427=$U" "/var/lib/gantry/new=$NEW"
load_end "failed"
still two
assert_match "$lost" '^200:[0-9]+ 404:[0-9]+$' "of one copy"
assert_eq "$(statuses PUT "/one/still[1-$KEYS]" --data-binary @"$T/body")" "200:$KEYS"
rm -rf "$T/disk3"
restart_daemon
assert_eq "$(curl_admin /disks | json state)" "serving serving serving"
assert_eq "$(metric gantry_copies_exposed_objects)" 0
still one
still two
stop_daemon
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || fail "--fsck: $(<"$T/fsck")"
