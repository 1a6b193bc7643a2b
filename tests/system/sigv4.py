#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Signed requests in random spellings, and what an oracle of its own makes of them (sigv4.sh): sigv4.py HOST:PORT KEY SECRET"""
import hashlib
import hmac
import os
import random
import re
import socket
import sys
import time
from urllib.parse import quote, unquote_to_bytes
from xml.etree import ElementTree

ADDRESS, PORT = sys.argv[1].rsplit(":", 1)
KEY, SECRET = sys.argv[2:4]
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
N = int(os.environ.get("N", "1500"))
rng = random.Random(SEED)
EMPTY = hashlib.sha256(b"").hexdigest()
STAMP = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
SCOPE = f"{STAMP[:8]}/us-east-1/s3/aws4_request"
failed = []


# ---- the oracle: what a target means, what is signed

class Refused(Exception):
    pass


def decode(raw, plus):
    if re.search(rb"%(?![0-9A-Fa-f]{2})", raw):
        raise Refused("InvalidURI")
    out = unquote_to_bytes(raw.replace(b"+", b" ") if plus else raw)
    if b"\0" in out:
        raise Refused("InvalidURI")
    return out


def encode(b, slash):
    return quote(b, safe="/-_.~" if slash else "-_.~").encode()


KNOWN = {b"prefix", b"delimiter", b"max-keys", b"marker", b"encoding-type", b"list-type", b"start-after", b"acl", b"tagging", b"partNumber"}


def read(target):
    """(path, {name: value}) of a target; the first of a stranger's values counts."""
    if re.search(rb"[\x00-\x20\x7f#]", target):
        raise Refused("InvalidURI")
    raw, _, query = target.partition(b"?")
    path, params = decode(raw, False), {}
    for piece in query.split(b"&"):
        name, _, value = piece.partition(b"=")
        name, value = decode(name, True), decode(value, True)
        if not name:
            continue
        header = name.lower().startswith(b"x-amz-")
        twins = [n for n in params if n == name or (header and n.lower() == name.lower())]
        if twins and (header or name in KNOWN):
            raise Refused("InvalidArgument")
        if not twins:
            params[name] = value
    return path, params


def canonical(path, params):
    pairs = sorted((encode(n, False), encode(v, False)) for n, v in params.items() if n != b"X-Amz-Signature")
    return encode(path, True), b"&".join(n + b"=" + v for n, v in pairs)


def mac(key, text):
    return hmac.new(key, text, hashlib.sha256).digest()


SIGNING = mac(mac(mac(mac(b"AWS4" + SECRET.encode(), STAMP[:8].encode()), b"us-east-1"), b"s3"), b"aws4_request")


def sign(method, path, query, headers, payload):
    text = b"\n".join([method.encode(), path, query] + [f"{n}:{v}".encode() for n, v in headers] + [b"", ";".join(n for n, _ in headers).encode(), payload.encode()])
    to_sign = "\n".join(["AWS4-HMAC-SHA256", STAMP, SCOPE, hashlib.sha256(text).hexdigest()])
    return hmac.new(SIGNING, to_sign.encode(), hashlib.sha256).hexdigest(), text, to_sign


# ---- requests

class Conn:
    def __init__(self):
        self.s, self.buf = None, b""

    def ask(self, method, target, headers):
        for _ in range(2):
            if not self.s:
                self.s, self.buf = socket.create_connection((ADDRESS, int(PORT)), 60), b""
            head = b"%s %s HTTP/1.1\r\n" % (method.encode(), target) + b"".join(f"{n}: {v}\r\n".encode() for n, v in headers)
            try:
                self.s.sendall(head + b"\r\n")
                got = self.answer(method)
            except (BrokenPipeError, ConnectionResetError):
                got = None
            if got:
                return got
            self.s = None  # closed after the last answer
        raise SystemExit("no answer to %r" % target)

    def answer(self, method):
        while b"\r\n\r\n" not in self.buf:
            b = self.s.recv(65536)
            if not b:
                return None
            self.buf += b
        head, self.buf = self.buf.split(b"\r\n\r\n", 1)
        fields = {k.strip().lower(): v.strip() for k, v in (x.split(b":", 1) for x in head.split(b"\r\n")[1:])}
        n = 0 if method == "HEAD" else int(fields.get(b"content-length", b"0"))
        while len(self.buf) < n:
            self.buf += self.s.recv(65536)
        body, self.buf = self.buf[:n], self.buf[n:]
        if fields.get(b"connection", b"").lower() == b"close":
            self.s = None
        return int(head.split()[1]), fields, body


conn = Conn()


def code_of(body):
    m = re.search(rb"<Code>([^<]*)</Code>", body)
    return m.group(1).decode() if m else ""


def ask(method, host, target, presigned=False, spoil=False):
    """Signs what the oracle makes of the target, and sends the target."""
    path, params = read(target)
    if presigned:
        extra = {b"X-Amz-Algorithm": b"AWS4-HMAC-SHA256", b"X-Amz-Credential": f"{KEY}/{SCOPE}".encode(), b"X-Amz-Date": STAMP.encode(),
                 b"X-Amz-Expires": b"600", b"X-Amz-SignedHeaders": b"host"}
        sep = b"&" if b"?" in target else b"?"
        target += sep + b"&".join(n + b"=" + respell(v, False) for n, v in extra.items())
        path, params = read(target)
        headers = [("host", host)]
        signature, text, to_sign = sign(method, *canonical(path, params), headers, "UNSIGNED-PAYLOAD")
        if spoil:
            signature = "0" * 64
        target += b"&X-Amz-Signature=" + signature.encode()
    else:
        headers = [("host", host), ("x-amz-content-sha256", EMPTY), ("x-amz-date", STAMP)]
        signature, text, to_sign = sign(method, *canonical(path, params), headers, EMPTY)
        if spoil:
            signature = "0" * 64
        headers.append(("authorization", f"AWS4-HMAC-SHA256 Credential={KEY}/{SCOPE},SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature={signature}"))
    return conn.ask(method, target, headers + ([("content-length", "0")] if method == "PUT" else [])), text, to_sign


# ---- random targets

UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"


def respell(b, in_path):
    """Any spelling that means these bytes."""
    out = b""
    for c in b:
        raw = c in UNRESERVED or c in b"=:@,$;!*'()/" or c >= 0x80 or (in_path and c in b"+&") or (not in_path and c in b"?")
        if raw and rng.random() < 0.6:
            out += bytes([c])
        elif c == 0x20 and not in_path and rng.random() < 0.5:
            out += b"+"
        else:
            out += (b"%%%02X" if rng.random() < 0.5 else b"%%%02x") % c
    return out


ATOMS = ["a", "dt=2024-01-01", "b c", "+", "%", "%20", "ü", "~", "x.y", "..", ".", "&", "=", "?acl", "'", "(1)", "*", ":", "@", ",", "$", ";", "!", "/", "//", "€", "\\", "\"", "{}", "|", "^"]


def random_key():
    return "".join(rng.choice(ATOMS) for _ in range(rng.randrange(1, 6))).encode()


def keys():
    """What is stored under one spelling is read under another, in either style and with either kind of signature."""
    made = set()
    for _ in range(N // 3):
        key = random_key()
        virtual = rng.random() < 0.3 and not key.startswith(b"//")
        host = "bkt.s3.test" if virtual else "s3.test"
        stem = b"/" if virtual else rng.choice([b"/bkt/", b"/b%6bt/", b"/bkt%2F", b"/bkt%2f"])
        put, _, _ = ask("PUT", host, stem + respell(key, True), rng.random() < 0.3)
        made.add(key)
        got, _, _ = ask("GET", "s3.test", b"/bkt/" + respell(key, True) + rng.choice([b"", b"?v=1", b"?x-id=GetObject&b=2&b=1"]), rng.random() < 0.5)
        if put[0] != 200 or got[0] != 200:
            failed.append(f"key {key!r}: {put[0]} {code_of(put[2])}, {got[0]} {code_of(got[2])}")
    return made


def lists(made):
    listed = set()
    marker = ""
    while True:
        (status, _, body), _, _ = ask("GET", "s3.test", b"/bkt?encoding-type=url&max-keys=100&list-type=2" + (b"&continuation-token=" + marker.encode() if marker else b""))
        if status != 200:
            failed.append(f"the list: {status} {code_of(body)}")
            return
        x = ElementTree.fromstring(body)
        ns = "{http://s3.amazonaws.com/doc/2006-03-01/}"
        listed |= {unquote_to_bytes(e.text) for e in x.iter(ns + "Key")}
        marker = x.findtext(ns + "NextContinuationToken")
        if not marker:
            break
        if re.search("[^A-Za-z0-9_-]", marker):
            failed.append(f"a continuation token needs escapes: {marker}")
    if listed != made:
        failed.append(f"listed and not made {sorted(listed - made)[:3]}, made and not listed {sorted(made - listed)[:3]}")
    for _ in range(N // 10):
        prefix = rng.choice(sorted(made))[:rng.randrange(1, 9)]
        try:
            prefix.decode()
        except UnicodeDecodeError:
            continue
        query = [b"prefix=" + respell(prefix, False), rng.choice([b"%6cist-type=2", b"list-type=%32"]), b"encoding-type=url", rng.choice([b"delimiter", b"v=1&v=2", b"&"])]
        rng.shuffle(query)
        (status, _, body), _, _ = ask("GET", "s3.test", b"/bkt?" + b"&".join(query), rng.random() < 0.3)
        got = {unquote_to_bytes(e.text) for e in ElementTree.fromstring(body).iter("{http://s3.amazonaws.com/doc/2006-03-01/}Key")} if status == 200 else status
        if got != {k for k in made if k.startswith(prefix)}:
            failed.append(f"prefix {prefix!r}: {got}")


PIECES = [b"/", b"bkt", b"%2F", b"+", b"%20", b"%2B", b"a", b"%61", b"=", b"&", b"%26", b"%3D", b"?", b"%3F", b"prefix", b"%70refix", b"acl", b"v", b"x-amz-meta-a",
          b"max-keys=1", b"~", b"%7E", b"..", b"%", b"%25", b"%00", b"-", b";", "ü".encode(), b"%c3%BC", b"\xff", b"#", b"\x01"]


def rubbish():
    """Whatever the target: refused before as the oracle refuses it, or the oracle's signature holds and a wrong one does not."""
    for _ in range(N):
        target = b"/bkt" + b"".join(rng.choice(PIECES) for _ in range(rng.randrange(9)))
        presigned = rng.random() < 0.3
        try:
            (status, _, body), _, _ = ask("GET", "s3.test", target, presigned)
            want = None
        except Refused as r:
            want = str(r)
            status, _, body = conn.ask("GET", target, [("host", "s3.test")])
        got = code_of(body)
        if (want and got != want) or (not want and (status == 403 or status >= 502)):
            failed.append(f"{target!r}: {status} {got}, want {want or 'no 403'}")


def refusals():
    """A wrong signature is told what it was held against."""
    for _ in range(N // 10):
        target = b"/bkt/" + respell(random_key(), True) + b"?v=" + respell(random_key(), False)
        (status, _, body), text, to_sign = ask("GET", "s3.test", target, rng.random() < 0.5, True)
        x = ElementTree.fromstring(body)
        if status != 403 or x.findtext("Code") != "SignatureDoesNotMatch" or x.findtext("CanonicalRequest") != text.decode() or x.findtext("StringToSign") != to_sign:
            failed.append(f"{target!r}: {status} {body!r}, want {text!r}")


def regions():
    """A signature for no region is good; one for another is told the region, in the body and in a header, also on HEAD."""
    global SCOPE, SIGNING
    was = SCOPE, SIGNING
    for region, want in ("", 200), ("eu-north-9", 400):
        SCOPE = f"{STAMP[:8]}/{region}/s3/aws4_request"
        SIGNING = mac(mac(mac(mac(b"AWS4" + SECRET.encode(), STAMP[:8].encode()), region.encode()), b"s3"), b"aws4_request")
        for method in "GET", "HEAD":
            for target in b"/bkt", b"/bkt/nix":
                (status, fields, body), _, _ = ask(method, "s3.test", target)
                good = status == (want if want != 200 or target == b"/bkt" else 404) and fields.get(b"x-amz-bucket-region") == b"us-east-1"
                if not good or (want == 400 and method == "GET" and b"<Region>us-east-1</Region>" not in body):
                    failed.append(f"{method} {target} for region {region!r}: {status} {fields} {body}")
    SCOPE, SIGNING = was
    for method, target in ("GET", b"/nix"), ("HEAD", b"/nix"), ("DELETE", b"/nix"), ("GET", b"/bkt?location"), ("GET", b"/bkt/k?torrent"):
        (status, fields, body), _, _ = ask(method, "s3.test", target)
        if fields.get(b"x-amz-bucket-region") != b"us-east-1":
            failed.append(f"{method} {target}: {status} without x-amz-bucket-region")


def nobody():
    """Nothing is said of versions, uploads and subresources to who may not ask."""
    global KEY
    hashes = EMPTY, "UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "nonsense"
    for method, target, code in (("GET", b"/bkt/k?versionId=x", "NoSuchVersion"), ("DELETE", b"/bkt/k?versionId=x", "NoSuchVersion"),
                                 ("HEAD", b"/bkt/k?versionId=x", ""), ("GET", b"/bkt/k?torrent", "NotImplemented"), ("PUT", b"/bkt/k?v=1", "NotImplemented"),
                                 ("PUT", b"/bkt/k?partNumber=1&uploadId=x", "NoSuchUpload"), ("GET", b"/?torrent", "NotImplemented")):
        (status, _, body), _, _ = ask(method, "s3.test", target)
        if status not in (404, 501) or code_of(body) != code:
            failed.append(f"{method} {target}: {status} {code_of(body)}, want {code}")
        length = [("content-length", "0")] if method == "PUT" else []
        for payload in hashes:
            for auth in [], [("x-amz-date", STAMP), ("authorization", f"AWS4-HMAC-SHA256 Credential={KEY}/{SCOPE},SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature={EMPTY}")]:
                status, _, body = conn.ask(method, target, [("host", "s3.test"), ("x-amz-content-sha256", payload)] + auth + length)
                if status != 403 or code_of(body) not in ("AccessDenied", "SignatureDoesNotMatch", ""):
                    failed.append(f"{method} {target} of nobody ({payload}, {bool(auth)}): {status} {code_of(body)}")
        if not target.startswith(b"/?"):
            KEY, was = "AKELSE", KEY
            (status, _, body), _, _ = ask(method, "s3.test", target)
            KEY = was
            if status != 403 or code_of(body) not in ("AccessDenied", ""):
                failed.append(f"{method} {target} of another's key: {status} {code_of(body)}")


print(f"SEED={SEED}")
(status, _, body), _, _ = ask("PUT", "s3.test", b"/bkt")
assert status == 200, body
lists(keys())
rubbish()
refusals()
regions()
nobody()
for line in failed[:20]:
    print(line)
sys.exit(1 if failed else 0)
