#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The admin listener for other hosts: HTTPS with a certificate that a reload renews, and a token for all pages but those of health; gantry status, and a
# Prometheus with the configuration of docs/operations.md, ask it.
# claim TM99: pages over TCP need the token; claim TM96: HTTPS of the admin listener
NO_NIC=1
. "$(dirname "$0")/lib.sh"
unset AWS_CA_BUNDLE GANTRY_ADMIN_TOKEN_FILE
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 -subj /CN=authority -addext basicConstraints=critical,CA:TRUE \
	-keyout "$T/ca.key" -out "$T/ca.crt" 2>"$T/openssl" || fail "openssl: $(<"$T/openssl")"
certificate() { # NAME DAYS
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -keyout "$T/$1.key" -out "$T/csr" 2>"$T/openssl" &&
		openssl x509 -req -in "$T/csr" -CA "$T/ca.crt" -CAkey "$T/ca.key" -CAcreateserial -days "$2" -extfile <(echo subjectAltName=IP:127.0.0.1,DNS:localhost) \
			-out "$T/$1.crt" 2>"$T/openssl" || fail "openssl: $(<"$T/openssl")"
}
certificate one 30
certificate two 60
use() { install -m 0644 "$T/$1.crt" "$T/server.crt" && install -m 0640 "$T/$1.key" "$T/server.key"; }
use one
echo 'a-token-of-enough-length' >"$T/token"
chmod 600 "$T/token"

# ---- what is wrong is said before anything starts
write_config
check() { # ADMIN SAID: --check-config refuses this admin section
	sed "s|^admin: .*|admin: { $1 }|" "$T/gantryd.yaml" >"$T/bad.yaml"
	"$BUILD/gantryd" -c "$T/bad.yaml" --check-config >"$T/out" 2>&1
	assert_eq $? 78 "$1: exit code; $(<"$T/out")"
	grep -qF "$2" "$T/out" || fail "$1: $(<"$T/out")"
}
check "address: \"127.0.0.1:0\", tls_certificate: \"$T/server.crt\"" "admin.tls_certificate: goes with tls_key, which is missing"
check "address: \"127.0.0.1:0\", tls_key: \"$T/server.key\"" "admin.tls_key: goes with tls_certificate, which is missing"
check "address: none, socket: \"$T/admin.sock\", tls_certificate: \"$T/server.crt\", tls_key: \"$T/server.key\"" "admin.tls_certificate: goes with admin.address, which is none"
format_store
check "address: \"127.0.0.1:0\", tls_certificate: \"$T/server.crt\", tls_key: \"$T/two.key\"" "two.key is not the key of the certificate"

# ---- without a certificate: the token over a network that others read
sed -i "s|^admin: .*|admin: { address: \"0.0.0.0:0\", socket: \"$T/admin.sock\", token_file: \"$T/token\" }|" "$T/gantryd.yaml"
daemon_run
wait_for 60 grep -q "admin.address 0.0.0.0:0: the token of admin.token_file is sent in clear text, because there is no admin.tls_certificate" "$T/daemon.log"
assert_eq "$(curl -sS -o /dev/null -w '%{http_code}' "http://127.0.0.1:${ADMIN##*:}/metrics")" 401 "/metrics over plain HTTP"
stop_daemon

# ---- with one
: >"$T/daemon.log"
sed -i "s|token_file: \"$T/token\"|&, tls_certificate: \"$T/server.crt\", tls_key: \"$T/server.key\"|" "$T/gantryd.yaml"
daemon_run
! grep -q "in clear text" "$T/daemon.log" || fail "a warning of a token that TLS protects"
at=127.0.0.1:${ADMIN##*:}
ask() { curl -sS --max-time 30 --cacert "$T/ca.crt" -o "$T/answer" -D "$T/head" -w '%{http_code}' "https://$at$1" "${@:2}"; }
bearer() { ask "$1" -H "Authorization: Bearer $2" "${@:3}"; }
head_has() { grep -iq "^$1" "$T/head" || fail "no $1 in: $(<"$T/head")"; }
for p in /livez /readyz /healthz /health /minio/health/live; do assert_eq "$(ask $p)" 200 "$p needs no token"; done
for p in / /metrics /status /rails /disks /quotas /requests /config /events /control/log-level /no-such-page; do
	assert_eq "$(ask $p)" 401 "$p without the token"
	head_has 'WWW-Authenticate: Bearer'
	head_has 'WWW-Authenticate: Basic'
	! grep -q gantry_build_info "$T/answer" || fail "$p: content without the token"
	for wrong in another-token-of-length a-token-of-enough-lengt a-token-of-enough-length1 ''; do assert_eq "$(bearer $p "$wrong")" 401 "$p with the token '$wrong'"; done
done
assert_eq "$(bearer /metrics "$(printf 'a-token-of-enough-length%0300d' 0)")" 401 "a long text"
for p in / /metrics /status /disks /requests /config /events /control/log-level; do assert_eq "$(bearer $p a-token-of-enough-length)" 200 "$p with the token"; done
assert_eq "$(bearer /no-such-page a-token-of-enough-length)" 404 "no page"
assert_eq "$(ask /metrics -u anybody:a-token-of-enough-length)" 200 "a browser, which asks for a password"
assert_eq "$(ask /metrics -u a-token-of-enough-length:)" 401 "the token as a name"
# A page of another site has the browser send a password, but no header of its own.
assert_eq "$(ask /control/resume -X POST -u anybody:a-token-of-enough-length)" 401 "a control call with a password"
! grep -iq '^WWW-Authenticate: Basic' "$T/head" || fail "a control call asks for a password: $(<"$T/head")"
assert_eq "$(bearer /control/resume a-token-of-enough-length -X POST)" 200 "a control call with the token"
assert_eq "$(curl -sS -o /dev/null -w '%{http_code}' --unix-socket "$T/admin.sock" http://x/metrics)" 200 "the socket needs none"
! curl -sS -m 10 "http://$at/livez" >"$T/out" 2>&1 || fail "plain HTTP was served"
! openssl s_client -connect "$at" -tls1_1 -cipher ALL:@SECLEVEL=0 </dev/null >"$T/out" 2>&1 || fail "TLS 1.1 was served"
curl -sS --unix-socket "$T/admin.sock" http://x/status | jq -e ".admin | .https and .pages_need_token and .certificate.file == \"$T/server.crt\"" >/dev/null || fail "/status"

# ---- gantry, from another host
tells() { # RC TEXT WORD...
	gantry --admin "https://$at" "${@:3}" >"$T/out" 2>&1
	assert_eq $? "$1" "gantry ${*:3}: $(<"$T/out")"
	grep -qF -- "$2" "$T/out" || fail "gantry ${*:3}: $(<"$T/out")"
}
tells 1 certificate status --token-file "$T/token"
tells 1 "/status answers 401: it needs the token of its admin.token_file: --token-file FILE" status --ca "$T/ca.crt"
echo another-token-of-length >"$T/other"
tells 1 "answers 401: it has another token than --token-file" status --ca "$T/ca.crt" --token-file "$T/other"
tells 2 "No such file or directory: $T/none" status --ca "$T/ca.crt" --token-file "$T/none"
tells 2 "No such file or directory: $T/none" status --ca "$T/none"
tells 0 "admin      https://0.0.0.0:${ADMIN##*:}, pages need the token, certificate until $(date -u -d "$(openssl x509 -noout -enddate -in "$T/one.crt" | cut -d= -f2)" +%F) (" \
	status --ca "$T/ca.crt" --token-file "$T/token"
tells 0 ok health --ca "$T/ca.crt"
tells 0 requests/s top --count 1 --interval 0.1 --ca "$T/ca.crt" --token-file "$T/token"
AWS_CA_BUNDLE=$T/ca.crt GANTRY_ADMIN_TOKEN_FILE=$T/token tells 0 gantryd status

# ---- renewal: by a reload, with a deploy hook of certbot
gantry --admin "https://$at" --token-file "$T/token" status >"$T/out" 2>&1 && fail "without the authority"
ends() { date -d "$(openssl x509 -noout -enddate -in "$T/$1.crt" | cut -d= -f2)" +%s; }
expiry() { curl -sS --unix-socket "$T/admin.sock" http://x/metrics | sed -n "s|^gantry_tls_certificate_expiry_timestamp_seconds{listener=\"admin\",file=\"$T/server.crt\"} ||p"; }
assert_eq "$(expiry)" "$(ends one)" "the metric"
shown() { openssl s_client -connect "$at" </dev/null 2>/dev/null | openssl x509 -noout -subject; }
assert_eq "$(shown)" "subject=CN = one"
"$ROOT/scripts/recipe" -p "$ROOT/docs/operations.md" "Renewing a certificate" "$T/hook" || fail "scripts/recipe"
hook=$T/hook/etc/letsencrypt/renewal-hooks/deploy/gantryd
[ -s "$hook" ] || fail "no deploy hook in docs/operations.md: $(find "$T/hook")"
sed -i "s|/etc/gantry/tls.crt|$T/server.crt|; s|/etc/gantry/tls.key|$T/server.key|; s|-g gantry|-g $(id -gn)|; s|systemctl reload gantryd|$BUILD/gantryd -c $T/gantryd.yaml --reload|" "$hook"
mkdir "$T/live"
cp "$T/two.crt" "$T/live/fullchain.pem"
install -m 0600 "$T/two.key" "$T/live/privkey.pem"
RENEWED_LINEAGE=$T/live sh "$hook" >"$T/out" 2>&1 || fail "the hook: $(<"$T/out")"
assert_eq "$(shown)" "subject=CN = two" "after the hook"
assert_eq "$(expiry)" "$(ends two)" "the metric after the hook"
assert_eq "$(stat -c %a "$T/server.key")" 640 "the key's mode"
use one
kill -HUP "$DAEMON_PID"
wait_for 60 eval '[ "$(shown)" = "subject=CN = one" ]'
wait_for 60 grep -q "listener https://0.0.0.0:0: the certificate $T/server.crt is valid until" "$T/daemon.log"
# A file that cannot be used changes nothing.
cp "$T/two.key" "$T/server.key"
assert_eq "$(bearer /control/reload a-token-of-enough-length -X POST)" 400 "a key of another certificate"
grep -qF 'admin: ' "$T/answer" || fail "the refusal does not name the listener: $(<"$T/answer")"
assert_eq "$(shown)" "subject=CN = one" "after a bad key"
use one
# Another token, and the presence of a certificate, which needs a restart.
echo 'another-token-of-length' >"$T/token"
assert_eq "$(bearer /control/reload a-token-of-enough-length -X POST)" 200 "reload: $(<"$T/answer")"
assert_eq "$(bearer /metrics a-token-of-enough-length)" 401 "the old token"
assert_eq "$(bearer /metrics another-token-of-length)" 200 "the new token"
cp "$T/gantryd.yaml" "$T/good.yaml"
sed -i "s|, tls_certificate: .*, tls_key: [^ ]*||" "$T/gantryd.yaml"
assert_eq "$(bearer /control/reload another-token-of-length -X POST)" 200 "reload: $(<"$T/answer")"
assert_match "$(<"$T/answer")" '"restart_needed":\["admin.tls_certificate","admin.tls_key"\]' "no certificate any more"
assert_eq "$(bearer /metrics another-token-of-length)" 200 "it stays"
cp "$T/good.yaml" "$T/gantryd.yaml"

# ---- Prometheus, with the pages' own configuration
"$ROOT/scripts/recipe" -p "$ROOT/docs/operations.md" "Prometheus on another host" "$T/page" "s3.example.com:9001=$at" || fail "scripts/recipe"
P=$T/page/etc/prometheus
[ -s "$P/prometheus.yml" ] || fail "no prometheus.yml: $(find "$T/page")"
sed -i "s|/etc/prometheus/|$P/|" "$P/prometheus.yml"
cp "$T/ca.crt" "$P/gantry-ca.crt"
cp "$T/token" "$P/gantry.token"
cp "$ROOT/share/prometheus/gantry.rules.yml" "$P/gantry.rules.yml"
promtool check config "$P/prometheus.yml" >"$T/out" 2>&1 || fail "promtool check config: $(<"$T/out")"
# The answers to a question come at once, and not after a quarter of a minute.
sed -i 's/scrape_interval: 15s/scrape_interval: 1s/' "$P/prometheus.yml"
port=$(/usr/bin/python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file="$P/prometheus.yml" --storage.tsdb.path="$T/tsdb" --web.listen-address="127.0.0.1:$port" >"$T/prometheus.log" 2>&1 &
value() { curl -sS "http://127.0.0.1:$port/api/v1/query" --data-urlencode "query=$1" | jq -r '.data.result[].value[1]'; }
is_up() { [ "$(value 'up{job="gantry"}')" = 1 ]; }
wait_for 60 is_up
assert_eq "$(value 'gantry_tls_certificate_expiry_timestamp_seconds{job="gantry",listener="admin"}')" "$(ends one)" "what Prometheus has"
assert_alive
stop_daemon
