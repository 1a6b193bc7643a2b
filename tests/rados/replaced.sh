#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# GETs by RDMA through two gateways of keys that both replace and remove all the time (replaced.py): each GET has one version, whole,
# and none older than what was acknowledged before it began.  What a gateway remembers of a record is wrong again and again then, and
# what it reads beside the look is dropped; where nobody writes for a moment, it is right.
MORE=''
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
/usr/bin/python3 -c 'import numpy' 2>/dev/null || fail "no python3-numpy: scripts/deps test"
write_config
format_store
sed "s|admin.sock|admin2.sock|" "$T/gantryd.yaml" >"$T/second.yaml"
daemon_run
make_buckets
export ONE=$URL_S3/bkt
admin_one=$URL_ADMIN
mv "$T/gantryd.yaml" "$T/first.yaml"
mv "$T/second.yaml" "$T/gantryd.yaml"
daemon_run
export TWO=$URL_S3/bkt PYTHONPATH=$ROOT/python PYTHONDONTWRITEBYTECODE=1 GANTRY_LIBRARY=$BUILD/libgantry.so.0
nic /usr/bin/python3 "$ROOT/tests/rados/replaced.py" || fail "replaced.py"
for admin in "$admin_one" "$URL_ADMIN"; do
	for n in parallel_reads parallel_reads_dropped; do
		[ "$(curl -sS --max-time 60 "$admin/disks" | jq "[.[] | .$n // 0] | add")" -gt 20 ] || fail "$n is hardly counted: nothing was tried"
	done
done
