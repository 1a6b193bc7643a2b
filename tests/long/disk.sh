# SPDX-License-Identifier: Apache-2.0
# Helpers of the tests that put a disk of ours under the daemon: nbdkit with tests/nbd/lostwrite.c, nbdfuse, a loop device.  Sourced:
#
#     . "$(dirname "$0")/disk.sh"
#     disk_setup 192M
#     disk_store device            # or directory: a file system on it, ext4 (or DISK_FS=xfs)
#     daemon_run; make_buckets
#     disk fail write 5            # a command of the plugin; its counters are in DISK[...] then
#     disk_cut SEED                # the daemon is killed and the power goes, and comes back
#
# DISK_PARTS=3 before disk_setup makes as many devices of it, LOOPS[0] to LOOPS[2], which lose their power together.
#
# It sources tests/system/lib.sh.  All as root.  Where loop devices or FUSE cannot be had the test fails and says why; SKIP=disk (a
# list with commas) skips it.  Everything it made is undone at the end: mounts, loop device, processes, the latter by pid.
# shellcheck shell=bash
case ,${SKIP:-}, in *,disk,*) echo "SKIP=disk was asked for: nothing that needs loop devices and FUSE is run"; exit 77 ;; esac
# A mount namespace of its own, made before any mount: one that another test makes meanwhile would have a copy of our mounts, and keep the
# file systems, and so the loop device, in use.
[ "${OWN_MOUNTS:-}" = here ] || OWN_MOUNTS=here exec unshare -m --propagation private "$0" "$@"
# shellcheck source=tests/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"

declare -A DISK=()
declare -a LOOPS=()
LOOP='' DISK_PARTS=${DISK_PARTS:-1} DISK_FS=ext4 DISK_FORM='' _disk_pids=() _disk_nr=0 _disk_fuse='' _disk_mount=''
# A child killed and waited for, quietly.
_reap() { { kill -KILL "$1"; wait "$1"; } 2>/dev/null; }

_disk_at_exit() {
	local rc=$? p
	trap - EXIT INT TERM
	{
		# Nothing may hang on the disk: what waits goes on.
		[ ! -p "$T/ctl" ] || echo "0 on" 1<>"$T/ctl"
		[ -z "$DAEMON_PID" ] || kill -KILL "$DAEMON_PID"
		for ((p = 0; p < 250; p++)); do
			_runs "${DAEMON_PID:-0}" || break
			sleep 0.02
		done
		[ -z "$_disk_mount" ] || umount "$_disk_mount" || umount -l "$_disk_mount"
		# The last user's end sets a device free, which may be a moment after its process's.
		[ -z "$LOOP" ] || losetup -d "${LOOPS[@]}"
		for ((p = 0; p < 250; p++)); do
			_loops_are_free && break
			sleep 0.02
		done
		[ -z "$_disk_fuse" ] || fusermount3 -u "$_disk_fuse" || fusermount3 -uz "$_disk_fuse"
		for p in "${_disk_pids[@]}"; do _reap "$p"; done
	} 2>/dev/null
	(exit "$rc")
	_at_exit
}

# The words of losetup for the i-th device.
_disk_part() {
	local size
	part=(--direct-io=on)
	[ "$DISK_PARTS" != 1 ] || return 0
	size=$(($(stat -c %s "$_disk_fuse/disk") / DISK_PARTS / 1048576 * 1048576))
	part+=(--offset $((size * $1)) --sizelimit "$size")
}
_disk_loop() {
	local part
	_disk_part "$1"
	LOOPS[$1]=$(losetup --find --show "${part[@]}" "$_disk_fuse/disk" 2>&1) || fail "no loop device (SKIP=disk skips this test): ${LOOPS[$1]}"
	LOOP=${LOOPS[0]}
}

# disk_setup SIZE: the disk, empty.  LOOP is its device.
disk_setup() {
	local i plugin=$BUILD/nbd/lostwrite.so
	[ "$(id -u)" = 0 ] || fail "loop devices and FUSE need root (SKIP=disk skips this test)"
	for i in nbdkit nbdfuse fusermount3 losetup mkfs.ext4; do
		command -v "$i" >/dev/null || fail "no $i: scripts/deps disk installs it (SKIP=disk skips this test)"
	done
	for i in /dev/fuse /dev/loop-control; do
		[ -c "$i" ] || fail "no $i here (SKIP=disk skips this test)"
	done
	[ -f "$plugin" ] || fail "no $plugin: make testbins builds it where nbdkit-plugin-dev is installed"
	trap _disk_at_exit EXIT
	mkdir -p "$T/fuse"
	mkfifo "$T/ctl"
	nbdkit -f -U "$T/nbd.sock" --threads 16 "$plugin" image="$T/image" size="$1" ctl="$T/ctl" status="$T/status" >"$T/nbdkit.log" 2>&1 &
	_disk_pids+=($!)
	wait_for 60 test -S "$T/nbd.sock"
	_disk_fuse=$T/fuse
	nbdfuse -P "$T/nbdfuse.pid" "$T/fuse/disk" --unix "$T/nbd.sock" >"$T/nbdfuse.log" 2>&1 &
	_disk_pids+=($!)
	for ((i = 0; i < 500; i++)); do
		[ -f "$T/nbdfuse.pid" ] && break
		sleep 0.02
	done
	[ -f "$T/fuse/disk" ] || { cat "$T"/nbd*.log; fail "no FUSE mount (SKIP=disk skips this test)"; }
	for ((i = 0; i < DISK_PARTS; i++)); do _disk_loop $i; done
	disk_proves_itself
}

# disk COMMAND...: one of lostwrite.c's, and its counters
disk() {
	local i nr word
	_disk_nr=$((_disk_nr + 1))
	echo "$_disk_nr $*" >"$T/ctl"
	for ((i = 0; i < 1000; i++)); do
		{ read -r nr word; } 2>/dev/null <"$T/status" && [ "$nr" = "$_disk_nr" ] && break
		sleep 0.01
	done
	[ "${nr:-}" = "$_disk_nr" ] || fail "the disk does not answer: $*"
	for i in $word; do DISK[${i%%=*}]=${i#*=}; done
}

# Neither the page cache nor FUSE nor the loop device keeps writes or flushes to itself: without that these tests prove nothing.
disk_proves_itself() {
	local f w
	disk stat
	f=${DISK[done_flush]} w=${DISK[done_write]}
	dd if=/dev/zero of="$LOOP" bs=64k count=4 oflag=direct status=none || fail "writing to $LOOP"
	disk stat
	assert_eq "${DISK[unflushed]}" "$((DISK[done_write] - w))" "unflushed writes after four O_DIRECT writes"
	[ "${DISK[done_write]}" -ge $((w + 4)) ] || fail "four O_DIRECT writes, and only $((DISK[done_write] - w)) arrived"
	w=${DISK[done_write]}
	# conv=fdatasync of nothing but what is there: one flush must come through, though no page is dirty.
	dd if=/dev/zero of="$LOOP" bs=4k count=1 oflag=direct conv=fdatasync,notrunc status=none || fail "fdatasync on $LOOP"
	disk stat
	[ "${DISK[done_flush]}" -gt "$f" ] || fail "fdatasync does not reach the disk"
	assert_eq "${DISK[unflushed]}" 0 "unflushed writes after fdatasync"
}

# disk_store device|directory: a store on it.  The rest of the configuration is lib.sh's.
disk_store() {
	DISK_FORM=$1
	write_config
	if [ "$1" = directory ]; then
		case $DISK_FS in
		ext4) mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$LOOP" || fail "mkfs.ext4" ;;
		xfs) mkfs.xfs -q -f -K "$LOOP" || fail "mkfs.xfs" ;;
		esac
		disk_mount
	else
		sed -i "s|{ path: \"$T/disk0\", size: [^ ]* }|{ path: \"$LOOP\" }|" "$T/gantryd.yaml"
	fi
	nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --format --force >>"$T/daemon.log" 2>&1 || fail "gantryd --format"
}

disk_mount() {
	mkdir -p "$T/disk0"
	mount -t "$DISK_FS" "$LOOP" "$T/disk0" || fail "mount"
	_disk_mount=$T/disk0
}

# The daemon dies and the power goes: with `first` the disk stands still before the kill, and nothing that the dying process
# has under way gets through; with `after` all of that does, and the cut comes behind it.
disk_cut() {
	{
		[ "$2" != first ] || disk freeze
		kill -KILL "$DAEMON_PID"
		[ "$2" = first ] || _wait_dead
		disk off "$1"
		_wait_dead
		wait "$_daemon_job"
		DAEMON_PID=''
		if [ "$DISK_FORM" = directory ]; then
			# What the kernel still holds of the file system goes with the power: it gets errors, and a new device.
			# A dead process's rings let its files go a little later.
			wait_for 10 umount "$T/disk0"
			_disk_mount=''
		fi
		losetup -d "${LOOPS[@]}"
		wait_for 10 _loops_are_free
	} 2>/dev/null
	disk on
	_disk_same_loop
	[ "$DISK_FORM" != directory ] || disk_mount
}

# The lock on the store waits for what a dead process still has under way; here the process is waited for.
_wait_dead() {
	local i
	for ((i = 0; i < 1500; i++)); do
		_runs "$DAEMON_PID" || break
		sleep 0.01
	done
	! _runs "$DAEMON_PID" || fail "the killed daemon does not end"
}

_loops_are_free() {
	local p
	for p in "${LOOPS[@]}"; do ! losetup "$p" || return 1; done
}

# Under the same name as before, which the configuration knows; another one where somebody was faster.
_disk_same_loop() {
	local i old part
	for ((i = 0; i < DISK_PARTS; i++)); do
		old=${LOOPS[i]}
		_disk_part $i
		if ! losetup "${part[@]}" "$old" "$_disk_fuse/disk" 2>/dev/null; then
			_disk_loop $i
			sed -i "s|\"$old\"|\"${LOOPS[i]}\"|" "$T/gantryd.yaml"
		fi
	done
}
