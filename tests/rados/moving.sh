#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store that moves from disks to RADOS and back, with a bucket of small and large objects, as docs/rados.md says: both
# daemons run, gantry cp -r fills one, rclone sync moves, with what objects have beside their bytes; and the key comes to the gateway as a credential of systemd's, with no more
# rights than the documentation names.
MORE=''
. "$(dirname "$0")/lib.sh"
[ -x /usr/bin/rclone ] || fail "no rclone: scripts/deps rados installs it"
own_cluster AUTH=cephx
mkdir "$T/credentials"
ceph auth get-or-create client.gantry mon "$MON_CAPS" \
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
described=$'cache-control: max-age=60\ncontent-disposition: attachment\ncontent-encoding: x-none\ncontent-language: de\ncontent-type: text/x-words\nx-amz-meta-color: Red, and blue\nx-amz-meta-two-words: 2'
mapfile -t words < <(sed 's/^/-H\n/' <<<"$described")
echo words >"$T/from/described"
curl -sS --fail -T "$T/from/described" "${words[@]}" "$URL_S3/bkt/described" || fail "PUT with metadata"
disks=$URL_S3

mv "$T/rados.yaml" "$T/gantryd.yaml"
daemon_run
keep_gateway 1
make_buckets
export AWS_ACCESS_KEY_ID=none AWS_SECRET_ACCESS_KEY=none-at-all AWS_EC2_METADATA_DISABLED=true
for remote in "old $disks" "new $URL_S3"; do
	printf '[%s]\ntype = s3\nprovider = Other\nendpoint = %s\nregion = us-east-1\n' "${remote% *}" "${remote#* }"
done >"$T/rclone.conf"
move() { # FROM TO
	env -u AWS_CA_BUNDLE /usr/bin/rclone --config "$T/rclone.conf" sync --metadata --no-update-modtime "$1" "$2" >"$T/out" 2>&1 || fail "rclone sync $1 $2: $(cat "$T/out")"
}
headers() { # of an object, those that a client gave it
	curl -sS --fail -I "$1" | tr -d '\r' | tr 'A-Z' 'a-z' | grep -E '^(cache-control|content-(disposition|encoding|language|type)|x-amz-meta-(color|two-words)):' | sort
}
same() { # URL BUCKET
	rm -rf "$T/seen"
	/usr/bin/aws --no-sign-request --region us-east-1 --endpoint-url "$1" s3 sync --only-show-errors "s3://$2" "$T/seen" >"$T/out" 2>&1 || fail "reading $2: $(cat "$T/out")"
	diff -r "$T/from" "$T/seen" >"$T/out" 2>&1 || fail "not the same: $(cat "$T/out")"
	assert_eq "$(headers "$1/$2/described")" "${described,,}" "what the object has beside its bytes in $2"
}
assert_eq "$(headers "$disks/bkt/described")" "${described,,}"
# From disks to RADOS, while it changes and afterwards; the very same bytes put once more do no harm ...
move old:bkt new:bkt
curl -sS --fail -T "$T/from/described" "${words[@]}" "$disks/bkt/described" || fail "PUT once more"
head -c 70000 /dev/urandom >"$T/from/f.70000"
curl -sS --fail -T "$T/from/f.70000" "$disks/bkt/f.70000" || fail "PUT of other bytes"
rm "$T/from/f.1"
curl -sS --fail -X DELETE "$disks/bkt/f.1" || fail "DELETE"
move old:bkt new:bkt
same "$URL_S3" bkt
# ... and back, into a bucket that is not there yet, what changed meanwhile included
echo more >"$T/from/new"
curl -sS --fail -T "$T/from/new" "$URL_S3/bkt/new" || fail "PUT"
assert_eq "$(curl -sS -o /dev/null -w '%{http_code}' -I "$disks/back")" 404
move new:bkt old:back
same "$disks" back
stop_daemon
fsck || fail "fsck with the rights of a gateway: $(cat "$T/fsck")"
gateway 2
stop_daemon
