#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make check-clients: each packaged client against a daemon of its own, and the RDMA clients of rdma/clients.toml as their sources show
# them; what fails is named at the end.
cd "$(dirname "$0")" || exit 2
failed='' passed=0
for c in curl boto3 s3cmd rclone aws rdma/play; do
	began=$SECONDS
	if out=$(./$c.sh 2>&1); then
		echo "ok    clients/$c ($((SECONDS - began)) s)"
		passed=$((passed + 1))
	else
		echo "FAIL  clients/$c"
		tail -n 40 <<<"$out" | sed 's/^/      /'
		failed="$failed $c"
	fi
done
[ -z "$failed" ] || echo "check-clients: failed:$failed"
echo "check-clients: $passed passed, $(wc -w <<<"$failed") failed, 0 skipped"
[ -z "$failed" ]
