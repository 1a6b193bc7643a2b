#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The log in its three forms: every JSON line is JSON; the journal gets fields and MESSAGE_IDs (through a socket of the test's own, in a
# mount namespace, where journald's would be); levels of single modules.
MORE=$'log: { format: json, levels: { access: debug, rdma: error } }'
. "$(dirname "$0")/lib.sh"
start_daemon
bytes pattern:1 1000 >"$T/body"
curl_s3 /bkt/a -T "$T/body"
assert_status GET "/bkt/%22quoted%5C" 404
kill -HUP "$DAEMON_PID"
wait_for 60 grep -q '"event":"reloaded"' "$T/daemon.log"
stop_daemon
grep '^{' "$T/daemon.log" >"$T/json"
/usr/bin/python3 - "$T/json" <<'END' || fail "JSON"
import json, sys
events, requests = set(), 0
for line in open(sys.argv[1]):
    o = json.loads(line)
    assert set(o) >= {"time", "level", "module", "message"}, o
    assert o["module"] != "rdma" or o["level"] == "error", o
    events.add(o.get("event"))
    if o.get("event") == "access":
        assert len(o["request"]) == 16, o
        requests += 1
assert {"ready", "access", "reloaded", "stopped"} <= events, events
assert requests >= 3, requests
END

# ---- the journal ----
cat >"$T/journald" <<'END'
import os, socket, sys
parent = os.getppid()
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("/run/systemd/journal/socket")
s.settimeout(0.5)
open(sys.argv[2], "w").close()
out = open(sys.argv[1], "wb", buffering=0)
while os.getppid() == parent:
    try:
        out.write(s.recv(1 << 20) + b"--\n")
    except socket.timeout:
        pass
END
cat >"$T/wrap" <<END
#!/bin/bash
mount -t tmpfs none /run && mkdir -p /run/systemd/journal || exit 1
/usr/bin/python3 "$T/journald" "$T/journal" "$T/listens" >/dev/null 2>&1 &
until [ -e "$T/listens" ]; do pause 0.02; done
exec "\$@"
END
chmod +x "$T/wrap"
unshare -m true 2>/dev/null || skip "no mount namespace of our own (root is needed): the journal's fields were not looked at"
DAEMON_WRAP="unshare -m $T/wrap"
daemon_run -o log.format=journal
curl_s3 /bkt/a -o /dev/null
id=$(header_of x-amz-request-id /bkt/a)
wait_for 60 grep -q "^GANTRY_REQUEST=$id" "$T/journal"
stop_daemon
/usr/bin/python3 - "$T/journal" "$ROOT/systemd/gantry.catalog" "$id" <<'END' || fail "journal"
import sys
ids = {l.split()[1] for l in open(sys.argv[2]) if l.startswith("-- ")}
seen = {}
for e in open(sys.argv[1], "rb").read().decode().split("--\n"):
    f = dict(l.split("=", 1) for l in e.splitlines() if "=" in l)
    if not f:
        continue
    assert {"MESSAGE", "PRIORITY", "GANTRY_MODULE"} <= set(f), f
    if "GANTRY_EVENT" in f:
        assert f["MESSAGE_ID"] in ids, f
        seen[f["GANTRY_EVENT"]] = f
assert {"ready", "access"} <= set(seen), seen
assert seen["access"]["GANTRY_MODULE"] == "access" and seen["access"]["PRIORITY"] == "6", seen["access"]
# Who asked for what is looked up by fields, and is in the text as well.
assert seen["access"]["GANTRY_ACCESS_KEY"] == "-" and seen["access"]["GANTRY_BUCKET"] == "bkt", seen["access"]
assert " access_key=- bucket=bkt peer=127.0.0.1 op=" in seen["access"]["MESSAGE"], seen["access"]
assert seen["ready"]["PRIORITY"] == "5", seen["ready"]
END
