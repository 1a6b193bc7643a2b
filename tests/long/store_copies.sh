#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Power cuts on stores whose files were copied: on XFS with `cp -a`, which makes reflinks, on ext4 with holes (`cp --sparse=always`), CUTS
# cuts each (default 20).
#
# Before each round the files of the stopped daemon are copied so; of them the log alone is given blocks of its own again, as it has them after one lap of the
# ring: then nothing but the daemon's own care makes durable what is written to the others.  In the first round on XFS they are cloned while the daemon serves,
# which has to notice.  Clients put, overwrite and delete, the disk
# (tests/nbd/lostwrite.c) loses what was not flushed, and every acknowledged change must be there.
MORE=$'limits: { s3_progress: 30s, s3_total: 30s }\nlog: { access: false }'
DISK_SIZE=320MiB
. "$(dirname "$0")/disk.sh"
. "$(dirname "$0")/groups.sh"
CUTS=${CUTS:-20}
SEED=${SEED:-$(date +%s)}
RANDOM=$SEED
echo "SEED=$SEED CUTS=$CUTS"
command -v mkfs.xfs >/dev/null || fail "no mkfs.xfs: scripts/deps disk installs it (SKIP=disk skips this test)"

KEYS=120
lost=0 cuts=0

wrong() {
	lost=$((lost + 1))
	echo "$fs, round $r: $1 is $2; acknowledged: $5, $3; before: $4"
}

# As an operator would, while nobody serves.
copy_files() {
	local d=$T/disk0
	rm -rf "$d/copy"
	mkdir "$d/copy"
	case $1 in
	xfs)
		cp -a --reflink=always "$d"/super* "$d/host" "$d/log" "$d"/seg-* "$d/copy/" || fail "cp --reflink"
		# The clone is the backup, and stays.
		;;
	ext4)
		# Restored from it: the files of before are gone.
		cp -a --sparse=always "$d"/super* "$d/host" "$d/log" "$d"/seg-* "$d/copy/" || fail "cp --sparse"
		mv "$d"/copy/* "$d/"
		;;
	esac
	cp -a --reflink=never --sparse=never "$d/log" "$d/log.copy" || fail "cp log"
	mv "$d/log.copy" "$d/log"
	sync -f "$d"
}

# As somebody does who does not know that it is served: the segments are shared from now on.
copy_while_serving() {
	local d=$T/disk0
	rm -rf "$d/copy"
	mkdir "$d/copy"
	cp -a --reflink=always "$d"/seg-* "$d/copy/" || fail "cp --reflink, while it serves"
	sync -f "$d"
	wait_for 60 is_noticed
}
is_noticed() { [ "$(to_rewrite)" -gt 0 ] && curl_admin /healthz | grep -q segments; }

to_rewrite() { metric gantry_store_segments_to_rewrite; }
# How many starts have said that there are such segments.
said() { grep -c 'have holes, unwritten or shared blocks' "$T/daemon.log"; }
is_well() { ! curl_admin /healthz | grep -q segments; }

start_clients() {
	local g
	clients=()
	for g in 0 1 2; do
		rm -f "$T/ack.$g"
		size[g]=$((RANDOM % 3 == 0 ? 200 : 1 + RANDOM % 200000)) seed[g]=$((r * 3 + g + 1))
		if [ $g = 2 ] && [ $((r % 3)) = 0 ]; then
			seed[g]=gone
			flood g$g <<-END &
				flood 2 $KEYS $T/ack.$g DELETE /bkt/g$g-%n
			END
		else
			flood g$g <<-END &
				flood 3 $KEYS $T/ack.$g PUT /bkt/g$g-%n body=pattern:${seed[g]}:${size[g]}
			END
		fi
		clients+=($!)
	done
	# The log moves on, and snapshots come.
	flood filler <<-END &
		flood 4 20000 $T/ack.filler PUT /bkt/filler body=pattern:9:100 x-amz-meta-filler:$(printf 'x%.0s' {1..1500})
	END
	clients+=($!)
}

disk_setup 896M
for fs in xfs ext4; do
	state=()
	DISK_FS=$fs
	disk_store directory
	daemon_run
	make_buckets
	# All segments are there, and half of them full.
	flood fill <<-END || fail "filling"
		flood 1 20 $T/ack.fill PUT /bkt/fill-%n body=pattern:5:8000000
	END
	stop_daemon
	snapshots=0 before=$(said)
	for ((r = 1; r <= CUTS; r++)); do
		declare -a size=() seed=()
		# The first one of XFS finds it out while it serves: no start tells it.
		[ "$fs:$r" = xfs:1 ] || copy_files $fs
		daemon_run
		[ "$fs:$r" != xfs:1 ] || copy_while_serving
		disk delay flush $((RANDOM % 4))
		start_clients
		sleep "$((RANDOM % 2)).$((RANDOM % 10))$((RANDOM % 10))"
		snapshots=$((snapshots + $(metric gantry_store_snapshots_total)))
		cuts=$((cuts + 1))
		disk_cut "$((SEED + cuts))" "$([ $((RANDOM % 2)) = 0 ] && echo first || echo after)"
		{ wait "${clients[@]}"; } 2>/dev/null
		disk delay flush 0
		daemon_run
		check_groups $KEYS
		stop_daemon
	done
	nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || { cat "$T/fsck"; fail "--fsck: exit $?"; }
	# Left alone, the files get blocks of their own.
	copy_files $fs
	daemon_run
	wait_for 60 is_well
	rest=$(to_rewrite)
	stop_daemon
	umount "$T/disk0"
	_disk_mount=''
	odd=$(($(said) - before))
	echo "$fs: $CUTS rounds, $odd starts said that there are segments to rewrite; $snapshots snapshots; $rest segments are still to rewrite in the end"
	[ "$odd" -gt "$CUTS" ] || fail "$fs: the copies are as the originals: the test proves nothing"
	assert_eq "$rest" 0 "$fs: segments to rewrite in the end"
done
disk stat
echo "$cuts power cuts; unflushed writes kept ${DISK[kept]}, torn ${DISK[torn]}, dropped ${DISK[dropped]}; $acked acknowledged changes, $lost lost; $checked objects read back"
assert_eq "$lost" 0 "acknowledged changes that are lost"
[ "$acked" -gt $((cuts * 20)) ] || fail "hardly anything was acknowledged: the test proves nothing"
