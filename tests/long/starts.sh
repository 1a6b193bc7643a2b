#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# STARTS (default 200) starts in a row, each killed somewhere on its way up; some objects before.  Each takes a block of the log at most,
# and no start may find the log used up; in the end everything is there, and the store is clean.  That the log's last room is
# given back is the simulation's to show (tests/sim: storms of starts on a small log), here it is the daemon's order of things.
DISK_SIZE=320MiB
. "$(dirname "$0")/../system/lib.sh"
STARTS=${STARTS:-200}
SEED=${SEED:-$(date +%s)}
RANDOM=$SEED
echo "SEED=$SEED STARTS=$STARTS"
start_daemon
raw <<-END
	window w 200000 pattern:3
	flood 8 60 $T/acks PUT /bkt/o%n x-amz-rdma-token:@w content-length:0
	flood 8 3000 $T/acks2 PUT /bkt/s%n body=pattern:4:200 x-amz-meta-filler:$(printf 'x%.0s' {1..1500})
END
kill_daemon
# Kills come within a little more than a whole start takes, which depends on the machine and what else it does: most before it is ready,
# and some after.
begun=$(date +%s%N)
daemon_run
within=$((($(date +%s%N) - begun) / 1000000))
kill_daemon
echo "a start takes $within ms"
served=0
for ((i = 0; i < STARTS; i++)); do
	rm -f "$T/ready"
	_on_nic
	"${ON_NIC[@]}" "$BUILD/gantryd" -c "$T/gantryd.yaml" --ready-file "$T/ready" >"$T/start.log" 2>&1 &
	job=$!
	sleep "$(awk -v ms=$(((RANDOM << 15 | RANDOM) % within)) 'BEGIN { print ms / 1000 }')"
	pid=$(_gantryd_of $job) || pid=$job
	{ kill -KILL "$pid"; wait $job; } 2>/dev/null
	if [ -s "$T/ready" ]; then
		served=$((served + 1)) within=$((within * 95 / 100 + 1))
	else
		within=$((within * 101 / 100 + 2))
	fi
	! grep -q 'error' "$T/start.log" || { cat "$T/start.log"; fail "start $i"; }
done
daemon_run
raw <<-END
	$(for i in {0..59}; do printf 'request GET /bkt/o%d\nexpect status 200\nexpect body pattern:3\n' "$i"; done)
	$(for i in 0 1 1000 2999; do printf 'request GET /bkt/s%d\nexpect status 200\nexpect body pattern:4\n' "$i"; done)
END
stop_daemon
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || { cat "$T/fsck"; fail "--fsck: exit $?"; }
echo "$STARTS starts killed, $served of them after they were ready"
[ $served -gt 0 ] && [ $served -lt $((STARTS / 2)) ] || fail "$served of $STARTS starts were ready when they were killed: the kills do not fall into the start"
