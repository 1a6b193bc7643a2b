#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Bodies in chunks that hide a request, see framing.sh: python3 framing.py HOST:PORT HOST:PORT-OF-SIGNED

Each case is sent on a connection of its own, and what comes back is counted: one answer, and the end."""
import datetime
import hashlib
import hmac
import re
import socket
import sys

SECRET = b"what nobody may see"
HIDDEN = b"GET /bkt/secret HTTP/1.1\r\nHost: localhost\r\n\r\n"
failed = False


def exchange(where, data):
    host, port = where.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 20) as s:
        s.sendall(data)
        got = b""
        while b := s.recv(65536):
            got += b
    return got


def one(name, where, data, *statuses):
    """Exactly one answer, of one of the statuses, and the connection ends behind it."""
    global failed
    got = exchange(where, data)
    heads = re.findall(rb"HTTP/1\.[01] (\d{3}) [^\r]*\r\n", got)
    good = len(heads) == 1 and int(heads[0]) in statuses and SECRET not in got and b"\r\nconnection: close\r\n" in got.lower()
    failed = failed or not good
    print("ok   " if good else "FAIL ", name, "" if good else repr(got)[:600], flush=True)


def sign(method, path):
    """The fields of a request signed for us-east-1 whose payload is not signed."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    fields = {"host": "x", "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": now}
    names = ";".join(sorted(fields))
    canon = "\n".join([method, path, "", *(f"{k}:{fields[k]}" for k in sorted(fields)), "", names, "UNSIGNED-PAYLOAD"])
    scope = f"{now[:8]}/us-east-1/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canon.encode()).hexdigest()])
    key = b"AWS4s3cr3t-key-1"
    for part in (now[:8], "us-east-1", "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    sig = hmac.new(key, text.encode(), "sha256").hexdigest()
    fields["authorization"] = f"AWS4-HMAC-SHA256 Credential=MAIN/{scope}, SignedHeaders={names}, Signature={sig}"
    return "".join(f"{k}: {v}\r\n" for k, v in fields.items()).encode()


def bodies():
    """(name, what follows the head): to a reader that ends lines at CRLF each is one body up to the last "0"."""
    at = 5 + len(HIDDEN)
    n = at + 2 + 64
    yield "a bare LF in a chunk's extension", (b"%x;\n" % n + b"F" * at + b"\r\n" + b"p" * (n - at - 2) + b"\r\n0\r\n\r\n" + HIDDEN
                                               + b"\r\n0\r\n\r\n")
    yield "a bare LF behind a chunk's size", b"3\nabc\r\n0\r\n\r\n" + HIDDEN
    yield "a bare LF behind a chunk's data", b"3\r\nabc\n0\r\n\r\n" + HIDDEN
    yield "a bare LF behind the last chunk", b"3\r\nabc\r\n0\n\n" + HIDDEN
    yield "a bare LF in a trailer", b"3\r\nabc\r\n0\r\nX: y\n\r\n" + HIDDEN
    yield "nothing wrong but what stands behind", b"3\r\nabc\r\n0\r\n\r\n" + HIDDEN


def main():
    plain, signed = sys.argv[1:]
    put = b"PUT /bkt/secret HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(SECRET) + SECRET
    assert b" 200 " in exchange(plain, put)
    for name, body in bodies():
        head = b"PUT /bkt/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        one(name, plain, head + body, 200, 400)
        head = b"PUT /bkt/x HTTP/1.1\r\n" + sign("PUT", "/bkt/x") + b"Transfer-Encoding: chunked\r\n\r\n"
        one(name + ", signed", signed, head + body, 200, 400)
    head = b"%s /bkt/x HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
    for method in (b"PUT", b"GET", b"POST", b"DELETE"):
        one(f"chunks in HTTP/1.0, {method.decode()}", plain, head % method + b"3\r\nabc\r\n0\r\n\r\n" + HIDDEN, 400)
    sys.exit(failed)


main()
