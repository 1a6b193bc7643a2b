#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is refused by its target alone: queries that nobody knows, keys of a query that come twice, and the control routes of a
# protocol that is not served.  By curl on the real daemon.
. "$(dirname "$0")/lib.sh"
start_daemon

# Whatever the query asks for, the object stays as it is.
echo kept | curl_s3 /bkt/k -T -
for q in torrent restore 'select&select-type=2' 'acl&cors' renameObject 'prefix=a' versionId=null; do
	assert_eq "$(echo lost | code_of "/bkt/k?$q" -T -)" NotImplemented "PUT ?$q"
done
assert_eq "$(echo lost | code_of "/bkt/k?versions" -T -)" NotImplemented
# No bucket has object lock, and AWS says this of one that has none.
for q in retention legal-hold; do
	assert_eq "$(code_of "/bkt/k?$q" -X PUT -d lost) $(code_of "/bkt/k?$q") $(code_of "/absent/k?$q")" "InvalidRequest InvalidRequest NoSuchBucket" "?$q"
	assert_eq "$(code_of "/bkt/k?$q" -X DELETE)" NotImplemented "DELETE ?$q"
done
assert_eq "$(curl_s3 /bkt/k)" kept
for q in inventory metrics analytics intelligent-tiering; do
	assert_eq "$(code_of "/bkt?$q&id=x") $(code_of "/absent?$q")" "NoSuchConfiguration NoSuchBucket" "GET ?$q"
	assert_eq "$(code_of "/bkt?$q&id=x" -T /dev/null)" NotImplemented "PUT ?$q"
	assert_eq "$(code_of "/bkt?$q" -X DELETE)" NotImplemented "DELETE ?$q"
done
assert_eq "$(head_status /bkt)" 200

# A header that nobody knows has no effect, and is not taken in silence.
assert_status GET /bkt/k 200 -H 'x-amz-foo-new-thing: 1'
echo kept >"$T/kept"
assert_status PUT /bkt/k 200 -H 'x-amz-Bar: 1' -H 'x-amz-meta-a: 1' -T "$T/kept"
assert_eq "$(metric gantry_unknown_headers_total 'effect="read"') $(metric gantry_unknown_headers_total 'effect="write"')" "1 1"
wait_for 60 grep -q 'GetObject: the header x-amz-foo-new-thing is not known' "$T/daemon.log"
wait_for 60 grep -q 'PutObject: the header x-amz-Bar is not known' "$T/daemon.log"

# Twice, also when spelled in two ways; and numbers that are none.
for q in 'prefix=a&prefix=b' 'prefix=a&%70refix=b' 'max-keys=x' 'max-keys=-1' 'list-type=3' 'encoding-type=xml' 'prefix=%ff' \
	'list-type=2&continuation-token=abc'; do
	assert_eq "$(code_of "/bkt?$q")" InvalidArgument "?$q"
done
assert_eq "$(code_of '/bkt/k?versionId=7')" NoSuchVersion
assert_eq "$(code_of '/bkt/k?uploadId=7')" NoSuchUpload
assert_eq "$(echo x | code_of '/bkt/k?partNumber=1' -T -)" InvalidArgument

# Keys.
assert_eq "$(code_of /bkt/a%00b)" InvalidURI
assert_eq "$(code_of /bkt/a%0ab)" InvalidURI
assert_eq "$(code_of /bkt/%ff)" InvalidURI
assert_eq "$(code_of "/bkt/$(printf 'k%.0s' {1..1025})")" KeyTooLongError
assert_eq "$(code_of "/bkt/$(printf 'k%.0s' {1..1024})")" NoSuchKey

# ---- item T5, item T6: the control routes while their protocol is not served ----
for r in prepare ready cancel; do
	assert_status POST "/.hipobj-rc/$r" 501 -H 'x-amz-rdma-protocol: hipobj-rc-v2'
	assert_eq "$(header_of x-amz-rdma-protocol-status "/.hipobj-rc/$r" -X POST)" unsupported
	for m in GET PUT DELETE; do assert_status $m "/.hipobj-rc/$r" 405; done
	assert_eq "$(head_status "/.hipobj-rc/$r")" 405
done
assert_eq "$(metric gantry_declined_families_total '"hipobj-rc-v2"')" 6 "counted by family"
assert_alive
