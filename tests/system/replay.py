# SPDX-License-Identifier: Apache-2.0
"""A relay that captures what a client of libgantry sends, and sends it again.

Usage: replay.py LIBGANTRY OPEN SIGNED MODE, where OPEN and SIGNED are host:port of two listeners of one daemon: what lies in
the store is looked at through the first, and SIGNED is attacked.  MODE is auth.replay of the daemon.
"""

import ctypes
import mmap
import socket
import sys
import threading
import urllib.request

from waits import until

LIB, OPEN, SIGNED, MODE = sys.argv[1:5]
SIGNED = (SIGNED.rsplit(":", 1)[0], int(SIGNED.rsplit(":", 1)[1]))
N = 1 << 20
size_t = ctypes.c_size_t
g = ctypes.CDLL(LIB)


class Options(ctypes.Structure):
    _fields_ = [("size", size_t), ("flags", ctypes.c_uint), ("dialect", ctypes.c_int), ("device", ctypes.c_char_p),
                ("dc_key", ctypes.c_char_p), ("config_file", ctypes.c_char_p), ("connect_ms", ctypes.c_uint),
                ("timeout_ms", ctypes.c_uint), ("max_callback", ctypes.c_uint64), ("access_key", ctypes.c_char_p),
                ("secret_key", ctypes.c_char_p), ("session_token", ctypes.c_char_p), ("region", ctypes.c_char_p),
                ("target_life_ms", ctypes.c_uint)]


# ---- the relay on the way ----

captured = []
listener = socket.create_server(("127.0.0.1", 0))
URL = b"http://127.0.0.1:%d" % listener.getsockname()[1]


def pump(a, b, record):
    try:
        while data := a.recv(65536):
            if record:
                captured.append(data)
            b.sendall(data)
    except OSError:
        pass


def relay():
    while True:
        a = listener.accept()[0]
        b = socket.create_connection(SIGNED)
        threading.Thread(target=pump, args=(a, b, True), daemon=True).start()
        threading.Thread(target=pump, args=(b, a, False), daemon=True).start()


threading.Thread(target=relay, daemon=True).start()


def replay(request, address):
    """Sends it; gives the status back and the answer as text."""
    with socket.create_connection(SIGNED, source_address=(address, 0)) as s:
        s.sendall(request)
        s.settimeout(60)
        answer = b""
        while b"\r\n\r\n" not in answer:
            data = s.recv(65536)
            assert data, answer
            answer += data
        head = answer.split(b"\r\n\r\n")[0].lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0]) if b"content-length:" in head else 0
        while len(answer) < len(head) + 4 + length:
            data = s.recv(65536)
            assert data, answer
            answer += data
    return int(answer.split()[1]), answer.decode()


# ---- the client ----


class Victim:
    """One context with a registered buffer."""

    def __init__(self, target_life_ms):
        o = Options(size=ctypes.sizeof(Options), access_key=b"AKVICTIM", secret_key=b"victim-secret",
                    config_file=b"", timeout_ms=60000, target_life_ms=target_life_ms)
        self.h = ctypes.c_void_p()
        assert g.gantry_open(ctypes.byref(o), ctypes.byref(self.h)) == 0
        self.mem = mmap.mmap(-1, N)
        self.ptr = ctypes.c_void_p(ctypes.addressof((ctypes.c_char * N).from_buffer(self.mem)))
        assert g.gantry_register(self.h, self.ptr, size_t(N), 0) == 0

    def fill(self, word):
        self.mem[:] = word * (N // len(word))

    def put(self, key, word):
        """Puts the word, and gives the request back as it was on the wire."""
        self.fill(word)
        captured.clear()
        assert g.gantry_put(self.h, URL + key, self.ptr, size_t(N), None, None) == 0
        return b"".join(captured)

    def get(self, key):
        captured.clear()
        assert g.gantry_get(self.h, URL + key, self.ptr, size_t(N), ctypes.c_uint64(0), None, None) == 0
        return b"".join(captured)


def stored(key):
    with urllib.request.urlopen("http://%s%s" % (OPEN, key.decode())) as f:
        return f.read()


def is_refused(answer):
    status, text = answer
    assert status == 503 and "<Code>SlowDown</Code>" in text and "sign the request again" in text, answer
    assert "retry-after:" in text.lower() and "x-amz-rdma-reply" not in text.lower(), answer


victim = Victim(3600000)  # its targets live for the whole test: nothing else protects it
request = victim.put(b"/bkt/ckpt", b"CKP1")
assert b"x-amz-rdma-token" in request.lower() and request.endswith(b"\r\n\r\n"), request
victim.fill(b"KEY!")  # what the buffer has next is nobody's business
is_refused(replay(request, "127.0.0.2"))
assert stored(b"/bkt/ckpt")[:8] == b"CKP1CKP1", stored(b"/bkt/ckpt")[:8]

victim.put(b"/bkt/old", b"OLD!")
victim.fill(b"none")
request = victim.get(b"/bkt/old")
assert victim.mem[:8] == b"OLD!OLD!"
victim.fill(b"MINE")
is_refused(replay(request, "127.0.0.2"))
assert victim.mem[:8] == b"MINEMINE"
# claim TM2: nor another range of it, from wherever it comes.
assert b"\r\nrange: bytes=0-1048575\r\n" in request.lower(), request
status, text = replay(request.replace(b"bytes=0-1048575", b"bytes=0-3"), "127.0.0.1")
assert status == 403 and "SignatureDoesNotMatch" in text, text
request_put = victim.put(b"/bkt/put", b"PUT!")
status, text = replay(request_put.replace(b"\r\n\r\n", b"\r\nif-none-match: *\r\n\r\n"), "127.0.0.1")
assert status == 403 and "if-none-match is not among SignedHeaders" in text, text
assert victim.mem[:4] == b"PUT!"

# From its own address: what a client that repeats itself sends looks the same.
victim.fill(b"MINE")
answer = replay(request, "127.0.0.1")
if MODE == "once":
    is_refused(answer)
    assert victim.mem[:8] == b"MINEMINE"
    # The client itself puts the same thing several times a second: told to, it waits for the next.
    for i in range(2):
        victim.put(b"/bkt/again", b"%d..." % i)
        assert stored(b"/bkt/again")[:4] == b"%d..." % i
    sys.exit(0)
assert answer[0] == 206 and victim.mem[:8] == b"OLD!OLD!", answer

# That ends with the target, though the client does nothing more.
brief = Victim(1)
request = brief.get(b"/bkt/old")


def replayed():
    brief.fill(b"MINE")
    return replay(request, "127.0.0.1")


until("the target ends", lambda: replayed()[0] != 206, pause=0)
status, text = replayed()
assert status == 500, text
assert brief.mem[:8] == b"MINEMINE"
