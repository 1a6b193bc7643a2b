#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""many_disks: the protocol of a store on many disks (docs/set.md) as a model that is run, cut and judged.

    many_disks.py run [--seconds S] [--seed N] [--profile P] [--off RULE]   random histories; exit 1 if one goes wrong
    many_disks.py rules [--seconds S] [RULE...]                         every rule switched off: each must go wrong within S seconds
    many_disks.py one SEED [--profile P] [--off RULE]                       one history again

What is modelled: two to five disks, each a log of which a cut leaves the flushed part and any number of the batches behind it, and two
copies of a superblock, of which a cut leaves old, new or torn what was being written; a bucket with one copy and one with two; objects
with chunks, uploads, parts; moves, healing, replacing, collection, a disk that fails, stays away, comes back or is forgotten; copies of
superblocks that are lost, disks that are put back as they were days ago (in histories of the profile "damage" alone).  Requests
and background work are generators: each `yield` is a place where another goes on or the power goes.  What was answered must be a history
of one bucket that does one thing at a time (Bucket, below); what was not answered has happened before the next start serves, or never.

Every rule is a name in RULES and is asked for by `self.on(RULE)`.
"""
import argparse
import itertools
import random
import sys
import time
from collections import namedtuple

# Rule -> its number.  M4 and M35 are assertions (see change() and start()); M2's and M3's half is one question in may_start().
RULES = {
    "TABLE_NEWEST": 1, "QUORUM": 2, "HALF_ONLY_IF_ALL_IN": 3, "START_NO": 5, "TABLE_ALL": 6, "TABLE_REDO": 7, "BOTH_TABLES": 8,
    "BELOW_HALF_READ_ONLY": 9, "SUPER_OLDER_COPY": 10, "ONE_CHANGE": 11, "MISSING_IS_503": 12, "TABLE_DECIDES": 13,
    "COPY_BEFORE_ANSWER": 14, "AWAY_BEFORE_ANSWER": 15, "SETTLED_VISIBLE": 16, "ONE_PER_KEY": 17, "FULL_ONLY": 18,
    "SAME_VERSION_READ": 19, "VERSION_HAS_START": 20, "ALIGN_START": 21, "ALIGN_REMOVES": 22, "ALIGN_HOLD": 23, "FORWARD": 24,
    "FREEZE": 25, "REMOVE_AFTER_SWITCH": 26, "CHUNKS_FIRST": 27, "COLLECT_NOT_FILLING": 28, "BUCKET_ON_ALL": 29,
    "BUCKETS_FROM_HEAD": 30, "GATE_ALL_PRESENT": 31, "GATE_CLOSED": 31, "GATE_PENDING": 31, "GATE_FORWARD": 31,
    "OLDER_THAN_BUCKET": 32, "FAILED_HAS_NO_BUCKETS": 33, "TARGET_FLUSHED": 34, "BOTH_AWAY_KEEP_FULL": 36,
    "FORWARD_WHOLE": 37, "OLDER_AFTER_TABLE": 38, "READ_NOT_OLDER": 39, "TABLE_IN_BOTH": 40, "BEHIND_IS_AWAY": 41,
}

ONE, TWO = "one", "two"  # the buckets: of one copy, of two
KEYS = 2

Table = namedtuple("Table", "version members taking home pairs")  # taking: who took part in it; pairs: (first, second, full)
Super = namedtuple("Super", "serial start table behind", defaults=(False,))  # behind: it was when it heard of that start
Rec = namedtuple("Rec", "version value refs")  # refs: the data records that it names


class Wrong(Exception):
    """The store broke its promise."""


class Refused(Exception):
    """A start that has to wait for disks, or for the operator."""


def check(truth):
    if not truth:
        raise AssertionError("the model is wrong, not the protocol")


# ---- what an outsider may see ----


class Bucket:
    """All states that one bucket may be in, given what was answered so far; an answer that fits none is Wrong.

    A state is (whether it is there, its keys); of a key (value, uploads), of an upload (id, parts)."""

    NOTHING = (None, ())

    def __init__(self):
        self.states = {((False, (self.NOTHING,) * KEYS), frozenset())}
        self.waiting = {}  # number -> operation
        self.count = itertools.count(1)

    @classmethod
    def do(cls, state, op):
        """The state behind an operation, and its answer."""
        there, keys = state
        kind, args = op[0], op[1:]
        if kind == "make":
            return ((True, (cls.NOTHING,) * KEYS), "ok") if not there else (state, "exists")
        if not there:
            return state, "no bucket"
        if kind == "remove":
            return (state, "not empty") if any(v is not None for v, _ in keys) else ((False, keys), "ok")
        if kind == "list":
            return state, tuple(v for v, _ in keys)
        k = args[0]
        value, uploads = keys[k]
        ups = dict(uploads)
        if kind == "get":
            return state, ("is", value)
        if kind == "uploads":
            return state, uploads
        if kind == "put":
            new, wanted = args[1:]
            if (wanted == "absent" and value is not None) or (wanted not in (None, "absent") and value != wanted):
                return state, "precondition"
            value = new
        elif kind == "delete":
            value = None
        elif kind == "begin":
            ups[args[1]] = ()
        elif args[1] not in ups:
            return state, "no upload"
        elif kind == "part":
            ups[args[1]] = tuple(sorted({**dict(ups[args[1]]), args[2]: args[3]}.items()))
        elif kind == "complete":
            value = ("whole", args[1], ups.pop(args[1]))
        else:  # abort
            del ups[args[1]]
        now = (value, tuple(sorted(ups.items())))
        return (there, keys[:k] + (now,) + keys[k + 1 :]), "ok"

    READS = ("get", "list", "uploads")

    def asked(self, *op):
        number = next(self.count)
        self.waiting[number] = op
        return number

    def closure(self, wanted):
        """Every state that may follow by operations under way; reads are done only when it is their turn to be answered."""
        todo, seen = list(self.states), set()
        while todo:
            one = todo.pop()
            if one in seen:
                continue
            seen.add(one)
            state, done = one
            ids = {i for i, _ in done}
            for number, op in self.waiting.items():
                if number in ids or (op[0] in self.READS and number != wanted):
                    continue
                after, answer = self.do(state, op)
                todo.append((after, done | {(number, answer)}))
        return seen

    def answered(self, number, answer):
        found = {(st, done - {(number, answer)}) for st, done in self.closure(number) if (number, answer) in done}
        op = self.waiting.pop(number)
        if not found:
            raise Wrong(f"{op} was answered {answer!r}: no order of what was done gives that")
        # Others that were placed before it in the search stay placed only where they had to be: all are kept.
        self.states = found

    def declined(self, number):
        """It was answered that nothing has been done."""
        self.waiting.pop(number)
        self.states = {(st, done) for st, done in self.states if number not in {i for i, _ in done}}
        if not self.states:
            raise Wrong("something that was declined has been seen")

    def settle(self):
        """A start serves: what was not answered has happened by now, or will never."""
        self.states = {(st, frozenset()) for st, _ in self.closure(None)}
        self.waiting = {}

    def lost(self, k):
        """The operator gave up the disk that alone had a key."""
        self.states = {((there, keys[:k] + (self.NOTHING,) + keys[k + 1 :]), done) for (there, keys), done in self.states}


# ---- a disk ----


class Disk:
    def __init__(self, rules):
        self.rules = rules
        self.durable, self.late = {}, []
        self.copies, self.writing = [None, None], None

    @staticmethod
    def write(where, batch):
        for key, rec in batch:
            if rec is None:
                where.pop(key, None)
            else:
                where[key] = rec

    def append(self, batch):
        self.late.append(batch)

    def flush(self):
        for batch in self.late:
            self.write(self.durable, batch)
        self.late = []

    def super(self):
        there = [c for c in self.copies if c is not None]
        return max(there) if there else None

    def begin_super(self, start, table, behind=False):
        now = self.super()
        older = 0 if self.copies[0] is None or (self.copies[1] is not None and self.copies[0] < self.copies[1]) else 1
        if not self.rules.on("SUPER_OLDER_COPY"):
            older = 1 - older
        self.writing = (older, Super(now.serial + 1, start, table, behind))

    def end_super(self):
        if self.writing:  # two at once (ONE_CHANGE is off) end together
            where, what = self.writing
            self.copies[where], self.writing = what, None

    def cut(self, r):
        for batch in self.late[: r.randrange(len(self.late) + 1)]:
            self.write(self.durable, batch)
        self.late = []
        if self.writing:
            where, what = self.writing
            self.copies[where] = r.choice((self.copies[where], what, None))
            self.writing = None

    def lose_super(self, r):
        """One of the two cannot be read any more: none that the other one is needed for already."""
        if None not in self.copies:
            self.copies[r.randrange(2)] = None

    def image(self):
        return dict(self.durable), list(self.copies)

    def put_back(self, image):
        durable, copies = image
        self.durable, self.copies = dict(durable), list(copies)


# ---- the store ----


class Store:
    def __init__(self, r, nr, profile="plain", off=()):
        self.r, self.nr, self.profile, self.off = r, nr, profile, set(off)
        self.tight = profile in ("tight", "buckets")
        self.harm = r.choice(("super", "older")) if profile == "damage" else None
        self.image, self.older = None, None  # (disk, what it was) that may be put back; the disk that was, and has had no table since
        self.disks = [Disk(self) for _ in range(nr)]
        self.seen = {ONE: Bucket(), TWO: Bucket()}
        self.gone, self.forgotten = set(), set()  # destroyed; those of them that the operator has given up
        self.names = itertools.count(1)
        self.given_up = {}  # version of a table -> the keys that it gives up, until a start serves
        first = Table((0, 0), frozenset(range(nr)), frozenset(range(nr)), tuple(k % nr for k in range(KEYS)),
                      tuple((k % nr, (k + 1) % nr, True) for k in range(KEYS)))
        for d in self.disks:
            d.copies = [Super(1, 0, first), Super(0, 0, first)]

    def on(self, rule):
        check(rule in RULES)
        return rule not in self.off

    def serves(self, d):
        return d in self.present and d not in self.failed

    def version(self):
        self.counter += 1
        return (self.start_no if self.on("VERSION_HAS_START") else 0, self.counter)

    def publish(self, d, batch):
        Disk.write(self.index[d], batch)

    # ---- the table ----

    def without_failed(self, t):
        """A table as it is when those that do not serve are out of it."""
        return self.lose(t, self.serves)._replace(taking=frozenset(d for d in t.taking if self.serves(d)))

    def lose(self, t, has):
        """Keys with two copies go to the disk that has all, of those that has() names."""
        pairs = []
        for first, second, full in t.pairs:
            one, other = has(first), second is not None and has(second)
            if not one and other and (full or not self.on("FULL_ONLY")):
                pairs.append((second, first, False))
            elif not one:
                pairs.append((first, second, full and self.on("BOTH_AWAY_KEEP_FULL")))
            else:
                pairs.append((first, second, full and other))
        return t._replace(pairs=tuple(pairs))

    def wait_for_others(self, t, behind):
        """Of keys of which an older copy of a disk had all, and the other disk is not there: they wait for that one."""
        pairs = []
        for first, second, full in t.pairs:
            if full and first in behind and second not in self.present:
                first, second, full = second, first, False
            elif full and first not in self.present and second in behind:
                full = False
            pairs.append((first, second, full))
        return t._replace(pairs=tuple(pairs))

    def write_table(self, t, to):
        # Only where a superblock may be lost it makes a difference whether both have the table: elsewhere one is written.
        times = 2 if self.harm == "super" and self.on("TABLE_IN_BOTH") else 1
        for d in [d for d in self.r.sample(sorted(to), len(to)) for _ in range(times)]:
            if self.serves(d):
                self.disks[d].begin_super(self.start_no, t)
                yield
                if self.serves(d):
                    self.disks[d].end_super()

    def change(self, make, has_turn=False):
        """Makes a new table out of the one in effect; make() returns None when there is no reason any more."""
        if not has_turn and self.on("ONE_CHANGE"):
            while self.changing:
                yield
            self.changing = True
        begun = False
        while True:
            old = self.table
            t = make(old)
            good = t is not None
            if not good:
                if not begun or not self.on("TABLE_REDO"):
                    break
                t = old  # what was begun is overwritten
            t = self.without_failed(t)
            check(t.members == old.members)  # M4, M35: nothing here changes members
            if (self.on("QUORUM") and 2 * len(t.taking & t.members) < len(t.members)) or not t.taking:
                self.stuck, good = True, False
                break
            self.changes += 1
            t = t._replace(version=(self.start_no, self.changes))
            failed = set(self.failed)
            self.begun.append(t)
            begun = True
            yield from self.write_table(t, t.taking if self.on("TABLE_ALL") else sorted(t.taking)[:1])
            if self.failed == failed:
                self.table, self.begun = t, []
                break
        if not has_turn:
            self.changing = False
        return good

    def failover(self):
        yield
        yield from self.change(lambda t: t)

    # ---- a start ----

    def may_start(self, t):
        here, members = len(self.present & t.members), len(t.members)
        if not t.taking & self.present:
            return False
        if not self.on("QUORUM") or 2 * here > members:
            return True
        return 2 * here == members and (t.taking <= self.present or not self.on("HALF_ONLY_IF_ALL_IN"))

    def start(self, disks, forgotten):
        self.present, self.failed = set(disks), set()
        self.held, self.frozen, self.gate, self.filling, self.missed = set(), set(), set(), {}, set()
        self.changing = self.stuck = False
        self.begun, self.tasks, self.changes, self.index = [], [], 0, {}
        supers = {d: self.disks[d].super() for d in disks}
        if None in supers.values():
            raise Wrong("no copy of a superblock can be read")
        tables = {d: s.table for d, s in supers.items()}
        t = max(tables.values()) if self.on("TABLE_NEWEST") else tables[min(disks)]
        if any(x.version == t.version and x != t for x in tables.values()):
            raise Wrong("two tables of one version")
        if self.present - t.members:
            raise Refused
        forgotten = frozenset(forgotten) & t.members
        if not forgotten and not self.may_start(t):
            raise Refused
        if not t.taking & self.present:
            raise Refused
        self.start_no = 1 + max([x.version[0] for x in tables.values()] +
                                ([s.start for s in supers.values()] if self.on("START_NO") else []))
        if self.harm == "super" and any(None in self.disks[d].copies for d in disks):
            self.start_no += self.r.randrange(1000, 2000)  # what was lost may have known later ones
        behind = self.find_behind(t, supers)
        t = t._replace(taking=t.taking - behind)
        for d in disks:
            self.index[d] = dict(self.disks[d].durable)
        self.counter = 0
        if not self.on("VERSION_HAS_START"):
            self.counter = max([rec.version[1] for i in self.index.values() for rec in i.values()] + [0])
        if self.on("START_NO"):
            for d in self.r.sample(disks, len(disks)):
                self.disks[d].begin_super(self.start_no, tables[d], d in behind)
                yield
                self.disks[d].end_super()
        yield from self.same_buckets(min(t.taking & self.present), disks)
        if not self.on("OLDER_AFTER_TABLE"):
            yield from self.remove_older(disks)
        lost = self.given_up.get(t.version, set())
        if forgotten:
            t, more = self.forget(t, forgotten)
            lost = lost | more
        if behind:
            t = self.wait_for_others(self.lose(t, (self.present - behind).__contains__), behind)
        t = self.without_failed(t._replace(taking=frozenset(disks)))._replace(version=(self.start_no, 1))
        self.changes = 1
        self.given_up[t.version] = lost
        yield from self.write_table(t, disks if self.on("TABLE_ALL") else disks[:1])
        self.table = t
        if self.on("OLDER_AFTER_TABLE"):
            yield from self.remove_older(disks)
        if self.on("ALIGN_START"):
            for k, (first, second, full) in enumerate(t.pairs):
                if full and {first, second} <= self.present:
                    yield from self.align(TWO, k, first, second)

    def find_behind(self, t, supers):
        """Those that took part in the newest table and have not heard of its start: each is an older copy of itself."""
        if not self.on("BEHIND_IS_AWAY"):
            return frozenset()
        behind = frozenset(d for d in t.taking & self.present if supers[d].start < t.version[0] or supers[d].behind)
        check(not behind or self.harm or self.off)  # no cut leaves one so (M5)
        return behind if t.taking & self.present - behind else frozenset()

    def same_buckets(self, head, disks):
        for d in disks:
            for b in (ONE, TWO) if self.on("BUCKETS_FROM_HEAD") else ():
                is_, other = self.index[head].get(("bucket", b)), self.index[d].get(("bucket", b))
                if is_ != other:
                    self.disks[d].append([(("bucket", b), is_)])
                    yield
                    self.disks[d].flush()
                    self.publish(d, [(("bucket", b), is_)])

    def remove_older(self, disks):
        """Removes objects and uploads of a bucket that was deleted: older than the record that there is, or without one."""
        for d in disks if self.on("OLDER_THAN_BUCKET") else ():
            old = []
            for key, rec in self.index[d].items():
                bucket = self.index[d].get(("bucket", key[1]))
                if key[0] in ("object", "upload") and (bucket is None or rec.version < bucket.version):
                    old.append((key, None))
            if old:
                self.disks[d].append(old)
                self.publish(d, old)
                yield
                self.disks[d].flush()

    def forget(self, t, gone):
        """The table without disks that are gone for good, and the keys that only they had."""
        left = t.members - gone
        lost, pairs = set(), []
        home = list(t.home)
        for k in range(KEYS):
            if home[k] in gone:
                home[k] = min(self.present)
                lost.add((ONE, k))
        for k, (first, second, full) in enumerate(t.pairs):
            if first in gone and full and second in left:
                first, second, full = second, None, False
            elif first in gone:
                first, second, full = min(self.present), None, False
                lost.add((TWO, k))
            elif second in gone:
                second, full = None, False
            pairs.append((first, second, full))
        for b, k in lost:  # what lies there of a time before is not the key's
            d = home[k] if b == ONE else pairs[k][0]
            stale = [(key, None) for key in self.index[d] if key[0] != "bucket" and key[1:3] == (b, k)]
            self.disks[d].append(stale)
            self.disks[d].flush()
            self.publish(d, stale)
        return t._replace(members=left, home=tuple(home), pairs=tuple(pairs)), lost

    # ---- one key ----

    def authority(self, b, k):
        return self.table.home[k] if b == ONE else self.table.pairs[k][0]

    def named(self, t, b, k):
        return {t.home[k]} if b == ONE else {d for d in t.pairs[k][:2] if d is not None}

    def find(self, d, key):
        if key in self.index.get(d, ()) or self.on("TABLE_DECIDES"):
            return self.index[d].get(key)
        return next((self.index[e][key] for e in sorted(self.present) if key in self.index[e]), None)

    def has_named(self, d, batch, data):
        """Does a disk that may not have all have what these records name?"""
        coming = {key for key, _ in data or ()}
        return all(ref in self.index[d] or ref in coming for _, rec in batch if rec for ref in rec.refs)

    def is_settled(self, b, k, flushed):
        if b == ONE:
            return self.table.home[k] in flushed
        tables = [self.table] + (self.begun if self.on("BOTH_TABLES") else [])
        return all(first in flushed and (not full or second in flushed) for first, second, full in (t.pairs[k] for t in tables))

    def modify(self, b, k, op, judge):
        """One request that changes a key.  judge(records of its home) returns (answer, None) or (None, batch, data records)."""
        seen = self.seen[b]
        number = seen.asked(*op)
        while (self.on("ONE_PER_KEY") and (b, k) in self.held) or (b, k) in self.frozen or b in self.gate:
            yield
        home = self.authority(b, k)
        if self.stuck and self.on("BELOW_HALF_READ_ONLY"):
            return seen.declined(number)
        if not self.serves(home):
            others = sorted(d for d in self.present if self.serves(d))
            if self.on("MISSING_IS_503") or b == TWO or not others:
                return seen.declined(number)
            home = others[0]
            self.table = self.table._replace(home=self.table.home[:k] + (home,) + self.table.home[k + 1 :])
        self.held.add((b, k))
        answer = batch = data = None
        if ("bucket", b) not in self.index[home]:
            answer = "no bucket"
        else:
            answer, batch, data = judge(lambda key: self.find(home, key), self.version())
        if answer:
            self.held.discard((b, k))
            return seen.answered(number, answer)
        second, full = (None, False) if b == ONE else self.table.pairs[k][1:]
        targets = [home]
        if second is not None and self.serves(second) and (full or self.on("FORWARD")):
            targets.append(second)
        filled = self.filling.get((b, k))
        if filled is not None and self.on("FORWARD") and self.serves(filled) and filled not in targets:
            targets.append(filled)
        if self.on("FORWARD_WHOLE"):
            for d in [d for d in targets[1:] if not self.has_named(d, batch, data)]:
                targets.remove(d)
                self.missed.add((b, k, d))
        for d in targets if data else ():
            if self.serves(d):
                self.disks[d].append(data)
                yield
                if self.serves(d):
                    self.disks[d].flush()
                    self.publish(d, data)
        flushed = set()
        order = self.r.sample(targets, len(targets))
        for d in order:
            if self.serves(d):
                self.disks[d].append(batch)
            yield
        for d in order if self.on("COPY_BEFORE_ANSWER") else [home]:
            if self.serves(d):
                self.disks[d].flush()
                flushed.add(d)
                if not self.on("SETTLED_VISIBLE") and d == home:
                    self.publish(d, batch)
            yield
        good = yield from self.wait_settled(b, k, flushed)
        if good:
            for d in flushed if self.on("COPY_BEFORE_ANSWER") else targets:
                before = dict(self.index[d])
                self.publish(d, batch)
                self.drop_unnamed(d, b, k, before)
        self.missed |= {(b, k, d) for d in targets if d not in flushed}
        self.held.discard((b, k))
        if good:
            seen.answered(number, "ok")

    def wait_settled(self, b, k, flushed):
        if b == TWO and not (self.on("AWAY_BEFORE_ANSWER") and self.on("COPY_BEFORE_ANSWER")):
            return bool(flushed) and self.table.pairs[k][0] in flushed
        for _ in range(60):
            if self.is_settled(b, k, flushed):
                return True
            if self.stuck or b == ONE:
                return False
            yield
        return False

    def names_of(self, d, b, k):
        """The data that records of a key on a disk name: an object's, and the parts of uploads."""
        named = set()
        for key, rec in self.index[d].items():
            if key[0] in ("object", "upload") and key[1:3] == (b, k):
                named |= set(rec.refs)
        return named

    def drop_unnamed(self, d, b, k, before):
        """What the records before named and those now do not."""
        if not self.serves(d):
            return
        named = self.names_of(d, b, k)
        old = [(ref, None) for key, rec in before.items() if key[0] in ("object", "upload") and key[1:3] == (b, k)
               for ref in rec.refs if ref not in named and ref in self.index[d]]
        if old:
            self.disks[d].append(old)
            self.publish(d, old)

    def put(self, b, k, value, wanted):
        def judge(get, version):
            now = get(("object", b, k))
            is_ = now.value if now else None
            if (wanted == "absent" and is_ is not None) or (wanted not in (None, "absent") and is_ != wanted):
                return "precondition", None, None
            data = [(("chunk", b, k, version), Rec(version, None, ()))] if self.r.random() < 0.5 else []
            return None, [(("object", b, k), Rec(version, value, tuple(key for key, _ in data)))], data
        return self.modify(b, k, ("put", k, value, wanted), judge)

    def delete(self, b, k):
        return self.modify(b, k, ("delete", k), lambda get, version: (None, [(("object", b, k), None)], None))

    def begin(self, b, k, upload):
        return self.modify(b, k, ("begin", k, upload),
                           lambda get, version: (None, [(("upload", b, k, upload), Rec(version, (), ()))], None))

    def part(self, b, k, upload, n, value):
        def judge(get, version):
            now = get(("upload", b, k, upload))
            if not now:
                return "no upload", None, None
            ref = ("part", b, k, version)
            parts = {**{m: (v, x) for m, v, x in now.value}, n: (value, ref)}
            rows = tuple((m, v, x) for m, (v, x) in sorted(parts.items()))
            rec = Rec(now.version, rows, tuple(x for _, _, x in rows))
            return None, [(("upload", b, k, upload), rec)], [(ref, Rec(version, None, ()))]
        return self.modify(b, k, ("part", k, upload, n, value), judge)

    def end_upload(self, b, k, upload, is_complete):
        def judge(get, version):
            now = get(("upload", b, k, upload))
            if not now:
                return "no upload", None, None
            batch = [(("upload", b, k, upload), None)]
            if is_complete:
                value = ("whole", upload, tuple((m, v) for m, v, _ in now.value))
                batch.append((("object", b, k), Rec(version, value, now.refs)))
            return None, batch, None
        return self.modify(b, k, ("complete" if is_complete else "abort", k, upload), judge)

    def bucket_asker(self, d):
        """Whose word counts about buckets, when disk d is read."""
        if d in self.table.taking or not self.on("FAILED_HAS_NO_BUCKETS"):
            return d
        return min(self.table.taking & self.present or self.present)

    def lives(self, d, b, rec):
        """Is what lies on a disk of the bucket that there is?  A failed disk does not know of one that was made since."""
        if not rec or not self.on("READ_NOT_OLDER"):
            return bool(rec)
        return rec.version >= self.index[self.bucket_asker(d)]["bucket", b].version

    def read(self, b, k, op):
        seen = self.seen[b]
        number = seen.asked(*op)
        yield
        d = self.authority(b, k)
        if d not in self.present:
            if self.on("MISSING_IS_503"):
                return seen.declined(number)
            there = ("bucket", b) in self.index[min(self.present)]
            return seen.answered(number, (("is", None) if op[0] == "get" else ()) if there else "no bucket")
        key = ("object", b, k)
        if b == TWO and op[0] == "get" and self.r.random() < 0.25:  # the first's bytes are damaged
            first, second, full = self.table.pairs[k]
            is_ = self.index[first].get(key)
            copy = self.index[second].get(key) if second in self.present else None
            if second in self.present and (not self.on("SAME_VERSION_READ") or (is_ and copy and is_.version == copy.version)):
                d = second
            elif is_:
                return seen.declined(number)
        if ("bucket", b) not in self.index[self.bucket_asker(d)]:
            return seen.answered(number, "no bucket")
        if op[0] == "get":
            rec = self.find(d, key)
            if rec and self.on("TABLE_DECIDES") and any(ref not in self.index[d] for ref in rec.refs):
                raise Wrong("data that a record names is not there")
            return seen.answered(number, ("is", rec.value if self.lives(d, b, rec) else None))
        ups = [(key[3], tuple((m, v) for m, v, _ in rec.value)) for key, rec in self.index[d].items()
               if key[0] == "upload" and key[1:3] == (b, k) and self.lives(d, b, rec)]
        return seen.answered(number, tuple(sorted(ups)))

    def list(self, b):
        seen = self.seen[b]
        number = seen.asked("list")
        yield
        homes = [self.authority(b, k) for k in range(KEYS)]
        if not set(homes) <= self.present:
            return seen.declined(number)
        if ("bucket", b) not in self.index[min(self.table.taking & self.present or self.present)]:
            return seen.answered(number, "no bucket")
        recs = [self.find(d, ("object", b, k)) for k, d in enumerate(homes)]
        return seen.answered(number, tuple(rec.value if rec else None for rec in recs))

    # ---- buckets ----

    def bucket(self, b, is_making):
        seen, key = self.seen[b], ("bucket", b)
        number = seen.asked("make" if is_making else "remove")
        if self.on("ONE_CHANGE"):
            while self.changing:
                yield
            self.changing = True

        def over(answer):
            self.gate.discard(b)
            self.changing = False
            if answer == "declined":
                seen.declined(number)
            elif answer:
                seen.answered(number, answer)

        head = min(self.table.taking, default=None)
        if head is None or not self.serves(head) or self.stuck:
            return over("declined")
        if not is_making and self.on("GATE_ALL_PRESENT") and not all(self.serves(d) for d in self.table.members):
            return over("declined")
        if is_making == (key in self.index[head]):
            return over("exists" if is_making else "no bucket")
        if not is_making:
            if self.on("GATE_CLOSED"):
                self.gate.add(b)
            while self.on("GATE_PENDING") and any(h[0] == b for h in self.held):
                yield
            for k in range(KEYS):
                d = self.authority(b, k)
                if d in self.present and self.find(d, ("object", b, k)):
                    return over("not empty")
        rec = Rec(self.version(), None, ()) if is_making else None
        targets = sorted(d for d in self.table.taking if self.serves(d))
        flushed = set()
        for d in self.r.sample(targets, len(targets)):
            if self.serves(d):
                self.disks[d].append([(key, rec)])
            yield
        for d in self.r.sample(targets, len(targets)):
            if self.serves(d):
                self.disks[d].flush()
                flushed.add(d)
                if not self.on("BUCKET_ON_ALL"):
                    self.publish(d, [(key, rec)])
            yield
        if not self.table.taking <= flushed and (flushed != set(targets) or self.on("AWAY_BEFORE_ANSWER")):
            if not is_making and not self.on("GATE_FORWARD"):
                return over(None)
            yield from self.change(lambda t: t, has_turn=self.on("ONE_CHANGE"))
            if not self.table.taking <= flushed:
                self.stuck = True
                while True:  # the gate stays closed until the next start
                    yield
        for d in flushed:
            ended = [(x, None) for x in self.index[d] if x[0] == "upload" and x[1] == b]
            self.publish(d, [(key, rec)] + ended)
        return over("ok")

    # ---- the same on another disk ----

    def slot(self, d, b, k):
        return {key: rec for key, rec in self.index[d].items() if key[0] != "bucket" and key[1:3] == (b, k)}

    def align(self, b, k, source, target):
        """Makes a key on the target what it is on the source."""
        if self.on("ALIGN_HOLD"):
            while (b, k) in self.held:
                yield
            self.held.add((b, k))
        good = True
        src, dst = self.slot(source, b, k), self.slot(target, b, k)
        heads = ("object", "upload")
        named = [(key, rec) for key, rec in src.items() if key[0] in heads and dst.get(key) != rec]
        refs = {ref for _, rec in named for ref in rec.refs}
        data = [(key, src[key]) for key in sorted(refs, key=str) if key in src and key not in dst]
        gone = [(key, None) for key in dst if key[0] in heads and key not in src] if self.on("ALIGN_REMOVES") else []
        for batch in (data, named + gone) if self.on("CHUNKS_FIRST") else (named + gone, data):
            if not batch:
                continue
            if source not in self.present or not self.serves(target):
                good = False
                break
            self.disks[target].append(batch)
            yield
            if not self.serves(target):
                good = False
                break
            if batch is not data or self.on("CHUNKS_FIRST"):
                self.disks[target].flush()
            self.publish(target, batch)
            yield
        if self.on("TARGET_FLUSHED") and self.serves(target):
            self.disks[target].flush()
        if self.on("ALIGN_HOLD"):
            self.held.discard((b, k))
        if not good:
            self.missed.add((b, k, target))

    def rest(self):
        """The walk goes on over other keys."""
        for _ in range(self.r.randrange(8)):
            yield

    def heal(self, k):
        first, second, full = self.table.pairs[k]
        if full or second is None or not self.serves(first) or not self.serves(second) or ("heal", k) in self.frozen:
            return
        self.frozen.add(("heal", k))
        self.missed.discard((TWO, k, second))
        yield from self.align(TWO, k, first, second)
        yield from self.rest()

        def make(t):
            if t.pairs[k] != (first, second, False) or (TWO, k, second) in self.missed or not self.serves(first):
                return None
            return t._replace(pairs=t.pairs[:k] + ((first, second, True),) + t.pairs[k + 1 :])

        yield from self.change(make)
        self.frozen.discard(("heal", k))

    def replace(self, k, new):
        """Another disk becomes the second, because that has been away for long."""
        pair = first, second, full = self.table.pairs[k]
        if full or new in (first, second) or not self.serves(new) or not self.serves(first):
            return

        def make(t):
            if t.pairs[k] != pair or ("heal", k) in self.frozen or not self.serves(new):
                return None
            return t._replace(pairs=t.pairs[:k] + ((first, new, False),) + t.pairs[k + 1 :])

        if (yield from self.change(make)):
            yield from self.heal(k)

    def move(self, b, k, new):
        source = self.authority(b, k)
        roles = self.table.home[k] if b == ONE else self.table.pairs[k]
        if (b, k) in self.filling or new in self.named(self.table, b, k) or not self.serves(new) or not self.serves(source):
            return
        if b == TWO and not roles[2]:
            return
        becomes_second = self.r.random() < 0.5
        self.filling[b, k] = new
        self.missed.discard((b, k, new))
        yield from self.align(b, k, source, new)
        yield from self.rest()
        if self.on("FREEZE"):
            self.frozen.add((b, k))
            while (b, k) in self.held:
                yield

        def make(t):
            if (b, k, new) in self.missed or not self.serves(new) or not self.serves(source):
                return None
            if (t.home[k] if b == ONE else t.pairs[k]) != roles:
                return None
            if b == ONE:
                return t._replace(home=t.home[:k] + (new,) + t.home[k + 1 :])
            pair = (roles[0], new, True) if becomes_second else (new, roles[1], True)
            return t._replace(pairs=t.pairs[:k] + (pair,) + t.pairs[k + 1 :])

        if not self.on("REMOVE_AFTER_SWITCH") and make(self.table) and not (b == TWO and becomes_second):
            self.disks[source].append([(("object", b, k), None)])
            yield
            self.disks[source].flush()
        yield from self.change(make)
        self.filling.pop((b, k))
        self.frozen.discard((b, k))

    def sweep(self, d):
        """Removes what the table does not give to a disk."""
        yield
        for b in (ONE, TWO):
            for k in range(KEYS):
                tables = [self.table] + self.begun
                if not self.serves(d) or self.filling.get((b, k)) == d or (b, k) in self.held:
                    continue
                if any(d in self.named(t, b, k) for t in tables):
                    continue
                old = [(key, None) for key in self.slot(d, b, k)]
                if old:
                    self.disks[d].append(old)
                    self.publish(d, old)
                    yield

    def collect(self, d):
        """Removes data of earlier starts that no record names."""
        yield
        if not self.serves(d):
            return
        for b in (ONE, TWO):
            for k in range(KEYS):
                if self.on("COLLECT_NOT_FILLING") and (self.filling.get((b, k)) == d or (b, k) in self.held):
                    continue
                named = self.names_of(d, b, k)
                old = [(key, None) for key, rec in self.slot(d, b, k).items()
                       if key[0] in ("chunk", "part") and key not in named and rec.version[0] < self.start_no]
                if old:
                    self.disks[d].append(old)
                    self.publish(d, old)

    # ---- a history ----

    def task(self):
        r = self.r
        b, k = r.choice((ONE, TWO)), r.randrange(KEYS)
        dice = r.random()
        if self.harm == "older":
            b = TWO  # of keys with one copy nobody else knows what they were
        if self.profile == "buckets":
            return r.choice((self.begin(b, k, next(self.names)), self.bucket(b, r.random() < 0.5), self.read(b, k, ("uploads", k))))
        if self.tight and r.random() < 0.35:
            dice = 0.75 + 0.25 * r.random()
        if dice < 0.26:
            value = next(self.names)
            return self.put(b, k, value, r.choice((None, None, "absent", value - r.randrange(1, 4))))
        if dice < 0.33:
            return self.delete(b, k)
        if dice < 0.45:
            return self.upload(b, k)
        if dice < 0.57:
            return self.read(b, k, ("get", k))
        if dice < 0.60:
            return self.read(b, k, ("uploads", k))
        if dice < 0.64:
            return self.list(b)
        if dice < 0.70:
            return self.bucket(b, True)
        if dice < 0.75:
            return self.bucket(b, False)
        if dice < 0.84:
            return self.move(b, k, r.randrange(self.nr))
        if dice < 0.91:
            return self.heal(k)
        if dice < 0.93:
            return self.replace(k, r.randrange(self.nr))
        d = r.choice(sorted(self.present))
        return self.sweep(d) if dice < 0.965 else self.collect(d)

    def upload(self, b, k):
        """One request about an upload: of one that the key may have, or a new one."""
        known = sorted({key[3] for i in self.index.values() for key in i if key[0] == "upload" and key[1:3] == (b, k)})
        if not known or self.r.random() < 0.2:
            return self.begin(b, k, next(self.names))
        upload, dice = self.r.choice(known), self.r.random()
        if dice < 0.45:
            return self.part(b, k, upload, self.r.randrange(1, 3), next(self.names))
        return self.end_upload(b, k, upload, dice < 0.85)

    def run_task(self, task):
        try:
            next(task)
        except StopIteration:
            self.tasks.remove(task)

    def cut(self):
        for d in self.disks:
            d.cut(self.r)

    def serve(self, disks, may_cut, forgotten=()):
        """True: it serves.  False: the power went during the start."""
        self.tasks = []
        for _ in self.start(sorted(disks), forgotten):
            if may_cut and self.r.random() < (0.1 if self.tight else 0.06):
                self.cut()
                return False
        for seen in self.seen.values():
            seen.settle()
        for b, k in self.given_up[self.table.version]:
            self.seen[b].lost(k)
        self.given_up = {}
        self.forgotten = self.gone - self.table.members
        if self.older in self.table.taking:
            self.older = None
        return True

    def alive(self):
        return set(range(self.nr)) - self.gone

    def newest(self, disks):
        """The newest table that disks have, or none."""
        return max((s.table for s in (self.disks[d].super() for d in disks) if s), default=None)

    def damage(self):
        """What happens to disks while nothing runs."""
        if self.harm == "super" and self.r.random() < 0.4:
            self.r.choice(self.disks).lose_super(self.r)
        if self.harm != "older" or self.older is not None or self.r.random() < 0.5:
            return
        if self.image is None or self.r.random() < 0.2:
            d = self.r.randrange(self.nr)
            self.image = (d, self.disks[d].image())
            return
        d, image = self.image
        t, then = self.newest(set(range(self.nr)) - {d}), max(s for s in image[1] if s)
        # It is told from what it was when a start of the others has had a table since; and nobody else has what it has not.
        if t < self.disks[d].super().table or d not in t.taking or then.table.version[0] == t.version[0]:
            return
        if any(first == d and not full for first, _, full in t.pairs):
            return
        self.disks[d].put_back(image)
        self.image, self.older = None, d

    def can_start(self, disks):
        """With an older copy of a disk: who has the newest table has to be there, for it is not known to most any more."""
        if self.older is None:
            return True
        return self.newest(disks - {self.older}) == self.newest(self.alive())

    def up(self, is_last=False):
        """Starts with some of the disks until one start serves."""
        for tries in itertools.count():
            disks = self.alive()
            self.damage()
            if not is_last and tries < 3 and self.r.random() < (0.7 if self.tight else 0.4):
                some = self.r.sample(sorted(disks), len(disks))
                disks = set(some[: max(1, len(some) - self.r.choice((1, 1, 2)))])
            if not self.can_start(disks):
                disks = self.alive()
            strangers = self.forgotten if self.forgotten and not is_last and self.r.random() < 0.2 else set()
            try:
                if self.serve(disks | strangers, not is_last, forgotten=() if strangers else self.to_forget(disks)):
                    if strangers:
                        raise Wrong("a disk that was forgotten is back")
                    return
            except Refused:
                if disks == self.alive() and not strangers:
                    raise Wrong("every disk is there, and the start is refused")

    def to_forget(self, disks):
        """What is destroyed is forgotten, sometimes; always where that alone makes a start possible."""
        supers = [self.disks[d].super() for d in disks]
        if None in supers or disks != self.alive() or not self.gone:
            return ()
        t = max(s.table for s in supers)
        self.present = set(disks)
        if not t.members & self.gone or (self.may_start(t) and self.r.random() < 0.5):
            return ()
        return self.gone

    def promised_without(self, x):
        """Is a disk one that may be lost by the contract?"""
        left = self.present - self.failed - {x}
        if self.failed or self.begun or self.changing or self.gone or self.harm or self.present != self.alive():
            return False
        if 2 * len(left & self.table.members) <= len(self.table.members):
            return False
        return all((first != x and first in left) or (first == x and full and second in left)
                   for first, second, full in self.table.pairs)

    def live(self, steps):
        for _ in range(steps):
            if len(self.tasks) < 4 and self.r.random() < 0.45:
                self.tasks.append(self.task())
            risk = 0.02 if self.harm else 0.006 if not self.tight else 0.3 if self.begun else 0.08 if self.filling or self.held else 0.01
            if not self.failed and self.r.random() < risk:
                self.failed.add(self.r.choice(sorted(self.present)))
                self.tasks.append(self.failover())
            if self.tasks:
                self.run_task(self.r.choice(self.tasks))

    def history(self, lives):
        for _ in range(lives):
            self.up()
            self.tasks += [self.bucket(b, True) for b in (ONE, TWO) if self.r.random() < 0.5]
            self.live(15 + self.r.randrange(35 if self.tight else 60))
            if self.nr > 2 and self.r.random() < 0.12:
                x = self.r.randrange(self.nr)
                if self.promised_without(x):
                    self.gone.add(x)
            self.cut()
        self.up(is_last=True)
        for _ in range(3):
            self.tasks += [self.heal(k) for k in range(KEYS)]
            for _ in range(5000):
                if not self.tasks:
                    break
                self.run_task(self.r.choice(self.tasks))
            if self.tasks:
                raise Wrong("healing does not end")
        for b in (ONE, TWO):
            for k in range(KEYS):
                if b == TWO and self.authority(b, k) not in self.present:
                    raise Wrong("a key with two copies cannot be had in the end")
                for op in (("get", k), ("uploads", k)):
                    for _ in self.read(b, k, op):
                        pass
        for k, (first, second, full) in enumerate(self.table.pairs):
            if {first, second} <= self.present:
                if not full:
                    raise Wrong("not healed")
                a, z = self.slot(first, TWO, k), self.slot(second, TWO, k)
                heads = [{key: rec for key, rec in s.items() if key[0] in ("object", "upload")} for s in (a, z)]
                if heads[0] != heads[1]:
                    raise Wrong("a full second is not what its first is")
                if any(ref not in z for rec in heads[1].values() for ref in rec.refs):
                    raise Wrong("a full second lacks data")


# Tight: short lives, failures while tables are written, many moves, cuts in starts.  Buckets: little but uploads and buckets.  Damage: of
# superblocks one copy is lost, or disks are put back from older copies.
PROFILES = ("plain", "tight", "buckets", "damage")
OF_DAMAGE = ("TABLE_IN_BOTH", "BEHIND_IS_AWAY")  # rules that nothing else needs


def run_one(seed, profile, off=()):
    """None, or what went wrong."""
    r = random.Random(seed)
    try:
        Store(r, 2 + seed % (4 if profile in ("tight", "buckets") else 3), profile, off).history(3 + seed % 2)
        return None
    except Wrong as e:
        return str(e)


def search(seconds, profile, off, seed=0):
    """Histories run, and the first that goes wrong."""
    end = time.monotonic() + seconds
    for n in itertools.count():
        wrong = run_one(seed + n, profile, off)
        if wrong or time.monotonic() > end:
            return n + 1, (seed + n, wrong) if wrong else None


# Rules whose loss shows rarely, and a history that shows it.
KEPT = {
    "BOTH_TABLES": (101743, "tight"), "TARGET_FLUSHED": (120554, "tight"), "BOTH_AWAY_KEEP_FULL": (158783, "tight"),
    "OLDER_AFTER_TABLE": (603, "buckets"), "READ_NOT_OLDER": (4384, "buckets"), "FORWARD_WHOLE": (1179, "plain"),
}


def rules(names, seconds):
    missing = 0
    for name in names or RULES:
        if name not in RULES:
            sys.exit(f"many_disks: there is no rule {name}")
        found = None
        if name in KEPT:
            seed, profile = KEPT[name]
            wrong = run_one(seed, profile, [name])
            found = (seed, wrong, profile + ", kept") if wrong else None
        nr = 0
        profiles = PROFILES[3:] if name in OF_DAMAGE else PROFILES[:3]
        for profile in profiles:
            if not found:
                n, hit = search(seconds / len(profiles), profile, [name])
                nr += n
                found = hit and (*hit, profile)
        missing += not found
        print(f"M{RULES[name]:<3} {name:22} " + (f"{found[2]} seed {found[0]}: {found[1]}" if found else f"NOT FOUND in {nr} histories"),
              flush=True)
    return 1 if missing else 0


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("what", choices=("run", "rules", "one"))
    p.add_argument("names", nargs="*")
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--seed", type=int, default=int(time.time()) * 1000)
    p.add_argument("--profile", choices=PROFILES, default="plain")
    p.add_argument("--off", action="append", default=[])
    a = p.parse_intermixed_args()
    if set(a.off) - set(RULES):
        p.error(f"no such rule: {', '.join(set(a.off) - set(RULES))}")
    if a.what == "rules":
        return rules(a.names, a.seconds)
    if a.what == "one":
        wrong = run_one(int(a.names[0]), a.profile, a.off)
        print(wrong or "nothing wrong")
        return 1 if wrong else 0
    n, hit = search(a.seconds, a.profile, a.off, a.seed)
    print(f"{n} histories from seed {a.seed} on, {a.profile}: " + (f"seed {hit[0]}: {hit[1]}" if hit else "none wrong"))
    return 1 if hit else 0


if __name__ == "__main__":
    sys.exit(main())
