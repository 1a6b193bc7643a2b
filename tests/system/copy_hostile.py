#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""copy_hostile.py PORT_FILE: a server that lists keys which are no names for files, and lists that are none, by bucket.

    names     every kind of key that could hurt a client
    outside   keys that do not begin with what was asked for
    endless   a page that follows itself
    broken    a good page, and then one that is cut off
    refuses   a good page, and then 500
Each object is its own key as text."""
import http.server
import os
import sys
import urllib.parse

NAMES = ["ok", "sub/ok", "../escape", "/absolute", "sub/../../escape", "..", ".", "a/./b", "a//b", "n\0ul", "file", "file/below",
         "dir", "dir/below", "link/through", "linked", ".gantry-0123456789abcdef.part", "x/.gantry-1", "mark/", "full/", "é\x01ü",
         "long/" + "x" * 256, "\\..\\back", "~", "-rf", "sp ace", "new\nline"]


def page(keys, more="", prefix=""):
    body = "".join(f"<Contents><Key>{urllib.parse.quote(prefix + k, safe='')}</Key><Size>{size(k)}</Size><ETag>\"e\"</ETag></Contents>" for k in keys)
    return ("<ListBucketResult><EncodingType>url</EncodingType>" + body +
            (f"<IsTruncated>true</IsTruncated><NextContinuationToken>{more}</NextContinuationToken>" if more else "") + "</ListBucketResult>")


def size(key):
    return 0 if key == "mark/" else len(key.encode())


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("x-amz-request-id", "r1")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def list(self, bucket, query):
        again = "continuation-token" in query
        prefix = query.get("prefix", [""])[0]
        if bucket == "names":
            text = page(NAMES)
        elif bucket == "outside":
            text = page(["other/ok"])
        elif bucket == "endless":
            text = page(["ok"], "t", prefix)
        elif bucket == "refuses" and again:
            return self.answer(500, b"<Error><Code>InternalError</Code><Message>It broke</Message></Error>")
        else:
            text = page(["ok"], "" if again else "t", prefix)
            if bucket == "broken" and again:
                text = text[:60]
        return self.answer(200, text.encode())

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        bucket, _, key = url.path[1:].partition("/")
        query = urllib.parse.parse_qs(url.query)
        if "list-type" in query:
            return self.list(bucket, query)
        data = urllib.parse.unquote_to_bytes(key)
        n = len(data)
        return self.answer(206, data, [("etag", '"e"'), ("content-range", f"bytes 0-{n - 1}/{n}")])

    def do_HEAD(self):
        self.do_GET()

    def do_DELETE(self):
        open(sys.argv[1] + ".deleted", "a").write(self.path + "\n")
        self.answer(204)

    def do_PUT(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.answer(200, b"", [("etag", '"e"')])

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
with open(sys.argv[1] + ".new", "w") as f:
    f.write(str(server.server_address[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
