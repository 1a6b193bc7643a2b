#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Reasons of health with their codes: a full disk from its first 507 on, a failed reload until a good one, a certificate that ends soon or begins later; mutes,
# which are shown, do not count, survive a restart, and end; what gantry health, status and doctor say of a server that is degraded.
DISK_SIZE=64MiB COPIES=1
. "$(dirname "$0")/lib.sh"
/usr/bin/openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$T/key.pem" -out "$T/cert.pem" -days 5 -subj /CN=localhost 2>/dev/null ||
	fail "no certificate"
chmod 600 "$T/key.pem"
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, tls_certificate: \"$T/cert.pem\", tls_key: \"$T/key.pem\" }"
mkdir "$T/state"
export GANTRY_STORE_STATE_DIR=$T/state
A=$T/admin.sock
write_config
format_store
daemon_run
make_buckets
health() { curl_admin /healthz | jq -r "$1"; }
codes() { health '[.reasons[].code] | sort | unique | join(" ")'; }
is() { [ "$(codes)" = "$1" ]; }
mute() { gantry --admin "$A" health mute "$@"; }

wait_for 60 is certificate_ends
# The begin of the reason is logged, which a daemon that runs for months reads in its log neither at a start nor at a reload.
wait_for 60 grep -q 'warning admin: certificate_ends: listener https://.*cert.pem expires in [45] days' "$T/daemon.log"
assert_eq "$(health '[.status, .reasons[0].link, .reasons[0].muted] | map(tostring) | join(" ")')" "degraded docs/health.md#certificate_ends null"
assert_match "$(health '.reasons[0].text')" 'expires in [45] days'
assert_eq "$(curl_admin /healthz -o /dev/null -w '%{http_code}')" 200 "degraded"
assert_eq "$(curl_admin /readyz -o /dev/null -w '%{http_code}')" 200 "ready"
assert_eq "$(metric gantry_health_reason 'code="certificate_ends"')" 1
gantry --admin "$A" health >"$T/out" || fail "gantry health: $(<"$T/out")"
grep -q '^degraded$' "$T/out" && grep -q '^  ! certificate_ends: ' "$T/out" || fail "$(<"$T/out")"
gantry --admin "$A" status >"$T/out" && fail "gantry status ends well"
gantry --admin "$A" doctor >"$T/out"
grep -q '^warning  daemon  *.healthz: certificate_ends: ' "$T/out" || fail "$(<"$T/out")"

# ---- a mute ----
mute nonsense --for 8h 2>"$T/err" && fail "a code that there is not"
grep -q 'no reason has that code; there are not_serving, ' "$T/err" || fail "$(<"$T/err")"
mute certificate_ends 2>/dev/null && fail "a mute without an end"
for s in 1e9 '' ' 5' 5s 0 -1 31536001 99999999999; do
	curl -sS --unix-socket "$A" -d "{\"action\":\"mute\",\"code\":\"certificate_ends\",\"seconds\":\"$s\"}" http://x/control/health -o "$T/out" -w '%{http_code}' >"$T/status"
	assert_eq "$(<"$T/status")" 400 "'$s' seconds: $(<"$T/out")"
done
mute certificate_ends --for 8h >"$T/out" || fail "mute: $(<"$T/out")"
grep -q '^ok$' "$T/out" && grep -q '^  - certificate_ends: .*, muted until 2' "$T/out" || fail "$(<"$T/out")"
gantry --admin "$A" --quiet status || fail "a muted reason counts"
assert_eq "$(metric gantry_health_reason 'code="certificate_ends"')" 0
restart_daemon
wait_for 60 is certificate_ends
assert_eq "$(curl_admin /healthz | json status)" ok "a mute after a restart"
gantry --admin "$A" health unmute certificate_ends >/dev/null || fail "unmute"
assert_eq "$(curl_admin /healthz | json status)" degraded "unmuted"
mute certificate_ends --for 1s >/dev/null
is_degraded() { [ "$(curl_admin /healthz | json status)" = degraded ]; }
wait_for 60 is_degraded
mute certificate_ends --for 8h >/dev/null
# It does not hide that nothing is served.
curl -sS --unix-socket "$A" -X POST http://x/control/drain >/dev/null
mute draining --for 8h >/dev/null
assert_eq "$(curl_admin /healthz | json status)" unavailable "a drain that is muted"
curl -sS --unix-socket "$A" -X POST http://x/control/resume >/dev/null
wait_for 60 is certificate_ends

# ---- a certificate that is not valid yet ----
cp "$T/cert.pem" "$T/cert.good"
mkdir "$T/ca"
: >"$T/ca/index"
cat >"$T/ca/conf" <<-END
	[ca]
	default_ca = d
	[d]
	database = $T/ca/index
	new_certs_dir = $T/ca
	rand_serial = yes
	default_md = sha256
	policy = p
	[p]
	commonName = supplied
END
/usr/bin/openssl req -new -key "$T/key.pem" -subj /CN=localhost -out "$T/csr" 2>/dev/null &&
	/usr/bin/openssl ca -batch -selfsign -config "$T/ca/conf" -keyfile "$T/key.pem" -in "$T/csr" -startdate 20680101000000Z -enddate 20690101000000Z -notext -out "$T/cert.pem" 2>"$T/err" ||
	fail "no later certificate: $(<"$T/err")"
curl -sS --unix-socket "$A" -X POST http://x/control/reload >/dev/null
is_later() { [[ "$(health '.reasons[] | select(.code == "certificate_ends").text')" = *" is not valid yet, for another "*" min: is the clock right?" ]]; }
wait_for 60 is_later
wait_for 60 grep -q 'warning .*cert.pem is not valid yet, for another' "$T/daemon.log"
cp "$T/cert.good" "$T/cert.pem"
curl -sS --unix-socket "$A" -X POST http://x/control/reload >/dev/null
is_near() { [[ "$(health '.reasons[] | select(.code == "certificate_ends").text')" = *" expires in "* ]]; }
wait_for 60 is_near

# ---- a failed reload, until a good one ----
cp "$T/gantryd.yaml" "$T/good"
echo "nonsense: 1" >>"$T/gantryd.yaml"
curl -sS --unix-socket "$A" -X POST http://x/control/reload >/dev/null
wait_for 60 is "certificate_ends reload_failed"
cp "$T/good" "$T/gantryd.yaml"
curl -sS --unix-socket "$A" -X POST http://x/control/reload >/dev/null
wait_for 60 is certificate_ends

# ---- a disk that is full, from the first 507 on ----
bytes pattern:1 1M >"$T/body"
for ((i = 0; ; i++)); do
	status=$(status_of PUT "/bkt/k$i" -T "$T/body")
	[ "$status" != 507 ] || break
	[ $i -lt 100 ] && [ "$status" = 200 ] || fail "PUT $i: $status"
done
wait_for 60 is "certificate_ends disk_full"
assert_match "$(health '.reasons[] | select(.code == "disk_full").text')" "disk [0-9a-f]{8} $T/disk0 is full: [0-9.]+ % of what objects may take"
wait_for 60 grep -q "warning admin: disk_full: disk [0-9a-f]\{8\} $T/disk0" "$T/daemon.log"
for ((; i >= 0; i--)); do status_of DELETE "/bkt/k$i" >/dev/null; done
wait_for 60 is certificate_ends
[ "$(metric gantry_store_index_max_bytes)" -gt "$(metric gantry_store_index_bytes)" ] || fail "no bound of the index"
stop_daemon

# ---- a disk that serves, and is not as it should be: copied with holes ----
# Other file systems do not tell the daemon which segments have holes.
D=$(mktemp -d /var/tmp/gantry-health_reasons.XXXXXX) || exit 1
trap 'rm -rf "$D"; _at_exit' EXIT
fs=$(stat -f -c %T "$D")
case $fs in
ext2/ext3 | xfs)
	cp -a --sparse=always "$T/disk0" "$D/disk0" || fail cp
	sed -i "s|$T/disk0|$D/disk0|" "$T/gantryd.yaml"
	daemon_run
	wait_for 60 is "certificate_ends disk_notice"
	assert_match "$(health '.reasons[] | select(.code == "disk_notice").text')" '[0-9]+ segments were copied with holes'
	stop_daemon
	;;
*) echo "$D is on $fs: disk_notice is not tested" ;;
esac
