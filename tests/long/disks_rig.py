#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a store of several disks answers over many starts, of which each ends in a kill or a power cut, some of them without one of its disks.

    disks_rig.py load URL HISTORY SEED [AWAY]   looks at all keys and buckets, says "looked" to HISTORY, then sends requests for the
                                                keys at random from several threads until nobody answers; AWAY: a disk is missing
    disks_rig.py judge HISTORY                  judges all lives together; exit 1 when something is wrong

A key's requests between two looks at it must be linearizable from the one to the other (tests/rados/linear.py): so what was acknowledged is
there, and what was not answered happened before the next start served, or never.  A key whose disk is missing answers 503 to everything and
never 404, the same keys whenever the same disk is away (but with MOVES=1 in the environment: keys move); with COPIES=2 the other disk has it, and it answers as ever, as lists do.  A bucket that was made is there, one that was removed is not; after each start with all
disks the bucket of the life before takes keys on every disk.  BUCKET: the bucket, if not bkt; so several may go on at once.
"""
import hashlib
import http.client
import json
import os
import random
import re
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "rados"))
from linear import NOTHING, UNKNOWN, Op, check  # noqa: E402

KEYS, THREADS, SPREAD = 30, 6, 16
TWO = os.environ.get("COPIES") == "2"
MOVES = os.environ.get("MOVES") == "1"
BUCKET = os.environ.get("BUCKET", "bkt")
LIFE = "life" if BUCKET == "bkt" else BUCKET + "-life"
SIZES = [40, 200, 5000, 70000, 300000, 1300000]


def body_of(name):
    return (name + " ").encode() * (random.Random(name).choices(SIZES, [8, 6, 6, 4, 2, 1])[0] // (len(name) + 1) + 1)


def etags_of(body):
    """Of a body that came at once, and in one part."""
    md5 = hashlib.md5(body)
    return '"%s"' % md5.hexdigest(), '"%s-1"' % hashlib.md5(md5.digest()).hexdigest()


class Over(Exception):
    """Nobody answers any more."""


class Client:
    def __init__(self, url):
        self.conn = http.client.HTTPConnection(url.split("//")[1], timeout=60)

    def ask(self, method, path, body=None, headers=None):
        """Status, ETag and body."""
        try:
            self.conn.request(method, path, body, headers or {})
            r = self.conn.getresponse()
            return r.status, r.headers.get("ETag"), r.read()
        except (OSError, http.client.HTTPException) as e:
            raise Over from e


class Load:
    def __init__(self, url, history, seed, away):
        self.url, self.seed, self.away = url, seed, away
        self.lock = threading.Lock()
        self.out = open(history, "a", encoding="utf-8", buffering=1)
        self.life = sum(line == '{"is":"begins"}\n' for line in open(history, encoding="utf-8"))

    def say(self, **what):
        with self.lock:
            self.out.write(json.dumps(what, separators=(",", ":")) + "\n")

    def look(self):
        c = Client(self.url)
        self.say(**{"is": "begins"})
        for k in range(KEYS):
            begun = time.monotonic()
            status, etag, body = c.ask("GET", "/%s/k%d" % (BUCKET, k))
            if status == 200 and etag not in etags_of(body):
                self.say(**{"is": "wrong", "text": "k%d: the bytes are not those of its ETag" % k})
            self.say(**{"is": "look", "key": k, "status": status, "etag": etag if status == 200 else None, "away": self.away, "begun": begun, "ended": time.monotonic()})
        for b in range(self.life):
            self.say(**{"is": "bucket", "name": b, "status": c.ask("HEAD", "/%s-%d" % (LIFE, b))[0]})
        listed = c.ask("GET", "/%s?list-type=2&max-keys=1000" % BUCKET)
        self.say(**{"is": "list", "status": listed[0], "away": self.away, "names": sorted(int(n) for n in re.findall("<Key>k([0-9]+)<", listed[2].decode()))})
        if self.life and self.away is None:
            self.fill(c, self.life - 1)
        self.say(**{"is": "made", "name": self.life, "status": c.ask("PUT", "/%s-%d" % (LIFE, self.life))[0]})
        self.say(**{"is": "looked"})

    def fill(self, c, bucket):
        """The bucket of the life before takes keys of every disk, and is empty again; that before it goes."""
        if c.ask("HEAD", "/%s-%d" % (LIFE, bucket))[0] == 200:
            put = [c.ask("PUT", "/%s-%d/%d" % (LIFE, bucket, i), b"x")[0] for i in range(SPREAD)]
            listed = c.ask("GET", "/%s-%d?list-type=2" % (LIFE, bucket))[2].count(b"<Key>")
            gone = [c.ask("DELETE", "/%s-%d/%d" % (LIFE, bucket, i))[0] for i in range(SPREAD)]
            if set(put) != {200} or listed != SPREAD or set(gone) != {204}:
                self.say(**{"is": "wrong", "text": "life-%d: PUTs %s, %d listed, DELETEs %s" % (bucket, put, listed, gone)})
        if bucket > 0:
            self.say(**{"is": "removes", "name": bucket - 1})
            self.say(**{"is": "removed", "name": bucket - 1, "status": c.ask("DELETE", "/%s-%d" % (LIFE, bucket - 1))[0]})

    def upload(self, c, path, body):
        """The status of what was the last of it; of what comes before the completion none that says that it is done."""
        status, _, xml = c.ask("POST", path + "?uploads")
        if status != 200:
            return 503
        upload = re.search(b"<UploadId>(.*?)<", xml)[1].decode()
        status, etag, _ = c.ask("PUT", "%s?partNumber=1&uploadId=%s" % (path, upload), body)
        if status != 200:
            return 503
        return c.ask("POST", "%s?uploadId=%s" % (path, upload), b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part></CompleteMultipartUpload>" % etag.encode())[0]

    def thread(self, number):
        rnd = random.Random("%s.%d.%d" % (self.seed, self.life, number))
        c, last = Client(self.url), {}
        for n in range(100000):
            key = rnd.randrange(KEYS)
            kind = rnd.choices(["put", "if-none", "if-match", "upload", "delete", "get"], [6, 2, 2, 1, 2, 5])[0]
            name, path = "%s-%d-%d-%d" % (self.seed, self.life, number, n), "/%s/k%d" % (BUCKET, key)
            op = {"is": "op", "key": key, "kind": "put" if kind.startswith("if") or kind == "upload" else kind, "begun": time.monotonic(), "status": None}
            try:
                if kind == "upload":
                    body = body_of(name)
                    op["value"] = etags_of(body)[1]
                    op["status"] = self.upload(c, path, body)
                elif kind in ("put", "if-none", "if-match"):
                    body = body_of(name)
                    etag = etags_of(body)[0]
                    op["value"] = etag
                    op["match"] = {"put": None, "if-none": "*", "if-match": last.get(key, etag)}[kind]
                    headers = {} if kind == "put" else {"If-None-Match": "*"} if kind == "if-none" else {"If-Match": op["match"]}
                    op["status"] = c.ask("PUT", path, body, headers)[0]
                    if op["status"] == 200:
                        last[key] = etag
                else:
                    op["status"], etag, _ = c.ask(kind.upper(), path)
                    if kind == "get" and op["status"] == 200:
                        op["value"] = etag
            except Over:
                return
            finally:
                op["ended"] = time.monotonic()
                self.say(**op)
            if op["status"] == 503:
                time.sleep(0.01)

    def run(self):
        try:
            self.look()
        except Over:
            return
        threads = [threading.Thread(target=self.thread, args=(n,)) for n in range(THREADS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


def said(op):
    """What linear.py is to take for the answer."""
    status = op["status"]
    if op["kind"] == "put":
        return {200: "ok", 412: "no", 404: "no"}.get(status, UNKNOWN)
    return {200: "ok", 204: "ok", 404: "no"}.get(status, UNKNOWN)


class Judge:
    def __init__(self):
        self.wrong, self.checked, self.acked, self.refused, self.lives = [], 0, 0, 0, 0
        self.state, self.ops = {}, {k: [] for k in range(KEYS)}
        self.is_away, self.away_keys, self.lives_away = {}, {}, set()
        self.buckets, self.present = {}, {}

    def look(self, e):
        key = e["key"]
        if e["away"] is not None:
            self.lives_away.add(self.lives)
        self.is_away[key] = e["status"] == 503 and e["away"] is not None and not TWO
        if self.is_away[key]:
            self.away_keys.setdefault((self.lives, e["away"]), set()).add(key)
            return
        if e["status"] not in (200, 404):
            self.wrong.append("life %d: a look at k%d is %s" % (self.lives, key, e["status"]))
            return
        self.present[key] = e["status"] == 200
        now = (e["etag"], "") if e["etag"] else NOTHING
        ops = self.ops[key] + [Op("get", e["begun"], e["ended"], "ok" if e["etag"] else "no", value=e["etag"])]
        stuck = check(ops, self.state.get(key, NOTHING))
        if stuck is not None:
            self.wrong.append("life %d: k%d, from %s: not linearizable at %s of\n\t%s" % (
                self.lives, key, self.state.get(key), stuck, "\n\t".join(map(repr, ops))))
        self.checked += len(ops)
        self.state[key], self.ops[key] = now, []

    def op(self, e):
        key = e["key"]
        if self.is_away.get(key):
            self.refused += 1
            # Without an answer it was not looked at any more.
            if e["status"] not in (503, None):
                self.wrong.append("life %d: k%d, whose disk is missing, answers %s to %s" % (self.lives, key, e["status"], e["kind"]))
            return
        if e["status"] not in (200, 204, 404, 412, 500, 503, None):
            self.wrong.append("life %d: k%d: %s is %s" % (self.lives, key, e["kind"], e["status"]))
        self.acked += e["status"] in (200, 204)
        if e["kind"] == "get" and said(e) == UNKNOWN:
            return
        self.ops[key].append(Op(e["kind"], e["begun"], e["ended"], said(e), value=e.get("value"), match=e.get("match")))

    def bucket(self, e):
        want = self.buckets.get(e["name"])
        if want is not None and e["status"] != want or e["status"] not in (200, 404):
            self.wrong.append("life %d: bucket life-%d is %d, not %s" % (self.lives, e["name"], e["status"], want))
        self.buckets[e["name"]] = e["status"]

    def line(self, e):
        if e["is"] == "begins":
            self.lives += 1
        elif e["is"] == "look":
            self.look(e)
        elif e["is"] == "op":
            self.op(e)
        elif e["is"] == "bucket":
            self.bucket(e)
        elif e["is"] == "made":
            self.buckets[e["name"]] = 200 if e["status"] == 200 else None
        elif e["is"] == "removes":
            self.buckets[e["name"]] = None
        elif e["is"] == "removed":
            if e["status"] == 204:
                self.buckets[e["name"]] = 404
        elif e["is"] == "list":
            want = sorted(k for k, there in self.present.items() if there)
            if e["away"] is not None and not TWO:
                if e["status"] != 503:
                    self.wrong.append("life %d: a list with a disk missing is %d" % (self.lives, e["status"]))
            elif e["status"] != 200 or e["names"] != want:
                self.wrong.append("life %d: the list is %d %s, not %s" % (self.lives, e["status"], e["names"], want))
        elif e["is"] == "wrong":
            self.wrong.append("life %d: %s" % (self.lives, e["text"]))

    def end(self):
        of = {}
        for (life, away), keys in self.away_keys.items():
            if of.setdefault(away, keys) != keys and not MOVES:
                self.wrong.append("life %d: without disk %s other keys are missing than before: %s, %s" % (life, away, keys, of[away]))
        if TWO:
            self.away_keys = {life: () for life in self.lives_away}
        print("%d lives, %d without a disk; %d answers judged, %d acknowledged, %s; %d refused for the disk that was missing" % (
            self.lives, len(self.away_keys), self.checked, self.acked, "%d times wrong" % len(self.wrong) if self.wrong else "none lost", self.refused))
        for w in self.wrong[:20]:
            print("WRONG", w)
        missed = self.lives_away if TWO else self.refused
        if not self.wrong and (self.acked < 10 * self.lives or (self.lives > 5 and not missed and not MOVES)):
            self.wrong.append("too little")
            print("hardly anything was acknowledged, or no disk was missed: this proves nothing")
        return 1 if self.wrong else 0


def main():
    if sys.argv[1] == "load":
        Load(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]) if len(sys.argv) > 5 else None).run()
        return 0
    j = Judge()
    for line in open(sys.argv[2], encoding="utf-8"):
        j.line(json.loads(line))
    return j.end()


if __name__ == "__main__":
    sys.exit(main())
