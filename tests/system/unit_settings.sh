#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A new disk under the packaged unit, whose sandbox a mount namespace stands in for: the file system of the page's example, mounted below the state
# directory while the daemon serves, is added without a change of the unit; where a setting is in the way, the answer names it, and the line to write.
if [ "${OWN_MOUNTS:-}" != here ]; then
	unshare -m true 2>/dev/null || {
		echo "no mount namespace of our own (root is needed)"
		exit 77
	}
	OWN_MOUNTS=here exec unshare -m --propagation shared "$0" "$@"
fi
DISK_SIZE=128MiB DISKS=1
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1
export GANTRY_STORE_STATE_DIR=none T
mkdir -p "$T/lib/disk5" "$T/srv"
# The page has the figure of systemd itself.
figure=$(systemd-analyze security --offline=yes "$ROOT/systemd/gantryd.service" 2>/dev/null | sed -n 's/.*exposure level for gantryd.service: \([0-9.]*\) .*/\1/p')
[ -n "$figure" ] && grep -q "exposure level $figure in .systemd-analyze security" "$ROOT/docs/operations.md" || fail "exposure level: systemd says ${figure:-nothing}"
refused() { # DISK WORDS...
	local w
	gantry --admin "$T/admin.sock" disk add "$1" --size 128MiB >"$T/said" 2>&1 && fail "$1 was added"
	for w in "${@:2}"; do grep -qF -- "$w" "$T/said" || fail "disk add $1 does not say \"$w\": $(<"$T/said")"; done
}
# As ProtectSystem=strict does; a mount that is made later below the state directory is seen.
cat >"$T/sandbox" <<-END
	#!/bin/bash
	mount --make-rslave / && mount --bind "$T/srv" "$T/srv" && mount -o remount,bind,ro "$T/srv" || exit 99
	exec "\$@"
END
chmod +x "$T/sandbox"
export DAEMON_WRAP="unshare -m --propagation unchanged $T/sandbox"
# A daemon that systemd did not start says nothing of a unit.
unset INVOCATION_ID
start_daemon
refused "$T/srv/new" 'Read-only file system'
! grep -q 'the unit' "$T/said" || fail "a daemon without a unit: $(<"$T/said")"
stop_daemon
export INVOCATION_ID=0123456789abcdef0123456789abcdef
daemon_run
refused "$T/srv/new" 'Read-only file system' "ReadWritePaths=$T/srv/new" 'below /var/lib/gantry' 'ProtectSystem=strict'
refused /home/nobody-is-here/disk 'ProtectHome=yes' 'ReadWritePaths=/home/nobody-is-here/disk'
# The example of docs/operations.md: a file system that is mounted while the daemon serves.
mount -t tmpfs none "$T/lib/disk5" || fail "mount"
gantry --admin "$T/admin.sock" disk add "$T/lib/disk5" --size 128MiB >"$T/said" 2>&1 || fail "the page's example: $(<"$T/said")"
settle
stop_daemon
# The unit has these settings, and the page such an example.
for s in ProtectSystem=strict ProtectHome=yes DevicePolicy=closed StateDirectory=gantry; do
	grep -qx "$s" "$ROOT/systemd/gantryd.service" || fail "the unit has no $s"
done
grep -q 'gantry disk add /var/lib/gantry/' "$ROOT/docs/operations.md" || fail "the page's example is not below the state directory"
