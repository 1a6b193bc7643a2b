#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM45: what a core dump would have of secrets and payload: nothing.  Read in the memory of the running daemon: they lie in mappings that are
# left out of dumps (VmFlags dd) and nowhere else.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
cat >"$T/keys.yaml" <<-END
	- { access_key: SOMEBODY, secret_key: a-secret-that-is-nowhere-else, session_token: a-token-that-is-nowhere-else }
	- { access_key: ANOTHER, secret_key: another-secret-of-its-own }
END
chmod 0600 "$T/keys.yaml"
# shellcheck disable=SC2034
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
# shellcheck disable=SC2034
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
# claim TM44
grep -q '^LimitCORE=0$' "$ROOT/systemd/gantryd.service" || fail "the unit allows dumps"
start_daemon
signed=$(sed 's/.* s3=\([^ ]*\) *\(admin.*\)*$/\1/' "$T/ready")
assert_eq "$("$BUILD/tools/s3sign" -s "$signed" -k ANOTHER -p another-secret-of-its-own -m empty GET /bkt)" 200 "a signed request"
bytes pattern:77 3M >"$T/payload"
raw <<-END
	window w 3M pattern:77
	request PUT /bkt/payload x-amz-rdma-token:@w content-length:0
	expect status 200
END
/usr/bin/python3 - "$DAEMON_PID" "$T/payload" <<-'END' || fail "memory that would be dumped"
	import array, os, re, sys
	pid, payload = sys.argv[1], open(sys.argv[2], "rb").read()
	maps, at = [], None
	for line in open(f"/proc/{pid}/smaps"):
	    m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line)
	    if m:
	        at = [int(m[1], 16), int(m[2], 16), m[3], False]
	        maps.append(at)
	    elif line.startswith("VmFlags:"):
	        at[3] = "dd" in line.split()
	mem, pages, page = open(f"/proc/{pid}/mem", "rb", 0), open(f"/proc/{pid}/pagemap", "rb"), os.sysconf("SC_PAGESIZE")

	def held(begin, end):
	    """The parts of a mapping that are in memory or in swap: the others, three quarters, hold no bytes."""
	    pages.seek(begin // page * 8)
	    entries, first = array.array("Q", pages.read((end - begin) // page * 8)), None
	    assert len(entries) == (end - begin) // page
	    for at, entry in zip(range(begin, end, page), entries):
	        if entry >> 62 and first is None:
	            first = at
	        elif not entry >> 62 and first is not None:
	            yield first, at
	            first = None
	    if first is not None:
	        yield first, end

	want = {"secret": b"a-secret-that-is-nowhere-else", "other secret": b"another-secret-of-its-own",
	        "session token": b"a-token-that-is-nowhere-else", "payload": payload[1000000:1000064]}
	left_out = {k: 0 for k in want}
	for begin, end, dd in ((*part, dd) for begin, end, mode, dd in maps if mode.startswith("rw") for part in held(begin, end)):
	    mem.seek(begin)
	    data = bytearray()
	    try:
	        while len(data) < end - begin and (got := mem.read(end - begin - len(data))):
	            data += got
	    except OSError:
	        continue  # a mapping of a device's
	    for name, text in want.items():
	        n = data.count(text)
	        assert dd or not n, f"{name} at {begin:x}-{end:x}, which would be dumped"
	        left_out[name] += n
	print(left_out)
	assert all(left_out.values()), left_out
END
assert_alive
