#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# boto3 against the daemon (boto3_client.py), and what it sends over HTTPS only: bodies in aws-chunked frames that are not
# signed, with a checksum behind them.
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/clients.sh"
/usr/bin/python3 -c 'import boto3' 2>/dev/null || fail "no python3-boto3: scripts/deps clients"
# shellcheck disable=SC2034
DISK_SIZE=4GiB TLS=1
clients_daemon
/usr/bin/python3 "$ROOT/tests/clients/boto3_client.py" || fail "boto3"
URL_S3=$URL_TLS AWS_CA_BUNDLE=$T/tls.crt BIG=$((12 << 20)) STEPS="objects multipart checksums trailers" \
	/usr/bin/python3 "$ROOT/tests/clients/boto3_client.py" || fail "boto3 over HTTPS"
assert_alive
