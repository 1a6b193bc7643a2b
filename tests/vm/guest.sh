#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is checked in the machine of run.sh, as root under its systemd: the installed packages, the unit as it was shipped.
# Every check is a function that ends with 0 or not; what it says is shown when it fails, with the end of the journal.
set -u
export LC_ALL=C.UTF-8
S3=127.0.0.1:9000 ADMIN=/run/gantry/admin.sock
passed=0 failed=0
mapfile -t words </etc/vm-words
cd /tmp || exit 1

check() {
	local name=$1 rc w wanted=''
	shift
	for w in "${words[@]}"; do [[ -n $w && $name != *"$w"* ]] || wanted=1; done
	[ -n "$wanted" ] || return 0
	# Not a pipe: what a check leaves running would hold it open.
	(set -e; trap 'kill $(jobs -p) 2>/dev/null || :' EXIT; "$@") >/tmp/said 2>&1
	rc=$?
	if [ $rc = 0 ]; then
		passed=$((passed + 1))
		echo "ok   $name (at $(cut -d. -f1 /proc/uptime) s)"
	else
		failed=$((failed + 1))
		echo "FAIL $name: exit $rc"
		tail -n 20 /tmp/said | sed 's/^/     /'
		journalctl -q --no-pager -o cat -u gantryd -u gantryd.socket -n 25 | sed 's/^/     | /'
	fi
}
# wait_for SECONDS COMMAND...
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { echo "not within the time: $*"; return 1; }
		sleep 0.1
	done
}
not() { ! "$@"; }
prop() { systemctl show -P "$1" gantryd.service; }
pid() { prop MainPID; }
is() { [ "$(prop "$1")" = "$2" ] || { echo "$1 is $(prop "$1"), not $2"; return 1; }; }
s3() { curl -sS -f --max-time 60 "${@:2}" "http://$S3$1"; }
admin() { curl -sS --max-time 30 --unix-socket $ADMIN "http://localhost$1"; }
journal() { journalctl -q --no-pager -o cat -u gantryd -b | grep -E "$1"; }
# Puts a drop-in over the unit: override NAME LINE...
override() {
	mkdir -p /run/systemd/system/gantryd.service.d
	printf '%s\n' '[Service]' "${@:2}" >"/run/systemd/system/gantryd.service.d/$1.conf"
	systemctl daemon-reload
}
no_override() {
	rm -rf /run/systemd/system/gantryd.service.d
	systemctl daemon-reload
}

# ---- the machine: a small configuration beside the shipped one, a software RoCE port
cat >/etc/gantry/conf.d/vm.yaml <<-YAML
	cores: 2
	admin: { socket: /run/gantry/admin.sock }
	memory: { buffers: 64MiB, index: 64MiB }
	store: { disks: [{ path: /var/lib/gantry/disk0, size: 1GiB }] }
	listen: [{ address: "127.0.0.1:9000", dialect: s3, anonymous: true }]
YAML
head -c 4000000 /dev/urandom >/tmp/in
ip link set lo up
modprobe -a dummy rdma_rxe ib_uverbs rdma_ucm
ip link add d0 mtu 4200 address 02:00:00:00:09:01 type dummy
ip addr add 10.9.0.1/24 dev d0
ip link set d0 up
rdma link add rxe0 type rxe netdev d0

unmade() {
	not systemctl start gantryd
	is ExecMainStatus 74
	is NRestarts 0
	is ActiveState failed
	systemctl reset-failed gantryd
}
check "without a store the service fails with 74 and is not started again" unmade

begin() {
	runuser -u gantry -- gantryd --check-config
	runuser -u gantry -- gantryd --format | grep '^export AWS_' >/tmp/first-key
	systemctl start gantryd
	is ActiveState active
	is SubState running
	is Type notify
	prop StatusText | grep -q "Serving: s3=$S3"
	[ "$(curl -s -o /dev/null -w '%{http_code}' --unix-socket $ADMIN http://localhost/readyz)" = 200 ]
}
check "start: ready is told to systemd when it serves" begin

serve() {
	s3 /bkt -X PUT
	s3 /bkt/obj -T /tmp/in
	s3 /bkt/obj | cmp - /tmp/in
	gantry --no-rdma -q put /tmp/in http://$S3/bkt/obj2
	gantry -q get http://$S3/bkt/obj2 /tmp/out
	cmp /tmp/in /tmp/out
	s3 /bkt/obj2 -X DELETE
	(. /tmp/first-key && gantry --no-rdma -q put /tmp/in http://$S3/bkt/signed)
	# Root makes a key, and the file still belongs to who has to read it; the daemon has it at once.
	gantry key new --bucket bkt --read-only >/tmp/key
	[ "$(stat -c '%U %a' /var/lib/gantry/credentials.yaml)" = "gantry 600" ]
	(. /tmp/key && gantry -q get http://$S3/bkt/signed /tmp/out && not gantry -q put /tmp/in http://$S3/bkt/signed)
	cmp /tmp/in /tmp/out
	s3 /bkt/signed -X DELETE
}
check "S3 requests are served" serve

sandbox() {
	local p
	p=$(pid)
	[ "$(stat -c %U /proc/$p)" = gantry ]
	grep -q '^Seccomp:.2$' /proc/$p/status
	grep -q '^NoNewPrivs:.1$' /proc/$p/status
	grep -q '^CapEff:.0000000000000000$' /proc/$p/status
	grep -q '^CapBnd:.0000000000000000$' /proc/$p/status
	[ "$(readlink /proc/$p/ns/user)" != "$(readlink /proc/1/ns/user)" ]
	[ "$(readlink /proc/$p/ns/mnt)" != "$(readlink /proc/1/ns/mnt)" ]
	grep -q 'Max locked memory *unlimited *unlimited' /proc/$p/limits
	# Files: even root, in there, writes to its own directories only.
	for d in / /etc /usr /boot /var /etc/gantry; do ! nsenter -t "$p" -m touch $d/x 2>/dev/null || { echo "$d is writable"; return 1; }; done
	for d in /tmp /var/lib/gantry /run/gantry; do nsenter -t "$p" -m sh -c "touch $d/x && rm $d/x"; done
	touch /tmp/mine /root/mine
	not nsenter -t "$p" -m test -e /tmp/mine
	not nsenter -t "$p" -m test -e /root/mine
	not nsenter -t "$p" -m test -e /proc/meminfo
}
# claim TM50
check "the sandbox is on: user, privileges, namespaces, files" sandbox

devices() {
	# Whoever is in the service's group of processes may open what it may.
	local group=/sys/fs/cgroup/system.slice/gantryd.service/cgroup.procs
	(echo $BASHPID >$group && exec 3</dev/infiniband/uverbs0)
	(echo $BASHPID >$group && exec 3<>/dev/infiniband/rdma_cm)
	! (echo $BASHPID >$group && exec 3</dev/vda) 2>/dev/null || { echo "/dev/vda opens"; return 1; }
	(exec 3</dev/vda)
}
check "the sandbox is on: the adapters' devices open, others do not" devices

calls() {
	journal 'io_uring: .*[^t] restricted'
	not journal 'not pinned|cannot raise'
	# Each core on a CPU of its own.
	local t n=0
	for t in /proc/"$(pid)"/task/*; do
		case $(cat "$t/comm") in core*) n=$((n + 1)); [ "$(sed -n 's/^Cpus_allowed_list:.//p' "$t/status")" = $((n - 1)) ] ;; esac
	done
	[ $n = 2 ]
}
# claim TM51
check "the sandbox lets io_uring (restricted), pinning and limits be" calls

# Programs of others in a copy of the shipped unit, where a call that the filter refuses ends them: what the kernel's verbs need is in the
# sandbox, to open, ask, map, register memory, connect and be told of completions.
in_unit() {
	local name=$1 type=$2
	shift 2
	sed -e "s|^ExecStart=.*|ExecStart=$*|" -e "s/^Type=.*/Type=$type/" -e 's/^SystemCallErrorNumber=.*/SystemCallErrorNumber=kill/' \
		-e "s/^\\(Runtime\\|State\\)Directory=.*/\\1Directory=$name/" -e '/^\(NotifyAccess\|ExecReload\|Restart\|WatchdogSec\)/d' \
		/lib/systemd/system/gantryd.service >"/run/systemd/system/$name.service"
	systemctl daemon-reload
	systemctl start "$name"
}
verbs() {
	local row
	in_unit verbs-devinfo oneshot /usr/bin/ibv_devinfo -v -d rxe0
	journalctl -q --no-pager -o cat -u verbs-devinfo -b | grep 'GID.*::ffff:10.9.0.1' | tee /tmp/gid
	row=$(sed 's/.*GID\[ *\([0-9]*\)\].*/\1/' /tmp/gid)
	in_unit verbs-server exec /usr/bin/ibv_rc_pingpong -e -d rxe0 -g "$row" -n 200
	wait_for 30 sh -c "ss -ltn | grep -q ':18515 '"
	in_unit verbs-client oneshot /usr/bin/ibv_rc_pingpong -e -d rxe0 -g "$row" -n 200 10.9.0.1
	journalctl -q --no-pager -o cat -u verbs-client -b | grep '^200 iters in'
	wait_for 30 not systemctl is-active -q verbs-server
	[ "$(systemctl show -P Result verbs-server)" = success ]
}
check "the sandbox lets the kernel's verbs be: ibv_devinfo, ibv_rc_pingpong with events, over Soft-RoCE" verbs

locked_out() {
	chmod 600 /dev/infiniband/uverbs0
	runuser -u gantry -- gantryd --list-devices | tee /tmp/devices
	chmod 666 /dev/infiniband/uverbs0
	grep 'rxe0: not used: its file in /dev/infiniband is not open to this process: .*Permission denied' /tmp/devices
}
check "a device whose file may not be opened says so" locked_out

# The adapter's driver comes after the daemon.
late() {
	systemctl stop gantryd
	rdma link del rxe0
	modprobe -r rdma_rxe rdma_ucm ib_uverbs
	not test -e /sys/module/ib_uverbs
	systemctl start gantryd
	test -e /sys/module/ib_uverbs
	modprobe rdma_rxe
	rdma link add rxe0 type rxe netdev d0
	wait_for 20 test -e /dev/infiniband/uverbs0
	devices
}
check "a driver that is loaded after the start: the sandbox lets its devices be" late

# What the filter refuses is an error to the daemon, which may be quiet about it.  Here it is its end.
filter() {
	local p
	override kill SystemCallErrorNumber=kill
	systemctl restart gantryd
	p=$(pid)
	s3 /bkt/filter -T /tmp/in
	s3 /bkt/filter | cmp - /tmp/in
	s3 /bkt/filter -X DELETE
	admin /metrics >/dev/null
	systemctl reload gantryd
	# The reload has ended, and the cores serve with it. A process that the filter has ended has no state S, R or D.
	s3 /bkt/filter -T /tmp/in
	s3 /bkt/filter | cmp - /tmp/in
	admin /metrics >/dev/null
	grep -q '^State:[[:space:]]*[SRD]' "/proc/$p/status"
	is MainPID "$p"
	systemctl stop gantryd
	is Result success
	no_override
	systemctl start gantryd
}
check "the sandbox: no system call that the daemon makes is outside of the filter" filter

rxe() {
	runuser -u gantry -- gantryd --list-devices | tee /tmp/devices
	grep rxe0 /tmp/devices
	journal rxe0
	# The token names a window of nobody's: the request is declined before anything is asked of the device.
	local t=00007f0000001000:00400000:01f2e973:0000:007a03:1:00000000000000000000ffff0a090001
	s3 /bkt/obj -H "x-amz-rdma-token: $t" -D /tmp/head -o /tmp/out || :
	cat /tmp/head
	grep -q '^HTTP/1.1 501 ' /tmp/head
	grep -qi '^x-amz-rdma-reply: 501' /tmp/head
	grep -i '^x-gantry-rdma-reason: ..*' /tmp/head
	s3 /bkt/obj -o /tmp/out
	cmp /tmp/in /tmp/out
}
check "Soft-RoCE: the device is listed, a token of DC is declined with a reason, the data comes over HTTP" rxe

reload() {
	local p
	p=$(pid)
	not grep -q debug <(admin /config | grep '"log.level"')
	echo 'log: { level: debug }' >/etc/gantry/conf.d/yy.yaml
	systemctl reload gantryd
	wait_for 40 sh -c "curl -sS --unix-socket $ADMIN http://localhost/config | grep '\"log.level\"' | grep -q debug"
	wait_for 30 is ActiveState active
	is MainPID "$p"
	s3 /bkt/obj | cmp - /tmp/in
	# A file that is bad changes nothing, and says so.
	echo 'log: { level: loud }' >/etc/gantry/conf.d/yy.yaml
	not systemctl reload gantryd
	wait_for 40 journal 'not reloaded'
	wait_for 40 journal 'loud'
	wait_for 30 is ActiveState active
	is MainPID "$p"
	s3 /bkt/obj | cmp - /tmp/in
	rm /etc/gantry/conf.d/yy.yaml
	systemctl reload gantryd
	wait_for 30 is ActiveState active
}
check "reload: the same process goes on with other values; a bad file changes nothing, and systemctl reload fails" reload

# PUT of /tmp/in at 200 KB/s in the background; comes back when the daemon has it.
slow_put() {
	curl -sS -f --max-time 120 --limit-rate 200k -T /tmp/in -o /dev/null -w '%{http_code}' "http://$S3/bkt/$1" >/tmp/slow 2>&1 &
	wait_for 30 sh -c "curl -sS --unix-socket $ADMIN http://localhost/requests | grep -qi put"
}
drain() {
	slow_put drained
	systemctl stop gantryd
	wait $!
	[ "$(cat /tmp/slow)" = 200 ]
	is ActiveState inactive
	is Result success
	is ExecMainStatus 0
	systemctl start gantryd
	s3 /bkt/drained | cmp - /tmp/in
}
check "stop: a transfer in flight is finished first" drain

killed() {
	local p n
	p=$(pid) n=$(prop NRestarts)
	s3 /bkt/kept -T /tmp/in
	kill -KILL "$p"
	wait_for 90 is NRestarts $((n + 1))
	wait_for 30 is ActiveState active
	[ "$(pid)" != "$p" ]
	s3 /bkt/kept | cmp - /tmp/in
}
check "SIGKILL: started again, and what was acknowledged is there" killed

# A core counts as hung when it is at work and does not come round: hang stops it under load.
watchdog() {
	local p n t i
	override watchdog WatchdogSec=9s
	systemctl restart gantryd
	p=$(pid) n=$(prop NRestarts)
	for t in /proc/"$p"/task/*; do [ "$(cat "$t/comm")" != core0 ] || break; done
	for i in 1 2 3; do
		while [ ! -e /tmp/no-load ]; do curl -s --max-time 1 -o /dev/null "http://$S3/bkt/kept" || sleep 0.2; done >/dev/null 2>&1 &
	done
	hang "${t##*/}" >/tmp/hang 2>&1 &
	wait_for 60 grep -q stopped /tmp/hang
	wait_for 30 journal 'core 0 is stuck'
	wait_for 90 is NRestarts $((n + 1))
	touch /tmp/no-load
	wait_for 60 is ActiveState active
	[ "$(pid)" != "$p" ]
	journalctl -q --no-pager -o cat -u gantryd | grep -i 'watchdog timeout'
	s3 /bkt/kept | cmp - /tmp/in
	no_override
	systemctl restart gantryd
}
check "watchdog: a core that hangs ends the daemon, which is started again" watchdog

badconf() {
	echo 'memroy: { buffers: 1 }' >/etc/gantry/conf.d/zz.yaml
	not systemctl restart gantryd
	is ExecMainStatus 78
	is NRestarts 0
	rm /etc/gantry/conf.d/zz.yaml
	systemctl reset-failed gantryd
	systemctl start gantryd
}
check "a bad configuration: fails with 78 and is not started again" badconf

sockets() {
	systemctl stop gantryd
	systemctl start gantryd.socket
	not systemctl is-active -q gantryd
	s3 /bkt/obj | cmp - /tmp/in
	is ActiveState active
	not journal 'belongs to no listener'
	# The socket outlives the daemon: who comes meanwhile waits, and is not refused.
	systemctl restart gantryd &
	local i
	for i in 1 2 3 4 5 6 7 8 9 10; do curl -sS --connect-timeout 1 --max-time 30 -o /dev/null "http://$S3/" || [ $? != 7 ]; done
	wait $!
	s3 /bkt/obj | cmp - /tmp/in
	systemctl stop gantryd.socket gantryd
	systemctl start gantryd
}
check "socket activation: the first request starts it, a restart refuses nobody" sockets


# The software NIC copies with process_vm_writev, which no one may do out of a user namespace: PrivateUsers= is off for it.
softnic() {
	mkdir -m 700 /var/lib/gantry/nic
	chown gantry: /var/lib/gantry/nic
	local lib
	lib=$(dirname "$(find /usr/lib -path '*gantry/softnic/libibverbs.so.1')")
	printf 'rdma: { allow_special: [loopback, self] }\n' >/etc/gantry/conf.d/nic.yaml
	override nic "Environment=LD_LIBRARY_PATH=$lib SOFTNIC_DIR=/var/lib/gantry/nic" PrivateUsers=no SystemCallErrorNumber=kill
	systemctl restart gantryd
	runuser -u gantry -- env SOFTNIC_DIR=/var/lib/gantry/nic with-softnic gantry --require-rdma -q put /tmp/in http://$S3/bkt/rdma
	runuser -u gantry -- env SOFTNIC_DIR=/var/lib/gantry/nic with-softnic gantry --require-rdma -q get http://$S3/bkt/rdma - | cmp - /tmp/in
	rm /etc/gantry/conf.d/nic.yaml
	no_override
	systemctl restart gantryd
}
chmod 644 /tmp/in
check "DC transfers on the software NIC, in the sandbox" softnic

# shellcheck source=tests/vm/guest_rc.sh
. /usr/local/bin/guest_rc.sh

clean() {
	systemctl stop gantryd
	is Result success
	not journal 'check failed|core dumped'
	runuser -u gantry -- gantryd --fsck
}
check "at the end the store is clean" clean

echo "RESULT $passed $failed"
