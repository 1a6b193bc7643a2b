#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a start on RADOS wants: the module of this version, a key that the cluster takes, rights for both pools, and the data pool with
# which the store was made.  Each of these that is wrong is status 78 and a line that names it; and --fsck --repair of one store
# removes nothing of another's.  Rights that are missing when they are needed are 503, and told.  CEPH_ARGS changes nothing.
MORE='' NO_NIC=1 RDMA='{ devices: none }'
. "$(dirname "$0")/lib.sh"
own_cluster AUTH=cephx POOLS="gantry.meta gantry.data other.meta other.data"
key() { # name, rights of OSDs: its file is $T/NAME.key
	ceph auth get-or-create client.gantry mon "$MON_CAPS" osd "$2" >"$T/$1.key" || fail "auth get-or-create"
	ceph auth del client.gantry
}
with_key() { sed "s|^keyring = .*|keyring = $T/$1.key|" "$CEPH_CONF" >"$T/client.conf"; }
gantryd() {
	[[ " $* " == *' -c '* ]] || set -- -c "$T/gantryd.yaml" "$@"
	"$BUILD/gantryd" "$@" >"$T/out" 2>&1
}
refused() { # what it says, words for gantryd
	gantryd "${@:2}"
	assert_eq $? 78 "$1: $(cat "$T/out")"
	grep -q "$1" "$T/out" || fail "not '$1': $(cat "$T/out")"
}
write_config
sed -i "s|conf: \"[^\"]*\", user: admin|conf: \"$T/client.conf\", user: gantry|" "$T/gantryd.yaml"

# ---- keys: of a client that the cluster does not know any more, and with too few rights
key forgotten 'allow rw pool=gantry.meta, allow rw pool=gantry.data'
with_key forgotten
looked="cannot be reached as client.gantry: .*; its key was looked for by user $(id -un) ($(id -u)) in"
refused "$looked $T/forgotten.key (has a key for it, which the cluster does not accept): gantryd-rados(8)" --format
! grep -qF "$(sed -n 's/.*key = //p' "$T/forgotten.key")" "$T/out" || fail "the key is in the error"
# Several files, of which none has the key.
sed "s|^keyring = .*|keyring = $T/none.key,$CLUSTER/keyring|" "$CEPH_CONF" >"$T/client.conf"
refused "$looked $T/none.key (No such file or directory), $CLUSTER/keyring (has no key for it): gantryd-rados(8)" --format
ceph auth get-or-create client.gantry mon 'allow r' osd 'allow rw pool=gantry.meta' >"$T/few.key"
with_key few
refused 'pool gantry.data: Operation not permitted' --format
ceph auth caps client.gantry mon 'allow r' osd 'allow rw pool=gantry.meta, allow rw pool=gantry.data' >/dev/null
format_store
daemon_run
make_buckets
head -c 3000000 /dev/urandom >"$T/body"
assert_status PUT /bkt/k 200 -T "$T/body"
stop_daemon
ceph auth caps client.gantry mon 'allow r' osd 'allow rw pool=gantry.meta' >/dev/null
refused 'pool gantry.data: Operation not permitted'
refused 'pool gantry.data: Operation not permitted' --fsck
# Enough for a start, but not for a PUT.
ceph auth caps client.gantry mon 'allow r' osd 'allow rw pool=gantry.meta, allow r pool=gantry.data' >/dev/null
export CEPH_ARGS='--mon-host=127.0.0.1:1 --name=client.nobody'
daemon_run
unset CEPH_ARGS
wait_for 60 grep -q 'CEPH_ARGS of the environment is ignored' "$T/daemon.log"
curl_s3 /bkt/k | cmp - "$T/body" || fail "a GET with the rights to read"
assert_status PUT /bkt/k 503 -T "$T/body"
told() { curl_admin /healthz | jq -r '.reasons[].text' | grep -q '^pool gantry.data: the key of this gateway has not the rights for it$'; }
wait_for 10 told
curl_s3 /bkt/k | cmp - "$T/body" || fail "a GET after a PUT that was refused"
stop_daemon
# The stores of what follows are in several pools.
pools='allow rw pool=gantry.meta, allow rw pool=gantry.data, allow rw pool=other.meta, allow rw pool=other.data, allow rw pool=third.meta'
ceph auth caps client.gantry mon "$MON_CAPS" osd "$pools" >/dev/null

# ---- the data pool: none of this store's, and that of another one
sed 's/^rados: { /rados: { data_pool: other.data, /' "$T/gantryd.yaml" >"$T/wrong.yaml"
sed 's/^rados: { /rados: { meta_pool: other.meta, data_pool: other.data, /' "$T/gantryd.yaml" >"$T/other.yaml"
refused 'pool other.data: it is not the data pool of the store in gantry.meta' -c "$T/wrong.yaml"
gantryd -c "$T/other.yaml" --format || fail "another store: $(cat "$T/out")"
refused 'pool other.data: it is the data pool of another store than that in gantry.meta' -c "$T/wrong.yaml"
refused 'pool other.data: it is the data pool of another store' -c "$T/wrong.yaml" --fsck --repair
# A pool in which nothing has been written yet is a store's all the same.
sed 's/^rados: { /rados: { meta_pool: third.meta, data_pool: other.data, /' "$T/gantryd.yaml" >"$T/third.yaml"
ceph osd pool create third.meta 8 8
refused 'pool other.data: not empty' -c "$T/third.yaml" --format
fsck || fail "fsck: $(cat "$T/fsck")"

# ---- steps at which tests end a daemon are in the module that tests build for themselves, and not in the one that is shipped
for n in put.data_sent change.sent dead.blocked; do
	grep -qF $n "$BUILD/faults/store-rados.so" || fail "no step $n in the tests' module"
	! grep -qF $n "$BUILD/store-rados.so" || fail "the step $n is in the module"
done

# ---- the module of another version
mkdir "$T/bin"
cp "$BUILD/gantryd" "$T/bin/"
version=$(cat "$ROOT/VERSION")
LC_ALL=C sed "s/${version//./\\.}/${version//[0-9]/7}/g" "$BUILD/store-rados.so" >"$T/bin/store-rados.so"
"$T/bin/gantryd" -c "$T/gantryd.yaml" >"$T/out" 2>&1
assert_eq $? 78 "a module of another version: $(cat "$T/out")"
grep -q "is of version ${version//[0-9]/7}, this daemon of $version: install both alike" "$T/out" || fail "$(cat "$T/out")"
daemon_run
curl_s3 /bkt/k | cmp - "$T/body" || fail "the store as it was"
stop_daemon

# ---- several connections to the cluster, each with one thread for what it answers
sed -i 's/^rados: { /rados: { clients: 2, /' "$T/gantryd.yaml"
daemon_run
assert_eq "$(cat "/proc/$DAEMON_PID"/task/*/comm | grep -c '^io_context_pool')" 2 "threads of librados for answers"
pids=()
for i in $(seq 12); do
	{ curl_s3 "/bkt/k" | cmp - "$T/body" && [ "$(status_of PUT "/bkt/p$i" -T "$T/body")" = 200 ]; } &
	pids+=($!)
done
for p in "${pids[@]}"; do wait "$p" || fail "with two connections to the cluster"; done

# ---- what there is not on RADOS is refused, by what it is
control() { curl -sS -o "$T/out" -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST "http://x/control/$1"; }
assert_eq "$(control snapshot)" 501 "snapshot"
grep -q 'a store on rados makes no snapshots' "$T/out" || fail "snapshot: $(cat "$T/out")"
! "$BUILD/gantry" --admin "$T/admin.sock" disk add /none >"$T/out" 2>&1 || fail "a disk more: $(cat "$T/out")"
grep -q 'rados' "$T/out" || fail "a disk more: $(cat "$T/out")"
for o in "--format --force" "--add /none"; do
	# shellcheck disable=SC2086
	gantryd $o
	assert_eq $? 78 "$o: $(cat "$T/out")"
done
gantryd --upgrade || fail "--upgrade: $(cat "$T/out")"
curl_s3 /bkt/k | cmp - "$T/body" || fail "the store as it was"
stop_daemon
fsck || fail "at the end: $(cat "$T/fsck")"
