#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Signatures on the real daemon: in the header and in the query, chunk by chunk, with trailers; by our own signer, by curl and by
# boto3; and all that must not pass.  item 47, item 81, item 82
. "$(dirname "$0")/lib.sh"

cat >"$T/keys.yaml" <<-END
	- { access_key: AKADMIN, secret_key: admin/secret+0 }
	- { access_key: AKREAD, secret_key: reader-secret, read_only: true }
	- { access_key: AKPART, secret_key: part-secret-1, grants: [{ bucket: bkt, prefix: own/ }, { bucket: "new-*" }] }
	- { access_key: AKTEMP, secret_key: temp-secret-1, session_token: "to/ken+1=", expires: 2099-01-01T00:00:00Z }
	- { access_key: AKPAST, secret_key: past-secret-1, expires: 2020-01-01T00:00:00Z }
	- { access_key: AKTURN, secret_key: turn-secret-old }
	- { access_key: AKTURN, secret_key: turn-secret-new }
END
chmod 0644 "$T/keys.yaml"
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
write_config

# ---- claim TM40: the file of credentials: others must not read it ----
"$BUILD/gantryd" -c "$T/gantryd.yaml" --check-config >"$T/out" 2>&1
assert_eq $? 78 "exit code of --check-config"
grep -q "keys.yaml: others may read or write it (mode 0644); chmod 0600 it" "$T/out" || fail "$(<"$T/out")"
"$BUILD/gantryd" -c "$T/gantryd.yaml" >"$T/out" 2>&1
assert_eq $? 78 "exit code of a start"
chmod 0600 "$T/keys.yaml"
"$BUILD/gantryd" -c "$T/gantryd.yaml" --check-config >"$T/out" 2>&1 || fail "$(<"$T/out")"
echo "- { access_key: A, secret_key: hunter2hunter2 }" >"$T/bad.yaml"
chmod 0600 "$T/bad.yaml"
"$BUILD/gantryd" -c "$T/gantryd.yaml" --check-config -o auth.credentials_file="$T/bad.yaml" >"$T/out" 2>&1
assert_eq $? 78 "exit code with bad credentials"
grep -q "bad.yaml:1:17: \[0\].access_key: expected 3 to 128 characters" "$T/out" || fail "$(<"$T/out")"
! grep -q hunter2 "$T/out" || fail "a secret was shown"

format_store
daemon_run
make_buckets
SIGNED=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
assert_ne "$SIGNED" "$S3"

as() { "$BUILD/tools/s3sign" -s "$SIGNED" -k "$1" -p "$2" "${@:3}"; }
admin() { as AKADMIN admin/secret+0 "$@"; }
# Words of s3sign behind the expected answer.
want() {
	local have
	have=$("${@:2}") || fail "no answer: ${*:2}"
	assert_eq "$have" "$1" "${*:2}"
}

bytes pattern:5 150000 >"$T/body"
printf '%s' 123456789 >"$T/small"
: >"$T/empty"

# ---- who may ask at all ----
want "403 AccessDenied" as none - -m unsigned GET /bkt/a
want "200" admin -m hash -b "$T/body" PUT /bkt/a
want "200" admin -m empty -o "$T/back" GET /bkt/a
assert_same "$T/body" "$T/back"
want "200" admin -m unsigned -o "$T/back" GET /bkt/a
assert_same "$T/body" "$T/back"
want "206" admin -m empty GET /bkt/a range:bytes=0-9
want "403 InvalidAccessKeyId" as AKNOBODY admin/secret+0 -m empty GET /bkt/a
want "403 SignatureDoesNotMatch" as AKADMIN admin/secret+1 -m empty GET /bkt/a
want "400 AuthorizationHeaderMalformed" admin -m empty -r eu-west-1 GET /bkt/a
want "400 AuthorizationHeaderMalformed" admin -m empty -S ec2 GET /bkt/a
want "403 RequestTimeTooSkewed" admin -m empty -T -1000 GET /bkt/a
want "403 RequestTimeTooSkewed" admin -m empty -T 1000 GET /bkt/a
# A signature that does not hold is refused on the anonymous listener as well; one that holds is good there.
want "403 SignatureDoesNotMatch" "$BUILD/tools/s3sign" -s "$S3" -k AKADMIN -p wrong -m empty GET /bkt/a
want "200" "$BUILD/tools/s3sign" -s "$S3" -k AKADMIN -p admin/secret+0 -m empty GET /bkt/a
# All headers signed, another port in Host, a session token (item 81).
want "200" admin -m empty -H example.test:8123 GET /bkt/a user-agent:x content-length:0 accept:a,b
want "200" as AKTEMP temp-secret-1 -t to/ken+1= -m empty GET /bkt/a
want "400 InvalidToken" as AKTEMP temp-secret-1 -t to/ken+2= -m empty GET /bkt/a
want "403 InvalidAccessKeyId" as AKTEMP temp-secret-1 -m empty GET /bkt/a
want "403 InvalidAccessKeyId" as AKPAST past-secret-1 -m empty GET /bkt/a
# Keys that need encoding are signed as they go over the wire.
want "200" admin -m hash -b "$T/small" PUT /bkt/a%20b%2Bc/d~_e%C3%A4
want "200" admin -m empty -o "$T/back" GET /bkt/a%20b%2Bc/d~_e%C3%A4
assert_same "$T/small" "$T/back"

# ---- claim TM2: changed on the way ----
want "403 SignatureDoesNotMatch" admin -m empty -E 'bkt/a=>bkt/b' GET /bkt/a
want "403 SignatureDoesNotMatch" admin -m empty -E 'bytes=0-9=>bytes=0-8' GET /bkt/a range:bytes=0-9
want "400 XAmzContentSHA256Mismatch" admin -m hash -b "$T/body" -X 77777 PUT /bkt/never
want "403 AccessDenied" admin -m hash -b "$T/small" -u x-amz-meta-a:b PUT /bkt/never
want "403 AccessDenied" admin -m hash -b "$T/small" -u x-amz-acl:private PUT /bkt/never
# item 82: a descriptor that a third party added
tok=000073967e5ff000:00400000:01f2e973:0000:007a03:1:00000000000000000000ffff0f0f0fdf
want "403 AccessDenied" admin -m unsigned -u x-amz-rdma-token:$tok PUT /bkt/never
want "403 AccessDenied" admin -m empty -u x-rdma-info:$tok GET /bkt/a
want "403 AccessDenied" admin -m empty -u x-cuobj-rdma-descr:$tok GET /bkt/a
# item 47: signed as it should be, the body's hash is not that of a body
want "400 XAmzContentSHA256Mismatch" admin -m hash -b "$T/small" -E 'Content-Length: 9=>Content-Length: 0' PUT /bkt/never x-amz-rdma-token:$tok
want "400 InvalidRequest" admin -m signed -b "$T/empty" PUT /bkt/never x-amz-rdma-token:$tok

# claim TM6, by token: signed as AWS's SDKs do, descriptor and all; the server checks who asks before it looks at the descriptor.
nic "$BUILD/tools/rawclient" -s "$SIGNED" <<-END || fail "rawclient: exit $?"
	window w 1M pattern:11
	request PUT /bkt/rdma x-amz-rdma-token:@w content-length:0 x-amz-meta-a:b sign=AKADMIN:admin/secret+0
	expect status 200
	expect header x-amz-rdma-reply 200
	window g 1M
	request GET /bkt/rdma x-amz-rdma-token:@g x-amz-content-sha256:$(printf '' | sha256sum | cut -d' ' -f1) sign=AKADMIN:admin/secret+0
	expect status 200
	expect header x-amz-rdma-reply 200
	expect window g pattern:11
	fill g zero
	request GET /bkt/rdma x-amz-rdma-token:@g sign=AKADMIN:admin/secret+0 unsigned=x-amz-rdma-token
	expect status 403
	expect noheader x-amz-rdma-reply
	request GET /bkt/rdma x-amz-rdma-token:@g sign=AKADMIN:wrong
	expect status 403
	expect noheader x-amz-rdma-reply
	request GET /bkt/rdma x-amz-rdma-token:rubbish sign=AKADMIN:wrong
	expect status 403
	request GET /bkt/rdma x-amz-rdma-token:rubbish sign=AKADMIN:admin/secret+0
	expect status 400
	request PUT /bkt/never x-amz-rdma-token:@w content-length:0 sign=AKREAD:reader-secret
	expect status 403
	request GET /bkt/rdma x-amz-rdma-token:@g
	expect status 403
	expect window g zero
END

# ---- presigned ----
want "200" admin -P 60 -m unsigned -o "$T/back" GET /bkt/a
assert_same "$T/body" "$T/back"
want "200" admin -P 60 -m unsigned -b "$T/small" PUT /bkt/presigned
want "200" as AKTEMP temp-secret-1 -t to/ken+1= -P 60 -m unsigned GET /bkt/a
want "403 AccessDenied" admin -P 60 -T -61 -m unsigned GET /bkt/a
want "403 AccessDenied" admin -P 60 -T 1000 -m unsigned GET /bkt/a
want "400 AuthorizationQueryParametersError" admin -P 604801 -m unsigned GET /bkt/a
want "403 SignatureDoesNotMatch" admin -P 60 -m unsigned -E 'Expires=60=>Expires=61' GET /bkt/a
want "403 AccessDenied" admin -P 60 -m unsigned -u x-amz-rdma-token:$tok GET /bkt/a
assert_eq "$(curl -sS --max-time 30 "http://$SIGNED$(admin -U -P 60 -m unsigned GET /bkt/a)" | md5)" "$(md5 "$T/body")" "a presigned URL in curl"

# ---- chunk by chunk ----
for size in small body empty; do
	for mode in signed signed-trailer unsigned-trailer; do
		want "200" admin -m $mode -c 70000 -b "$T/$size" PUT /bkt/chunked
		want "200" admin -m empty -o "$T/back" GET /bkt/chunked
		assert_same "$T/$size" "$T/back" "$mode"
	done
done
want "200" admin -m signed -c 5 -b "$T/small" PUT /bkt/chunked
for mode in signed-trailer unsigned-trailer; do
	for sum in crc32 crc32c crc64nvme sha1 sha256; do
		want "200" admin -m $mode -x $sum -c 65536 -b "$T/body" PUT /bkt/sum-$sum
		want "400 BadDigest" admin -m $mode -x $sum -w -c 65536 -b "$T/body" PUT /bkt/never
		assert_ne "$(header_of x-amz-checksum-$sum /bkt/sum-$sum -I -H "x-amz-checksum-mode: ENABLED")" "" "stored $sum"
	done
done
want "400 BadDigest" admin -m unsigned-trailer -x crc32 -c 65536 -b "$T/body" -X 1000 PUT /bkt/never
want "403 SignatureDoesNotMatch" admin -m signed -b "$T/body" -X 1000 PUT /bkt/never
want "403 SignatureDoesNotMatch" admin -m signed-trailer -x crc32 -b "$T/body" -X 1000 PUT /bkt/never
n=$(($(stat -c %s "$T/small") + 85 + 2))
for ((i = 0; i < n; i += 3)); do
	have=$(admin -m signed -b "$T/small" -Y $i PUT /bkt/never)
	assert_match "$have" "^40[03] " "byte $i of the frames changed"
done
assert_eq "$(status_of PUT /bkt/never -H "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER" -d 'x')" 411
want "403 SignatureDoesNotMatch" admin -m signed -b "$T/small" -E 'x-amz-decoded-content-length:=>x-amz-decoded-content-lengtg:' PUT /bkt/never
want "403 AccessDenied" as none - -m signed -b "$T/small" PUT /bkt/never
# An SDK that does not sign sends its checksum so.
want "200" "$BUILD/tools/s3sign" -s "$S3" -k none -m unsigned-trailer -x crc32c -b "$T/small" PUT /bkt/unsigned
want "400 BadDigest" "$BUILD/tools/s3sign" -s "$S3" -k none -m unsigned-trailer -x crc32c -w -b "$T/small" PUT /bkt/never
assert_status GET /bkt/never 404

# More than there is room for at once: the decoder waits for the store in the middle of a chunk.
bytes pattern:12 40000000 >"$T/large"
for mode in signed unsigned-trailer; do
	want "200" admin -m $mode -c 1000001 -b "$T/large" PUT /bkt/large
	assert_eq "$(curl_s3 /bkt/large | md5)" "$(md5 "$T/large")" "$mode, large"
done

# ---- claim TM60: rights ----
want "200" as AKREAD reader-secret -m empty GET /bkt/a
want "403 AccessDenied" as AKREAD reader-secret -m hash -b "$T/small" PUT /bkt/never
want "403 AccessDenied" as AKREAD reader-secret -m empty DELETE /bkt/a
want "403 AccessDenied" as AKREAD reader-secret -m empty PUT /new-one
want "200" as AKPART part-secret-1 -m hash -b "$T/small" PUT /bkt/own/x
want "200" as AKPART part-secret-1 -m empty GET /bkt/own/x
want "403 AccessDenied" as AKPART part-secret-1 -m empty GET /bkt/a
want "403 AccessDenied" as AKPART part-secret-1 -m hash -b "$T/small" PUT /bkt/other
want "200" as AKPART part-secret-1 -m empty PUT /new-one
want "200" as AKTURN turn-secret-old -m empty GET /bkt/a
want "200" as AKTURN turn-secret-new -m empty GET /bkt/a

# ---- our own client: by RDMA and over HTTP ----
for way in --require-rdma --no-rdma; do
	AWS_ACCESS_KEY_ID=AKADMIN AWS_SECRET_ACCESS_KEY=admin/secret+0 gantry -q $way --checksum put "$T/body" "http://$SIGNED/bkt/by gantry$way" ||
		fail "gantry $way put"
	gantry -q $way --checksum --access-key AKREAD --secret reader-secret get "http://$SIGNED/bkt/by gantry$way" "$T/back" ||
		fail "gantry $way get"
	assert_same "$T/body" "$T/back" "gantry $way"
	! gantry -q $way --access-key AKREAD --secret wrong get "http://$SIGNED/bkt/by gantry$way" "$T/never" 2>"$T/out" ||
		fail "gantry was served with a wrong secret"
	! gantry -q $way get "http://$SIGNED/bkt/by gantry$way" "$T/never" 2>"$T/out" || fail "gantry was served without a key"
	AWS_ACCESS_KEY_ID=AKTEMP AWS_SECRET_ACCESS_KEY=temp-secret-1 AWS_SESSION_TOKEN=to/ken+1= \
		gantry -q $way get "http://$SIGNED/bkt/by gantry$way" "$T/back" || fail "gantry with a session token"
done
gantry --access-key AKADMIN head "http://$SIGNED/bkt/a" >/dev/null 2>"$T/out"
grep -q "an access key and its secret go together" "$T/out" || fail "$(<"$T/out")"

# ---- other people's signers ----
curl -sS --fail --max-time 30 --aws-sigv4 aws:amz:us-east-1:s3 -u AKADMIN:admin/secret+0 -H "x-amz-content-sha256: UNSIGNED-PAYLOAD" \
	"http://$SIGNED/bkt/a" >"$T/back" || fail "curl --aws-sigv4"
assert_same "$T/body" "$T/back"
curl -sS --fail --max-time 30 --aws-sigv4 aws:amz:us-east-1:s3 -u AKADMIN:admin/secret+0 "http://$SIGNED/bkt/a" >"$T/back" || fail "curl alone"
assert_same "$T/body" "$T/back"
assert_eq "$(curl -sS --max-time 30 -o /dev/null -w '%{http_code}' --aws-sigv4 aws:amz:us-east-1:s3 -u AKADMIN:wrong \
	-H "x-amz-content-sha256: UNSIGNED-PAYLOAD" "http://$SIGNED/bkt/a")" 403
/usr/bin/python3 - "http://$SIGNED" "$T/body" <<-END || fail "boto3"
	import sys, boto3, urllib.error, urllib.request
	from botocore.config import Config
	from botocore.exceptions import ClientError
	url, path = sys.argv[1:]
	def client(key, secret, token=None):
	    return boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret,
	        aws_session_token=token, config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 0}))
	s3, data = client("AKADMIN", "admin/secret+0"), open(path, "rb").read()
	s3.put_object(Bucket="bkt", Key="boto/ä +~(1)", Body=data, Metadata={"a": "b  c"}, ContentType="text/x")
	got = s3.get_object(Bucket="bkt", Key="boto/ä +~(1)")
	assert got["Body"].read() == data and got["ContentType"] == "text/x", got
	for sum in "CRC32", "SHA1", "SHA256":
	    s3.put_object(Bucket="bkt", Key="boto-sum", Body=data, ChecksumAlgorithm=sum)
	assert s3.head_object(Bucket="bkt", Key="boto-sum")["ContentLength"] == len(data)
	assert client("AKTEMP", "temp-secret-1", "to/ken+1=").get_object(Bucket="bkt", Key="boto-sum", Range="bytes=5-9")["Body"].read() == data[5:10]
	link = s3.generate_presigned_url("get_object", Params={"Bucket": "bkt", "Key": "boto/ä +~(1)"}, ExpiresIn=60)
	assert urllib.request.urlopen(link).read() == data
	def post(change, fields_of=s3):
	    form = fields_of.generate_presigned_post("bkt", "posted", ExpiresIn=60)
	    body = b"".join(b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (k.encode(), change(k, v).encode())
	        for k, v in form["fields"].items())
	    body += b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n' + data + b"\r\n--x--\r\n"
	    try:
	        return urllib.request.urlopen(urllib.request.Request(form["url"], body, {"Content-Type": "multipart/form-data; boundary=x"})).status
	    except urllib.error.HTTPError as e:
	        return e.code
	assert post(lambda k, v: v) == 204
	assert s3.get_object(Bucket="bkt", Key="posted")["Body"].read() == data
	assert post(lambda k, v: v[:-5] + ("A" if v[-5] != "A" else "B") + v[-4:] if k == "policy" else v) == 403
	assert post(lambda k, v: "never" if k == "key" else v) == 403
	assert post(lambda k, v: v, client("AKREAD", "reader-secret")) == 403
	assert post(lambda k, v: v, client("AKREAD", "wrong-secret")) == 403
	assert "bkt" in [b["Name"] for b in s3.list_buckets()["Buckets"]]
	assert [b["Name"] for b in client("AKPART", "part-secret-1").list_buckets()["Buckets"]] == ["bkt", "new-one"]
	for key, secret, code in ("AKADMIN", "wrong-secret", "SignatureDoesNotMatch"), ("AKNONE", "wrong-secret", "InvalidAccessKeyId"):
	    try:
	        client(key, secret).get_object(Bucket="bkt", Key="boto-sum")
	        raise SystemExit("served")
	    except ClientError as e:
	        assert e.response["Error"]["Code"] == code, e
END

# ---- other keys while the daemon runs: a reload takes them, a bad file changes nothing ----
cp "$T/keys.yaml" "$T/keys.good"
echo "- { access_key: AKADMIN }" >"$T/keys.yaml"
kill -HUP "$DAEMON_PID"
wait_for 60 grep -q "keys.yaml:1:3: \[0\]: secret_key is missing" "$T/daemon.log"
want "200" admin -m empty GET /bkt/a
sed -e '/turn-secret-old/d' -e 's/reader-secret/other-secret/' "$T/keys.good" >"$T/keys.yaml"
kill -HUP "$DAEMON_PID"
took_over() { [ "$(as AKREAD other-secret -m empty GET /bkt/a)" = 200 ]; }
wait_for 60 took_over
# Each connection may be on another core; when the last has turned, so it is everywhere.
refuses() { [ "$(as AKREAD reader-secret -m empty GET /bkt/a)$(as AKTURN turn-secret-old -m empty GET /bkt/a)" = "403 SignatureDoesNotMatch403 SignatureDoesNotMatch" ]; }
wait_for 60 refuses
want "200" as AKTURN turn-secret-new -m empty GET /bkt/a
want "200" admin -m empty GET /bkt/a
cp "$T/keys.good" "$T/keys.yaml"

# No secret, no signature, no token in what the daemon wrote.
! grep -qE "admin/secret|reader-secret|Signature=|$tok|to/ken" "$T/daemon.log" || fail "the log shows what it must not"
stop_daemon

# ---- claim TM28: signatures used again, from another address ----
MORE="auth: { credentials_file: \"$T/keys.yaml\", replay: reject, require_signed_headers: false }"
LISTEN='  - { address: "0.0.0.0:0", dialect: s3 }'
write_config
daemon_run
SIGNED=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
url="http://127.0.0.1:${SIGNED##*:}$("$BUILD/tools/s3sign" -s "127.0.0.1:${SIGNED##*:}" -k AKADMIN -p admin/secret+0 -U -P 60 -m unsigned GET /bkt/a)"
for i in 1 2; do
	assert_eq "$(curl -sS --max-time 30 -o /dev/null -w '%{http_code}' "$url")" 200 "time $i"
	assert_eq "$(curl -sS --max-time 30 --interface 127.0.0.2 -o /dev/null -w '%{http_code}' "$url")" 403 "from elsewhere, time $i"
done
stop_daemon
