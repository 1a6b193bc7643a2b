#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The checker of histories (linear.py): finds every kind of history that no order explains, and nothing in those that have one."""
import itertools
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from linear import UNKNOWN, Op, check, step, IMPOSSIBLE

NO = "no"


def put(a, b, v, match=None, said="ok"):
    return Op("put", a, b, said, value=v, match=match)


def get(a, b, v=None):
    return Op("get", a, b, "ok" if v else NO, value=v)


def gone(a, b, said="ok"):
    return Op("delete", a, b, said)


def tag(a, b, t, said="ok"):
    return Op("tag", a, b, said, tags=t)


def tags(a, b, t=None):
    return Op("tags", a, b, "ok" if t is not None else NO, tags=t)


GOOD = {
    "one after the other": [put(0, 1, "a"), get(2, 3, "a"), gone(4, 5), get(6, 7), put(8, 9, "b", "*"), get(10, 11, "b")],
    "two at once, either order": [put(0, 5, "a"), put(0, 5, "b"), get(6, 7, "a")],
    "reads beside a write": [put(0, 1, "a"), put(2, 9, "b"), get(3, 4, "a"), get(5, 6, "b"), get(7, 8, "b")],
    "one of two wins": [put(0, 5, "a", "*"), put(0, 5, "b", "*", NO), get(6, 7, "a")],
    "the answer that never came, late": [put(0, 1, "a"), put(2, 3, "b", said=UNKNOWN), get(4, 5, "a"), get(9, 10, "b")],
    "the answer that never came, never": [put(0, 1, "a"), put(2, 3, "b", said=UNKNOWN), get(4, 5, "a"), get(9, 10, "a")],
    "a condition met by what had no answer": [put(0, 1, "a", said=UNKNOWN), put(2, 3, "b", "a"), get(4, 5, "b")],
    "refused because of what had no answer": [put(0, 1, "a", said=UNKNOWN), put(2, 3, "b", "*", NO), gone(4, 5), get(6, 7)],
    "a delete without an answer": [put(0, 1, "a"), gone(2, 3, UNKNOWN), get(4, 5, "a"), put(6, 7, "b", "*"), get(8, 9, "b")],
    "tags": [put(0, 1, "a"), tag(2, 3, "x"), tags(4, 5, "x"), get(4, 5, "a"), put(6, 7, "b"), tags(8, 9, "")],
    "tags of nothing": [tags(0, 1), tag(2, 3, "x", NO), put(4, 5, "a"), tags(6, 7, "")],
}
BAD = {
    "an old read": [put(0, 1, "a"), put(2, 3, "b"), get(4, 5, "a")],
    "a read that goes back": [put(0, 1, "a"), put(2, 9, "b"), get(3, 4, "b"), get(5, 6, "a")],
    "a write that was lost": [put(0, 1, "a"), get(2, 3)],
    "what nobody wrote": [put(0, 1, "a"), get(2, 3, "c")],
    "before it was asked for": [get(0, 1, "a"), put(2, 3, "a")],
    "two win for one absence": [put(0, 5, "a", "*"), put(0, 5, "b", "*")],
    "two replace the same": [put(0, 1, "a"), put(2, 9, "b", "a"), put(2, 9, "c", "a")],
    "a condition that did not hold": [put(0, 1, "a"), put(2, 3, "b"), put(4, 5, "c", "a")],
    "refused although it held": [put(0, 1, "a"), put(2, 3, "b", "a", NO)],
    "refused although nothing is there": [put(0, 1, "b", "*", NO)],
    "there after the delete": [put(0, 1, "a"), gone(2, 3), get(4, 5, "a")],
    "a delete that took a later one": [put(0, 1, "a"), gone(2, 3), put(4, 5, "b"), get(6, 7)],
    "without an answer, twice": [put(0, 1, "a"), put(2, 3, "b", said=UNKNOWN), get(4, 5, "b"), put(6, 7, "c"), get(8, 9, "b")],
    "without an answer, too early": [put(0, 1, "a"), get(2, 3, "b"), put(4, 5, "b", said=UNKNOWN)],
    "without an answer, against its condition": [put(0, 1, "a"), put(2, 3, "b", "*", UNKNOWN), get(4, 5, "b")],
    "a delete without an answer, twice": [put(0, 1, "a"), gone(2, 3, UNKNOWN), get(4, 5), put(6, 7, "b"), get(8, 9)],
    "tags that were lost": [put(0, 1, "a"), tag(2, 3, "x"), tags(4, 5, "")],
    "tags of the one before": [put(0, 1, "a"), tag(2, 3, "x"), put(4, 5, "b"), tags(6, 7, "x")],
    "a write lost under tags": [put(0, 1, "a"), put(2, 9, "b"), tag(2, 9, "x"), get(10, 11, "a"), tags(10, 11, "x")],
    "tags of nothing that is there": [put(0, 1, "a"), tag(2, 3, "x", NO)],
    "two reads of two orders": [put(0, 9, "a"), put(0, 9, "b"), get(10, 11, "a"), get(12, 13, "b")],
}


def by_force(ops):
    """Tries every order."""
    unsure = [op for op in ops if op.said == UNKNOWN]
    sure = [op for op in ops if op.said != UNKNOWN]
    for n in range(len(unsure) + 1):
        for some in itertools.combinations(unsure, n):
            for order in itertools.permutations(sure + list(some)):
                if any(b.ended < a.begun for a, b in itertools.combinations(order, 2)):
                    continue
                state = None
                for op in order:
                    state = step(state, op)
                    if state is IMPOSSIBLE:
                        break
                else:
                    return True
    return False


def some_history(rnd):
    """Of a register that mostly behaves: some answers are another's."""
    ops, state = [], None
    for n in range(rnd.randint(2, 6)):
        at = n + rnd.random()
        begun, ended = at - rnd.random() * 3, at + rnd.random() * 3
        kind = rnd.choice(["put", "put", "put", "get", "get", "delete", "tag", "tags"])
        match = rnd.choice([None, "*", rnd.choice("abc")]) if kind == "put" else None
        op = Op(kind, begun, ended, "ok", rnd.choice("abc") if kind == "put" else None, match, rnd.choice("xy") if kind == "tag" else None)
        if kind in ("get", "tags"):
            seen = state if rnd.random() < 0.8 else rnd.choice([None, ("a", ""), ("b", "x")])
            op.said = "ok" if seen else NO
            op.value, op.tags = (seen[0], None) if seen and kind == "get" else (None, seen[1]) if seen else (None, None)
        else:
            new = step(state, op)
            if new is IMPOSSIBLE:
                op.said = NO if kind != "delete" else "ok"
                new = state
            if rnd.random() < 0.1:
                op.said = rnd.choice([NO, "ok"]) if kind != "delete" else "ok"
            if rnd.random() < 0.2:
                op.said, op.ended = UNKNOWN, float("inf")
                new = rnd.choice([new, state])
            state = new
        ops.append(op)
    return ops


for name, ops in GOOD.items():
    assert check(ops) is None, "not accepted: " + name
for name, ops in BAD.items():
    assert check(ops), "not found: " + name
seed = int(os.environ.get("SEED", "0")) or random.SystemRandom().randint(1, 1 << 32)
print("SEED=%d" % seed)
rnd, bad = random.Random(seed), 0
for n in range(600):
    ops = some_history(rnd)
    want = by_force(ops)
    assert (check(ops) is None) == want, (want, ops)
    bad += not want
assert 60 < bad < 540, bad
print("%d histories that are right, %d that are not; of 600 random ones %d are not, as with every order tried" % (len(GOOD), len(BAD), bad))
