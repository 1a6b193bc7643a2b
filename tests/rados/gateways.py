# SPDX-License-Identifier: Apache-2.0
"""Gateways on one store, for tests that end, stop and start them: real daemons, without an adapter, on the cluster of CEPH_CONF."""

import hashlib
import http.client
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/system"))
from waits import until  # noqa: E402

BUILD = os.path.join(TOP, os.environ.get("BUILD", "build/release"))


class Gone(Exception):
    """No answer came: what was asked for may have been done, or not."""

    def __init__(self, e, gateway=None):
        super().__init__(str(e) or repr(e))
        self.timed_out = isinstance(e, TimeoutError)
        self.gateway = gateway  # that closed the connection, or did not take it


def is_stopped(process):
    with open("/proc/%d/stat" % process.pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "T"


class Ended(AssertionError):
    """A gateway that ended while it was starting."""


class Store:
    """A store of its own: a namespace of the cluster, and a directory."""

    def __init__(self, daemon=None, conf=None, rados="", meta="gantry.meta", data="gantry.data"):
        self.dir = tempfile.mkdtemp(prefix="gantry-gw.")
        self.daemon = daemon or BUILD + "/gantryd"
        self.conf = conf or os.environ["CEPH_CONF"]
        self.namespace = os.path.basename(self.dir)
        self.rados, self.pools = rados, (meta, data)
        self.memory, self.shards, self.progress = "", 4, "60s"  # of the gateways that are started next
        self.gateways = []
        subprocess.run([self.daemon, "-c", self.config("format"), "--format"], check=True, stdout=subprocess.DEVNULL)

    def config(self, name):
        path = "%s/%s.yaml" % (self.dir, name)
        with open(path, "w") as f:
            f.write('listen:\n  - { address: "127.0.0.1:0", dialect: s3, anonymous: true }\n')
            f.write('admin: { address: "127.0.0.1:0", socket: "%s/%s.sock" }\n' % (self.dir, name))
            f.write("cores: 1\nmemory: { buffers: 64MiB, index: 64MiB%s }\nrdma: { devices: none }\n" % self.memory)
            f.write("store: { backend: rados }\n")
            f.write('rados: { conf: "%s", user: admin, namespace: "%s", index_shards: %d, dead_after: 5s' % (
                self.conf, self.namespace, self.shards))
            f.write(", meta_pool: %s, data_pool: %s%s }\n" % (self.pools + (self.rados,)))
            f.write("limits: { s3_progress: %s, s3_total: 60s }\n" % self.progress)
        return path

    def fsck(self, *more):
        """Returns what --fsck says; [] is a clean store."""
        r = subprocess.run([self.daemon, "-c", self.config("fsck"), "--fsck", *more], capture_output=True, text=True)
        said = (r.stdout + r.stderr).splitlines()
        return [] if r.returncode == 0 else said or ["exit %d" % r.returncode]

    def ask_pool(self, pool, *words):
        """Returns the lines that the command prints, of this store's namespace."""
        return subprocess.run(["rados", "-c", self.conf, "-p", pool, "-N", self.namespace, *words], check=True,
                              capture_output=True, text=True).stdout.splitlines()

    def dead(self):
        """Returns the rows of gateways that are not cleaned up after yet: what they had under way --fsck leaves out."""
        return ["not cleaned up after: " + k for k in self.ask_pool(self.pools[0], "listomapkeys", "gantry") if k.startswith("x")]

    def end(self):
        for g in self.gateways:
            g.kill()
        for root, _, files in os.walk(self.dir, topdown=False):
            for f in files:
                os.unlink(os.path.join(root, f))
            os.rmdir(root)


class Gateway:
    def __init__(self, store, name, env=None):
        self.store, self.name = store, name
        self.env = dict(os.environ, **(env or {}))
        self.process = self.s3 = self.admin = None
        self.is_up = False  # False while it starts, too
        self.local = threading.local()
        self.starts = 0
        store.gateways.append(self)
        self.start()

    def start(self):
        ready = "%s/%s.ready" % (self.store.dir, self.name)
        self.is_up = False
        if os.path.exists(ready):
            os.unlink(ready)
        with open("%s/%s.log" % (self.store.dir, self.name), "a") as log:
            self.process = subprocess.Popen(
                [self.store.daemon, "-c", self.store.config(self.name), "--ready-file", ready],
                stdout=log, stderr=log, env=self.env)

        def is_ready():
            if self.process.poll() is not None:
                raise Ended("gateway %s ended at its start: %s" % (self.name, self.log()))
            return os.path.exists(ready) and open(ready).read().startswith("ready ")

        until("gateway %s is ready" % self.name, is_ready, 60)
        words = dict(w.split("=", 1) for w in open(ready).read().split() if "=" in w)
        self.starts += 1
        self.s3, self.admin = words["s3"], words["admin"]
        self.is_up = True

    def log_lines(self):
        """Warnings and errors of all its starts."""
        with open("%s/%s.log" % (self.store.dir, self.name)) as f:
            return [line for line in f if " warning " in line or " error " in line]

    def log(self):
        return "".join(self.log_lines()[-20:])

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.is_running():
            self.process.kill()
        if self.process:
            self.process.wait()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(60) == 0, "gateway %s: %s" % (self.name, self.log())

    def is_stopped(self):
        return is_stopped(self.process)

    def resume(self):
        self.signal(signal.SIGCONT)

    def ask(self, method, path, body=None, headers=None, timeout=90):
        """One request: status, headers, body; or Gone."""
        at = self.s3
        conn, now = getattr(self.local, "conn", None), time.monotonic()
        # The gateway closes one that has idled for limits.idle.
        if conn is None or self.local.at != at or now - self.local.used > 30:
            conn = self.local.conn = http.client.HTTPConnection(at, timeout=timeout)
            self.local.at = at
        self.local.used = now
        try:
            conn.request(method, path, body=body, headers=headers or {})
            r = conn.getresponse()
            return r.status, r.headers, r.read()
        except (OSError, http.client.HTTPException) as e:
            conn.close()
            self.local.conn = None
            raise Gone(e, self) from None

    def page(self, path, timeout=10):
        conn = http.client.HTTPConnection(self.admin, timeout=timeout)
        try:
            conn.request("GET", path)
            r = conn.getresponse()
            return r.status, r.read().decode()
        finally:
            conn.close()

    # ---- S3 ----

    def create_upload(self, path):
        status, _, body = self.ask("POST", path + "?uploads")
        if status == 503:
            raise Gone("503")
        assert status == 200, (status, body)
        return re.search(b"<UploadId>(.*?)</UploadId>", body).group(1).decode()

    def put_part(self, path, upload, number, body):
        """Returns the status and the part's ETag."""
        status, headers, _ = self.ask("PUT", "%s?partNumber=%d&uploadId=%s" % (path, number, upload), body)
        return status, headers.get("ETag")

    def complete(self, path, upload, etags, headers=None):
        xml = "".join("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>" % (n, e) for n, e in etags)
        status, _, body = self.ask("POST", "%s?uploadId=%s" % (path, upload),
                                   "<CompleteMultipartUpload>%s</CompleteMultipartUpload>" % xml, headers)
        # An error may come behind the first bytes of an answer.
        if status == 200 and b"<Error>" in body:
            code = re.search(b"<Code>(.*?)</Code>", body).group(1)
            return {b"PreconditionFailed": 412, b"NoSuchUpload": 404, b"NoSuchKey": 404, b"SlowDown": 503,
                    b"ServiceUnavailable": 503}.get(code, 500), body
        return status, body

    def abort(self, path, upload):
        return self.ask("DELETE", "%s?uploadId=%s" % (path, upload))[0]

    def list(self, bucket, prefix=""):
        """All keys of a bucket."""
        keys, token = [], ""
        while True:
            status, _, body = self.ask("GET", "/%s?list-type=2&prefix=%s%s" % (bucket, prefix, token))
            if status != 200:
                return None
            keys += [k.decode() for k in re.findall(b"<Key>(.*?)</Key>", body)]
            more = re.search(b"<NextContinuationToken>(.*?)</NextContinuationToken>", body)
            if not more:
                return keys
            token = "&continuation-token=" + urllib.parse.quote(more.group(1).decode(), safe="")


def some_bytes(name, size):
    """Bytes that only this name has."""
    return hashlib.shake_128(name.encode()).digest(size)
