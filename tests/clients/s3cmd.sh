#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# s3cmd against the daemon.
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/clients.sh"
need /usr/bin/s3cmd
clients_daemon
cat >"$T/s3cfg" <<-END
	[default]
	access_key = $AWS_ACCESS_KEY_ID
	secret_key = $AWS_SECRET_ACCESS_KEY
	host_base = $S3
	host_bucket = $S3
	use_https = False
	signature_v2 = False
	bucket_location = us-east-1
	multipart_chunk_size_mb = 5
	max_retries = 1
END
s3() { /usr/bin/s3cmd -c "$T/s3cfg" --no-progress "$@"; }

s3 mb s3://cmd >/dev/null || fail "mb"
s3 ls | grep -q 's3://cmd$' || fail "ls"
odd_files "$T/tree"
s3 sync -q "$T/tree/" s3://cmd/tree/ || fail "sync up"
mkdir "$T/back"
s3 sync -q s3://cmd/tree/ "$T/back/" || fail "sync down"
diff -r "$T/tree" "$T/back" || fail "the tree came back different"
assert_eq "$(s3 sync "$T/tree/" s3://cmd/tree/ | grep -c '^upload')" 0 "a second sync has nothing to do (it compares MD5s)"
bytes pattern:3 $((BIG + 777)) >"$T/big"
s3 put -q "$T/big" s3://cmd/big || fail "multipart put"
s3 get -q s3://cmd/big "$T/big.back" || fail "get"
assert_same "$T/big" "$T/big.back"
s3 put -q --add-header=x-amz-meta-colour:blue --mime-type=text/x-y "$T/tree/plain.txt" s3://cmd/meta || fail "put with metadata"
s3 info s3://cmd/meta >"$T/out" || fail "info"
grep -q 'MIME type: text/x-y' "$T/out" && grep -q 'x-amz-meta-colour: blue' "$T/out" || fail "info: $(cat "$T/out")"
grep -q "MD5 sum:   $(md5 <"$T/tree/plain.txt")" "$T/out" || fail "MD5: $(cat "$T/out")"
s3 cp -q s3://cmd/meta s3://cmd/meta2 || fail "cp"
s3 modify -q --add-header=x-amz-meta-colour:red s3://cmd/meta2 || fail "modify"
s3 info s3://cmd/meta2 | grep -q 'x-amz-meta-colour: red' || fail "modified metadata"
s3 mv -q s3://cmd/meta2 s3://cmd/meta3 || fail "mv"
s3 info s3://cmd/meta2 >"$T/out" 2>&1 && fail "mv left the source"
s3 get -q --continue s3://cmd/big "$T/part" 2>/dev/null || fail "get --continue, from nothing"
head -c 1000000 "$T/big" >"$T/part"
s3 get -q --continue s3://cmd/big "$T/part" || fail "get --continue"
assert_same "$T/big" "$T/part"
assert_eq "$(s3 du s3://cmd/tree | awk '{ print $2 }')" "$(find "$T/tree" -type f | wc -l)" "du counts"
s3 ls s3://cmd/tree/ | grep -q 'DIR .*sub dir/' || fail "ls shows a directory"
s3 setlifecycle <(echo '<LifecycleConfiguration><Rule><ID>a</ID><Prefix>x/</Prefix><Status>Enabled</Status><Expiration><Days>3</Days></Expiration></Rule></LifecycleConfiguration>') \
	s3://cmd >/dev/null || fail "setlifecycle"
s3 getlifecycle s3://cmd | grep -q '<Days>3</Days>' || fail "getlifecycle"
s3 dellifecycle s3://cmd >/dev/null || fail "dellifecycle"
s3 multipart s3://cmd >"$T/out" || fail "multipart"

# ---- requests that S3 servers are reported to answer wrongly
class() { s3 ls -l "s3://cmd/$1" | awk -v k="s3://cmd/$1" '$6 == k { print $5 }'; }
for name in STANDARD_IA STANDARD_IA STANDARD; do
	s3 cp -q --storage-class=$name s3://cmd/meta s3://cmd/meta || fail "cp onto itself as $name"
	assert_eq "$(class meta)" $name "its class after cp"
done
for name in STANDARD_IA STANDARD_IA STANDARD; do
	s3 modify -q --storage-class=$name s3://cmd/meta || fail "modify as $name"
	assert_eq "$(class meta)" $name "its class after modify"
done
s3 info s3://cmd/meta | grep -q 'x-amz-meta-colour: blue' || fail "metadata after the changes of class"
s3 put -q --add-header='x-amz-meta-u: Miniö' "$T/tree/plain.txt" s3://cmd/beyond || fail "put with metadata beyond ASCII"
s3 info s3://cmd/beyond >"$T/out" || fail "info"
word=$(sed -n 's/^ *x-amz-meta-u: //p' "$T/out")
assert_eq "$(/usr/bin/python3 -c 'import email.header, sys; print(email.header.make_header(email.header.decode_header(sys.argv[1])))' "$word")" Miniö "metadata: $word"
case $word in '=?'*) ;; *) fail "metadata are no encoded word: $word" ;; esac
s3 accesslog --no-access-logging s3://cmd >/dev/null || fail "accesslog --no-access-logging"
s3 accesslog s3://cmd | grep -q 'Logging Enabled: False' || fail "accesslog"
s3 payer s3://cmd >/dev/null || fail "payer"
s3 setacl -q --acl-private s3://cmd s3://cmd/meta || fail "setacl --acl-private"
s3 put -q --acl-private --requester-pays --storage-class=STANDARD_IA "$T/tree/plain.txt" s3://cmd/private || fail "put --acl-private"
: >"$T/none"
s3 put -q "$T/none" s3://cmd/none || fail "put of an empty file"
s3 get -q --continue s3://cmd/none "$T/none.back" || fail "get --continue of an empty object"
# It signs URLs by version 2 whatever it is told; reports/sigv2.sh has them served.
curl -sS "$(s3 signurl s3://cmd/meta +600)" | grep -q s3v4 || fail "signurl without auth.sigv2"
s3 del -q --recursive --force s3://cmd || fail "del --recursive"
s3 rb s3://cmd >/dev/null || fail "rb"
assert_alive
