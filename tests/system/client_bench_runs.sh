#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry bench: CSV, the time to the first byte and the series of seconds agree with the sums of JSON; requests take turns over endpoints; the
# time of all rounds is announced, and a terminal shows how much is left; hosts, by a stand-in of ssh, are added up by their histograms, one that
# fails is named, and no secret is on a command line; two measurements are compared; the end does not wait for a disk that is away.
DISK_SIZE=96MiB DISKS=2
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
printf -- '- { access_key: AKHOSTS, secret_key: a-secret-of-hosts }\n' >"$T/keys"
chmod 600 "$T/keys"
# shellcheck disable=SC2034
MORE="auth: { credentials_file: \"$T/keys\" }"
LISTEN=$'  - { address: "127.0.0.1:0", dialect: s3, anonymous: true }'
mkdir "$T/fault"
DAEMON_WRAP="$BUILD/tools/diskfault $T/fault"
start_daemon
cd "$T" || exit 1
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GANTRY_ADMIN
OTHER=$(curl_admin /status | /usr/bin/python3 -c 'import json, sys; print([l["address"] for l in json.load(sys.stdin)["listeners"] if l["dialect"] == "s3"][-1])')
[ "$OTHER" != "$S3" ] || fail "there is no second listener: $(curl_admin /status)"

says() {
	local rc=$1 have
	shift
	gantry bench "$@" >out 2>err
	have=$?
	[ $have = "$rc" ] || fail "gantry bench $*: exit $have, want $rc: $(cat out err)"
}
error_has() { grep -qF -- "$1" err || fail "no \"$1\" in: $(<err)"; }
out_has() { grep -qE -- "$1" out || fail "no $1 in: $(<out)"; }
holds() { # EXPRESSION, of the lines of out: begin, rows, end
	/usr/bin/python3 - "$1" <<-'END' || fail "not so: $1 in $(<out)"
		import json, sys
		lines = [json.loads(x) for x in open("out")]
		begin, rows, end = lines[0], [x for x in lines if x["op"] == "bench"], lines[-1]
		sys.exit(not eval(sys.argv[1]))
	END
}

# ---- the first byte, seconds, rates; two endpoints
says 0 --json --rate 100 --sizes 64k --concurrency 2 --objects 8 --time 2.2 --warm-up 0 --rounds 2 --way rdma,http --mix get --endpoints "$OTHER" "$URL_S3/bkt"
holds "begin['rows'] == 1 and abs(begin['planned_seconds'] - 8.8) < .01 and begin['endpoints'] == ['$URL_S3', 'http://$OTHER']"
holds "len(rows) == 2 and all(0 < r['get']['first_byte_us']['p50'] <= r['get']['latency_us']['p50'] and r['get']['first_byte_us']['p99'] <= r['get']['latency_us']['max'] for r in rows)"
holds "all(sum(s['operations'] for s in r['series']) == r['operations'] and sum(s['bytes'] for s in r['series']) == r['bytes'] for r in rows)"
holds "all(4 <= len(r['series']) <= 6 and all(0 < s['p50_us'] <= s['p99_us'] <= r['get']['latency_us']['max'] for s in r['series']) and sorted(s['at'] for s in r['series']) == [s['at'] for s in r['series']] for r in rows)"
holds "all(len(r['rates']) == 2 and min(r['rates']) > 0 and len(r['byte_rates']) == 2 for r in rows)"
holds "all(len(r['endpoints']) == 2 and sum(e['operations'] for e in r['endpoints']) == r['operations'] and abs(r['endpoints'][0]['operations'] - r['endpoints'][1]['operations']) <= 8 for r in rows)"
# Fewer than ten requests above a quantile.
says 0 --json --sizes 1k --concurrency 1 --objects 2 --count 999 --warm-up 0 --mix put "$URL_S3/bkt"
holds "rows[0]['put']['latency_us']['few'] == ['p99', 'p99_9']"
says 0 --sizes 1k --concurrency 1 --objects 2 --count 1000 --warm-up 0 --mix put,get --endpoints "http://$OTHER" "$URL_S3/bkt"
out_has '^2 rows of 1 round$'
out_has "^also by http://$OTHER$"
out_has '^put +1k .* [0-9.]+ [mu]?s +~[0-9.]+ [mu]?s +[0-9.]+ [mu]?s '
out_has '^ +first byte after [0-9.]+ [mu]?s \(p50\), [0-9.]+ [mu]?s \(p99\)$'
out_has "^ +http://$OTHER: [0-9.]+ objects/s, .* 0 failed$"
out_has '^ +~: fewer than 10 requests took longer$'

# ---- CSV: as many columns in each line as in the first
says 0 --csv --rate 100 --sizes 4k --concurrency 2 --objects 4 --time 1.2 --warm-up 0 --mix put:1+get:2 --endpoints "$OTHER" "$URL_S3/bkt"
/usr/bin/python3 - <<'END' || fail "$(<out)"
import csv
lines = list(csv.reader(open("out")))
rows = [dict(zip(lines[0], x)) for x in lines[1:]]
assert all(len(x) == len(lines[0]) for x in lines), lines
of = lambda record: [r for r in rows if r["record"] == record]
assert [r["op"] for r in of("row")] == ["put", "get"], rows
put, get = of("row")
assert put["mix"] == "put:1+get:2" and put["sizes"] == "4k" and put["at_once"] == "2" and put["way"] == "rdma" and put["hosts"] == "1"
assert not put["first_byte_p50_us"] and 0 < float(get["first_byte_p50_us"]) <= float(get["p99_us"]) <= float(get["max_us"])
nr = sum(int(r["operations"]) for r in of("row"))
assert nr == sum(int(r["operations"]) for r in of("endpoint")) == sum(int(r["operations"]) for r in of("second")) > 0
assert len(of("endpoint")) == 2 and of("second") and float(of("second")[0]["at"]) >= 1
assert abs(float(get["operations_per_second"]) * float(get["seconds"]) - int(get["operations"])) < 1
END

# ---- a terminal
/usr/bin/python3 "$ROOT/tests/system/on_terminal.py" screen 100 "$BUILD/gantry" bench --rate 100 --sizes 4k,8k --concurrency 2 --objects 4 --time 1 --warm-up 0 --mix put "$URL_S3/bkt" >out || fail "$(cat out screen)"
out_has '^2 rows of 1 round, which take 2 s, besides making and removing the objects$'
grep -qE 's of 2 s \([0-9]+ %\), [12] s left: row 1 of 2, put of 4k, 2 at once' screen || fail "$(<screen)"
grep -qE 's of 2 s \([0-9]+ %\).*: row 2 of 2, put of 8k, 2 at once' screen || fail "$(<screen)"
[ "$(tail -c 4 screen | od -An -c | tr -d ' ')" = '\r033[K' ] || fail "the line is left"

# ---- hosts
cat >ssh <<END
#!/bin/bash
# ssh OPTION HOST COMMAND
echo "\$*" >>"$T/commands"
[ "\$2" != bad ] || { echo "no route to bad" >&2; exit 255; }
[ "\$2" != deaf ] || { exec <&-; echo '{"op":"bench-wait"}'; read -rt 0.5 <>"$T/empty"; echo "it was ended" >&2; exit 3; }
[ "\$2" != dies ] || { PATH=$BUILD:\$PATH sh -c "\$3" | head -n 2; exit 1; }
PATH=$BUILD:\$PATH sh -c "\$3" | tee "$T/of.\$2"
END
chmod +x ssh
mkfifo empty
AWS_ACCESS_KEY_ID=AKHOSTS AWS_SECRET_ACCESS_KEY=a-secret-of-hosts says 0 --json --hosts one,two,three --ssh "$T/ssh -x" --rate 300 --sizes 4k --concurrency 2 --objects 4 --time 1.2 --warm-up 0.1 --rounds 2 \
	--mix put,get --endpoints "$OTHER" --traffic-class 0 --service-level 3 --path-mtu 1024 "$URL_S3/bkt"
assert_eq "$(grep -cE -- "--traffic-class '?0'? --service-level '?3'? --path-mtu '?1024'? " commands)" 3 "marks of the packets: $(<commands)"
[ "$(wc -l <commands)" = 3 ] || fail "$(<commands)"
! grep -q secret commands || fail "the secret is on a command line: $(<commands)"
/usr/bin/python3 - <<'END' || fail "$(<out)"
import json, math
lines = lambda f: [json.loads(x) for x in open(f)]
rows = lambda f: [x for x in lines(f) if x["op"] == "bench"]
all, of = rows("out"), [rows("of." + h) for h in ("one", "two", "three")]
assert len(all) == 2 and [r["mix"] for r in all] == ["put", "get"], all
for i, r in enumerate(all):
    parts = [o[i] for o in of]
    assert r["hosts"] == 3 and r["at_once"] == 6 and r["errors"] == 0, r
    assert r["operations"] == sum(p["operations"] for p in parts) and r["bytes"] == sum(p["bytes"] for p in parts)
    counts = {}
    for p in parts:
        for at, nr in p[r["mix"]]["histogram"]["counts"]:
            counts[at] = counts.get(at, 0) + nr
    assert sum(counts.values()) == r["operations"]
    # The end of the bucket in which the quantile of all requests is; never a mean of the hosts' quantiles.
    def end(b):
        return b if b < 128 else ((128 + b % 128 + 1) << (b // 128 - 1)) - 1
    for name, q in (("p50", .5), ("p99", .99)):
        seen = 0
        for at in sorted(counts):
            seen += counts[at]
            if seen >= q * r["operations"]:
                break
        want = min(end(at), max(p[r["mix"]]["histogram"]["max"] for p in parts)) / 1e3
        assert math.isclose(r[r["mix"]]["latency_us"][name], want, rel_tol=1e-6), (name, want, r)
    for k in range(2):
        assert math.isclose(r["rates"][k], sum(p["rates"][k] for p in parts), rel_tol=1e-6)
    assert sum(s["operations"] for s in r["series"]) == r["operations"]
    assert sum(e["operations"] for e in r["endpoints"]) == r["operations"]
assert lines("out")[-1]["puts"] == sum(lines("of." + h)[-1]["puts"] for h in ("one", "two", "three")) > 0
END
# One cannot be reached, one dies amid: named, and the others are measured.
says 1 --hosts bad,one,dies --ssh "$T/ssh -x" --sizes 4k --concurrency 1 --objects 2 --time 0.5 --warm-up 0 --mix put "$URL_S3/bkt"
error_has "gantry: bench: host bad failed: exit status 255: no route to bad"
error_has "gantry: bench: host dies failed: exit status 1"
out_has '^put +4k +1 rdma'
# One does not read that the round begins, and its exit status and its message come later: they are what is told, and not the failed write.
says 1 --hosts deaf,one --ssh "$T/ssh -x" --sizes 4k --concurrency 1 --objects 2 --time 0.5 --warm-up 0 --mix put "$URL_S3/bkt"
error_has "gantry: bench: host deaf failed: exit status 3: it was ended"
out_has '^put +4k +1 rdma'
# What a worker cannot begin.
AWS_ACCESS_KEY_ID=AKNOBODY AWS_SECRET_ACCESS_KEY=none says 1 --hosts one --ssh "$T/ssh -x" --count 4 --objects 2 --concurrency 1 "$URL_S3/bkt"
error_has "gantry: bench: host one failed: "
error_has "access key"
says 2 --hosts -x --ssh "$T/ssh" "$URL_S3/bkt"
error_has "--hosts wants 1 to 64 names"
says 2 --hosts one --admin "$ADMIN" "$URL_S3/bkt"
says 2 --worker "$URL_S3/bkt" </dev/null
error_has "--worker is for"
assert_eq "$(curl_s3 "/bkt?list-type=2" | grep -c '<Key>')" 0 "keys that are left"

# ---- two measurements
cat >old.json <<'END'
{"op":"bench-begin"}
{"op":"bench","mix":"put","sizes":"4k","at_once":8,"way":"rdma","operations_per_second":1000,"rates":[900,1000,1000,1100],"put":{"latency_us":{"p50":10,"p99":50}}}
{"op":"bench","mix":"get","sizes":"4k","at_once":8,"way":"rdma","operations_per_second":1000,"get":{"latency_us":{"p50":10,"p99":50}}}
END
sed 's/"operations_per_second":1000,"get"/"operations_per_second":880,"get"/; s/"p99":50}}}/"p99":75}}}/' old.json >new.json
says 0 --compare old.json old.json
out_has '^put of 4k, 8 at once, rdma: 1\.00 objects/s \(spread 0\.10 old, 0\.10 new\), 1\.00 p50, 1\.00 p99$'
says 1 --compare old.json new.json
out_has '^put of 4k, .* 1\.00 objects/s .* 1\.50 p99$'
out_has '^get of 4k, 8 at once, rdma: 0\.88 objects/s .*, 1\.50 p99, WORSE$'
out_has '^1 of 2 rows '
says 0 --compare old.json --limit 13 new.json
says 1 --json --compare old.json new.json
/usr/bin/python3 -c 'import json; r = [json.loads(x) for x in open("out")]; assert [x["worse"] for x in r] == [False, True] and abs(r[1]["rate"] - .88) < 1e-9, r' || fail "$(<out)"
grep -v '"mix":"get"' old.json >less.json
says 1 --compare old.json less.json
out_has '^get of 4k, .*: the new measurement does not have this row$'
says 1 --compare old.json no-such-file
echo text >bad.json
says 1 --compare old.json bad.json
error_has "bad.json:1: not a line of gantry bench --json"

# ---- a disk that is away at the end: one request for each object, a list, and an exit status
gantry bench --sizes 4k --objects 12 --concurrency 1 --time 600 --mix put --way http "$URL_S3/bkt" >out 2>err &
job=$!
_bench_of() { local p; for p in $1 $(cat /proc/"$1"/task/*/children); do case $(readlink "/proc/$p/exe") in */gantry) echo "$p"; return ;; esac; done; fail "no gantry below $1"; }
puts() { [ "$(metric gantry_requests_total 'operation="PutObject",code="200"')" -gt $((so_far + 200)) ]; }
so_far=$(metric gantry_requests_total 'operation="PutObject",code="200"')
wait_for 60 puts
echo 'read write flush' >"$T/fault/disk1"
away() { curl_admin /disks | grep -q '"state":"failed"'; }
wait_for 60 away
kill -INT "$(_bench_of $job)"
wait $job
assert_eq $? 130 "exit status: $(<err)"
left=$(sed -nE 's/^gantry: bench: ([0-9]+) objects could not be removed: .*/\1/p' err)
[ "${left:-0}" -gt 0 ] || fail "$(<err)"
grep -qE "^gantry: bench: $left objects could not be removed: $URL_S3/bkt/gantry-bench-[0-9a-f]+/: ServiceUnavailable: " err || fail "$(<err)"
assert_eq "$(grep -cE "^    $URL_S3/bkt/gantry-bench-[0-9a-f]+/[0-9a-f]{16}$" err)" "$left" "the list of them"
assert_eq "$(metric gantry_requests_total 'operation="DeleteObject",code="503"')" "$left" "one request for each"
