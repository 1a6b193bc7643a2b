#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A memory cgroup: what does not fit into it is refused with both numbers and status 78, automatic sizes fit, and a daemon in it serves
# without being killed.  Its files lie on a disk (tests/on-disk).
BUCKETS=
. "$(dirname "$0")/lib.sh"

# A group of this test's own, in version 1 or 2.
own=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
if [ -n "$own" ]; then
	G=/sys/fs/cgroup/memory$own LIMIT=memory.limit_in_bytes
else
	G=/sys/fs/cgroup LIMIT=memory.max
fi
[ -d "$G" ] || G=$(dirname "$G/x")
G=$G/gantry-test-$$
mkdir "$G" 2>/dev/null && [ -e "$G/$LIMIT" ] || { rmdir "$G" 2>/dev/null; skip "no memory cgroup of our own can be made"; }
_leave() { local rc=$?; [ -z "$DAEMON_PID" ] || { kill -KILL "$DAEMON_PID"; wait "$_daemon_job"; } 2>/dev/null; DAEMON_PID=''; rmdir "$G"; (exit $rc); _at_exit; }
trap _leave EXIT
echo $((200 << 20)) >"$G/$LIMIT" || skip "the limit of a memory cgroup cannot be set"
cat >"$T/in-group" <<END
#!/bin/bash
echo \$\$ >"$G/cgroup.procs"
exec "\$@"
END
chmod +x "$T/in-group"

write_config
format_store
"$T/in-group" "$BUILD/gantryd" -c "$T/gantryd.yaml" --check-config -o memory.buffers=512MiB >"$T/out" 2>&1
assert_eq $? 78 "a start that does not fit"
grep -q 'buffers, http_buffers, index, replay and the rest of the process need [0-9.]*[MG]iB, and the control group (container, MemoryMax=) allows 200MiB' "$T/out" ||
	fail "$(<"$T/out")"
# What is automatic fits.
sed -i '/^memory:/d' "$T/gantryd.yaml"
"$T/in-group" "$BUILD/gantryd" -c "$T/gantryd.yaml" --print-config -o cores=1 >"$T/out" 2>&1 || fail "automatic sizes: $(<"$T/out")"
# The largest that is taken is no more than the group gives, with all of it in use.
DAEMON_WRAP=$T/in-group
daemon_run -o cores=1 -o memory.index=16MiB
curl -sS -o /dev/null -X PUT "$URL_S3/bkt"
curl_s3 /bkt/a -X PUT -d data
assert_eq "$(curl_s3 /bkt/a)" data
stop_daemon
