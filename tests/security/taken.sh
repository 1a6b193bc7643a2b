#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM71: what a tenant with all bounds takes of disk and index stays within them, whatever it makes, sends, leaves unfinished or repeats: buckets with
# documents, bodies without end, PUTs that do not end, small parts, slow readers of what it removes. Another tenant's PUT, CreateBucket and CreateMultipartUpload succeed meanwhile.
# shellcheck disable=SC2034
NO_NIC=1
. "$(dirname "$0")/../system/lib.sh"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GANTRY_ADMIN
# shellcheck disable=SC2034
BUCKETS='victim'
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
start_daemon
gantry --conf "$T/gantryd.yaml" -q key new --bucket 'team-a-*' --max-objects 40 --max-bytes 4MiB --max-uploads 3 >"$T/key" || fail "gantry key new"
gantry --conf "$T/gantryd.yaml" -q key new --bucket 'team-b-*' --max-bytes 32MiB >"$T/key" || fail "gantry key new"
PYTHONPATH=$ROOT/tests/system PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$ROOT/tests/security/taken.py" "$S3" "$T/admin.sock" || fail "a tenant took more than its bounds"
assert_alive
stop_daemon
