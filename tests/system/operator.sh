#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry status, top and doctor against the real daemon, and the completions against what the programs take.
DISK_SIZE=1GiB
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

# ---- without a daemon
out=$(gantry --admin 127.0.0.1:1 status 2>&1) && fail "status of nobody is a success"
assert_match "$out" "no answer from 127.0.0.1:1"
out=$(gantry --admin "$T/none.sock" top --count 1 2>&1) && fail "top of nobody is a success"
assert_match "$out" "no answer from $T/none.sock"
out=$(NO_NIC=1 gantry --admin 127.0.0.1:1 doctor) && fail "doctor without a device is content"
assert_match "$out" "STOP     devices      none:"
assert_match "$out" "note     daemon       not looked at"
nic "$BUILD/gantry" --admin 127.0.0.1:1 doctor >"$T/out" || fail "doctor on a device: $(<"$T/out")"
grep -q "^ok       mlx5_0:1     active, RoCE" "$T/out" || fail "doctor: no port: $(<"$T/out")"
# Where io_uring is forbidden, that is its one warning.
if grep -q '^warning  io_uring ' "$T/out"; then
	assert_eq "$(grep -c '^warning' "$T/out")" 1 "doctor: $(<"$T/out")"
	grep -q "^RDMA can be used; see the warnings" "$T/out" || fail "doctor: $(<"$T/out")"
else
	grep -q "^nothing is in the way of RDMA" "$T/out" || fail "doctor: $(<"$T/out")"
fi
softnicctl rule add op=modify_qp skip=2 error=EINVAL >/dev/null
nic "$BUILD/gantry" --admin 127.0.0.1:1 doctor >"$T/out" && fail "doctor took a port without initiators"
softnicctl rule clear
grep -q '^warning  mlx5_0:1     .*refused (RTR to RTS: Invalid argument)' "$T/out" || fail "doctor: no initiator: $(<"$T/out")"
nic "$BUILD/gantry" doctor 127.0.0.1 | grep -q "127.0.0.1 can be reached" || fail "doctor: the way to a client"
nic "$BUILD/gantry" doctor nonsense >"$T/out" && fail "doctor took nonsense for an address"
grep -q "^STOP     client       nonsense is no address" "$T/out" || fail "doctor: $(<"$T/out")"

# ---- with one that moved objects both ways
start_daemon
raw <<-END
	window w 3M pattern:7
	request PUT /bkt/a x-amz-rdma-token:@w content-length:0
	expect status 200
	request GET /bkt/a x-amz-rdma-token:@w
	expect status 200
END
bytes pattern:1 100000 >"$T/in"
curl_s3 /bkt/b -T "$T/in"
# A request counts when it is over, which its client may hear a moment before.
is_over() { [ "$(metric gantry_connections)" = 0 ]; }
wait_for 60 is_over
for where in "$T/admin.sock" "$ADMIN" "$URL_ADMIN"; do
	gantry --admin "$where" status >"$T/out" || fail "status at $where: $(<"$T/out")"
done
assert_eq "$(gantry --quiet --admin "$ADMIN" status 2>&1)" "" "status --quiet of a daemon that is well"
grep -q "^daemon     gantryd .* serving for .*, healthy$" "$T/out" || fail "status: $(<"$T/out")"
grep -q "^rails      mlx5_0:1 up, ethernet, 3.0 MiB read, 3.0 MiB written" "$T/out" || fail "status: rails: $(<"$T/out")"
grep -qE "^disks      [0-9a-f]{8} $T/disk0 serving, [0-9.]+ MiB of 1.0 GiB free \([1-9][0-9]* % reserved, 0 % data\), [0-9]+ objects" "$T/out" || fail "status: disks: $(<"$T/out")"
# Each object is counted once, by the disk that has its first copy.
assert_eq "$(sed -n "s|.*/disk[0-9]* serving, .* \([0-9]*\) objects.*|\1|p" "$T/out" | awk '{ n += $1 } END { print n }')" 2 "objects of all disks"
grep -q "^traffic    by RDMA: 2 requests, 3.0 MiB in, 3.0 MiB out" "$T/out" || fail "status: traffic: $(<"$T/out")"
GANTRY_ADMIN=$ADMIN gantry --json status | /usr/bin/python3 -c '
import json, sys
s = json.load(sys.stdin)
assert s["status"]["phase"] == "serving" and s["health"]["status"] == "ok" and len(s["disks"]) == int(sys.argv[1]), s' "$DISKS" || fail "status --json"

# top: work between two samples shows
while [ ! -e "$T/seen" ]; do curl_s3 /bkt/b -o /dev/null && sleep 0.1; done &
asks=$!
top_shows() { # in an interval in which the machine had time for some
	gantry --admin "$ADMIN" --interval 0.5 --count 2 top >"$T/out" && [ "$(grep -c '^gantryd ' "$T/out")" = 2 ] &&
		grep -Eq '^operations +[0-9]+\.[0-9]  GetObject' "$T/out" && grep -Eq '^http +[1-9][0-9]* ' "$T/out" && grep -Eq '^ +serving .* %  [0-9a-f]{8} /' "$T/out"
}
wait_for 60 top_shows
# In a terminal of 80 columns, and 24 rows, nothing but names is cut.
/usr/bin/python3 - "$BUILD/gantry" "$ADMIN" >"$T/out" <<-'END' || fail "top in a terminal: $(<"$T/out")"
	import fcntl, os, pty, struct, sys, termios
	pid, fd = pty.fork()
	if pid == 0:
	    os.read(0, 1)
	    os.execv(sys.argv[1], [sys.argv[1], "--admin", sys.argv[2], "--interval", "0.1", "--count", "1", "top"])
	fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
	os.write(fd, b"\n")
	screen = b""
	while True:
	    try:
	        more = os.read(fd, 4096)
	    except OSError:
	        break
	    if not more:
	        break
	    screen += more
	os.waitpid(pid, 0)
	for line in screen.decode().replace("\x1b[K", "").split("\n"):
	    print(line.rstrip("\r"))
END
grep -qE ' p99$' "$T/out" || fail "no p99: $(<"$T/out")"
grep -qE '^disks +state +read/s +written/s flushes/s commits/s +used  disk$' "$T/out" || fail "no heads of disks: $(<"$T/out")"
grep -qE '^ +serving +[0-9.]+ [KMG]?i?B +[0-9.]+ [KMG]?i?B +[0-9]+ +[0-9]+ +[0-9]+ %  [0-9a-f]{8}' "$T/out" || fail "no disk: $(<"$T/out")"
grep -qE '^ +up +[0-9.]+ [KMG]?i?B +[0-9.]+ [KMG]?i?B +[0-9]+ of [0-9]+  mlx5_0:1$' "$T/out" || fail "no rail: $(<"$T/out")"
grep -qE '^ +(idle|busy) +[0-9]+ +[0-9]+ +[0-9]+ of [0-9]+  [-0-9]+$' "$T/out" || fail "no core: $(<"$T/out")"
touch "$T/seen"
wait $asks

# The traffic class against the port's, in files of a driver that this machine does not have.
# with_sys COMMAND...: with only those files below /sys
with_sys() { unshare -m sh -c 'mount --bind "$1" /sys && shift && exec "$@"' - "$T/sys" "$@"; }
ib=$T/sys/class/infiniband/mlx5_0
mkdir -p "$ib/tc/1" "$ib/ports/1/gid_attrs/ndevs" "$T/sys/class/net/eth7/qos"
class_line() { with_sys "$ROOT/scripts/with-softnic" -d 1 "$BUILD/gantry" --admin "$ADMIN" doctor | grep traffic_class; }
assert_match "$(class_line)" "^ok       mlx5_0:1     rdma.traffic_class is 96 \(DSCP 24, no ECN\); the port does not tell"
echo "Global tclass=106" >"$ib/tc/1/traffic_class"
assert_match "$(class_line)" "^warning  mlx5_0:1     rdma.traffic_class is 96 .* the port forces 106 \(DSCP 26, ECT\(0\)\) on every queue pair"
# ... which `auto` takes for its own.
with_sys "$ROOT/scripts/with-softnic" -d 1 "$BUILD/gantryd" -c "$T/gantryd.yaml" -o rdma.traffic_class=auto --list-devices >"$T/list"
grep -q 'port 1: .*, class 106, 4 paths' "$T/list" || fail "rdma.traffic_class: auto: $(<"$T/list")"
echo "Global tclass=96" >"$ib/tc/1/traffic_class"
assert_match "$(class_line)" "^ok       mlx5_0:1 .*; the port agrees"
echo eth7 >"$ib/ports/1/gid_attrs/ndevs/0"
echo pcp >"$T/sys/class/net/eth7/qos/trust"
assert_match "$(class_line)" "^warning  mlx5_0:1 .* eth7 trusts pcp .*mlnx_qos -i eth7 --trust dscp"
echo dscp >"$T/sys/class/net/eth7/qos/trust"
assert_match "$(class_line)" "^ok       mlx5_0:1 .*; the port agrees"

# A decline is explained, and doctor warns of it.
softnicctl port mlx5_0 down
wait_for 60 eval 'curl_admin /metrics | grep -q "^gantry_rail_up{rail=\"mlx5_0:1\"} 0"'
raw <<-END
	window w 1M pattern:7
	request PUT /bkt/c x-amz-rdma-token:@w content-length:0
	expect status 501
	expect header x-amz-rdma-reply 501
END
gantry --admin "$ADMIN" status >"$T/out" && fail "a rail that is down is healthy"
grep -q "rail mlx5_0:1 is down" "$T/out" || fail "status: $(<"$T/out")"
grep -q "declined, no-rail: 1 (every RDMA port of the server is down or lost)" "$T/out" || fail "status: $(<"$T/out")"
nic "$BUILD/gantry" --admin "$ADMIN" doctor >"$T/out" && fail "doctor is content with a port that is down"
grep -q "^warning  daemon       /healthz: rail_down: rail mlx5_0:1 is down" "$T/out" || fail "doctor: $(<"$T/out")"
grep -q "^STOP     devices      no port can be used" "$T/out" || fail "doctor: $(<"$T/out")"
grep -q "^warning  declines     1 requests since the start, no-rail" "$T/out" || fail "doctor: $(<"$T/out")"
assert_eq "$(gantry --admin "$ADMIN" --json doctor | grep -c '"finding": "STOP"')" "$(gantry --admin "$ADMIN" doctor | grep -c '^STOP')"
stop_daemon

# ---- completions: every long option and command that --help shows, and no other
for program in gantry gantryd; do
	"$BUILD/$program" --help | grep -oE -- '--[a-z][a-z-]+' | sort -u >"$T/taken"
	grep -oE -- '--[a-z][a-z-]+' "$ROOT/share/completions/$program.bash" | sort -u >"$T/bash"
	grep -oE -- '--[a-z][a-z-]+' "$ROOT/share/completions/_$program" | sort -u >"$T/zsh"
	for shell in bash zsh; do
		diff "$T/taken" "$T/$shell" >"$T/diff" || fail "options of $program in $shell's completion: $(<"$T/diff")"
	done
done
"$BUILD/gantry" --help | sed -n '/^usage/,/^URL/p' | grep -oE '^  [a-z]+' | tr -d ' ' | sort -u >"$T/taken"
sed -n "s/.*commands='\(.*\)'/\1/p" "$ROOT/share/completions/gantry.bash" | tr ' ' '\n' | sort -u | diff "$T/taken" - || fail "commands, bash"
sed -n "s/^\t'\([a-z]*\):.*/\1/p" "$ROOT/share/completions/_gantry" | sort -u | diff "$T/taken" - || fail "commands, zsh"
complete_gantry() {
	bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gantry; printf "%s\n" "${COMPREPLY[@]}"' - \
		"$ROOT/share/completions/gantry.bash" "$@"
}
assert_eq "$(complete_gantry gantry doc)" doctor
assert_eq "$(complete_gantry gantry --json statu)" status
assert_eq "$(complete_gantry gantry --req)" --require-rdma
assert_eq "$(complete_gantry gantry top --i)" --interval
assert_eq "$(complete_gantry gantry put --i)" ""
