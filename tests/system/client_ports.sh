#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# libgantry on a node with eight ports, of which two lead to the server: every byte goes by RDMA, each of the others costs one declined
# request; memory that is not registered is, with the one port that is used; a fork leaves the parent's and the child's bytes alone.  In a
# network namespace of its own:
#
#     mlx5_0 10.1.1.1/24 on d0   mlx5_1 10.1.2.1/24 on d1: the server's rails
#     mlx5_10 10.1.1.20 and two hundred other addresses
#     mlx5_5 10.1.1.9, mlx5_8 10.1.2.9: the ports beside them   mlx5_2 to mlx5_9 but for these: in networks of their own
OWN_NET=${OWN_NET:-1}
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
NICS=11
SOFTNIC_GIDS='10.1.1.1/24;10.1.2.1/24;10.9.1.1/24;10.9.2.1/24;10.9.3.1/24;10.1.1.9/24;10.9.4.1/24;10.9.5.1/24;10.1.2.9/24;10.9.6.1/24;10.1.1.20/24'$(printf ',10.8.0.%d/24' {1..200})
export SOFTNIC_GIDS PYTHONPATH=$ROOT/python PYTHONDONTWRITEBYTECODE=1 GANTRY_LIBRARY=$BUILD/libgantry.so.0 PORTS=mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7,mlx5_8,mlx5_9
RDMA='{ devices: [mlx5_0, mlx5_1], allow: [10.0.0.0/8] }'
net_rail d0 10.1.1.1/24
net_rail d1 10.1.2.1/24
start_daemon
export URL_S3
softnicctl reach subnet
softnicctl rule add op=reg_mr skip=100000000 >/dev/null
declined() { metric gantry_declines_total '"unreachable"'; }
registered() { softnicctl rule list | grep -o 'seen=[0-9]*' | cut -d= -f2; }

client() { nic /usr/bin/python3 -W error - >"$T/out" 2>&1 || fail "$1: $(<"$T/out")"; }
client "eight ports" <<-'END'
	import gantry, os
	with gantry.Client(os.environ["URL_S3"] + "/bkt", device=os.environ["PORTS"], require_rdma=True) as c:
	    assert len(c.ports) == 8, c.ports
	    data = os.urandom(300000)
	    for i in range(40):
	        assert c.put(f"o{i}", data).path == "rdma"
	    into = bytearray(300000)
	    for i in range(40):
	        assert c.get_into(f"o{i}", into).path == "rdma" and into == data
END
assert_eq "$(declined)" 6 "declined requests of a client with six ports that are not reached"
# Each request had memory of its own to register, and did it with one port.
assert_eq "$(registered)" 86 "registrations"

# Several at a time, with registered memory, by the command.
mkdir "$T/in"
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do bytes pattern:$i 200001 >"$T/in/$i"; done
gantry --device "$PORTS" --require-rdma -q sync "$T/in" "$URL_S3/bkt/in" || fail "sync up"
gantry --device "$PORTS" --require-rdma -q sync "$URL_S3/bkt/in" "$T/back" || fail "sync down"
diff -r "$T/in" "$T/back" || fail "sync changed files"

# A port with more addresses than most: with too short a list the driver says nothing at all.
gantry --device mlx5_10 --require-rdma -q put "$T/in/1" "$URL_S3/bkt/addresses" || fail "a port with 201 addresses"
gantry doctor >"$T/out" 2>&1
grep 'mlx5_10:1' "$T/out" | grep -q '202 usable GIDs' || fail "gantry doctor: $(<"$T/out")"

# A kernel on which a fork takes registered pages away, unless it is told: parent and child go on.
SOFTNIC_FORK=init client "fork" <<-'END'
	import gantry, os
	with gantry.Client(os.environ["URL_S3"] + "/bkt", device="mlx5_5", require_rdma=True) as c:
	    buffer = bytearray(os.urandom(1 << 20))
	    with c.register(buffer) as held:
	        assert held.registered
	        c.put("fork", buffer)
	        child = os.fork()
	        if child == 0:
	            try:
	                ok = c.get("fork") == buffer and c.put("child", b"123").path == "rdma"
	                buffer[:] = bytes(len(buffer))
	                os._exit(0 if ok else 1)
	            except BaseException as e:
	                print(repr(e), flush=True)
	                os._exit(2)
	        buffer[:1000] = b"p" * 1000
	        assert c.put("parent", buffer).path == "rdma"
	        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
	        sent = bytes(buffer)
	        buffer[:] = bytes(len(buffer))
	        assert c.get_into("parent", buffer).path == "rdma" and buffer == sent and buffer[:1000] == b"p" * 1000
END
# The address of a port changes under a client, and comes back in another row: the device tells, or one request finds out that was
# faster, and none goes over HTTP.
export CTL=$BUILD/softnicctl
SOFTNIC_RETRY_US=20000 client "an address that changes" <<-'END'
	import gantry, os, subprocess
	def gid(*words):
	    subprocess.run([os.environ["CTL"], "gid", "mlx5_5", *words], check=True)
	with gantry.Client(os.environ["URL_S3"] + "/bkt", device="mlx5_5", require_rdma=True) as c:
	    buffer = bytearray(os.urandom(300000))
	    with c.register(buffer):
	        asked = []
	        for change in (), (("del", "10.1.1.9"), ("add", "10.1.1.77/24")), (("add", "10.1.1.9/24"), ("del", "10.1.1.77")):
	            for words in change:
	                gid(*words)
	            for i in range(3):
	                result = c.put("moved", buffer)
	                assert result.path == "rdma", result
	                asked.append(result.requests)
	            assert c.get("moved") == buffer
	assert asked[:3] == asked[4:6] + [1] == asked[7:] + [1] == [1, 1, 1] and max(asked[3], asked[6]) <= 2, asked
END
assert_alive
