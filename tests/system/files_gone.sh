#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files of disks are removed, replaced and cut while the daemon serves: each such disk fails within a few beats, the reason names the file, and no write
# to it is acknowledged from then on. A directory that was renamed, or over which another is mounted, is whole: its disk serves, what is acknowledged is
# there afterwards, and health says that the next start will not find it.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' DISKS=7 DISK_SIZE=96MiB BUCKETS='bkt'
MORE='log: { access: false }'
# A beat is 5 s.
WAIT_USUAL=30
KEYS=60
disk() { curl_admin /disks | jq -r ".[$1] | $2"; }
state_of() { curl_admin /disks | json state "$1"; }
# The first disks, as many as there are words.
have_failed() { local s; s=$(curl_admin /disks | json state) && [[ $s = "$*"* ]]; }
reasons() { curl_admin /healthz | jq -r '.reasons[].text'; }
# puts NAME N: objects NAME1 to NAMEN with the bodies "NAME 1" to "NAME N", by one curl; the statuses, one a line.
puts() {
	local i
	for ((i = 1; i <= $2; i++)); do
		[ "$i" = 1 ] || echo next
		printf '%s\n' "url = \"$URL_S3/bkt/$1$i\"" 'request = PUT' "data-binary = \"$1 $i\"" 'output = /dev/null' 'write-out = "%{http_code}\n"' silent show-error
	done | curl -K -
}
all_put() { assert_eq "$(puts "$@" | sort | uniq -c | xargs)" "$2 200" "PUTs of $1"; }
all_read() { assert_eq "$(curl -sS -w '\n' "$URL_S3/bkt/$1[1-$2]")" "$(seq -f "$1 %g" "$2")" "what was PUT as $1"; }

start_daemon
all_put old "$KEYS"

# ---- a path that leads elsewhere loses nothing ----
mv "$T/disk6" "$T/elsewhere"
# The reason with its code.
is_warned() { curl_admin /healthz >"$T/health" && grep -q disk_path "$T/health" && jq -r '.reasons[] | select(.code == "disk_path") | .text' "$T/health" | grep -q "$T/disk6.*the next start will not find it"; }
wait_for 60 is_warned
mkdir "$T/disk6"
is_warned || fail "an empty directory is taken for the disk"
assert_eq "$(state_of 6)" serving
all_put moved "$KEYS"
rmdir "$T/disk6"
mv "$T/elsewhere" "$T/disk6"
is_well() { [ "$(curl_admin /healthz | json status)" = ok ]; }
wait_for 60 is_well
stop_daemon
daemon_run
all_read moved "$KEYS"

# ---- another file system is mounted over the path; the file system of the disk is detached ----
if unshare -m true 2>/dev/null; then
	stop_daemon
	cat >"$T/wrap" <<-END
		#!/bin/bash
		mount --bind "$T/disk6" "$T/disk6" && exec "\$@"
	END
	chmod +x "$T/wrap"
	DAEMON_WRAP="unshare -m $T/wrap" daemon_run
	inside() { nsenter -t "$DAEMON_PID" -m "$@"; }
	inside mount -t tmpfs none "$T/disk6" || fail "mount"
	wait_for 60 is_warned
	assert_eq "$(state_of 6)" serving
	all_put covered 12
	inside umount "$T/disk6" || fail "umount"
	wait_for 60 is_well
	mkdir "$T/empty"
	# What is below the mount is another directory.
	inside mount --bind "$T/empty" "$T/disk6" && inside umount -l "$T/disk6" && inside umount -l "$T/disk6" && inside mount --bind "$T/empty" "$T/disk6" || fail "umount -l"
	wait_for 60 is_warned
	all_put detached 12
	stop_daemon
	DAEMON_WRAP=
	daemon_run
	all_read covered 12
	all_read detached 12
fi

# ---- files, of three disks at first ----
wants=('seg-0000 was removed' 'log was replaced' 'super2 was removed' 'super was removed' 'seg-0000 was cut' 'host was removed')
said() { # said I...: those disks have failed, and the reasons name the files
	local i
	for i; do
		disk "$i" .reason | grep -q "its file ${wants[$i]}" || fail "disk $i: $(disk "$i" .reason)"
		reasons | grep -q "$T/disk$i failed.*${wants[$i]}" || fail "health says nothing of disk $i: $(reasons)"
	done
}
rm "$T/disk0/seg-0000"
cp -a "$T/disk1/log" "$T/log"
mv "$T/log" "$T/disk1/log"
rm "$T/disk2/super2"
wait_for 60 have_failed failed failed failed
said 0 1 2
assert_eq "$(state_of 6)" serving

# ---- what is acknowledged from now on is on the disks that are whole ----
acked=()
mapfile -t rc < <(puts new "$KEYS")
assert_eq "${#rc[@]}" "$KEYS" "answers"
for i in $(seq "$KEYS"); do
	case ${rc[i - 1]} in
	200) acked+=("$i") ;;
	503) ;;
	*) fail "PUT new$i: ${rc[i - 1]}" ;;
	esac
done
[ "${#acked[@]}" -gt 0 ] && [ "${#acked[@]}" -lt "$KEYS" ] || fail "${#acked[@]} of $KEYS PUTs were acknowledged"
for i in "${acked[@]}"; do assert_eq "$(curl_s3 "/bkt/new$i")" "new $i"; done

# ---- the others: fewer than half are left, and nothing is acknowledged ----
rm -rf "$T/disk3"
truncate -s 4096 "$T/disk4/seg-0000"
mv "$T/disk5/host" "$T/disk5/host.old"
wait_for 60 have_failed failed failed failed failed failed failed
said 3 4 5
assert_eq "$(puts late 10 | sort | uniq -c | xargs)" "10 503" "PUTs when fewer than half of the disks are left"
assert_alive
stop_daemon
