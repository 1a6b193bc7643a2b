# SPDX-License-Identifier: Apache-2.0
# What tests of the store on RADOS share: sourced instead of tests/system/lib.sh.  CEPH_CONF names the cluster.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"
CLUSTER=$(dirname "$CEPH_CONF") # as rados-one made it
ceph() { command ceph -c "$CEPH_CONF" --connect-timeout 10 "$@" 2>>"$T/ceph.log"; }
# RADOS in the namespace of this test's store.
namespace() { sed -n 's/.*namespace: "\([^"]*\)".*/\1/p' "$T/gantryd.yaml"; }
rados() { command rados -c "$CEPH_CONF" -N "$(namespace)" "$@" 2>>"$T/ceph.log"; }

# A cluster of this test's own, made with these variables of rados-one; it ends with the test.
own_cluster() {
	CLUSTER=$T/cluster
	env OSD_BYTES=4G OSD_MEMORY=700000000 "$@" "$ROOT/tests/rados/rados-one" up "$CLUSTER" >>"$T/ceph.log" 2>&1 || fail "rados-one: $(tail -3 "$T/ceph.log")"
	export CEPH_CONF=$CLUSTER/ceph.conf
	trap '_rc=$?; [ $_rc = 0 ] || cluster_says; "$ROOT/tests/rados/rados-one" down "$CLUSTER" >/dev/null 2>&1; (exit $_rc); _at_exit' EXIT
}
# How the cluster is, after a failure: was it the cluster's?
cluster_says() {
	echo "--- the cluster"
	ceph -s
	ceph health detail
	ceph pg dump_stuck 2>/dev/null | head -n 8
	for o in "$CLUSTER"/osd.*.asok; do
		timeout 5 ceph --admin-daemon "$o" dump_ops_in_flight | jq -c '.ops[:4][] | [.description, .age, .type_data.flag_point]'
	done
	tail -n 3 "$CLUSTER"/osd.*.log | cut -c1-200
} >&2

# The rights at the monitors that docs/rados.md gives a gateway of this machine.
# shellcheck disable=SC2034
MON_CAPS='allow r, allow command "osd blocklist" with blocklistop=add addr regex "^(v[12]:)?127[.]0[.]0[.]1:0/[1-9][0-9]*$"'

# Starts another gateway on the same store, whose variables are those of the names from now on; $1: 1, 2, 3 ...  gateway N
# makes number N the one that is meant, first_gateway that which was started first.
another_gateway() {
	sed "s|admin[0-9]*\.sock|admin$1.sock|" "$T/gantryd.yaml" >"$T/next.yaml" && mv "$T/next.yaml" "$T/gantryd.yaml"
	daemon_run
	keep_gateway "$1"
}
keep_gateway() { _gateways[$1]="DAEMON_PID=$DAEMON_PID _daemon_job=$_daemon_job S3=$S3 SCAL=$SCAL ADMIN=$ADMIN URL_S3=$URL_S3 URL_SCAL=$URL_SCAL URL_ADMIN=$URL_ADMIN"; }
gateway() { eval "${_gateways[$1]}"; }
declare -A _gateways
number_of() { curl_admin /disks | jq "[.[] | .$1 // 0] | add"; }
fsck() { nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck "$@" >"$T/fsck" 2>&1; }
