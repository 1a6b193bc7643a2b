#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Requests that S3 servers are reported to answer wrongly, from boto3 (boto3_reports.py).
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/../clients.sh"
clients_daemon
/usr/bin/python3 "$ROOT/tests/clients/reports/boto3_reports.py" || fail "answers that boto3 minds"
assert_alive
