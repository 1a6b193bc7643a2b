#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# HTTPS on a listener: whole objects both ways, keep-alive, clients that are not TLS, and a new certificate without a
# connection dropped.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || fail "no openssl"

certificate() { # NAME: $T/NAME.crt, $T/NAME.key
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days "${2:-30}" -subj "/CN=$1" \
		-addext "subjectAltName=IP:127.0.0.1,DNS:localhost" -keyout "$T/$1.key" -out "$T/$1.crt" 2>"$T/openssl.log" ||
		fail "openssl: $(<"$T/openssl.log")"
	chmod 0600 "$T/$1.key"
}
use() { cp "$T/$1.crt" "$T/server.crt" && cp -p "$T/$1.key" "$T/server.key"; }
shown() { # the subject of the certificate that the listener shows
	openssl s_client -connect "$TLS" </dev/null 2>/dev/null | openssl x509 -noout -subject
}
tls() { curl -sS --cacert "$T/server.crt" "$@"; }

certificate one
certificate two 60
use one
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, tls_certificate: \"$T/server.crt\", tls_key: \"$T/server.key\" }"

# ---- what is wrong with the files is said before anything starts
write_config
check() { # WHAT NAMED
	"$BUILD/gantryd" -c "$T/gantryd.yaml" --check-config >"$T/out" 2>&1
	assert_eq $? 78 "$1: exit code"
	grep -q "$2" "$T/out" || fail "$1: $(<"$T/out")"
}
cp "$T/two.key" "$T/server.key"
check "another key" "server.key is not the key of the certificate"
use one
chmod 0644 "$T/server.key"
check "a key that everybody can read" "server.key: a private key that others can read (mode 0644)"
use one
echo garbage >"$T/server.crt"
check "no certificate" "server.crt: no certificate chain in PEM"
rm "$T/server.crt"
check "no file" "server.crt: No such file"
use one
sed -i "s|, tls_key: \"$T/server.key\"||" "$T/gantryd.yaml"
check "no key" "listen\[2\].tls_certificate: goes with tls_key"

start_daemon
TLS=$(sed 's/.* s3=\([^ ]*\) *\(admin.*\)*$/\1/' "$T/ready")
[ "$TLS" != "$S3" ] || fail "no second s3 listener in: $(<"$T/ready")"
U=https://$TLS

# ---- the listings say https, and when the certificate ends: the log, /status, the metric, gantry status
ends() { date -d "$(openssl x509 -noout -enddate -in "$T/$1.crt" | cut -d= -f2)" +%s; }
shows_end() { # NAME: of the certificate in use
	assert_eq "$(metric gantry_tls_certificate_expiry_timestamp_seconds "listener=\"listen[2]\",file=\"$T/server.crt\"")" "$(ends "$1")" "the metric"
	assert_eq "$(curl_admin /status | jq -c '[.listeners[] | [.https, .certificate.file, .certificate.expires_unix_seconds]]')" \
		"[[false,null,null],[false,null,null],[true,\"$T/server.crt\",$(ends "$1")]]" "/status"
	gantry --admin "$T/admin.sock" status >"$T/out" || fail "gantry status: $(<"$T/out")"
	# A day is full within the second in which the certificate was made.
	grep -qE " s3 https://$TLS, serves unsigned requests, certificate until $(date -u -d "@$(ends "$1")" +%F) \\(($2|$(($2 + 1))) days\\)$" "$T/out" || fail "gantry status: $(<"$T/out")"
	grep -qF " s3 http://$S3, serves unsigned requests" "$T/out" || fail "gantry status: $(<"$T/out")"
	wait_for 60 grep -qF "listener https://127.0.0.1:0: the certificate $T/server.crt is valid until $(date -u -d "@$(ends "$1")" +%FT%TZ)" "$T/daemon.log"
}
shows_end one 29

# ---- objects, on one kept-alive connection where curl can
for size in 0 1 257 65536 65537 5242881; do
	bytes pattern:5 $size >"$T/in"
	tls "$U/bkt/o$size" -T "$T/in" -o /dev/null -w '%{http_code}\n' | grep -qx 200 || fail "PUT of $size"
	tls "$U/bkt/o$size" -o "$T/out" "$U/bkt/o$size" -o "$T/out2" -w '%{http_code} %{num_connects}\n' >"$T/codes"
	assert_eq "$(<"$T/codes")" $'200 1\n200 0' "GET of $size, twice on one connection"
	assert_same "$T/out" "$T/in"
	assert_same "$T/out2" "$T/in"
done
assert_eq "$(tls "$U/bkt/o5242881" -r 65530-65535 | md5)" "$(tail -c +65531 "$T/in" | head -c 6 | md5)" "a range"
assert_eq "$(tls -I "$U/bkt/o65537" | tr -d '\r' | grep -i '^content-length')" "Content-Length: 65537" "HEAD"
tls "$U/bkt/missing" | grep -q '<Code>NoSuchKey' || fail "an error's body"
assert_eq "$(tls "$U/bkt/o1" -X DELETE -o /dev/null -w '%{http_code}')" 204 "DELETE"

# ---- many at once, some of which hang up in the middle
pids=()
for i in $(seq 24); do
	if ((i % 3)); then
		tls "$U/bkt/o5242881" | cmp - "$T/in" &
		pids+=($!)
	else
		{ tls "$U/bkt/o5242881" --limit-rate 200k -m 0.3 -o /dev/null 2>/dev/null || true; } &
		pids+=($!)
	fi
done
for p in "${pids[@]}"; do wait "$p" || fail "one of many"; done

# ---- what is not TLS, and TLS that is too old
! curl -sS -m 10 "http://$TLS/bkt/o257" >"$T/out" 2>&1 || fail "plain HTTP was served"
head -c 3000 /dev/urandom | timeout 10 openssl s_client -connect "$S3" >/dev/null 2>&1
head -c 3000 /dev/urandom >"/dev/tcp/${TLS%:*}/${TLS##*:}" 2>/dev/null
! openssl s_client -connect "$TLS" -tls1_1 -cipher ALL:@SECLEVEL=0 </dev/null >"$T/out" 2>&1 || fail "TLS 1.1 was served"
openssl s_client -connect "$TLS" -tls1_2 </dev/null >"$T/out" 2>&1 || fail "TLS 1.2: $(tail -5 "$T/out")"
assert_eq "$(curl_s3 /bkt/o257 | md5)" "$(tls "$U/bkt/o257" | md5)" "the plain listener beside it"

# ---- a new certificate, while a connection stands
exec {slow}< <(tls "$U/bkt/o5242881" --limit-rate 2500k)
wait_for 60 eval '[ "$(curl_admin /requests | grep -c step)" -ge 1 ]'
assert_eq "$(shown)" "subject=CN = one" "the first certificate"
use two
kill -HUP "$DAEMON_PID"
wait_for 60 eval '[ "$(shown)" = "subject=CN = two" ]'
shows_end two 59
cmp - "$T/in" <&"$slow" || fail "the connection that stood"
exec {slow}<&-
tls "$U/bkt/o257" | cmp - <(curl_s3 /bkt/o257) || fail "the new certificate"
echo garbage >"$T/server.crt"
kill -HUP "$DAEMON_PID"
wait_for 60 grep -q "the configuration cannot be used; nothing was changed" "$T/daemon.log"
assert_eq "$(shown)" "subject=CN = two" "after a bad file"
assert_alive
stop_daemon
