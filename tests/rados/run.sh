#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store on RADOS (make check-rados): on a cluster of one machine that this script brings up and ends, in a directory of its own,
# histories compared with the store in memory, the contract suite of back ends and the reads beside looks (also under ASan and UBSan), system tests
# from the same sources as on disks, RDMA by the software NIC included, and tests of several gateways.  T=words runs what has one of them
# in its name.  LONG=1 (make check-rados-long) runs instead what takes longer: histories of ten minutes, 4 GiB in one object, more of the model, the clients, the other system tests.
set -u
cd "$(dirname "$0")/../.." || exit 2
variant=${VARIANT:-release}
export BUILD=build/$variant VARIANT=$variant
. scripts/test-env
log=$BUILD/log
mkdir -p "$log"
dir=$(mktemp -d "${TMPDIR:-/tmp}/gantry-rados.XXXXXX")
pass=0 failed=0
trap 'tests/rados/rados-one down "$dir/c" 2>/dev/null; rm -rf "$dir"' EXIT
# shellcheck disable=SC2086
OSD_BYTES=${OSD_BYTES:-16G} OSD_MEMORY=${OSD_MEMORY:-800000000} tests/rados/rados-one up "$dir/c" || exit 1
export CEPH_CONF=$dir/c/ceph.conf STORE=rados

one() {
	local name=$1 start=$SECONDS out
	shift
	[ -z "${T:-}" ] || grep -qE "${T// /|}" <<<"$name" || return 0
	out=$log/rados.${name//\//.}.log
	if timeout -k 10 1200 "$@" >"$out" 2>&1 </dev/null; then
		echo "ok    rados/$name ($((SECONDS - start)) s)"
		pass=$((pass + 1))
	else
		echo "FAIL  rados/$name: exit $?; the last of its output:"
		tail -n 40 "$out" | sed 's/^/      /'
		failed=$((failed + 1))
	fi
}

if [ -n "${LONG:-}" ]; then
	CLUSTER=$dir/c SECS=600 one histories tests/rados/histories
	one huge tests/long/huge.sh
	N=10000 one model tests/rados/model.py
	HISTORIES=1000 one diff "$BUILD/rados/test_diff"
	for t in curl boto3 s3cmd rclone aws js python; do one "clients/$t" "tests/clients/$t.sh"; done
	for t in rdma/play cuobject/play recipes; do one "clients/$t" env T=$t tests/clients/run.sh; done
	# What asks for requests to be served, whatever serves them.  Not here are those that have no store: server (libgantry-server
	# alone); that have a network namespace of their own, where there is no cluster, and are about clients' addresses and ports:
	# absent, allow, client_ports; that run above already, as a whole: rdma_clients (a part of clients/rdma/play); and what is about
	# disks, adapters, installing and the making of other tests.
	for t in auth client client_header client_hostile client_rb client_read copy copy_hostile copy_resume health http key limits \
		listeners log many metrics notify proxy python reload reload_keys replay s3_hostile sigv4 slow stalled \
		stumbles_client tls token turns; do
		one "$t" "tests/system/$t.sh"
	done
	echo "rados: $pass passed, $failed failed, 0 skipped"
	[ "$failed" = 0 ]
	exit
fi
one contract "$BUILD/rados/test_contract"
one contract_asan build/asan/rados/test_contract 2
HISTORIES=50 one diff "$BUILD/rados/test_diff"
one ahead "$BUILD/rados/test_ahead"
one ahead_asan build/asan/rados/test_ahead
for t in smoke put get overwrite sizes large scality s3_buckets s3_objects s3_multipart s3_facts s3_refused conditions quota ttl; do
	one "$t" "tests/system/$t.sh"
done
# Over connections of RC.
for t in smoke get overwrite sizes; do TRANSPORT=rc one "rc_$t" "tests/system/$t.sh"; done
for t in tests/rados/*.sh; do
	case $t in */run.sh | */lib.sh) ;; *) one "$(basename "$t" .sh)" "$t" ;; esac
done
# The daemons of these have no adapter: they end and start too often.
one faults tests/rados/faults
one model tests/rados/model.py
one linear tests/rados/test_linear.py
CLUSTER=$dir/c one histories tests/rados/histories
# A cluster of its own: one of its two OSDs is stopped.
GRACE=60 OSDS=2 OSD_BYTES=8G OSD_MEMORY=500000000 CLUSTER=$dir/two one two_osds tests/rados/rados-one run "$dir/two" tests/rados/two_osds
echo "rados: $pass passed, $failed failed, 0 skipped"
echo "$pass passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
