# SPDX-License-Identifier: Apache-2.0
# The rows of a store on several disks against one on one, for bench/run: disks that nbdkit's rate filter keeps to DISK_MB_S (80) MB/s each,
# behind nbdfuse and loop devices, so that the disk is the limit and not the machine.  Sourced after lib.sh; run_disks FIGURE...
# shellcheck shell=bash
declare -a _slow=() _slow_pids=() _slow_mounts=()
_slow_ms=0

slow_disks() { # NR MS: each write takes so many milliseconds at least
	local i j
	[ "$2" = $_slow_ms ] || slow_disks_end
	_slow_ms=$2
	[ "$(id -u)" = 0 ] || fail "loop devices and FUSE need root"
	for i in nbdkit nbdfuse fusermount3 losetup; do command -v "$i" >/dev/null || fail "no $i: scripts/deps disk installs it"; done
	for ((i = ${#_slow[@]}; i < $1; i++)); do
		mkdir -p "$T/slow$i"
		# Of a disk with another delay, and no sign that this one is there.
		rm -f "$T/slow$i.sock" "$T/slow$i.pid"
		# A bucket that holds little: what a disk saves up while it is another one's turn is no speed.
		nbdkit -f -U "$T/slow$i.sock" --threads 16 --filter=rate --filter=delay memory 1536M rate=$((${DISK_MB_S:-80} * 8000000)) burstiness=0.1 \
			wdelay="$2ms" >"$T/slow$i.log" 2>&1 &
		_slow_pids+=($!)
		wait_for 60 test -S "$T/slow$i.sock"
		nbdfuse -P "$T/slow$i.pid" "$T/slow$i/disk" --unix "$T/slow$i.sock" >>"$T/slow$i.log" 2>&1 &
		_slow_pids+=($!)
		_slow_mounts+=("$T/slow$i")
		for ((j = 0; j < 500; j++)); do [ ! -f "$T/slow$i.pid" ] || break; sleep 0.02; done
		_slow[i]=$(losetup --find --show --direct-io=on "$T/slow$i/disk") || fail "no loop device: $(cat "$T/slow$i.log")"
	done
}

slow_disks_end() {
	local p
	for p in "${_slow[@]}"; do losetup -d "$p"; done
	for p in "${_slow_mounts[@]}"; do fusermount3 -u "$p" || fusermount3 -uz "$p"; done
	for p in "${_slow_pids[@]}"; do kill "$p"; wait "$p"; done
	_slow=() _slow_pids=() _slow_mounts=()
} 2>/dev/null

run_disk_lists() {
	local keys=${BENCH_KEYS:-1000000} one pid job i
	"$BUILD/bench/list" fill "$T/disk0" "$keys" $((8 << 30)) || fail "bench/list fill"
	"$BUILD/bench/list" fill "$T/many0,$T/many1,$T/many2,$T/many3" "$keys" $((2 << 30)) || fail "bench/list fill"
	own_daemon -e 's/index: 64MiB/index: 1GiB/'
	daemon_run
	one=$S3 pid=$DAEMON_PID job=$_daemon_job
	own_daemon -e 's/index: 64MiB/index: 1GiB/' -e '/disk0/d' -e "s|admin.sock|many.sock|"
	for i in 0 1 2 3; do echo "    - { path: \"$T/many$i\" }"; done >"$T/many"
	sed -i "/^  disks:/r $T/many" "$T/gantryd.yaml"
	daemon_run
	run "$BUILD/bench/list" two "$one" "$S3" "$keys"
	stop_daemon
	DAEMON_PID=$pid _daemon_job=$job
	stop_daemon
	rm -rf "$T/disk0" "$T"/many?
}

# Four disks in directories, the last on a file system of its own, that can be frozen: NAME, and what the configuration says of the time
# that a write may take.  Few requests and buffers, so that those who want that disk could have them all.  Leaves $T/NAME.keys: each
# key behind 1 if it lies on the fourth disk, else 0.
_frozen='' _frozen_loop=''
four_disks() {
	local i k was is
	BUCKETS=bkt own_daemon -e '/disk0/d' -e "s|admin.sock|$1.sock|" -e "s|^store:|store:\n  disk_timeout: $2|" \
		-e 's|^memory:.*|memory: { buffers: 16MiB, http_buffers: 6MiB, index: 64MiB }|' \
		-e 's/^limits:.*/limits: { requests: 48, connections: 400, s3_progress: 60s, s3_total: 60s, scality_total: 60s }/'
	for i in 0 1 2 3; do mkdir -p "$T/$1$i"; echo "    - { path: \"$T/$1$i\", size: 512MiB }"; done >"$T/four"
	sed -i "/^  disks:/r $T/four" "$T/gantryd.yaml"
	truncate -s 1G "$T/$1.image"
	mkfs.ext4 -q -F "$T/$1.image" || fail "mkfs.ext4"
	_frozen_loop+=" $(losetup -f --show "$T/$1.image")" || fail "no loop device"
	mount "${_frozen_loop##* }" "$T/${1}3" || fail "mount"
	_frozen+=" $T/${1}3"
	rm -rf "$T/${1}3/lost+found"
	nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --format >>"$T/daemon.log" 2>&1 || fail "gantryd --format"
	daemon_run
	make_buckets
	head -c 1000 /dev/zero >"$T/thousand"
	was=0
	for ((k = 0; k < 96; k++)); do
		curl -sS -f -o /dev/null -T "$T/thousand" "$URL_S3/bkt/$k" || fail "PUT"
		is=$(curl_admin /disks | jq '.[3].objects')
		echo "$((is - was)) $k"
		was=$is
	done >"$T/$1.keys"
}

four_disks_end() {
	local d
	for d in $_frozen; do fsfreeze -u "$d"; umount "$d" || umount -l "$d"; done
	for d in $_frozen_loop; do losetup -d "$d"; done
	_frozen='' _frozen_loop=''
} 2>/dev/null

# The p99 of the others: while the fourth of one daemon's disks hangs now and then, and while that of one of two has failed and is asked for
# all the same, against the other, where nobody asks for the fourth.
run_disk_out() { # FIGURE
	local one pid job slow
	[ "$(id -u)" = 0 ] || fail "a file system that is frozen needs root"
	four_disks well 600s
	one=$S3 pid=$DAEMON_PID job=$_daemon_job
	if [[ $1 = *_hanging ]]; then
		run "$BUILD/bench/beside" "$1" "$one" "$T/well3" "$T/well.keys" "$one" "$T/well.keys"
	else
		four_disks out 1s
		slow=$(awk '$1 { print $2; exit }' "$T/out.keys")
		fsfreeze -f "$T/out3"
		curl -sS -o /dev/null --max-time 60 -T "$T/thousand" "$URL_S3/bkt/$slow" &
		has_failed() { [ "$(curl_admin /disks | jq -r '.[3].state')" = failed ]; }
		wait_for 60 has_failed
		fsfreeze -u "$T/out3"
		wait $!
		run "$BUILD/bench/beside" "$1" "$S3" - "$T/out.keys" "$one" "$T/well.keys"
		stop_daemon
	fi
	DAEMON_PID=$pid _daemon_job=$job
	stop_daemon
	four_disks_end
	rm -rf "$T"/well? "$T"/out? "$T"/{well,out}.image
}

run_disks() {
	local f nr
	for f in "$@"; do
		nr=${f#disks} nr=${nr%%_*}
		case $f in
		*_list_1m) run_disk_lists ;;
		*_p99_*) run_disk_out "$f" ;;
		*_start)
			# BENCH_OBJECTS: how many objects start; 64 GiB hold 10 million with their log and snapshots.
			run "$BUILD/bench/disks" start "${BENCH_OBJECTS:-1000000}" $((${BENCH_STORE_GIB:-16} << 30)) "$T/one" "$T"/many{0,1,2,3}
			;;
		*_heal)
			# BENCH_HEAL_MIB: how much; 10 GiB take 32 GiB of BENCH_DIR.
			run "$BUILD/bench/disks" heal $((${BENCH_HEAL_MIB:-2048} << 20)) $((${BENCH_HEAL_RATE_MIB:-64} << 20)) "$T"/heal{0,1,2}
			rm -rf "$T"/heal?
			;;
		*_move_*)
			# A pace of 1/20 of what a disk does; on drives of 4 GB/s store.move_rate is that by itself.
			slow_disks $((2 * nr)) 0
			MOVE_RATE=$((${DISK_MB_S:-80} * 1000000 / 20)) run "$BUILD/bench/disks" "${BENCH_DISK_SECS:-1}" "${f#disks"$nr"_}" \
				"$(IFS=,; echo "${_slow[*]:nr:nr}")" "${_slow[@]:0:nr}"
			;;
		*)
			# One at a time is no load: without a time of its own such a disk would be as fast as the processes that it is made of
			# come awake, and two of them are not awake as often as one.
			slow_disks $((nr + 1)) "$([[ $f = *_q1 ]] && echo 1 || echo 0)"
			run "$BUILD/bench/disks" "${BENCH_DISK_SECS:-1}" "${f#disks"$nr"_}" "${_slow[@]:0:nr + 1}"
			;;
		esac
	done
}
