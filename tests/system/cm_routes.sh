#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rail that data goes by where no interface tells: the kernel's connection manager is asked, by librdmacm, which port leads to an
# address, and on InfiniBand with which service level (fake_rdmacm.c has the answers here).  One that is not there, fails or hangs is no
# reason to do without RDMA.  No interface of this network namespace has the addresses of the rails:
#
#     mlx5_0 10.1.1.1, mlx5_1 10.1.2.1, mlx5_2 InfiniBand: the server's rails   mlx5_3 10.9.4.1, mlx5_4 InfiniBand: clients
OWN_NET=${OWN_NET:-1}
. "$(dirname "$0")/lib.sh"
NICS=5
export SOFTNIC_GIDS='10.1.1.1/24;10.1.2.1/24;;10.9.4.1/24' SOFTNIC_IB=2,4 FAKE_RDMACM=$T/answers
RDMA='{ devices: [mlx5_0, mlx5_1, mlx5_2], allow: [10.0.0.0/8, "fe80::/64"], service_level: auto }'
ip route add default dev lo # the kernel has a route to everybody, which says nothing of rails

san=''
case $BUILD in *asan*) san=-fsanitize=address,undefined ;; *tsan*) san=-fsanitize=thread ;; esac
mkdir "$T/cm"
echo 'RDMACM_1.0 { global: *; };' >"$T/cm/map"
# shellcheck disable=SC2086
gcc -std=gnu17 -D_GNU_SOURCE -shared -fPIC -Wall -Werror $san -Wl,--version-script,"$T/cm/map" -Wl,-soname,librdmacm.so.1 -o "$T/cm/librdmacm.so.1" \
	"$ROOT/tests/fake/fake_rdmacm.c" >"$T/out" 2>&1 || fail "fake_rdmacm.c: $(<"$T/out")"
export LD_LIBRARY_PATH="$T/cm"

bytes pattern:3 64K >"$T/data"
# put DEVICE: 64 KiB by RDMA.
put() { gantry --require-rdma --device "$1" put "$T/data" "$URL_S3/bkt/$1" >"$T/err" 2>&1; }
must_put() { put "$1" || fail "put from $1: $(<"$T/err")"; }
must_put_4() { for ((i = 0; i < 4; i++)); do must_put mlx5_3; done; }
moved() {
	curl_admin /rails | /usr/bin/python3 -c '
import json, sys
print(*[(r["read_bytes"] + r["written_bytes"]) // 65536 for r in json.load(sys.stdin)])'
}
asked() { sort "$T/answers.asked" 2>/dev/null | uniq -c | tr -s ' \n' ' '; }
# again ANSWER...: a daemon that knows nothing yet.
again() { printf '%s\n' "$@" >"$T/answers" && rm -f "$T/answers.asked" && restart_daemon; }

ib='to fe80::200:5eff:fe00:104 mlx5_2 1 5'
printf '%s\n' 'to 10.9.4.1 mlx5_1 1' "$ib" >"$T/answers"
start_daemon
softnicctl reach all # who leads there is said by the connection manager alone
softnicctl rule add op=create_ah dev=mlx5_0 skip=1000000 >/dev/null
must_put_4
assert_eq "$(moved)" "0 4 0" "puts by each rail"
softnicctl rule list | grep -q ' seen=0 ' || fail "an address handle on the rail that leads elsewhere: $(softnicctl rule list)"
softnicctl rule clear
# On InfiniBand packets have the level of the path.
# level: that of the READs of a put.
level() {
	softnicctl trace on "$T/trace" 64
	must_put mlx5_4
	softnicctl trace off
	softnicctl trace show "$T/trace" | awk '$6 == "read" { print $17 }' | sort -u
}
assert_eq "$(level)" 5 "service level"

# The first one, then; and that nothing leads there.
again 'to 10.9.4.1 mlx5_0 1'
must_put_4
assert_eq "$(moved)" "4 0 0" "puts by each rail"
again 'no 10.9.4.1 101'
if put mlx5_3; then fail "served, though the kernel has no route"; fi
grep -q unreachable "$T/err" || fail "no reason: $(<"$T/err")"

# A device that is none of ours, no manager, a library that does not return: both rails as without it, and soon.
for how in 'to 10.9.4.1 mlx5_3 1' absent stuck; do
	again "$how"
	must_put_4
	assert_eq "$(moved | tr ' ' '\n' | awk '{ n += $1 } END { print n, NR }')" "4 3" "puts, $how"
	case $how in
	absent)
		assert_eq "$(level)" 0 "service level that nobody tells"
		wait_for 60 grep -q 'no connection manager' "$T/daemon.log"
		;;
	stuck) assert_eq "$(asked)" " 1 10.9.4.1 " "questions to one that does not answer" ;;
	esac
done
stop_daemon
wait_for 60 grep -q 'librdmacm does not come back' "$T/daemon.log"

# rdma.allow: routed takes its word.
sed -i 's/allow: \[[^]]*\]/allow: [routed]/' "$T/gantryd.yaml"
again 'to 10.9.4.1 mlx5_1 1'
must_put mlx5_3
again 'absent'
if put mlx5_3; then fail "served, though nobody knows a route"; fi
grep -q -e unreachable -e not-allowed "$T/err" || fail "no reason: $(<"$T/err")"


# item T75: on a connection of RC the path's level holds, else that which the client was told, and the answer says it.  A number in the
# configuration holds for all, and on Ethernet no client chooses.
sed -i 's/service_level: auto/service_level: auto, rc: { shim: on }/' "$T/gantryd.yaml"
# rc DEVICE WISH: the level that the answer has, and that of the READs of a PUT.
rc() {
	softnicctl trace on "$T/trace" 64
	raw <<-END >"$T/raw.out"
		nic n dev=$1
		qp q nic=n gid
		connect q "x-gantry-rc:$2"
		save said header x-gantry-rc
		window w 64K pattern:3 nic=n
		rctoken t q w
		request PUT /bkt/rc x-amz-rdma-token:@t content-length:0
		expect status 200
		print @said
		request POST /.s3rdma-rc/disconnect x-amz-rdma-session:@q_id content-length:0
	END
	softnicctl trace off
	sed -n 's/.*sl=\([0-9]*\);.*/\1/p' "$T/raw.out"
	softnicctl trace show "$T/trace" | awk '$6 == "read" { print $17 }' | sort -u
}
again "$ib" 'to 10.9.4.1 mlx5_1 1'
assert_eq "$(rc mlx5_4 'sl=3')" $'5\n5' "the path's level"
assert_eq "$(rc mlx5_4 'mtu=1024')" $'5\n5' "the path's level"
assert_eq "$(rc mlx5_3 'sl=3')" $'0\n0' "a wish on Ethernet"
again absent
assert_eq "$(rc mlx5_4 'sl=3')" $'3\n3' "a wish for a path that nobody knows"
assert_eq "$(rc mlx5_4 'sl=15; mtu=1024')" $'15\n15' "another wish"
assert_eq "$(rc mlx5_4 'mtu=1024')" $'0\n0' "no wish"
sed -i 's/service_level: auto/service_level: 2/' "$T/gantryd.yaml"
again absent
assert_eq "$(rc mlx5_4 'sl=3')" $'2\n2' "a wish where the configuration has a number"
