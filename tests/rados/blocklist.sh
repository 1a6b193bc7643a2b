#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM76: which connections a gateway puts on the cluster's blocklist, and that it cleans up after no gateway whose connections are not all on it.
# With a key that may block no connection, or those of another host only, the rows and the data of a dead gateway stay, until the key may.  Forged rows of
# the meta pool block no running gateway, no daemon of the cluster and no client whose address the key may not block.
MORE='log: { levels: { store: debug } }' NO_NIC=1 RDMA='{ devices: none }'
. "$(dirname "$0")/lib.sh"
own_cluster AUTH=cephx
may() { ceph auth caps client.gantry mon "$1" osd 'allow rw pool=gantry.meta, allow rw pool=gantry.data' >/dev/null || fail "caps $1"; }
blocked() { command ceph -c "$CEPH_CONF" osd dump -f json 2>>"$T/ceph.log" | jq -r '.blocklist | keys[]' | sort; }
rows() { rados -p gantry.meta listomapkeys gantry | grep "^[axi]" | sort; }
row() { printf '%s%010u' "$1" "$2"; }
said() { [ "$(grep -c "$1" "$T/daemon.log")" -ge "$2" ]; }
# Waits until an attempt that began from now on has ended with this line: the line comes twice, at level debug after the first time.
tried() { wait_for 60 said "$1" $(($(grep -c "$1" "$T/daemon.log") + 2)); }
cleaned() { [ "$(number_of gateways_cleaned_up)" = "$1" ]; }
instance() { curl_admin /disks | jq '.[0].instance'; }

ceph auth get-or-create client.gantry mon 'allow r' osd 'allow rw pool=gantry.meta, allow rw pool=gantry.data' >"$T/gantry.key" || fail "auth get-or-create"
sed "s|^keyring = .*|keyring = $T/gantry.key|" "$CEPH_CONF" >"$T/client.conf"
write_config
sed -i "s|conf: \"[^\"]*\", user: admin|conf: \"$T/client.conf\", user: gantry, dead_after: 5s, clients: 2|" "$T/gantryd.yaml"
format_store
daemon_run
keep_gateway 1
make_buckets
head -c 30000000 /dev/urandom >"$T/big"
head -c 200000 /dev/urandom >"$T/small"
another_gateway 2
dead=$(instance)

# ---- a gateway that ends in the middle of a PUT, and no right to put it on the blocklist
theirs() { rados -p gantry.data ls | grep "^$(printf %08x "$dead")[.]"; }
curl -s -o /dev/null --limit-rate 3M -T "$T/big" "$URL_S3/bkt/half" &
put=$!
begun() { theirs >/dev/null; }
wait_for 30 begun
kill -KILL "$DAEMON_PID"
wait "$_daemon_job" "$put" 2>/dev/null
gateway 1
not_blocked="gateway $dead (.*) cannot be put on the cluster's blocklist: "
stays() { # after an attempt
	tried "$not_blocked"
	assert_eq "$(blocked)" "" "$1: the blocklist"
	assert_eq "$(number_of gateways_cleaned_up)" 0 "$1: gateways that were cleaned up after"
	rows | grep -qx "$(row x "$dead")" || fail "$1: the row of the dead gateway is gone"
	rows | grep -qx "$(row a "$dead")" || fail "$1: its addresses are gone"
	theirs >/dev/null || fail "$1: its data is gone"
}
stays "without the right"
assert_status PUT /bkt/small 200 -T "$T/small"
# Monitors look at the rights of a key when it connects.
stop_daemon
may 'allow r, allow command "osd blocklist" with blocklistop=add addr regex "^(v[12]:)?10[.]9[.]9[.]9:0/[1-9][0-9]*$"'
daemon_run
keep_gateway 1
stays "with the right for another host"
rados -p gantry.meta getomapval gantry "$(row x "$dead")" "$T/x.row" >/dev/null
rados -p gantry.meta getomapval gantry "$(row a "$dead")" "$T/a.row" >/dev/null
stop_daemon
may "$MON_CAPS"
daemon_run
wait_for 60 cleaned 1
assert_eq "$(blocked | wc -l)" 2 "connections of the dead gateway on the blocklist"
! theirs >/dev/null || fail "data of the dead gateway is left: $(theirs)"
! rows | grep -q "^[axi]0*$dead\$" || fail "rows of the dead gateway are left"

# ---- forged rows: of this gateway, with its addresses under another number, of a daemon of the cluster, and of a client of another host
me=$(instance)
blocked >"$T/blocked"
forge() { # number, file of addresses or an address
	if [ -e "$2" ]; then
		cp "$2" "$T/forged"
	else
		/usr/bin/python3 - "$T/a.row" "$2" >"$T/forged" <<-'END'
			import struct, sys
			def crc64_nvme(data):
			    crc = 2 ** 64 - 1
			    for byte in data:
			        crc ^= byte
			        for _ in range(8):
			            crc = crc >> 1 ^ (0x9A6C9329AC4BC9B5 if crc & 1 else 0)
			    return crc ^ 2 ** 64 - 1
			row = open(sys.argv[1], "rb").read()
			assert struct.pack("<Q", crc64_nvme(row[:-8])) == row[-8:]
			row = row[:4] + struct.pack("<Q", 1) + sys.argv[2].encode().ljust(len(row) - 20, b"\0")
			sys.stdout.buffer.write(row + struct.pack("<Q", crc64_nvme(row)))
		END
	fi
	rados -p gantry.meta setomapval gantry "$(row a "$1")" --input-file "$T/forged" || fail "setomapval"
	rados -p gantry.meta setomapval gantry "$(row x "$1")" --input-file "$T/x.row" || fail "setomapval"
}
rados -p gantry.meta getomapval gantry "$(row a "$me")" "$T/mine.row" >/dev/null
forge "$me" "$T/mine.row"
forge 901 "$T/mine.row"
forge 902 127.0.0.1:6800/1
forge 903 10.0.0.9:0/77
rows >"$T/rows"
for n in $me 901; do tried "after gateway $n yet: \"127.0.0.1:0/[0-9]*\" in its row is an address of one that runs"; done
tried "after gateway 902 yet: \"127.0.0.1:6800/1\" in its row is no address of a client's connection"
tried "gateway 903 (10.0.0.9:0/77) cannot be put on the cluster's blocklist: "
blocked | cmp - "$T/blocked" || fail "forged rows have put on the blocklist: $(blocked)"
rows | cmp - "$T/rows" || fail "forged rows were cleaned up after: $(rows)"
assert_eq "$(number_of gateways_cleaned_up)" 1 "gateways that were cleaned up after"
assert_status PUT /bkt/small 200 -T "$T/small"
curl_s3 /bkt/small | cmp - "$T/small" || fail "a GET beside forged rows"
for n in "$me" 901 902 903; do rados -p gantry.meta rmomapkey gantry "$(row x "$n")"; done
for n in 901 902 903; do rados -p gantry.meta rmomapkey gantry "$(row a "$n")"; done
assert_alive
stop_daemon
fsck || fail "at the end: $(cat "$T/fsck")"
