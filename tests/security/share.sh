#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM4: what one access key sends, in whatever number, does not make the daemon forget a signature of another one: a captured request with a token
# stays refused (share.py), in a table that the other key's requests fill several times over.
# shellcheck disable=SC2034
NO_NIC=1
. "$(dirname "$0")/../system/lib.sh"
cat >"$T/keys.yaml" <<-END
	- { access_key: AKVICTIM, secret_key: victim-secret }
	- { access_key: AKOTHER, secret_key: other-secret, read_only: true, grants: [ { bucket: bkt } ] }
END
chmod 0600 "$T/keys.yaml"
# shellcheck disable=SC2034
CORES=1 LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
MORE="auth: { credentials_file: \"$T/keys.yaml\" }
limits: { s3_total: 60s }
memory: { buffers: 64MiB, index: 64MiB, replay: 1MiB }"
write_config
sed -i '/^memory: { .*, http_buffers/d' "$T/gantryd.yaml"
format_store
daemon_run
make_buckets
bytes pattern:7 1K | curl_s3 /bkt/key -T -
/usr/bin/python3 "$ROOT/tests/security/share.py" "$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")" || fail "share.py"
[ "$(metric gantry_replay_signatures_forgotten_total)" -gt 10000 ] || fail "the table was not full"
assert_alive
