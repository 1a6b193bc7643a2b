#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# URLs and forms signed by version 2, which are served with auth.sigv2: presigned: of boto3 and of the AWS SDK for JavaScript 2, which sign so by
# default in us-east-1, and of s3cmd, which signs no URL otherwise.  How they are refused without it is in boto3.sh, js.sh and s3cmd.sh.
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/../clients.sh"
# shellcheck source=tests/clients/reports/npm.sh
. "$ROOT/tests/clients/reports/npm.sh"
SIGV2=presigned
clients_daemon
rc=0
/usr/bin/python3 "$ROOT/tests/clients/reports/boto3_reports.py" || rc=1
NODE_NO_WARNINGS=1 js sdk2 || rc=1
[ $rc = 0 ] || fail "answers that clients mind"
printf '[default]\naccess_key = %s\nsecret_key = %s\nhost_base = %s\nhost_bucket = %s\nuse_https = False\n' \
	"$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" "$S3" "$S3" >"$T/s3cfg"
url=$(/usr/bin/s3cmd -c "$T/s3cfg" signurl s3://reports/five +600)
assert_eq "$(curl -sS --fail "$url")" 12345 "a URL of s3cmd"
assert_eq "$(curl -sS -o "$T/out" -w '%{http_code}' "${url/five?/empty?}")" 403 "the same URL with another key"
assert_alive
