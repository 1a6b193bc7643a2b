#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/tools/curl.c and curl(1) send the same bytes, leave the same files, print the same and end with the same status, for each form of a request and of an
# answer that system tests have; words that the program does not know reach curl(1).
. "$(dirname "$0")/lib.sh"
OURS=$BUILD/tools/curl THEIRS=/usr/bin/curl
cat >"$T/server.py" <<'END'
import socket, sys, threading
HEAD = b"HTTP/1.1 %s\r\nX-Name:  a value \r\nx-name: second\r\n"
OK = HEAD % b"200 OK"
ANSWERS = {
    b"/ok": OK + b"Content-Length: 5\r\n\r\nhello",
    b"/chunked": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nX-Trailer: t\r\n\r\n",
    b"/large": OK + b"Content-Length: 3000000\r\n\r\n" + b"0123456789" * 300000,
    b"/close": OK + b"\r\nto the end",
    b"/nothing": OK + b"Content-Length: 0\r\n\r\n",
    b"/gone": HEAD % b"404 Not Found" + b"Content-Length: 4\r\n\r\ngone",
    b"/none": HEAD % b"204 No Content" + b"\r\n",
    b"/interim": HEAD % b"102 Processing" + b"\r\n" + OK + b"Content-Length: 2\r\n\r\nhi",
    b"/cut": OK + b"Content-Length: 50\r\n\r\nhello",
    b"/cut-chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n50\r\nhello",
    b"/silent": b"",
}
def serve(c):
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            more = c.recv(65536)
            if not more:
                return
            data += more
        head, _, data = data.partition(b"\r\n\r\n")
        path = head.split()[1].partition(b"?")[0]
        length = [int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-length:")]
        if path == b"/refused":
            c.sendall(HEAD % b"403 Forbidden" + b"Content-Length: 2\r\n\r\nno")
            continue
        if b"100-continue" in head:
            c.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        while (length and len(data) < length[0]) or (b"transfer-encoding: chunked" in head.lower() and not data.endswith(b"0\r\n\r\n")):
            more = c.recv(65536)
            if not more:
                return
            data += more
        open(sys.argv[1], "wb").write(head + b"\r\n\r\n" + data)
        data = b""
        if path == b"/late":
            threading.Event().wait(20)
        c.sendall(ANSWERS.get(path, ANSWERS[b"/ok"]))
        if path in (b"/cut", b"/cut-chunk", b"/close", b"/silent"):
            break
def serve_one(c):
    try:
        serve(c)
    except OSError:
        pass
    c.close()
listeners = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)]
listeners[1].bind(sys.argv[2])
listeners[1].listen()
def accept(l):
    while True:
        threading.Thread(target=serve_one, args=(l.accept()[0],), daemon=True).start()
threading.Thread(target=accept, args=(listeners[1],), daemon=True).start()
print(listeners[0].getsockname()[1], file=open(sys.argv[3] + ".new", "w"), flush=True)
import os
os.rename(sys.argv[3] + ".new", sys.argv[3])
accept(listeners[0])
END
mkdir "$T/files" "$T/w"
/usr/bin/python3 "$T/server.py" "$T/request" "$T/sock" "$T/port" &
wait_for 60 test -s "$T/port"
B=http://127.0.0.1:$(<"$T/port")
cd "$T/w" || exit 1
printf 'one\r\ntwo\n' >"$T/lines"
bytes pattern:1 3000001 >"$T/three"
: >"$T/empty"
n=0
# run FILE CURL WORDS...: stores the output, the status, the request and the files in $T/FILE.
run() {
	rm -rf "$T/w"/* "$T/request"
	{
		"${@:2}" 2>"$T/stderr" <"$T/lines"
		echo "status $?"
		# Versions of curl(1) differ in the words of an error, and in their own name.
		sed -E 's/^(curl: \([0-9]+\)).*/\1/; /^User-Agent: curl/s/[0-9.]+/N/' "$T/stderr" "$T/request" 2>/dev/null
		head -n 99 ./* 2>/dev/null
	} >"$T/$1"
}
same() {
	run wanted "$THEIRS" "$@"
	run is "$OURS" "$@"
	cmp "$T/wanted" "$T/is" || fail "curl $*: wanted: $(head -c 2000 "$T/wanted" | tr -d '\0') --- is: $(head -c 2000 "$T/is" | tr -d '\0')"
	n=$((n + 1))
}
for p in ok chunked large close nothing gone none interim cut cut-chunk silent 'ok?a=b&c=%20d' '?list'; do
	same -sS "$B/$p"
	same -sS --fail -o body -D head -w '%{http_code} %header{x-name}|%header{absent}\n' "$B/$p"
done
for p in ok gone nothing; do
	same -sS -I "$B/$p"
	same -s -f -o body --head "$B/$p"
	same -sS -X DELETE -o /dev/null -w '%{http_code}' "$B/$p"
	same -sS -D - -o body "$B/$p"
done
same -sS "$B?query"
same -sS -X POST "$B/ok"
same -sS -T "$T/lines" "$B/ok" -H 'content-type: text/x' -H 'X-Any: " a'
same -sS -T "$T/empty" "$B/ok"
same -sS -T "$T/three" "$B/ok" --max-time 60
same -sS -T "$T/three" -o body -w '%{http_code}' "$B/refused"
same -sS --fail -X PUT --data-binary "@$T/lines" "$B/ok"
same -sS -X PUT --data-binary @- "$B/ok"
same -sS -d "@$T/lines" "$B/ok"
same -sS -d 'a=b&c' "$B/ok" -H 'Accept:' -H 'User-Agent: mine'
same -sS -d '' "$B/ok" -H 'content-type: x'
same -sS --data-binary "@$T/three" "$B/ok"
same -sS -r 2-5 "$B/ok"
same -sS -r -5 -H 'if-match: "x"' -H 'Empty:' "$B/ok"
same -sS --unix-socket "$T/sock" http://x/ok
same -sS --unix-socket "$T/sock" -XPOST -m10 -d x http://x/nothing -o body
same -sS --unix-socket "$T/absent" http://x/ok
same -sS -m 0.2 "$B/late"
same -sS -o "$T/no/such/folder" "$B/ok"
same -sS http://127.0.0.1:1/
# Executed by curl(1): more than one URL, globs, forms, an unknown word, names, TLS.
same -sS "$B/ok" "$B/gone"
same -sS -o 'f#1' -w '%{http_code}\n' "$B/k[1-3]"
same -sS -T - "$B/ok"
same -sS -w '%{num_connects}' "$B/ok"
same -sS -H 'Host: x.test' "$B/ok"
same -sS --no-such-word "$B/ok"
same -sS "http://localhost:${B##*:}/ok"
same -sS "$B/a/../ok"
same -sS "https://127.0.0.1:1/"
[ "$n" -gt 60 ] || fail "$n requests"
# The comparison finds a difference: a request without the type of its body.
run wanted "$THEIRS" -sS -d x "$B/ok"
run is "$OURS" -sS -d x -H 'content-type:' "$B/ok"
! cmp -s "$T/wanted" "$T/is" || fail "a difference is not seen"
