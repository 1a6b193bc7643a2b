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
s3 del -q --recursive --force s3://cmd || fail "del --recursive"
s3 rb s3://cmd >/dev/null || fail "rb"
assert_alive
