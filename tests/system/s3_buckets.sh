#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a bucket has besides objects: location and the other answers that never vary, tags, CORS rules and their effect,
# lifecycle rules and their execution, forms that are posted to it, its name in the host.  By curl on the real daemon.
. "$(dirname "$0")/lib.sh"
BUCKETS="bkt"
MORE=$'s3: { domain: [s3.test] }\nlifecycle: { interval: 500ms, day: 2s }'
start_daemon

# ---- item 85: CreateBucket, HeadBucket, GetBucketLocation ----
assert_status PUT /made 200
assert_status PUT /made 200 # one's own, in us-east-1
assert_eq "$(head_status /made)" 200
assert_eq "$(head_status /absent)" 404
assert_match "$(curl_s3 '/made?location')" LocationConstraint
assert_status PUT /made2 200 -d '<CreateBucketConfiguration><LocationConstraint></LocationConstraint></CreateBucketConfiguration>'
assert_eq "$(code_of /made3 -X PUT -d '<CreateBucketConfiguration><LocationConstraint>mars</LocationConstraint></CreateBucketConfiguration>')" InvalidLocationConstraint
assert_eq "$(code_of /made3 -X PUT -d nonsense)" MalformedXML
assert_status DELETE /made2 204
assert_status DELETE /made2 404
assert_eq "$(code_of /No_Name -X PUT) $(code_of /a.-b -X PUT) $(code_of /a-.b -X PUT)" "InvalidBucketName InvalidBucketName InvalidBucketName"
echo x | curl_s3 /made/x -T -
assert_eq "$(code_of /made -X DELETE)" BucketNotEmpty

# ---- answers that never vary ----
for q in versioning acl logging requestPayment notification accelerate; do
	assert_status GET "/bkt?$q" 200
	assert_eq "$(code_of "/absent?$q")" NoSuchBucket
done
assert_eq "$(code_of '/bkt?policy')" NoSuchBucketPolicy
assert_eq "$(code_of "/bkt?policyStatus")" NoSuchBucketPolicy
assert_eq "$(code_of '/bkt?encryption')" ServerSideEncryptionConfigurationNotFoundError
assert_eq "$(code_of '/bkt?website')" NoSuchWebsiteConfiguration
assert_eq "$(code_of '/bkt?replication')" ReplicationConfigurationNotFoundError
assert_eq "$(code_of '/bkt?object-lock')" ObjectLockConfigurationNotFoundError
assert_eq "$(code_of '/bkt?publicAccessBlock')" NoSuchPublicAccessBlockConfiguration
assert_eq "$(code_of '/bkt?ownershipControls')" OwnershipControlsNotFoundError
for q in policy website encryption replication publicAccessBlock ownershipControls; do assert_status DELETE "/bkt?$q" 204; done
assert_status PUT '/bkt?ownershipControls' 200 -d '<OwnershipControls><Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule></OwnershipControls>'
assert_match "$(curl_s3 '/bkt?ownershipControls')" 'BucketOwnerEnforced'
assert_status PUT '/bkt?ownershipControls' 501 -d '<OwnershipControls><Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule></OwnershipControls>'
assert_status PUT '/bkt?ownershipControls' 400 -d '<OwnershipControls><Rule><Other/></Rule></OwnershipControls>'
assert_match "$(curl_s3 '/bkt?ownershipControls')" 'BucketOwnerEnforced' "what is refused changes nothing"
assert_status PUT '/bkt?versioning' 501 -d '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>'
assert_status PUT '/bkt?acl' 200 -H 'x-amz-acl: private'
assert_eq "$(code_of '/bkt?acl' -X PUT -H 'x-amz-acl: public-read')" AccessControlListNotSupported
assert_status PUT '/bkt?acl' 400 -H 'x-amz-acl: public-read'
assert_eq "$(code_of /public -X PUT -H 'x-amz-acl: public-read')" InvalidBucketAclWithObjectOwnership
assert_eq "$(head_status /public)" 404
assert_eq "$(code_of /bkt/public -T "$T/gantryd.yaml" -H 'x-amz-acl: public-read')" AccessControlListNotSupported

# ---- tags ----
assert_eq "$(code_of '/bkt?tagging')" NoSuchTagSet
curl_s3 '/bkt?tagging' -X PUT -d '<Tagging><TagSet><Tag><Key>team</Key><Value>storage</Value></Tag></TagSet></Tagging>'
assert_eq "$(curl_s3 '/bkt?tagging' | xml Value)" storage

# ---- CORS ----
assert_eq "$(code_of '/bkt?cors')" NoSuchCORSConfiguration
curl_s3 '/bkt?cors' -X PUT -d '<CORSConfiguration><CORSRule><AllowedOrigin>https://*.example.org</AllowedOrigin>
	<AllowedMethod>GET</AllowedMethod><AllowedMethod>PUT</AllowedMethod><AllowedHeader>x-amz-*</AllowedHeader>
	<ExposeHeader>etag</ExposeHeader><MaxAgeSeconds>77</MaxAgeSeconds></CORSRule></CORSConfiguration>'
assert_match "$(curl_s3 '/bkt?cors')" '<MaxAgeSeconds>77'
echo y | curl_s3 /bkt/y -T -
o='https://www.example.org'
assert_eq "$(header_of access-control-allow-origin /bkt/y -H "origin: $o")" "$o"
assert_eq "$(header_of access-control-expose-headers /bkt/y -H "origin: $o")" etag
assert_eq "$(header_of access-control-allow-origin /bkt/nix -H "origin: $o")" "$o" "on an error too"
assert_match "$(header_of vary /bkt/y -H "origin: $o")" Origin
assert_eq "$(header_of access-control-allow-origin /bkt/y -H 'origin: https://example.com')" ''
assert_eq "$(header_of access-control-allow-origin /bkt/y)" ''
assert_eq "$(header_of access-control-allow-origin /made/x -H "origin: $o")" '' "another bucket"
preflight() { curl -sS -o "$T/out" -D "$T/head" -w '%{http_code}' -X OPTIONS "$URL_S3/bkt/y" -H "origin: $1" -H "access-control-request-method: $2" "${@:3}"; }
assert_eq "$(preflight "$o" PUT -H 'access-control-request-headers: X-Amz-Date')" 200
grep -qi '^access-control-max-age: 77' "$T/head" || fail "max-age"
grep -qi '^access-control-allow-methods:.*PUT' "$T/head" || fail "methods"
grep -qi '^access-control-allow-headers:.*x-amz-date' "$T/head" || fail "headers"
assert_eq "$(preflight "$o" DELETE)" 403
assert_eq "$(preflight https://example.com GET)" 403
assert_eq "$(preflight "$o" PUT -H 'access-control-request-headers: content-type')" 403
assert_eq "$(code_of /bkt/y -X OPTIONS)" InvalidRequest
assert_eq "$(curl_s3 '/bkt?tagging' | xml Value)" storage "one does not touch the other"
restart_daemon
assert_match "$(curl_s3 '/bkt?cors')" '<MaxAgeSeconds>77' "after a restart"
assert_status DELETE '/bkt?cors' 204
assert_eq "$(code_of '/bkt?cors')" NoSuchCORSConfiguration
assert_eq "$(code_of '/bkt?cors' -X PUT -d '<CORSConfiguration><CORSRule><AllowedMethod>BREW</AllowedMethod></CORSRule></CORSConfiguration>')" InvalidRequest
assert_status DELETE '/bkt?tagging' 204
assert_eq "$(code_of '/bkt?tagging')" NoSuchTagSet
pids=()
for i in 1 2 3 4 5 6; do
	curl_s3 '/bkt?cors' -X PUT -d "<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod><MaxAgeSeconds>$i</MaxAgeSeconds></CORSRule></CORSConfiguration>" &
	pids+=($!)
	curl_s3 '/bkt?tagging' -X PUT -d "<Tagging><TagSet><Tag><Key>n</Key><Value>$i</Value></Tag></TagSet></Tagging>" &
	pids+=($!)
done
for i in "${pids[@]}"; do wait "$i" || fail "one of several at once"; done
assert_match "$(curl_s3 '/bkt?tagging' | xml Value)$(curl_s3 '/bkt?cors' | xml MaxAgeSeconds)" '^[1-6][1-6]$' "changed at once"

# ---- forms ----
curl -sS -o /dev/null -D "$T/head" -F 'key=form/${filename}' -F content-type=text/x-form -F x-amz-meta-f=1 -F "file=@$BUILD/gantryd;filename=bin" "$URL_S3/bkt"
grep -q '^HTTP/1.1 204' "$T/head" || fail "form: $(head -1 "$T/head")"
curl_s3 /bkt/form/bin | cmp - "$BUILD/gantryd" || fail "what came in a form"
assert_eq "$(header_of content-type /bkt/form/bin -I) $(header_of x-amz-meta-f /bkt/form/bin -I)" "text/x-form 1"
r=$(curl_s3 /bkt -F key=form/small -F success_action_status=201 -F file=small)
assert_eq "$(xml Key <<<"$r") $(xml ETag <<<"$r")" "form/small $(printf small | md5)"
assert_eq "$(curl -sS -o /dev/null -w '%{http_code} %{redirect_url}' "$URL_S3/bkt" -F key=form/small -F success_action_redirect=http://x.test/done -F file=small)" \
	"303 http://x.test/done?bucket=bkt&key=form%2Fsmall&etag=%22$(printf small | md5)%22"
assert_eq "$(curl -sS "$URL_S3/bkt" -F file=small | xml Code)" InvalidArgument
assert_eq "$(curl -sS "$URL_S3/bkt" -F key=form/none | xml Code)" InvalidArgument
assert_eq "$(curl -sS "$URL_S3/absent" -F key=form/none -F file=x | xml Code)" NoSuchBucket
r=$(printf '%s' '{"expiration":"2099-01-01T00:00:00Z","conditions":[{"bucket":"bkt"},["starts-with","$key","form/"],["content-length-range",1,4]]}' | base64 -w0)
assert_eq "$(curl -sS "$URL_S3/bkt" -F key=form/p -F "policy=$r" -F file=12345 | xml Code)" EntityTooLarge
assert_status GET /bkt/form/p 404
curl_s3 /bkt -F key=form/p -F "policy=$r" -F file=1234
assert_eq "$(curl_s3 /bkt/form/p)" 1234
assert_eq "$(curl -sS "$URL_S3/bkt" -F key=else/p -F "policy=$r" -F file=1234 | xml Code)" AccessDenied

# The file's name in every field, before the policy is held against it; numbers as strings; a list of types.
policy() { printf '{"expiration":"2099-01-01T00:00:00Z","conditions":[{"bucket":"bkt"},["starts-with","$key","form/"],%s]}' "$1" | base64 -w0; }
post() { curl -sS -o "$T/out" -w '%{http_code} %{redirect_url}' "$URL_S3/bkt" "$@"; }
# shellcheck disable=SC2016
assert_eq "$(post -F 'key=form/${filename}' -F 'success_action_redirect=http://x.test/y?f=${filename}' -F 'x-amz-meta-name=[${filename}]' \
	-F "policy=$(policy '["starts-with","$success_action_redirect","http://x.test/"],{"x-amz-meta-name":"[f.txt]"}')" -F 'file=1234;filename=f.txt')" \
	"303 http://x.test/y?f=f.txt&bucket=bkt&key=form%2Ff.txt&etag=%22$(printf 1234 | md5)%22"
assert_eq "$(header_of x-amz-meta-name /bkt/form/f.txt -I)" "[f.txt]"
# shellcheck disable=SC2016
assert_match "$(post -F key=form/r -F 'success_action_redirect=http://x.test/${filename}' -F 'file=1234;filename=a b<ü>.txt')" \
	'^303 http://x.test/a%20b%3C%C3%BC%3E.txt\?bucket=bkt'
assert_eq "$(post -F key=form/n -F "policy=$(policy '["content-length-range","2","10"]')" -F file=1234)" '204 '
for file in 1 12345678901; do
	assert_eq "$(post -F key=form/no -F "policy=$(policy '["content-length-range","2","10"]')" -F file=$file)" '400 '
done
# claim TM90
for types in 'image/png,text/html' 'text/html, image/png' 'image/png,'; do
	assert_eq "$(post -F key=form/no -F "policy=$(policy '["starts-with","$Content-Type","image/"]')" -F "Content-Type=$types" -F file=1234)" '403 ' "$types"
done
assert_status GET /bkt/form/no 404
assert_eq "$(post -F key=form/t -F "policy=$(policy '["starts-with","$Content-Type","image/"]')" -F 'Content-Type=image/png, image/gif' -F file=1234)" '204 '

r=$(printf '%s' '{"expiration":"2099-01-01T00:00:00Z","conditions":[["starts-with","$key","form/"]]}' | base64 -w0)
assert_eq "$(curl -sS "$URL_S3/bkt" -F key=form/p -F "policy=$r" -F file=1234 | xml Code)" AccessDenied "a policy for every bucket"

# ---- item 83: the bucket in the host ----
port=${S3##*:}
assert_eq "$(curl -sS --resolve "bkt.s3.test:$port:127.0.0.1" "http://bkt.s3.test:$port/form/p")" 1234
assert_eq "$(curl -sS --resolve "s3.test:$port:127.0.0.1" "http://s3.test:$port/bkt/form/p")" 1234
assert_eq "$(curl -sS --resolve "bkt.s3.test:$port:127.0.0.1" "http://bkt.s3.test:$port/?list-type=2&prefix=form/p" | xml Key)" form/p

# ---- lifecycle; a day is two seconds here ----
assert_eq "$(code_of '/bkt?lifecycle')" NoSuchLifecycleConfiguration
for k in tmp/1 tmp/2 keep/1; do echo "$k" | curl_s3 "/bkt/$k" -T -; done
for i in $(seq 150); do printf 'request PUT /bkt/tmp/many%s body=text:x\nexpect status 200\n' "$i"; done | raw
curl_s3 /bkt/tagged -X PUT -H 'x-amz-tagging: drop=yes' -d x
curl_s3 /bkt/untagged -X PUT -H 'x-amz-tagging: drop=no' -d x
curl_s3 '/bkt/tmp/upload?uploads' -X POST >/dev/null
curl_s3 '/bkt/keep/upload?uploads' -X POST >/dev/null
curl_s3 '/bkt?lifecycle' -X PUT -d '<LifecycleConfiguration>
	<Rule><ID>tmp</ID><Filter><Prefix>tmp/</Prefix></Filter><Status>Enabled</Status><Expiration><Days>1</Days></Expiration>
	<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule>
	<Rule><ID>tag</ID><Filter><Tag><Key>drop</Key><Value>yes</Value></Tag></Filter><Status>Enabled</Status><Expiration><Date>2020-01-01T00:00:00Z</Date></Expiration></Rule>
	<Rule><ID>off</ID><Filter><Prefix>keep/</Prefix></Filter><Status>Disabled</Status><Expiration><Days>1</Days></Expiration></Rule>
	</LifecycleConfiguration>'
assert_match "$(curl_s3 '/bkt?lifecycle')" '<ID>tmp</ID>'
gone() { [ "$(curl_s3 '/bkt?list-type=2&prefix=tmp/' | xml KeyCount)" = 0 ]; }
wait_for 60 gone
wait_for 60 eval '! curl_s3 /bkt/tagged'
wait_for 60 eval '[ "$(curl_s3 "/bkt?uploads" | grep -o "<Upload>" | wc -l)" = 1 ]'
assert_eq "$(curl_s3 '/bkt?uploads' | xml Key)" keep/upload
assert_status GET /bkt/keep/1 200
assert_status GET /bkt/untagged 200
# Counted behind that they are gone.
wait_for 60 eval '[ "$(metric gantry_lifecycle_expired_objects_total) $(metric gantry_lifecycle_aborted_uploads_total)" = "153 1" ]'
[ "$(metric gantry_lifecycle_walks_total)" -gt 0 ] || fail "no walks"
# What is written anew is young again.
assert_status DELETE '/bkt?lifecycle' 204
assert_eq "$(code_of '/bkt?lifecycle')" NoSuchLifecycleConfiguration
assert_eq "$(code_of '/bkt?lifecycle' -X PUT -d '<LifecycleConfiguration><Rule><Status>Enabled</Status><Filter/><Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition></Rule></LifecycleConfiguration>')" NotImplemented
assert_alive
stop_daemon
# Old uploads end without any rule.
MORE=$'lifecycle: { interval: 200ms }\nlimits: { upload_expire: 1s }'
write_config
daemon_run
wait_for 60 eval '[ "$(curl_s3 "/bkt?uploads" | grep -o "<Upload>" | wc -l)" = 0 ]'
stop_daemon
