# SPDX-License-Identifier: Apache-2.0
"""Signed requests as raw bytes, for tests in which one tenant sends by the ten thousand what no SDK would: AWS SigV4 in the header."""
import hashlib
import hmac
import socket
import time

EMPTY = hashlib.sha256(b"").hexdigest()


def _mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Tenant:
    """One access key at one listener (host:port)."""

    def __init__(self, address, key, secret):
        self.host, self.key = address, key
        self.at = (address.rsplit(":", 1)[0], int(address.rsplit(":", 1)[1]))
        self.stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self.scope = f"{self.stamp[:8]}/us-east-1/s3/aws4_request"
        k = _mac(b"AWS4" + secret.encode(), self.stamp[:8])
        for text in ("us-east-1", "s3", "aws4_request"):
            k = _mac(k, text)
        self.signing_key = k

    def head(self, method, path, query="", headers=(), payload=EMPTY):
        """The head of a request.  path and query as they are signed; headers: lower-case names, all signed but content-length."""
        fields = sorted([("host", self.host), ("x-amz-content-sha256", payload), ("x-amz-date", self.stamp), *headers])
        signed = [(n, v) for n, v in fields if n not in ("content-length", "transfer-encoding")]
        names = ";".join(n for n, _ in signed)
        canonical = "\n".join([method, path, query, *(f"{n}:{v}" for n, v in signed), "", names, payload])
        text = "\n".join(["AWS4-HMAC-SHA256", self.stamp, self.scope, hashlib.sha256(canonical.encode()).hexdigest()])
        signature = _mac(self.signing_key, text).hex()
        lines = [f"{method} {path}{'?' + query if query else ''} HTTP/1.1", *(f"{n}: {v}" for n, v in fields),
                 f"authorization: AWS4-HMAC-SHA256 Credential={self.key}/{self.scope}, SignedHeaders={names}, Signature={signature}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def connect(self, source="127.0.0.1"):
        s = socket.create_connection(self.at, source_address=(source, 0), timeout=120)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def ask(self, method, path, query="", headers=(), body=b"", source="127.0.0.1"):
        """Sends one request on a connection of its own; status and body."""
        if body or method in ("PUT", "POST"):
            headers = [*headers, ("content-length", str(len(body)))]
        with self.connect(source) as s:
            s.sendall(self.head(method, path, query, headers, hashlib.sha256(body).hexdigest()) + body)
            return answer(s, method)


def answer(s, method="GET"):
    """Reads one answer; status and body."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = s.recv(1 << 16)
        if not more:
            raise EOFError(f"no answer, but {data!r}")
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    status = int(head.split()[1])
    if status == 100:
        raise AssertionError("100 Continue was not asked for")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while method != "HEAD" and len(body) < length:
        more = s.recv(1 << 16)
        if not more:
            raise EOFError("the answer ends in its middle")
        body += more
    return status, body
