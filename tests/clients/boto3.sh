#!/bin/bash
# boto3 against the daemon (boto3_client.py).
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/clients.sh"
/usr/bin/python3 -c 'import boto3' 2>/dev/null || fail "no python3-boto3: scripts/deps clients"
# shellcheck disable=SC2034
DISK_SIZE=4GiB
clients_daemon
/usr/bin/python3 "$ROOT/tests/clients/boto3_client.py" || fail "boto3"
assert_alive
