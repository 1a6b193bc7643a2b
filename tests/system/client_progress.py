# SPDX-License-Identifier: Apache-2.0
"""The progress of put, get and sync on a terminal.  Usage: client_progress.py GANTRY, in an empty directory.

The server holds an answer back until the line that is wanted was drawn, so that no time decides."""

import fcntl
import http.server
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading

GANTRY = sys.argv[1]
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "GANTRY_"))}
COLUMNS = 64
MIB = 1 << 20


class Server(http.server.ThreadingHTTPServer):
    """Answers GETs of ranges and PUTs; before(handler) runs before each answer."""

    daemon_threads = True

    def __init__(self, size, before):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_PUT(self):
                left = int(self.headers["content-length"])
                while left:
                    left -= len(self.rfile.read(min(left, MIB)))
                before(self)
                self.send_response(200)
                self.send_header("etag", '"e"')
                self.send_header("content-length", "0")
                self.end_headers()

            def do_GET(self):
                first, last = map(int, re.match(r"bytes=(\d+)-(\d+)", self.headers["range"]).groups())
                last = min(last, size - 1)
                before(self)
                self.send_response(206)
                self.send_header("etag", '"e"')
                self.send_header("content-range", "bytes %d-%d/%d" % (first, last, size))
                self.send_header("content-length", str(last + 1 - first))
                self.end_headers()
                self.wfile.write(bytes(last + 1 - first))

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/bkt/" % self.server_port
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Terminal:
    """Runs gantry with standard error, or both outputs, on a terminal, and reads what it shows."""

    def __init__(self, *words, both=False):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        self.text = ""
        self.grown = threading.Condition()
        self.process = subprocess.Popen([GANTRY, "--no-rdma", *words], env=ENV, stderr=slave,
                                        stdout=slave if both else subprocess.PIPE)
        os.close(slave)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            with self.grown:
                self.text += data.decode()
                self.grown.notify_all()
            if not data:
                return

    def wait(self, pattern):
        """Waits until the terminal has shown it."""
        with self.grown:
            if not self.grown.wait_for(lambda: re.search(pattern, self.text), 60):
                os._exit(print("no %s in %r" % (pattern, self.text)) or 1)

    def end(self):
        rc = self.process.wait(60)
        self.thread.join()
        assert rc == 0, (rc, self.text)
        # What is drawn fits, and the end leaves an empty line or the report.
        for line in re.findall(r"\r([^\r\n]*)\033\[K", self.text):
            assert len(line) < COLUMNS, (len(line), line)
        return self.text


terminal = None
ready = threading.Event()


def run(*words, **more):
    global terminal
    ready.clear()
    terminal = Terminal(*words, **more)
    ready.set()
    return terminal.end()


def shown(pattern):
    ready.wait()
    terminal.wait(pattern)


def file_of(name, size):
    with open(name, "wb") as f:
        f.truncate(size)


# ---- a put that is one request: its size and how long it has taken, and no rate that nothing is known of
file_of("big", 20 * MIB)
server = Server(0, lambda h: shown(r"0 B of 20\.0 MiB \(0 %\), 1 s so far, no answer yet"))
text = run("put", "big", server.url + "big")
assert text.endswith("\r\033[K"), text
assert "left" not in text, text

# ---- a get in pieces: rate and time left
pieces = {0: r"0 B.*no answer yet", 16 * MIB: r"16\.0 MiB of 40\.0 MiB \(40 %\)",
          32 * MIB: r"32\.0 MiB of 40\.0 MiB \(80 %\), [0-9.]+ .?i?B/s, [0-9a-z ]+ left"}


def piece(h):
    shown(pieces[int(re.match(r"bytes=(\d+)", h.headers["range"]).group(1))])


server = Server(40 * MIB, piece)
run("--jobs", "1", "get", server.url + "big", "back")
assert os.path.getsize("back") == 40 * MIB

# ---- files of a tree: one display, whose total is that of the tree; a line of a file is on a line of its own
os.mkdir("tree")
for i in range(4):
    file_of("tree/%d" % i, MIB)
os.symlink("0", "tree/link")
todo = iter(range(4))
wants = [r"0 B of 4\.0 MiB", r"1\.0 MiB of 4\.0 MiB \(25 %\)", r"2\.0 MiB of 4\.0 MiB \(50 %\)", r"3\.0 MiB of 4\.0 MiB \(75 %\).*left"]
server = Server(0, lambda h: shown(wants[next(todo)]))
text = run("--jobs", "1", "--recursive", "cp", "tree", server.url + "tree/", both=True)
assert re.search(r"\r\033\[Kcp: 4 files, 4\.0 MiB", text), text

# ---- nothing on a terminal with --quiet and --json; nothing elsewhere within the first minute
slow = threading.Event()
server = Server(0, lambda h: slow.wait(0.7))
assert run("--quiet", "put", "big", server.url + "big") == ""
assert run("--json", "put", "big", server.url + "big") == ""
have = subprocess.run([GANTRY, "--no-rdma", "put", "big", server.url + "big"], capture_output=True, env=ENV)
assert (have.returncode, have.stderr) == (0, b""), have
