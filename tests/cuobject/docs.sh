#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# docs/cuobject.md as a newcomer follows it: its two programs out of the page's own text, built by its own lines from what `make install` makes;
# the client against gantryd, with the page's configuration and lines, and against the page's server.  The example of libgantry-server(3) is compiled.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
NICS=1
export CUFILE_ENV_PATH_JSON='' CUOBJ_ENV_PATH_JSON=''
PAGE=$ROOT/docs/cuobject.md P=$T/prefix
(cd "$ROOT" && make -s install-client install-lib install-dev install-server install-server-dev install-cuobject install-cuobject-dev install-softnic \
	PREFIX="$P" LIBDIR="$P/lib" VARIANT="${VARIANT:-release}") >"$T/out" 2>&1 || fail "make install: $(cat "$T/out")"
export PATH=$P/bin:$PATH LD_LIBRARY_PATH=$P/lib
cd "$T" || exit 1
for name in client server; do
	sed -n "/^\/\/ $name.cpp: /,/^\`\`\`/p" "$PAGE" | sed '$d' >"$name.cpp"
	[ "$(wc -l <"$name.cpp")" -gt 40 ] || fail "the page has no $name.cpp"
	line=$(grep -o "with-gantry-cuobject g++ -o $name $name.cpp -lcuobj$name" "$PAGE") || fail "the page does not say how to build $name.cpp"
	$line -Wall -Wextra -Werror >out 2>&1 || fail "$line: $(cat out)"
done
start_daemon
export SOFTNIC_DIR
free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# The page's lines about a daemon, in a folder and on ports of this test's.
s3=$(free_port)
ours() { sed "s|127\.0\.0\.1:9000|127.0.0.1:$s3|; s|127\.0\.0\.1 9000|127.0.0.1 $s3|; s|/tmp/gantry-disk|$T/page-disk|; s|/tmp/nic|$T/page-nic|"; }
sed -n '/^# gantryd.yaml$/,/^```/p' "$PAGE" | sed '$d' | ours >gantryd.yaml
printf 'admin: { address: "127.0.0.1:0" }\n' >>gantryd.yaml
sed -n '/^    export SOFTNIC_DIR=[^ ]*$/,/^    put 4194304/p' "$PAGE" | sed 's/^    //; /^put /d' | ours >lines
cat >after <<-'END'
	pid=$!
	trap 'kill $pid; wait $pid' EXIT
	for ((i = 0; i < 300; i++)); do [ ! -s page-ready ] || break; sleep 0.1; done
END
sed -i -e 's|^with-softnic gantryd .*[^ ]yaml|& --ready-file page-ready >page.log 2>\&1|' -e '/^with-softnic gantryd/r after' lines
PATH=$BUILD:$PATH bash -e lines >out 2>&1 || fail "the page's lines: $(cat out page.log)"
grep -qx 'put 4194304, got 4194304, the same bytes' out || fail "the page's lines: $(cat out page.log)"
# The example of the manual.
{
	printf '#include <err.h>\n#include <gantry_server.h>\nvoid example(size_t size, uint64_t remote, const char *token)\n{\n'
	sed -n '/^\.Sh EXAMPLES/,/^\.Ed/p' "$ROOT/man/libgantry-server.3" | sed '1,/^\.Bd/d; /^\.Ed/d'
	echo '}'
} >example.c
[ "$(wc -l <example.c)" -gt 15 ] || fail "libgantry-server(3) has no example"
gcc -std=c17 -Wall -Wextra -Werror -I"$P/include" -c -o example.o example.c >out 2>&1 || fail "the example of libgantry-server(3): $(cat out)"
with-gantry-cuobject -s ./client 127.0.0.1 "${S3##*:}" /bkt/key >out 2>&1 || fail "the client against gantryd: $(cat out)"
assert_eq "$(cat out)" "$(grep -o 'put 4194304, .*' "$PAGE")" "the client against gantryd"
assert_eq "$(curl_s3 /bkt/key | wc -c)" 4194304
port=$(free_port)
GANTRY_SERVER_ALLOW=loopback with-gantry-cuobject -s ./server 127.0.0.1 "$port" >server.out 2>&1 &
pid=$!
is_ready() { grep -q '^ready' server.out; }
wait_for 20 is_ready
for ((i = 0; i < 3; i++)); do
	with-gantry-cuobject -s ./client 127.0.0.1 "$port" /any/key >out 2>&1 || fail "the client against the server: $(cat out server.out)"
	assert_eq "$(cat out)" "put 4194304, got 4194304, the same bytes" "the client against the server"
done
# A client that is told no says so.
! with-gantry-cuobject -s ./client 127.0.0.1 "${S3##*:}" /none/key >out 2>&1 || fail "no bucket: $(cat out)"
assert_eq "$(grep -c '^put -5, got -5' out)" 1 "no bucket: $(cat out)"
kill "$pid"
wait "$pid"
assert_alive
