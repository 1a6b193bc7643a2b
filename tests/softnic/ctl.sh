#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# softnicctl, with-softnic and the fabric file: ports, statistics, version check, removal, one-line errors.
set -eu
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build/release}
export BUILD
ctl=$BUILD/softnicctl

tmp=$(mktemp -d /dev/shm/softnic-test-XXXXXX)
SOFTNIC_DIR=$tmp/fabric
export SOFTNIC_DIR
trap 'rm -rf "$tmp"' EXIT
n=0
fail() {
	echo "FAIL: $*"
	exit 1
}
passed() {
	n=$((n + 1))
	echo "ok: $*"
}

if $ctl stats 2>"$tmp/err"; then fail "stats without a fabric"; fi
grep -q "no fabric there" "$tmp/err" || fail "does not say that there is no fabric: $(cat "$tmp/err")"
passed "no fabric: says so"

# A word that a command does not use is refused with its name and 2, before the fabric is looked for. "WORDS:the refused word".
while IFS=: read -r words bad; do
	# shellcheck disable=SC2086
	if $ctl $words 2>"$tmp/err" >"$tmp/out"; then fail "took: $words"; else rc=$?; fi
	[ $rc = 2 ] && [ ! -s "$tmp/out" ] || fail "$words: exit $rc: $(cat "$tmp/err")"
	grep -q -- "^softnicctl: .*$bad" "$tmp/err" || fail "$words: does not name $bad: $(cat "$tmp/err")"
done <<'END'
show:show
port x:port: x
port 0 up now:port: now
port 0 sideways:port: sideways
port 0 flap 1 2 3 4:port: 4
port 0 flap 2 1:port: 1
port 0 flap 2 x:port: x
port 0 again 1:port: 1
port 0 mtu 1024 2048:port: 2048
port 0 mtu 1024x:port: 1024x
port 0 pkey zz:port: zz
port 0 gids maybe:port: maybe
device x:device: x
device 0 lost back:device: back
device 0 gone:device: gone
device 0 name a b:device: b
device 0 reset now:device: now
device 0 reset pid=1 pid=2:device: pid=2
device 0 reset destroy=fails destroy=lies:device: destroy=lies
device 0 reset flush runs:flush or runs
reach all subnet:reach: subnet
reach absent=1s absent=2s:reach: absent=2s
route list 0:route: 0
route add 0 10.0.0.0/8 1:route: 1
route del x:route: x
firmware call=1ms call=2ms:firmware: call=2ms
firmware x=1:firmware: x=1
profile flat realistic:profile: realistic
profile round:profile: round
gid 0 add 10.0.0.1 10.0.0.2:gid: 10.0.0.2
gid 0 set 10.0.0.1:gid: set
rule add op=read op=write drop:rule: op=write
rule add drop drop:rule: drop
rule add op=read drop seed=1:seed=
rule add op=read drop prob=1 seed=1:seed=
rule add op=read status=5 at=1:at=
rule list 1:rule: 1
rule clear all:rule: all
rule del 1 2:rule: 2
rule del x:rule: x
rule show:rule: show
trace off now:trace: now
trace show a b:trace: b
trace on a 10 b:trace: b
trace on a x:trace: x
trace stop:trace: stop
stats 1 2:stats: 2
stats --json --json:stats: --json
stats -j:stats: -j
qp 5 fatal now:qp: now
qp 5 broken:qp: broken
qp x fatal:qp: x
reset -f -f:reset: -f
clean all:reset: all
END
for words in "" port device "device 0 name" "port 0 mtu" "port 0 flap 1" gid "gid 0 add" "route add" "route add 0" profile "rule add" "rule del" "trace on" "trace show" qp "qp 5"; do
	# shellcheck disable=SC2086
	if $ctl $words 2>"$tmp/err"; then fail "took: $words"; else rc=$?; fi
	[ $rc = 2 ] && grep -q '^usage: ' "$tmp/err" || fail "$words: exit $rc: $(cat "$tmp/err")"
done
passed "words that a command does not use, or lacks"

scripts/with-softnic "$BUILD/softnic-tests/t_local" >/dev/null
[ "$(stat -c %a "$SOFTNIC_DIR") $(stat -c %a "$SOFTNIC_DIR/fabric")" = "700 600" ] || fail "modes"
passed "the directory is ours alone"

$ctl port mlx5_0 down
[ "$($ctl port mlx5_0)" = "mlx5_0 down" ] || fail "port down"
$ctl port 0 up
[ "$($ctl port mlx5_0)" = "mlx5_0 up" ] || fail "port up"
if $ctl port mlx5_99 down 2>/dev/null; then fail "took a port that is not there"; fi
passed "port"

scripts/with-softnic "$BUILD/softnic-tests/t_stress" 1 >/dev/null 2>&1 || : # some bytes to count
$ctl stats --json >"$tmp/json"
/usr/bin/python3 - "$tmp/json" <<'PY' || fail "stats --json: $(cat "$tmp/json")"
import json, sys
procs = json.load(open(sys.argv[1]))
keys = {"pid", "comm", "alive", "qps", "mrs", "written_bytes", "read_bytes", "ops", "errors", "copy_ns", "cqs"}
assert procs and all(set(p) == keys for p in procs), procs
assert sum(p["written_bytes"] for p in procs) > 0 and sum(p["copy_ns"] for p in procs) > 0
PY
$ctl stats | grep -q '^PID' || fail "stats"
passed "statistics"

printf x >>"$SOFTNIC_DIR/fabric"
if scripts/with-softnic "$BUILD/softnic-tests/t_local" >/dev/null 2>"$tmp/err"; then fail "took a fabric of another size"; fi
grep -q "softnicctl reset" "$tmp/err" || fail "does not say what to do: $(cat "$tmp/err")"
$ctl reset -f
[ ! -e "$SOFTNIC_DIR/fabric" ] || fail "reset"
passed "a fabric of another version is refused; reset removes it"

SOFTNIC_GIDS='10.1.2.3;fd00::7' scripts/with-softnic "$BUILD/softnic-tests/t_local" --gids >"$tmp/gids"
grep -q '^mlx5_0 3 ::ffff:10.1.2.3 v2$' "$tmp/gids" || fail "SOFTNIC_GIDS, first device: $(cat "$tmp/gids")"
grep -q '^mlx5_1 2 fd00::7 v1$' "$tmp/gids" || fail "SOFTNIC_GIDS, second device: $(cat "$tmp/gids")"
passed "SOFTNIC_GIDS"

gids() { scripts/with-softnic "$BUILD/softnic-tests/t_local" --gids | grep '^mlx5_0'; }
gids >"$tmp/gids"
$ctl gid 0 del 10.1.2.3
gids | grep -q 10.1.2.3 && fail "gid del: $(gids)"
$ctl gid 0 add 10.1.2.3/24
[ "$(gids | grep -c 10.1.2.3)" = 2 ] && [ "$(gids | wc -l)" = "$(wc -l <"$tmp/gids")" ] || fail "gid add: $(gids)"
[ "$(gids | grep 10.1.2.3 | head -1)" != "$(grep 10.1.2.3 "$tmp/gids" | head -1)" ] || fail "the address has its old row: $(gids)"
if $ctl gid 0 del 10.9.9.9 2>/dev/null || $ctl gid 0 add nonsense 2>/dev/null || $ctl port 0 mtu 1500 2>/dev/null; then fail "took what is not there"; fi
$ctl port 0 gids off
[ -z "$(gids)" ] || fail "gids off: $(gids)"
$ctl port 0 gids on
$ctl reset -f
passed "addresses that go and come back"

# "status milliseconds" of a transfer with a wrong DC key.
dckey() {
	"$@" scripts/with-softnic "$BUILD/softnic-tests/t_life" --dckey
}
for mode in thread inline; do
	read -r status ms <<-EOT
		$(dckey env SOFTNIC_EXEC=$mode SOFTNIC_RETRY_US=300000)
	EOT
	case $status:$((ms >= 300 && ms < 20000)) in
	12:1) ;;
	*) fail "SOFTNIC_RETRY_US, $mode: $status after $ms ms" ;;
	esac
	read -r status ms <<-EOT
		$(dckey env SOFTNIC_EXEC=$mode SOFTNIC_DCKEY_STATUS=9)
	EOT
	[ "$status" = 9 ] || fail "SOFTNIC_DCKEY_STATUS, $mode: $status"
	[ "$(dckey env SOFTNIC_EXEC=$mode SOFTNIC_ASSIST_US=off SOFTNIC_RETRY_US=0 | cut -d' ' -f1)" = 12 ] || fail "no assist, $mode"
done
passed "SOFTNIC_RETRY_US, SOFTNIC_DCKEY_STATUS, SOFTNIC_ASSIST_US"

if BUILD=$tmp/nowhere scripts/with-softnic true 2>"$tmp/err"; then fail "ran without libraries"; fi
[ "$(grep -c "make softnic" "$tmp/err") $(wc -l <"$tmp/err")" = "1 1" ] || fail "with-softnic: $(cat "$tmp/err")"
passed "with-softnic says what is missing"
echo "$n groups"
