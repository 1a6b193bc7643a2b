#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store that moves from disks to RADOS and back, with a bucket of small, large and multipart objects, as docs/rados.md says: both
# daemons run, gantry cp -r through a directory, aws s3 sync; and the key comes to the gateway as a credential of systemd's, with no more
# rights than the documentation names.
MORE=''
. "$(dirname "$0")/lib.sh"
own_cluster AUTH=cephx
mkdir "$T/credentials"
ceph auth get-or-create client.gantry mon 'allow r, allow command "osd blocklist"' \
	osd 'allow rw pool=gantry.meta, allow rw pool=gantry.data' >"$T/credentials/ceph.keyring" || fail "auth get-or-create"
sed "s|^keyring = .*|keyring = $T/none|" "$CEPH_CONF" >"$T/client.conf"

# ---- without the key, and with another's: status 78, and the reason
write_config
sed -i "s|conf: \"[^\"]*\", user: admin|conf: \"$T/client.conf\", user: gantry|" "$T/gantryd.yaml"
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --format >"$T/out" 2>&1
assert_eq "$?" 78 "without a key: $(cat "$T/out")"
grep -q 'cannot be reached as client.gantry: ' "$T/out" || fail "$(cat "$T/out")"
# The word of gantryd.service.d/rados.conf where there is no key to hand over: ceph.conf's counts.
mkdir "$T/nothing" && echo -n none >"$T/nothing/ceph.keyring"
sed "s|^keyring = .*|keyring = $T/credentials/ceph.keyring|" "$CEPH_CONF" >"$T/client.conf"
CREDENTIALS_DIRECTORY=$T/nothing format_store
sed "s|^keyring = .*|keyring = $T/none|" "$CEPH_CONF" >"$T/client.conf"
export CREDENTIALS_DIRECTORY=$T/credentials
cp "$T/gantryd.yaml" "$T/rados.yaml"
STORE=disks
write_config
sed -i 's|admin\.sock|admin2.sock|' "$T/gantryd.yaml"
format_store
daemon_run
keep_gateway 2
make_buckets
mkdir "$T/from"
for n in 0 1 300 70000 1048577 20000000; do head -c "$n" /dev/urandom >"$T/from/f.$n"; done
nic "$BUILD/gantry" -q cp -r "$T/from" "$URL_S3/bkt/" >"$T/out" 2>&1 || fail "filling: $(cat "$T/out")"
disks=$URL_S3

mv "$T/rados.yaml" "$T/gantryd.yaml"
daemon_run
keep_gateway 1
make_buckets
export AWS_ACCESS_KEY_ID=none AWS_SECRET_ACCESS_KEY=none-at-all AWS_EC2_METADATA_DISABLED=true
sync() { /usr/bin/aws --no-sign-request --region us-east-1 --endpoint-url "$1" s3 sync --only-show-errors "$2" "$3" >"$T/out" 2>&1 || fail "sync $2 $3: $(cat "$T/out")"; }
same() {
	sync "$1" s3://bkt "$T/$2"
	diff -r "$T/from" "$T/$2" >"$T/out" 2>&1 || fail "not the same: $(cat "$T/out")"
}
# From disks to RADOS ...
sync "$disks" s3://bkt "$T/there"
sync "$URL_S3" "$T/there" s3://bkt
same "$URL_S3" seen
# ... and back, into another bucket, what changed meanwhile included
echo more >"$T/from/new"
curl -sS -T "$T/from/new" "$URL_S3/bkt/new"
sync "$URL_S3" s3://bkt "$T/there"
curl -sS -X PUT "$disks/bkt"
sync "$disks" "$T/there" s3://bkt
same "$disks" back
stop_daemon
fsck || fail "fsck with the rights of a gateway: $(cat "$T/fsck")"
gateway 2
stop_daemon
