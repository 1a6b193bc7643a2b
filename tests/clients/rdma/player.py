#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""player.py [option ...] CAUSE: plays every client of clients.toml, by its own rules, against a daemon that is in a state of that name,
and compares what the client believes with what the store holds.

Causes: works; a reason of a decline (disabled, no-device, no-rail, unreachable, not-allowed); busy (503 to everybody); buffers (503 to
tokens alone); any (the daemon is in turns well and not: only belief and store are compared).  In each but those three what is wrong with the request itself is played as well: that comes
first.

  --ready LINE       gantryd's line about its listeners: s3=... (open; signed; one with a rule) scality=...
  --device NAME      the clients' adapter
  --rules            the daemon has the rules of rdma.decline_2xx that clients.toml speaks of
  --only ID,ID       these rows alone
  --processes N      N players at once
  --seed N

Windows are real: memory registered through libgantry, tokens minted by it.  Run under scripts/with-softnic."""
import argparse
import base64
import ctypes
import datetime
import hashlib
import hmac
import http.client
import mmap
import os
import random
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE = 40000
KEY, SECRET = "AKRULE", "rule-secret-1"
RC88 = "012a00000000000000000000000000ffff0a000005efbeadde00100000007f00000010000000000000010000"
MANY = "00000000000000000000ffffe0000001"  # 224.0.0.1


# ---- memory that the daemon's adapter reaches -----------------------------------------------------------------------------

class Options(ctypes.Structure):
    """The front of struct gantry_options."""
    _fields_ = [("size", ctypes.c_size_t), ("flags", ctypes.c_uint), ("dialect", ctypes.c_int), ("device", ctypes.c_char_p)]


class Window:
    def __init__(self, device):
        build = os.environ.get("BUILD", os.path.join(HERE, "../../../build/release"))
        self.lib = ctypes.CDLL(os.path.join(build, "libgantry.so.0"))
        self.g = ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options), 0, 0, device.encode())
        if self.lib.gantry_open(ctypes.byref(options), ctypes.byref(self.g)) < 0 or not self.lib.gantry_is_connected(self.g):
            sys.exit("player: libgantry finds no RDMA port")
        self.mem = mmap.mmap(-1, 1 << 16)
        self.at = ctypes.addressof(ctypes.c_char.from_buffer(self.mem))
        if self.lib.gantry_register(self.g, ctypes.c_void_p(self.at), ctypes.c_size_t(1 << 16), 0) < 0:
            sys.exit("player: memory cannot be registered")

    def token(self, size, is_put):
        text = ctypes.c_char_p()
        r = self.lib.gantry_token_get(self.g, ctypes.c_void_p(self.at), ctypes.c_size_t(size), ctypes.c_size_t(0), int(is_put),
                                      ctypes.byref(text), None)
        if r < 0:
            sys.exit(f"player: no token: {os.strerror(-r)}")
        value = text.value.decode()
        self.lib.gantry_token_put(self.g, text)
        return value


# ---- requests ----------------------------------------------------------------------------------------------------------------

class Answer:
    def __init__(self, response, data):
        self.status = response.status
        self.data = data
        self.header = {k.lower(): v for k, v in response.getheaders()}
        self.reply = self.header.get("x-amz-rdma-reply")


def sign(method, path, headers):
    """AWS Signature Version 4 with all headers signed."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    headers["x-amz-date"] = now
    headers.setdefault("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
    names = sorted(k.lower() for k in headers)
    low = {k.lower(): v.strip() for k, v in headers.items()}
    canonical = "\n".join([method, path, ""] + [f"{n}:{low[n]}" for n in names] + ["", ";".join(names), low["x-amz-content-sha256"]])
    scope = f"{now[:8]}/us-east-1/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + SECRET).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    headers["authorization"] = f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"


class Server:
    """One listener, and a connection that is kept."""

    def __init__(self, address, signed=False):
        self.address, self.signed, self.conn = address, signed, None

    def ask(self, method, path, headers=None, body=b"", length=None):
        headers = dict(headers or {}, host=self.address)
        if self.signed:
            sign(method, path, headers)
        for last in (False, True):
            fresh = self.conn is None
            if fresh:
                host, port = self.address.rsplit(":", 1)
                self.conn = http.client.HTTPConnection(host, int(port), timeout=60)
            try:
                self.conn.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
                for k, v in headers.items():
                    self.conn.putheader(k, v)
                if method == "PUT":
                    self.conn.putheader("content-length", str(len(body) if length is None else length))
                self.conn.endheaders(body if method == "PUT" else None)
                response = self.conn.getresponse()
                answer = Answer(response, response.read())
                if response.will_close:
                    self.close()
                return answer
            except (http.client.HTTPException, OSError):
                self.close()
                if fresh or last:
                    raise

    def close(self):
        if self.conn:
            self.conn.close()
        self.conn = None


# ---- a client's rules --------------------------------------------------------------------------------------------------------

def number(text):
    return int(text) if text and text.isdigit() else None


def count_of(answer):
    for name in ("x-amz-rdma-bytes-transferred", "x-amz-rdma-bytes"):
        if name in answer.header:
            return number(answer.header[name].split("/")[0])
    return None


def holds(condition, answer, asked):
    reply = number(answer.reply)
    for word in condition.split():
        name, _, value = word.partition("=")
        if name == "status":
            ok = answer.status // 100 == 2 if value == "2xx" else str(answer.status) in value.split(",")
        elif word == "reply=none":
            ok = answer.reply is None
        elif word == "reply=any":
            ok = answer.reply is not None
        elif word == "reply=status":
            ok = reply == answer.status
        elif name == "reply":
            ok = answer.reply in value.split(",")
        elif word.startswith("reply>"):
            ok = reply is not None and reply >= int(word[len("reply>="):])
        elif word.startswith("reply<"):
            ok = reply is not None and reply < int(word[len("reply<"):])
        elif word == "etag":
            ok = bool(answer.header.get("etag"))
        elif word == "bytes":
            ok = count_of(answer) is not None
        elif word == "bytes=all":
            ok = count_of(answer) == asked
        elif word == "range":
            ok = "content-range" in answer.header
        elif word == "body":
            ok = len(answer.data) > 0
        elif word == "no-body":
            ok = len(answer.data) == 0
        else:
            sys.exit(f"player: clients.toml: what is {word!r}?")
        if not ok:
            return False
    return True


def judge(rules, answer, asked):
    for verdict in ("done", "body", "declined", "error"):
        if any(holds(c, answer, asked) for c in rules.get(verdict, [])):
            return verdict
    return "failed"


# ---- playing -----------------------------------------------------------------------------------------------------------------

SERVED = {"dc81", "dc115", "trio"}


class Player:
    def __init__(self, options, rows, nr):
        self.options, self.rows, self.prefix = options, rows, f"p{os.getpid()}"
        self.random = random.Random(options.seed * 1000 + nr)
        self.window = Window(options.device)
        words = [w.split("=", 1) for w in options.ready.split() if "=" in w]
        s3 = [a for k, a in words if k == "s3"]
        self.s3 = Server(s3[0])
        self.signed = Server(s3[1], signed=True) if len(s3) > 1 else None
        self.ruled = Server(s3[2]) if len(s3) > 2 else None
        self.scal = Server([a for k, a in words if k == "scality"][0])
        self.nr = self.played = 0

    def wrong(self, what):
        sys.exit(f"player: {self.row['id']}, {self.op}, {self.case}: {what}\n"
                 f"        answers: {[(a.status, a.reply, a.header.get('x-gantry-rdma-reason'), a.data[:200]) for a in self.answers]}")

    def token_headers(self, size, spoil):
        """The headers that carry the row's token, spoiled or not."""
        form, header = self.row.get("token", "dc81"), self.row["header"]
        token = self.window.token(size, self.op == "PUT")
        if spoil == "malformed":
            token = token[:47] + "2" + token[48:]
        elif spoil == "forbidden":
            token = token[:49] + MANY
        if form == "trio":
            return {header: token, "x-cuobj-content-length": str(size), "x-cuobj-remote-buf-start": str(self.window.at)}
        if form == "dc115":
            token += f":{self.window.at:016x}:{size:016x}"
        elif form == "hip122":
            token = f"{RC88}:{self.window.at:016x}:{size:016x}"
        elif form == "dell-rc":
            token = token[:40] + "000000" + token[46:]
        elif form == "rc-shim":
            token = f"rc:03b1c6f0a4e84d1796c2e5f70b8d9a1e:{self.window.at:016x}:{size:08x}:0001a2b3"
        elif form == "json":
            token = f'{{"type":"seaweed","addr":"0x{self.window.at:x}","size":{size}}}'
        elif form == "base64":
            token = base64.b64encode(token.encode()).decode()
        return {header: token}

    def send(self, headers, body=b"", length=None):
        """One request of the client's; for a GET with the bytes that came in the body."""
        if self.row["agent"] != "none":
            headers = dict(headers, **{"user-agent": self.row["agent"]})
        a = self.server.ask(self.op, self.path, headers, body, length)
        self.answers.append(a)
        return a

    def plain(self, headers, data):
        """The request without a token; what it came to."""
        a = self.send(headers, data if self.op == "PUT" else b"")
        if a.status not in (200, 206):
            return "failed", None
        return "http", a.data

    def client(self, data, asked, headers, spoil=None):
        """What the client does with one object: belief ("rdma", "http" or "failed") and the bytes that it thinks it got."""
        row, rules = self.row, self.row[self.op.lower()]
        if not row["header"]:
            return self.plain(headers, data)
        for _ in range(row.get("tries", 1)):
            self.window.mem[:] = data.ljust(1 << 16, b"\0") if self.op == "PUT" else bytes([0xa5]) * (1 << 16)
            length = asked if row.get("put_length") == "window" and self.op == "PUT" else None
            a = self.send(dict(headers, **self.token_headers(asked, spoil)), length=length)
            verdict = judge(rules, a, asked)
            if verdict == "done":
                n = count_of(a)
                return "rdma", self.window.mem[:asked if n is None else n]
            if verdict == "body":
                return "http", a.data
            if verdict == "declined":
                return self.plain(headers, data) if row["declined"] == "http" else ("failed", None)
            if verdict == "error":
                return "failed", None
        return self.plain(headers, data) if row.get("failed") == "http" else ("failed", None)

    # ---- what is expected of the first answer ----

    def expect_first(self, cause, case):
        """The status that the request with the token must get; None: any."""
        if not self.row["header"] or cause == "any":
            return None
        if self.op == "PUT" and self.row.get("put_length"):
            return 400  # a request with a token has no body: said before anything else
        status = {"missing": 404, "exists": 412, "beyond": 416, "malformed": 400, "forbidden": 403}.get(case)
        if status:
            return status
        if cause in ("busy", "buffers"):
            return 503 if self.is_served() or cause == "busy" else 501
        return 501 if self.declines(cause) else None

    def is_served(self):
        return self.row.get("token", "dc81") in SERVED and self.row["header"] != "x-amz-meta-rdma-token"

    def declines(self, cause):
        return cause not in ("works", "any") or not self.is_served()

    def check_first(self, cause, case):
        first, want, header = self.answers[0], self.expect_first(cause, case), self.row["header"]
        if want is None:
            return
        ruled = want == 501 and self.has_rule()
        if not (ruled and first.status in (200, 206)) and (ruled or first.status != want):
            self.wrong(f"the first answer should be {'2xx by its rule' if ruled else want}")
        reply = {501: "501"}.get(want)
        if header == "x-scal-rdma":
            reply = None
        elif self.row.get("token") == "hip122" and reply is None:
            reply = str(want)  # item 104
        if first.reply != reply:
            self.wrong(f"x-amz-rdma-reply should be {reply}")
        if want == 501:
            reason = cause if self.is_served() else "token-family"
            if first.header.get("x-gantry-rdma-reason") != reason:
                self.wrong(f"the reason should be {reason}")
            if "x-amz-rdma-bytes-transferred" in first.header or (not ruled and "etag" in first.header):
                self.wrong("a decline that looks like success")
            if not ruled and header != "x-scal-rdma" and b"<Code>RDMANotSupported</Code>" not in first.data:
                self.wrong("a decline is an S3 error")

    def has_rule(self):
        return self.options.rules and (self.row.get("rule") is not None or self.by_listener)

    def check_belief(self, cause, case, belief):
        """What the client makes of it, where that is known beforehand."""
        if cause == "any" or not self.row["header"]:
            return
        if self.op == "PUT" and self.row.get("put_length"):
            if belief != "failed" or b"<Code>InvalidRequest</Code>" not in self.answers[0].data or b"a request with a token has no body" not in self.answers[0].data:
                self.wrong("a Content-Length of a body that never comes is refused, and the answer says why")
            return
        if case in ("malformed", "forbidden"):
            # The token alone is wrong: over HTTP it may go well.
            if belief == "rdma":
                self.wrong("the client thinks that a refused token was used")
        elif case != "plainly":
            if belief != "failed":
                self.wrong(f"the client thinks that a request which is wrong was done ({belief})")
        elif cause == "busy" or (cause == "buffers" and self.is_served()):
            if belief == "rdma":
                self.wrong("the client thinks that a 503 was a transfer")
        elif not self.declines(cause):
            if belief != "rdma":
                self.wrong("nothing moved by RDMA")
        else:
            want = "http" if self.row["after_501"] == "http" or (self.has_rule() and self.row["declined"] == "http") else "failed"
            if belief != want:
                self.wrong(f"a decline should come to {want}, and came to {belief}")

    # ---- one object ----

    def where(self, key):
        return f"/{key}" if self.row["header"] == "x-scal-rdma" else f"/bkt/{key}"

    def truth(self):
        server = self.scal if self.row["header"] == "x-scal-rdma" else self.s3
        a = server.ask("GET", self.path)
        if a.status not in (200, 404):
            self.wrong(f"the store cannot be asked: {a.status}")
        return a.data if a.status == 200 else None

    def put_truth(self, data):
        server = self.scal if self.row["header"] == "x-scal-rdma" else self.s3
        if server.ask("PUT", self.path, {}, data).status != 200:
            self.wrong("the object before cannot be stored")

    def cases(self, op, cause):
        row = self.row
        yield "plainly"
        if cause in ("busy", "buffers", "any") or not row["header"]:
            return
        scal, form = row["header"] == "x-scal-rdma", row.get("token", "dc81")
        yield "missing"
        if not scal:
            yield "exists"
        if op == "GET" and row.get("range"):
            yield "beyond"
        if row["header"] == "x-amz-meta-rdma-token":
            return  # its value is a token by its shape alone
        if form in SERVED or form == "dell-rc":
            yield "malformed"
        if form in SERVED and cause not in ("disabled", "no-device"):
            yield "forbidden"

    def play(self, row, op, cause, case):
        self.row, self.op, self.case, self.answers = row, op, f"{cause}, {case}", []
        self.nr += 1
        self.played += 1
        scal = row["header"] == "x-scal-rdma"
        self.server = self.scal if scal else self.s3
        if row.get("rule") == "access_key" and self.signed:
            self.server = self.signed
        if self.by_listener:
            self.server = self.ruled
        rnd = self.random
        data = rnd.randbytes(rnd.randrange(1, SIZE))
        self.path = self.where(f"{self.prefix}-{self.nr}")
        before = rnd.randbytes(rnd.randrange(1, SIZE)) if op == "GET" or case == "exists" or rnd.randrange(2) else None
        if op == "PUT" and case == "missing":
            if scal:
                return
            self.path = f"/no-such-bucket/{self.nr}"
            before = None
        elif case == "missing":
            before = None
        if before is not None and cause != "busy":
            self.put_truth(before)
        headers = {}
        if case == "exists":
            headers = {"if-none-match": "*"} if op == "PUT" else {"if-match": '"nix"'}
        if op == "PUT":
            belief, _ = self.client(data, len(data), headers, case)
        else:
            off, asked, want = 0, len(before or b"x" * 100), before
            if row.get("range"):
                off = rnd.randrange(asked)
                asked = rnd.randrange(1, asked - off + 1)
                want = (before or b"")[off:off + asked]
                if case == "beyond":
                    off = len(before) + rnd.randrange(1000)
                headers["range"] = f"bytes={off}-{off + asked - 1}"
            belief, got = self.client(b"", asked, headers, case)
            if belief != "failed" and got != want:
                self.wrong(f"the client has other bytes than the store ({belief})")
            if belief != "rdma" and cause != "any" and self.row["header"] and self.window.mem[:] != bytes([0xa5]) * (1 << 16):
                self.wrong("the window was written to, and the client was told that it was not")
        self.check_first(cause, case)
        self.check_belief(cause, case, belief)
        if op == "PUT" and cause != "busy" and self.truth() != (before if belief == "failed" else data):
            self.wrong(f"the client believes {belief}, and the store holds something else")

    def run(self):
        cause = self.options.cause
        for row in self.rows:
            for by_listener in (False, True):
                self.by_listener = by_listener
                if by_listener and (not self.options.rules or row["header"] != "x-amz-rdma-token" or row["declined"] != "http"):
                    continue
                for op in ("PUT", "GET"):
                    self.row = row
                    for case in self.cases(op, cause):
                        self.play(row, op, cause, case)
        return self.played


def main():
    p = argparse.ArgumentParser()
    p.add_argument("cause")
    p.add_argument("--ready", required=True)
    p.add_argument("--device", default="auto")
    p.add_argument("--rules", action="store_true")
    p.add_argument("--only")
    p.add_argument("--processes", type=int, default=1)
    p.add_argument("--turns", type=int, default=1)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = p.parse_args()
    with open(os.path.join(HERE, "clients.toml"), "rb") as f:
        rows = tomllib.load(f)["client"]
    if options.only:
        rows = [r for r in rows if r["id"] in options.only.split(",")]
    print(f"player: {options.cause}, seed {options.seed}", flush=True)
    children = []
    for nr in range(options.processes):
        pid = os.fork()
        if pid == 0:
            player = Player(options, rows, nr)
            for _ in range(options.turns):
                player.run()
            print(f"player: {options.cause}: {player.played} exchanges of {len(rows)} clients", flush=True)
            os._exit(0)
        children.append(pid)
    bad = sum(os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) != 0 for c in children)
    if bad:
        sys.exit(f"player: {options.cause}, seed {options.seed}: {bad} of {options.processes} failed")


if __name__ == "__main__":
    main()
