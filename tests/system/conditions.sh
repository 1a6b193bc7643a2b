#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM47: conditions of access keys (no_delete, no_overwrite, from, expires) in every way to write, remove and come: over HTTP and by RDMA,
# copies, completions, forms, tags, many at once, behind a balancer; of two writers at once one wins.
LISTEN=$'  - { address: "127.0.0.1:0", dialect: s3 }\n  - { address: "127.0.0.1:0", dialect: s3, proxy: [127.0.0.5] }'
. "$(dirname "$0")/lib.sh"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GANTRY_ADMIN
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
start_daemon
read -r SIGNED PROXIED <<<"$(grep -o ' s3=[^ ]*' "$T/ready" | tail -n 2 | sed 's/.*=//' | tr '\n' ' ')"
# made NAME OPTIONS...: a key in the file $T/NAME, as two lines for a shell
made() { gantry --conf "$T/gantryd.yaml" -q key new "${@:2}" >"$T/$1" || fail "gantry key new ${*:2}"; }
made all
made keep --no-delete
made once --no-overwrite
made worm --no-delete --no-overwrite --bucket bkt
made near --from 127.0.0.1,192.0.2.0/24,fd00::/8
made far --from 10.0.0.0/8
cat >>"$T/keys.yaml" <<-END
	- access_key: AKPARTLY
	  secret_key: partly-secret
	  grants: [ { bucket: bkt, no_delete: true, no_overwrite: true }, { bucket: bkt, prefix: tmp/ } ]
	- { access_key: AKSHORT, secret_key: short-secret, expires: "$(date -u -d '+4 seconds' +%FT%TZ)" }
END
assert_eq "$(curl -sS -o "$T/out" -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST http://x/control/reload)" 200 "$(<"$T/out")"
short=$(($(date +%s) + 4))
head -c 2000000 /dev/urandom >"$T/body"

# ---- by RDMA, as gantry does
by_rdma() { (eval "$(<"$T/$1")" && nic "$BUILD/gantry" --require-rdma -q put "${@:3}" "$T/body" "http://$SIGNED/bkt/$2") 2>"$T/err"; }
by_rdma once rdma || fail "a new object by RDMA: $(<"$T/err")"
! by_rdma once rdma || fail "overwritten by RDMA"
grep -qF "The object exists, and the access key may not change existing objects (no_overwrite)." "$T/err" || fail "$(<"$T/err")"
by_rdma keep rdma || fail "overwriting by RDMA with no_delete alone: $(<"$T/err")"

# An expiry is a deletion: of a new object, of one that exists, of a copy and of an upload.
! by_rdma keep ttl --ttl 60 || fail "an expiry with no_delete"
grep -qF "The access key may not delete (no_delete)." "$T/err" || fail "$(<"$T/err")"
ttl() { (eval "$(<"$T/keep")" && "$BUILD/tools/s3sign" -s "$SIGNED" -k "$AWS_ACCESS_KEY_ID" -p "$AWS_SECRET_ACCESS_KEY" "$@" x-gantry-ttl:60); }
assert_match "$(ttl -b "$T/body" PUT /bkt/rdma 2>&1)" '^403' "an expiry of an object that exists"
assert_match "$(ttl -m empty PUT /bkt/copy x-amz-copy-source:/bkt/rdma 2>&1)" '^403' "an expiry of a copy"
assert_match "$(ttl -m empty POST '/bkt/rdma?uploads' 2>&1)" '^403' "an expiry of an upload"
assert_match "$(ttl -m empty GET /bkt/rdma 2>&1)" '^200' "a GET with a header without effect"

# ---- over HTTP, as boto3 does
/usr/bin/python3 "$ROOT/tests/system/conditions.py" "http://$SIGNED" "$PROXIED" "$T" || fail "conditions.py"

# ---- of many at once exactly one is the first
for round in 1 2 3 4; do
	for i in 1 2 3 4 5 6 7 8; do
		(eval "$(<"$T/once")" && head -c $((i * 60000)) "$T/body" >"$T/b$i" && "$BUILD/tools/s3sign" -s "$SIGNED" -k "$AWS_ACCESS_KEY_ID" -p "$AWS_SECRET_ACCESS_KEY" \
			-b "$T/b$i" PUT "/bkt/race$round" >"$T/race$i" 2>&1) &
		runs[i]=$!
	done
	wait "${runs[@]}"
	assert_eq "$(cat "$T"/race? | grep -c '^200')" 1 "round $round: $(cat "$T"/race?)"
	assert_eq "$(cat "$T"/race? | grep -c '^403')" 7 "round $round: $(cat "$T"/race?)"
	won=$(grep -l '^200' "$T"/race? | sed 's/.*race//')
	curl_s3 "/bkt/race$round" | cmp - "$T/b$won" || fail "round $round: not the bytes of the one that was told so"
done

# ---- a key's time is over
while [ "$(date +%s)" -le "$short" ]; do sleep 0.1; done
assert_match "$("$BUILD/tools/s3sign" -s "$SIGNED" -k AKSHORT -p short-secret -m empty GET /bkt/rdma 2>&1)" '^403' "an expired key"
gantry --conf "$T/gantryd.yaml" key list | grep -qE '^AKSHORT .*EXPIRED' || fail "not marked as expired"
assert_alive
stop_daemon
