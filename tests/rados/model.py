#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of docs/rados.md ("Several gateways") as a model: random histories of gateways that crash, dawdle, are taken for dead while
they live, and clean up, on one shard with one key; and a second one of the freezing of an upload.  With all rules nothing goes wrong;
with any one of them switched off something does, and is found.  In a third one objects are small and much is sent again;
in a fourth gateways act on what they remember.

    tests/rados/model.py [RULE...]      these switched off only; SEED= another place to begin; N=2000 histories with all rules

A message to RADOS is applied some time after it was sent, or never where its sender crashed; its answer comes later still.  Some changes
are applied once more, after others, by an OSD that does not know them any more, and the answer is that of the second time.
"""
import os
import random
import sys
import time

# Each rule, and what it is without it.
RULES = {
    "data_first": "the record is there before its data",
    "data_of_a_commit_under_way_stays": "a PUT whose commit takes too long removes its data",
    "garbage_in_the_same_change": "what was replaced is noted as garbage in a change of its own",
    "pins": "garbage goes at once",
    "three_epochs": "garbage goes two epochs later",
    "readers_pin": "an object that is open holds no epoch",
    "epoch_waits_for_all": "the epoch goes on without looking at the rows",
    "generation_raised": "who cleans up does not raise the generation",
    "raised_before_the_index": "who cleans up reads the index first",
    "row_removed_first": "who cleans up removes the dead one's row at the end",
    "own_row_after_generation": "who finds another generation goes on without looking at its own row",
    "generation_before_own_row": "who looks at its own row does it before it reads the generation",
    "garbage_is_an_owner": "who cleans up does not look at garbage",
    "ids_promised": "ids are used that the row does not promise",
    "whole_records_compared": "versions are compared instead of records",
    "names_used_once": "a PUT takes the name of one that is over",
    "blocklist": "the dead one is not put on the blocklist",
    "each_connection_blocked": "one of the dead one's two connections is not on the blocklist",
}
RESENT_RULES = {
    "own_row_compared": "a change does not compare its gateway's row in the shard",
    "own_row_first": "the first change of a gateway finds no row of it, and compares that",
    "own_row_tells": "who is told that it lost does not look there whether it had won",
    "own_row_gone_is_death": "who finds that row gone does not look whether it was taken for dead",
}
MEMORY_RULES = {
    "remembered_is_compared": "what a gateway remembers of the record is not compared in the change",
    "remembered_refuses_nothing": "a PUT is refused by what its gateway remembers, without a look",
    "look_decides": "a GET is given what was read beside the look, whatever that finds",
}
UPLOAD_RULES = {
    "parts_need_an_open_upload": "a part's change does not compare the upload",
    "closed_before_the_parts_are_read": "who completes closes the upload after it has read the parts",
    "last_change_needs_own_closing": "who completes does not look whether it is still the one that closed it",
    "unused_parts_are_garbage": "parts that the list does not name are forgotten",
}
OFF = None  # the rule that is switched off


def on(rule):
    return OFF != rule


class Wrong(Exception):
    pass


class Fenced(Exception):
    """This gateway is not one any more."""


class Gateway:
    def __init__(self, world, number):
        self.number, self.epoch, self.pins = number, world.epoch, {}
        self.known = None  # the generation at which it was seen to be alive
        self.remembered = None  # that, and the record as it was then or as this gateway has set it since
        self.first = self.next = 1
        self.promised = 3
        self.over, self.last_over = set(), None
        self.crashed = self.fenced = self.beats = False
        self.changes, self.own_row = False, None  # a change of its own is under way; its row in the shard, as it knows it

    def id(self):
        if self.next >= self.promised and on("ids_promised"):
            return None
        if not on("names_used_once") and self.last_over:
            return self.last_over
        self.next += 1
        return (self.number, self.next - 1)

    def end_id(self, id_):
        self.last_over = id_
        self.over.add(id_[1])
        while self.first in self.over:
            self.first += 1

    def pin(self):
        self.pins[self.epoch] = self.pins.get(self.epoch, 0) + 1
        return self.epoch

    def unpin(self, epoch):
        self.pins[epoch] -= 1

    def oldest(self):
        return min([e for e, n in self.pins.items() if n] + [self.epoch])


class Change:
    """A comparison and a change, in one operation."""

    def __init__(self, do):
        self.do = do

    def __call__(self):
        return self.do()


def once(message):
    """Sends it, and does not heed the answer."""
    yield message


class World:
    """The cluster, its gateways, and what is under way."""

    def __init__(self, rnd, small=0, sent_again=0.05, starts=0.01, remembers=0):
        self.rnd, self.small, self.sent_again, self.starts, self.remembers = rnd, small, sent_again, starts, remembers
        self.generation, self.record, self.clock = 1, None, 0
        self.garbage = {}  # number of the row -> epoch, ids
        self.data, self.epoch, self.rows, self.dead, self.blocked = set(), 1, {}, {}, set()
        self.upload, self.parts = None, {}
        self.garbage_nr = 0
        self.unblocked, self.gateways, self.started = set(), [], 0
        self.procs, self.turns, self.ending = [], 0, False  # [gateway, generator, its message or the answer, which of these, when it goes on]
        self.applied, self.refused, self.acked = set(), set(), set()
        self.last, self.change_nr = {}, 0  # of each gateway, its row in the shard: the number of its last change
        self.seen_turn = -1  # the last turn at whose end a record was there
        self.replaced = {}  # data -> the turn in which no record named it any more
        for _ in range(2):
            self.new_gateway()

    def new_gateway(self):
        self.started += 1
        g = Gateway(self, self.started)
        self.rows[g.number] = (g.epoch, g.first, g.promised)
        self.gateways.append(g)
        return g

    # ---- what RADOS does ----

    def note_garbage(self, epoch, *ids):
        self.garbage_nr += 1
        self.garbage[self.garbage_nr] = (epoch, ids)

    def commit(self, generation, old, new, garbage, name):
        """One operation: compares, and changes.  garbage: the epoch of the change, or None.  name: of the change."""
        if self.generation != generation:
            return False
        if on("whole_records_compared"):
            if self.record != old and on("remembered_is_compared"):
                return False
        elif (self.record and self.record["version"]) != (old and old["version"]):
            return False
        if name in self.applied:
            raise Wrong("a change was carried out twice")
        if name in self.refused:
            raise Wrong("a change that was refused is carried out")
        if self.record:
            self.replaced[self.record["data"]] = self.turns
        self.record = new
        self.applied.add(name)
        if old and garbage is not None:
            self.note_garbage(garbage, *old["data"])
        return True

    # ---- the schedule ----

    def spawn(self, g, what):
        self.procs.append([g, what, None, None, 0])
        self.go_on(self.procs[-1], None)

    def go_on(self, proc, answer):
        g, what = proc[0], proc[1]
        try:
            proc[2] = what.send(answer)
            proc[3] = "sent"
        except (StopIteration, Fenced) as e:
            g.fenced |= isinstance(e, Fenced)
            self.procs.remove(proc)

    def apply(self, proc):
        g = proc[0]
        if g.number in self.blocked and (on("each_connection_blocked") or self.rnd.random() < 0.5):
            proc[2], proc[3] = "blocked", "done"
        else:
            answer = proc[2]()
            if isinstance(proc[2], Change) and answer and self.rnd.random() < self.sent_again:
                # It is sent again, later, and not recognised.
                proc[4] = self.turns + self.rnd.randint(0, 100)
            else:
                proc[2], proc[3] = answer, "done"
        self.look()

    def turn(self):
        self.turns += 1
        proc = self.rnd.choice(self.procs) if self.procs else None
        # Some dawdle, for many turns.
        if proc is None or proc[4] > self.turns:
            return
        if not self.ending and self.rnd.random() < 0.02:
            proc[4] = self.turns + self.rnd.randint(20, 150)
            return
        g = proc[0]
        if proc[3] == "sent":
            if g.crashed and self.rnd.random() < 0.3:
                self.procs.remove(proc)  # it never arrives
            else:
                self.apply(proc)
        elif g.crashed or g.fenced:
            self.procs.remove(proc)
        elif isinstance(proc[2], str) and proc[2] == "blocked":
            g.fenced = True
            self.procs.remove(proc)
        else:
            self.go_on(proc, proc[2])

    def crash(self, g):
        """Its messages may still arrive."""
        g.crashed = True
        self.procs = [p for p in self.procs if p[0] is not g or p[3] == "sent"]

    def is_alive(self, g):
        return not g.crashed and not g.fenced

    # ---- what must always be so ----

    def look(self):
        if self.record:
            self.seen_turn = self.turns
            missing = [i for i in self.record["data"] if i not in self.data]
            if missing:
                raise Wrong("data that the record names is gone")

    def quiet(self):
        """Everything ends: messages arrive, the dead are cleaned up after, epochs go on.  Nothing may be left."""
        whose, self.ending = 0, True
        for _ in range(1000000):
            if self.procs:
                self.turn()
                continue
            alive = [g for g in self.gateways if self.is_alive(g)]
            if not alive:
                alive = [self.new_gateway()]
            g, whose = alive[whose % len(alive)], whose + 1
            dead = [n for n in self.rows if not any(a.number == n for a in alive)]
            if dead:
                self.spawn(g, self.clean_up(g, dead[0]))
            elif self.dead:
                self.spawn(g, self.clean_ids(g, *next(iter(self.dead.items()))))
            elif self.leftover(g):
                pass
            elif self.garbage:
                self.spawn(g, self.beat(g))
                self.spawn(g, self.sweep(g))
            else:
                break
        else:
            raise Wrong("it does not come to rest")
        self.look()
        named = set(self.record["data"]) if self.record else set()
        for p in self.parts.values():
            named.add(p)
        # What a dead one had sent may still arrive where the blocklist could not be written.
        if any(i not in named and i[0] not in self.unblocked for i in self.data):
            raise Wrong("data is left that nothing names")
        for name in self.acked:
            if name not in self.applied:
                raise Wrong("what was acknowledged was never carried out")

    def leftover(self, g):
        return False

    # ---- gateways among themselves ----

    def beat(self, g):
        """Its row; then the epoch.  One after the other: a gateway has one helper."""
        if g.beats:
            return
        g.beats = True
        first, last, epoch = g.first, g.next + 2, g.oldest()

        def write():
            if g.number not in self.rows:
                return False
            self.rows[g.number] = (epoch, first, last)
            return (self.epoch, dict(self.rows))

        answer = yield write
        if answer is False:
            raise Fenced
        g.promised = max(g.promised, last)
        now, rows = answer
        g.epoch = max(g.epoch, now)
        if not on("epoch_waits_for_all") or all(e == now for e, _, _ in rows.values()):
            def advance():
                # All rows are compared in it, too.
                if self.epoch == now and (not on("epoch_waits_for_all") or self.rows == rows):
                    self.epoch = now + 1
                return None
            yield advance
        g.beats = False

    def sweep(self, g):
        rows = yield lambda: dict(self.garbage)
        later = 3 if on("three_epochs") else 2
        for nr, (epoch, ids) in rows.items():
            if on("pins") and epoch + later > g.epoch:
                continue
            for i in ids:
                yield lambda i=i: self.data.discard(i)
            yield lambda nr=nr: self.garbage.pop(nr, None) and None

    def clean_up(self, g, number):
        """g takes another one for dead; whether it is does not matter."""
        row = yield lambda: self.rows.get(number)
        if row is None:
            return

        def declare():
            if self.rows.get(number) != row:
                return None
            if on("row_removed_first"):
                del self.rows[number]
            self.dead[number] = row
            return row

        if (yield declare) is None:
            return
        yield from self.clean_ids(g, number, row)

    def clean_ids(self, g, number, row):
        if self.rnd.random() < 0.5:
            yield lambda: self.blocked.add(number) if on("blocklist") else None
        elif number not in self.blocked:  # it is best effort
            self.unblocked.add(number)
        for counter in range(row[1], row[2]):
            id_ = (number, counter)
            if not (yield lambda: id_ in self.data):
                continue

            def raise_it():
                self.generation += 1

            def read():
                named = set(self.record["data"]) if self.record else set()
                named |= set(self.parts.values())
                if on("garbage_is_an_owner"):
                    named |= {i for _, ids in self.garbage.values() for i in ids}
                return named

            if not on("generation_raised"):
                named = yield read
            elif on("raised_before_the_index"):
                yield raise_it
                named = yield read
            else:
                named = yield read
                yield raise_it
            if id_ not in named:
                yield lambda: self.data.discard(id_)

        def end():
            self.dead.pop(number, None)
            self.rows.pop(number, None)

        yield end

        if number not in self.rows:
            yield lambda: self.last.pop(number, None) and None  # which others have added to theirs

    # ---- a change, in a gateway ----

    def change(self, g, do):
        """Whether it was done: do() compares and changes the rest.  A gateway has one under way."""
        while g.changes:
            yield lambda: None
        g.changes = True
        if g.own_row is None and on("own_row_first"):
            g.own_row = yield lambda: self.last.setdefault(g.number, 0)
        was = g.own_row
        self.change_nr += 1
        number = self.change_nr

        def both():
            if (on("own_row_compared") and self.last.get(g.number) != was) or not do():
                return False
            self.last[g.number] = number
            return True

        won = yield Change(both)
        g.own_row = number
        if not won:
            g.own_row = yield lambda: self.last.get(g.number)
            if g.own_row is None and on("own_row_gone_is_death") and not (yield lambda: g.number in self.rows):
                raise Fenced
            won = g.own_row == number and on("own_row_tells")
        g.changes = False
        return won

    def look_alive(self, g):
        """The shard, read; and whether this gateway still is one, where the generation is new to it."""
        row_there = None
        if not on("generation_before_own_row"):
            row_there = yield lambda: g.number in self.rows
        generation, record = yield lambda: (self.generation, self.record)
        if generation != g.known and on("own_row_after_generation"):
            if on("generation_before_own_row"):
                row_there = yield lambda: g.number in self.rows
            if not row_there:
                raise Fenced
            g.known = generation
        g.remembered = generation, record
        return generation, record

    def put(self, g, absent):
        id_ = g.id()
        if id_ is None:
            return
        epoch, name = g.pin(), object()
        data = (id_,) if self.rnd.random() >= self.small else ()  # or it is small, and lies in the record
        if on("data_first") and data:
            yield lambda: self.data.add(id_)
        begun, was_there = self.turns, self.record is not None
        while True:
            # What is remembered does for a change, which compares it; a mistake is forgotten, and looked after.
            guess = g.remembered if self.remembers and self.rnd.random() < self.remembers else None
            if guess and absent and guess[1] and on("remembered_refuses_nothing"):
                guess = None
            generation, old = guess or (yield from self.look_alive(g))
            if absent and old:
                if not self.record and not was_there and self.seen_turn < begun:
                    raise Wrong("a PUT was refused although nothing was there all the time")
                self.refused.add(name)
                yield lambda: self.data.discard(id_)
                g.end_id(id_)
                g.unpin(epoch)
                return
            self.clock += 1
            # Clocks of two gateways differ: a key that comes again may have the version of the one that went.
            version = max(old["version"] + 1 if old else 0, self.rnd.randint(1, 3))
            new = {"id": id_, "data": data, "version": version}
            separate = not on("garbage_in_the_same_change")
            if not on("data_of_a_commit_under_way_stays") and self.rnd.random() < 0.3:
                # It is sent, and nobody waits for its answer any longer.
                self.spawn(g, once(lambda: self.commit(generation, old, new, epoch, name)))
                yield lambda: self.data.discard(id_)
                g.unpin(epoch)
                return
            if (yield from self.change(g, lambda: self.commit(generation, old, new, None if separate else epoch, name))):
                if separate and old:
                    yield lambda: self.note_garbage(epoch, *old["data"])
                g.remembered = generation, new
                break
            g.remembered = None
        if not on("data_first") and data:
            yield lambda: self.data.add(id_)
        self.acked.add(name)
        g.end_id(id_)
        g.unpin(epoch)

    def delete(self, g):
        epoch = g.pin()
        name = object()
        while True:
            generation, old = yield from self.look_alive(g)
            if old is None:
                break
            if (yield from self.change(g, lambda: self.commit(generation, old, None, epoch, name))):
                g.remembered = generation, None
                break
        g.unpin(epoch)

    def read(self, g):
        epoch, begun = g.pin(), self.turns
        # What the remembered record names is read beside the look: before it or behind it.
        guess = g.remembered and g.remembered[1] if self.remembers and self.rnd.random() < self.remembers else None
        is_first, is_there = self.rnd.random() < 0.5 if guess else False, False
        if is_first:
            is_there = yield lambda: set(guess["data"]) <= self.data
        _, record = yield lambda: (self.generation, self.record)
        if not on("readers_pin"):
            g.unpin(epoch)
        if guess and not is_first:
            is_there = yield lambda: set(guess["data"]) <= self.data
        if guess and is_there and (not on("look_decides") or (record and record["data"] == guess["data"])):
            if self.replaced.get(guess["data"], begun) < begun:
                raise Wrong("a GET was given what had been replaced before it began")
        elif record:
            for id_ in record["data"] * self.rnd.choice([1, 2, 4, 8, 40]):
                # Only one that is a gateway still promises anything: another one's answers are not sent.
                there = yield lambda id_=id_: (id_ in self.data, g.number in self.rows)
                if there == (False, True):
                    raise Wrong("a reader's data is gone")
        if on("readers_pin"):
            g.unpin(epoch)


def history(rnd, w, acts):
    """A history: of what gateways do for clients (acts), and what becomes of gateways, in a mixture of its own."""
    acts = dict({
        "beat": (9, lambda g: w.beat(g)),
        "sweep": (4, lambda g: w.sweep(g)),
        "crash": (1, w.crash),
        "dead": (2, lambda g: w.clean_up(g, rnd.choice([n for n in w.rows if n != g.number] or [0]))),
        "turn": (60, lambda g: w.turn()),
    }, **acts)
    weights = [weight * rnd.choice([0.1, 1, 1, 4]) if name != "turn" else weight for name, (weight, _) in acts.items()]
    for _ in range(rnd.choice([100, 300, 600])):
        alive = [g for g in w.gateways if w.is_alive(g)]
        if not alive or (rnd.random() < w.starts and len(w.gateways) < 500 * w.starts):
            w.new_gateway()
            continue
        g = rnd.choice(alive)
        what = rnd.choices(list(acts.values()), weights)[0][1](g)
        if what is not None:
            w.spawn(g, what)
    w.quiet()


def one_key(rnd):
    w = World(rnd)
    history(rnd, w, {
        "put": (6, lambda g: w.put(g, rnd.random() < 0.3)),
        "delete": (2, w.delete),
        "read": (3, w.read),
    })


def one_key_remembered(rnd):
    w = World(rnd, remembers=0.7)
    history(rnd, w, {
        "put": (6, lambda g: w.put(g, rnd.random() < 0.3)),
        "delete": (4, w.delete),
        "read": (2, w.read),
    })


def small_objects(rnd):
    w = World(rnd, small=0.9, sent_again=0.3, starts=0.05)
    history(rnd, w, {
        "put": (4, lambda g: w.put(g, rnd.random() < 0.3)),
        "delete": (4, w.delete),
        "dead": (4, lambda g: w.clean_up(g, rnd.choice([n for n in w.rows if n != g.number] or [0]))),
    })


# ---- an upload ----


class Uploads(World):
    """upload: None, or {"closer": (gateway, act) or None}; parts: number -> data."""

    def __init__(self, rnd):
        super().__init__(rnd)
        self.upload, self.done = {"closer": None}, False

    @staticmethod
    def is_closed(upload, alive):
        """By one that lives: who is dead does not finish what it began."""
        return upload["closer"] and upload["closer"][0] in alive

    def put_part(self, g, number):
        id_ = g.id()
        if id_ is None:
            return
        epoch = g.pin()
        yield lambda: self.data.add(id_)
        for _ in range(20):
            generation, _ = yield from self.look_alive(g)
            upload, old, alive = yield lambda: (self.upload and dict(self.upload), self.parts.get(number), set(self.rows))
            if upload is None or self.is_closed(upload, alive):
                # It is gone; or the answer is "later", and the client asks again.
                break

            def commit():
                if self.generation != generation or self.parts.get(number) != old:
                    return False
                if on("parts_need_an_open_upload") and self.upload != upload:
                    return False
                self.parts[number] = id_
                if on("parts_need_an_open_upload"):
                    self.upload = {"closer": None}  # again, where who closed it is dead
                if old:
                    self.note_garbage(epoch, old)
                return True

            if (yield from self.change(g, commit)):
                g.end_id(id_)
                g.unpin(epoch)
                return
        yield lambda: self.data.discard(id_)
        g.end_id(id_)
        g.unpin(epoch)

    def finish(self, g, numbers):
        """Completes it (of these parts), or aborts it (None)."""
        act = g.id()
        if act is None:
            return
        epoch = g.pin()
        mine = {"closer": (g.number, act)}
        found = {}

        def read(n):
            return lambda: self.parts.get(n)

        tries = 0
        while True:
            if not on("closed_before_the_parts_are_read"):
                for n in (1, 2, 3):
                    found[n] = yield read(n)
            generation, _ = yield from self.look_alive(g)
            upload, alive = yield lambda: (self.upload and dict(self.upload), set(self.rows))
            if upload is None:
                g.end_id(act)
                g.unpin(epoch)
                return
            if self.is_closed(upload, alive):
                tries += 1
                if tries < 20:
                    continue
                g.end_id(act)
                g.unpin(epoch)
                return

            def close():
                if self.generation != generation or self.upload != upload:
                    return False
                self.upload = mine
                return True

            if (yield from self.change(g, close)):
                break
        if on("closed_before_the_parts_are_read"):
            for n in (1, 2, 3):  # a page each
                found[n] = yield read(n)
        used = [n for n in numbers or () if found.get(n)]
        while True:
            generation, old = yield from self.look_alive(g)
            upload = yield lambda: self.upload and dict(self.upload)
            if (upload != mine and on("last_change_needs_own_closing")) or upload is None:
                break
            new = {"id": act, "data": tuple(found[n] for n in used), "version": 1} if used else None

            def last():
                if self.generation != generation or self.record != old or self.upload is None:
                    return False
                if on("last_change_needs_own_closing") and self.upload != mine:
                    return False
                if new:
                    if old:
                        self.note_garbage(epoch, *old["data"])
                    self.record = new
                unused = [i for n, i in found.items() if i and n not in used]
                if unused and on("unused_parts_are_garbage"):
                    self.note_garbage(epoch, *unused)
                for n in found:
                    if found[n]:
                        self.parts.pop(n, None)
                self.upload = None
                return True

            if (yield from self.change(g, last)):
                break
        g.end_id(act)
        g.unpin(epoch)

    def leftover(self, g):
        # Somebody aborts, or asks again, at last.
        if self.upload is not None:
            self.spawn(g, self.beat(g))
            self.spawn(g, self.finish(g, None))
            return True
        return False

    def quiet(self):
        super().quiet()
        if self.parts:
            raise Wrong("parts of no upload are left")


def one_upload(rnd):
    w = Uploads(rnd)
    history(rnd, w, {
        "part": (8, lambda g: w.put_part(g, rnd.randint(1, 3))),
        "finish": (3, lambda g: w.finish(g, rnd.choice([None, (1, 2), (1, 2, 3), (2,)]))),
    })


# ---- all of it ----


def histories(one, first, nr):
    """The first seed that goes wrong, and how; or None."""
    for seed in range(first, first + nr):
        try:
            one(random.Random(seed))
        except Wrong as e:
            return seed, str(e)
    return None


def main():
    global OFF
    first, nr = int(os.environ.get("SEED", "1")), int(os.environ.get("N", "2000"))
    for one, rules in ((one_key, RULES), (small_objects, RESENT_RULES), (one_key_remembered, MEMORY_RULES), (one_upload, UPLOAD_RULES)):
        begun = time.monotonic()
        want = [r for r in rules if not sys.argv[1:] or r in sys.argv[1:]]
        if not sys.argv[1:]:
            OFF = None
            wrong = histories(one, first, nr)
            assert wrong is None, "%s: with all rules, seed %d: %s" % (one.__name__, *wrong)
            print("%s: %d histories with all rules: nothing wrong (%.1f s)" % (one.__name__, nr, time.monotonic() - begun), flush=True)
        for OFF in want:
            found = histories(one, first, 5 * nr)
            assert found, "%s: nothing went wrong although %s" % (OFF, rules[OFF])
            print("%-34s off: after %5d histories: %s" % (OFF, found[0] - first + 1, found[1]), flush=True)
    print("%d rules, each of them needed" % (len(RULES) + len(RESENT_RULES) + len(MEMORY_RULES) + len(UPLOAD_RULES)))


main()
