#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry key: what it makes works at once in the daemon that runs, what it revokes does not; the file keeps what else stands in it; bad
# input leaves it as it was.  And the first key, which gantryd --format makes (claim TM46).
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
. "$(dirname "$0")/lib.sh"
NO_NIC=1
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GANTRY_ADMIN
cd "$T" || exit 1
K=$T/keys.yaml
MORE="auth: { credentials_file: \"$K\" }"
# Nothing is where the store was: no disk, or a namespace that nobody has used.
no_store() {
	rm -r disk0 && mkdir disk0
	sed -i "s/\(namespace: \"[^\"]*\.\)[0-9]*\"/\1$((_stores += 1))\"/" gantryd.yaml
}
key() { gantry --conf "$T/gantryd.yaml" key "$@"; }
# says RC WORDS...: standard output goes to out, errors to err
says() {
	local rc=$1 have
	shift
	key "$@" >out 2>err
	have=$?
	[ $have = "$rc" ] || fail "gantry key $*: exit $have, want $rc: $(cat out err)"
}
error_has() { grep -qF -- "$1" err || fail "no \"$1\" in: $(<err)"; }
# as KEY SECRET METHOD PATH [curl words]: status
as() { curl -sS --max-time 30 -o answer -w '%{http_code}' --aws-sigv4 aws:amz:us-east-1:s3 -u "$1:$2" -X "$3" "http://$SIGNED$4" "${@:5}"; }

# ---- the first key: made with the store, told once, good for a signing client
write_config
mkdir disk0
"$BUILD/gantryd" -c gantryd.yaml --check-config >out 2>&1 || fail "--check-config before --format: $(<out)"
grep -qF "$K: is not there yet" out || fail "nothing of the file that is missing: $(<out)"
"$BUILD/gantryd" -c gantryd.yaml --format >out 2>&1 || fail "--format: $(<out)"
grep -qF "first access key" out || fail "nothing of the first key: $(<out)"
eval "$(grep '^export AWS_' out)"
FIRST=$AWS_ACCESS_KEY_ID FIRST_SECRET=$AWS_SECRET_ACCESS_KEY
[ "${#FIRST}" = 20 ] && [ "${#FIRST_SECRET}" = 40 ] || fail "the pair: $(<out)"
assert_eq "$(stat -c %a "$K")" 600
daemon_run
SIGNED=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
curl_s3 /bkt -X PUT && curl_s3 /bkt/a -T gantryd.yaml || fail "an object"
/usr/bin/aws --endpoint-url "http://$SIGNED" --region us-east-1 s3 cp gantryd.yaml s3://bkt/signed >out 2>&1 || fail "aws, with the first key: $(<out)"
curl_s3 /bkt/signed | cmp - gantryd.yaml || fail "what aws stored"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
! grep -rqF "$FIRST_SECRET" daemon.log || fail "the secret is in the log"

# ---- new: two lines that a shell takes, and the daemon has it
says 0 new --bucket bkt,other-* --read-only --until 2h --comment 'the "reader"'
assert_eq "$(wc -l <out)" 2
eval "$(<out)"
READER=$AWS_ACCESS_KEY_ID READER_SECRET=$AWS_SECRET_ACCESS_KEY
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
error_has "gantryd has read the file"
! grep -qF "$READER_SECRET" err || fail "the secret is in the notes"
assert_eq "$(as "$READER" "$READER_SECRET" GET /bkt/a)" 200 "$(<answer)"
assert_eq "$(as "$READER" "$READER_SECRET" PUT /bkt/b -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -d x)" 403
says 0 new --prefix up/ --json -q
[ ! -s err ] || fail "-q: $(<err)"
eval "$(/usr/bin/python3 -c 'import json; o = json.load(open("out")); print("UP=%(access_key)s UP_SECRET=%(secret_key)s UP_FILE=%(file)s; RELOADED=%(reloaded)s" % o)')"
assert_eq "$RELOADED $UP_FILE" "True $K"
assert_eq "$(as "$UP" "$UP_SECRET" PUT /bkt/up/b -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -d x)" 200 "$(<answer)"
assert_eq "$(as "$UP" "$UP_SECRET" GET /bkt/a)" 403

# ---- list: what they may, and no secret
says 0 list
assert_eq "$(wc -l <out)" 3
I='[0-9a-f]{8}' Z='20[0-9-]+T[0-9:]+Z'
M="made $Z; used $Z"
grep -qE "^$FIRST +$I  everything; $M\$" out || fail "$(<out)"
grep -qE "^$READER +$I  bkt, other-\*; read only; until 20[0-9-]+T[0-9:]+Z; $M; \"the \"reader\"\"\$" out || fail "$(<out)"
grep -qE "^$UP +$I  \*/up/; $M\$" out || fail "$(<out)"
id() { printf '%s\0' "gantry secret id 1" "$1" | cat - <(printf %s "$2") | sha256sum | cut -c1-8; }
grep -q "^$READER  $(id "$READER" "$READER_SECRET")  " out || fail "the id of the secret: $(<out)"
for s in "$FIRST_SECRET" "$READER_SECRET" "$UP_SECRET"; do ! grep -qF "$s" out || fail "list shows a secret"; done
says 0 list --json
assert_eq "$(/usr/bin/python3 -c 'import json; print([([g["bucket"] + "/" + g["prefix"] for g in o["grants"]], o["read_only"], o.get("expired"), o["comment"], o["secret_id"], o["made"][-1:], o["used_since"] <= o["last_used"] <= "2999") for o in map(json.loads, open("out")) if o["access_key"] == "'"$READER"'"])')" \
	"[(['bkt/', 'other-*/'], True, False, 'the \"reader\"', '$(id "$READER" "$READER_SECRET")', 'Z', True)]"

# ---- what an operator wrote into the file stays, byte for byte; an expired key is marked
printf '\n# Ours.\n-   access_key: AKOURS   # by hand\n    # inside\n    secret_key: "ours-secret"\n    gids: [ 10.0.0.0/8 ]\n    grants: [ { bucket: b, prefix: p/, read_only: true, no_delete: true }, { bucket: c, no_overwrite: true } ]\n    expires: 2020-01-01T00:00:00Z\n' >>"$K"
cp "$K" before
says 0 new --no-delete --no-overwrite --from '10.0.0.5,fd00::/8'
NEW=$(sed -n 's/^export AWS_ACCESS_KEY_ID=//p' out)
assert_eq "$(head -c "$(stat -c %s before)" "$K" | md5)" "$(md5 <before)" "what stood there"
says 0 list
grep -qE "^$NEW +$I  everything; no delete; no overwrite; from 10.0.0.5/32, fd00::/8; made $Z; not used since $Z\$" out || fail "$(<out)"
grep -qE '^AKOURS +[0-9a-f]{8}  b/p/ \(read only, no delete\), c \(no overwrite\); tokens of 10.0.0.0/8; until 2020-01-01T00:00:00Z, EXPIRED; not used since 20[0-9-]+T[0-9:]+Z$' out || fail "$(<out)"

# ---- revoke
says 3 revoke "${NEW%?}"
error_has "no access key ${NEW%?} in $K; similar: $NEW"
says 3 revoke XYLOPHONE
! grep -q similar err || fail "similar to nothing: $(<err)"
says 0 revoke "$NEW"
error_has "$NEW is gone from $K, and gantryd has read the file"
cmp before "$K" || fail "new and revoke have changed the file"
says 0 revoke "$READER"
assert_eq "$(as "$READER" "$READER_SECRET" GET /bkt/a)" 403
grep -q InvalidAccessKeyId answer || fail "$(<answer)"
assert_eq "$(as "$FIRST" "$FIRST_SECRET" GET /bkt/a)" 200

# ---- a secret that could not be printed is said to be in the file ----
key new --comment unseen >/dev/full 2>err && fail "key new ends well, and nothing was printed"
error_has "the secret could not be printed"
unseen=$(sed -n 's/.*revoke it with `\(gantry key \)\(.*\)`$/\2/p' err)
# shellcheck disable=SC2086
says 0 $unseen
! grep -q unseen "$K" || fail "it is still there: $(<"$K")"

# ---- rotate: a second secret with the same rights, while the first one is still good; the log and the list tell them apart
cp "$K" unturned
says 0 new --bucket bkt --read-only --max-objects 9 --comment 'to be turned' --json -q
eval "$(/usr/bin/python3 -c 'import json; o = json.load(open("out")); print("TURN=%(access_key)s ONE=%(secret_key)s ONE_ID=%(secret_id)s" % o)')"
says 0 rotate "$TURN"
assert_eq "$(wc -l <out)" 2
eval "$(<out)"
assert_eq "$AWS_ACCESS_KEY_ID" "$TURN"
TWO=$AWS_SECRET_ACCESS_KEY TWO_ID=$(id "$TURN" "$AWS_SECRET_ACCESS_KEY")
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
[ "$TWO" != "$ONE" ] && [ "${#TWO}" = 40 ] || fail "the second secret: $TWO"
error_has "$TURN has a new secret in $K, $TWO_ID; the previous one, $ONE_ID, can be used until $(date -u -d '7 days' +%Y-%m-%d)T"
error_has "gantryd has read the file"
! grep -qE "$ONE|$TWO" err daemon.log || fail "a secret is in the notes or in the log"
logged() { wait_for 60 grep -q "access_key=$TURN secret_id=$1 bucket=bkt .* op=GetObject status=200" daemon.log; }
assert_eq "$(as "$TURN" "$ONE" GET /bkt/a)" 200 "the first secret, still"
logged "$ONE_ID"
assert_eq "$(as "$TURN" "$TWO" PUT /bkt/b -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -d x)" 403 "the same rights"
says 0 list
COMMENT='"to be turned"'
grep -qE "^$TURN  $ONE_ID  bkt \(at most 9 objects\); read only; until $Z; $M; $COMMENT\$" out || fail "the first secret: $(<out)"
grep -qE "^$TURN  $TWO_ID  bkt \(at most 9 objects\); read only; $M; $COMMENT\$" out || fail "the second secret: $(<out)"
assert_eq "$(as "$TURN" "$TWO" GET /bkt/a)" 200 "the second secret"
logged "$TWO_ID"
# A third one has to wait for the end of the first.
cp "$K" turned
says 1 rotate "$TURN" --until 30d
error_has "$TURN has several secrets already: $ONE_ID until "
error_has "when one of them has ended, or was revoked (--secret ID)"
cmp turned "$K" || fail "a refused rotate has changed the file"
says 3 revoke "$TURN" --secret 00000000
error_has "$TURN has no secret with the id 00000000; there are $ONE_ID, $TWO_ID"
says 3 rotate "${TURN%?}"
error_has "no access key ${TURN%?} in $K; similar: $TURN"
says 0 revoke "$TURN" --secret "$ONE_ID"
error_has "secret $ONE_ID of $TURN is gone from $K, and gantryd has read the file"
assert_eq "$(as "$TURN" "$ONE" GET /bkt/a)" 403 "one secret alone is gone"
grep -q SignatureDoesNotMatch answer || fail "$(<answer)"
assert_eq "$(as "$TURN" "$TWO" GET /bkt/a)" 200
# The end comes: an answer as for every key that has expired, and the next rotate clears it away.
says 0 rotate "$TURN" --until 1s --json
THREE=$(/usr/bin/python3 -c 'import json; o = json.load(open("out")); assert o["previous_secret_id"] == "'"$TWO_ID"'" and o["previous_until"].endswith("Z") and o["reloaded"], o; print(o["secret_key"])')
ended() { [ "$(as "$TURN" "$TWO" GET /bkt/a)" = 403 ]; }
wait_for 60 ended
grep -q 'InvalidAccessKeyId.*This secret of the access key has expired' answer || fail "$(<answer)"
assert_eq "$(as "$TURN" "$THREE" GET /bkt/a)" 200
says 0 rotate "$TURN" --until never
error_has "can be used without an end"
! grep -qF "$TWO" "$K" || fail "a secret that has ended is still in the file"
assert_eq "$(grep -c "access_key: $TURN" "$K")" 2
says 0 revoke "$TURN"
! grep -qF "$TURN" "$K" || fail "revoke has left a secret"
cmp unturned "$K" || fail "rotate and revoke have changed more of the file than that"

# ---- bad input: a sentence, exit 2 or 1, and the file as it was; claim TM75: a block with bits set after its length
cp "$K" before
for bad in "what=there are new, list, rotate and revoke" "revoke=revoke want the KEY" "rotate=rotate and revoke want" "list --secret X=--secret is for revoke" "rotate X --read-only=is for new" "rotate X --until yesterday=--until wants a time" "new X=one word too many: X" "list X=one word too many: X" \
	"new --bucket Bucket=--bucket wants buckets" "new --bucket ,=--bucket wants buckets" "new --from 10.0.0.0/33=--from wants addresses" "new --from 10.0.0.5,10.1.2.3/8=--from wants addresses" "new --from host=--from wants addresses" \
	"list --no-delete=is for new" "new --until never=--until wants a time" \
	"new --until 2020-01-01T00:00:00Z=--until is in the past" "new --until 0d=--until wants a time" "list --read-only=is for new" \
	"revoke X --until 2d=is for new and rotate" "new --until 99999d=--until wants a time"; do
	# shellcheck disable=SC2086
	says 2 ${bad%%=*}
	error_has "${bad#*=}"
	[ ! -s out ] || fail "${bad%%=*}: something on standard output: $(<out)"
done
says 2 new --comment $'a\nb'
error_has "--comment wants a line of 1 to 200 bytes"
says 2 new --prefix $'a\nb'
error_has "--prefix is too long, not UTF-8, or has characters that cannot be seen"
says 1 new --file "$T/none/keys.yaml"
error_has "none/keys.yaml: No such file or directory"
! grep -q "makes it" err || fail "a cure that is none: $(<err)"
says 1 list --file "$T/none.yaml"
error_has "\`gantry key new\` makes it"
printf 'listen: [{ address: "127.0.0.1:0", dialect: s3, anonymous: true }]\nstore: { disks: [{ path: %s }] }\n' "$T" >other.yaml
says 1 new --conf other.yaml
error_has "other.yaml: auth.credentials_file is not set"
says 1 new --conf nosuch.yaml
error_has "nosuch.yaml: cannot read it"
cmp before "$K" || fail "bad input has changed the file"
# A file that the daemon would not take either.
printf -- '- { access_key: AKEY, secret_key: verysecret, colour: red }\n' >bad.yaml
cp bad.yaml bad.before
says 1 new --file bad.yaml
error_has "bad.yaml:1:47: [0]: unknown key"
cmp bad.before bad.yaml || fail "a bad file was changed"
# No room: nothing is left behind.
says 0 list
(trap '' XFSZ; ulimit -f 0; key new 2>&1) | grep -qF 'File too large' || fail "a file without room"
cmp before "$K" || fail "a write that failed has changed the file"
[ ! -e .keys.yaml.new ] || fail "a write that failed has left something"

# ---- who refuses, and who is not there
printf -- '- { access_key: AKEY, secret_key: othersecret }\n' >elsewhere.yaml
says 0 new --file elsewhere.yaml
error_has "reads another file: its auth.credentials_file is $K"
# A reload that fails for another reason: said, and it is a failure, for the daemon goes on with the keys from before.
cp gantryd.yaml gantryd.good
echo 'nonsense: {}' >>gantryd.yaml
says 1 new
error_has "gantryd.yaml:$(wc -l <gantryd.yaml):1: nonsense: unknown key"
cmp before "$K" || fail "a bad configuration has changed the file"
gantry key new --file "$K" --admin "$T/admin.sock" >out 2>err && fail "a reload that fails: $(<err)"
error_has "gantryd continues with the previous keys, 400"
error_has "nonsense: unknown key"
cp gantryd.good gantryd.yaml
says 0 new --admin "http://$ADMIN"
error_has "gantryd was not told, 401"
error_has "systemctl reload gantryd"
# The last use survives the reloads, of which there were many since; a secret that was not used has none.
says 0 list
assert_eq "$(grep -cE "^$FIRST .*; $M\$" out) $(grep -cE "^$UP .*; $M\$" out)" "1 1" "$(<out)"
says 0 list --json
assert_eq "$(/usr/bin/python3 -c 'import json; print([o["last_used"] for o in map(json.loads, open("out")) if o["access_key"] == "AKOURS"])')" "[None]"
says 0 list --admin "http://$ADMIN"
error_has "the last use of each secret is not known: 401"
says 0 list --file elsewhere.yaml
error_has "the last use of each secret is not known: the gantryd at"
! grep -q used out || fail "a use of another file's key: $(<out)"
stop_daemon
says 0 list
error_has "the last use of each secret is not known: no answer from $T/admin.sock"
! grep -q "used" out || fail "a use that nobody knows: $(<out)"
says 0 new
error_has "no answer from $T/admin.sock"
error_has "any other when it starts"

# ---- nobody is left: said to who signs, to the log; and still a file that the next key goes into
for k in $(key list | awk '{ print $1 }'); do
	says 0 revoke "$k"
	error_has "$k is gone from $K"
	error_has "no answer from $T/admin.sock"
done
says 0 list
error_has "there are no access keys"
grep -qF '# Ours.' "$K" || fail "a comment is gone"
daemon_run
SIGNED=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
assert_eq "$(as "$FIRST" "$FIRST_SECRET" GET /bkt/a)" 403
grep -qF 'This server has no access keys' answer || fail "$(<answer)"
grep -qF 'no access keys' daemon.log || fail "nothing in the log of a server without keys"
gantry doctor --admin "$T/admin.sock" >out 2>&1
grep -qF 'no access keys' out || fail "doctor says nothing of a server without keys: $(<out)"
eval "$(key new 2>err)"
assert_eq "$(as "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" GET /bkt/a)" 200 "$(<answer)"
stop_daemon

# ---- --format makes no second key, not where the list is empty either, and says so when it cannot make the first
echo '[]' >"$K"
no_store
"$BUILD/gantryd" -c gantryd.yaml --format >out 2>&1 || fail "--format: $(<out)"
! grep -q "access key" out || fail "a second first key: $(<out)"
sed -i "s|$K|$T/none/keys.yaml|" gantryd.yaml
no_store
"$BUILD/gantryd" -c gantryd.yaml --format >out 2>&1
assert_eq $? 1 "--format where no key can be written: $(<out)"
grep -qF 'there is a store, but no first access key' out || fail "$(<out)"
