#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that the HTTP library refuses by itself, see http_library.sh: python3 http_library.py S3 S3-TLS S3-BEHIND-BALANCERS SCALITY

Each is sent on a connection of its own, alone and behind a good request, and the answer is looked at byte by byte."""
import re
import socket
import ssl
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor

HOST = b"Host: localhost\r\n"
PUT = b"PUT /bkt/k HTTP/1.1\r\n" + HOST
GET = b"GET /bkt/k HTTP/1.1\r\n" + HOST
CHUNKED = PUT + b"Transfer-Encoding: chunked\r\n\r\n"
GOOD = b"GET /bkt/none HTTP/1.1\r\n" + HOST + b"\r\n"
# The largest head that the library itself takes is some 24 KiB.
CASES = [
    # name, bytes, statuses (0: no answer is fine), codes
    ("Content-Length with a letter", GET + b"Content-Length: 5x\r\n\r\n", {400}, {"InvalidRequest"}),
    # docs/s3.md: the one HEAD whose answer has a body, because the library names no method at that time.
    ("HEAD with a Content-Length with a letter", b"HEAD /bkt/k HTTP/1.1\r\n" + HOST + b"Content-Length: 5x\r\n\r\n", {400}, {"InvalidRequest"}),
    ("Content-Length with a letter, a body", PUT + b"Content-Length: 5x\r\n\r\nhello", {400}, {"InvalidRequest"}),
    ("Content-Length with a letter, a request behind it", PUT + b"Content-Length: 5x\r\n\r\n" + GOOD, {400}, {"InvalidRequest"}),
    ("Content-Length below 0", PUT + b"Content-Length: -1\r\n\r\nhello", {400}, {"InvalidRequest"}),
    ("Content-Length with a sign", PUT + b"Content-Length: +5\r\n\r\nhello", {400}, {"InvalidRequest"}),
    ("Content-Length that is empty", PUT + b"Content-Length: \r\n\r\nhello", {400}, {"InvalidRequest"}),
    ("Content-Length in hexadecimal", PUT + b"Content-Length: 0x5\r\n\r\nhello", {400}, {"InvalidRequest"}),
    ("Content-Length that is a list", PUT + b"Content-Length: 5, 5\r\n\r\nhello", {400}, {"InvalidRequest"}),
    ("Content-Length with a fraction", PUT + b"Content-Length: 5.0\r\n\r\nhello", {400}, {"InvalidRequest"}),
    ("Content-Length of 65 bits", PUT + b"Content-Length: 36893488147419103232\r\n\r\nhello", {400}, {"InvalidRequest"}),
    ("Content-Length of 64 bits", PUT + b"Content-Length: 18446744073709551615\r\n\r\nhello", {400}, {"EntityTooLarge"}),
    ("Content-Length twice", PUT + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", {400}, {"InvalidRequest"}),
    ("a line without a colon", GET + b"nocolon\r\n\r\n", {400}, {"InvalidRequest"}),
    ("a line without a colon, the first", b"GET /bkt/k HTTP/1.1\r\nnocolon\r\n" + HOST + b"\r\n", {400}, {"InvalidRequest"}),
    ("a field without a name", GET + b": y\r\n\r\n", {400}, {"InvalidRequest"}),
    ("a blank before the colon", GET + b"x : y\r\n\r\n", {400}, {"InvalidRequest"}),
    ("a NUL in a value", GET + b"x: y\0z\r\n\r\n", {400}, {"InvalidRequest"}),
    ("a head of 20 KiB", GET + b"x: " + b"y" * 20000 + b"\r\n\r\n", {431}, {"RequestHeaderSectionTooLarge"}),
    ("a head of 30 KiB", GET + b"x: " + b"y" * 30000 + b"\r\n\r\n", {431}, {"RequestHeaderSectionTooLarge"}),
    ("a head of 1 MiB", GET + b"x: " + b"y" * (1 << 20) + b"\r\n\r\n", {431}, {"RequestHeaderSectionTooLarge"}),
    ("300 fields", GET + b"x: y\r\n" * 300 + b"\r\n", {431}, {"RequestHeaderSectionTooLarge"}),
    ("3000 fields", GET + b"x: y\r\n" * 3000 + b"\r\n", {431}, {"RequestHeaderSectionTooLarge"}),
    ("a cookie of 6 KiB", GET + b"Cookie: " + b"a=b; " * 1200 + b"\r\n\r\n", {431, 404}, {"RequestHeaderSectionTooLarge", "NoSuchKey"}),
    ("a cookie of 7 KiB", GET + b"Cookie: " + b"a;" * 3500 + b"\r\n\r\n", {431}, {"RequestHeaderSectionTooLarge"}),
    ("a target of 9 KiB", b"GET /bkt/" + b"k" * 9000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", {400}, {"InvalidURI"}),
    ("a target of 30 KiB", b"GET /bkt/" + b"k" * 30000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", {400}, {"InvalidURI"}),
    ("4000 parameters", b"GET /bkt/k?" + b"a&" * 4000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", {431}, {"RequestHeaderSectionTooLarge"}),
    ("2600 parameters", b"GET /bkt/k?" + b"a=&" * 2600 + b" HTTP/1.1\r\n" + HOST + b"\r\n", {431}, {"RequestHeaderSectionTooLarge"}),
    ("a line that never ends", b"\x16\x03\x01" * 20000, {400}, {"InvalidURI"}),
    ("no version", b"GET /bkt/k\r\n" + HOST + b"\r\n", {400}, {"InvalidRequest"}),
    ("HTTP/0.9", b"GET /bkt/k HTTP/0.9\r\n" + HOST + b"\r\n", {505}, {"HttpVersionNotSupported"}),
    ("HTTP/2.0", b"GET /bkt/k HTTP/2.0\r\n" + HOST + b"\r\n", {505}, {"HttpVersionNotSupported"}),
    ("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {505}, {"HttpVersionNotSupported"}),
    ("a version that is none", b"GET /bkt/k JUNK\r\n" + HOST + b"\r\n", {400}, {"InvalidRequest"}),
    ("a version in small letters", b"GET /bkt/k http/1.1\r\n" + HOST + b"\r\n", {400}, {"InvalidRequest"}),
    ("no Host", b"GET /bkt/k HTTP/1.1\r\n\r\n", {400}, {"InvalidRequest"}),
    ("a method with a parenthesis", b"G(T /bkt/k HTTP/1.1\r\n" + HOST + b"\r\n", {400}, {"InvalidRequest"}),
    ("a blank in the target", b"GET /bkt/k x HTTP/1.1\r\n" + HOST + b"\r\n", {400}, {"InvalidURI"}),
    ("a line that begins with a blank", b" GET /bkt/k HTTP/1.1\r\n" + HOST + b"\r\n", {0}, set()),
    ("bytes that are no text", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", {0, 400}, {"InvalidRequest"}),
    ("a coding other than chunked", PUT + b"Transfer-Encoding: gzip\r\n\r\nhello", {400, 501}, {"InvalidRequest", "NotImplemented"}),
    ("two statements of the length", PUT + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", {400},
     {"InvalidRequest"}),
    ("a chunk whose size is no number", CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n", {400}, {"InvalidRequest"}),
    ("a chunk whose size is no number, the second", CHUNKED + b"5\r\nhello\r\n-1\r\nhello\r\n0\r\n\r\n", {400}, {"InvalidRequest"}),
    ("a chunk of 80 bits", CHUNKED + b"fffffffffffffffffff0\r\nhello\r\n0\r\n\r\n", {400}, {"InvalidRequest"}),
    ("a chunk without its end", CHUNKED + b"5\r\nhelloXX0\r\n\r\n", {400}, {"InvalidRequest"}),
    ("a trailer without a colon", CHUNKED + b"5\r\nhello\r\n0\r\nnocolon\r\n\r\n", {400}, {"InvalidRequest"}),
    ("a trailer of 40 KiB", CHUNKED + b"5\r\nhello\r\n0\r\nX: " + b"y" * 40000 + b"\r\n\r\n", {431, 400}, {"RequestHeaderSectionTooLarge"}),
    ("chunks of a GET", GET + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", {400}, {"InvalidRequest"}),
]
failed = False


def connect(where, tls):
    host, port = where.rsplit(":", 1)
    s = socket.create_connection((host, int(port)), 30)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        s = context.wrap_socket(s)
    return s


def receive(s, data):
    """Sends data and returns all that comes, and how it ended."""
    got = b""
    try:
        s.sendall(data)
    except OSError:
        pass  # it need not be read to its end
    try:
        while b := s.recv(65536):
            got += b
    except TimeoutError:
        return got, "the connection is still open"
    except OSError as e:
        return got, "" if not got else f"the connection broke: {e}"
    return got, ""


def head_of(s):
    """Reads one answer of a connection that goes on."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += s.recv(65536)
    head, body = got.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"\r\nContent-Length: (\d+)", head).group(1))
    while len(body) < length:
        body += s.recv(65536)
    return head


def spelled(name):
    """A name as AWS spells it."""
    if name.startswith(("x-amz-", "x-gantry-")):
        return name == name.lower()
    return name == "ETag" or name == "-".join(w.capitalize() for w in name.lower().split("-"))


def wrong_with(got, statuses, codes):
    """Returns what is wrong with all that came back, or ''."""
    if not got:
        return "" if 0 in statuses else "no answer"
    head, _, body = got.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    m = re.fullmatch(r"HTTP/1\.1 (\d{3}) [ -~]+", lines[0])
    if not m or int(m.group(1)) not in statuses:
        return f"the status line is {lines[0]!r}"
    fields = [line.split(": ", 1) for line in lines[1:]]
    names = [n for n, _ in fields]
    if len({n.lower() for n in names}) != len(names):
        return "a field came twice"
    if bad := [n for n in names if not spelled(n)]:
        return f"not as AWS spells them: {bad}"
    have = dict(fields)
    if have.get("Content-Type") != "application/xml" or have.get("Content-Length") != str(len(body)) or "Date" not in have:
        return f"the fields are {fields}"
    if not body.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>') or b"<html" in body:
        return "the body is no error of S3"
    error = ET.fromstring(body)
    if error.findtext("Code") not in codes:
        return f"the code is {error.findtext('Code')}"
    if error.findtext("RequestId") != have.get("x-amz-request-id") or not error.findtext("Message"):
        return "there is no message, or the id is another"
    return ""


def say(name, wrong, got=b""):
    global failed
    failed = failed or bool(wrong)
    print("ok   " if not wrong else "FAIL ", name, wrong, repr(got[:700]) if wrong else "", flush=True)


def play(case, where, over_tls, behind):
    name, data, statuses, codes = case
    with connect(where, over_tls) as s:
        if behind:
            s.sendall(GOOD)
            head_of(s)
        got, end = receive(s, data)
    # A request that the daemon takes may keep its connection: nothing was malformed then.
    goes_on = got.startswith(b"HTTP/1.1 404 ") and 404 in statuses
    wrong = wrong_with(got, statuses, codes) or ("" if goes_on else end)
    if not wrong and got and not goes_on and b"\r\nConnection: close\r\n" not in got:
        wrong = "it does not say that the connection ends"
    return f"{name}{', TLS' * over_tls}{', behind a request' * behind}", wrong, got


def main():
    plain, tls, balanced, scality = sys.argv[1:]
    # Several at once: over TLS the daemon waits for the end of each connection.
    with ThreadPoolExecutor(8) as pool:
        played = [pool.submit(play, case, where, over_tls, behind)
                  for case in CASES for where, over_tls in ((plain, False), (tls, True)) for behind in (False, True)]
        for p in played:
            say(*p.result())
    # In pieces: the library meets the line in another call than the one before it.
    with connect(plain, False) as s:
        for piece in (b"GET /bkt/k HTTP/1.1\r\n", HOST, b"nocol"):
            s.sendall(piece)
            s.settimeout(30)
        got, end = receive(s, b"on\r\n\r\n")
    say("a line without a colon, in pieces", wrong_with(got, {400}, {"InvalidRequest"}) or end, got)
    # A head that never ends: limits.head is 2 s.
    with connect(plain, False) as s:
        got, end = receive(s, b"GET /bkt/k HTTP/1.1\r\nHo")
    say("half a head", wrong_with(got, {408}, {"RequestTimeout"}) or end, got)
    with connect(balanced, False) as s:
        got, end = receive(s, b"\r\n\r\n\0\r\nQUIT\n!\x11\0\x0c\x7f\0\0\1\x7f\0\0\1\0\1\0\1" + GOOD)
    say("a PROXY header of a stranger", wrong_with(got, {400}, {"InvalidRequest"}) or end, got)
    # The other dialect has its own form.
    with connect(scality, False) as s:
        got, end = receive(s, b"GET /k HTTP/1.1\r\n" + HOST + b"Content-Length: 5x\r\n\r\n")
    say("the Scality dialect", end or ("" if re.fullmatch(rb"HTTP/1\.1 400 Bad Request\r\n.*\r\ncontent-type: text/plain\r\n.*\r\n\r\n"
                                                         rb"InvalidRequest: [^<]*\n", got, re.S) else "another form"), got)
    sys.exit(failed)


main()
