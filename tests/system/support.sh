#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry support (claim TM46): one archive of mode 0600 with the state of the daemon and an index; no secret of the configuration is anywhere in it; what cannot
# be had is named with the reason: a daemon that is down or stopped, a program that is missing or hangs.
. "$(dirname "$0")/lib.sh"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GANTRY_ADMIN
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$T/key.pem" -out "$T/cert.pem" -days 5 -subj /CN=localhost 2>/dev/null || fail "no certificate"
SECRETS=(secretOfTheAccessKey0123456789abcdefghij bearerOfTheAdminListener0123456789 commentOfTheFile0123456789 secretOfTheCaller0123456789)
printf -- "- access_key: GKSUPPORT0000000001\n  secret_key: %s\n" "${SECRETS[0]}" >"$T/keys.yaml"
echo "${SECRETS[1]}" >"$T/token"
chmod 600 "$T/key.pem" "$T/keys.yaml" "$T/token"
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, tls_certificate: \"$T/cert.pem\", tls_key: \"$T/key.pem\" }"
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
write_config
sed -i "s|^admin: {|& token_file: \"$T/token\",|; 1i # ${SECRETS[2]}" "$T/gantryd.yaml"
grep -q "token_file: \"$T/token\"" "$T/gantryd.yaml" || fail "no token: $(<"$T/gantryd.yaml")"
format_store
daemon_run
make_buckets
assert_eq "$(status_of GET /bkt/none)" 404
assert_eq "$(curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer ${SECRETS[1]}" -X POST "$URL_ADMIN/control/resume")" 200 "the token is in use"

mkdir "$T/tmp"
# support NAME: makes and unpacks the archive.
support() {
	TMPDIR=$T/tmp AWS_SECRET_ACCESS_KEY=${SECRETS[3]} gantry support --admin "$T/admin.sock" --conf "$T/gantryd.yaml" --output "$T/$1.tar.gz" >"$T/said" 2>&1 ||
		fail "gantry support: $(<"$T/said")"
	mkdir "$T/$1"
	tar -C "$T/$1" -xzf "$T/$1.tar.gz" || fail "the archive"
	B=$(echo "$T/$1"/gantry-support-*)
	assert_eq "$(stat -c %a "$T/$1.tar.gz")" 600 "its mode"
	# Each file is in the index, and what the index has is there.
	assert_eq "$(ls "$B")" "$(awk 'NR > 3 && $2 != "NOT" { print $1 } END { print "index.txt" }' "$B/index.txt" | sort)" "files and index"
}
lacks() { grep -qE "^$1 +NOT THERE: .*$2" "$B/index.txt" || fail "no $1 with $2 in: $(<"$B/index.txt")"; }
no_secret() {
	local s
	for s in "${SECRETS[@]}" "$(sed -n 2p "$T/key.pem")"; do ! grep -rF -- "$s" "$B" || fail "a secret: $s"; done
}

# ---- the daemon serves ----
support one
no_secret
assert_eq "$(jq -r '.status' "$B/health.json")" degraded
jq -e 'any(.reasons[]; .code == "certificate_ends")' "$B/health.json" >/dev/null || fail "no certificate_ends: $(<"$B/health.json")"
for f in status disks rails requests events quotas config; do jq . "$B/$f.json" >/dev/null || fail "$f.json"; done
grep -q '^gantry_build_info' "$B/metrics.txt" || fail "metrics.txt"
grep -qF "credentials_file: \"$T/keys.yaml\"" "$B/print-config.txt" || fail "print-config.txt: $(<"$B/print-config.txt")"
grep -q '^gantryd ' "$B/gantryd-version.txt" || fail "gantryd-version.txt: $(<"$B/gantryd-version.txt")"
grep -q mlx5_0 "$B/list-devices.txt" || fail "list-devices.txt: $(<"$B/list-devices.txt")"
grep -q 'daemon' "$B/doctor.txt" || fail "doctor.txt: $(<"$B/doctor.txt")"
# A file that is there is not replaced.
sum=$(md5 "$T/one.tar.gz")
gantry support --admin "$T/admin.sock" --conf "$T/gantryd.yaml" --output "$T/one.tar.gz" >"$T/said" 2>&1 && fail "it has replaced a file"
grep -q 'one.tar.gz: File exists' "$T/said" || fail "$(<"$T/said")"
assert_eq "$(md5 "$T/one.tar.gz")" "$sum"

# ---- a listener that wants a token for its pages, without and with it ----
stop_daemon
sed -i -E '/^admin:/s|address: "?[^,"]*"?,|address: "0.0.0.0:0",|' "$T/gantryd.yaml"
daemon_run
over_tcp() { # NAME WORDS...
	TMPDIR=$T/tmp gantry support --admin "http://127.0.0.1:${URL_ADMIN##*:}" --conf "$T/gantryd.yaml" --output "$T/$1.tar.gz" "${@:2}" >"$T/said" 2>&1 || fail "support: $(<"$T/said")"
	mkdir "$T/$1"
	tar -C "$T/$1" -xzf "$T/$1.tar.gz" || fail "the archive"
	B=$(echo "$T/$1"/gantry-support-*)
}
over_tcp without
lacks status.json 'wants its token'
over_tcp with --token-file "$T/token"
jq -e .version "$B/status.json" >/dev/null || fail "status.json: $(<"$B/status.json")"
! grep -q 'needs the token' "$B/doctor.txt" || fail "doctor.txt: $(<"$B/doctor.txt")"
no_secret

# ---- the daemon is stopped, a program hangs, another is not there ----
mkdir "$T/bin"
ln -s /usr/bin/* /usr/sbin/* "$T/bin" 2>/dev/null
rm -f "$T/bin/lsblk" "$T/bin/timedatectl" "$T/bin/findmnt"
printf '#!/bin/sh\nsleep 1234567 & echo $! >%s/hangs\nwait\n' "$T" >"$T/bin/lsblk"
# The programs run at the same time: this one, which comes before lsblk, ends when lsblk has begun.
printf '#!/bin/sh\nuntil [ -e %s/hangs ]; do sleep 0.05; done\necho begun\n' "$T" >"$T/bin/findmnt"
chmod +x "$T/bin/lsblk" "$T/bin/findmnt"
# The number of questions that a stopped daemon has got: its socket keeps them.
questions() { ss -xlH src "$T/admin.sock" | awk '{ print $3 }'; }
kill -STOP "$DAEMON_PID"
asked=$(questions)
path=$PATH PATH=$T/bin
support two
PATH=$path
# One of gantry support itself, and one of gantry doctor.
assert_eq $(($(questions) - asked)) 2 "questions to a daemon that does not answer"
kill -CONT "$DAEMON_PID"
no_secret
for f in health status metrics; do lacks "$f.[a-z]*" 'no answer|does not answer|[Tt]imeout|timed out'; done
lacks block-devices.txt 'lsblk has not ended within 20 s'
lacks time.txt 'there is no program timedatectl'
assert_eq "$(<"$B/mounts.txt")" begun "a program that runs at the same time as another"
grep -q 'not looked at: .*imed out' "$B/doctor.txt" || fail "doctor.txt: $(<"$B/doctor.txt")"
ended() { ! kill -0 "$(<"$T/hangs")"; }
wait_for 10 ended
[ -s "$B/kernel.txt" ] || fail "the parts after them"

# ---- there is no daemon ----
stop_daemon
support three
no_secret
lacks health.json '.'
[ -s "$B/print-config.txt" ] && [ -s "$B/doctor.txt" ] || fail "$(<"$B/index.txt")"

# ---- a signal: the programs end, and no folder stays ----
rm "$T/hangs"
PATH=$T/bin TMPDIR=$T/tmp "$BUILD/gantry" support --conf "$T/gantryd.yaml" --output "$T/four.tar.gz" >"$T/said" 2>&1 &
begun() { [ -s "$T/hangs" ]; }
wait_for 20 begun
assert_eq "$(ls "$T/tmp" | wc -l)" 1 "temporary folders before the signal"
kill -TERM $!
wait $!
assert_eq $? 143 "its status after SIGTERM"
wait_for 10 ended
[ ! -e "$T/four.tar.gz" ] || fail "an archive after a signal"

# Nothing is left.
assert_eq "$(ls "$T/tmp")" "" "temporary folders"
