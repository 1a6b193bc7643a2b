#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The distribution's own programs, unmodified, over the software NIC: every exported name at its version node,
# ibv_devinfo, ibv_rc_pingpong, perftest over DC and RC, also by RDMA-CM, rping, and ucx_perftest.  Skipped for
# sanitizer builds, which those cannot load.  A run has one of the two modes and a quarter of the programs, the others with the next seven
# commits: the number of commits says which.  MODES='thread inline' PART=0/1: all, as in long/third_party.
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build/release}
export BUILD
case $BUILD in
*asan* | *tsan*) echo "programs of the distribution cannot load a sanitizer build"; exit 77 ;;
esac

tmp=$(mktemp -d /dev/shm/softnic-test-XXXXXX)
SOFTNIC_DIR=$tmp/fabric
export SOFTNIC_DIR
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || :; rm -rf "$tmp"' EXIT
fail() {
	echo "FAIL: $*"
	exit 1
}

names() {
	readelf --dyn-syms -W "$1" | awk '$7 != "UND" && $8 ~ /@@/ { print $8 }' | sort
}
for lib in libibverbs libmlx5 librdmacm; do
	real=$(gcc -print-file-name=$lib.so)
	[ -e "$real" ] || { echo "no $lib.so of the distribution to compare with"; exit 1; }
	names "$real" >"$tmp/real"
	dir=softnic
	[ $lib != librdmacm ] || dir=softnic/cm
	names "$BUILD/$dir/$lib.so.1" >"$tmp/ours"
	missing=$(comm -23 "$tmp/real" "$tmp/ours")
	[ -z "$missing" ] || fail "$lib.so.1 lacks: $missing"
	echo "$lib.so.1: $(wc -l <"$tmp/real") names at their nodes"
done

if command -v ibv_devinfo >/dev/null; then
	scripts/with-softnic -d 2 ibv_devinfo -v >"$tmp/info"
	for want in 'hca_id:.*mlx5_0' 'hca_id:.*mlx5_1' 'SOFTNIC' 'PORT_ACTIVE' 'Ethernet' '::ffff:127.0.0.1, RoCE v2' \
		'::ffff:127.0.0.2, RoCE v2' 'RoCE v1'; do
		grep -q "$want" "$tmp/info" || fail "ibv_devinfo -v does not show $want"
	done
	echo "ibv_devinfo -v: two devices"
fi

for prog in ib_write_bw rping ucx_perftest; do
	command -v $prog >/dev/null || { echo "no $prog here: scripts/deps test installs it"; exit 1; }
done
gcc -std=gnu17 -D_GNU_SOURCE -shared -fPIC -O1 -Wall -Wextra -Werror -o "$tmp/calm_clock.so" tests/softnic/preload/calm_clock.c
port=$((20000 + $$ % 10000))
# Is it our server that listens there?  Another's, of a test beside this one, would take our client for its own.
listens() {
	[ -n "$server" ] || return 1
	who=$(ss -Hltnp "sport = :$port")
	case $who in
	'') return 1 ;;
	*pid=*) [ "$(ps -o ppid= -p "$(echo "$who" | sed -n 's/.*pid=\([0-9]*\).*/\1/p' | head -n 1)" | tr -d ' ')" = "$server" ] ;;
	*) kill -0 "$server" ;; # nobody tells us
	esac
}
two() { # MODE NAME COMMAND...: a server, and a client of it.  NODES=-n: with the nodes of the device
	mode=$1 name=$2
	shift 2
	i=0
	# shellcheck disable=SC2086
	until listens && SOFTNIC_EXEC=$mode LD_PRELOAD=$tmp/calm_clock.so timeout 60 scripts/with-softnic ${NODES:-} "$@" -p $port 127.0.0.1 >"$tmp/client" 2>&1; do
		i=$((i + 1))
		[ $i -lt 300 ] || { cat "$tmp/server" "$tmp/client"; fail "$name, $mode"; }
		# It says nothing when it listens; one that has ended found the port taken.
		if [ -z "$server" ] || ! kill -0 "$server" 2>/dev/null; then
			port=$((port + 1))
			# shellcheck disable=SC2086
			SOFTNIC_EXEC=$mode LD_PRELOAD=$tmp/calm_clock.so timeout 60 scripts/with-softnic ${NODES:-} "$@" -p $port >"$tmp/server" 2>&1 &
			server=$!
		fi
		sleep 0.2
	done
	wait "$server" || { cat "$tmp/server"; fail "server of $name, $mode"; }
	server=
}
# Does a program listen by RDMA-CM in our fabric?
listens_by_cm() {
	fabric=$(stat -c '%d %i' "$SOFTNIC_DIR/fabric" 2>/dev/null) || return 1
	# shellcheck disable=SC2086
	grep -q " 00010000 .* @softnic-cm $(printf '%x:%x' $fabric) " /proc/net/unix
}
# The client of perftest connects twice.  If the second request comes before the server listens again, the client is rejected, and
# crashes when it tries again; then both are started again.
by_cm() { # MODE NAME SERVER-WORDS CLIENT-WORDS COMMAND...: the same for programs that meet by RDMA-CM
	mode=$1 name=$2 as_server=$3 as_client=$4
	shift 4
	i=0
	while :; do
		# shellcheck disable=SC2086
		SOFTNIC_EXEC=$mode LD_PRELOAD=$tmp/calm_clock.so timeout 60 scripts/with-softnic -n "$@" $as_server >"$tmp/server" 2>&1 &
		server=$!
		until listens_by_cm; do
			kill -0 "$server" 2>/dev/null || { cat "$tmp/server"; fail "server of $name, $mode"; }
			sleep 0.1
		done
		# shellcheck disable=SC2086
		SOFTNIC_EXEC=$mode LD_PRELOAD=$tmp/calm_clock.so timeout 60 scripts/with-softnic -n "$@" $as_client >"$tmp/client" 2>&1 && break
		i=$((i + 1))
		if [ $i -ge 20 ] || ! grep -qE 'REJECTED; error: 8|Unexpected CM event bl blka 8' "$tmp/client"; then
			cat "$tmp/server" "$tmp/client"
			fail "$name, $mode"
		fi
		kill "$server" 2>/dev/null || :
		wait "$server" || :
	done
	wait "$server" || { cat "$tmp/server"; fail "server of $name, $mode"; }
	server=
	echo "$name, $mode"
}
bench() { # PROGRAM MODE CONNECTION
	mine || return 0
	two "$2" "$1 $3" "$1" -d mlx5_0 -x 3 -s 65536 -n 200 -F --connection="$3"
	awk -v what="$1 $3 $2" '$1 == 65536 { print what ": " $4 " MB/s"; ok = 1 } END { exit !ok }' "$tmp/client" ||
		fail "$1 reported nothing"
}
if [ -z "${MODES:-}" ]; then
	turn=$(git rev-list --count HEAD 2>/dev/null) || turn=$(date +%j | sed 's/^0*//')
	[ $((turn % 2)) = 0 ] && MODES=thread || MODES=inline
	PART=${PART:-$((turn / 2 % 4))/4}
fi
PART=${PART:-0/1}
echo "MODES='$MODES' PART=$PART"
# Is the next program one of this part?
nr=0
mine() {
	nr=$((nr + 1))
	[ $((nr % ${PART#*/})) = "${PART%/*}" ]
}
for mode in $MODES; do
	for conn in DC RC; do
		bench ib_write_bw "$mode" "$conn"
		bench ib_read_bw "$mode" "$conn"
		bench ib_send_bw "$mode" "$conn"
	done
	for what in "ib_write_bw RC -b" "ib_write_bw RC -q 4" "ib_write_bw DC -q 4" "ib_read_bw RC -b" "ib_write_lat RC" "ib_write_lat DC"; do
		mine || continue
		# shellcheck disable=SC2086
		set -- $what
		prog=$1 conn=$2
		shift 2
		two "$mode" "$what" "$prog" -d mlx5_0 -x 3 -s 4096 -n 100 -F --connection="$conn" "$@"
		grep -q '^ 4096 ' "$tmp/client" || fail "$what reported nothing, $mode"
		echo "$what, $mode"
	done
	# Pollers of messages leave little of two processors to each other, so there are few.
	for what in "ib_send_lat RC" "ib_send_lat DC" "ib_read_lat RC" "ib_read_lat DC" "ib_send_bw RC -b" "ib_send_bw RC -e" \
		"ib_send_bw RC --use-srq -q 4"; do
		mine || continue
		# shellcheck disable=SC2086
		set -- $what
		prog=$1 conn=$2
		shift 2
		two "$mode" "$what" "$prog" -d mlx5_0 -x 3 -s 64 -n 100 -F --connection="$conn" "$@"
		grep -q '^ 64 ' "$tmp/client" || fail "$what reported nothing, $mode"
		echo "$what, $mode"
	done
	for how in "-n 100" "-e -N -n 1000" "-s 3000000 -r 16 -n 100 -e"; do
		mine || continue
		# shellcheck disable=SC2086
		two "$mode" "ibv_rc_pingpong $how" ibv_rc_pingpong -d mlx5_0 -g 3 -c $how
		grep -q 'iters in' "$tmp/client" || fail "ibv_rc_pingpong $how, $mode: $(cat "$tmp/client")"
		if grep -q invalid "$tmp/client" "$tmp/server"; then fail "ibv_rc_pingpong $how, $mode: wrong bytes"; fi
		echo "ibv_rc_pingpong $how $mode: $(sed -n 's/.*= //p' "$tmp/client" | tail -n 1)"
	done
	# Every ping is read and written by the other end, and compared.
	by_cm "$mode" "rping" "-s" "-c" rping -a 127.0.0.1 -C 20 -v -V
	[ "$(grep -c 'ping data: rdma-ping' "$tmp/client")" = 20 ] || fail "rping, $mode: $(cat "$tmp/client")"
	for prog in ib_send_bw ib_write_bw ib_read_bw ib_send_lat ib_write_lat ib_read_lat; do
		mine || continue
		by_cm "$mode" "$prog -R" "" "127.0.0.1" $prog -R -d mlx5_0 -x 3 -s 4096 -n 100 -F
		grep -q '^ 4096 ' "$tmp/client" || fail "$prog -R reported nothing, $mode"
	done
	for what in "am_lat" "am_bw -D bcopy -s 2048" "am_bw -D zcopy -s 2048" "put_lat" "put_bw -D bcopy -s 8000" "put_bw -D zcopy -s 65536" \
		"get -D bcopy -s 8000" "get -D zcopy -s 65536"; do
		mine || continue
		# shellcheck disable=SC2086
		NODES=-n two "$mode" "ucx_perftest $what" ucx_perftest -d mlx5_0:1 -x rc_verbs -n 100 -w 5 -t $what
		grep -q '^Final:' "$tmp/client" || fail "ucx_perftest $what reported nothing, $mode: $(cat "$tmp/client")"
		echo "ucx_perftest -x rc_verbs -t $what, $mode"
	done
done
