# SPDX-License-Identifier: Apache-2.0
# Helpers of the system tests: the real daemon on loopback and the software NIC, in a directory of its own.
#
#     . "${0%/*}/lib.sh"
#     start_daemon
#     raw <<-END
#     	window w 1M pattern:7
#     	request PUT /bkt/key x-amz-rdma-token:@w content-length:0
#     	expect status 200
#     END
#     assert_eq "$(curl_s3 /bkt/key | md5)" ...
#
# What a test gets (all set by start_daemon):
#   T                the test's directory (removed at the end, kept when KEEP=1)
#   S3 SCAL ADMIN    host:port of the listeners; URL_S3 URL_SCAL URL_ADMIN the same with http://
#   DAEMON_PID       gantryd
# What it may set before:
#   CORES=2 DISKS=1 (or COPIES=2 of the environment: three, and buckets have two copies) DISK_SIZE=256MiB NICS=1 BUCKETS=bkt (created on every start; empty: none)
#   RDMA='{ allow_special: [loopback, self] }'    the rdma section
#   LISTEN=$'  - { ... }'                         more listeners, one yaml line each
#   MORE=$'limits:\n  ...'                        further sections, as yaml
#   BUFFERS=24MiB HTTP_BUFFERS=8MiB               memory.buffers, memory.http_buffers
# Outside of tests/system and tests/security DISK_SIZE is 1GiB, BUFFERS 64MiB, and HTTP_BUFFERS auto.
#   DAEMON_WRAP='strace -f ...'                   put in front of gantryd
#   OWN_NET=1 (before lib.sh)                     a network namespace of its own, see net_rail
#   S3_PORT=9000 (with OWN_NET)                   the port of the S3 listener; 0: a free one, which another listener may have after a restart
# Other variables of the environment (GANTRY_SECTION_KEY, SOFTNIC_EXEC, ...) reach the daemon as they are.
# Exit: 0 pass, 1 fail, 77 skip.  A failing test prints the end of the daemon's log.
# shellcheck shell=bash
set -u

if [ "${OWN_NET:-}" = 1 ]; then
	unshare -n true 2>/dev/null || {
		echo "${0##*/}: FAIL: needs a network namespace of its own (unshare -n), which takes root" >&2
		exit 1
	}
	OWN_NET=here exec unshare -n "$0" "$@"
fi
ROOT=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
BUILD=${BUILD:-build/release}
case $BUILD in /*) ;; *) BUILD=$ROOT/$BUILD ;; esac
TEST=${0##*/}
TEST=${TEST%.sh}
T=$(mktemp -d "${TMPDIR:-/tmp}/gantry-$TEST.XXXXXX") || exit 1
export BUILD SOFTNIC_DIR=$T/nic
mkdir -p "$SOFTNIC_DIR"
# Who says how many disks there are has the copies that it says.
[ -z "${DISKS:-}" ] || COPIES=1
COPIES=${COPIES:-1}
CORES=${CORES:-2} DISKS=${DISKS:-$((COPIES > 1 ? 3 : 1))} NICS=${NICS:-1} BUCKETS=${BUCKETS-bkt}
RDMA=${RDMA:-'{ allow_special: [loopback, self] }'} LISTEN=${LISTEN:-} MORE=${MORE:-} DAEMON_WRAP=${DAEMON_WRAP:-}
# Buffers are cleared and pinned at each start; the log of a disk and its first segments, of an eighth of its size each, are written with zeros when
# they are made. Both together are most of the CPU time of a start, so these tests have few buffers and small disks.
case $0 in */system/* | */security/*) : "${BUFFERS:=24MiB}" "${HTTP_BUFFERS:=8MiB}" "${DISK_SIZE:=256MiB}" ;; *) : "${BUFFERS:=64MiB}" "${HTTP_BUFFERS:=auto}" "${DISK_SIZE:=1GiB}" ;; esac
# A start of curl(1) costs 7 ms of CPU time, of which it loads libraries for 6: tests/tools/curl.c makes plain requests, and executes curl(1) for all
# others. Tests of clients have curl(1).
case $0 in */system/* | */security/*) [ ! -x "$BUILD/tools/curl" ] || PATH=$BUILD/tools:$PATH ;; esac
# A start of jq(1) compiles its library of filters, for 25 ms of CPU time; one of gojq(1) takes 5.
jq() { gojq "$@"; }
DAEMON_PID='' S3='' SCAL='' ADMIN='' URL_S3='' URL_SCAL='' URL_ADMIN=''
# The shell's own notices of killed jobs are nobody's concern: those functions silence standard error, and use this one.
exec {_err}>&2
# A pipe without data, for pause().
exec {_empty}<> <(:)
_failed='' _stores=0 _daemon_job='' DAEMON_RC=0

# ---- the end of a test ---------------------------------------------------------------------------------------------

fail() {
	echo "$TEST: FAIL: $*" >&"$_err"
	_failed=1
	exit 1
}

skip() {
	echo "$*"
	exit 77
}

# A process and all below it: what runs in the background through a function is a child of a shell.
_kill_tree() {
	local c t below='' more
	for t in /proc/"$1"/task/*/children; do
		more=''
		read -r more <"$t" || :
		below+=" $more"
	done
	kill -KILL "$1"
	for c in $below; do _kill_tree "$c"; done
}

_at_exit() {
	local rc=$?
	trap - EXIT INT TERM
	if [ "$rc" != 0 ] && [ "$rc" != 77 ]; then
		[ -n "$_failed" ] || echo "$TEST: FAIL: exit $rc" >&2
		[ ! -s "$T/daemon.log" ] || { echo "--- the end of the daemon's log" >&2; tail -n 30 "$T/daemon.log" >&2; }
	fi
	exec 2>/dev/null
	# What the test itself left running goes first.
	local p
	for p in $(jobs -p) $DAEMON_PID; do _kill_tree "$p"; done
	wait
	if [ "${KEEP:-}" = 1 ]; then echo "$TEST: kept $T" >&"$_err"; else rm -rf "$T"; fi
	exit "$rc"
}
trap _at_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# pause SECONDS: sleeps.  On some machines a new process costs ten milliseconds of CPU time, and a loop that starts sleep(1) occupies a core.
pause() { read -rt "$1" -u "$_empty" || :; }

# ---- the daemon -----------------------------------------------------------------------------------------------------

# Any command on the software NIC of this test.  A test that wants none says NO_NIC=1 before start_daemon.
_on_nic() { if [ -n "${NO_NIC:-}" ]; then ON_NIC=(env); else ON_NIC=("$ROOT/scripts/with-softnic" -d "$NICS"); fi; }
# It sets the variables that scripts/with-softnic sets, without a shell for each command.
nic() {
	if [ -n "${NO_NIC:-}" ]; then "$@"; else SOFTNIC_DEVICES=$NICS LD_LIBRARY_PATH=$BUILD/softnic${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"; fi
}
softnicctl() { nic "$BUILD/softnicctl" "$@"; }

# Writes $T/gantryd.yaml from the variables above.  A test may change the file before daemon_run.
write_config() {
	local i rdma=$RDMA
	# With TRANSPORT=rc clients may connect: as many as there are windows, as often as they like.
	case ${TRANSPORT:-dc}:$RDMA in
	rc:*'rc: {'*) ;;
	rc:*) rdma="{ rc: { shim: on, connections: 4096, per_peer: 4096, connect_rate: 100000 }, ${RDMA#\{ }" ;;
	esac
	{
		echo "listen:"
		echo "  - { address: \"127.0.0.1:${S3_PORT:-0}\", dialect: s3, anonymous: true }"
		echo "  - { address: \"127.0.0.1:0\", dialect: scality }"
		[ -z "$LISTEN" ] || printf '%s\n' "$LISTEN"
		echo "admin: { address: \"127.0.0.1:0\", socket: \"$T/admin.sock\" }"
		echo "cores: $CORES"
		echo "memory: { buffers: $BUFFERS, index: 64MiB, http_buffers: $HTTP_BUFFERS }"
		echo "rdma: $rdma"
		if [ "${STORE:-disks}" = rados ]; then
			# On the cluster of CEPH_CONF (tests/rados/run.sh), in a namespace of this test's own.
			echo "store: { backend: rados }"
			echo "rados: { conf: \"$CEPH_CONF\", user: admin, namespace: \"${T##*/}.$_stores\", index_shards: 4 }"
		else
			echo "store:"
			[ "$COPIES" = 1 ] || echo "  default_copies: $COPIES"
			echo "  disks:"
			for ((i = 0; i < DISKS; i++)); do echo "    - { path: \"$T/disk$i\", size: $DISK_SIZE }"; done
		fi
		# Deadlines are the business of tests that set them; the others' requests may wait for a machine with other work.
		local deadlines='s3_progress: 60s, s3_total: 60s, scality_total: 60s'
		case $MORE in
		*s3_progress:* | *s3_total:* | *scality_total:*) printf '%s\n' "$MORE" ;;
		*'limits: { '*) printf '%s\n' "${MORE/limits: \{ /limits: \{ $deadlines, }" ;;
		*limits:*) printf '%s\n' "$MORE" ;;
		*) printf '%s\n' ${MORE:+"$MORE"} "limits: { $deadlines }" ;;
		esac
	} >"$T/gantryd.yaml"
}

format_store() {
	local i disks=()
	for ((i = 0; i < DISKS; i++)); do [ -d "$T/disk$i" ] || disks+=("$T/disk$i"); done
	[ ${#disks[@]} = 0 ] || mkdir -p "${disks[@]}"
	# A store on the cluster cannot be made over another one: it gets a namespace of its own.
	[ "${STORE:-disks}" != rados ] || sed -i "s/\(namespace: \"[^\"]*\.\)[0-9]*\"/\1$((_stores += 1))\"/" "$T/gantryd.yaml"
	nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --format >>"$T/daemon.log" 2>&1 || fail "gantryd --format"
}

# The process below $1 (or itself) whose program is gantryd.
_gantryd_of() {
	local p c
	if [ "/proc/$1/exe" -ef "$BUILD/gantryd" ]; then echo "$1"; return 0; fi
	case $(readlink "/proc/$1/exe" 2>/dev/null) in */gantryd) echo "$1"; return 0 ;; esac
	for p in /proc/"$1"/task/*/children; do
		for c in $(cat "$p" 2>/dev/null); do _gantryd_of "$c" && return 0; done
	done
	return 1
}

# Starts gantryd on $T/gantryd.yaml and waits until it is ready.  Words are options for gantryd.
daemon_run() {
	local i pid line=''
	# The daemon replaces this file when it is ready.
	[ ! -e "$T/ready" ] || : >"$T/ready"
	# Not through nic(): a function in the background is a shell of its own, and we want the daemon's pid.
	# shellcheck disable=SC2086
	if [ -n "${NO_NIC:-}" ]; then
		$DAEMON_WRAP "$BUILD/gantryd" -c "$T/gantryd.yaml" --ready-file "$T/ready" "$@" >>"$T/daemon.log" 2>&1 &
	else
		SOFTNIC_DEVICES=$NICS LD_LIBRARY_PATH=$BUILD/softnic${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
			$DAEMON_WRAP "$BUILD/gantryd" -c "$T/gantryd.yaml" --ready-file "$T/ready" "$@" >>"$T/daemon.log" 2>&1 &
	fi
	pid=$!
	_daemon_job=$pid DAEMON_PID=$pid
	for ((i = 0; i < 3000; i++)); do
		{ read -r line <"$T/ready"; } 2>/dev/null && [[ $line = 'ready '* ]] && break
		line=''
		kill -0 "$pid" 2>/dev/null || { DAEMON_PID=''; fail "gantryd ended before it was ready"; }
		pause 0.02
	done
	[ -n "$line" ] || fail "gantryd was not ready within 60 s"
	[ "/proc/$pid/exe" -ef "$BUILD/gantryd" ] || DAEMON_PID=$(_gantryd_of "$pid") || DAEMON_PID=$pid
	_address S3 "$line" s3
	_address SCAL "$line" scality
	_address ADMIN "$line" admin
	URL_S3=http://$S3 URL_SCAL=http://$SCAL URL_ADMIN=http://$ADMIN
	[ -n "$S3" ] || fail "no s3 listener in: $line"
	[ "${TRANSPORT:-dc}" != rc ] || export RAW_RC=$S3
	_mute_shared
}

# Disks of a test are on one file system, on purpose: with two copies that is a reason of health, which the tests that want to see it leave as it is
# (SHARED_IS_SEEN=1).
_mute_shared() {
	[ "$DISKS" -gt 1 ] && [ -z "${SHARED_IS_SEEN:-}" ] && [ -S "$T/admin.sock" ] || return 0
	curl -sS -m 60 -o /dev/null --unix-socket "$T/admin.sock" -d '{"action":"mute","code":"disks_shared","seconds":"86400"}' http://x/control/health 2>/dev/null || :
}

# _address VARIABLE LINE NAME: stores the first address of that name in a ready line; '' where there is none.
_address() {
	local w
	printf -v "$1" ''
	for w in $2; do
		case $w in "$3="*) printf -v "$1" %s "${w#*=}"; return ;; esac
	done
}

start_daemon() {
	write_config
	format_store
	daemon_run "$@"
	make_buckets
}

make_buckets() {
	local b
	for b in $BUCKETS; do
		curl -sS -o /dev/null -X PUT "$URL_S3/$b" || fail "creating bucket $b"
	done
}

# Is there such a process, and is it more than a zombie?
_runs() {
	local st
	{ read -r st <"/proc/$1/stat"; } 2>/dev/null || return 1
	case ${st##*) } in '' | Z* | X*) return 1 ;; esac
}

# What each thread of the daemon does: its stack where there is a debugger, else what it waits for in the kernel.
_where_it_is() {
	local t
	! command -v gdb >/dev/null || timeout 30 gdb -p "$DAEMON_PID" -batch -ex 'thread apply all bt 16' 2>&1
	for t in "/proc/$DAEMON_PID/task"/*; do
		echo "${t##*/} $(<"$t/comm"): $(<"$t/wchan") $(<"$t/syscall")"
	done
}

# A signal, and the wait for the end.  $1: signal name; the exit status is in DAEMON_RC.
_end_daemon() {
	local i
	[ -n "$DAEMON_PID" ] || fail "no daemon runs"
	{
		kill -"$1" "$DAEMON_PID"
		for ((i = 0; i < 3000; i++)); do
			_runs "$DAEMON_PID" || break
			pause 0.02
		done
		! _runs "$DAEMON_PID" || { _where_it_is >>"$T/daemon.log"; fail "gantryd did not end within 60 s of SIG$1"; }
		wait "$_daemon_job"
		DAEMON_RC=$?
		DAEMON_PID=''
	} 2>/dev/null
}
stop_daemon() {
	_end_daemon TERM
	[ "$DAEMON_RC" = 0 ] || fail "gantryd ended with $DAEMON_RC after SIGTERM"
}
kill_daemon() { _end_daemon KILL; }
# The same store again, on new ports.
restart_daemon() {
	[ -z "$DAEMON_PID" ] || stop_daemon
	daemon_run "$@"
}

# ---- the network, of a test that has one of its own -------------------------------------------------------------------

[ -z "${OWN_NET:-}" ] || ip link set lo up
# net_rail INTERFACE ADDRESS/PREFIX...: a network interface with these addresses.
net_rail() {
	local a
	ip link add "$1" type veth peer name "$1.peer"
	ip link set "$1" up
	ip link set "$1.peer" up
	for a in "${@:2}"; do
		case $a in *:*) ip -6 addr add "$a" dev "$1" nodad ;; *) ip addr add "$a" dev "$1" ;; esac
	done
}

# ---- clients ---------------------------------------------------------------------------------------------------------

# rawclient against the S3 listener; the script on standard input, or words (-e SCRIPT, FILE).
raw() { nic "$BUILD/tools/rawclient" -s "$S3" "$@" || fail "rawclient: exit $?"; }
raw_scal() { nic "$BUILD/tools/rawclient" -s "$SCAL" "$@" || fail "rawclient: exit $?"; }
# The same, for scripts that may fail: gives the exit status back.
raw_try() { nic "$BUILD/tools/rawclient" -s "$S3" "$@"; }
gantry() { nic "$BUILD/gantry" "$@"; }
# Known bytes: bytes pattern:7 1M >file
bytes() { "$BUILD/tools/rawclient" --bytes "$1" "$2"; }
crc64() { "$BUILD/tools/rawclient" --crc64 "$1"; }

# curl PATH on a listener, other words as they are.  Only the body on standard output; fails on 4xx and 5xx.
curl_s3() { curl -sS --fail --max-time 60 "${@:2}" "$URL_S3$1"; }
curl_scal() { curl -sS --fail --max-time 60 "${@:2}" "$URL_SCAL$1"; }
# Without words, by a socket of the shell: a start of curl(1) costs 7 ms of CPU time, and tests look at these pages in loops.
curl_admin() { if [ $# = 1 ]; then _get "$1" _body; else curl -sS --max-time 60 "${@:2}" "$URL_ADMIN$1"; fi; }
# _get PATH COMMAND...: GET on the admin listener; COMMAND reads the answer with its head.
_get() {
	{ printf 'GET %s HTTP/1.0\r\nHost: %s\r\n\r\n' "$1" "$ADMIN" >&3 && "${@:2}" <&3; } 3<>"/dev/tcp/${ADMIN%:*}/${ADMIN##*:}"
}
# The body of an answer. The shell reads a socket byte by byte, which is faster than a process for short ones only.
_body() {
	local line='' length=''
	while IFS= read -rt 60 line && [ "$line" != $'\r' ]; do
		case $line in Content-Length:*) length=${line//[!0-9]/} ;; esac
	done
	[ "$line" = $'\r' ] || return 1
	[ "${length:-9999}" -lt 2000 ] || { cat; return; }
	IFS= read -rd '' line
	printf %s "$line"
}
# Only the status: status_of GET /bkt/key [curl words]
status_of() { curl -sS --max-time 60 -o /dev/null -w '%{http_code}' -X "$1" "${@:3}" "$URL_S3$2"; }
status_of_scal() { curl -sS --max-time 60 -o /dev/null -w '%{http_code}' -X "$1" "${@:3}" "$URL_SCAL$2"; }
head_status() { curl -sS --max-time 60 -o /dev/null -w '%{http_code}' --head "$URL_S3$1"; }
# A header of an answer: header_of NAME PATH [curl words]
header_of() { curl -sS --max-time 60 -o /dev/null -w "%header{$1}" "${@:3}" "$URL_S3$2"; }
# A sample of /metrics, summed over its label sets: metric gantry_requests_total 'op="PutObject"'
metric() { metrics "$1${2:+ $2}"; }
# Several samples of one page, each a word with or without labels, in one line: metrics 'gantry_buffers "used"' gantry_connections
metrics() {
	local IFS=';'
	_get /metrics awk -v want="$*" '
		BEGIN {
			n = split(want, names, ";")
			for (i = 1; i <= n; i++) if ((at = index(names[i], " "))) { label[i] = substr(names[i], at + 1); names[i] = substr(names[i], 1, at - 1) }
		}
		NR == 1 { answered = / 200 / }
		{
			for (i = 1; i <= n; i++) {
				if (index($0, names[i]) != 1 || (label[i] != "" && !index($0, label[i]))) continue
				name = $1
				sub(/[{].*/, "", name)
				if (name == names[i]) sum[i] += $NF
			}
		}
		END {
			if (answered) for (i = 1; i <= n; i++) printf "%.15g%s", sum[i], i < n ? " " : "\n"
			exit !answered
		}'
}

# The text of the last element of that name on standard input, without quotation marks; nothing where there is none: xml KeyCount <FILE
xml() {
	local s
	s=$(</dev/stdin)
	[[ ! ${s//$'\n'/} =~ .*"<$1>"([^<]*)"</$1>" ]] || echo "${BASH_REMATCH[1]//&quot;/}"
}
# The values of all members of that name in JSON on standard input, numbers, words and texts without escapes, with blanks between them; with a number only
# that one of them, from 0: curl_admin /disks | json state 3.
json() {
	local s v=()
	s=$(</dev/stdin)
	while [[ $s = *"\"$1\":"* ]]; do
		s=${s#*"\"$1\":"}
		case $s in '"'*) s=${s#?} v+=("${s%%\"*}") ;; *) v+=("${s%%[],\}]*}") ;; esac
	done
	if [ $# = 1 ]; then echo "${v[*]}"; else echo "${v[$2]:-}"; fi
}
# The error code of an answer: code_of PATH [curl words]
code_of() { curl -sS "${@:2}" "$URL_S3$1" | xml Code; }

md5() { local s; s=$(md5sum "${@:--}") && echo "${s%% *}"; }

# ---- assertions --------------------------------------------------------------------------------------------------------

assert_eq() { [ "$1" = "$2" ] || fail "${3:-values differ}: have \"$1\", want \"$2\""; }
assert_ne() { [ "$1" != "$2" ] || fail "${3:-values are equal}: \"$1\""; }
assert_match() { [[ $1 =~ $2 ]] || fail "${3:-no match}: \"$1\" does not match $2"; }
assert_same() { cmp "$1" "$2" || fail "${3:-files differ}: $1 $2"; }
assert_status() { assert_eq "$(status_of "$1" "$2" "${@:4}")" "$3" "$1 $2"; }
# wait_for SECONDS COMMAND...: until it succeeds.
# A wait that took more than WAIT_USUAL seconds (10; 60 outside of tests/system and tests/security) while the processors of the machine were
# idle for more than 80 % of the time fails although it ended: no work was in the way, so an event was missed, and a timer made up for it.
# A test that waits for a timer of that length names a longer WAIT_USUAL, for itself or for one call.
case $0 in */system/* | */security/*) : "${WAIT_USUAL:=10}" ;; *) : "${WAIT_USUAL:=60}" ;; esac
# _cpu_ticks IDLE ALL: stores in these variables the idle time and all time of the processors so far, in ticks.  Time that waits for a disk is
# not idle.
_cpu_ticks() {
	local t
	read -ra t <"${PROC_STAT:-/proc/stat}"
	printf -v "$1" %d "${t[4]}"
	printf -v "$2" %d $((t[1] + t[2] + t[3] + t[4] + t[5] + t[6] + t[7] + t[8]))
}
wait_for() {
	local until=$((SECONDS + $1)) began=$SECONDS idle all idle2 all2 secs=0.05 tries=0
	_cpu_ticks idle all
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $until ] || fail "in time: $*"
		# A long wait does not itself keep the processors busy.
		if [ $((SECONDS - began)) -ge 3 ]; then secs=0.3; elif [ $((tries += 1)) -ge 8 ]; then secs=0.1; fi
		pause $secs
	done
	[ $((SECONDS - began)) -gt "$WAIT_USUAL" ] || return 0
	_cpu_ticks idle2 all2
	[ $(((idle2 - idle) * 100)) -le $(((all2 - all) * 80)) ] ||
		fail "it took $((SECONDS - began)) s with idle processors, and more than $WAIT_USUAL s is not usual: a lost wake-up? $*"
}
# settle [SECONDS]: until the background work of the daemon has ended: moves, resync, packing, log, removal, walks of the lifecycle.
settle() {
	local said
	said=$(curl -sS --max-time $((${1:-60} + 60)) -w ' %{http_code}' --unix-socket "$T/admin.sock" -X POST "http://x/control/settle?timeout=${1:-60}")
	case $said in *' 200') ;; *) fail "not settled: $said" ;; esac
}
# No request is under way; and no buffer and no connection is anybody's.
no_requests() { [ "$(curl_admin /requests)" = "[]" ]; }
nothing_is_held() { no_requests && [ "$(metrics 'gantry_buffers "used"' gantry_connections)" = "0 0" ]; }
# A PUT and a GET of two pieces by RDMA: does it work (to wait for), and it has to.
rdma_works() {
	raw_try <<-END
		window w 300000 pattern:7
		window g 300000
		request PUT /bkt/good x-amz-rdma-token:@w content-length:0
		expect status 200
		request GET /bkt/good x-amz-rdma-token:@g
		expect status 200
		expect window g pattern:7
	END
}
serves_rdma() { rdma_works || fail "rawclient: exit $?"; }
# Waits until $1 lines of the daemon's log match $2: a thread writes them after the event that they tell of.  More are wrong.
_lines_at_least() { [ "$(grep -cE "$2" "$T/daemon.log")" -ge "$1" ]; }
logged() {
	wait_for 60 _lines_at_least "$1" "$2"
	assert_eq "$(grep -cE "$2" "$T/daemon.log")" "$1" "lines of the log: $2"
}
assert_alive() { _runs "$DAEMON_PID" || fail "gantryd has died"; }
