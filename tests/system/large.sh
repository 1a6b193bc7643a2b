#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Several large objects at once on a disk whose segments are still being made: chunks fill while earlier pieces wait for space.
# Segments of 64 MiB, and objects of a quarter of a segment to two.
DISK_SIZE=960MiB
# Some 25 MB/s are enough.
MORE='limits: { idle: 1800s, s3_progress: 60s, s3_total: 200s }'
. "$(dirname "$0")/lib.sh"
start_daemon
mkdir "$T/in" "$T/out"
i=0
for m in 64 128 16 64 128 16 16; do
	i=$((i + 1))
	bytes "pattern:$i" "${m}M" >"$T/in/f$i"
	echo "in/f$i"
done >"$T/list"
gantry --timeout 200 -j8 mput "$T/list" "$URL_S3/bkt" -C "$T" || fail "mput"
gantry --timeout 200 -j8 mget "$T/list" "$URL_S3/bkt" -C "$T/out" || fail "mget"
for ((k = 1; k <= i; k++)); do assert_same "$T/in/f$k" "$T/out/in/f$k"; done
kill_daemon
daemon_run
rm -r "$T/out/in"
gantry --timeout 200 -j8 mget "$T/list" "$URL_S3/bkt" -C "$T/out" || fail "mget after a kill"
for ((k = 1; k <= i; k++)); do assert_same "$T/in/f$k" "$T/out/in/f$k" "after a kill"; done
assert_alive
