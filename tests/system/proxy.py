#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A balancer, see proxy.sh: python3 proxy.py HOST:PORT HOST:PORT-OF-TLS TOKEN

It speaks from 127.0.0.5, which both listeners name."""
import ipaddress
import socket
import ssl
import struct
import sys

BALANCER, STRANGER = "127.0.0.5", "127.0.0.6"


def header(client, command=0x21):
    """Of a client's connection; None: the balancer's own."""
    out = b"\r\n\r\n\0\r\nQUIT\n"
    if client is None:
        return out + struct.pack("!BBH", 0x20, 0, 0)
    a = ipaddress.ip_address(client)
    to = ipaddress.ip_address("192.0.2.1" if a.version == 4 else "2001:db8::1")
    body = a.packed + to.packed + struct.pack("!HH", 40000, 443) + b"\x04\0\3abc"
    return out + struct.pack("!BBH", command, 0x11 if a.version == 4 else 0x21, len(body)) + body


class Conn:
    def __init__(self, where, source, first, tls=False):
        host, port = where.rsplit(":", 1)
        self.s = socket.create_connection((host, int(port)), 20, source_address=(source, 0))
        self.s.sendall(first)
        if tls:
            c = ssl.create_default_context()
            c.check_hostname = False
            c.verify_mode = ssl.CERT_NONE
            self.s = c.wrap_socket(self.s)

    def ask(self, fields=b"", path=b"/bkt/o"):
        """Status, head and body of the answer; None: the connection ended."""
        try:
            self.s.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + fields + b"\r\n")
            got = b""
            while b"\r\n\r\n" not in got:
                b = self.s.recv(65536)
                if not b:
                    return None
                got += b
            head, body = got.split(b"\r\n\r\n", 1)
            lines = [x.lower() for x in head.split(b"\r\n")]
            n = int(next(x for x in lines if x.startswith(b"content-length:"))[15:])
            while len(body) < n:
                body += self.s.recv(65536)
            return int(head.split()[1]), head.lower(), body
        except ConnectionError:
            return None


def expect(what, got, status):
    print(what, got and got[0], flush=True)
    assert (got and got[0]) == status, (what, got)
    return got


def main():
    plain, secure, token = sys.argv[1:]
    for where, tls in ((plain, False), (secure, True)):
        for client in ("192.0.2.9", "2001:db8::9", None):
            c = Conn(where, BALANCER, header(client), tls)
            for _ in range(2):
                expect(f"forwarded {client}", c.ask(), 200)
        expect("no balancer", Conn(where, STRANGER, b"", tls).ask(), 200)
    expect("a header from no balancer", Conn(plain, STRANGER, header("192.0.2.9")).ask(), 400)
    expect("a header of version 1 from no balancer", Conn(plain, STRANGER, b"PROXY TCP4 192.0.2.9 192.0.2.1 1 2\r\n").ask(), 400)
    for first in (b"", b"PROXY TCP4 192.0.2.9 192.0.2.1 1 2\r\n", header("192.0.2.9", 0x22), header("192.0.2.9")[:-20] + b"\r\n"):
        expect("no header of version 2", Conn(plain, BALANCER, first).ask(), None)
    # rdma.bind_gid asks for the client's address, and the token names this machine.
    fields = b"x-amz-rdma-token: " + token.encode() + b"\r\n"
    got = expect("a token of another address", Conn(plain, BALANCER, header("192.0.2.9")).ask(fields, b"/bkt/none"), 403)
    assert b"<Code>AccessDenied</Code>" in got[2], got
    expect("a token of the client's address", Conn(plain, BALANCER, header("127.0.0.1")).ask(fields, b"/bkt/none"), 404)
    # limits.connections_per_address are the client's, not the balancer's.
    held = [Conn(plain, BALANCER, header(f"198.51.100.{i % 3}")) for i in range(60)]
    for c in held:
        expect("held", c.ask(), 200)
    expect("one more", Conn(plain, BALANCER, header("198.51.100.1")).ask(), None)
    expect("of another", Conn(plain, BALANCER, header("198.51.100.77")).ask(), 200)


if __name__ == "__main__":
    main()
