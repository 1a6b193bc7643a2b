#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A smoke of each packaged client, for make check; tests/clients has the whole (make check-clients).
# shellcheck disable=SC2034
QUICK=1
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/../clients/clients.sh"
for p in /usr/bin/aws /usr/bin/s3cmd /usr/bin/rclone; do need $p; done
clients_daemon
odd_files "$T/tree"
bytes pattern:4 6000000 >"$T/tree/larger"

# boto3: buckets, what any version relies on, odd keys, conditions, copies, tags, links, what is refused
STEPS='buckets facts odd_keys conditions copies tagging links refused' /usr/bin/python3 "$ROOT/tests/clients/boto3_client.py" || fail "boto3"

# The three commands of aws in one process: each start of it takes a second of CPU time.
/usr/bin/python3 - "$URL_S3" "$T" <<-'END' || fail "aws"
	import sys
	from awscli.clidriver import create_clidriver
	url, t = sys.argv[1:]
	for words in (["mb", "s3://aws"], ["sync", "--only-show-errors", t + "/tree", "s3://aws/t"], ["sync", "--only-show-errors", "s3://aws/t", t + "/aws"]):
	    rc = create_clidriver().main(["--endpoint-url", url, "s3", *words])
	    rc and sys.exit(f"aws s3 {words}: exit {rc}")
END
diff -r "$T/tree" "$T/aws" || fail "aws: the tree came back different"

cat >"$T/s3cfg" <<-END
	[default]
	access_key = $AWS_ACCESS_KEY_ID
	secret_key = $AWS_SECRET_ACCESS_KEY
	host_base = $S3
	host_bucket = $S3
	use_https = False
	multipart_chunk_size_mb = 5
END
s3() { /usr/bin/s3cmd -c "$T/s3cfg" --no-progress "$@"; }
s3 mb s3://cmd >/dev/null || fail "s3cmd: mb"
s3 sync -q "$T/tree/" s3://cmd/t/ || fail "s3cmd: sync up"
mkdir "$T/cmd"
s3 sync -q s3://cmd/t/ "$T/cmd/" || fail "s3cmd: sync down"
diff -r "$T/tree" "$T/cmd" || fail "s3cmd: the tree came back different"

export RCLONE_CONFIG=$T/rclone.conf RCLONE_CONFIG_G_TYPE=s3 RCLONE_CONFIG_G_PROVIDER=Other RCLONE_CONFIG_G_ENDPOINT=$URL_S3 \
	RCLONE_CONFIG_G_ACCESS_KEY_ID=$AWS_ACCESS_KEY_ID RCLONE_CONFIG_G_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY \
	RCLONE_CONFIG_G_REGION=us-east-1 RCLONE_CONFIG_G_FORCE_PATH_STYLE=true
: >"$RCLONE_CONFIG"
rc() { /usr/bin/rclone "$@" 2>"$T/rclone.log" || { cat "$T/rclone.log" >&2; return 1; }; }
rc copy --s3-upload-cutoff 5M "$T/tree" G:clone/t || fail "rclone: copy"
rc check --download "$T/tree" G:clone/t || fail "rclone: check"
rc purge G:clone || fail "rclone: purge"

signed() { curl -sS --fail --aws-sigv4 aws:amz:us-east-1:s3 --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" "$@"; }
signed -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -T "$T/tree/larger" "$URL_S3/aws/curl" || fail "curl: PUT"
signed "$URL_S3/aws/curl" | cmp - "$T/tree/larger" || fail "curl: GET"
assert_alive
stop_daemon
